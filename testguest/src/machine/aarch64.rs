//! What is aarch64's own about a VM. It has no interrupt controller: user space moves each vCPU's interrupt line.

use anyhow::{Context, Result};
use kvm_bindings::{
    KVM_ARM_IRQ_CPU_IRQ, KVM_ARM_IRQ_TYPE_CPU, KVM_ARM_IRQ_TYPE_SHIFT, KVM_ARM_IRQ_VCPU_SHIFT,
    KVM_ARM_VCPU_PSCI_0_2, KVM_REG_ARM_CORE, KVM_REG_ARM64, KVM_REG_SIZE_U64, kvm_vcpu_init,
};
use kvm_ioctls::{IoEventAddress, Kvm, VcpuExit, VcpuFd, VmFd};
use vmm_sys_util::eventfd::EventFd;

use super::{AccessAnswer, Device, Register, eventfd, register};
use crate::code::aarch64::vcpu_code;
use crate::layout::{mmio, page};
use crate::memory::Memory;
use crate::plan::{Operation, Plan};

/// Where registers in memory begin.
pub(super) const MMIO_BASE: u32 = mmio::BASE_AARCH64;
/// The program counter among KVM's registers: 4 bytes are a unit, and 32 registers of 8 bytes are before it (`struct
/// user_pt_regs` in the kernel's `arch/arm64/include/uapi/asm/ptrace.h`).
const PROGRAM_COUNTER: u64 =
    KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE as u64 | (32 * 8 / 4);

/// Returns whether this architecture has an operation.
pub(crate) fn is_operation(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::MmioRead
            | Operation::MmioWrite
            | Operation::Halt
            | Operation::Hypercall
            | Operation::IoeventfdMmio
    )
}

/// Returns what came out, or `None` for what was not asked for.
pub(crate) fn register_of(exit: &mut VcpuExit<'_>) -> Option<Register> {
    let at = |register: u16| u64::from(MMIO_BASE) + u64::from(register);
    match exit {
        VcpuExit::MmioRead(address, data) if *address == at(mmio::READ) => {
            data.fill(0);
            Some(Register::Operation(Operation::MmioRead))
        }
        VcpuExit::MmioWrite(address, _) if *address == at(mmio::WRITE) => {
            Some(Register::Operation(Operation::MmioWrite))
        }
        VcpuExit::MmioWrite(address, _) if *address == at(mmio::ROUND) => Some(Register::Round),
        VcpuExit::MmioWrite(address, _) if *address == at(mmio::LOWER) => Some(Register::Lower),
        _ => None,
    }
}

/// Returns a vCPU's code.
#[expect(clippy::unnecessary_wraps, reason = "x86 has to ask for the vendor")]
pub(super) fn code(plan: &Plan, vcpu: u32) -> Result<Vec<u8>> {
    Ok(vcpu_code(plan, vcpu))
}

/// Prepares a VM before it has vCPUs.
#[expect(clippy::unnecessary_wraps, reason = "x86 has things to do")]
pub(super) fn prepare(_: &VmFd, _: &Memory, _: &Plan) -> Result<()> {
    Ok(())
}

/// Brings a vCPU to the beginning of its code.
pub(super) fn prepare_vcpu(_: &Kvm, vm: &VmFd, fd: &VcpuFd, _: &Plan, vcpu: u32) -> Result<()> {
    let mut init = kvm_vcpu_init::default();
    vm.get_preferred_target(&mut init)
        .context("KVM does not say which vCPUs it makes")?;
    init.features[0] |= 1 << KVM_ARM_VCPU_PSCI_0_2;
    fd.vcpu_init(&init)
        .with_context(|| format!("KVM does not start vCPU {vcpu}"))?;
    fd.set_one_reg(PROGRAM_COUNTER, &u64::from(page(vcpu)).to_le_bytes())
        .context("KVM does not take a vCPU's program counter")?;
    Ok(())
}

/// Returns the number by which KVM knows a vCPU's interrupt line (`KVM_IRQ_LINE` in the kernel's
/// `Documentation/virt/kvm/api.rst`).
pub(crate) fn line(vcpu: u32) -> u32 {
    KVM_ARM_IRQ_TYPE_CPU << KVM_ARM_IRQ_TYPE_SHIFT
        | vcpu << KVM_ARM_IRQ_VCPU_SHIFT
        | KVM_ARM_IRQ_CPU_IRQ
}

/// Makes the devices that vCPUs wait for.
pub(super) fn devices(vm: &VmFd, plan: &Plan, _: &EventFd) -> Result<Vec<Device>> {
    let mut devices = Vec::new();
    if plan.each_round(Operation::Halt) == 0 {
        return Ok(devices);
    }
    for vcpu in 0..plan.vcpus {
        let asked = eventfd()?;
        let address = u64::from(MMIO_BASE) + u64::from(mmio::wake(vcpu));
        register(vm, &asked, &IoEventAddress::Mmio(address))?;
        devices.push(Device {
            vcpu,
            operation: Operation::Halt,
            asked,
            answer: AccessAnswer::Line(line(vcpu)),
        });
    }
    Ok(devices)
}
