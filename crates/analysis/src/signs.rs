//! Single events that tell of a cause by themselves, counted: what no table has.

use event::{Data, Event, EventType, ExitClass, Kind, MmioAccess, index_of};

use crate::analysis::{Analysis, Context, EventDetail, Needs};
use crate::counts::Counts;
use crate::register_exits::RegisterExits;

/// `HV_X64_MSR_SINT0` to `SINT15` (Hypervisor Top Level Functional Specification, 11.9).
const SINTS: std::ops::RangeInclusive<u32> = 0x4000_0090..=0x4000_009f;
/// AutoEOI, bit 17 of a SINT; bit 16 masks it.
const AUTO_EOI: u64 = 1 << 17;
const MASKED: u64 = 1 << 16;

/// `MSR_IA32_TSC_DEADLINE` and the x2APIC's initial count; the xAPIC's (Intel SDM volume 3, 11.5.4): writes of anything
/// but 0 start the guest's timer.
const TIMER_MSRS: [u32; 2] = [0x6e0, 0x838];
const TIMER_GPA: u64 = 0xfee0_0380;

/// What happened on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuSigns {
    /// All events recorded on it.
    pub events: u64,
    /// Exits of guests because of an interrupt for the host.
    pub interrupt_exits: u64,
    /// Interrupts of its own timer that the host took: `local_timer_entry`, or the architected timer's
    /// `irq_handler_entry`.
    pub timer_interrupts: u64,
    /// Times that a guest started its own timer, which may end in an interrupt for the host (AMD has no timer that
    /// counts while a guest runs); on arm64 changes of its timer's line, each of which begins with one.
    pub guest_timers: u64,
}

/// Whose timer an event is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Host,
    Guest,
}

/// Counts them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signs {
    /// By CPU.
    pub cpus: Vec<CpuSigns>,
    /// Hyper-V synthetic interrupts that a guest set up with AutoEOI.
    pub auto_eoi: u64,
    /// Those that it set up without.
    pub no_auto_eoi: u64,
    /// Exits for control, debug and model-specific registers.
    pub registers: RegisterExits,
    /// By kind of event: whether it is a timer's interrupt, and whose.
    timers: Vec<Option<Timer>>,
}

impl Signs {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Signs {
        Signs::default()
    }

    /// Returns what was found, with how many events each CPU had.
    pub fn report(&self, counts: &Counts) -> Signs {
        let mut signs = self.clone();
        if signs.cpus.len() < counts.cpus().len() {
            signs.cpus.resize(counts.cpus().len(), CpuSigns::default());
        }
        for (cpu, count) in signs.cpus.iter_mut().zip(counts.cpus()) {
            cpu.events = count.inside;
        }
        signs
    }

    /// Takes a kind of events, and returns whether they are a timer's.
    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.timers.len() <= index {
            self.timers.resize(index + 1, None);
        }
        self.timers[index] = match ty.name {
            "local_timer_entry" => Some(Timer::Host),
            "kvm_timer_update_irq" => Some(Timer::Guest),
            _ => None,
        };
        self.timers[index].is_some()
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data) {
        let Some(cpu) = event::cpu_index(event.cpu) else {
            return;
        };
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, CpuSigns::default());
        }
        let signs = &mut self.cpus[cpu];
        match data {
            Data::KvmExit(exit) if exit.reason.is_interrupt() => signs.interrupt_exits += 1,
            Data::KvmExit(exit) => {
                let class = exit.reason.class();
                if matches!(class, ExitClass::Register | ExitClass::Msr)
                    && let Some(detail) = exit.detail()
                {
                    self.registers.add(detail);
                }
            }
            Data::KvmMsr(msr) if msr.write && TIMER_MSRS.contains(&msr.msr) && msr.value != 0 => {
                signs.guest_timers += 1;
            }
            Data::KvmMmio(mmio) if mmio.gpa == TIMER_GPA && mmio.access == MmioAccess::Write => {
                signs.guest_timers += u64::from(mmio.value != 0);
            }
            Data::KvmMsr(msr)
                if msr.write && SINTS.contains(&msr.msr) && msr.value & MASKED == 0 =>
            {
                if msr.value & AUTO_EOI != 0 {
                    self.auto_eoi += 1;
                } else {
                    self.no_auto_eoi += 1;
                }
            }
            _ => match self.timers.get(index_of(event.ty.index)) {
                Some(Some(Timer::Host)) => signs.timer_interrupts += 1,
                Some(Some(Timer::Guest)) => signs.guest_timers += 1,
                _ => {}
            },
        }
    }
}

impl Analysis for Signs {
    fn needs(&self) -> Needs {
        Needs {
            counts: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let is_timer = self.learn(ty);
        match ty.kind {
            Kind::KvmExit | Kind::KvmMsr | Kind::KvmMmio => EventDetail::Thread,
            _ if is_timer => EventDetail::Head,
            _ => EventDetail::Count,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.counts {
            self.take(event, data);
        } else {
            self.head(event, context);
        }
    }

    fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        // Whoever makes it: it happens on its CPU all the same.
        if context.chosen.inside {
            self.take(event, &Data::Other);
        }
    }
}
