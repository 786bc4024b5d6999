//! The slowest iterations of a benchmark, and what a recording that was made meanwhile shows of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::{State, Times};
use serde::Serialize;
use words::duration::{human, seconds};

use crate::quality::wrap;
use crate::shape;
use crate::table::{Table, Unit};

/// Iterations that the text has.
const SHOWN: usize = 10;
/// Kinds of causes that the text has.
const CAUSES: usize = 8;
/// An instance is what an iteration was spent with from this share on.
const MOST_OF_IT: f64 = 0.5;
/// Shares of a vCPU's time that are said.
const SAID: f64 = 0.005;

/// A slow iteration.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Iteration {
    /// What was measured: the row's name.
    pub what: String,
    /// When it began, on the recording's clock.
    pub begin_ns: u64,
    /// How long it took.
    pub total_ns: u64,
    /// What the vCPUs of the row did meanwhile.
    pub vcpus: Vec<OnVcpu>,
    /// The instances of paths that were under way in it, those first that were for the longest.
    pub paths: Vec<OverlappingPath>,
    /// Which other tasks had the CPUs of the row, longest first, where the recording is of the machine that measured.
    pub tasks: Vec<Task>,
}

shape!(Iteration {
    what,
    begin_ns,
    total_ns,
    vcpus,
    paths,
    tasks
});

/// What a vCPU did during an iteration.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OnVcpu {
    /// Its number in its VM.
    pub vcpu: u32,
    /// Whether it measured (`from`), or was meant (`to`).
    pub role: &'static str,
    /// In the guest.
    pub guest_ns: u64,
    /// In KVM.
    pub kernel_ns: u64,
    /// In the VMM.
    pub user_ns: u64,
    /// Halted, while KVM polled.
    pub poll_ns: u64,
    /// Halted.
    pub halted_ns: u64,
    /// Waiting for a CPU of the host.
    pub runnable_ns: u64,
    /// Not known.
    pub unknown_ns: u64,
}

shape!(OnVcpu {
    vcpu,
    role,
    guest_ns,
    kernel_ns,
    user_ns,
    poll_ns,
    halted_ns,
    runnable_ns,
    unknown_ns
});

impl OnVcpu {
    /// Returns what a vCPU did in an iteration that took `total_ns`. The part before and behind the recording is not
    /// known.
    pub fn new(vcpu: u32, role: &'static str, times: &Times, total_ns: u64) -> OnVcpu {
        let of = |states: &[State]| -> u64 { states.iter().map(|state| times.get(*state)).sum() };
        OnVcpu {
            vcpu,
            role,
            guest_ns: of(&[State::Guest]),
            kernel_ns: of(&[State::Kernel, State::KernelBlocked]),
            user_ns: of(&[State::User, State::UserBlocked]),
            poll_ns: of(&[State::Poll]),
            halted_ns: of(&[State::Halted]),
            runnable_ns: of(&[State::Runnable]),
            unknown_ns: of(&[State::Unknown]) + total_ns.saturating_sub(times.total()),
        }
    }

    fn said(&self) -> [(&'static str, u64); 7] {
        [
            ("guest", self.guest_ns),
            ("KVM", self.kernel_ns),
            ("VMM", self.user_ns),
            ("polling", self.poll_ns),
            ("halted", self.halted_ns),
            ("waiting for a CPU", self.runnable_ns),
            ("unknown", self.unknown_ns),
        ]
    }
}

/// An instance of a path in an iteration.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OverlappingPath {
    /// Its path.
    pub path: String,
    /// Its number among those of the path.
    pub number: u64,
    /// When it began.
    pub begin_ns: u64,
    /// How long it took, what lies before and behind the iteration too.
    pub total_ns: u64,
    /// How long it was under way in the iteration.
    pub here_ns: u64,
    /// Which part of the iteration that is.
    pub share: f64,
    /// Its longest stage there, by the steps on both sides.
    pub stage: Option<String>,
    /// How much of that lies in the iteration.
    pub stage_ns: u64,
    /// The vCPU that it is about.
    pub vcpu: Option<String>,
}

shape!(OverlappingPath {
    path,
    number,
    begin_ns,
    total_ns,
    here_ns,
    share,
    stage,
    stage_ns,
    vcpu
});

/// A task that had a CPU during an iteration.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Task {
    /// The CPU.
    pub cpu: i32,
    /// Its thread.
    pub tid: i32,
    /// Its name.
    pub comm: Option<String>,
    /// For how long.
    pub ns: u64,
}

shape!(Task { cpu, tid, comm, ns });

/// What is known of a benchmark's slow iterations.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BenchExplanation {
    /// The benchmark.
    pub bench: String,
    /// Slow iterations of the result; those of which the recording says nothing are not among `iterations`.
    pub slow: usize,
    /// By how much the times of iterations on the recording's clock can be wrong.
    pub bound_ns: u64,
    /// The iterations, slowest first.
    pub iterations: Vec<Iteration>,
}

shape!(BenchExplanation {
    bench,
    slow,
    bound_ns,
    iterations
});

impl BenchExplanation {
    /// Returns what most of the iterations were spent with: path, its longest stage, iterations and their time, most
    /// time first.
    fn causes(&self) -> Vec<(&str, &str, usize, u64)> {
        let mut causes: BTreeMap<(&str, &str), (usize, u64)> = BTreeMap::new();
        for one in &self.iterations {
            let Some(inside) = one.paths.first().filter(|one| one.share >= MOST_OF_IT) else {
                continue;
            };
            let stage = inside.stage.as_deref().unwrap_or_default();
            let sum = causes.entry((&inside.path, stage)).or_default();
            *sum = (sum.0 + 1, sum.1 + inside.stage_ns);
        }
        let causes = causes.into_iter();
        let mut causes: Vec<_> = causes
            .map(|((path, stage), (count, ns))| (path, stage, count, ns))
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.3));
        causes
    }
}

/// Returns it as text.
pub fn text(found: &BenchExplanation, width: usize) -> String {
    let mut out = format!(
        "bench {}: {} of {} slow iterations are in the recording\n",
        found.bench,
        found.iterations.len(),
        found.slow
    );
    if found.bound_ns > 0 {
        let bound = human(found.bound_ns);
        let text = format!("Times of the guest are known on the host's clock to within {bound}.");
        wrap(&mut out, "", &text, width);
    }
    let causes = found.causes();
    let explained: usize = causes.iter().map(|cause| cause.2).sum();
    if explained > 0 {
        let text = format!(
            "In {explained} of them one instance of a path was under way for half of the time or more. Where it was \
             longest:"
        );
        out.push('\n');
        wrap(&mut out, "", &text, width);
        for (path, stage, count, ns) in causes.iter().take(CAUSES) {
            let count = words::plural(*count, "iteration");
            let _ = writeln!(out, "  {path}: {stage}: {count}, {}", human(*ns));
        }
    }
    for one in found.iterations.iter().take(SHOWN) {
        out.push_str(&iteration(one, width));
    }
    let more = found.iterations.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(out, "\n... and {more} more: --format json has all");
    }
    out
}

fn iteration(one: &Iteration, width: usize) -> String {
    let mut out = format!(
        "\n{} at {}: {}\n",
        human(one.total_ns),
        seconds(one.begin_ns),
        one.what
    );
    for inside in &one.paths {
        let mut text = format!(
            "{} ({}) in {}",
            human(inside.here_ns),
            words::share::whole(inside.share),
            inside.path
        );
        if let Some(vcpu) = &inside.vcpu {
            let _ = write!(text, " of {vcpu}");
        }
        if inside.begin_ns < one.begin_ns {
            let _ = write!(
                text,
                ", which began {} before",
                human(one.begin_ns - inside.begin_ns)
            );
        }
        if let Some(stage) = &inside.stage {
            let _ = write!(text, "; longest: {stage}, {}", human(inside.stage_ns));
        }
        wrap(&mut out, "  ", &text, width);
    }
    for vcpu in &one.vcpus {
        let shares = vcpu.said().map(|(name, ns)| {
            let share = ns as f64 / one.total_ns.max(1) as f64;
            (share >= SAID).then(|| format!("{name} {}", words::share::whole(share)))
        });
        let shares: Vec<String> = shares.into_iter().flatten().collect();
        if !shares.is_empty() {
            let text = format!("vCPU {} ({}): {}", vcpu.vcpu, vcpu.role, shares.join(", "));
            wrap(&mut out, "  ", &text, width);
        }
    }
    for task in &one.tasks {
        let who = words::with_thread(task.comm.as_deref().unwrap_or("?"), task.tid);
        let text = format!("CPU {}: {who} ran for {}", task.cpu, human(task.ns));
        wrap(&mut out, "  ", &text, width);
    }
    out
}

/// Columns of the table as CSV: an iteration a row, with the longest instance in it.
pub(crate) fn columns<'r>() -> Table<'r, Iteration> {
    use Unit::{Nanoseconds, Number, Share, Text};
    let first = |one: &Iteration| one.paths.first().cloned();
    Table::new()
        .column("what", Text, |one: &Iteration| one.what.clone())
        .column("begin_ns", Number, |one| one.begin_ns)
        .column("total_ns", Nanoseconds, |one| one.total_ns)
        .column("path", Text, move |one| first(one).map(|path| path.path))
        .column("path_number", Number, move |one| {
            first(one).map(|path| path.number)
        })
        .column("path_ns", Nanoseconds, move |one| {
            first(one).map(|path| path.here_ns)
        })
        .column("path_share", Share, move |one| {
            first(one).map(|path| path.share)
        })
        .column("stage", Text, move |one| {
            first(one).and_then(|path| path.stage)
        })
        .column("stage_ns", Nanoseconds, move |one| {
            first(one).map(|path| path.stage_ns)
        })
}

/// Returns the iterations as CSV.
pub fn csv(found: &BenchExplanation) -> String {
    columns().csv(&found.iterations)
}
