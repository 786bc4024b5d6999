/*!
What a read of a clock costs. A single read takes no longer than the two reads that would time it, so many are timed
together ([`BATCH`]), and an iteration is their mean.
*/

use std::fs;
use std::hint::black_box;

use results::BenchRow;
use rustix::time::{ClockId, clock_gettime};

use crate::call;
use crate::now::now;
use crate::run::BenchRun;
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::on_cpu;
use crate::why::why;

/// Reads that are timed together.
const BATCH: u32 = 64;
/// Where the kernel says its clock sources.
const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// What is read.
#[derive(Debug, Clone, Copy)]
enum ClockRead {
    /// A clock by the C library's way, which is the vDSO where that can read the clock source.
    Clock(ClockId),
    /// The same clock by the system call.
    SystemCall,
    /// The CPU's own counter.
    Counter,
    /// No clock: the shortest system call.
    Nothing,
}

/// The rows of a clock source, by their names.
const READS: [(&str, ClockRead); 8] = [
    ("CLOCK_MONOTONIC", ClockRead::Clock(ClockId::Monotonic)),
    (
        "CLOCK_MONOTONIC_RAW",
        ClockRead::Clock(ClockId::MonotonicRaw),
    ),
    ("CLOCK_REALTIME", ClockRead::Clock(ClockId::Realtime)),
    ("CLOCK_BOOTTIME", ClockRead::Clock(ClockId::Boottime)),
    (
        "CLOCK_MONOTONIC_COARSE",
        ClockRead::Clock(ClockId::MonotonicCoarse),
    ),
    ("system call of it", ClockRead::SystemCall),
    (COUNTER, ClockRead::Counter),
    ("shortest system call", ClockRead::Nothing),
];

/// The CPU's own counter, as its architecture calls it.
const COUNTER: &str = if cfg!(target_arch = "aarch64") {
    "CNTVCT_EL0"
} else {
    "RDTSC"
};

/// Measures; with every clock source that there is, or with the one in use.
pub(crate) fn rows(run: &BenchRun<'_>, each_source: bool) -> (Vec<BenchRow>, Vec<String>) {
    let current = line("current_clocksource");
    if !each_source {
        return (of_source(run, current.as_deref(), None), Vec::new());
    }
    let mut rows = Vec::new();
    let mut warnings = Vec::new();
    let available = line("available_clocksource").unwrap_or_default();
    let Some(before) = current else {
        let why = "the kernel does not say its clock source, so the clock source in use was measured alone";
        return (of_source(run, None, None), vec![why.to_owned()]);
    };
    let restore = Restore(before);
    for source in available.split_ascii_whitespace() {
        if run.stopped() {
            break;
        }
        match choose(source) {
            Ok(()) => rows.extend(of_source(run, Some(source), Some(source))),
            Err(why) => rows.push(BenchRow::new("all clocks").target(source).missing(why)),
        }
    }
    let name = restore.0.clone();
    drop(restore);
    if line("current_clocksource").as_deref() != Some(&*name) {
        warnings.push(format!(
            "The clock source could not be set back to {name}: write it to {FOLDER}/current_clocksource."
        ));
    }
    (rows, warnings)
}

/// Sets the clock source back at the end, whatever happens before.
struct Restore(String);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = choose(&self.0);
    }
}

fn line(file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("{FOLDER}/{file}")).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Chooses a clock source, and returns whether the kernel took it.
fn choose(source: &str) -> Result<(), String> {
    let file = format!("{FOLDER}/current_clocksource");
    fs::write(&file, source).map_err(|error| {
        format!(
            "the clock source cannot be changed ({}): it takes root and a /sys that can be written",
            why(&error)
        )
    })?;
    match line("current_clocksource") {
        Some(now) if now == source => Ok(()),
        now => Err(format!(
            "the kernel stays with {}",
            now.as_deref().unwrap_or("another clock source")
        )),
    }
}

fn of_source(run: &BenchRun<'_>, source: Option<&str>, target: Option<&str>) -> Vec<BenchRow> {
    let reads = READS.into_iter().map(|(name, read)| {
        let row = BenchRow::new(name).from(run.places.from);
        let row = match target {
            Some(source) => row.target(source),
            None => row,
        };
        run.say(&row);
        let row = match note(read, source) {
            Some(note) => row.note(note),
            None => row,
        };
        if matches!(read, ClockRead::Counter) && call::counter().is_none() {
            return row.missing("this architecture has no counter that trapline knows");
        }
        let bounds = run.bounds;
        let measured = on_cpu(run.places.from, || Ok(batches(bounds, row.clone(), read)));
        measured.unwrap_or_else(|why| row.missing(why))
    });
    reads.collect()
}

/// Measures batches of reads.
fn batches(bounds: IterationBounds<'_>, row: BenchRow, read: ClockRead) -> BenchRow {
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let begin = now();
        for _ in 0..BATCH {
            match read {
                ClockRead::Clock(clock) => drop(black_box(clock_gettime(clock))),
                ClockRead::SystemCall => drop(black_box(call::clock_by_system_call())),
                ClockRead::Counter => drop(black_box(call::counter())),
                ClockRead::Nothing => drop(black_box(call::shortest_system_call())),
            }
        }
        let took = now().saturating_sub(begin);
        let each = (took + u64::from(BATCH / 2)) / u64::from(BATCH);
        samples.add(begin, each);
    }
    samples.row(row)
}

/// How the kernel reads a clock source (`drivers/clocksource`, `arch/x86/kernel`): whether user space can do it by the
/// vDSO, and whether a guest's read exits.
fn note(read: ClockRead, source: Option<&str>) -> Option<String> {
    match read {
        ClockRead::Clock(ClockId::MonotonicCoarse) => {
            return Some("reads no clock source: the time of the last tick".to_owned());
        }
        ClockRead::Clock(_) => {}
        ClockRead::SystemCall => return Some("CLOCK_MONOTONIC without the vDSO".to_owned()),
        ClockRead::Counter => {
            return Some("one instruction; no exit unless the hypervisor traps it".to_owned());
        }
        ClockRead::Nothing => return Some("getppid, for comparison: no clock".to_owned()),
    }
    let source = source?;
    let how = match source {
        "tsc" => "read in user space from the TSC: no exit",
        "kvm-clock" => "read in user space from the TSC and a page of the host's: no exit",
        "hyperv_clocksource_tsc_page" => {
            "read in user space from the TSC and a page of the hypervisor's: no exit"
        }
        "arch_sys_counter" => "read in user space from the counter: no exit",
        "hpet" => "a system call that reads a register in memory: an exit to the VMM in a guest",
        "acpi_pm" => "a system call that reads an I/O port: an exit to the VMM in a guest",
        "hyperv_clocksource_msr" => "a system call that reads an MSR: an exit in a guest",
        "xen" => "read from a page of the hypervisor's: no exit",
        "jiffies" => "the time of the last tick",
        _ => return Some(format!("clock source {source}")),
    };
    Some(format!("{source}: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_where_a_read_exits() {
        let of =
            |source| note(ClockRead::Clock(ClockId::Monotonic), Some(source)).unwrap_or_default();
        assert!(of("acpi_pm").contains("an exit to the VMM"));
        assert!(of("tsc").contains("no exit"));
        assert_eq!(of("new-one"), "clock source new-one");
        assert_eq!(note(ClockRead::Clock(ClockId::Realtime), None), None);
    }
}
