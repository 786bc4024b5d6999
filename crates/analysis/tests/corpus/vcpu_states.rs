//! What every vCPU does at every instant, pinned by small recordings made by hand.
//!
//! Each file of `vcpu_states/` is a recording as a text, with the truth in comments at its head:
//!
//! ```text
//! # What the recording shows.
//! #> vcpu 0  10.000000 10.000100  guest  cpu 1
//! #> vcpu 0  10.000100 10.000140  runnable  cpu 1  behind kworker/1:1:45  for EXTERNAL_INTERRUPT
//! #= vcpu 0  guest 100us  kernel 0us  user 0us  poll 0us  halted 0us  runnable 40us  unknown 0us
//! ```
//!
//! A line `#>` is a span: from, until, state, CPU, behind whom (name and thread), and the exit it belongs to,
//! with the access that made it. Neighbours that are alike in all of it are one span. A line `#=` has the sums
//! that `trapline vcpus` prints. vCPUs are numbered in the order in which they are first seen.
//!
//! States were derived from what the kernel does, not from what the program said. Most recordings begin with
//! three events of another VM, on CPU 7: without them a whole class of events would be missing, which is another
//! case. Those cases are pinned too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use analysis::{SharedAnalysis, Study, Vcpus, VcpusReport, Window, access_key};
use event::{Event, EventType, NONE, Side, Sink};
use model::{Machine, Span, SpanSink, State, Times, VcpuTimes};
use source::{ReaderOptions, RecordingBytes, RecordingReader};

/// Keeps all spans, neighbours that are alike as one, and what they add up to.
#[derive(Default)]
struct Kept {
    spans: Vec<Span>,
    times: BTreeMap<u32, Times>,
}

impl SpanSink for Kept {
    fn span(&mut self, span: &Span) {
        self.times
            .entry(span.vcpu)
            .or_default()
            .add(span.state, span.ns());
        let last = self.spans.iter_mut().rfind(|s| s.vcpu == span.vcpu);
        if let Some(last) = last
            && last.end == span.start
            && (last.state, last.cpu, last.cause, last.behind)
                == (span.state, span.cpu, span.cause, span.behind)
        {
            last.end = span.end;
        } else {
            self.spans.push(*span);
        }
    }
}

/// Follows a recording twice in one walk: for the report, and for the spans themselves.
struct Follower {
    study: Study,
    vcpus: SharedAnalysis<Vcpus>,
    machine: Machine,
    wanted: Vec<bool>,
    kept: Kept,
    /// Most events between one span handed out and the next.
    longest_silence: usize,
    silence: usize,
}

impl Follower {
    fn new() -> Follower {
        let mut study = Study::default();
        Follower {
            vcpus: study.share(Vcpus::new(Window::default())),
            study,
            machine: Machine::new(),
            wanted: Vec::new(),
            kept: Kept::default(),
            longest_silence: 0,
            silence: 0,
        }
    }
}

impl Sink for Follower {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let index = ty.index as usize;
        if self.wanted.len() <= index {
            self.wanted.resize(index + 1, false);
        }
        self.wanted[index] = self.machine.wants(ty);
        self.study.wants(ty) || self.wanted[index]
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if self.wanted[event.ty.index as usize] {
            let before = self.kept.spans.len();
            self.machine.event(event, &event.data(), &mut self.kept);
            self.silence += 1;
            if self.kept.spans.len() > before {
                self.silence = 0;
            }
            self.longest_silence = self.longest_silence.max(self.silence);
        }
        self.study.event(event)
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
        self.machine.side(side);
    }
}

/// What a recording's vCPUs did.
pub(crate) struct FollowedVcpus {
    pub(crate) spans: Vec<Span>,
    pub(crate) vcpus: Vec<VcpuTimes>,
    pub(crate) machine: Machine,
    pub(crate) report: VcpusReport,
    pub(crate) longest_silence: usize,
}

/// Follows a text, and checks what has to be true of any.
pub(crate) fn follow(name: &str, text: &str) -> Result<FollowedVcpus, String> {
    let bytes = text.as_bytes().to_vec();
    let recording = RecordingBytes::from_bytes(name, bytes).map_err(|e| e.to_string())?;
    let reader: RecordingReader<'_> = recording
        .reader(ReaderOptions::default())
        .map_err(|e| e.to_string())?;
    let mut follower = Follower::new();
    reader.walk(&mut follower);
    follower.study.finish();
    let Follower {
        study,
        vcpus,
        mut machine,
        mut kept,
        longest_silence,
        ..
    } = follower;
    machine.finish(&mut kept);
    let followed = FollowedVcpus {
        spans: kept.spans,
        vcpus: machine.vcpus().collect(),
        report: vcpus.get().clone().report(&study.walked()),
        machine,
        longest_silence,
    };
    followed.adds_up(&kept.times)?;
    Ok(followed)
}

impl FollowedVcpus {
    /// Checks that the spans of every vCPU follow each other without gaps, from its first instant to its last,
    /// and add up to what the machine and the report say.
    fn adds_up(&self, kept: &BTreeMap<u32, Times>) -> Result<(), String> {
        for (vcpu, known) in (0u32..).zip(&self.vcpus) {
            let mut at = known.from;
            for span in self.spans.iter().filter(|s| s.vcpu == vcpu) {
                if span.start != at || span.end <= span.start {
                    return Err(format!("vcpu {vcpu}: at {at} comes {span:?}"));
                }
                at = span.end;
            }
            if at != known.to {
                return Err(format!(
                    "vcpu {vcpu}: spans end at {at}, it at {}",
                    known.to
                ));
            }
            let sums = kept.get(&vcpu).copied().unwrap_or_default();
            if sums != *self.machine.times(vcpu) {
                let machine = self.machine.times(vcpu);
                return Err(format!("vcpu {vcpu}: spans {sums:?}, machine {machine:?}"));
            }
            let Some(row) = self.row(known) else {
                // One that was seen at a single instant has no time to report.
                if known.from == known.to {
                    continue;
                }
                return Err(format!("vcpu {vcpu} is not in the report"));
            };
            if (row.from, row.to) != (known.from, known.to)
                || row.times.total() != known.to - known.from
            {
                return Err(format!("vcpu {vcpu}: {known:?} and the report's {row:?}"));
            }
        }
        if self.report.rows.len() > self.vcpus.len() {
            return Err("the report has more vCPUs than there are".to_owned());
        }
        Ok(())
    }

    fn row(&self, vcpu: &VcpuTimes) -> Option<&analysis::VcpuRow> {
        let mut rows = self.report.rows.iter();
        rows.find(|row| (row.tid, row.from, row.to) == (vcpu.tid, vcpu.from, vcpu.to))
    }

    /// Returns the lines that the truth at the head of a recording has to equal.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (vcpu, known) in (0u32..).zip(&self.vcpus) {
            let spans = self.spans.iter().filter(|s| s.vcpu == vcpu);
            lines.extend(spans.map(|span| self.line(span)));
            if let Some(row) = self.row(known) {
                lines.push(format!("#= vcpu {vcpu} {}", sums(&row.times)));
            }
        }
        lines
    }

    fn line(&self, span: &Span) -> String {
        let mut line = format!(
            "#> vcpu {} {} {} {}",
            span.vcpu,
            seconds(span.start),
            seconds(span.end),
            state(span.state)
        );
        if span.cpu != NONE {
            let _ = write!(line, " cpu {}", span.cpu);
        }
        if let Some(behind) = span.behind {
            let task = self.machine.threads().at(behind);
            let (tid, thread) = task.expect("a task that had a CPU is known");
            let _ = write!(
                line,
                " behind {}:{tid}",
                thread.comm.as_deref().unwrap_or("?")
            );
        }
        let reason = span.cause.reason.map(|reason| reason.key().into_owned());
        let access = span.cause.access.as_ref().map(access_key);
        let cause: Vec<String> = reason.into_iter().chain(access).collect();
        if !cause.is_empty() {
            let _ = write!(line, " for {}", cause.join(" "));
        }
        line
    }

    fn sum(&self, vcpu: u32, state: State) -> u64 {
        self.machine.times(vcpu).get(state)
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Guest => "guest",
        State::Kernel => "kernel",
        State::KernelBlocked => "kernel-blocked",
        State::User => "user",
        State::UserBlocked => "user-blocked",
        State::Poll => "poll",
        State::Halted => "halted",
        State::Runnable => "runnable",
        State::Unknown => "unknown",
    }
}

/// Returns the columns of the table.
fn sums(times: &Times) -> String {
    const COLUMNS: [(&str, &[State]); 7] = [
        ("guest", &[State::Guest]),
        ("kernel", &[State::Kernel, State::KernelBlocked]),
        ("user", &[State::User, State::UserBlocked]),
        ("poll", &[State::Poll]),
        ("halted", &[State::Halted]),
        ("runnable", &[State::Runnable]),
        ("unknown", &[State::Unknown]),
    ];
    let column = |(name, states): &(&str, &[State])| {
        let ns: u64 = states.iter().map(|state| times.get(*state)).sum();
        match ns % 1000 {
            0 => format!("{name} {}us", ns / 1000),
            _ => format!("{name} {ns}ns"),
        }
    };
    COLUMNS.iter().map(column).collect::<Vec<_>>().join(" ")
}

fn seconds(ns: u64) -> String {
    let (whole, part) = (ns / 1_000_000_000, ns % 1_000_000_000);
    match part % 1000 {
        0 => format!("{whole}.{:06}", part / 1000),
        _ => format!("{whole}.{part:09}"),
    }
}

fn fold(line: &str) -> String {
    line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares a recording with the truth at its head.
fn check(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let title = text.lines().next().unwrap_or_default();
    if !title.starts_with("# ") {
        return Err("the first line does not say what it shows".to_owned());
    }
    let truth = text
        .lines()
        .filter(|l| l.starts_with("#>") || l.starts_with("#="));
    let want: Vec<String> = truth.map(fold).collect();
    let followed = follow(&path.display().to_string(), &text)?;
    let got = followed.lines();
    if got == want {
        return Ok(());
    }
    let mut out = format!("{title}\n");
    for line in &want {
        let mark = if got.contains(line) { "  " } else { "- " };
        let _ = writeln!(out, "{mark}{line}");
    }
    for line in got.iter().filter(|line| !want.contains(line)) {
        let _ = writeln!(out, "+ {line}");
    }
    Err(out)
}

/// Checks all recordings of a folder, and returns how many there are.
fn check_all(folder: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    let mut failures = String::new();
    for path in &paths {
        if let Err(why) = check(path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(failures, "{name}: {why}");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    paths.len()
}

#[test]
fn recordings_made_by_hand_have_their_truth() {
    let checked = check_all("vcpu_states");
    assert!(checked >= 75, "{checked} recordings only");
}

/// Writes recordings as the kernel's own `trace` text does.
pub(crate) struct Text {
    pub(crate) out: String,
}

impl Text {
    /// Begins with three events of another VM, so that no class of them is missing.
    fn new() -> Text {
        let mut text = Text {
            out: "# tracer: nop\n".to_owned(),
        };
        text.event(
            1,
            7,
            0,
            "sched_wakeup: comm=CPU 3/KVM pid=909 prio=120 target_cpu=007",
        );
        text.switch(2, 7, (0, "R"), 909);
        text.event(3, 7, 909, "kvm_userspace_exit: reason KVM_EXIT_IO (2)");
        text
    }

    fn comm(tid: i32) -> String {
        match tid {
            0 => "swapper/1".to_owned(),
            101..=109 => format!("CPU {}/KVM", tid - 101),
            909 => "CPU 3/KVM".to_owned(),
            tid => format!("kworker/1:{tid}"),
        }
    }

    /// Writes an event at a number of microseconds.
    pub(crate) fn event(&mut self, time: u64, cpu: i32, tid: i32, what: &str) {
        let comm = if tid == 0 {
            "<idle>".to_owned()
        } else {
            Text::comm(tid)
        };
        let (seconds, micros) = (10 + time / 1_000_000, time % 1_000_000);
        let _ = writeln!(
            self.out,
            "{comm:>16}-{tid:<7} [{cpu:03}] d..1. {seconds:5}.{micros:06}: {what}"
        );
    }

    fn switch(&mut self, time: u64, cpu: i32, (prev, state): (i32, &str), next: i32) {
        let what = format!(
            "sched_switch: prev_comm={} prev_pid={prev} prev_prio=120 prev_state={state} ==> next_comm={} \
             next_pid={next} next_prio=120",
            Text::comm(prev),
            Text::comm(next)
        );
        self.event(time, cpu, prev, &what);
    }

    fn wakeup(&mut self, time: u64, tid: i32, target: i32) {
        let comm = Text::comm(tid);
        let what = format!("sched_wakeup: comm={comm} pid={tid} prio=120 target_cpu={target:03}");
        self.event(time, 3, 0, &what);
    }

    fn entry(&mut self, time: u64) {
        self.event(time, 1, 101, "kvm_entry: vcpu 0, rip 0x1000");
    }

    fn exit(&mut self, time: u64, reason: &str) {
        let what = format!("kvm_exit: vcpu 0 reason {reason} rip 0x1000 info1 0x0 info2 0x0");
        self.event(time, 1, 101, &what);
    }
}

/// More switches than spans are kept of one exit.
const SWITCHES: u64 = 500;

#[test]
fn an_exit_with_hundreds_of_sleeps_is_followed_whole() {
    let mut text = Text::new();
    text.entry(10);
    text.exit(20, "EPT_VIOLATION");
    let mut at = 20;
    for _ in 0..SWITCHES {
        text.switch(at + 2, 1, (101, "D"), 0);
        text.wakeup(at + 7, 101, 1);
        text.switch(at + 10, 1, (0, "R"), 101);
        at += 11;
    }
    text.entry(at);
    text.exit(at + 5, "EXTERNAL_INTERRUPT");
    let followed = follow("sleeps", &text.out).expect("it adds up");
    let us = |state| followed.sum(0, state) / 1000;
    assert_eq!(us(State::Guest), 15);
    assert_eq!(us(State::Kernel), 3 * SWITCHES);
    assert_eq!(us(State::KernelBlocked), 5 * SWITCHES);
    assert_eq!(us(State::Runnable), 3 * SWITCHES);
    assert_eq!(us(State::Unknown), 0);
    // Each sleep is kernel, blocked and runnable; the guest's two runs and the way back are the others.
    assert_eq!(followed.spans.len() as u64, 3 * SWITCHES + 3);
    assert!(
        followed.longest_silence < 1000,
        "{}",
        followed.longest_silence
    );
}

#[test]
fn a_halt_with_hundreds_of_preemptions_is_followed_whole() {
    let mut text = Text::new();
    text.entry(10);
    text.exit(20, "HLT");
    let mut at = 20;
    for _ in 0..SWITCHES {
        text.switch(at + 2, 1, (101, "R+"), 45);
        text.switch(at + 5, 1, (45, "S"), 101);
        at += 6;
    }
    let ns = (at - 20) * 1000;
    let what = format!("kvm_vcpu_wakeup: poll time {ns} ns, polling valid");
    text.event(at, 1, 101, &what);
    text.entry(at);
    text.exit(at + 5, "EXTERNAL_INTERRUPT");
    let followed = follow("preemptions", &text.out).expect("it adds up");
    let us = |state| followed.sum(0, state) / 1000;
    assert_eq!(us(State::Guest), 15);
    assert_eq!(us(State::Runnable), 3 * SWITCHES);
    // Polls that were handed out before the halt was known stay what they looked like.
    assert_eq!(us(State::Poll) + us(State::Kernel), 3 * SWITCHES);
    assert!(us(State::Poll) >= 32, "{}", us(State::Poll));
    let row = &followed.report.rows[0];
    assert_eq!(row.polls.succeeded_ns, followed.sum(0, State::Poll));
    assert_eq!(row.behind.len(), 1);
    assert_eq!(
        (row.behind[0].tid, row.behind[0].count),
        (Some(45), SWITCHES)
    );
}

/// A VMM that a signal calls out of `KVM_RUN` again and again makes no exit.
#[test]
fn an_exit_with_thousands_of_returns_to_user_space_is_handed_out() {
    let mut text = Text::new();
    text.entry(10);
    text.exit(20, "CPUID");
    let mut at = 20;
    for _ in 0..10_000 {
        text.event(at + 1, 1, 101, "kvm_userspace_exit: reason restart (4)");
        text.event(at + 3, 1, 101, "kvm_fpu: load");
        at += 4;
    }
    text.entry(at);
    let followed = follow("returns", &text.out).expect("it adds up");
    assert_eq!(followed.sum(0, State::User) / 1000, 20_000);
    assert!(
        followed.longest_silence < 1000,
        "{}",
        followed.longest_silence
    );
}
