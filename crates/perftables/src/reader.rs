//! Goes through a text and finds the tables in it.

use crate::kvm;
use crate::label;
use crate::lines::{CleanLine, CleanLines, MAX_LINE};
use crate::open::{OpenKvm, OpenSched, OpenStat};
use crate::printed::TABLE_FORMS;
use crate::sched;
use crate::stat;
use crate::stat_csv;
use crate::table_form::{OpenTable, TableBeginning, TablePlace};
use crate::types::{Count, KvmStatEvent, PlacedTable, StatCount, TableNote};
use crate::unrolled::unrolled;

/// Tables that are kept.
const MAX_TABLES: usize = 4096;
/// Notes that are kept.
const MAX_NOTES: usize = 100;
/// Lines, blank ones included, that a label may stand before its table.
const LABEL_NEAR: u64 = 6;

/// What is known while a text is read. At most one table is open.
#[derive(Default)]
struct TableReader {
    tables: Vec<PlacedTable>,
    notes: Vec<TableNote>,
    /// The last line of the table that is open.
    last: u64,
    kvm: Option<OpenKvm>,
    sched: Option<OpenSched>,
    stat: Option<OpenStat>,
    /// A table of a form with a file of its own.
    printed: Option<OpenPrinted>,
    label: Option<(u64, String)>,
    /// `--event=` of the last command line, and its line.
    asked: Option<(u64, KvmStatEvent)>,
    /// Rows that were broken and put together, and the first one's line.
    joined: (u64, u64),
    /// Tables that are not kept, and the first one's line.
    beyond: (u64, u64),
}

/// A table of a form with a file of its own.
struct OpenPrinted {
    table: Box<dyn OpenTable>,
    place: TablePlace,
    /// Lines since its last that are not its.
    foreign: u32,
}

pub(crate) fn read(text: &[u8]) -> (Vec<PlacedTable>, Vec<TableNote>) {
    let mut lines = CleanLines::new(text, unrolled);
    let mut reader = TableReader::default();
    loop {
        let view = lines.view();
        if view.is_empty() {
            break;
        }
        let used = reader.line(view);
        if let Some(last) = used.and_then(|used| view.get(used.max(1) - 1)) {
            reader.last = last.number;
        }
        lines.advance(used.unwrap_or(1));
    }
    if let Some(line) = lines.cut() {
        reader.notes.insert(
            0,
            TableNote {
                line,
                text: format!(
                    "The line is longer than {MAX_LINE} bytes: what stands behind those was not read."
                ),
            },
        );
    }
    reader.end()
}

impl TableReader {
    /// Reads what begins at the first line in view. Returns how many lines are a table's; none if the first is not.
    fn line(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let text = first.text.trim();
        if text.is_empty() || is_ruler(text) {
            return None;
        }
        if let Some((code, machine)) = kvm::unknown(text) {
            let open = self.kvm.as_mut()?;
            open.unknown = Some(code);
            open.machine = open.machine.take().or(machine.map(str::to_owned));
            return Some(1);
        }
        if let Some(head) = kvm::head(text) {
            self.open_kvm(first.number).head = head;
            return Some(1);
        }
        if let Some((header, used)) = kvm::header(view) {
            // The heading belongs to the line above.
            let open = match self.kvm.take_if(|open| open.waits()) {
                Some(open) => self.kvm.insert(open),
                None => self.open_kvm(first.number),
            };
            open.header = Some(header);
            return Some(used);
        }
        if let Some((header, used)) = sched::header(view) {
            self.open_sched(first.number).header = Some(header);
            return Some(used);
        }
        if let Some(used) = self.go_on(view) {
            return Some(used);
        }
        let begins = TABLE_FORMS.iter().find_map(|form| (form.heading)(view));
        if let Some(begins) = begins {
            return Some(self.open_printed(begins, first.number));
        }
        if let Some(header) = stat::header(text) {
            self.open_stat(first.number).header = Some(header);
            return Some(1);
        }
        match self.row(view) {
            Some(used) => {
                if used > 1 {
                    count(&mut self.joined, first.number);
                }
                Some(used)
            }
            None => {
                self.other(first);
                None
            }
        }
    }

    /// Reads a line of a table, opening one if none of its kind is open. Returns how many lines it takes.
    fn row(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let layout = self.kvm.as_ref().and_then(|open| Some(open.header?.layout));
        if let Some((row, used)) = kvm::row_of(view, layout) {
            let open = match self.kvm.take_if(|open| open.total.is_none()) {
                Some(open) => self.kvm.insert(open),
                None => self.open_kvm(first.number),
            };
            open.push(first.number, row);
            return Some(used);
        }
        if let Some((total, used)) = kvm::total(view) {
            // Without a table it is the end of one that was not pasted.
            let open = self.kvm.as_mut().filter(|open| open.total.is_none())?;
            open.foreign.end();
            open.total = Some(total);
            return Some(used);
        }
        let header = self.sched.as_ref().and_then(|open| open.header);
        if let Some((row, used)) = sched::row_of(view, header) {
            let open = match self.sched.take_if(|open| !open.is_whole()) {
                Some(open) => self.sched.insert(open),
                None => self.open_sched(first.number),
            };
            open.push(row);
            return Some(used);
        }
        let rows = TABLE_FORMS.iter().filter_map(|form| form.row);
        if let Some(begins) = rows.into_iter().find_map(|row| row(view)) {
            return Some(self.open_printed(begins, first.number));
        }
        if self.stat_line(first) {
            return Some(1);
        }
        if let Some(open) = &mut self.sched {
            return open.info(&first.text).then_some(1);
        }
        let open = self.kvm.as_mut()?;
        if let Some(lost) = kvm::lost(&first.text) {
            open.lost_events = Some(lost);
            return Some(1);
        }
        // A row that went beyond the right edge of a screen. Only a heading makes it one.
        open.header.filter(|_| open.total.is_none())?;
        open.push(first.number, kvm::cut_row(&first.text, layout)?);
        Some(1)
    }

    /// Lets the table of a form with a file of its own go on. Returns how many lines it takes.
    fn go_on(&mut self, view: &[CleanLine]) -> Option<usize> {
        let open = self.printed.as_mut()?;
        let used = open.table.take(view)?;
        open.foreign = 0;
        Some(used)
    }

    fn open_printed(&mut self, (table, used): TableBeginning, line: u64) -> usize {
        self.close();
        let label = self.take_label(line);
        self.printed = Some(OpenPrinted {
            table,
            place: TablePlace { line, label },
            foreign: 0,
        });
        used
    }

    /// Reads a line of `perf stat`. Returns whether it is one.
    fn stat_line(&mut self, line: &CleanLine) -> bool {
        let text = &line.text;
        if let Some(open) = &mut self.stat {
            if let Some(seconds) = stat::seconds(text) {
                return open.push_seconds(seconds);
            }
            if let Some(metrics) = stat::metrics_alone(text) {
                open.push_metrics(metrics);
                return true;
            }
            if let Some(tail) = stat::tail(text) {
                open.push_tail(tail);
                return true;
            }
        }
        let Some(count) = stat::row(text, line.number).or_else(|| stat_csv::row(text, line.number))
        else {
            return false;
        };
        let open = match self.stat.take_if(|open| !open.is_whole()) {
            Some(open) => self.stat.insert(open),
            None => {
                let inside = self.kvm.as_ref().is_some_and(|open| open.total.is_none())
                    || self.sched.as_ref().is_some_and(|open| !open.is_whole());
                if !begins_stat(text, &count, inside) {
                    return false;
                }
                self.open_stat(line.number)
            }
        };
        open.push(count);
        true
    }

    /// Takes a line that belongs to no table.
    fn other(&mut self, line: &CleanLine) {
        let text = line.text.trim();
        let foreign = match (&mut self.kvm, &mut self.sched) {
            (Some(open), _) => Some(&mut open.foreign),
            (_, Some(open)) => Some(&mut open.foreign),
            _ => None,
        };
        if foreign.is_some_and(|foreign| foreign.add(line.number)) {
            self.close();
        }
        // Other text ends counts, which have no last line of their own.
        if self.stat.is_some() {
            self.close();
        }
        if let Some(open) = &mut self.printed {
            open.foreign += 1;
            if open.foreign > open.table.patience() {
                self.close();
            }
        }
        if label::is_command(text) {
            // What a command prints is another table.
            if self.printed.is_some() {
                self.close();
            }
            self.asked = asked(text).map(|event| (line.number, event));
            return;
        }
        if let Some(label) = label::label_of(text) {
            self.label = Some((line.number, label));
        }
    }

    fn open_kvm(&mut self, line: u64) -> &mut OpenKvm {
        self.close();
        let label = self.take_label(line);
        let asked = self.asked.take().filter(|(at, _)| is_near(*at, line));
        self.kvm
            .insert(OpenKvm::new(line, label, asked.map(|(_, event)| event)))
    }

    fn open_sched(&mut self, line: u64) -> &mut OpenSched {
        self.close();
        let label = self.take_label(line);
        self.sched.insert(OpenSched::new(line, label))
    }

    fn open_stat(&mut self, line: u64) -> &mut OpenStat {
        self.close();
        let label = self.take_label(line);
        self.stat.insert(OpenStat::new(line, label))
    }

    /// Takes the label for a table that begins.
    fn take_label(&mut self, line: u64) -> Option<String> {
        let (_, label) = self.label.take().filter(|(at, _)| is_near(*at, line))?;
        Some(label)
    }

    /// Ends the table that is open.
    fn close(&mut self) {
        let mut notes = Vec::new();
        let kvm = self.kvm.take().and_then(|open| open.close(&mut notes));
        let sched = self.sched.take().and_then(|open| open.close(&mut notes));
        let stat = self.stat.take().and_then(|open| open.close(&mut notes));
        let printed =
            (self.printed.take()).and_then(|open| open.table.close(open.place, &mut notes));
        for table in [kvm, sched, stat, printed].into_iter().flatten() {
            if self.tables.len() < MAX_TABLES {
                let last_line = self.last.max(table.line());
                self.tables.push(PlacedTable { table, last_line });
            } else {
                count(&mut self.beyond, table.line());
            }
        }
        // One more than is kept means that there were more.
        let room = (MAX_NOTES + 1).saturating_sub(self.notes.len());
        self.notes.extend(notes.into_iter().take(room));
    }

    fn end(mut self) -> (Vec<PlacedTable>, Vec<TableNote>) {
        self.close();
        let more = self.notes.len() > MAX_NOTES - 3;
        self.notes.truncate(MAX_NOTES - 3);
        let mut note = |(times, line): (u64, u64), text: String| {
            if times > 0 {
                self.notes.push(TableNote { line, text });
            }
        };
        let (rows, _) = self.joined;
        let rows = words::counted(rows, "row was", "rows were");
        note(
            self.joined,
            format!("{rows} broken and put together again, the first here."),
        );
        let (tables, line) = self.beyond;
        note(
            self.beyond,
            format!("There are more than {MAX_TABLES} tables; {tables} from here on are left out."),
        );
        note(
            (u64::from(more), line.max(1)),
            "There are more notes than are listed.".to_owned(),
        );
        (self.tables, self.notes)
    }
}

/// Returns whether counts without a heading may begin with this one: the event is one of perf's, or the line has
/// what perf puts there. Inside another table only the first counts.
fn begins_stat(text: &str, count: &Count, inside: bool) -> bool {
    if inside || stat::is_known(&count.event) {
        return stat::is_known(&count.event);
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    let grouped = matches!(count.value, StatCount::Count(n) if n >= 1000)
        && first.contains([',', '.', '\'', '\u{2019}']);
    grouped || !count.metrics.is_empty() || count.event.contains([':', '/'])
}

/// Counts one more, and keeps the line of the first.
fn count(times: &mut (u64, u64), line: u64) {
    if times.0 == 0 {
        times.1 = line;
    }
    times.0 += 1;
}

fn is_near(at: u64, line: u64) -> bool {
    line.saturating_sub(at) <= LABEL_NEAR
}

/// Returns whether a line only divides.
pub(crate) fn is_ruler(text: &str) -> bool {
    text.len() >= 3 && text.chars().all(|c| "-=+|_*: ".contains(c))
}

/// Reads what `perf kvm stat` was asked for: `--event=ioport`.
fn asked(command: &str) -> Option<KvmStatEvent> {
    let (_, rest) = command.split_once("--event")?;
    let name = rest.trim_start_matches(['=', ' ']);
    let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    KvmStatEvent::ALL
        .into_iter()
        .find(|event| event.option() == Some(name))
}
