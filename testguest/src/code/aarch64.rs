//! Code for aarch64, at EL1 with the MMU off, of instructions with their encodings (Arm's manual, DDI 0487, C6.2).
//!
//! X19 counts the repetitions of a loop, which a hypercall leaves alone (SMC calling convention, DEN 0028). No
//! interrupt is ever taken: WFI ends when one is pending, even while it is masked.

use crate::layout::mmio;
use crate::plan::{Operation, Plan};

/// `PSCI_VERSION` (Arm's DEN 0022): KVM answers it in the kernel.
const PSCI_VERSION: u32 = 0x8400_0000;

/// Code that grows.
#[derive(Debug, Default)]
struct ArmAssembler {
    words: Vec<u32>,
}

impl ArmAssembler {
    fn put(&mut self, word: u32) {
        self.words.push(word);
    }

    /// `mov xN, value`, in two instructions.
    fn set(&mut self, register: u32, value: u32) {
        self.put(0xd280_0000 | (value & 0xffff) << 5 | register); // movz xN, #low
        self.put(0xf2a0_0000 | (value >> 16) << 5 | register); // movk xN, #high, lsl #16
    }

    /// Writes four bytes to a register of a device, which are 0.
    fn write(&mut self, register: u16) {
        self.set(1, mmio::BASE_AARCH64 + u32::from(register));
        self.put(0xb900_003f); // str wzr, [x1]
    }

    /// A loop around a body, or nothing if it is to run 0 times.
    fn repeat(&mut self, times: u32, body: impl FnOnce(&mut ArmAssembler)) {
        if times == 0 {
            return;
        }
        self.set(19, times);
        let top = self.words.len();
        body(self);
        self.put(0xf100_0673); // subs x19, x19, #1
        let back = self.distance(top) & 0x7_ffff;
        self.put(0x5400_0001 | back << 5); // b.ne top
    }

    /// How far back a place is that is known, in instructions, as a signed number.
    fn distance(&self, target: usize) -> u32 {
        // A page has 1024 instructions, so neither number is cut.
        (target as u32).wrapping_sub(self.words.len() as u32)
    }
}

/// Returns a vCPU's code. It does rounds forever: user space counts them, and stops.
pub(crate) fn vcpu_code(plan: &Plan, vcpu: u32) -> Vec<u8> {
    let mut code = ArmAssembler::default();
    for operation in Operation::ALL {
        code.repeat(plan.each_round(operation), |code| {
            body(code, operation, vcpu);
        });
    }
    code.write(mmio::ROUND);
    let back = code.distance(0) & 0x3ff_ffff;
    code.put(0x1400_0000 | back); // b to the beginning
    let bytes = code.words.iter().flat_map(|word| word.to_le_bytes());
    bytes.collect()
}

/// What an operation is in instructions; nothing for what this architecture does not have (`machine::is_operation`).
fn body(code: &mut ArmAssembler, operation: Operation, vcpu: u32) {
    match operation {
        Operation::MmioRead => {
            code.set(1, mmio::BASE_AARCH64 + u32::from(mmio::READ));
            code.put(0xb940_0022); // ldr w2, [x1]
        }
        Operation::MmioWrite => code.write(mmio::WRITE),
        Operation::IoeventfdMmio => code.write(mmio::IOEVENTFD),
        Operation::Hypercall => {
            code.set(0, PSCI_VERSION);
            code.put(0xd400_0002); // hvc #0
        }
        Operation::Halt => {
            code.write(mmio::wake(vcpu));
            code.put(0xd503_207f); // wfi
            code.write(mmio::LOWER);
        }
        Operation::PioOut
        | Operation::PioIn
        | Operation::Cpuid
        | Operation::Ioeventfd
        | Operation::Irqfd
        | Operation::IrqfdPin => {}
    }
}

#[cfg(test)]
mod tests;
