//! A guest whose exits are known in number: what records exits is asked how many it saw, and this program knows how
//! many there were. `README.md` beside it says what works where.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("testguest needs KVM of x86-64 or aarch64: leave it out by `--exclude testguest`");

mod args;
mod code;
mod device;
mod here;
mod layout;
mod machine;
mod memory;
mod plan;
mod report;
mod run;
mod vcpu;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;

use args::PlanArgs;

fn main() -> ExitCode {
    match print(&PlanArgs::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            here::say(&format!("testguest: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Runs the guest and prints what happened. Returns whether that is what was asked for.
fn print(args: &PlanArgs) -> Result<bool> {
    let plan = Arc::new(args.plan()?);
    let outcome = run::run(&plan, &args.settings())?;
    let document = report::document(&plan, &outcome);
    let text = serde_json::to_string_pretty(&document).context("cannot write JSON")?;
    writeln!(io::stdout(), "{text}").context("cannot write to standard output")?;
    let differences = report::differences(&plan, &outcome);
    for difference in &differences {
        here::say(&format!("testguest: {difference}"));
    }
    Ok(differences.is_empty())
}
