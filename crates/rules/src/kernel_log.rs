//! What kernel logs beside a recording say of its VMs.
//!
//! Only lines that were written during the recording raise anything: `trapline record` keeps them apart, and of another
//! log it is those whose times are the recording's. The kernel's own times are comparable where the events have the
//! same clock: `local_clock` of `kernel/sched/clock.c` is that of printk, of perf without a clock of its own (`perf
//! record -k`), and of ftrace's `local` and `global`. A calendar's times are comparable with nothing, and neither is
//! what a guest's kernel wrote.

use std::collections::HashSet;

use facts::{KernelLog, KernelLogLine, LogKind};

use crate::evidence::{Evidence, Many, says};
use crate::{Case, Finding};

/// Most lines that one finding shows.
const MOST_SHOWN: usize = 3;

impl<'a> Case<'a> {
    /// Returns the lines of a kind that the host's kernel wrote to its log during the recording.
    pub(crate) fn logged(&self, kind: LogKind) -> Vec<&'a KernelLogLine> {
        let Some(host) = self.host() else {
            return Vec::new();
        };
        let during = host.kernel_log_during.iter().flat_map(|log| log.of(kind));
        let before = host.kernel_log.iter().flat_map(|log| log.of(kind));
        let before = before.filter(|line| self.is_during(line));
        before.chain(during).collect()
    }

    /// Returns the last line of a kind in the host's logs, of whatever time, in quotes.
    pub(crate) fn any_logged(&self, kind: LogKind) -> Option<String> {
        let host = self.host()?;
        let logs = [&host.kernel_log_during, &host.kernel_log];
        let line = logs
            .into_iter()
            .flatten()
            .find_map(|log| log.of(kind).last());
        line.map(quoted)
    }

    /// Returns the threads of the vCPUs, and of those others of the same VMs that facts name: one that stood still all
    /// the time has no event.
    fn vcpus_of_vms(&self) -> HashSet<i32> {
        let mut all = self.vcpu_tids();
        let vms = self.facts.iter().flat_map(|facts| &facts.vms);
        let seen: Vec<i32> = vms
            .filter(|vm| vm.vcpus.iter().any(|vcpu| all.contains(&vcpu.tid)))
            .flat_map(|vm| vm.vcpus.iter().map(|vcpu| vcpu.tid))
            .collect();
        all.extend(seen);
        all
    }

    /// Returns those of them that name one of the vCPUs' threads.
    pub(crate) fn logged_of_vcpus(&self, kind: LogKind) -> Vec<&'a KernelLogLine> {
        let vcpus = self.vcpus_of_vms();
        let lines = self.logged(kind).into_iter();
        lines
            .filter(|line| line.tid.is_some_and(|tid| vcpus.contains(&tid)))
            .collect()
    }

    /// Returns those of them that name a CPU on which vCPUs ran their guests, and none of the vCPUs' threads.
    pub(crate) fn logged_on_vcpus_cpus(&self, kind: LogKind) -> Vec<&'a KernelLogLine> {
        let vcpus = self.vcpus_of_vms();
        let rows = self.picture.moves.iter();
        let ran = |cpu: u32| {
            rows.clone()
                .any(|row| row.guest_ns.iter().any(|one| one.0 == cpu))
        };
        let lines = self.logged(kind).into_iter();
        lines
            .filter(|line| line.tid.is_none_or(|tid| !vcpus.contains(&tid)))
            .filter(|line| line.cpus.iter().any(ran))
            .collect()
    }

    /// Returns whether a kind is in what was written to the host's log before, or at times that cannot be compared.
    pub(crate) fn logged_before(&self, kind: LogKind) -> bool {
        let log = self.host().and_then(|host| host.kernel_log.as_ref());
        log.is_some_and(|log| log.counts.contains_key(&kind))
    }

    /// Says of a finding about vCPUs that stood still what logs say of it: the host's of CPUs on which they ran, and
    /// the guest's own.
    pub(crate) fn logged_beside(&self, mut finding: Finding) -> Finding {
        let kinds = [LogKind::SoftLockup, LogKind::HardLockup, LogKind::RcuStall];
        let lines = kinds.map(|kind| self.logged_on_vcpus_cpus(kind)).concat();
        if let Some(said) = said(&lines) {
            let on = ", of CPUs on which vCPUs ran.";
            let mut said = said;
            said.text.pop();
            finding = finding.evidence(said.then(on.into()));
        }
        match self.guest_complains() {
            Some(complaint) => finding.evidence(complaint),
            None => finding,
        }
    }

    /// Says what a guest's own log says of vCPUs that did not get on. On which clock its times are is not known.
    pub(crate) fn guest_complains(&self) -> Option<Evidence> {
        let log = self.facts?.guest_log.as_ref()?;
        let kinds = [LogKind::SoftLockup, LogKind::RcuStall, LogKind::HardLockup];
        let count: u64 = kinds
            .iter()
            .filter_map(|kind| log.counts.get(kind).copied())
            .fold(0, u64::saturating_add);
        let first = first_of(log, &kinds)?;
        Some(says!(
            "The guest's own kernel log has {lines} of lockups and RCU stalls, on the guest's clock, the first \
             {first}: a vCPU that does not run for long looks so from inside, and so does a guest that spins.",
            lines = Many(count, "line"),
            first = quoted(first),
        ))
    }

    fn is_during(&self, line: &KernelLogLine) -> bool {
        let about = &self.picture.about;
        let info = &self.picture.info;
        let (Some(start), Some(end), false) = (info.start, info.end, about.in_ticks) else {
            return false;
        };
        let at = match about.clock.as_deref() {
            None | Some("perf" | "local" | "global") => line.printk_ns,
            Some("mono" | "monotonic") => line.monotonic_ns,
            Some(_) => None,
        };
        // What had lasted for a while when it was written began before.
        let lasted = line.seconds.unwrap_or(0).saturating_mul(1_000_000_000);
        at.is_some_and(|at| at >= start && at.saturating_sub(lasted) <= end)
    }
}

fn first_of<'l>(log: &'l KernelLog, kinds: &[LogKind]) -> Option<&'l KernelLogLine> {
    log.kept.iter().find(|line| kinds.contains(&line.kind))
}

/// A line as the log has it.
fn quoted(line: &KernelLogLine) -> String {
    format!("\"{}\"", line.text.trim_end_matches(['.', ':']))
}

/// Says what lines the host's kernel wrote to its log during the recording; nothing of no lines.
pub(crate) fn said(lines: &[&KernelLogLine]) -> Option<Evidence> {
    let shown: Vec<Evidence> = lines
        .iter()
        .take(MOST_SHOWN)
        .map(|line| says!("{line}", line = quoted(line)))
        .collect();
    let count = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    let sentence = match lines.len() {
        0 => return None,
        1 => says!("The host's kernel log during the recording: "),
        count_shown if count_shown <= MOST_SHOWN => {
            says!(
                "The host's kernel log has {count} such lines of the recording's time: ",
                count = count
            )
        }
        _ => says!(
            "The host's kernel log has {count} such lines of the recording's time, first ",
            count = count
        ),
    };
    Some(sentence.then(Evidence::join(shown)).then(says!(".")))
}
