//! Examples of instances of paths: the slowest, and one near the median, which is known at the end only. So one of each
//! size is kept: sizes grow by an eighth of a power of two, and the first instance of a size stands for it. Beside them
//! the longest ones, whose steps the page's timeline shows.

use paths::{AccessNamer, CompletedInstance, InstanceReport, Paths};

/// Sizes to a power of two.
const SUB: u32 = 3;
/// Instances of a path whose steps are kept, the longest.
const LONGEST: usize = 24;

/// A slow and a typical instance of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathExamples {
    /// The path's name.
    pub path: String,
    /// The slowest instance.
    pub slow: InstanceReport,
    /// One that took about the median; `None` where there is no other instance.
    pub fast: Option<InstanceReport>,
    /// Some of the slowest, the slowest first.
    pub longest: Vec<InstanceReport>,
}

/// Examples of one path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Examples {
    /// The longest, in the order of their lengths, the longest first; of equal ones the first.
    longest: Vec<(u64, CompletedInstance)>,
    /// By size.
    sizes: Vec<Option<(u64, CompletedInstance)>>,
}

/// Returns how long an instance took.
pub(crate) fn total_ns(one: &CompletedInstance) -> u64 {
    match (one.reached.first(), one.reached.last()) {
        (Some(first), Some(last)) => last.time.saturating_sub(first.time),
        _ => 0,
    }
}

/// Returns the size that a duration is of, which is no more than some hundred.
fn size(ns: u64) -> usize {
    let bits = u64::BITS - ns.leading_zeros();
    if bits <= SUB {
        return ns as usize;
    }
    let rest = (ns >> (bits - 1 - SUB)) & ((1 << SUB) - 1);
    ((bits << SUB) as usize) + rest as usize
}

impl Examples {
    pub(crate) fn add(&mut self, one: &CompletedInstance) {
        let ns = total_ns(one);
        let at = size(ns);
        if self.sizes.len() <= at {
            self.sizes.resize_with(at + 1, || None);
        }
        if let Some(free @ None) = self.sizes.get_mut(at) {
            *free = Some((ns, one.clone()));
        }
        let place = self.longest.partition_point(|(length, _)| *length >= ns);
        if place < LONGEST {
            self.longest.truncate(LONGEST - 1);
            self.longest.insert(place, (ns, one.clone()));
        }
    }

    /// Returns the slowest, with how long it took.
    fn slowest(&self) -> Option<&(u64, CompletedInstance)> {
        self.longest.first()
    }

    /// Returns them as text. `median_ns` is what instances took.
    pub(crate) fn describe(
        &self,
        paths: &Paths,
        machine: &model::Machine,
        names: AccessNamer<'_>,
        median_ns: u64,
    ) -> Option<PathExamples> {
        let (_, slowest) = self.slowest()?;
        let others = self.sizes.iter().flatten();
        let others = others.filter(|(_, one)| one.number != slowest.number);
        let typical = others.min_by_key(|(ns, one)| (ns.abs_diff(median_ns), one.number));
        let slow = paths.describe(slowest, machine, names);
        Some(PathExamples {
            path: slow.path.to_string(),
            slow,
            fast: typical.map(|(_, one)| paths.describe(one, machine, names)),
            longest: (self.longest.iter())
                .map(|(_, one)| paths.describe(one, machine, names))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_few_and_rise() {
        let mut last = 0;
        for ns in
            (0..4096).chain((12..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 3 << (bit - 2)]))
        {
            let at = size(ns);
            assert!(at < 600, "{ns}: {at}");
            last = last.max(at);
        }
        assert!((1..100_000u64).all(|ns| size(ns) <= size(ns + 1)));
        assert_eq!(size(u64::MAX), last.max(size(u64::MAX)));
    }

    #[test]
    fn one_of_each_size_and_the_slowest_are_kept() {
        let mut examples = Examples::default();
        for number in 1..=1000u64 {
            let reached = |time| paths::ReachedStep {
                time,
                ..paths::ReachedStep::default()
            };
            // Most take about 1000, some ten times as much.
            let ns = if number % 10 == 0 {
                10_000 + number
            } else {
                1_000 + number % 7
            };
            examples.add(&CompletedInstance {
                path: 0,
                chain: 0,
                number,
                reached: vec![reached(number * 100_000), reached(number * 100_000 + ns)],
                traits: Vec::new(),
                subject: None,
            });
        }
        let (ns, slowest) = examples.slowest().unwrap();
        assert_eq!((*ns, slowest.number), (11_000, 1000));
        let longest: Vec<u64> = examples.longest.iter().map(|(ns, _)| *ns).collect();
        let known: Vec<u64> = (0..LONGEST as u64).map(|at| 11_000 - 10 * at).collect();
        assert_eq!(longest, known);
        let kept: Vec<u64> = examples.sizes.iter().flatten().map(|(ns, _)| *ns).collect();
        assert!(
            kept.len() < 8 && kept.iter().any(|ns| ns.abs_diff(1_003) < 10),
            "{kept:?}"
        );
    }
}
