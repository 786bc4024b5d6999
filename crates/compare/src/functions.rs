//! Threads and functions that had the CPUs, by samples. What is compared is CPU time for each second recorded, or
//! shares of samples where samples do not say how long they stand for. A function has two sums: with what it called,
//! and in itself. The times of samples say how bursts make both less sure (`chance.rs`). Callers and callees that
//! change alike are reported once (`families.rs`).

use std::collections::HashMap;

use analysis::{Picture, ProfileSums, RecorderReport, SampleUnit, is_function, plain};
use stacks::{FrameName, FrameOwner, Weight};
use words::{change, number, plural, share};

use crate::basis::{Basis, SumDivisor};
use crate::chance::{self, SampledSum};
use crate::change::{ChangeUnit, Level, SideChange};
use crate::families::{self, ChangedWeight};
use crate::side::{Pair, SPENT, push, value};
use crate::stack_keys::{FunctionKey, StackKeys, thread_key};

/// Functions with fewer samples on both sides together are not compared.
const ENOUGH: u64 = 10;
/// Functions that are compared: those that weigh most.
const MOST: usize = 2000;
/// Functions that are reported, and those that only `--all` reports, since they did not change for all that is known.
const REPORTED: usize = 12;
const UNCHANGED: usize = 20;
/// Changes that may be noise with more than this probability are not looked at as families.
const LIKELY: f64 = 0.2;
/// Changes by less than this share are no change.
const LEAST: f64 = 0.1;

/// How sums are made comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SumBasis {
    /// Nanoseconds of a CPU for each second.
    Time,
    /// Cycles for each second.
    Cycles,
    /// Of all that was sampled of CPUs that were not idle.
    Share,
}

/// Whose functions have names on both sides.
#[derive(Debug, Clone, Copy)]
struct NamedSides {
    kernel: bool,
    guest: bool,
    user: bool,
}

/// What one thread or function weighs, in itself and with what it called.
#[derive(Debug, Clone, Default)]
struct WeightSums {
    own: Weight,
    total: Weight,
    own_slices: Vec<f64>,
    total_slices: Vec<f64>,
}

/// One picture's samples.
struct PictureSamples<'a> {
    profile: &'a ProfileSums,
    recorder: &'a RecorderReport,
    exposure: f64,
    /// By number of a frame's name, what it is compared as.
    frames: Vec<Option<usize>>,
    sums: Vec<WeightSums>,
}

pub(crate) fn changes(pair: &Pair<'_>, out: &mut Vec<SideChange>, notes: &mut Vec<String>) {
    let amount = |picture: &Picture| Some(picture.profile.as_ref()?.busy().samples);
    let basis = match Basis::of(pair.sides, &amount) {
        Ok(basis) => basis,
        Err([true, true]) => return,
        Err([a, _]) => {
            let side = if a { "A" } else { "B" };
            notes.push(format!(
                "Functions are not compared: {side} has no samples of CPUs ('trapline record --for stacks')."
            ));
            return;
        }
    };
    let (by, named) = comparable(&basis, notes);
    let mut compared = ComparedSamples::of(&basis, by, named);
    let items = compared.items();
    if items.is_empty() {
        return;
    }
    let reported = compared.reported(&items);
    for (item, thread) in reported.iter().take(REPORTED) {
        push(out, compared.change(pair, &basis, item, *thread));
    }
    for item in compared.unchanged(&items) {
        push(out, compared.change(pair, &basis, &item, None));
    }
    if reported.len() > REPORTED {
        notes.push(format!(
            "Of {} threads and functions whose CPU time changed, the {REPORTED} that changed most are reported.",
            reported.len()
        ));
    }
}

/// Finds out how the samples of both sides can be compared, and says what cannot.
fn comparable(basis: &Basis<'_>, notes: &mut Vec<String>) -> (SumBasis, NamedSides) {
    let profiles = || {
        let pictures = basis.sides.iter().flatten();
        pictures.filter_map(|picture| picture.profile.as_ref())
    };
    let unit = |unit: SampleUnit| profiles().all(|profile| profile.unit == unit);
    let by = match basis.per {
        SumDivisor::Second if unit(SampleUnit::Nanoseconds) => SumBasis::Time,
        SumDivisor::Second if unit(SampleUnit::Cycles) => SumBasis::Cycles,
        _ => SumBasis::Share,
    };
    if by == SumBasis::Share {
        notes.push(
            "The samples of the two sides have different units, so threads and functions are compared by their share \
             of what was sampled."
                .to_owned(),
        );
    }
    let named = NamedSides {
        kernel: profiles().all(ProfileSums::names_kernel),
        guest: profiles().all(ProfileSums::names_guests),
        user: profiles().all(names_user),
    };
    if !named.kernel {
        notes.push(
            "Kernel functions are not compared: a side has no symbols for them (--kallsyms)."
                .to_owned(),
        );
    }
    (by, named)
}

/// Returns whether most functions of user space have names.
fn names_user(profile: &ProfileSums) -> bool {
    let user = || {
        let names = profile.names().iter();
        names.filter(|name| broad(name.part) == FrameOwner::User)
    };
    user().filter(|name| is_function(name)).count() * 2 > user().count()
}

/// Whose code a frame is, where one side may know more of it than the other: KVM is of the kernel, a VMM of user space.
fn broad(part: FrameOwner) -> FrameOwner {
    match part {
        FrameOwner::Kvm => FrameOwner::Kernel,
        FrameOwner::Vmm => FrameOwner::User,
        part => part,
    }
}

/// Returns what a frame is compared as, where it can be: places of files without names as the file.
fn key(name: &FrameName, named: NamedSides) -> Option<FunctionKey> {
    let text = &*name.text;
    let function = is_function(name);
    let part = broad(name.part);
    let text = match part {
        FrameOwner::Kernel if named.kernel && function => plain(text),
        FrameOwner::Guest if named.guest && function => plain(text),
        FrameOwner::Guest => "[guest]",
        FrameOwner::User if named.user && function => plain(text),
        FrameOwner::User if !named.user && !function => text.split_once("+0x")?.0,
        FrameOwner::Kernel
        | FrameOwner::User
        | FrameOwner::Group
        | FrameOwner::Kvm
        | FrameOwner::Vmm
        | FrameOwner::Unknown => {
            return None;
        }
    };
    Some((part, text.to_owned()))
}

/// Both sides' samples by thread and function.
struct ComparedSamples<'a> {
    by: SumBasis,
    named: NamedSides,
    keys: Vec<FunctionKey>,
    sides: [Vec<PictureSamples<'a>>; 2],
}

impl<'a> ComparedSamples<'a> {
    fn of(basis: &Basis<'a>, by: SumBasis, named: NamedSides) -> ComparedSamples<'a> {
        let mut numbers: HashMap<FunctionKey, usize> = HashMap::new();
        let mut sides = [Vec::new(), Vec::new()];
        for (side, pictures) in sides.iter_mut().zip(&basis.sides) {
            for picture in pictures {
                let Some(profile) = &picture.profile else {
                    continue;
                };
                let mut number = |key: FunctionKey| {
                    let next = numbers.len();
                    *numbers.entry(key).or_insert(next)
                };
                let frames = profile.names().iter();
                let frames = frames
                    .map(|name| key(name, named).map(&mut number))
                    .collect();
                for thread in &profile.threads {
                    number(thread_key(thread));
                }
                side.push(PictureSamples {
                    profile,
                    recorder: &picture.recorder,
                    exposure: match by {
                        SumBasis::Time | SumBasis::Cycles => basis.exposure_of(picture),
                        SumBasis::Share => profile.busy().amount as f64,
                    },
                    frames,
                    sums: Vec::new(),
                });
            }
        }
        let mut compared = ComparedSamples {
            by,
            named,
            keys: Vec::new(),
            sides,
        };
        compared.weigh(&numbers);
        compared.choose(&numbers);
        compared
    }

    /// Adds up what each key weighs.
    fn weigh(&mut self, numbers: &HashMap<FunctionKey, usize>) {
        for sampled in self.sides.iter_mut().flatten() {
            sampled.sums = vec![WeightSums::default(); numbers.len()];
            let mut seen = StackKeys::new(numbers, sampled.recorder);
            let (profile, frames) = (sampled.profile, &sampled.frames);
            profile.each(|thread, path, weight| {
                if let Some((own, all)) = seen.keys(thread, path, frames) {
                    all.iter()
                        .for_each(|key| sampled.sums[*key].total.add(weight));
                    if let Some(own) = own {
                        sampled.sums[own].own.add(weight);
                    }
                }
            });
        }
    }

    /// Leaves those that weigh enough, and finds out when they were sampled.
    fn choose(&mut self, numbers: &HashMap<FunctionKey, usize>) {
        let weight = |number: usize| {
            let all = self.sides.iter().flatten();
            all.fold(Weight::default(), |mut sum, sampled| {
                sum.add(sampled.sums[number].total);
                sum
            })
        };
        let mut chosen: Vec<(&FunctionKey, usize, Weight)> = (numbers.iter())
            .map(|(key, number)| (key, *number, weight(*number)))
            .filter(|(_, _, weight)| weight.samples >= ENOUGH)
            .collect();
        chosen.sort_by(|a, b| (b.2.samples, a.0).cmp(&(a.2.samples, b.0)));
        chosen.truncate(MOST);
        let kept: HashMap<usize, usize> = (chosen.iter().enumerate())
            .map(|(new, (_, old, _))| (*old, new))
            .collect();
        let keys: HashMap<FunctionKey, usize> = (chosen.iter().enumerate())
            .map(|(new, (key, _, _))| ((*key).clone(), new))
            .collect();
        self.keys = chosen.iter().map(|(key, _, _)| (*key).clone()).collect();
        let old: Vec<usize> = chosen.iter().map(|(_, old, _)| *old).collect();
        for sampled in self.sides.iter_mut().flatten() {
            let sums = old
                .iter()
                .map(|old| std::mem::take(&mut sampled.sums[*old]));
            sampled.sums = sums.collect();
            let frames = sampled.frames.iter();
            let frames = frames.map(|key| kept.get(&(*key)?).copied());
            sampled.frames = frames.collect();
            sampled.slice(&keys);
        }
    }

    /// Compares each key: in itself and with what it called.
    fn items(&self) -> Vec<ChangedWeight> {
        let mut items = Vec::new();
        for key in 0..self.keys.len() {
            let differs = self.sides.iter().flatten().any(|sampled| {
                let sums = &sampled.sums[key];
                sums.own != sums.total && sums.own.samples > 0
            });
            for own in [false, true] {
                if own && !differs {
                    continue;
                }
                let runs = [0, 1].map(|side: usize| self.runs(side, key, own));
                let [a, b] = [0, 1].map(|side: usize| rate(&runs[side]));
                items.push(ChangedWeight {
                    key,
                    own,
                    rates: [a, b],
                    chance: chance::rates(&runs[0], &runs[1]),
                });
            }
        }
        let chances: Vec<f64> = items.iter().map(|item| item.chance).collect();
        for (item, chance) in items.iter_mut().zip(chance::adjust(&chances)) {
            item.chance = chance;
        }
        items
    }

    fn runs(&self, side: usize, key: usize, own: bool) -> Vec<SampledSum> {
        let each = self.sides[side].iter();
        each.map(|sampled| {
            let sums = &sampled.sums[key];
            let (weight, slices) = match own {
                true => (sums.own, &sums.own_slices),
                false => (sums.total, &sums.total_slices),
            };
            let amount = weight.amount as f64;
            SampledSum {
                sum: amount,
                // As if each sample stood for as much.
                squares: amount * amount / weight.samples.max(1) as f64,
                exposure: sampled.exposure,
                slices: slices.clone(),
            }
        })
        .collect()
    }

    /// Returns what is to be reported, largest change first, each with the thread that it is of where it is of one.
    fn reported(&mut self, items: &[ChangedWeight]) -> Vec<(ChangedWeight, Option<usize>)> {
        let mut news: Vec<ChangedWeight> = (items.iter())
            .filter(|item| item.chance <= LIKELY && item.is_large(LEAST))
            .cloned()
            .collect();
        news.sort_by(|a, b| {
            let larger = b.delta().abs().total_cmp(&a.delta().abs());
            larger.then_with(|| self.keys[a.key].cmp(&self.keys[b.key]))
        });
        news.truncate(families::MOST);
        let mut together = families::SampledTogether::new(&news);
        let keys: HashMap<FunctionKey, usize> = (self.keys.iter().cloned()).zip(0..).collect();
        for (side, all) in self.sides.iter().enumerate() {
            let exposure: f64 = all.iter().map(|sampled| sampled.exposure).sum();
            for sampled in all {
                let mut seen = StackKeys::new(&keys, sampled.recorder);
                sampled.profile.each(|thread, path, weight| {
                    if let Some((own, all)) = seen.keys(thread, path, &sampled.frames) {
                        let amount = weight.amount as f64 / exposure.max(f64::MIN_POSITIVE);
                        together.add(side, own, all, amount);
                    }
                });
            }
        }
        let is_thread = |key: usize| self.keys[key].0 == FrameOwner::Group;
        together.tell(&is_thread)
    }

    /// Returns those that weigh most of which it is not likely that they changed.
    fn unchanged(&self, items: &[ChangedWeight]) -> Vec<ChangedWeight> {
        let rest = items.iter().filter(|item| !item.own);
        let mut rest: Vec<&ChangedWeight> = rest
            .filter(|item| item.chance > LIKELY || !item.is_large(LEAST))
            .collect();
        let weight = |item: &ChangedWeight| item.rates[0] + item.rates[1];
        rest.sort_by(|a, b| {
            let heavier = weight(b).total_cmp(&weight(a));
            heavier.then_with(|| self.keys[a.key].cmp(&self.keys[b.key]))
        });
        rest.into_iter().take(UNCHANGED).cloned().collect()
    }

    /// Says one change in a sentence.
    fn change(
        &self,
        pair: &Pair<'_>,
        basis: &Basis<'_>,
        item: &ChangedWeight,
        thread: Option<usize>,
    ) -> SideChange {
        let (part, name) = &self.keys[item.key];
        let [a, b] = item.rates;
        let kind = if *part == FrameOwner::Group {
            "thread"
        } else {
            "function"
        };
        let itself = if item.own { " self" } else { "" };
        let there = [a > 0.0, b > 0.0];
        let sums = [0, 1].map(|side: usize| {
            let runs = self.runs(side, item.key, item.own);
            runs.iter().map(|run| run.sum).sum::<f64>()
        });
        SideChange {
            what: format!("cpu {kind} {name}{itself}"),
            unit: match self.by {
                SumBasis::Time => ChangeUnit::Nanoseconds,
                SumBasis::Cycles => ChangeUnit::PerSecond,
                SumBasis::Share => ChangeUnit::Share,
            },
            a: value(a, there[0]),
            b: value(b, there[1]),
            confidence: Some(1.0 - item.chance),
            effect_ns: self.effect_ns(item) * 0.5 * SPENT,
            per_work: match self.by {
                SumBasis::Share => Vec::new(),
                SumBasis::Time | SumBasis::Cycles => pair.per_work(basis, sums[0], sums[1]),
            },
            // To run is what threads are for, and work that moves is no loss.
            worse: None,
            text: self.text(item, thread),
            level: Level::Function,
            ..SideChange::default()
        }
    }

    /// Returns by how much CPU time changed for each second; where that is not known, by what share of one CPU.
    fn effect_ns(&self, item: &ChangedWeight) -> f64 {
        match self.by {
            SumBasis::Time => item.delta(),
            SumBasis::Share => item.delta() * 1e9,
            SumBasis::Cycles => {
                let busy = [0, 1].map(|side: usize| self.busy(side));
                item.delta() / busy[0].max(busy[1]).max(1.0) * 1e9
            }
        }
    }

    /// Returns how much was sampled on a side for each second, without idle CPUs.
    fn busy(&self, side: usize) -> f64 {
        let all = || self.sides[side].iter();
        let exposure: f64 = all().map(|sampled| sampled.exposure).sum();
        let amount: f64 = (all())
            .map(|sampled| sampled.profile.busy().amount as f64)
            .sum();
        amount / exposure.max(f64::MIN_POSITIVE)
    }

    fn text(&self, item: &ChangedWeight, thread: Option<usize>) -> String {
        let (part, name) = &self.keys[item.key];
        let called = match part {
            FrameOwner::Group => format!("Threads called {name}"),
            FrameOwner::Guest if name == "[guest]" => "Code of guests".to_owned(),
            FrameOwner::Guest => format!("{name} in guests"),
            FrameOwner::User if !self.named.user => format!("Code in {name}"),
            FrameOwner::Kernel
            | FrameOwner::User
            | FrameOwner::Kvm
            | FrameOwner::Vmm
            | FrameOwner::Unknown => name.clone(),
        };
        let itself = if item.own {
            ", without what it called,"
        } else {
            ""
        };
        let of = thread.map_or_else(String::new, |thread| format!(" in {}", self.keys[thread].1));
        let [a, b] = item.rates;
        let less = if b < a { "less" } else { "more" };
        let took = match self.by {
            SumBasis::Time => format!(
                "{} of a CPU {less}: {} to {}",
                share::rough((b - a).abs() / 1e9),
                share::rough(a / 1e9),
                share::rough(b / 1e9)
            ),
            SumBasis::Cycles => format!(
                "{} million cycles a second {less}: {} to {} ({}), {} to {} of what was not idle",
                number((b - a).abs() / 1e6),
                number(a / 1e6),
                number(b / 1e6),
                change(a, b),
                share::rough(a / self.busy(0).max(1.0)),
                share::rough(b / self.busy(1).max(1.0))
            ),
            SumBasis::Share => format!(
                "{} less of what was not idle: {} to {}",
                share::rough((b - a).abs()),
                share::rough(a),
                share::rough(b)
            )
            .replace("less", less),
        };
        let samples = [0, 1].map(|side: usize| -> u64 {
            let all = self.sides[side].iter().map(|sampled| {
                let sums = &sampled.sums[item.key];
                if item.own { sums.own } else { sums.total }.samples
            });
            all.sum()
        });
        format!(
            "{}{itself}{of} took {took}, by {} and {}.",
            called,
            samples[0],
            plural(samples[1], "sample")
        )
    }
}

/// Returns a side's sum for each unit of exposure.
fn rate(runs: &[SampledSum]) -> f64 {
    let exposure: f64 = runs.iter().map(|run| run.exposure).sum();
    let sum: f64 = runs.iter().map(|run| run.sum).sum();
    if exposure > 0.0 { sum / exposure } else { 0.0 }
}

impl PictureSamples<'_> {
    /// Finds out what was sampled in each slice of time.
    fn slice(&mut self, keys: &HashMap<FunctionKey, usize>) {
        let profile = self.profile;
        if profile.slice_ns.is_none() {
            return;
        }
        let mut last = 0;
        profile.each_slice(|_, _, slice, _| last = last.max(slice as usize));
        // The last one is not whole.
        let slices = last;
        for sums in &mut self.sums {
            sums.own_slices = vec![0.0; slices];
            sums.total_slices = vec![0.0; slices];
        }
        let mut seen = StackKeys::new(keys, self.recorder);
        profile.each_slice(|thread, path, slice, weight| {
            let (slice, amount) = (slice as usize, weight.amount as f64);
            if slice >= slices {
                return;
            }
            if let Some((own, all)) = seen.keys(thread, path, &self.frames) {
                for key in all {
                    self.sums[*key].total_slices[slice] += amount;
                }
                if let Some(own) = own {
                    self.sums[own].own_slices[slice] += amount;
                }
            }
        });
    }
}
