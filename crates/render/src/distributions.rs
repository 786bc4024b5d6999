//! Values by size, as bcc's tools and `bpftrace` print them: between which bounds percentiles lie.

use std::fmt::Write;

use analysis::PrintedDistribution;
use serde::Serialize;
use serde_json::Value;

use crate::clean;
use crate::part::PicturePart;
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit};

/// A range of values in a document.
#[derive(Debug, Serialize)]
struct DistributionRange {
    /// The smallest value.
    from: u64,
    /// The smallest beyond it; null where there is no end.
    below: Option<u64>,
    count: u64,
}

shape!(DistributionRange { from, below, count });

/// Columns of distributions, a row each. Values are in the tool's own unit, of which `unit_ns` says how long it is.
pub(crate) fn columns() -> Table<'static, PrintedDistribution> {
    use Unit::{Count, Name, Nanoseconds, Nested, Number, Text};
    let from = |share: f64| move |one: &PrintedDistribution| Some(one.bucket_of(share)?.from);
    let below = |share: f64| move |one: &PrintedDistribution| one.bucket_of(share)?.below;
    Table::new()
        .column("tool", Text, |one: &PrintedDistribution| {
            one.printer().name()
        })
        .page("tool")
        .column("name", Name, |one| one.name.clone())
        .page("of")
        .column("unit_ns", Nanoseconds, PrintedDistribution::unit_ns)
        .column("count", Count, PrintedDistribution::count)
        .page("values")
        .column("p50_from", Number, from(0.5))
        .page("half from")
        .column("p50_below", Number, below(0.5))
        .page("below")
        .column("p90_from", Number, from(0.9))
        .column("p90_below", Number, below(0.9))
        .column("p99_from", Number, from(0.99))
        .page("99 % from")
        .column("p99_below", Number, below(0.99))
        .page("below")
        .column("max_from", Number, from(1.0))
        .page("longest from")
        .column("max_below", Number, below(1.0))
        .page("below")
        .column("ranges", Nested, |one| {
            let ranges = one.buckets.iter().map(|bucket| DistributionRange {
                from: bucket.from,
                below: bucket.below,
                count: bucket.count,
            });
            serde_json::to_value(ranges.collect::<Vec<_>>()).unwrap_or(Value::Null)
        })
        .within(Vec::<DistributionRange>::shape())
}

/// Returns a line for each distribution: how many values there are, and below which bounds they are.
pub fn text(all: &[PrintedDistribution]) -> String {
    let mut out = String::new();
    for one in all {
        let below = |share: f64| one.bucket_of(share).and_then(|bucket| bucket.below);
        let bounds = [("half", 0.5), ("99 %", 0.99), ("all", 1.0)];
        let bounds = bounds
            .iter()
            .filter_map(|(name, share)| Some(format!("{name} below {}", below(*share)?)));
        let mut parts = vec![words::plural(one.count(), "value")];
        parts.extend(bounds);
        let _ = writeln!(
            out,
            "{} {}: {}",
            one.printer().name(),
            clean(&one.name),
            parts.join(", ")
        );
    }
    out
}

/// Distributions as a part of a report.
pub(crate) const PART: PicturePart = PicturePart {
    name: "distributions",
    heading: "Distributions",
    caption: "values by size, as bcc's tools and bpftrace printed them",
    nothing: "",
    document: |picture| {
        (!picture.distributions.is_empty()).then(|| columns().json(&picture.distributions))
    },
    shape: || columns().shape().list(),
    html: |picture, frame| columns().html(&picture.distributions, frame),
    text: |picture, _| text(&picture.distributions),
};
