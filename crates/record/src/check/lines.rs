//! What was found, as sentences.

use super::{CheckLine, HostChecks, TracefsAccess};

/// Bytes that a disk should have room for: some tens of seconds of a busy host.
const ROOM: u64 = 256 << 20;

const NOTHING: &str = "nothing can be recorded";
const NO_TOP: &str = "'trapline top' counts out of events, which costs more, and 'trapline record' records all the \
    same";

/// Returns a line for each thing that recording takes, those first without which there is none. What stands in tracefs
/// is left out where that cannot be read.
pub fn lines(found: &HostChecks) -> Vec<CheckLine> {
    let mut lines = vec![events(found), tracefs(found), folder(found)];
    if matches!(found.tracefs, TracefsAccess::Yes(_)) {
        lines.extend([kvm(found), kprobes(found), uprobes(found)]);
    }
    lines.extend([
        symbols(found),
        memory(found),
        files(found),
        bpf(found),
        btf(found),
    ]);
    lines
}

fn good(name: &'static str, found: impl Into<String>) -> CheckLine {
    CheckLine {
        name,
        ok: true,
        needed: false,
        found: found.into(),
        remedy: None,
        without: None,
    }
}

fn bad(
    name: &'static str,
    found: impl Into<String>,
    remedy: impl Into<String>,
    without: impl Into<String>,
) -> CheckLine {
    CheckLine {
        name,
        ok: false,
        needed: false,
        found: found.into(),
        remedy: Some(remedy.into()),
        without: Some(without.into()),
    }
}

fn needed(line: CheckLine) -> CheckLine {
    CheckLine {
        needed: true,
        ..line
    }
}

fn events(found: &HostChecks) -> CheckLine {
    let user = &found.user;
    let name = "events";
    let Some(paranoid) = found.paranoid else {
        return needed(bad(
            name,
            "this kernel has no perf events",
            "it takes one that was built with CONFIG_PERF_EVENTS",
            NOTHING,
        ));
    };
    let allowed = user.perfmon || user.sys_admin || paranoid < 0;
    match &found.refused {
        _ if !allowed => needed(bad(
            name,
            format!(
                "kernel.perf_event_paranoid is {paranoid}, and this process has no CAP_PERFMON"
            ),
            match paranoid > 2 {
                true => {
                    "run it as root, give it CAP_PERFMON and 'sysctl kernel.perf_event_paranoid=2' (kernels of Debian \
                     and Ubuntu do not look at CAP_PERFMON above that), or 'sysctl kernel.perf_event_paranoid=-1' for \
                     all users"
                }
                false => {
                    "run it as root, give it CAP_PERFMON, or 'sysctl kernel.perf_event_paranoid=-1' for all users"
                }
            },
            NOTHING,
        )),
        Some(_) if paranoid > 2 && !user.sys_admin => needed(bad(
            name,
            format!(
                "kernel.perf_event_paranoid is {paranoid}, where kernels of Debian and Ubuntu let CAP_SYS_ADMIN alone \
                 open events"
            ),
            "run it as root, or 'sysctl kernel.perf_event_paranoid=2', where CAP_PERFMON is enough",
            NOTHING,
        )),
        Some(why) => needed(bad(
            name,
            format!(
                "the kernel refuses to open an event though this process has the capability: {why}"
            ),
            "a container's seccomp profile may forbid perf_event_open, and lockdown the rest: record on the host \
             itself",
            NOTHING,
        )),
        None => {
            let by = match (user.uid, user.perfmon || user.sys_admin) {
                (0, true) => "as root",
                (_, true) => "by CAP_PERFMON",
                _ => "by kernel.perf_event_paranoid",
            };
            needed(good(name, format!("events can be opened, {by}")))
        }
    }
}

fn tracefs(found: &HostChecks) -> CheckLine {
    let name = "tracefs";
    needed(match &found.tracefs {
        TracefsAccess::Yes(path) => good(name, format!("{} can be read", path.display())),
        _ if found.confidential => bad(
            name,
            "the kernel is locked down for confidentiality, and lets nobody read its events",
            "boot it with lockdown=integrity, or without lockdown= on its command line",
            NOTHING,
        ),
        TracefsAccess::Denied(path) => bad(
            name,
            format!("{} is there, and this user may not read it", path.display()),
            format!(
                "let a group of this user read it, as root: 'mount -o remount,gid=GROUP,mode=750 {}'",
                path.display()
            ),
            NOTHING,
        ),
        TracefsAccess::Missing if !found.sysfs => bad(
            name,
            "there is no /sys here, as in a container",
            "run it on the host itself, or, as root of a privileged container: 'mount -t sysfs nodev /sys', and then \
             'mount -t tracefs nodev /sys/kernel/tracing'",
            NOTHING,
        ),
        TracefsAccess::Missing => bad(
            name,
            "tracefs is not mounted",
            "as root: 'mount -t tracefs nodev /sys/kernel/tracing'",
            NOTHING,
        ),
    })
}

fn folder(found: &HostChecks) -> CheckLine {
    let name = "folder";
    let shown = found.folder.display();
    if let Some(taken) = &found.taken {
        return needed(bad(
            name,
            format!("{} is there already", taken.display()),
            "name another folder with -o, or remove it",
            NOTHING,
        ));
    }
    let line = match (found.writable, found.free_bytes) {
        (false, _) => bad(
            name,
            format!("no folder can be made in {shown}"),
            "name another place with -o",
            NOTHING,
        ),
        (true, Some(free)) if free < ROOM => {
            return bad(
                name,
                format!("{shown} has room for {} MiB", free >> 20),
                "name a place with more with -o",
                "the recording ends where the disk is full, and what was written until then can be read",
            );
        }
        (true, Some(free)) => good(name, format!("{shown} has room for {} MiB", free >> 20)),
        (true, None) => good(name, format!("a folder can be made in {shown}")),
    };
    needed(line)
}

fn kvm(found: &HostChecks) -> CheckLine {
    match found.kvm {
        true => good("kvm", "the kernel has KVM's events"),
        false => bad(
            "kvm",
            "the kernel has no events of KVM",
            "load its module: 'modprobe kvm_intel' or 'modprobe kvm_amd'; on arm64 KVM is a part of the kernel",
            "switches, wake-ups and call chains of the host are recorded (--for sched, --for stacks)",
        ),
    }
}

fn probes(
    name: &'static str,
    access: &TracefsAccess,
    [file, option]: [&str; 2],
    without: &str,
) -> CheckLine {
    match access {
        TracefsAccess::Yes(path) => good(name, format!("{} can be written", path.display())),
        TracefsAccess::Denied(path) => bad(
            name,
            format!(
                "{} is there, and this user may not write it",
                path.display()
            ),
            "run it as root",
            without,
        ),
        TracefsAccess::Missing => bad(
            name,
            format!("tracefs has no {file}"),
            format!("it takes a kernel that was built with {option}"),
            without,
        ),
    }
}

fn kprobes(found: &HostChecks) -> CheckLine {
    probes(
        "kprobes",
        &found.kprobes,
        ["kprobe_events", "CONFIG_KPROBE_EVENTS"],
        "paths begin at KVM's own events: irqfd_wakeup, irqfd_inject, tun_get_user and handle_tx are not recorded, and \
         --probe takes no functions of the kernel",
    )
}

fn uprobes(found: &HostChecks) -> CheckLine {
    probes(
        "uprobes",
        &found.uprobes,
        ["uprobe_events", "CONFIG_UPROBE_EVENTS"],
        "only --probe of programs does not work",
    )
}

fn symbols(found: &HostChecks) -> CheckLine {
    if found.addresses {
        return good("symbols", "/proc/kallsyms shows addresses");
    }
    let setting = match found.kptr_restrict {
        Some(value) => format!(" (kernel.kptr_restrict is {value})"),
        None => String::new(),
    };
    bad(
        "symbols",
        format!("/proc/kallsyms shows this user no addresses{setting}"),
        "record as root or with CAP_SYSLOG, after 'sysctl kernel.kptr_restrict=1' where it is 2",
        "functions of the kernel have no names in call chains, and all else is recorded",
    )
}

fn memory(found: &HostChecks) -> CheckLine {
    let name = "memory";
    let wanted = found.ring_bytes / 1024;
    let unlimited = found.user.ipc_lock || found.paranoid.is_some_and(|paranoid| paranoid < 0);
    let (false, Some(limit)) = (unlimited, found.mlock_kib) else {
        return good(name, format!("each CPU can have a ring of {wanted} KiB"));
    };
    let Some(memlock) = found.memlock_bytes else {
        return good(name, format!("each CPU can have a ring of {wanted} KiB"));
    };
    // Each ring has a page before it. What all of them take beyond the first limit is taken off the second.
    let page = found.page_bytes as u64 / 1024;
    let room = limit.saturating_add(memlock / 1024 / found.cpus.max(1));
    let most = room.saturating_sub(page);
    let most = most.checked_ilog2().map_or(0, |bits| 1u64 << bits);
    if most >= wanted as u64 {
        return good(name, format!("each CPU can have a ring of {wanted} KiB"));
    }
    bad(
        name,
        format!(
            "kernel.perf_event_mlock_kb is {limit} and 'ulimit -l' {}, too little for rings of {wanted} KiB",
            memlock / 1024
        ),
        format!(
            "'sysctl kernel.perf_event_mlock_kb={}', or give the process CAP_IPC_LOCK",
            wanted as u64 + page
        ),
        format!("rings have {most} KiB at most, and lose events sooner"),
    )
}

fn files(found: &HostChecks) -> CheckLine {
    let HostChecks {
        files,
        files_now,
        files_most,
        ..
    } = *found;
    let enough = files_most >= files || found.user.sys_resource;
    if enough {
        return good("files", format!("{files} files can be opened"));
    }
    bad(
        "files",
        format!(
            "{files} files are opened, one for each event on each CPU, and this process may open {}",
            files_now.max(files_most)
        ),
        format!("'ulimit -n {files}', as root, or LimitNOFILE= of its service"),
        "fewer events can be asked for: --for exits",
    )
}

fn bpf(found: &HostChecks) -> CheckLine {
    let user = &found.user;
    if !found.bpf {
        return bad(
            "bpf",
            "this kernel takes no BPF programs",
            "it takes one that was built with CONFIG_BPF_SYSCALL",
            NO_TOP,
        );
    }
    match user.sys_admin || user.bpf && user.perfmon {
        true => good("bpf", "BPF programs can be loaded, for 'trapline top'"),
        false => bad(
            "bpf",
            "BPF programs need root or the capabilities CAP_BPF and CAP_PERFMON, which this process does not have",
            "run it as root, or give it both",
            NO_TOP,
        ),
    }
}

fn btf(found: &HostChecks) -> CheckLine {
    match found.btf {
        true => good("btf", "the kernel describes its types, for 'trapline top'"),
        false if !found.sysfs => bad(
            "btf",
            "there is no /sys here, and so no /sys/kernel/btf/vmlinux",
            "'mount -t sysfs nodev /sys', or run it on the host itself",
            "'trapline top' reads the scheduler's events as records, which costs more",
        ),
        false => bad(
            "btf",
            "/sys/kernel/btf/vmlinux is missing",
            "it takes a kernel that was built with CONFIG_DEBUG_INFO_BTF",
            "'trapline top' reads the scheduler's events as records, which costs more",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::check::User;

    /// A machine where everything is there, and its user root.
    fn whole() -> HostChecks {
        let file = |name: &str| TracefsAccess::Yes(PathBuf::from("/sys/kernel/tracing").join(name));
        HostChecks {
            user: User {
                uid: 0,
                sys_admin: true,
                perfmon: true,
                bpf: true,
                ipc_lock: true,
                sys_resource: true,
            },
            paranoid: Some(2),
            refused: None,
            tracefs: TracefsAccess::Yes(PathBuf::from("/sys/kernel/tracing")),
            kvm: true,
            kprobes: file("kprobe_events"),
            uprobes: file("uprobe_events"),
            addresses: true,
            kptr_restrict: Some(1),
            mlock_kib: Some(516),
            memlock_bytes: Some(64 << 10),
            cpus: 2,
            ring_bytes: 4 << 20,
            page_bytes: 4096,
            files: 500,
            files_now: 1024,
            files_most: 524_288,
            bpf: true,
            btf: true,
            sysfs: true,
            confidential: false,
            folder: PathBuf::from("/home/me"),
            taken: None,
            writable: true,
            free_bytes: Some(8 << 30),
        }
    }

    /// Returns the lines that fail, by name.
    fn failing(found: &HostChecks) -> Vec<(&'static str, String)> {
        let lines = lines(found).into_iter().filter(|line| !line.ok);
        lines.map(|line| (line.name, line.sentence())).collect()
    }

    #[test]
    fn nothing_fails_where_everything_is_there() {
        assert_eq!(failing(&whole()), []);
        assert_eq!(lines(&whole()).len(), 11);
    }

    #[test]
    fn no_container_without_sys_gets_the_advice_to_build_a_kernel() {
        let mut found = whole();
        (found.sysfs, found.btf, found.tracefs) = (false, false, TracefsAccess::Missing);
        let failing = failing(&found);
        assert_eq!(failing.len(), 2, "{failing:?}");
        for (_, sentence) in &failing {
            assert!(sentence.contains("there is no /sys here"), "{sentence}");
            assert!(sentence.contains("mount -t sysfs nodev /sys"), "{sentence}");
        }
    }

    #[test]
    fn no_kernel_that_is_locked_down_gets_the_advice_to_mount() {
        for tracefs in [
            TracefsAccess::Missing,
            TracefsAccess::Denied(PathBuf::from("/sys/kernel/tracing")),
        ] {
            let mut found = whole();
            (found.confidential, found.tracefs) = (true, tracefs);
            let failing = failing(&found);
            assert!(failing[0].1.contains("lockdown=integrity"), "{failing:?}");
            assert!(!failing[0].1.contains("mount"), "{failing:?}");
        }
    }

    #[test]
    fn a_capability_that_is_not_looked_at_is_no_remedy_by_itself() {
        let mut found = whole();
        found.user.sys_admin = false;
        found.user.perfmon = false;
        found.user.uid = 1000;
        for (paranoid, both) in [(2, false), (3, true), (4, true)] {
            found.paranoid = Some(paranoid);
            let failing = failing(&found);
            let events = failing.iter().find(|(name, _)| *name == "events");
            let sentence = &events.expect("events cannot be opened").1;
            let says = sentence.contains("give it CAP_PERFMON and 'sysctl");
            assert_eq!(says, both, "{sentence}");
        }
    }

    #[test]
    fn each_thing_that_is_missing_is_one_line_with_its_remedy() {
        let denied = || TracefsAccess::Denied(PathBuf::from("/sys/kernel/tracing/x"));
        type Break = fn(&mut HostChecks);
        let cases: [(Break, &str, &str); 11] = [
            (|f| f.paranoid = None, "events", "CONFIG_PERF_EVENTS"),
            (
                |f| f.refused = Some("EPERM".to_owned()),
                "events",
                "seccomp",
            ),
            (|f| f.writable = false, "folder", "-o"),
            (
                |f| f.taken = Some(PathBuf::from("slow")),
                "folder",
                "slow is there already",
            ),
            (|f| f.free_bytes = Some(5 << 20), "folder", "room for 5 MiB"),
            (|f| f.kvm = false, "kvm", "modprobe kvm_amd"),
            (
                |f| f.kprobes = TracefsAccess::Missing,
                "kprobes",
                "CONFIG_KPROBE_EVENTS",
            ),
            (
                |f| f.uprobes = TracefsAccess::Missing,
                "uprobes",
                "CONFIG_UPROBE_EVENTS",
            ),
            (
                |f| f.addresses = false,
                "symbols",
                "kernel.kptr_restrict is 1",
            ),
            (|f| f.bpf = false, "bpf", "counts out of events"),
            (|f| f.btf = false, "btf", "CONFIG_DEBUG_INFO_BTF"),
        ];
        for (change, name, said) in cases {
            let mut found = whole();
            change(&mut found);
            let failing = failing(&found);
            let [(failed, sentence)] = failing.as_slice() else {
                panic!("{name}: {failing:?}");
            };
            assert_eq!(*failed, name);
            assert!(
                sentence.contains(said) && sentence.contains("; without it "),
                "{sentence}"
            );
        }
        let mut found = whole();
        (found.kprobes, found.uprobes) = (denied(), denied());
        let failing = failing(&found);
        assert!(
            failing
                .iter()
                .all(|(_, text)| text.contains("run it as root")),
            "{failing:?}"
        );
        assert_eq!(failing.len(), 2);
    }

    #[test]
    fn tracefs_that_is_roots_own_is_said_with_the_way_to_share_it() {
        let mut found = whole();
        found.tracefs = TracefsAccess::Denied(PathBuf::from("/sys/kernel/tracing"));
        found.kvm = false;
        found.kprobes = TracefsAccess::Missing;
        let failing = failing(&found);
        // Of what is in it nothing is known.
        let names: Vec<_> = failing.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["tracefs"]);
        assert!(
            failing[0]
                .1
                .contains("'mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing'")
        );
        found.tracefs = TracefsAccess::Missing;
        let line = &lines(&found)[1];
        assert!(line.needed && line.sentence().contains("mount -t tracefs nodev"));
    }

    #[test]
    fn an_ordinary_user_missing_what_capabilities_give() {
        let mut found = whole();
        found.user = User {
            uid: 1000,
            ..User::default()
        };
        let names =
            |found: &HostChecks| -> Vec<&str> { failing(found).iter().map(|one| one.0).collect() };
        assert_eq!(names(&found), ["events", "memory", "bpf"]);
        found.user.perfmon = true;
        assert_eq!(names(&found), ["memory", "bpf"]);
        let memory = &lines(&found)[7];
        assert!(
            memory
                .sentence()
                .contains("'sysctl kernel.perf_event_mlock_kb=4100'")
        );
        assert!(memory.sentence().contains("rings have 512 KiB at most"));
        // 4 MiB for each of two CPUs, and their first pages.
        found.memlock_bytes = Some(8 << 20);
        assert_eq!(names(&found), ["bpf"]);
        found.memlock_bytes = Some(4 << 20);
        let memory = &lines(&found)[7];
        assert!(
            memory.sentence().contains("rings have 2048 KiB at most"),
            "{memory:?}"
        );
        // Debian's kernels have a level of their own, at which CAP_PERFMON is not looked at.
        (found.paranoid, found.refused) = (Some(3), Some("EACCES".to_owned()));
        let events = lines(&found)[0].sentence();
        assert!(
            events.contains("'sysctl kernel.perf_event_paranoid=2'"),
            "{events}"
        );
        (found.paranoid, found.refused) = (Some(2), None);
        found.user.bpf = true;
        found.mlock_kib = Some(4100);
        assert_eq!(names(&found), [""; 0]);
        // Without any capability, where the kernel lets everybody.
        found.user = User {
            uid: 1000,
            ..User::default()
        };
        found.paranoid = Some(-1);
        assert_eq!(names(&found), ["bpf"]);
    }

    #[test]
    fn files_may_be_raised_up_to_the_hard_limit_or_beyond_it() {
        let mut found = whole();
        (found.files, found.files_now, found.files_most) = (6000, 1024, 4096);
        assert_eq!(failing(&found), []);
        found.user.sys_resource = false;
        let failing = failing(&found);
        assert_eq!(failing[0].0, "files");
        assert!(
            failing[0].1.contains("'ulimit -n 6000'") && failing[0].1.contains("may open 4096")
        );
        found.files_most = 524_288;
        assert!(lines(&found).iter().all(|line| line.ok));
    }
}
