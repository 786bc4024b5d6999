//! The HTML file.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use compare::CompareOptions;
use render::neutral;
use report::{Flame, Invocation, Page, Recording, ReportComparison, timeline_data};
use session::{HostInput, PictureOptions, Session};

use super::part::Part;
use crate::commands::compare::sides::{Ready, compared};
use crate::commands::report::args::ReportArgs;
use crate::usage::Usage;
use crate::{new_file, output};

/// Checks, before anything is read, that a page is what the name of the file promises. What is no file may have any
/// name.
pub(super) fn check_name(file: &Path) -> Result<()> {
    if is_standard_output(file) && io::stdout().is_terminal() {
        return Err(Usage::error(
            "-o -: a terminal cannot show HTML; name a file with -o FILE.html",
        ));
    }
    let end = file.extension().and_then(|end| end.to_str());
    let html = matches!(end, Some("html" | "htm"));
    let special = || fs::metadata(file).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if html || is_standard_output(file) || special() {
        return Ok(());
    }
    Err(Usage::error(format!(
        "-o {}: the report is one HTML file, so its name ends in .html or .htm; 'trapline export' writes .md, .json, \
         .csv and .pftrace",
        file.display()
    )))
}

fn is_standard_output(file: &Path) -> bool {
    file == Path::new("-")
}

/// What was read.
pub(super) struct Read<'r> {
    /// The names of all files.
    pub names: &'r [String],
    /// The recordings without those of guests.
    pub hosts: &'r [PathBuf],
    pub parts: &'r [Part],
}

/// Writes the file, and says so.
pub(super) fn write(
    args: &ReportArgs,
    file: &Path,
    read: &Read<'_>,
    session: &Session,
) -> Result<()> {
    let recordings: Vec<Recording<'_>> = read.parts.iter().map(recording).collect();
    let other = args.against.as_ref();
    let compared = other.map(|other| {
        let ready = Ready {
            session,
            pictures: PictureOptions::to_compare(),
            options: CompareOptions::default(),
        };
        // Guests' recordings that were named are of the page alone.
        let side = |paths: &[PathBuf]| -> Result<Vec<HostInput<'_>>> {
            let mut hosts = session.hosts_among(paths, read.hosts.len() + 1)?;
            session.add_guests(&mut hosts, &[])?;
            Ok(hosts)
        };
        let first = side(std::slice::from_ref(other))?;
        compared(&ready, &first, &side(read.hosts)?, None)
    });
    let compared = compared.transpose()?;
    let title = format!("trapline report: {}", read.names.join(", "));
    let page = Page {
        title: &neutral::name(&title),
        version: env!("CARGO_PKG_VERSION"),
        recordings: &recordings,
        against: compared.as_ref().map(|compared| ReportComparison {
            comparison: &compared.comparison,
            a: &compared.names[0],
            b: &compared.names[1],
            invocations: other.iter().map(|path| invocation(args, path)).collect(),
        }),
    };
    for part in read.parts {
        output::note_doubts(&part.picture.quality);
    }
    if is_standard_output(file) {
        let mut out = output::stdout();
        page.write(&mut out)?;
        return Ok(out.flush()?);
    }
    new_file::write(file, |out| page.write(out))?;
    output::print(&format!("wrote {}\n", file.display()))
}

/// Returns what a part's page is made of.
fn recording(part: &Part) -> Recording<'_> {
    // A graph of waits without stacks would say no more than the tables of the scheduler.
    let with_frames = part.flames.iter().filter(|one| one.report.has_frames());
    let flames = with_frames.map(|flame| Flame {
        report: &flame.report,
        notes: flame.doubts.texts(),
        guests: &flame.guests,
    });
    let timeline = part.picture.timeline.as_ref();
    Recording {
        name: &part.title,
        head: &part.head,
        picture: &part.picture,
        diagnosis: &part.diagnosis,
        guests: &part.guests,
        flames: flames.collect(),
        timeline: timeline.map(|timeline| {
            timeline_data::json(timeline, part.picture.all_paths(), &part.picture.examples)
        }),
        examples: &part.picture.examples,
        invocation: part.invocation.clone(),
        headline: part.headline(),
    }
}

/// Returns how a host's recording was given, with those of its guests.
pub(super) fn invocation_with(args: &ReportArgs, host: &HostInput<'_>) -> Invocation {
    let given = invocation(args, host.path());
    host.guests()
        .fold(given, |given, (path, vm)| given.guest(path.as_os_str(), vm))
}

/// Returns how a recording was given, for commands that show the same again.
pub(super) fn invocation(args: &ReportArgs, recording: &Path) -> Invocation {
    let mut given = Invocation::new(recording.as_os_str());
    let common = &args.common;
    let filter = &common.filter;
    if let Some(formats) = &common.formats {
        given = given.option("--formats", formats.as_os_str());
    }
    for facts in &common.facts {
        given = given.option("--facts", facts.as_os_str());
    }
    for (name, value) in [
        ("--pid", filter.pid.map(|pid| pid.to_string())),
        ("--vm", filter.vm.clone()),
        ("--vcpu", filter.vcpu.map(|vcpu| vcpu.to_string())),
        ("--cpu", filter.cpu.as_ref().map(ToString::to_string)),
        ("--time", filter.time.as_ref().map(ToString::to_string)),
    ] {
        if let Some(value) = value {
            given = given.filter(name, OsStr::new(&value));
        }
    }
    if let Some(size) = common.spool_limit {
        given = given.option("--spool-limit", OsStr::new(&size.to_string()));
    }
    for (name, file) in [
        ("--kallsyms", &args.kallsyms),
        ("--guest-kallsyms", &args.guest_kallsyms),
    ] {
        if let Some(file) = file {
            given = given.symbols(name, file.as_os_str());
        }
    }
    match &args.mtree {
        Some(mtree) => given.mtree(mtree.as_os_str()),
        None => given,
    }
}
