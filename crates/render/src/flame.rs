//! Profiles: threads and functions by what they weigh.

use analysis::{ProfileOf, ProfileReport, ProfileRow, ProfileUnit, ProfileVm, SplicedVcpu, VcpuBy};
use doubts::Doubts;
use serde::Serialize;
use serde_json::Value;
use stacks::{FrameOwner, FunctionWeight, Weight};
use words::{counted, plural, share};

use crate::row_doubts::{RowScope, with_doubts};
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{ClockUnit, Layout, amounts, clean, speedscope};

/// A row, and what all that is shown weighs.
pub(crate) struct Row<'r> {
    row: &'r ProfileRow,
    whole: Weight,
    of: ProfileOf,
    kvm_known: bool,
}

impl Row<'_> {
    /// Whether the row has time without a CPU.
    fn has_waits(&self) -> bool {
        matches!(self.of, ProfileOf::OffCpu | ProfileOf::Both)
    }

    /// Whether it has time with one.
    fn has_parts(&self) -> bool {
        self.of != ProfileOf::OffCpu
    }
}

/// Threads where waits are shown.
const WAITS: Views = Views::own(0);
/// Threads where time on and off CPUs is shown.
const BOTH: Views = Views::own(1);

/// Returns a part of all that is shown; `None` where nothing is.
pub(crate) fn of(part: Weight, whole: Weight) -> Option<f64> {
    amounts::share(part.amount, whole.amount)
}

/// Columns of the table of threads.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Name, Nanoseconds, Number, Share};
    let all = Views::TERMINAL | WAITS | BOTH;
    Table::new()
        .column("vm_pid", Number, |r: &Row<'_>| r.row.vm_pid)
        .heading("VM", 7)
        .views(all)
        .after("tid")
        .column("comm", Name, |r| r.row.comm.as_str())
        .left("THREAD", 16)
        .views(all)
        .column("tid", Number, |r| r.row.tid)
        .heading("TID", 7)
        .views(all)
        .column("samples", Count, |r| r.row.all.samples)
        .heading("samples", 8)
        .column("share", Share, |r| of(r.row.all, r.whole))
        .heading("share%", 7)
        .views(all)
        .only_if(Row::has_parts, |table| {
            table
                .column("guest", Share, |r| of(r.row.guest, r.whole))
                .heading("guest%", 7)
                .column("kvm", Share, |r| {
                    of(r.row.kvm, r.whole).filter(|_| r.kvm_known)
                })
                .heading("kvm%", 7)
                .column("kernel", Share, |r| of(r.row.kernel, r.whole))
                .heading("kernel%", 8)
                .column("user", Share, |r| of(r.row.user, r.whole))
                .heading("user%", 7)
        })
        .only_if(
            |row| row.of == ProfileOf::Both,
            |table| {
                table
                    .column("on_cpu_ns", Nanoseconds, |r| {
                        r.row.all.amount - off_cpu_ns(r.row)
                    })
                    .heading("on CPU", 10)
                    .views(BOTH)
                    .after("samples")
            },
        )
        .only_if(Row::has_waits, |table| {
            table
                .column("off_cpu_ns", Nanoseconds, |r| off_cpu_ns(r.row))
                .heading("off CPU", 10)
                .views(WAITS | BOTH)
                .after("on_cpu_ns")
                .column("sleeping_ns", Nanoseconds, |r| r.row.asleep.amount)
                .heading("sleeping", 10)
                .views(WAITS)
                .column("uninterruptible_ns", Nanoseconds, |r| {
                    r.row.uninterruptible.amount
                })
                .heading("D state", 10)
                .views(WAITS)
                .column("runnable_ns", Nanoseconds, |r| r.row.runnable.amount)
                .heading("runnable", 10)
                .views(WAITS | BOTH)
        })
}

/// How long a thread was without a CPU.
fn off_cpu_ns(row: &ProfileRow) -> u64 {
    [row.asleep, row.uninterruptible, row.runnable]
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.amount))
        .min(row.all.amount)
}

fn rows(report: &ProfileReport) -> impl Iterator<Item = Row<'_>> {
    let whole = report.shown();
    let of = report.of;
    let rows = report.rows.iter();
    let kvm_known = report.kvm_known;
    rows.map(move |row| Row {
        row,
        whole,
        of,
        kvm_known,
    })
}

/// A VM, and what all that is shown weighs.
pub(crate) struct OfVm {
    vm: ProfileVm,
    whole: Weight,
    kvm_known: bool,
}

/// Columns of the table of VMs.
pub(crate) fn vms<'r>() -> Table<'r, OfVm> {
    use Unit::{Count, Number, Share};
    Table::new()
        .column("vm_pid", Number, |r: &OfVm| r.vm.vm_pid)
        .heading("VM", 8)
        .column("samples", Count, |r| r.vm.all.samples)
        .heading("samples", 9)
        .column("share", Share, |r| of(r.vm.all, r.whole))
        .heading("share%", 8)
        .column("guest", Share, |r| of(r.vm.guest, r.whole))
        .heading("guest%", 8)
        .column("kvm", Share, |r| {
            of(r.vm.kvm, r.whole).filter(|_| r.kvm_known)
        })
        .heading("kvm%", 8)
        .column("vmm", Share, |r| {
            of(r.vm.vmm, r.whole).filter(|_| r.kvm_known)
        })
        .heading("vmm%", 8)
        .column("back_end", Share, |r| of(r.vm.back_end, r.whole))
        .heading("back end%", 10)
}

/// VMs, where it was sampled what their threads did.
fn of_vms(report: &ProfileReport) -> Vec<OfVm> {
    let whole = report.shown();
    if report.of != ProfileOf::OnCpu {
        return Vec::new();
    }
    let vms = report.vms().into_iter();
    let kvm_known = report.kvm_known;
    vms.map(|vm| OfVm {
        vm,
        whole,
        kvm_known,
    })
    .collect()
}

/// A function, what all that is shown weighs, and whether it is known how many samples there are.
pub(crate) struct Heavy<'r> {
    pub(crate) function: &'r FunctionWeight,
    pub(crate) whole: Weight,
    pub(crate) counted: bool,
}

impl Heavy<'_> {
    fn samples(&self, of: Weight) -> Option<u64> {
        self.counted.then_some(of.samples)
    }
}

fn heavy<'r>(
    functions: &'r [FunctionWeight],
    whole: Weight,
) -> impl Iterator<Item = Heavy<'r>> + use<'r> {
    functions.iter().map(move |function| Heavy {
        function,
        whole,
        counted: true,
    })
}

/// Columns of the table of functions.
pub(crate) fn functions<'r>() -> Table<'r, Heavy<'r>> {
    use Unit::{Count, Share, Text};
    Table::new()
        .column("function", Text, |r: &Heavy<'_>| &*r.function.name.text)
        .left("FUNCTION", 50)
        .column("part", Text, |r| part(r.function.name.part))
        .heading("of", 8)
        .column("self_samples", Count, |r| r.samples(r.function.own))
        .column("self", Share, |r| of(r.function.own, r.whole))
        .heading("self%", 9)
        .column("total_samples", Count, |r| r.samples(r.function.total))
        .column("total", Share, |r| of(r.function.total, r.whole))
        .heading("total%", 9)
}

pub(crate) fn part(part: FrameOwner) -> &'static str {
    match part {
        FrameOwner::Group => "",
        FrameOwner::Kernel => "kernel",
        FrameOwner::Kvm => "kvm",
        FrameOwner::User => "user",
        FrameOwner::Vmm => "vmm",
        FrameOwner::Guest => "guest",
        FrameOwner::Unknown => "unknown",
    }
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct FlameDocument<'r> {
    /// The event that was sampled.
    event: Option<&'r str>,
    /// All samples that the recording has of it.
    samples: u64,
    idle_samples: u64,
    left_out_samples: u64,
    unresolved_samples: u64,
    /// What is shown: `on_cpu`, `off_cpu`, `both` or `exits`.
    of: &'static str,
    /// What weights count: nanoseconds, or events.
    unit: &'static str,
    /// All that is shown, and what is left out, in that unit.
    total: u64,
    idle: u64,
    rows: Value,
    vms: Value,
    spliced: Value,
    functions: Value,
}

shape!(FlameDocument<'static> {
    event, samples, idle_samples, left_out_samples, unresolved_samples, of, unit, total, idle,
    rows: columns_in_documents(&Doubts::default()).shape().list(),
    vms: vms().shape().list(), spliced: spliced().shape().list(), functions: functions().shape().list(),
});

fn unit(report: &ProfileReport) -> &'static str {
    match report.unit {
        ProfileUnit::Nanoseconds => "nanoseconds",
        ProfileUnit::Ticks => "ticks",
        ProfileUnit::Events => "events",
    }
}

fn shown_as(report: &ProfileReport) -> &'static str {
    match report.of {
        ProfileOf::OnCpu => "on_cpu",
        ProfileOf::OffCpu => "off_cpu",
        ProfileOf::Both => "both",
        ProfileOf::Exits => "exits",
    }
}

/// Columns in documents: behind the others the doubts that are about a thread and not about all.
pub(crate) fn columns_in_documents<'r>(doubts: &'r Doubts) -> Table<'r, Row<'r>> {
    with_doubts(columns(), doubts, |row| RowScope::of_thread(row.row.tid))
}

/// Returns the fields of a document. Rows have the ids of those of the doubts that are about them.
pub fn document<'r>(report: &'r ProfileReport, doubts: &Doubts) -> FlameDocument<'r> {
    let whole = report.shown();
    let all = report.functions();
    FlameDocument {
        event: report.event.as_deref(),
        samples: report.samples.samples,
        idle_samples: report.idle.samples,
        left_out_samples: report.left_out.samples,
        unresolved_samples: report.unresolved.samples,
        of: shown_as(report),
        unit: unit(report),
        total: whole.amount,
        idle: report.idle.amount,
        rows: columns_in_documents(doubts).json(rows(report)),
        vms: vms().json(of_vms(report)),
        spliced: spliced().json(of_guests(report)),
        functions: functions().json(heavy(&all, whole)),
    }
}

/// Returns the rows of threads as CSV.
pub fn csv(report: &ProfileReport, clock: ClockUnit) -> String {
    columns().counted_in(clock).csv(rows(report))
}

/// Returns the tables for a terminal: threads, VMs, and functions by what they and those they called weigh.
pub fn table(report: &ProfileReport, layout: Layout) -> String {
    let whole = report.shown();
    let mut text = "flame: ".to_owned();
    for line in headline(report, layout) {
        text.push_str(&line);
        text.push('\n');
    }
    let view = match report.of {
        ProfileOf::OnCpu | ProfileOf::Exits => Views::TERMINAL,
        ProfileOf::OffCpu => WAITS,
        ProfileOf::Both => BOTH,
    };
    text.push_str(&columns().view(view).text(rows(report), layout));
    let of_vms = of_vms(report);
    if !of_vms.is_empty() {
        text.push('\n');
        text.push_str(&vms().view(Views::TERMINAL).text(of_vms, layout));
    }
    if !report.spliced.is_empty() {
        text.push_str("\nStacks recorded inside the guest, in its place: samples of the host there and\nof the guest, \
            and by how much a share of them may be off.\n");
        text.push_str(
            &spliced()
                .view(Views::TERMINAL)
                .text(of_guests(report), layout),
        );
    }
    let all = report.functions();
    if !all.is_empty() {
        let heavy = heavy(&all, whole);
        text.push('\n');
        text.push_str(&functions().view(Views::TERMINAL).text(heavy, layout));
    }
    text
}

/// A vCPU in whose place stacks of its guest stand.
pub(crate) struct OfGuest<'r> {
    one: &'r SplicedVcpu,
    whole: Weight,
}

/// Columns of the table of guests' stacks.
pub(crate) fn spliced<'r>() -> Table<'r, OfGuest<'r>> {
    use Unit::{Count, Number, Share, Text};
    Table::new()
        .column("vm_pid", Number, |r: &OfGuest<'_>| r.one.vcpu.vm_pid)
        .heading("VM", 8)
        .column("vcpu", Number, |r| r.one.vcpu.vcpu)
        .heading("vCPU", 6)
        .column("tid", Number, |r| r.one.vcpu.tid)
        .heading("TID", 8)
        .column("known_by", Text, |r| match r.one.vcpu.by {
            VcpuBy::Events => "events",
            VcpuBy::Name => "name",
            VcpuBy::Order => "order (a guess)",
        })
        .heading("known by", 16)
        .column("host_samples", Count, |r| r.one.host.samples)
        .heading("host's", 9)
        .column("guest", Share, |r| of(r.one.host, r.whole))
        .heading("guest%", 8)
        .column("guest_samples", Count, |r| r.one.guest.samples)
        .heading("guest's", 9)
        .column("error", Share, |r| r.one.error())
        .heading("+-%", 7)
}

fn of_guests(report: &ProfileReport) -> impl Iterator<Item = OfGuest<'_>> {
    let whole = report.shown();
    report.spliced.iter().map(move |one| OfGuest { one, whole })
}

/// Returns what is shown, and what is left out, in a line each.
pub fn headline(report: &ProfileReport, layout: Layout) -> Vec<String> {
    let event = clean(report.event.as_deref().unwrap_or("no event"));
    let shown = match report.of {
        ProfileOf::OnCpu => format!("{} of {event}", plural(report.samples.samples, "sample")),
        ProfileOf::OffCpu => format!(
            "{} off CPU, {}",
            layout.time(report.shown().amount),
            counted(report.switches, "switch", "switches")
        ),
        ProfileOf::Both => format!(
            "{} on and off CPU, {}, {} of {event}",
            layout.time(report.shown().amount),
            counted(report.switches, "switch", "switches"),
            plural(report.samples.samples, "sample")
        ),
        ProfileOf::Exits => format!(
            "where guests exited: the instruction pointers of {}, no samples",
            plural(report.samples.samples, "exit")
        ),
    };
    let idle = match report.unit {
        ProfileUnit::Nanoseconds | ProfileUnit::Ticks if report.of != ProfileOf::OnCpu => {
            layout.time(report.idle.amount)
        }
        _ => plural(report.idle.samples, "sample"),
    };
    let all = report.shown().amount.saturating_add(report.idle.amount);
    let mut lines = vec![shown];
    // By switches, idle CPUs have no time: their samples weigh nothing then.
    if report.idle.amount == 0 {
        lines.extend(accounted(report));
        return lines;
    }
    let share = share::tenths(report.idle.amount as f64 / all.max(1) as f64);
    let left_out = match report.with_idle {
        true => format!("with {idle} of idle CPUs and guests"),
        false => format!("left out: {idle} of idle CPUs and guests, {share} of the time"),
    };
    lines.push(left_out);
    lines.extend(accounted(report));
    lines
}

/// Returns how many of the samples are accounted for, where samples are shown.
fn accounted(report: &ProfileReport) -> Option<String> {
    let all = report.samples.samples;
    (report.of == ProfileOf::OnCpu && all > 0).then(|| {
        format!(
            "accounted: {}",
            // Cut and not rounded: less than all is never called all.
            share::tenths((report.accounted() as f64 / all as f64 * 1000.0).floor() / 1000.0)
        )
    })
}

/// Returns whether weights are nanoseconds.
pub fn is_time(report: &ProfileReport) -> bool {
    report.unit == ProfileUnit::Nanoseconds
}

/// Returns what the weights are of: the event that was sampled, or what was looked at.
pub fn event(report: &ProfileReport) -> &str {
    report.event.as_deref().unwrap_or(shown_as(report))
}

/// Returns the stacks as a file of speedscope's. `name` is the recording's.
///
/// # Errors
///
/// As serde_json.
pub fn speedscope(report: &ProfileReport, name: &str) -> serde_json::Result<String> {
    let event = event(report);
    speedscope::sampled(&report.stacks, report.shown(), event, is_time(report), name)
}
