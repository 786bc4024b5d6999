//! What there are facts of, in a few words.

use crate::{Facts, Host, KernelLog};

impl Facts {
    /// Returns whether something is said of what happened, and not only of how the host and its VMs are made: a
    /// kernel's log, or what KVM and libvirt counted.
    pub fn has_history(&self) -> bool {
        let host = self.host.as_ref();
        let counted = |host: &Host| host.kernel_log.is_some() || !host.kvm_debug.is_empty();
        host.is_some_and(counted) || self.guest_log.is_some() || !self.domstats.is_empty()
    }

    /// Returns of what there are facts, as `3 threads, 1 VM, a kernel log`; empty if there are none.
    pub fn summary(&self) -> String {
        let counts = [(self.threads.len(), "thread"), (self.vms.len(), "VM")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = counts
            .map(|(count, word)| words::plural(count, word))
            .collect();
        if !self.domstats.is_empty() {
            let domains = words::plural(self.domstats.len(), "domain");
            parts.push(format!("statistics of {domains}"));
        }
        if self.mtree.is_some() {
            parts.push("a map of devices".to_owned());
        }
        let host = self.host.as_ref();
        let alone = Host {
            kernel_log: host.and_then(|host| host.kernel_log.clone()),
            ..Host::default()
        };
        if host.is_some_and(|host| *host != alone) {
            parts.push("its settings".to_owned());
        }
        let log = host.and_then(|host| host.kernel_log.as_ref());
        parts.extend(log.map(|log| of_log("a kernel log", log)));
        parts.extend(
            self.guest_log
                .as_ref()
                .map(|log| of_log("a guest's kernel log", log)),
        );
        parts.join(", ")
    }
}

/// Says what a log has, as `a kernel log (1 rcu-stall, 2 split-lock)`.
fn of_log(what: &str, log: &KernelLog) -> String {
    let kinds = log.counts.iter().filter(|(_, count)| **count > 0);
    let kinds: Vec<String> = kinds
        .map(|(kind, count)| format!("{count} {}", kind.name()))
        .collect();
    match kinds.is_empty() {
        true => what.to_owned(),
        false => format!("{what} ({})", kinds.join(", ")),
    }
}
