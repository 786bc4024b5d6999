//! Why the kernel refuses, and what to do: errno(3) in the words of whoever records.

use std::fs;
use std::io;

/// What a kernel without an event may be said.
pub(crate) fn no_event(system: &str) -> String {
    match system {
        "kvm" => "this kernel has no such event, or its KVM module is not loaded".to_owned(),
        _ => "this kernel has no such event".to_owned(),
    }
}

fn setting(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Says why an event could not be opened.
pub(crate) fn not_opened(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let paranoid = setting("/proc/sys/kernel/perf_event_paranoid");
            let paranoid = paranoid.unwrap_or_else(|| "unknown".to_owned());
            format!(
                "permission denied: run it as root, or with CAP_PERFMON where kernel.perf_event_paranoid is 2 or less \
                 (it is {paranoid})"
            )
        }
        _ => match error.raw_os_error() {
            // ENFILE and EMFILE have no kind of their own.
            Some(23 | 24) => format!("{error}: raise the limit of open files with 'ulimit -n'"),
            _ => error.to_string(),
        },
    }
}

/// Says why a counter could not be opened.
pub(crate) fn not_counted(error: &io::Error) -> String {
    /// `ENOENT`, `EOPNOTSUPP`.
    const NO_SUCH_EVENT: [i32; 2] = [2, 95];
    match error.raw_os_error() {
        Some(number) if NO_SUCH_EVENT.contains(&number) => {
            "this machine's processor does not count it, or as a virtual machine it has no PMU"
                .to_owned()
        }
        _ => not_opened(error),
    }
}

/// Says why a ring could not be made.
pub(crate) fn no_ring(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{error}: more memory than kernel.perf_event_mlock_kb lets this user lock; take smaller rings with --ring, \
             or record as root"
        ),
        _ => format!("{error}: take smaller rings with --ring"),
    }
}
