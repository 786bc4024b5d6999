//! The events that trapline has a typed view of.

/// What an event means to trapline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Kind {
    /// The vCPU left the guest: `kvm:kvm_exit`, on s390 `kvm_s390_sie_exit`, on powerpc
    /// `kvm_hv:kvm_guest_exit`.
    KvmExit,
    /// The vCPU is about to enter the guest: `kvm:kvm_entry`, on s390 `kvm_s390_sie_enter`, on powerpc
    /// `kvm_hv:kvm_guest_enter`.
    KvmEntry,
    /// `kvm:kvm_fpu`: `KVM_RUN` begins or ends, where the guest's floating point state is put in place (x86).
    KvmFpu,
    /// `kvm:kvm_mmio`: the guest touched memory that KVM emulates.
    KvmMmio,
    /// `kvm:kvm_pio`: the guest touched an I/O port (x86).
    KvmPio,
    /// `kvm:kvm_msr`: the guest read or wrote a model specific register (x86).
    KvmMsr,
    /// `kvm:kvm_userspace_exit`: `KVM_RUN` returns to the VMM.
    KvmUserspaceExit,
    /// `kvm:kvm_vcpu_wakeup`: a halted vCPU goes on.
    KvmVcpuWakeup,
    /// `kvm:kvm_halt_poll_ns`: KVM changes for how long a vCPU polls when it halts.
    KvmHaltPollNs,
    /// `sched:sched_switch`: a CPU goes from one task to the next.
    SchedSwitch,
    /// `sched:sched_waking`: a task is being woken, told by the waker.
    SchedWaking,
    /// `sched:sched_wakeup`: a task is on a run queue.
    SchedWakeup,
    /// `sched:sched_wakeup_new`: a new task is on a run queue for the first time.
    SchedWakeupNew,
    /// `sched:sched_migrate_task`: a task moves to another CPU.
    SchedMigrateTask,
    /// `sched:sched_stat_runtime`: a task ran for so long.
    SchedStatRuntime,
    /// `sched:sched_process_fork`: a task was made.
    SchedProcessFork,
    /// `sched:sched_process_exit`: a task ends.
    SchedProcessExit,
    /// `task:task_rename`: a task has another name.
    TaskRename,
    /// `workqueue:workqueue_execute_start`: a kworker begins a work item.
    WorkqueueExecuteStart,
    /// `workqueue:workqueue_execute_end`: it is done with it.
    WorkqueueExecuteEnd,
    /// Any other event.
    #[default]
    Other,
}

impl Kind {
    /// Returns whether the event is about tasks in general: it happens on behalf of whatever task is running,
    /// and tells of others.
    pub fn is_sched(self) -> bool {
        matches!(
            self,
            Kind::SchedSwitch
                | Kind::SchedWaking
                | Kind::SchedWakeup
                | Kind::SchedWakeupNew
                | Kind::SchedMigrateTask
                | Kind::SchedStatRuntime
                | Kind::SchedProcessFork
                | Kind::SchedProcessExit
                | Kind::TaskRename
        )
    }

    /// Returns what an event of this name means. The subsystem is compared only where it is known: texts of
    /// ftrace do not print it.
    pub fn of(system: &str, name: &str) -> Kind {
        match (system, name) {
            (
                "" | "kvm" | "kvm_hv" | "kvm-s390",
                "kvm_exit" | "kvm_s390_sie_exit" | "kvm_guest_exit",
            ) => Kind::KvmExit,
            (
                "" | "kvm" | "kvm_hv" | "kvm-s390",
                "kvm_entry" | "kvm_s390_sie_enter" | "kvm_guest_enter",
            ) => Kind::KvmEntry,
            ("" | "kvm", "kvm_mmio") => Kind::KvmMmio,
            ("" | "kvm", "kvm_pio") => Kind::KvmPio,
            ("" | "kvm", "kvm_msr") => Kind::KvmMsr,
            ("" | "kvm", "kvm_userspace_exit") => Kind::KvmUserspaceExit,
            ("" | "kvm", "kvm_vcpu_wakeup") => Kind::KvmVcpuWakeup,
            ("" | "kvm", "kvm_halt_poll_ns") => Kind::KvmHaltPollNs,
            ("" | "kvm", "kvm_fpu") => Kind::KvmFpu,
            ("" | "sched", "sched_switch") => Kind::SchedSwitch,
            ("" | "sched", "sched_waking") => Kind::SchedWaking,
            ("" | "sched", "sched_wakeup") => Kind::SchedWakeup,
            ("" | "sched", "sched_wakeup_new") => Kind::SchedWakeupNew,
            ("" | "sched", "sched_migrate_task") => Kind::SchedMigrateTask,
            ("" | "sched", "sched_stat_runtime") => Kind::SchedStatRuntime,
            ("" | "sched", "sched_process_fork") => Kind::SchedProcessFork,
            ("" | "sched", "sched_process_exit") => Kind::SchedProcessExit,
            ("" | "task", "task_rename") => Kind::TaskRename,
            ("" | "workqueue", "workqueue_execute_start") => Kind::WorkqueueExecuteStart,
            ("" | "workqueue", "workqueue_execute_end") => Kind::WorkqueueExecuteEnd,
            _ => Kind::Other,
        }
    }
}
