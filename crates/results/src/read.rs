//! Results that are read back.

use serde::Deserialize;
use thiserror::Error;

use crate::{BenchResults, RESULT_VERSION};

/// A file of a result has no more bytes than this: rows are bounded, and each has some hundred.
pub const MAX_BYTES: usize = 64 << 20;
/// A result has no more rows than this: every pair of 64 CPUs, with an idle and a busy target.
pub const MAX_ROWS: usize = 2 * 64 * 64;
/// The members that tell a result stand in so many bytes.
const HEAD: usize = 4096;

/// Why something is no result.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// Not JSON, or not of a result's members.
    #[error(
        "is no whole result of 'trapline bench' ({why}); write it again with 'trapline bench ... -o FILE' or '--format \
         json'"
    )]
    Damaged {
        /// What is wrong, and where.
        why: String,
    },
    /// Written by another version of trapline.
    #[error(
        "is a result of version {found}, and this trapline reads version {RESULT_VERSION}; measure again, or compare \
         with the trapline that wrote it"
    )]
    Version {
        /// What it says.
        found: u64,
    },
    /// More than a result has.
    #[error("has {what}, which no result of 'trapline bench' has")]
    TooMuch {
        /// What there is too much of.
        what: String,
    },
}

/// Returns whether bytes begin as a result of `trapline bench` does. Whether it is whole, [`read`] finds out.
pub fn looks_like(bytes: &[u8]) -> bool {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('{') && has(text, "command", "\"bench\"")
}

/// Returns whether a member has a value, whatever blanks stand between.
fn has(text: &str, name: &str, value: &str) -> bool {
    let name = format!("\"{name}\"");
    text.match_indices(&name).any(|(at, found)| {
        let rest = text[at + found.len()..].trim_start();
        let rest = rest.strip_prefix(':').map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(value))
    })
}

/// What is looked at before the rest.
#[derive(Debug, Deserialize)]
struct Version {
    result_version: u64,
}

/// Reads a result.
///
/// # Errors
///
/// It is damaged, of another version, or larger than results are.
pub fn read(bytes: &[u8]) -> Result<BenchResults, ReadError> {
    if bytes.len() > MAX_BYTES {
        let what = format!("{} bytes", bytes.len());
        return Err(ReadError::TooMuch { what });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let damaged = |error: serde_json::Error| ReadError::Damaged {
        why: error.to_string(),
    };
    let version: Version = serde_json::from_slice(bytes).map_err(damaged)?;
    if version.result_version != RESULT_VERSION {
        let found = version.result_version;
        return Err(ReadError::Version { found });
    }
    let outcome: BenchResults = serde_json::from_slice(bytes).map_err(damaged)?;
    if outcome.rows.len() > MAX_ROWS {
        let what = format!("{} rows", outcome.rows.len());
        return Err(ReadError::TooMuch { what });
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Bench, BenchMachine, BenchPlan, BenchRow, ClockReadings, Noise, ResultsHead, Slow,
    };

    fn outcome() -> BenchResults {
        BenchResults {
            head: ResultsHead {
                result_version: RESULT_VERSION,
                bench: Bench::Ipi,
                label: Some("haltpoll".to_owned()),
                interrupted: false,
                machine: BenchMachine {
                    kernel: Some("6.18.0".to_owned()),
                    virtualized: Some(true),
                    cpus: 72,
                    ..BenchMachine::default()
                },
                plan: BenchPlan {
                    iterations: 1000,
                    cpus: "0-71".to_owned(),
                    ..BenchPlan::default()
                },
                started: ClockReadings {
                    monotonic_ns: 5,
                    counter: Some(u64::MAX),
                    ..ClockReadings::default()
                },
                ended: ClockReadings::default(),
                noise: Noise {
                    lost_share: 0.25,
                    ..Noise::default()
                },
            },
            rows: vec![
                BenchRow {
                    count: 3,
                    p50_ns: Some(2300),
                    slow: vec![Slow {
                        begin_ns: 17,
                        ns: 9000,
                    }],
                    ..BenchRow::new("one CPU").target("idle").from(0).to(1)
                },
                BenchRow::new("all").missing("there is one CPU"),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = serde_json::to_vec(&outcome()).expect("JSON");
        assert_eq!(read(&text), Ok(outcome()));
    }

    #[test]
    fn other_versions_and_other_files_say_what_they_are() {
        let mut later = outcome();
        later.head.result_version = 2;
        let text = serde_json::to_vec(&later).expect("JSON");
        assert_eq!(read(&text), Err(ReadError::Version { found: 2 }));
        assert!(matches!(read(b"{}"), Err(ReadError::Damaged { .. })));
        assert!(looks_like(
            b" {\"trapline\": \"0.1.0\",\n \"command\" : \"bench\", "
        ));
        for other in [
            &b"{\"command\": \"facts\", \"bench\": 1}"[..],
            b"command bench",
            b"",
            b"[\"command\", \"bench\"]",
        ] {
            assert!(!looks_like(other));
        }
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_another_result(at in 0usize..2000, byte: u8, cut in 0usize..2000) {
            let mut text = serde_json::to_vec(&outcome()).expect("JSON");
            let _ = looks_like(&text[..cut.min(text.len())]);
            if cut < text.len() {
                prop_assert!(read(&text[..cut]).is_err());
            }
            let at = at % text.len();
            text[at] = byte;
            let _ = read(&text);
            let _ = looks_like(&text);
        }
    }
}
