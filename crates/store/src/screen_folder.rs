//! Folders that are no store: of a store that no machine reads alone, a job writes the rows that the screen of
//! `trapline fleet` is made of (`fleet/spark/screen.py`), laid out as the store is.

use std::path::Path;

use crate::StoreError;

/// The file that says that a folder is such a one.
const MARK: &str = "fleet-screen.json";

/// Fails where a folder has what the screen is made of alone: its sums and lists are not the store's, so that nothing
/// else can be asked of it, put into it, or checked.
///
/// # Errors
///
/// It is such a folder.
pub fn refuse_screen(folder: &Path) -> Result<(), StoreError> {
    match folder.join(MARK).exists() {
        true => Err(StoreError::Screen {
            path: folder.to_owned(),
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, compact, forget_detail};

    #[test]
    fn what_the_screen_is_made_of_is_no_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert!(refuse_screen(folder).is_ok());
        assert!(check(folder, "2026-11-23").is_ok());
        std::fs::write(folder.join(MARK), "{}").expect("written");
        let said = refuse_screen(folder).expect_err("refused").to_string();
        assert!(said.contains("nothing else"), "{said}");
        assert!(matches!(
            check(folder, "2026-11-23"),
            Err(StoreError::Screen { .. })
        ));
        assert!(matches!(
            compact(folder, "0"),
            Err(StoreError::Screen { .. })
        ));
        assert!(matches!(
            forget_detail(folder, "2026-11-23"),
            Err(StoreError::Screen { .. })
        ));
    }
}
