//! Whole texts: what is in them is found, several in one file too, and no damage does harm.

use facts::{Facts, ReportedVcpu, read};

const PS: &str = include_str!("../../../corpus/x86/format-variants/l1-ps.txt");
const KERNEL_THREADS: &str = include_str!("../../../corpus/x86/format-variants/l1-ps-kthreads.txt");
const INFO_CPUS: &str = include_str!("../../../corpus/x86/format-variants/a-info-cpus.txt");
const INFO_MTREE: &str = include_str!("../../../corpus/x86/format-variants/a-info-mtree.txt");
const TWO_GUESTS: &str = include_str!("../../../corpus/arm64/two-guests-mmio/ps-before.txt");

/// A session of QMP as `socat` shows it, and libvirt's indented answers.
const QMP: &str = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": ["oob"]}}
{"return": {}}
{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "RTC_CHANGE", "data": {"offset": 1}}
{"return": {"name": "web"}}
{"return": {"UUID": "8d2f1c9e-0000-0000-0000-000000000001"}}
{"return": [{"thread-id": 2001, "props": {"core-id": 0}, "qom-path": "/machine/unattached/device[0]", "cpu-index": 0, "target": "x86_64"}, {"thread-id": 2002, "cpu-index": 1}]}
{
  "return": [
    {
      "CPU": 0,
      "current": true,
      "qom_path": "/machine/unattached/device[0]",
      "thread_id": 3001
    }
  ],
  "id": "libvirt-12"
}
{"return": {"name": "db"}}
{"error": {"class": "CommandNotFound", "desc": "The command query-cpus has not been found"}}
{"return": "address-space: I/O\r\n  0000000000000608-000000000000060b (prio 0, i/o): acpi-tmr\r\n"}
"#;

const DOCUMENT: &str = r#"{
  "trapline": "9.9", "command": "facts", "from_the_future": {"governor": "performance"},
  "vms": [{"pid": 77, "name": "web", "vcpus": [{"id": 0, "tid": 78}, {"id": 1, "tid": "x"}]},
          {"pid": null, "name": null, "vcpus": [{"id": 0, "tid": 90}]}, 7],
  "threads": [{"tid": 78, "pid": 77, "comm": "CPU 0/KVM"}, {"tid": -3}, {"tid": 79, "pid": "77"}],
  "mtree": "address-space: memory\n  0000000000000000-ffffffffffffffff (prio 0, i/o): system\n"
}"#;

/// The JSON document that facts make.
fn written(facts: &Facts) -> String {
    serde_json::to_string_pretty(&facts::write(facts)).unwrap()
}

fn comm(facts: &Facts, tid: i32) -> Option<&str> {
    facts.threads.get(&tid)?.comm.as_deref()
}

#[test]
fn ps_shows_threads_and_the_names_of_vms() {
    let (facts, notes) = read(PS.as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!(facts.threads.len(), PS.lines().count() - 1);
    assert_eq!(facts.threads[&3742].pid, Some(3736));
    assert_eq!(comm(&facts, 3742), Some("CPU 0/KVM"));
    assert_eq!(comm(&facts, 3736), Some("qemu-system-x86"));
    assert_eq!(facts.vms.len(), 1);
    assert_eq!(
        (facts.vms[0].pid, facts.vms[0].name.as_deref()),
        (Some(3736), Some("a"))
    );

    let (facts, notes) = read(TWO_GUESTS.as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!(facts.threads.len(), TWO_GUESTS.lines().count() - 1);
    let names: Vec<_> = facts
        .vms
        .iter()
        .map(|vm| (vm.pid, vm.name.as_deref()))
        .collect();
    assert_eq!(names, [(Some(854), Some("vm1")), (Some(856), Some("vm2"))]);
    assert_eq!(comm(&facts, 870), Some("vhost-856"));
    // What a kworker does is no part of its name.
    assert_eq!(comm(&facts, 40), Some("kworker/u8:1"));
}

#[test]
fn a_list_without_its_header_says_itself_what_its_numbers_are() {
    let (facts, notes) = read(KERNEL_THREADS.as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!(facts.threads.len(), KERNEL_THREADS.lines().count());
    assert_eq!(comm(&facts, 2), Some("kthreadd"));
    assert!(
        facts
            .threads
            .iter()
            .all(|(tid, thread)| thread.pid == Some(*tid))
    );
    // The threads of one process.
    let (facts, _) = read(
        b" 1689  1700   1 CPU 0/KVM       qemu -name a\n 1689  1703   2 CPU 1/KVM       qemu -name a\n",
    );
    assert_eq!(facts.threads[&1703].pid, Some(1689));
    assert_eq!(comm(&facts, 1703), Some("CPU 1/KVM"));
    // Processes and their parents could look the same.
    let (facts, notes) = read(b" 1689  1   1 qemu  qemu\n 1691  1   2 qemu  qemu\n");
    assert!(facts.is_empty());
    assert!(notes.len() == 1 && notes[0].contains("header"), "{notes:?}");
}

#[test]
fn monitors_tell_vcpus() {
    let (facts, notes) = read(INFO_CPUS.as_bytes());
    assert_eq!(notes, [""; 0]);
    let vcpus = [ReportedVcpu::new(0, 3742), ReportedVcpu::new(1, 3743)];
    assert_eq!((facts.vms.len(), &facts.vms[0].vcpus[..]), (1, &vcpus[..]));
    // A vCPU that was plugged in again stands last.
    let (facts, _) = read(b"* CPU #0: thread_id=5\n  CPU #2: thread_id=7\n  CPU #1: thread_id=9\n");
    assert_eq!((facts.vms.len(), facts.vms[0].vcpus[1].tid), (1, 9));
    // Two VMs one after the other, as libvirt's --hmp prints them: numbers begin again.
    let (facts, _) =
        read(b"* CPU #0: thread_id=5\n  CPU #1: thread_id=6\n\n* CPU #0: thread_id=8\n");
    assert_eq!(facts.vms.len(), 2);
    let (facts, notes) = read(INFO_MTREE.as_bytes());
    assert_eq!(notes, [""; 0]);
    let regions = |text: &str| text.lines().filter(|l| l.contains("(prio ")).count();
    assert_eq!(
        regions(facts.mtree.as_deref().unwrap()),
        regions(INFO_MTREE)
    );
}

#[test]
fn qmp_shows_vcpus_and_names() {
    let (facts, notes) = read(QMP.as_bytes());
    assert_eq!(facts.vms.len(), 2, "{facts:?}");
    assert_eq!(facts.vms[0].name.as_deref(), Some("web"));
    assert!(facts.vms[0].uuid.as_deref().unwrap().starts_with("8d2f"));
    let vcpus = [ReportedVcpu::new(0, 2001), ReportedVcpu::new(1, 2002)];
    assert_eq!(facts.vms[0].vcpus, vcpus);
    assert_eq!(facts.vms[1].vcpus, [ReportedVcpu::new(0, 3001)]);
    assert_eq!(facts.vms[1].name.as_deref(), Some("db"));
    assert!(facts.mtree.unwrap().contains("acpi-tmr"));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("line 19: ") && notes[0].contains("query-cpus"),
        "{notes:?}"
    );
}

#[test]
fn documents_of_other_versions_are_read() {
    let (facts, notes) = read(DOCUMENT.as_bytes());
    assert_eq!(facts.vms.len(), 2, "{facts:?}");
    assert_eq!(
        (facts.vms[0].pid, facts.vms[0].name.as_deref()),
        (Some(77), Some("web"))
    );
    assert_eq!(facts.vms[0].vcpus, [ReportedVcpu::new(0, 78)]);
    assert_eq!(facts.vms[1].vcpus, [ReportedVcpu::new(0, 90)]);
    assert_eq!(comm(&facts, 78), Some("CPU 0/KVM"));
    assert_eq!(facts.threads[&79].pid, None);
    assert!(facts.mtree.is_some());
    for what in ["vms[0].vcpus", "vms[2]", "threads[1].tid", "threads[2].pid"] {
        assert!(
            notes.iter().any(|note| note.contains(what)),
            "{what}: {notes:?}"
        );
    }
}

#[test]
fn texts_one_after_the_other_and_in_several_files_add_up() {
    let all = format!(
        "$ ps -eLo pid,tid,psr,comm,args\n{PS}{KERNEL_THREADS}\n{INFO_CPUS}{INFO_MTREE}{QMP}Kind regards\n{PS}"
    );
    let (facts, notes) = read(all.as_bytes());
    let first = PS.lines().count() + KERNEL_THREADS.lines().count();
    assert_eq!(facts.threads.len(), first - 1);
    assert_eq!(facts.vms.len(), 4, "{:?}", facts.vms);
    assert!(
        notes.iter().any(|note| note.ends_with("not understood")),
        "{notes:?}"
    );
    // By files: the monitor's VM has no process, and ps has no vCPUs; whoever joins them sees both.
    let mut sum = read(INFO_CPUS.as_bytes()).0;
    assert_eq!(sum.merge(read(PS.as_bytes()).0), [""; 0]);
    assert_eq!(sum.merge(read(DOCUMENT.as_bytes()).0), [""; 0]);
    assert_eq!(sum.vms.len(), 4);
    let again = sum.clone();
    assert_eq!(sum.merge(read(INFO_CPUS.as_bytes()).0), [""; 0]);
    assert_eq!(sum, again);
    assert_eq!(sum.merge(read(INFO_MTREE.as_bytes()).0).len(), 1);
}

#[test]
fn what_is_nothing_known_is_noted_with_its_line() {
    let (facts, notes) = read(b"Dear all,\nnothing here\n\n{\"what\": 1}\n[1, 2\n");
    assert!(facts.is_empty());
    assert_eq!(
        notes,
        [
            "lines 1 to 2: not understood",
            "lines 4 to 5: not understood"
        ]
    );
    let (facts, notes) = read(
        b"VCPU:           0\nCPU:            3\nState:          running\nCPU Affinity:   yyyy\n",
    );
    assert!(facts.is_empty());
    assert!(
        notes.len() == 1 && notes[0].contains("info cpus"),
        "{notes:?}"
    );
}

/// Bytes changed, cut and doubled at places that a fixed sequence of numbers picks.
#[test]
fn damaged_texts_do_no_harm() {
    let texts = [
        PS,
        KERNEL_THREADS,
        INFO_CPUS,
        INFO_MTREE,
        TWO_GUESTS,
        QMP,
        DOCUMENT,
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut understood = 0;
    for round in 0..2100 {
        let mut text = texts[round % texts.len()].as_bytes().to_vec();
        for _ in 0..1 + random(6) {
            let at = random(text.len());
            let length = random(40).min(text.len() - at);
            match random(5) {
                0 => text[at..at + length].fill(b" \n{[\"#\xff0"[random(8)]),
                1 => text.truncate(at),
                2 => drop(text.drain(at..at + length)),
                3 => {
                    let part = text[at..at + length].to_vec();
                    let to = random(text.len());
                    text.splice(to..to, part);
                }
                _ => {
                    let other = texts[random(texts.len())].as_bytes();
                    let from = random(other.len());
                    text.splice(at..at, other[from..].iter().copied().take(400));
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let (facts, notes) = read(&text);
        understood += usize::from(!facts.is_empty());
        assert!(notes.len() <= 18, "{notes:?}");
        assert!(facts.threads.keys().all(|tid| *tid > 0));
        let (again, notes) = read(written(&facts).as_bytes());
        assert_eq!(again, facts, "{notes:?}");
        let mut twice = facts.clone();
        twice.merge(facts.clone());
        assert_eq!(twice.threads, facts.threads);
        assert_eq!(twice.vms, facts.vms);
    }
    assert!(understood > 1000, "{understood}");
}

/// QEMU says its version in the monitor's banner, in QMP's greeting and where it is asked.
#[test]
fn versions_of_qemu() {
    for (text, version) in [
        (
            "QEMU 7.2.22 monitor - type 'help' for more information\n(qemu) info cpus\n* CPU #0: thread_id=1700\n",
            Some("7.2.22"),
        ),
        (
            "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 2, \"minor\": 2, \"major\": 8}, \
             \"package\": \"Debian 1:8.2.2\"}, \"capabilities\": []}}\n\
             {\"return\": [{\"cpu-index\": 0, \"thread-id\": 1700}]}\n",
            Some("8.2.2 Debian 1:8.2.2"),
        ),
        (
            "{\"return\": [{\"cpu-index\": 0, \"thread-id\": 1700}]}\n\
             {\"return\": {\"qemu\": {\"micro\": 0, \"minor\": 1, \"major\": 9}, \"package\": \"\"}}\n",
            Some("9.1.0"),
        ),
        (
            "QEMU x monitor - type 'help'\n* CPU #0: thread_id=1700\n",
            None,
        ),
    ] {
        let (facts, notes) = read(text.as_bytes());
        assert_eq!(notes, [""; 0], "{text}");
        assert_eq!(facts.vms[0].version.as_deref(), version, "{text}");
    }
}

/// Lists of packages among other texts say which QEMU the host has, if they say one.
#[test]
fn packages_say_which_qemu_is_installed() {
    let lists = "Desired=Unknown/Install/Remove/Purge/Hold\n\
                 | Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend\n\
                 |/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)\n\
                 ||/ Name             Version                Architecture Description\n\
                 +++-================-======================-============-===========\n\
                 ii  adduser          3.118ubuntu5           all          add and remove users\n\
                 ii  qemu-system-x86  1:6.2+dfsg-2ubuntu6.21 amd64        QEMU full system emulation\n\
                 $ qemu-system-x86_64 --version\n\
                 QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6.21)\n\
                 Copyright (c) 2003-2021 Fabrice Bellard and the QEMU Project developers\n";
    let ps = "    PID     TID COMMAND         COMMAND\n   1689    1700 CPU 0/KVM       qemu-kvm -name web\n";
    for text in [format!("{lists}{ps}"), format!("{ps}{lists}")] {
        let (facts, notes) = read(text.as_bytes());
        assert_eq!(notes, [""; 0], "{text}");
        let host = facts.host.as_ref().expect("a host");
        assert_eq!(host.qemu.as_deref(), Some("6.2+dfsg-2ubuntu6.21"));
        assert_eq!(comm(&facts, 1700), Some("CPU 0/KVM"));
        let (again, notes) = read(written(&facts).as_bytes());
        assert_eq!((again, notes), (facts, vec![]));
    }
    let (facts, notes) = read(b"qemu-kvm-6.2.0-53.el8.x86_64\nQEMU emulator version 9.0.2\n");
    assert_eq!(facts.host, None);
    assert_eq!(
        notes,
        ["line 2: QEMU 9.0.2 beside QEMU 6.2.0-53.el8: which of them runs VMs is not known"]
    );
}

/// A kernel log between other texts, and one alone.
#[test]
fn kernel_logs_stand_alone_and_between_others() {
    let log = "[    1.000000] Linux version 6.1.0\n\
               [  100.000001] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [CPU 0/KVM:1700]\n\
               [  100.000002] CPU: 3 PID: 1700 Comm: CPU 0/KVM\n   a line below it\n";
    let text = format!(
        "    PID     TID COMMAND\n   1689    1700 CPU 0/KVM\n{log}* CPU #0: thread_id=1700\n"
    );
    let (facts, notes) = read(text.as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!((facts.threads.len(), facts.vms.len()), (1, 1));
    let of = |facts: &Facts| {
        facts
            .host
            .clone()
            .and_then(|host| host.kernel_log)
            .expect("a log")
    };
    let found = of(&facts);
    assert_eq!((found.lines, found.kept.len()), (3, 1));
    assert_eq!(found.kept[0].tid, Some(1700));
    let (alone, notes) = read(log.as_bytes());
    assert_eq!((of(&alone), notes.len()), (found.clone(), 0));
    // What a guest's kernel writes is no fact of its host.
    let guest = format!(
        "[    0.000000] Hypervisor detected: KVM\n{}",
        log.replace("CPU 0/KVM", "bash")
    );
    let (facts, notes) = read(guest.as_bytes());
    assert_eq!((facts.host.clone(), notes.len()), (None, 0));
    let of_guest = facts.guest_log.clone().expect("a guest's log");
    assert_eq!(of_guest.kept[0].comm.as_deref(), Some("bash"));
    // Both beside each other, and each a second time.
    let mut both = alone.clone();
    assert_eq!(both.merge(facts.clone()), [""; 0]);
    assert_eq!((of(&both), both.guest_log.clone()), (found, Some(of_guest)));
    assert_eq!(both.merge(facts), [""; 0]);
    assert_eq!(both.merge(alone), [""; 0]);
    let (another, _) = read(b"[5.000000] sched: RT throttling activated\n");
    assert_eq!(both.merge(another).len(), 1);
    // Lines alone, without times.
    let (facts, notes) = read(b"INFO: task CPU 0/KVM:1700 blocked for more than 120 seconds.\n");
    assert_eq!((of(&facts).kept[0].seconds, notes.len()), (Some(120), 0));
}

/// Texts made to be read again and again, or to fill memory.
#[test]
fn hostile_texts_are_bounded() {
    let lines = 40_000;
    for line in [
        "[\n",
        "{\"return\": [\n",
        "[[[[[[[[[[[[[[[[\n",
        "* CPU #0: thread_id=7\n",
        "(qemu) (qemu) (qemu) ",
        "1 2 3 a\n",
        "PID TID\n",
        "x\n",
        "{\"return\": {\"name\": \"a\"}}",
        "\"",
        "PID ",
        "{} ",
        "{}",
        "  ",
        "\u{feff}",
        "[1.000] ",
        "[1.000000] x\n",
        "1,2,3,-;rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n",
        "rcu: \t1-....: (1 GPs behind)\n",
        "Domain: 'a'\n",
        "Domain: 'a'\ncpu.time=7\n",
        "cpu.time=7 ",
        "cpu.time=7\n",
        "vcpu.0.",
    ] {
        let text = line.repeat(lines);
        let (facts, notes) = read(text.as_bytes());
        assert!(facts.vms.len() <= 1 && facts.threads.len() <= 1, "{line}");
        assert!(notes.len() <= 18, "{line}: {}", notes.len());
    }
    let numbered: String = (1..lines)
        .map(|n| format!("* CPU #0: thread_id={n}\n"))
        .collect();
    let (facts, notes) = read(numbered.as_bytes());
    assert!(facts.vms.len() < lines && notes.len() == 1, "{notes:?}");
}

proptest::proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        read(&bytes);
    }

    #[test]
    fn any_lines(lines in proptest::collection::vec(
        "( {0,3}[0-9]{1,8}){0,4} {0,4}(PID|TID|PSR|COMMAND|CPU #|thread_id=|\\(qemu\\)|\\[|\\{|:| |[a-z/]{1,20}|.)\
         {0,6}", 0..12
    )) {
        read(lines.join("\n").as_bytes());
    }
}
