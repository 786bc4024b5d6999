//! What guests printed on their serial lines, read out of the values that KVM's events record.

use std::ops::ControlFlow;
use std::path::Path;

use analysis::{Console, ConsoleLine, ConsoleSums};
use fixtures::{Failures, case, write_text};
use render::console::visible;
use session::{FilterScope, Session, SessionOptions};

/// A line, and the number of the vCPU that began it.
type PrintedLine = (ConsoleLine, Option<u32>);

/// Returns the lines of a recording.
fn printed(path: &Path) -> (Vec<PrintedLine>, ConsoleSums) {
    let session = Session::open(SessionOptions::default()).expect("it needs nothing");
    let input = session.input(path).expect("an input");
    let recording = input.recording().expect("a recording");
    let vms = recording.vms();
    let threads = vms.iter().zip(0..);
    let threads = threads.flat_map(|(vm, at)| vm.vcpus.iter().map(move |vcpu| (vcpu.tid, at)));
    let may_be_arm = recording.header().arch.as_deref() != Some("x86_64");
    let mut lines = Vec::new();
    let mut take = |line: ConsoleLine| {
        let mut vcpus = vms.iter().flat_map(|vm| &vm.vcpus);
        let vcpu = vcpus.find(|vcpu| vcpu.tid == line.tid).map(|vcpu| vcpu.id);
        lines.push((line, vcpu));
        ControlFlow::Continue(())
    };
    let mut sink = Console::new(threads, may_be_arm, &mut take);
    recording.walk_filtered(&mut sink, FilterScope::Events);
    let sums = sink.finish();
    (lines, sums)
}

/// Returns the lines of a text of events, made by hand.
fn lines(text: &str) -> (Vec<PrintedLine>, ConsoleSums) {
    let folder = tempfile::tempdir().expect("a folder");
    printed(&write_text(folder.path(), "trace.txt", text))
}

/// Returns the events of a guest that writes so many bytes, a microsecond each, to a port.
fn writes(thread: &str, port: u16, bytes: &[u8], from_us: &mut u64) -> String {
    let mut out = String::new();
    for byte in bytes {
        *from_us += 1;
        out.push_str(&format!(
            "       {thread}  [001]    10.{from_us:06}: kvm_pio:              \
             pio_write at {port:#x} size 1 count 1 val {byte:#x} \n"
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
    let (all, _) = printed(&case("x86/console-sick/perf.data.zst").path);
    let printed_ones = all
        .iter()
        .filter(|(line, _)| line.bytes.starts_with(b"PRINT "));
    let printed_ones: Vec<&PrintedLine> = printed_ones.collect();
    // Sixteen rounds of five lines each, numbered, and printed by the second CPU of the second guest.
    for ((line, vcpu), at) in printed_ones.iter().zip(0..) {
        let text = format!(
            "PRINT {:04}.{:02} cpu1 tuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
            at / 5,
            at % 5
        );
        failures.equal("text", &visible(line), &text);
        failures.equal("vCPU", vcpu, &Some(1));
        failures.equal("device", &line.uart.name, &"COM1");
        failures.equal("unknown", &line.unknown_bytes(), &0);
        failures.check(line.end > line.start, || format!("{line:?}"));
    }
    failures.equal("lines", &printed_ones.len(), &80);
    // A firmware's own port.
    let (all, _) = printed(&case("vmx/linux-boot/perf.data.kvmstat.zst").path);
    let first = &all[0].0;
    failures.equal("port", &first.uart.address, &0x402);
    failures.check(first.bytes.starts_with(b"SeaBIOS (version"), || {
        format!("{first:?}")
    });
    failures.finish(400);
}

#[test]
fn lines_are_of_their_vm_and_their_port() {
    let mut at = 0;
    let mut text = entry(A0, 0) + &entry(A1, 1) + &entry(B0, 0);
    text += &writes(A0, 0x3f8, b"one ", &mut at);
    text += &writes(B0, 0x3f8, b"other VM\r\n", &mut at);
    text += &writes(A1, 0x2f8, b"other port\n", &mut at);
    // The lock of the console went from one vCPU to the other.
    text += &writes(A1, 0x3f8, b"two\r\n", &mut at);
    text += &writes(B0, 0x3f8, b"login: ", &mut at);
    let (found, sums) = lines(&text);
    let texts: Vec<String> = found.iter().map(|(line, _)| visible(line)).collect();
    assert_eq!(texts, ["other VM", "other port", "one two", "login: "]);
    let vcpus: Vec<Option<u32>> = found.iter().map(|(_, vcpu)| *vcpu).collect();
    assert_eq!(vcpus, [0, 1, 0, 0].map(Some));
    assert_eq!(found[2].0.start, 10_000_001_000);
    assert!(found[2].0.whole && !found[3].0.whole);
    assert!(found[0].0.vm.is_some() && found[0].0.vm != found[2].0.vm);
    assert_eq!((sums.lines, sums.bytes), (4, 37));
}

#[test]
fn what_is_no_character_to_look_at_is_written_out() {
    let mut at = 0;
    let mut bytes = b"a\x1b[31mb\x07\x7f\xff ".to_vec();
    bytes.extend("ü \u{202e}c\u{9b}d\n".as_bytes());
    let (found, _) = lines(&(entry(A0, 0) + &writes(A0, 0x3f8, &bytes, &mut at)));
    assert_eq!(
        visible(&found[0].0),
        "a^[[31mb^G^?\\xff ü <U+202E>c<U+009B>d"
    );
}

/// The divisor of the speed goes through the same port as the bytes, and a driver that looks for the UART writes to
/// itself.
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
    let (found, sums) = lines(&text);
    assert_eq!(visible(&found[0].0), "printed");
    assert_eq!(sums.bytes, 8);
}

#[test]
fn bytes_without_values_are_counted_where_they_belong() {
    let string = "       CPU 0/KVM-1010  [001]    10.000001: kvm_pio:              \
                  pio_write at 0x3f8 size 1 count 6 val 0x48 (...)\n";
    let mut at = 1;
    let text = entry(A0, 0) + string + &writes(A0, 0x3f8, b"!\n", &mut at);
    let (found, sums) = lines(&text);
    let line = &found[0].0;
    assert_eq!(visible(line), "H<5 bytes not recorded>!");
    assert_eq!((line.bytes.len(), line.unknown_bytes()), (2, 5));
    assert_eq!(sums.unknown, 5);
    // Kernels before 3.16 have no value at all.
    let old = "       CPU 0/KVM-1010  [001]    10.000001: kvm_pio:              pio_write at 0x3f8 size 1 count 1 \n";
    let (found, sums) = lines(&(entry(A0, 0) + old + old));
    assert_eq!(visible(&found[0].0), "<2 bytes not recorded>");
    assert!(render::console::sums(&sums).contains("2 more not recorded"));
}

#[test]
fn on_arm64_the_data_register_is_in_memory() {
    let mut text = String::from(
        "       CPU 0/KVM-330   [000]    10.000000: kvm_entry:            PC: 0xffff800008b2a1c0\n",
    );
    for (byte, at) in b"hi\n".iter().zip(1..) {
        text.push_str(&format!(
            "       CPU 0/KVM-330   [000]    10.{at:06}: kvm_mmio:             \
             mmio write len 1 gpa 0x9000000 val {byte:#x}\n"
        ));
        // The flag register.
        text.push_str(&format!(
            "       CPU 0/KVM-330   [000]    10.{at:06}: kvm_mmio:             mmio read len 4 gpa 0x9000018 val 0x90\n"
        ));
    }
    let (found, _) = lines(&text);
    assert_eq!(visible(&found[0].0), "hi");
    assert_eq!(found[0].0.uart.name, "PL011");
}

/// A line that never ends is broken, and memory stays as it is.
#[test]
fn a_line_without_an_end_is_broken() {
    let mut at = 0;
    let text = entry(A0, 0) + &writes(A0, 0x3f8, &[b'x'; 10_000], &mut at);
    let (found, sums) = lines(&text);
    let lengths: Vec<usize> = found.iter().map(|(line, _)| line.bytes.len()).collect();
    assert_eq!(lengths, [4096, 4096, 1808]);
    assert!(render::console::sums(&sums).contains("console: 3 lines, 10000 bytes"));
}
