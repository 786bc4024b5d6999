//! `trapline fleet`: which of many hosts to look at.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::commands::sql::engine::{EngineRequest, FleetEngine};
use crate::commands::sql::is_store;
use crate::options::Format;
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

    /// The day in question, as 2026-11-23. Without it, the store's last.
    #[arg(long, value_name = "DAY")]
    pub day: Option<String>,

    /// Hold it against so many days before it alone, as 7d, or against the days from 2026-11-16 on. Without it, against
    /// all before.
    #[arg(long, value_name = "DAYS")]
    pub since: Option<String>,

    /// Hosts are peers that have these in common: role, cpu_model, kernel, arch, cpus.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "role,cpu_model", value_parser = PEERS)]
    pub peers: Vec<String>,

    #[command(flatten)]
    pub format: Format,
}

const FLEET_HELP: &str = "\
One screen: what the store has, causes by the hosts that have them, what changed since the days before (of single
hosts and of whole groups), hosts that are unlike their peers on all days, what hosts with a cause have in
common, and which three recordings to open. A difference is shown where chance does not explain it, over all that
was tested: of a hundred such lines one may be false. docs/fleet.md says how that is found out.

Examples:
  trapline fleet fleet/
  trapline fleet --day 2026-11-23 --since 7d fleet/
  trapline fleet --peers role --json fleet/ | jq '.to_open[].command'";

/// Runs the command.
pub(crate) fn run(args: &FleetArgs) -> Result<()> {
    let engine = FleetEngine::find(&[&args.store])?;
    if !is_store(&args.store) {
        return Err(Usage::error(format!(
            "{}: no store of recordings; 'trapline export --as parquet REC... -o DIR' makes one",
            args.store.display()
        )));
    }
    let no_day = |day: &str| Usage::error(format!("{day} is no day: write it as 2026-11-23"));
    let days = crate::commands::sql::questions::days(&args.store)?;
    let day = match &args.day {
        Some(day) if words::parse_utc_day(day).is_none() => return Err(no_day(day)),
        Some(day) => Some(day.clone()),
        None => days.last().cloned(),
    };
    let since = match (&args.since, day.as_deref().and_then(words::parse_utc_day)) {
        (Some(since), Some(seconds)) => {
            let count = since
                .strip_suffix('d')
                .and_then(|count| count.parse::<u64>().ok());
            match count {
                Some(count) => {
                    let first = seconds.saturating_sub(count.saturating_mul(86_400));
                    Some(words::utc_day(first.saturating_mul(1_000_000_000)))
                }
                None if words::parse_utc_day(since).is_some() => Some(since.clone()),
                None => return Err(no_day(since)),
            }
        }
        _ => None,
    };
    engine.ask(&EngineRequest {
        store: &args.store,
        inputs: vec![args.store.display().to_string()],
        question: json!({ "fleet": { "day": day, "since": since, "peers": args.peers } }),
        format: args.format,
        limit: usize::MAX,
        threads: None,
        memory_mib: 2048,
    })
}
