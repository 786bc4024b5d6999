//! What places of code are called, whose they are, and what being there means.

use event::NONE;
use stacks::{FrameName, FrameOwner};
use symbols::{CpuMode, FileId, KernelFunctions, UserNames};

use super::calls::{Calls, Code, CodePlace, DEEPER, base};
use super::user::user_names;

/// Bytes of a file's name that are kept: `NAME_MAX` (`include/uapi/linux/limits.h`).
const MAX_FILE: usize = 255;

/// Functions in which a CPU is idle, or is made so (`kernel/sched/idle.c`, `drivers/cpuidle`, `arch/*/kernel/process.c`
/// and `idle.c`, of kernels 4.x to 6.x). `poll_idle` is what `haltpoll` does before a guest halts.
const IDLE: [&str; 24] = [
    "acpi_idle_do_entry",
    "acpi_idle_enter",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "arch_cpu_idle_enter",
    "arch_cpu_idle_exit",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpuidle_enter",
    "cpuidle_enter_state",
    "cpuidle_idle_call",
    "default_enter_idle",
    "default_idle",
    "default_idle_call",
    "haltpoll_enter_idle",
    "intel_idle",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "mwait_idle",
    "native_safe_halt",
    "poll_idle",
    "psci_enter_idle_state",
    "pv_native_safe_halt",
];

/// Whether a function of a kernel is one in which a CPU is idle.
pub(crate) fn is_idle_function(name: &str) -> bool {
    IDLE.contains(&plain(name))
}

/// Functions in which KVM waits for a guest that asked to wait: HLT, WFI, `MWAIT` (`virt/kvm/kvm_main.c`).
const HALTS: [&str; 4] = [
    "kvm_vcpu_block",
    "kvm_vcpu_halt",
    "kvm_handle_wfx",
    "kvm_vcpu_wfi",
];

/// Functions that interrupts enter the kernel by, and what they leave to be done on their way out (`arch/x86/entry`,
/// `arch/arm64/kernel/entry-common.c`, `kernel/softirq.c`).
const INTERRUPTS: [&str; 16] = [
    "__do_softirq",
    "__handle_domain_irq",
    "__irq_exit_rcu",
    "__sysvec_",
    "asm_common_interrupt",
    "asm_sysvec_",
    "call_on_irq_stack",
    "common_interrupt",
    "do_IRQ",
    "do_interrupt_handler",
    "do_softirq",
    "el1_interrupt",
    "el1_irq",
    "el1h_64_irq",
    "handle_softirqs",
    "sysvec_",
];

/// Beginnings of the names of KVM's functions where it is no module (`arch/arm64/kvm`, `virt/kvm`), or names stand
/// without their file.
const KVM: [&str; 10] = [
    "__kvm_",
    "kvm_",
    "svm_",
    "vcpu_enter_guest",
    "vcpu_run",
    "vgic_",
    "vhe_",
    "vmx_",
    "__svm_",
    "__vmx_",
];

/// Of those, what belongs to a kernel that is itself a guest (`arch/x86/kernel/kvm.c`, `kvmclock.c`,
/// `arch/arm64/kernel/paravirt.c`).
const PARAVIRT: [&str; 12] = [
    "kvm_async_pf_task",
    "kvm_clock_",
    "kvm_crash_",
    "kvm_flush_tlb_multi",
    "kvm_guest_",
    "kvm_io_delay",
    "kvm_kick_cpu",
    "kvm_sched_clock_",
    "kvm_send_ipi_",
    "kvm_smp_",
    "kvm_steal_clock",
    "kvm_wait",
];

/// Modules that KVM is made of.
const KVM_MODULES: [&str; 3] = ["kvm", "kvm_amd", "kvm_intel"];

/// What a place says of the stacks that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PlaceSigns {
    /// A function of the host's kernel, of its user space, of a guest's kernel, of a guest's user space has no name.
    pub unresolved: [bool; 4],
    /// KVM is at work.
    pub kvm: bool,
    /// A guest is idle.
    pub guest_idle: bool,
    /// A guest's user space runs.
    pub guest_user: bool,
    /// A guest that asked to wait is waited for.
    pub halts: bool,
    /// An interrupt is handled.
    pub interrupt: bool,
}

impl PlaceSigns {
    pub(super) fn or(self, other: PlaceSigns) -> PlaceSigns {
        PlaceSigns {
            unresolved: std::array::from_fn(|part| self.unresolved[part] | other.unresolved[part]),
            kvm: self.kvm | other.kvm,
            guest_idle: self.guest_idle | other.guest_idle,
            guest_user: self.guest_user | other.guest_user,
            halts: self.halts | other.halts,
            interrupt: self.interrupt | other.interrupt,
        }
    }
}

/// A place with its names, outermost first: several where functions were inlined.
#[derive(Debug, Clone)]
pub(super) struct NamedPlace {
    pub names: Vec<FrameName>,
    pub signs: PlaceSigns,
    /// Whether it is in the host's kernel.
    pub is_kernel: bool,
}

/// What names functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct FunctionNamer<'k> {
    /// Those of the host's kernel.
    pub host: KernelFunctions<'k>,
    /// Those of all guests' kernels that have none of their own.
    pub guest: KernelFunctions<'k>,
    /// Those of the guest of a VM, by its process.
    pub guests: &'k [(i32, KernelFunctions<'k>)],
}

impl<'k> FunctionNamer<'k> {
    fn guest_of(&self, pid: i32) -> KernelFunctions<'k> {
        let own = self.guests.iter().find(|(vm, _)| *vm == pid);
        own.map_or(self.guest, |(_, functions)| *functions)
    }
}

impl Calls {
    /// Returns the names of all places, by number. `user` names functions of user space.
    pub(super) fn named(
        &self,
        namer: FunctionNamer<'_>,
        user: &mut dyn UserNames,
    ) -> Vec<NamedPlace> {
        let mut of_user = user_names(self.user_places(), self.addresses.files(), user);
        let place = |(place, number): (&CodePlace, u32)| match place {
            CodePlace::Code(code) => match of_user.remove(&number) {
                Some(names) => of_files(names, code.mode),
                None => self.named_code(code, namer),
            },
            CodePlace::Printed(name, file, mode) => printed_place(name.as_deref(), file, *mode),
            CodePlace::Reason(reason) => NamedPlace {
                names: vec![FrameName {
                    text: (**reason).into(),
                    part: FrameOwner::Group,
                }],
                signs: PlaceSigns::default(),
                is_kernel: false,
            },
        };
        self.places.iter().zip(0u32..).map(place).collect()
    }

    /// Returns the places of the host's user space that are in files.
    fn user_places(&self) -> impl Iterator<Item = (u32, FileId, u64)> + '_ {
        let places = self.places.iter().zip(0u32..);
        places.filter_map(|(place, number)| match place {
            CodePlace::Code(code) if code.mode == CpuMode::User && code.file != FileId::UNKNOWN => {
                Some((number, code.file, code.address))
            }
            _ => None,
        })
    }

    fn named_code(&self, code: &Code, namer: FunctionNamer<'_>) -> NamedPlace {
        let file = self.file(code.file);
        let name = match code.mode {
            _ if code.symbol => Some(file.clone()),
            CpuMode::Kernel => namer.host.name(code.address).map(str::to_owned),
            CpuMode::GuestKernel => {
                let functions = namer.guest_of(code.guest_of);
                functions.name(code.address).map(str::to_owned)
            }
            CpuMode::User | CpuMode::GuestUser | CpuMode::Other => None,
        };
        let signs = signs(name.as_deref(), &file, code.mode);
        let text = match name {
            Some(name) => name,
            None if code.mode == CpuMode::GuestKernel
                && let Some((module, start)) =
                    namer.guest_of(code.guest_of).module(code.address) =>
            {
                format!("[{module}]+{:#x}", code.address - start)
            }
            None if code.guest_of != NONE => guest_without_name(code.mode).to_owned(),
            None if code.file == FileId::UNKNOWN => "[unknown]".to_owned(),
            None => format!("{file}+{:#x}", code.address),
        };
        let part = part(code.mode, signs);
        NamedPlace {
            names: vec![FrameName {
                text: text.into(),
                part,
            }],
            signs,
            is_kernel: code.mode == CpuMode::Kernel,
        }
    }

    /// The name of a file without its folder, no longer than a file system has it.
    fn file(&self, id: FileId) -> String {
        let name = self.addresses.files().name(id);
        let base = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(&base[..base.len().min(MAX_FILE)]).into_owned()
    }
}

/// The frame of what is left out.
pub(super) fn deeper() -> FrameName {
    FrameName {
        text: "[left out]".into(),
        part: FrameOwner::Group,
    }
}

/// Returns whether a frame stands for what is left out.
pub(super) fn is_deeper(frame: u32) -> bool {
    frame == DEEPER
}

/// What stands for a guest's code that nothing names.
fn guest_without_name(mode: CpuMode) -> &'static str {
    match mode {
        CpuMode::GuestUser => "[guest user]",
        _ => "[guest]",
    }
}

/// A place of user space that files name, with what was inlined there.
fn of_files(names: Vec<String>, mode: CpuMode) -> NamedPlace {
    let names = names.into_iter().map(|text| FrameName {
        text: text.into(),
        part: FrameOwner::User,
    });
    NamedPlace {
        names: names.collect(),
        signs: signs(Some(""), "", mode),
        is_kernel: false,
    }
}

fn printed_place(name: Option<&str>, file: &str, mode: CpuMode) -> NamedPlace {
    let signs = signs(name, file, mode);
    let text = match name {
        Some(name) => name,
        // perf prints so what belongs to nothing.
        None if file.starts_with("[unknown]") || file.starts_with('+') => "[unknown]",
        None => file,
    };
    NamedPlace {
        names: vec![FrameName {
            text: text.into(),
            part: part(mode, signs),
        }],
        signs,
        is_kernel: mode == CpuMode::Kernel,
    }
}

fn part(mode: CpuMode, signs: PlaceSigns) -> FrameOwner {
    match mode {
        CpuMode::Kernel if signs.kvm => FrameOwner::Kvm,
        CpuMode::Kernel => FrameOwner::Kernel,
        CpuMode::GuestKernel | CpuMode::GuestUser => FrameOwner::Guest,
        CpuMode::User | CpuMode::Other => FrameOwner::User,
    }
}

/// Returns what a function says of the stacks that have it.
fn signs(name: Option<&str>, file: &str, mode: CpuMode) -> PlaceSigns {
    let module = file.trim_start_matches('[');
    let module = module.split([']', '.', '+']).next().unwrap_or_default();
    let of_kernel = mode == CpuMode::Kernel;
    let called = |list: &[&str]| name.is_some_and(|name| list.contains(&plain(name)));
    let begins =
        |list: &[&str]| name.is_some_and(|name| list.iter().any(|begin| name.starts_with(begin)));
    PlaceSigns {
        unresolved: match mode {
            _ if name.is_some() => [false; 4],
            CpuMode::Kernel => [true, false, false, false],
            CpuMode::User | CpuMode::Other => [false, true, false, false],
            CpuMode::GuestKernel => [false, false, true, false],
            CpuMode::GuestUser => [false, false, false, true],
        },
        kvm: of_kernel
            && (KVM_MODULES.contains(&base(module)) || begins(&KVM) && !begins(&PARAVIRT)),
        guest_idle: mode == CpuMode::GuestKernel && name.is_some_and(is_idle_function),
        guest_user: mode == CpuMode::GuestUser,
        halts: of_kernel && called(&HALTS),
        interrupt: of_kernel && begins(&INTERRUPTS),
    }
}

/// Returns a function's name without what compilers add to parts of it (`.constprop.0`, `.isra.0`, `.cold`).
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_tell_what_goes_on() {
        let of = |name: &str, file: &str, mode| signs(Some(name), file, mode);
        let kernel = CpuMode::Kernel;
        assert!(of("kvm_vcpu_block", "[kvm]", kernel).halts);
        assert!(of("kvm_vcpu_block", "[kernel.kallsyms]", kernel).kvm);

        assert!(of("npf_interception", "[kvm_amd]", kernel).kvm);
        assert!(!of("kvm_clock_get_cycles", "[kernel.kallsyms]", kernel).kvm);
        assert!(!of("tcp_sendmsg", "[kernel.kallsyms]", kernel).kvm);
        assert!(
            !of(
                "kvm_clock_get_cycles",
                "[guest.kernel.kallsyms]",
                CpuMode::GuestKernel
            )
            .kvm
        );
        let guest = CpuMode::GuestKernel;
        assert!(of("default_idle", "", guest).guest_idle);
        assert!(of("default_idle.constprop.0", "", guest).guest_idle);
        assert!(!of("default_idle", "", kernel).guest_idle);
        assert!(of("asm_sysvec_apic_timer_interrupt", "", kernel).interrupt);
        assert!(signs(None, "[kvm]", kernel).kvm && signs(None, "[kvm]", kernel).unresolved[0]);
    }
}
