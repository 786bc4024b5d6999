//! Threads that are known before anything is counted.

use std::fs;

use counts::threads_of_vms;
use facts::Facts;

/// A thread that is known to be a vCPU before it does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The vCPU's number.
    pub number: u32,
}

/// A thread that works for a VM and is no vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSeed {
    /// The thread.
    pub tid: i32,
    /// The VM's process.
    pub vm_pid: i32,
    /// Whether it sleeps now.
    pub asleep: bool,
    /// The CPU that it was on last; -1 where that is not known.
    pub cpu: i32,
}

/// Returns the vCPUs that a host's facts name.
pub fn seeds(facts: &Facts) -> Vec<Seed> {
    let vms = facts.vms.iter().filter_map(|vm| Some((vm.pid?, vm)));
    let vcpus = vms.flat_map(|(pid, vm)| {
        vm.vcpus.iter().map(move |vcpu| Seed {
            tid: vcpu.tid,
            pid,
            number: vcpu.id,
        })
    });
    vcpus.collect()
}

/// Returns these threads with what they do now, by `/proc/TID/stat` (`proc(5)`). Those that are gone are left out.
pub fn thread_seeds(facts: &Facts) -> Vec<ThreadSeed> {
    let seed = |(tid, vm_pid, _)| {
        let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        let (asleep, cpu) = state_and_cpu(&stat)?;
        Some(ThreadSeed {
            tid,
            vm_pid,
            asleep,
            cpu,
        })
    };
    threads_of_vms(facts).into_iter().filter_map(seed).collect()
}

/// Returns whether a thread sleeps, and on which CPU it was last: fields 3 and 39.
fn state_and_cpu(stat: &str) -> Option<(bool, i32)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let asleep = fields.next()? != "R";
    let cpu = fields.nth(35)?.parse().ok()?;
    Some((asleep, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_its_file_says() {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("Linux has it");
        let (asleep, cpu) = state_and_cpu(&stat).expect("it has these fields");
        assert!(!asleep && cpu >= 0, "{stat}");
        let sleeps = stat.replacen(") R", ") S", 1);
        assert_eq!(state_and_cpu(&sleeps), Some((true, cpu)));
        assert_eq!(state_and_cpu("1 (a) b) R 1 2"), None);
    }
}
