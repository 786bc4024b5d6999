//! What an exporter says of itself: of its process that counts, and of the one that speaks HTTP.

use std::collections::BTreeSet;
use std::fmt::Write;

use counts::NamedCounts;

use super::text::{head, label, seconds};

/// How the process fares that counts.
#[derive(Debug, Clone, Default)]
pub struct CountingHealth {
    /// The program's version.
    pub version: String,
    /// How often it was counted.
    pub counted: u64,
    /// How long that took in all, in nanoseconds.
    pub counting_ns: u64,
    /// How old the last count is, in nanoseconds.
    pub age_ns: u64,
    /// How often the process that speaks HTTP was started again.
    pub restarts: u64,
}

/// How the process fares that speaks HTTP.
#[derive(Debug, Clone, Default)]
pub struct ServingHealth {
    /// How many requests were answered with each status.
    pub requests: Vec<(u16, u64)>,
    /// Connections that were refused, since too many were open.
    pub refused: u64,
    /// Connections that were closed to make room for others.
    pub displaced: u64,
    /// Connections that are open.
    pub open: usize,
}

fn one(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    head(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

impl CountingHealth {
    /// Returns the text, of what was counted last.
    pub fn text(&self, named: &NamedCounts) -> String {
        let mut out = String::new();
        let name = "trapline_build_info";
        let help = "The version of trapline, and whether BPF programs count or events are counted.";
        head(&mut out, name, "gauge", help);
        let (version, way) = (label(&self.version), named.way.name());
        let _ = writeln!(
            out,
            "{name}{{version=\"{version}\",counted_by=\"{way}\"}} 1"
        );
        let vms: BTreeSet<i32> = named.vcpus.iter().map(|one| one.whose.vm_pid).collect();
        one(
            &mut out,
            "trapline_vms",
            "gauge",
            "VMs that are followed.",
            vms.len(),
        );
        let vcpus = named.vcpus.len();
        one(
            &mut out,
            "trapline_vcpus",
            "gauge",
            "vCPUs that are followed.",
            vcpus,
        );
        let lost = named.dropped.events + named.dropped.withheld;
        let help = "Events that the kernel did not hand out, so that no other metric has them.";
        one(
            &mut out,
            "trapline_lost_events_total",
            "counter",
            help,
            lost,
        );
        let name = "trapline_exporter_collect_duration_seconds";
        head(&mut out, name, "summary", "How long counting took.");
        let _ = writeln!(out, "{name}_sum {}", seconds(self.counting_ns));
        let _ = writeln!(out, "{name}_count {}", self.counted);
        let name = "trapline_exporter_last_collect_age_seconds";
        one(
            &mut out,
            name,
            "gauge",
            "How old the last count is.",
            seconds(self.age_ns),
        );
        let name = "trapline_exporter_restarts_total";
        let help = "How often the process that answers requests was started again.";
        one(&mut out, name, "counter", help, self.restarts);
        out
    }
}

impl ServingHealth {
    /// Returns the text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let name = "trapline_exporter_requests_total";
        head(
            &mut out,
            name,
            "counter",
            "Requests by the status of their answer.",
        );
        for (code, count) in &self.requests {
            let _ = writeln!(out, "{name}{{code=\"{code}\"}} {count}");
        }
        let name = "trapline_exporter_connections_refused_total";
        let help = "Connections that were refused, since too many were open.";
        one(&mut out, name, "counter", help, self.refused);
        let name = "trapline_exporter_connections_displaced_total";
        let help = "Connections that were closed to make room for others.";
        one(&mut out, name, "counter", help, self.displaced);
        let name = "trapline_exporter_connections";
        one(
            &mut out,
            name,
            "gauge",
            "Connections that are open.",
            self.open,
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_head_and_its_values() {
        let counting = CountingHealth {
            version: "1.0".to_owned(),
            counted: 4,
            counting_ns: 2_500_000_000,
            age_ns: 50_000_000,
            restarts: 1,
        };
        let serving = ServingHealth {
            requests: vec![(200, 7), (503, 0)],
            refused: 2,
            displaced: 3,
            open: 5,
        };
        let mut named = NamedCounts::default();
        named.dropped.events = 8;
        named.dropped.withheld = 1;
        let text = counting.text(&named) + &serving.text();
        for line in [
            "trapline_build_info{version=\"1.0\",counted_by=\"bpf\"} 1",
            "trapline_vms 0",
            "trapline_lost_events_total 9",
            "trapline_exporter_collect_duration_seconds_sum 2.5",
            "trapline_exporter_collect_duration_seconds_count 4",
            "trapline_exporter_last_collect_age_seconds 0.05",
            "trapline_exporter_restarts_total 1",
            "trapline_exporter_requests_total{code=\"200\"} 7",
            "trapline_exporter_connections 5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        let names = |word: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(word));
            let names = lines.filter_map(|line| line.split(' ').next());
            names.map(str::to_owned).collect()
        };
        let helped = names("# HELP ");
        assert_eq!(helped, names("# TYPE "));
        assert_eq!(helped.iter().collect::<BTreeSet<_>>().len(), helped.len());
    }
}
