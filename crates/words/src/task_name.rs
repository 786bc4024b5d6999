//! Names of tasks as the kernel's events have them.

/// Returns the name that events have of a task (`task_struct.comm`), from the one that `/proc/PID/comm` has: there what
/// a kworker works at, or did last, stands behind its own, `kworker/1:0-events` (`wq_worker_comm` of
/// `kernel/workqueue.c`). A rescuer is called `kworker/R-` and by its queue's name, which may have any bytes.
pub fn task_comm(shown: &[u8]) -> &[u8] {
    let worker = shown.strip_prefix(b"kworker/");
    let worker = worker.filter(|worker| !worker.starts_with(b"R-"));
    let behind = worker.and_then(|worker| {
        let end = worker.iter().position(|byte| b"-+".contains(byte))?;
        Some(worker.len() - end)
    });
    &shown[..shown.len() - behind.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kworker_has_the_name_that_events_have() {
        for (shown, comm) in [
            ("kworker/1:0-events_power_efficient", "kworker/1:0"),
            ("kworker/u9:3+flush-254:0", "kworker/u9:3"),
            ("kworker/0:1H-kblockd", "kworker/0:1H"),
            ("kworker/1:0", "kworker/1:0"),
            ("kworker/R-a:b-c", "kworker/R-a:b-c"),
            ("CPU 0/KVM-1", "CPU 0/KVM-1"),
        ] {
            assert_eq!(task_comm(shown.as_bytes()), comm.as_bytes());
        }
    }
}
