//! Times of clocks that do not count nanoseconds.
//!
//! A recording may have times of a counter whose rate nobody knows (trace-cmd's `x86-tsc`, `counter`). Documents and
//! tables call times `..._ns`. Of such a recording these fields are null, and the same name with `_ticks` behind each
//! has the value: here, and nowhere else, so that a command says only what the clock of its recording counts.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// What the times of an answer count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockUnit {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Ticks of which nobody knows how many make a second.
    Ticks,
    /// Clocks of several recordings, of which one at least counts ticks: sums and differences of their times mean
    /// nothing.
    Mixed,
}

/// Fields that are nanoseconds whatever the recording's clock counts, with the reason.
const ALWAYS_NANOSECONDS: [(&str, &str); 3] = [
    (
        "runtime_ns",
        "the kernel's own account: the field 'runtime' of sched_stat_runtime (include/trace/events/sched.h)",
    ),
    (
        "event_ns",
        "what an event costs, measured by the recorder itself with CLOCK_THREAD_CPUTIME_ID",
    ),
    (
        "recorder_ns",
        "the recorder's CPU time, from its own CLOCK_PROCESS_CPUTIME_ID",
    ),
];

/// The end of names of times.
const NANOSECONDS: &str = "_ns";
const TICKS: &str = "_ticks";

impl ClockUnit {
    /// Returns what a clock counts that counts nanoseconds, or does not.
    pub fn of(nanoseconds: bool) -> ClockUnit {
        match nanoseconds {
            true => ClockUnit::Nanoseconds,
            false => ClockUnit::Ticks,
        }
    }

    /// Returns what the clocks of recordings count that are put side by side.
    pub fn of_all(nanoseconds: impl IntoIterator<Item = bool>) -> ClockUnit {
        match nanoseconds.into_iter().all(|one| one) {
            true => ClockUnit::Nanoseconds,
            false => ClockUnit::Mixed,
        }
    }

    /// Returns whether times are nanoseconds.
    pub fn is_nanoseconds(self) -> bool {
        self == ClockUnit::Nanoseconds
    }

    /// Returns what a column is called that has the values of another in ticks; `None` where the other has them itself.
    pub fn ticks_name(self, name: &str) -> Option<String> {
        if self.is_nanoseconds() || ALWAYS_NANOSECONDS.iter().any(|(one, _)| *one == name) {
            return None;
        }
        let stem = name.strip_suffix(NANOSECONDS)?;
        Some(format!("{stem}{TICKS}"))
    }

    /// Moves the times of an object, and of all within it, to where they belong.
    pub(crate) fn move_times(self, value: &mut Value) {
        match value {
            _ if self.is_nanoseconds() => {}
            Value::Object(object) => self.move_members(object),
            Value::Array(items) => items.iter_mut().for_each(|item| self.move_times(item)),
            _ => {}
        }
    }

    pub(crate) fn move_members(self, object: &mut Map<String, Value>) {
        let members = std::mem::take(object);
        // What a row has said of its own clock stands.
        let ticks = |name: &String| {
            let ticks = self.ticks_name(name)?;
            (!members.contains_key(&ticks)).then_some(ticks)
        };
        let names: Vec<Option<String>> = members.keys().map(ticks).collect();
        for ((name, mut value), ticks) in members.into_iter().zip(names) {
            self.move_times(&mut value);
            let Some(ticks) = ticks else {
                object.insert(name, value);
                continue;
            };
            object.insert(name, Value::Null);
            object.insert(
                ticks,
                if self == ClockUnit::Ticks {
                    value
                } else {
                    Value::Null
                },
            );
        }
    }
}

/// A part of a document whose times are of one clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockedDocument<D> {
    /// What the clock counts.
    pub clock: ClockUnit,
    /// The part, in which times are called `..._ns`.
    pub part: D,
}

impl<D: Serialize> Serialize for ClockedDocument<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.clock.is_nanoseconds() {
            return self.part.serialize(serializer);
        }
        let mut value = serde_json::to_value(&self.part).map_err(S::Error::custom)?;
        self.clock.move_times(&mut value);
        value.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn moved(clock: ClockUnit, part: Value) -> String {
        serde_json::to_string(&ClockedDocument { clock, part }).unwrap()
    }

    #[test]
    fn times_in_ticks_stand_under_a_name_of_their_own() {
        let document = || {
            json!({
                "count": 3,
                "rows": [{"wait_ns": 5, "name": "a"}, {"wait_ns": null, "runtime_ns": 7}],
                "polls": {"failed_ns": 8},
            })
        };
        assert_eq!(
            moved(ClockUnit::Nanoseconds, document()),
            document().to_string()
        );
        assert_eq!(
            moved(ClockUnit::Ticks, document()),
            "{\"count\":3,\"rows\":[{\"wait_ns\":null,\"wait_ticks\":5,\"name\":\"a\"},\
             {\"wait_ns\":null,\"wait_ticks\":null,\"runtime_ns\":7}],\
             \"polls\":{\"failed_ns\":null,\"failed_ticks\":8}}"
        );
        let mixed = moved(ClockUnit::Mixed, json!({"effect_ns": 9}));
        assert_eq!(mixed, "{\"effect_ns\":null,\"effect_ticks\":null}");
    }

    #[test]
    fn what_a_row_says_of_its_own_clock_stands() {
        let row = json!({"cost_ns": null, "cost_ticks": 4});
        assert_eq!(moved(ClockUnit::Ticks, row.clone()), row.to_string());
        assert_eq!(moved(ClockUnit::Mixed, row.clone()), row.to_string());
    }

    #[test]
    fn recordings_side_by_side_have_one_unit_or_none() {
        assert_eq!(ClockUnit::of_all([true, true]), ClockUnit::Nanoseconds);
        assert_eq!(ClockUnit::of_all([]), ClockUnit::Nanoseconds);
        assert_eq!(ClockUnit::of_all([true, false]), ClockUnit::Mixed);
        assert_eq!(ClockUnit::of_all([false, false]), ClockUnit::Mixed);
    }
}
