//! Events of the scheduler, gathered by CPU.

use std::collections::BTreeMap;

use event::sched::{Leaves, SchedSwitch, SchedWakeup, TaskComm, TaskState};

use super::numbers::{ftrace, packet};
use super::packets::{Packets, shown, time};
use crate::proto::ProtoMessage;

/// Bytes of a CPU's events that wait at most.
const BUNDLE: usize = 4 << 10;
/// Bytes that wait at most altogether.
const WAITING: usize = 4 << 20;

/// Events that wait until they are some.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    by_cpu: BTreeMap<i32, ProtoMessage>,
    waiting: usize,
    /// Events that are of no CPU.
    nowhere: u64,
    /// Whether the trace says which kernel it is of.
    kernel_known: bool,
}

/// Returns a task's state as Perfetto takes it. The kernel has changed what the higher bits mean; where a trace does
/// not say of which kernel it is, Perfetto takes Linux 4.4 for it (`src/trace_processor/types/task_state.cc`): there
/// 0x800 is a task that could go on, 0x200 one that is parked, and one that idles is asleep uninterruptibly and counts
/// for no load, 0x402.
fn state(state: TaskState, kernel_known: bool) -> u64 {
    match (state.0, state.leaves()) {
        (bits, _) if kernel_known || bits == 0 => bits,
        (_, Leaves::Runnable) => 0x800,
        (0x40, _) => 0x200,
        (0x80, _) => 0x402,
        (bits, _) => bits,
    }
}

/// Adds a name, if there is one.
fn comm(one: &mut ProtoMessage, field: u32, name: &TaskComm) {
    let name = name.to_str_lossy();
    if !name.is_empty() {
        one.bytes(field, shown(&name).as_bytes());
    }
}

impl Bundles {
    /// Returns one without events. `kernel_known` says whether the trace says which kernel it is of.
    pub(super) fn new(kernel_known: bool) -> Bundles {
        Bundles {
            kernel_known,
            ..Bundles::default()
        }
    }

    fn add(&mut self, cpu: i32, packets: &mut Packets, fill: impl FnOnce(&mut ProtoMessage)) {
        if event::cpu_index(cpu).is_none() {
            self.nowhere += 1;
            return;
        }
        let waits = self.by_cpu.entry(cpu).or_default();
        let before = waits.as_bytes().len();
        waits.message(ftrace::EVENT, fill);
        let after = waits.as_bytes().len();
        self.waiting += after - before;
        if after >= BUNDLE {
            self.waiting -= after;
            write(cpu, waits, packets);
        }
        if self.waiting >= WAITING {
            self.flush(packets);
        }
    }

    /// Adds a switch.
    pub(super) fn switch(
        &mut self,
        (at, cpu): (u64, i32),
        switch: &SchedSwitch,
        packets: &mut Packets,
    ) {
        let left = state(switch.prev_state, self.kernel_known);
        self.add(cpu, packets, |one| {
            one.uint(ftrace::TIMESTAMP, time(at));
            one.int(ftrace::PID, i64::from(switch.prev_tid.max(0)));
            one.message(ftrace::SCHED_SWITCH, |one| {
                comm(one, ftrace::PREV_COMM, &switch.prev_comm);
                one.int(ftrace::PREV_PID, i64::from(switch.prev_tid));
                one.int(ftrace::PREV_STATE, left.cast_signed());
                comm(one, ftrace::NEXT_COMM, &switch.next_comm);
                one.int(ftrace::NEXT_PID, i64::from(switch.next_tid));
            });
        });
    }

    /// Adds a wake-up. `waking` says whether it is `sched_waking`, `tid` who woke.
    pub(super) fn wakes(
        &mut self,
        (at, cpu, tid): (u64, i32, i32),
        waking: bool,
        wakeup: &SchedWakeup,
        packets: &mut Packets,
    ) {
        let field = match waking {
            true => ftrace::SCHED_WAKING,
            false => ftrace::SCHED_WAKEUP,
        };
        self.add(cpu, packets, |one| {
            one.uint(ftrace::TIMESTAMP, time(at));
            one.int(ftrace::PID, i64::from(tid.max(0)));
            one.message(field, |one| {
                comm(one, ftrace::WOKEN_COMM, &wakeup.comm);
                one.int(ftrace::WOKEN_PID, i64::from(wakeup.tid));
                if let Some(target) = wakeup.target_cpu {
                    one.int(ftrace::TARGET_CPU, i64::from(target));
                }
            });
        });
    }

    /// Writes all that waits.
    pub(super) fn flush(&mut self, packets: &mut Packets) {
        for (cpu, waits) in &mut self.by_cpu {
            write(*cpu, waits, packets);
        }
        self.by_cpu.clear();
        self.waiting = 0;
    }

    /// Returns how many events could not be placed.
    pub(super) fn nowhere(&self) -> u64 {
        self.nowhere
    }
}

/// Writes a CPU's events as a packet.
fn write(cpu: i32, waits: &mut ProtoMessage, packets: &mut Packets) {
    if waits.is_empty() {
        return;
    }
    packets.packet(|one| {
        one.message(packet::FTRACE_EVENTS, |one| {
            one.int(ftrace::CPU, i64::from(cpu));
            one.bytes_mut().extend_from_slice(waits.as_bytes());
        });
    });
    waits.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_kernel_that_perfetto_takes_it_for() {
        for (letter, as_recorded, of_no_kernel) in [
            ("R", 0, 0),
            ("R+", 0x100, 0x800),
            ("S", 1, 1),
            ("D", 2, 2),
            ("P", 0x40, 0x200),
            ("I", 0x80, 0x402),
        ] {
            let reported = TaskState::from_text(letter.as_bytes()).expect("a state");
            assert_eq!(state(reported, true), as_recorded, "{letter}");
            assert_eq!(state(reported, false), of_no_kernel, "{letter}");
        }
    }
}
