//! As for x86: a reader of machine code that knows nothing of the assembler runs the code.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

fn plan(counts: &[(Operation, u32)]) -> Plan {
    let mut per_round = [0; Operation::ALL.len()];
    for (operation, times) in counts {
        per_round[*operation as usize] = *times;
    }
    Plan {
        vcpus: 2,
        rounds: 1,
        per_round,
        period: None,
        device_delay: Duration::ZERO,
        hold: None,
    }
}

/// A processor that knows the instructions of this crate, by Arm's manual.
struct Processor {
    code: Vec<u32>,
    at: usize,
    registers: [u32; 32],
    zero: bool,
    seen: BTreeMap<String, u32>,
}

impl Processor {
    fn new(code: &[u8]) -> Processor {
        let code = code
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        Processor {
            code: code.collect(),
            at: 0,
            registers: [0; 32],
            zero: false,
            seen: BTreeMap::new(),
        }
    }

    fn see(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Moves by a signed number of instructions of so many bits, from the instruction before.
    fn jump(&mut self, distance: u32, bits: u32) {
        let distance = (distance << (32 - bits)).cast_signed() >> (32 - bits);
        let from = self.at - 1;
        self.at = from
            .checked_add_signed(distance as isize)
            .expect("no jump leaves the code");
    }

    /// Runs one instruction. Returns whether it ends a round.
    fn step(&mut self) -> bool {
        let word = self.code[self.at];
        self.at += 1;
        let register = (word & 0x1f) as usize;
        let value = word >> 5 & 0xffff;
        let address = self.registers[1];
        match word {
            0xb900_003f => {
                self.see(format!("write {address:#x}"));
                return address == mmio::BASE_AARCH64 + u32::from(mmio::ROUND);
            }
            0xb940_0022 => self.see(format!("read {address:#x}")),
            0xd400_0002 => self.see(format!("hvc {:#x}", self.registers[0])),
            0xd503_207f => self.see("wfi".into()),
            0xf100_0673 => {
                self.registers[19] -= 1;
                self.zero = self.registers[19] == 0;
            }
            _ if word >> 21 == 0xd280_0000 >> 21 => self.registers[register] = value,
            _ if word >> 21 == 0xf2a0_0000 >> 21 => {
                self.registers[register] = self.registers[register] & 0xffff | value << 16;
            }
            _ if word & 0xff00_001f == 0x5400_0001 => {
                if !self.zero {
                    self.jump(word >> 5 & 0x7_ffff, 19);
                }
            }
            _ if word >> 26 == 0b00_0101 => self.jump(word & 0x3ff_ffff, 26),
            _ => panic!("instruction {word:#x}"),
        }
        false
    }

    /// Runs a round and returns what it did.
    fn round(&mut self) -> Vec<(String, u32)> {
        while !self.step() {}
        std::mem::take(&mut self.seen).into_iter().collect()
    }
}

#[test]
fn each_operation_is_done_as_often_as_asked() {
    let plan = plan(&[
        (Operation::MmioRead, 1),
        (Operation::MmioWrite, 2),
        (Operation::Halt, 70_000),
        (Operation::Hypercall, 300),
        (Operation::IoeventfdMmio, 4),
    ]);
    let code = vcpu_code(&plan, 1);
    let expected = [
        ("hvc 0x84000000", 300),
        ("read 0xa000004", 1),
        ("wfi", 70_000),
        ("write 0xa000000", 2),
        ("write 0xa000008", 1),
        ("write 0xa00000c", 70_000),
        ("write 0xa001000", 4),
        ("write 0xa002004", 70_000),
    ];
    let expected = expected.map(|(what, count)| (what.to_owned(), count));
    let mut processor = Processor::new(&code);
    assert_eq!(processor.round(), expected);
    assert_eq!(processor.round(), expected, "the second round");
}

#[test]
fn nothing_asked_is_only_the_end_of_a_round() {
    let code = vcpu_code(&plan(&[]), 0);
    let words: Vec<u32> = code
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect();
    assert_eq!(words, [0xd280_0101, 0xf2a1_4001, 0xb900_003f, 0x17ff_fffd]);
}
