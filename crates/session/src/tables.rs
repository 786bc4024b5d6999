//! Tables that perf printed, in the place of a recording or beside one.

use analysis::{ExitTable, Picture};
use event::Isa;

use crate::{Error, Input};

impl Input<'_> {
    /// Returns the pictures that its tables make; `None` where it is a recording, or holds no tables. The first has warnings
    /// about what was not understood.
    ///
    /// # Errors
    ///
    /// Fails when filters were asked for: tables are sums, of which nothing can be left out.
    pub fn tables(&self) -> Result<Option<Vec<Picture>>, Error> {
        if !perftables::looks_like(self.bytes()) || self.is_recording() {
            return Ok(None);
        }
        if self.session.options().filters.any() {
            return Err(Error::TablesFiltered {
                name: self.name().to_owned(),
            });
        }
        Ok(Some(self.read_tables()))
    }

    /// Returns the pictures that tables make which stand in one text with a recording, as in a ticket.
    pub fn tables_beside(&self) -> Vec<Picture> {
        match perftables::looks_like(self.bytes()) {
            true => self.read_tables(),
            false => Vec::new(),
        }
    }

    fn read_tables(&self) -> Vec<Picture> {
        let (tables, notes) = perftables::read(self.bytes());
        let named = tables
            .into_iter()
            .map(|table| (self.name().to_owned(), table));
        let mut pictures = analysis::of_tables(named.collect());
        for picture in &mut pictures {
            // Only x86 has ports and MSRs; whose vendor's they are makes no difference to their names.
            let x86 = [ExitTable::Ioport, ExitTable::Msr];
            let is_x86 = x86.iter().any(|table| picture.table(*table).is_some());
            let isa = picture.isa.or_else(|| is_x86.then_some(Isa::Vmx));
            let devices = self.session.devices();
            devices.name_rows(isa, &mut picture.exits, &mut picture.quality);
        }
        if let Some(first) = pictures.first_mut() {
            for note in notes {
                first.quality.warn(note.to_string());
            }
        }
        pictures
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
        out.push(format!("perf kvm stat report ({})", exits.join(", ")));
    }
    if picture.sched.is_some() {
        out.push("perf sched latency".to_owned());
    }
    if !picture.counts.is_empty() {
        out.push("perf stat".to_owned());
    }
    out.join(", ")
}
