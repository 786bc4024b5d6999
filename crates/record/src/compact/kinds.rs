//! Which events programs write, and where the fields of their records are in the slots.

/// Where a field's value is. Numbers of bytes and words are those of `bpf/compact.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldSource {
    /// The thread that made the event.
    Current,
    /// That thread's name.
    CurrentName,
    /// The 32 bits beside it.
    Word,
    /// The name of the thread that these 32 bits name.
    WordName,
    /// One of three bytes.
    Byte(usize),
    /// A priority: one of three bytes, of which 255 is -1.
    Priority(usize),
    /// Two bytes from one of them on.
    TwoBytes(usize),
    /// A task's state, as the number of its bit plus one.
    TaskState,
    /// A word of the slots behind the first.
    More(usize),
    /// Its upper half.
    UpperHalf(usize),
    /// A number that is always the same.
    Always(u64),
}

/// How a program gets what is in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttachPoint {
    /// By the tracepoint's arguments with their types (`tp_btf`).
    Typed,
    /// By its arguments (`raw_tp`), if the format begins with these fields.
    Arguments(&'static [&'static str]),
    /// By its record.
    Record,
}

/// An event that programs write.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactKind {
    /// Its number (`enum kind`).
    pub number: u8,
    pub system: &'static str,
    pub name: &'static str,
    /// The architecture whose kernels alone have it so, as `std::env::consts::ARCH` has it.
    pub arch: Option<&'static str>,
    /// Its programs, of which the first is taken that this kernel takes.
    pub programs: &'static [&'static str],
    pub attach: AttachPoint,
    /// Slots that it takes.
    pub slots: usize,
    /// The fields of its record that are known.
    pub fields: &'static [(&'static str, FieldSource)],
}

/// A slot that goes with the one before (`MORE`).
pub(super) const MORE: u8 = 1;
/// Kinds at most (`KINDS`).
pub(super) const KINDS: usize = 16;
/// Slots of an event at most.
pub(super) const MOST_SLOTS: usize = 4;

use AttachPoint::{Arguments, Record, Typed};
use FieldSource::{
    Always, Byte, Current, CurrentName, More, Priority, TaskState, TwoBytes, UpperHalf, Word,
    WordName,
};

const WAKES: &[(&str, FieldSource)] = &[
    ("comm", WordName),
    ("pid", Word),
    ("prio", Priority(0)),
    ("success", Always(1)),
    ("target_cpu", TwoBytes(1)),
];

const fn sched(
    number: u8,
    name: &'static str,
    programs: &'static [&'static str],
    slots: usize,
    fields: &'static [(&'static str, FieldSource)],
) -> CompactKind {
    CompactKind {
        number,
        system: "sched",
        name,
        arch: None,
        programs,
        attach: Typed,
        slots,
        fields,
    }
}

const fn kvm(
    number: u8,
    name: &'static str,
    programs: &'static [&'static str],
    slots: usize,
    arguments: &'static [&'static str],
    fields: &'static [(&'static str, FieldSource)],
) -> CompactKind {
    CompactKind {
        number,
        system: "kvm",
        name,
        arch: None,
        programs,
        attach: Arguments(arguments),
        slots,
        fields,
    }
}

/// All of them (`include/trace/events/{sched,kvm}.h`, `arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`).
pub(super) const ALL: &[CompactKind] = &[
    sched(
        2,
        "sched_switch",
        &["sched_switch_with_state", "sched_switch"],
        1,
        &[
            ("prev_comm", CurrentName),
            ("prev_pid", Current),
            ("prev_prio", Priority(1)),
            ("prev_state", TaskState),
            ("next_comm", WordName),
            ("next_pid", Word),
            ("next_prio", Priority(2)),
        ],
    ),
    sched(3, "sched_waking", &["sched_waking"], 1, WAKES),
    sched(4, "sched_wakeup", &["sched_wakeup"], 1, WAKES),
    sched(
        5,
        "sched_migrate_task",
        &["sched_migrate_task"],
        2,
        &[
            ("comm", WordName),
            ("pid", Word),
            ("prio", Priority(0)),
            ("orig_cpu", More(0)),
            ("dest_cpu", More(1)),
        ],
    ),
    CompactKind {
        arch: Some("x86_64"),
        attach: Record,
        ..kvm(
            6,
            "kvm_exit",
            &["kvm_exit"],
            4,
            &[],
            &[
                ("exit_reason", Word),
                ("guest_rip", More(0)),
                ("isa", Byte(0)),
                ("info1", More(1)),
                ("info2", More(2)),
                ("intr_info", More(3)),
                ("error_code", UpperHalf(3)),
                ("vcpu_id", TwoBytes(1)),
                ("requests", More(4)),
            ],
        )
    },
    CompactKind {
        arch: Some("aarch64"),
        ..kvm(
            6,
            "kvm_exit",
            &["kvm_exit_by_argument"],
            2,
            &["ret", "esr_ec", "vcpu_pc"],
            &[("ret", Word), ("esr_ec", More(0)), ("vcpu_pc", More(1))],
        )
    },
    kvm(7, "kvm_entry", &["kvm_entry"], 1, &[], &[]),
    kvm(
        8,
        "kvm_userspace_exit",
        &["kvm_userspace_exit"],
        2,
        &["reason", "errno"],
        &[("reason", Word), ("errno", More(0))],
    ),
    kvm(
        9,
        "kvm_pio",
        &["kvm_pio"],
        2,
        &["rw", "port", "size", "count"],
        &[
            ("rw", Byte(0)),
            ("port", Word),
            ("size", Byte(1)),
            ("count", More(0)),
            ("val", More(1)),
        ],
    ),
    kvm(
        10,
        "kvm_mmio",
        &["kvm_mmio"],
        2,
        &["type", "len", "gpa"],
        &[
            ("type", Byte(0)),
            ("len", Word),
            ("gpa", More(0)),
            ("val", More(1)),
        ],
    ),
    kvm(
        11,
        "kvm_msr",
        &["kvm_msr"],
        2,
        &["write", "ecx", "data"],
        &[
            ("write", Byte(0)),
            ("ecx", Word),
            ("data", More(0)),
            ("exception", Byte(1)),
        ],
    ),
    kvm(
        12,
        "kvm_fast_mmio",
        &["kvm_fast_mmio"],
        2,
        &["gpa"],
        &[("gpa", More(0))],
    ),
    kvm(13, "kvm_fpu", &["kvm_fpu"], 1, &["load"], &[("load", Word)]),
    kvm(
        14,
        "kvm_halt_poll_ns",
        &["kvm_halt_poll_ns"],
        2,
        &["grow", "vcpu_id", "new", "old"],
        &[
            ("grow", Byte(0)),
            ("vcpu_id", Word),
            ("new", More(0)),
            ("old", More(1)),
        ],
    ),
    kvm(
        15,
        "kvm_vcpu_wakeup",
        &["kvm_vcpu_wakeup"],
        2,
        &["ns", "waited", "valid"],
        &[("ns", More(0)), ("waited", Byte(0)), ("valid", Byte(1))],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_number_and_slots_for_its_fields() {
        for one in ALL {
            assert!(usize::from(one.number) < KINDS && one.number > MORE);
            assert!((1..=MOST_SLOTS).contains(&one.slots), "{}", one.name);
            let same = ALL.iter().filter(|other| other.number == one.number);
            assert_eq!(same.filter(|other| other.arch == one.arch).count(), 1);
            for (name, source) in one.fields {
                let (More(at) | UpperHalf(at)) = source else {
                    continue;
                };
                assert!(*at < 2 * (one.slots - 1), "{}: {name}", one.name);
            }
        }
    }
}
