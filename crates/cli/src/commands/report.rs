//! `trapline report`: one screen about each recording.

use std::fs;
use std::path::{Path, PathBuf};

use std::cmp::Reverse;

use analysis::{ExitTable, Origin, Picture};
use anyhow::{Context, Result};
use render::{Layout, diagnose, exits, html, info, perf_stat, quality, sched, vcpus};
use rules::{Case, Diagnosis};
use serde::Serialize;
use serde_json::Value;
use session::{Input, PictureOptions, Session, Taken};

use crate::answer::Answer;
use crate::args::{ReportArgs, Sort};
use crate::commands::exits::sort;
use crate::commands::info::head;
use crate::opening::{self, Beside};
use crate::output;

/// Rows of the table of exits, and of the other tables, that one screen has room for.
const ROWS: usize = 6;
const ACCESS_ROWS: usize = 3;
const VCPU_ROWS: usize = 8;
const TASK_ROWS: usize = 3;
/// Findings that one screen has room for.
const FINDINGS: usize = 3;
/// Kinds of events that one screen has room for.
const KINDS: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        ..Beside::default()
    };
    let inputs: Vec<&Path> = args.recordings.iter().map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let options = PictureOptions::default();
    let mut parts = Vec::new();
    for path in inputs {
        let input = session.input(path)?;
        let tables = match input.tables()? {
            Some(pictures) => pictures,
            None => {
                parts.push(read(&input, &options, &session)?);
                match args.common.filter.any() {
                    true => Vec::new(),
                    false => input.tables_beside(),
                }
            }
        };
        parts.extend(tables.into_iter().map(|one| of_tables(one, &session)));
    }
    let names: Vec<String> = parts.iter().map(|p| p.name.clone()).collect();
    if let Some(file) = &args.output {
        let sections: Vec<(String, String)> = parts
            .iter()
            .map(|p| (p.name.clone(), p.text(true)))
            .collect();
        let page = html::page(&format!("trapline report: {}", names.join(", ")), &sections);
        fs::write(file, page).with_context(|| format!("{}: cannot be written", file.display()))?;
        return output::print(&format!("wrote {}\n", file.display()));
    }
    let quality = output::merged(parts.iter().map(|part| &part.picture));
    let answer = Answer {
        format: args.common.format,
        command: "report",
        inputs: &names,
        quality: &quality,
    };
    answer.print(
        || {
            let texts: Vec<String> = parts.iter().map(|p| p.text(false)).collect();
            texts.join("\n")
        },
        || Document {
            recordings: parts.iter().map(Part::recording).collect(),
        },
        || {
            let tables = parts
                .iter()
                .map(|p| exits::csv(p.picture.isa, &p.picture.exits));
            tables.collect()
        },
    )
}

/// The fields of a document.
#[derive(Debug, Serialize)]
struct Document<'a> {
    recordings: Vec<Recording<'a>>,
}

/// A recording in a document.
#[derive(Debug, Serialize)]
struct Recording<'a> {
    input: &'a str,
    #[serde(flatten)]
    info: info::Document<'a>,
    exits: Vec<exits::OneTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched: Option<sched::Document<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcpus: Option<vcpus::Document>,
    /// Of what perf stat printed.
    #[serde(flatten)]
    counts: Option<perf_stat::Document>,
    findings: Value,
}

/// What one recording told.
struct Part {
    name: String,
    head: info::Head,
    picture: Picture,
    diagnosis: Diagnosis,
}

fn read(input: &Input<'_>, options: &PictureOptions, session: &Session) -> Result<Part> {
    let Taken {
        mut picture,
        header,
    } = input.picture(options)?;
    if !picture.info.has_exits {
        picture.quality.warn(
            "There are no kvm_exit events, so nothing can be said about exits; record on the host with \
             'perf kvm stat record' or 'trace-cmd record -e kvm -e sched'.",
        );
    }
    Ok(part(
        input.name().to_owned(),
        head(&header),
        picture,
        session,
    ))
}

/// Returns what printed tables told.
fn of_tables(picture: Picture, session: &Session) -> Part {
    let head = info::Head {
        format: format!(
            "printed by {}: {}",
            session::describe(&picture),
            picture.places.join(", ")
        ),
        nanoseconds: true,
        ..info::Head::default()
    };
    let mut picture = picture;
    session.host_facts().warn(&mut picture.quality);
    part(picture.names.join(", "), head, picture, session)
}

fn part(name: String, head: info::Head, picture: Picture, session: &Session) -> Part {
    let mut picture = picture;
    let diagnosis = rules::diagnose(&[Case {
        picture: &picture,
        facts: Some(session.facts()),
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
    /// Returns the recording's screen; with `whole`, a page of all rows.
    fn text(&self, whole: bool) -> String {
        let picture = &self.picture;
        let printed = picture.origin == Origin::Printed;
        let mut out = self.head(printed);
        out.push('\n');
        out.push_str(&self.findings(whole));
        if picture.info.has_exits || !picture.exits.is_empty() && printed {
            out.push_str(&self.vcpus(whole));
            out.push_str(&self.exits(whole));
        } else if !printed {
            let kinds = if whole { usize::MAX } else { KINDS };
            out.push_str(&info::counts(&picture.info, kinds));
            out.push('\n');
        }
        out.push_str(&self.sched(whole));
        if !picture.counts.is_empty() {
            let counts = analysis::ratios(picture);
            out.push_str(&perf_stat::table(
                &counts,
                picture.counted_ns,
                self.layout(usize::MAX),
            ));
            out.push('\n');
        }
        let quality = output::quality(&self.name, &picture.quality);
        out.push_str(&quality);
        out
    }

    fn layout(&self, limit: usize) -> Layout {
        output::layout(limit, self.head.nanoseconds)
    }

    fn head(&self, printed: bool) -> String {
        let mut out = format!("{}\n", self.name);
        if printed {
            let label = format!("{:<10}", "format");
            quality::wrap(&mut out, &label, &self.head.format, output::width());
        } else {
            let info = &self.picture.info;
            out.push_str(&info::summary(&self.head, info, output::width()));
        }
        out
    }

    fn findings(&self, whole: bool) -> String {
        if whole {
            diagnose::text(&self.diagnosis, output::width()) + "\n"
        } else if self.diagnosis.findings.is_empty() {
            String::new()
        } else {
            diagnose::summary(&self.diagnosis, FINDINGS, output::width()) + "\n"
        }
    }

    fn vcpus(&self, whole: bool) -> String {
        let Some(report) = &self.picture.vcpus else {
            return String::new();
        };
        if whole {
            return vcpus::table(report, false, self.layout(usize::MAX)) + "\n";
        }
        let unknowable = report.unknowable();
        let mut out = vcpus::summary(report, &unknowable, false, self.layout(VCPU_ROWS));
        if !unknowable.is_empty() {
            out.push_str("-: not known; 'trapline vcpus' says which events are missing\n");
        }
        out + "\n"
    }

    fn exits(&self, whole: bool) -> String {
        let mut out = String::new();
        for report in &self.picture.exits {
            let first = report.table == ExitTable::Vmexit;
            // What happened always shows; a kind of access that did not is not news.
            if !first && report.rows.is_empty() {
                continue;
            }
            let layout = self.layout(match (whole, first) {
                (true, _) => usize::MAX,
                (false, true) => ROWS,
                (false, false) => ACCESS_ROWS,
            });
            out.push_str(&exits::table(self.picture.isa, report, false, layout));
            if whole {
                out.push_str(&exits::split(report, layout));
            }
            out.push('\n');
        }
        out
    }

    fn sched(&self, whole: bool) -> String {
        let Some(report) = &self.picture.sched else {
            return String::new();
        };
        if whole {
            return sched::table(report, self.layout(usize::MAX)) + "\n";
        }
        let limit = if self.picture.info.has_exits {
            TASK_ROWS
        } else {
            ROWS
        };
        sched::summary(report, self.layout(limit)) + "\n"
    }

    fn recording(&self) -> Recording<'_> {
        let picture = &self.picture;
        let counted = !picture.counts.is_empty();
        Recording {
            input: &self.name,
            info: info::document(&self.head, &picture.info),
            exits: exits::tables(picture.isa, &picture.exits),
            sched: picture.sched.as_ref().map(sched::document),
            vcpus: picture.vcpus.as_ref().map(vcpus::document),
            counts: counted
                .then(|| perf_stat::document(&analysis::ratios(picture), picture.counted_ns)),
            findings: diagnose::findings(&self.diagnosis.findings),
        }
    }
}
