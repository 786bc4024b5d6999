//! Names of user space's functions, by the build ids that a recording knows.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use binaries::{Binaries, MissingReason};
use symbols::UserNames;

/// Files of which it is counted why their functions have no names.
const MAX_FILES: usize = 1 << 12;

/// Build ids of user space's files that a recording has apart from its mappings.
#[derive(Debug, Default)]
pub(crate) struct BuildIds {
    /// By path; `None` where it has several.
    by_path: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl BuildIds {
    /// `build_ids` are paths with the ids that the recording has of them.
    pub(crate) fn new<'b>(build_ids: impl Iterator<Item = (&'b [u8], &'b [u8])>) -> BuildIds {
        let mut known: HashMap<Vec<u8>, Option<Vec<u8>>> = HashMap::new();
        for (path, id) in build_ids {
            match known.entry(path.to_vec()) {
                Entry::Vacant(entry) => {
                    entry.insert(Some(id.to_vec()));
                }
                // One path with two ids was two files, and a mapping does not tell which.
                Entry::Occupied(mut entry) => {
                    if entry.get().as_deref() != Some(id) {
                        entry.insert(None);
                    }
                }
            }
        }
        BuildIds { by_path: known }
    }

    /// Returns the build id of a file.
    pub(crate) fn of(&self, path: &[u8]) -> Option<&[u8]> {
        self.by_path.get(path).and_then(Option::as_deref)
    }
}

/// Names functions of user space: by the files of the machine that reads the recording, where they are those that were
/// recorded.
#[derive(Debug)]
pub struct UserFunctions {
    binaries: Binaries,
    build_ids: BuildIds,
    /// By path and reason, in how many places nothing has a name.
    without: BTreeMap<(Vec<u8>, MissingReason), u64>,
}

impl UserFunctions {
    pub(crate) fn new(binaries: Binaries, build_ids: BuildIds) -> UserFunctions {
        UserFunctions {
            binaries,
            build_ids,
            without: BTreeMap::new(),
        }
    }

    /// Returns the files in which places have no name, and why: those with the most places first.
    pub fn without_names(&self) -> Vec<(String, MissingReason, u64)> {
        let all = self.without.iter().map(|((path, why), places)| {
            let path = String::from_utf8_lossy(path).into_owned();
            (path, *why, *places)
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

impl UserNames for UserFunctions {
    fn names(
        &mut self,
        file: &[u8],
        build_id: Option<&[u8]>,
        offset: u64,
        names: &mut Vec<String>,
    ) {
        let known = self.build_ids.of(file);
        match self.binaries.names(file, build_id.or(known), offset) {
            Ok(found) => names.extend(found),
            Err(why) => {
                let key = (file.to_vec(), why);
                let full = self.without.len() >= MAX_FILES;
                if !full || self.without.contains_key(&key) {
                    *self.without.entry(key).or_default() += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_two_build_ids_has_none() {
        let binaries = Binaries::new(binaries::SearchOptions {
            own_paths: true,
            ..binaries::SearchOptions::default()
        });
        let ids: [(&[u8], &[u8]); 4] = [
            (b"/nowhere/a", &[1; 20]),
            (b"/nowhere/b", &[1; 20]),
            (b"/nowhere/a", &[1; 20]),
            (b"/nowhere/b", &[2; 20]),
        ];
        let mut functions = UserFunctions::new(binaries, BuildIds::new(ids.into_iter()));
        let mut names = Vec::new();
        for (file, id) in [
            (&b"/nowhere/a"[..], None),
            (b"/nowhere/b", None),
            (b"/nowhere/b", None),
            (b"/nowhere/b", Some(&[3; 20][..])),
        ] {
            functions.names(file, id, 0x1000, &mut names);
        }
        assert!(names.is_empty());
        let expected = [
            ("/nowhere/b".to_owned(), MissingReason::NoBuildId, 2),
            ("/nowhere/a".to_owned(), MissingReason::NoFile, 1),
            ("/nowhere/b".to_owned(), MissingReason::NoFile, 1),
        ];
        assert_eq!(functions.without_names(), expected);
    }
}
