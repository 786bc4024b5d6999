//! What is recorded of a guest, within the bounds of its file.

use agent::{CPU, IO};
use anyhow::{Result, bail};
use record::{Opened, Plan, Question, Tracefs, Wanted};

use crate::args::{AgentArgs, ForGuest};

/// Bytes of a CPU's ring at most. A guest makes few events of these kinds, and has little memory.
const RING: u64 = 1 << 20;
/// All rings together have no more than a part of so many of the file's bytes, so that what they hold at the end has room in it.
const PART_OF_FILE: u64 = 16;

/// Returns the questions that were asked, as bits.
pub(super) fn questions(args: &AgentArgs) -> u8 {
    let bit = |one: &ForGuest| match one {
        ForGuest::Cpus => CPU,
        ForGuest::Io => IO,
    };
    match args.questions.as_slice() {
        [] => CPU | IO,
        some => some.iter().map(bit).fold(0, |all, one| all | one),
    }
}

/// Returns the events that answer questions.
pub(super) fn events(questions: u8) -> Vec<Wanted> {
    let known = [(CPU, Question::GuestCpus), (IO, Question::GuestIo)];
    let asked = known.into_iter().filter(|(bit, _)| questions & bit != 0);
    let asked: Vec<Question> = asked.map(|(_, question)| question).collect();
    record::events(&asked)
}

/// Returns the bytes of each CPU's ring, for a file of so many.
fn ring_bytes(size: u64, cpus: usize) -> usize {
    let each = size / PART_OF_FILE / u64::try_from(cpus.max(1)).unwrap_or(u64::MAX);
    let below = 1 << each.clamp(1, RING).ilog2();
    // The kernel takes whole pages.
    usize::try_from(below).unwrap_or(usize::MAX).max(4096)
}

/// Opens the events.
pub(super) fn open(args: &AgentArgs, tracefs: &Tracefs) -> Result<Opened> {
    let plan = Plan {
        events: events(questions(args)),
        ring_bytes: ring_bytes(args.size, record::machine::online().len()),
        ..Plan::default()
    };
    let opened = Opened::open(&plan, tracefs)?;
    if opened.tracepoints().is_empty() {
        bail!("this kernel has none of the events that were asked for");
    }
    Ok(opened)
}

/// Says that a file is too small to hold anything.
pub(super) fn too_small(size: u64, needed: u64) -> String {
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
                .all(|one| ["net", "block"].contains(&one.system.as_str()))
        );
        assert_eq!(events(CPU).len() + of_io.len(), all.len());
    }
}
