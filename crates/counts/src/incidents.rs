//! Symptoms, put together into incidents: one for what belongs together, however long it lasts and often it comes back.

use std::collections::{BTreeSet, VecDeque};

use crate::conditions::{IncidentSubject, Symptom};

/// An hour, in nanoseconds.
const HOUR_NS: u64 = 3_600_000_000_000;
/// Incidents that are remembered at once; what begins beyond them belongs to the newest.
const MOST_INCIDENTS: usize = 256;
/// Different symptoms of one incident that are remembered; others are not reported.
const MOST_SYMPTOMS: usize = 64;

/// When an incident is over, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncidentRules {
    /// Intervals without a symptom after which an incident is over.
    pub quiet_intervals: u32,
    /// What comes back so long after the end still belongs to the incident that was over, in nanoseconds. What others
    /// have of the same condition so long after an incident began belongs to it too, as long as it lasts: a host that
    /// has too much to do has it for all.
    pub cool_down_ns: u64,
    /// What is seen so long after an incident began is in the same recording, in nanoseconds.
    pub recording_ns: u64,
    /// Recordings in an hour at most.
    pub most_an_hour: u32,
}

/// What a symptom, or the end of an interval, means.
#[derive(Debug, Clone, PartialEq)]
pub enum IncidentStep {
    /// An incident begins: it is to be recorded.
    Begins {
        /// Its number, from 1.
        number: u64,
        /// What was seen.
        symptom: Symptom,
    },
    /// An incident begins that is not to be recorded: there were too many recordings in the last hour.
    Refused {
        /// Its number.
        number: u64,
        /// What was seen.
        symptom: Symptom,
    },
    /// Another symptom belongs to an incident.
    Joins {
        /// The incident's number.
        number: u64,
        /// What was seen.
        symptom: Symptom,
    },
    /// An incident that was over goes on.
    Resumes {
        /// Its number.
        number: u64,
    },
    /// An incident is over.
    Ends {
        /// Its number.
        number: u64,
        /// From its first symptom to its last, in nanoseconds.
        lasted_ns: u64,
    },
}

/// An incident that is under way, or was until a moment ago.
#[derive(Debug)]
struct TrackedIncident {
    number: u64,
    /// The condition that began it.
    condition: &'static str,
    begun_ns: u64,
    last_ns: u64,
    recorded: bool,
    subjects: BTreeSet<IncidentSubject>,
    /// Condition, of what, and which vCPU or thread.
    symptoms: BTreeSet<(&'static str, IncidentSubject, String)>,
    /// Whether it had a symptom in this interval.
    is_seen: bool,
    /// Intervals since the last symptom.
    quiet: u32,
    /// When it was over.
    ended_ns: Option<u64>,
}

/// Follows incidents. Times are of one clock that never goes back.
#[derive(Debug)]
pub struct IncidentTracker {
    rules: IncidentRules,
    incidents: Vec<TrackedIncident>,
    /// When recordings of the last hour began.
    recorded: VecDeque<u64>,
    count: u64,
}

impl IncidentTracker {
    /// Begins without any.
    pub fn new(rules: IncidentRules) -> IncidentTracker {
        IncidentTracker {
            rules,
            incidents: Vec::new(),
            recorded: VecDeque::new(),
            count: 0,
        }
    }

    /// Returns how many incidents there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes a symptom of now. Returns what is new by it, if something is.
    pub fn symptom(&mut self, now_ns: u64, symptom: Symptom) -> Option<IncidentStep> {
        let subject = &symptom.subject;
        let known = |one: &&mut TrackedIncident| one.subjects.contains(subject);
        if let Some(one) = self.incidents.iter_mut().find(known) {
            return one.goes_on(now_ns, symptom);
        }
        if !symptom.is_lasting {
            return None;
        }
        let IncidentRules {
            recording_ns,
            cool_down_ns,
            ..
        } = self.rules;
        let is_full = self.incidents.len() >= MOST_INCIDENTS;
        let newest = self.incidents.iter_mut().rev();
        let under_way = newest.into_iter().find(|one| {
            let since = now_ns.saturating_sub(one.begun_ns);
            let is_alike = one.condition == symptom.condition && one.ended_ns.is_none();
            let is_of_it = since <= recording_ns || is_alike && since <= cool_down_ns;
            is_full || one.recorded && is_of_it
        });
        if let Some(one) = under_way {
            // One beyond the limit is not remembered, and may begin an incident of its own later.
            if one.subjects.len() < MOST_SYMPTOMS {
                one.subjects.insert(subject.clone());
            }
            return one.goes_on(now_ns, symptom);
        }
        Some(self.begin(now_ns, symptom))
    }

    fn begin(&mut self, now_ns: u64, symptom: Symptom) -> IncidentStep {
        let old = |begun: &u64| now_ns.saturating_sub(*begun) >= HOUR_NS;
        while self.recorded.front().is_some_and(old) {
            self.recorded.pop_front();
        }
        let most = usize::try_from(self.rules.most_an_hour).unwrap_or(usize::MAX);
        let recorded = self.recorded.len() < most;
        if recorded {
            self.recorded.push_back(now_ns);
        }
        self.count += 1;
        let number = self.count;
        self.incidents.push(TrackedIncident {
            number,
            condition: symptom.condition,
            begun_ns: now_ns,
            last_ns: now_ns,
            recorded,
            subjects: BTreeSet::from([symptom.subject.clone()]),
            symptoms: BTreeSet::from([symptom_key(&symptom)]),
            is_seen: true,
            quiet: 0,
            ended_ns: None,
        });
        match recorded {
            true => IncidentStep::Begins { number, symptom },
            false => IncidentStep::Refused { number, symptom },
        }
    }

    /// Takes the end of an interval, whose symptoms were taken before. Returns the incidents that are over by it.
    pub fn interval(&mut self, now_ns: u64) -> Vec<IncidentStep> {
        let rules = self.rules;
        self.incidents.retain(|one| {
            let since = one.ended_ns.map(|ended| now_ns.saturating_sub(ended));
            since.is_none_or(|since| since < rules.cool_down_ns)
        });
        let mut ends = Vec::new();
        for one in &mut self.incidents {
            one.quiet = match std::mem::take(&mut one.is_seen) {
                true => 0,
                false => one.quiet.saturating_add(1),
            };
            if one.ended_ns.is_none() && one.quiet >= rules.quiet_intervals {
                one.ended_ns = Some(now_ns);
                ends.push(IncidentStep::Ends {
                    number: one.number,
                    lasted_ns: one.last_ns.saturating_sub(one.begun_ns),
                });
            }
        }
        ends
    }
}

impl TrackedIncident {
    /// Takes a symptom that belongs to it.
    fn goes_on(&mut self, now_ns: u64, symptom: Symptom) -> Option<IncidentStep> {
        let is_over = self.ended_ns.is_some();
        // What would not begin an incident does not bring one back.
        if is_over && !symptom.is_lasting {
            return None;
        }
        self.is_seen = true;
        self.last_ns = now_ns;
        self.ended_ns = None;
        let number = self.number;
        let is_new = symptom.is_lasting
            && self.symptoms.len() < MOST_SYMPTOMS
            && self.symptoms.insert(symptom_key(&symptom));
        if is_over {
            return Some(IncidentStep::Resumes { number });
        }
        is_new.then_some(IncidentStep::Joins { number, symptom })
    }
}

fn symptom_key(symptom: &Symptom) -> (&'static str, IncidentSubject, String) {
    let subject = symptom.subject.clone();
    (symptom.condition, subject, symptom.who.clone())
}

#[cfg(test)]
#[path = "incidents_tests.rs"]
mod tests;
