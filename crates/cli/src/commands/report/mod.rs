//! `trapline report`: one screen about each recording, ten lines, all that there is, or one HTML file.

pub(crate) mod args;
mod cost;
pub(crate) mod document;
mod page;
mod part;
mod screen;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use render::ClockUnit;
use render::exits;
use render::tickets::TicketDocument;
use rules::Diagnosis;
use session::{PictureOptions, PrintedTables, Session, TicketFile};

use crate::answer::Answer;
use crate::commands::diagnose;
use crate::commands::report::args::ReportArgs;
use crate::opening::{self, AccompanyingFiles};
use crate::options::Format;
use crate::output;
use crate::usage::Usage;

use part::Part;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if let Some(file) = &args.output {
        page::check_name(file)?;
    }
    one_way_to_print(args)?;
    report(&ReportArgs {
        recordings: args.recordings.or_newest()?,
        ..args.clone()
    })
}

/// Reads the recordings that are named, and prints what was found of them.
fn report(args: &ReportArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        empty: true,
        recordings: Some(args.recordings.len()),
        beside_recordings: usize::from(args.against.is_some()),
        tickets: true,
        ..AccompanyingFiles::default()
    };
    let inputs = args.recordings.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = inputs.chain(args.guests.paths()).collect();
    let mut common = args.common.clone();
    if args.cost {
        // What another thread does is not seen by the clock of this one.
        common.threads = Some(1);
    }
    let session = opening::session(&common, &beside, &inputs)?;
    let options = match args.output {
        Some(_) => PictureOptions::to_report(),
        None => PictureOptions::default().through_guests(),
    };
    if args.cost {
        return cost::print(args, &session, &options);
    }
    let (parts, hosts) = read(args, &session, &options)?;
    if parts.is_empty() {
        return definitions(args, &session);
    }
    let mut names: Vec<String> = Vec::new();
    for name in parts.iter().flat_map(Part::names) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if let Some(file) = &args.output {
        let read = page::Read {
            names: &names,
            hosts: &hosts,
            parts: &parts,
        };
        return page::write(args, file, &read, &session);
    }
    let quality = output::merged(parts.iter().map(|part| &part.picture));
    let answer = Answer {
        format: args.common.format,
        command: "report",
        inputs: &names,
        quality: &quality,
        // Each recording says it of itself.
        clock: ClockUnit::Nanoseconds,
    };
    output::note_doubts(&quality);
    let table = args.common.format == Format::Table;
    let tickets = listed(&session, &parts);
    if table && args.brief {
        let texts: Vec<String> = parts.iter().map(Part::brief).collect();
        return output::print(&texts.join("\n"));
    }
    if table && !args.full {
        let several = parts.len() > 1;
        let above = tickets
            .iter()
            .map(|ticket| screen::of_ticket(ticket, &parts));
        let screens = parts.iter().map(|part| part.screen(several));
        let screens: Vec<_> = above.chain(screens).collect();
        return output::screens(&screens);
    }
    answer.print(
        || {
            let width = output::width();
            let lists = tickets
                .iter()
                .map(|one| render::tickets::list(one.name(), one.ticket(), width));
            let texts: Vec<String> = lists.chain(parts.iter().map(Part::text)).collect();
            texts.join("\n")
        },
        || document::Document {
            tickets: (tickets.iter())
                .map(|one| TicketDocument::of(one.name(), one.ticket()))
                .collect(),
            recordings: parts.iter().map(document::recording).collect(),
        },
        |_| {
            let tables = parts
                .iter()
                .map(|part| exits::csv(part.picture.isa, &part.picture.exits, part.clock()));
            tables.collect()
        },
    )
}

/// Prints the screen of a recording, and writes its page, out of one reading. Returns what rules say of it.
pub(crate) fn screen_and_page(args: &ReportArgs, page: &Path) -> Result<Diagnosis> {
    let beside = AccompanyingFiles {
        empty: true,
        ..AccompanyingFiles::default()
    };
    let inputs: Vec<&Path> = args.recordings.iter().map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let (mut parts, hosts) = read(args, &session, &PictureOptions::to_report())?;
    let names: Vec<String> = parts.iter().flat_map(Part::names).cloned().collect();
    let screens: Vec<_> = parts.iter().map(|part| part.screen(false)).collect();
    output::screens(&screens)?;
    let read = page::Read {
        names: &names,
        hosts: &hosts,
        parts: &parts,
    };
    page::write(args, page, &read, &session)?;
    let first = parts.drain(..).next();
    Ok(first.map_or_else(Diagnosis::of_nothing, |part| part.diagnosis))
}

/// Reads all inputs, and returns what was found of each, and the recordings of hosts among them.
fn read(
    args: &ReportArgs,
    session: &Session,
    options: &PictureOptions,
) -> Result<(Vec<Part>, Vec<PathBuf>)> {
    let mut parts = Vec::new();
    let mut tables = Tables::default();
    // Guests are compared with nothing.
    let mut hosts = Vec::new();
    named_once(&args.recordings)?;
    for host in session.hosts(&args.recordings, &args.guests.named)? {
        let input = host.input();
        hosts.push(host.path().to_owned());
        let mut own = PrintedTables::default();
        if input.printed(&mut own, options)? && !host.has_guests() {
            tables.alone.push(input.name().to_owned());
        } else {
            let given = page::invocation_with(args, &host);
            parts.push(part::read(&host, options, session, given)?);
            // Tables beside a recording are sums, of which a filter can leave out nothing.
            if args.common.filter.any() {
                continue;
            }
        }
        tables.printed.append(&mut own);
    }
    parts.extend(tables.parts(args, session)?);
    for picture in session.of_facts() {
        let given = page::invocation(args, Path::new(&picture.names[0]));
        parts.push(part::of_facts(picture, session, given.only_report()));
    }
    Ok((parts, hosts))
}

/// Says that a file is named twice: a host's recording is not that of its guest.
fn named_once(recordings: &[PathBuf]) -> Result<()> {
    let mut seen = HashSet::new();
    for path in recordings.iter().filter(|path| path.as_os_str() != "-") {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(real) {
            bail!(
                "{}: is given twice; name it once, or a host's recording and then those of its guests",
                path.display()
            );
        }
    }
    Ok(())
}

/// Prints what definitions say by themselves, where there is nothing else in the inputs.
fn definitions(args: &ReportArgs, session: &Session) -> Result<()> {
    if args.output.is_some() || args.common.format != Format::Table {
        return Err(Usage::error(
            "the inputs are definitions of guests alone: 'trapline diagnose --domain FILE' has a document of them",
        ));
    }
    let files = session.tickets().iter().flat_map(TicketFile::definitions);
    diagnose::print_definitions(&files.cloned().collect::<Vec<_>>(), session)
}

/// Returns the texts of which the parts are listed: those in which there is more than what one picture shows.
fn listed<'s>(session: &'s Session, parts: &[Part]) -> Vec<&'s TicketFile> {
    let several = |file: &&TicketFile| {
        let of_file = parts.iter().filter(|part| part.is_of(file));
        file.ticket().parts.len() > 1 && (file.ticket().has_several() || of_file.count() > 1)
    };
    session.tickets().iter().filter(several).collect()
}

/// Refuses options of which one would be ignored.
fn one_way_to_print(args: &ReportArgs) -> Result<()> {
    let format = match args.common.format {
        Format::Table => return Ok(()),
        Format::Json => "json",
        Format::Csv => "csv",
    };
    if args.output.is_some() {
        return Err(Usage::error(format!(
            "--format {format} and -o exclude each other: -o writes the page, and --format prints the numbers; run \
             report twice for both"
        )));
    }
    if args.brief {
        return Err(Usage::error(format!(
            "--format {format} and --brief exclude each other: --brief prints ten lines of text"
        )));
    }
    Ok(())
}

/// Printed tables of all inputs.
#[derive(Default)]
struct Tables {
    printed: PrintedTables,
    /// The inputs that are tables and nothing else.
    alone: Vec<String>,
}

impl Tables {
    /// Returns a part for each situation of which there are tables: those of different kinds are of one, as `diagnose`
    /// takes them.
    fn parts(self, args: &ReportArgs, session: &Session) -> Result<Vec<Part>> {
        let pictures = session.of_printed(self.printed)?;
        let of: Vec<Vec<String>> = pictures.iter().map(|one| one.names.clone()).collect();
        let mut parts = Vec::new();
        for (at, picture) in pictures.into_iter().enumerate() {
            let shared = |name: &String| {
                let others = of.iter().enumerate().filter(|(other, _)| *other != at);
                others.into_iter().any(|(_, names)| names.contains(name))
            };
            let names = &picture.names;
            let shared = names.iter().any(shared);
            let named = |path: &&PathBuf| names.iter().any(|name| part::is_of(name, path));
            let mut paths = args.recordings.iter().filter(named);
            let Some(first) = paths.next() else {
                continue;
            };
            let mut given = page::invocation(args, first);
            given = paths.fold(given, |given, path| given.and(path.as_os_str()));
            // Other commands take a file that is one table, or tables of one situation.
            let alone = names.iter().all(|name| self.alone.contains(name));
            if shared || !alone || names.len() > 1 {
                given = given.only_report();
            }
            parts.push(part::of_tables(picture, shared, session, given));
        }
        Ok(parts)
    }
}
