//! Texts in the form that kernels print are read in one go; they have to be read as all others are.

use crate::{Kind, TextReader};

const TEXTS: [(Kind, &str); 12] = [
    (
        Kind::KvmMmio,
        "mmio read len 4 gpa 0xfed000f0 val 0x893f9d2c",
    ),
    (
        Kind::KvmMmio,
        "mmio unsatisfied-read len 4 gpa 0xfed000f0 val 0x0",
    ),
    (Kind::KvmPio, "pio_write at 0x608 size 4 count 12 val 0x1f"),
    (
        Kind::KvmPio,
        "pio_read at 0x608 size 1 count 2 val 0x1f (...)",
    ),
    (Kind::KvmMsr, "msr_write 6e0 = 0x1f7a"),
    (Kind::KvmUserspaceExit, "reason KVM_EXIT_MMIO (6)"),
    (Kind::KvmEntry, "vcpu 1, rip 0xffffffff8107141c"),
    (
        Kind::KvmExit,
        "vcpu 0 reason npf rip 0xffffffff8107141a info1 0x000000010000000c info2 0x00000000fed000f0 \
         intr_info 0x00000000 error_code 0x00000000",
    ),
    (
        Kind::KvmExit,
        "vcpu 0 reason EPT_VIOLATION rip 0xf1a info1 0x0000000000000181 info2 0x0000000000000000 \
         intr_info 0x00000000 error_code 0x00000000",
    ),
    (
        Kind::SchedSwitch,
        "prev_comm=CPU 0/KVM prev_pid=1508 prev_prio=120 prev_state=R+ ==> next_comm=a b:c next_pid=7 \
         next_prio=120",
    ),
    (
        Kind::SchedSwitch,
        "prev_comm=next_pid=1 prev_pid=1508 prev_prio=12 prev_state=S ==> next_comm=prev_state=D \
         next_pid=7 next_prio=1",
    ),
    (
        Kind::SchedWakeup,
        "comm=CPU 0/KVM pid=1508 prio=120 target_cpu=003",
    ),
];

/// With a blank before it a text is not in that form, and says the same.
#[track_caller]
fn is_read_as_others(kind: Kind, text: &[u8]) {
    let blank = [b" ", text].concat();
    let read = |text: &[u8]| format!("{:?}", TextReader::default().read(kind, text));
    assert_eq!(
        read(text),
        read(&blank),
        "{}",
        String::from_utf8_lossy(text)
    );
}

#[test]
fn the_usual_form_is_read_as_any_other() {
    for (kind, text) in TEXTS {
        let text = text.as_bytes();
        is_read_as_others(kind, text);
        // A reason is read otherwise where it is cut or has something else in it.
        let rip = text.windows(4).position(|four| four == b"rip ");
        for at in rip.unwrap_or(1)..text.len() {
            is_read_as_others(kind, &text[..at]);
            is_read_as_others(kind, &[&text[..at], &text[at + 1..]].concat());
            for byte in [
                &b" "[..],
                b"0",
                b"g",
                b"=",
                b",",
                b"\t",
                b"(",
                b"x",
                b"info ",
                b" 0x1 ",
                b"\xff",
            ] {
                is_read_as_others(kind, &[&text[..at], byte, &text[at..]].concat());
                is_read_as_others(kind, &[&text[..at], byte, &text[at + 1..]].concat());
            }
        }
    }
}
