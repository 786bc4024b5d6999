//! Changes as a table for a terminal: before, after, the change, and how sure it is.

use compare::{ChangeUnit, SideAmount, SideChange, SideName};

use crate::compare_sides::SideLabels;
use crate::compare_words::worded;

/// What a change is called has so many columns at least, and at most.
const WHAT: (usize, usize) = (16, 60);
/// A name of a side that stands above its numbers has so many characters at most.
const LONGEST_SIDE: usize = 9;

/// Returns the table, `what` cut where a line would be wider than this.
pub(crate) fn table<'c>(
    changes: impl Iterator<Item = &'c SideChange>,
    labels: &SideLabels,
    width: usize,
) -> String {
    let sides = labels.headings(LONGEST_SIDE);
    let longest = sides.map(|side| side.chars().count()).into_iter().max();
    // The columns behind what a change is called.
    let columns = [
        (sides[0], 10),
        (sides[1], 10),
        ("change", 9),
        ("confidence", 11),
        ("worse", longest.unwrap_or(0).max(5) + 1),
    ];
    let cells: usize = columns.iter().map(|(_, width)| width).sum();
    let most = width.saturating_sub(cells).clamp(WHAT.0, WHAT.1);
    let rows: Vec<[String; 6]> = changes.map(|change| row(change, sides)).collect();
    let longest = rows.iter().map(|row| row[0].chars().count()).max();
    let what = longest.unwrap_or(0).clamp(WHAT.0, most);
    let mut out = format!("{:what$}", "");
    for (name, width) in columns {
        out.push_str(&format!("{name:>width$}"));
    }
    out.push('\n');
    for row in rows {
        let name = match row[0].chars().count() > what {
            true => row[0].chars().take(what - 3).chain("...".chars()).collect(),
            false => row[0].clone(),
        };
        out.push_str(&format!("{name:what$}"));
        for ((_, width), cell) in columns.iter().zip(&row[1..]) {
            // A cell that is too long does not touch the one before it.
            let width = *width;
            match cell.chars().count() < width {
                true => out.push_str(&format!("{cell:>width$}")),
                false => out.push_str(&format!(" {cell}")),
            }
        }
        out.push('\n');
    }
    out
}

fn row(change: &SideChange, sides: [&str; 2]) -> [String; 6] {
    let worse = match change.worse {
        Some(SideName::A) => sides[0],
        Some(SideName::B) => sides[1],
        None => "-",
    };
    let confidence = change.confidence.map_or("-".to_owned(), |confidence| {
        format!("{:.3}", (confidence * 1000.0).floor() / 1000.0)
    });
    [
        crate::clean(&change.what),
        worded(&change.a, change.unit),
        worded(&change.b, change.unit),
        by_how_much(change),
        confidence,
        worse.to_owned(),
    ]
}

/// Returns by how much a value changed: points of a share, how many times as large, or per cent.
fn by_how_much(change: &SideChange) -> String {
    match (&change.a, &change.b) {
        (SideAmount::Absent, _) => return "new".to_owned(),
        (_, SideAmount::Absent) => return "gone".to_owned(),
        _ => {}
    }
    if change.unit == ChangeUnit::Share {
        return match change.delta() {
            Some(delta) => format!("{:+.1} pt", delta * 100.0),
            None => "-".to_owned(),
        };
    }
    match change.ratio() {
        Some(ratio) if ratio >= 9.95 => format!("{ratio:.0}x"),
        Some(ratio) if ratio >= 2.0 => format!("{ratio:.1}x"),
        Some(ratio) => format!("{:+.0} %", (ratio - 1.0) * 100.0),
        None => "-".to_owned(),
    }
}
