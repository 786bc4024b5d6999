//! Doubts that were raised, and which of them touch an answer.

use crate::concern::Concerns;
use crate::doubt::Doubt;
use crate::scope::DoubtScope;

/// What an answer shows: a doubt about something else does not stand in it.
#[derive(Debug, Clone, Default)]
pub struct AnswerScope {
    /// The kinds of numbers.
    pub concerns: Concerns,
    /// The threads that filters choose (`--vm`, `--vcpu`, `--pid`); `None` where they choose none.
    pub threads: Option<Vec<i32>>,
    /// The CPUs that are chosen (`--cpu`), as ranges from the first to the last; `None` where none are.
    pub cpus: Option<Vec<(u32, u32)>>,
    /// The time that is chosen (`--time`), on the recording's clock.
    pub time: Option<(u64, u64)>,
}

impl AnswerScope {
    /// Returns an answer of these kinds of numbers, about all of the inputs.
    pub fn of(concerns: Concerns) -> AnswerScope {
        AnswerScope {
            concerns,
            ..AnswerScope::default()
        }
    }

    /// Returns whether a doubt touches the answer.
    pub fn is_touched(&self, doubt: &Doubt) -> bool {
        doubt.concerns().touches(self.concerns) && self.is_touched_in(&doubt.scope)
    }

    /// Returns whether a doubt about a part of the inputs touches the answer, whatever it concerns.
    pub fn is_touched_in(&self, scope: &DoubtScope) -> bool {
        let threads = match &self.threads {
            Some(chosen) if !scope.threads.is_empty() => {
                scope.threads.iter().any(|tid| chosen.contains(tid))
            }
            _ => true,
        };
        let cpus = match &self.cpus {
            Some(chosen) if !scope.cpus.is_empty() => {
                let has = |cpu: &u32| {
                    chosen
                        .iter()
                        .any(|(first, last)| (first..=last).contains(&cpu))
                };
                scope.cpus.iter().any(has)
            }
            _ => true,
        };
        let time = match (self.time, scope.span) {
            (Some((from, to)), Some((start, end))) => start <= to && end >= from,
            _ => true,
        };
        threads && cpus && time
    }
}

/// Doubts, in the order in which they were raised, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts(Vec<Doubt>);

impl Doubts {
    /// Adds a doubt, once.
    pub fn raise(&mut self, doubt: impl Into<Doubt>) {
        let doubt = doubt.into();
        if !self.0.contains(&doubt) {
            self.0.push(doubt);
        }
    }

    /// Returns them in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Doubt> {
        self.0.iter()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether one of an id was raised.
    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|doubt| doubt.id() == id)
    }

    /// Returns their ids, each once, in their order.
    pub fn ids(&self) -> Vec<&'static str> {
        let mut ids = Vec::new();
        for doubt in &self.0 {
            if !ids.contains(&doubt.id()) {
                ids.push(doubt.id());
            }
        }
        ids
    }

    /// Returns their sentences.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(Doubt::text).collect()
    }

    /// Returns the ids of those that are about the part of the inputs that a row is of, each once: those whose threads,
    /// CPUs and span are all known of the row, and are the row's. One about all alike is none of a row's.
    pub fn ids_about(&self, row: &AnswerScope) -> Vec<&'static str> {
        let is_about = |doubt: &&Doubt| {
            let scope = &doubt.scope;
            let threads = scope.threads.is_empty() || row.threads.is_some();
            let cpus = scope.cpus.is_empty() || row.cpus.is_some();
            // A loss of the row's CPU has a span, which the row need not have.
            let names_one = !scope.threads.is_empty() || !scope.cpus.is_empty();
            let span = names_one || (scope.span.is_some() && row.time.is_some());
            threads && cpus && span && row.is_touched(doubt)
        };
        Doubts(self.0.iter().filter(is_about).cloned().collect()).ids()
    }

    /// Returns those that touch what an answer shows.
    pub fn touching(&self, shown: &AnswerScope) -> Doubts {
        let touching = self.0.iter().filter(|doubt| shown.is_touched(doubt));
        Doubts(touching.cloned().collect())
    }

    /// Names the input of all that do not name one.
    pub fn name_input(&mut self, name: &str) {
        for doubt in &mut self.0 {
            doubt.scope.input.get_or_insert_with(|| name.to_owned());
        }
    }
}

impl<'d> IntoIterator for &'d Doubts {
    type Item = &'d Doubt;
    type IntoIter = std::slice::Iter<'d, Doubt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Doubts {
    type Item = Doubt;
    type IntoIter = std::vec::IntoIter<Doubt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Doubt> for Doubts {
    fn extend<I: IntoIterator<Item = Doubt>>(&mut self, doubts: I) {
        for doubt in doubts {
            self.raise(doubt);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{AnswerScope, Concern, Concerns, Doubt, DoubtKind, Doubts};

    fn shown() -> AnswerScope {
        AnswerScope::of(Concerns::of(&[Concern::Exits]))
    }

    #[test]
    fn a_doubt_about_another_vm_cpu_or_span_does_not_touch() {
        let guessed = DoubtKind::VmsGuessed {
            vms: "{7}".to_owned(),
        };
        let cut = || Doubt::from(DoubtKind::CutUneven);
        let all = AnswerScope {
            concerns: Concerns::everything(),
            threads: Some(vec![7]),
            cpus: Some(vec![(0, 3)]),
            time: Some((10, 20)),
        };
        assert!(all.is_touched(&Doubt::from(guessed.clone()).of_threads([7])));
        assert!(!all.is_touched(&Doubt::from(guessed).of_threads([8])));
        assert!(all.is_touched(&cut().on_cpu(3)) && !all.is_touched(&cut().on_cpu(4)));
        assert!(all.is_touched(&cut().within(20, 30)) && !all.is_touched(&cut().within(21, 30)));
    }

    #[test]
    fn a_row_has_the_doubts_that_are_about_it_and_not_about_all() {
        let mut doubts = Doubts::default();
        doubts.raise(DoubtKind::ClockTicks);
        doubts.raise(
            Doubt::from(DoubtKind::VmsGuessed {
                vms: "{7}".to_owned(),
            })
            .of_threads([7]),
        );
        doubts.raise(Doubt::from(DoubtKind::CpuNotRecorded { cpu: 3 }).on_cpu(3));
        doubts.raise(Doubt::from(DoubtKind::CutUneven).within(50, 90));
        let of = |thread: Option<i32>, cpu: Option<u32>, time: Option<(u64, u64)>| {
            doubts.ids_about(&AnswerScope {
                threads: thread.map(|tid| vec![tid]),
                cpus: cpu.map(|cpu| vec![(cpu, cpu)]),
                time,
                ..AnswerScope::of(Concerns::everything())
            })
        };
        assert_eq!(
            of(Some(7), None, Some((10, 60))),
            ["vms-guessed", "cut-uneven"]
        );
        assert_eq!(of(Some(8), None, Some((10, 40))), [""; 0]);
        assert_eq!(of(None, Some(3), None), ["cpu-not-recorded"]);
        assert_eq!(of(None, Some(4), None), [""; 0]);
    }

    #[test]
    fn a_doubt_stands_where_its_concern_is_shown() {
        let mut doubts = Doubts::default();
        doubts.raise(DoubtKind::CutUneven);
        doubts.raise(DoubtKind::CutUneven);
        doubts.raise(DoubtKind::NoWakeups);
        assert_eq!(doubts.len(), 2);
        assert_eq!(doubts.touching(&shown()).ids(), ["cut-uneven"]);
    }
}
