//! What a guest's CPU does, by the events of its kernel: which task, interrupt or softirq has it.

use std::collections::HashMap;

use event::{Data, Event, EventType, FieldReader, FieldScalar, Kind, index_of};

/// Names of interrupts that are kept at most: a machine has some hundred.
const MAX_NAMES: usize = 1 << 12;
/// Interrupts within each other that are followed: hard interrupts of Linux do not nest, but for those that cannot be
/// masked.
const MAX_DEPTH: usize = 8;

/// An interrupt of which the event says neither handler nor number: beyond all names.
const NAMELESS: u16 = u16::MAX;

/// The softirqs by their numbers (`enum` in `include/linux/interrupt.h`, `softirq_to_name` in `kernel/softirq.c`).
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// What a guest's CPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum GuestContext {
    /// A task runs.
    Task(i32),
    /// The idle task runs.
    Idle,
    /// A softirq is handled, by its number.
    Softirq(u32),
    /// An interrupt is handled, by the number of its name.
    Interrupt(u16),
    /// The guest's recording does not say it.
    #[default]
    Unknown,
}

/// What a guest did, with its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedContext {
    /// What it did.
    pub doing: GuestContext,
    /// What that is called: the task's name, the interrupt's, the softirq's; `None` where it is not known or has none.
    pub name: Option<String>,
}

impl NamedContext {
    /// Returns it without numbers, which two recordings do not have in common.
    pub fn did(&self) -> ContextName {
        let kind = match self.doing {
            GuestContext::Task(_) => ContextKind::Task,
            GuestContext::Idle => ContextKind::Idle,
            GuestContext::Softirq(_) => ContextKind::Softirq,
            GuestContext::Interrupt(_) => ContextKind::Interrupt,
            GuestContext::Unknown => ContextKind::Unknown,
        };
        ContextName {
            kind,
            name: self.name.clone(),
        }
    }
}

/// What kind of thing a guest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContextKind {
    /// A task ran.
    Task,
    /// An interrupt was handled.
    Interrupt,
    /// A softirq was handled.
    Softirq,
    /// The idle task ran.
    Idle,
    /// The guest's recording does not say it.
    Unknown,
}

/// What a guest did, by its name alone: of two recordings the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextName {
    /// Of which kind.
    pub kind: ContextKind,
    /// What it is called; `None` where that is not known, or it has none.
    pub name: Option<String>,
}

/// What events of a kind say.
#[derive(Debug)]
enum ActivityFields {
    Switch,
    Enter(Name),
    Leave,
    SoftirqEnter(FieldReader),
    SoftirqLeave,
    /// Nothing but which task made them.
    Who,
}

/// How an interrupt is called.
#[derive(Debug)]
enum Name {
    Is(u16),
    /// By the name of its handler, or else by its number.
    Fields {
        name: FieldReader,
        irq: FieldReader,
    },
}

/// What kinds of a guest's events say, and the names that were in them.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    kinds: Vec<Option<ActivityFields>>,
    names: Vec<String>,
    by_name: HashMap<String, u16>,
    /// Names of tasks, by machine and thread.
    tasks: HashMap<(u16, i32), String>,
    /// Whether interrupts and softirqs are recorded.
    pub(super) interrupts: bool,
    pub(super) softirqs: bool,
}

impl Kinds {
    /// Looks at a kind. Returns whether its events say anything.
    pub(super) fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let says = match (ty.system, ty.name) {
            _ if ty.kind == Kind::SchedSwitch => Some(ActivityFields::Switch),
            ("irq" | "", "irq_handler_entry") => Some(ActivityFields::Enter(Name::Fields {
                name: FieldReader::of(ty, "name"),
                irq: FieldReader::of(ty, "irq"),
            })),
            ("ipi" | "", "ipi_entry") => Some(ActivityFields::Enter(Name::Is(self.name("IPI")))),
            ("irq" | "", "irq_handler_exit") | ("ipi" | "", "ipi_exit") => {
                Some(ActivityFields::Leave)
            }
            ("irq" | "", "softirq_entry") => {
                Some(ActivityFields::SoftirqEnter(FieldReader::of(ty, "vec")))
            }
            ("irq" | "", "softirq_exit") => Some(ActivityFields::SoftirqLeave),
            // x86: local_timer_entry, reschedule_entry and so on (arch/x86/include/asm/trace/irq_vectors.h).
            ("irq_vectors", name) => match (name.strip_suffix("_entry"), name.ends_with("_exit")) {
                (Some(vector), _) => Some(ActivityFields::Enter(Name::Is(self.name(vector)))),
                (None, true) => Some(ActivityFields::Leave),
                (None, false) => None,
            },
            _ if ty.kind.is_sched() => Some(ActivityFields::Who),
            _ => None,
        };
        // trace.dat has the formats of events that nobody asked for: what happened shows which were recorded.
        self.interrupts |= ty.recorded && matches!(says, Some(ActivityFields::Enter(_)));
        self.softirqs |= ty.recorded && matches!(says, Some(ActivityFields::SoftirqEnter(_)));
        let any = says.is_some();
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, || None);
        }
        self.kinds[index] = says;
        any
    }

    fn name(&mut self, name: &str) -> u16 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        if self.names.len() >= MAX_NAMES {
            // All others share the last name.
            return (MAX_NAMES - 1) as u16;
        }
        let number = self.names.len() as u16;
        let name = match self.names.len() + 1 {
            MAX_NAMES => "others",
            _ => name,
        };
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        number
    }

    /// Returns what something is called: the task's name if it is known, the softirq's, the interrupt's.
    pub(super) fn called(&self, machine: u16, doing: GuestContext) -> Option<String> {
        match doing {
            GuestContext::Task(tid) => self.tasks.get(&(machine, tid)).cloned(),
            GuestContext::Softirq(number) => Some(match SOFTIRQS.get(index_of(number)) {
                Some(name) => (*name).to_owned(),
                None => number.to_string(),
            }),
            GuestContext::Interrupt(name) => self.names.get(usize::from(name)).cloned(),
            GuestContext::Idle | GuestContext::Unknown => None,
        }
    }

    fn task(&mut self, machine: u16, tid: i32, comm: &str) {
        if tid != 0
            && self
                .tasks
                .get(&(machine, tid))
                .is_none_or(|known| known != comm)
        {
            self.tasks.insert((machine, tid), comm.to_owned());
        }
    }
}

/// What a guest's CPU does now.
#[derive(Debug, Clone, Default)]
pub(super) struct GuestCpu {
    task: Option<i32>,
    softirq: Option<u32>,
    interrupts: Vec<u16>,
}

impl GuestCpu {
    /// Returns what it does.
    pub(super) fn doing(&self) -> GuestContext {
        match (self.interrupts.last(), self.softirq, self.task) {
            (Some(name), _, _) => GuestContext::Interrupt(*name),
            (None, Some(number), _) => GuestContext::Softirq(number),
            (None, None, Some(0)) => GuestContext::Idle,
            (None, None, Some(tid)) => GuestContext::Task(tid),
            (None, None, None) => GuestContext::Unknown,
        }
    }

    /// Takes an event of the guest.
    pub(super) fn takes(&mut self, kinds: &mut Kinds, event: &Event<'_>, data: &Data) {
        let says = kinds.kinds.get_mut(index_of(event.ty.index));
        // It is put back: a name may have to be noted meanwhile.
        let Some(says) = says.and_then(Option::take) else {
            return;
        };
        let machine = event.machine();
        if self.task.is_none() && event.tid >= 0 {
            self.task = Some(event.tid);
        }
        if let (Some(comm), true) = (event.comm, event.tid >= 0) {
            kinds.task(machine, event.tid, comm);
        }
        match (&says, data) {
            (ActivityFields::Switch, Data::SchedSwitch(switch)) => {
                kinds.task(machine, switch.prev_tid, &switch.prev_comm.to_str_lossy());
                kinds.task(machine, switch.next_tid, &switch.next_comm.to_str_lossy());
                *self = GuestCpu {
                    task: Some(switch.next_tid),
                    ..GuestCpu::default()
                };
            }
            (ActivityFields::Enter(name), _) => {
                kinds.interrupts = true;
                let number = match name {
                    Name::Is(number) => *number,
                    Name::Fields { name, irq } => {
                        let irq = irq.number(event, data);
                        match (name.get(event, data), irq) {
                            (Some(FieldScalar::Text(name)), _) => kinds.name(&name),
                            (_, Some(irq)) => kinds.name(&format!("irq {irq}")),
                            (_, None) => NAMELESS,
                        }
                    }
                };
                if self.interrupts.len() < MAX_DEPTH {
                    self.interrupts.push(number);
                }
            }
            (ActivityFields::Leave, _) => {
                self.interrupts.pop();
            }
            (ActivityFields::SoftirqEnter(field), _) => {
                kinds.softirqs = true;
                let number = field.number(event, data).unwrap_or(u64::MAX);
                self.softirq = Some(u32::try_from(number).unwrap_or(u32::MAX));
            }
            (ActivityFields::SoftirqLeave, _) => self.softirq = None,
            (ActivityFields::Switch | ActivityFields::Who, _) => {}
        }
        if let Some(place) = kinds.kinds.get_mut(index_of(event.ty.index)) {
            *place = Some(says);
        }
    }
}
