//! AddressNames of devices, from QEMU's `info mtree` or built in.

use std::path::Path;

use analysis::{ExitsReport, VcpusReport};
use devices::AddressNames;
use doubts::{DoubtKind, Doubts};
use event::Isa;

use crate::{Error, HostFacts, InputKind, InputPurpose, sniff};

/// Text of `info mtree` is not read beyond this many bytes; real ones have some 20,000.
const MAX_MTREE: u64 = 16 << 20;

/// What devices are called.
#[derive(Debug)]
pub struct DeviceNames {
    mtree: Option<String>,
}

/// Returns a text whose bytes that are no UTF-8 stand as `\xff`: notes show lines of it, with nothing that is not in
/// the file.
fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

impl DeviceNames {
    /// Reads the text of `info mtree`, if a file of it was given, else takes it from the facts.
    pub(crate) fn open(mtree: Option<&Path>, facts: &HostFacts) -> Result<DeviceNames, Error> {
        let Some(path) = mtree else {
            return Ok(DeviceNames {
                mtree: facts.all().mtree.clone(),
            });
        };
        DeviceNames::read(path)
    }

    /// Reads the text of `info mtree`.
    ///
    /// # Errors
    ///
    /// Fails where the file cannot be read, or is of another kind.
    pub fn read(path: &Path) -> Result<DeviceNames, Error> {
        let wanted = InputPurpose::DeviceMap;
        let name = format!("--mtree {}", path.display());
        let text = source::read_beside(path, MAX_MTREE);
        let text = text.map_err(|error| Error::Unreadable {
            name: name.clone(),
            error,
            wanted,
        })?;
        let (all, _) = facts::read(&text);
        if all.mtree.is_none() {
            // A text in which no map is recognised is taken at its word: notes say what was not understood.
            let kind = sniff(&text);
            if !matches!(kind, InputKind::Text | InputKind::Empty) {
                return Err(Error::WrongKind { name, kind, wanted });
            }
        }
        let text = shown(&text);
        Ok(DeviceNames { mtree: Some(text) })
    }

    /// Returns the text of `info mtree`, if there is one.
    pub fn mtree(&self) -> Option<&str> {
        self.mtree.as_deref()
    }

    /// Returns the names for a machine.
    pub fn names(&self, isa: Option<Isa>) -> AddressNames {
        let names = analysis::builtin_names(isa);
        match &self.mtree {
            Some(text) => names.with_mtree(text).0,
            None => names,
        }
    }

    /// Returns what of the text was not understood.
    pub fn doubts(&self) -> Doubts {
        let mut doubts = Doubts::default();
        if let Some(text) = &self.mtree {
            for note in analysis::builtin_names(None).with_mtree(text).1 {
                let note = note.to_string();
                doubts.raise(DoubtKind::DeviceMapNotUnderstood { note });
            }
        }
        doubts
    }

    /// AddressNames the rows of tables.
    pub fn name_rows(&self, isa: Option<Isa>, reports: &mut [ExitsReport]) {
        let names = analysis::with_used(self.names(isa), reports);
        for report in reports {
            analysis::name_rows(report, &names);
        }
    }

    /// AddressNames what vCPUs were in the VMM for.
    pub fn name_causes(&self, report: &mut VcpusReport) {
        let causes = report.rows.iter().flat_map(|row| &row.user);
        let isa = causes
            .filter_map(|cause| cause.reason)
            .map(|r| r.isa)
            .next();
        analysis::name_causes(report, &self.names(isa));
    }
}
