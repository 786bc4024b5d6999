//! A VM with its vCPUs: what KVM is asked for before any of them runs.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

use anyhow::{Context, Result, ensure};
use kvm_ioctls::{IoEventAddress, Kvm, NoDatamatch, VcpuFd, VmFd};
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EFD_NONBLOCK, EventFd};

use crate::layout::{DATA, mmio, page};
use crate::memory::Memory;
use crate::plan::{Operation, Plan};

#[cfg(target_arch = "aarch64")]
use aarch64 as arch;
#[cfg(target_arch = "x86_64")]
use x86 as arch;

pub(crate) use arch::{is_operation, line, register_of};

/// A VM that is ready to run.
#[derive(Debug)]
pub(crate) struct TestMachine {
    /// What its vCPUs and devices share.
    pub(crate) vm: VmFd,
    pub(crate) memory: Memory,
    /// By number.
    pub(crate) vcpus: Vec<VcpuFd>,
    /// Devices that vCPUs wait for.
    pub(crate) devices: Vec<Device>,
    /// Counts writes to the port and the register that are ioeventfds.
    pub(crate) ioeventfd: EventFd,
}

/// What a device is asked by, and how it answers. It belongs to one vCPU.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) vcpu: u32,
    /// What is asked of it.
    pub(crate) operation: Operation,
    /// The ioeventfd that the guest writes.
    pub(crate) asked: EventFd,
    pub(crate) answer: AccessAnswer,
}

/// How a device answers.
#[derive(Debug)]
pub(crate) enum AccessAnswer {
    /// By an irqfd.
    #[cfg_attr(target_arch = "aarch64", expect(dead_code, reason = "x86 alone"))]
    Irqfd(EventFd),
    /// By raising an interrupt line, which the guest has lowered by user space.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "aarch64 alone"))]
    Line(u32),
}

/// Makes an eventfd that reads wait for.
fn eventfd() -> Result<EventFd> {
    EventFd::new(EFD_CLOEXEC).context("cannot make an eventfd")
}

impl TestMachine {
    /// Makes a VM for a plan.
    pub(crate) fn new(plan: &Plan) -> Result<TestMachine> {
        let kvm =
            Kvm::new().context("cannot open /dev/kvm: is it there, and may this user open it?")?;
        let vm = kvm.create_vm().context("KVM makes no VM")?;
        let memory = Memory::new();
        memory.give_to(&vm)?;
        arch::prepare(&vm, &memory, plan)?;
        let mut vcpus = Vec::new();
        for vcpu in 0..plan.vcpus {
            let code = arch::code(plan, vcpu)?;
            ensure!(
                code.len() <= usize::from(DATA),
                "the code of a vCPU has {} bytes, and {DATA} fit",
                code.len()
            );
            memory.write_code(page(vcpu), &code)?;
            let fd = vm.create_vcpu(u64::from(vcpu));
            let fd = fd.with_context(|| format!("KVM makes no vCPU {vcpu}"))?;
            arch::prepare_vcpu(&kvm, &vm, &fd, plan, vcpu)?;
            vcpus.push(fd);
        }
        let ioeventfd =
            EventFd::new(EFD_CLOEXEC | EFD_NONBLOCK).context("cannot make an eventfd")?;
        if plan.each_round(Operation::IoeventfdMmio) > 0 {
            let address = u64::from(arch::MMIO_BASE) + u64::from(mmio::IOEVENTFD);
            // Of four bytes that are 0: one of any length would be seen by another tracepoint where the processor
            // reports MMIO in a way of its own (kvm_fast_mmio).
            vm.register_ioevent(&ioeventfd, &IoEventAddress::Mmio(address), 0u32)
                .with_context(|| format!("KVM takes no ioeventfd at {address:#x}"))?;
        }
        let devices = arch::devices(&vm, plan, &ioeventfd)?;
        Ok(TestMachine {
            vm,
            memory,
            vcpus,
            devices,
            ioeventfd,
        })
    }
}

/// Makes an address an ioeventfd.
fn register(vm: &VmFd, fd: &EventFd, address: &IoEventAddress) -> Result<()> {
    vm.register_ioevent(fd, address, NoDatamatch)
        .with_context(|| format!("KVM takes no ioeventfd at {address:x?}"))
}

/// What an address that came out to user space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// An operation that is asked for.
    Operation(Operation),
    /// The end of a round.
    Round,
    /// The guest wants to be held.
    #[cfg_attr(target_arch = "aarch64", expect(dead_code, reason = "x86 alone"))]
    Hold,
    /// The guest wants its interrupt line low.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "aarch64 alone"))]
    Lower,
}
