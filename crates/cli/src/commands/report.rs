//! `trapline report`: one screen about each recording.

use std::fs;
use std::path::Path;

use std::cmp::Reverse;

use analysis::{ExitTable, Origin, Picture};
use anyhow::{Context, Result};
use event::Quality;
use render::{diagnose, exits, html, info, json, perf_stat, quality, sched, vcpus};
use rules::{Case, Diagnosis};
use serde_json::{Map, Value};
use source::Recording;

use crate::args::{Format, ReportArgs, Sort};
use crate::commands::VERSION;
use crate::commands::exits::sort;
use crate::picture::{Camera, paths_of_rules};
use crate::{input, output, tables};

/// Rows of the table of exits, and of the other tables, that one screen has room for.
const ROWS: usize = 6;
const ACCESS_ROWS: usize = 3;
const VCPU_ROWS: usize = 8;
const TASK_ROWS: usize = 3;
/// Findings that one screen has room for.
const FINDINGS: usize = 3;
/// Kinds of events that one screen has room for.
const KINDS: usize = 5;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let camera = Camera {
        common: &args.common,
        lender: &lender,
        facts: &facts,
        devices: &devices,
        kallsyms: None,
        paths: paths_of_rules(),
        comparing: false,
    };
    let mut parts = Vec::new();
    for path in &args.recordings {
        let recording = input::open(path, camera.common)?;
        let filtered = args.common.filter.any();
        match tables::only(&recording, path, &lender, &devices, filtered)? {
            Some(pictures) => parts.extend(pictures.into_iter().map(|one| of_tables(one, &camera))),
            None => {
                parts.push(read(&recording, path, &camera)?);
                if !filtered {
                    let tables = tables::beside(&recording, path, &devices);
                    parts.extend(tables.into_iter().map(|one| of_tables(one, &camera)));
                }
            }
        }
    }
    let names: Vec<String> = parts.iter().map(|p| p.name.clone()).collect();
    if let Some(file) = &args.output {
        let sections: Vec<(String, String)> = parts
            .iter()
            .map(|p| (p.name.clone(), p.text(usize::MAX)))
            .collect();
        let page = html::page(&format!("trapline report: {}", names.join(", ")), &sections);
        fs::write(file, page).with_context(|| format!("{}: cannot be written", file.display()))?;
        return output::print(&format!("wrote {}\n", file.display()));
    }
    match args.common.format {
        Format::Table => {
            let texts: Vec<String> = parts.iter().map(|p| p.text(ROWS)).collect();
            output::print(&texts.join("\n"))
        }
        Format::Json => {
            let mut all = Quality::default();
            for part in &parts {
                all.merge(part.picture.quality.clone());
            }
            let mut document = json::envelope(VERSION, "report", &names, &all);
            let recordings = parts.iter().map(Part::json).collect();
            document.insert("recordings".to_owned(), Value::Array(recordings));
            output::print(&json::text(document))
        }
        Format::Csv => {
            let tables: Vec<String> = parts
                .iter()
                .map(|p| exits::csv(p.picture.isa, &p.picture.exits))
                .collect();
            output::print(&tables.concat())
        }
    }
}

/// What one recording told.
struct Part {
    name: String,
    head: info::Head,
    picture: Picture,
    diagnosis: Diagnosis,
}

fn read(recording: &Recording, path: &Path, camera: &Camera<'_>) -> Result<Part> {
    let (mut picture, head) = camera.of_recording(recording, path)?;
    if !picture.info.has_exits {
        picture.quality.warn(
            "There are no kvm_exit events, so nothing can be said about exits; record on the host with \
             'perf kvm stat record' or 'trace-cmd record -e kvm -e sched'.",
        );
    }
    Ok(part(input::name(path), head, picture, camera))
}

/// Returns what printed tables told.
fn of_tables(picture: Picture, camera: &Camera<'_>) -> Part {
    let head = info::Head {
        format: format!(
            "printed by {}: {}",
            tables::describe(&picture),
            picture.places.join(", ")
        ),
        nanoseconds: true,
        ..info::Head::default()
    };
    let mut picture = picture;
    camera.facts.warn(&mut picture.quality);
    part(picture.names.join(", "), head, picture, camera)
}

fn part(name: String, head: info::Head, picture: Picture, camera: &Camera<'_>) -> Part {
    let mut picture = picture;
    let diagnosis = rules::diagnose(&[Case {
        picture: &picture,
        facts: Some(camera.facts.all()),
        domain: None,
    }]);
    // Causes may be tasks that nobody asked for.
    picture.only_asked();
    for report in &mut picture.exits {
        sort(&mut report.rows, Sort::Time);
    }
    if let Some(report) = &mut picture.sched {
        report.rows.sort_by_key(|row| Reverse(row.delays.max()));
    }
    Part {
        name,
        head,
        picture,
        diagnosis,
    }
}

impl Part {
    /// Returns the recording's screen.
    fn text(&self, rows: usize) -> String {
        let mut out = format!("{}\n", self.name);
        let printed = self.picture.origin == Origin::Printed;
        if printed {
            let label = format!("{:<10}", "format");
            quality::wrap(&mut out, &label, &self.head.format, output::width());
        } else {
            let info = &self.picture.info;
            out.push_str(&info::summary(&self.head, info, output::width()));
        }
        out.push('\n');
        if rows == usize::MAX {
            out.push_str(&diagnose::text(&self.diagnosis, output::width()));
            out.push('\n');
        } else if !self.diagnosis.findings.is_empty() {
            out.push_str(&diagnose::summary(
                &self.diagnosis,
                FINDINGS,
                output::width(),
            ));
            out.push('\n');
        }
        if self.picture.info.has_exits || !self.picture.exits.is_empty() && printed {
            if let Some(report) = &self.picture.vcpus {
                let layout = vcpus::Layout {
                    rows: if rows == usize::MAX { rows } else { VCPU_ROWS },
                    limit: if rows == usize::MAX { rows } else { 0 },
                    durations: false,
                    nanoseconds: self.head.nanoseconds,
                };
                if rows == usize::MAX {
                    out.push_str(&vcpus::table(report, layout));
                } else {
                    let unknowable = report.unknowable();
                    out.push_str(&vcpus::summary(report, &unknowable, layout));
                    if !unknowable.is_empty() {
                        out.push_str(
                            "-: the recording lacks the events that would tell; 'trapline vcpus' says which\n",
                        );
                    }
                }
                out.push('\n');
            }
            for report in &self.picture.exits {
                // What happened always shows; a kind of access that did not is not news.
                if report.table == ExitTable::Vmexit || !report.rows.is_empty() {
                    let first = report.table == ExitTable::Vmexit;
                    let layout = exits::Layout {
                        wide: false,
                        limit: if first {
                            rows
                        } else {
                            if rows == usize::MAX {
                                rows
                            } else {
                                ACCESS_ROWS
                            }
                        },
                        nanoseconds: self.head.nanoseconds,
                        split: rows == usize::MAX,
                    };
                    out.push_str(&exits::table(self.picture.isa, report, layout));
                    out.push('\n');
                }
            }
        } else if !printed {
            let kinds = if rows == usize::MAX { rows } else { KINDS * 2 };
            out.push_str(&info::counts(&self.picture.info, kinds));
            out.push('\n');
        }
        if let Some(report) = &self.picture.sched {
            let few = if self.picture.info.has_exits {
                TASK_ROWS
            } else {
                rows
            };
            let merged = printed && report.rows.iter().any(|row| row.threads > 1);
            let layout = sched::Layout {
                limit: if rows == usize::MAX { rows } else { few },
                nanoseconds: self.head.nanoseconds,
                threads: !merged,
                runtimes: report.rows.iter().any(|row| row.runtime_ns > 0),
            };
            if rows == usize::MAX {
                out.push_str(&sched::table(report, layout));
            } else {
                out.push_str(&sched::summary(report, layout));
            }
            out.push('\n');
        }
        if !self.picture.counts.is_empty() {
            let counts = analysis::ratios(&self.picture);
            out.push_str(&perf_stat::table(&counts, self.picture.counted_ns));
            out.push('\n');
        }
        out.push_str(&quality::lines(
            &self.name,
            &self.picture.quality,
            output::width(),
        ));
        out
    }

    fn json(&self) -> Value {
        let mut out = Map::new();
        out.insert("input".to_owned(), Value::from(self.name.clone()));
        info::json(&mut out, &self.head, &self.picture.info);
        let tables = self.picture.exits.iter().map(|report| {
            let mut table = Map::new();
            exits::json(&mut table, self.picture.isa, report);
            Value::Object(table)
        });
        out.insert("exits".to_owned(), tables.collect());
        if let Some(report) = &self.picture.sched {
            let mut part = Map::new();
            sched::json(&mut part, report);
            out.insert("sched".to_owned(), Value::Object(part));
        }
        if let Some(report) = &self.picture.vcpus {
            let mut part = Map::new();
            vcpus::json(&mut part, report);
            out.insert("vcpus".to_owned(), Value::Object(part));
        }
        if !self.picture.counts.is_empty() {
            let counts = analysis::ratios(&self.picture);
            out.insert("counts".to_owned(), perf_stat::json(&counts));
            let counted = Value::from(self.picture.counted_ns);
            out.insert("counted_ns".to_owned(), counted);
        }
        let findings = self.diagnosis.findings.iter().map(diagnose::finding_json);
        out.insert("findings".to_owned(), findings.collect());
        Value::Object(out)
    }
}
