//! What threads waited for without a CPU: time for each second recorded, by thread, state, and the function of the
//! kernel that they slept in, where both sides have stacks with their switches.
//!
//! To sleep is no loss by itself. What a thread does that has no work is left out (`wait_causes.rs`), and of the rest a
//! side is worse only by what the thread misses. How long tasks waited for a CPU after they were woken is compared with
//! the tasks (`sched.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use analysis::{OffCpuRow, OffCpuSums, Picture, ThreadState};
use words::{change, duration, number};

use crate::basis::{Basis, SumDivisor};
use crate::burst;
use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, SideChange, SideName};
use crate::names::group;
use crate::side::{GUEST_TIME, Pair, SPENT, push, value};
use crate::wait_causes::WaitCause;

/// Fewer waits on both sides together are not compared.
const FEW: u64 = 5;
/// Waits of which so much is the time of both sides together are compared, in nanoseconds for each second.
const LEAST_NS: f64 = 1e5;
/// Rows that are compared, those that are longest.
const MOST: usize = 200;
/// Waits that are longer by less each time make no side worse where nobody counts work.
const LONGER: f64 = 1.5;
/// What time counts in the ranking of which nobody knows whether the thread misses it, and of preemptions, which are in
/// the waits of tasks too.
const UNSURE: f64 = 0.02 * SPENT;
const PREEMPTED: f64 = 0.1;

/// What waits are compared by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct WaitKey {
    thread: String,
    doing: ThreadState,
    function: Option<String>,
}

/// Waits of one recording, or of a side.
#[derive(Debug, Clone, Default)]
struct WaitSums {
    count: u64,
    ns: f64,
    squares: f64,
    slices: Vec<f64>,
    /// By function of user space, how long.
    users: BTreeMap<String, u64>,
}

impl WaitSums {
    fn add(&mut self, row: &OffCpuRow) {
        self.count = self.count.saturating_add(row.count);
        self.ns += row.ns as f64;
        self.squares += row.squares;
        if self.slices.len() < row.slices.len() {
            self.slices.resize(row.slices.len(), 0.0);
        }
        for (sum, ns) in self.slices.iter_mut().zip(&row.slices) {
            *sum += ns;
        }
        if let Some(user) = &row.user {
            let sum = self.users.entry(user.clone()).or_default();
            *sum = sum.saturating_add(row.ns);
        }
    }
}

/// Waits of one recording by what they are compared by.
struct WaitIndex<'a> {
    sums: &'a OffCpuSums,
    exposure: f64,
    waits: HashMap<WaitKey, WaitSums>,
    /// Threads that were seen to switch.
    threads: BTreeSet<String>,
}

impl<'a> WaitIndex<'a> {
    /// `functions` says whether waits are compared by function; `for_work` gets those in which threads wait for work.
    fn of(
        picture: &'a Picture,
        exposure: f64,
        functions: bool,
        for_work: &mut BTreeMap<String, f64>,
    ) -> Option<WaitIndex<'a>> {
        let sums = picture.off_cpu.as_ref()?;
        let mut index = WaitIndex {
            sums,
            exposure,
            waits: HashMap::new(),
            threads: BTreeSet::new(),
        };
        let vcpus = picture.vcpus.iter().flat_map(|report| &report.rows);
        let vcpus: BTreeSet<i32> = vcpus.map(|row| row.tid).collect();
        for row in &sums.rows {
            if picture.recorder.has(row.tid, &row.comm) {
                continue;
            }
            // A vCPU that sleeps is halted, if nothing says that it is not; and one that is preempted waits for a CPU:
            // its states are compared by themselves.
            let of_states = match row.doing {
                ThreadState::Preempted => true,
                doing => doing == ThreadState::Sleeps('S') && row.function.is_none(),
            };
            if of_states && vcpus.contains(&row.tid) {
                continue;
            }
            let thread = group(&row.comm);
            if !index.threads.contains(&thread) {
                index.threads.insert(thread.clone());
            }
            let function = row.function.as_ref();
            match WaitCause::of(row.doing, function.map(String::as_str)) {
                _ if row.doing == ThreadState::Woken => continue,
                WaitCause::Work => {
                    if let Some(function) = function {
                        *for_work.entry(function.clone()).or_default() += row.ns as f64;
                    }
                    continue;
                }
                _ => {}
            }
            // Where a preempted task was says nothing of why another one got its CPU.
            let by_function = functions && row.doing != ThreadState::Preempted;
            let key = WaitKey {
                thread,
                doing: row.doing,
                function: function.filter(|_| by_function).cloned(),
            };
            index.waits.entry(key).or_default().add(row);
        }
        Some(index)
    }

    fn run(&self, key: &WaitKey) -> SampledSum {
        let waits = self.waits.get(key);
        let mut slices = waits.map_or_else(Vec::new, |waits| waits.slices.clone());
        slices.resize(self.sums.slices, 0.0);
        SampledSum {
            sum: waits.map_or(0.0, |waits| waits.ns),
            squares: waits.map_or(0.0, |waits| waits.squares),
            exposure: self.exposure,
            slices,
        }
    }
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let amount = |picture: &Picture| picture.off_cpu.as_ref().map(|sums| sums.switches);
    // That a side has no switches is said where tasks are compared.
    let Ok(basis) = Basis::of(pair.sides, &amount) else {
        return;
    };
    if basis.per != SumDivisor::Second {
        return;
    }
    let has = [0, 1].map(|side: usize| {
        let mut sums = basis.sides[side]
            .iter()
            .flat_map(|picture| &picture.off_cpu);
        sums.all(OffCpuSums::has_functions)
    });
    let functions = has == [true, true];
    if has[0] != has[1] {
        let side = if has[0] { "B" } else { "A" };
        notes.push(format!(
            "Off-CPU time is compared by thread and state and not by function: {side} has no stacks with its switches, \
             or no names for them ('trapline record --for stacks', --kallsyms)."
        ));
    }
    let mut for_work = BTreeMap::new();
    let index = [0, 1].map(|side: usize| -> Vec<WaitIndex<'_>> {
        let each = basis.sides[side].iter();
        each.filter_map(|picture| {
            let exposure = basis.exposure_of(picture);
            WaitIndex::of(picture, exposure, functions, &mut for_work)
        })
        .collect()
    });
    for key in longest(&index) {
        push(out, of_key(pair, &basis, &index, &key));
    }
    left_out(for_work, notes);
}

/// Says which functions are left out, those in which threads waited longest.
fn left_out(for_work: BTreeMap<String, f64>, notes: &mut Vec<String>) {
    let mut functions: Vec<(String, f64)> = for_work.into_iter().collect();
    functions.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names: Vec<&str> = functions.iter().map(|one| one.0.as_str()).take(4).collect();
    if !names.is_empty() {
        notes.push(format!(
            "Threads that wait for work miss nothing, so off-CPU time in {}{} is not compared.",
            names.join(", "),
            if functions.len() > names.len() {
                " and others"
            } else {
                ""
            }
        ));
    }
}

/// Returns the keys that are compared, in their order.
fn longest(index: &[Vec<WaitIndex<'_>>; 2]) -> Vec<WaitKey> {
    let mut sums: HashMap<&WaitKey, (u64, f64)> = HashMap::new();
    for one in index.iter().flatten() {
        for (key, waits) in &one.waits {
            let (count, rate) = sums.entry(key).or_default();
            *count = count.saturating_add(waits.count);
            *rate += waits.ns / one.exposure.max(f64::MIN_POSITIVE);
        }
    }
    let mut keys: Vec<(&WaitKey, f64)> = (sums.into_iter())
        .filter(|(_, (count, rate))| *count >= FEW && *rate >= LEAST_NS)
        .map(|(key, (_, rate))| (key, rate))
        .collect();
    keys.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    keys.truncate(MOST);
    let mut keys: Vec<WaitKey> = keys.into_iter().map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

/// One key's waits on both sides.
struct ComparedWaits {
    sums: [WaitSums; 2],
    rates: [f64; 2],
    counts: [f64; 2],
}

impl ComparedWaits {
    fn of(basis: &Basis<'_>, index: &[Vec<WaitIndex<'_>>; 2], key: &WaitKey) -> ComparedWaits {
        let sums = index.each_ref().map(|side| {
            let mut sum = WaitSums::default();
            for waits in side.iter().filter_map(|one| one.waits.get(key)) {
                sum.count = sum.count.saturating_add(waits.count);
                sum.ns += waits.ns;
                for (user, ns) in &waits.users {
                    *sum.users.entry(user.clone()).or_default() += ns;
                }
            }
            sum
        });
        let exposure = [0, 1].map(|side| basis.exposure(side).max(f64::MIN_POSITIVE));
        ComparedWaits {
            rates: [0, 1].map(|side: usize| sums[side].ns / exposure[side]),
            counts: [0, 1].map(|side: usize| sums[side].count as f64 / exposure[side]),
            sums,
        }
    }

    /// Returns how long each wait was.
    fn means(&self) -> [f64; 2] {
        let sums = self.sums.each_ref();
        sums.map(|sum| sum.ns / sum.count.max(1) as f64)
    }

    /// Returns the side on which a thread misses more: for each unit of work where an event counts it, else if its
    /// waits are longer each time too. `threads` says on which sides the thread is at all: what is not there cannot
    /// wait less.
    fn worse(&self, pair: &Pair<'_>, threads: [bool; 2]) -> Option<SideName> {
        if threads != [true, true] {
            return None;
        }
        let by_work = pair.work.iter().any(|work| work.of != GUEST_TIME);
        if by_work {
            return pair.worse(self.rates, [self.sums[0].ns, self.sums[1].ns]);
        }
        let [a, b] = self.means();
        let longer = a.max(b) >= LONGER * a.min(b);
        let each = SideName::more(a, b).filter(|_| longer);
        each.filter(|_| each == SideName::more(self.rates[0], self.rates[1]))
    }

    /// Returns the function of user space that most of the time is under, on the side with more.
    fn user(&self) -> Option<&str> {
        let side = usize::from(self.rates[1] > self.rates[0]);
        let users = self.sums[side].users.iter();
        let (user, ns) = users.max_by_key(|(_, ns)| **ns)?;
        (*ns as f64 * 2.0 > self.sums[side].ns).then_some(user.as_str())
    }

    fn text(&self, key: &WaitKey) -> String {
        let WaitKey {
            thread,
            doing,
            function,
        } = key;
        let [a, b] = self.rates;
        let state = match doing {
            ThreadState::Preempted => "was off its CPU for another task",
            ThreadState::Sleeps('S') => "slept",
            ThreadState::Sleeps('D') => "was uninterruptible (D)",
            _ => "was off its CPU",
        };
        let place = function.as_ref();
        let place = place.map_or_else(String::new, |function| format!(" in {function}"));
        let user = self.user();
        let user = user.map_or_else(String::new, |user| format!(", called by {user},"));
        let [mean_a, mean_b] = self.means();
        format!(
            "{thread} {state}{place}{user} for {} and then {} in a second ({}): {} and {} times, {} and {} each time.",
            duration::of_f64(a),
            duration::of_f64(b),
            change(a, b),
            number(self.counts[0]),
            number(self.counts[1]),
            duration::of_f64(mean_a),
            duration::of_f64(mean_b),
        )
    }
}

fn of_key(
    pair: &Pair<'_>,
    basis: &Basis<'_>,
    index: &[Vec<WaitIndex<'_>>; 2],
    key: &WaitKey,
) -> SideChange {
    let waits = ComparedWaits::of(basis, index, key);
    let [runs_a, runs_b] = (index.each_ref()).map(|side| {
        side.iter()
            .map(|one| one.run(key))
            .collect::<Vec<SampledSum>>()
    });
    let threads =
        (index.each_ref()).map(|side| side.iter().any(|one| one.threads.contains(&key.thread)));
    let cause = WaitCause::of(key.doing, key.function.as_deref());
    let [a, b] = waits.rates;
    let weight = match cause {
        WaitCause::Lock | WaitCause::Uninterruptible => 1.0,
        WaitCause::Preemption => PREEMPTED,
        WaitCause::Unknown | WaitCause::Work => UNSURE,
    };
    let name = match key.doing {
        ThreadState::Sleeps(letter) => format!("off-cpu {} {letter}", key.thread),
        _ => format!("off-cpu {} preempted", key.thread),
    };
    SideChange {
        what: match &key.function {
            Some(function) => format!("{name} in {function}"),
            None => name,
        },
        unit: ChangeUnit::Nanoseconds,
        a: value(a, waits.sums[0].count > 0),
        b: value(b, waits.sums[1].count > 0),
        confidence: Some(1.0 - chance::rates(&runs_a, &runs_b)),
        burst: burst::is_one(&runs_a, &runs_b),
        effect_ns: (b - a) * weight,
        per_work: pair.per_work(basis, waits.sums[0].ns, waits.sums[1].ns),
        worse: waits.worse(pair, threads).filter(|_| cause.is_missed()),
        text: waits.text(key),
        ..SideChange::default()
    }
}
