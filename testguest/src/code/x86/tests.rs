//! The code is run by a reader of machine code that knows nothing of the assembler: it has to find the operations that
//! were asked for, as often as asked.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::layout::{DATA, MAX_VCPUS};

/// Returns a plan of so many of each operation.
fn plan(per_round: [u32; Operation::ALL.len()], hold: bool) -> Plan {
    Plan {
        vcpus: 2,
        rounds: 1,
        per_round,
        period: None,
        device_delay: Duration::ZERO,
        hold: hold.then_some(Duration::ZERO),
    }
}

/// Returns a plan of one operation.
fn plan_of(operation: Operation, times: u32) -> Plan {
    let mut per_round = [0; Operation::ALL.len()];
    per_round[operation as usize] = times;
    plan(per_round, false)
}

/// A processor that knows the instructions of this crate, by Intel's manual.
struct Processor<'a> {
    code: &'a [u8],
    at: usize,
    dx: u16,
    esi: u32,
    eax: u32,
    ecx: u32,
    /// Whether the last comparison was of equals.
    zero: bool,
    /// What the byte at [`HOLD`] is.
    hold: u8,
    seen: BTreeMap<String, u32>,
}

impl<'a> Processor<'a> {
    fn new(code: &'a [u8], hold: u8) -> Processor<'a> {
        Processor {
            code,
            at: 0,
            dx: 0,
            esi: 0,
            eax: 0,
            ecx: 0,
            zero: false,
            hold,
            seen: BTreeMap::new(),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.code[self.at..self.at + N]
            .try_into()
            .expect("as many as asked");
        self.at += N;
        taken
    }

    fn see(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn jump(&mut self, distance: i16) {
        self.at = self
            .at
            .checked_add_signed(isize::from(distance))
            .expect("no jump leaves the code");
    }

    /// Runs one instruction. Returns whether it ends a round or an interrupt.
    fn step(&mut self) -> bool {
        let [first] = self.take();
        match first {
            0x66 => return self.step_of_32_bits(),
            0xba => self.dx = u16::from_le_bytes(self.take()),
            0x26 => {
                let [0x66, opcode] = self.take() else {
                    panic!("of 32 bits")
                };
                let at = u16::from_le_bytes(self.take());
                match opcode {
                    0xa1 => self.see(format!("read {at:#x}")),
                    // Only an ioeventfd looks at the value.
                    0xa3 if at == mmio::IOEVENTFD => {
                        self.see(format!("write {at:#x} {}", self.eax));
                    }
                    0xa3 => self.see(format!("write {at:#x}")),
                    _ => panic!("opcode {opcode:#x}"),
                }
            }
            0xfb => self.see("sti".into()),
            0xf4 => self.see("hlt".into()),
            0xfa => self.see("cli".into()),
            0xcf => return true,
            0x0f => self.step_of_two_bytes(),
            0x80 => {
                let [modrm, low, high, value] = self.take();
                assert_eq!((modrm, u16::from_le_bytes([low, high])), (0x3e, HOLD));
                self.zero = value == self.hold;
            }
            0x74 => {
                let [distance] = self.take();
                if self.zero {
                    self.jump(i16::from(distance));
                }
            }
            0xe9 => {
                let distance = i16::from_le_bytes(self.take());
                self.jump(distance);
            }
            other => panic!("opcode {other:#x} at {:#x}", self.at - 1),
        }
        false
    }

    fn step_of_32_bits(&mut self) -> bool {
        let [opcode] = self.take();
        match opcode {
            0xef => {
                self.see(format!("out {:#x}", self.dx));
                return self.dx == port::ROUND;
            }
            0xed => self.see(format!("in {:#x}", self.dx)),
            0xbe => self.esi = u32::from_le_bytes(self.take()),
            0xb9 => self.ecx = u32::from_le_bytes(self.take()),
            0xb8 => self.eax = u32::from_le_bytes(self.take()),
            0x4e => {
                self.esi -= 1;
                self.zero = self.esi == 0;
            }
            0x31 => match self.take() {
                [0xc0] => self.eax = 0,
                [0xc9] => self.ecx = 0,
                [0xd2] => {}
                [other] => panic!("registers {other:#x}"),
            },
            0xff => {
                let [modrm, low, high] = self.take();
                assert_eq!(modrm, 0x06);
                self.see(format!("inc {:#x}", u16::from_le_bytes([low, high])));
            }
            other => panic!("opcode 66 {other:#x}"),
        }
        false
    }

    fn step_of_two_bytes(&mut self) {
        match self.take() {
            [0x30] => self.see(format!("wrmsr {:#x} {}", self.ecx, self.eax)),
            [0xa2] => self.see(format!("cpuid {} {}", self.eax, self.ecx)),
            [0x85] => {
                let distance = i16::from_le_bytes(self.take());
                if !self.zero {
                    self.jump(distance);
                }
            }
            [0x01] => match self.take() {
                [0xc1] => self.see(format!("vmcall {}", self.eax)),
                [0xd9] => self.see(format!("vmmcall {}", self.eax)),
                [other] => panic!("opcode 0f 01 {other:#x}"),
            },
            [other] => panic!("opcode 0f {other:#x}"),
        }
    }
}

/// Runs a round and returns what it did.
fn round(code: &[u8], hold: u8) -> Vec<(String, u32)> {
    let mut processor = Processor::new(code, hold);
    while !processor.step() {}
    processor.seen.into_iter().collect()
}

fn seen(counts: &[(&str, u32)]) -> Vec<(String, u32)> {
    let mut counts: Vec<(String, u32)> = counts
        .iter()
        .map(|(what, count)| ((*what).to_owned(), *count))
        .collect();
    counts.sort();
    counts
}

#[test]
fn each_operation_is_done_as_often_as_asked() {
    let does = [
        (Operation::PioOut, "out 0xc000"),
        (Operation::PioIn, "in 0xc004"),
        (Operation::MmioRead, "read 0x4"),
        (Operation::MmioWrite, "write 0x0"),
        (Operation::Halt, "hlt"),
        (Operation::Cpuid, "cpuid 0 0"),
        (Operation::Hypercall, "vmcall 1"),
        (Operation::Ioeventfd, "out 0xc010"),
        (Operation::IoeventfdMmio, "write 0x1000 0"),
    ];
    for (operation, what) in does {
        for times in [1, 2, 300, 70_000] {
            let code = vcpu_code(&plan_of(operation, times), 0, Vendor::Intel);
            let expected = seen(&[(what, times), ("out 0xc008", 1)]);
            assert_eq!(round(&code, 0), expected, "{}", operation.name());
        }
    }
}

#[test]
fn each_vendor_has_its_hypercall() {
    let code = vcpu_code(&plan_of(Operation::Hypercall, 2), 0, Vendor::Amd);
    let expected = seen(&[("vmmcall 1", 2), ("out 0xc008", 1)]);
    assert_eq!(round(&code, 0), expected);
}

#[test]
fn nothing_asked_is_only_the_end_of_a_round() {
    let code = vcpu_code(&plan([0; Operation::ALL.len()], false), 0, Vendor::Intel);
    assert_eq!(code, [0xba, 0x08, 0xc0, 0x66, 0xef, 0xe9, 0xf8, 0xff]);
}

#[test]
fn a_second_round_is_as_the_first_without_its_preparations() {
    let mut per_round = [3; Operation::ALL.len()];
    per_round[Operation::Cpuid as usize] = 0;
    let code = vcpu_code(&plan(per_round, false), 1, Vendor::Intel);
    let mut processor = Processor::new(&code, 0);
    while !processor.step() {}
    let first = std::mem::take(&mut processor.seen);
    while !processor.step() {}
    let mut again = processor.seen;
    for once in ["wrmsr 0x80f 511", "wrmsr 0x832 65", "wrmsr 0x83e 11"] {
        assert_eq!(first.get(once), Some(&1), "{once}");
        assert_eq!(again.insert(once.to_owned(), 1), None, "{once}");
    }
    assert_eq!(first, again);
    // The timer, a message and a pin are waited for; each asks its own device.
    assert_eq!(first.get("hlt"), Some(&9));
    assert_eq!(first.get("wrmsr 0x838 100000"), Some(&3));
    assert_eq!(first.get("out 0xc104"), Some(&3));
    assert_eq!(first.get("out 0xc204"), Some(&3));
}

#[test]
fn a_guest_is_held_only_when_that_is_asked_for() {
    let mut per_round = [0; Operation::ALL.len()];
    per_round[Operation::Irqfd as usize] = 5;
    let plan = plan(per_round, true);
    let held = |vcpu, hold| {
        let seen: BTreeMap<String, u32> = round(&vcpu_code(&plan, vcpu, Vendor::Intel), hold)
            .into_iter()
            .collect();
        assert_eq!(seen.get("hlt"), Some(&5));
        seen.get("out 0xc00c").copied().unwrap_or(0)
    };
    assert_eq!(held(0, 0), 0);
    assert_eq!(held(0, 1), 5);
    assert_eq!(held(1, 1), 0);
}

#[test]
fn an_interrupt_is_counted_where_it_belongs_and_ended() {
    for (vector, counter) in [
        (IrqVector::Message, "inc 0xc00"),
        (IrqVector::Timer, "inc 0xc04"),
        (IrqVector::Pin, "inc 0xc08"),
    ] {
        let expected = seen(&[(counter, 1), ("wrmsr 0x80b 0", 1)]);
        assert_eq!(round(&handler(vector), 0), expected);
    }
}

#[test]
fn code_fits_before_data() {
    let plan = plan([u32::MAX; Operation::ALL.len()].map(|n| n / 16), true);
    for vcpu in 0..MAX_VCPUS {
        let code = vcpu_code(&plan, vcpu, Vendor::Amd);
        assert!(code.len() <= usize::from(DATA), "{} bytes", code.len());
    }
}
