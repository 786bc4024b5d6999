//! What CPUs did, of `mpstat` that somebody pasted.

use std::collections::BTreeMap;
use std::fmt::Write;

use analysis::{CpuUsageRow, Picture};
use serde_json::Value;

use crate::html::Frame;
use crate::part::PicturePart;
use crate::schema::HasShape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, clean};

/// Interrupts of a CPU that are named.
const NAMED: usize = 3;

/// Columns of CPUs.
pub(crate) fn columns() -> Table<'static, CpuUsageRow> {
    use Unit::{Nested, Number, Share};
    let share = |name: &'static str| move |row: &CpuUsageRow| row.shares.get(name).copied();
    Table::new()
        .column("cpu", Number, |row: &CpuUsageRow| row.cpu)
        .heading("CPU", 3)
        .page("CPU (none: all)")
        .column("usr", Share, share("usr"))
        .heading("usr", 5)
        .gap(" ")
        .where_known()
        .page("usr")
        .column("nice", Share, share("nice"))
        .heading("nice", 5)
        .gap(" ")
        .where_known()
        .page("nice")
        .column("sys", Share, share("sys"))
        .heading("sys", 5)
        .gap(" ")
        .where_known()
        .page("sys")
        .column("iowait", Share, share("iowait"))
        .heading("iowait", 6)
        .gap(" ")
        .where_known()
        .page("iowait")
        .column("irq", Share, share("irq"))
        .heading("irq", 5)
        .gap(" ")
        .where_known()
        .page("irq")
        .column("soft", Share, share("soft"))
        .heading("soft", 5)
        .gap(" ")
        .where_known()
        .page("soft")
        .column("steal", Share, share("steal"))
        .heading("steal", 5)
        .gap(" ")
        .where_known()
        .page("steal")
        .column("guest", Share, share("guest"))
        .heading("guest", 5)
        .gap(" ")
        .where_known()
        .page("guest")
        .column("gnice", Share, share("gnice"))
        .heading("gnice", 5)
        .gap(" ")
        .where_known()
        .page("gnice")
        .column("idle", Share, share("idle"))
        .heading("idle", 5)
        .gap(" ")
        .where_known()
        .page("idle")
        .column("interrupts_per_s", Unit::Value, |row| row.interrupts_per_s)
        .heading("intr/s", 8)
        .gap(" ")
        .where_known()
        .page("interrupts by second")
        .column("rates_per_s", Nested, |row| {
            Value::from_iter(row.rates_per_s.clone())
        })
        .within(BTreeMap::<String, f64>::shape())
}

/// Returns the table for a terminal, with what a CPU was interrupted by most.
pub fn table(rows: &[CpuUsageRow], layout: Layout) -> String {
    let mut out = String::from("cpus: what they did, as mpstat counted it\n");
    out.push_str(&columns().view(Views::TERMINAL).text(rows, layout));
    for row in rows {
        let Some(cpu) = row.cpu else {
            continue;
        };
        let mut rates: Vec<(&String, f64)> = row
            .rates_per_s
            .iter()
            .map(|(name, rate)| (name, *rate))
            .collect();
        rates.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = rates
            .iter()
            .take(NAMED)
            .map(|(name, rate)| format!("{} {rate:.0}", clean(name)));
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            let _ = writeln!(out, "CPU {cpu}, by second: {}", named.join(", "));
        }
    }
    out
}

/// What CPUs did as a part of a report.
pub(crate) const PART: PicturePart = PicturePart {
    name: "cpu_usage",
    heading: "What the machine's CPUs did",
    caption: "shares of time and interrupts by CPU, as mpstat counts them",
    nothing: "",
    document: |picture| (!picture.cpu_usage.is_empty()).then(|| columns().json(&picture.cpu_usage)),
    shape: || columns().shape().list(),
    html,
    text: |picture, layout| match picture.cpu_usage.is_empty() {
        true => String::new(),
        false => table(&picture.cpu_usage, layout),
    },
};

fn html(picture: &Picture, frame: &Frame<'_>) -> String {
    columns().html(&picture.cpu_usage, frame)
}
