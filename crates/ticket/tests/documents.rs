//! The five investigations' own documents, byte for byte, beside the corpus: every table and trace in them is found.

use std::env;
use std::path::PathBuf;

use ticket::{PartKind, read};

/// Returns a document; none where the corpus is not there.
fn document(start: &str) -> Option<Vec<u8>> {
    let corpus = PathBuf::from(env::var_os("TRAPLINE_CORPUS")?);
    let folder = corpus.parent()?.join("seeds");
    let mut files = std::fs::read_dir(folder).ok()?.flatten();
    let file = files.find(|file| file.file_name().to_string_lossy().starts_with(start))?;
    std::fs::read(file.path()).ok()
}

#[track_caller]
fn parts(start: &str, wanted: &[(u64, u64, &str)]) {
    let Some(text) = document(start) else {
        return;
    };
    let ticket = read(&text);
    let found = ticket.parts.iter().map(|part| {
        let what = match &part.kind {
            PartKind::Trace(tool) => format!("trace of {tool}"),
            PartKind::Table { printer, of } => {
                of.map_or((*printer).to_owned(), |of| format!("{printer} {of}"))
            }
            PartKind::Definition(name) => format!("definition of {name}"),
            PartKind::Facts(what) => format!("facts: {what}"),
            PartKind::Score(what) => format!("result: {what}"),
            other => format!("{other:?}"),
        };
        (part.first_line, part.last_line, what)
    });
    let found: Vec<(u64, u64, String)> = found.collect();
    let wanted: Vec<(u64, u64, String)> = wanted
        .iter()
        .map(|(first, last, what)| (*first, *last, (*what).to_owned()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_second_has_definitions_and_tables_once() {
    parts(
        "001",
        &[
            (45, 90, "definition of ubuntu"),
            (96, 142, "definition of win10-2"),
            (175, 185, "result: sysbench events per second 280.83"),
            (198, 214, "perf kvm stat report vmexit"),
            (217, 222, "perf kvm stat report ioport"),
            (232, 242, "result: sysbench events per second 282.44"),
            (255, 271, "perf kvm stat report vmexit"),
            (274, 280, "perf kvm stat report ioport"),
            (289, 289, "facts: a map of devices"),
            (301, 311, "result: sysbench events per second 286.59"),
            (324, 341, "perf kvm stat report vmexit"),
            (344, 350, "perf kvm stat report ioport"),
            (360, 370, "result: sysbench events per second 287.60"),
            (383, 399, "perf kvm stat report vmexit"),
            (402, 407, "perf kvm stat report ioport"),
            (417, 427, "result: sysbench events per second 288.49"),
            (459, 476, "perf kvm stat report vmexit"),
            (480, 489, "perf kvm stat report ioport"),
            (495, 496, "facts: a map of devices"),
            (523, 539, "perf kvm stat report vmexit"),
        ],
    );
}

#[test]
fn the_first_has_two_traces_and_system_calls() {
    parts(
        "000",
        &[
            (112, 118, "trace of trace-cmd report"),
            (235, 267, "strace"),
            (331, 376, "trace of trace-cmd report"),
        ],
    );
}

#[test]
fn the_third_has_prose_alone() {
    parts("002", &[]);
}

/// Slides whose text was read by a machine: what it misread stays unread.
#[test]
fn the_fourth_has_tables_of_several_tools_and_three_traces() {
    parts(
        "003",
        &[
            (139, 161, "trace of perf script"),
            (285, 287, "result: iperf3 bitrate (sender) 1.660 Gbit/s"),
            (341, 343, "result: iperf3 bitrate (sender) 3.260 Gbit/s"),
            (366, 398, "perf kvm stat report vmexit"),
            (406, 439, "perf kvm stat report vmexit"),
            (476, 478, "virtiostat"),
            (507, 520, "perf report"),
            (535, 638, "perf report"),
            (656, 669, "perf report"),
            (704, 769, "perf report"),
            (815, 877, "perf report"),
            (910, 913, "perf report"),
            (1077, 1895, "trace of trace-cmd report"),
            (1905, 2039, "trace of trace-cmd report"),
        ],
    );
}

#[test]
fn the_fifth_has_six_tables() {
    parts(
        "004",
        &[
            (6, 8, "perf stat"),
            (10, 12, "perf stat"),
            (16, 16, "perf sched latency"),
            (26, 27, "perf stat"),
            (29, 29, "perf sched latency"),
            (32, 32, "perf sched latency"),
        ],
    );
}
