//! `trapline sql`: the tables of a store, or of single recordings, asked in SQL.
//!
//! The engine is a program of its own (`engine.rs`). Recordings become a store in a folder of their own first, which
//! another process of this program writes: it reads what nobody trusts, within its sandbox.

pub(crate) mod engine;
pub(crate) mod questions;
pub(crate) mod tables;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use render::store::StoreTable;
use serde_json::json;
use store::StoreDays;

use crate::options::Format;
use crate::output;
use crate::usage::Usage;
use engine::{EngineRequest, FleetEngine};

/// `trapline sql`.
#[derive(Debug, Args)]
#[command(after_help = SQL_HELP)]
pub(crate) struct SqlArgs {
    /// The question: one SELECT. With --file, --question or --tables it is no question, but the first of REC.
    #[arg(value_name = "SELECT")]
    pub words: Vec<String>,

    /// Read the question from FILE.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["question", "tables"])]
    pub file: Option<PathBuf>,

    /// Ask question N of those that trapline brings along; 0 lists them.
    #[arg(long, value_name = "N", conflicts_with = "tables")]
    pub question: Option<usize>,

    /// The day that question N is about, as 2026-11-23. Without it, the store's last.
    #[arg(long, value_name = "DAY", requires = "question")]
    pub day: Option<String>,

    /// The day that it is held against. Without it, the last one before.
    #[arg(long, value_name = "DAY", requires = "question")]
    pub before: Option<String>,

    /// Print the SQL of question N, for this store's days, and do not ask it: other engines take it too.
    #[arg(long, requires = "question")]
    pub show: bool,

    /// List the tables with their columns, units and meaning.
    #[arg(long)]
    pub tables: bool,

    /// Print at most N rows of a table for people.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,

    /// Let the engine hold at most SIZE MiB.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub memory: usize,

    /// Use N threads. The default is one for each CPU.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub format: Format,
}

const SQL_HELP: &str = "\
Behind the question stand recordings, or the folder that 'trapline export --as parquet' fills. Of recordings the
tables are made for this one question. SQL is DataFusion's, and changes nothing. The engine is a program of its
own, trapline-fleet: beside trapline, or on the PATH.

Examples:
  trapline sql 'SELECT vm, vcpu, runnable_ns FROM vcpus ORDER BY 3 DESC' perf.data
  trapline sql \"SELECT reason, count(*) FROM exits WHERE duration_ns > 1000000 GROUP BY 1\" trace.dat
  trapline sql --tables
  trapline sql --question 0                     the questions that it brings along
  trapline sql --question 3 fleet/              of the store's last day
  trapline sql -f mine.sql --csv fleet/ > mine.csv";

/// Runs the command.
pub(crate) fn run(args: &SqlArgs) -> Result<()> {
    if args.tables {
        return tables::print(args.format);
    }
    if args.question == Some(0) {
        return output::print(&questions::list());
    }
    let asks_elsewhere = args.file.is_some() || args.question.is_some();
    let (asked, inputs) = match (asks_elsewhere, args.words.split_first()) {
        (true, _) => (None, args.words.as_slice()),
        (false, Some((question, inputs))) => (Some(question), inputs),
        (false, None) => {
            return Err(Usage::error(
                "there is no question; 'trapline sql --tables' lists what can be asked, --question 0 what others ask",
            ));
        }
    };
    if inputs.is_empty() {
        return Err(Usage::error(
            "name a recording, or the folder that 'trapline export --as parquet' fills, behind the question",
        ));
    }
    let inputs: Vec<&Path> = inputs.iter().map(Path::new).collect();
    for input in &inputs {
        store::refuse_screen(input)?;
    }
    if args.show {
        let store = inputs.first().filter(|input| is_store(input)).copied();
        return output::print(&(question(args, asked, store)? + ";\n"));
    }
    // What is missing is said before anything is read.
    let engine = FleetEngine::find(&inputs)?;
    let (store, _made) = match inputs.as_slice() {
        [one] if is_store(one) => (one.to_path_buf(), None),
        recordings => {
            if let Some(store) = recordings.iter().find(|one| is_store(one)) {
                return Err(Usage::error(format!(
                    "{}: a store is asked alone; put the others into it with 'trapline export --as parquet'",
                    store.display()
                )));
            }
            let folder = tempfile::tempdir()?;
            let sql = question(args, asked, None)?;
            export(recordings, folder.path(), needs_detail(&sql))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    let sql = question(args, asked, Some(&store))?;
    engine.ask(&EngineRequest {
        store: &store,
        inputs: inputs
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        question: json!({ "sql": sql }),
        format: args.format,
        page: None,
        limit: args.limit,
        threads: args.threads,
        memory_mib: args.memory,
    })
}

/// Returns the question: as it was given, from a file, or one of those that come along, whose days are of the store.
fn question(args: &SqlArgs, asked: Option<&String>, store: Option<&Path>) -> Result<String> {
    if let Some(path) = &args.file {
        return fs::read_to_string(path).with_context(|| path.display().to_string());
    }
    if let Some(number) = args.question {
        let days = store.map(days).transpose()?;
        if let Some(days) = days.as_ref().filter(|_| args.day.is_none()) {
            note_future(days);
        }
        return questions::text(number, args, days.as_ref().map(StoreDays::asked));
    }
    Ok(asked.cloned().unwrap_or_default())
}

/// Returns the days of a store.
///
/// # Errors
/// It cannot be read.
pub(crate) fn days(store: &Path) -> Result<StoreDays> {
    Ok(StoreDays::of(store, &today())?)
}

/// Returns the day it is, in UTC.
pub(crate) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    store::day_of(u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
}

/// Says beside an answer which days a question is not about.
fn note_future(days: &StoreDays) {
    if let Some(first) = days
        .future()
        .first()
        .filter(|_| days.asked() != days.future())
    {
        let _ = writeln!(
            io::stderr(),
            "note: {} in the future, the first {first}: a clock was wrong; the question is not about {}, unless --day \
             says so",
            words::plural(days.future().len() as u64, "day"),
            if days.future().len() == 1 {
                "it"
            } else {
                "them"
            },
        );
    }
}

/// Returns whether this is a folder that stores write.
pub(crate) fn is_store(path: &Path) -> bool {
    path.join(StoreTable::Runs.name()).is_dir()
}

/// Returns whether a question may be about single things: its words have the name of such a table.
fn needs_detail(sql: &str) -> bool {
    let mut words = sql.split(|char: char| !(char.is_alphanumeric() || char == '_'));
    words.any(|word| {
        let mut all = StoreTable::ALL.iter().filter(|table| table.is_detail());
        all.any(|table| table.name().eq_ignore_ascii_case(word))
    })
}

/// Writes recordings into a store.
fn export(recordings: &[&Path], folder: &Path, detail: bool) -> Result<()> {
    let program = std::env::current_exe().context("where this program is")?;
    let mut command = Command::new(program);
    command
        .args(["export", "--as", "parquet", "-o"])
        .arg(folder);
    if detail {
        command.arg("--detail");
    }
    command.arg("--").args(recordings);
    // What it says of recordings it says to people; standard output is the answer's.
    let done = command
        .stdin(Stdio::inherit())
        .stdout(Stdio::null())
        .status()
        .context("starting 'trapline export'")?;
    if !done.success() && !is_store(folder) {
        bail!("there is nothing to ask: no recording could be read");
    }
    match done.success() {
        true => Ok(()),
        false => Err(anyhow!(
            "not all recordings could be read; leave out those that are named above"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_things_are_stored_where_the_question_names_them() {
        for (sql, needed) in [
            ("SELECT * FROM spans", true),
            ("select count(*) from Exits e", true),
            ("SELECT i.path FROM instances AS i", true),
            ("SELECT exits FROM vcpus", true),
            ("SELECT * FROM exit_rows", false),
            ("SELECT spans_of FROM vcpus", false),
        ] {
            assert_eq!(needs_detail(sql), needed, "{sql}");
        }
    }
}
