//! The definition of a guest, from a file.

use std::path::Path;

use domain::{Domain, DomainNote};

use crate::{Error, InputPurpose, sniff};

/// Definitions are not read beyond this many bytes; real ones have some ten thousand.
const MAX_DOMAIN: u64 = 16 << 20;

/// The definition of a guest.
#[derive(Debug)]
pub struct DomainFile {
    /// The file's name without its folder; `domain.xml` for standard input.
    pub name: String,
    /// Its text.
    pub text: String,
    /// What it says.
    pub domain: Domain,
    /// What was not understood, with the file's name before it.
    pub notes: Vec<String>,
}

impl DomainFile {
    /// Reads a definition, as `virsh dumpxml` prints it; `-` is standard input.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, or is no definition.
    pub fn open(path: &Path) -> Result<DomainFile, Error> {
        let wanted = InputPurpose::Definition;
        let option = format!("--domain {}", path.display());
        let bytes = source::read_beside(path, MAX_DOMAIN).map_err(|error| Error::Unreadable {
            name: option.clone(),
            error,
            wanted,
        })?;
        match parse(&bytes) {
            Ok((text, domain, notes)) => {
                let notes = notes
                    .iter()
                    .map(|note| format!("{}: {note}", path.display()));
                Ok(DomainFile {
                    name: short_name(path),
                    notes: notes.collect(),
                    text: text.to_owned(),
                    domain,
                })
            }
            Err(error) => Err(refused(option, &bytes, error)),
        }
    }
}

fn parse(bytes: &[u8]) -> Result<(&str, Domain, Vec<DomainNote>), domain::DomainError> {
    let text = domain::decode(bytes)?;
    let (domain, notes) = domain::parse(text)?;
    Ok((text, domain, notes))
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

fn short_name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "domain.xml".to_owned();
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
