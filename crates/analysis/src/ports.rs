//! How long exits took for each I/O port, from `kvm_exit` to `kvm_entry`.
//!
//! The table of ports counts as perf does, from `kvm_pio` on; a read that user space answers makes that event when it is
//! over.

use std::collections::BTreeMap;

use event::{Data, Event};
use rustc_hash::FxHashMap;

use crate::Taken;

/// Exits for one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRow {
    /// The port.
    pub port: u16,
    /// Whether the guest wrote.
    pub write: bool,
    /// Exits whose first access it was.
    pub exits: Taken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Open {
    since: Option<u64>,
    access: Option<(u16, bool)>,
}

/// Times exits by their port. There are no more rows than ports.
#[derive(Debug, Default)]
pub struct Ports {
    open: FxHashMap<i32, Open>,
    rows: BTreeMap<(u16, bool), Taken>,
}

impl Ports {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Ports {
        Ports::default()
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event<'_>, data: &Data) {
        match data {
            Data::KvmExit(_) => {
                let open = self.open.entry(event.tid).or_default();
                *open = Open {
                    since: Some(event.time),
                    access: None,
                };
            }
            Data::KvmPio(pio) => {
                if let Some(open) = self.open.get_mut(&event.tid)
                    && open.since.is_some()
                {
                    open.access = open.access.or(Some((pio.port, pio.write)));
                }
            }
            Data::KvmEntry(_) => {
                let Some(open) = self.open.get_mut(&event.tid) else {
                    return;
                };
                if let (Some(since), Some(access)) = (open.since.take(), open.access.take()) {
                    let ns = event.time.saturating_sub(since);
                    self.rows.entry(access).or_default().add(ns);
                }
            }
            _ => {}
        }
    }

    /// Returns what was found, by port.
    pub fn report(&self) -> Vec<PortRow> {
        let rows = self.rows.iter();
        rows.map(|(&(port, write), &exits)| PortRow { port, write, exits })
            .collect()
    }
}
