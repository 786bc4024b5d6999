//! `trapline fleet`: which of many hosts to look at.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use crate::commands::sql::engine::{EngineRequest, FleetEngine};
use crate::commands::sql::{days as days_of, is_store, today};
use crate::options::Format;
use crate::output;
use crate::usage::Usage;

/// Columns of `runs` by which hosts may be peers.
const PEERS: [&str; 5] = ["role", "cpu_model", "kernel", "arch", "cpus"];

/// `trapline fleet`.
#[derive(Debug, Args)]
#[command(after_help = FLEET_HELP)]
pub(crate) struct FleetArgs {
    /// The folder that 'trapline export --as parquet' fills.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,

    /// The day in question, as 2026-11-23. Without it, the store's last until today.
    #[arg(long, value_name = "DAY")]
    pub day: Option<String>,

    /// Hold it against so many days before it alone, as 7d, or against the days from 2026-11-16 on. Without it, against
    /// all before.
    #[arg(long, value_name = "DAYS")]
    pub since: Option<String>,

    /// Hosts are peers that have these in common: role, cpu_model, kernel, arch, cpus.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "role,cpu_model", value_parser = PEERS)]
    pub peers: Vec<String>,

    /// Write a page with everything, whose tables sort by any column, to FILE (.html).
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["check", "compact"])]
    pub output: Option<PathBuf>,

    /// Look at every file of the store instead, and say what is wrong. The exit status is 1 where something is.
    #[arg(long, conflicts_with = "compact")]
    pub check: bool,

    /// Make one file of each table and day, which engines read faster. Nothing else may change the store meanwhile: who
    /// writes waits.
    #[arg(long)]
    pub compact: bool,

    /// With --compact, remove single spans, exits and instances of days more than so many before the last, as 90d.
    #[arg(long, value_name = "DAYS", requires = "compact", value_parser = days)]
    pub keep_detail: Option<u64>,

    #[command(flatten)]
    pub format: Format,
}

fn days(text: &str) -> Result<u64, String> {
    let count = text.strip_suffix('d').and_then(|count| count.parse().ok());
    count.ok_or_else(|| "a number of days is written as 90d".to_owned())
}

/// Returns the day that is so many before another, which begins at so many seconds since 1970.
fn days_before(seconds: u64, count: u64) -> String {
    let first = seconds.saturating_sub(count.saturating_mul(86_400));
    words::utc_day(first.saturating_mul(1_000_000_000))
}

const FLEET_HELP: &str = "\
One screen: what the store has, causes by the hosts that have them, what changed since the days before (of single
hosts and of whole groups), hosts that are unlike their peers on all days, what hosts with a cause have in
common, and which three recordings to open. A difference is shown where chance does not explain it, over all that
was tested: of a hundred such lines one may be false. docs/fleet.md says how that is found out.

Examples:
  trapline fleet fleet/
  trapline fleet --day 2026-11-23 --since 7d fleet/
  trapline fleet -o fleet.html fleet/
  trapline fleet --check fleet/
  trapline fleet --compact --keep-detail 90d fleet/
  trapline fleet --peers role --json fleet/ | jq '.to_open[].command'";

/// Says what is wrong with the store's files.
fn check(args: &FleetArgs) -> Result<()> {
    let found = store::check(&args.store, &today())?;
    let mut text = String::new();
    for one in &found.problems {
        text.push_str(&format!("{}: {}\n", one.path.display(), one.text));
    }
    for note in &found.notes {
        text.push_str(&format!("{note}\n"));
    }
    text.push_str(&format!(
        "{} of {}: {}\n",
        words::plural(found.files as u64, "file"),
        words::plural(found.days as u64, "day"),
        match found.problems.len() {
            0 => "nothing is wrong".to_owned(),
            number => words::plural(number as u64, "problem"),
        }
    ));
    output::print(&text)?;
    match found.problems.is_empty() {
        true => Ok(()),
        false => bail!("{}: not all files can be used", args.store.display()),
    }
}

/// Makes few files of many.
fn compact(args: &FleetArgs) -> Result<()> {
    if let (Some(keep), Some(last)) = (args.keep_detail, days_of(&args.store)?.asked().last()) {
        let first = days_before(words::parse_utc_day(last).unwrap_or(0), keep);
        let forgotten = store::forget_detail(&args.store, &first)?;
        if forgotten > 0 {
            let text = format!(
                "removed single things of {}\n",
                words::plural(forgotten as u64, "day")
            );
            output::print(&text)?;
        }
    }
    let done = store::compact(&args.store, env!("CARGO_PKG_VERSION"))?;
    for day in &done {
        let text = format!(
            "{}: {} are {}\n",
            day.day,
            words::plural(day.files as u64, "file"),
            day.left
        );
        output::print(&text)?;
    }
    match done.is_empty() {
        true => output::print("there is one file of each table and day already\n"),
        false => Ok(()),
    }
}

/// Runs the command.
pub(crate) fn run(args: &FleetArgs) -> Result<()> {
    if !is_store(&args.store) {
        return Err(Usage::error(format!(
            "{}: no store of recordings; 'trapline export --as parquet REC... -o DIR' makes one",
            args.store.display()
        )));
    }
    if args.check {
        return check(args);
    }
    if args.compact {
        return compact(args);
    }
    let no_day = |day: &str| Usage::error(format!("{day} is no day: write it as 2026-11-23"));
    let all = days_of(&args.store)?;
    let day = match &args.day {
        Some(day) if words::parse_utc_day(day).is_none() => return Err(no_day(day)),
        Some(day) => Some(day.clone()),
        None => all.asked().last().cloned(),
    };
    let since = match (&args.since, day.as_deref().and_then(words::parse_utc_day)) {
        (Some(since), Some(seconds)) => match days(since) {
            Ok(count) => Some(days_before(seconds, count)),
            Err(_) if words::parse_utc_day(since).is_some() => Some(since.clone()),
            Err(_) => return Err(no_day(since)),
        },
        _ => None,
    };
    FleetEngine::find(&[&args.store])?.ask(&EngineRequest {
        store: &args.store,
        inputs: vec![args.store.display().to_string()],
        question: json!({ "fleet": { "day": day, "since": since, "peers": args.peers, "future": all.future() } }),
        format: args.format,
        page: args.output.as_deref(),
        limit: usize::MAX,
        threads: None,
        memory_mib: 2048,
    })
}
