//! What was given in place of a recording, told with what it is good for.

use analysis::{Info, Study};
use anyhow::Result;
use source::{OpenError, Reader, ReaderOptions, Recording};
use tracefmt::Kallsyms;

/// Texts are not looked at beyond this many bytes.
const MAX_TEXT: usize = 16 << 20;
/// What a recording is.
const EXPECTED: &str = "expected perf.data, trace.dat, or the text of perf script, trace-cmd report or the kernel's trace file";
/// Kinds of events that a message names.
const KINDS: usize = 4;

/// Reads what stands around a recording's events.
///
/// # Errors
/// It is no recording, or one of which nothing can be used. Of a text that another option or command takes, the message says
/// which.
pub(crate) fn reader<'r>(
    recording: &'r Recording,
    options: ReaderOptions<'r>,
) -> Result<Reader<'r>> {
    match recording.reader(options) {
        Ok(reader) => Ok(reader),
        Err(error @ OpenError::NotARecording { .. }) => Err(match what(recording.bytes()) {
            Some(what) => anyhow::anyhow!("{}: {what}; {EXPECTED}", recording.name()),
            None => error.into(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Says what a text is that is no recording, and which command or option takes it.
fn what(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
    if let Some(tables) = printed_tables(bytes) {
        return Some(tables);
    }
    if let Ok(text) = domain::decode(bytes)
        && let Ok((domain, _)) = domain::parse(text)
    {
        let name = domain.name;
        return Some(format!(
            "is the definition of the domain '{name}' (libvirt's XML), no recording; give it beside one, as 'trapline \
             diagnose --domain FILE REC'"
        ));
    }
    let text = std::str::from_utf8(bytes).ok();
    if text.is_some_and(|text| paths::lang::parse(text).is_ok()) {
        return Some(
            "is a file of latency paths, no recording; give it beside one, as 'trapline paths --path FILE REC'".to_owned(),
        );
    }
    if is_kallsyms(bytes) {
        return Some(
            "is a kernel's symbols (/proc/kallsyms), no recording; give it beside one, as 'trapline diagnose --kallsyms FILE \
             REC'"
                .to_owned(),
        );
    }
    let (facts, _) = facts::read(bytes);
    if !facts.is_empty() {
        let told = [
            (facts.threads.len() as u64, "thread"),
            (facts.vms.len() as u64, "VM"),
        ];
        let mut told: Vec<String> = told
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| words::plural(*count, word))
            .collect();
        if facts.mtree.is_some() {
            told.push("a map of devices".to_owned());
        }
        if facts.host.is_some() {
            told.push("its settings".to_owned());
        }
        return Some(format!(
            "tells facts of a host ({}) and holds no events; give it beside a recording, as 'trapline COMMAND --facts FILE REC'",
            told.join(", ")
        ));
    }
    None
}

/// Says which printed tables a text holds, and who reads them.
fn printed_tables(bytes: &[u8]) -> Option<String> {
    if !perftables::looks_like(bytes) {
        return None;
    }
    let (tables, _) = perftables::read(bytes);
    let mut names: Vec<&str> = tables.iter().map(crate::tables::printer).collect();
    names.dedup();
    let readers = if names.contains(&"perf sched latency") {
        "report, sched, diagnose and compare read it as it is"
    } else if names.contains(&"perf kvm stat report") {
        "report, exits, diagnose and compare read it as it is"
    } else {
        "report and compare read it as it is"
    };
    Some(format!(
        "the printed table of {}, which holds no events ({readers})",
        names.join(" and of ")
    ))
}

/// Returns whether a text is a list of symbols, each line as `ffffffff81000000 T _stext`.
fn is_kallsyms(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').take(16);
    let is_symbol = |line: &[u8]| {
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        let address = words.next().unwrap_or_default();
        let kind = words.next().unwrap_or_default();
        matches!(address.len(), 8 | 16)
            && address.iter().all(u8::is_ascii_hexdigit)
            && matches!(kind, [letter] if letter.is_ascii_alphabetic())
    };
    lines.next().is_some_and(is_symbol)
        && lines.filter(|line| !line.is_empty()).all(is_symbol)
        && !Kallsyms::parse(bytes).is_empty()
}

/// Says what a recording holds, for messages about what it does not: its most frequent kinds of events.
pub(crate) fn holds(reader: &Reader<'_>) -> String {
    let mut study = Study::default().with(Info::new());
    reader.walk(&mut study);
    let info = study.get::<Info>();
    let info = info.map(|info| info.report(study.walked().machine));
    let events = info.unwrap_or_default().events;
    let happened = events.iter().filter(|event| event.count > 0);
    let mut names: Vec<String> = happened
        .clone()
        .take(KINDS)
        .map(|event| format!("{} {}", event.count, event.name))
        .collect();
    let more = happened.count().saturating_sub(KINDS);
    if more > 0 {
        names.push(format!("{more} more kinds"));
    }
    if names.is_empty() {
        "it holds no events at all".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}
