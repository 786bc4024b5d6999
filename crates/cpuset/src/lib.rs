/*!
Sets of CPUs, as the kernel's lists (`0-3,8`, `lib/bitmap.c`, `bitmap_parselist`) and libvirt's (`0-7,^3`,
`virBitmapParse`) write them. It depends on nothing.

```
let set: cpuset::CpuSet = "0-3,8".parse().unwrap();
assert!(set.contains(2) && !set.contains(4));
assert_eq!(set.to_string(), "0-3,8");
```
*/
#![forbid(unsafe_code)]

mod nodes;

use std::fmt;
use std::str::FromStr;

pub use nodes::{NodeDistance, NodeMap};

/// How many CPUs a machine has at most: `NR_CPUS` of the largest configurations (x86 with `MAXSMP`, powerpc;
/// `arch/*/Kconfig`). KVM allows a VM no more vCPUs (`KVM_MAX_VCPUS`). Whoever keeps something by CPU believes no
/// number beyond.
pub const MAX_CPUS: usize = 8192;

/// Highest CPU that is believed.
pub const MAX_CPU: u32 = MAX_CPUS as u32 - 1;

/// Parts of a list: more than any kernel prints.
const MAX_PARTS: usize = 1 << 13;

/// Returns where a CPU is in a list by CPU; `None` where it is not known (a negative number), or beyond [`MAX_CPUS`].
#[inline]
pub fn cpu_index(cpu: i32) -> Option<usize> {
    usize::try_from(cpu).ok().filter(|&cpu| cpu < MAX_CPUS)
}

/// CPUs by number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// First and last of each range, in order, with gaps between them.
    ranges: Vec<(u32, u32)>,
}

/// A NUMA node of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs; some nodes are memory alone.
    pub cpus: CpuSet,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
    /// How far it is to each node, in the order of the nodes' numbers, where that is known: 10 is the node itself
    /// (`LOCAL_DISTANCE`, `include/linux/topology.h`; ACPI's SLIT).
    pub distances: Vec<u32>,
}

/// Why a text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    part: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no CPU or range of CPUs; expected a list such as 0-3,8",
            self.part
        )
    }
}

impl std::error::Error for ParseError {}

impl CpuSet {
    /// Returns the empty set.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Returns whether no CPU is in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns how many CPUs are in it.
    pub fn len(&self) -> usize {
        let lens = self.ranges.iter().map(|(a, b)| (b - a) as usize + 1);
        lens.sum()
    }

    /// Returns whether a CPU is in it.
    pub fn contains(&self, cpu: u32) -> bool {
        self.ranges.iter().any(|&(a, b)| a <= cpu && cpu <= b)
    }

    /// Returns whether a CPU is in it, by a number that may be negative where none is known.
    pub fn has(&self, cpu: i32) -> bool {
        u32::try_from(cpu).is_ok_and(|cpu| self.contains(cpu))
    }

    /// Returns the CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(a, b)| a..=b)
    }

    /// Returns the ranges, each with its first and last CPU, in order.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns the only CPU of a set of one.
    pub fn single(&self) -> Option<u32> {
        match self.ranges[..] {
            [(a, b)] if a == b => Some(a),
            _ => None,
        }
    }

    /// Returns whether any CPU is in both.
    pub fn intersects(&self, other: &CpuSet) -> bool {
        let meets = |&(a, b): &(u32, u32)| other.ranges.iter().any(|&(c, d)| a <= d && c <= b);
        self.ranges.iter().any(meets)
    }

    /// Adds a CPU; those beyond [`MAX_CPU`] are left out.
    pub fn insert(&mut self, cpu: u32) {
        self.insert_range(cpu, cpu);
    }

    /// Adds the CPUs from `first` to `last`.
    pub fn insert_range(&mut self, first: u32, last: u32) {
        if first > last || last > MAX_CPU {
            return;
        }
        // Those that it overlaps or touches become one with it.
        let from = self.ranges.partition_point(|&(_, b)| b + 1 < first);
        let to = self.ranges.partition_point(|&(a, _)| a <= last + 1);
        let joined = self.ranges.get(from..to).unwrap_or_default();
        let first = joined.first().map_or(first, |&(a, _)| a.min(first));
        let last = joined.last().map_or(last, |&(_, b)| b.max(last));
        self.ranges.splice(from..to, [(first, last)]);
    }

    /// Takes a CPU out.
    pub fn remove(&mut self, cpu: u32) {
        let Some(at) = self.ranges.iter().position(|&(a, b)| a <= cpu && cpu <= b) else {
            return;
        };
        let (a, b) = self.ranges.remove(at);
        if cpu < b {
            self.ranges.insert(at, (cpu + 1, b));
        }
        if a < cpu {
            self.ranges.insert(at, (a, cpu - 1));
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl FromStr for CpuSet {
    type Err = ParseError;

    /// Reads a list; an empty text is the empty set, as in `/sys/devices/system/cpu/isolated`.
    fn from_str(text: &str) -> Result<CpuSet, ParseError> {
        let text = text.trim();
        let mut set = CpuSet::new();
        if text.is_empty() {
            return Ok(set);
        }
        for (at, part) in text.split(',').enumerate() {
            let part = part.trim();
            let wrong = || ParseError {
                part: part.chars().take(40).collect(),
            };
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n <= MAX_CPU);
            if at >= MAX_PARTS {
                return Err(wrong());
            }
            if let Some(out) = part.strip_prefix('^') {
                set.remove(number(out).ok_or_else(wrong)?);
                continue;
            }
            let (first, rest) = part.split_once('-').unwrap_or((part, part));
            // The kernel's used:group, as in 0-31:2/4.
            let (last, stride) = match rest.split_once(':') {
                Some((last, stride)) => (last, Some(stride)),
                None => (rest, None),
            };
            let first = number(first).ok_or_else(wrong)?;
            let last = number(last).ok_or_else(wrong)?;
            if first > last {
                return Err(wrong());
            }
            match stride {
                None => set.insert_range(first, last),
                Some(stride) => {
                    let (used, group) = stride.split_once('/').ok_or_else(wrong)?;
                    let used = number(used).filter(|used| *used > 0).ok_or_else(wrong)?;
                    let group = number(group)
                        .filter(|group| *group >= used)
                        .ok_or_else(wrong)?;
                    let mut from = first;
                    while from <= last {
                        set.insert_range(from, last.min(from + used - 1));
                        from += group;
                    }
                }
            }
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> String {
        match text.parse::<CpuSet>() {
            Ok(set) => set.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn lists_are_read_as_the_kernel_and_libvirt_write_them() {
        assert_eq!(list(""), "");
        assert_eq!(list("3\n"), "3");
        assert_eq!(list("8,0-3,4"), "0-4,8");
        assert_eq!(list("0-7,^3"), "0-2,4-7");
        assert_eq!(list("0-11:2/4"), "0-1,4-5,8-9");
        assert_eq!(list("5,1-9,7"), "1-9");
        assert_eq!(list("9,1,5,3,7"), "1,3,5,7,9");
        assert_eq!(list("9,1,5,2-4"), "1-5,9");
        assert_eq!(list("1,5,9,2-8,8191"), "1-9,8191");
    }

    #[test]
    fn what_is_no_list_is_said() {
        for text in [
            "x", "3-", "-3", "5-2", "1,,2", "99999999", "0-3:0/4", "0-3:4/2", "^x",
        ] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
        assert!(list("0-3,zwei").contains("'zwei'"));
    }

    #[test]
    fn lists_beyond_the_limits_are_refused_in_words() {
        assert_eq!(list(&format!("0,{MAX_CPU}")), format!("0,{MAX_CPU}"));
        for beyond in [
            format!("{MAX_CPUS}"),
            format!("0-{MAX_CPUS}"),
            format!("^{MAX_CPUS}"),
        ] {
            let said = list(&format!("0,{beyond}"));
            let bare = beyond.trim_start_matches("0-").trim_start_matches('^');
            assert!(
                said.contains(bare) && said.contains("is no CPU or range of CPUs"),
                "{said}"
            );
        }
        let of_parts = |parts: usize| list(&vec!["7"; parts].join(","));
        assert_eq!(of_parts(MAX_PARTS), "7");
        assert!(of_parts(MAX_PARTS + 1).contains("is no CPU or range of CPUs"));
        // What a message repeats of a hostile part has a bound.
        assert!(list(&"x".repeat(1 << 20)).len() < 200);
    }

    #[test]
    fn sets_add_up() {
        let mut set: CpuSet = [5, 1, 2, 3].into_iter().collect();
        assert_eq!((set.len(), set.single()), (4, None));
        set.remove(2);
        assert_eq!(set.to_string(), "1,3,5");
        assert!(set.intersects(&"4-9".parse().unwrap()));
        assert!(!set.intersects(&"2,4".parse().unwrap()));
        assert_eq!("7".parse::<CpuSet>().unwrap().single(), Some(7));
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3, 5]);
    }
}
