//! Walks small recordings, made as texts, through the machine and the paths.

// Every test binary uses its own part of this.
#![allow(dead_code)]

pub(crate) mod found;
pub(crate) mod stages;

use std::fmt::Write;
use std::ops::ControlFlow;

use analysis::Stats;
use analysis::{SharedAnalysis, Study};
use event::{Event, EventType, Side, Sink};
use model::Machine;
use paths::lang::{self, PathDefinition};
use paths::{
    CompletedInstance, DropReason, InstanceReport, PathLedger, PathReport, Paths, RecentWords,
};
use source::{ReaderOptions, RecordingBytes};

/// A recording as ftrace prints it.
#[derive(Debug, Default)]
pub(crate) struct Text {
    lines: String,
    /// Processes of threads, if the recording has any.
    processes: Vec<(i32, i32)>,
}

impl Text {
    /// Returns one that has the processes of these threads, each behind its thread.
    pub(crate) fn with_processes(processes: &[(i32, i32)]) -> Text {
        Text {
            processes: processes.to_vec(),
            ..Text::default()
        }
    }

    /// Adds a line: name and id of the thread, CPU, microseconds, and the event with what it says.
    pub(crate) fn event(&mut self, thread: (&str, i32), cpu: i32, us: u64, event: &str) {
        let (comm, tid) = thread;
        let (name, text) = event.split_once(' ').unwrap_or((event, ""));
        let (seconds, us) = (10 + us / 1_000_000, us % 1_000_000);
        let known = self.processes.iter().find(|(of, _)| *of == tid);
        let process = match (known, self.processes.is_empty()) {
            (_, true) => String::new(),
            (Some((_, process)), _) => format!("({process:>7}) "),
            (None, _) => "(-------) ".to_owned(),
        };
        let _ = writeln!(
            self.lines,
            "{comm:>16}-{tid:<6} {process}[{cpu:03}] {seconds:>5}.{us:06}: {name:<20} {text}",
            name = format!("{name}:"),
        );
    }

    /// Events of a CPU are lost.
    pub(crate) fn lost(&mut self, cpu: i32) {
        let _ = writeln!(self.lines, "CPU:{cpu} [LOST 3 EVENTS]");
    }

    /// A task goes to sleep, and the idle task gets its CPU.
    pub(crate) fn sleeps(&mut self, (comm, tid): (&str, i32), cpu: i32, us: u64) {
        let text = format!(
            "sched_switch prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state=S ==> next_comm=swapper/{cpu} \
             next_pid=0 next_prio=120"
        );
        self.event((comm, tid), cpu, us, &text);
    }

    /// A task gets its CPU from the idle task.
    pub(crate) fn runs(&mut self, (comm, tid): (&str, i32), cpu: i32, us: u64) {
        let text = format!(
            "sched_switch prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={comm} \
             next_pid={tid} next_prio=120"
        );
        self.event(("<idle>", 0), cpu, us, &text);
    }

    /// One task wakes another.
    pub(crate) fn wakes(
        &mut self,
        by: (&str, i32),
        on: i32,
        (comm, tid): (&str, i32),
        cpu: i32,
        us: u64,
    ) {
        let text = format!("sched_waking comm={comm} pid={tid} prio=120 target_cpu={cpu:03}");
        self.event(by, on, us, &text);
    }

    /// A vCPU leaves its guest.
    pub(crate) fn exits(&mut self, thread: (&str, i32), cpu: i32, us: u64, reason: &str) {
        let text =
            format!("kvm_exit vcpu 0 reason {reason} rip 0xffffffff81a17a0a info1 0x0 info2 0x0");
        self.event(
            thread,
            cpu,
            us,
            &text.replace("vcpu 0", &format!("vcpu {}", number(thread.0))),
        );
    }

    /// A vCPU enters its guest.
    pub(crate) fn enters(&mut self, thread: (&str, i32), cpu: i32, us: u64) {
        let text = format!(
            "kvm_entry vcpu {}, rip 0xffffffff81a17a0b",
            number(thread.0)
        );
        self.event(thread, cpu, us, &text);
    }

    /// Returns it as a recording has it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lines.clone().into_bytes()
    }

    pub(crate) fn walk(self, paths: Vec<PathDefinition>) -> Walked {
        walk(self.lines.into_bytes(), Paths::new(paths))
    }

    pub(crate) fn walk_with(self, paths: Paths) -> Walked {
        walk(self.lines.into_bytes(), paths)
    }
}

/// The number in the name of a vCPU's thread: `CPU 3/KVM`.
fn number(comm: &str) -> &str {
    comm.trim_start_matches("CPU ").trim_end_matches("/KVM")
}

/// What was found.
pub(crate) struct Walked {
    pub study: Study,
    pub paths: SharedAnalysis<Paths>,
    pub instances: Vec<CompletedInstance>,
    /// Instances that were under way at once, at most.
    pub most: usize,
}

/// Returns an instance in words: those that instances like it share are the same.
pub(crate) fn described(
    paths: &Paths,
    one: &CompletedInstance,
    machine: &Machine,
    recent: &mut RecentWords,
) -> InstanceReport {
    let report = paths.describe(one, machine, &|_| None);
    let shared = paths.describe_among(one, machine, &|_| None, recent);
    assert_eq!(shared, report);
    let words = paths.words(one, machine, &|_| None, recent);
    assert_eq!(
        (&words.by, &words.joined),
        (&report.by, &report.features.join("; "))
    );
    report
}

impl Walked {
    pub(crate) fn reports(&self) -> Vec<PathReport> {
        let machine = self.study.walked().machine;
        self.paths.get().report(machine, &|_| None)
    }

    pub(crate) fn described(&self) -> Vec<InstanceReport> {
        let paths = self.paths.get();
        let machine = self.study.walked().machine;
        let mut recent = RecentWords::default();
        let all = self.instances.iter();
        all.map(|one| described(&paths, one, machine, &mut recent))
            .collect()
    }

    /// Steps of every instance with their times in microseconds from the recording's beginning.
    pub(crate) fn steps(&self) -> Vec<Vec<(String, u64)>> {
        let us = |ns: u64| (ns / 1000).saturating_sub(10_000_000);
        let described = self.described().into_iter();
        described
            .map(|one| {
                let steps = one.steps.into_iter();
                steps
                    .map(|step| (step.name.to_string(), us(step.time)))
                    .collect()
            })
            .collect()
    }

    /// How many instances of the first path did not complete for a reason.
    pub(crate) fn dropped(&self, why: DropReason) -> u64 {
        let reports = self.reports();
        let all = reports.iter().flat_map(|report| &report.dropped);
        all.filter(|(known, _)| *known == why).map(|(_, n)| n).sum()
    }
}

/// A path of the language; one that is not understood is a mistake of the test.
pub(crate) fn path(text: &str) -> PathDefinition {
    match lang::parse(text) {
        Ok(path) => path,
        Err(error) => panic!("{error}\n{text}"),
    }
}

pub(crate) fn builtin(name: &str) -> PathDefinition {
    paths::builtin(name).unwrap_or_else(|| panic!("{name} is built in"))
}

/// What everybody had adds up to the durations, in sum and on average.
pub(crate) fn adds_up(ledger: &PathLedger, stats: &Stats, name: &str) {
    let terms = ledger.terms.iter();
    let all = terms.fold(0, |sum, term| u64::saturating_add(sum, term.total_ns));
    assert_eq!(all, stats.total(), "{name}: {ledger:?}");
    assert_eq!(ledger.mean_ns(), stats.mean(), "{name}: {ledger:?}");
    for term in &ledger.terms {
        let known = [
            term.work_ns,
            term.polling_ns,
            term.runnable_ns,
            term.asleep_ns,
        ];
        assert!(
            known.iter().sum::<u64>() <= term.mean_ns,
            "{name}: {term:?}"
        );
    }
}

struct Watching {
    walked: Walked,
}

impl Sink for Watching {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.walked.study.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let flow = self.walked.study.event(event);
        let mut paths = self.walked.paths.get_mut();
        self.walked.most = self.walked.most.max(paths.in_flight());
        self.walked.instances.extend(paths.take_listed());
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.walked.study.side(side);
    }
}

/// Walks a recording, to its end.
pub(crate) fn walk(bytes: Vec<u8>, mut paths: Paths) -> Walked {
    paths.list();
    let recording = RecordingBytes::from_bytes("text", bytes).expect("a recording");
    let reader = recording
        .reader(ReaderOptions::default())
        .expect("a reader");
    let mut study = Study::default();
    let mut sink = Watching {
        walked: Walked {
            paths: study.share(paths),
            study,
            instances: Vec::new(),
            most: 0,
        },
    };
    let _ = reader.walk(&mut sink);
    let mut walked = sink.walked;
    walked.study.finish();
    walked
        .instances
        .extend(walked.paths.get_mut().take_listed());
    assert_eq!(
        walked.paths.get().in_flight(),
        0,
        "nothing is under way at the end"
    );
    walked
}
