//! Whose guest a recording is, and how its clock reads.

use std::cmp::Reverse;

use clocks::{Fit, VcpuWindows, fit, likely, search};
use model::Vm;
use source::{TimeStampUnit, WalkOutcome};

use super::gather::{GuestTimes, Windows};
use super::{Guest, GuestAbout, GuestClock, GuestInput};
use crate::{Error, OpenRecording};

/// How far from where the recorder saw it an offset is looked for. What trace-cmd measures over a network or vsock is
/// wrong by some hundred microseconds where a machine is busy, as the corpus shows.
const NEAR_NS: u64 = 2_000_000;
/// How much better than chance the best offset of a pair has to be that nothing but causality shows, in parts of a
/// hundred of what there is above chance. Of true pairs it is 100 where clocks run alike, and 92 where the guest's
/// times are text that carries what trace-cmd measured; of guests of other boots it is 4 to 20.
const ABOVE_CHANCE_PER_CENT: u64 = 80;
/// The same of a pair that the files themselves show: events of the host may be missing.
const ABOVE_CHANCE_OF_KNOWN_PER_CENT: u64 = 50;
/// Parts of a hundred of the events that may lie in a window by chance, if they are to say anything of whose guest it
/// is.
const BY_CHANCE_PER_CENT: u64 = 95;
/// Offsets that are tried where the files know nothing of it.
const TRIES: usize = 4;
/// Events that have to be tried to say anything.
const FEW: u64 = 50;

/// How it is known whose guest a recording is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingEvidence {
    /// The host's recording lists the guest's, with the threads of its vCPUs.
    Listed,
    /// The recordings name each other; which VM it is its events show.
    Named,
    /// The user says so.
    Chosen,
    /// Nothing but its events shows it: they lie between entries and exits of this VM's vCPUs.
    Shown,
}

/// A VM whose guest it may be.
struct Candidate {
    vm: Vm,
    vcpus: Vec<(u32, i32)>,
}

/// What was tried of a candidate.
struct CandidateFit {
    candidate: Candidate,
    fit: Option<Fit>,
    /// The recorder's offset, and whether that is exact.
    recorded: Option<Fit>,
    exact: bool,
}

/// Finds whose guests recordings are. `refuses` takes which one is of no guest and why, and says whether the others are
/// looked at.
pub(super) fn pair<'g>(
    host: &OpenRecording<'_>,
    inputs: Vec<GuestInput<'g>>,
    refuses: &mut dyn FnMut(&str, Error) -> Result<(), Error>,
) -> Result<Vec<Guest<'g>>, Error> {
    let mut guests: Vec<Guest<'g>> = Vec::new();
    if inputs.is_empty() {
        return Ok(guests);
    }
    if !host.nanoseconds() {
        let reason =
            "its clock counts ticks of unknown rate, so no guest's clock can be related to it"
                .to_owned();
        return Err(refused(host.name(), reason));
    }
    let mut windows = Windows::new(host.vms());
    host.walk(&mut windows);
    windows.put_in_order();
    for input in inputs {
        let name = input.name;
        match one(host, &mut windows, input, &guests) {
            Ok(guest) => guests.push(guest),
            Err(error) => refuses(name, error)?,
        }
    }
    Ok(guests)
}

fn refused(name: &str, reason: String) -> Error {
    Error::EventsMissing {
        name: name.to_owned(),
        reason,
    }
}

/// Finds whose guest one recording is. VMs of `others` are taken.
fn one<'g>(
    host: &OpenRecording<'_>,
    windows: &mut Windows,
    input: GuestInput<'g>,
    others: &[Guest<'_>],
) -> Result<Guest<'g>, Error> {
    let refuse = |reason: String| refused(input.name, reason);
    let header = input.reader.header();
    let around = header.together.offset_ns;
    let mut times = GuestTimes::new(around.unwrap_or(0));
    if header.time_unit != TimeStampUnit::Nanoseconds {
        return Err(refuse(without_nanoseconds(&input, &mut times)));
    }
    if windows.by_tid.is_empty() {
        return Err(refused(
            host.name(),
            "holds no kvm_entry and kvm_exit events, by which guests' recordings are related to it; record the host \
             with 'trapline record --for exits'"
                .to_owned(),
        ));
    }
    if let Some(own) = header.together.own
        && others
            .iter()
            .any(|other| other.reader.header().together.own == Some(own))
    {
        return Err(refuse(format!("is given twice: its trace id is {own:#x}")));
    }
    contradicted(host, &input)?;
    let (whose, candidates) = candidates(host, &input, others)?;
    let outcome = input.reader.walk(&mut times);
    times.put_in_order();
    let mut ends = times.ends();
    if ends.is_empty() {
        return Err(refuse(without_events(&outcome)));
    }
    let last = ends.iter().map(|(time, _)| *time).max();
    if outcome.quality.uneven_from.is_none() {
        ends.clear();
    }
    let tried = candidates.into_iter().map(|candidate| {
        let found = fitted(&input, windows, &mut times, &candidate.vcpus);
        let recorded = around.map(|offset_ns| Fit {
            offset_ns,
            at: 0,
            drift_ppb: 0,
            bound_ns: NEAR_NS,
            inside: 0,
            outside: 0,
            by_chance: 0,
            uncovered: 0,
        });
        CandidateFit {
            candidate,
            fit: found,
            recorded,
            exact: header.together.constant,
        }
    });
    let mut tried: Vec<CandidateFit> = tried.collect();
    let above = |one: &CandidateFit| one.fit.as_ref().map_or(0, above_chance);
    tried.sort_by_key(|one| Reverse(above(one)));
    let mut tried = tried.into_iter();
    let Some(best) = tried.next() else {
        return Err(refuse(format!(
            "no VM of {} is left whose guest it could be",
            host.name()
        )));
    };
    let judged = judge(whose, &best, tried.next().as_ref());
    let (clock, fit) = judged.map_err(|reason| {
        // Another VM's guest it may be.
        let of = match &input.vm {
            Some(named) => format!("VM {named} of {}", host.name()),
            None => host.name().to_owned(),
        };
        refuse(format!(
            "is no guest of {of} that was recorded at the same time: {reason}"
        ))
    })?;
    Ok(Guest {
        about: GuestAbout {
            name: input.name.to_owned(),
            vm: best.candidate.vm,
            vcpus: best.candidate.vcpus,
            whose,
            fit,
            clock,
        },
        reader: input.reader,
        ends,
        last,
    })
}

fn without_nanoseconds(input: &GuestInput<'_>, times: &mut GuestTimes) -> String {
    // A file that was cut before its first event may not say what its clock counts either.
    let outcome = input.reader.walk(times);
    match times.ends().is_empty() {
        true => without_events(&outcome),
        false => "its clock counts ticks of unknown rate, so it cannot be related to its host's"
            .to_owned(),
    }
}

fn without_events(outcome: &WalkOutcome) -> String {
    let cut = match outcome.quality.truncated {
        true => ": it is cut off before the first one",
        false => "",
    };
    format!("holds no events{cut}")
}

/// Refuses what the files themselves say is another's.
fn contradicted(host: &OpenRecording<'_>, input: &GuestInput<'_>) -> Result<(), Error> {
    let guests = &host.header().together;
    let guest = &input.reader.header().together;
    if let (Some(of), Some(own)) = (guest.host, guests.own)
        && of != own
    {
        return Err(refused(
            input.name,
            format!(
                "was recorded with another host's recording: it names trace id {of:#x}, and {} has {own:#x}",
                host.name()
            ),
        ));
    }
    if let Some(own) = guest.own
        && guest.host.is_some()
        && !guests.guests.is_empty()
        && !guests.guests.contains(&own)
    {
        let ids: Vec<String> = guests.guests.iter().map(|id| format!("{id:#x}")).collect();
        return Err(refused(
            input.name,
            format!(
                "is none of the guests that were recorded with {}: its trace id is {own:#x}, and the host's recording \
                 lists {}",
                host.name(),
                ids.join(", ")
            ),
        ));
    }
    Ok(())
}

/// Returns the VMs whose guest it may be, and how that is known.
fn candidates(
    host: &OpenRecording<'_>,
    input: &GuestInput<'_>,
    others: &[Guest<'_>],
) -> Result<(PairingEvidence, Vec<Candidate>), Error> {
    let header = input.reader.header();
    let own = header.together.own;
    let vms = host.vms();
    let mut list = host.header().guests.iter();
    let listed = list.find(|map| Some(map.trace_id) == own);
    if let Some(map) = listed {
        let tids: Vec<i32> = map.vcpus.iter().map(|(_, tid)| *tid).collect();
        let of = |vm: &&Vm| vm.vcpus.iter().any(|vcpu| tids.contains(&vcpu.tid));
        let vm = vms.iter().find(of);
        if let (Some(named), Some(vm)) = (&input.vm, vm)
            && !vm.is_called(named)
        {
            return Err(refused(
                input.name,
                format!(
                    "{} lists it as the guest of {}, not of {named}",
                    host.name(),
                    words_of(vm)
                ),
            ));
        }
        let candidate = Candidate {
            vm: vm.cloned().unwrap_or_else(|| Vm {
                pid: None,
                name: Some(map.name.clone()),
                process: None,
                uuid: None,
                vcpus: Vec::new(),
                helpers: Vec::new(),
                guessed: false,
                presumed: false,
            }),
            vcpus: map.vcpus.clone(),
        };
        return Ok((PairingEvidence::Listed, vec![candidate]));
    }
    let known = own.is_some_and(|own| host.header().together.guests.contains(&own));
    let (found, reasons) = possible(host, input, others, known);
    if found.is_empty() {
        let reason = match (&input.vm, reasons.as_slice()) {
            (Some(named), []) => {
                let vms: Vec<String> = host.vms().iter().map(words_of).collect();
                match vms.is_empty() {
                    true => format!("{} shows no VM", host.name()),
                    false => format!("{} has no VM {named}, but {}", host.name(), vms.join(", ")),
                }
            }
            (None, []) => format!("{} shows no VM", host.name()),
            (_, reasons) => format!(
                "is of no VM that {} shows: {}",
                host.name(),
                reasons.join("; ")
            ),
        };
        return Err(refused(input.name, reason));
    }
    let whose = match (known, &input.vm) {
        (true, _) => PairingEvidence::Named,
        (false, Some(_)) => PairingEvidence::Chosen,
        (false, None) => PairingEvidence::Shown,
    };
    Ok((whose, found))
}

/// Returns the VMs whose guest it may be where none is listed, and why others are not. `known` says that the host's
/// recording names it.
fn possible(
    host: &OpenRecording<'_>,
    input: &GuestInput<'_>,
    others: &[Guest<'_>],
    known: bool,
) -> (Vec<Candidate>, Vec<String>) {
    let header = input.reader.header();
    let listed_elsewhere = |vm: &Vm| {
        let maps = host.header().guests.iter();
        let tids = maps.flat_map(|map| map.vcpus.iter().map(|(_, tid)| *tid));
        let mut tids = tids.filter(|tid| vm.vcpus.iter().any(|vcpu| vcpu.tid == *tid));
        tids.next().is_some()
    };
    let mut found = Vec::new();
    let mut reasons = Vec::new();
    for vm in host.vms() {
        let called = words_of(vm);
        if input.vm.as_ref().is_some_and(|named| !vm.is_called(named)) {
            continue;
        }
        if others.iter().any(|other| other.vm().vcpus == vm.vcpus) {
            reasons.push(format!("{called} has another recording"));
            continue;
        }
        if known && listed_elsewhere(vm) {
            reasons.push(format!("{called} is listed for another recording"));
            continue;
        }
        let last = vm.vcpus.iter().map(|vcpu| vcpu.id).max();
        if let (Some(cpus), Some(last)) = (header.cpus, last)
            && last >= cpus
        {
            reasons.push(format!(
                "{called} has vCPU {last}, and the guest has {}",
                words::plural(cpus, "CPU")
            ));
            continue;
        }
        found.push(Candidate {
            vcpus: vm.vcpus.iter().map(|vcpu| (vcpu.id, vcpu.tid)).collect(),
            vm: vm.clone(),
        });
    }
    (found, reasons)
}

fn words_of(vm: &Vm) -> String {
    match (&vm.name, vm.pid, vm.vcpus.first()) {
        (Some(name), Some(pid), _) => format!("VM {name} (process {pid})"),
        (Some(name), None, _) => format!("VM {name}"),
        (None, Some(pid), _) => format!("the VM of process {pid}"),
        (None, None, Some(vcpu)) => format!("the VM with vCPU thread {}", vcpu.tid),
        (None, None, None) => "a VM without vCPUs".to_owned(),
    }
}

/// Finds the offset that most of the guest's events allow, if they are this VM's.
fn fitted(
    input: &GuestInput<'_>,
    windows: &mut Windows,
    times: &mut GuestTimes,
    vcpus: &[(u32, i32)],
) -> Option<Fit> {
    if let Some(around) = input.reader.header().together.offset_ns {
        let spread = windows.spread.and(times.spread);
        windows.keep(spread);
        times.keep(spread, NEAR_NS);
        return fit(&sides(windows, times, vcpus), around, NEAR_NS);
    }
    let (_, tid) = vcpus.first()?;
    let likely = likely(windows.density(*tid)?, &times.density, TRIES);
    let mut best: Option<Fit> = None;
    for about in likely.offsets_ns {
        let found = near(input, windows, times, vcpus, (about, likely.within_ns));
        let above = |fit: &Option<Fit>| fit.as_ref().map(above_chance);
        if above(&found) > above(&best) {
            best = found;
        }
        if above(&best) >= Some(ABOVE_CHANCE_PER_CENT) {
            return best;
        }
    }
    // Two that go on all the time alike look the same at any offset: then windows alone can tell.
    if windows.spread.is_all() && times.spread.is_all() {
        let around = search(&sides(windows, times, vcpus), None);
        let found = around.and_then(|around| fit(&sides(windows, times, vcpus), around, NEAR_NS));
        let above = |fit: &Option<Fit>| fit.as_ref().map(above_chance);
        if above(&found) > above(&best) {
            return found;
        }
    }
    best
}

/// Looks for an offset that is no further than that from another one.
fn near(
    input: &GuestInput<'_>,
    windows: &mut Windows,
    times: &GuestTimes,
    vcpus: &[(u32, i32)],
    (about, within_ns): (i64, u64),
) -> Option<Fit> {
    let mut again = GuestTimes::new(about);
    let times = match windows.spread.is_all() && times.spread.is_all() {
        true => times,
        false => {
            input.reader.walk(&mut again);
            again.put_in_order();
            let spread = windows.spread.and(again.spread);
            windows.keep(spread);
            again.keep(spread, within_ns.saturating_add(NEAR_NS));
            &again
        }
    };
    let sides = sides(windows, times, vcpus);
    let around = search(&sides, Some((about, within_ns)))?;
    fit(&sides, around, NEAR_NS)
}

fn sides<'a>(
    windows: &'a Windows,
    times: &'a GuestTimes,
    vcpus: &[(u32, i32)],
) -> Vec<VcpuWindows<'a>> {
    let sides = vcpus.iter().filter_map(|(cpu, tid)| {
        Some(VcpuWindows {
            windows: windows.by_tid.get(tid)?,
            events: times.by_cpu.get(cpu)?,
        })
    });
    sides.collect()
}

/// Returns how much better than chance an offset is, in parts of a hundred of what there is above chance.
fn above_chance(fit: &Fit) -> u64 {
    let above = fit.inside.saturating_sub(fit.by_chance);
    let whole = (fit.inside + fit.outside).saturating_sub(fit.by_chance);
    above * 100 / whole.max(1)
}

/// Says whether a candidate is the guest's VM, and what its clock is; or what speaks against it.
fn judge(
    whose: PairingEvidence,
    best: &CandidateFit,
    next: Option<&CandidateFit>,
) -> Result<(GuestClock, Fit), String> {
    let known = matches!(whose, PairingEvidence::Listed | PairingEvidence::Named);
    let undecided = |why: &str| match &best.recorded {
        Some(recorded) if known => Ok((GuestClock::Undecided, *recorded)),
        _ => Err(why.to_owned()),
    };
    let Some(fit) = &best.fit else {
        return undecided(
            "its events lie near entries or exits of a vCPU at no offset of its clock",
        );
    };
    let tried = fit.inside + fit.outside;
    if tried < FEW {
        return undecided("the two recordings hardly overlap in time");
    }
    if fit.by_chance * 100 > tried * BY_CHANCE_PER_CENT {
        return undecided(
            "its events fit at nearly every offset of its clock, so nothing shows whose guest it is",
        );
    }
    let needed = match known {
        true => ABOVE_CHANCE_OF_KNOWN_PER_CENT,
        false => ABOVE_CHANCE_PER_CENT,
    };
    if above_chance(fit) < needed {
        return Err(format!(
            "at the best offset of its clock {} of its {tried} events lie between an entry of their vCPU and the exit \
             behind it, and by chance {} would",
            words::share::of(fit.inside, tried),
            words::share::of(fit.by_chance, tried)
        ));
    }
    let also = next.and_then(|next| next.fit.as_ref());
    if let Some(also) = also
        && !known
        && above_chance(also) >= needed
    {
        return Err("it fits more than one VM; say which with --guest NAME=REC".to_owned());
    }
    // What KVM adds to a guest's TSC is exact, and the middle of what events allow is not.
    let exact = best.recorded.filter(|one| {
        best.exact && one.offset_ns.abs_diff(fit.offset_ns) <= fit.bound_ns && fit.drift_ppb == 0
    });
    Ok(match exact {
        Some(one) => (
            GuestClock::Recorded,
            Fit {
                offset_ns: one.offset_ns,
                ..*fit
            },
        ),
        None => (GuestClock::Fitted, *fit),
    })
}
