//! What no safe library has: instructions that user space may run, and the few system calls around them. All of the
//! crate's `unsafe`.

use std::fs::File;
use std::io;

use rustix::thread::{Cpuid, MembarrierCommand, membarrier_cpu};

/// Lets every thread of this process that runs on a CPU pass a barrier there, and waits for it.
pub(crate) fn barrier_on(cpu: u32) -> io::Result<()> {
    // SAFETY: the kernel checks the number: of a CPU that is not there it says EINVAL or does nothing
    // (membarrier_private_expedited of kernel/sched/membarrier.c).
    let cpu = unsafe { Cpuid::from_raw(cpu) };
    Ok(membarrier_cpu(
        MembarrierCommand::PrivateExpeditedRseq,
        cpu,
    )?)
}

/// Reads `CLOCK_MONOTONIC` by the system call, whatever the vDSO could do.
pub(crate) fn clock_by_system_call() -> i64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the structure and nothing else.
    unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now);
    }
    now.tv_nsec
}

/// Makes the shortest system call that there is.
pub(crate) fn shortest_system_call() -> i64 {
    // SAFETY: it takes nothing and returns a number.
    i64::from(unsafe { libc::getppid() })
}

/// Reads the CPU's counter: RDTSC on x86-64, CNTVCT_EL0 on arm64. `None` elsewhere.
#[inline]
pub(crate) fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the instruction reads a counter, and Linux lets user space run it unless a process asks to be killed
        // for it (PR_SET_TSC), which this one does not.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(target_arch = "aarch64")]
    {
        let counter: u64;
        // SAFETY: the register is readable in user space on Linux (CNTKCTL_EL1.EL0VCTEN; where it is trapped, the
        // kernel emulates the read); nothing is written.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) counter, options(nomem, nostack));
        }
        Some(counter)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// Runs CPUID with a leaf, and returns EAX, EBX, ECX and EDX. `None` where there is no such instruction.
#[inline]
pub(crate) fn cpuid(leaf: u32) -> Option<[u32; 4]> {
    #[cfg(target_arch = "x86_64")]
    {
        let found = std::arch::x86_64::__cpuid(leaf);
        Some([found.eax, found.ebx, found.ecx, found.edx])
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = leaf;
        None
    }
}

/// A page of registers of a device, which can be read and not written.
#[derive(Debug)]
pub(crate) struct RegisterPage {
    map: memmap2::Mmap,
}

impl RegisterPage {
    /// Maps the page at a place of a file: `/dev/mem`, where the place is a physical address, or a device's own file.
    pub(crate) fn map(file: &File, at: u64) -> io::Result<RegisterPage> {
        let mut options = memmap2::MmapOptions::new();
        options.offset(at).len(4096);
        // SAFETY: the page is registers of a device, which nobody cuts off. They change, so they are read by
        // `read_volatile` alone, and no slice of them is made.
        let map = unsafe { options.map(file)? };
        Ok(RegisterPage { map })
    }

    /// Reads four bytes at a place of the page, which is a multiple of four.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u32 {
        let at = at & 0xffc;
        // SAFETY: the place is within the page and aligned, as the page is.
        unsafe { self.map.as_ptr().add(at).cast::<u32>().read_volatile() }
    }
}
