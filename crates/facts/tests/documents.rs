//! trapline's own JSON: what is written is read again, other versions and damage too.

use std::collections::BTreeMap;

use facts::{
    ControlGroup, CountedSums, CpuIdle, DomainStatistics, Facts, FreqPolicy, Host, HostCpu,
    HostNode, Irq, KernelLog, KernelLogLine, LogKind, Policy, ReportedThread, ReportedVcpu,
    ReportedVm, Unreadable, read,
};
use serde_json::{Value, json};

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// A kernel log of one line.
fn logged(printk_ns: Option<u64>, when: Option<&str>) -> KernelLog {
    KernelLog {
        lines: 9,
        counts: BTreeMap::from([(LogKind::SoftLockup, 3)]),
        kept: vec![KernelLogLine {
            kind: LogKind::SoftLockup,
            printk_ns,
            monotonic_ns: printk_ns.map(|ns| ns + 1),
            when: when.map(str::to_owned),
            cpus: cpus("3"),
            tid: Some(1700),
            comm: text("CPU 0/KVM"),
            seconds: Some(22),
            text: "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [CPU 0/KVM:1700]".to_owned(),
        }],
    }
}

fn cpus(list: &str) -> cpuset::CpuSet {
    list.parse().unwrap()
}

/// Facts in which every member is given.
fn full() -> Facts {
    let policy = Policy {
        name: "SCHED_FIFO".to_owned(),
        rt_priority: 50,
        nice: -5,
    };
    let parameters = BTreeMap::from([("halt_poll_ns".to_owned(), "200000".to_owned())]);
    let mut facts = Facts::default();
    let thread = ReportedThread {
        pid: Some(1689),
        comm: text("CPU 0/KVM"),
        affinity: Some(cpus("2")),
        policy: Some(policy.clone()),
    };
    facts.threads.insert(1700, thread);
    facts.threads.insert(1701, ReportedThread::default());
    facts.vms.push(ReportedVm {
        pid: Some(1689),
        name: text("web"),
        node_bytes: BTreeMap::from([(0, 1 << 30), (1, u64::MAX)]),
        memory_policy: text("interleave:0-1"),
        version: text("7.2.13 (Debian 1:7.2+dfsg-7)"),
        uuid: text("8d2f1c9e-0000-0000-0000-000000000001"),
        emulator: text("/usr/bin/qemu-system-x86_64"),
        args: texts(&[
            "/usr/bin/qemu-system-x86_64",
            "-name",
            "guest=wéb \"1\"",
            "",
        ]),
        vhost: vec![1710, 1711],
        cgroups: texts(&["/machine.slice/web.scope"]),
        vcpus: vec![
            ReportedVcpu {
                affinity: Some(cpus("2")),
                policy: Some(policy),
                ..ReportedVcpu::new(0, 1700)
            },
            ReportedVcpu::new(1, 1703),
        ],
    });
    facts.guest_log = Some(KernelLog::default());
    facts.domstats = vec![domstats()];
    facts.mtree = text("address-space: memory\n");
    facts.host = Some(Host {
        machine_id: Some("0123456789abcdef0123456789abcdef".to_owned()),
        kernel: text("6.1.0-18-amd64"),
        arch: text("x86_64"),
        cpu_model: text("AMD EPYC 7713 64-Core Processor"),
        virtualized: Some(false),
        cmdline: text("isolcpus=2-3 quiet"),
        online: Some(cpus("0-3")),
        isolated: Some(cpus("2-3")),
        nohz_full: Some(cpus("")),
        rcu_nocbs: Some(cpus("2-3")),
        cpus: vec![HostCpu {
            cpu: 0,
            package: Some(0),
            die: Some(1),
            core: Some(2),
            node: Some(0),
            siblings: cpus("0,2"),
        }],
        nodes: vec![HostNode {
            node: 0,
            cpus: cpus("0-3"),
            memory_bytes: Some(1 << 40),
            distances: vec![10],
        }],
        cpufreq: vec![FreqPolicy {
            cpus: cpus("0"),
            driver: text("acpi-cpufreq"),
            governor: text("ondemand"),
            governors: texts(&["ondemand", "performance"]),
            min_khz: Some(1_500_000),
            max_khz: Some(3_700_000),
            cur_khz: Some(1_500_000),
            end_khz: Some(3_600_000),
        }],
        cpuidle: Some(CpuIdle {
            driver: text("acpi_idle"),
            governor: text("menu"),
        }),
        qemu: text("8.2.2+ds-1"),
        clocksource: text("tsc"),
        clocksources: texts(&["tsc", "hpet"]),
        hz: Some(250),
        modules: BTreeMap::from([
            ("kvm".to_owned(), parameters),
            ("vhost_net".to_owned(), BTreeMap::new()),
        ]),
        kvm_debug: BTreeMap::from([("exits".to_owned(), u64::MAX)]),
        cgroups: vec![ControlGroup {
            path: "/machine.slice".to_owned(),
            limits: BTreeMap::from([("cpu.max".to_owned(), "30000 100000".to_owned())]),
            counters: BTreeMap::from([("cpu.stat.nr_throttled".to_owned(), 7)]),
            during: BTreeMap::from([("cpu.stat.nr_throttled".to_owned(), 2)]),
        }],
        counters: BTreeMap::from([("vmstat.pswpin".to_owned(), 5)]),
        counters_during: BTreeMap::from([("vmstat.pswpin".to_owned(), 1)]),
        kernel_log: Some(logged(Some(12_000), None)),
        kernel_log_during: Some(logged(None, Some("Nov 27 03:50:11"))),
        irqs: vec![Irq {
            irq: 24,
            name: "eth0-rx-0".to_owned(),
            affinity: Some(cpus("0-3")),
            effective: Some(cpus("1")),
        }],
        thp: text("madvise"),
        ksm: Some(true),
        numa_balancing: Some(false),
        mitigations: BTreeMap::from([("meltdown".to_owned(), "Not affected".to_owned())]),
        smt: text("on"),
        masked: 3,
        unreadable: vec![Unreadable {
            path: "/sys/kernel/debug/kvm".to_owned(),
            why: "permission denied".to_owned(),
        }],
    });
    facts
}

fn domstats() -> DomainStatistics {
    let sums = |name: &str, before, more| CountedSums {
        counters: BTreeMap::from([(name.to_owned(), before)]),
        during: BTreeMap::from([(name.to_owned(), more)]),
    };
    DomainStatistics {
        name: Some("web".to_owned()),
        vcpus_in_all: Some(2),
        all: sums("cpu.time", u64::MAX - 1, 1),
        vcpus: BTreeMap::from([(0, sums("exits", 7, 0)), (11, sums("delay", 7, 3))]),
        disks: BTreeMap::from([("vda".to_owned(), sums("rd.reqs", 7, 1))]),
        nics: BTreeMap::from([("vnet3".to_owned(), sums("rx.drop", 7, 1))]),
    }
}

fn document(facts: &Facts) -> Value {
    json!(facts::write(facts))
}

#[test]
fn what_is_written_is_read_again() {
    let facts = full();
    let document = document(&facts);
    let (again, notes) = read(document.to_string().as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!(again, facts);
    // Nothing is written as null or left out that this test would not see.
    let host = document["host"].as_object().unwrap();
    assert_eq!(host.len(), 33);
    assert!(!document.to_string().contains("null"));
    // What is not recorded is not written, and read as not recorded.
    let mut few = Facts::default();
    few.vms.push(ReportedVm {
        pid: Some(7),
        ..ReportedVm::default()
    });
    few.host = Some(Host {
        hz: Some(100),
        ..Host::default()
    });
    let (again, notes) = read(self::document(&few).to_string().as_bytes());
    assert_eq!((again, notes), (few, Vec::new()));
}

#[test]
fn facts_of_other_versions_are_read() {
    let mut later = document(&full());
    later["facts_version"] = json!(2);
    later["weather"] = json!({"rain": true});
    later["host"]["moon"] = json!([1, 2]);
    let (facts, notes) = read(later.to_string().as_bytes());
    assert_eq!(facts, full());
    assert!(
        notes.len() == 1 && notes[0].contains("facts_version 2; this one knows 1"),
        "{notes:?}"
    );
    // Before there was a host.
    let (facts, notes) = read(br#"{"trapline": "0.1.0", "vms": [{"pid": 7}]}"#);
    assert_eq!((facts.vms.len(), facts.host, notes.len()), (1, None, 0));
    let (facts, notes) = read(br#"{"host": {"clocksource": "hpet"}}"#);
    let host = facts.host.unwrap();
    assert_eq!(
        (host.clocksource.as_deref(), notes.len()),
        (Some("hpet"), 0)
    );
}

#[test]
fn wrong_types_are_noted_with_the_path_of_the_member() {
    for (path, value) in [
        ("facts_version", json!("one")),
        ("host", json!([])),
        ("host.kernel", json!(6.1)),
        ("host.virtualized", json!("no")),
        ("host.isolated", json!("2-x")),
        ("host.online", json!("0-65535:1/2")),
        ("host.nohz_full", json!([1, 2])),
        ("host.hz", json!(-1)),
        ("host.hz", json!(1u64 << 40)),
        ("host.cpus", json!({})),
        ("host.cpus[0]", json!(1)),
        ("host.cpus[0].cpu", json!(null)),
        ("host.cpus[0].siblings", json!(0)),
        ("host.nodes[0].memory_bytes", json!("1 GiB")),
        ("host.nodes[0].distances", json!([10, "far"])),
        ("host.cpufreq[0].cpus", json!("all")),
        ("host.cpufreq[0].governors", json!(["ondemand", 1])),
        ("host.cpuidle", json!("menu")),
        ("host.modules", json!("kvm")),
        ("host.modules.kvm", json!("yes")),
        ("host.modules.kvm.halt_poll_ns", json!(200_000)),
        ("host.kvm_debug.exits", json!("many")),
        ("host.irqs[0].irq", json!("LOC")),
        ("host.irqs[0].effective", json!("1-")),
        ("host.ksm", json!(1)),
        ("host.mitigations.meltdown", json!(true)),
        ("host.unreadable[0].why", json!(13)),
        ("vms[0].args", json!("qemu")),
        ("vms[0].args", json!([1])),
        ("vms[0].vhost", json!([-1])),
        ("vms[0].vcpus[0].id", json!("0")),
        ("vms[0].vcpus[1].tid", json!(null)),
        ("vms[0].vcpus[0].affinity", json!("2,")),
        ("vms[0].vcpus[0].policy.nice", json!("low")),
        ("domstats[0].name", json!(7)),
        ("domstats[0].vcpus.0.counters", json!("7")),
        ("domstats[0].vcpus.0", json!(7)),
        ("domstats[0].disks", json!([])),
        ("threads[0].policy", json!("SCHED_RR")),
        ("threads[0].policy.name", json!(1)),
    ] {
        let mut document = document(&full());
        let mut at = &mut document;
        for part in path.split('.') {
            let (name, index) = part.split_once('[').unwrap_or((part, ""));
            at = &mut at[name];
            if let Some(index) = index.strip_suffix(']') {
                at = &mut at[index.parse::<usize>().unwrap()];
            }
        }
        *at = value;
        let (facts, notes) = read(document.to_string().as_bytes());
        assert_eq!(notes.len(), 1, "{path}: {notes:?}");
        assert!(
            notes[0].contains(&format!(" {path}: expected ")),
            "{path}: {notes:?}"
        );
        // The rest is there.
        assert_eq!(facts.mtree, full().mtree, "{path}");
        assert_eq!(facts == full(), path == "facts_version", "{path}");
    }
}

/// Several documents add up, and those of another host do not.
#[test]
fn documents_add_up() {
    let mut sum = full();
    assert_eq!(sum.merge(full()).len(), 1, "a second text of info mtree");
    assert_eq!(sum, full());
    let pinned = br#"{"vms": [{"pid": 1689, "vcpus": [{"id": 1, "tid": 1703, "affinity": "3"}]}],
        "threads": [{"tid": 1701, "affinity": "0"}]}"#;
    assert_eq!(sum.merge(read(pinned).0), [""; 0]);
    assert_eq!(sum.vms[0].vcpus[1].affinity, Some(cpus("3")));
    assert_eq!(sum.vms[0].vcpus[0].affinity, Some(cpus("2")));
    assert_eq!(sum.threads[&1701].affinity, Some(cpus("0")));
    let other = br#"{"host": {"kernel": "5.10.0", "masked": 1}}"#;
    let before = sum.clone();
    let notes = sum.merge(read(other).0);
    assert!(notes.len() == 1 && notes[0].contains("5.10.0"), "{notes:?}");
    assert_eq!(sum, before);
    // Two documents in one file.
    let two = br#"{"host": {"hz": 100}} {"host": {"hz": 250, "smt": "on"}}"#;
    let (facts, notes) = read(two);
    let host = facts.host.unwrap();
    assert_eq!((host.hz, host.smt.as_deref()), (Some(100), Some("on")));
    assert!(
        notes.len() == 1 && notes[0].contains("another hz"),
        "{notes:?}"
    );
}

#[test]
fn hostile_documents_are_bounded() {
    let many = |entry: &str, count: usize| vec![entry; count].join(",");
    let strides = many("\"0-65535:1/2\"", 100_000);
    let (facts, _) = read(format!(r#"{{"host": {{"clocksources": [{strides}]}}}}"#).as_bytes());
    assert!(facts.host.unwrap().clocksources.len() < 100_000);
    let same = many(r#"{"cpu": 1, "siblings": "1"}"#, 70_000);
    let (facts, notes) = read(format!(r#"{{"host": {{"cpus": [{same}]}}}}"#).as_bytes());
    assert_eq!(facts.host.unwrap().cpus.len(), 1);
    assert!(
        notes.len() == 1 && notes[0].contains("no more than 8192"),
        "{notes:?}"
    );
    let falling: Vec<String> = (0..16_000)
        .rev()
        .step_by(2)
        .map(|n| n.to_string())
        .collect();
    let set = format!("\"{}\"", falling.join(","));
    let text = format!(
        r#"{{"host": {{"irqs": [{}]}}}}"#,
        many(&format!(r#"{{"irq": 1, "affinity": {set}}}"#), 150)
    );
    assert_eq!(read(text.as_bytes()).0.host.unwrap().irqs.len(), 1);
    let deep = "[".repeat(100_000);
    assert!(
        read(format!(r#"{{"host": {{"cpus": {deep}"#).as_bytes())
            .0
            .is_empty()
    );
    let long = format!(r#"{{"host": {{"kernel": "{}"}}}}"#, "x".repeat(9 << 20));
    let (facts, notes) = read(long.as_bytes());
    assert!(facts.is_empty());
    assert!(notes[0].contains("not read beyond 8 MiB"), "{notes:?}");
}
