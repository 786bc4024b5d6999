//! A path as its file says it, checked: chains of steps, alternatives, roles.

use super::cond::{EventAttribute, EventCondition, EventPattern};

/// A path has at most so many chains, a chain so many steps and roles, a step so many alternatives.
pub(crate) const MAX_CHAINS: usize = 8;
pub(crate) const MAX_STEPS: usize = 40;
pub(crate) const MAX_ROLES: usize = 16;
pub(crate) const MAX_ALTS: usize = 16;

/// A path: chains of steps, each of which is a way to go it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDefinition {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What its instances are grouped by, if they are.
    pub by: Option<PathGrouping>,
    /// The ways to go it; one at least.
    pub chains: Vec<PathChain>,
    /// Nobody asked for it: nothing is said of it where it is not found.
    pub only_if_found: bool,
}

impl PathDefinition {
    /// Returns the events of the host that its steps may be, as subsystem, if given, and name; some more than once.
    /// Functions and names with wildcards are left out.
    pub fn events(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let steps = self.chains.iter().flat_map(|chain| &chain.steps);
        let alts = steps.flat_map(|step| &step.alts);
        let alts = alts.filter(|alt| !alt.in_guest);
        let patterns = alts.flat_map(|alt| &alt.events);
        patterns.filter_map(|pattern| match pattern {
            EventPattern::Event { system, name } if !name.contains(['*', '?', '[']) => {
                Some((system.as_deref(), name.as_str()))
            }
            _ => None,
        })
    }
}

/// What the instances of a path are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathGrouping {
    /// Who woke the vCPU: a timer, a device, another vCPU.
    Waker,
    /// What kind of thread the back end is.
    BackEnd,
    /// What the guest touched, or why it exited.
    Access,
    /// Which chain it went.
    Chain,
    /// How far the NUMA node of the CPU of its first event is from that of its last one, where the machine's nodes are
    /// known.
    NodeDistance,
    /// Which thread raised its interrupt, as which.
    Raiser,
}

/// One way to go a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChain {
    /// Its name, where a path has several.
    pub name: Option<String>,
    /// Steps in order; two at least.
    pub steps: Vec<PathStep>,
    /// Names of its roles; a role is a number into this list.
    pub roles: Vec<String>,
}

/// Whether an instance can do without a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepOption {
    /// It cannot.
    #[default]
    Never,
    /// It can: the step is passed over when a later one is reached.
    Always,
    /// It can where the recording has none of the step's events.
    Unrecorded,
}

/// The event that shows the exits which instances begin with ([`PathStep::is_exit`]).
pub const EXIT_EVENT: &str = "kvm_exit";

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathStep {
    /// Its name; stages are named by the steps at both ends.
    pub name: String,
    /// Whether it can be passed over.
    pub optional: StepOption,
    /// A step of the chain: where its events are recorded, this one can be passed over.
    pub optional_with: Option<String>,
    /// Whether an instance counts from here on; before, it ends without being counted as anything.
    pub counts: bool,
    /// Whether every event that fits makes an instance of its own, as each vCPU that takes one IPI.
    pub each: bool,
    /// Roles of which only one instance at a time has the same from here on.
    pub unique: Vec<usize>,
    /// Whether an instance that comes second by `unique` is one with the first, as a second interrupt of one
    /// vector is that waits to be injected. If not, the first is given up.
    pub coalesces: bool,
    /// From here on there may be others at the place that it had by `unique`.
    pub several: bool,
    /// Once one of these has come, steps that come soon do not come any more; an instance that has nothing else to wait
    /// for ends.
    pub until: Vec<WaitEnd>,
    /// Once one of these has come, the instance is over, whatever it waits for: what it was about has gone on.
    pub over: Vec<WaitEnd>,
    /// The back end has answered, or is done: what comes behind it is not its time.
    pub answers: bool,
    /// Who makes its event polls for what the step before left, and has had it since then.
    pub polls: bool,
    /// It is the exit during which the event is made that begins an instance at the next step, and no event of its own:
    /// [`EXIT_EVENT`] says when it was.
    pub is_exit: bool,
    /// An instance that reaches it is complete, though it is not the last one.
    pub ends: bool,
    /// It comes before the events that the step before it names with `until`, or not at all.
    pub soon: bool,
    /// The step counts for nothing once one of these events has been seen.
    pub unless: Vec<EventPattern>,
    /// It cannot follow these steps.
    pub not_after: Vec<usize>,
    /// It has to follow one of these steps, if there are any.
    pub only_after: Vec<usize>,
    /// It cannot be reached by an instance without these roles, recalled ones included.
    pub needs: Vec<usize>,
    /// Roles that are taken from the last instance that went the same way, where it had them: role, and the
    /// roles it is remembered by.
    pub recall: Vec<(usize, Vec<usize>)>,
    /// A step of the chain: an instance that an event takes here which takes another one there is none. It would be the
    /// answer to that one.
    pub yields: Option<String>,
    /// The events that reach it: any of them.
    pub alts: Vec<StepAlternative>,
}

impl PathStep {
    /// Returns whether all events that reach it are guests' own.
    pub fn is_in_guest(&self) -> bool {
        !self.is_exit && self.alts.iter().all(|alt| alt.in_guest)
    }

    /// Returns the alternatives that lead to it, each with its events. The exit that an instance begins with has none,
    /// and is there where [`EXIT_EVENT`] is recorded.
    pub fn ways(&self) -> impl Iterator<Item = (Option<&StepAlternative>, &[EventPattern])> {
        static EXIT: std::sync::LazyLock<Vec<EventPattern>> =
            std::sync::LazyLock::new(|| EventPattern::parse(EXIT_EVENT).into_iter().collect());
        let exit = self.is_exit.then(|| (None, EXIT.as_slice()));
        let alts = self.alts.iter();
        alts.map(|alt| (Some(alt), alt.events.as_slice()))
            .chain(exit)
    }
}

/// An event by which an instance at a step ends, if nothing has taken it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitEnd {
    /// Which event...
    pub event: EventPattern,
    /// ...of which all this is true...
    pub conds: Vec<EventCondition>,
    /// ...made by the thread that this role holds; without one, by the thread that made the step's event.
    pub of: Option<usize>,
    /// The exit from the guest that the thread is in began after the step.
    pub anew: bool,
}

/// One way to reach a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepAlternative {
    /// Events of these names...
    pub events: Vec<EventPattern>,
    /// It cannot follow these steps.
    pub not_after: Vec<usize>,
    /// It has to follow one of these steps, if there are any.
    pub only_after: Vec<usize>,
    /// The events are those of a guest's own recording, and not the host's.
    pub in_guest: bool,
    /// As [`PathStep::soon`], of this alternative alone.
    pub soon: bool,
    /// A field of the event, in nanoseconds: the step before was reached no longer ago than that.
    pub within: Option<EventAttribute>,
    /// The thread that makes the event has neither slept nor, as a vCPU, halted since the step before.
    pub awake: bool,
    /// The event fills roles that the instance does not hold yet, and does not reach the step.
    pub only_binds: bool,
    /// Steps that were reached in error, if they were the last ones: reaching this one takes them back. They may be
    /// later steps.
    pub instead_of: Vec<String>,
    /// Once one of these events has been seen, the alternative counts for nothing.
    pub unless: Vec<EventPattern>,
    /// ...of which all this is true...
    pub conds: Vec<EventCondition>,
    /// ...and whose attribute is what the role holds (or is not, where that is said).
    pub joins: Vec<RoleJoin>,
    /// What the instance then holds.
    pub binds: Vec<(usize, EventAttribute)>,
}

/// An attribute of an event that is compared with a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleJoin {
    /// Of the event.
    pub attr: EventAttribute,
    /// Of the instance.
    pub role: usize,
    /// Whether they have to differ.
    pub differs: bool,
}
