//! Commands that a text names, where what they print is not in it: what to paste beside.

use crate::lines::{TicketLines, unquoted};

/// Commands whose output is read, as their tools are called.
const COMMANDS: [&str; 12] = [
    "perf kvm stat report",
    "perf kvm stat live",
    "perf sched latency",
    "perf sched timehist",
    "perf script",
    "perf report",
    "perf stat",
    "trace-cmd report",
    "kvm_stat",
    "virsh dumpxml",
    "virsh domstats",
    "bpftrace",
];
/// Commands that are named at most.
const MOST: usize = 3;

/// A command that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCommand {
    /// Its name.
    pub command: &'static str,
    /// The first line that names it, counted from 1.
    pub line: u64,
}

/// Returns the commands that a text names and whose output would be read, in the order of the text.
pub fn named_commands(text: &[u8]) -> Vec<NamedCommand> {
    let lines = TicketLines::new(text.get(..crate::MAX_BYTES).unwrap_or(text));
    let mut found: Vec<NamedCommand> = Vec::new();
    for at in 0..lines.len() {
        let line = unquoted(lines.line(at));
        let named = COMMANDS
            .iter()
            .filter(|name| memchr::memmem::find(line, name.as_bytes()).is_some());
        for command in named {
            if found.iter().all(|one| one.command != *command) {
                found.push(NamedCommand {
                    command,
                    line: at as u64 + 1,
                });
            }
        }
        if found.len() >= MOST {
            break;
        }
    }
    found.truncate(MOST);
    found
}
