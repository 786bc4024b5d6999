//! Why nothing can be counted here, a sentence each.

use std::io;
use std::path::PathBuf;

/// Why counting could not begin, or went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// tracefs is nowhere.
    #[error(
        "tracefs is not mounted: expected it at /sys/kernel/tracing; mount it with 'mount -t tracefs nodev \
         /sys/kernel/tracing'"
    )]
    NoTracefs,
    /// tracefs is there, and this user may not look into it.
    #[error(
        "{}: this user may not read it, so the kernel's events cannot be named: count as root, or let a group of this \
         user read it, as root: 'mount -o remount,gid=GROUP,mode=750 {}'",
        .0.display(),
        .0.display()
    )]
    ClosedTracefs(PathBuf),
    /// The kernel has no events of KVM.
    #[error(
        "the kernel has no KVM events ({0} is missing): load the module kvm_intel or kvm_amd, or start a VM"
    )]
    NoKvm(PathBuf),
    /// A file of tracefs cannot be read.
    #[error("{path}: {error}; reading the formats of events needs root")]
    Format {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An event's format is not one that is understood.
    #[error("{event}: its format has no field {field}, so this kernel's exits cannot be read")]
    Field {
        /// The event.
        event: &'static str,
        /// What is missing.
        field: &'static str,
    },
    /// The caller has not the capabilities.
    #[error(
        "BPF programs need root or the capabilities CAP_BPF and CAP_PERFMON, which this process does not have"
    )]
    NoPermission,
    /// The kernel forbids BPF though the caller has what it takes.
    #[error("this kernel does not allow BPF programs that read its events ({0})")]
    NotAllowed(String),
    /// Anything else that the kernel or the loader said.
    #[error("{0}")]
    Bpf(String),
}

impl LiveError {
    /// Returns what an error of the loader means. `what` was tried; `privileged` says whether the caller has the
    /// capabilities that it takes.
    pub(crate) fn of(
        what: &str,
        error: &(dyn std::error::Error + 'static),
        privileged: bool,
    ) -> LiveError {
        let (text, code) = words::causes(error);
        match code {
            Some(libc::EPERM | libc::EACCES) if !privileged => LiveError::NoPermission,
            Some(libc::EPERM | libc::ENOSYS) => LiveError::NotAllowed(format!("{what}: {text}")),
            _ => LiveError::Bpf(format!("{what}: {text}")),
        }
    }
}
