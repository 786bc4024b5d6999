//! What is known of a virtqueue or of the device that it belongs to.

use model::GuestAccess;

/// Which events a row is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VirtqueueSource {
    /// The guest's driver: functions of `drivers/virtio/virtio_ring.c`, and the device's interrupts.
    Driver,
    /// Frames of a network interface, in the guest or of a tap device of the host.
    Frames,
    /// Requests to a block device of the guest.
    Requests,
    /// Writes of a notification register, as the host sees them.
    Notifications,
    /// A thread of the host that works on the queues: a vhost worker or one of the VMM's.
    BackEnd,
}

impl VirtqueueSource {
    /// Returns its name in tables and documents.
    pub fn name(self) -> &'static str {
        match self {
            VirtqueueSource::Driver => "driver",
            VirtqueueSource::Frames => "frames",
            VirtqueueSource::Requests => "requests",
            VirtqueueSource::Notifications => "notifications",
            VirtqueueSource::BackEnd => "back end",
        }
    }
}

/// Whose row it is: the machine it was seen on, the thread where that says which VM it is, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueKey {
    pub machine: u16,
    pub source: VirtqueueSource,
    pub tid: Option<i32>,
    pub device: String,
    pub queue: Option<String>,
}

impl QueueKey {
    /// Returns the one of a device that is of no single thread.
    pub(super) fn of(
        machine: u16,
        source: VirtqueueSource,
        device: String,
        queue: Option<String>,
    ) -> QueueKey {
        QueueKey {
            machine,
            source,
            tid: None,
            device,
            queue,
        }
    }
}

/// A register that was written, by which thread, and the queue that the value may be.
pub(super) type WriteKey = (i32, GuestAccess, Option<u64>);

/// A row of notifications: the VM's place, the register, and the queue.
pub(super) type WrittenQueue = (Option<usize>, String, Option<u64>);

/// Of what a row is made: what its events have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowParts {
    /// Events of one device and queue.
    Queue(QueueKey),
    /// Writes of a register, by threads and values, and whether KVM looked at the address alone.
    Writes(Vec<(WriteKey, bool)>),
}

/// What went one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VirtqueueTraffic {
    /// Frames, or requests.
    pub count: u64,
    /// Their bytes; `None` where no event says how many there are.
    pub bytes: Option<u64>,
}

impl VirtqueueTraffic {
    pub(super) fn add(&mut self, bytes: Option<u64>) {
        self.count += 1;
        if let Some(bytes) = bytes {
            self.bytes = Some(self.bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
}

/// A virtqueue, or a device of which the recording does not separate the queues. What is `None` the recording does
/// not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtqueueRow {
    /// The VM, as a place in the list of them ([`model::Machine::vms`]).
    pub vm: Option<usize>,
    /// Whether it was seen inside the guest.
    pub inside: bool,
    /// Of which events it is made.
    pub source: VirtqueueSource,
    /// The device: `virtio0`, `tap0`, `254:0`, a register, or a thread of the back end.
    pub device: String,
    /// The queue: the driver's name of it, or its number.
    pub queue: Option<String>,
    /// Buffers that the driver added to the queue, or requests that were issued.
    pub added: Option<u64>,
    /// Buffers that came back used, or requests that were completed.
    pub used: Option<u64>,
    /// How often the guest notified the device.
    pub notifications: Option<u64>,
    /// How often the device interrupted the guest.
    pub interrupts: Option<u64>,
    /// What the guest sent or wrote.
    pub sent: Option<VirtqueueTraffic>,
    /// What the guest received or read.
    pub received: Option<VirtqueueTraffic>,
    /// From the first to the last event of virtqueues that its recording has, in the recording's unit of time.
    pub span: u64,
    pub(super) parts: RowParts,
}

impl VirtqueueRow {
    /// Returns a row of a source that the host has, made of this, with nothing known.
    pub(super) fn of(source: VirtqueueSource, parts: RowParts) -> VirtqueueRow {
        VirtqueueRow {
            vm: None,
            inside: false,
            source,
            device: String::new(),
            queue: None,
            added: None,
            used: None,
            notifications: None,
            interrupts: None,
            sent: None,
            received: None,
            span: 0,
            parts,
        }
    }

    /// Returns how many buffers were added for each notification, where both are known of the same queue.
    pub fn added_per_notification(&self) -> Option<f64> {
        let notifications = self.notifications.filter(|count| *count > 0)?;
        Some(self.added? as f64 / notifications as f64)
    }
}

/// The virtqueues of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VirtqueuesReport {
    /// By VM, the guest's side first, then by source, device and queue.
    pub rows: Vec<VirtqueueRow>,
    /// Kinds of rows of which the host's recording, or that of a guest alone, has no events.
    pub missing: Vec<VirtqueueSource>,
    /// Events of more devices and queues than are kept.
    pub beyond: u64,
    /// Returns of the driver's functions whose calls are not known, or not the last ones of their thread.
    pub unpaired: u64,
    /// Interfaces of a host that are not taken for a VM's: none is a tap device.
    pub other_interfaces: u64,
    /// Whether any event was recorded that says something of virtqueues.
    pub recorded: bool,
}
