//! Steps bound to the kinds of events of one recording.

use event::{Data, Event, EventType, FieldReader, FieldScalar, Kind, index_of};

use super::compare::{ReasonCondition, compare_numbers};
use super::plan::{AlternativePlan, EndKind, PathIndex, ends_of};
use super::slots::DueWords;
use crate::lang::{
    ComparisonOperand, ComparisonOperator, EventAttribute, EventCondition, EventPattern,
    ThreadClass,
};
use crate::lang::{PathDefinition, PathStep, is_function_tracer};

/// An attribute, ready to be read.
#[derive(Debug, Clone)]
pub(crate) enum AttributeReader {
    Thread,
    Task,
    Prev,
    Cpu,
    Target,
    Raised,
    Reason,
    /// The task of a guest that makes the event, is woken or gets the CPU, or leaves it.
    Inside,
    GuestTask,
    GuestPrev,
    /// Which machine it happens on.
    Machine,
    /// The process that the thread works for, and the task.
    Process,
    TaskProcess,
    /// The guest that the thread is a vCPU of, and the task.
    ThreadMachine,
    TaskMachine,
    /// The length of a packet, and what is added to that.
    Frame(FieldReader, u64),
    /// Nothing: it is alike for all.
    Any,
    Field(FieldReader),
}

impl AttributeReader {
    fn of(attr: &EventAttribute, ty: &EventType<'_>) -> AttributeReader {
        match attr {
            EventAttribute::Task if ty.machine != 0 => AttributeReader::GuestTask,
            EventAttribute::Prev if ty.machine != 0 => AttributeReader::GuestPrev,
            EventAttribute::Inside => AttributeReader::Inside,
            EventAttribute::Machine => AttributeReader::Machine,
            EventAttribute::Process => AttributeReader::Process,
            EventAttribute::TaskProcess => AttributeReader::TaskProcess,
            EventAttribute::ThreadMachine => AttributeReader::ThreadMachine,
            EventAttribute::TaskMachine => AttributeReader::TaskMachine,
            EventAttribute::Frame => {
                AttributeReader::Frame(FieldReader::of(ty, "len"), without_header(ty))
            }
            EventAttribute::Thread => AttributeReader::Thread,
            EventAttribute::Task => AttributeReader::Task,
            EventAttribute::Prev => AttributeReader::Prev,
            EventAttribute::Cpu => AttributeReader::Cpu,
            EventAttribute::Target => AttributeReader::Target,
            EventAttribute::Raised => AttributeReader::Raised,
            EventAttribute::Reason => AttributeReader::Reason,
            EventAttribute::Any => AttributeReader::Any,
            EventAttribute::Field(name) => AttributeReader::Field(FieldReader::of(ty, name)),
        }
    }
}

/// How many bytes of a packet are not in its length any more. `eth_type_trans` takes the Ethernet header off a packet
/// that is received (`ETH_HLEN` of `include/uapi/linux/if_ether.h`) before `netif_receive_skb` and its like; one that
/// is sent has it.
fn without_header(ty: &EventType<'_>) -> u64 {
    match ty.name {
        name if name.starts_with("netif_") || name.starts_with("napi_gro_") => 14,
        _ => 0,
    }
}

/// A condition, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) enum BoundCondition {
    Compare(AttributeReader, ComparisonOperator, ComparisonOperand),
    Reason(ReasonCondition),
    Is(AttributeReader, ThreadClass, bool),
    /// A field holds the address of a function, which the recording's symbols show.
    Within(FieldReader, Vec<std::ops::Range<u64>>),
    /// The level, and the number of the interrupt line it is of.
    Rises(FieldReader, FieldReader),
    Sleeps,
    Halts,
    InTask,
}

/// An event by which instances at a step end.
#[derive(Debug, Clone)]
pub(crate) struct BoundEnd {
    /// Its number among all.
    pub number: u32,
    pub asks: Vec<BoundCondition>,
    pub ending: EndKind,
    /// The exit that the thread is in began after the step.
    pub anew: bool,
}

/// An alternative of a step, bound to one kind of event.
#[derive(Debug, Clone)]
pub(crate) struct BoundAlternative {
    /// Which alternative, of which chain and step, and the step's number among all.
    pub alt: u32,
    pub chain: u32,
    pub step: usize,
    pub number: u32,
    /// Functions whose calls are meant, where the event is the function tracer's.
    pub functions: Option<FunctionCalls>,
    pub asks: Vec<BoundCondition>,
    /// What waiting instances are found by: of the event, and their role.
    pub keys: Vec<(AttributeReader, usize)>,
    /// What else has to be the same, or different.
    pub checks: Vec<(AttributeReader, usize, bool)>,
    pub binds: Vec<(usize, AttributeReader)>,
    /// Whether it goes on with an instance; if not, it begins one.
    pub joins: bool,
    /// Its thread has been awake since the step before.
    pub awake: bool,
    /// How long ago the step before was reached, at most.
    pub within: Option<AttributeReader>,
}

impl BoundAlternative {
    /// Returns whether the event may be it: as far as the first of its conditions decides that, if it compares a
    /// number.
    #[inline]
    pub(super) fn may_be(&self, event: &Event<'_>, data: &Data) -> bool {
        match self.asks.first() {
            Some(BoundCondition::Compare(
                AttributeReader::Field(field),
                op,
                ComparisonOperand::Number(wanted),
            )) => match field.get(event, data) {
                Some(FieldScalar::Number(number)) => compare_numbers(number, *op, *wanted),
                Some(FieldScalar::Text(_)) => true,
                None => false,
            },
            _ => true,
        }
    }
}

/// Calls of functions, in the function tracer's events.
#[derive(Debug, Clone)]
pub(crate) struct FunctionCalls {
    names: Vec<String>,
    ranges: Vec<std::ops::Range<u64>>,
    ip: FieldReader,
}

impl FunctionCalls {
    fn of(
        patterns: &[EventPattern],
        ty: &EventType<'_>,
        symbols: &FunctionRanges,
    ) -> Option<FunctionCalls> {
        let names: Vec<String> = patterns
            .iter()
            .filter_map(|pattern| match pattern {
                EventPattern::Function(name) => Some(name.clone()),
                EventPattern::Event { .. } | EventPattern::FunctionReturn(_) => None,
            })
            .collect();
        let ranges = symbols
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(_, range)| range.clone())
            .collect();
        (!names.is_empty()).then(|| FunctionCalls {
            names,
            ranges,
            ip: FieldReader::of(ty, "ip"),
        })
    }

    /// Returns whether the event is a call of one of them. Texts have the function's name first.
    pub(super) fn called(&self, event: &Event<'_>, data: &Data) -> bool {
        if let event::Body::Text { text, .. } = event.body {
            let name = text.trim_start();
            let end = name
                .find(|c: char| c.is_whitespace() || c == '+')
                .unwrap_or(name.len());
            return self.names.iter().any(|wanted| *wanted == name[..end]);
        }
        let ip = self.ip.number(event, data);
        ip.is_some_and(|ip| self.ranges.iter().any(|range| range.contains(&ip)))
    }
}

/// Name of fields that hold the address of a function, where a text has its name.
pub(crate) const FUNCTION: &str = "function";

/// Where functions are, by name.
pub(crate) type FunctionRanges = Vec<(String, std::ops::Range<u64>)>;

/// What the engine itself looks at in a kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InterruptEvent {
    #[default]
    Nothing,
    /// An interrupt is raised by this thread.
    Raise(crate::tasks::InterruptSource),
    /// An interrupt is accepted for a vCPU.
    Accept,
    /// The interrupt just accepted is posted: the vCPU's hardware takes it without an injection.
    Posted,
    /// An interrupt is injected.
    Inject,
    /// The VMM sets a line of the vGIC.
    Line,
    /// A system register of arm64 is touched: perhaps one that sends an interrupt to another vCPU.
    Sgi,
    /// An interrupt of arm64 becomes pending, or is no longer.
    Vgic,
    /// The line of a vCPU's own timer of arm64 changes.
    ArmTimer,
    /// The host handles an interrupt.
    HostIrq,
}

/// `ICC_SGI1R_EL1`, `ICC_ASGI1R_EL1` and `ICC_SGI0R_EL1`: op0 3, op1 0, CRn 12, CRm 11, op2 5 to 7 (Arm's GICv3
/// architecture specification, IHI 0069), as [`FieldReader`] reads `sysreg`.
pub(crate) const SGI_REGISTERS: [u64; 3] = [300_121_105, 300_121_106, 300_121_107];

/// What events of a kind tell the engine beside being steps of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EventEffect {
    #[default]
    Nothing,
    /// That the thread has gone on.
    Goes,
    /// That it has left its guest, or enters it.
    Crosses,
    /// More than that.
    More,
}

/// What is done with events of one kind.
#[derive(Debug, Default)]
pub(crate) struct EventBinding {
    /// Whether the events are looked at at all.
    pub wanted: bool,
    /// Whether there was one.
    pub seen: bool,
    pub watch: InterruptEvent,
    pub effect: EventEffect,
    /// Number of the vCPU, vector or interrupt, as `watch` needs them.
    pub number: Option<FieldReader>,
    pub vector: Option<FieldReader>,
    pub mode: Option<FieldReader>,
    /// Alternatives that it can be, later steps first: one event does not take an instance two steps on.
    pub alts: Vec<BoundAlternative>,
    /// What ends instances.
    pub cancels: Vec<BoundEnd>,
    /// The numbers of both: which of them anybody waits for is found by these.
    pub alt_words: DueWords,
    pub cancel_words: DueWords,
    /// Steps whose events these are: they are recorded.
    pub marks: Vec<u32>,
    /// Steps and alternatives that count for nothing from now on.
    pub disables: Vec<u32>,
    pub disables_alts: Vec<u32>,
    /// The same for calls of functions, where the events are the function tracer's: steps, and alternatives.
    pub calls_disable: Vec<(FunctionCalls, Option<u32>, Option<u32>)>,
}

/// Binds all paths to a kind of event.
pub(crate) fn bind(
    paths: &[PathDefinition],
    index: &PathIndex,
    ty: &EventType<'_>,
    symbols: &FunctionRanges,
) -> EventBinding {
    let mut binder = PathBinder {
        index,
        ty,
        symbols,
        tracer: is_function_tracer(ty.system, ty.name),
        at_return: ty.format.map(|format| format.field(RETURNS_TO).is_some()),
        binding: EventBinding::default(),
    };
    // What the engine itself looks at is the host's.
    if ty.machine == 0 {
        watch(&mut binder.binding, ty);
    }
    for ((path, at), first) in index.chains.iter().zip(&index.first_step) {
        let chain = &paths[index_of(*path)].chains[usize::from(*at)];
        for (step, number) in chain.steps.iter().zip(*first..) {
            binder.step(step, number);
        }
    }
    let mut binding = binder.binding;
    binding.marks.dedup();
    // Their numbers are in the order in which they are tried.
    binding.alts.sort_by_key(|bound| bound.alt);
    let alts = binding.alts.iter();
    binding.alt_words = DueWords::of(alts.map(|bound| (bound.alt, !bound.joins)));
    let cancels = binding.cancels.iter();
    binding.cancel_words = DueWords::of(cancels.map(|cancel| (cancel.number, false)));
    binding.wanted |= !binding.alts.is_empty()
        || !binding.cancels.is_empty()
        || !binding.disables.is_empty()
        || !binding.disables_alts.is_empty()
        || !binding.calls_disable.is_empty();
    binding
}

/// Binds steps to a kind of event, one after the other.
struct PathBinder<'b, 't> {
    index: &'b PathIndex,
    ty: &'b EventType<'t>,
    symbols: &'b FunctionRanges,
    /// Whether the events are the function tracer's: then which function each is of decides.
    tracer: bool,
    /// Whether they are those of a probe at a function's end; `None` where the recording has no format.
    at_return: Option<bool>,
    binding: EventBinding,
}

/// The field that events of probes at functions' ends have, and no others (`kernel/trace/trace_probe.h`).
const RETURNS_TO: &str = "__probe_ret_ip";

impl PathBinder<'_, '_> {
    fn matches(&self, patterns: &[EventPattern]) -> bool {
        let (system, name) = (self.ty.system, self.ty.name);
        // Paths name exits and entries as most architectures do.
        let usual = match self.ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit => Some("kvm_exit"),
            Kind::KvmEntry => Some("kvm_entry"),
            _ => None,
        };
        let is_usual =
            |pattern: &EventPattern| usual.is_some_and(|name| pattern.matches("kvm", name, None));
        let at_return = self.at_return;
        patterns
            .iter()
            .any(|pattern| pattern.matches(system, name, at_return) || is_usual(pattern))
    }

    /// Binds what a step of this number is reached by, what it counts for nothing by, and what ends instances there.
    fn step(&mut self, step: &PathStep, number: u32) {
        let of_host = self.ty.machine == 0;
        if of_host {
            if self.tracer {
                self.calls_disable(&step.unless, Some(number), None);
            } else if self.matches(&step.unless) {
                self.binding.disables.push(number);
            }
            self.ends(step, number);
        }
        let index = self.index;
        for alt_number in &index.steps[index_of(number)].alts {
            let plan = &index.alts[index_of(*alt_number)];
            let alt = &plan.said;
            if plan.in_guest == of_host {
                continue;
            }
            if !of_host {
                // What guests record does not say what is not to be guessed of the host.
            } else if self.tracer {
                self.calls_disable(&alt.unless, None, Some(*alt_number));
            } else if self.matches(&alt.unless) {
                self.binding.disables_alts.push(*alt_number);
            }
            if self.matches(&alt.events) {
                self.alt(plan, *alt_number);
            }
        }
    }

    /// Calls of functions without which a step or an alternative counts.
    fn calls_disable(&mut self, unless: &[EventPattern], step: Option<u32>, alt: Option<u32>) {
        let called = FunctionCalls::of(unless, self.ty, self.symbols);
        let disables = called.map(|called| (called, step, alt));
        self.binding.calls_disable.extend(disables);
    }

    /// What ends instances at a step.
    fn ends(&mut self, step: &PathStep, number: u32) {
        let numbers = &self.index.steps[index_of(number)].ended_by;
        for ((end, ending), (number, ..)) in ends_of(step).zip(numbers) {
            if self.matches(std::slice::from_ref(&end.event)) {
                self.binding.cancels.push(BoundEnd {
                    number: *number,
                    asks: asks(&end.conds, self.ty, self.symbols),
                    ending,
                    anew: end.anew,
                });
            }
        }
    }

    /// An alternative whose event it can be.
    fn alt(&mut self, plan: &AlternativePlan, number: u32) {
        let functions = if self.tracer {
            FunctionCalls::of(&plan.said.events, self.ty, self.symbols)
        } else {
            None
        };
        self.binding.marks.push(plan.number);
        let one = bound(plan, number, functions, self.ty, self.symbols);
        self.binding.alts.push(one);
    }
}

fn asks(
    conds: &[EventCondition],
    ty: &EventType<'_>,
    symbols: &FunctionRanges,
) -> Vec<BoundCondition> {
    let within = |name: &str| -> Vec<std::ops::Range<u64>> {
        let of = symbols.iter().filter(|(known, _)| known == name);
        of.map(|(_, range)| range.clone()).collect()
    };
    let asks = conds.iter().map(|cond| match cond {
        EventCondition::Compare(
            EventAttribute::Field(field),
            ComparisonOperator::Equal,
            ComparisonOperand::Text(name),
        ) if ty.format.is_some() && field == FUNCTION => {
            BoundCondition::Within(FieldReader::of(ty, field), within(name))
        }
        EventCondition::Compare(EventAttribute::Reason, op, value) => {
            BoundCondition::Reason(ReasonCondition::new(*op, value))
        }
        EventCondition::Compare(attr, op, value) => {
            BoundCondition::Compare(AttributeReader::of(attr, ty), *op, value.clone())
        }
        EventCondition::Is(attr, class, yes) => {
            BoundCondition::Is(AttributeReader::of(attr, ty), *class, *yes)
        }
        EventCondition::Rises(attr) => match AttributeReader::of(attr, ty) {
            AttributeReader::Field(level) => {
                BoundCondition::Rises(level, FieldReader::of(ty, "irq"))
            }
            other => BoundCondition::Compare(
                other,
                ComparisonOperator::Equal,
                ComparisonOperand::Number(1),
            ),
        },
        EventCondition::Sleeps => BoundCondition::Sleeps,
        EventCondition::Halts => BoundCondition::Halts,
        EventCondition::InTask => BoundCondition::InTask,
    });
    asks.collect()
}

fn bound(
    plan: &AlternativePlan,
    number: u32,
    functions: Option<FunctionCalls>,
    ty: &EventType<'_>,
    symbols: &FunctionRanges,
) -> BoundAlternative {
    let alt = &plan.said;
    let asks = asks(&alt.conds, ty, symbols);
    let same = alt.joins.iter().filter(|join| !join.differs);
    let keys: Vec<_> = same
        .map(|join| (AttributeReader::of(&join.attr, ty), join.role))
        .collect();
    // One value is its own key; several have one that others may have too.
    let checks = alt
        .joins
        .iter()
        .filter(|join| join.differs || keys.len() > 1)
        .map(|join| (AttributeReader::of(&join.attr, ty), join.role, join.differs))
        .collect();
    let binds = alt
        .binds
        .iter()
        .map(|(role, attr)| (*role, AttributeReader::of(attr, ty)))
        .collect();
    BoundAlternative {
        alt: number,
        chain: plan.chain,
        step: index_of(plan.step),
        number: plan.number,
        functions,
        asks,
        keys,
        checks,
        binds,
        joins: plan.joins,
        awake: alt.awake,
        within: alt
            .within
            .as_ref()
            .map(|attr| AttributeReader::of(attr, ty)),
    }
}

/// What the engine has to see whatever the paths are.
fn watch(binding: &mut EventBinding, ty: &EventType<'_>) {
    use crate::tasks::InterruptSource;
    let of_machine = ty.kind.is_sched()
        || matches!(
            ty.kind,
            Kind::KvmExit
                | Kind::KvmInnerExit
                | Kind::KvmEntry
                | Kind::KvmUserspaceExit
                | Kind::KvmVcpuWakeup
                | Kind::KvmFpu
        );
    binding.wanted = of_machine && ty.kind != Kind::SchedStatRuntime;
    let of_kvm = matches!(ty.system, "" | "kvm");
    binding.watch = match ty.name {
        "kvm_apic_ipi" | "kvm_hypercall" | "kvm_pv_send_ipi" | "kvm_hv_send_ipi"
        | "kvm_hv_send_ipi_ex"
            if of_kvm =>
        {
            InterruptEvent::Raise(InterruptSource::Ipi)
        }
        "kvm_msi_set_irq" if of_kvm => InterruptEvent::Raise(InterruptSource::Msi),
        // kvm_ioapic_set_irq comes behind what it raised, this one before.
        "kvm_set_irq" if of_kvm => InterruptEvent::Raise(InterruptSource::Pin),
        "kvm_apic_accept_irq" if of_kvm => InterruptEvent::Accept,
        "kvm_apicv_accept_irq" if of_kvm => InterruptEvent::Posted,
        "kvm_inj_virq" if of_kvm => InterruptEvent::Inject,
        "kvm_irq_line" if of_kvm => InterruptEvent::Line,
        "kvm_sys_access" if of_kvm => InterruptEvent::Sgi,
        "vgic_update_irq_pending" if of_kvm => InterruptEvent::Vgic,
        "kvm_timer_update_irq" if of_kvm => InterruptEvent::ArmTimer,
        "irq_handler_entry" => InterruptEvent::HostIrq,
        _ => InterruptEvent::Nothing,
    };
    binding.effect = match ty.kind {
        Kind::KvmFpu | Kind::KvmUserspaceExit => EventEffect::Goes,
        Kind::KvmExit | Kind::KvmEntry if binding.watch == InterruptEvent::Nothing => {
            EventEffect::Crosses
        }
        _ if of_machine || binding.watch != InterruptEvent::Nothing => EventEffect::More,
        _ => EventEffect::Nothing,
    };
    if binding.watch != InterruptEvent::Nothing {
        binding.wanted = true;
        let field = |name: &str| Some(FieldReader::of(ty, name));
        binding.number = field(match binding.watch {
            InterruptEvent::Accept => "apicid",
            InterruptEvent::HostIrq => "irq",
            InterruptEvent::Sgi => "sysreg",
            _ => "level",
        });
        binding.vector = field(match binding.watch {
            InterruptEvent::Vgic => "irq",
            _ => "vector",
        });
        binding.mode = field(match binding.watch {
            InterruptEvent::Vgic => "vcpu",
            InterruptEvent::Inject => "reinjected",
            _ => "mode",
        });
    }
}
