//! A page as the report is one, with lanes by chance whose sums are known.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A name that would run if it became markup.
pub(super) const HOSTILE: &str = "</script><img src=x onerror=\"window.owned=1\">";

/// A switch to the first vCPU.
const SWITCH: &str = "prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=1700 \
     next_prio=120";

/// The states, and of what they are.
const KINDS: [(&str, &str); 16] = [
    ("guest", "vcpu"),
    ("kernel", "vcpu"),
    ("user", "vcpu"),
    ("poll", "vcpu"),
    ("halted", "vcpu"),
    ("runnable", "vcpu"),
    ("unknown", "vcpu"),
    ("running", "thread"),
    ("sleeping", "thread"),
    ("blocked", "thread"),
    ("idle", "cpu"),
    ("vcpu", "cpu"),
    ("backend", "cpu"),
    ("other", "cpu"),
    ("unknown", "cpu"),
    ("outside", "all"),
];

/// Numbers by chance, the same in each run (Numerical Recipes' linear congruential generator).
struct Chance(u32);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (u64::from(self.0) * limit.max(1)) >> 32
    }
}

/// A stretch, or a sum of stretches: its states and their times.
struct Piece {
    begin: u64,
    end: u64,
    parts: Vec<(usize, u64)>,
    count: u64,
}

/// A lane of the picture.
pub(super) struct Lane {
    pub id: String,
    group: &'static str,
    pieces: Vec<Piece>,
}

impl Lane {
    fn by_chance(id: String, group: &'static str, chance: &mut Chance, size: (usize, u64)) -> Lane {
        let (cells, length) = size;
        let (first, last) = match group {
            "vcpus" => (0, 7),
            "threads" => (7, 10),
            _ => (10, 15),
        };
        let mut state = || first + chance.below(last - first);
        let mut states: Vec<usize> = (0..cells * 2).map(|_| state() as usize).collect();
        let mean = length / cells as u64;
        let mut pieces = Vec::new();
        let mut begin = 0;
        for _ in 0..cells {
            if chance.below(20) == 0 {
                begin += chance.below(mean);
            }
            let end = begin + 100 + chance.below(2 * mean.saturating_sub(110).max(1));
            if end > length {
                break;
            }
            let state = states.pop().unwrap_or(first as usize);
            let other = states.pop().unwrap_or(first as usize);
            let (parts, count) = if chance.below(6) == 0 && state != other {
                let one = chance.below(end - begin);
                let parts = vec![(state, one), (other, end - begin - one)];
                (parts, 2 + chance.below(500))
            } else {
                (vec![(state, end - begin)], 1)
            };
            pieces.push(Piece {
                begin,
                end,
                parts,
                count,
            });
            begin = end;
        }
        Lane { id, group, pieces }
    }

    /// Returns the states that the lane has between two times, and how long.
    pub(super) fn sums(&self, from: f64, to: f64) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for piece in &self.pieces {
            let (begin, end) = (piece.begin as f64, piece.end as f64);
            let inside = end.min(to) - begin.max(from);
            if inside <= 0.0 {
                continue;
            }
            for (kind, ns) in &piece.parts {
                let sum = sums.entry(KINDS[*kind].0.to_owned()).or_default();
                *sum += *ns as f64 * inside / (end - begin);
            }
        }
        sums.retain(|_, ns| *ns > 0.0);
        sums
    }

    fn json(&self) -> Value {
        let mut cells: Vec<i64> = Vec::new();
        let mut before = 0;
        for piece in &self.pieces {
            cells.push((piece.begin - before) as i64);
            cells.push((piece.end - piece.begin) as i64);
            before = piece.end;
            match piece.parts.as_slice() {
                [(kind, _)] => cells.extend([*kind as i64, 1 + (piece.begin % 3) as i64, 0, 3]),
                parts => {
                    cells.extend([-(parts.len() as i64), piece.count as i64]);
                    cells.extend(
                        parts
                            .iter()
                            .flat_map(|(kind, ns)| [*kind as i64, *ns as i64]),
                    );
                }
            }
        }
        json!({
            "id": self.id, "group": self.group, "label": format!("lane {}", self.id), "detail": HOSTILE, "vm": "a",
            "cells": cells
        })
    }
}

/// What a recording's timeline shows.
pub(super) struct Recording {
    pub lanes: Vec<Lane>,
    /// How long it is.
    pub length: u64,
}

/// When it begins: 100 s and a little, by its clock.
pub(super) const BEGIN: u64 = 100_000_733_142;

impl Recording {
    /// Returns a recording of 20 s with so many vCPUs, half as many threads, as many CPUs, and so many cells in each.
    pub(super) fn by_chance(vcpus: usize, cells: usize) -> Recording {
        let length = 20_454_933_979;
        let mut chance = Chance(7);
        let groups = [
            ("tid", "vcpus", 1700, vcpus),
            ("tid", "threads", 2700, vcpus / 2),
            ("cpu", "cpus", 0, vcpus),
        ];
        let ids = groups.iter().flat_map(|(kind, group, first, count)| {
            (0..*count).map(move |at| (format!("{kind}-{}", first + at), *group))
        });
        let lanes = ids.map(|(id, group)| Lane::by_chance(id, group, &mut chance, (cells, length)));
        Recording {
            lanes: lanes.collect(),
            length,
        }
    }

    fn json(&self) -> Value {
        let kinds: Vec<Value> = KINDS
            .iter()
            .map(|(id, of)| json!({"id": id, "label": format!("state {id}"), "of": of}))
            .collect();
        let lanes: Vec<Value> = self.lanes.iter().map(Lane::json).collect();
        let events: Vec<i64> = (0..200)
            .flat_map(|at| [10_000, at % 8, 1700, at % 4 - 1, 5, 6])
            .collect();
        json!({
            "version": 1,
            "begin_ns": BEGIN.to_string(),
            "length_ns": self.length,
            "nanoseconds": true,
            "names": ["", "EPT_VIOLATION 0xfed000f0:R HPET main counter", "HLT", HOSTILE, "the slowest interrupt",
                      "kvm_exit", "reason HLT rip 0xffffffff81000000", "CPU 0/KVM:1700", "sched_waking",
                      "comm=CPU 0/KVM pid=1700 prio=120 target_cpu=003", "sched_switch", SWITCH],
            "kinds": kinds,
            "lanes": lanes,
            "marks": [
                {"id": "findings", "label": "findings",
                 "marks": [1_000_000_000, 67_000_000, 1, 67_000_000, 4, 4_000_000_000_u64, 0, 3, 61_000_000, 3]},
                {"id": "lost", "label": "lost events", "marks": [9_000_000_000_u64, 1_000_000, 40, 0, 0]},
                {"id": "path:irq", "label": "irq", "slow_ns": 1_500_000,
                 "marks": [500_000_000, 2_000_000, 1, 2_000_000, 0, 3_000_000_000_u64, 1_000, 1, 1_000, 7]},
            ],
            "windows": [
                {"begin": 1_000_000_000, "end": 1_002_000_000, "why": HOSTILE, "events": events},
                // The thread 2700 wakes the vCPU 1700 within the path's second instance, and that one runs.
                {"begin": 3_500_000_000_u64, "end": 3_500_010_000_u64, "why": "a wake-up",
                 "events": [100, 1, 2700, -1, 8, 9, 500, 3, 5, -1, 10, 11]},
            ],
            "notes": ["Stretches shorter than 20us are summed."],
        })
    }
}

fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// Returns a file of the front end's folder.
pub(super) fn front(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../web")
        .join(file)
}

/// Writes a page with the timelines of recordings.
pub(super) fn write(file: &Path, recordings: &[&Recording]) {
    let built =
        |name: &str| std::fs::read_to_string(front("dist").join(name)).expect("web/dist has it");
    let (script, style) = (built("report.js"), built("report.css"));
    let timelines = recordings.iter().enumerate().map(|(at, recording)| {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(recording.json().to_string().as_bytes()).expect("memory is written");
        let data = BASE64_STANDARD.encode(packed.finish().expect("memory is written"));
        format!(
            "<h3>Recording {at}</h3><div class=\"timeline\" data-recording=\"{at}\"><script \
             type=\"application/octet-stream\" \
             class=\"timeline-data\">{data}</script><noscript>The timeline needs a script.</noscript></div>"
        )
    });
    let timelines: String = timelines.collect();
    let page = include_str!("page.html")
        .replace("@SCRIPT_HASH@", &hash(&script))
        .replace("@STYLE_HASH@", &hash(&style))
        .replace("@STYLE@", &style)
        .replace("@HOSTILE@", &escaped(HOSTILE))
        .replace("@TIMELINES@", &timelines)
        .replace("@SCRIPT@", &script);
    std::fs::write(file, page).expect("a page is written");
}
