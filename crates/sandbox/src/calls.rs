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
            libc::SYS_move_pages,
            libc::SYS_migrate_pages,
        ],
    ),
    // Landlock knows none of these: they change a file that may only be read.
    (
        "whose a file is and what it may",
        &[
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
            libc::SYS_lsetxattr,
            libc::SYS_fsetxattr,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
            libc::SYS_fremovexattr,
            FCHMODAT2,
            SETXATTRAT,
            REMOVEXATTRAT,
            FILE_SETATTR,
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
            OPEN_TREE_ATTR,
            libc::SYS_vhangup,
            libc::SYS_setdomainname,
            libc::SYS_fspick,
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

/// Calls that libc has no number of for every target. From 424 on, numbers are those of all architectures.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;

/// The bit by which programs of x86-64 call the same system calls as x32 programs do (`__X32_SYSCALL_BIT`,
/// `arch/x86/include/uapi/asm/unistd.h`): a kernel that has those would let them through. From 512 to 547 x32 has
/// numbers of its own (`arch/x86/entry/syscalls/syscall_64.tbl`), of execve, ptrace and ioctl among others, and
/// nothing of ours uses one, with the bit or without. And what x86-64 alone has: ports, older calls for files.
#[cfg(target_arch = "x86_64")]
mod of_x86 {
    pub(super) const BITS: &[i64] = &[0, 0x4000_0000];
    pub(super) const OF_X32: std::ops::Range<i64> = 512..548;
    pub(super) const MORE: &[i64] = &[
        libc::SYS_kexec_file_load,
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ];
}
#[cfg(not(target_arch = "x86_64"))]
mod of_x86 {
    pub(super) const BITS: &[i64] = &[0];
    pub(super) const OF_X32: std::ops::Range<i64> = 0..0;
    /// kexec_file_load, which libc has no name for everywhere.
    pub(super) const MORE: &[i64] = &[294];
}

/// Requests of ioctl(2) on what is open already. By `TIOCSTI` and parts of `TIOCLINUX` a process types into the
/// terminal that it was started from, and what it types, the shell runs; `TIOCSETD` loads a line discipline
/// (`include/uapi/asm-generic/ioctls.h`); `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR` change what a file may
/// (`include/uapi/linux/fs.h`).
const REQUESTS: &[u64] = &[0x5412, 0x541c, 0x5423, 0x4008_6602, 0x401c_5820];

/// Returns the numbers that are refused, each with what it is refused for: nothing means always.
pub(crate) fn rules() -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let calls = REFUSED.iter().flat_map(|(_, calls)| calls.iter());
    let calls = calls.chain(of_x86::MORE).copied().chain(of_x86::OF_X32);
    let all = calls.flat_map(|call| of_x86::BITS.iter().map(move |bit| call | *bit));
    let mut rules: Vec<(i64, Vec<SeccompRule>)> = all.map(|call| (call, Vec::new())).collect();
    let is = |argument, how, value| {
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            how,
            value,
        )?])
    };
    let requests = REQUESTS
        .iter()
        .map(|request| is(1, SeccompCmpOp::Eq, *request));
    rules.push((libc::SYS_ioctl, requests.collect::<Result<_, _>>()?));
    // Limits of other processes; its own this one sets.
    for bit in of_x86::BITS {
        let other = is(0, SeccompCmpOp::Ne, 0)?;
        rules.push((libc::SYS_prlimit64 | *bit, vec![other]));
    }
    Ok(rules)
}
