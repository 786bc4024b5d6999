//! What threads waited for without a CPU, in sums by thread, state and function: what comparisons look at.

use event::{Data, Event, EventType, Side, index_of};
use model::{Machine, RetiredThreads, TaskChanges};
use rustc_hash::FxHashMap;
use stacks::{FrameOwner, ROOT};
use symbols::KernelFile;

use super::doing::ThreadState;
use super::log::Log;
use super::sums::is_function;
use super::{FunctionNamer, Profile, ProfileBy, ProfileContext, ProfileOf, ProfileOptions};
use super::{ProfileReport, plain};
use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, WalkState};
use crate::sleeps::is_scheduler;

/// With more rows than this nobody follows when each of their waits ended.
const MAX_SLICED: usize = 1 << 14;

/// Waits of one thread, in one state and with one pair of functions.
#[derive(Debug, Clone, PartialEq)]
pub struct OffCpuRow {
    /// The thread's id.
    pub tid: i32,
    /// The name that it had.
    pub comm: String,
    /// What it did meanwhile; it never runs.
    pub doing: ThreadState,
    /// The kernel's innermost function that is none of the scheduler's, without what the compiler added; `None`
    /// without a stack, and where nothing names it.
    pub function: Option<String>,
    /// The innermost function of user space, where it has a name.
    pub user: Option<String>,
    /// How many waits.
    pub count: u64,
    /// How long all of them were, up to the end of the recording.
    pub ns: u64,
    /// The sum of the squares of how long each was.
    pub squares: f64,
    /// How much of that ended in each slice of time that was whole; empty where nothing is known of slices.
    pub slices: Vec<f64>,
}

/// What threads waited for without a CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OffCpuSums {
    /// Switches between threads.
    pub switches: u64,
    /// The whole slices of time that were looked at.
    pub slices: usize,
    /// Rows, longest first.
    pub rows: Vec<OffCpuRow>,
}

impl OffCpuSums {
    /// Returns whether most sleeps have a function that says what was waited for.
    pub fn has_functions(&self) -> bool {
        let sleeps = self.rows.iter();
        let sleeps = sleeps.filter(|row| matches!(row.doing, ThreadState::Sleeps(_)));
        let (mut all, mut named) = (0u64, 0u64);
        for row in sleeps {
            all = all.saturating_add(row.count);
            if row.function.is_some() {
                named = named.saturating_add(row.count);
            }
        }
        named > all / 2
    }
}

/// A row by what it is of.
type RowKey<'r> = (&'r str, ThreadState, Option<&'r str>, Option<&'r str>);

/// Collects the waits of all threads.
#[derive(Debug)]
pub struct WaitedTime {
    profile: Profile,
    /// When waits ended.
    log: Log,
    /// By the number of a row of stacks, the sum of the squares of its waits.
    squares: Vec<f64>,
}

impl WaitedTime {
    /// Returns a collector that has seen nothing. `known` are the kernels and modules that the recording has build ids
    /// of.
    pub fn new(known: &[KernelFile<'_>]) -> WaitedTime {
        let options = ProfileOptions {
            of: ProfileOf::OffCpu,
            by: ProfileBy::Thread,
            ..ProfileOptions::default()
        };
        let mut profile = Profile::new(options, known);
        profile.off.ended = Some(Vec::new());
        WaitedTime {
            profile,
            log: Log::default(),
            squares: Vec::new(),
        }
    }

    /// Returns what was found; `None` where no switch was recorded. `namer` names functions, and `asked` says which
    /// threads are looked at. What halted vCPUs waited is not in it.
    pub fn report(
        &self,
        walked: &WalkState<'_>,
        namer: FunctionNamer<'_>,
        asked: &dyn Fn(i32) -> bool,
    ) -> Option<OffCpuSums> {
        if self.profile.off.switches == 0 {
            return None;
        }
        let beside = ProfileContext {
            namer,
            keep: &|tid, _| asked(tid),
            guests: &[],
            guest_ns: &[],
        };
        let report = self.profile.report(walked, beside, &mut ());
        Some(self.sums(&report))
    }

    fn sums(&self, report: &ProfileReport) -> OffCpuSums {
        // Rows by functions are no more than those by stacks.
        let few = self.profile.calls.rows.len() <= MAX_SLICED;
        let threads = report.rows.iter();
        let threads: FxHashMap<String, (i32, &str)> = threads
            .map(|row| {
                (
                    format!("{}/{}", row.comm, row.tid),
                    (row.tid, row.comm.as_str()),
                )
            })
            .collect();
        let entries = self.log.entries().filter(|_| few);
        let entries = entries.map_or(&[][..], |(_, entries)| entries);
        // The last slice is not whole.
        let slices = entries.iter().map(|(_, slice, _)| index_of(*slice));
        let slices = slices.max().unwrap_or(0);
        let mut places: FxHashMap<RowKey<'_>, usize> = FxHashMap::default();
        let mut rows: Vec<(RowKey<'_>, OffCpuRow)> = Vec::new();
        let mut place_of: Vec<Option<usize>> = Vec::with_capacity(report.nodes.len());
        for ((row, weight), (node, number)) in
            (self.profile.calls.rows.iter()).zip(report.nodes.iter().zip(0u32..))
        {
            let key = node.and_then(|node| key_of(report, node, row.doing));
            let thread = key.and_then(|key| threads.get(key.0));
            let (Some(key), Some((tid, comm))) = (key, thread) else {
                place_of.push(None);
                continue;
            };
            let place = *places.entry(key).or_insert_with(|| {
                let new = OffCpuRow {
                    tid: *tid,
                    comm: (*comm).to_owned(),
                    doing: row.doing,
                    function: key.2.map(str::to_owned),
                    user: key.3.map(str::to_owned),
                    count: 0,
                    ns: 0,
                    squares: 0.0,
                    slices: vec![0.0; slices],
                };
                rows.push((key, new));
                rows.len() - 1
            });
            place_of.push(Some(place));
            let Some((_, sums)) = rows.get_mut(place) else {
                continue;
            };
            sums.count = sums.count.saturating_add(weight.samples);
            sums.ns = sums.ns.saturating_add(weight.amount);
            sums.squares += self.squares.get(index_of(number)).copied().unwrap_or(0.0);
        }
        for (number, slice, weight) in entries {
            let place = place_of.get(index_of(*number)).copied().flatten();
            let row = place.and_then(|place| rows.get_mut(place));
            if let Some(sum) = row.and_then(|(_, row)| row.slices.get_mut(index_of(*slice))) {
                *sum += weight.amount as f64;
            }
        }
        rows.sort_unstable_by(|a, b| b.1.ns.cmp(&a.1.ns).then_with(|| a.0.cmp(&b.0)));
        OffCpuSums {
            switches: self.profile.off.switches,
            slices,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// Takes the waits that have ended.
    fn note(&mut self, time: u64) {
        for (row, weight) in self
            .profile
            .off
            .ended
            .iter_mut()
            .flat_map(|all| all.drain(..))
        {
            self.log.add(row, time, weight);
            let at = index_of(row);
            if self.squares.len() <= at {
                self.squares.resize(at + 1, 0.0);
            }
            self.squares[at] += weight.amount as f64 * weight.amount as f64;
        }
    }
}

/// Returns what the stack that ends at a node is summed by.
fn key_of(report: &ProfileReport, node: u32, doing: ThreadState) -> Option<RowKey<'_>> {
    let nodes = report.stacks.tree().nodes();
    let (mut function, mut user, mut thread) = (None, None, None);
    let mut at = node;
    while at != ROOT {
        let node = nodes.get(index_of(at))?;
        let name = report.stacks.name(node.frame)?;
        match name.part {
            FrameOwner::Kernel | FrameOwner::Kvm if function.is_none() => {
                function = (!is_scheduler(&name.text)).then_some(name);
            }
            FrameOwner::User | FrameOwner::Vmm if user.is_none() => user = Some(name),
            // The state, and below it the thread.
            FrameOwner::Group => thread = Some(&*name.text),
            _ => {}
        }
        at = node.parent;
    }
    Some((thread?, doing, named(function), named(user)))
}

fn named(name: Option<&stacks::FrameName>) -> Option<&str> {
    let name = name.filter(|name| is_function(name))?;
    Some(plain(&name.text))
}

impl Analysis for WaitedTime {
    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        self.profile.retire(retired, machine);
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        self.profile.filter_scope()
    }

    fn needs(&self) -> Needs {
        self.profile.needs()
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        self.profile.wants(ty)
    }

    fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        self.profile.head(event, context);
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        self.profile.event(event, data, context);
        self.note(event.time);
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        self.profile.task_spans(changes, context);
        self.note(self.profile.off.end);
    }

    fn side(&mut self, side: &Side<'_>) {
        self.profile.side(side);
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.profile.finish(context);
        self.note(self.profile.off.end);
    }
}
