//! What threads wait for without a CPU, by the kernel's function that they sleep in and by their state.
//!
//! A thread that waits for work misses nothing while it sleeps, and a thread that waits for a lock or a disk does.
//! Names are those of Linux 3.10 to 6.12, of the files beside them.

use analysis::ThreadState;

/// Functions in which threads sleep until there is work for them, as names begin.
const FOR_WORK: [&str; 43] = [
    // fs/select.c, fs/eventpoll.c, fs/eventfd.c
    "poll_schedule_timeout",
    "do_poll",
    "do_sys_poll",
    "do_select",
    "ep_poll",
    "do_epoll_wait",
    "eventfd_read",
    // fs/aio.c, io_uring/io_uring.c, io_uring/io-wq.c, io_uring/sqpoll.c
    "read_events",
    "io_cqring_wait",
    "io_wq_worker",
    "io_wqe_worker",
    "io_sq_thread",
    // kernel/time, kernel/signal.c, kernel/exit.c
    "hrtimer_nanosleep",
    "do_nanosleep",
    "clock_nanosleep",
    "do_sigtimedwait",
    "sigsuspend",
    "__do_sys_pause",
    "sys_pause",
    "do_wait",
    "kernel_wait4",
    // fs/pipe.c, net/core, net/unix, net/ipv4, drivers/tty, fs/notify
    "pipe_wait",
    "pipe_read",
    "anon_pipe_read",
    "unix_stream_read_generic",
    "unix_stream_data_wait",
    "__skb_wait_for_more_packets",
    "sk_wait_data",
    "inet_csk_accept",
    "n_tty_read",
    "inotify_read",
    // virt/kvm/kvm_main.c: the guest has nothing to do
    "kvm_vcpu_block",
    "kvm_vcpu_halt",
    // Threads of the kernel: kernel/workqueue.c, kernel/kthread.c, kernel/smpboot.c, drivers/vhost, kernel/rcu, mm
    "worker_thread",
    "kthread_worker_fn",
    "smpboot_thread_fn",
    "vhost_worker",
    "vhost_task_fn",
    "rcu_gp_",
    "kswapd",
    "kcompactd",
    "kauditd_thread",
    "devtmpfs",
];

/// Functions in which threads sleep for a lock of the kernel, as names begin: `kernel/locking`.
const FOR_LOCKS: [&str; 12] = [
    "__mutex_lock",
    "mutex_lock",
    "rwsem_down_",
    "down_read",
    "down_write",
    "__down_read",
    "__down_write",
    "__down",
    "percpu_down_",
    "percpu_rwsem_wait",
    "rt_mutex_",
    "__rt_mutex_",
];

/// What a thread waits for, as far as that says whether it misses the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitCause {
    /// Work: it has nothing to do.
    Work,
    /// A lock of the kernel.
    Lock,
    /// The kernel, in a state that no signal ends: mostly a disk, or memory.
    Uninterruptible,
    /// A CPU that another task took.
    Preemption,
    /// Something that may be work as well: a futex, or what no stack names.
    Unknown,
}

impl WaitCause {
    /// Returns what a thread waits for in a state and a function.
    pub(crate) fn of(doing: ThreadState, function: Option<&str>) -> WaitCause {
        let begins = |names: &[&str]| {
            function.is_some_and(|function| names.iter().any(|name| function.starts_with(name)))
        };
        match doing {
            ThreadState::Preempted => WaitCause::Preemption,
            // A thread of the kernel that says so itself (`TASK_IDLE`).
            ThreadState::Sleeps('I' | 'P') => WaitCause::Work,
            _ if begins(&FOR_LOCKS) => WaitCause::Lock,
            _ if begins(&FOR_WORK) => WaitCause::Work,
            ThreadState::Sleeps('D') => WaitCause::Uninterruptible,
            ThreadState::Runs | ThreadState::Woken | ThreadState::Sleeps(_) => WaitCause::Unknown,
        }
    }

    /// Returns whether more of it is time that the thread misses.
    pub(crate) fn is_missed(self) -> bool {
        matches!(
            self,
            WaitCause::Lock | WaitCause::Uninterruptible | WaitCause::Preemption
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_wait_for_work_is_missed() {
        let sleeps = ThreadState::Sleeps;
        for (doing, function, cause) in [
            (sleeps('S'), Some("poll_schedule_timeout"), WaitCause::Work),
            (sleeps('S'), Some("futex_wait_queue"), WaitCause::Unknown),
            (sleeps('S'), None, WaitCause::Unknown),
            (
                sleeps('S'),
                Some("rwsem_down_read_slowpath"),
                WaitCause::Lock,
            ),
            (sleeps('D'), Some("__mutex_lock"), WaitCause::Lock),
            (
                sleeps('D'),
                Some("blk_mq_get_tag"),
                WaitCause::Uninterruptible,
            ),
            (sleeps('D'), None, WaitCause::Uninterruptible),
            // Before TASK_IDLE threads of the kernel waited for work in this state.
            (sleeps('D'), Some("worker_thread"), WaitCause::Work),
            (sleeps('I'), None, WaitCause::Work),
            (ThreadState::Preempted, None, WaitCause::Preemption),
        ] {
            assert_eq!(WaitCause::of(doing, function), cause, "{function:?}");
            let missed = !matches!(cause, WaitCause::Work | WaitCause::Unknown);
            assert_eq!(cause.is_missed(), missed);
        }
    }
}
