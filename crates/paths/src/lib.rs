/*!
Paths: chains of events that one thing makes happen after another.

A [`lang::Path`] says which events follow which, and how they belong together: by thread, CPU, vCPU, by the task that was woken, the
interrupt that was raised. [`Paths`] follows every instance of every path through a recording and keeps, in memory that grows
with the instances under way only, how long each stage took and what slow instances have in common. The built-in paths
are files of the same language that users write.
*/
#![forbid(unsafe_code)]

mod engine;
mod interrupts;
pub mod lang;
mod notes;
mod report;
mod slow;
mod tally;
mod tasks;
mod traits;
mod uses;

pub use engine::{Instance, Only, Paths, Reached};
pub use notes::{Waker, Was};
pub use report::{
    Because, GroupReport, Had, InstanceReport, NameAccess, PathReport, SlowReport, StageReport,
    StepReport,
};
pub use slow::Found;
pub use tally::Dropped;
pub use tasks::{Run, What};
pub use traits::Trait;
pub use uses::{DeviceReport, MetReport};

/// The built-in paths: name and text of each, in the order in which they are printed.
pub const BUILTIN: [(&str, &str); 6] = [
    ("halt-wake", include_str!("../builtin/halt-wake.toml")),
    ("irqfd", include_str!("../builtin/irqfd.toml")),
    ("ipi", include_str!("../builtin/ipi.toml")),
    ("timer", include_str!("../builtin/timer.toml")),
    ("kick", include_str!("../builtin/kick.toml")),
    ("user-exit", include_str!("../builtin/user-exit.toml")),
];

/// Paths that causes are looked for in, and that are not told unless they are asked for.
pub const FOR_RULES: [(&str, &str); 1] =
    [("device-irq", include_str!("../builtin/device-irq.toml"))];

/// Returns a built-in path.
pub fn builtin(name: &str) -> Option<lang::Path> {
    let mut all = BUILTIN.iter().chain(&FOR_RULES);
    let (_, text) = all.find(|(known, _)| *known == name)?;
    lang::parse(text).ok()
}

/// Returns all built-in paths.
pub fn all_builtin() -> Vec<lang::Path> {
    BUILTIN
        .iter()
        .filter_map(|(name, _)| builtin(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manuals_path_is_understood() {
        let manual = include_str!("../../../docs/paths.md");
        let (_, text) = manual.split_once("```toml\n").expect("an example");
        let (text, _) = text.split_once("```").expect("its end");
        let path = lang::parse(text).expect("a path");
        assert_eq!(path.chains[0].steps.len(), 3);
        assert_eq!(path.chains[0].roles, ["guest", "address", "backend"]);
    }

    #[test]
    fn built_in_paths_are_understood() {
        for (name, text) in BUILTIN.into_iter().chain(FOR_RULES) {
            match lang::parse(text) {
                Ok(path) => assert_eq!(path.name, name),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}
