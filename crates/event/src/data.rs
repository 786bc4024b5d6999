//! The typed view of the events that trapline reasons about.

use crate::ExitReason;
use crate::sched::{SchedMigrateTask, SchedStatRuntime, SchedSwitch, SchedWakeup, Task};

/// `kvm:kvm_exit`: a vCPU left the guest.
///
/// The tracepoint fires a little after the hardware switched, so it bounds the switch from above
/// (`arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmExit {
    /// Why.
    pub reason: ExitReason,
    /// The vCPU's number; arm64 and old x86 kernels do not record it.
    pub vcpu: Option<u32>,
    /// Where the guest was, if recorded.
    pub guest_pc: Option<u64>,
}

/// `kvm:kvm_entry`: a vCPU is about to enter the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmEntry {
    /// The vCPU's number; arm64 does not record it.
    pub vcpu: Option<u32>,
    /// Where the guest goes on, if recorded.
    pub guest_pc: Option<u64>,
}

/// What `kvm:kvm_mmio` says of an access (`include/trace/events/kvm.h`, `KVM_TRACE_MMIO_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MmioAccess {
    /// 0: a read that nothing in the kernel answers; it goes to user space, and a second event follows with
    /// the value.
    ReadUnsatisfied,
    /// 1: a read with its value.
    Read,
    /// 2: a write.
    Write,
    /// Another number: kernels newer than this table.
    Unknown(u32),
}

impl MmioAccess {
    /// Returns the access with this number.
    pub fn from_number(number: u64) -> MmioAccess {
        match number {
            0 => MmioAccess::ReadUnsatisfied,
            1 => MmioAccess::Read,
            2 => MmioAccess::Write,
            n => MmioAccess::Unknown(n as u32),
        }
    }
}

/// `kvm:kvm_mmio`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmMmio {
    /// Read or write.
    pub access: MmioAccess,
    /// Guest physical address.
    pub gpa: u64,
    /// Bytes accessed.
    pub len: u32,
    /// The value, as recorded.
    pub value: u64,
}

/// `kvm:kvm_pio`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmPio {
    /// Whether the guest wrote (`OUT`).
    pub write: bool,
    /// I/O port.
    pub port: u16,
    /// Bytes of one access.
    pub size: u32,
    /// Accesses (string instructions repeat).
    pub count: u32,
    /// The value of the first of them; kernels before 3.16 do not record it.
    pub value: Option<u32>,
}

/// `kvm:kvm_msr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmMsr {
    /// Whether the guest wrote (`WRMSR`).
    pub write: bool,
    /// Register number, what the guest had in ECX.
    pub msr: u32,
    /// The value read or written.
    pub value: u64,
    /// Whether KVM answered with a general protection fault.
    pub exception: bool,
}

/// `kvm:kvm_userspace_exit`: `KVM_RUN` returns to the VMM (`include/trace/events/kvm.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmUserspaceExit {
    /// Why (`KVM_EXIT_*` in `include/uapi/linux/kvm.h`); `None` when `KVM_RUN` failed, as it does for a
    /// signal.
    pub reason: Option<u32>,
}

/// `kvm:kvm_vcpu_wakeup`: a halted vCPU goes on (`virt/kvm/kvm_main.c`, `kvm_vcpu_halt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmVcpuWakeup {
    /// How long it was halted, polling included.
    pub halted_ns: u64,
    /// Whether it slept; if not, polling was enough.
    pub waited: bool,
    /// Whether there was something to wake up for.
    pub valid: bool,
}

/// `kvm:kvm_halt_poll_ns`: KVM makes the time longer or shorter for which a vCPU polls when it halts
/// (`grow_halt_poll_ns` and `shrink_halt_poll_ns` in `virt/kvm/kvm_main.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmHaltPollNs {
    /// From now on, in nanoseconds.
    pub new_ns: u64,
    /// Until now, in the halt that ends as well.
    pub old_ns: u64,
}

/// The typed view of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Data {
    /// [`KvmExit`].
    KvmExit(KvmExit),
    /// [`KvmEntry`].
    KvmEntry(KvmEntry),
    /// [`KvmMmio`].
    KvmMmio(KvmMmio),
    /// [`KvmPio`].
    KvmPio(KvmPio),
    /// [`KvmMsr`].
    KvmMsr(KvmMsr),
    /// [`KvmUserspaceExit`].
    KvmUserspaceExit(KvmUserspaceExit),
    /// [`KvmVcpuWakeup`].
    KvmVcpuWakeup(KvmVcpuWakeup),
    /// [`KvmHaltPollNs`].
    KvmHaltPollNs(KvmHaltPollNs),
    /// `kvm:kvm_fpu`: whether the guest's floating point state is loaded, as it is while `KVM_RUN` runs
    /// (`kvm_load_guest_fpu`, `arch/x86/kvm/x86.c`), or put away.
    KvmFpu {
        /// Whether it is loaded.
        load: bool,
    },
    /// [`SchedSwitch`].
    SchedSwitch(SchedSwitch),
    /// `sched:sched_waking`.
    SchedWaking(SchedWakeup),
    /// `sched:sched_wakeup`, and `sched_wakeup_new`.
    SchedWakeup(SchedWakeup),
    /// [`SchedMigrateTask`].
    SchedMigrateTask(SchedMigrateTask),
    /// [`SchedStatRuntime`].
    SchedStatRuntime(SchedStatRuntime),
    /// `sched:sched_process_fork`: the new task.
    SchedProcessFork(Task),
    /// `sched:sched_process_exit`.
    SchedProcessExit(Task),
    /// `task:task_rename`: the new name.
    TaskRename(Task),
    /// `workqueue:workqueue_execute_start`: address of the function.
    WorkqueueExecuteStart {
        /// Address of the work item.
        work: u64,
        /// Address of its function.
        function: u64,
    },
    /// `workqueue:workqueue_execute_end`.
    WorkqueueExecuteEnd {
        /// Address of the work item.
        work: u64,
    },
    /// An event without a typed view, or one whose record lacks the fields it needs.
    #[default]
    Other,
}
