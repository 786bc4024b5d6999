//! Which system calls are refused.

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
            libc::SYS_fsmount,
            libc::SYS_open_tree,
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
/// `arch/x86/include/uapi/asm/unistd.h`): a kernel that has those would let them through.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: &[libc::c_long] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const OTHER_NUMBERS: &[libc::c_long] = &[0];

/// Returns all numbers that are refused.
pub(crate) fn numbers() -> impl Iterator<Item = i64> {
    let calls = REFUSED.iter().flat_map(|(_, calls)| calls.iter());
    calls.flat_map(|call| OTHER_NUMBERS.iter().map(move |bit| *call | *bit))
}
