//! Names of user space's functions.

use rustc_hash::FxHashMap;
use symbols::{FileId, Files, UserNames};

/// Returns the names of the functions at places in files, by the places' numbers: outermost first, what was inlined
/// behind what it was put into. A place that nothing names is not there.
pub(super) fn user_names(
    places: impl Iterator<Item = (u32, FileId, u64)>,
    files: &Files,
    user: &mut dyn UserNames,
) -> FxHashMap<u32, Vec<String>> {
    let mut places: Vec<(u32, FileId, u64)> = places.collect();
    // Few files are open at a time.
    places.sort_by_key(|(_, file, offset)| (file.index(), *offset));
    let mut found = FxHashMap::default();
    let mut names = Vec::new();
    for (number, file, offset) in places {
        user.names(files.name(file), files.build_id(file), offset, &mut names);
        if !names.is_empty() {
            found.insert(number, names.drain(..).rev().collect());
        }
    }
    found
}
