//! Guests whose recordings are walked with the host's: numbers of their tasks, their vCPUs, and what they record.

use event::index_of;
use rustc_hash::FxHashMap;

/// Who makes an event in a guest, and which of its tasks it is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestActor {
    pub inside: u64,
    pub task: Option<u64>,
    pub prev: Option<u64>,
}

/// Set in the number of a guest's task: it is no slot of a thread of the host.
const TASK: u64 = 1 << 62;
/// Set where it is the idle task of one of the guest's CPUs.
const IDLE: u64 = 1 << 61;

/// Returns the number that stands for a task of a guest: thread ids of different machines do not mix.
pub(super) fn task(machine: u16, tid: i32, cpu: i32) -> u64 {
    let of = TASK | u64::from(machine) << 32;
    match tid {
        0 => of | IDLE | u64::from(cpu.cast_unsigned()),
        tid => of | u64::from(tid.cast_unsigned()),
    }
}

/// Returns the number that stands for a machine, so that it is no slot of a thread either.
pub(super) fn number(machine: u16) -> u64 {
    match machine {
        0 => 0,
        machine => TASK | u64::from(machine) << 32,
    }
}

/// Returns the thread id of a guest's task, as a field has it.
pub(super) fn tid(task: u64) -> Option<u64> {
    match task & IDLE {
        0 => Some(task & u64::from(u32::MAX)),
        _ => Some(0),
    }
}

/// Returns the machine that a number is a task of, or stands for, if it does.
pub(super) fn machine_of_task(task: u64) -> Option<u16> {
    let machine = u16::try_from(task >> 32 & 0xffff).ok();
    machine.filter(|_| task & TASK != 0 && task >> 63 == 0)
}

/// Guests whose recordings are walked with the host's.
#[derive(Debug, Default)]
pub(super) struct GuestMachines {
    /// By machine, from 1: the name of its recording.
    pub(super) names: Vec<String>,
    /// By thread of the host: the machine of whose guest it is a vCPU, and which CPU there.
    pub(super) vcpus: FxHashMap<i32, (u16, i32)>,
    /// By machine and step's number among all, whether its events are recorded there.
    pub(super) recorded: Vec<Vec<bool>>,
}

impl GuestMachines {
    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.vcpus.is_empty()
    }

    pub(super) fn marks(&mut self, machine: u16, steps: &[u32]) {
        let machine = usize::from(machine);
        if self.recorded.len() <= machine {
            self.recorded.resize_with(machine + 1, Vec::new);
        }
        let recorded = &mut self.recorded[machine];
        for step in steps {
            let step = index_of(*step);
            if recorded.len() <= step {
                recorded.resize(step + 1, false);
            }
            recorded[step] = true;
        }
    }
}
