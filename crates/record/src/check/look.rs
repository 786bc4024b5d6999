//! Asks the machine.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rings::{EventSource, RingAttr, RingEvent};
use rustix::fs::{Access as Mode, AtFlags, CWD, accessat, statvfs};
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::{CheckRequest, HostChecks, TracefsAccess, User};
use crate::{PlannedEvent, RecordError, RecordPlan, Tracefs, machine, opened};

/// Bytes of /proc/kallsyms that are looked at: its first lines say whether it shows addresses.
const SYMBOLS: u64 = 4096;

/// Asks the machine what it lets a recorder do. Nothing is changed.
pub fn look(asked: &CheckRequest) -> HostChecks {
    let tracefs = Tracefs::find();
    let root = tracefs.as_ref().ok().map(|found| found.root().to_owned());
    let tracefs = match tracefs {
        // The folder may be open and its files not.
        Ok(found) => match found.read(Path::new("events/header_page")) {
            Err(RecordError::Closed { path }) => TracefsAccess::Denied(path),
            _ => TracefsAccess::Yes(found.root().to_owned()),
        },
        Err(RecordError::Closed { path }) => TracefsAccess::Denied(path),
        Err(_) => TracefsAccess::Missing,
    };
    let probes = |name: &str| {
        let file = root.as_ref().map(|root| root.join(name));
        file.map_or(TracefsAccess::Missing, writable)
    };
    let plan = RecordPlan {
        ring_bytes: asked.ring_bytes,
        ..RecordPlan::default()
    };
    let on_line = machine::cpus("online");
    let open = RingEvent::open(
        &RingAttr::each(EventSource::Nothing),
        on_line
            .iter()
            .next()
            .map_or(0, |cpu| i32::try_from(cpu).unwrap_or(0)),
    );
    let limit = getrlimit(Resource::Nofile);
    // Those that are there; all of them where that cannot be looked up.
    let has = |one: &&PlannedEvent| {
        let folder = |root: &PathBuf| root.join("events").join(&one.system).join(&one.name);
        root.as_ref().is_none_or(|root| folder(root).exists())
    };
    let events = asked.events.iter().filter(has).count();
    HostChecks {
        user: user(),
        paranoid: setting("/proc/sys/kernel/perf_event_paranoid"),
        refused: open.err().map(|error| error.to_string()),
        kvm: root
            .as_ref()
            .is_some_and(|root| root.join("events/kvm/kvm_exit").exists()),
        tracefs,
        kprobes: probes("kprobe_events"),
        uprobes: probes("uprobe_events"),
        addresses: addresses(),
        kptr_restrict: setting("/proc/sys/kernel/kptr_restrict"),
        mlock_kib: setting("/proc/sys/kernel/perf_event_mlock_kb"),
        memlock_bytes: getrlimit(Resource::Memlock).current,
        cpus: on_line.len() as u64,
        ring_bytes: plan.ring(on_line.len(), machine::memory_kib()),
        page_bytes: rings::page_size(),
        files: opened::files(events, on_line.len()),
        files_now: limit.current.unwrap_or(u64::MAX),
        files_most: limit.maximum.unwrap_or(u64::MAX),
        // The setting is there where the system call is.
        bpf: Path::new("/proc/sys/kernel/unprivileged_bpf_disabled").exists(),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        sysfs: Path::new("/sys/kernel").exists(),
        confidential: fs::read_to_string("/sys/kernel/security/lockdown")
            .is_ok_and(|text| text.contains("[confidentiality]")),
        writable: may(&asked.folder, Mode::WRITE_OK | Mode::EXEC_OK).is_ok(),
        free_bytes: statvfs(&asked.folder)
            .ok()
            .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        folder: asked.folder.clone(),
        // A link takes its name too, wherever it leads.
        taken: asked
            .names
            .iter()
            .find(|name| name.symlink_metadata().is_ok())
            .cloned(),
    }
}

/// Asks whether the effective user may use a file so.
fn may(path: &Path, how: Mode) -> io::Result<()> {
    Ok(accessat(CWD, path, how, AtFlags::EACCESS)?)
}

fn writable(path: PathBuf) -> TracefsAccess {
    match may(&path, Mode::WRITE_OK) {
        Ok(()) => TracefsAccess::Yes(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => TracefsAccess::Missing,
        Err(_) => TracefsAccess::Denied(path),
    }
}

fn setting<N: std::str::FromStr>(path: &str) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn addresses() -> bool {
    let mut text = Vec::new();
    let read =
        File::open("/proc/kallsyms").and_then(|file| file.take(SYMBOLS).read_to_end(&mut text));
    let mut lines = text.split(|byte| *byte == b'\n');
    // Symbols of each CPU's own data begin at 0.
    read.is_ok()
        && lines.any(|line| {
            line.iter()
                .take_while(|byte| **byte != b' ')
                .any(|digit| *digit != b'0')
        })
}

fn user() -> User {
    let has = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    User {
        uid: geteuid().as_raw(),
        sys_admin: has.contains(CapabilitySet::SYS_ADMIN),
        perfmon: has.contains(CapabilitySet::PERFMON),
        bpf: has.contains(CapabilitySet::BPF),
        ipc_lock: has.contains(CapabilitySet::IPC_LOCK),
        sys_resource: has.contains(CapabilitySet::SYS_RESOURCE),
    }
}
