//! Accesses of ports, of emulated memory and of registers, timed as perf times them.

use event::Event;
use model::ThreadHandle;

use super::rows::Key;
use super::{Exits, IOPORT, MMIO, MSR, OpenInterval, SoFar};

impl Exits {
    pub(super) fn access(&mut self, event: &Event<'_>, table: usize, key: Key, so_far: SoFar<'_>) {
        let times = so_far.times;
        let Some(slot) = self.known_slot(so_far.thread) else {
            return self.access_alone(event.tid, table, key);
        };
        let group = self.groups.of(event.tid);
        let row = self.tables[table].row(key, group);
        let begun = OpenInterval {
            time: event.time,
            row: Some(row),
            times: *times,
        };
        let state = &mut self.vcpus[slot];
        match table {
            IOPORT => {
                state.pio = begun;
                state.first_port = state.first_port.or(begun.row);
            }
            MSR => state.msr = begun,
            _ => state.mmio = begun,
        }
    }

    /// A read ends what the exit began: the value has come.
    pub(super) fn mmio_read(&mut self, event: &Event<'_>, gpa: u64, so_far: SoFar<'_>) {
        let times = so_far.times;
        let Some(slot) = self.known_slot(so_far.thread) else {
            let read = Key::Access {
                address: gpa,
                write: false,
            };
            return self.access_alone(event.tid, MMIO, read);
        };
        let OpenInterval {
            time, row: known, ..
        } = self.vcpus[slot].mmio;
        if time == 0 {
            let read = Key::Access {
                address: gpa,
                write: false,
            };
            return self.access_alone(event.tid, MMIO, read);
        }
        let group = self.groups.of(event.tid);
        let row = match known {
            Some(row) => row,
            None => self.tables[MMIO].row(
                Key::Access {
                    address: gpa,
                    write: false,
                },
                group,
            ),
        };
        let begun = &mut self.vcpus[slot].mmio;
        if let Some(ns) = event.time.checked_sub(time) {
            self.tables[MMIO].add(row, ns, (&begun.times, times), so_far.vmm);
        }
        begun.is_over();
    }

    #[inline]
    fn known_slot(&mut self, thread: ThreadHandle) -> Option<usize> {
        let slot = self.slot(thread);
        self.vcpus[slot].known.then_some(slot)
    }
}
