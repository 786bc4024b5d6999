//! Events by name, and conditions on what they say.

use wildmatch::WildMatch;

use super::error::LanguageError;

/// Which events: `system:name` or `name`, with `*` and `?`; `fn:NAME`, a call of that function as the function
/// tracer, a probe or a user-space probe of that name records it; or `fn:NAME%return`, the end of such a call as a
/// probe records it, written as `perf probe` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventPattern {
    /// By name.
    Event {
        /// Subsystem, if given.
        system: Option<String>,
        /// Name, with wildcards.
        name: String,
    },
    /// By function.
    Function(String),
    /// By the function that returns.
    FunctionReturn(String),
}

impl EventPattern {
    /// Parses one.
    ///
    /// # Errors
    /// It is empty.
    pub fn parse(text: &str) -> Result<EventPattern, LanguageError> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("fn:") {
            let name = name.trim();
            let (function, returns) = match name.strip_suffix("%return") {
                Some(function) => (function, true),
                None => (name, false),
            };
            return match function {
                "" => Err(LanguageError(
                    "'fn:' names no function; expected fn:NAME".to_owned(),
                )),
                function if returns => Ok(EventPattern::FunctionReturn(function.to_owned())),
                function => Ok(EventPattern::Function(function.to_owned())),
            };
        }
        let (system, name) = match text.split_once(':') {
            Some((system, name)) => (Some(system.trim().to_owned()), name.trim()),
            None => (None, text),
        };
        if name.is_empty() || system.as_deref() == Some("") {
            return Err(LanguageError(format!(
                "'{text}' names no event; expected NAME, SYSTEM:NAME or fn:FUNCTION"
            )));
        }
        Ok(EventPattern::Event {
            system,
            name: name.to_owned(),
        })
    }

    /// Returns whether events of this name are meant. Those of the function tracer are, if a function is: which
    /// function they are of is said by each of them. `at_return` is what the events' format says of a probe: whether it
    /// is one at a function's end; `None` where there is no format.
    pub fn matches(&self, system: &str, name: &str, at_return: Option<bool>) -> bool {
        match self {
            EventPattern::Event {
                system: wanted,
                name: pattern,
            } => {
                let of_system = wanted
                    .as_deref()
                    .is_none_or(|wanted| system.is_empty() || like(wanted, system));
                of_system && like(pattern, name)
            }
            EventPattern::Function(function) => {
                let begins = at_return != Some(true) && is_probe_of(name, function);
                is_function_tracer(system, name) || begins
            }
            EventPattern::FunctionReturn(function) => {
                is_return_probe_of(name, function)
                    || at_return == Some(true) && is_probe_of(name, function)
            }
        }
    }
}

/// Returns whether a name fits a pattern, which mostly is a name.
fn like(pattern: &str, name: &str) -> bool {
    if pattern.contains(['*', '?']) {
        WildMatch::new(pattern).matches(name)
    } else {
        pattern == name
    }
}

/// Returns whether events of this name are the function tracer's, which are all of one name.
pub(crate) fn is_function_tracer(system: &str, name: &str) -> bool {
    matches!(system, "" | "ftrace") && name == "function"
}

/// Returns whether a probe of this name is one at the beginning of a function: `perf probe` names them as the function,
/// with a number behind it for a second one, and people name theirs in `kprobe_events` with something before
/// it; the kernel itself with `p_` and the offset. Names of probes at a function's return say so.
fn is_probe_of(name: &str, function: &str) -> bool {
    let bare = ["kp_", "kprobe_", "p_", "k_", "up_", "uprobe_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .filter(|_| !function.starts_with("kp_"));
    let mut names = [Some(name), bare].into_iter().flatten();
    names.any(|name| name.strip_prefix(function).is_some_and(is_number))
}

/// Returns whether a probe of this name is one at a function's end: `perf probe` has put `__return` behind the
/// function since Linux 4.16 (`tools/perf/util/probe-event.c`), the kernel names those of `kprobe_events` with `r_`
/// and the offset (`kernel/trace/trace_kprobe.c`), and people theirs alike.
fn is_return_probe_of(name: &str, function: &str) -> bool {
    let by_perf = name
        .strip_prefix(function)
        .and_then(|rest| rest.strip_prefix("__return"));
    let prefixes = [
        "kretprobe_",
        "uretprobe_",
        "krp_",
        "urp_",
        "kr_",
        "ur_",
        "rp_",
        "r_",
    ];
    let mut bare = prefixes
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix)?.strip_prefix(function));
    by_perf.is_some_and(is_number) || bare.any(is_number)
}

/// Returns whether what stands behind a function's name is nothing, or the number of one more probe.
fn is_number(rest: &str) -> bool {
    let number = rest.strip_prefix('_');
    rest.is_empty()
        || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Something an event says, or what is known of who says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventAttribute {
    /// The thread that makes the event.
    Thread,
    /// The task it is about: who is woken, who gets the CPU, who is migrated.
    Task,
    /// The task that leaves the CPU, of `sched_switch`.
    Prev,
    /// The CPU it happens on.
    Cpu,
    /// The vCPU (its thread) that an interrupt is for.
    Target,
    /// Who raised an interrupt that is accepted: `ipi`, `msi`, `pin`, or `local` for the vCPU's own timer.
    Raised,
    /// Why a vCPU is out of its guest: the exit's reason, as `perf kvm stat report` prints it.
    Reason,
    /// The task of a guest that makes the event; none on the host.
    Inside,
    /// Which guest the event happens in, by the number of its machine; 0 on the host.
    Machine,
    /// The process that the thread works for: its own, or that of the VM whose vhost worker it is.
    Process,
    /// The process that the task works for.
    TaskProcess,
    /// Which guest the thread is a vCPU of, where that guest's own recording is there: of an event of the host.
    ThreadMachine,
    /// The same of the task that is woken or gets the CPU.
    TaskMachine,
    /// How many bytes a packet has on the wire, with its Ethernet header and without a VLAN tag, of the events of
    /// `net`.
    Frame,
    /// Nothing, which all events have alike. It has no name in the language.
    Any,
    /// One of its fields, by the name that its format gives it; or one of those that all forms of a
    /// recording have: `vector`, `mode`, `gsi`, `level`, `irq`, `vcpu`, `address`, `write`, `waited`, `load`, `sysreg`.
    Field(String),
}

impl EventAttribute {
    pub(crate) fn parse(text: &str) -> Result<EventAttribute, LanguageError> {
        let text = text.trim();
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '>');
        if text.is_empty() || !text.chars().all(name) {
            return Err(LanguageError(format!(
                "'{text}' is no name of a field; expected letters, digits and '_'"
            )));
        }
        Ok(match text {
            "thread" => EventAttribute::Thread,
            "task" => EventAttribute::Task,
            "prev" => EventAttribute::Prev,
            "cpu" => EventAttribute::Cpu,
            "target" => EventAttribute::Target,
            "raised" => EventAttribute::Raised,
            "reason" => EventAttribute::Reason,
            "inside" => EventAttribute::Inside,
            "machine" => EventAttribute::Machine,
            "process" => EventAttribute::Process,
            "task-process" => EventAttribute::TaskProcess,
            "thread-machine" => EventAttribute::ThreadMachine,
            "task-machine" => EventAttribute::TaskMachine,
            "frame" => EventAttribute::Frame,
            _ => EventAttribute::Field(text.to_owned()),
        })
    }
}

/// What kind of thread, or what a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadClass {
    /// A vCPU's.
    Vcpu,
    /// A kworker.
    Kworker,
    /// A vhost worker.
    Vhost,
    /// Another thread of the kernel: ksoftirqd, rcu, migration and the like.
    Kernel,
    /// A CPU's idle task.
    Idle,
    /// A vCPU that is in its guest.
    Guest,
    /// A vCPU that is in a halt, asleep.
    Halted,
    /// A vCPU that is in a halt, and has its CPU.
    Polling,
    /// A thread that works for some VM: a vhost worker, one of a process that has vCPUs, or one that has raised a
    /// device's interrupt.
    BackEnd,
    /// A thread that has raised a device's interrupt.
    Raiser,
    /// A thread of the VMM that the thread which makes the event works for, and no vCPU's.
    Vmm,
    /// A vCPU of the VM that the thread which makes the event works for.
    OwnVcpu,
    /// A thread that is a VM's own: one of a process that has vCPUs, or a vhost worker. The poll-mode threads of a
    /// switch are none.
    OfVm,
    /// Another vCPU's thread than the one that makes the event.
    Other,
}

impl ThreadClass {
    /// All classes, by the names that the language has for them.
    pub(super) const NAMED: [(&'static str, ThreadClass); 14] = [
        ("vcpu", ThreadClass::Vcpu),
        ("kworker", ThreadClass::Kworker),
        ("vhost", ThreadClass::Vhost),
        ("kernel", ThreadClass::Kernel),
        ("idle", ThreadClass::Idle),
        ("guest", ThreadClass::Guest),
        ("halted", ThreadClass::Halted),
        ("polling", ThreadClass::Polling),
        ("back-end", ThreadClass::BackEnd),
        ("raiser", ThreadClass::Raiser),
        ("vmm", ThreadClass::Vmm),
        ("own-vcpu", ThreadClass::OwnVcpu),
        ("of-vm", ThreadClass::OfVm),
        ("other", ThreadClass::Other),
    ];

    /// Returns the class of this name.
    fn named(name: &str) -> Option<ThreadClass> {
        let mut all = ThreadClass::NAMED.into_iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, class)| class)
    }
}

/// Comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `==`
    Equal,
    /// `!=`
    Differs,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `~`: text with wildcards.
    Like,
}

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparisonOperand {
    /// A number.
    Number(i128),
    /// A text, with wildcards for `~`.
    Text(String),
}

impl Eq for ComparisonOperand {}

/// A condition on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventCondition {
    /// Of a field.
    Compare(EventAttribute, ComparisonOperator, ComparisonOperand),
    /// Of a thread; the last says whether it is so, or is not.
    Is(EventAttribute, ThreadClass, bool),
    /// A level that was 0 (or not seen) the last time the same thread had the same `irq`, and is not now.
    Rises(EventAttribute),
    /// The task that a `sched_switch` takes its CPU from goes to sleep: it is not preempted.
    Sleeps,
    /// The guest of a `kvm_exit` asks to wait: HLT, WFx, MWAIT.
    Halts,
    /// The thread itself makes the event: no interrupt that came while it ran (the kernel's `in_task`). It is not so
    /// where the recording does not say.
    InTask,
}

/// Who can raise an interrupt.
const RAISED: [&str; 4] = ["ipi", "msi", "pin", "local"];

impl EventCondition {
    /// Parses one: `field == 1`, `comm ~ "CPU*"`, `task is vcpu`, `task is not kworker`, `level rises`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<EventCondition, LanguageError> {
        if let Some(found) = comparison(text) {
            return compare(text, found);
        }
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some(attr), Some("is")) => is(text, attr, words),
            (Some(attr), Some("rises")) if words.next().is_none() => {
                Ok(EventCondition::Rises(EventAttribute::parse(attr)?))
            }
            (Some("prev"), Some("sleeps")) if words.next().is_none() => Ok(EventCondition::Sleeps),
            (Some("thread"), Some("halts")) if words.next().is_none() => Ok(EventCondition::Halts),
            (Some("in"), Some("task")) if words.next().is_none() => Ok(EventCondition::InTask),
            _ => Err(LanguageError(format!(
                "'{text}' is no condition; expected FIELD OP VALUE with one of == != < <= > >= ~, 'thread is CLASS', \
                 'FIELD rises', 'prev sleeps', 'thread halts' or 'in task'"
            ))),
        }
    }
}

/// Finds the first comparison in a text, the longest of those at one place: where it is, its sign, and what it means.
fn comparison(text: &str) -> Option<(usize, &'static str, ComparisonOperator)> {
    const OPS: [(&str, ComparisonOperator); 8] = [
        ("==", ComparisonOperator::Equal),
        ("!=", ComparisonOperator::Differs),
        ("<=", ComparisonOperator::AtMost),
        (">=", ComparisonOperator::AtLeast),
        ("<", ComparisonOperator::Less),
        (">", ComparisonOperator::More),
        ("~", ComparisonOperator::Like),
        ("=", ComparisonOperator::Equal),
    ];
    OPS.into_iter()
        .filter_map(|(sign, op)| text.find(sign).map(|at| (at, sign, op)))
        .min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()))
}

/// Parses `FIELD OP VALUE`, in which the comparison has been found.
fn compare(
    text: &str,
    (at, sign, op): (usize, &str, ComparisonOperator),
) -> Result<EventCondition, LanguageError> {
    let attr = EventAttribute::parse(&text[..at])?;
    let behind = &text[at + sign.len()..];
    let value = value(behind)?;
    if let (
        EventAttribute::Raised,
        ComparisonOperator::Equal | ComparisonOperator::Differs,
        ComparisonOperand::Text(word),
    ) = (&attr, op, &value)
        && !RAISED.contains(&word.as_str())
    {
        return Err(LanguageError(format!(
            "'{text}': expected one of {} behind {sign}",
            RAISED.join(", ")
        )));
    }
    let value = match (op, value) {
        (ComparisonOperator::Like, ComparisonOperand::Number(_)) => {
            ComparisonOperand::Text(behind.trim().to_owned())
        }
        (
            ComparisonOperator::Less
            | ComparisonOperator::AtMost
            | ComparisonOperator::More
            | ComparisonOperator::AtLeast,
            ComparisonOperand::Text(text),
        ) => {
            return Err(LanguageError(format!(
                "'{text}' is no number, which {sign} compares with"
            )));
        }
        (_, value) => value,
    };
    Ok(EventCondition::Compare(attr, op, value))
}

/// Parses `ATTRIBUTE is CLASS` and `ATTRIBUTE is not CLASS`, of which the words behind `is` are left.
fn is<'t>(
    text: &str,
    attr: &str,
    mut words: impl Iterator<Item = &'t str>,
) -> Result<EventCondition, LanguageError> {
    let attr = EventAttribute::parse(attr)?;
    if !matches!(
        attr,
        EventAttribute::Thread
            | EventAttribute::Task
            | EventAttribute::Prev
            | EventAttribute::Target
    ) {
        return Err(LanguageError(format!(
            "'{text}': only thread, task, prev and target are threads, which 'is' asks about"
        )));
    }
    let (class, yes) = match (words.next(), words.next(), words.next()) {
        (Some("not"), Some(class), None) => (class, false),
        (Some(class), None, None) => (class, true),
        _ => ("", true),
    };
    let class = ThreadClass::named(class).ok_or_else(|| {
        let names = ThreadClass::NAMED.map(|(name, _)| name);
        LanguageError(format!(
            "'{text}': expected one of {} behind 'is'",
            names.join(", ")
        ))
    })?;
    Ok(EventCondition::Is(attr, class, yes))
}

/// Parses a number, decimal or hexadecimal, or a text, in quotes or without.
fn value(text: &str) -> Result<ComparisonOperand, LanguageError> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return match rest.strip_suffix(quote) {
                Some(inner) => Ok(ComparisonOperand::Text(inner.to_owned())),
                None => Err(LanguageError(format!(
                    "{text} has no closing {quote}, or something behind it"
                ))),
            };
        }
    }
    if text.is_empty() {
        return Err(LanguageError(
            "nothing stands behind the comparison; expected a number or a text".to_owned(),
        ));
    }
    if text.starts_with(['=', '<', '>', '~', '!']) {
        return Err(LanguageError(format!(
            "'{text}' stands behind the comparison; expected a number or a text, in quotes if it begins so"
        )));
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let number = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse::<u64>().ok(),
    };
    Ok(match number {
        Some(number) => ComparisonOperand::Number(sign * i128::from(number)),
        None => ComparisonOperand::Text(text.to_owned()),
    })
}
