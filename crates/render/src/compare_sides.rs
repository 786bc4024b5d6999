//! The two sides of a comparison in the words of whoever gave their files.

use compare::{ChangeUnit, SideChange, SideName};

/// Characters of a name that reads well in a sentence.
const LONGEST: usize = 32;

/// What the sides of a comparison are called: as short as the names of their files allow, else `A` and `B`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideLabels {
    labels: [String; 2],
}

impl SideLabels {
    /// Returns what sides are called that were read from these files.
    ///
    /// That is the part of the paths, from their end on, in which the sides differ: `before.data` and `after.data` are
    /// `before` and `after`, `sick/perf.data` and `well/perf.data` are `sick` and `well`. Of several files it is what
    /// their names begin with.
    pub fn of(a: &[String], b: &[String]) -> SideLabels {
        let sides = [a, b];
        let depth = sides.iter().flat_map(|names| names.iter());
        let depth = depth.map(|name| name.split('/').count()).min();
        let stems = sides.map(|names| common(names.iter().map(|name| stem(last(name, 0)))));
        let mut candidates = vec![stems];
        for back in 0..depth.unwrap_or(0) {
            candidates.push(sides.map(|names| common(names.iter().map(|name| last(name, back)))));
        }
        let reads_well = |label: &String| {
            let has_letter = label.chars().any(char::is_alphabetic);
            has_letter && label.chars().count() <= LONGEST
        };
        let labels = candidates
            .into_iter()
            .map(|labels| labels.map(crate::clean))
            .find(|labels| labels[0] != labels[1] && labels.iter().all(reads_well));
        SideLabels {
            labels: labels
                .unwrap_or_else(|| [SideName::A, SideName::B].map(|side| side.name().to_owned())),
        }
    }

    /// Returns what a side is called.
    pub fn of_side(&self, side: SideName) -> &str {
        match side {
            SideName::A => &self.labels[0],
            SideName::B => &self.labels[1],
        }
    }

    /// Returns both names where they are short enough to stand above numbers, else `A` and `B`.
    pub(crate) fn headings(&self, longest: usize) -> [&str; 2] {
        let [a, b] = &self.labels;
        match self
            .labels
            .iter()
            .all(|label| label.chars().count() <= longest)
        {
            true => [a, b],
            false => [SideName::A, SideName::B].map(SideName::name),
        }
    }

    /// Returns the sentence of a change, at its end the side that is worse.
    pub fn sentence(&self, change: &SideChange) -> String {
        let sentence = change.sentence();
        if sentence.len() == change.text.len() {
            return sentence.to_owned();
        }
        let Some(side) = change.worse else {
            return change.text.clone();
        };
        // What takes longer is slower, and so is what gets less through.
        let how = match change.unit {
            ChangeUnit::Nanoseconds | ChangeUnit::BitsPerSecond | ChangeUnit::BytesPerSecond => {
                "slower"
            }
            _ => "worse",
        };
        format!("{sentence} {} is {how}.", self.of_side(side))
    }
}

/// Returns a part of a path, counted from its end.
fn last(path: &str, back: usize) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .nth(back)
        .unwrap_or_default()
}

/// Returns a file's name up to its endings.
fn stem(name: &str) -> &str {
    let begin = name.len() - name.trim_start_matches('.').len();
    let end = name.get(begin..).and_then(|name| name.find('.'));
    end.map_or(name, |end| &name[..begin + end])
}

/// Returns what names begin with, without the numbers and marks before what they differ in.
fn common<'n>(names: impl Iterator<Item = &'n str>) -> &'n str {
    let mut out: Option<&str> = None;
    for name in names {
        let Some(before) = out else {
            out = Some(name);
            continue;
        };
        if before == name {
            continue;
        }
        let same = before
            .chars()
            .zip(name.chars())
            .take_while(|(one, other)| one == other);
        let len: usize = same.map(|(one, _)| one.len_utf8()).sum();
        let shorter = before.get(..len).unwrap_or_default();
        out = Some(shorter.trim_end_matches(|c: char| !c.is_alphabetic()));
    }
    out.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(a: &[&str], b: &[&str]) -> [String; 2] {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        SideLabels::of(&owned(a), &owned(b)).labels
    }

    #[test]
    fn sides_are_called_by_what_their_files_differ_in() {
        for (a, b, called) in [
            (
                &["before.data"][..],
                &["after.data.zst"][..],
                ["before", "after"],
            ),
            (
                &["x/sick/perf.data"],
                &["x/well/perf.data"],
                ["sick", "well"],
            ),
            (&["x/perf.data"], &["x/perf.dat"], ["perf.data", "perf.dat"]),
            (&["t.txt:12"], &["t.txt:40"], ["t.txt:12", "t.txt:40"]),
            (
                &["old1.data", "old2.data"],
                &["new-1.data", "new-2.data"],
                ["old", "new"],
            ),
            (&["one.data"], &["one.data"], ["A", "B"]),
            (&["1.data"], &["2.data"], ["1.data", "2.data"]),
            (&["host.data", "guest.data"], &["other.data"], ["A", "B"]),
            (
                &["d/host.data", "d/guest.data"],
                &["e/host.data", "e/guest.data"],
                ["d", "e"],
            ),
            (&[], &[], ["A", "B"]),
        ] {
            assert_eq!(labels(a, b), called, "{a:?} {b:?}");
        }
        let long = format!("{}.data", "n".repeat(LONGEST + 8));
        assert_eq!(labels(&[&long], &["b.data"]), ["A", "B"]);
    }

    #[test]
    fn what_takes_longer_is_slower() {
        let labels = SideLabels::of(&["before.dat".to_owned()], &["after.dat".to_owned()]);
        let change = |unit, worse, text: &str| {
            let mut change = SideChange::default();
            change.unit = unit;
            change.worse = worse;
            change.text = text.to_owned();
            change
        };
        let b = Some(SideName::B);
        let slower = change(ChangeUnit::Nanoseconds, b, "It took 2us. B is worse.");
        assert_eq!(labels.sentence(&slower), "It took 2us. after is slower.");
        let worse = change(ChangeUnit::Share, Some(SideName::A), "It rose. A is worse.");
        assert_eq!(labels.sentence(&worse), "It rose. before is worse.");
        let neither = change(
            ChangeUnit::Share,
            None,
            "It rose. Neither is worse by that alone.",
        );
        assert_eq!(labels.sentence(&neither), neither.text);
        let without = change(ChangeUnit::Share, b, "It rose.");
        assert_eq!(labels.sentence(&without), "It rose.");
        assert_eq!(labels.headings(6), ["before", "after"]);
        assert_eq!(labels.headings(5), ["A", "B"]);
    }
}
