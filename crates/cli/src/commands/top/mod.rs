//! `trapline top`: what vCPUs do now.

pub(crate) mod args;
mod backend;
mod exporter;
mod rings;
mod screen;
mod terminal;
pub(super) mod watch;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use counts::Choice;
use doubts::DoubtKind;
use event::Quality;
use render::ClockUnit;
use render::{quality, top};
use rustix::thread::CapabilitySet;

use crate::answer::Answer;
use crate::commands::top::args::{TopArgs, TopBy};
use crate::options::Format;
use crate::output;
use crate::usage::Usage;
use watch::Watch;

/// Runs the command.
pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let choice = Choice {
        vm: args.vm.clone(),
        pid: args.pid,
        by_vm: args.by == TopBy::Vm,
        all_behind: args.prometheus.is_some(),
    };
    if !args.once && args.prometheus.is_none() {
        if args.format != Format::Table {
            return Err(Usage::error("--format is for one interval: add --once"));
        }
        if !io::stdout().is_terminal() {
            bail!("standard output is no terminal: count one interval with --once");
        }
    }
    if args.serves {
        return exporter::serve_for_another();
    }
    let sockets = args.prometheus.as_ref().map(exporter::bind).transpose()?;
    let mut watch = Watch::start(args.mtree.as_deref(), args.events)?;
    if args.counters {
        watch.count_threads()?;
    }
    // The process that speaks HTTP becomes another user, also where programs that are started gain nothing
    // (no_new_privs), and is ended where it does not end itself.
    let of_server = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
    watch.give_away(match args.prometheus {
        Some(_) => of_server,
        None => CapabilitySet::empty(),
    });
    match sockets {
        Some(sockets) => exporter::serve(watch, &sockets, &choice),
        None if args.once => once(watch, args, &choice),
        None => terminal::run(watch, Duration::from_nanos(args.interval), choice),
    }
}

/// Counts for one interval.
fn once(mut watch: Watch, args: &TopArgs, choice: &Choice) -> Result<()> {
    if let Some(missing) = unknown(&watch, choice) {
        bail!("{missing}");
    }
    if let Some(pid) = choice.pid
        && !Path::new(&format!("/proc/{pid}")).exists()
    {
        bail!("--pid {pid}: there is no such process");
    }
    // Attaching takes its time, in which one program counts already and another does not.
    watch.interval()?;
    thread::sleep(Duration::from_nanos(args.interval));
    let interval = watch.interval()?;
    watch.look()?;
    let named = watch.named(&interval, choice);
    let mut noted = Quality {
        lost_events: named.dropped.events + named.dropped.withheld,
        ..Quality::default()
    };
    let mut notes = watch.warnings();
    notes.extend(top::warnings(&named));
    if named.vcpus.is_empty() {
        notes.push("no vCPU ran, and no VM was found whose vCPUs are known".to_owned());
    }
    for note in notes {
        noted.raise(DoubtKind::MeasurementNote { note });
    }
    let inputs = [Path::new("/").display().to_string()];
    let answer = Answer {
        format: args.format,
        command: "top",
        inputs: &inputs,
        quality: &noted,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let mut text = top::table(&named, output::layout(args.limit, true));
            text.push_str(&quality::doubts(&noted, output::width()));
            text
        },
        || top::document(&named),
        |_| match args.counters {
            true => top::counters_csv(&named),
            false => top::csv(&named),
        },
    )
}

/// Returns an error if there is no VM as the one that is wanted.
fn unknown(watch: &Watch, choice: &Choice) -> Option<String> {
    let vms = &watch.facts().vms;
    if let Some(name) = &choice.vm
        && !vms.iter().any(|vm| vm.name.as_ref() == Some(name))
        && name.parse::<i32>().is_err()
    {
        let names: Vec<&str> = vms.iter().filter_map(|vm| vm.name.as_deref()).collect();
        return Some(match names.is_empty() {
            true => format!("there is no VM named {name}: no VMM on this host has a name"),
            false => format!(
                "there is no VM named {name}; this host has {}",
                names.join(", ")
            ),
        });
    }
    None
}
