//! Definitions of guests, from a file.

use std::path::Path;

use domain::{Domain, GuestDefinition};

use crate::{Error, InputPurpose, sniff};

/// Definitions are not read beyond this many bytes; real ones have some ten thousand.
const MAX_DOMAIN: u64 = 16 << 20;

/// The definition of a guest.
#[derive(Debug, Clone)]
pub struct DomainFile {
    /// The file's name without its folder; `domain.xml` for standard input.
    pub name: String,
    /// Its text; empty for a command line.
    pub text: String,
    /// What it says.
    pub domain: Domain,
    /// What was not understood, with the file's name before it.
    pub notes: Vec<String>,
}

impl DomainFile {
    /// Reads the definition of one guest, as `virsh dumpxml` prints it, QEMU's command line or a Proxmox VM's
    /// `.conf`; `-` is standard input. Of several VMs in it the one that is asked for by its name or UUID.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, is no definition, or does not hold exactly one.
    pub fn open(path: &Path, vm: Option<&str>) -> Result<DomainFile, Error> {
        let mut all = DomainFile::open_all(path)?;
        if let (Some(vm), true) = (vm, all.len() > 1) {
            all.retain(|one| one.domain.name == vm || one.domain.uuid.as_deref() == Some(vm));
        }
        match (all.pop(), all.len()) {
            (Some(only), 0) => Ok(only),
            (last, more) => {
                let found = more + usize::from(last.is_some());
                let option = option(path);
                Err(Error::NotOneDefinition { option, found })
            }
        }
    }

    /// Reads the definitions of all guests in a file: `ps` prints many.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, or is no definition.
    pub fn open_all(path: &Path) -> Result<Vec<DomainFile>, Error> {
        let option = option(path);
        let bytes = source::read_beside(path, MAX_DOMAIN).map_err(|error| Error::Unreadable {
            name: option.clone(),
            error,
            wanted: InputPurpose::Definition,
        })?;
        let all = domain::definitions(&bytes).map_err(|error| refused(option, &bytes, error))?;
        let file = |one: GuestDefinition| {
            let notes = one.notes.iter();
            DomainFile {
                name: short_name(path),
                notes: notes
                    .map(|note| format!("{}: {note}", path.display()))
                    .collect(),
                text: one.text,
                domain: one.domain,
            }
        };
        Ok(all.into_iter().map(file).collect())
    }
}

fn option(path: &Path) -> String {
    format!("--domain {}", path.display())
}

/// Returns what is wrong with a file: where its XML breaks, or that it is something else.
fn refused(name: String, bytes: &[u8], error: domain::DomainError) -> Error {
    let is_xml = bytes.trim_ascii_start().starts_with(b"<");
    let kind = sniff(bytes);
    if kind.is_taken() && !is_xml {
        return Error::WrongKind {
            name,
            kind,
            wanted: InputPurpose::Definition,
        };
    }
    Error::Definition { name, error }
}

pub(crate) fn short_name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "domain.xml".to_owned();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
