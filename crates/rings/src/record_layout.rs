//! Where the kernel's records have what they hold, as [`crate::RingAttr::each`] and the events of rings ask for it
//! (`include/uapi/linux/perf_event.h`).

/// `PERF_RECORD_*`: what a record is.
pub mod record_type {
    /// A thread's name.
    pub const COMM: u32 = 3;
    /// A thread begins.
    pub const FORK: u32 = 7;
    /// An event.
    pub const SAMPLE: u32 = 9;
    /// How many samples found no room in a ring.
    pub const LOST_SAMPLES: u32 = 13;
}

/// Where a record's size stands, two bytes.
pub const SIZE_PLACE: usize = 6;

/// Where the time stands in a record that is no sample, from its end: thread, time, CPU and id are last.
pub const TIME_FROM_END: usize = 24;

/// Where a sample has what it holds.
pub mod sample_place {
    /// The id of its event.
    pub const ID: usize = 8;
    /// Process and thread.
    pub const THREAD: usize = 16;
    /// When.
    pub const TIME: usize = 24;
    /// On which CPU.
    pub const CPU: usize = 32;
    /// Bytes of the record of its event, which follows: with them a multiple of 8.
    pub const RAW_SIZE: usize = 40;
    /// That record.
    pub const RAW: usize = 44;
}
