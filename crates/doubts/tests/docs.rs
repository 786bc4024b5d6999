//! `DOUBTS.md` is made of the list of doubts.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p doubts --test docs` writes it.

use std::fs;
use std::path::Path;

use doubts::DOUBT_LIST;

const HEAD: &str = "# Doubts

A doubt is a reason to trust a number less. Every command says the doubts that touch what it prints, in every format: lines
that begin with `warning:` below a table, `quality.doubts` of JSON (`quality.warnings` has their texts), standard error where
CSV is printed, the section on quality of a page. With `--strict` a command ends with exit status 3 if there is one.
`diagnose` lowers the confidence of findings by them, in one place, and each finding has the ids of those that touch it.
In JSON rows of `exits`, `vcpus`, `sched`, `irqs`, `flame` and each path have the ids of doubts that are about their threads,
CPU or span (`doubts`); those about all alike stand in `quality` alone.

A doubt concerns kinds of numbers: `all`, or those in the column below. A command that shows none of these does not say it.
A doubt may be about a part of the recording: threads, CPUs, a span of time. With `--vm`, `--vcpu`, `--pid`, `--cpu` or
`--time` a doubt about another part is not said. Of events that were lost perf and the kernel record the CPU, and when the
loss was noticed: it may have begun as early as the loss before on that CPU. Which threads lost events were about nobody
knows, so filters by VM and thread leave losses in.

What a recording cannot show is null in JSON, empty in CSV and `-` on a screen, and a doubt says why (`state-unknown`,
`no-runtimes`, `no-wakeups`). 0 is what was measured as 0. Of nothing there is no mean, percentile, minimum or maximum.

| severity | meaning |
| --- | --- |
| note | the numbers hold: something beside them is not there, or was assumed |
| warning | some numbers are bounds, or part of one is in another |
| serious | numbers may be wrong |

A test writes this file from `crates/doubts/src/list.rs`: `TRAPLINE_WRITE_DOCS=1 cargo test -p doubts --test docs`.

| id | severity | concerns | meaning |
| --- | --- | --- | --- |
";

fn document() -> String {
    let rows = DOUBT_LIST.iter().map(|entry| {
        let about: Vec<&str> = entry.about.split_whitespace().collect();
        format!(
            "| `{}` | {} | {} | {} |\n",
            entry.id,
            entry.severity.name(),
            entry.concerns.names().join(", "),
            about.join(" ").replace('|', "\\|")
        )
    });
    HEAD.to_owned() + &rows.collect::<String>()
}

#[test]
fn the_document_has_the_doubts_of_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("DOUBTS.md");
    let wanted = document();
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
        return;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut lines = text.lines().zip(wanted.lines());
    let differs = lines.find(|(is, should)| is != should);
    assert!(
        text == wanted,
        "DOUBTS.md is not what the list says ({differs:?}); TRAPLINE_WRITE_DOCS=1 writes it"
    );
}

#[test]
fn every_doubt_says_what_it_means() {
    for entry in DOUBT_LIST {
        assert!(entry.about.trim().ends_with('.'), "{}", entry.id);
        assert!(!entry.concerns.names().is_empty(), "{}", entry.id);
    }
}
