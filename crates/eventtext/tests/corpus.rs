//! Every event decoded: lines equal those of `trace-cmd report -N` and `perf script`, after white space is folded.
//!
//! Lines may differ only by one of the rules below, each of which checks what ours has to be instead. They
//! are counted and printed (`cargo test -- --nocapture`).

use std::collections::BTreeMap;
use std::io::BufRead;

use fixtures::json::number;
use fixtures::{CorpusCase, Failures, FixtureQuestion, cases, events_text, fold, note, open};

/// Why a line may differ from the reference tool's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// trace-cmd begins with a line `cpus=N`, which is no event: what is known of the recording has the number.
    Header,
    /// libtraceevent 1.7 cannot parse the print format and says so; it prints the raw fields. Ours has the
    /// same time, CPU, thread and name, and prints what the kernel would.
    FailedToParse,
    /// libtraceevent 1.7 does not know character constants: for arm64's `kvm_wfx_arm64` it prints `wf>c<`
    /// and address 0. Ours has the letter, and the program counter of the `kvm_exit` before.
    CharacterConstant,
}

/// What the reference's head says: everything up to the event's name.
fn head(line: &str) -> &str {
    // The name ends at the first colon behind the one of the time stamp; perf puts the system before it.
    let time = line.find("] ").map_or(0, |at| at + 2);
    let after_time = line[time..]
        .find(": ")
        .map_or(line.len(), |at| time + at + 2);
    let name = line[after_time..].find(": ");
    name.map_or(line, |at| &line[..after_time + at + 1])
}

/// Returns the value of a field in `a=1 b=0x2`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let words = text.split(' ');
    words
        .filter_map(|word| word.split_once('='))
        .find_map(|(n, value)| (n == name).then_some(value))
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Says whether ours is what the kernel prints for raw fields that the reference lists.
fn better_than_raw(name: &str, ours: &str, raw: &str) -> bool {
    let is = |field_name: &str, value: &str| field(raw, field_name) == Some(value);
    match name {
        // "%s%s%s%s%s": exception, error code in parentheses if it has one, whether it is injected again.
        "kvm_inj_exception" => {
            let exception = match field(raw, "exception") {
                Some("6") => "#UD",
                Some("13") => "#GP",
                Some("14") => "#PF",
                _ => return ours.starts_with('#'),
            };
            let code = field(raw, "error_code").unwrap_or_default();
            let code = if is("has_error", "1") {
                format!(" (0x{code})")
            } else {
                String::new()
            };
            let again = if is("reinjected", "1") {
                " [reinjected]"
            } else {
                ""
            };
            ours == format!("{exception}{code}{again}")
        }
        // "PC: %lx %s (%d,%d,%d,%d,%d) %s": the register's name is a pointer into the kernel.
        "kvm_sys_access" => {
            let get = |name: &str| field(raw, name).unwrap_or_default();
            let numbers = ["Op0", "Op1", "CRn", "CRm", "Op2"].map(get).join(",");
            let direction = if is("is_write", "1") { "write" } else { "read" };
            let pc = get("vcpu_pc").trim_start_matches("0x");
            ours.starts_with(&format!("PC: {pc} "))
                && ours.ends_with(&format!("({numbers}) {direction}"))
        }
        _ => !ours.is_empty(),
    }
}

/// Compares two lines that are not the same.
fn differs_by_rule(ours: &str, reference: &str, pcs: &BTreeMap<String, u64>) -> Option<Rule> {
    let (our_head, reference_head) = (head(ours), head(reference));
    if our_head != reference_head {
        return None;
    }
    let name = our_head.trim_end_matches(':').rsplit([' ', ':']).next()?;
    let ours = ours[our_head.len()..].trim();
    let reference = reference[reference_head.len()..].trim();
    if let Some(raw) = reference.strip_prefix("[FAILED TO PARSE]") {
        let better = !ours.contains("FAILED") && better_than_raw(name, ours, raw.trim());
        return better.then_some(Rule::FailedToParse);
    }
    if name == "kvm_wfx_arm64" && reference == "guest executed wf>c< at: 0x0000000000000000" {
        let rest = ours.strip_prefix("guest executed wf")?;
        let pc = rest
            .strip_prefix("e at: ")
            .or(rest.strip_prefix("i at: "))?;
        let pc = hex(pc)?;
        let holds = pcs.get(thread(our_head)?).is_none_or(|&exit| exit == pc);
        return holds.then_some(Rule::CharacterConstant);
    }
    None
}

/// Returns what stands before the CPU: the thread.
fn thread(line: &str) -> Option<&str> {
    Some(line.split_once(" [")?.0)
}

/// Keeps the program counter of an arm64 exit, by thread.
fn note_pc(line: &str, pcs: &mut BTreeMap<String, u64>) {
    if let (true, Some(at)) = (line.contains("kvm_exit: "), line.find("PC: 0x"))
        && let (Some(thread), Some(pc)) = (thread(line), hex(&line[at + 4..]))
    {
        pcs.insert(thread.to_owned(), pc);
    }
}

/// Compares the lines of a recording with the reference's.
fn compare(case: &CorpusCase, reference: &str) -> Result<(u64, BTreeMap<Rule, u64>), String> {
    let text = events_text(&case.path).map_err(|e| e.to_string())?;
    let mut ours = text.as_slice();
    let mut theirs = open(&case.references[reference]);
    let mut rules = BTreeMap::new();
    let mut pcs = BTreeMap::new();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut count = 0u64;
    if reference == "report-N" {
        theirs
            .read_until(b'\n', &mut b)
            .map_err(|e| e.to_string())?;
        let line = String::from_utf8_lossy(&b);
        let cpus = line
            .trim()
            .strip_prefix("cpus=")
            .and_then(|n| n.parse().ok());
        let info = FixtureQuestion::new().info_document(&case.path);
        let info = info.map_err(|e| e.to_string())?;
        if cpus != Some(number(&info, "cpus")) {
            return Err(format!(
                "trace-cmd says {line:?}, info has {} CPUs",
                info["cpus"]
            ));
        }
        rules.insert(Rule::Header, 1);
    }
    loop {
        a.clear();
        b.clear();
        let more = ours.read_until(b'\n', &mut a).map_err(|e| e.to_string())?;
        let theirs_more = theirs
            .read_until(b'\n', &mut b)
            .map_err(|e| e.to_string())?;
        if more == 0 && theirs_more == 0 {
            break;
        }
        count += 1;
        let ours_line = fold(&String::from_utf8_lossy(&a));
        let line = fold(&String::from_utf8_lossy(&b));
        note_pc(&line, &mut pcs);
        if ours_line == line && more > 0 && theirs_more > 0 {
            continue;
        }
        match differs_by_rule(&ours_line, &line, &pcs) {
            Some(rule) => *rules.entry(rule).or_insert(0) += 1,
            None => {
                return Err(format!(
                    "line {count}\n    ours     {ours_line}\n    expected {line}"
                ));
            }
        }
    }
    Ok((count, rules))
}

fn all(reference: &str, at_least: usize) {
    let mut failures = Failures::default();
    let mut rules = BTreeMap::new();
    let mut lines = 0;
    for case in cases() {
        if !case.references.contains_key(reference) {
            continue;
        }
        match compare(&case, reference) {
            Ok((count, differing)) => {
                lines += count;
                for (rule, count) in differing {
                    *rules.entry(rule).or_insert(0u64) += count;
                }
                failures.check(true, String::new);
            }
            Err(error) => failures.check(false, || format!("{}: {error}", case.name)),
        }
    }
    note(&format!(
        "{reference}: {lines} lines, of them by rule {rules:?}"
    ));
    failures.finish(at_least);
}

#[test]
fn trace_dat_equals_trace_cmd_report() {
    all("report-N", 13);
}

#[test]
fn perf_data_equals_perf_script() {
    all("script", 25);
}

/// Without symbols of the guest perf drops what was sampled while a guest's state was loaded. Those samples
/// it cannot name the thread of either, as it looks for it in the guest: exactly lines of such threads may be
/// missing from its text, and whole events only.
#[test]
fn perf_script_without_guest_symbols_is_ours_less_the_guests_samples() {
    let mut failures = Failures::default();
    let mut dropped = 0;
    for case in cases() {
        let Some(expected) = case.reference("script-plain") else {
            continue;
        };
        let ours = events_text(&case.path).expect("a recording");
        let ours = String::from_utf8_lossy(&ours);
        let mut expected = events(&expected).peekable();
        let mut pcs = BTreeMap::new();
        for event in events(&ours) {
            let same = expected.peek().is_some_and(|other| {
                note_pc(&other[0], &mut pcs);
                other[1..] == event[1..]
                    && (other[0] == event[0]
                        || differs_by_rule(&event[0], &other[0], &pcs).is_some())
            });
            if same {
                expected.next();
                continue;
            }
            dropped += 1;
            let words: Vec<&str> = event[0].split(' ').collect();
            let unnamed = words[0].strip_prefix(':') == words.get(1).copied();
            failures.check(unnamed, || {
                format!("{}: perf has no such event: {}", case.name, event[0])
            });
        }
        let left = expected.next();
        failures.check(left.is_none(), || {
            format!("{}: ours has no {left:?}", case.name)
        });
    }
    note(&format!("{dropped} samples that perf drops"));
    failures.finish(1000);
}

/// Splits a text of `perf script` into events: a line, and the call chain below it.
fn events(text: &str) -> impl Iterator<Item = Vec<String>> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let mut event = vec![fold(lines.next()?)];
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with('\t')) {
            event.push(fold(line));
        }
        Some(event)
    })
}
