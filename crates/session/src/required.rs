//! What a command cannot do without, and what is said where it is not there: what was not recorded, what was and did
//! not occur, and what filters take away are three answers.

use analysis::EventCount;
use rules::record_command;

use crate::holds::{held, named};
use crate::{Error, OpenRecording};

/// Events without which there is no answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequiredEvents<'e> {
    /// What is made of them, such as `exits`.
    pub what: &'e str,
    /// Their names, as `kvm_exit`. Empty for samples.
    pub events: &'e [&'e str],
    /// What they are called in a sentence where that is not their names: `sampled`, or what somebody asked for.
    pub called: Option<&'e str>,
    /// Whether it is made of their call chains.
    pub stacks: bool,
    /// What else there is to do, or empty.
    pub otherwise: &'e str,
}

impl RequiredEvents<'_> {
    fn names(&self, and: &str) -> String {
        match self.called {
            Some(called) => called.to_owned(),
            None => self.events.join(and),
        }
    }
}

/// What exits are made of.
const EXITS: RequiredEvents<'static> = RequiredEvents {
    what: "exits",
    events: &["kvm_exit", "kvm_entry"],
    called: None,
    stacks: false,
    otherwise: "",
};

/// What scheduling latencies are made of.
const SWITCHES: RequiredEvents<'static> = RequiredEvents {
    what: "scheduling latencies",
    events: &["sched_switch"],
    called: None,
    stacks: false,
    otherwise: "",
};

/// Tables of accesses that can be counted without exits: the event, and what `exits --event` calls its table.
const ACCESSES: [(&str, &str); 4] = [
    ("kvm_pio", "ioport"),
    ("kvm_mmio", "mmio"),
    ("kvm_msr", "msr"),
    ("kvm_sys_access", "msr"),
];

impl OpenRecording<'_> {
    /// Refuses a recording whose exits cannot be counted. `saw_exits` is what a walk found.
    ///
    /// # Errors
    ///
    /// Fails when there were none, and says why.
    pub fn require_exits(&self, saw_exits: bool) -> Result<(), Error> {
        if saw_exits {
            return Ok(());
        }
        if self.header().unthreaded {
            return Err(self.missing(
                "the text has no thread ids, and its events have no vCPU numbers, so exits cannot be assigned to \
                 vCPUs; print it with 'perf script -F comm,tid,cpu,time,event,trace'"
                    .to_owned(),
            ));
        }
        self.require(false, &EXITS)
    }

    /// Refuses a recording in which no task was seen to be switched. `saw_switches` is what a walk found.
    ///
    /// # Errors
    ///
    /// Fails when there were none, and says why.
    pub fn require_switches(&self, saw_switches: bool) -> Result<(), Error> {
        self.require(saw_switches, &SWITCHES)
    }

    /// Refuses filters that no event passes. `any` says whether a walk found one.
    ///
    /// # Errors
    ///
    /// Fails when there are filters, and no event passed them.
    pub fn require_events(&self, any: bool) -> Result<(), Error> {
        if any || !self.session.options().filters.any() {
            return Ok(());
        }
        Err(self.missing(format!("no event passes the filters{}", self.why_nothing())))
    }

    /// Refuses filters of which one chooses nothing that is in the recording. `found` says whether a walk found
    /// anything: who found nothing through filters that choose something has an answer.
    ///
    /// # Errors
    ///
    /// Fails when nothing was found, and a filter by itself chooses nothing.
    pub fn require_choice(&self, found: bool) -> Result<(), Error> {
        if found || !self.session.options().filters.any() || self.reader().misses_formats() {
            return Ok(());
        }
        match self.filter_targets().chooses_all() {
            true => Ok(()),
            false => self.require_events(false),
        }
    }

    /// Refuses a recording without events of which something is made.
    ///
    /// # Errors
    ///
    /// Fails when there were none, and says why.
    pub fn require(&self, found: bool, wanted: &RequiredEvents<'_>) -> Result<(), Error> {
        if found {
            return Ok(());
        }
        let what = wanted.what;
        if self.reader().misses_formats() {
            return Err(self.missing(format!(
                "the part of the file that has the event formats is missing, so {what} cannot be recognized; name \
                 another recording of the same kernel with --formats"
            )));
        }
        if self.session.options().filters.any() {
            let (names, why) = (wanted.names(" or "), self.why_nothing());
            return Err(self.missing(format!("no {names} event passes the filters{why}")));
        }
        let (events, recorded) = held(self.reader());
        let open: Vec<&str> = wanted
            .events
            .iter()
            .copied()
            .filter(|name| recorded.iter().any(|one| is(one, name)))
            .collect();
        let happened = |name: &str| {
            events
                .iter()
                .any(|event| event.count > 0 && is(&event.name, name))
        };
        let idle: Vec<&str> = open
            .iter()
            .copied()
            .filter(|name| !happened(name))
            .collect();
        if !wanted.events.is_empty() && open.len() == wanted.events.len() && !idle.is_empty() {
            let were = if idle.len() == 1 { "was" } else { "were" };
            return Err(self.missing(format!(
                "{} {were} recorded and did not occur, so there are no {what} ({}){}",
                words::list(&idle),
                named(&events),
                self.accesses(wanted, &events)
                    .map_or_else(String::new, |hint| format!("; {hint}"))
            )));
        }
        let otherwise = match wanted.otherwise {
            "" => self.accesses(wanted, &events),
            otherwise => Some(otherwise.to_owned()),
        };
        let otherwise = otherwise.map_or_else(String::new, |hint| format!("{hint}; "));
        let kinds = events.iter().map(|event| event.name.as_str());
        let near = wanted.called.map(|name| words::did_you_mean(name, kinds));
        let record = match wanted.stacks {
            true => record_command(&[]),
            false => record_command(wanted.events),
        };
        Err(self.missing(format!(
            "holds no {} events{}, without which there are no {what} ({}); {otherwise}record them with '{record}'",
            wanted.names(" and "),
            words::on_one_line(&near.unwrap_or_default()),
            named(&events),
        )))
    }

    /// Says what can be counted of a recording without exits.
    fn accesses(&self, wanted: &RequiredEvents<'_>, events: &[EventCount]) -> Option<String> {
        let happened = |name: &str| {
            events
                .iter()
                .any(|event| event.count > 0 && is(&event.name, name))
        };
        let table = ACCESSES.iter().find(|(event, _)| happened(event));
        let (_, table) = table.filter(|_| wanted.events == EXITS.events)?;
        let name = self.name();
        Some(format!(
            "'trapline exits --event {table} {name}' counts its accesses, without times"
        ))
    }

    pub(crate) fn missing(&self, reason: String) -> Error {
        Error::EventsMissing {
            name: self.name().to_owned(),
            reason,
        }
    }
}

/// Returns whether a kind of events, as a container prints its name, is meant by a name, with its system or without.
fn is(label: &str, name: &str) -> bool {
    label == name || label.rsplit(':').next() == Some(name)
}
