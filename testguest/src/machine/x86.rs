//! What is x86's own about a VM.

use std::fs;

use anyhow::{Context, Result, anyhow};
use kvm_bindings::{
    KVM_IRQ_ROUTING_IRQCHIP, KVM_IRQ_ROUTING_MSI, KVM_IRQCHIP_IOAPIC, KVM_MAX_CPUID_ENTRIES,
    KVM_MP_STATE_RUNNABLE, KvmIrqRouting, kvm_ioapic_state, kvm_ioapic_state__bindgen_ty_1,
    kvm_irq_routing_entry, kvm_irq_routing_entry__bindgen_ty_1, kvm_irq_routing_irqchip,
    kvm_irq_routing_msi, kvm_irqchip, kvm_irqchip__bindgen_ty_1, kvm_mp_state, kvm_regs,
};
use kvm_ioctls::{IoEventAddress, Kvm, VcpuExit, VcpuFd, VmFd};
use vmm_sys_util::eventfd::EventFd;

use super::{AccessAnswer, Device, Register, eventfd, register};
use crate::code::x86::{Vendor, handler, vcpu_code};
use crate::layout::{IrqVector, STACK, mmio, page, port};
use crate::memory::Memory;
use crate::plan::{Operation, Plan};

/// Where registers in memory begin.
pub(super) const MMIO_BASE: u32 = mmio::BASE_X86;
/// Where the code of interrupts is, 256 bytes each.
const HANDLERS: u32 = 0x8000;
/// Where KVM on Intel keeps pages of its own: below 4 GiB, far from all memory.
const INTEL_PAGES: u32 = 0xfffb_c000;
/// The IOAPIC's registers, where all machines have them.
const IOAPIC: u64 = 0xfec0_0000;
/// Pins of the IOAPIC, which are the interrupts (GSI) from 0.
const PINS: u32 = 24;
/// In an entry of the IOAPIC, what keeps its interrupt away.
const MASKED: u64 = 1 << 16;
/// Where messages go; the number of the APIC is added from bit 12 (Intel's manual, volume 3, "Message Signalled
/// Interrupts").
const MESSAGES: u32 = 0xfee0_0000;
/// In the register of the APIC's base: the APIC has its registers as MSRs.
const X2APIC: u64 = 1 << 10;

/// Returns whether this architecture has an operation.
pub(crate) fn is_operation(_: Operation) -> bool {
    true
}

/// Returns what came out, or `None` for what was not asked for.
pub(crate) fn register_of(exit: &mut VcpuExit<'_>) -> Option<Register> {
    let operation = match exit {
        VcpuExit::IoOut(port::ROUND, _) => return Some(Register::Round),
        VcpuExit::IoOut(port::HOLD, _) => return Some(Register::Hold),
        VcpuExit::IoOut(port::OUT, _) => Operation::PioOut,
        VcpuExit::IoIn(port::IN, data) => {
            data.fill(0);
            Operation::PioIn
        }
        VcpuExit::MmioRead(address, data) if *address == at(mmio::READ) => {
            data.fill(0);
            Operation::MmioRead
        }
        VcpuExit::MmioWrite(address, _) if *address == at(mmio::WRITE) => Operation::MmioWrite,
        VcpuExit::Hlt => Operation::Halt,
        _ => return None,
    };
    Some(Register::Operation(operation))
}

/// Returns the address of a register.
fn at(register: u16) -> u64 {
    u64::from(MMIO_BASE) + u64::from(register)
}

/// Returns a vCPU's code.
pub(super) fn code(plan: &Plan, vcpu: u32) -> Result<Vec<u8>> {
    let processors = fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
    let is_intel = processors.contains("GenuineIntel");
    let vendor = if is_intel { Vendor::Intel } else { Vendor::Amd };
    Ok(vcpu_code(plan, vcpu, vendor))
}

/// Prepares a VM before it has vCPUs.
pub(super) fn prepare(vm: &VmFd, memory: &Memory, plan: &Plan) -> Result<()> {
    vm.set_identity_map_address(u64::from(INTEL_PAGES))
        .context("KVM does not take the address of its identity map")?;
    vm.set_tss_address(INTEL_PAGES as usize + 0x1000)
        .context("KVM does not take the address of its task state")?;
    for vector in IrqVector::ALL {
        let code = HANDLERS + 0x100 * u32::from(vector.number() - IrqVector::ALL[0].number());
        memory.write_code(code, &handler(vector))?;
        // An entry of the table in real mode: the offset, and the segment above it.
        memory.write(4 * u32::from(vector.number()), (code >> 4) << 16)?;
    }
    if plan.has_irqchip() {
        vm.create_irq_chip()
            .context("KVM makes no interrupt controller")?;
        vm.set_irqchip(&ioapic(plan))
            .context("KVM does not take the IOAPIC's state")?;
        let routes: Vec<kvm_irq_routing_entry> = (0..plan.vcpus)
            .flat_map(|vcpu| [message_route(vcpu), pin_route(vcpu)])
            .filter(|route| route.type_ == KVM_IRQ_ROUTING_MSI || route.gsi < PINS)
            .collect();
        let routes = KvmIrqRouting::from_entries(&routes)
            .map_err(|error| anyhow!("cannot make a table of interrupts: {error:?}"))?;
        vm.set_gsi_routing(&routes)
            .context("KVM does not take the table of interrupts")?;
    }
    Ok(())
}

/// Returns the IOAPIC's state, in which the pin of a vCPU's number interrupts that vCPU.
fn ioapic(plan: &Plan) -> kvm_irqchip {
    let mut entries = [kvm_ioapic_state__bindgen_ty_1 { bits: MASKED }; PINS as usize];
    for (entry, vcpu) in entries.iter_mut().zip(0..plan.vcpus) {
        // Fixed, edge triggered, to the APIC of this number.
        entry.bits = u64::from(IrqVector::Pin.number()) | u64::from(vcpu) << 56;
    }
    let ioapic = kvm_ioapic_state {
        base_address: IOAPIC,
        redirtbl: entries,
        ..kvm_ioapic_state::default()
    };
    kvm_irqchip {
        chip_id: KVM_IRQCHIP_IOAPIC,
        pad: 0,
        chip: kvm_irqchip__bindgen_ty_1 { ioapic },
    }
}

/// Returns the number (GSI) of the interrupt that is a message to a vCPU.
fn message_gsi(vcpu: u32) -> u32 {
    PINS + vcpu
}

fn message_route(vcpu: u32) -> kvm_irq_routing_entry {
    let msi = kvm_irq_routing_msi {
        address_lo: MESSAGES | vcpu << 12,
        data: u32::from(IrqVector::Message.number()),
        ..kvm_irq_routing_msi::default()
    };
    kvm_irq_routing_entry {
        gsi: message_gsi(vcpu),
        type_: KVM_IRQ_ROUTING_MSI,
        u: kvm_irq_routing_entry__bindgen_ty_1 { msi },
        ..kvm_irq_routing_entry::default()
    }
}

fn pin_route(vcpu: u32) -> kvm_irq_routing_entry {
    let irqchip = kvm_irq_routing_irqchip {
        irqchip: KVM_IRQCHIP_IOAPIC,
        pin: vcpu,
    };
    kvm_irq_routing_entry {
        gsi: vcpu,
        type_: KVM_IRQ_ROUTING_IRQCHIP,
        u: kvm_irq_routing_entry__bindgen_ty_1 { irqchip },
        ..kvm_irq_routing_entry::default()
    }
}

/// Brings a vCPU to the beginning of its code.
pub(super) fn prepare_vcpu(kvm: &Kvm, _: &VmFd, fd: &VcpuFd, plan: &Plan, vcpu: u32) -> Result<()> {
    let mut cpuid = kvm
        .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
        .context("KVM does not say which CPUID it has")?;
    for entry in cpuid.as_mut_slice() {
        // Where a processor reads the number of its APIC.
        match entry.function {
            1 => entry.ebx = entry.ebx & 0xff_ffff | vcpu << 24,
            0xb | 0x1f => entry.edx = vcpu,
            _ => {}
        }
    }
    fd.set_cpuid2(&cpuid).context("KVM takes no CPUID")?;
    let mut special = fd.get_sregs().context("KVM gives no registers")?;
    let own = page(vcpu);
    for segment in [&mut special.cs, &mut special.ds, &mut special.ss] {
        segment.base = u64::from(own);
        segment.selector = (own >> 4) as u16;
    }
    special.es.base = u64::from(MMIO_BASE);
    special.es.selector = (MMIO_BASE >> 4) as u16;
    if plan.has_irqchip() {
        special.apic_base |= X2APIC;
    }
    fd.set_sregs(&special)
        .context("KVM does not take a vCPU's segments")?;
    let registers = kvm_regs {
        rip: 0,
        rsp: u64::from(STACK),
        rflags: 2, // The bit that is always set.
        ..kvm_regs::default()
    };
    fd.set_regs(&registers)
        .context("KVM does not take a vCPU's registers")?;
    if plan.has_irqchip() {
        // All but the first would wait for a signal of the first.
        let runnable = kvm_mp_state {
            mp_state: KVM_MP_STATE_RUNNABLE,
        };
        fd.set_mp_state(runnable)
            .context("KVM does not make a vCPU runnable")?;
    }
    Ok(())
}

/// Returns the number by which KVM knows a vCPU's interrupt line: here it is its pin of the IOAPIC, which an irqfd
/// moves.
pub(crate) fn line(vcpu: u32) -> u32 {
    vcpu
}

/// Makes the devices that vCPUs wait for.
pub(super) fn devices(vm: &VmFd, plan: &Plan, ioeventfd: &EventFd) -> Result<Vec<Device>> {
    if plan.each_round(Operation::Ioeventfd) > 0 {
        let address = IoEventAddress::Pio(u64::from(port::IOEVENTFD));
        register(vm, ioeventfd, &address)?;
    }
    let mut devices = Vec::new();
    for vcpu in 0..plan.vcpus {
        for (operation, port, gsi) in [
            (Operation::Irqfd, port::message(vcpu), message_gsi(vcpu)),
            (Operation::IrqfdPin, port::pin(vcpu), vcpu),
        ] {
            if plan.each_round(operation) == 0 {
                continue;
            }
            let (asked, irqfd) = (eventfd()?, eventfd()?);
            register(vm, &asked, &IoEventAddress::Pio(u64::from(port)))?;
            vm.register_irqfd(&irqfd, gsi)
                .with_context(|| format!("KVM takes no irqfd for interrupt {gsi}"))?;
            devices.push(Device {
                vcpu,
                operation,
                asked,
                answer: AccessAnswer::Irqfd(irqfd),
            });
        }
    }
    Ok(devices)
}
