//! Interrupts that vCPUs send each other (IPIs), by how far the host CPUs of the two are from each other.

use std::fmt::Write;

use analysis::{IpiDistance, IpiDistanceRow, IpisReport, Stats};
use cpuset::NodeDistance;
use serde::Serialize;
use serde_json::Value;

use crate::amounts::of_any;
use crate::html::Frame;
use crate::table::{Table, Unit, Views};
use crate::{Layout, quality, shape};

/// What to do where the host's NUMA nodes are not known.
const NO_NODES: &str = "The NUMA nodes of the host are not recorded. 'trapline facts --format json > facts.json' on \
                        the host writes them down, and --facts facts.json reads them.";

/// Returns what a distance is called.
fn called(distance: IpiDistance) -> String {
    match distance {
        IpiDistance::SameCpu => "same CPU".to_owned(),
        IpiDistance::Nodes(NodeDistance::Same) => "same NUMA node".to_owned(),
        IpiDistance::Nodes(NodeDistance::Other(Some(far))) => {
            format!("another NUMA node, distance {far}")
        }
        IpiDistance::Nodes(NodeDistance::Other(None)) => {
            "another node, distance not recorded".to_owned()
        }
        IpiDistance::NotRecorded => "other CPUs, NUMA nodes not recorded".to_owned(),
    }
}

/// Returns the word for a distance that programs read.
fn kind(distance: IpiDistance) -> &'static str {
    match distance {
        IpiDistance::SameCpu => "same_cpu",
        IpiDistance::Nodes(NodeDistance::Same) => "same_node",
        IpiDistance::Nodes(NodeDistance::Other(_)) => "other_node",
        IpiDistance::NotRecorded => "not_recorded",
    }
}

/// Returns the distance between two nodes, where it is known.
fn node_distance(distance: IpiDistance) -> Option<u32> {
    match distance {
        IpiDistance::Nodes(NodeDistance::Other(far)) => far,
        _ => None,
    }
}

/// Columns of the table.
pub(crate) fn columns() -> Table<'static, IpiDistanceRow> {
    use Unit::{Count, Nanoseconds, Number, Text};
    let times = |of: fn(&Stats) -> u64| move |row: &IpiDistanceRow| of_any(&row.times, of);
    Table::new()
        .column("apart", Text, |row: &IpiDistanceRow| kind(row.distance))
        .column("node_distance", Number, |row| node_distance(row.distance))
        .column("called", Text, |row| called(row.distance))
        .text_only()
        .left("from sender to target", 35)
        .page("from sender to target")
        .column("count", Count, |row| row.times.count())
        .heading("IPIs", 9)
        .page("IPIs")
        .column("halted", Count, |row| row.halted)
        .heading("halted", 9)
        .page("target halted")
        .column("p50_ns", Nanoseconds, times(|all| all.percentile(0.5)))
        .heading("p50", 9)
        .page("p50")
        .column("p99_ns", Nanoseconds, times(|all| all.percentile(0.99)))
        .heading("p99", 9)
        .page("p99")
        .column("max_ns", Nanoseconds, times(Stats::max))
        .heading("max", 9)
        .page("max")
}

/// Returns the table for a terminal; nothing where no IPI was recorded.
pub fn table(report: &IpisReport, layout: Layout) -> String {
    let mut out = String::new();
    if report.by_distance.is_empty() {
        return out;
    }
    let columns = columns();
    let text = columns
        .view(Views::TERMINAL)
        .text(&report.by_distance, layout);
    let _ = write!(
        out,
        "ipis: from sending to the target's entry, by how far their host CPUs are apart\n{text}"
    );
    if !report.nodes {
        quality::wrap(&mut out, "", NO_NODES, layout.width);
    }
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct IpisDocument {
    /// Whether the NUMA nodes of the host are known, by its facts or by the recording.
    numa_nodes_known: bool,
    by_distance: Value,
}

shape!(IpisDocument {
    numa_nodes_known,
    by_distance: columns().shape().list()
});

/// Returns the fields of a document; `None` where no IPI was recorded.
pub fn document(report: &IpisReport) -> Option<IpisDocument> {
    (!report.by_distance.is_empty()).then(|| IpisDocument {
        numa_nodes_known: report.nodes,
        by_distance: columns().json(&report.by_distance),
    })
}

/// Returns the table for a page; nothing where no IPI was recorded.
pub(crate) fn html(report: &IpisReport, frame: &Frame<'_>) -> String {
    if report.by_distance.is_empty() {
        return String::new();
    }
    let name = format!("{}-between-vcpus", frame.name);
    let frame = Frame {
        name: &name,
        caption: "interrupts between vCPUs, from sending to the target's entry, by how far the host CPUs of the two \
                  are apart",
        events: None,
        ..*frame
    };
    columns().html(&report.by_distance, &frame)
}
