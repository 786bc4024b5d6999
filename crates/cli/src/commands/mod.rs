//! The commands: one file each, and its line in [`Command`].

mod again;
pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod counters;
pub(crate) mod diagnose;
mod diagnosed;
pub(crate) mod events;
pub(crate) mod exits;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod flame;
mod fleet;
pub(crate) mod info;
pub(crate) mod irqs;
mod no_events;
pub(crate) mod overhead;
pub(crate) mod paths;
pub(crate) mod record;
mod recording;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod salvage;
pub(crate) mod sched;
mod sql;
pub(crate) mod top;
pub(crate) mod vcpus;
mod virtqueues;
pub(crate) mod watch;
pub(crate) mod why;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find out on this host why a VM is slow: count, record what that asks for, report, and say what to change.
    Why(why::args::WhyArgs),
    /// Show one screen about a recording: what is wrong, in a sentence, and what that rests on.
    Report(report::args::ReportArgs),
    /// Find out why a VM is slow and what to change: findings with evidence, cause, remedies and their price.
    Diagnose(diagnose::args::DiagnoseArgs),
    /// Show what changed between two recordings or two groups of them, largest effect on time first.
    Compare(Box<compare::args::CompareArgs>),
    /// List the causes that diagnose looks for, or explain them.
    Rules(rules::RulesArgs),
    /// Show what a recording holds: format, machine, clock, events, VMs and vCPUs, lost events.
    Info(info::InfoArgs),
    /// Print the events in time order, as perf script or trace-cmd report -N prints them.
    Events(events::args::EventsArgs),
    /// Count exits and their time by reason, port, address or register.
    Exits(exits::ExitsArgs),
    /// Print the events that a number of a table, or a finding, is made of.
    Explain(explain::args::ExplainArgs),
    /// Show where each vCPU's time went: guest, KVM, VMM, halt polling, halted, waiting for a CPU.
    Vcpus(vcpus::VcpusArgs),
    /// Count the interrupts of each vCPU by vector (accepted, posted, injected), on arm64 by INTID.
    Irqs(irqs::IrqsArgs),
    /// Count what went through virtqueues: buffers, notifications, interrupts, frames and bytes by device and queue.
    Virtqueues(virtqueues::VirtqueuesArgs),
    /// Show cycles, instructions per cycle and cache misses of each vCPU, in its guest and in the host.
    Counters(counters::CountersArgs),
    /// Show latency paths (interrupts, wake-ups, I/O) stage by stage, and what slow instances have in common.
    Paths(paths::args::PathsArgs),
    /// Show where CPUs were when perf sampled them, as a table, folded stacks, a picture (SVG, HTML) or JSON.
    Flame(Box<flame::FlameArgs>),
    /// Show scheduling latency by task or CPU: delays, preemption, wakers, functions of kworkers.
    Sched(sched::SchedArgs),
    /// Record a host's events with little disturbance, with its settings beside them.
    Record(record::args::RecordArgs),
    /// Record a guest's side from within, on its own or for the host that records it.
    Agent(agent::args::AgentArgs),
    /// Measure what recording an event costs on this machine, by CPU.
    Overhead(overhead::OverheadArgs),
    /// Measure what IPIs, wake-ups, clocks, timers, exits, a network and a disk cost here, in a guest or on a host.
    Bench(bench::args::BenchArgs),
    /// Write a recording as a file for Perfetto, spreadsheets, tickets or scripts.
    Export(export::args::ExportArgs),
    /// Ask in SQL: the tables of a recording, or of a folder that holds those of many hosts and days.
    Sql(sql::SqlArgs),
    /// Show which of many hosts to look at: problems, news, shifts, outliers, what the sick share, what to open.
    Fleet(fleet::FleetArgs),
    /// Show what this host's vCPUs do now: exits, states, waits for a CPU and behind whom, counted in the kernel.
    Top(top::args::TopArgs),
    /// Watch this host's VMs for as long as it runs: count, and record and report what goes wrong, within a budget.
    Watch(watch::args::WatchArgs),
    /// Make a recording fit for a public ticket: the same numbers, without names, paths and command lines.
    Redact(redact::RedactArgs),
    /// Make a recording that is cut off or damaged one that perf and trace-cmd open, and say what was lost.
    Salvage(salvage::SalvageArgs),
    /// Show this host's CPUs, clocks, settings and KVM parameters, and its VMs with their pinning.
    Facts(facts::FactsArgs),
}

impl Command {
    /// Returns the files that it writes, if all that it does beside that is to read files; `None` where it asks the
    /// kernel, runs programs or talks to others.
    pub(crate) fn written(&self) -> Option<Vec<PathBuf>> {
        match self {
            Command::Agent(_)
            | Command::Bench(_)
            | Command::Facts(_)
            | Command::Fleet(_)
            | Command::Overhead(_)
            | Command::Record(_)
            // It starts other processes; the one that reads recordings is restricted.
            | Command::Sql(_)
            | Command::Top(_)
            | Command::Watch(_)
            | Command::Why(_) => None,
            Command::Compare(_)
            | Command::Counters(_)
            | Command::Diagnose(_)
            | Command::Events(_)
            | Command::Exits(_)
            | Command::Explain(_)
            | Command::Info(_)
            | Command::Irqs(_)
            | Command::Paths(_)
            | Command::Rules(_)
            | Command::Sched(_)
            | Command::Vcpus(_)
            | Command::Virtqueues(_) => Some(Vec::new()),
            Command::Report(args) => Some(named(args.output.as_deref())),
            Command::Export(args) => Some(named(Some(&args.output))),
            Command::Flame(args) => Some(named(args.output.as_deref())),
            // Without a name it is beside what is read.
            Command::Redact(args) => Some(named(args.output.as_deref().or(Some(&args.input)))),
            Command::Salvage(args) => Some(named(args.output.as_deref().or(Some(&args.input)))),
        }
    }

    /// Runs it.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Command::Agent(args) => agent::run(args),
            Command::Report(args) => report::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Facts(args) => facts::run(args),
            Command::Info(args) => info::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Counters(args) => counters::run(args),
            Command::Diagnose(args) => diagnose::run(args),
            Command::Rules(args) => rules::run(args),
            Command::Events(args) => events::run(args),
            Command::Exits(args) => exits::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Export(args) => export::run(args),
            Command::Flame(args) => flame::run(args),
            Command::Fleet(args) => fleet::run(args),
            Command::Irqs(args) => irqs::run(args),
            Command::Overhead(args) => overhead::run(args),
            Command::Paths(args) => paths::run(args),
            Command::Record(args) => record::run(args),
            Command::Redact(args) => redact::run(args),
            Command::Salvage(args) => salvage::run(args),
            Command::Sched(args) => sched::run(args),
            Command::Sql(args) => sql::run(args),
            Command::Top(args) => top::run(args),
            Command::Vcpus(args) => vcpus::run(args),
            Command::Virtqueues(args) => virtqueues::run(args),
            Command::Watch(args) => watch::run(args),
            Command::Why(args) => why::run(args),
        }
    }
}

/// Returns a file that is written, unless it is standard output.
fn named(output: Option<&Path>) -> Vec<PathBuf> {
    let output = output.filter(|path| path.as_os_str() != "-");
    output.map(Path::to_owned).into_iter().collect()
}
