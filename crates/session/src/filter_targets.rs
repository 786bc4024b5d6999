//! What there is in a recording for filters to choose: said where they choose nothing.

use analysis::{RecordingContents, Study};
use cpuset::CpuSet;
use model::Vm;

use crate::OpenRecording;

/// VMs and processes that a message names.
const MOST: usize = 4;

/// What there is to choose, and which filter chooses nothing of it.
#[derive(Debug)]
pub(crate) struct FilterTargets {
    /// Times of the first and the last event.
    span: Option<(u64, u64)>,
    /// CPUs that events are from.
    cpus: CpuSet,
    /// VMs with their vCPUs, as they are named.
    vms: Vec<String>,
    /// Other processes: those that have no vCPU, or threads where processes are not recorded.
    processes: Vec<String>,
    /// What is wrong with filters, each for itself.
    wrong: Vec<String>,
}

impl FilterTargets {
    /// Returns whether each filter by itself chooses something.
    pub(crate) fn chooses_all(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Names VMs with their processes and vCPUs: `web (process 1689, vCPUs 0-3)`.
pub(crate) fn described(vms: &[Vm]) -> Vec<String> {
    let names = model::vm_names(vms);
    let each = vms.iter().zip(names).map(|(vm, name)| {
        let name = words::on_one_line(&name);
        let mut vcpus = CpuSet::new();
        vm.vcpus.iter().for_each(|vcpu| vcpus.insert(vcpu.id));
        let vcpus = match vm.vcpus.len() {
            1 => format!("vCPU {vcpus}"),
            _ => format!("vCPUs {vcpus}"),
        };
        let place = vm.pid.map(|pid| format!("process {pid}"));
        match (place, name.strip_suffix(')')) {
            // It has its process already.
            (_, Some(begun)) => format!("{begun}, {vcpus})"),
            (Some(place), None) if !name.contains(&place) => format!("{name} ({place}, {vcpus})"),
            _ => format!("{name} ({vcpus})"),
        }
    });
    each.collect()
}

impl OpenRecording<'_> {
    /// Returns what there is to choose, by a walk over all of it.
    pub(crate) fn filter_targets(&self) -> FilterTargets {
        let mut study = Study::default();
        study.add(RecordingContents::new());
        self.prepare(&mut study);
        self.reader().walk(&mut study);
        let walked = study.walked();
        let mut cpus = CpuSet::new();
        for (cpu, count) in (0u32..).zip(walked.counts.cpus()) {
            if count.inside > 0 {
                cpus.insert(cpu);
            }
        }
        let vms = walked.machine.vms();
        let threads = walked.machine.threads();
        let mut processes = Vec::new();
        let mut more = 0usize;
        for (tid, thread) in threads.iter() {
            let leads = tid > 0 && thread.pid.is_none_or(|pid| pid == tid);
            if !leads || vms.iter().any(|vm| vm.is_of(tid)) {
                continue;
            }
            match processes.len() < MOST {
                true => {
                    let name = thread.comm.as_deref().unwrap_or("thread");
                    processes.push(format!("{} {tid}", words::on_one_line(name)));
                }
                false => more += 1,
            }
        }
        if more > 0 {
            processes.push(format!("{more} more"));
        }
        let filters = &self.session.options().filters;
        let span = walked.counts.span();
        let mut wrong = Vec::new();
        if let (Some(range), Some((from, to))) = (&filters.time, self.time)
            && span.is_none_or(|(first, last)| to < first || last < from)
        {
            wrong.push(format!("--time {range} is outside of the recording"));
        }
        if let Some(wanted) = &filters.cpus
            && !cpus.is_empty()
            && !wanted.intersects(&cpus)
        {
            wrong.push(format!("no event is on --cpu {wanted}"));
        }
        if let Some(pid) = filters.pid
            && threads.get(pid).is_none()
            && self.of_process.is_empty()
            && !threads.iter().any(|(_, thread)| thread.pid == Some(pid))
            && !vms.iter().any(|vm| vm.is_of(pid))
        {
            wrong.push(format!("no process or thread is --pid {pid}"));
        }
        FilterTargets {
            span,
            cpus,
            vms: described(&vms),
            processes,
            wrong,
        }
    }

    /// Says why filters choose nothing, and what there is to choose, to stand behind what did not pass them.
    pub(crate) fn why_nothing(&self) -> String {
        let targets = self.filter_targets();
        let mut parts = Vec::new();
        if let Some((from, to)) = targets.span {
            parts.push(match self.nanoseconds() {
                true => format!(
                    "times {} to {}",
                    words::duration::seconds(from),
                    words::duration::seconds(to)
                ),
                false => format!("times {from} to {to}"),
            });
        }
        if !targets.cpus.is_empty() {
            let many = if targets.cpus.len() == 1 {
                "CPU"
            } else {
                "CPUs"
            };
            parts.push(format!("{many} {}", targets.cpus));
        }
        parts.push(match targets.vms.as_slice() {
            [] => "no VM".to_owned(),
            [one] => format!("the VM {one}"),
            all => format!("the VMs {}", words::list_first(all, MOST)),
        });
        if self.session.options().filters.pid.is_some() && !targets.processes.is_empty() {
            parts.push(format!("the processes {}", targets.processes.join(", ")));
        }
        let wrong = match targets.wrong.as_slice() {
            [] => String::new(),
            wrong => format!(": {}", words::list(wrong)),
        };
        format!(
            "{wrong}; it has {} ('trapline info {}')",
            words::list(&parts),
            self.name()
        )
    }
}
