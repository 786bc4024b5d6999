//! Several sides in one table: the first is the base that each other is compared with.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{
    ChangeUnit, CompareOptions, ComparedSide, Comparison, Difference, SideAmount, SideChange,
    TailBounds,
};
use crate::whole::against;

/// One side's value of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EachCell {
    /// What it is; `None` where it was not recorded, or could not be compared with the base.
    pub value: Option<SideAmount>,
    /// That it is more than noise against the base; `None` of the base itself, and where that is not known.
    pub confidence: Option<f64>,
    /// Whether it is reported as changed against the base.
    pub reported: bool,
    /// Whether it is reported as likely.
    pub likely: bool,
    /// The sentence of the comparison with the base.
    pub text: Option<String>,
}

/// One thing on all sides.
#[derive(Debug, Clone, PartialEq)]
pub struct EachRow {
    /// What, as [`SideChange::what`].
    pub what: String,
    /// What the values are.
    pub unit: ChangeUnit,
    /// Of a tail, from which duration on instances are counted.
    pub bound_ns: Option<u64>,
    /// The largest effect on time against the base, as [`SideChange::effect_ns`].
    pub effect_ns: f64,
    /// By side.
    pub cells: Vec<EachCell>,
}

/// Several sides against the first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EachSide {
    /// What changed on any side, largest effect first.
    pub rows: Vec<EachRow>,
    /// Each side but the first against it.
    pub against: Vec<Comparison>,
    /// In what recordings differ: by side (1 is the second), as [`Comparison::differs`].
    pub differs: Vec<(usize, Difference)>,
    /// What is to be known, a full sentence each.
    pub notes: Vec<String>,
}

/// Compares each of several sides with the first.
///
/// # Errors
/// A sentence, if the work that was asked for is not counted on all sides.
pub fn each(
    sides: &[ComparedSide<'_>],
    work: Option<&str>,
    options: CompareOptions,
) -> Result<EachSide, String> {
    let Some((base, others)) = sides.split_first() else {
        return Ok(EachSide::default());
    };
    let pairs = |bounds: &TailBounds| -> Result<Vec<Comparison>, String> {
        others
            .iter()
            .map(|other| against(*base, *other, work, options, bounds))
            .collect()
    };
    // A tail has one bound in all columns: the one that parts some side best from the base.
    let bounds = bounds_of(&pairs(&TailBounds::new())?);
    let pairs = pairs(&bounds)?;
    let indices: Vec<ChangeIndex<'_>> = pairs.iter().map(ChangeIndex::of).collect();
    // A counter that has another unit of work on some side is another row there.
    let unit_of = |change: &SideChange| change.is_counter().then_some(change.unit);
    let mut effects: BTreeMap<(String, Option<ChangeUnit>), (f64, ChangeUnit)> = BTreeMap::new();
    for change in pairs
        .iter()
        .flat_map(|one| one.changes.iter().chain(&one.likely))
    {
        let effect = effects
            .entry((row_of(change).to_owned(), unit_of(change)))
            .or_insert((0.0, change.unit));
        if change.effect_ns.abs() > effect.0.abs() {
            effect.0 = change.effect_ns;
        }
    }
    let mut rows: Vec<EachRow> = effects
        .into_iter()
        .map(|((what, _), (effect_ns, unit))| EachRow {
            cells: cells(&indices, &what, unit),
            bound_ns: what
                .strip_prefix("path ")
                .and_then(|name| bounds.get(name.strip_suffix(" tail")?))
                .copied(),
            what,
            unit,
            effect_ns,
        })
        .collect();
    // What is certain of some side comes before what is likely of all.
    let reported = |row: &EachRow| row.cells.iter().any(|cell| cell.reported);
    rows.sort_by(|x, y| {
        let effect = reported(y).cmp(&reported(x));
        let effect = effect.then_with(|| y.effect_ns.abs().total_cmp(&x.effect_ns.abs()));
        effect.then_with(|| x.what.cmp(&y.what))
    });
    let mut notes: Vec<String> = Vec::new();
    let mut differs = Vec::new();
    for (at, one) in pairs.iter().enumerate() {
        differs.extend(
            one.differs
                .iter()
                .map(|difference| (at + 1, difference.clone())),
        );
        // What holds for a side is said of it; what holds for all is said once.
        // Sums for each unit of work are not in the table.
        for note in one.notes.iter().filter(|note| !note.starts_with("Work, ")) {
            let reported = name_sides(note, at + 1);
            if !notes.contains(&reported) {
                notes.push(reported);
            }
        }
    }
    Ok(EachSide {
        rows,
        against: pairs,
        differs,
        notes,
    })
}

/// Returns the name of a side: A, B, and so on; numbers behind Z.
pub fn letter(side: usize) -> String {
    match u8::try_from(side) {
        Ok(side) if side < 26 => char::from(b'A' + side).to_string(),
        _ => format!("#{}", side + 1),
    }
}

/// Puts a side's name in the place of B, which it is called in a comparison of two.
fn name_sides(note: &str, side: usize) -> String {
    let words: Vec<String> = note
        .split(' ')
        .map(|word| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if bare == "B" {
                word.replacen('B', &letter(side), 1)
            } else {
                word.to_owned()
            }
        })
        .collect();
    words.join(" ")
}

impl Difference {
    /// Returns the sentence of a comparison of several sides, where the second is called otherwise.
    pub fn of_side(&self, side: usize) -> String {
        name_sides(&self.text, side)
    }
}

/// Returns the row that a change belongs to: a path that one side does not have belongs to its median.
fn row_of(change: &SideChange) -> &str {
    match &change.also {
        Some((what, ..)) if is_path(change) => what,
        _ => &change.what,
    }
}

fn is_path(change: &SideChange) -> bool {
    change.what.starts_with("path ")
}

/// The changes of a comparison by what they are of: each with whether it is reported, and whether it is likely.
struct ChangeIndex<'a> {
    of: BTreeMap<&'a str, (&'a SideChange, bool, bool)>,
    /// The same things by their other measure.
    also: BTreeMap<&'a str, (&'a SideChange, bool, bool)>,
    /// Kinds of things that were compared.
    kinds: BTreeSet<&'a str>,
}

impl<'a> ChangeIndex<'a> {
    fn of(comparison: &'a Comparison) -> ChangeIndex<'a> {
        let lists = [
            (&comparison.changes, true, false),
            (&comparison.likely, false, true),
            (&comparison.once, false, false),
            (&comparison.unreported, false, false),
        ];
        let mut out = ChangeIndex {
            of: BTreeMap::new(),
            also: BTreeMap::new(),
            kinds: BTreeSet::new(),
        };
        for (list, reported, likely) in lists {
            for change in list {
                out.kinds.insert(kind(&change.what));
                out.of.insert(&change.what, (change, reported, likely));
                if let Some((what, ..)) = &change.also {
                    out.also.insert(what, (change, reported, likely));
                }
            }
        }
        out
    }
}

/// The table that a thing is of.
fn kind(what: &str) -> &str {
    what.split(' ').next().unwrap_or(what)
}

fn cells(indices: &[ChangeIndex<'_>], what: &str, unit: ChangeUnit) -> Vec<EachCell> {
    let mut base = EachCell::default();
    let mut out = Vec::new();
    for index in indices {
        let mut cell = EachCell::default();
        // A counter that is divided by something else here is no value of the row.
        let same = |change: &SideChange| !change.is_counter() || change.unit == unit;
        let own = index.of.get(what).filter(|(change, ..)| same(change));
        if let Some((change, reported, likely)) = own {
            base.value = base.value.or_else(|| Some(change.a.clone()));
            cell = EachCell {
                value: Some(change.b.clone()),
                confidence: change.confidence,
                reported: *reported,
                likely: *likely,
                text: Some(change.text.clone()),
            };
        } else if let Some((change, reported, likely)) = index.also.get(what)
            && let Some((.., a, b)) = &change.also
        {
            base.value = base.value.or_else(|| Some(a.clone()));
            cell.value = Some(b.clone());
            if is_path(change) {
                cell.confidence = change.confidence;
                (cell.reported, cell.likely) = (*reported, *likely);
                cell.text = Some(change.text.clone());
            }
        } else if matches!(kind(what), "vmexit" | "ioport" | "mmio" | "msr")
            && index.kinds.contains(kind(what))
        {
            // The table is there, and has no such row on either side.
            cell.value = Some(SideAmount::Absent);
        }
        out.push(cell);
    }
    let mut cells = vec![base];
    cells.append(&mut out);
    if what.starts_with("finding ") {
        // Where nothing changed, it is as in the base.
        let of_base = cells.first().and_then(|cell| cell.value.clone());
        for cell in &mut cells {
            cell.value = cell.value.take().or_else(|| of_base.clone());
        }
    }
    cells
}

/// Chooses a bound for each path's tail.
fn bounds_of(pairs: &[Comparison]) -> TailBounds {
    let mut best: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    let lists = pairs
        .iter()
        .flat_map(|one| one.changes.iter().chain(&one.likely).chain(&one.unreported));
    for change in lists {
        let Some(bound) = change.bound_ns else {
            continue;
        };
        let Some(name) = change.what.strip_prefix("path ") else {
            continue;
        };
        let name = name.trim_end_matches(" tail").to_owned();
        let confidence = change.confidence.unwrap_or(0.0);
        let known = best.entry(name).or_insert((confidence, bound));
        if confidence > known.0 {
            *known = (confidence, bound);
        }
    }
    best.into_iter()
        .map(|(name, (_, bound))| (name, bound))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_called_by_their_letters() {
        assert_eq!(
            name_sides("Exits are not compared: B has none.", 2),
            "Exits are not compared: C has none."
        );
        assert_eq!(
            name_sides("A is of vmx, B of arm64: no.", 3),
            "A is of vmx, D of arm64: no."
        );
        assert_eq!(name_sides("MSR B, BAR", 1), "MSR B, BAR");
        assert_eq!(
            (letter(0), letter(25), letter(26)),
            ("A".into(), "Z".into(), "#27".into())
        );
    }
}
