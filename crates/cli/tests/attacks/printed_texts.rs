//! Texts that tools print - tables, facts, lines of events - whose cells say what no tool counts.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::draw::Draw;
use super::perf_files;

/// The texts of every form that is read, as the crates' own tests have them.
static TEXTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for (kind, forms) in session::input_forms() {
        let folder = match kind {
            "trace" => "tracetext",
            "table" => "perftables",
            "definition" => "domain",
            "facts" => "facts",
            _ => "results",
        };
        let files = forms.iter().flat_map(|form| form.fixtures);
        all.extend(files.filter_map(|file| fs::read(crates.join(folder).join(file)).ok()));
    }
    // Long ones cost more and are harmed less.
    all.retain(|text| !text.is_empty() && text.len() < 12_000);
    all.sort();
    all.dedup();
    all
});

/// Writes a text as a tool prints it, with cells that are absurd.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let mut text = draw.of(&TEXTS);
    if draw.once_in(6) {
        // Two in one.
        text.extend(draw.of(&TEXTS));
    }
    harmed(&text, draw)
}

/// Writes lines of events, as perf script or trace-cmd report prints a story.
pub(super) fn write_events(draw: &mut Draw) -> Vec<u8> {
    let bytes = perf_files::write(draw);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, bytes).expect("a file");
    let printed =
        fixtures::events::events_text_in_style(&path, draw.once_in(2)).unwrap_or_default();
    harmed(&printed, draw)
}

/// Changes some of a text's numbers, lines, columns and brackets.
fn harmed(text: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    let rate = draw.of(&[400, 100, 25, 6]);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if draw.once_in(rate * 3) {
            odd_line(line, draw, &mut out);
            continue;
        }
        let mut rest = line;
        while let Some(&byte) = rest.first() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 {
                match draw.once_in(rate) {
                    true => out.extend(draw.odd_number().into_bytes()),
                    false => out.extend(&rest[..digits]),
                }
                rest = &rest[digits..];
                continue;
            }
            out.push(byte);
            rest = &rest[1..];
            if byte == b' ' && draw.once_in(rate * 4) {
                out.extend(draw.odd_name());
            }
        }
    }
    out
}

/// Puts a line out that is twice there, nests, has very many columns, or has no end.
fn odd_line(line: &[u8], draw: &mut Draw, out: &mut Vec<u8>) {
    let end = draw.below(line.len());
    let (head, tail) = line.split_at(end);
    match draw.below(7) {
        0 => out.extend([line, line].concat()),
        1 => {}
        2 => {
            let deep = draw.of(&[3, 300, 20_000]);
            out.extend([head, &b"(".repeat(deep), tail].concat());
        }
        3 => {
            let columns = draw.of(&[10, 1000, 100_000]);
            out.extend([head, &b" 1".repeat(columns), tail].concat());
        }
        4 => {
            let columns = draw.of(&[10, 1000, 20_000]);
            out.extend([head, &b" | x=1".repeat(columns), tail].concat());
        }
        5 => out.extend(head),
        _ => out.extend([head, &draw.odd_name(), tail].concat()),
    }
}
