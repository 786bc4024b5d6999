//! What a screen is made of.

use analysis::{Origin, Picture, Stats};
use rules::Diagnosis;

use crate::Layout;
use crate::info::Head;

/// One recording, or a set of printed tables, with what was found in it.
#[derive(Debug, Clone, Copy)]
pub struct ScreenInput<'a> {
    /// Its name, as it was given.
    pub name: &'a str,
    /// The command that shows all that there is, as it can be given to a shell.
    pub more: &'a str,
    /// The filters, as they were given; nothing where there are none.
    pub filters: &'a str,
    /// What it says of itself.
    pub head: &'a Head,
    /// What was found; rows of exits by time, those of tasks by their longest delay.
    pub picture: &'a Picture,
    /// What is wrong.
    pub diagnosis: &'a Diagnosis,
}

impl ScreenInput<'_> {
    /// Returns whether its numbers come from printed tables.
    pub(crate) fn printed(&self) -> bool {
        self.picture.origin == Origin::Printed
    }

    /// Returns how its tables are laid out.
    pub(crate) fn layout(&self, width: usize, limit: usize) -> Layout {
        Layout {
            width,
            limit,
            nanoseconds: self.head.nanoseconds,
        }
    }

    /// Returns a duration as it is printed.
    pub(crate) fn time(&self, ns: u64) -> String {
        self.layout(0, 0).time(ns)
    }

    /// Returns a mean as it is printed.
    pub(crate) fn mean(&self, times: &Stats) -> String {
        self.layout(0, 0).mean(times)
    }

    /// Returns what it is, in one sentence: length, events, format, machine.
    pub(crate) fn about(&self) -> String {
        let info = &self.picture.info;
        let mut parts = Vec::new();
        if let Some((start, end)) = info.start.zip(info.end) {
            parts.push(match self.head.nanoseconds {
                true => self.time(end.saturating_sub(start)),
                false => "times are ticks".to_owned(),
            });
        }
        if !self.printed() {
            parts.push(words::plural(self.events(), "event"));
        }
        if !self.filters.is_empty() {
            parts.push(format!("only {}", self.filters));
        }
        let cpus = self.head.cpus.filter(|cpus| *cpus > 0);
        parts.extend(cpus.map(|cpus| words::plural(cpus, "CPU")));
        parts.push(self.head.format.clone());
        parts.extend(self.head.arch.clone());
        parts.extend(self.head.kernel.as_ref().map(|k| format!("kernel {k}")));
        parts.join(", ")
    }

    /// Returns how many events there are.
    pub(crate) fn events(&self) -> u64 {
        let counts = self.picture.info.events.iter().map(|event| event.count);
        counts.fold(0, u64::saturating_add)
    }
}
