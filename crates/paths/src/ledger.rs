//! Who had the time of instances: a guest, its VMM, the host's kernel, a switch; and how much was waiting.
//!
//! Who makes the event that ends a stage had the time of that stage, if the instance was its since the step before:
//! what it did in between is what the time went for. Where the recording does not show that, nobody is guessed.

use serde::Serialize;

/// Who had the time of a stage, as far as one instance shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TimeHolder {
    /// The guest that comes first on the way.
    Guest,
    /// Another one.
    OtherGuest,
    /// A thread of the VMM out of its guest: a vCPU's or another one, system calls included.
    Vmm,
    /// A thread of a switch in user space, system calls of unknown length included.
    Switch,
    /// KVM, vhost, kworkers, interrupts, the scheduler.
    Kernel,
    /// A vCPU out of its guest: KVM, if the VMM's part in it is recorded (`kvm_userspace_exit`).
    Exit,
    /// Nobody that the recording shows.
    Unknown,
}

/// How it had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TimeManner {
    /// With a CPU.
    Work,
    /// With a CPU, polling in a halt.
    Polling,
    /// Runnable, and without a CPU.
    Runnable,
    /// Asleep.
    Asleep,
    /// Not known.
    Unknown,
}

const HOLDERS: usize = 7;
const MANNERS: usize = 5;

/// A part of the time of a stage of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerPart {
    /// The step at the stage's end, in the chain.
    pub step: u8,
    /// Slot of the thread that made that step's event.
    pub actor: u32,
    pub holder: TimeHolder,
    pub manner: TimeManner,
    pub ns: u64,
}

/// Sums of such parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LedgerSums([[u64; MANNERS]; HOLDERS]);

impl LedgerSums {
    pub(crate) fn add(&mut self, holder: TimeHolder, manner: TimeManner, ns: u64) {
        let sum = &mut self.0[holder as usize][manner as usize];
        *sum = sum.saturating_add(ns);
    }

    pub(crate) fn merge(&mut self, other: &LedgerSums) {
        let mine = self.0.iter_mut().flatten();
        for (sum, ns) in mine.zip(other.0.iter().flatten()) {
            *sum = sum.saturating_add(*ns);
        }
    }

    /// Moves what one had to another.
    fn give(&mut self, from: TimeHolder, to: TimeHolder) {
        let all = std::mem::take(&mut self.0[from as usize]);
        for (sum, ns) in self.0[to as usize].iter_mut().zip(all) {
            *sum = sum.saturating_add(ns);
        }
    }

    fn get(&self, holder: TimeHolder, manner: TimeManner) -> u64 {
        self.0[holder as usize][manner as usize]
    }
}

/// Who had time, in the words of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerHolder {
    /// The guest that comes first on the way.
    Guest,
    /// Another guest.
    OtherGuest,
    /// Threads of the VMM, vCPUs' in user space among them; their system calls included.
    Vmm,
    /// Threads of a switch in user space, as those of OVS-DPDK.
    Switch,
    /// KVM, vhost, kworkers, interrupts, and the scheduler while a thread waits for a CPU.
    HostKernel,
    /// The thread that came next was asleep: whom it waited for is not recorded.
    Asleep,
    /// The recording does not show who.
    NotRecorded,
}

impl LedgerHolder {
    /// All of them, in the order of a ledger.
    pub const ALL: [LedgerHolder; 7] = [
        LedgerHolder::Guest,
        LedgerHolder::Vmm,
        LedgerHolder::HostKernel,
        LedgerHolder::Switch,
        LedgerHolder::OtherGuest,
        LedgerHolder::Asleep,
        LedgerHolder::NotRecorded,
    ];

    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            LedgerHolder::Guest => "guest",
            LedgerHolder::OtherGuest => "other guest",
            LedgerHolder::Vmm => "VMM",
            LedgerHolder::Switch => "switch",
            LedgerHolder::HostKernel => "host kernel",
            LedgerHolder::Asleep => "asleep",
            LedgerHolder::NotRecorded => "not recorded",
        }
    }
}

/// What one had of a path's mean total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LedgerTerm {
    /// Who.
    pub holder: LedgerHolder,
    /// What it had of all instances' totals: what all terms had adds up to these.
    pub total_ns: u64,
    /// Its part of the mean total, in nanoseconds: those of all terms add up to it.
    pub mean_ns: u64,
    /// Of that, with a CPU and at work, as far as the recording shows.
    pub work_ns: u64,
    /// Of that, polling in a halt.
    pub polling_ns: u64,
    /// Of that, waiting for a CPU.
    pub runnable_ns: u64,
    /// Of that, asleep.
    pub asleep_ns: u64,
}

/// A path's ledger: the terms that a path's mean total is the sum of, those of no time left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PathLedger {
    /// In the order of [`LedgerHolder::ALL`].
    pub terms: Vec<LedgerTerm>,
}

impl PathLedger {
    /// Makes one of sums over instances whose mean total is known. `to_vmm` says whether exits to the VMM are recorded.
    pub(crate) fn of(mut sums: LedgerSums, mean_ns: u64, to_vmm: bool) -> PathLedger {
        let exits = match to_vmm {
            true => TimeHolder::Kernel,
            false => TimeHolder::Unknown,
        };
        sums.give(TimeHolder::Exit, exits);
        let shares: Vec<u64> = sums.0.iter().flatten().copied().collect();
        let mut means = LedgerSums::default();
        let parts = words::parts::adding_up(&shares, mean_ns);
        for (place, ns) in means.0.iter_mut().flatten().zip(parts) {
            *place = ns;
        }
        let terms = LedgerHolder::ALL.into_iter();
        let terms = terms.map(|holder| LedgerTerm {
            total_ns: term(&sums, holder).mean_ns,
            ..term(&means, holder)
        });
        PathLedger {
            terms: terms.filter(|term| term.total_ns > 0).collect(),
        }
    }

    /// Returns what the terms add up to: the mean total.
    pub fn mean_ns(&self) -> u64 {
        let terms = self.terms.iter();
        terms.fold(0, |sum, term| sum.saturating_add(term.mean_ns))
    }

    /// Returns the term of who had most.
    pub fn most(&self) -> Option<&LedgerTerm> {
        // The last of equal ones would be the maximum: the first is meant.
        self.terms.iter().rev().max_by_key(|term| term.total_ns)
    }

    /// Returns what one had of the mean total.
    pub fn get(&self, holder: LedgerHolder) -> u64 {
        let mut terms = self.terms.iter();
        let term = terms.find(|term| term.holder == holder);
        term.map_or(0, |term| term.mean_ns)
    }
}

/// Sums up what one had, as a mean.
fn term(means: &LedgerSums, holder: LedgerHolder) -> LedgerTerm {
    let of = match holder {
        LedgerHolder::Guest => TimeHolder::Guest,
        LedgerHolder::OtherGuest => TimeHolder::OtherGuest,
        LedgerHolder::Vmm => TimeHolder::Vmm,
        LedgerHolder::Switch => TimeHolder::Switch,
        LedgerHolder::HostKernel => TimeHolder::Kernel,
        LedgerHolder::Asleep | LedgerHolder::NotRecorded => TimeHolder::Unknown,
    };
    let get = |manner| {
        let of_it = match holder {
            LedgerHolder::Asleep => manner == TimeManner::Asleep,
            LedgerHolder::NotRecorded => manner != TimeManner::Asleep,
            _ => true,
        };
        if of_it { means.get(of, manner) } else { 0 }
    };
    let all = [
        TimeManner::Work,
        TimeManner::Polling,
        TimeManner::Runnable,
        TimeManner::Asleep,
        TimeManner::Unknown,
    ];
    LedgerTerm {
        holder,
        total_ns: 0,
        mean_ns: all
            .into_iter()
            .fold(0, |sum, manner| u64::saturating_add(sum, get(manner))),
        work_ns: get(TimeManner::Work),
        polling_ns: get(TimeManner::Polling),
        runnable_ns: get(TimeManner::Runnable),
        asleep_ns: get(TimeManner::Asleep),
    }
}
