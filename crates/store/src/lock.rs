//! Who may change a store: any number of writers at once, or one that compacts it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::StoreError;

/// A store that is being changed, until this goes.
#[derive(Debug)]
pub(crate) struct StoreLock(#[allow(dead_code, reason = "what is open is locked")] File);

impl StoreLock {
    /// Waits until nobody compacts the store.
    pub(crate) fn shared(store: &Path) -> Result<StoreLock, StoreError> {
        StoreLock::of(store, FlockOperation::LockShared)
    }

    /// Waits until nobody else changes it.
    pub(crate) fn alone(store: &Path) -> Result<StoreLock, StoreError> {
        StoreLock::of(store, FlockOperation::LockExclusive)
    }

    fn of(store: &Path, how: FlockOperation) -> Result<StoreLock, StoreError> {
        let folder = File::open(store).map_err(StoreError::file(store))?;
        // A file system without locks has one writer, or nobody who compacts.
        let _ = flock(&folder, how);
        Ok(StoreLock(folder))
    }
}
