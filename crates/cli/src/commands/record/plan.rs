//! What is to be recorded, by what the user asks.

use agent::{CPU, IO};
use anyhow::{Result, bail};
use facts::{Facts, ReportedVm};
use record::{CompactUse, Missing, PlannedEvent, Question, RecordPlan, TargetVm, Tracefs};

use crate::commands::agent::args::ForGuest;
use crate::commands::paths::read_path_of;
use crate::commands::record::args::{RecordArgs, RecordPurpose};
use crate::commands::record::functions;
use crate::usage::Usage;

/// Returns what is asked.
pub(super) fn asked(args: &RecordArgs) -> Vec<Question> {
    match args.questions.as_slice() {
        [] => vec![Question::Exits, Question::Sched, Question::Paths],
        some if some.contains(&RecordPurpose::All) => Question::ALL.to_vec(),
        some => {
            let asked = some.iter().filter_map(|one| question(*one));
            let mut asked: Vec<Question> = asked.collect();
            if asked.contains(&Question::Virtqueues) && has_virtio() {
                asked.push(Question::GuestVirtqueues);
            }
            asked
        }
    }
}

/// Returns whether this machine has virtio devices itself, as guests have.
fn has_virtio() -> bool {
    let devices = std::fs::read_dir("/sys/bus/virtio/devices");
    devices.is_ok_and(|mut devices| devices.next().is_some())
}

/// Returns the probes that are to be made: those of what is asked, and the user's own, as tracefs takes them.
///
/// # Errors
///
/// A function of a program has no symbol, or its file cannot be read.
pub(super) fn probes(args: &RecordArgs, asked: &[Question]) -> Result<Vec<String>> {
    let of_questions = asked.iter().flat_map(|one| one.probes());
    let of_questions = of_questions.map(|name| Ok((*name).to_owned()));
    let own = args.probe.iter().map(|text| functions::probe(text));
    of_questions.chain(own).collect()
}

/// Returns what is to be recorded to answer these questions, beside what the user named.
pub(super) fn plan(args: &RecordArgs, asked: &[Question], facts: &Facts) -> Result<RecordPlan> {
    let named = [&args.event, &args.probe, &args.function];
    let only_named = args.questions == [RecordPurpose::Named];
    if only_named && named.iter().all(|names| names.is_empty()) && args.pair.is_empty() {
        return Err(Usage::error(
            "--for named: records what --event, --probe, --function and --pair name, and none of them is given"
                .to_owned(),
        ));
    }
    let mut events = record::events(asked);
    for named in &args.event {
        let (name, filter) = name_and_filter(named)?;
        let Some((system, name)) = name.split_once(':') else {
            return Err(Usage::error(format!(
                "--event {name}: an event is named SYSTEM:NAME, such as kvm:kvm_exit"
            )));
        };
        if name.contains(['*', '?', '[']) {
            return Err(Usage::error(format!(
                "--event {system}:{name}: takes the name of one event, and no pattern; give --event for each"
            )));
        }
        let known = events
            .iter_mut()
            .find(|one| one.system == system && one.name == name);
        match known {
            Some(one) => one.filter = filter,
            None => events.push(PlannedEvent {
                filter,
                ..PlannedEvent::all(system, name)
            }),
        }
    }
    events.extend(functions::planned(&args.function)?);
    for until in &args.until {
        for one in of_path(&until.path)? {
            let known =
                |there: &PlannedEvent| (&there.system, &there.name) == (&one.system, &one.name);
            if !events.iter().any(known) {
                events.push(one);
            }
        }
    }
    // Where no event triggers, nobody has to look at any before something has happened.
    let overwriting = args.keep.filter(|_| args.until.is_empty());
    let ring_bytes = match (args.ring, overwriting) {
        (Some(kib), _) => kib.saturating_mul(1024),
        (None, Some(keep)) => record::ring_bytes(keep, args.memory),
        (None, None) => 0,
    };
    let mut plan = RecordPlan {
        events,
        samples_hz: asked.iter().find_map(|one| one.samples_hz()),
        ring_bytes,
        ring_exact: args.ring.is_some(),
        flight: overwriting.is_some(),
        no_symbols: false,
        cpus: args.cpu.clone(),
        threads: args.tid.clone(),
        pairs: Vec::new(),
        compact: compact_use(args),
        counted: Vec::new(),
    };
    if args.counters {
        plan.counted = counted(args, facts)?;
    }
    if let Some(vm) = chosen_vm(args.vm.as_deref(), args.pid, facts)? {
        record::narrow(&mut plan, &target(vm, facts));
    }
    Ok(plan)
}

/// Returns whether programs write the events that they know. Those of chosen threads or CPUs alone they do not know.
fn compact_use(args: &RecordArgs) -> CompactUse {
    let chosen =
        args.vm.is_some() || args.pid.is_some() || args.cpu.is_some() || !args.tid.is_empty();
    match (args.compact, args.keep) {
        (true, _) => CompactUse::Always,
        (false, Some(_)) if !chosen && !args.no_compact => CompactUse::WherePossible,
        (false, _) => CompactUse::Never,
    }
}

/// Returns the threads that are counted: those that are named, else the vCPUs of the VM that is, else all vCPUs.
fn counted(args: &RecordArgs, facts: &Facts) -> Result<Vec<i32>> {
    if !args.tid.is_empty() {
        return Ok(args.tid.clone());
    }
    let chosen = chosen_vm(args.vm.as_deref(), args.pid, facts)?;
    let vms = facts.vms.iter();
    let vms = vms.filter(|vm| chosen.is_none_or(|chosen| chosen.pid == vm.pid));
    let vcpus: Vec<i32> = vms.flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.tid).collect();
    match vcpus.is_empty() {
        true => bail!(
            "--counters: no vCPU runs on this host, or its threads cannot be seen; --tid names threads"
        ),
        false => Ok(vcpus),
    }
}

/// Takes an event's name and the filter in slashes behind it apart.
fn name_and_filter(asked: &str) -> Result<(&str, Option<String>)> {
    let Some((name, rest)) = asked.split_once('/') else {
        return Ok((asked, None));
    };
    let filter = rest.strip_suffix('/').map(str::trim);
    match filter.filter(|filter| !filter.is_empty()) {
        Some(filter) => Ok((name.trim(), Some(filter.to_owned()))),
        None => Err(Usage::error(format!(
            "--event '{asked}': a filter stands between slashes, as in 'kvm:kvm_pio/port == 0x608/'"
        ))),
    }
}

fn question(asked: RecordPurpose) -> Option<Question> {
    match asked {
        RecordPurpose::Exits => Some(Question::Exits),
        RecordPurpose::Sched => Some(Question::Sched),
        RecordPurpose::Paths => Some(Question::Paths),
        RecordPurpose::Stacks => Some(Question::Stacks),
        RecordPurpose::Virtqueues => Some(Question::Virtqueues),
        RecordPurpose::All | RecordPurpose::Named => None,
    }
}

/// What the user named is recorded, or nothing is: who sees at the end that it was misspelt has to record again.
pub(super) fn named_are_there(args: &RecordArgs, missing: &[Missing]) -> Result<()> {
    let events = args
        .event
        .iter()
        .map(|text| (event_name(text).to_owned(), "--event", text));
    let probes = args.probe.iter();
    let probes = probes.map(|text| (format!("probe {text}"), "--probe", text));
    let tracer = args.function.iter();
    let tracer = tracer.map(|name| (functions::TRACER.to_owned(), "--function", name));
    for (name, option, text) in events.chain(probes).chain(tracer) {
        if let Some(one) = missing.iter().find(|one| one.name == name) {
            bail!("{option} '{text}': {}", one.why);
        }
    }
    Ok(())
}

/// Returns the name of an event without its filter.
fn event_name(asked: &str) -> &str {
    asked.split_once('/').map_or(asked, |(name, _)| name.trim())
}

/// Returns the events that a path is followed by, as far as this kernel has them: where they are not recorded it would
/// never be slow.
fn of_path(name: &str) -> Result<Vec<PlannedEvent>> {
    let path = read_path_of("--until", name)?;
    // Without tracefs recording fails later, and says why.
    let Ok(tracefs) = Tracefs::find() else {
        return Ok(Vec::new());
    };
    let systems = tracefs.systems();
    let of_kernel = |(asked, name): (Option<&str>, &str)| {
        let has = |system: &&String| {
            let id = tracefs.root().join("events").join(system).join(name);
            asked.is_none_or(|asked| asked == system.as_str()) && id.join("id").exists()
        };
        let system = systems.iter().find(has)?;
        Some(PlannedEvent::all(system, name))
    };
    let found: Vec<PlannedEvent> = path.events().filter_map(of_kernel).collect();
    Ok(found)
}

/// Returns the VM that was asked for, by its name or its process.
///
/// # Errors
///
/// There is none, or several are called so.
pub(in crate::commands) fn chosen_vm<'f>(
    vm: Option<&str>,
    pid: Option<i32>,
    facts: &'f Facts,
) -> Result<Option<&'f ReportedVm>> {
    let (asked, found): (String, Option<&ReportedVm>) = match (vm, pid) {
        (Some(name), _) => {
            let exact = |vm: &&ReportedVm| vm.name.as_deref() == Some(name);
            let mut called: Vec<&ReportedVm> = facts.vms.iter().filter(exact).collect();
            if called.is_empty() {
                called = facts.vms.iter().filter(|vm| vm.is_called(name)).collect();
            }
            if called.len() > 1 {
                let pids = called.iter().filter_map(|vm| vm.pid);
                let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
                bail!(
                    "--vm {name}: {} VMs are called so; choose one by its process with --pid: {}",
                    called.len(),
                    words::list(&pids)
                );
            }
            (format!("--vm {name}"), called.first().copied())
        }
        (None, Some(pid)) => {
            let found = facts.vms.iter().find(|vm| vm.pid == Some(pid));
            (format!("--pid {pid}"), found)
        }
        (None, None) => return Ok(None),
    };
    let Some(found) = found else {
        let there = facts.vms.iter().map(|vm| {
            let name = vm.name.as_deref().unwrap_or("a VM without a name");
            let pid = vm
                .pid
                .map_or_else(String::new, |pid| format!(" (process {pid})"));
            format!("{name}{pid}")
        });
        let there: Vec<String> = there.collect();
        match there.as_slice() {
            [] => bail!("{asked}: no VM runs on this host, or its process cannot be seen"),
            some => bail!("{asked}: no such VM; there are {}", words::list(some)),
        }
    };
    Ok(Some(found))
}

/// Returns the threads of a VM, and where they may run.
fn target(vm: &ReportedVm, facts: &Facts) -> TargetVm {
    let mut target = TargetVm {
        vcpus: vm.vcpus.iter().map(|vcpu| vcpu.tid).collect(),
        ..TargetVm::default()
    };
    let threads = facts
        .threads
        .iter()
        .filter(|(tid, thread)| thread.pid == vm.pid && vm.pid.is_some() || vm.vhost.contains(tid));
    let affinities = threads.map(|(_, thread)| thread.affinity.as_ref());
    let affinities = affinities.chain(vm.vcpus.iter().map(|vcpu| vcpu.affinity.as_ref()));
    for affinity in affinities {
        match affinity {
            Some(cpus) => cpus.iter().for_each(|cpu| target.cpus.insert(cpu)),
            // Who may run anywhere, or of whom that is not known.
            None => target.anywhere = true,
        }
    }
    target
}

/// Returns what is to be asked of guests: packets and requests are parts of paths alone, if nothing is asked of guests
/// by name.
pub(super) fn questions_to_guests(asked: &[RecordPurpose], of_guests: &[ForGuest]) -> u8 {
    let of_paths = |one: &RecordPurpose| matches!(one, RecordPurpose::Paths | RecordPurpose::All);
    let default = match asked.is_empty() || asked.iter().any(of_paths) {
        true => CPU | IO,
        false => CPU,
    };
    ForGuest::bits(of_guests, default)
}

#[cfg(test)]
mod tests {
    use agent::SOCKETS;

    use super::*;

    #[test]
    fn packets_are_asked_for_where_paths_are() {
        let questions = questions_to_guests;
        assert_eq!(questions(&[], &[]), CPU | IO);
        assert_eq!(
            questions(&[RecordPurpose::Exits, RecordPurpose::Sched], &[]),
            CPU
        );
        assert_eq!(
            questions(&[RecordPurpose::Exits, RecordPurpose::Paths], &[]),
            CPU | IO
        );
        assert_eq!(questions(&[RecordPurpose::All], &[]), CPU | IO);
        assert_eq!(questions(&[RecordPurpose::All], &[ForGuest::Cpus]), CPU);
        assert_eq!(questions(&[], &[ForGuest::Sockets]), SOCKETS);
    }
}
