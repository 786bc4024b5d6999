//! The names that a timeline's cells, marks and events have: each once, in a bounded number.

use devices::AddressNames;
use event::index_of;
use model::Machine;
use rustc_hash::FxHashMap;

use super::causes::Causes;
use super::cell::NOBODY;
use crate::exits::access_key;
use crate::names::name_access;

/// Names at most, bytes of all of them, and characters of one.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 4 << 20;
const LONGEST: usize = 240;
/// Stands for what is beyond.
const MORE: &str = "…";

/// Names by number.
#[derive(Debug, Clone)]
pub struct TimelineNames {
    list: Vec<String>,
    numbers: FxHashMap<String, u32>,
    bytes: usize,
}

impl Default for TimelineNames {
    fn default() -> TimelineNames {
        TimelineNames {
            list: vec![String::new(), MORE.to_owned()],
            numbers: FxHashMap::default(),
            bytes: 0,
        }
    }
}

impl TimelineNames {
    /// Returns all names; the first is empty and stands for nothing.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Returns a name; nothing for a number that has none.
    pub fn get(&self, number: u32) -> &str {
        self.list.get(index_of(number)).map_or("", String::as_str)
    }

    /// Returns the number of a name, which is cut if it is long. Names beyond the most that are kept share one that
    /// says so.
    pub fn number(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if name.char_indices().nth(LONGEST).is_some() {
            let short: String = name.chars().take(LONGEST - 1).collect();
            return self.number(&format!("{short}{MORE}"));
        }
        if self.list.len() >= MOST || self.bytes + name.len() > MOST_BYTES {
            return 1;
        }
        let number = self.list.len() as u32;
        self.bytes += name.len();
        self.list.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Gives names to what a walk knows by number.
pub(crate) struct LaneNamer<'n> {
    pub machine: &'n Machine,
    pub devices: &'n AddressNames,
    pub causes: &'n Causes,
    pub names: &'n mut TimelineNames,
    tasks: FxHashMap<u32, u32>,
    of_causes: FxHashMap<u32, u32>,
}

impl<'n> LaneNamer<'n> {
    pub(crate) fn new(
        machine: &'n Machine,
        devices: &'n AddressNames,
        causes: &'n Causes,
        names: &'n mut TimelineNames,
    ) -> LaneNamer<'n> {
        LaneNamer {
            machine,
            devices,
            causes,
            names,
            tasks: FxHashMap::default(),
            of_causes: FxHashMap::default(),
        }
    }

    /// Returns the name of a task, by its slot.
    pub(crate) fn task(&mut self, slot: u32) -> u32 {
        if slot == NOBODY {
            return 0;
        }
        if let Some(number) = self.tasks.get(&slot) {
            return *number;
        }
        let name = match self.machine.threads().at(slot) {
            None if self.machine.retired().threads > 0 => crate::OTHERS.to_owned(),
            None => String::new(),
            Some((0, _)) => "idle".to_owned(),
            Some((tid, thread)) => match thread.comm.as_deref() {
                Some(comm) => format!("{comm}:{tid}"),
                None => format!(":{tid}"),
            },
        };
        let number = self.names.number(&name);
        self.tasks.insert(slot, number);
        number
    }

    /// Returns the name of a cause, with the device and register that its access was for.
    pub(crate) fn cause(&mut self, cause: u32) -> u32 {
        if let Some(number) = self.of_causes.get(&cause) {
            return *number;
        }
        let mut name = String::new();
        if let Some(known) = self.causes.get(cause) {
            if let Some(reason) = known.reason {
                name.push_str(&reason.key());
            }
            if let Some(access) = &known.access {
                name.push(' ');
                name.push_str(&access_key(access));
                if let Some(device) = name_access(access, self.devices) {
                    name.push(' ');
                    name.push_str(&device);
                }
            }
        }
        let number = self.names.number(name.trim());
        self.of_causes.insert(cause, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_once_and_is_cut() {
        let mut names = TimelineNames::default();
        assert_eq!(names.number(""), 0);
        let first = names.number("vhost-1");
        assert_eq!(
            (names.number("vhost-1"), names.get(first)),
            (first, "vhost-1")
        );
        let long = names.number(&"é".repeat(100_000));
        assert_eq!(names.get(long).chars().count(), LONGEST);
        assert_eq!(names.number(&"é".repeat(50_000)), long);
        for n in 0..2 * MOST {
            names.number(&n.to_string());
        }
        assert_eq!(names.list().len(), MOST);
        assert_eq!(names.get(names.list().len() as u32), "");
        let beyond = names.number("one too many");
        assert_eq!(names.get(beyond), MORE);
    }
}
