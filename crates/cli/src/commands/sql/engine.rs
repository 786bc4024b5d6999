//! The engine, which is a program of its own: `trapline-fleet`, as large as this one twice over.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use render::json::SCHEMA;
use serde_json::json;

use super::tables;
use crate::new_file;
use crate::options::Format;
use crate::output;

const NAME: &str = "trapline-fleet";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is asked of the engine.
#[derive(Debug)]
pub(crate) struct EngineRequest<'a> {
    pub(crate) store: &'a Path,
    pub(crate) inputs: Vec<String>,
    /// What is asked, as the engine takes it.
    pub(crate) question: serde_json::Value,
    pub(crate) format: Format,
    /// A page is written here, in place of what is printed.
    pub(crate) page: Option<&'a Path>,
    pub(crate) limit: usize,
    pub(crate) threads: Option<usize>,
    pub(crate) memory_mib: usize,
}

/// The engine's program.
#[derive(Debug)]
pub(crate) struct FleetEngine(PathBuf);

impl FleetEngine {
    /// Finds the program: beside this one, then on the PATH. It has to be of this version.
    ///
    /// # Errors
    /// There is none, or one of another version.
    pub(crate) fn find(inputs: &[&Path]) -> Result<FleetEngine> {
        let beside = env::current_exe().ok();
        let beside = beside.and_then(|own| Some(own.parent()?.join(NAME)));
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&path).map(|folder| folder.join(NAME));
        let mut all = beside.into_iter().chain(on_path);
        let Some(program) = all.find(|program| program.is_file()) else {
            bail!(missing(inputs));
        };
        let said = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .with_context(|| program.display().to_string())?;
        let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        if said != format!("{NAME} {VERSION}") {
            bail!(
                "{}: it says '{said}', and 'trapline {VERSION}' needs '{NAME} {VERSION}': install both of one version",
                program.display()
            );
        }
        Ok(FleetEngine(program))
    }

    /// Asks it; it prints the answer.
    ///
    /// # Errors
    /// It cannot be started, or has no answer, which it says itself.
    pub(crate) fn ask(&self, request: &EngineRequest<'_>) -> Result<()> {
        let threads = request.threads.or_else(|| {
            let all = std::thread::available_parallelism();
            all.ok().map(usize::from)
        });
        let document = json!({
            "schema": SCHEMA,
            "store": request.store,
            "inputs": request.inputs,
            "question": request.question,
            "format": match (request.page, request.format) {
                (Some(_), _) => "html",
                (None, Format::Table) => "table",
                (None, Format::Json) => "json",
                (None, Format::Csv) => "csv",
            },
            "limit": request.limit,
            "threads": threads.unwrap_or(1),
            "memory": request.memory_mib.saturating_mul(1 << 20),
            "compacted": store::COMPACTED,
            "tables": tables::all(),
        });
        let mut engine = Command::new(&self.0)
            .arg("--request")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(match request.page {
                Some(_) => Stdio::piped(),
                None => Stdio::inherit(),
            })
            .spawn()
            .with_context(|| self.0.display().to_string())?;
        if let Some(mut input) = engine.stdin.take() {
            // One that ends before it has read all says why itself.
            let _ = input.write_all(document.to_string().as_bytes());
        }
        let done = engine
            .wait_with_output()
            .context("waiting for the engine")?;
        let said = String::from_utf8_lossy(&done.stderr);
        match (done.status.success(), said.trim()) {
            (true, _) => {
                io::stderr().write_all(said.as_bytes())?;
                match request.page {
                    Some(page) => {
                        new_file::write(page, |out| out.write_all(&done.stdout))?;
                        output::print(&format!("wrote {}\n", page.display()))
                    }
                    None => Ok(()),
                }
            }
            (false, "") => Err(anyhow!("{NAME} was ended: {}", done.status)),
            (false, why) => Err(anyhow!("{why}")),
        }
    }
}

/// Returns how to get the engine, and how to do without.
fn missing(inputs: &[&Path]) -> String {
    let store = inputs.first().filter(|path| super::is_store(path));
    let store = store.map_or_else(|| "DIR".to_owned(), |path| path.display().to_string());
    format!(
        "SQL needs the program {NAME} {VERSION}, beside trapline or on the PATH: \
         'cargo install --locked --path fleet' in the sources makes it. DuckDB reads a store too: duckdb -c \
         \"SELECT * FROM read_parquet('{store}/vcpus/*/*.parquet', hive_partitioning = true, union_by_name = true)\""
    )
}
