//! `trapline diagnose --domain FILE` without a recording: remarks of which nothing is measured, in every form of a
//! definition, and never a verdict.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Run, run, run_with};

/// The case's definition: what 'virsh dumpxml' prints of a Windows guest, without libosinfo's tag.
fn case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/definition-alone-windows.xml")
}

fn diagnose(args: &[&str]) -> Run {
    run(["diagnose"].iter().chain(args))
}

fn json(args: &[&str]) -> Value {
    let run = diagnose(&[&["--format", "json"], args].concat());
    run.json()
        .unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

/// Returns ids of remarks.
fn ids(document: &Value) -> Vec<&str> {
    let remarks = document["remarks"].as_array().expect("remarks");
    remarks
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect()
}

fn remark<'v>(document: &'v Value, id: &str) -> &'v Value {
    let mut remarks = document["remarks"].as_array().into_iter().flatten();
    remarks
        .find(|one| one["id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {:?}", ids(document)))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a written file");
    path.display().to_string()
}

#[test]
fn the_case_is_answered_as_its_truth_has_it() {
    let path = case().display().to_string();
    let text = diagnose(&["--domain", &path]);
    assert_eq!((text.status, text.stderr.as_str()), (0, ""));
    let text = text.text();
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "The definition of guest2 (libvirt's XML) gives 5 remarks; nothing was measured."
    );
    for said in [
        "no Hyper-V vpindex, synic, stimer",
        "an emulated e1000",
        "an emulated sata bus",
        "hypervclock",
        "record: trapline record --for exits --vm guest2 --seconds 30",
        "this is no verdict",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    for never in ["Nothing wrong", "No finding", "looked for and not found"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    let patch = diagnose(&["--patch", "--domain", &path]).text();
    for name in ["vpindex", "synic", "stimer"] {
        assert!(patch.contains(&format!("<{name} state='on'/>")), "{patch}");
    }
    // Windows would not boot from another bus without its driver.
    assert!(
        !patch.contains("bus='virtio'") && !patch.contains("type='virtio'"),
        "{patch}"
    );
}

#[test]
fn what_is_not_measured_is_never_sure_and_no_rule_is_cleared() {
    let path = case().display().to_string();
    let document = json(&["--domain", &path]);
    assert!(document["account"].is_null(), "{}", document["account"]);
    for empty in [
        "findings",
        "progress",
        "not_found",
        "checked",
        "not_of_machine",
    ] {
        assert_eq!(document[empty], Value::Array(Vec::new()), "{empty}");
    }
    let rules = json_rules();
    assert_eq!(document["unknown"].as_array().map(Vec::len), Some(rules));
    assert_eq!(ids(&document)[0], "hyperv-timers");
    for one in document["remarks"].as_array().expect("remarks") {
        let confidence = one["confidence"].as_f64().expect("a confidence");
        assert!(confidence > 0.0 && confidence <= 0.5, "{one}");
        for part in ["what", "why", "change", "price", "refuted_by"] {
            let text = one[part].as_str().unwrap_or_default();
            assert!(text.ends_with('.') || text.ends_with(")."), "{part}: {one}");
        }
        let record = one["record"].as_str().unwrap_or_default();
        assert!(record.starts_with("trapline record --for "), "{one}");
    }
    let csv = diagnose(&["--format", "csv", "--domain", &path]).text();
    assert_eq!(csv.lines().count(), 1 + ids(&document).len(), "{csv}");
    assert!(csv.starts_with("domain,id,confidence,what,"), "{csv}");
}

fn json_rules() -> usize {
    let rules = run(["rules", "--format", "json"]).json().expect("rules");
    rules["rules"].as_array().map_or(0, Vec::len)
}

#[test]
fn with_a_recording_the_remarks_are_there_as_well() {
    let path = case().display().to_string();
    let table = crate::common::file("seed-text/case5-good-host.perf-sched-latency.txt");
    let table = table.display().to_string();
    let document = json(&["--domain", &path, &table]);
    let remarks = document["domain_remarks"].to_string();
    assert!(remarks.contains("vpindex, synic, stimer"), "{remarks}");
    // The patch is that of findings then, and there is none.
    assert_eq!(document["patch"], "");
    let twice = diagnose(&["--domain", &path, "--domain", &path, &table]);
    assert_eq!(twice.status, 2, "{}", twice.stderr);
}

const PS: &str = "UID PID PPID C STIME TTY TIME CMD\n\
    qemu 4711 1 30 10:00 ? 01:00:00 /usr/libexec/qemu-kvm -name guest=win,debug-threads=on -machine \
    pc-q35-rhel9.2.0,accel=kvm -cpu host,hv-time=on,hv-relaxed=on,hv-vapic=on,hv-spinlocks=0x1fff -m 8G -smp \
    4,sockets=1 -rtc base=localtime -device {\"driver\":\"e1000e\",\"netdev\":\"hostnet0\",\"id\":\"net0\"} -netdev \
    {\"type\":\"tap\",\"fd\":\"32\",\"id\":\"hostnet0\"} -blockdev {\"driver\":\"file\",\"filename\":\"/w.img\",\
    \"node-name\":\"s\",\"cache\":{\"direct\":true}} -device \
    {\"driver\":\"ide-hd\",\"bus\":\"ide.0\",\"drive\":\"s\",\"id\":\"sata\"} -device \
    {\"driver\":\"piix3-usb-uhci\",\"id\":\"usb\"} -device \
    {\"driver\":\"usb-tablet\",\"id\":\"input0\",\"bus\":\"usb.0\"}\n\
    qemu 4712 1 30 10:00 ? 01:00:00 /usr/libexec/qemu-kvm -name guest=web -cpu host -m 2048 -smp 2 -S\n";

#[test]
fn a_qemu_command_line_is_a_definition() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "ps.txt", PS);
    let document = json(&["--domain", &path, "--vm", "win"]);
    for id in [
        "hyperv-timers",
        "hpet",
        "emulated-nic",
        "emulated-disk",
        "usb-tablet",
    ] {
        remark(&document, id);
    }
    let timers = remark(&document, "hyperv-timers");
    assert_eq!(
        timers["change"],
        "Add hv-vpindex,hv-synic,hv-stimer to -cpu."
    );
    assert_eq!(timers["patches_domain"], false);
    let patch = diagnose(&["--patch", "--domain", &path, "--vm", "win"]);
    assert_eq!((patch.status, patch.text().as_str()), (0, ""));
    assert!(
        patch
            .stderr
            .contains("a QEMU command line, for which there is no patch"),
        "{}",
        patch.stderr
    );
    // Both of them, and as the kernel has one.
    let both = diagnose(&["--domain", &path]).text();
    assert!(
        both.starts_with("The definitions of win, web give"),
        "{both}"
    );
    let words = "/usr/bin/kvm -id 100 -name web -cpu host -m 2048 -S ".replace(' ', "\0");
    let alone = run_with(["diagnose", "--domain", "-"], words.as_bytes()).text();
    assert!(
        alone.starts_with("The definition of web (a QEMU command line) gives no remark;"),
        "{alone}"
    );
    // With a recording it is one guest's, and its remedies announce no patch.
    let table = crate::common::file("seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt");
    let ports = crate::common::file("seed-text/case2-windows-before.perf-kvm-stat-ioport.txt");
    let (table, ports) = (table.display().to_string(), ports.display().to_string());
    let several = diagnose(&["--domain", &path, &table]);
    assert_eq!(several.status, 1);
    assert!(
        several.stderr.contains("the definitions of 2 VMs"),
        "{}",
        several.stderr
    );
    let found = diagnose(&["--domain", &path, &table, &ports]);
    assert_eq!(found.status, 1, "{}", found.stderr);
    let line = PS.lines().take(2).collect::<Vec<_>>().join("\n");
    let win = write(folder.path(), "win.txt", &line);
    let beside = json(&["--domain", &win, &table, &ports]);
    assert_eq!(beside["findings"][0]["id"], "timer-port-exits");
    assert_eq!(beside["findings"][0]["remedy"][0]["patches_domain"], false);
    let none = diagnose(&["--patch", "--domain", &win, &table, &ports]);
    assert!(
        none.stderr
            .contains("there is no patch for a QEMU command line"),
        "{}",
        none.stderr
    );
    let nobody = diagnose(&["--domain", &path, "--vm", "mail"]);
    assert_eq!(nobody.status, 1);
    assert!(
        nobody.stderr.contains("there are win, web"),
        "{}",
        nobody.stderr
    );
}

const CONF: &str = "#a comment\nagent: 1\nboot: order=sata0;net0\ncores: 4\ncpu: host,flags=+aes\ncpulimit: 2\n\
    memory: 32768\nname: win10\nnet0: e1000=BC:24:11:AA:BB:CC,bridge=vmbr0,firewall=1\nnuma: 0\nostype: win10\n\
    sata0: local-lvm:vm-101-disk-0,size=64G,mbps_rd=50\nscsi1: local-lvm:vm-101-disk-1,iothread=1,size=1T\n\
    scsi2: local-lvm:vm-101-disk-2,size=1T\nscsihw: virtio-scsi-pci\nsockets: 1\n\n[before]\nostype: other\n";

#[test]
fn a_proxmox_conf_is_a_definition() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "101.conf", CONF);
    let document = json(&["--domain", &path]);
    let said = ids(&document);
    // ostype gives Windows its timers.
    for never in ["hyperv-timers", "hyperv-clock", "hpet", "cpu-model"] {
        assert!(!said.contains(&never), "{said:?}");
    }
    for id in [
        "emulated-nic",
        "emulated-disk",
        "no-iothread",
        "usb-tablet",
        "large-memory-without-huge-pages",
    ] {
        remark(&document, id);
    }
    let quota = remark(&document, "cpu-quota")["what"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        quota.contains("cpulimit") && quota.contains("200 % of a CPU") && quota.contains("4 vCPUs"),
        "{quota}"
    );
    let limit = &remark(&document, "disk-limit")["what"];
    assert_eq!(limit, "Disk sata0 is limited: read_bytes_sec 50.0 MiB/s.");
    // What has no effect without virtio-scsi-single is no iothread.
    let threads = &remark(&document, "no-iothread")["what"];
    assert_eq!(threads, "Disks scsi1, scsi2 have no iothread.");
}

#[test]
fn what_is_no_definition_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, text) in [
        ("a letter", "Dear all,\n\nit is slow.\n"),
        ("a list of names", "name: a\nvalue: b\n"),
        (
            "ps without QEMU",
            "  PID TTY TIME CMD\n    1 ? 00:00:01 init\n",
        ),
        ("nothing", ""),
    ] {
        let path = write(folder.path(), "x.txt", text);
        let run = diagnose(&["--domain", &path]);
        assert_eq!((run.status, run.text().as_str()), (1, ""), "{what}");
        assert_eq!(run.stderr.lines().count(), 1, "{what}: {}", run.stderr);
        assert!(
            run.stderr.contains("--domain") && run.stderr.contains("expected"),
            "{what}: {}",
            run.stderr
        );
    }
    let path = case().display().to_string();
    for option in [&["--time", "1,2"][..], &["--cpu", "1"], &["--pid", "7"]] {
        let run = diagnose(&[&["--domain", &path], option].concat());
        assert_eq!(run.status, 2, "{option:?}: {}", run.stderr);
        assert!(run.stderr.contains(option[0]), "{}", run.stderr);
    }
}

#[test]
fn two_vms_pinned_to_one_cpu_are_remarked_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let xml = |name: &str, cpu: u32| {
        format!(
            "<domain type='kvm'><name>{name}</name><vcpu>1</vcpu><cpu mode='host-passthrough'/>\
             <cputune><vcpupin vcpu='0' cpuset='{cpu}'/><emulatorpin cpuset='9'/></cputune></domain>"
        )
    };
    let a = write(folder.path(), "a.xml", &xml("a", 3));
    let b = write(folder.path(), "b.xml", &xml("b", 3));
    let c = write(folder.path(), "c.xml", &xml("c", 4));
    let shared = json(&["--domain", &a, "--domain", &b]);
    let what = &remark(&shared, "vms-share-cpu")["what"];
    assert_eq!(
        what,
        "a and b have vCPUs that are pinned to the same CPUs 3."
    );
    let apart = json(&["--domain", &a, "--domain", &c]);
    assert_eq!(ids(&apart), Vec::<&str>::new());
}
