//! What a file says of this machine, and what stands in it before the kernel's records.

use std::fs;

use record::cost::EventCosts;
use record::file::{Feature, Features};
use record::{EventClock, Missing, OpenedEvents, RecordError, Tracefs};

/// The program that records, as its files name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name and version.
    pub version: String,
    /// Its command line, word by word.
    pub command_line: Vec<String>,
}

/// Returns what the file says of the machine and of the recording, and the records that stand before those of the
/// kernel.
///
/// # Errors
///
/// The kernel's formats cannot be read, or an event cannot be enabled.
pub fn before(
    tracefs: &Tracefs,
    opened: &OpenedEvents,
    cost: Option<EventCosts>,
    program: &Program,
) -> Result<(Features, Vec<u8>), RecordError> {
    let (features, mut side) = of_machine(tracefs, opened, cost, program)?;
    opened.record_names()?;
    side.extend(record::tasks::names());
    if opened.has_chains() {
        side.extend(record::mappings::processes());
    }
    Ok((features, side))
}

/// Returns what of that does not change from one moment to the next: no name of a thread, and no mapping but the
/// kernel's.
///
/// # Errors
///
/// The kernel's formats cannot be read.
pub fn of_machine(
    tracefs: &Tracefs,
    opened: &OpenedEvents,
    cost: Option<EventCosts>,
    program: &Program,
) -> Result<(Features, Vec<u8>), RecordError> {
    // They are megabytes of each file, and take longer to read than all else.
    let has_code = opened.has_code();
    let read = |path: &str| match has_code {
        true => fs::read(path).unwrap_or_default(),
        false => Vec::new(),
    };
    let symbols = read("/proc/kallsyms");
    let functions = record::tracing_data::functions(&symbols);
    let formats = record::tracing_data::of(tracefs, opened.tracepoints(), &functions)?;
    let modules = fs::read("/proc/modules").unwrap_or_default();
    // perf says that addresses are hidden where the kernel's place is not there, whether it has to name any or not.
    let (first, code_bytes) = match has_code {
        true => (symbols, 0),
        false => {
            let iomem = fs::read_to_string("/proc/iomem").unwrap_or_default();
            let code_bytes = record::mappings::code_bytes(&iomem);
            (record::mappings::first_symbols(), code_bytes)
        }
    };
    let modules = String::from_utf8_lossy(&modules);
    let side = record::mappings::kernel(&first, &modules, code_bytes);
    let mut features = Features::default();
    for one in record::machine::features() {
        features.set(one);
    }
    features.set(Feature::Version(program.version.clone()));
    features.set(Feature::CommandLine(program.command_line.clone()));
    features.set(Feature::TracingData(formats));
    if let Some(cost) = cost {
        features.set(Feature::Trapline(cost.said()));
    }
    features.set(Feature::recorder(std::process::id()));
    let clock = EventClock::open(opened.clock()).ok();
    if let Some((unix_ns, event_ns)) = clock.and_then(|mut clock| clock.with_wall_clock()) {
        features.set(Feature::wall_clock(unix_ns, event_ns));
    }
    if let Some(one) = opened.pairs_said() {
        features.set(one);
    }
    Ok((features, side))
}

/// Returns what is not recorded, a sentence for each reason.
pub fn missing_sentences(missing: &[Missing]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in missing {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, names)) => names.push(&one.name),
            None => reasons.push((&one.why, vec![&one.name])),
        }
    }
    let sentences = reasons.iter();
    sentences
        .map(|(why, names)| format!("{}: {why}", words::list(names)))
        .collect()
}
