//! `--pair 'A -> B'`: what its two events are.

use std::str::FromStr;

use anyhow::{Result, bail};
use record::{Missing, PlannedEvent, PlannedPair, RecordPlan};

use super::functions;
use crate::options::values;
use crate::usage::Usage;

/// What stands between the events of a pair.
const ARROW: &str = "->";

/// A pair, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedPair {
    /// Its events: tracepoints, or what `--probe` takes.
    pub ends: [String; 2],
    /// Shorter ones are not recorded, ns.
    pub least_ns: u64,
}

impl FromStr for AskedPair {
    type Err = String;

    fn from_str(text: &str) -> Result<AskedPair, String> {
        let expected =
            || "expected two events, such as 'kvm:kvm_exit -> kvm:kvm_entry > 1ms'".to_owned();
        let (first, rest) = text.split_once(ARROW).ok_or_else(expected)?;
        let (second, least_ns) = match rest.split_once('>') {
            Some((second, time)) => (second, values::with_unit(time)?),
            None => (rest, 0),
        };
        let ends = [first, second].map(|end| end.trim().to_owned());
        match ends.iter().any(String::is_empty) || second.contains(ARROW) {
            true => Err(expected()),
            false => Ok(AskedPair { ends, least_ns }),
        }
    }
}

/// Returns whether an end of a pair is a tracepoint: its system and its name. Modules of functions of the kernel stand
/// before a colon too, in what tracefs takes, which has a space.
fn tracepoint(end: &str) -> Option<(&str, &str)> {
    let (system, name) = end.split_once(':')?;
    let plain = |text: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !text.is_empty() && text.chars().all(is_plain)
    };
    (plain(system) && plain(name)).then_some((system, name))
}

/// Returns the probes that the pairs need, as tracefs takes them, in the order of their ends.
///
/// # Errors
///
/// As [`functions::probe`].
pub(super) fn probes(pairs: &[AskedPair]) -> Result<Vec<String>> {
    let ends = pairs.iter().flat_map(|pair| &pair.ends);
    let ends = ends.filter(|end| tracepoint(end).is_none());
    ends.map(|end| {
        let probe = functions::probe(end)?;
        // A function's place alone: a record of a pair has no arguments, which a function's name may bring.
        Ok(
            match probe.contains(|c: char| c == '/' || c.is_whitespace()) {
                true => probe,
                false => format!("p:{probe} {probe}+0"),
            },
        )
    })
    .collect()
}

/// Adds the pairs to a plan. `made` are the events of [`probes`], those of them that could be made; `missing` says why
/// others could not.
///
/// # Errors
///
/// A probe could not be made, or the first event is recorded anyway.
pub(super) fn add(
    plan: &mut RecordPlan,
    pairs: &[AskedPair],
    made: &[PlannedEvent],
    missing: &[Missing],
) -> Result<()> {
    let ends = pairs.iter().flat_map(|pair| &pair.ends);
    let ends = ends.filter(|end| tracepoint(end).is_none());
    for (end, text) in ends.zip(probes(pairs)?) {
        let name = format!("probe {text}");
        if let Some(one) = missing.iter().find(|one| one.name == name) {
            bail!("--pair: {end}: {}", one.why);
        }
    }
    let mut made = made.iter();
    for pair in pairs {
        let mut event = |end: &str| match tracepoint(end) {
            Some((system, name)) => Some(PlannedEvent::all(system, name)),
            None => made.next().cloned(),
        };
        let [first, second] = &pair.ends;
        let (Some(first), Some(second)) = (event(first), event(second)) else {
            bail!("--pair '{first} {ARROW} {second}': its probes could not be made");
        };
        let is_there = |one: &PlannedEvent| {
            let same =
                |other: &PlannedEvent| (&other.system, &other.name) == (&one.system, &one.name);
            plan.events.iter().any(same)
        };
        let [asked, _] = &pair.ends;
        if is_there(&first) {
            return Err(Usage::error(format!(
                "--pair: {asked} is recorded each time it comes, by what else is asked for, so there is nothing to \
                 keep of it; with '--for named' no more is recorded than what --event, --probe and --pair name"
            )));
        }
        // Without a limit each of them is wanted, with all that perf writes of it.
        if pair.least_ns == 0 && !is_there(&second) {
            plan.events.push(second.clone());
        }
        plan.pairs.push(PlannedPair {
            first,
            second,
            least_ns: pair.least_ns,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_two_events_and_maybe_a_time() {
        let pair: AskedPair = "kvm:kvm_exit -> kvm:kvm_entry > 1.5ms"
            .parse()
            .expect("a pair");
        assert_eq!(pair.ends, ["kvm:kvm_exit", "kvm:kvm_entry"]);
        assert_eq!(pair.least_ns, 1_500_000);
        let probes: AskedPair = "/bin/a:poll->/bin/a:send%return".parse().expect("a pair");
        assert_eq!(probes.ends, ["/bin/a:poll", "/bin/a:send%return"]);
        assert_eq!(probes.least_ns, 0);
        for bad in [
            "a",
            "a ->",
            "-> b",
            "a -> b > soon",
            "a -> b -> c",
            "a -> b > 1",
        ] {
            assert!(bad.parse::<AskedPair>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tracepoints_are_not_taken_for_probes() {
        assert_eq!(tracepoint("kvm:kvm_exit"), Some(("kvm", "kvm_exit")));
        for probe in [
            "irqfd_inject",
            "/bin/a:poll",
            "p tun:tun_get_user",
            "p:x /a:0x1",
        ] {
            assert_eq!(tracepoint(probe), None, "{probe}");
        }
        let pair: AskedPair = "irqfd_inject -> kvm:kvm_entry".parse().expect("a pair");
        let needed = probes(&[pair]).expect("they can be named");
        assert_eq!(needed, ["p:irqfd_inject irqfd_inject+0"]);
    }

    #[test]
    fn what_is_recorded_anyway_is_no_first_event() {
        let pair: AskedPair = "kvm:kvm_exit -> kvm:kvm_entry".parse().expect("a pair");
        let mut plan = RecordPlan::default();
        add(&mut plan, std::slice::from_ref(&pair), &[], &[]).expect("it can be added");
        assert_eq!(plan.events, [PlannedEvent::all("kvm", "kvm_entry")]);
        assert_eq!(plan.pairs.len(), 1);
        let mut plan = RecordPlan {
            events: vec![PlannedEvent::all("kvm", "kvm_exit")],
            ..RecordPlan::default()
        };
        assert!(add(&mut plan, &[pair], &[], &[]).is_err());
    }
}
