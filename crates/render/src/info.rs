//! What is in a recording.

use std::fmt::Write;

use analysis::{EventCount, InfoReport};
use serde::Serialize;
use serde_json::Value;
use words::duration;

use crate::html::Frame;
use crate::quality::wrap;
use crate::shape;
use crate::table::{Table, Unit};

/// Threads of a VMM that are listed.
const HELPERS: usize = 4;

/// What a recording's header says that is printed beside the counts.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Container and version.
    pub format: String,
    /// Architecture.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// Clock of the time stamps.
    pub clock: Option<String>,
    /// Whether the time stamps count nanoseconds.
    pub nanoseconds: bool,
    /// Host name.
    pub host: Option<String>,
    /// What is to be added to time stamps to have nanoseconds since 1970, and who says so; `None` where nobody does.
    pub wall_clock: Option<(i64, &'static str)>,
    /// More lines, as name and text.
    pub more: Vec<(String, String)>,
}

impl Head {
    /// Returns when the first event was, in nanoseconds since 1970 in UTC, where that is known.
    pub fn started_unix_ns(&self, report: &InfoReport) -> Option<u64> {
        let (offset_ns, _) = self.wall_clock.filter(|_| self.nanoseconds)?;
        report.start?.checked_add_signed(offset_ns)
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct InfoDocument<'a> {
    format: &'a str,
    arch: Option<&'a str>,
    kernel: Option<&'a str>,
    /// CPUs of the machine; those that events came from where the recording does not say.
    cpus: u32,
    start_ns: Option<u64>,
    duration_ns: Option<u64>,
    /// Host name, as the recording has it.
    host: Option<&'a str>,
    /// When the first event was, in nanoseconds since 1970 in UTC; null where the recording does not say it.
    started_unix_ns: Option<u64>,
    /// What says so: `clock_data`, `date` or `recorder`.
    time_source: Option<&'a str>,
    events: Value,
    vms: Vec<Vm<'a>>,
    /// Left out where only a host's recording was given.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    guests: &'a [GuestRow],
}

shape!(InfoDocument<'static> {
    format, arch, kernel, cpus, start_ns, duration_ns, host, started_unix_ns, time_source,
    events: columns().shape().list(), vms, guests?,
});

/// A VM in a document.
#[derive(Debug, Serialize)]
struct Vm<'a> {
    pid: Option<i32>,
    name: Option<&'a str>,
    vcpus: Vec<InfoVcpu>,
    /// Left out where it is false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    guessed: bool,
}

shape!(Vm<'static> { pid, name, vcpus, guessed? });

/// A vCPU in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InfoVcpu {
    /// Its number.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
}

shape!(InfoVcpu { id, tid });

/// How a guest's recording joins its host's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestRow {
    /// The recording, as it was given.
    pub input: String,
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// Name of its VM, if known.
    pub vm_name: Option<String>,
    /// Its CPUs, each with the host's thread that is that vCPU.
    pub vcpus: Vec<InfoVcpu>,
    /// How it is known whose guest it is: `listed`, `named`, `chosen` or `shown`.
    pub whose: &'static str,
    /// How its clock is known: `fitted`, `recorded` or `undecided`.
    pub clock: &'static str,
    /// What is to be added to the guest's time to make it the host's, in nanoseconds, in the middle of the guest's
    /// recording.
    pub offset_ns: i64,
    /// How much more the host's clock advances than the guest's, in parts of 10^9.
    pub drift_ppb: i64,
    /// By how much the offset can be wrong, as far as events say: half of what they allow.
    pub bound_ns: u64,
    /// Events between an entry of their vCPU and the exit behind it.
    pub inside: u64,
    /// Events that are not.
    pub outside: u64,
    /// Events of which the host's recording does not say where their vCPU was.
    pub uncovered: u64,
    /// How far all but one in a thousand of the events inside and outside are at most from their window.
    pub residual_ns: u64,
    /// Which part of the events that were tried would be inside by chance, at any offset.
    pub chance_share: Option<f64>,
}

shape!(GuestRow {
    input,
    vm_pid,
    vm_name,
    vcpus,
    whose,
    clock,
    offset_ns,
    drift_ppb,
    bound_ns,
    inside,
    outside,
    uncovered,
    residual_ns,
    chance_share,
});

impl GuestRow {
    /// Returns what has to be known before the guest's times are believed; `None` where events contradict nothing.
    pub fn warning(&self) -> Option<String> {
        let input = &self.input;
        if self.clock == "undecided" {
            return Some(format!(
                "{input}: its clock is as the recorder measured it, and its events do not say whether that is right."
            ));
        }
        let tried = self.inside + self.outside;
        (self.outside * 1000 > tried).then(|| {
            format!(
                "{input}: {} of {} lie up to {} outside of the time in which their vCPU was in the guest: its times \
                 are not of one steady clock, or events of the host are missing.",
                self.outside,
                words::plural(tried, "event"),
                duration::human(self.residual_ns)
            )
        })
    }

    /// Returns it in a sentence or two.
    fn text(&self) -> String {
        let mut out = format!("{}: ", self.input);
        let vm = match (&self.vm_name, self.vm_pid) {
            (Some(name), Some(pid)) => format!("VM {name}, process {pid}"),
            (Some(name), None) => format!("VM {name}"),
            (None, Some(pid)) => format!("the VM of process {pid}"),
            (None, None) => match self.vcpus.first() {
                Some(vcpu) => format!("the VM with vCPU thread {}", vcpu.tid),
                None => "a VM".to_owned(),
            },
        };
        let how = match self.whose {
            "listed" => "the host's recording lists it",
            "named" => "the recordings name each other",
            "chosen" => "--guest says so",
            _ => "its events show it",
        };
        let _ = write!(out, "guest of {vm} ({how}). ");
        let behind = duration::seconds(self.offset_ns.unsigned_abs());
        let side = if self.offset_ns < 0 {
            "ahead of"
        } else {
            "behind"
        };
        let _ = write!(out, "Its clock is {behind} s {side} the host's");
        if self.drift_ppb != 0 {
            let pace = if self.drift_ppb < 0 {
                "faster"
            } else {
                "slower"
            };
            let ppb = self.drift_ppb.unsigned_abs();
            let _ = write!(out, " and {ppb} ppb {pace}");
        }
        let give = duration::human(self.bound_ns.max(self.residual_ns));
        match self.clock {
            "undecided" => {
                out.push_str(", as the recorder measured it; its events do not decide. ")
            }
            "recorded" => {
                let _ = write!(
                    out,
                    ", as KVM set it; its events allow {give} more or less. "
                );
            }
            _ => {
                let _ = write!(out, ", give or take {give}. ");
            }
        }
        let tried = self.inside + self.outside;
        let _ = write!(
            out,
            "{} of {} lie between an entry of their vCPU and the exit behind it",
            self.inside,
            words::plural(tried, "event")
        );
        if let Some(chance) = self.chance_share {
            let _ = write!(out, "; by chance {} would", words::share::whole(chance));
        }
        out.push('.');
        if self.uncovered > 0 {
            let _ = write!(
                out,
                " {} more came while the host's recording does not say where their vCPU was.",
                self.uncovered
            );
        }
        out
    }
}

/// Returns how guests' recordings join it, for a page: names and texts, as [`facts()`] has them.
pub fn guest_facts(guests: &[GuestRow]) -> Vec<(String, String)> {
    let all = guests.iter();
    all.map(|guest| ("guest".to_owned(), guest.text()))
        .collect()
}

/// Returns the fields of a document.
pub fn document<'a>(
    head: &'a Head,
    report: &'a InfoReport,
    guests: &'a [GuestRow],
) -> InfoDocument<'a> {
    let span = report.start.zip(report.end);
    let vcpu = |vcpu: &model::Vcpu| InfoVcpu {
        id: vcpu.id,
        tid: vcpu.tid,
    };
    let vms = report.vms.iter().map(|vm| Vm {
        pid: vm.pid,
        name: vm.name.as_deref(),
        vcpus: vm.vcpus.iter().map(vcpu).collect(),
        guessed: vm.guessed,
    });
    InfoDocument {
        format: &head.format,
        arch: head.arch.as_deref(),
        kernel: head.kernel.as_deref(),
        cpus: head.cpus.unwrap_or(report.cpus_seen),
        start_ns: span.map(|(start, _)| start),
        duration_ns: span.map(|(start, end)| end - start),
        host: head.host.as_deref(),
        started_unix_ns: head.started_unix_ns(report),
        time_source: head
            .started_unix_ns(report)
            .and(head.wall_clock)
            .map(|(_, source)| source),
        events: columns().json(&report.events),
        vms: vms.collect(),
        guests,
    }
}

/// Columns of the counts of events.
pub(crate) fn columns() -> Table<'static, EventCount> {
    Table::new()
        .column("event", Unit::Text, |event: &EventCount| event.name.clone())
        .json_at("name")
        .page("event")
        .column("count", Unit::Count, |event| event.count)
        .page("count")
}

/// Returns events and counts as rows.
pub fn csv(report: &InfoReport) -> String {
    columns().csv(&report.events)
}

/// Returns what the recording is, in a few lines no wider than `width` where that can be.
pub fn summary(head: &Head, report: &InfoReport, width: usize) -> String {
    let mut out = String::new();
    for (name, text) in facts(head, report) {
        wrap(&mut out, &format!("{name:<9} "), &text, width);
    }
    out
}

/// Returns how guests' recordings join it, in lines like those of [`summary`].
pub fn guests(guests: &[GuestRow], width: usize) -> String {
    let mut out = String::new();
    for guest in guests {
        wrap(&mut out, &format!("{:<9} ", "guest"), &guest.text(), width);
    }
    out
}

/// Returns what the recording is, as names and texts.
pub fn facts(head: &Head, report: &InfoReport) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            out.push((name.to_owned(), text.to_owned()));
        }
    };
    line("format", &head.format);
    let machine: Vec<String> = [
        head.arch.clone(),
        head.kernel.as_ref().map(|k| format!("kernel {k}")),
        head.cpus.map(|c| words::plural(c, "CPU")),
    ]
    .into_iter()
    .flatten()
    .collect();
    line("machine", &machine.join(", "));
    for (name, text) in &head.more {
        line(name, text);
    }
    line("clock", head.clock.as_deref().unwrap_or(""));
    if let Some((start, end)) = report.start.zip(report.end) {
        let text = if head.nanoseconds {
            format!(
                "{} to {}, {}",
                duration::seconds(start),
                duration::seconds(end),
                duration::human(end - start)
            )
        } else {
            format!("{start} to {end}, {} ticks", end - start)
        };
        line("time", &text);
    }
    if let Some(unix_ns) = head.started_unix_ns(report) {
        line("began", &words::utc(unix_ns / 1_000_000_000));
    }
    let total: u64 = report
        .events
        .iter()
        .map(|e| e.count)
        .fold(0, u64::saturating_add);
    line(
        "events",
        &match report.cpus_seen {
            0 if total > 0 => format!("{total}, CPUs not recorded"),
            cpus => format!("{total} from {}", words::plural(cpus, "CPU")),
        },
    );
    for vm in &report.vms {
        let mut text = match (vm.pid, &vm.name) {
            (Some(pid), Some(name)) => format!("{name}, process {pid}"),
            (Some(pid), None) => format!("process {pid}"),
            (None, Some(name)) => format!("{name}, process not recorded"),
            (None, None) => "process not recorded".to_owned(),
        };
        if let Some(process) = vm.process.as_ref().filter(|_| vm.process != vm.name) {
            let _ = write!(text, " ({process})");
        }
        let vcpus: Vec<String> = vm
            .vcpus
            .iter()
            .map(|v| words::with_thread(&v.id.to_string(), v.tid))
            .collect();
        let _ = write!(text, "; vCPUs {}", vcpus.join(", "));
        if !vm.helpers.is_empty() {
            // An I/O thread for each disk, say: the first ones are the VMM's oldest.
            let helpers: Vec<String> = vm.helpers.iter().map(i32::to_string).collect();
            let _ = write!(
                text,
                "; with threads {}",
                words::list_first(&helpers, HELPERS)
            );
        }
        if vm.guessed {
            text.push_str(" (a guess, by the order of thread ids)");
        }
        line("VM", &text);
    }
    out
}

/// Returns the counts of events that happened, most frequent first; `limit` lines at most.
pub fn counts(report: &InfoReport, limit: usize) -> String {
    let mut out = String::new();
    let happened = report.events.iter().filter(|e| e.count > 0);
    for event in happened.clone().take(limit) {
        let _ = writeln!(out, "{:>12}  {}", event.count, crate::clean(&event.name));
    }
    let left = happened.count().saturating_sub(limit);
    if left > 0 {
        let kinds = if left == 1 { "kind" } else { "kinds" };
        let _ = writeln!(out, "{left:>12}  more {kinds}");
    }
    let never = report.events.iter().filter(|e| e.count == 0).count();
    if never > 0 && limit == usize::MAX {
        let kinds = if never == 1 { "kind" } else { "kinds" };
        let _ = writeln!(out, "{never:>12}  {kinds} of events that never happened");
    }
    out
}

/// Returns the counts of events that happened, for a page.
pub fn html(report: &InfoReport, frame: &Frame<'_>) -> String {
    let happened = report.events.iter().filter(|event| event.count > 0);
    columns().html(happened, frame)
}
