//! An event, as a file describes it.

/// An event of a file.
#[derive(Debug, Clone)]
pub struct FileEvent {
    /// Its name, as `kvm:kvm_exit`.
    pub name: String,
    /// Its `perf_event_attr`.
    pub attr: [u8; rings::SIZE],
    /// The ids that its records carry.
    pub ids: Vec<u64>,
}

impl FileEvent {
    /// Returns what its samples hold ([`rings::sample`]): a word of its attribute.
    pub(crate) fn sample(&self) -> u64 {
        let word = self.attr.get(24..32).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }
}
