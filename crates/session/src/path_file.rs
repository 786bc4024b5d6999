//! Latency paths: built in, or from a file.

use std::io;
use std::path::Path;

use paths::lang::{self, LanguageError};

use crate::kind::MAX_PATH_FILE;
use crate::{Error, InputKind, InputPurpose, sniff};

/// Returns the built-in path of a name, or reads the file that is called so.
///
/// ```
/// assert_eq!(session::read_path("irqfd").unwrap().name, "irqfd");
/// assert!(session::read_path("nowhere.toml").is_err());
/// ```
///
/// # Errors
///
/// Fails when there is neither, or the file is not in the language of paths.
pub fn read_path(name: &str) -> Result<lang::PathDefinition, Error> {
    read_path_of("--path", name)
}

/// Does the same; errors name the option that was given.
///
/// ```
/// let error = session::read_path_of("--until", "nowhere.toml").unwrap_err();
/// assert!(error.to_string().starts_with("--until nowhere.toml: there is no built-in path"));
/// ```
///
/// # Errors
///
/// Those of [`read_path`].
pub fn read_path_of(option: &str, name: &str) -> Result<lang::PathDefinition, Error> {
    if let Some(path) = paths::builtin(name) {
        return Ok(path);
    }
    let wanted = InputPurpose::PathFile;
    let option = format!("{option} {name}");
    let bytes =
        source::read_beside(Path::new(name), MAX_PATH_FILE).map_err(|error| Error::Nothing {
            name: option.clone(),
            reason: format!("{}; built in are {}", path_reason(&error, name), built_in()),
            wanted,
        })?;
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(text) => lang::parse(text).map_err(Some),
        Err(_) => Err(None),
    };
    let error: Option<LanguageError> = match parsed {
        Ok(path) => return Ok(path),
        Err(error) => error,
    };
    let kind = sniff(&bytes);
    match error {
        Some(error) if matches!(kind, InputKind::Text | InputKind::Empty) => Err(Error::PathFile {
            name: option,
            error,
        }),
        _ => Err(Error::WrongKind {
            name: option,
            kind,
            wanted,
        }),
    }
}

fn path_reason(error: &io::Error, name: &str) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let known = paths::builtin_texts().map(|(name, _)| name);
            let near = words::did_you_mean(name, known);
            format!("there is no built-in path and no file of that name{near}")
        }
        _ => words::io_reason(error),
    }
}

fn built_in() -> String {
    let known: Vec<&str> = paths::builtin_texts().map(|(name, _)| name).collect();
    known.join(", ")
}
