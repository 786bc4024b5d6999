//! `trapline export`: a recording as a file of another tool's.

pub(crate) mod args;
mod ctf;
pub(super) mod parquet;
mod single;
pub(crate) mod whole;

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::Result;
use event::Quality;
use paths::lang;
use session::{Guest, GuestPairing, HostInput, OpenRecording};

use crate::commands::events;
use crate::commands::export::args::{ExportArgs, Kind, Rows};
use crate::commands::paths::read_path;
use crate::new_file;
use crate::opening::{self, AccompanyingFiles};
use crate::options::Format;
use crate::output;
use crate::usage::Usage;

/// What is written, beside the bytes: the doubts about the recording, and what the file leaves out.
#[derive(Debug, Default)]
struct WrittenExport {
    quality: Quality,
    left_out: Vec<String>,
}

/// A host's recording and those of its guests, which are walked together.
struct HostWithGuests<'t> {
    recording: &'t OpenRecording<'t>,
    paired: GuestPairing<'t>,
}

impl<'t> HostWithGuests<'t> {
    fn of(host: &'t HostInput<'_>, recording: &'t OpenRecording<'t>) -> Result<HostWithGuests<'t>> {
        Ok(HostWithGuests {
            recording,
            paired: host.paired(recording)?,
        })
    }

    fn guests(&self) -> &[Guest<'t>] {
        &self.paired.guests
    }

    /// Returns the paths that are followed: where nobody named one, those through guests too.
    fn paths(&self, wanted: &WantedPaths) -> Vec<lang::PathDefinition> {
        let mut all = wanted.paths.clone();
        if !wanted.named && !self.guests().is_empty() {
            all.extend(paths::with_guests());
        }
        all
    }
}

/// Runs the command.
pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    let kind = kind(args)?;
    if kind == Kind::Parquet {
        return parquet::run(args);
    }
    if args.store.any() {
        return Err(Usage::error(
            "--detail, --host, --day, --label and --mask are for a store of recordings: --as parquet -o DIR",
        ));
    }
    if kind == Kind::Pftrace && to_standard_output(args) && io::stdout().is_terminal() {
        return Err(Usage::error(
            "a trace for Perfetto is no text; name a file with -o FILE.pftrace",
        ));
    }
    if kind == Kind::Ctf && to_standard_output(args) {
        return Err(Usage::error("a CTF trace is a folder; name it with -o DIR"));
    }
    let wanted = wanted(args)?;
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        empty: matches!(kind, Kind::Md | Kind::Json),
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let given = named.inputs();
    let session = opening::session(&args.common, &beside, &given)?;
    let host = session.host(&named.recording, &named.guests)?;
    let mut written = WrittenExport::default();
    if matches!(kind, Kind::Md | Kind::Json) {
        let text = whole::text(kind, &session, &host, wanted)?;
        if to_standard_output(args) {
            return output::print(&text.text);
        }
        new_file::write(&args.output, |out| out.write_all(text.text.as_bytes()))?;
        written.quality = text.quality;
    } else if kind == Kind::Ctf {
        written = ctf::write(&host, &args.output)?;
    } else {
        let recording = host.input().recording_with_symbols()?;
        let together = HostWithGuests::of(&host, &recording)?;
        let rows = args.table.unwrap_or(Rows::Spans);
        // What makes the command fail is known before the file is begun; what ends it early leaves no file.
        let first = match (kind, rows) {
            (Kind::Csv, Rows::Events) => None,
            _ => Some(single::first(kind, rows, &session, &together)?),
        };
        let mut write = |out: &mut dyn Write| -> Result<()> {
            written = match &first {
                None => WrittenExport {
                    quality: events::csv(&recording, &together.paired, Box::new(out))?,
                    left_out: Vec::new(),
                },
                Some(first) => first.write(&together.paths(&wanted), &together, out)?,
            };
            Ok(())
        };
        if to_standard_output(args) {
            let mut out = output::stdout();
            write(&mut out)?;
            out.flush()?;
        } else {
            new_file::write(&args.output, |out| {
                write(out).map_err(|error| error.downcast().unwrap_or_else(io::Error::other))
            })?;
        }
    }
    output::say_doubts(&host.names().join(", "), &written.quality)?;
    if to_standard_output(args) {
        for sentence in &written.left_out {
            writeln!(io::stderr(), "{sentence}")?;
        }
        return Ok(());
    }
    let mut text = format!("wrote {}\n", args.output.display());
    for sentence in &written.left_out {
        text.push_str(&format!("{sentence}\n"));
    }
    output::print(&text)
}

fn to_standard_output(args: &ExportArgs) -> bool {
    args.output == Path::new("-")
}

/// Returns what is to be written: what the user says, or by the end of the file's name.
fn kind(args: &ExportArgs) -> Result<Kind> {
    let by_name = match args.output.extension().and_then(|end| end.to_str()) {
        Some("pftrace" | "perfetto-trace") => Some(Kind::Pftrace),
        Some("csv") => Some(Kind::Csv),
        Some("md") => Some(Kind::Md),
        Some("json") => Some(Kind::Json),
        _ => None,
    };
    let by_format = match args.common.format {
        Format::Table => None,
        Format::Csv => Some(Kind::Csv),
        Format::Json => Some(Kind::Json),
    };
    let Some(kind) = args.kind.or(by_name).or(by_format) else {
        if to_standard_output(args) {
            return Err(Usage::error(
                "what to write is not known: name a file with -o, or say --as pftrace, csv, md or json",
            ));
        }
        return Err(Usage::error(format!(
            "-o {}: what to write is known by the end of the name, and recordings are exported as .pftrace, .csv, .md \
             or .json; --as says it for other names, and for a folder (ctf, parquet)",
            args.output.display()
        )));
    };
    if args.table.is_some() && kind != Kind::Csv {
        return Err(Usage::error(
            "--table chooses the rows of a CSV file; the other kinds have what they have",
        ));
    }
    Ok(kind)
}

/// The paths that were asked for.
struct WantedPaths {
    paths: Vec<lang::PathDefinition>,
    /// Whether somebody named them; else they are the host's built-in ones.
    named: bool,
}

/// Returns the paths that were asked for.
fn wanted(args: &ExportArgs) -> Result<WantedPaths> {
    let named = args.path.iter().map(|name| read_path(name));
    let paths = named.collect::<Result<Vec<_>>>()?;
    Ok(match paths.is_empty() {
        true => WantedPaths {
            paths: paths::all_builtin(),
            named: false,
        },
        false => WantedPaths { paths, named: true },
    })
}
