//! What guests printed on their serial lines, read out of the values that KVM's events record.

use std::fs;

use crate::common::{Failures, case, json, run, run_with};
use serde_json::Value;

/// Returns the lines of a text of events, made by hand.
fn lines(text: &str) -> Value {
    let run = run_with(
        ["events", "--console", "--format", "json", "-"],
        text.as_bytes(),
    );
    run.json().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the events of a guest that writes so many bytes, a microsecond each, to a port.
fn writes(thread: &str, port: u16, bytes: &[u8], from_us: &mut u64) -> String {
    let mut out = String::new();
    for byte in bytes {
        *from_us += 1;
        out.push_str(&format!(
            "       {thread}  [001]    10.{from_us:06}: kvm_pio:              pio_write at {port:#x} size 1 count 1 val {byte:#x} \n"
        ));
    }
    out
}

fn entry(thread: &str, vcpu: u32) -> String {
    format!(
        "       {thread}  [001]    10.000000: kvm_entry:            vcpu {vcpu}, rip 0xffffffff81000000\n"
    )
}

const A0: &str = "CPU 0/KVM-1010";
const A1: &str = "CPU 1/KVM-1011";
const B0: &str = "CPU 0/KVM-2010";

/// The guest's own log says what it printed while it was recorded.
#[test]
fn every_printed_line_of_a_recording_is_the_guest_s() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let document = json(&["events", "--console"], &path).expect("a document");
    let all = document["console"].as_array().expect("lines");
    let printed: Vec<&Value> = all
        .iter()
        .filter(|line| {
            line["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("PRINT "))
        })
        .collect();
    // Sixteen rounds of five lines each, numbered, and printed by the second CPU of the second guest.
    for (line, at) in printed.iter().zip(0..) {
        let text = format!(
            "PRINT {:04}.{:02} cpu1 tuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
            at / 5,
            at % 5
        );
        failures.equal("text", &line["text"].as_str(), &Some(text.as_str()));
        failures.equal("vCPU", &line["vcpu"], &1.into());
        failures.equal("device", &line["device"], &"COM1".into());
        failures.equal("unknown", &line["unknown_bytes"], &0.into());
        failures.check(line["end_ns"].as_u64() > line["time_ns"].as_u64(), || {
            line.to_string()
        });
    }
    failures.equal("lines", &printed.len(), &80);
    let table = run(["events".as_ref(), "--console".as_ref(), path.as_os_str()]).text();
    failures.check(table.contains("COM1: PRINT 0000.00 cpu1"), || table.clone());
    failures.check(table.contains("console: "), || table.clone());
    let csv = [
        "events".as_ref(),
        "--console".as_ref(),
        "--format=csv".as_ref(),
        path.as_os_str(),
    ];
    let rows = run(csv).text().lines().count();
    failures.equal("rows of CSV", &rows, &(all.len() + 1));
    // A firmware's own port.
    let path = case("vmx/linux-boot/perf.data.kvmstat.zst").path;
    let document = json(&["events", "--console"], &path).expect("a document");
    let first = &document["console"][0];
    failures.equal("port", &first["address"], &0x402.into());
    failures.check(
        first["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("SeaBIOS (version")),
        || first.to_string(),
    );
    failures.finish(400);
}

#[test]
fn lines_are_told_apart_by_vm_and_by_port() {
    let mut at = 0;
    let mut text = entry(A0, 0) + &entry(A1, 1) + &entry(B0, 0);
    text += &writes(A0, 0x3f8, b"one ", &mut at);
    text += &writes(B0, 0x3f8, b"other VM\r\n", &mut at);
    text += &writes(A1, 0x2f8, b"other port\n", &mut at);
    // The lock of the console went from one vCPU to the other.
    text += &writes(A1, 0x3f8, b"two\r\n", &mut at);
    text += &writes(B0, 0x3f8, b"login: ", &mut at);
    let document = lines(&text);
    let told: Vec<_> = document["console"].as_array().unwrap().iter().collect();
    let texts: Vec<&str> = told
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["other VM", "other port", "one two", "login: "]);
    let vcpus: Vec<u64> = told
        .iter()
        .map(|line| line["vcpu"].as_u64().unwrap())
        .collect();
    assert_eq!(vcpus, [0, 1, 0, 0]);
    assert_eq!(told[2]["time_ns"], 10_000_001_000u64);
    assert_eq!(
        (&told[2]["whole"], &told[3]["whole"]),
        (&true.into(), &false.into())
    );
    assert_ne!(told[0]["vm"], told[2]["vm"]);
    assert_eq!(
        (&document["lines"], &document["bytes"]),
        (&4.into(), &37.into())
    );
}

#[test]
fn what_is_no_character_to_look_at_is_written_out() {
    let mut at = 0;
    let mut bytes = b"a\x1b[31mb\x07\x7f\xff ".to_vec();
    bytes.extend("ü \u{202e}c\u{9b}d\n".as_bytes());
    let text = entry(A0, 0) + &writes(A0, 0x3f8, &bytes, &mut at);
    let document = lines(&text);
    assert_eq!(
        document["console"][0]["text"],
        "a^[[31mb^G^?\\xff ü <U+202E>c<U+009B>d"
    );
}

/// The divisor of the speed goes through the same port as the bytes, and a driver that looks for the UART writes to itself.
#[test]
fn setting_the_speed_and_probing_print_nothing() {
    let mut at = 0;
    let mut text = entry(A0, 0);
    text += &writes(A0, 0x3fb, &[0x80], &mut at);
    text += &writes(A0, 0x3f8, b"\x01", &mut at);
    text += &writes(A0, 0x3fb, &[0x03], &mut at);
    text += &writes(A0, 0x3fc, &[0x1b], &mut at);
    text += &writes(A0, 0x3f8, b"loop", &mut at);
    text += &writes(A0, 0x3fc, &[0x0b], &mut at);
    text += &writes(A0, 0x3f9, b"\x05", &mut at);
    text += &writes(A0, 0x3f8, b"printed\n", &mut at);
    let document = lines(&text);
    assert_eq!(document["console"][0]["text"], "printed");
    assert_eq!(document["bytes"], 8);
}

#[test]
fn bytes_without_values_are_counted_where_they_belong() {
    let string = "       CPU 0/KVM-1010  [001]    10.000001: kvm_pio:              pio_write at 0x3f8 size 1 count 6 val 0x48 (...)\n";
    let mut at = 1;
    let text = entry(A0, 0) + string + &writes(A0, 0x3f8, b"!\n", &mut at);
    let document = lines(&text);
    let line = &document["console"][0];
    assert_eq!(line["text"], "H<5 bytes not recorded>!");
    assert_eq!(
        (&line["bytes"], &line["unknown_bytes"]),
        (&2.into(), &5.into())
    );
    assert_eq!(document["unknown_bytes"], 5);
    // Kernels before 3.16 have no value at all.
    let old = "       CPU 0/KVM-1010  [001]    10.000001: kvm_pio:              pio_write at 0x3f8 size 1 count 1 \n";
    let table = run_with(
        ["events", "--console", "-"],
        (entry(A0, 0) + old + old).as_bytes(),
    );
    let table = table.text();
    assert!(
        table.contains("<2 bytes not recorded>") && table.contains("2 more not recorded"),
        "{table}"
    );
}

#[test]
fn on_arm64_the_data_register_is_in_memory() {
    let mut text = String::from(
        "       CPU 0/KVM-330   [000]    10.000000: kvm_entry:            PC: 0xffff800008b2a1c0\n",
    );
    for (byte, at) in b"hi\n".iter().zip(1..) {
        text.push_str(&format!(
            "       CPU 0/KVM-330   [000]    10.{at:06}: kvm_mmio:             mmio write len 1 gpa 0x9000000 val {byte:#x}\n"
        ));
        // The flag register.
        text.push_str(&format!(
            "       CPU 0/KVM-330   [000]    10.{at:06}: kvm_mmio:             mmio read len 4 gpa 0x9000018 val 0x90\n"
        ));
    }
    let document = lines(&text);
    assert_eq!(document["console"][0]["text"], "hi");
    assert_eq!(document["console"][0]["device"], "PL011");
}

#[test]
fn a_recording_in_which_nobody_printed_is_refused() {
    let path = case("x86/clocksource-hpet/perf.data.guest.zst").path;
    let run = run(["events".as_ref(), "--console".as_ref(), path.as_os_str()]);
    assert_eq!((run.status, run.stdout.len()), (1, 0));
    assert!(run.stderr.contains("kvm_pio"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1);
    // It prints lines of its own, not events.
    for args in [["--event", "kvm_*"], ["--as", "perf"]] {
        let both = crate::common::run([&["events", "--console", "x"][..], &args].concat());
        assert_eq!(both.status, 2, "{}", both.stderr);
    }
}

/// A line that never ends is broken, and memory stays as it is.
#[test]
fn a_line_without_an_end_is_broken() {
    let mut at = 0;
    let text = entry(A0, 0) + &writes(A0, 0x3f8, &[b'x'; 10_000], &mut at);
    let document = lines(&text);
    let all = document["console"].as_array().unwrap();
    let lengths: Vec<u64> = all
        .iter()
        .map(|line| line["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(lengths, [4096, 4096, 1808]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    fs::write(&path, text).unwrap();
    let table = run(["events".as_ref(), "--console".as_ref(), path.as_os_str()]).text();
    assert!(table.contains("console: 3 lines, 10000 bytes"), "{table}");
}
