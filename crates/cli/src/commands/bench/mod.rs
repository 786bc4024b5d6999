//! `trapline bench`: what things cost here.

pub(crate) mod args;
mod explain;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use bench::{MeasuredThing, Server, Setup};
use doubts::DoubtKind;
use event::Quality;
use render::{ClockUnit, bench as render_bench, neutral, quality};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::answer::Answer;
use crate::commands::bench::args::{BenchArgs, BenchCommon, BenchWhat};
use crate::{new_file, output};

/// Runs the command.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    if let BenchWhat::Net(net) = &args.what
        && let Some(address) = net.serve
    {
        return serve(address);
    }
    if let BenchWhat::Explain(explain) = &args.what {
        return explain::run(explain);
    }
    let Some((what, common)) = asked(&args.what) else {
        return Ok(());
    };
    if let Some(folder) = common.output.as_deref().and_then(Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        bail!("{}: there is no such folder to write to", folder.display());
    }
    let stop = asked_to_stop()?;
    let facts = host::collect(Path::new("/"));
    let host = facts.host.unwrap_or_default();
    let doing = BenchProgress::new();
    let measured = bench::run(
        &what,
        &Setup {
            host: &host,
            cpus: common.cpu.clone(),
            iterations: common.iterations,
            warmup: common.warmup,
            row_time_ns: common.row_time,
            label: common.label.clone(),
            stop: &stop,
            doing: &|text| doing.say(text),
        },
    );
    doing.end();
    let (outcome, warnings) = measured?;
    if outcome.head.interrupted && outcome.rows.iter().all(|row| row.count == 0) {
        bail!("interrupted before anything was measured");
    }
    let mut quality = Quality {
        truncated: outcome.head.interrupted,
        ..Quality::default()
    };
    for note in warnings.into_iter().chain(render_bench::warnings(&outcome)) {
        quality.raise(DoubtKind::MeasurementNote { note });
    }
    let answer = Answer {
        format: common.format,
        command: "bench",
        inputs: &[],
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    if let Some(file) = &common.output {
        let document = answer.document(render_bench::document(&outcome));
        new_file::write(file, |out| out.write_all(document.as_bytes()))?;
    }
    answer.print(
        || {
            let mut text = render_bench::table(&outcome, output::layout(usize::MAX, true));
            text.push_str(&quality::doubts(&quality, output::width()));
            text
        },
        || render_bench::document(&outcome),
        |_| render_bench::csv(&outcome),
    )?;
    if outcome.rows.iter().all(|row| row.count == 0) {
        bail!("nothing could be measured; the rows say why");
    }
    Ok(())
}

/// Returns what is to be measured, and how; `None` where nothing is.
fn asked(what: &BenchWhat) -> Option<(MeasuredThing, &BenchCommon)> {
    Some(match what {
        BenchWhat::Explain(_) => return None,
        BenchWhat::Ipi(args) => (
            MeasuredThing::Ipi {
                pairs: args.pairs,
                idle_ns: args.idle,
            },
            &args.common,
        ),
        BenchWhat::Wake(args) => (
            MeasuredThing::Wake {
                short_ns: args.short,
                idle_ns: args.idle,
            },
            &args.common,
        ),
        BenchWhat::Clock(args) => (
            MeasuredThing::Clock {
                each_source: args.each_source,
            },
            &args.common,
        ),
        BenchWhat::Timer(args) => (MeasuredThing::Timer, &args.common),
        BenchWhat::Exits(args) => (MeasuredThing::Exits, &args.common),
        BenchWhat::Net(args) => (
            MeasuredThing::Net {
                connect: args.connect,
                size: args.size,
            },
            &args.common,
        ),
        BenchWhat::Disk(args) => (
            MeasuredThing::Disk {
                path: args.path.clone(),
                write: args.write,
                size: args.size,
            },
            &args.common,
        ),
    })
}

/// Answers until somebody says that it is enough.
fn serve(address: SocketAddr) -> Result<()> {
    let stop = asked_to_stop()?;
    let server = Server::bind(address)?;
    // Whoever started it wants to know the port before anything else.
    let mut out = output::stdout();
    writeln!(
        out,
        "answers at {} (TCP and UDP) until Ctrl-C: trapline bench net --connect {0}",
        server.address()
    )?;
    out.flush()?;
    drop(out);
    server.serve(&stop);
    Ok(())
}

/// Returns what becomes true when it is to end. A second signal ends the program at once.
fn asked_to_stop() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .context("signals cannot be waited for")?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Says on a terminal what is being measured, in a line that goes away.
struct BenchProgress {
    is_terminal: bool,
    said: AtomicBool,
}

impl BenchProgress {
    fn new() -> BenchProgress {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        BenchProgress {
            is_terminal: io::stderr().is_terminal() && !dumb,
            said: AtomicBool::new(false),
        }
    }

    fn say(&self, text: &str) {
        if self.is_terminal {
            self.said.store(true, Ordering::Relaxed);
            let _ = write!(io::stderr(), "\r\x1b[Kmeasuring: {}", neutral::name(text));
        }
    }

    fn end(&self) {
        if self.said.load(Ordering::Relaxed) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
