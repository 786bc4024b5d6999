//! What is recorded of a guest, within the bounds of its file.

use agent::{CPU, IO, SOCKETS};
use record::{OpenedEvents, PlannedEvent, Question, RecordError, RecordPlan, Tracefs};

/// Bytes of a CPU's ring at most. A guest makes few events of these kinds, and has little memory.
const RING: u64 = 1 << 20;
/// All rings together have no more than a part of so many of the file's bytes, so that what they hold at the end has
/// room in it.
const PART_OF_FILE: u64 = 16;

/// What a guest can be asked: as a bit, as it is given, and which events answer it.
const KNOWN: [(u8, &str, Question); 3] = [
    (CPU, "cpus", Question::GuestCpus),
    (IO, "io", Question::GuestIo),
    (SOCKETS, "sockets", Question::GuestSockets),
];

/// Returns the events that answer questions.
pub(crate) fn events(questions: u8) -> Vec<PlannedEvent> {
    let asked = KNOWN.iter().filter(|(bit, ..)| questions & bit != 0);
    let asked: Vec<Question> = asked.map(|(.., question)| *question).collect();
    record::events(&asked)
}

/// Returns a sentence about the questions that a host asks and this agent does not answer.
pub(crate) fn unanswered(asked: u8, answered: u8) -> Option<String> {
    let left = KNOWN
        .iter()
        .filter(|(bit, ..)| asked & !answered & bit != 0);
    let names: Vec<&str> = left.map(|(_, name, _)| *name).collect();
    let list = words::list(&names);
    (!names.is_empty()).then(|| format!("{list}: the agent there was started without (--for)"))
}

/// Returns the bytes of each CPU's ring, for a file of so many.
fn ring_bytes(size: u64, cpus: usize) -> usize {
    let each = size / PART_OF_FILE / u64::try_from(cpus.max(1)).unwrap_or(u64::MAX);
    let below = 1 << each.clamp(1, RING).ilog2();
    // The kernel takes whole pages.
    usize::try_from(below).unwrap_or(usize::MAX).max(4096)
}

/// Opens the events that answer questions, for a file of so many bytes. There may be none: this kernel may have none of
/// them.
///
/// # Errors
///
/// Those of [`OpenedEvents::open`].
pub fn open_for_guest(
    questions: u8,
    size: u64,
    tracefs: &Tracefs,
) -> Result<OpenedEvents, RecordError> {
    let plan = RecordPlan {
        events: events(questions),
        ring_bytes: ring_bytes(size, record::machine::online().len()),
        no_symbols: true,
        ..RecordPlan::default()
    };
    OpenedEvents::open(&plan, tracefs)
}

/// Says that a file is too small to hold anything.
pub fn too_small(size: u64, needed: u64) -> String {
    format!(
        "a file of {} KiB has no room for what the rings of this machine's CPUs hold: allow {} KiB or more",
        size / 1024,
        needed.div_ceil(1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_room_in_the_file() {
        assert_eq!(ring_bytes(256 << 20, 2), 1 << 20);
        assert_eq!(ring_bytes(256 << 20, 64), 256 << 10);
        assert_eq!(ring_bytes(1 << 20, 2), 32 << 10);
        assert_eq!(ring_bytes(0, 0), 4096);
        for cpus in [1, 3, 64, 512] {
            let all = ring_bytes(256 << 20, cpus) * cpus;
            assert!(all <= 16 << 20, "{cpus}: {all}");
        }
    }

    #[test]
    fn few_events_are_recorded() {
        let all = events(CPU | IO);
        assert!(all.len() < 32, "{}", all.len());
        assert!(events(0).is_empty());
        let of_io = events(IO);
        assert!(
            of_io
                .iter()
                .all(|one| ["net", "skb", "sock", "block"].contains(&one.system.as_str()))
        );
        assert_eq!(events(CPU).len() + of_io.len(), all.len());
    }

    #[test]
    fn system_calls_are_recorded_for_who_asks_for_them_alone() {
        let is_call = |one: &PlannedEvent| one.system == "syscalls";
        assert!(!events(CPU | IO).iter().any(is_call));
        let calls = events(SOCKETS);
        assert!(!calls.is_empty() && calls.iter().all(is_call));
    }

    #[test]
    fn what_an_agent_does_not_answer_is_said() {
        assert_eq!(unanswered(CPU | IO, CPU | IO | SOCKETS), None);
        let said = unanswered(CPU | IO | SOCKETS, CPU).expect("two are not answered");
        assert!(said.starts_with("io and sockets: "), "{said}");
        // A later version's.
        assert_eq!(unanswered(CPU | 128, CPU), None);
    }
}
