//! Which `trapline record` line records what a recording does not have: the one owner of that.

use event::{AskedEvents, EXIT_EVENTS, PATH_EVENTS, QUEUE_EVENTS, SCHED_EVENTS};

/// What `trapline record --for` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordNeeds {
    /// Exits by reason, port, address and register.
    Exits,
    /// Who waited for a CPU.
    Sched,
    /// Interrupts, wake-ups and I/O; it has the two above too.
    Paths,
    /// Call chains.
    Stacks,
    /// What went through virtqueues.
    Virtqueues,
}

impl RecordNeeds {
    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RecordNeeds::Exits => "exits",
            RecordNeeds::Sched => "sched",
            RecordNeeds::Paths => "paths",
            RecordNeeds::Stacks => "stacks",
            RecordNeeds::Virtqueues => "virtqueues",
        }
    }

    /// Returns the command that records for several; `None` for none.
    pub fn command(asked: impl IntoIterator<Item = RecordNeeds>) -> Option<String> {
        let mut asked: Vec<RecordNeeds> = asked.into_iter().collect();
        asked.sort_unstable();
        asked.dedup();
        if asked.contains(&RecordNeeds::Paths) {
            asked.retain(|one| !matches!(one, RecordNeeds::Exits | RecordNeeds::Sched));
        }
        let names: Vec<&str> = asked.into_iter().map(RecordNeeds::name).collect();
        (!names.is_empty()).then(|| format!("trapline record --for {}", names.join(",")))
    }
}

/// The questions, and the events that each opens beside those before it.
const OPENED: [(RecordNeeds, &[AskedEvents]); 4] = [
    (RecordNeeds::Exits, EXIT_EVENTS),
    (RecordNeeds::Sched, SCHED_EVENTS),
    (RecordNeeds::Paths, PATH_EVENTS),
    (RecordNeeds::Virtqueues, QUEUE_EVENTS),
];

/// Returns the events that the questions of `trapline record --for` open, each with the question.
pub fn opened_events() -> impl Iterator<Item = (RecordNeeds, &'static AskedEvents)> {
    let all = OPENED.into_iter();
    all.flat_map(|(needs, lists)| lists.iter().map(move |list| (needs, list)))
}

/// Returns the one command that records these events, named with their system or without: by the questions that open
/// them, and the others by name. No event at all stands for samples.
///
/// ```
/// use rules::record_command;
/// assert_eq!(record_command(&["kvm_entry", "kvm:kvm_exit"]), "trapline record --for exits");
/// assert_eq!(record_command(&["timer:hrtimer_start"]), "trapline record -e timer:hrtimer_start");
/// assert_eq!(record_command(&[]), "trapline record --for stacks");
/// ```
pub fn record_command(events: &[&str]) -> String {
    let bare = |event: &str| -> String {
        let name = event.rsplit(':').next();
        name.unwrap_or_default().to_owned()
    };
    let opening = |event: &str| {
        let name = bare(event);
        let mut lists = opened_events();
        lists.find_map(|(needs, list)| list.names.contains(&name.as_str()).then_some(needs))
    };
    let mut asked: Vec<RecordNeeds> = events.iter().filter_map(|event| opening(event)).collect();
    if events.is_empty() {
        asked.push(RecordNeeds::Stacks);
    }
    let command = RecordNeeds::command(asked);
    let mut command = command.unwrap_or_else(|| "trapline record".to_owned());
    for event in events.iter().filter(|event| opening(event).is_none()) {
        command.push_str(" -e ");
        command.push_str(event);
    }
    command
}
