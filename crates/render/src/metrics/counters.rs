//! What counters of the processor counted of vCPUs, since the beginning.

use std::collections::HashMap;
use std::fmt::Write;

use analysis::{CounterSum, ThreadCounts};
use counts::{NamedCounts, RowOwner};

use super::labels;
use super::text::head;

/// A metric: its name, what it is, and the counts of the guest, of the host and of both, as far as it has them.
struct CounterMetric {
    name: &'static str,
    help: &'static str,
    of: fn(&ThreadCounts) -> [Option<CounterSum>; 3],
}

/// By whose execution, in the order of [`CounterMetric::of`].
const MODES: [&str; 3] = [",mode=\"guest\"", ",mode=\"host\"", ""];

const METRICS: [CounterMetric; 4] = [
    CounterMetric {
        name: "trapline_vcpu_cycles_total",
        help: "Cycles of the processor in a vCPU's guest, and on its thread in the host.",
        of: |counts| [counts.guest.cycles, counts.host.cycles, None],
    },
    CounterMetric {
        name: "trapline_vcpu_instructions_total",
        help: "Instructions that were completed in a vCPU's guest, and on its thread in the host.",
        of: |counts| [counts.guest.instructions, counts.host.instructions, None],
    },
    CounterMetric {
        name: "trapline_vcpu_cache_misses_total",
        help: "Accesses that no cache answered in a vCPU's guest, and on its thread in the host.",
        of: |counts| [counts.guest.cache_misses, counts.host.cache_misses, None],
    },
    CounterMetric {
        name: "trapline_vcpu_page_faults_total",
        help: "Page faults of a vCPU's thread in the host.",
        of: |counts| [None, None, counts.page_faults],
    },
];

/// What was counted of a vCPU up to the last text.
#[derive(Debug, Default)]
struct VcpuTotals {
    last: ThreadCounts,
    /// By metric and mode; `None` what was not counted.
    totals: [[Option<u64>; 3]; METRICS.len()],
}

impl VcpuTotals {
    /// Adds what was counted since the last time, scaled by how long it was counted meanwhile: a sum of such never
    /// falls, which a whole that is scaled anew each time would.
    fn add(&mut self, now: &ThreadCounts) {
        let since = now.since(&self.last);
        for (metric, totals) in METRICS.iter().zip(&mut self.totals) {
            for (sum, total) in (metric.of)(&since).into_iter().zip(totals) {
                if let Some(sum) = sum {
                    let more = sum.scaled().unwrap_or(0);
                    *total = Some(total.unwrap_or(0).saturating_add(more));
                }
            }
        }
        self.last = *now;
    }
}

/// What was counted of all vCPUs.
#[derive(Debug, Default)]
pub(super) struct CounterTotals {
    vcpus: HashMap<RowOwner, VcpuTotals>,
}

impl CounterTotals {
    /// Writes the metrics of what was counted since the beginning; nothing where it was not asked for.
    pub(super) fn text(&mut self, out: &mut String, named: &NamedCounts) {
        for one in &named.counters {
            let vcpu = self.vcpus.entry(one.whose.clone()).or_default();
            vcpu.add(&one.counts);
        }
        if self.vcpus.len() > named.counters.len() {
            let there: std::collections::HashSet<&RowOwner> =
                named.counters.iter().map(|one| &one.whose).collect();
            self.vcpus.retain(|whose, _| there.contains(whose));
        }
        for (at, metric) in METRICS.iter().enumerate() {
            let vcpus = named.counters.iter().filter_map(|one| {
                let totals = self.vcpus.get(&one.whose)?.totals.get(at)?;
                Some((&one.whose, totals))
            });
            let lines = vcpus.flat_map(|(whose, totals)| {
                let modes = MODES.iter().zip(totals);
                modes.filter_map(move |(mode, total)| Some((whose, mode, (*total)?)))
            });
            let mut lines = lines.peekable();
            if lines.peek().is_some() {
                head(out, metric.name, "counter", metric.help);
            }
            for (whose, mode, total) in lines {
                let _ = writeln!(out, "{}{{{}{mode}}} {total}", metric.name, labels(whose));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use counts::NamedCounters;
    use event::CounterMode;

    use super::*;

    fn text(totals: &mut CounterTotals, counts: ThreadCounts) -> String {
        let whose = RowOwner {
            vm: "web".to_owned(),
            vm_pid: 1,
            vm_name: Some("web".to_owned()),
            vcpu: Some(0),
            tid: Some(2),
        };
        let mut named = NamedCounts::default();
        named.counters.push(NamedCounters { whose, counts });
        let mut out = String::new();
        totals.text(&mut out, &named);
        out
    }

    #[test]
    fn each_reading_is_scaled_by_its_own_time() {
        let mut totals = CounterTotals::default();
        let mut counts = ThreadCounts::default();
        counts.add("cycles:G", CounterMode::Guest, 1_000, (10, 10));
        counts.add("page-faults", CounterMode::Both, 5, (10, 10));
        let cycles =
            "trapline_vcpu_cycles_total{vm=\"web\",pid=\"1\",vcpu=\"0\",tid=\"2\",mode=\"guest\"}";
        let first = text(&mut totals, counts);
        assert!(first.contains(&format!("{cycles} 1000\n")), "{first}");
        assert!(
            first.contains(
                "trapline_vcpu_page_faults_total{vm=\"web\",pid=\"1\",vcpu=\"0\",tid=\"2\"} 5\n"
            ),
            "{first}"
        );
        assert!(!first.contains("mode=\"host\""), "{first}");
        assert!(!first.contains("instructions"), "{first}");
        // Half of the time counted, then not at all, which is no cycle less.
        counts.add("cycles:G", CounterMode::Guest, 100, (10, 5));
        assert!(text(&mut totals, counts).contains(&format!("{cycles} 1200\n")));
        counts.add("cycles:G", CounterMode::Guest, 0, (10, 0));
        assert!(text(&mut totals, counts).contains(&format!("{cycles} 1200\n")));
        let mut out = String::new();
        totals.text(&mut out, &NamedCounts::default());
        assert_eq!((out.as_str(), totals.vcpus.len()), ("", 0));
    }
}
