/*!
The SQL engine of `trapline sql` and `trapline fleet`.

`trapline` starts this program and writes on its standard input what it wants ([`request`]): which store, which tables
with which columns, what is asked, and in which form the answer is printed. So this program has no list of tables and
no command line of its own, and `trapline` no engine.

A store is looked at before it is read ([`view`]): a file that was cut off, or whose recording was never written to its
end, is named and left out, where an engine would stop at it. SQL is read-only ([`engine`]).
*/

mod checked_sums;
mod engine;
mod engine_error;
mod fleet;
#[cfg(test)]
mod made_numbers;
mod output;
#[cfg(test)]
mod portable_sql;
mod request;
mod statistics;
mod view;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::request::Request;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (word, more) = (words.next(), words.next());
    match (word.as_deref(), more) {
        (Some("--version"), None) => {
            say(&format!("trapline-fleet {}\n", env!("CARGO_PKG_VERSION")))
        }
        (Some("--request"), None) => match answer() {
            Ok(()) => ExitCode::SUCCESS,
            // Who asked has seen enough.
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(io::stderr(), "{error:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            let text = "trapline-fleet is the engine of 'trapline sql' and 'trapline fleet', which start it.\n";
            let _ = io::stderr().write_all(text.as_bytes());
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer() -> Result<()> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .context("the request cannot be read")?;
    let request: Request = serde_json::from_str(&text).context("the request is not understood")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(request.threads.max(1))
        .build()?;
    runtime.block_on(engine::answer(&request))
}
