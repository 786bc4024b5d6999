//! Paths as the engine goes by them: what a path file says of steps and alternatives, by number.

use event::index_of;

use crate::lang::{EventAttribute, PathDefinition, PathStep, StepAlternative, StepOption, WaitEnd};

/// A set of the steps of one chain, which has at most [`MAX_STEPS`](crate::lang::MAX_STEPS).
pub(crate) type StepSet = u64;

/// Returns the set of one step.
#[inline]
pub(super) fn one(step: usize) -> StepSet {
    let step = u32::try_from(step).unwrap_or(u32::MAX);
    1u64.checked_shl(step).unwrap_or(0)
}

/// Returns a set of steps.
fn set(steps: impl IntoIterator<Item = usize>) -> StepSet {
    steps.into_iter().fold(0, |set, step| set | one(step))
}

/// Of which steps one has to be reached for another step, and which must not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepOrder {
    none: StepSet,
    any: StepSet,
}

impl StepOrder {
    fn of(none: &[usize], any: &[usize]) -> StepOrder {
        let [none, any] = [none, any].map(|steps| set(steps.iter().copied()));
        StepOrder { none, any }
    }

    /// Returns whether the steps that an instance has reached rule it out.
    #[inline]
    pub(super) fn is_barred(self, reached: StepSet) -> bool {
        self.none & reached != 0 || self.any != 0 && self.any & reached == 0
    }
}

/// How an event ends an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndKind {
    /// Steps that come soon do not come any more.
    Late,
    /// The instance is over.
    Over,
}

/// Roles of a chain, by what their names mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainRoles {
    /// The vCPU that an instance is about: the first of these that is bound.
    pub subjects: Vec<usize>,
    pub back_end: Option<usize>,
    pub vector: Option<usize>,
    pub address: Option<usize>,
    /// Who raises an interrupt, and by which of KVM's lines.
    pub source: Option<usize>,
    pub gsi: Option<usize>,
    /// Whether it is the vCPU that an interrupt is for.
    pub target: bool,
    /// Those that hold threads of the host.
    pub threads: Vec<usize>,
}

impl ChainRoles {
    fn of(names: &[String], steps: &[PathStep]) -> ChainRoles {
        let alts = || steps.iter().flat_map(|step| &step.alts);
        let binds = alts().flat_map(|alt| alt.binds.iter().map(move |bind| (alt, bind)));
        let holds_thread = |alt: &StepAlternative, attr: &EventAttribute| match attr {
            EventAttribute::Thread | EventAttribute::Target => true,
            EventAttribute::Task | EventAttribute::Prev => !alt.in_guest,
            _ => false,
        };
        let threads = binds.filter(|(alt, (_, attr))| holds_thread(alt, attr));
        let mut threads: Vec<usize> = threads.map(|(_, (role, _))| *role).collect();
        threads.sort_unstable();
        threads.dedup();
        let role = |name: &str| names.iter().position(|role| role == name);
        ChainRoles {
            subjects: ["target", "vcpu", "guest"]
                .into_iter()
                .filter_map(role)
                .collect(),
            back_end: role("backend"),
            vector: role("vector"),
            address: role("address"),
            source: role("source"),
            gsi: role("gsi"),
            target: role("target").is_some(),
            threads,
        }
    }
}

/// A step.
#[derive(Debug)]
pub(crate) struct StepPlan {
    pub optional: StepOption,
    /// The step whose events have to be recorded for it to be passed over, in the chain.
    pub optional_with: Option<usize>,
    pub counts: bool,
    pub each: bool,
    pub soon: bool,
    pub coalesces: bool,
    pub several: bool,
    pub polls: bool,
    /// The step before it is the exit during which its event is made.
    pub from_exit: bool,
    /// Whether an instance that reaches it is complete.
    pub ends: bool,
    pub unique: Vec<usize>,
    pub after: StepOrder,
    pub needs: Vec<usize>,
    pub recall: Vec<(usize, Vec<usize>)>,
    /// The step, of which an event that takes an instance there is no event of this one.
    pub yields: Option<usize>,
    /// All events that reach it are a guest's.
    pub in_guest: bool,
    /// So are those of all steps behind it, and there are some.
    pub rest_in_guest: bool,
    /// The role that holds a vCPU or a task of that guest, where it has to be one's.
    pub guest_of: Option<usize>,
    /// Its alternatives.
    pub alts: Vec<u32>,
    /// Alternatives that take it back if it was the last one.
    pub back: Vec<u32>,
    /// What ends instances there: the number of each, whose event it has to be, and how.
    pub ended_by: Vec<(u32, Option<usize>, EndKind)>,
}

impl StepPlan {
    fn of(step: &PathStep, rest: &[PathStep]) -> StepPlan {
        let last = rest.is_empty();
        let joins = step.alts.iter().flat_map(|alt| &alt.joins);
        let shows_guest = |attr: &EventAttribute| {
            matches!(
                attr,
                EventAttribute::Thread
                    | EventAttribute::Inside
                    | EventAttribute::Task
                    | EventAttribute::Prev
                    | EventAttribute::Machine
            )
        };
        let mut of_thread = joins.filter(|join| shows_guest(&join.attr) && !join.differs);
        StepPlan {
            in_guest: step.is_in_guest(),
            rest_in_guest: !last && rest.iter().all(PathStep::is_in_guest),
            guest_of: of_thread.next().map(|join| join.role),
            optional: step.optional,
            optional_with: None,
            counts: step.counts,
            each: step.each,
            soon: step.soon,
            coalesces: step.coalesces,
            several: step.several,
            polls: step.polls,
            from_exit: false,
            ends: step.ends || last,
            unique: step.unique.clone(),
            after: StepOrder::of(&step.not_after, &step.only_after),
            needs: step.needs.clone(),
            recall: step.recall.clone(),
            yields: None,
            alts: Vec::new(),
            back: Vec::new(),
            ended_by: Vec::new(),
        }
    }

    /// Returns whether the steps that an instance has reached rule this one out.
    #[inline]
    pub(super) fn is_barred(&self, reached: StepSet) -> bool {
        self.after.is_barred(reached)
    }
}

/// Roles that tell in which guest an event has to be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GuestRoles {
    /// It holds a vCPU of that guest.
    pub thread: Option<usize>,
    /// It holds a task of it.
    pub task: Option<usize>,
    /// It holds the guest.
    pub machine: Option<usize>,
}

/// An alternative of a step.
#[derive(Debug)]
pub(crate) struct AlternativePlan {
    pub chain: u32,
    /// Its step: in the chain, and among all.
    pub step: u32,
    pub number: u32,
    pub after: StepOrder,
    pub soon: bool,
    pub only_binds: bool,
    /// Its events are a guest's.
    pub in_guest: bool,
    /// Roles that tell which guest that is.
    pub guest_by: GuestRoles,
    /// Steps that reaching it takes back, and whether it names some.
    pub takes_back: StepSet,
    pub instead: bool,
    /// Whether it goes on with an instance; if not, it begins one.
    pub joins: bool,
    /// Roles that the instance is found by.
    pub found_by: Vec<usize>,
    /// What the path file says.
    pub said: StepAlternative,
}

impl AlternativePlan {
    fn of(
        alt: &StepAlternative,
        chain: u32,
        step: u32,
        number: u32,
        steps: &[PathStep],
    ) -> AlternativePlan {
        let same = alt.joins.iter().filter(|join| !join.differs);
        let role_of = |attr: EventAttribute| {
            let mut joins = alt.joins.iter().filter(|join| !join.differs);
            joins.find(|join| join.attr == attr).map(|join| join.role)
        };
        let named = |name: &String| steps.iter().position(|step| step.name == *name);
        AlternativePlan {
            chain,
            step,
            number,
            after: StepOrder::of(&alt.not_after, &alt.only_after),
            soon: alt.soon,
            only_binds: alt.only_binds,
            in_guest: alt.in_guest,
            guest_by: GuestRoles {
                thread: role_of(EventAttribute::Thread),
                task: role_of(EventAttribute::Inside).or_else(|| role_of(EventAttribute::Task)),
                machine: role_of(EventAttribute::Machine),
            },
            takes_back: set(alt.instead_of.iter().filter_map(named)),
            instead: !alt.instead_of.is_empty(),
            joins: !alt.joins.is_empty(),
            found_by: same.map(|join| join.role).collect(),
            said: alt.clone(),
        }
    }

    /// The order in which an event is tried as alternatives: later steps first, since one event does not take an
    /// instance two steps on. What an event shows of one instance may end another, which goes on by it first.
    fn turn(&self) -> impl Ord + use<> {
        let step = std::cmp::Reverse((self.chain, self.step));
        (self.only_binds, step, !self.joins)
    }
}

/// A list of all alternatives and steps of all chains, by number.
#[derive(Debug, Default)]
pub(crate) struct PathIndex {
    /// Alternatives, in the order in which they are tried.
    pub alts: Vec<AlternativePlan>,
    /// Path and chain in it.
    pub chains: Vec<(u32, u8)>,
    /// By chain, the number of its first step among all, and how many it has.
    pub first_step: Vec<u32>,
    pub lengths: Vec<usize>,
    pub steps: Vec<StepPlan>,
    /// By chain, roles that mean something to the engine.
    pub roles: Vec<ChainRoles>,
    /// By chain, what its steps recall: role, and the roles it is remembered by.
    pub recalled: Vec<Vec<(usize, Vec<usize>)>>,
    /// How many things there are that end instances.
    pub all_ends: u32,
}

/// Makes a place in a list short: path files are small, and lists of what stands in them not long.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl PathIndex {
    pub(super) fn new(paths: &[PathDefinition]) -> PathIndex {
        let mut index = PathIndex::default();
        for (path, number) in paths.iter().zip(0u32..) {
            for (chain, at) in path.chains.iter().zip(0..=u8::MAX) {
                let chain_number = place(index.chains.len());
                index.chains.push((number, at));
                index.first_step.push(place(index.steps.len()));
                index.lengths.push(chain.steps.len());
                index.roles.push(ChainRoles::of(&chain.roles, &chain.steps));
                let recalled = chain.steps.iter().flat_map(|step| step.recall.clone());
                index.recalled.push(recalled.collect());
                for (step, at) in chain.steps.iter().zip(0u32..) {
                    let number = place(index.steps.len());
                    let mut plan = StepPlan::of(step, &chain.steps[index_of(at) + 1..]);
                    let ends = ends_of(step).zip(index.all_ends..);
                    let ends = ends.map(|((end, how), n)| (n, end.of, how));
                    plan.ended_by = ends.collect();
                    let named =
                        |name: &String| chain.steps.iter().position(|one| one.name == *name);
                    let before = index_of(at).checked_sub(1).map(|at| &chain.steps[at]);
                    plan.from_exit = before.is_some_and(|step| step.is_exit);
                    plan.yields = step.yields.as_ref().and_then(named);
                    plan.optional_with = step.optional_with.as_ref().and_then(named);
                    index.all_ends += place(plan.ended_by.len());
                    index.steps.push(plan);
                    let plan =
                        |alt| AlternativePlan::of(alt, chain_number, at, number, &chain.steps);
                    index.alts.extend(step.alts.iter().map(plan));
                }
            }
        }
        index.alts.sort_by_key(AlternativePlan::turn);
        for (alt, at) in index.alts.iter().zip(0u32..) {
            index.steps[index_of(alt.number)].alts.push(at);
            let first = index.first_step[index_of(alt.chain)] as usize;
            for step in 0..index.lengths[index_of(alt.chain)] {
                if alt.takes_back & one(step) != 0 {
                    index.steps[first + step].back.push(at);
                }
            }
        }
        index
    }

    /// Returns the number of a chain's step among all.
    #[inline]
    pub(super) fn number(&self, chain: u32, step: usize) -> usize {
        self.first_step[index_of(chain)] as usize + step
    }

    /// Returns a step, by chain and position.
    #[inline]
    pub(super) fn step(&self, chain: u32, step: usize) -> &StepPlan {
        &self.steps[self.number(chain, step)]
    }
}

/// What ends instances at a step, and how: in the order in which they are numbered.
pub(super) fn ends_of(step: &PathStep) -> impl Iterator<Item = (&WaitEnd, EndKind)> {
    let until = step.until.iter().map(|end| (end, EndKind::Late));
    let over = step.over.iter().map(|end| (end, EndKind::Over));
    until.chain(over)
}
