//! `trapline why`: from "the VM is slow" to what to change, on the host where it is slow.
//!
//! It stands for commands that exist by themselves, and prints them: counting as `top` does, `record`, and `report`
//! with its page. What is its own is the choice of events ([`choice`]), by what a second of counting shows
//! ([`survey`]).

pub(crate) mod args;
mod choice;
pub(super) mod line;
mod survey;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::report::quoted;
use anyhow::{Result, bail};
use clap::ValueEnum;
use counts::{Choice, NamedCounts};
use facts::{Facts, ReportedVm};
use record::check::CheckLine;
use record::cost::EventCosts;
use record::{Missing, Tracefs};
use recording::{HOST_FACTS, RecordingFolder, RecordingNews};
use render::{neutral, quality, top};
use rules::{Diagnosis, Severity};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::record::ReadyRecording;
use super::record::args::RecordPurpose;
use super::record::check::checked;
use super::record::plan::chosen_vm;
use super::recording::{asked_to_stop, say_wrapped};
use super::{diagnose, report};
use crate::commands::why::args::WhyArgs;
use crate::{new_file, output};

use choice::EventChoice;
use line::{DiagnoseLine, RecordLine, ReportLine};

/// The page in the folder.
const PAGE: &str = "report.html";

/// Runs the command.
pub(crate) fn run(args: &WhyArgs) -> Result<()> {
    let facts = host::collect(Path::new("/"));
    let vm = chosen_vm(args.vm.as_deref(), args.pid, &facts)?;
    say(&about(&facts, vm))?;
    let checks = checks(args);
    for one in checks.iter().filter(|one| !one.ok) {
        let label = format!("missing: {:<8} ", one.name);
        say_wrapped(&label, &one.sentence())?;
    }
    let hindrance = checks.iter().find(|one| one.needed && !one.ok);
    if args.dry_run {
        return dry_run(args, vm, hindrance);
    }
    let stop = asked_to_stop()?;
    let (survey, counted) = match count(vm, &stop) {
        Ok((survey, counted)) => (Some(survey), Some(counted)),
        Err(error) => {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(error);
            }
            say_wrapped("not counted: ", &format!("{error:#}"))?;
            (None, None)
        }
    };
    if let Some(hindrance) = hindrance {
        return without_recording(args, vm, &facts, counted.as_ref(), &hindrance.found);
    }
    let cost = Tracefs::find()
        .and_then(|tracefs| EventCosts::here(&tracefs, false, false, &BTreeSet::new()));
    let event_ns = cost.ok().map(|cost| cost.event_ns);
    let choice = choice::choose(survey.as_ref(), event_ns, args.budget);
    say_choice(&choice)?;
    let (folder, missing) = match record(args, vm, &facts, &choice, &stop) {
        Ok(recorded) => recorded,
        Err(error) => {
            return without_recording(args, vm, &facts, counted.as_ref(), &format!("{error:#}"));
        }
    };
    // From here on whoever asks again to end it means it.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let ended = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, ended)?;
    }
    answer(&folder, &missing)
}

/// Says what there is on this host.
fn about(facts: &Facts, vm: Option<&ReportedVm>) -> String {
    let named = |vm: &ReportedVm| {
        let name = vm.name.as_deref().unwrap_or("a VM without a name");
        let pid = vm.pid.map(|pid| format!("process {pid}, "));
        let vcpus = words::plural(vm.vcpus.len() as u64, "vCPU");
        format!("{name} ({}{vcpus})", pid.unwrap_or_default())
    };
    match (vm, facts.vms.as_slice()) {
        (Some(vm), _) => format!("VM: {}", named(vm)),
        (None, []) => {
            "VMs: none was found among the processes; vCPUs are found by what they do".to_owned()
        }
        (None, some) => {
            let names: Vec<String> = some.iter().map(named).collect();
            format!("VMs: {}", words::list_first(&names, 8))
        }
    }
}

/// Returns what recording and counting take.
fn checks(args: &WhyArgs) -> Vec<CheckLine> {
    let events = record::events(&record::Question::ALL);
    let names = args.output.iter().cloned().collect();
    checked(args.output.as_deref(), events, 0, names)
}

/// Counts for a second.
fn count(vm: Option<&ReportedVm>, stop: &AtomicBool) -> Result<(survey::HostSurvey, NamedCounts)> {
    let choice = Choice {
        pid: vm.and_then(|vm| vm.pid),
        by_vm: true,
        ..Choice::default()
    };
    let (survey, named) = survey::take(&choice, stop)?;
    let per_s = |count: u64| words::large(count as f64 / survey.seconds.max(1e-3));
    let switches = survey.switches.map(per_s);
    let text = format!(
        "for {:.1} s: {}, {} exits/s{}",
        survey.seconds,
        words::plural(survey.vcpus as u64, "vCPU"),
        per_s(survey.exits),
        switches.map_or_else(String::new, |some| format!(", {some} context switches/s"))
    );
    say_wrapped("counted: ", &text)?;
    Ok((survey, named))
}

/// Says what is recorded, and why.
fn say_choice(choice: &EventChoice) -> Result<()> {
    let names: Vec<String> = choice.questions.iter().map(|one| name(*one)).collect();
    let mut text = words::list(&names);
    if let Some(rate) = choice.events_per_s {
        text.push_str(&format!(", some {} events/s", words::large(rate)));
    }
    if let Some(cost) = choice.cpu_share {
        text.push_str(&format!(", {} of a CPU", words::share::rough(cost)));
    }
    say_wrapped("chosen: ", &text)?;
    for reason in &choice.reasons {
        say_wrapped("  ", reason)?;
    }
    Ok(())
}

fn name(purpose: RecordPurpose) -> String {
    let value = purpose.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the command that records.
fn record_line(args: &WhyArgs, vm: Option<&ReportedVm>, questions: &[RecordPurpose]) -> RecordLine {
    let names: Vec<String> = questions.iter().map(|one| name(*one)).collect();
    RecordLine::new(
        &names.join(","),
        args.seconds,
        vm.and_then(|vm| vm.pid),
        args.output.as_deref(),
    )
}

/// Records. Returns the folder, and what is not recorded.
fn record(
    args: &WhyArgs,
    vm: Option<&ReportedVm>,
    facts: &Facts,
    choice: &EventChoice,
    stop: &AtomicBool,
) -> Result<(PathBuf, Vec<Missing>)> {
    let line = record_line(args, vm, &choice.questions);
    let asked = line.args()?;
    let ready = ReadyRecording::to_be_read(&asked, facts)?;
    say(&format!("$ {}", line.shown()))?;
    let (outcome, missing) = ready.record(&asked, facts, stop, &mut SaidBeside)?;
    Ok((outcome.folder, missing))
}

/// Prints what is said while a recording is made on standard error: standard output is the answer's.
struct SaidBeside;

impl RecordingNews for SaidBeside {
    fn made(&mut self, text: &str) -> io::Result<()> {
        io::stderr().write_all(neutral::text(text).as_bytes())
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", neutral::text(text))
    }

    fn missing_in_guest(&mut self, _: &str, why: &str) -> io::Result<()> {
        self.remark(why)
    }
}

/// Reports what was recorded, and says what to do with it.
fn answer(folder: &Path, missing: &[Missing]) -> Result<()> {
    let line = ReportLine::new(folder, &folder.join(PAGE));
    say(&format!("$ {}", line.shown()))?;
    say("")?;
    let asked = line.args()?;
    let diagnosis = report::screen_and_page(&asked, &folder.join(PAGE))?;
    output::print(&next(&diagnosis, folder))?;
    // That functions cannot be probed stands above, as what is missing here; what this kernel does not make at all
    // leaves nothing open.
    let names = missing.iter().map(|one| one.name.as_str());
    let names: Vec<&str> = names.filter(|name| is_made_here(name)).collect();
    if !names.is_empty() {
        let text = format!(
            "{}; 'trapline record' says why",
            words::list_first(&names, 3)
        );
        say_wrapped("not recorded: ", &text)?;
    }
    Ok(())
}

/// Returns whether this kernel makes an event of this name, as far as its tracefs says. Probes are none that it makes.
fn is_made_here(name: &str) -> bool {
    let Some((system, event)) = name.split_once(':') else {
        return !name.starts_with("probe ");
    };
    let there = Tracefs::find().and_then(|tracefs| tracefs.event(system, event));
    there.is_ok_and(|event| event.is_some())
}

/// Returns what to change, and what to type next.
fn next(diagnosis: &Diagnosis, folder: &Path) -> String {
    let width = output::width();
    let mut text = String::new();
    let first = diagnosis.findings.first();
    let matters = first.filter(|finding| finding.severity() >= Severity::Medium);
    if let Some(finding) = matters
        && let Some(advice) = finding.remedies.first()
    {
        text.push('\n');
        quality::wrap(&mut text, "change: ", advice.remedy.what, width);
        if let Some(note) = &advice.note {
            quality::wrap(&mut text, "        ", note, width);
        }
        quality::wrap(&mut text, "price:  ", advice.remedy.price, width);
        quality::wrap(&mut text, "check:  ", advice.remedy.check, width);
    }
    text.push('\n');
    let folder = quoted(folder.as_os_str());
    if matters.is_some() {
        text.push_str(&format!("all findings:   trapline diagnose {folder}\n"));
        text.push_str(&format!(
            "after a change: trapline why, then trapline compare {folder} NEW\n"
        ));
    } else {
        text.push_str(&format!(
            "all there is:   trapline report --full {folder}\n"
        ));
        text.push_str("slow at times:  trapline record --keep 30 --until 'irqfd > 20ms'\n");
        text.push_str("in the guest:   trapline agent, and trapline record --agent on the host\n");
    }
    text
}

/// Says what would be done.
fn dry_run(args: &WhyArgs, vm: Option<&ReportedVm>, hindrance: Option<&CheckLine>) -> Result<()> {
    let usual = [
        RecordPurpose::Exits,
        RecordPurpose::Sched,
        RecordPurpose::Paths,
    ];
    let folder = args.output.clone();
    let folder = folder.unwrap_or_else(|| PathBuf::from("trapline-N"));
    let report = ReportLine::new(&folder, &folder.join(PAGE));
    let count = match vm.and_then(|vm| vm.pid) {
        Some(pid) => format!("trapline top --once --pid {pid}"),
        None => "trapline top --once".to_owned(),
    };
    let text = format!(
        "\n'trapline why' would run\n  $ {count}\n  $ {}\n    with more or fewer questions, by what that counted and \
         what an event costs here\n  $ {}\n    and print the screen of that report. Nothing else of this host is \
         changed.\n\ntrapline FILE reports a recording that you have; trapline --help lists all commands.\n",
        record_line(args, vm, &usual).shown(),
        report.shown()
    );
    output::print(&text)?;
    match hindrance {
        Some(line) => bail!("nothing can be recorded: {}", line.found),
        None => Ok(()),
    }
}

/// Gives what can be said where nothing can be recorded: what was counted, the host's settings and the definitions of
/// its VMs. That is no answer, so the command fails.
fn without_recording(
    args: &WhyArgs,
    vm: Option<&ReportedVm>,
    facts: &Facts,
    counted: Option<&NamedCounts>,
    why: &str,
) -> Result<()> {
    if let Some(named) = counted {
        output::table(&top::table(named, output::layout(10, true)))?;
    }
    let folder = RecordingFolder::of_facts(args.output.as_deref(), facts)?;
    say(&format!(
        "wrote {}: what this host's settings are",
        folder.join(HOST_FACTS).display()
    ))?;
    for vm in vm.map_or(facts.vms.as_slice(), std::slice::from_ref) {
        definition(vm, &folder)?;
    }
    let these = match counted {
        Some(_) => "counts and definitions",
        None => "definitions",
    };
    bail!("nothing could be recorded, so these are {these} alone, and no verdict: {why}")
}

/// Says what a VM's definition says by itself.
fn definition(vm: &ReportedVm, folder: &Path) -> Result<()> {
    let (Some(pid), [_, ..]) = (vm.pid, vm.args.as_slice()) else {
        return Ok(());
    };
    // Masked already, as all of the facts.
    let words = vm.args.iter().map(|word| quoted(word.as_ref()));
    let text = words.collect::<Vec<_>>().join(" ") + "\n";
    let file = folder.join(format!("qemu-{pid}.txt"));
    new_file::write(&file, |out| out.write_all(text.as_bytes()))?;
    let line = DiagnoseLine::new(&file);
    say(&format!("$ {}", line.shown()))?;
    // One that is not understood keeps none of the others from being read.
    diagnose::run(&line.args()?).or_else(|error| say(&format!("{error:#}")))
}

fn say(text: &str) -> Result<()> {
    Ok(writeln!(io::stderr(), "{}", neutral::text(text))?)
}
