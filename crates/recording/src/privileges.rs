//! What the recorder may do, given away as soon as it is not needed any more.

use std::io;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// What is still to be done when everything is open, and takes a privilege.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptPrivileges {
    /// Probes are to be removed: a file of tracefs is written.
    pub probes: bool,
    /// Programs in the kernel are to be started, paused and asked.
    pub programs: bool,
    /// Events are to be opened again and again.
    pub windows: bool,
    /// Folders are to be made, maybe where they belong to another user.
    pub folders: bool,
    /// Mappings of other users' processes are to be read.
    pub mappings: bool,
}

/// Gives all capabilities away that are not needed any more, those that a started program would inherit too. Enabling,
/// reading and pausing events takes none: that the files are open is enough.
///
/// A program that root starts has root's capabilities again, by capabilities(7); one that another user starts has none.
///
/// This is before there is a second thread: capabilities are a thread's own. Returns a remark where they cannot be
/// given away: recording works all the same.
pub fn give_away(later: KeptPrivileges) -> Option<String> {
    let mut keep = CapabilitySet::empty();
    keep.set(CapabilitySet::DAC_OVERRIDE, later.probes || later.folders);
    keep.set(CapabilitySet::SYS_PTRACE, later.mappings);
    // Before Linux 5.8 root's own.
    let has_perfmon = capability_is_in_bounding_set(CapabilitySet::PERFMON) == Ok(true);
    keep.set(CapabilitySet::PERFMON, later.windows);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let of_programs = later.programs && bpf_asks_each_time(&release);
    keep.set(CapabilitySet::BPF, of_programs);
    let old = (later.windows || of_programs) && !has_perfmon;
    keep.set(CapabilitySet::SYS_ADMIN, old);
    let given = capabilities(None).and_then(|has| {
        let sets = CapabilitySets {
            effective: has.effective & keep,
            permitted: has.permitted & keep,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, sets)
    });
    let why = given.err();
    why.map(|error| format!("capabilities cannot be given away: {error}"))
}

/// Returns whether a kernel of this release looks at CAP_BPF at each call of bpf(2) where
/// kernel.unprivileged_bpf_disabled is set, and not only where something is made: before 5.19 (commit c8644cd0efe7).
fn bpf_asks_each_time(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) < (5, 19),
        _ => true,
    }
}

/// Becomes another user for good, where this is root and that is not, and gives all capabilities away. From then on no
/// program that is started can have more.
///
/// This is before there is a second thread: whose it is, is a thread's own too.
///
/// # Errors
///
/// Where any of it fails: who goes on listens to others with more than it needs.
pub fn give_away_all((user, group): (u32, u32)) -> io::Result<()> {
    if geteuid().is_root() && user != 0 {
        set_thread_groups(&[])?;
        let group = Gid::from_raw(group);
        set_thread_res_gid(group, group, group)?;
        let user = Uid::from_raw(user);
        set_thread_res_uid(user, user, user)?;
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)?;
    set_no_new_privs(true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_5_19_ask_each_time() {
        for release in ["5.10.0-30-amd64", "5.15.0-91-generic", "4.19.1", "odd"] {
            assert!(bpf_asks_each_time(release), "{release}");
        }
        for release in ["5.19.0", "6.1.0-57-arm64", "6.18.44-fc-v782"] {
            assert!(!bpf_asks_each_time(release), "{release}");
        }
    }
}
