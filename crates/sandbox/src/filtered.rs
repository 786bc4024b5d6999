//! What the program of seccomp decides, run by hand: to call what it refuses takes unsafe code.

use seccompiler::{TargetArch, sock_filter};

use crate::calls::REFUSED;
use crate::filter;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64` (`include/uapi/linux/audit.h`).
const X86: u32 = 0xc000_003e;
const ARM64: u32 = 0xc000_00b7;
/// `SECCOMP_RET_ALLOW`, and `SECCOMP_RET_ERRNO` with `EPERM` (`include/uapi/linux/seccomp.h`).
const ALLOWED: u32 = 0x7fff_0000;
const DENIED: u32 = 0x0005_0001;

/// Runs a program of classic BPF (`Documentation/networking/filter.rst`) on a `struct seccomp_data`.
fn decided(program: &[sock_filter], arch: u32, call: i64, arguments: &[u64]) -> u32 {
    let number = u32::try_from(call).expect("a number");
    let mut words = vec![number, arch, 0, 0];
    for at in 0..6 {
        let argument = arguments.get(at).copied().unwrap_or(0);
        words.extend([argument as u32, (argument >> 32) as u32]);
    }
    let (mut at, mut held) = (0, 0_u32);
    loop {
        let step = &program[at];
        let jump = |is: bool| usize::from(if is { step.jt } else { step.jf });
        at += 1 + match step.code {
            // ld [k]; and #k; ja k; jeq, jgt, jge; ret k
            0x20 => {
                held = words[step.k as usize / 4];
                0
            }
            0x54 => {
                held &= step.k;
                0
            }
            0x05 => step.k as usize,
            0x15 => jump(held == step.k),
            0x25 => jump(held > step.k),
            0x35 => jump(held >= step.k),
            0x06 => return step.k,
            other => panic!("an instruction that is not known here: {other:#x}"),
        };
    }
}

fn here() -> (TargetArch, u32) {
    let arch = TargetArch::try_from(std::env::consts::ARCH).expect("one of those that are known");
    (
        arch,
        if cfg!(target_arch = "x86_64") {
            X86
        } else {
            ARM64
        },
    )
}

#[test]
fn each_call_of_the_list_is_refused_and_what_a_reader_needs_is_not() {
    let (arch, number) = here();
    let program = filter(arch).expect("a program");
    assert!(program.len() < 4096, "more than the kernel takes");
    for call in REFUSED.iter().flat_map(|(_, calls)| calls.iter()) {
        assert_eq!(decided(&program, number, *call, &[]), DENIED, "{call}");
    }
    for call in [
        libc::SYS_openat,
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_write,
        libc::SYS_mmap,
        libc::SYS_renameat2,
        libc::SYS_unlinkat,
        libc::SYS_fallocate,
        libc::SYS_flock,
        libc::SYS_futex,
        libc::SYS_clone,
        libc::SYS_prlimit64,
        libc::SYS_ioctl,
    ] {
        assert_eq!(decided(&program, number, call, &[]), ALLOWED, "{call}");
    }
}

#[test]
fn nothing_is_typed_into_the_terminal() {
    let (arch, number) = here();
    let program = filter(arch).expect("a program");
    let ioctl = |request: u64| decided(&program, number, libc::SYS_ioctl, &[0, request, 0]);
    // TIOCSTI, TIOCLINUX, TIOCSETD (asm-generic/ioctls.h), FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR.
    for request in [0x5412, 0x541c, 0x5423, 0x4008_6602, 0x401c_5820] {
        assert_eq!(ioctl(request), DENIED, "{request:#x}");
        // The kernel reads the lower half alone.
        assert_eq!(ioctl(request | 1 << 32), DENIED, "{request:#x}");
    }
    // A terminal's width, and whether it is one: TIOCGWINSZ, TCGETS.
    assert_eq!(ioctl(0x5413), ALLOWED);
    assert_eq!(ioctl(0x5401), ALLOWED);
}

#[test]
fn limits_are_set_for_this_process_alone() {
    let (arch, number) = here();
    let program = filter(arch).expect("a program");
    let limits = |process| decided(&program, number, libc::SYS_prlimit64, &[process, 2]);
    assert_eq!(limits(0), ALLOWED);
    assert_eq!(limits(1), DENIED);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn numbers_of_x32_are_no_way_around() {
    let (arch, number) = here();
    let program = filter(arch).expect("a program");
    const BIT: i64 = 0x4000_0000;
    // execve, ptrace, ioctl, process_vm_writev and execveat of x32, then what has one number for both.
    for call in [520, 521, 514, 540, 545] {
        assert_eq!(decided(&program, number, call, &[]), DENIED, "{call}");
        assert_eq!(decided(&program, number, call | BIT, &[]), DENIED, "{call}");
    }
    for call in [libc::SYS_socket, libc::SYS_chmod, libc::SYS_iopl] {
        assert_eq!(decided(&program, number, call | BIT, &[]), DENIED, "{call}");
    }
    // And calls of another architecture end the process.
    assert_eq!(decided(&program, 0x4000_0003, 11, &[]), 0x8000_0000);
}
