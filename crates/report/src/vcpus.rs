//! Where the time went, of each VM and each vCPU.

use analysis::VcpuRow;
use model::{State, Times};
use render::vcpus;

use crate::Recording;
use crate::bars::{self, Bar};
use crate::out::{PageWriter, TableLabel};

/// Bars that are drawn at most; the table has more.
const BARS: usize = 80;

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let report = recording.picture.vcpus.as_ref();
    let Some(report) = report.filter(|report| !report.rows.is_empty()) else {
        out.nothing(match recording.is_printed() {
            true => "Printed tables do not say what vCPUs did.",
            false if recording.is_filtered() => "No vCPU is seen in what passes the filters.",
            false => {
                "No vCPU was seen: no exit or entry shows which threads are vCPUs and what they did."
            }
        });
        return;
    };
    let bars = bars(&report.rows);
    let more = bars.len().saturating_sub(BARS);
    let shown = bars.get(..BARS.min(bars.len())).unwrap_or_default();
    out.markup(&bars::figure(
        "Time of each VM and vCPU by state. A vCPU is in one state at every instant, so the parts of a bar add up to \
         its observed time.",
        shown,
    ));
    if more > 0 {
        out.paragraph(&format!(
            "{} more are not drawn; the table has them.",
            words::plural(more as u64, "bar")
        ));
    }
    let command = recording.invocation.command("vcpus", "--wide");
    let label = |name, caption| TableLabel {
        name,
        caption,
        command: &command,
    };
    let table = label("vcpus", "time of each vCPU by state");
    out.table(recording, table, |frame| vcpus::html(report, frame));
    let table = label(
        "vcpus-guest",
        "what the guest of each vCPU did, as its own recording says",
    );
    out.table(recording, table, |frame| vcpus::guest_html(report, frame));
    let table = label("vcpus-behind", "behind whom vCPUs waited for a CPU");
    out.table(recording, table, |frame| vcpus::behind_html(report, frame));
    let table = label("vcpus-user", "what vCPUs were in the VMM for");
    out.table(recording, table, |frame| vcpus::user_html(report, frame));
}

/// Returns bars of so many vCPUs at most, those first that had the largest part of their time neither in the guest nor
/// halted: in KVM, the VMM, polling, or waiting for a CPU.
pub(crate) fn worst(rows: &[VcpuRow], most: usize) -> Vec<Bar> {
    let lost = |times: &Times| -> f64 {
        let states = [
            State::Kernel,
            State::KernelBlocked,
            State::User,
            State::UserBlocked,
            State::Poll,
            State::Runnable,
        ];
        let ns: u64 = states
            .iter()
            .map(|state| times.get(*state))
            .fold(0, u64::saturating_add);
        ns as f64 / times.total().max(1) as f64
    };
    let alone = rows.len() == 1;
    let mut single: Vec<&VcpuRow> = rows.iter().filter(|row| row.others == 0).collect();
    single.sort_by(|a, b| lost(&b.times).total_cmp(&lost(&a.times)));
    let several = rows.iter().any(|row| row.vm != rows[0].vm);
    let single = single.into_iter().take(most);
    let bars = single.map(|row| Bar {
        name: match several {
            true => format!("{} {}", row.vm, words::vcpu(None, row.vcpu)),
            false if alone => row.called.clone(),
            false => words::vcpu(None, row.vcpu),
        },
        times: row.times,
        sum: false,
    });
    bars.collect()
}

/// Returns a bar for each VM, if there are several or it has several vCPUs, and one for each of its vCPUs.
fn bars(rows: &[VcpuRow]) -> Vec<Bar> {
    let mut bars = Vec::new();
    let vms = rows.chunk_by(|one, other| one.vm == other.vm && other.others == 0);
    for vm in vms {
        let alone = vm.len() == 1;
        if let [first, _, ..] = vm {
            let mut times = Times::default();
            for row in vm {
                times.merge(&row.times);
            }
            let name = match first.vm.as_str() {
                "" => "all vCPUs",
                name => name,
            };
            bars.push(Bar {
                name: name.to_owned(),
                times,
                sum: true,
            });
        }
        bars.extend(vm.iter().map(|row| Bar {
            name: match row.others {
                0 if alone => row.called.clone(),
                0 => words::vcpu(None, row.vcpu),
                others => format!("{others} others"),
            },
            times: row.times,
            sum: false,
        }));
    }
    bars
}
