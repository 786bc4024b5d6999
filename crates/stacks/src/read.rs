//! Folded text to stacks.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::line::{self, CountedStack, FoldedLine, Frames};
use crate::named::{FrameName, FrameOwner, Stacks};
use crate::tree::{ROOT, StackTree, Weight};

/// Bytes of a frame's name that are kept: C++ has names of thousands.
const MAX_NAME: usize = 8 << 10;
/// Bytes of all names that are kept.
const MAX_NAMES: usize = 32 << 20;
/// Lines of a kind that a warning quotes.
const REPORTED: usize = 3;
/// Bytes of them.
const REPORTED_BYTES: usize = 100;

/// What the counts of a file are. The file does not say so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountMeaning {
    /// How many samples there were.
    Samples,
    /// Times.
    Seconds,
    /// Times.
    Milliseconds,
    /// Times.
    Microseconds,
    /// Times.
    Nanoseconds,
}

/// What the amounts of stacks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WeightUnit {
    /// Nobody knows.
    #[default]
    Count,
    /// Samples.
    Samples,
    /// Nanoseconds.
    Nanoseconds,
}

impl CountMeaning {
    fn unit(self) -> WeightUnit {
        match self {
            CountMeaning::Samples => WeightUnit::Samples,
            _ => WeightUnit::Nanoseconds,
        }
    }

    fn scale(self) -> u32 {
        match self {
            CountMeaning::Samples | CountMeaning::Nanoseconds => 1,
            CountMeaning::Microseconds => 1000,
            CountMeaning::Milliseconds => 1_000_000,
            CountMeaning::Seconds => 1_000_000_000,
        }
    }
}

/// How folded text is read.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// What its counts are, if somebody says so; else what bcc's tools say in their first line, which some print.
    pub counts: Option<CountMeaning>,
    /// Whether stacks of idle CPUs are read too.
    pub idle: bool,
    /// Nodes that are kept.
    pub most: usize,
}

/// Reads folded text line by line.
///
/// ```
/// use stacks::{FoldedReader, ReadOptions};
/// let mut reader = FoldedReader::new(ReadOptions { counts: None, idle: false, most: 1000 });
/// reader.text(b"qemu;main;ioctl 3\nqemu;main 1\n");
/// assert_eq!(reader.finish().stacks.tree().totals()[0].amount, 4);
/// ```
#[derive(Debug)]
pub struct FoldedReader {
    options: ReadOptions,
    tree: StackTree,
    names: Vec<FrameName>,
    /// By part, numbers of names.
    numbers: [HashTable<u32>; PARTS.len()],
    name_bytes: usize,
    /// By number of a first frame, what stands above it.
    groups: FxHashMap<u32, [Weight; PARTS.len()]>,
    marked_kernel: bool,
    two: u64,
    read: FoldedText,
}

/// The parts, in the order in which weights are kept by part.
const PARTS: [FrameOwner; 5] = [
    FrameOwner::Group,
    FrameOwner::Unknown,
    FrameOwner::Kernel,
    FrameOwner::User,
    FrameOwner::Guest,
];

fn place(part: FrameOwner) -> usize {
    PARTS.iter().position(|each| *each == part).unwrap_or(0)
}

/// A line that is reported, and its number, from 1 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedLine {
    /// Its number.
    pub number: u64,
    /// Its beginning.
    pub text: String,
}

/// Lines of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineCount {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<ReportedLine>,
}

impl LineCount {
    fn add(&mut self, number: u64, bytes: &[u8]) {
        self.count += 1;
        if self.first.len() < REPORTED {
            let bytes = bytes.trim_ascii();
            let text = bytes.get(..REPORTED_BYTES).unwrap_or(bytes);
            let mut text = String::from_utf8_lossy(text).into_owned();
            if bytes.len() > REPORTED_BYTES {
                text.push_str("...");
            }
            self.first.push(ReportedLine { number, text });
        }
    }
}

/// What stands below stacks, mostly a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bottom {
    /// Its name.
    pub name: String,
    /// Its id, where the name has it (`--tid` of collapsers).
    pub tid: Option<i32>,
    /// What it weighs.
    pub all: Weight,
    /// That in a guest, by the innermost frame.
    pub guest: Weight,
    /// In the kernel.
    pub kernel: Weight,
    /// In user space.
    pub user: Weight,
}

/// What a folded text holds.
#[derive(Debug, Clone)]
pub struct FoldedText {
    /// The stacks, those of idle CPUs only if they were asked for. The weight of a stack has its count as the amount;
    /// as the samples too, unless counts are times: then these are lines.
    pub stacks: Stacks,
    /// What stands below them, heaviest first.
    pub bottoms: Vec<Bottom>,
    /// What the amounts are.
    pub unit: WeightUnit,
    /// All stacks together, idle ones included.
    pub all: Weight,
    /// Stacks of idle CPUs.
    pub idle: Weight,
    /// Lines that are stacks.
    pub lines: u64,
    /// Whether every line ends in two counts: it is the difference of two files, and neither.
    pub two_counts: bool,
    /// What a tool says beside its stacks.
    pub messages: LineCount,
    /// Lines that are no stacks.
    pub odd: LineCount,
    /// Lines whose counts have decimals that were rounded.
    pub rounded: u64,
    /// Lines in which a name was cut.
    pub cut: u64,
    /// Stacks whose inner frames are left out, since there are too many.
    pub shortened: Weight,
}

impl FoldedText {
    /// Returns what is shown: all, or all without idle CPUs.
    pub fn shown(&self) -> Weight {
        self.bottoms.iter().fold(Weight::default(), |mut sum, row| {
            sum.add(row.all);
            sum
        })
    }

    /// Whether stacks of idle CPUs are left out.
    pub fn left_out(&self) -> bool {
        self.shown().amount < self.all.amount
    }
}

impl FoldedReader {
    /// Returns a reader that has seen nothing.
    pub fn new(options: ReadOptions) -> FoldedReader {
        FoldedReader {
            tree: StackTree::new(options.most),
            names: Vec::new(),
            numbers: Default::default(),
            name_bytes: 0,
            groups: FxHashMap::default(),
            marked_kernel: false,
            two: 0,
            read: FoldedText {
                stacks: Stacks::new(1),
                bottoms: Vec::new(),
                unit: options.counts.map_or(WeightUnit::Count, CountMeaning::unit),
                all: Weight::default(),
                idle: Weight::default(),
                lines: 0,
                two_counts: false,
                messages: LineCount::default(),
                odd: LineCount::default(),
                rounded: 0,
                cut: 0,
                shortened: Weight::default(),
            },
            options,
        }
    }

    /// Reads a whole text.
    pub fn text(&mut self, text: &[u8]) {
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            self.line(number, line);
        }
    }

    /// Reads a line without its line feed. `number` is the one that is reported.
    pub fn line(&mut self, number: u64, bytes: &[u8]) {
        let bytes = match number {
            1 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            _ => bytes,
        };
        match line::line(bytes) {
            FoldedLine::Empty => {}
            FoldedLine::Stack(stack) => self.stack(&stack),
            FoldedLine::Message => {
                if self.options.counts.is_none() && self.read.lines == 0 {
                    self.options.counts = said(bytes);
                    self.read.unit = self
                        .options
                        .counts
                        .map_or(WeightUnit::Count, CountMeaning::unit);
                }
                self.read.messages.add(number, bytes);
            }
            FoldedLine::Other => self.read.odd.add(number, bytes),
        }
    }

    fn stack(&mut self, stack: &CountedStack<'_>) {
        let scale = self.options.counts.map_or(1, CountMeaning::scale);
        let (amount, rounded) = stack.count.times(scale);
        let weight = Weight {
            samples: match self.read.unit {
                WeightUnit::Nanoseconds => u64::from(amount > 0),
                WeightUnit::Count | WeightUnit::Samples => amount,
            },
            amount,
        };
        self.read.lines += 1;
        self.read.rounded += u64::from(rounded);
        self.two += u64::from(stack.two);
        self.read.all.add(weight);
        if line::is_idle(stack.frames) {
            self.read.idle.add(weight);
            if !self.options.idle {
                return;
            }
        }
        self.add(stack.frames, weight);
    }

    fn add(&mut self, frames: &[u8], weight: Weight) {
        let mut at = ROOT;
        let mut bottom = None;
        let mut part = FrameOwner::Group;
        let mut own = true;
        let mut cut = false;
        for frame in Frames::new(frames) {
            self.marked_kernel |= frame.marked_kernel;
            own &= frame.name != line::WAKER;
            if own && frame.part != FrameOwner::Group {
                part = frame.part;
            }
            let name = frame.name.get(..MAX_NAME).unwrap_or(frame.name);
            cut |= name.len() < frame.name.len();
            let number = self.number(name, frame.part);
            let child = number.and_then(|number| self.tree.child(at, number));
            let Some(child) = child else {
                self.read.shortened.add(weight);
                break;
            };
            bottom = bottom.or(number);
            at = child;
        }
        self.tree.weigh(at, weight);
        self.read.cut += u64::from(cut);
        if let Some(bottom) = bottom {
            self.groups.entry(bottom).or_default()[place(part)].add(weight);
        }
    }

    /// Returns the number of a name; `None` where there is no room for it.
    fn number(&mut self, name: &[u8], part: FrameOwner) -> Option<u32> {
        let name = String::from_utf8_lossy(name);
        let numbers = &mut self.numbers[place(part)];
        let hash = FxBuildHasher.hash_one(&*name);
        let text = |number: &u32| {
            self.names
                .get(*number as usize)
                .map_or("", |one| &*one.text)
        };
        if let Some(number) = numbers.find(hash, |number| text(number) == name) {
            return Some(*number);
        }
        // A name that no node can have would be kept for nothing.
        if self.tree.is_full() || self.name_bytes + name.len() > MAX_NAMES {
            return None;
        }
        self.name_bytes += name.len();
        let number = self.names.len() as u32;
        numbers.insert_unique(hash, number, |one| FxBuildHasher.hash_one(text(one)));
        self.names.push(FrameName {
            text: name.into(),
            part,
        });
        Some(number)
    }

    /// Returns what was read.
    pub fn finish(self) -> FoldedText {
        let mut read = self.read;
        // A tool that marks the kernel's code marks all of it.
        let unsaid = match self.marked_kernel {
            true => FrameOwner::User,
            false => FrameOwner::Unknown,
        };
        let mut names = self.names;
        for name in &mut names {
            if name.part == FrameOwner::Unknown {
                name.part = unsaid;
            }
        }
        let bottoms = self.groups.into_iter().filter_map(|(number, weights)| {
            let name = &names.get(number as usize)?.text;
            let (comm, tid) = line::thread(name);
            let mut bottom = Bottom {
                name: comm.to_owned(),
                tid,
                all: Weight::default(),
                guest: weights[place(FrameOwner::Guest)],
                kernel: weights[place(FrameOwner::Kernel)],
                user: weights[place(FrameOwner::User)],
            };
            weights.iter().for_each(|weight| bottom.all.add(*weight));
            if unsaid == FrameOwner::User {
                bottom.user.add(weights[place(FrameOwner::Unknown)]);
            }
            Some(bottom)
        });
        read.bottoms = bottoms.collect();
        // Where there was no room for another name below a stack.
        let rest = self.tree.nodes()[0].own;
        if rest != Weight::default() {
            read.bottoms.push(Bottom {
                name: "[left out]".to_owned(),
                tid: None,
                all: rest,
                guest: Weight::default(),
                kernel: Weight::default(),
                user: Weight::default(),
            });
        }
        read.bottoms.sort_by(|a, b| {
            let heavier = b.all.amount.cmp(&a.all.amount);
            heavier.then_with(|| (&a.name, a.tid).cmp(&(&b.name, b.tid)))
        });
        read.two_counts = read.lines > 0 && self.two == read.lines;
        let unnamed = || FrameName {
            text: "".into(),
            part: FrameOwner::Unknown,
        };
        let name = |frame: u32| names.get(frame as usize).cloned().unwrap_or_else(unnamed);
        read.stacks = Stacks::of(&self.tree, name, |_| false);
        read
    }
}

/// Returns what bcc's tools say of their counts in their first line.
fn said(message: &[u8]) -> Option<CountMeaning> {
    let has = |word: &[u8]| message.windows(word.len()).any(|at| at == word);
    let times = has(b"time (");
    match () {
        () if times && has(b"(us)") => Some(CountMeaning::Microseconds),
        () if times && has(b"(ns)") => Some(CountMeaning::Nanoseconds),
        () if message.trim_ascii().starts_with(b"Sampling at ") => Some(CountMeaning::Samples),
        () => None,
    }
}

/// Lines of a text that are looked at to tell what it is.
const LOOKED_AT: usize = 64;

/// Whether a text is folded stacks, by its beginning: nearly all lines end in a count, and some have semicolons between
/// frames.
pub fn looks_folded(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let (mut stacks, mut others, mut deep) = (0usize, 0usize, false);
    let lines = head.split(|byte| *byte == b'\n');
    for bytes in lines.take(LOOKED_AT) {
        match line::line(bytes) {
            FoldedLine::Stack(stack) => {
                stacks += 1;
                // Commands in a shell's line have a blank there.
                let border = |two: &[u8]| two[0] == b';' && two[1] != b' ';
                deep |= stack.frames.windows(2).any(border);
            }
            FoldedLine::Other => others += 1,
            FoldedLine::Empty | FoldedLine::Message => {}
        }
    }
    // The last line may be cut off by the end of the head.
    deep && stacks > 0 && others <= 1 + stacks / 4
}
