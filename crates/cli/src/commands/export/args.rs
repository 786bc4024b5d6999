//! `trapline export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::options::values::{NameParser, label};
use crate::options::{Common, GuestArgs};

/// `trapline export`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    /// Write to FILE; - is standard output. The end of the name says what is written: .pftrace or .perfetto-trace,
    /// .csv, .md, .json. With --as ctf and --as parquet it is a folder.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Write this kind of file, whatever the name is.
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<Kind>,

    /// Write the rows of this table (CSV). The default is spans.
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<Rows>,

    /// Export instances of this built-in path, or of the path that FILE describes. Without it, those of all built-in
    /// paths but those that are for --path only. May be repeated.
    #[arg(long, value_name = "NAME|FILE", hide_possible_values = true, value_parser = NameParser::path())]
    pub path: Vec<String>,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names I/O ports and
    /// MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU's machines.
    #[arg(long, value_name = "FILE")]
    pub mtree: Option<PathBuf>,

    #[command(flatten)]
    pub store: StoreArgs,

    #[command(flatten)]
    pub common: Common,
}

/// Options of a store of many recordings (--as parquet).
#[derive(Debug, Args)]
#[command(next_help_heading = "With --as parquet")]
pub(crate) struct StoreArgs {
    /// Store rows of single spans, exits and instances of paths too, which are as large as the recording.
    #[arg(long)]
    pub detail: bool,

    /// The host's name. Without it, that of the recording.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,

    /// The day on which the recording began, as 2026-11-23, where the recording does not say it or says it wrong.
    #[arg(long, value_name = "DAY")]
    pub day: Option<String>,

    /// Store this with the recording: role=NAME is what the host is for, by which it has its peers. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,

    /// Mask names of hosts, VMs, tasks, files and what a guest printed, by the secret that this file has.
    #[arg(long, value_name = "KEYFILE")]
    pub mask: Option<PathBuf>,
}

impl StoreArgs {
    /// Returns whether any was given.
    pub(crate) fn any(&self) -> bool {
        let values = [&self.host, &self.day];
        self.detail
            || values.into_iter().any(Option::is_some)
            || !self.label.is_empty()
            || self.mask.is_some()
    }
}

const HELP: &str = "Kinds of files (docs/export.md says what is in each):
  pftrace  a trace for https://ui.perfetto.dev: vCPUs with their states and exits, instances
           of paths with a flow through their steps, counters, lost events, and the scheduler's
           switches and wake-ups; with recordings of guests, what each guest did
  csv      one table, --table: spans (of vCPUs' states), exits, instances (of paths), events
  md       a summary for a ticket: findings, states, exits, paths, quality
  json     what report, vcpus, exits, sched and paths have, in one document
  ctf      a folder with a CTF 1.8 trace for Babeltrace and Trace Compass: the
           events with their fields, a file for each CPU; the host's alone
  parquet  a folder that holds many recordings, for SQL: a file for each table,
           day and recording. Each REC is a recording of its own; --guest adds
           those of one host's guests. What is there already stays

With recordings of guests beside REC, rows of spans are split by what the guest
did, and the other tables have what their commands have. A folder that record
made has its guests with it.

Sums of the rows are those that vcpus, exits and paths print. Without -o, --format csv or
--format json says what to print.

Examples:
  trapline export trace.dat -o trace.pftrace
  trapline export --table exits --vcpu 1 perf.data -o exits.csv
  trapline export --table instances --path irqfd trace.dat -o irqfd.csv
  trapline export perf.data -o ticket.md
  trapline export --as md perf.data | less
  trapline export --time 443.99,444.10 trace.dat -o part.pftrace
  trapline export --as ctf trace.dat -o trace.ctf && babeltrace2 trace.ctf
  trapline export host.dat guest-a.dat -o both.pftrace
  trapline export host.dat --guest web=guest.perf.data -o spans.csv
  trapline export --as parquet --label role=web *.perf.data -o fleet
  trapline export --as parquet --detail --mask key web1.perf.data -o fleet";

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// For Perfetto.
    Pftrace,
    /// For spreadsheets.
    Csv,
    /// For tickets.
    Md,
    /// For scripts.
    Json,
    /// A folder for Babeltrace and Trace Compass.
    Ctf,
    /// A folder of many recordings, for SQL.
    Parquet,
}

/// Tables of single things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rows {
    /// Spans of the vCPUs' states.
    Spans,
    /// Exits.
    Exits,
    /// Instances of paths.
    Instances,
    /// Events.
    Events,
}
