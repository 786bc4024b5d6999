//! Threads: names, processes, and which of them are vCPUs.

use std::sync::Arc;

use event::{Event, Side};
use rustc_hash::FxHashMap;

/// One thread of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process, if the recording tells.
    pub pid: Option<i32>,
    /// Its name, if the recording tells. Threads share it with the thread that made them.
    pub comm: Option<Arc<str>>,
    /// Whether it entered a guest.
    pub is_vcpu: bool,
    /// The vCPU's number: recorded with its events, or told by its name.
    pub vcpu: Option<u32>,
}

/// All threads a recording tells of, by thread id.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    map: FxHashMap<i32, Thread>,
}

impl Threads {
    /// Returns the thread with this id.
    pub fn get(&self, tid: i32) -> Option<&Thread> {
        self.map.get(&tid)
    }

    /// Returns all threads in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &Thread)> {
        self.map.iter().map(|(&tid, thread)| (tid, thread))
    }

    /// Takes names the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl IntoIterator<Item = (i32, &'n str)>) {
        for (tid, name) in names {
            self.map.entry(tid).or_default().comm = Some(name.into());
        }
    }

    /// Takes what a recording tells of threads beside events.
    pub fn side(&mut self, side: &Side<'_>) {
        match *side {
            Side::Comm { pid, tid, comm, .. } => {
                let thread = self.map.entry(tid).or_default();
                thread.comm = Some(comm.into());
                if pid >= 0 {
                    thread.pid = Some(pid);
                }
            }
            Side::Fork { pid, tid, ptid, .. } => {
                // A thread id may be used again: what was known of the one before it is past.
                let comm = self.map.get(&ptid).and_then(|parent| parent.comm.clone());
                let pid = (pid >= 0).then_some(pid);
                self.map.insert(
                    tid,
                    Thread {
                        pid,
                        comm,
                        is_vcpu: false,
                        vcpu: None,
                    },
                );
            }
            _ => {}
        }
    }

    /// Takes an event that only vCPU threads make, with the vCPU's number where the event has it.
    pub fn vcpu_event(&mut self, event: &Event<'_>, vcpu: Option<u32>) -> &Thread {
        let thread = self.map.entry(event.tid).or_default();
        thread.is_vcpu = true;
        if event.pid >= 0 {
            thread.pid = Some(event.pid);
        }
        if let Some(comm) = event.comm
            && thread.comm.as_deref() != Some(comm)
        {
            thread.comm = Some(comm.into());
        }
        if thread.vcpu.is_none() {
            thread.vcpu = vcpu.or_else(|| vcpu_from_comm(thread.comm.as_deref()?));
        }
        thread
    }
}

/// Returns the vCPU's number that a thread's name tells: `CPU 3/KVM` (QEMU with debug-threads=on, crosvm's
/// and libvirt's habit too), `fc_vcpu 3` (Firecracker), `vcpu3` (Cloud Hypervisor), `crosvm_vcpu3`,
/// `kvm-vcpu-3` (kvmtool).
pub fn vcpu_from_comm(comm: &str) -> Option<u32> {
    let number = |s: &str| {
        let digits = s.trim_start_matches([' ', '_', '-']);
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    if let Some(rest) = comm.strip_prefix("CPU ") {
        return rest.split_once('/').and_then(|(n, _)| n.parse().ok());
    }
    comm.find("vcpu")
        .and_then(|at| number(&comm[at + "vcpu".len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vcpu_numbers_are_read_from_the_names_that_vmms_give() {
        for (comm, number) in [
            ("CPU 0/KVM", Some(0)),
            ("CPU 12/KVM", Some(12)),
            ("fc_vcpu 3", Some(3)),
            ("vcpu7", Some(7)),
            ("crosvm_vcpu2", Some(2)),
            ("kvm-vcpu-1", Some(1)),
            ("qemu-system-x86", None),
            ("CPU", None),
        ] {
            assert_eq!(vcpu_from_comm(comm), number, "{comm}");
        }
    }
}
