//! Whose code a CPU ran.

/// `PERF_RECORD_MISC_CPUMODE_MASK`.
const CPUMODE_MASK: u16 = 7;

/// Where the CPU was (`PERF_RECORD_MISC_*`, `include/uapi/linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// In the kernel of the host.
    Kernel,
    /// In user space of the host.
    User,
    /// In a guest's kernel.
    GuestKernel,
    /// In user space of a guest.
    GuestUser,
    /// Unknown, or in a hypervisor below.
    Other,
}

impl CpuMode {
    /// Returns the mode that `misc` of a record's header shows.
    #[inline]
    pub fn of(misc: u16) -> CpuMode {
        match misc & CPUMODE_MASK {
            1 => CpuMode::Kernel,
            2 => CpuMode::User,
            4 => CpuMode::GuestKernel,
            5 => CpuMode::GuestUser,
            _ => CpuMode::Other,
        }
    }

    /// Returns whether a guest ran.
    #[inline]
    pub fn is_guest(self) -> bool {
        matches!(self, CpuMode::GuestKernel | CpuMode::GuestUser)
    }
}
