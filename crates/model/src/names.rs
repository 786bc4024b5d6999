//! What VMs and vCPUs are called, in tables and sentences.

use doubts::{Doubt, DoubtKind};
use rustc_hash::FxHashMap;
use words::list_first;

use crate::Vm;

/// Returns what each VM is called: by its name, else by its process, else by the thread of its first vCPU. Those that
/// have a name in common have what separates them behind it.
pub fn vm_names(vms: &[Vm]) -> Vec<String> {
    let place = |vm: &Vm| match (vm.pid, vm.vcpus.first()) {
        (Some(pid), _) => format!("process {pid}"),
        (None, Some(vcpu)) => format!("thread {}", vcpu.tid),
        (None, None) => "without vCPUs".to_owned(),
    };
    let mut times: FxHashMap<&str, u32> = FxHashMap::default();
    for name in vms.iter().filter_map(|vm| vm.name.as_deref()) {
        *times.entry(name).or_default() += 1;
    }
    let name = |vm: &Vm| match &vm.name {
        Some(name) if times.get(name.as_str()) == Some(&1) => name.clone(),
        Some(name) => format!("{name} ({})", place(vm)),
        None => format!("VM of {}", place(vm)),
    };
    vms.iter().map(name).collect()
}

/// Returns what the vCPU that has a thread is called: `vCPU 1`, and with several VMs `web, vCPU 1`.
pub fn vcpu_name(vms: &[Vm], tid: i32) -> Option<String> {
    let mut all = vms.iter().enumerate();
    let (at, vcpu) = all.find_map(|(at, vm)| {
        let vcpu = vm.vcpus.iter().find(|vcpu| vcpu.tid == tid)?;
        Some((at, vcpu.id))
    })?;
    if vms.len() < 2 {
        return Some(words::vcpu(None, vcpu));
    }
    let name = vm_names(vms).into_iter().nth(at)?;
    Some(words::vcpu(Some(&name), vcpu))
}

/// VMs and vCPUs that a sentence lists; what is beyond is counted.
const LISTED: usize = 8;

/// Returns the doubt that VMs were guessed, about their vCPUs, if any were.
pub fn guesses(vms: &[Vm]) -> Option<Doubt> {
    let threads = |vm: &Vm| {
        let tids = vm.vcpus.iter().map(|vcpu| vcpu.tid.to_string());
        format!("{{{}}}", list_first(&tids.collect::<Vec<_>>(), LISTED))
    };
    let guessed = || vms.iter().filter(|vm| vm.guessed);
    let list: Vec<String> = guessed().map(threads).collect();
    (!list.is_empty()).then(|| {
        let vcpus = guessed().flat_map(|vm| &vm.vcpus);
        let vms = list_first(&list, LISTED);
        Doubt::from(DoubtKind::VmsGuessed { vms }).of_threads(vcpus.map(|vcpu| vcpu.tid))
    })
}

/// Returns the doubt that vCPUs are presumed, about these, if any are.
pub fn presumptions(vms: &[Vm]) -> Option<Doubt> {
    let presumed = || vms.iter().filter(|vm| vm.presumed).flat_map(|vm| &vm.vcpus);
    let vcpus = presumed().count() as u64;
    (vcpus > 0).then(|| {
        let threads = presumed().map(|vcpu| vcpu.tid);
        Doubt::from(DoubtKind::VcpusPresumed { vcpus }).of_threads(threads)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vcpu;

    fn vm(name: Option<&str>, pid: Option<i32>, tids: &[i32]) -> Vm {
        let vcpus = tids.iter().zip(0u32..).map(|(&tid, id)| Vcpu {
            id,
            tid,
            thread: tid as u32,
        });
        Vm {
            pid,
            name: name.map(str::to_owned),
            process: None,
            uuid: None,
            vcpus: vcpus.collect(),
            helpers: Vec::new(),
            guessed: pid.is_none(),
            presumed: false,
        }
    }

    #[test]
    fn names_of_vms_differ() {
        let vms = [
            vm(Some("web"), Some(5), &[10, 11]),
            vm(Some("qemu"), Some(6), &[12]),
            vm(Some("qemu"), None, &[13]),
            vm(None, Some(7), &[14]),
            vm(None, None, &[15]),
        ];
        let names = [
            "web",
            "qemu (process 6)",
            "qemu (thread 13)",
            "VM of process 7",
            "VM of thread 15",
        ];
        assert_eq!(vm_names(&vms), names);
        assert_eq!(vcpu_name(&vms, 11).as_deref(), Some("web, vCPU 1"));
        assert_eq!(vcpu_name(&vms, 99), None);
        // One VM needs no name.
        assert_eq!(vcpu_name(&vms[..1], 11).as_deref(), Some("vCPU 1"));
        let said = guesses(&vms).unwrap().text();
        assert!(said.contains("{13}, {15}") && guesses(&vms[..2]).is_none());
    }
}
