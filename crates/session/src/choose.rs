//! What the filters choose of one recording.

use analysis::{LeftOut, Window};
use model::Vm;
use paths::InstanceFilter;

use crate::filter_targets::described;
use crate::{Error, Filters, OpenRecording};

impl OpenRecording<'_> {
    fn filters(&self) -> &Filters {
        &self.session.options().filters
    }

    /// Returns the threads of the VM or vCPU that was asked for, if one was.
    pub(crate) fn chosen_threads(&self) -> Result<Option<Vec<i32>>, Error> {
        let filters = self.filters();
        if filters.vm.is_none() && filters.vcpu.is_none() {
            return Ok(None);
        }
        let wanted = |vm: &&Vm| {
            let name = filters.vm.as_deref();
            name.is_none_or(|name| vm.is_called(name))
        };
        let vcpus = self.vms().iter().filter(wanted).flat_map(|vm| &vm.vcpus);
        let threads: Vec<i32> = vcpus
            .filter(|v| filters.vcpu.is_none_or(|id| id == v.id))
            .map(|v| v.tid)
            .collect();
        // Where formats are missing, that is for the command to tell.
        if threads.is_empty() && !self.reader().misses_formats() {
            let vcpu = filters.vcpu.map(|id| format!(" {id}")).unwrap_or_default();
            let vm = filters.vm.as_ref();
            let of_vm = vm.map(|vm| format!(" of a VM called {vm}"));
            let known = self.vms().iter().flat_map(|vm| [&vm.name, &vm.process]);
            let known = known.flatten().map(String::as_str);
            let near = vm.filter(|vm| !self.vms().iter().any(|one| one.is_called(vm)));
            let near = near.map(|vm| words::did_you_mean(vm, known));
            return Err(self.nobody(
                format!("{vcpu}{}", of_vm.unwrap_or_default()),
                &near.unwrap_or_default(),
            ));
        }
        Ok(Some(threads))
    }

    /// Returns whether filters choose vCPUs or threads.
    pub fn chooses(&self) -> bool {
        self.filters().pid.is_some() || self.threads.is_some()
    }

    /// Returns whether the rows of a thread are wanted, for what is made of other threads' events too.
    pub fn keeps(&self, tid: i32, process: Option<i32>) -> bool {
        let pid = self
            .filters()
            .pid
            .is_none_or(|pid| tid == pid || process == Some(pid) || self.of_process.contains(&tid));
        pid && self.has_thread(tid)
    }

    fn has_thread(&self, tid: i32) -> bool {
        let threads = self.threads.as_ref();
        threads.is_none_or(|list| list.contains(&tid))
    }

    /// Returns the vCPUs that filters do not choose, and the processes of VMs of which they choose none.
    pub fn left_out(&self) -> LeftOut {
        let mut out = LeftOut::default();
        if !self.chooses() {
            return out;
        }
        for vm in self.vms() {
            let of_vm = self.filters().pid.is_some_and(|pid| is_of(vm, pid));
            let chosen = |tid: i32| self.has_thread(tid) && (of_vm || self.keeps(tid, vm.pid));
            let others = vm.vcpus.iter().filter(|vcpu| !chosen(vcpu.tid));
            let others: Vec<i32> = others.map(|vcpu| vcpu.tid).collect();
            if others.len() == vm.vcpus.len() {
                out.processes.extend(vm.pid);
            }
            out.threads.extend(others);
        }
        out
    }

    /// Refuses to look for causes where filters choose by a process or thread that no vCPU belongs to.
    ///
    /// # Errors
    ///
    /// Fails when there are vCPUs, and none of them is chosen.
    pub fn require_vcpus(&self) -> Result<(), Error> {
        let Some(pid) = self.filters().pid else {
            return Ok(());
        };
        let vcpus: usize = self.vms().iter().map(|vm| vm.vcpus.len()).sum();
        if vcpus > 0 && self.left_out().threads.len() == vcpus {
            return Err(self.nobody(format!(" of process {pid}"), ""));
        }
        Ok(())
    }

    /// Returns which instances of paths are wanted: of the vCPUs that filters choose, wherever their events are.
    pub fn instances(&self) -> InstanceFilter {
        let threads = match (self.filters().pid, &self.threads) {
            (None, threads) => threads.clone(),
            (Some(pid), _) => {
                let mut all: Vec<i32> = self.of_process.iter().copied().collect();
                all.push(pid);
                let of_vm = self.vms().iter().filter(|vm| is_of(vm, pid));
                all.extend(of_vm.flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.tid));
                all.retain(|tid| self.has_thread(*tid));
                Some(all)
            }
        };
        InstanceFilter {
            threads,
            time: self.time,
            cpus: self.filters().cpus.clone(),
        }
    }

    /// Returns the window that vCPUs' time is looked at in.
    pub fn window(&self) -> Window {
        Window {
            time: self.time,
            cpus: self.filters().cpus.clone(),
        }
    }

    /// Says that the recording has no vCPU that was asked for.
    fn nobody(&self, asked: String, near: &str) -> Error {
        Error::NoSuchVcpu {
            name: self.name().to_owned(),
            asked,
            near: near.to_owned(),
            known: how_to_know(self.vms(), self.name()),
        }
    }
}

/// Returns whether a process belongs to a VM.
fn is_of(vm: &Vm, pid: i32) -> bool {
    vm.pid == Some(pid) || vm.helpers.contains(&pid)
}

/// Says which VMs a recording knows, and how to tell it more.
fn how_to_know(vms: &[Vm], name: &str) -> String {
    const MOST: usize = 4;
    if vms.is_empty() {
        return format!("it shows no VM ('trapline info {name}')");
    }
    let unnamed = vms
        .iter()
        .any(|vm| vm.name == vm.process || vm.pid.is_none());
    let tell = match unnamed {
        true => "; --facts with 'ps -eLo pid,tid,comm,args' names VMs",
        false => "",
    };
    format!(
        "VMs known: {} (see 'trapline info {name}'){tell}",
        words::list_first(&described(vms), MOST)
    )
}
