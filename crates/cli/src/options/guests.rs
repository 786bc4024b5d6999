//! Recordings of guests beside their host's.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use session::NamedGuest;

use super::recordings::GivenRecordings;

/// A host's recording, and those of its guests.
#[derive(Debug, Clone, Default, Args)]
#[command(mut_arg("recordings", |words| words.value_names(["REC", "GUEST"]).help(HOST_AND_GUESTS)))]
pub(crate) struct GuestArgs {
    #[command(flatten)]
    pub recordings: GivenRecordings,

    /// A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = named_guest)]
    pub named: Vec<NamedGuest>,
}

/// What the words of a command line are that takes a host's recording alone, or tables beside it.
const HOST_AND_GUESTS: &str = "Recording, or - for standard input, and behind it recordings (GUEST) that were made in \
                               its guests at the same time. Whose guest each is, and how its clock reads, is found \
                               from the recordings themselves";

/// A host's recording, and those of its guests, as a command line names them or without it the newest one here.
#[derive(Debug)]
pub(crate) struct NamedHost {
    /// The host's recording.
    pub recording: PathBuf,
    /// Recordings of its guests.
    pub guests: Vec<NamedGuest>,
}

impl NamedHost {
    /// Returns all inputs: the host's recording, and theirs.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        let guests = self.guests.iter().map(|guest| guest.path.as_path());
        std::iter::once(self.recording.as_path())
            .chain(guests)
            .collect()
    }
}

/// Recordings of guests of which an option says that they are guests'.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuestOptions {
    /// A recording that was made in a guest of REC at the same time, with the name, UUID or process of the VM whose
    /// guest it is. There is one host then. May be repeated. Guests whose recordings and the host's name each other
    /// need no option.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = named_guest)]
    pub named: Vec<NamedGuest>,
}

impl GuestOptions {
    /// Returns their paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().map(|one| one.path.as_path())
    }
}

/// Reads `NAME=REC`, or a path alone; a file whose own name has such a sign is a path.
pub(crate) fn named_guest(text: &str) -> Result<NamedGuest, String> {
    let alone = NamedGuest {
        vm: None,
        path: text.into(),
    };
    let guest = match text.split_once('=') {
        Some((name, path)) if !alone.path.exists() => NamedGuest {
            vm: Some(name.to_owned()).filter(|name| !name.is_empty()),
            path: path.into(),
        },
        _ => alone,
    };
    match guest.path.as_os_str().is_empty() {
        true => Err("names no recording".to_owned()),
        false => Ok(guest),
    }
}

impl GuestArgs {
    /// Returns the host's recording and those of its guests.
    ///
    /// # Errors
    /// None is named, and none is in this folder.
    pub(crate) fn host(&self) -> Result<NamedHost> {
        let mut recordings = self.recordings.or_newest()?;
        let found = recordings.split_off(1).into_iter();
        let found = found.map(|path| NamedGuest { path, vm: None });
        let guests = found.chain(self.named.iter().cloned()).collect();
        let recording = recordings.drain(..).next().unwrap_or_default();
        Ok(NamedHost { recording, guests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_path() {
        let named = |text| named_guest(text).map(|one| (one.vm, one.path));
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(
            named("web=a.dat"),
            Ok((Some("web".to_owned()), path("a.dat")))
        );
        assert_eq!(named("a.dat"), Ok((None, path("a.dat"))));
        assert_eq!(named("=a.dat"), Ok((None, path("a.dat"))));
        assert!(named("web=").is_err());
    }
}
