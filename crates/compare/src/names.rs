//! Names of threads that two recordings have in common, though numbers in them differ.

use model::NamedRole;
use stacks::{FrameName, FrameOwner};

/// Threads of the kernel that are called after a process or a thread: `vhost_worker_create` (`drivers/vhost/vhost.c`)
/// and `create_io_thread` (`io_uring/io-wq.c`, `io_uring/sqpoll.c`).
const CALLED_AFTER: [&str; 3] = ["vhost", "iou-wrk", "iou-sqp"];

/// Returns the name that threads are compared by: which of the kworkers of a CPU does the work changes all the time, a
/// vhost worker is called after its VM's process, and some threads there are once for each CPU.
pub(crate) fn group(comm: &str) -> String {
    match NamedRole::from(comm) {
        NamedRole::Kworker(None) => return "kworker (unbound)".to_owned(),
        NamedRole::Kworker(Some(_)) => return "kworker (of a CPU)".to_owned(),
        _ => {}
    }
    let after = CALLED_AFTER.iter().find(|name| {
        let rest = comm.strip_prefix(**name);
        rest.is_some_and(|rest| rest.starts_with('-'))
    });
    if let Some(name) = after {
        return (*name).to_owned();
    }
    // One thread of the kernel for each CPU: migration/3, ksoftirqd/1.
    match comm.rsplit_once('/') {
        Some((name, cpu)) if is_number(cpu) => name.to_owned(),
        _ => comm.to_owned(),
    }
}

/// Returns the name that what stands below stacks is compared by: as that of threads; without ids a thread that has no
/// name (`:4711`), a VM (`VM 4711`) and a thread with its id (`iperf3/4711`).
pub fn stack_group(name: &str) -> String {
    if name.strip_prefix(':').is_some_and(is_number) {
        return "thread without a name".to_owned();
    }
    if name.strip_prefix("VM ").is_some_and(is_number) {
        return "VM".to_owned();
    }
    // The id of a kworker of CPU 1 comes behind two numbers: kworker/1:2/4711.
    group(name)
}

/// Returns the frame by which a frame is compared: what stands below stacks goes by the name that both sides have of
/// it.
pub fn comparable_frame(name: &FrameName) -> FrameName {
    let text = match name.part {
        FrameOwner::Group => stack_group(&name.text),
        _ => name.text.to_string(),
    };
    let part = name.part;
    FrameName {
        text: text.into(),
        part,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_compared_by_what_they_are() {
        for (comm, name) in [
            ("kworker/9:1-eve", "kworker (of a CPU)"),
            ("kworker/u449:3-", "kworker (unbound)"),
            ("migration/11", "migration"),
            ("vhost-1781", "vhost"),
            ("iou-wrk-1781", "iou-wrk"),
            ("kvm-pit/1781", "kvm-pit"),
            ("CPU 0/KVM", "CPU 0/KVM"),
            ("iperf", "iperf"),
            ("vhostile", "vhostile"),
            ("a/", "a/"),
        ] {
            assert_eq!(group(comm), name);
            assert_eq!(stack_group(comm), name);
        }
        for (below, name) in [
            (":4711", "thread without a name"),
            (":", ":"),
            ("VM 4711", "VM"),
            ("no VM", "no VM"),
            ("CPU 3", "CPU 3"),
            ("CPU 0/KVM/4711", "CPU 0/KVM"),
            ("kworker/1:2/4711", "kworker (of a CPU)"),
            ("vhost-854/855", "vhost"),
            ("iperf3/4711", "iperf3"),
        ] {
            assert_eq!(stack_group(below), name);
        }
    }
}
