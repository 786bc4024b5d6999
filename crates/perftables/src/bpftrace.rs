//! Maps that `bpftrace` prints when it ends (`src/output.cpp`, 0.9 to 0.21): `@exits[HLT]: 123`, a line for each key.

use forms::InputForm;

use crate::lines::CleanLine;
use crate::number::count;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{CountPrinter, KvmTotal, KvmTotals, PerfTable, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "bpftrace",
    recognised_by: "lines of maps: `@[HLT]: 123`, `@exits[CPU 0/KVM, 12]: 4`, `@total: 5`",
    yields: "counts by key; of keys that are exit reasons, exits by reason",
    fixtures: &[
        "tests/tables/bpftrace-reasons.txt",
        "tests/tables/bpftrace-numbers.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

/// Fewer lines without a command may be anything.
const MIN_ROWS: usize = 2;
/// Characters of a map's name and key that are kept.
const MAX_KEY: usize = 120;

/// The command: a map without a name has the exit reason for its key if it says so.
fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let first = &view.first()?.text;
    let command = first.contains("bpftrace") && first.contains('@');
    command.then(|| {
        let open = OpenMaps {
            known: true,
            of_exits: first.contains("kvm_exit")
                && first.contains("@[")
                && first.contains("exit_reason"),
            ..OpenMaps::default()
        };
        (Box::new(open) as Box<dyn OpenTable>, 1)
    })
}

fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let mut open = OpenMaps::default();
    let used = open.take(view)?;
    Some((Box::new(open), used))
}

/// Reads `@exits[CPU 0/KVM, 12]: 4`. Returns the map with its key, and the count.
fn row(text: &str) -> Option<(&str, u64)> {
    let text = text.trim();
    let (map, value) = text.rsplit_once(": ")?;
    let bare = map.strip_prefix('@')?;
    let name = bare.split('[').next().unwrap_or_default();
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let keyed = bare.len() == name.len() && !name.is_empty() || bare.ends_with(']');
    (plain && keyed && map.len() <= MAX_KEY).then_some((map, count(value.trim())?))
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenMaps {
    rows: Vec<KvmTotal>,
    /// Whether a command was read.
    known: bool,
    of_exits: bool,
    left_out: u64,
}

impl OpenTable for OpenMaps {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let text = first.text.trim();
        // What stands between the command and the maps.
        if self.rows.is_empty()
            && (text.starts_with("Attaching ") || text.starts_with("Attached ") || text == "^C")
        {
            return Some(1);
        }
        let (map, total) = row(text)?;
        let event = match map.strip_prefix("@[") {
            Some(key) if self.of_exits => format!("@exit_reason[{key}"),
            _ => map.to_owned(),
        };
        if self.rows.len() < MAX_ROWS {
            self.rows.push(KvmTotal {
                line: first.number,
                event,
                total,
                per_second: None,
            });
        } else {
            self.left_out += 1;
        }
        Some(1)
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.left_out, notes);
        let least = if self.known { 1 } else { MIN_ROWS };
        (self.rows.len() >= least).then_some(PerfTable::KvmTotals(KvmTotals {
            printer: CountPrinter::Bpftrace,
            line: place.line,
            label: place.label,
            rows: self.rows,
        }))
    }
}
