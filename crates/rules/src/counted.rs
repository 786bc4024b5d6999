//! Exits that a tool counted without their times: by reason (`kvmexit`, `kvm_stat`, `bpftrace`), or with KVM's other
//! events (`kvm_stat`, `perf stat -e 'kvm:*'`).

use event::ExitReason;

use crate::Case;

/// Exits of one reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedReason {
    /// As it is printed.
    pub key: String,
    /// Where it is known.
    pub reason: Option<ExitReason>,
    pub count: u64,
}

impl CountedReason {
    fn is_waiting(&self) -> bool {
        self.reason.is_some_and(ExitReason::is_waiting)
    }
}

/// Exits by reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedExits {
    /// Of all reasons.
    pub all: u64,
    /// Of those that are no waits.
    pub handled: u64,
    /// Most of the exits that are no waits.
    pub most: CountedReason,
}

impl Case<'_> {
    /// Returns exits that were counted by reason, and not timed.
    pub(crate) fn counted_exits(&self) -> Option<CountedExits> {
        if self.has_exits() {
            return None;
        }
        let counts = self.picture.counts.iter();
        let reasons = counts.filter_map(|(event, count)| {
            let key = analysis::counted_reason(event)?;
            Some(CountedReason {
                key: key.to_owned(),
                reason: ExitReason::from_name(self.picture.isa, key),
                count: *count,
            })
        });
        let reasons: Vec<CountedReason> = reasons.collect();
        if reasons.is_empty() {
            return self.counted_ports();
        }
        let sum = |waits: bool| {
            let of = reasons.iter().filter(|one| waits || !one.is_waiting());
            of.map(|one| one.count).fold(0u64, u64::saturating_add)
        };
        let (all, handled) = (sum(true), sum(false));
        let most = reasons.into_iter().filter(|one| !one.is_waiting());
        Some(CountedExits {
            all,
            handled,
            most: most.max_by_key(|one| one.count)?,
        })
    }

    /// Returns exits for I/O ports where KVM's events were counted, and not by reason: each is one `kvm_pio`. What the
    /// others are is not known, so none of them is taken for a wait.
    fn counted_ports(&self) -> Option<CountedExits> {
        let (all, _) = self.counted_event("kvm_exit")?;
        let (count, _) = self.counted_event("kvm_pio")?;
        let key = "IO_INSTRUCTION";
        (count.saturating_mul(2) > all && count <= all).then(|| CountedExits {
            all,
            handled: all,
            most: CountedReason {
                key: key.to_owned(),
                reason: ExitReason::from_name(self.picture.isa, key),
                count,
            },
        })
    }

    /// Returns how often one of KVM's events was counted, and how often a second where that is known.
    pub(crate) fn counted_event(&self, name: &str) -> Option<(u64, Option<f64>)> {
        let mut rows = analysis::ratios(self.picture).into_iter();
        let row = rows.find(|row| row.event.strip_prefix("kvm:") == Some(name))?;
        Some((row.count, row.per_second))
    }
}
