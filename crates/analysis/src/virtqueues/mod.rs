//! What went through a VM's virtqueues: buffers, notifications, interrupts, frames and bytes, by device and queue.
//!
//! A guest's driver adds buffers to a queue, notifies the device, and takes the used ones back; the device's back
//! end interrupts the guest (Virtio specification 1.2, section 2.6). Each is seen elsewhere: inside the guest the
//! driver's functions, interrupts, frames of interfaces and requests to disks; outside writes of notification
//! registers, the back end's threads, and frames of tap devices. A row has no number of another place.
//!
//! Bytes are those of frames and of requests, not of the ring: the ring's have virtio's headers too.

mod cell;
mod device_names;
mod fields;
mod none;
mod report;
mod row;

use std::collections::{BTreeMap, BTreeSet};

use event::{Data, Event, EventType, Isa, MmioAccess, index_of};
use model::GuestAccess;
use rustc_hash::FxHashMap;

use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, Context, EventAccount, EventDetail, FilterScope,
    GuestEvent, Needs, WalkState,
};

pub use cell::{CountedBuffers, VirtqueueColumn};
pub use row::{VirtqueueRow, VirtqueueSource, VirtqueueTraffic, VirtqueuesReport};

use cell::{CountedList, CountedPart};
use device_names::{is_tap, isa_of, of_handler};
use row::{QueueKey, WriteKey};

use fields::{BackEndFields, CountedAlike, DriverCall, QueueFields, text, used_at_once};

/// Devices and queues that are kept, and writes by address.
const MAX_ROWS: usize = 1 << 12;
/// Threads whose calls are followed.
const MAX_CALLS: usize = 1 << 12;
/// A queue's number in a notification is below this; other values are not one of a queue.
const MAX_QUEUE: u64 = 1 << 10;

/// What was counted of it.
#[derive(Debug, Clone, Default)]
struct QueueSums {
    added: Option<u64>,
    used: Option<u64>,
    notifications: Option<u64>,
    interrupts: Option<u64>,
    sent: Option<VirtqueueTraffic>,
    received: Option<VirtqueueTraffic>,
    /// Of completions, which count where no issues were recorded.
    completed: [Option<VirtqueueTraffic>; 2],
    /// The thread that last brought a frame of it, which works for the VM.
    brought_by: Option<i32>,
}

fn more(sum: &mut Option<u64>, count: u64) {
    *sum = Some(sum.unwrap_or(0).saturating_add(count));
}

/// A call of the driver's that has not returned.
#[derive(Debug, Clone)]
struct OpenCall {
    key: QueueKey,
    depth: u8,
}

/// Where an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuePlace {
    /// In a row, or in a register's writes.
    Row,
    /// It moved nothing through a queue: reads, the loopback interface, frames that were refused, or calls whose
    /// return will be counted.
    Aside,
    /// With what is beyond the rows.
    Beyond,
    /// With the returns of calls that the recording does not have.
    Unpaired,
}

/// Counts what went through virtqueues.
#[derive(Debug, Default)]
pub struct Virtqueues {
    kinds: Vec<Option<(u16, QueueFields)>>,
    rows: BTreeMap<QueueKey, QueueSums>,
    writes: FxHashMap<(WriteKey, bool), u64>,
    calls: FxHashMap<(u16, i32), OpenCall>,
    /// A vCPU's thread of each guest whose recording is there, by the guest's machine.
    guests: FxHashMap<u16, i32>,
    /// The first and the last event of each machine.
    spans: FxHashMap<u16, (u64, u64)>,
    /// Of which kinds of rows the leading recording has events.
    sources: BTreeSet<VirtqueueSource>,
    /// What was recorded of a machine, so that a device without it had none.
    alike: BTreeSet<(u16, CountedAlike)>,
    counted: CountedList,
    beyond: u64,
    unpaired: u64,
    /// Events of the leading recording, and the types of which they are.
    taken: u64,
    types: Vec<u32>,
    recorded: bool,
    issues: bool,
    isa: Option<Isa>,
}

impl Virtqueues {
    /// Returns one that has seen nothing. `guests` are the machines of guests' recordings, each with the thread of
    /// one of its vCPUs.
    pub fn new(guests: impl IntoIterator<Item = (u16, i32)>) -> Virtqueues {
        Virtqueues {
            guests: guests.into_iter().collect(),
            ..Virtqueues::default()
        }
    }

    /// Keeps what events are counted as, for [`Virtqueues::take_counted`].
    pub fn list(&mut self) {
        self.counted.begin();
    }

    /// Returns what events were counted as since this was asked last.
    pub fn take_counted(&mut self) -> Vec<CountedBuffers> {
        self.counted.take()
    }

    /// Says what an event counts as, where it has a row.
    fn note(&mut self, key: &QueueKey, column: VirtqueueColumn, count: u64) {
        if self.has_row(key) {
            let part = || CountedPart::Queue(key.clone());
            self.counted.add(column, (count, None), part);
        }
    }

    /// Says that it counts as a frame or request of so many bytes.
    fn note_transfer(&mut self, key: &QueueKey, sends: bool, bytes: Option<u64>) {
        let column = match sends {
            true => VirtqueueColumn::Sent,
            false => VirtqueueColumn::Received,
        };
        if self.has_row(key) {
            let part = || CountedPart::Queue(key.clone());
            self.counted.add(column, (1, bytes), part);
        }
    }

    /// Returns whether there is a row, or room for one.
    fn has_row(&self, key: &QueueKey) -> bool {
        self.rows.len() < MAX_ROWS || self.rows.contains_key(key)
    }

    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        if ty.machine == 0 {
            self.isa = self.isa.or(isa_of(ty.name));
        }
        let fields = QueueFields::of(ty);
        let wanted = fields.is_some();
        self.recorded |= wanted && ty.recorded;
        if let Some(fields) = fields.as_ref().filter(|_| ty.recorded && ty.machine == 0) {
            self.sources.insert(fields.source());
            self.types.push(ty.index);
        }
        if let Some(QueueFields::Block { issues: true, .. }) = fields {
            self.issues |= ty.recorded;
        }
        let alike = fields.as_ref().and_then(QueueFields::counted_alike);
        if let Some(alike) = alike.filter(|_| ty.recorded) {
            self.alike.insert((ty.machine, alike));
        }
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, || None);
        }
        self.kinds[index] = fields.map(|fields| (ty.machine, fields));
        wanted
    }

    fn sums(&mut self, key: QueueKey) -> Option<&mut QueueSums> {
        self.has_row(&key)
            .then(|| self.rows.entry(key).or_default())
    }

    /// Counts in a row, where there is one.
    fn in_row(&mut self, key: QueueKey, count: impl FnOnce(&mut QueueSums)) -> QueuePlace {
        match self.sums(key) {
            Some(sums) => {
                count(sums);
                QueuePlace::Row
            }
            None => QueuePlace::Beyond,
        }
    }

    fn wrote(
        &mut self,
        tid: i32,
        access: GuestAccess,
        value: Option<u64>,
        fast: bool,
    ) -> QueuePlace {
        let queue = value.filter(|value| *value < MAX_QUEUE);
        let key = ((tid, access, queue), fast);
        if self.writes.len() >= MAX_ROWS && !self.writes.contains_key(&key) {
            return QueuePlace::Beyond;
        }
        *self.writes.entry(key).or_default() += 1;
        let part = || CountedPart::Write(key.0, fast);
        self.counted
            .add(VirtqueueColumn::Notifications, (1, None), part);
        QueuePlace::Row
    }

    fn take(&mut self, event: &Event<'_>, data: &Data) {
        let index = index_of(event.ty.index);
        let Some(kind) = self.kinds.get_mut(index) else {
            return;
        };
        // The fields go back behind it: what they lead to changes the sums.
        let Some((machine, fields)) = kind.take() else {
            return;
        };
        let (from, to) = self
            .spans
            .entry(machine)
            .or_insert((event.time, event.time));
        (*from, *to) = (event.time.min(*from), event.time.max(*to));
        if let Some(alike) = fields.counted_alike() {
            self.alike.insert((machine, alike));
        }
        match self.count(machine, &fields, event, data) {
            QueuePlace::Row | QueuePlace::Aside => {}
            QueuePlace::Beyond => self.beyond += 1,
            QueuePlace::Unpaired => self.unpaired += 1,
        }
        self.taken += u64::from(machine == 0);
        if let Some(kind) = self.kinds.get_mut(index) {
            *kind = Some((machine, fields));
        }
    }

    fn count(
        &mut self,
        machine: u16,
        fields: &QueueFields,
        event: &Event<'_>,
        data: &Data,
    ) -> QueuePlace {
        let key = |source, device, queue| QueueKey::of(machine, source, device, queue);
        match fields {
            QueueFields::Write => match data {
                Data::KvmMmio(mmio) if mmio.access == MmioAccess::Write => {
                    let access = GuestAccess::Mmio {
                        gpa: mmio.gpa,
                        write: true,
                    };
                    self.wrote(event.tid, access, Some(mmio.value), false)
                }
                Data::KvmPio(pio) if pio.write => {
                    let access = GuestAccess::Port {
                        port: pio.port,
                        write: true,
                    };
                    self.wrote(event.tid, access, pio.value.map(u64::from), false)
                }
                _ => QueuePlace::Aside,
            },
            QueueFields::FastMmio(address) => match address.number(event, data) {
                Some(gpa) => {
                    let access = GuestAccess::Mmio { gpa, write: true };
                    self.wrote(event.tid, access, None, true)
                }
                None => QueuePlace::Aside,
            },
            QueueFields::Frame { .. } | QueueFields::Block { .. } => {
                self.transfer(machine, fields, event, data)
            }
            QueueFields::Handler(name) => {
                let name = text(name, event, data);
                let Some((device, queue)) = name.as_deref().and_then(of_handler) else {
                    return QueuePlace::Aside;
                };
                let key = key(VirtqueueSource::Driver, device, queue);
                self.note(&key, VirtqueueColumn::Interrupts, 1);
                self.in_row(key, |sums| more(&mut sums.interrupts, 1))
            }
            QueueFields::Driver(fields) if fields.call == DriverCall::Took => {
                self.took((machine, event.tid), fields.took(event, data))
            }
            QueueFields::Driver(fields) => {
                let (device, queue) = fields.queue(event, data);
                let key = key(VirtqueueSource::Driver, device, queue);
                match fields.call {
                    DriverCall::Takes => self.takes((machine, event.tid), key),
                    call => {
                        let adds = call == DriverCall::Adds;
                        let column = match adds {
                            true => VirtqueueColumn::Added,
                            false => VirtqueueColumn::Notifications,
                        };
                        self.note(&key, column, 1);
                        self.in_row(key, |sums| match adds {
                            true => more(&mut sums.added, 1),
                            false => more(&mut sums.notifications, 1),
                        })
                    }
                }
            }
            QueueFields::BackEnd(fields) => self.back_end(machine, fields, event, data),
        }
    }

    /// A back end takes a frame, gives buffers back or interrupts the guest.
    fn back_end(
        &mut self,
        machine: u16,
        fields: &BackEndFields,
        event: &Event<'_>,
        data: &Data,
    ) -> QueuePlace {
        let queue = match fields {
            BackEndFields::Used { queue, .. } => queue.number(event, data),
            _ => None,
        };
        let queue = queue.map(|address| format!("{address:#x}"));
        let key = QueueKey {
            machine,
            source: VirtqueueSource::BackEnd,
            tid: Some(event.tid),
            device: String::new(),
            queue,
        };
        let used = match fields {
            BackEndFields::Used { count: None, .. } => Some(1),
            BackEndFields::Used {
                count: Some(count), ..
            } => {
                let [fourth, fifth] = count.as_ref();
                used_at_once(fourth.number(event, data), fifth.number(event, data))
            }
            _ => None,
        };
        let (column, count) = match fields {
            BackEndFields::Used { .. } => (VirtqueueColumn::Used, used.unwrap_or(0)),
            BackEndFields::Interrupts => (VirtqueueColumn::Interrupts, 1),
            BackEndFields::Takes => (VirtqueueColumn::Sent, 1),
        };
        self.note(&key, column, count);
        self.in_row(key, |sums| match fields {
            BackEndFields::Used { .. } => {
                if let Some(used) = used {
                    more(&mut sums.used, used);
                }
            }
            BackEndFields::Interrupts => more(&mut sums.interrupts, 1),
            BackEndFields::Takes => sums.sent.get_or_insert_default().add(None),
        })
    }

    /// A frame or a request goes one way.
    fn transfer(
        &mut self,
        machine: u16,
        fields: &QueueFields,
        event: &Event<'_>,
        data: &Data,
    ) -> QueuePlace {
        let key = |source, device| QueueKey::of(machine, source, device, None);
        match fields {
            QueueFields::Frame {
                sends,
                interface,
                bytes,
                refused,
            } => {
                let Some(interface) = text(interface, event, data) else {
                    return QueuePlace::Aside;
                };
                if interface == "lo" || refused.number(event, data).is_some_and(|rc| rc != 0) {
                    return QueuePlace::Aside;
                }
                let bytes = bytes.number(event, data);
                // What a tap device sends the guest receives.
                let to_guest = *sends == is_tap(&interface);
                let tid = event.tid;
                let key = key(VirtqueueSource::Frames, interface);
                self.note_transfer(&key, !to_guest, bytes);
                self.in_row(key, |sums| {
                    let way = match to_guest {
                        true => &mut sums.received,
                        false => {
                            sums.brought_by = Some(tid);
                            &mut sums.sent
                        }
                    };
                    way.get_or_insert_default().add(bytes);
                })
            }
            QueueFields::Block { issues, fields } => {
                let Some(request) = fields.read(event, data) else {
                    return QueuePlace::Aside;
                };
                let device = format!("{}:{}", request.device.0, request.device.1);
                let key = key(VirtqueueSource::Requests, device);
                let column = match issues {
                    true => VirtqueueColumn::Added,
                    false => VirtqueueColumn::Used,
                };
                self.note(&key, column, 1);
                for (goes, sends) in [(request.writes, true), (request.reads, false)] {
                    // A request's bytes count once: when it is issued, if that is recorded.
                    if goes && *issues == self.issues {
                        self.note_transfer(&key, sends, request.bytes);
                    }
                }
                self.in_row(key, |sums| {
                    let [written, read] = &mut sums.completed;
                    let (count, written, read) = match issues {
                        true => (&mut sums.added, &mut sums.sent, &mut sums.received),
                        false => (&mut sums.used, written, read),
                    };
                    more(count, 1);
                    for (goes, way) in [(request.writes, written), (request.reads, read)] {
                        if goes {
                            way.get_or_insert_default().add(request.bytes);
                        }
                    }
                })
            }
            _ => QueuePlace::Aside,
        }
    }

    /// A used buffer is asked for. One of the two functions may call the other one.
    fn takes(&mut self, thread: (u16, i32), key: QueueKey) -> QueuePlace {
        let full = self.calls.len() >= MAX_CALLS;
        match self.calls.get_mut(&thread) {
            Some(call) if call.key == key && call.depth == 1 => call.depth = 2,
            Some(call) => *call = OpenCall { key, depth: 1 },
            None if full => return QueuePlace::Beyond,
            None => {
                self.calls.insert(thread, OpenCall { key, depth: 1 });
            }
        }
        QueuePlace::Aside
    }

    /// And that returns.
    fn took(&mut self, thread: (u16, i32), buffer: bool) -> QueuePlace {
        let Some(call) = self.calls.get_mut(&thread) else {
            return QueuePlace::Unpaired;
        };
        call.depth -= 1;
        if call.depth > 0 {
            return QueuePlace::Aside;
        }
        match self.calls.remove(&thread) {
            Some(call) => {
                self.note(&call.key, VirtqueueColumn::Used, u64::from(buffer));
                self.in_row(call.key, |sums| more(&mut sums.used, u64::from(buffer)))
            }
            None => QueuePlace::Unpaired,
        }
    }

    /// Returns the instruction set of the host, as far as its events show it: devices are named by it.
    pub fn isa(&self) -> Option<Isa> {
        self.isa
    }
}

impl Analysis for Virtqueues {
    fn needs(&self) -> Needs {
        Needs {
            vcpus: true,
            ..Needs::default()
        }
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Window)
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        vec![EventAccount {
            which: AccountedEvents::Types(self.types.clone()),
            name: "of virtqueues",
            of: AccountScope::Inside,
            events: self.taken,
        }]
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match self.learn(ty) {
            true => EventDetail::Thread,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.inside {
            if let Some(comm) = event.comm {
                context.machine.called(event.tid, comm);
            }
            self.take(event, data);
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.learn(ty)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
        if context.window.has_time(guest.event.time) {
            self.take(guest.event, guest.data);
        }
    }
}
