//! Results that other tools printed, wherever in a text they stand: one file a tool.

mod fio;
mod iperf;
mod iperf_json;
mod pasted;
mod ping;
mod sysbench;

use forms::InputForm;

use crate::score::Score;
use pasted::{PastedLine, ScoreReader, unrolled};

/// What the readers of scores declare.
pub const FORMS: &[InputForm] = &[
    sysbench::FORM,
    iperf::FORM,
    iperf_json::FORM,
    fio::FORM,
    ping::FORM,
];

/// Scores that are kept of a text.
const MAX_SCORES: usize = 1 << 14;

/// Returns all results of benchmarks in a text, in the order of their lines: `sysbench`, `iperf`, `iperf3` (also
/// `--json`), `fio` and `ping`. Whatever stands around them, prose that mentions numbers is none.
pub fn scores(text: &[u8]) -> Vec<Score> {
    let mut readers: [Box<dyn ScoreReader>; 5] = [
        Box::<sysbench::SysbenchReader>::default(),
        Box::<iperf::IperfReader>::default(),
        Box::<iperf_json::IperfJsonReader>::default(),
        Box::<fio::FioReader>::default(),
        Box::<ping::PingReader>::default(),
    ];
    let mut out = Vec::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    // CR alone ends a line too; that of CR LF is cleaned away.
    let lines = text.split(|byte| *byte == b'\n').zip(1u64..);
    let mut blank = false;
    for (line, number) in lines {
        for part in line.split(|byte| *byte == b'\r') {
            let clean = perftables::clean_line(part);
            // One blank line says all that more of them say.
            if std::mem::replace(&mut blank, clean.is_empty()) && clean.is_empty() {
                continue;
            }
            for reader in &mut readers {
                for text in unrolled(&clean, reader.labels()) {
                    reader.take(PastedLine { number, text }, &mut out);
                }
            }
        }
        if out.len() >= MAX_SCORES {
            break;
        }
    }
    for reader in &mut readers {
        reader.end(&mut out);
    }
    out.retain(|score| score.value.is_finite());
    out.sort_by_key(|score| score.line);
    out.truncate(MAX_SCORES);
    out
}
