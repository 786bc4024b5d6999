//! Counts that `perf stat` printed, as rates and ratios.

use std::collections::HashMap;

use crate::Picture;

/// Names under which `perf stat` counts switches of tasks: the software event, its alias, the tracepoint
/// (`tools/perf/util/parse-events.c`, `event_symbols_sw`).
const SWITCHES: [&str; 3] = ["context-switches", "cs", "sched:sched_switch"];
/// Exits of guests: KVM's tracepoint as `perf stat` and `kvm_stat` have it, and the file of debugfs that older
/// `kvm_stat` reads (`virt/kvm/kvm_main.c`, `kvm_vcpu_stats_desc`).
const EXITS: [&str; 2] = ["kvm:kvm_exit", "exits"];

/// One event with its ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioRow {
    /// The event, as perf prints it, with modifiers.
    pub event: String,
    /// How many, of all intervals and CPUs that were printed apart together.
    pub count: u64,
    /// For each second that was counted, where the text says how long that was.
    pub per_second: Option<f64>,
    /// For each exit of a guest, where exits were counted.
    pub per_exit: Option<f64>,
    /// For each switch from one task to another, where those were counted.
    pub per_switch: Option<f64>,
}

/// Returns the counts that `perf stat` printed, in its order, with their ratios.
pub fn ratios(picture: &Picture) -> Vec<RatioRow> {
    let mut rows: Vec<RatioRow> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (event, count) in &picture.counts {
        let at = *places.entry(event).or_insert_with(|| {
            rows.push(RatioRow {
                event: event.clone(),
                count: 0,
                per_second: None,
                per_exit: None,
                per_switch: None,
            });
            rows.len() - 1
        });
        if let Some(row) = rows.get_mut(at) {
            row.count = row.count.saturating_add(*count);
        }
    }
    let of = |names: &[&str]| {
        let found = rows.iter().find(|row| names.contains(&plain(&row.event)));
        found.map(|row| row.count).filter(|count| *count > 0)
    };
    let (exits, switches) = (of(&EXITS), of(&SWITCHES));
    let seconds = picture.counted_ns.filter(|ns| *ns > 0);
    for row in &mut rows {
        let count = row.count as f64;
        let mut rates = picture.rates.iter();
        let rate = rates.find(|(event, _)| *event == row.event);
        let rate = rate.map(|(_, rate)| *rate as f64);
        row.per_second = rate.or(seconds.map(|ns| count * 1e9 / ns as f64));
        row.per_exit = exits.map(|exits| count / exits as f64);
        row.per_switch = switches.map(|switches| count / switches as f64);
    }
    rows
}

/// Whether an event counts switches from one task to another.
pub fn counts_switches(event: &str) -> bool {
    SWITCHES.contains(&plain(event))
}

/// Whether an event counts exits of guests, all of them.
pub fn counts_exits(event: &str) -> bool {
    EXITS.contains(&plain(event))
}

/// Counters that are a part of others, by which `perf stat` itself divides them
/// (`tools/perf/util/stat-shadow.c`, `perf_stat__print_shadow_stats`).
const PARTS: [(&str, &[&str]); 5] = [
    ("instructions", &["cycles", "cpu-cycles"]),
    ("stalled-cycles-frontend", &["cycles", "cpu-cycles"]),
    ("stalled-cycles-backend", &["cycles", "cpu-cycles"]),
    ("branch-misses", &["branches", "branch-instructions"]),
    ("cache-misses", &["cache-references"]),
];

/// The same of caches, by the ends of their events' names (`tools/perf/util/evsel.c`, `evsel__hw_cache_op`).
const CACHE_PARTS: [(&str, &str); 3] = [
    ("-load-misses", "-loads"),
    ("-store-misses", "-stores"),
    ("-prefetch-misses", "-prefetches"),
];

/// Returns the names of counters that an event is a part of, the likeliest first: `cache-references:u` of
/// `cache-misses:u`, `cpu_core/cycles/` of `cpu_core/instructions/`, `kvm_exit` of `kvm_exit(HLT)`.
pub fn counter_bases(event: &str) -> Vec<String> {
    if let Some((all, _)) = event.split_once('(') {
        return match event.ends_with(')') {
            true => vec![all.to_owned(), format!("kvm:{all}")],
            false => Vec::new(),
        };
    }
    // A name has its PMU before it, and modifiers behind it.
    let start = event.find('/').map_or(0, |at| at + 1);
    let (pmu, rest) = event.split_at(start);
    let end = rest.find([':', '/']).unwrap_or(rest.len());
    let (name, modifiers) = rest.split_at(end);
    let own = PARTS.iter().find(|(part, _)| *part == name);
    let own = own.map_or(&[][..], |(_, wholes)| wholes);
    let cache = CACHE_PARTS.iter().find_map(|(part, whole)| {
        let cache = name.strip_suffix(part)?;
        Some(format!("{cache}{whole}"))
    });
    let names = own.iter().map(|whole| (*whole).to_owned()).chain(cache);
    names
        .map(|whole| format!("{pmu}{whole}{modifiers}"))
        .collect()
}

/// Returns an event's name without perf's modifiers (`:u`, `:k`), of which a tracepoint's stand behind its second
/// colon.
fn plain(event: &str) -> &str {
    let mut colons = event.match_indices(':').map(|(at, _)| at);
    match (colons.next(), colons.next()) {
        (Some(_), Some(second)) => &event[..second],
        (Some(first), None) if SWITCHES.contains(&&event[..first]) => &event[..first],
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_divided_by_what_they_are_a_part_of() {
        for (event, bases) in [
            ("cache-misses:u", &["cache-references:u"][..]),
            (
                "cpu_core/instructions/k",
                &["cpu_core/cycles/k", "cpu_core/cpu-cycles/k"],
            ),
            ("dTLB-load-misses", &["dTLB-loads"]),
            ("kvm_exit(HLT)", &["kvm_exit", "kvm:kvm_exit"]),
            ("cache-references", &[]),
            ("context-switches", &[]),
            ("kvm:kvm_exit", &[]),
            ("page-faults", &[]),
            ("(", &[]),
            ("", &[]),
        ] {
            assert_eq!(counter_bases(event), bases, "{event}");
        }
        assert!(counts_switches("cs:u") && counts_exits("kvm:kvm_exit"));
        assert!(!counts_exits("kvm_exit(HLT)") && !counts_switches("cache-misses"));
    }

    #[test]
    fn counts_have_ratios_by_second_by_exit_and_by_switch() {
        let counts = [
            ("context-switches", 500),
            ("kvm:kvm_exit", 2000),
            ("instructions:u", 8000),
            ("instructions:u", 2000),
        ];
        let picture = Picture {
            counts: counts.map(|(event, n)| (event.to_owned(), n)).to_vec(),
            counted_ns: Some(2_000_000_000),
            ..Picture::default()
        };
        let rows = ratios(&picture);
        let last = &rows[2];
        assert_eq!((rows.len(), last.count), (3, 10_000));
        assert_eq!(last.per_second, Some(5000.0));
        assert_eq!(last.per_exit, Some(5.0));
        assert_eq!(last.per_switch, Some(20.0));
        assert_eq!(rows[1].per_switch, Some(4.0));
        let bare = Picture {
            counts: vec![("cycles".to_owned(), 7)],
            ..Picture::default()
        };
        let row = &ratios(&bare)[0];
        assert_eq!(
            (row.per_second, row.per_exit, row.per_switch),
            (None, None, None)
        );
        assert_eq!(plain("cs:k"), "cs");
        assert_eq!(plain("kvm:kvm_exit:u"), "kvm:kvm_exit");
    }
}
