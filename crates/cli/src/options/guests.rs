//! Recordings of guests beside their host's.

use std::path::{Path, PathBuf};

use clap::Args;
use session::NamedGuest;

/// Recordings of guests beside their host's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuestArgs {
    /// Recordings that were made in guests of REC at the same time. Whose guest each is, and how its clock reads, is
    /// found from the recordings themselves.
    #[arg(value_name = "GUEST")]
    pub found: Vec<PathBuf>,

    /// The same, with the name, UUID or process of the VM whose guest it is. May be repeated.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = named_guest)]
    pub named: Vec<NamedGuest>,
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
    /// Returns them as the library takes them.
    pub(crate) fn named(&self) -> Vec<NamedGuest> {
        let found = self.found.iter().map(|path| NamedGuest {
            path: path.clone(),
            vm: None,
        });
        found.chain(self.named.iter().cloned()).collect()
    }

    /// Returns all inputs of a command that takes them: the host's recording, and theirs.
    pub(crate) fn inputs<'a>(&'a self, recording: &'a Path) -> Vec<&'a Path> {
        let guests = self.all().map(|(path, _)| path);
        std::iter::once(recording).chain(guests).collect()
    }

    /// Returns all of them: paths, and the VMs that they are said to be of.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, Option<&str>)> {
        let found = self.found.iter().map(|path| (path.as_path(), None));
        let named = self.named.iter();
        found.chain(named.map(|one| (one.path.as_path(), one.vm.as_deref())))
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
