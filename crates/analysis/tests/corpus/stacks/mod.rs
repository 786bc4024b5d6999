//! Stacks of recordings, as flame graphs show them: beside what perf and inferno make of the same samples, and beside
//! the events of the scheduler.

mod branches;
mod by_hand;
mod cases;
mod of_inferno;
mod of_perf;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use analysis::ProfileOptions;
use fixtures::FixtureQuestion;
use fixtures::answers::FoldedStacks;

/// Asks for idle CPUs and guests too.
fn with_idle() -> ProfileOptions {
    ProfileOptions {
        idle: true,
        ..ProfileOptions::default()
    }
}

/// Returns the stacks of a recording.
fn folded(recording: &Path, options: ProfileOptions) -> FoldedStacks {
    let found = FixtureQuestion::new().folded(recording, options);
    found.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns all stacks of a recording, the host's kernel named by a copy of its symbols.
fn folded_with(recording: &Path, kallsyms: &Path) -> FoldedStacks {
    let asked = FixtureQuestion::new().beside(|beside| beside.kallsyms = Some(kallsyms.to_owned()));
    asked.folded(recording, with_idle()).expect("stacks")
}

/// Functions at one address have several names, of which tools choose differently: perf takes global ones before local
/// ones, trapline what libtraceevent takes. Each becomes the first of them.
fn one_name_each(folded: &FoldedStacks, symbols: &str) -> FoldedStacks {
    let mut at: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) {
            at.entry(address).or_default().insert(name);
            of.entry(name).or_default().insert(address);
        }
    }
    let first = |name: &str| -> String {
        let addresses = of.get(name).filter(|all| all.len() == 1);
        let address = addresses.and_then(|all| all.first());
        let names = address.and_then(|address| at[address].first());
        names.map_or(name, |first| first).to_owned()
    };
    let mut all = FoldedStacks::new();
    for (stack, weight) in folded {
        let names: Vec<String> = stack.split(';').map(first).collect();
        *all.entry(names.join(";")).or_default() += weight;
    }
    all
}
