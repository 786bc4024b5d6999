//! Code for x86, in real mode, of instructions with their encodings.
//!
//! Real mode, as it needs no tables and every KVM runs it, by emulating it where it has to. Operands have 32 bits
//! behind the prefix 0x66. Encodings are those of Intel's manual, volume 2.
//!
//! What stays in a register: ESI counts the repetitions of a loop; DS, SS and CS are the vCPU's page, ES is where
//! registers are. An interrupt comes only at the HLT that waits for it, where nothing else is kept in a register.

use crate::layout::{HOLD, IrqVector, mmio, port};
use crate::plan::{Operation, Plan};

/// Registers of the local APIC in x2APIC mode, which are MSRs (Intel's manual, volume 3, "x2APIC Register Address
/// Space").
mod x2apic {
    pub(super) const EOI: u32 = 0x80b;
    /// Spurious interrupts, and whether the APIC is on.
    pub(super) const SPURIOUS: u32 = 0x80f;
    pub(super) const TIMER: u32 = 0x832;
    pub(super) const TIMER_COUNT: u32 = 0x838;
    pub(super) const TIMER_DIVIDER: u32 = 0x83e;
}

/// Bit 8: the APIC is on. Spurious interrupts have vector 255.
const APIC_ON: u32 = 0x1ff;
/// The timer counts at the APIC's own frequency, which KVM says is 1 GHz.
const DIVIDE_BY_1: u32 = 0b1011;
/// Nanoseconds from arming the timer to its interrupt.
const TIMER_NS: u32 = 100_000;
/// `KVM_HC_VAPIC_POLL_IRQ` (`include/uapi/linux/kvm_para.h`): the kernel answers it with 0 and does nothing.
const HYPERCALL: u32 = 1;

/// The instruction that asks the hypervisor: each vendor has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    /// VMCALL.
    Intel,
    /// VMMCALL.
    Amd,
}

/// Code that grows.
#[derive(Debug, Default)]
struct X86Assembler {
    bytes: Vec<u8>,
}

impl X86Assembler {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_u16(&mut self, opcode: &[u8], value: u16) {
        self.put(opcode);
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, opcode: &[u8], value: u32) {
        self.put(opcode);
        self.put(&value.to_le_bytes());
    }

    /// `out dx, eax`
    fn out(&mut self, port: u16) {
        self.put_u16(&[0xba], port); // mov dx, port
        self.put(&[0x66, 0xef]); // out dx, eax
    }

    /// `wrmsr`, of 32 bits.
    fn wrmsr(&mut self, msr: u32, value: u32) {
        self.put_u32(&[0x66, 0xb9], msr); // mov ecx, msr
        self.put_u32(&[0x66, 0xb8], value); // mov eax, value
        self.put(&[0x66, 0x31, 0xd2]); // xor edx, edx
        self.put(&[0x0f, 0x30]); // wrmsr
    }

    /// Waits for one interrupt. Interrupts are taken from after the instruction that follows STI, so that none comes
    /// before the HLT, which would then wait forever.
    fn wait(&mut self) {
        self.put(&[0xfb]); // sti
        self.put(&[0xf4]); // hlt
        self.put(&[0xfa]); // cli
    }

    /// Goes to user space if user space asked for it.
    fn be_held(&mut self) {
        self.put_u16(&[0x80, 0x3e], HOLD); // cmp byte [HOLD], 0
        self.put(&[0x00]);
        self.put(&[0x74, 0x05]); // je over the next 5 bytes
        self.out(port::HOLD);
    }

    /// A loop around a body, or nothing if it is to run 0 times.
    fn repeat(&mut self, times: u32, body: impl FnOnce(&mut X86Assembler)) {
        if times == 0 {
            return;
        }
        self.put_u32(&[0x66, 0xbe], times); // mov esi, times
        let top = self.bytes.len();
        body(self);
        self.put(&[0x66, 0x4e]); // dec esi
        self.jump(&[0x0f, 0x85], top); // jnz top
    }

    /// A jump by 16 bits to a place that is known.
    fn jump(&mut self, opcode: &[u8], target: usize) {
        let end = self.bytes.len() + opcode.len() + 2;
        // A page has 4096 bytes, so neither number is cut.
        let distance = (target as u16).wrapping_sub(end as u16);
        self.put_u16(opcode, distance);
    }
}

/// Returns a vCPU's code. It does rounds forever: user space counts them, and stops.
pub(crate) fn vcpu_code(plan: &Plan, vcpu: u32, vendor: Vendor) -> Vec<u8> {
    let mut code = X86Assembler::default();
    if plan.has_irqchip() {
        code.wrmsr(x2apic::SPURIOUS, APIC_ON);
        code.wrmsr(x2apic::TIMER, u32::from(IrqVector::Timer.number())); // one shot, not masked
        code.wrmsr(x2apic::TIMER_DIVIDER, DIVIDE_BY_1);
    }
    let top = code.bytes.len();
    for operation in Operation::ALL {
        code.repeat(plan.each_round(operation), |code| {
            body(code, operation, plan, vcpu, vendor);
        });
    }
    code.out(port::ROUND);
    code.jump(&[0xe9], top); // jmp top
    code.bytes
}

/// What an operation is in instructions.
fn body(code: &mut X86Assembler, operation: Operation, plan: &Plan, vcpu: u32, vendor: Vendor) {
    match operation {
        Operation::PioOut => code.out(port::OUT),
        Operation::PioIn => {
            code.put_u16(&[0xba], port::IN); // mov dx, port
            code.put(&[0x66, 0xed]); // in eax, dx
        }
        Operation::MmioRead => code.put_u16(&[0x26, 0x66, 0xa1], mmio::READ), // mov eax, es:[READ]
        Operation::MmioWrite => code.put_u16(&[0x26, 0x66, 0xa3], mmio::WRITE), // mov es:[WRITE], eax
        Operation::Halt if plan.has_irqchip() => {
            code.wrmsr(x2apic::TIMER_COUNT, TIMER_NS);
            code.wait();
        }
        Operation::Halt => code.put(&[0xf4]), // hlt
        Operation::Cpuid => {
            code.put(&[0x66, 0x31, 0xc0]); // xor eax, eax
            code.put(&[0x66, 0x31, 0xc9]); // xor ecx, ecx
            code.put(&[0x0f, 0xa2]); // cpuid
        }
        Operation::Hypercall => {
            code.put_u32(&[0x66, 0xb8], HYPERCALL); // mov eax, HYPERCALL
            code.put(match vendor {
                Vendor::Intel => &[0x0f, 0x01, 0xc1], // vmcall
                Vendor::Amd => &[0x0f, 0x01, 0xd9],   // vmmcall
            });
        }
        Operation::Ioeventfd => code.out(port::IOEVENTFD),
        Operation::IoeventfdMmio => {
            code.put(&[0x66, 0x31, 0xc0]); // xor eax, eax
            code.put_u16(&[0x26, 0x66, 0xa3], mmio::IOEVENTFD); // mov es:[IOEVENTFD], eax
        }
        Operation::Irqfd => {
            code.out(port::message(vcpu));
            if plan.holds(vcpu) {
                code.be_held();
            }
            code.wait();
        }
        Operation::IrqfdPin => {
            code.out(port::pin(vcpu));
            code.wait();
        }
    }
}

/// Returns the code that an interrupt runs: it counts in the page of the vCPU that takes it, and ends the interrupt.
pub(crate) fn handler(vector: IrqVector) -> Vec<u8> {
    let mut code = X86Assembler::default();
    code.put_u16(&[0x66, 0xff, 0x06], vector.counter()); // inc dword [counter]
    code.wrmsr(x2apic::EOI, 0);
    code.put(&[0xcf]); // iret
    code.bytes
}

#[cfg(test)]
mod tests;
