//! What a walk that has ended found: rows of what was counted.

use std::collections::BTreeMap;

use devices::AddressNames;
use model::Vm;

use super::device_names::is_tap;
use super::row::{
    QueueKey, RowParts, VirtqueueRow, VirtqueueSource, VirtqueuesReport, WrittenQueue,
};
use super::{Virtqueues, none};
use crate::analysis::WalkState;
use crate::exits::access_key;
use crate::names::{is_notification_register, name_access};

impl Virtqueues {
    /// Returns what a walk that has ended found, of the vCPUs that are not left out. `names` are those of the guest's
    /// devices.
    pub fn report(&self, walked: &WalkState<'_>, names: &AddressNames) -> VirtqueuesReport {
        let vms = walked.machine.vms();
        let of_thread = |tid: i32| {
            let thread = walked.machine.threads().get(tid);
            let pid = thread.and_then(model::Thread::works_for);
            let is = |vm: &Vm| vm.is_of(tid) || pid.is_some_and(|pid| vm.is_of(pid));
            vms.iter().position(is)
        };
        let is_host = !vms.is_empty() || self.is_host();
        let mut report = VirtqueuesReport {
            missing: self.missing(is_host),
            beyond: self.beyond,
            unpaired: self.unpaired,
            recorded: self.recorded,
            rows: self.notifications(walked, names, &of_thread),
            ..VirtqueuesReport::default()
        };
        for (key, sums) in &self.rows {
            let of_host = key.machine == 0 && is_host;
            let inside = match key.source {
                VirtqueueSource::BackEnd => false,
                VirtqueueSource::Frames if is_tap(&key.device) => false,
                // Interfaces, disks and interrupts of the host are not of a VM.
                VirtqueueSource::Frames if of_host => {
                    report.other_interfaces += 1;
                    continue;
                }
                _ if of_host => continue,
                _ => true,
            };
            let tid = key.tid.or(sums.brought_by.filter(|_| !inside));
            let tid = tid.or(self.guests.get(&key.machine).copied());
            if tid.is_some_and(|tid| walked.left_out.has(tid)) {
                continue;
            }
            let [written, read] = sums.completed;
            let completions = key.source == VirtqueueSource::Requests && !self.issues;
            let (sent, received) = match completions {
                true => (written, read),
                false => (sums.sent, sums.received),
            };
            let row = VirtqueueRow {
                vm: tid.and_then(of_thread),
                inside,
                source: key.source,
                device: match key.tid {
                    Some(tid) => thread_name(walked, tid),
                    None => key.device.clone(),
                },
                queue: key.queue.clone(),
                added: sums.added,
                used: sums.used,
                notifications: sums.notifications,
                interrupts: sums.interrupts,
                sent,
                received,
                span: self.span(key.machine),
                parts: RowParts::Queue(key.clone()),
            };
            let recorded = |alike| self.alike.contains(&(key.machine, alike));
            report.rows.push(none::with_none(row, recorded));
        }
        report.rows.sort_by(|a, b| {
            let place = |row: &VirtqueueRow| (row.vm.is_none(), row.vm, !row.inside, row.source);
            let order = place(a).cmp(&place(b));
            order.then_with(|| (&a.device, &a.queue).cmp(&(&b.device, &b.queue)))
        });
        report
    }

    /// Returns whether the leading recording shows a guest's accesses or a back end.
    fn is_host(&self) -> bool {
        let backs = |key: &QueueKey| {
            key.machine == 0 && (key.source == VirtqueueSource::BackEnd || is_tap(&key.device))
        };
        !self.writes.is_empty() || self.rows.keys().any(backs)
    }

    fn span(&self, machine: u16) -> u64 {
        let span = self.spans.get(&machine);
        span.map_or(0, |(from, to)| to - from)
    }

    /// Returns the kinds of rows of which there are no events, of those that a host's recording can have, or a
    /// guest's.
    fn missing(&self, of_host: bool) -> Vec<VirtqueueSource> {
        use VirtqueueSource::{BackEnd, Driver, Frames, Notifications, Requests};
        let all = match of_host {
            true => [Frames, Notifications, BackEnd],
            false => [Driver, Frames, Requests],
        };
        all.into_iter()
            .filter(|one| !self.sources.contains(one))
            .collect()
    }

    /// Returns a row for each notification register and queue of each VM.
    fn notifications(
        &self,
        walked: &WalkState<'_>,
        names: &AddressNames,
        of_thread: &dyn Fn(i32) -> Option<usize>,
    ) -> Vec<VirtqueueRow> {
        let mut sums: BTreeMap<WrittenQueue, (u64, Vec<_>)> = BTreeMap::new();
        for (((tid, access, queue), fast), count) in &self.writes {
            if walked.left_out.has(*tid) {
                continue;
            }
            let name = name_access(access, names);
            if !fast && !name.as_deref().is_some_and(is_notification_register) {
                continue;
            }
            let key = access_key(access);
            let device = name.map_or_else(|| key.clone(), |name| format!("{key} {name}"));
            let sum = sums.entry((of_thread(*tid), device, *queue)).or_default();
            sum.0 += count;
            sum.1.push(((*tid, *access, *queue), *fast));
        }
        let rows = sums.into_iter();
        let rows = rows.map(|((vm, device, queue), (count, parts))| VirtqueueRow {
            vm,
            device,
            queue: queue.map(|queue| queue.to_string()),
            notifications: Some(count),
            span: self.span(0),
            ..VirtqueueRow::of(VirtqueueSource::Notifications, RowParts::Writes(parts))
        });
        rows.collect()
    }
}

/// Returns what a thread is called.
fn thread_name(walked: &WalkState<'_>, tid: i32) -> String {
    let thread = walked.machine.threads().get(tid);
    let comm = thread.and_then(|thread| thread.comm.as_deref());
    comm.map_or_else(|| format!(":{tid}"), |comm| format!("{comm} ({tid})"))
}
