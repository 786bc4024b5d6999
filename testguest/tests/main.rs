//! The guest runs where KVM is, and what it counts and what perf counts is what was asked for.
//!
//! Where there is no KVM these tests say so and do nothing; with `TRAPLINE_REQUIRE_KVM=1` they fail.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_testguest");

/// What every architecture has, and how the numbers below come about: 2 vCPUs do 3 rounds of it.
const EVERYWHERE: &[&str] = &[
    "--vcpus=2",
    "--rounds=3",
    "--mmio-read=11",
    "--mmio-write=13",
    "--ioeventfd-mmio=17",
];

/// Says that a test is skipped, or fails where it has to run.
fn skip(why: &str) -> bool {
    let required = env::var_os("TRAPLINE_REQUIRE_KVM").is_some_and(|value| value == "1");
    assert!(!required, "TRAPLINE_REQUIRE_KVM=1, and {why}");
    // The harness keeps what macros print and not what is written, so that this is seen.
    drop(writeln!(
        io::stderr(),
        "\nSKIPPED, NOTHING WAS TESTED: testguest: {why}"
    ));
    true
}

/// Returns whether there is no KVM.
fn without_kvm() -> bool {
    match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => false,
        Err(error) => skip(&format!("/dev/kvm cannot be opened: {error}")),
    }
}

fn run(arguments: &[&[&str]]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.concat());
    command.output().expect("the program can be started")
}

/// Returns what a run printed that did as asked.
fn document(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// Returns one of a document's numbers.
fn number(document: &Value, path: &str) -> u64 {
    let value = document.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no number at {path} in {document:#}"))
}

/// A tracepoint's pointer in a document.
fn tracepoint(name: &str) -> String {
    format!("/tracepoints/kvm:{name}")
}

#[test]
fn the_guest_does_what_was_asked() {
    if without_kvm() {
        return;
    }
    let done = document(&run(&[EVERYWHERE]));
    for vcpu in 0..2 {
        let of = |path: &str| number(&done, &format!("/vcpus/{vcpu}/{path}"));
        assert_eq!(of("returns/mmio-read"), 33);
        assert_eq!(of("returns/mmio-write"), 39);
        assert_eq!(of("returns/round"), 3);
        assert!(of("kvm_run_returns") >= 75);
        assert!(of("started_ns") >= number(&done, "/started_ns"));
        assert!(of("ended_ns") <= number(&done, "/ended_ns"));
    }
    assert_eq!(number(&done, "/ioeventfd_writes"), 102);
    let own = u64::from(cfg!(target_arch = "aarch64")) * 6;
    assert_eq!(
        number(&done, &tracepoint("kvm_mmio")),
        66 * 2 + 78 + 102 + own
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn ports_and_halts_return_to_user_space() {
    if without_kvm() {
        return;
    }
    let asked = [
        "--pio-out=5",
        "--pio-in=7",
        "--hlt=9",
        "--cpuid=3",
        "--ioeventfd=4",
    ];
    let done = document(&run(&[&asked, &["--rounds=2"]]));
    assert_eq!(number(&done, "/vcpus/0/returns/pio-out"), 10);
    assert_eq!(number(&done, "/vcpus/0/returns/pio-in"), 14);
    assert_eq!(number(&done, "/vcpus/0/returns/hlt"), 18);
    assert_eq!(number(&done, "/ioeventfd_writes"), 8);
    // And the end of each round.
    assert_eq!(number(&done, &tracepoint("kvm_pio")), 10 + 14 + 8 + 2);
    assert_eq!(number(&done, "/exits/hlt"), 18);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn interrupts_arrive_and_one_waits() {
    if without_kvm() {
        return;
    }
    let asked = [
        "--vcpus=2",
        "--rounds=3",
        "--irqfd=4",
        "--irqfd-pin=5",
        "--hlt=6",
    ];
    let done = document(&run(&[&asked, &["--slow-irqfd=20"]]));
    for vcpu in 0..2 {
        let of = |path: &str| number(&done, &format!("/vcpus/{vcpu}/{path}"));
        assert_eq!(of("interrupts/msi"), 12);
        assert_eq!(of("interrupts/pin"), 15);
        assert_eq!(of("interrupts/timer"), 18);
    }
    assert_eq!(number(&done, "/vcpus/0/returns/hold"), 1);
    assert_eq!(done.pointer("/vcpus/1/returns/hold"), None);
    // It slept for 20 ms in between, by the same clock.
    assert!(number(&done, "/slow_irqfd/pending_ns") >= 20_000_000);
    assert_eq!(number(&done, &tracepoint("kvm_msi_set_irq")), 24);
    assert_eq!(number(&done, &tracepoint("kvm_set_irq")), 60);
}

#[test]
fn a_recorder_can_be_attached_before_it_begins() {
    if without_kvm() {
        return;
    }
    let mut command = Command::new(PROGRAM);
    let command = command
        .args(EVERYWHERE)
        .args(["--wait", "--threads-named-as-qemu"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut ready = String::new();
    let errors = child.stderr.take().expect("it is a pipe");
    BufReader::new(errors)
        .read_line(&mut ready)
        .expect("it says that it is ready");
    let ready: Value = serde_json::from_str(&ready).expect("it says so as JSON");
    assert_eq!(number(&ready, "/pid"), u64::from(child.id()));
    let threads = format!("/proc/{}/task", child.id());
    let name = |tid: u64| {
        let name = Path::new(&threads).join(tid.to_string()).join("comm");
        fs::read_to_string(name).expect("the thread is there")
    };
    assert_eq!(name(number(&ready, "/pid")), "qemu-system-x86\n");
    let tids = [0, 1].map(|vcpu| number(&ready, &format!("/vcpu_tids/{vcpu}")));
    assert_eq!(tids.map(name), ["CPU 0/KVM\n", "CPU 1/KVM\n"]);
    let mut input = child.stdin.take().expect("it is a pipe");
    input.write_all(b"\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let done = document(&output);
    assert_eq!(
        tids,
        [0, 1].map(|vcpu| number(&done, &format!("/vcpus/{vcpu}/tid")))
    );
}

#[test]
fn no_byte_is_an_error() {
    if without_kvm() {
        return;
    }
    let mut command = Command::new(PROGRAM);
    let output = command.arg("--wait").stdin(Stdio::null()).output();
    let output = output.expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("standard input ended"), "{errors}");
}

/// Returns whether perf counts tracepoints of KVM for this user.
fn without_perf() -> bool {
    let mut command = Command::new("perf");
    let command = command.args(["stat", "-x,", "-e", "kvm:kvm_userspace_exit", "true"]);
    match command.output() {
        Err(error) => skip(&format!("perf cannot be started: {error}")),
        Ok(output) if output.status.success() => false,
        Ok(output) => skip(&format!(
            "perf counts no tracepoints: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Runs the guest below perf and compares every tracepoint of its document that fires in its own threads.
fn perf_agrees(arguments: &[&[&str]]) {
    let arguments = arguments.concat();
    let plain = document(&run(&[&arguments]));
    let tracepoints = plain.pointer("/tracepoints").and_then(Value::as_object);
    let tracepoints = tracepoints.expect("it lists tracepoints");
    // A worker of the kernel moves pins.
    let own = tracepoints.keys().filter(|name| *name != "kvm:kvm_set_irq");
    let names: Vec<&str> = own.map(String::as_str).collect();
    let counts = tempfile::NamedTempFile::new().expect("there is a folder for temporary files");
    let mut command = Command::new("perf");
    let command = command.args(["stat", "-x,", "-e", &names.join(","), "-o"]);
    let command = command.arg(counts.path()).arg("--").arg(PROGRAM);
    let output = command.args(&arguments).output().expect("perf was there");
    let done = document(&output);
    let text = fs::read_to_string(counts.path()).expect("perf wrote its counts");
    for name in &names {
        // COUNT,UNIT,EVENT,...
        let mut rows = text
            .lines()
            .map(|line| line.split(',').collect::<Vec<&str>>());
        let row = rows.find(|row| row.get(2) == Some(name));
        let count = row.unwrap_or_else(|| panic!("perf has no row of {name}:\n{text}"))[0];
        let expected = number(&done, &format!("/tracepoints/{name}")).to_string();
        assert_eq!(count, expected, "{name}, {arguments:?}");
    }
}

#[test]
fn perf_sees_what_the_guest_did() {
    if without_kvm() || without_perf() {
        return;
    }
    perf_agrees(&[EVERYWHERE]);
    if cfg!(target_arch = "x86_64") {
        let ports = [
            "--pio-out=500",
            "--pio-in=300",
            "--hlt=200",
            "--cpuid=100",
            "--ioeventfd=70",
        ];
        perf_agrees(&[&ports, EVERYWHERE]);
        perf_agrees(&[
            EVERYWHERE,
            &["--irqfd=20", "--irqfd-pin=10", "--hlt=5", "--slow-irqfd=1"],
        ]);
    }
}
