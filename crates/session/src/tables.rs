//! Tables that perf printed, in the place of a recording or beside one.

use std::path::{Path, PathBuf};

use analysis::{ExitTable, Picture};
use doubts::{Doubt, DoubtKind};
use event::Isa;
use perftables::{PerfTable, TableNote};

use crate::input::InputPart;
use crate::tickets::{self, at_line};
use crate::{Error, Input, PictureOptions, Session};

/// Tables that perf printed, of one input or of several: of those that were printed of one recording comes one picture.
#[derive(Debug, Default)]
pub struct PrintedTables {
    /// Each with its input's name.
    tables: Vec<(String, PerfTable)>,
    /// What was not understood, with the input's name.
    notes: Vec<(String, TableNote)>,
}

impl PrintedTables {
    /// Moves all of another here, behind what is there.
    pub fn append(&mut self, other: &mut PrintedTables) {
        self.tables.append(&mut other.tables);
        self.notes.append(&mut other.notes);
    }
}

impl Input<'_> {
    /// Returns the pictures that its tables make; `None` where it is a recording, or holds no tables. The first has
    /// warnings about what was not understood.
    ///
    /// # Errors
    ///
    /// Fails when filters were asked for: tables are sums, of which nothing can be left out. Fails when nothing can be
    /// read of what begins as a table.
    pub fn tables(&self) -> Result<Option<Vec<Picture>>, Error> {
        if !self.may_have_tables() || self.is_recording() {
            return Ok(None);
        }
        if self.session.options().filters.any() {
            return Err(Error::TablesFiltered {
                name: self.name().to_owned(),
            });
        }
        let (tables, notes) = self.read_tables();
        Ok(Some(
            self.session.name_tables(self.own(tables, notes), false),
        ))
    }

    /// Returns whether tables are looked for in it: only the beginning of an input is looked at, if nobody knows more.
    fn may_have_tables(&self) -> bool {
        match self.part() {
            InputPart::Tables => true,
            InputPart::Trace(..) => false,
            InputPart::Whole | InputPart::Table(_) => perftables::looks_like(self.bytes()),
        }
    }

    /// Returns its tables, or the one that is meant and what belongs to it.
    fn read_tables(&self) -> (Vec<PerfTable>, Vec<TableNote>) {
        let (mut tables, mut notes) = perftables::read(self.bytes());
        if let InputPart::Table(line) = self.part() {
            // The table that the line is in or before.
            let first = tables.iter().rposition(|table| table.line() <= line);
            let rest = tables.split_off(first.unwrap_or(0));
            tables = analysis::first_group(rest);
            let from = tables.first().map_or(0, PerfTable::line);
            let to = tables.last().map_or(0, PerfTable::line);
            notes.retain(|note| (from..=to).contains(&note.line));
        }
        (tables, notes)
    }

    /// Returns, where it has several tables of one kind, how to name those of the first such kind: `FILE:LINE` each.
    /// Where it has no such tables and several traces, it returns how to name these.
    pub fn parts_apart(&self) -> Vec<PathBuf> {
        if self.part() != InputPart::Whole {
            return Vec::new();
        }
        let Some(ticket) = tickets::cut(self.bytes()) else {
            return Vec::new();
        };
        let tables = ticket.tables.into_iter().map(|one| one.table);
        let mut lines = analysis::repeated(&tables.collect::<Vec<_>>());
        if lines.is_empty() {
            lines = ticket.traces.iter().map(|trace| trace.first_line).collect();
        }
        let lines = lines.into_iter();
        lines
            .map(|line| PathBuf::from(format!("{}:{line}", self.name())))
            .collect()
    }

    /// Adds its tables to others, and returns whether there is nothing else in it: a ticket may hold a recording and
    /// tables.
    ///
    /// # Errors
    ///
    /// Fails when nothing can be read of what begins as a table. Fails in comparisons where there are several tables of
    /// one kind.
    pub fn printed(
        &self,
        all: &mut PrintedTables,
        options: &PictureOptions,
    ) -> Result<bool, Error> {
        if !self.may_have_tables() {
            return Ok(false);
        }
        let name = || self.name().to_owned();
        let is_recording = self.is_recording();
        let (found, notes) = self.read_tables();
        if found.is_empty() && !is_recording {
            return Err(Error::TablesUnread { name: name() });
        }
        if options.comparing
            && let Some(reason) = analysis::ambiguous(&found)
        {
            return Err(Error::TablesAmbiguous {
                name: name(),
                reason,
            });
        }
        all.append(&mut self.own(found, notes));
        Ok(!is_recording)
    }

    fn own(&self, tables: Vec<PerfTable>, notes: Vec<TableNote>) -> PrintedTables {
        let name = || self.name().to_owned();
        PrintedTables {
            tables: tables.into_iter().map(|one| (name(), one)).collect(),
            notes: notes.into_iter().map(|one| (name(), one)).collect(),
        }
    }
}

impl Session {
    /// Returns the pictures that tables of all inputs make together.
    ///
    /// # Errors
    ///
    /// Fails when filters were asked for: tables are sums, of which nothing can be left out.
    pub fn of_printed(&self, printed: PrintedTables) -> Result<Vec<Picture>, Error> {
        let Some((name, _)) = printed.tables.first() else {
            return Ok(Vec::new());
        };
        if self.options().filters.any() {
            return Err(Error::TablesFiltered { name: name.clone() });
        }
        let mut pictures = self.name_tables(printed, true);
        if let Some(first) = pictures.first_mut() {
            first.quality.doubts.extend(self.host_facts().doubts());
            first.quality.doubts.extend(self.devices().doubts());
        }
        Ok(pictures)
    }

    /// Makes pictures of tables. The first has warnings about what was not understood, which name their input if
    /// `named`.
    fn name_tables(&self, printed: PrintedTables, named: bool) -> Vec<Picture> {
        let mut pictures = analysis::of_tables(printed.tables);
        for picture in &mut pictures {
            self.name_part(picture);
            // Only x86 has ports and MSRs; whose vendor's they are makes no difference to their names.
            let x86 = [ExitTable::Ioport, ExitTable::Msr];
            let is_x86 = x86.iter().any(|table| picture.table(*table).is_some());
            let isa = picture.isa.or_else(|| is_x86.then_some(Isa::Vmx));
            let devices = self.devices();
            devices.name_rows(isa, &mut picture.exits);
        }
        if let Some(first) = pictures.first_mut() {
            for (name, note) in printed.notes {
                let doubt = Doubt::from(DoubtKind::TableNotUnderstood {
                    note: note.to_string(),
                });
                first.quality.raise(match named {
                    false => doubt,
                    true => doubt.of_input(&name),
                });
            }
        }
        pictures
    }
}

impl Session {
    /// Names the part of a text that a picture is of as it can be given: `FILE:LINE`.
    fn name_part(&self, picture: &mut Picture) {
        let ([name], Some(line)) = (picture.names.as_mut_slice(), picture.first_line) else {
            return;
        };
        let mut tickets = self.tickets().iter();
        if tickets.any(|file| file.name() == name && file.ticket().has_several()) {
            *name = at_line(Path::new(name), line).display().to_string();
        }
    }
}

/// Says which tables a picture is of, as `perf kvm stat report (vmexit, ioport), perf stat`.
pub fn describe(picture: &Picture) -> String {
    let mut out = Vec::new();
    let exits: Vec<&str> = ExitTable::ALL
        .into_iter()
        .filter(|table| picture.table(*table).is_some())
        .map(ExitTable::name)
        .collect();
    if !exits.is_empty() {
        let printer = picture.exits_by.name();
        out.push(format!("{printer} ({})", exits.join(", ")));
    }
    if picture.sched.is_some() {
        out.push(picture.latencies_by.name().to_owned());
    }
    if !picture.counts.is_empty() {
        out.push(picture.counted_by.name().to_owned());
    }
    for one in &picture.distributions {
        let name = one.printer().name().to_owned();
        if !out.contains(&name) {
            out.push(name);
        }
    }
    if let Some(shares) = &picture.shares {
        out.push(match shares.event() {
            Some(event) => format!("perf report (shares of {event})"),
            None => "perf report (shares of samples)".to_owned(),
        });
    }
    if let Some(interrupts) = &picture.interrupts {
        out.push(match interrupts.is_difference() {
            true => "/proc/interrupts (two readings)".to_owned(),
            false => "/proc/interrupts".to_owned(),
        });
    }
    if !picture.cpu_usage.is_empty() {
        out.push("mpstat".to_owned());
    }
    if !picture.virtio.is_empty() {
        out.push("virtiostat".to_owned());
    }
    out.join(", ")
}
