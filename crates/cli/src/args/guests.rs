//! Recordings of guests beside their host's.

use std::path::{Path, PathBuf};

use clap::Args;

/// Recordings of guests beside their host's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuestArgs {
    /// Recordings that were made in guests of REC at the same time. Whose guest each is, and how its clock reads, is found from the
    /// recordings themselves.
    #[arg(value_name = "GUEST")]
    pub found: Vec<PathBuf>,

    /// The same, with the name, UUID or process of the VM whose guest it is. May be repeated.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = told)]
    pub told: Vec<Told>,
}

/// Recordings of guests that are told from those of hosts by an option.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToldGuests {
    /// A recording that was made in a guest of REC at the same time, with the name, UUID or process of the VM whose guest it is. There is
    /// one host then. May be repeated. Guests whose recordings and the host's name each other need no option.
    #[arg(long = "guest", value_name = "[NAME=]REC", value_parser = told)]
    pub told: Vec<Told>,
}

/// Returns guests as the library takes them.
pub(crate) fn as_told(all: &[Told]) -> Vec<session::Told> {
    let all = all.iter();
    all.map(|one| (one.path.clone(), one.vm.clone())).collect()
}

impl ToldGuests {
    /// Returns them as the library takes them.
    pub(crate) fn all(&self) -> Vec<session::Told> {
        as_told(&self.told)
    }

    /// Returns their paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.told.iter().map(|one| one.path.as_path())
    }
}

/// A guest's recording, and the VM that it is said to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub vm: Option<String>,
    pub path: PathBuf,
}

/// Reads `NAME=REC`, or a path alone; a file whose own name has such a sign is a path.
pub(crate) fn told(text: &str) -> Result<Told, String> {
    let alone = Told {
        vm: None,
        path: text.into(),
    };
    let told = match text.split_once('=') {
        Some((name, path)) if !alone.path.exists() => Told {
            vm: Some(name.to_owned()).filter(|name| !name.is_empty()),
            path: path.into(),
        },
        _ => alone,
    };
    match told.path.as_os_str().is_empty() {
        true => Err("names no recording".to_owned()),
        false => Ok(told),
    }
}

impl GuestArgs {
    /// Returns them as the library takes them.
    pub(crate) fn told(&self) -> Vec<session::Told> {
        let all = self.all();
        all.map(|(path, vm)| (path.to_owned(), vm.map(str::to_owned)))
            .collect()
    }

    /// Returns all inputs of a command that takes them: the host's recording, and theirs.
    pub(crate) fn inputs<'a>(&'a self, recording: &'a Path) -> Vec<&'a Path> {
        let guests = self.all().map(|(path, _)| path);
        std::iter::once(recording).chain(guests).collect()
    }

    /// Returns all of them: paths, and the VMs that they are said to be of.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, Option<&str>)> {
        let found = self.found.iter().map(|path| (path.as_path(), None));
        let told = self.told.iter();
        found.chain(told.map(|one| (one.path.as_path(), one.vm.as_deref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_path() {
        let told = |text| told(text).map(|one| (one.vm, one.path));
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(
            told("web=a.dat"),
            Ok((Some("web".to_owned()), path("a.dat")))
        );
        assert_eq!(told("a.dat"), Ok((None, path("a.dat"))));
        assert_eq!(told("=a.dat"), Ok((None, path("a.dat"))));
        assert!(told("web=").is_err());
    }
}
