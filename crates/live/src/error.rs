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

/// Returns an error with all causes that it has, and the first of the system's errors among them.
fn causes(error: &(dyn std::error::Error + 'static)) -> (String, Option<i32>) {
    let mut text = error.to_string();
    let mut code = None;
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            code = code.or(io.raw_os_error());
        }
        at = error.source();
        if let Some(cause) = at {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
    }
    // The verifier's log has a line for each instruction: its end says what is wrong.
    const LONGEST: usize = 400;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.len().saturating_sub(LONGEST);
    let cut = (cut..line.len()).find(|&at| line.is_char_boundary(at));
    let short = match cut {
        Some(cut) if cut > 0 => format!(
            "{}... {}",
            line.chars().take(80).collect::<String>(),
            &line[cut..]
        ),
        _ => line,
    };
    (short, code)
}

impl LiveError {
    /// Returns what an error of the loader means. `what` was tried; `privileged` says whether the caller has the
    /// capabilities that it takes.
    pub(crate) fn of(
        what: &str,
        error: &(dyn std::error::Error + 'static),
        privileged: bool,
    ) -> LiveError {
        let (text, code) = causes(error);
        match code {
            Some(libc::EPERM | libc::EACCES) if !privileged => LiveError::NoPermission,
            Some(libc::EPERM | libc::ENOSYS) => LiveError::NotAllowed(format!("{what}: {text}")),
            _ => LiveError::Bpf(format!("{what}: {text}")),
        }
    }
}
