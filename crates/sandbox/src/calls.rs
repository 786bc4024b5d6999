//! Which system calls are refused.

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// System calls that reading files needs none of, by what they would be used for. Numbers: libc's, of
/// `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
pub const REFUSED: &[(&str, &[libc::c_long])] = &[
    (
        "the network",
        &[
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept,
            libc::SYS_accept4,
        ],
    ),
    ("other programs", &[libc::SYS_execve, libc::SYS_execveat]),
    (
        "other processes",
        &[
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_pidfd_getfd,
            libc::SYS_pidfd_send_signal,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_kcmp,
        ],
    ),
    (
        "the system",
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_open_tree,
            libc::SYS_mount_setattr,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_sethostname,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_clock_adjtime,
            libc::SYS_adjtimex,
            libc::SYS_syslog,
            libc::SYS_quotactl,
            libc::SYS_acct,
        ],
    ),
    (
        "doors into the kernel that had holes",
        &[
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_io_uring_setup,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_open_by_handle_at,
            libc::SYS_name_to_handle_at,
            libc::SYS_personality,
        ],
    ),
];

/// The bit by which programs of x86-64 call the same system calls as x32 programs do (`__X32_SYSCALL_BIT`,
/// `arch/x86/include/uapi/asm/unistd.h`): a kernel that has those would let them through. From 512 on x32 has numbers
/// of its own (`arch/x86/entry/syscalls/syscall_64.tbl`): execve, ptrace, rt_sigqueueinfo, kexec_load,
/// rt_tgsigqueueinfo, process_vm_readv, process_vm_writev, execveat. And what x86-64 alone has: ports.
#[cfg(target_arch = "x86_64")]
mod of_x86 {
    pub(super) const BITS: &[i64] = &[0, X32];
    pub(super) const MORE: &[i64] = &[
        X32 | 520,
        X32 | 521,
        X32 | 524,
        X32 | 528,
        X32 | 536,
        X32 | 539,
        X32 | 540,
        X32 | 545,
        libc::SYS_kexec_file_load,
        libc::SYS_iopl,
        libc::SYS_ioperm,
    ];
    pub(super) const IOCTL: &[i64] = &[libc::SYS_ioctl, X32 | 514];
    const X32: i64 = 0x4000_0000;
}
#[cfg(not(target_arch = "x86_64"))]
mod of_x86 {
    pub(super) const BITS: &[i64] = &[0];
    /// kexec_file_load, which libc has no name for everywhere.
    pub(super) const MORE: &[i64] = &[294];
    pub(super) const IOCTL: &[i64] = &[libc::SYS_ioctl];
}

/// Requests of ioctl(2) by which a process types into the terminal that it was started from (`TIOCSTI`, and parts of
/// `TIOCLINUX`; `include/uapi/asm-generic/ioctls.h`): what it types, the shell runs.
const TYPING: &[u64] = &[0x5412, 0x541c];

/// Returns the numbers that are refused, each with what it is refused for: nothing means always.
pub(crate) fn rules() -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let calls = REFUSED.iter().flat_map(|(_, calls)| calls.iter());
    let all = calls.flat_map(|call| of_x86::BITS.iter().map(move |bit| *call | *bit));
    let all = all.chain(of_x86::MORE.iter().copied());
    let mut rules: Vec<(i64, Vec<SeccompRule>)> = all.map(|call| (call, Vec::new())).collect();
    let is = |argument, how, value| {
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            how,
            value,
        )?])
    };
    for call in of_x86::IOCTL {
        let typing = TYPING
            .iter()
            .map(|request| is(1, SeccompCmpOp::Eq, *request));
        rules.push((*call, typing.collect::<Result<_, _>>()?));
    }
    // Limits of other processes; its own this one sets.
    rules.push((libc::SYS_prlimit64, vec![is(0, SeccompCmpOp::Ne, 0)?]));
    Ok(rules)
}
