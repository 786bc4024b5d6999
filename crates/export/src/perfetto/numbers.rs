//! Numbers of the messages' fields, from Perfetto's definitions (<https://github.com/google/perfetto>,
//! `protos/perfetto/trace`, as of its release 50), each list from the file that it names. `export/tests/perfetto` reads
//! traces by these definitions.

/// `trace.proto`.
pub(super) mod trace {
    pub(in crate::perfetto) const PACKET: u32 = 1;
}

/// `trace_packet.proto`.
pub(super) mod packet {
    pub(in crate::perfetto) const FTRACE_EVENTS: u32 = 1;
    pub(in crate::perfetto) const PROCESS_TREE: u32 = 2;
    pub(in crate::perfetto) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 8;
    pub(in crate::perfetto) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(in crate::perfetto) const TRACK_EVENT: u32 = 11;
    pub(in crate::perfetto) const INTERNED_DATA: u32 = 12;
    pub(in crate::perfetto) const SEQUENCE_FLAGS: u32 = 13;
    pub(in crate::perfetto) const SYSTEM_INFO: u32 = 45;
    pub(in crate::perfetto) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in crate::perfetto) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    /// `SEQ_INCREMENTAL_STATE_CLEARED`.
    pub(in crate::perfetto) const STATE_CLEARED: u64 = 1;
    /// `SEQ_NEEDS_INCREMENTAL_STATE`.
    pub(in crate::perfetto) const NEEDS_STATE: u64 = 2;
}

/// `clock_snapshot.proto` and `common/builtin_clock.proto`.
pub(super) mod clock {
    pub(in crate::perfetto) const CLOCKS: u32 = 1;
    pub(in crate::perfetto) const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub(in crate::perfetto) const CLOCK_ID: u32 = 1;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 2;
    /// `BUILTIN_CLOCK_BOOTTIME`: the clock of packets and of ftrace's events that name none.
    pub(in crate::perfetto) const BOOTTIME: u64 = 6;
}

/// `system_info.proto`.
pub(super) mod system {
    pub(in crate::perfetto) const UTSNAME: u32 = 1;
    pub(in crate::perfetto) const SYSNAME: u32 = 1;
    pub(in crate::perfetto) const RELEASE: u32 = 3;
    pub(in crate::perfetto) const MACHINE: u32 = 4;
}

/// `ps/process_tree.proto`.
pub(super) mod tree {
    pub(in crate::perfetto) const PROCESSES: u32 = 1;
    pub(in crate::perfetto) const THREADS: u32 = 2;
    pub(in crate::perfetto) const PROCESS_PID: u32 = 1;
    pub(in crate::perfetto) const PROCESS_CMDLINE: u32 = 3;
    pub(in crate::perfetto) const CMDLINE_IS_COMM: u32 = 9;
    pub(in crate::perfetto) const THREAD_TID: u32 = 1;
    pub(in crate::perfetto) const THREAD_NAME: u32 = 2;
    pub(in crate::perfetto) const THREAD_TGID: u32 = 3;
}

/// `track_event/track_descriptor.proto`, `process_descriptor.proto`, `thread_descriptor.proto`,
/// `counter_descriptor.proto`.
pub(super) mod track {
    pub(in crate::perfetto) const UUID: u32 = 1;
    pub(in crate::perfetto) const NAME: u32 = 2;
    pub(in crate::perfetto) const PROCESS: u32 = 3;
    pub(in crate::perfetto) const THREAD: u32 = 4;
    pub(in crate::perfetto) const PARENT_UUID: u32 = 5;
    pub(in crate::perfetto) const COUNTER: u32 = 8;
    pub(in crate::perfetto) const CHILD_ORDERING: u32 = 11;
    pub(in crate::perfetto) const SIBLING_ORDER_RANK: u32 = 12;
    /// `EXPLICIT`: children stand by their rank.
    pub(in crate::perfetto) const EXPLICIT: u64 = 3;
    pub(in crate::perfetto) const PROCESS_PID: u32 = 1;
    pub(in crate::perfetto) const PROCESS_NAME: u32 = 6;
    pub(in crate::perfetto) const THREAD_PID: u32 = 1;
    pub(in crate::perfetto) const THREAD_TID: u32 = 2;
    pub(in crate::perfetto) const THREAD_NAME: u32 = 5;
    pub(in crate::perfetto) const COUNTER_UNIT: u32 = 3;
    pub(in crate::perfetto) const COUNTER_UNIT_NAME: u32 = 6;
    /// `UNIT_TIME_NS`.
    pub(in crate::perfetto) const TIME_NS: u64 = 1;
}

/// `track_event/track_event.proto` and `debug_annotation.proto`.
pub(super) mod event {
    pub(in crate::perfetto) const CATEGORY_IIDS: u32 = 3;
    pub(in crate::perfetto) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in crate::perfetto) const TYPE: u32 = 9;
    pub(in crate::perfetto) const NAME_IID: u32 = 10;
    pub(in crate::perfetto) const TRACK_UUID: u32 = 11;
    pub(in crate::perfetto) const NAME: u32 = 23;
    pub(in crate::perfetto) const COUNTER_VALUE: u32 = 30;
    pub(in crate::perfetto) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(in crate::perfetto) const FLOW_IDS: u32 = 47;
    pub(in crate::perfetto) const TERMINATING_FLOW_IDS: u32 = 48;
    /// `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT`, `TYPE_COUNTER`.
    pub(in crate::perfetto) const SLICE_BEGIN: u64 = 1;
    pub(in crate::perfetto) const SLICE_END: u64 = 2;
    pub(in crate::perfetto) const INSTANT: u64 = 3;
    pub(in crate::perfetto) const COUNTER: u64 = 4;
    pub(in crate::perfetto) const ANNOTATION_NAME_IID: u32 = 1;
    pub(in crate::perfetto) const ANNOTATION_BOOL: u32 = 2;
    pub(in crate::perfetto) const ANNOTATION_UINT: u32 = 3;
    pub(in crate::perfetto) const ANNOTATION_INT: u32 = 4;
    pub(in crate::perfetto) const ANNOTATION_STRING: u32 = 6;
    pub(in crate::perfetto) const ANNOTATION_STRING_IID: u32 = 17;
}

/// `interned_data/interned_data.proto`: of each kind the list, and in it number and text, which have the same numbers
/// in all kinds.
pub(super) mod interned {
    pub(in crate::perfetto) const EVENT_CATEGORIES: u32 = 1;
    pub(in crate::perfetto) const EVENT_NAMES: u32 = 2;
    pub(in crate::perfetto) const ANNOTATION_NAMES: u32 = 3;
    pub(in crate::perfetto) const ANNOTATION_STRINGS: u32 = 29;
    pub(in crate::perfetto) const IID: u32 = 1;
    pub(in crate::perfetto) const TEXT: u32 = 2;
}

/// `ftrace/ftrace_event_bundle.proto`, `ftrace/ftrace_event.proto`, `ftrace/sched.proto`.
pub(super) mod ftrace {
    pub(in crate::perfetto) const CPU: u32 = 1;
    pub(in crate::perfetto) const EVENT: u32 = 2;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 1;
    pub(in crate::perfetto) const PID: u32 = 2;
    pub(in crate::perfetto) const SCHED_SWITCH: u32 = 4;
    pub(in crate::perfetto) const SCHED_WAKEUP: u32 = 17;
    pub(in crate::perfetto) const SCHED_WAKING: u32 = 20;
    pub(in crate::perfetto) const PREV_COMM: u32 = 1;
    pub(in crate::perfetto) const PREV_PID: u32 = 2;
    pub(in crate::perfetto) const PREV_STATE: u32 = 4;
    pub(in crate::perfetto) const NEXT_COMM: u32 = 5;
    pub(in crate::perfetto) const NEXT_PID: u32 = 6;
    pub(in crate::perfetto) const WOKEN_COMM: u32 = 1;
    pub(in crate::perfetto) const WOKEN_PID: u32 = 2;
    pub(in crate::perfetto) const TARGET_CPU: u32 = 5;
}
