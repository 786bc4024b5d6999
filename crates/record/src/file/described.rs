//! An event, as a file describes it.

/// An event of a file.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its name, as `kvm:kvm_exit`.
    pub name: String,
    /// Its `perf_event_attr`.
    pub attr: [u8; rings::SIZE],
    /// The ids that its records carry.
    pub ids: Vec<u64>,
}
