//! What was found, in numbers and sentences.

use event::ExitReason;
use model::{Access, Machine};
use stats::{Longest, Stats};
use words::share;

use crate::engine::{Instance, Paths};
use crate::lang::{By, Path};
use crate::notes::{Waker, Was};
use crate::slow::{self, Found, Reason, Split};
use crate::tally::{Dropped, Sum, Tally, offset_of};
use crate::tasks::{Run, What};
use crate::traits::Trait;
use crate::uses::{DeviceReport, MetReport};

/// One stage: the time from one step to the next that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct StageReport {
    /// Both steps: `accepted → injected`.
    pub name: String,
    /// The chain it is of, where the path has several with names.
    pub chain: Option<String>,
    /// Its durations.
    pub stats: Stats,
    /// Mean in slow instances, and in the others; `None` where none of them has it.
    pub slow_mean_ns: Option<u64>,
    /// The same of the fast ones.
    pub fast_mean_ns: Option<u64>,
    /// What the slow instances' total would be less if this stage took them as long as the fast ones: an estimate.
    pub saving_ns: u64,
}

/// Instances that are alike in what the path is grouped by.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupReport {
    /// What they have in common.
    pub label: String,
    /// Their totals.
    pub stats: Stats,
}

/// Something that sets slow instances apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Because {
    /// What it is, in few words.
    pub feature: String,
    /// Share of the slow instances that have it.
    pub slow_share: f64,
    /// Share of the others.
    pub fast_share: f64,
    /// The same as a sentence.
    pub text: String,
    /// How much of the difference it explains: information gained, as a share of all there is.
    pub gain: f64,
    /// Numbers of slow instances that have it (or have not, if that is what sets them apart).
    pub slow_examples: Vec<u64>,
    /// Numbers of other instances for comparison.
    pub fast_examples: Vec<u64>,
}

/// The slow instances.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowReport {
    /// From which total on an instance is slow.
    pub threshold_ns: u64,
    /// How that was found.
    pub found: Found,
    /// How many are.
    pub count: u64,
    /// Their mean, and that of the others.
    pub mean_ns: u64,
    /// The others' mean.
    pub fast_mean_ns: u64,
    /// The slowest of all: its number, and a sentence.
    pub slowest: Option<(u64, String)>,
    /// What sets them apart, most telling first. Empty where nothing does, or too few are slow to tell.
    pub because: Vec<Because>,
}

/// One path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Instances that completed.
    pub count: u64,
    /// Their totals.
    pub total: Stats,
    /// The longest of their totals, with the times at which they began.
    pub longest: Longest,
    /// Stages, in the order of the path.
    pub stages: Vec<StageReport>,
    /// By what instances are grouped, if they are.
    pub by: Option<&'static str>,
    /// The groups, most instances first.
    pub groups: Vec<GroupReport>,
    /// Instances that did not complete, by reason; reasons without any are left out.
    pub dropped: Vec<(Dropped, u64)>,
    /// What instances had: how many had it, and the sum of their totals. Slots of threads are [`model::Threads`]'.
    pub traits: Vec<Had>,
    /// The vCPUs that instances were about: thread, how many, and the sum of their totals.
    pub vcpus: Vec<(i32, u64, u64)>,
    /// Devices that were notified, for a path that has back ends: by vCPU, address and back end.
    pub devices: Vec<DeviceReport>,
    /// By vCPU, whether it was busy with an access that its VMM handles, for a path of interrupts: what its instances took.
    pub met: Vec<MetReport>,
    /// The slow ones, if there are any.
    pub slow: Option<SlowReport>,
}

/// Something that instances had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Had {
    /// What.
    pub what: Trait,
    /// How many had it.
    pub count: u64,
    /// The sum of their totals.
    pub ns: u64,
}

impl PathReport {
    /// Returns how many instances had something, and the sum of their totals.
    pub fn with(&self, what: impl Fn(&Trait) -> bool) -> (u64, u64) {
        let having = self.traits.iter().filter(|had| what(&had.what));
        having.fold((0, 0), |sum, had| {
            (sum.0 + had.count, sum.1.saturating_add(had.ns))
        })
    }

    /// Returns the durations of a stage, by the names of its steps.
    pub fn stage(&self, name: &str) -> Option<&StageReport> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

/// Names a device and register behind an access, if it can.
pub type NameAccess<'n> = &'n dyn Fn(&Access) -> Option<String>;

/// What texts are made with.
struct Words<'a> {
    path: &'a Path,
    machine: &'a Machine,
    names: NameAccess<'a>,
}

impl Paths {
    /// Returns what was found of every path, in the order in which they were given.
    pub fn report(&self, machine: &Machine, names: NameAccess<'_>) -> Vec<PathReport> {
        let tallies = self.paths().iter().zip(self.tallies());
        tallies
            .map(|(path, tally)| {
                let words = Words {
                    path,
                    machine,
                    names,
                };
                words.path_report(tally)
            })
            .collect()
    }

    /// Returns an instance in words.
    pub fn tell(&self, one: &Instance, machine: &Machine, names: NameAccess<'_>) -> InstanceReport {
        let Some(path) = self.paths().get(one.path) else {
            return InstanceReport::default();
        };
        let words = Words {
            path,
            machine,
            names,
        };
        let steps = one.reached.iter().map(|reached| StepReport {
            name: words.step(one.chain as u8, reached.step).to_owned(),
            time: reached.time,
            cpu: reached.cpu,
            tid: words.tid(reached.thread),
            thread: words.task(reached.thread),
            does: words.task(match reached.task {
                Some(task) if reached.switch => task,
                _ => reached.thread,
            }),
            to: reached
                .task
                .filter(|_| !reached.switch)
                .map(|task| words.task(task)),
        });
        let of = |one: &&Trait| match path.by {
            Some(By::Waker) => matches!(one, Trait::Waker(_)),
            Some(By::BackEnd) => matches!(one, Trait::BackEnd(_)),
            Some(By::Access) => matches!(one, Trait::For(..)),
            Some(By::Chain) => matches!(one, Trait::Chain(_)),
            None => false,
        };
        InstanceReport {
            path: path.name.clone(),
            number: one.number,
            chain: path
                .chains
                .get(one.chain)
                .and_then(|chain| chain.name.clone()),
            by: one.traits.iter().find(of).map(|one| words.group(one)),
            steps: steps.collect(),
            vcpu_tid: one.subject.map(|slot| words.tid(slot)),
            vcpu: one.subject.map(|slot| words.task(slot)),
            features: words.features(&one.traits),
        }
    }
}

/// One instance in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceReport {
    /// Its path.
    pub path: String,
    /// Its number among those of the path.
    pub number: u64,
    /// The chain it went, where the path has several with names.
    pub chain: Option<String>,
    /// The group it belongs to, where the path has groups.
    pub by: Option<String>,
    /// The steps it reached; one at least.
    pub steps: Vec<StepReport>,
    /// Thread of the vCPU it is about, if known.
    pub vcpu_tid: Option<i32>,
    /// The same with its name.
    pub vcpu: Option<String>,
    /// What else is known of it.
    pub features: Vec<String>,
}

/// One step of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub name: String,
    /// When it was reached.
    pub time: u64,
    /// The CPU of its event.
    pub cpu: i32,
    /// The thread that made it.
    pub tid: i32,
    /// The same with its name.
    pub thread: String,
    /// Who does it: the thread, or of a switch the task that gets the CPU.
    pub does: String,
    /// Who is woken by it.
    pub to: Option<String>,
}

impl InstanceReport {
    /// Returns how long it took, in the recording's unit.
    pub fn total_ns(&self) -> u64 {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) => last.time.saturating_sub(first.time),
            _ => 0,
        }
    }
}

impl Words<'_> {
    fn path_report(&self, tally: &Tally) -> PathReport {
        let split = slow::split(tally);
        let mut order: Vec<usize> = (0..tally.stages.len()).collect();
        order.sort_by_key(|at| {
            let stage = &tally.stages[*at];
            (stage.chain, stage.from, stage.to)
        });
        let stages = order
            .into_iter()
            .map(|at| self.stage(tally, at, split.as_ref()))
            .collect();
        let mut groups: Vec<GroupReport> = tally
            .groups
            .iter()
            .map(|(what, stats)| GroupReport {
                label: self.group(what),
                stats: stats.clone(),
            })
            .collect();
        groups.sort_by(|a, b| {
            let counts = b.stats.count().cmp(&a.stats.count());
            counts.then_with(|| a.label.cmp(&b.label))
        });
        let dropped = Dropped::ALL
            .into_iter()
            .map(|why| (why, tally.dropped[why as usize]))
            .filter(|(_, count)| *count > 0)
            .collect();
        PathReport {
            name: self.path.name.clone(),
            about: self.path.about.clone(),
            count: tally.count,
            total: tally.total.clone(),
            longest: tally.longest.clone(),
            stages,
            by: self.path.by.map(|by| match by {
                By::Waker => "waker",
                By::BackEnd => "back end",
                By::Access => "access",
                By::Chain => "chain",
            }),
            groups,
            dropped,
            traits: tally
                .traits
                .iter()
                .zip(&tally.trait_sums)
                .map(|(what, sum)| Had {
                    what: *what,
                    count: sum.count,
                    ns: sum.ns,
                })
                .collect(),
            vcpus: tally
                .traits
                .iter()
                .zip(&tally.trait_sums)
                .filter_map(|(what, sum)| match what {
                    Trait::Vcpu(slot) => Some((self.tid(*slot), sum.count, sum.ns)),
                    _ => None,
                })
                .collect(),
            devices: self.devices(tally),
            met: self.met(tally),
            slow: split.map(|split| self.slow(tally, &split)),
        }
    }

    fn devices(&self, tally: &Tally) -> Vec<DeviceReport> {
        let threads = self.machine.threads();
        let process = |slot: u32| threads.at(slot).and_then(|(_, thread)| thread.pid);
        let mut all: Vec<_> = tally.uses.devices.iter().collect();
        all.sort_by_key(|(key, _)| **key);
        let all = all.into_iter().map(|((vcpu, address, _), one)| {
            let back_end = threads.at(one.back_end);
            let own = process(*vcpu).zip(process(one.back_end));
            let to_user = address.and_then(|address| tally.uses.to_user.get(&(*vcpu, address)));
            DeviceReport {
                vcpu_tid: self.tid(*vcpu),
                address: *address,
                what: one.what,
                back_end_tid: self.tid(one.back_end),
                back_end: back_end
                    .and_then(|(_, thread)| thread.comm.as_deref().map(str::to_owned)),
                own_process: own.map(|(vcpu, back_end)| vcpu == back_end),
                answers: one.answers.clone(),
                loops: one.loops.clone(),
                worked: one.worked,
                waited_ns: one.waited_ns,
                in_use_ns: one.in_use_ns(),
                span: one.span(),
                to_user: to_user.copied().unwrap_or(0),
            }
        });
        all.collect()
    }

    fn met(&self, tally: &Tally) -> Vec<MetReport> {
        let all = tally.uses.met.iter();
        let mut all: Vec<MetReport> = all
            .map(|((vcpu, access), totals)| MetReport {
                vcpu_tid: self.tid(*vcpu),
                access: *access,
                totals: totals.clone(),
            })
            .collect();
        all.sort_by_key(|one| (one.vcpu_tid, one.access.map(|access| format!("{access:?}"))));
        all
    }

    fn step(&self, chain: u8, step: u8) -> &str {
        let steps = self
            .path
            .chains
            .get(chain as usize)
            .map(|chain| &chain.steps);
        steps
            .and_then(|steps| steps.get(step as usize))
            .map_or("?", |step| step.name.as_str())
    }

    fn stage(&self, tally: &Tally, at: usize, split: Option<&Split>) -> StageReport {
        let stage = &tally.stages[at];
        let (chain, from, to) = (stage.chain, stage.from, stage.to);
        let sums =
            |bucket: &crate::tally::Bucket| bucket.stages.get(at).copied().unwrap_or_default();
        let slow = split.map(|split| sums(&split.slow)).unwrap_or_default();
        let fast = split.map(|split| sums(&split.fast)).unwrap_or_default();
        // Where the fast ones do not go this way, the time between its two steps on theirs.
        let usual = fast.mean().or_else(|| {
            let offsets = &split?.fast.offsets;
            let mean = |step| offsets.get(offset_of(chain, step)).and_then(Sum::mean);
            Some(mean(to)?.saturating_sub(mean(from)?))
        });
        let saving_ns = usual.map_or(0, |usual| {
            slow.ns.saturating_sub(usual.saturating_mul(slow.count))
        });
        StageReport {
            name: format!("{} → {}", self.step(chain, from), self.step(chain, to)),
            chain: self
                .path
                .chains
                .get(chain as usize)
                .and_then(|c| c.name.clone()),
            stats: stage.stats.clone(),
            slow_mean_ns: slow.mean(),
            fast_mean_ns: fast.mean(),
            saving_ns,
        }
    }

    fn slow(&self, tally: &Tally, split: &Split) -> SlowReport {
        let mean = |bucket: &crate::tally::Bucket| bucket.ns.checked_div(bucket.count).unwrap_or(0);
        let reasons = slow::reasons(tally, split);
        let because = self
            .where_time_went(tally, split)
            .into_iter()
            .chain(reasons.iter().map(|reason| self.because(split, reason)))
            .collect();
        SlowReport {
            threshold_ns: split.threshold_ns,
            found: split.found,
            count: split.slow.count,
            mean_ns: mean(&split.slow),
            fast_mean_ns: mean(&split.fast),
            slowest: self.slowest(tally),
            because,
        }
    }

    /// What is known of the slowest instance.
    fn slowest(&self, tally: &Tally) -> Option<(u64, String)> {
        let (example, stage, ns) = tally.slowest.as_ref()?;
        let stage = tally.stages.get(*stage as usize)?;
        let mut text = format!(
            "{} of its time went from '{}' to '{}'",
            share::whole(*ns as f64 / example.total_ns.max(1) as f64),
            self.step(stage.chain, stage.from),
            self.step(stage.chain, stage.to)
        );
        let has = || {
            example
                .traits
                .iter()
                .filter_map(|at| tally.traits.get(*at as usize))
        };
        let vcpu = has().find_map(|one| match one {
            Trait::Vcpu(slot) => Some(self.task(*slot)),
            _ => None,
        });
        let was = has().find_map(|one| match one {
            Trait::Was(was) => Some(*was),
            _ => None,
        });
        let with = has().find_map(|one| match one {
            Trait::BusyWith(access) => Some(*access),
            _ => None,
        });
        if let (Some(vcpu), Some(was)) = (vcpu, was) {
            text.push_str(&format!("; the vCPU {vcpu} was "));
            text.push_str(match was {
                Was::Running => "already running, so it was not woken",
                was => was_name(was),
            });
            if let Some(access) = with {
                text.push_str(&format!(", handling {}", self.access(&access)));
            }
        }
        let most = has()
            .filter_map(|one| match one {
                Trait::Accesses(access, true, level) => Some((*level, *access)),
                _ => None,
            })
            .max_by_key(|(level, _)| *level);
        if let Some((level, access)) = most.filter(|(level, _)| *level > 1) {
            text.push_str(&format!(
                "; meanwhile it exited to user space at least {level} times on {}",
                self.access(&access)
            ));
        }
        text.push('.');
        Some((example.number, text))
    }

    /// The stage that takes much more of the slow instances' time than of the others'.
    fn where_time_went(&self, tally: &Tally, split: &Split) -> Option<Because> {
        let share = |bucket: &crate::tally::Bucket, at: usize| {
            let ns = bucket.stages.get(at).map_or(0, |sum| sum.ns);
            ns as f64 / bucket.ns.max(1) as f64
        };
        if split.slow.count == 0 || split.fast.count == 0 || tally.stages.len() < 2 {
            return None;
        }
        let (at, stage) = tally.stages.iter().enumerate().max_by(|(a, _), (b, _)| {
            let gain = |at: usize| share(&split.slow, at) - share(&split.fast, at);
            gain(*a).total_cmp(&gain(*b))
        })?;
        let (slow_share, fast_share) = (share(&split.slow, at), share(&split.fast, at));
        if slow_share < 0.4 || slow_share - fast_share < 0.2 {
            return None;
        }
        let name = format!(
            "{} → {}",
            self.step(stage.chain, stage.from),
            self.step(stage.chain, stage.to)
        );
        let examples = |bucket: &crate::tally::Bucket| {
            let mean = bucket.ns.checked_div(bucket.count).unwrap_or(0);
            let mut all: Vec<_> = bucket.examples.iter().collect();
            all.sort_by_key(|one| (one.total_ns.abs_diff(mean), one.number));
            all.iter()
                .take(2)
                .map(|one| one.number)
                .collect::<Vec<u64>>()
        };
        Some(Because {
            feature: format!("time in {name}"),
            slow_share,
            fast_share,
            text: format!(
                "The time went from '{}' to '{}': {} of the slow instances' time, {} of the others'.",
                self.step(stage.chain, stage.from),
                self.step(stage.chain, stage.to),
                share::whole(slow_share),
                share::whole(fast_share)
            ),
            gain: slow_share - fast_share,
            slow_examples: examples(&split.slow),
            fast_examples: examples(&split.fast),
        })
    }

    fn because(&self, split: &Split, reason: &Reason) -> Because {
        let share = |part: u64, all: u64| {
            if all == 0 {
                0.0
            } else {
                part as f64 / all as f64
            }
        };
        let (slow_share, fast_share) = (
            share(reason.slow, split.slow.count),
            share(reason.fast, split.fast.count),
        );
        let more = slow_share > fast_share;
        let feature = self.feature(&reason.what);
        let text = format!(
            "{}: {} of the slow instances, {} of the others.",
            self.sentence(&reason.what),
            share::whole(slow_share),
            share::whole(fast_share)
        );
        // Examples are typical: those nearest to their group's mean.
        let examples = |bucket: &crate::tally::Bucket, having: bool| {
            let mean = bucket.ns.checked_div(bucket.count).unwrap_or(0);
            let mut all: Vec<_> = bucket
                .examples
                .iter()
                .filter(|one| one.traits.contains(&reason.number) == having)
                .collect();
            all.sort_by_key(|one| (one.total_ns.abs_diff(mean), one.number));
            let numbers = all.iter().take(2).map(|one| one.number);
            numbers.collect::<Vec<u64>>()
        };
        Because {
            feature,
            slow_share,
            fast_share,
            text,
            gain: reason.gain,
            slow_examples: examples(&split.slow, more),
            fast_examples: examples(&split.fast, !more),
        }
    }

    fn features(&self, traits: &[Trait]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (at, one) in traits.iter().enumerate() {
            // Of the levels of a count the highest says it all.
            let higher = match (one, traits.get(at + 1)) {
                (Trait::Exits(a, _), Some(Trait::Exits(b, _))) => a == b,
                (Trait::Accesses(a, x, _), Some(Trait::Accesses(b, y, _))) => (a, x) == (b, y),
                (Trait::HostIrq(a, _), Some(Trait::HostIrq(b, _))) => a == b,
                _ => false,
            };
            // Steps tell these.
            let stands = matches!(
                one,
                Trait::Reached(..) | Trait::Longest(..) | Trait::Chain(_)
            );
            if !higher && !stands {
                out.push(self.feature(one));
            }
        }
        out
    }

    fn tid(&self, slot: u32) -> i32 {
        if slot >= crate::tasks::IDLE {
            return 0;
        }
        self.machine.threads().at(slot).map_or(-1, |(tid, _)| tid)
    }

    fn task(&self, slot: u32) -> String {
        if slot >= crate::tasks::IDLE {
            return format!("swapper/{}", slot & !crate::tasks::IDLE);
        }
        match self.machine.threads().at(slot) {
            Some((tid, thread)) => match thread.comm.as_deref() {
                Some(comm) => format!("{comm}:{tid}"),
                None => format!(":{tid}"),
            },
            None => "?".to_owned(),
        }
    }

    fn access(&self, access: &Access) -> String {
        let key = match *access {
            Access::Port { port, write } => {
                format!("port {port:#x} {}", if write { "write" } else { "read" })
            }
            Access::Mmio { gpa, write } => {
                format!("MMIO {gpa:#x} {}", if write { "write" } else { "read" })
            }
            Access::Msr { msr, write } => {
                format!("MSR {msr:#x} {}", if write { "write" } else { "read" })
            }
        };
        match (self.names)(access) {
            Some(name) => format!("{key} ({name})"),
            None => key,
        }
    }

    fn reason(&self, reason: &ExitReason) -> String {
        reason.key().into_owned()
    }

    fn group(&self, what: &Trait) -> String {
        match what {
            Trait::Others => "others".to_owned(),
            Trait::Waker(waker) => waker_name(*waker).to_owned(),
            Trait::BackEnd(what) => back_end(*what).to_owned(),
            Trait::For(_, Some(access)) => self.access(access),
            Trait::For(Some(reason), None) => self.reason(reason),
            Trait::For(None, None) => "unknown".to_owned(),
            Trait::Chain(chain) => self
                .path
                .chains
                .get(*chain as usize)
                .and_then(|chain| chain.name.clone())
                .unwrap_or_default(),
            other => self.feature(other),
        }
    }

    /// A trait in few words.
    fn feature(&self, what: &Trait) -> String {
        match what {
            Trait::Others => "others".to_owned(),
            Trait::Chain(_) => format!("went: {}", self.group(what)),
            Trait::Reached(chain, step) => format!("reached: {}", self.step(*chain, *step)),
            Trait::Longest(chain, from, to) => format!(
                "longest stage: {} → {}",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            Trait::Coalesced => "other interrupts coalesced with it".to_owned(),
            Trait::Vector(vector) => format!("vector {vector}"),
            Trait::Address(address) => format!("address {address:#x}"),
            Trait::Vcpu(slot) => format!("vCPU {}", self.task(*slot)),
            Trait::For(..) => format!("for {}", self.group(what)),
            Trait::Was(was) => format!("vCPU was {}", was_name(*was)),
            Trait::Busy => "vCPU was running".to_owned(),
            Trait::BusyWith(access) => format!("vCPU was busy with {}", self.access(access)),
            Trait::Cpu(cpu) => format!("CPU {cpu}"),
            Trait::Exits(reason, level) => {
                format!("vCPU exits, {}: at least {level}", self.reason(reason))
            }
            Trait::Accesses(access, vmm, level) => format!(
                "vCPU exits{} on {}: at least {level}",
                if *vmm { " to the VMM" } else { "" },
                self.access(access)
            ),
            Trait::Beside(slot) => format!("on its CPU ran {}", self.task(*slot)),
            Trait::HostIrq(irq, level) => {
                format!("host interrupts {irq} on its CPU: at least {level}")
            }
            Trait::Migrated => "migrated".to_owned(),
            Trait::Polled(true) => "halt polling hit".to_owned(),
            Trait::Polled(false) => "halt polling missed, or was not tried".to_owned(),
            Trait::Behind(slot) => format!("got its CPU after {}", self.task(*slot)),
            Trait::Waker(waker) => format!("woken by {}", waker_name(*waker)),
            Trait::BackEnd(what) => format!("back end is a {}", back_end(*what)),
            Trait::BackEndWas(run) => format!("back end was {}", run_name(*run)),
            Trait::BackEndThread(slot) => format!("back end {}", self.task(*slot)),
        }
    }

    /// A trait as the beginning of a sentence.
    fn sentence(&self, what: &Trait) -> String {
        match what {
            Trait::Longest(chain, from, to) => format!(
                "Most of the time went from '{}' to '{}'",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            Trait::Reached(chain, step) => {
                format!("They went through '{}'", self.step(*chain, *step))
            }
            Trait::Was(Was::Halted) => "The vCPU was halted and had to be woken".to_owned(),
            Trait::Was(Was::User) => {
                "The vCPU was in user space, its VMM handling an exit".to_owned()
            }
            Trait::Busy => {
                "The vCPU was already running instead of halted, so it was not woken".to_owned()
            }
            Trait::Vcpu(slot) => format!("It was vCPU thread {}", self.task(*slot)),
            Trait::Cpu(cpu) => format!("The vCPU was on CPU {cpu}"),
            Trait::BusyWith(access) => {
                format!("The vCPU was handling its guest's {}", self.access(access))
            }
            Trait::Accesses(access, vmm, level) => format!(
                "Meanwhile the vCPU exited{} at least {level} times on {}",
                if *vmm { " to user space" } else { "" },
                self.access(access)
            ),
            Trait::Exits(reason, level) => format!(
                "Meanwhile the vCPU had at least {level} exits {}",
                self.reason(reason)
            ),
            Trait::Beside(slot) => {
                format!("Meanwhile {} ran on the vCPU's CPU", self.task(*slot))
            }
            Trait::Behind(slot) => {
                format!("The vCPU waited for its CPU behind {}", self.task(*slot))
            }
            other => {
                let feature = self.feature(other);
                let mut chars = feature.chars();
                match chars.next() {
                    Some(first) if !feature.starts_with("vCPU") => {
                        first.to_uppercase().chain(chars).collect()
                    }
                    _ => format!("The {feature}"),
                }
            }
        }
    }
}

fn waker_name(waker: Waker) -> &'static str {
    match waker {
        Waker::Unknown => "unknown",
        Waker::Timer => "timer",
        Waker::Device => "device",
        Waker::Vcpu => "other vCPU",
        Waker::Poll => "halt-poll hit",
    }
}

fn back_end(what: What) -> &'static str {
    match what {
        What::Vcpu => "vCPU thread",
        What::Kworker | What::Kernel | What::Idle => "kernel thread",
        What::Vhost => "vhost thread",
        What::Other => "VMM thread",
    }
}

fn was_name(was: Was) -> &'static str {
    match was {
        Was::Unknown => "unknown",
        Was::Guest => "in its guest",
        Was::Kernel => "in KVM",
        Was::User => "in user space",
        Was::Polling => "polling in a halt",
        Was::Running => "running",
        Was::Runnable => "runnable without a CPU",
        Was::Halted => "halted",
        Was::Asleep => "asleep",
    }
}

fn run_name(run: Run) -> &'static str {
    match run {
        Run::Unknown => "unknown",
        Run::Running => "running",
        Run::Runnable => "runnable without a CPU",
        Run::Asleep => "asleep",
    }
}
