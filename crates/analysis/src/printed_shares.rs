//! Shares of samples that `perf report` printed: by task, with what was idle apart, and by function.

use std::collections::{BTreeMap, HashMap};

use perftables::{ModeShares, SampledShare, SampledShares};

use crate::profile::{is_idle_function, unit_of};

/// Shares that add up to so much are all that there are; each is rounded, and small ones are not printed.
const WHOLE: f64 = 0.99;
/// Shares that add up to more have lines that stand twice.
const TWICE: f64 = 1.01;

/// Tables of one event's samples: one by task, and one in which functions or files stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrintedShares {
    /// By task alone.
    pub by_task: Option<SampledShares>,
    /// By function or file, with tasks or without.
    pub by_function: Option<SampledShares>,
}

/// A task, or a function, with its share.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareLine {
    /// The task's name.
    pub comm: Option<String>,
    /// The file of the function.
    pub object: Option<String>,
    /// The function.
    pub function: Option<String>,
    /// Share of all samples, 1 for all.
    pub share: f64,
    /// Share with what the function called, where that was printed.
    pub with_callees: Option<f64>,
    /// The part of the share that is in functions in which a CPU is idle; `None` where functions were not printed.
    pub idle: Option<f64>,
    /// The share without that part.
    pub busy: Option<f64>,
    /// Where the CPUs were, where that was printed.
    pub modes: Option<ModeShares>,
}

/// Returns whether functions or files stand in a table.
pub(crate) fn is_by_function(table: &SampledShares) -> bool {
    let named = |row: &SampledShare| row.symbol.is_some() || row.object.is_some();
    table.rows.iter().any(named)
}

/// Whether a row's function is one in which a CPU is idle, the host's or a guest's.
fn is_idle(row: &SampledShare) -> bool {
    // sed takes the mark away.
    let of_kernel = matches!(row.level, None | Some('k' | 'g'));
    of_kernel && row.symbol.as_deref().is_some_and(is_idle_function)
}

/// Returns what rows have together, and never more than all: in a text lines may stand twice.
fn sum<'r>(rows: impl Iterator<Item = &'r SampledShare>) -> f64 {
    printed_sum(rows).min(1.0)
}

fn printed_sum<'r>(rows: impl Iterator<Item = &'r SampledShare>) -> f64 {
    // As many digits as are printed: sums of rounded numbers have no more.
    (rows.map(|row| row.own).sum::<f64>() * 1e4).round() / 1e4
}

impl PrintedShares {
    /// Returns whether a table has a place here: it is of the same event, as far as the texts say, and there is none
    /// of its kind yet.
    pub(crate) fn fits(&self, table: &SampledShares) -> bool {
        let place = match is_by_function(table) {
            true => &self.by_function,
            false => &self.by_task,
        };
        let same = self.tables().all(|one| match (&one.event, &table.event) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        });
        place.is_none() && same
    }

    pub(crate) fn add(&mut self, table: SampledShares) {
        match is_by_function(&table) {
            true => self.by_function = Some(table),
            false => self.by_task = Some(table),
        }
    }

    fn tables(&self) -> impl Iterator<Item = &SampledShares> {
        self.by_task.iter().chain(&self.by_function)
    }

    /// Returns the event that was sampled, where a text says it.
    pub fn event(&self) -> Option<&str> {
        self.tables().find_map(|table| table.event.as_deref())
    }

    /// Returns how many samples there are at least, where a text says it.
    pub fn samples(&self) -> Option<u64> {
        self.tables().find_map(|table| table.samples)
    }

    /// Returns how many samples perf says were lost.
    pub fn lost_samples(&self) -> Option<u64> {
        self.tables().find_map(|table| table.lost_samples)
    }

    /// Returns whether all functions stand in the table: their shares add up. What is cut off (`head`,
    /// `--percent-limit`) proves nothing by what it does not have, and what stands twice nothing by what it adds up to.
    pub fn has_all_functions(&self) -> bool {
        let table = self.by_function.as_ref();
        table.is_some_and(|table| {
            let all = printed_sum(table.rows.iter());
            table.unread == 0 && (WHOLE..TWICE).contains(&all)
        })
    }

    /// Returns whether the shares of tasks are all that these have, and no sums of the functions that are listed.
    pub fn has_all_of_tasks(&self) -> bool {
        self.by_task.is_some() || self.has_all_functions()
    }

    /// Returns whether the samples are time of CPUs, as far as a text says of which event they are.
    pub fn are_of_time(&self) -> bool {
        self.event().is_none_or(|event| unit_of(event).is_some())
    }

    /// Returns the share of functions with what they called, by task: of those that a test picks the one that has
    /// most, since one may have called the other, or all their own.
    pub fn of_tasks(&self, pick: impl Fn(&SampledShare) -> bool) -> Vec<(&str, f64)> {
        let mut parts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in self.function_rows().iter().filter(|row| pick(row)) {
            let (own, most) = parts
                .entry(row.comm.as_deref().unwrap_or_default())
                .or_default();
            *own += row.own;
            *most = most.max(row.with_callees.unwrap_or(0.0));
        }
        let parts = parts.into_iter();
        let mut parts: Vec<(&str, f64)> = parts
            .map(|(comm, (own, most))| (comm, own.max(most)))
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    }

    /// Returns the rows in which functions or files stand.
    pub fn function_rows(&self) -> &[SampledShare] {
        self.by_function.as_ref().map_or(&[], |table| &table.rows)
    }

    /// Returns the share of all samples in functions in which CPUs are idle, as far as functions were printed.
    pub fn idle(&self) -> f64 {
        sum(self.function_rows().iter().filter(|row| is_idle(row)))
    }

    /// Returns where the CPUs were, of all samples: by columns of a table, else by the levels of all functions
    /// (`[k]`, `[.]`, `[g]`, `[u]`: `map__symbol` levels of `tools/perf/util/sort.c`). `None` where neither was printed
    /// of all samples.
    pub fn modes(&self) -> Option<ModeShares> {
        let tables = self
            .tables()
            .map(|table| table.rows.iter().collect::<Vec<_>>());
        let by_column = tables
            .filter_map(|rows| modes(&rows))
            .find(|all| all.all() > 0.0);
        if let Some(all) = by_column {
            return Some(all.rounded());
        }
        let rows = self.function_rows();
        if !self.has_all_functions() || rows.iter().any(|row| row.level.is_none()) {
            return None;
        }
        let of = |level: char| sum(rows.iter().filter(|row| row.level == Some(level)));
        Some(ModeShares {
            sys: of('k'),
            usr: of('.'),
            guest_sys: of('g'),
            guest_usr: of('u'),
        })
    }

    /// Returns tasks, heaviest first: of the table by task, or the sums of that by function.
    pub fn tasks(&self) -> Vec<ShareLine> {
        let table = self.by_task.as_ref().or(self.by_function.as_ref());
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut tasks: Vec<(&str, Vec<&SampledShare>)> = Vec::new();
        for row in table.iter().flat_map(|table| &table.rows) {
            let Some(comm) = row.comm.as_deref() else {
                continue;
            };
            let at = *places.entry(comm).or_insert_with(|| {
                tasks.push((comm, Vec::new()));
                tasks.len() - 1
            });
            if let Some((_, rows)) = tasks.get_mut(at) {
                rows.push(row);
            }
        }
        let mut idle: HashMap<&str, f64> = HashMap::new();
        for row in self.function_rows().iter().filter(|row| is_idle(row)) {
            *idle
                .entry(row.comm.as_deref().unwrap_or_default())
                .or_default() += row.own;
        }
        let whole = self.has_all_functions();
        let line = |(comm, rows): (&str, Vec<&SampledShare>)| {
            let share = sum(rows.iter().copied());
            let known = idle.get(comm).copied().or(whole.then_some(0.0));
            // Rounded numbers of two tables may differ.
            let idle = known.map(|idle| ((idle * 1e4).round() / 1e4).min(share));
            ShareLine {
                comm: Some(comm.to_owned()),
                object: None,
                function: None,
                share,
                with_callees: None,
                idle,
                busy: idle.map(|idle| ((share - idle) * 1e4).round() / 1e4),
                modes: modes(&rows),
            }
        };
        let mut lines: Vec<ShareLine> = tasks.into_iter().map(line).collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share));
        lines
    }

    /// Returns functions or files in the table's order, without those in which CPUs are idle.
    pub fn functions(&self) -> Vec<ShareLine> {
        let busy = self.function_rows().iter().filter(|row| !is_idle(row));
        busy.map(|row| ShareLine {
            comm: row.comm.clone(),
            object: row.object.clone(),
            function: row.symbol.clone(),
            share: row.own,
            with_callees: row.with_callees,
            idle: None,
            busy: None,
            modes: row.modes,
        })
        .collect()
    }
}

/// Returns the sums of modes, where all rows have them.
fn modes(rows: &[&SampledShare]) -> Option<ModeShares> {
    let mut sum = ModeShares {
        sys: 0.0,
        usr: 0.0,
        guest_sys: 0.0,
        guest_usr: 0.0,
    };
    for row in rows {
        let modes = row.modes?;
        sum.sys += modes.sys;
        sum.usr += modes.usr;
        sum.guest_sys += modes.guest_sys;
        sum.guest_usr += modes.guest_usr;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use perftables::{PerfTable, read};

    use super::*;

    fn shares(texts: &[&str]) -> PrintedShares {
        let mut shares = PrintedShares::default();
        for text in texts {
            for table in read(text.as_bytes()).0 {
                let PerfTable::SampledShares(table) = table else {
                    panic!("{table:?}");
                };
                assert!(shares.fits(&table), "{text}");
                shares.add(table);
            }
        }
        shares
    }

    fn parts(lines: &[ShareLine]) -> Vec<(&str, f64, Option<f64>, Option<f64>)> {
        let lines = lines.iter();
        lines
            .map(|line| {
                (
                    line.comm.as_deref().unwrap_or(""),
                    line.share,
                    line.idle,
                    line.busy,
                )
            })
            .collect()
    }

    /// The fourth case's hand computation: `:1146` 40.37 % - 30.01 % in `cpu_do_idle` are 10.36 %.
    #[test]
    fn what_is_idle_is_taken_off_as_by_hand() {
        let by_task = include_str!("../../perftables/tests/tables/case4-vhost.perf-kvm-report.txt");
        let idle =
            include_str!("../../perftables/tests/tables/case4-vhost.perf-kvm-report-idle.txt");
        let shares = shares(&[by_task, idle]);
        let lines = shares.tasks();
        let lines = parts(&lines);
        assert_eq!(lines[0], (":1146", 0.4037, Some(0.3001), Some(0.1036)));
        assert_eq!(lines[3], (":1147", 0.1172, Some(0.0655), Some(0.0517)));
        assert_eq!(lines[5], (":1149", 0.0545, Some(0.0359), Some(0.0186)));
        // Nobody says that QEMU has none: only rows with "idle" were printed.
        assert_eq!(lines[2], ("qemu-system-aar", 0.1308, None, None));
        assert!(!shares.has_all_functions());
        assert_eq!(shares.functions(), []);
    }

    #[test]
    fn lines_that_stand_twice_are_no_more_than_all() {
        let line = "60.00%  swapper  [kernel.kallsyms]  [k] acpi_processor_notify\n";
        let head = "# Samples: 10K of event 'cycles'\n# Overhead  Command  Shared Object  Symbol\n";
        let shares = shares(&[&format!("{head}{line}{line}")]);
        assert_eq!(shares.tasks()[0].share, 1.0);
        assert!(!shares.has_all_functions());
    }

    #[test]
    fn guests_kernels_and_programs_are_apart() {
        // By columns: 40.37 % + 11.72 % + 5.45 % in guests' kernels.
        let by_task = include_str!("../../perftables/tests/tables/case4-vhost.perf-kvm-report.txt");
        let modes = shares(&[by_task]).modes().unwrap();
        assert_eq!((modes.guest_sys, modes.guest_usr), (0.5754, 0.0));
        // By the marks of functions, where all of them are listed.
        let all = "# Samples: 10K of event 'cycles'\n# Overhead  Command  Shared Object  Symbol\n \
                   60.00%  :12  [guest.kernel.kallsyms]  [g] clear_page_erms\n \
                   30.00%  :12  [unknown]  [u] 0x00007f0000001234\n \
                   6.00%  qemu  qemu-system-x86_64  [.] main_loop_wait\n \
                   4.00%  qemu  [kernel.kallsyms]  [k] vmx_vcpu_run\n";
        let modes = shares(&[all]).modes().unwrap();
        assert_eq!(
            (modes.sys, modes.usr, modes.guest_sys, modes.guest_usr),
            (0.04, 0.06, 0.6, 0.3)
        );
        // What was cut off may be of any.
        let cut: String = all
            .lines()
            .take(4)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(shares(&[&cut]).modes(), None);
    }

    #[test]
    fn one_table_by_function_has_both() {
        let text = "# Samples: 10K of event 'cycles'\n# Overhead  Command  Shared Object  Symbol\n \
                    60.00%  swapper  [kernel.kallsyms]  [k] intel_idle\n \
                    30.00%  qemu  qemu-system-x86_64  [.] default_idle\n \
                    10.00%  qemu  [kernel.kallsyms]  [k] do_idle_work\n";
        let shares = shares(&[text]);
        let lines = shares.tasks();
        assert_eq!(
            parts(&lines),
            [
                ("swapper", 0.6, Some(0.6), Some(0.0)),
                ("qemu", 0.4, Some(0.0), Some(0.4))
            ]
        );
        assert_eq!(
            (shares.functions().len(), shares.idle(), shares.samples()),
            (2, 0.6, Some(10_000))
        );
        // Of another event is another table.
        let other = "# Samples: 3 of event 'page-faults'\n# Overhead  Command\n   100.00%  qemu\n";
        let PerfTable::SampledShares(other) = read(other.as_bytes()).0.remove(0) else {
            panic!();
        };
        assert!(!shares.fits(&other));
    }
}
