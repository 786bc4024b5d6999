//! Sums by device and by vCPU: what causes are looked for in, beside a path's own sums.
//!
//! A device is an address that a vCPU notifies, and the back end's thread that works for it. It is judged by itself,
//! over the time in which it is in use: one that is busy does not hide another, nor does a long recording.

use model::GuestAccess;
use rustc_hash::FxHashMap;
use stats::Stats;

use crate::tasks::TaskKind;

/// Rows of either kind, at most; what is beyond is not distinguished.
const MAX_ROWS: usize = 1024;

/// A device that was not notified for so long was not in use: then this much of the pause counts. Requests that come
/// every second are in use, and what is between one use and the next is not.
const PAUSE_NS: u64 = 1_000_000_000;

/// A device in use: an address that a vCPU notifies, and who works for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceUse {
    /// Slot of the back end's thread, and what it is.
    pub back_end: u32,
    pub what: TaskKind,
    /// From the notification to the back end's answer, or until it was done.
    pub answers: Stats,
    /// Totals: up to the guest's answer to it.
    pub loops: Stats,
    /// How many were seen at their work.
    pub worked: u64,
    /// How many the back end passed on.
    pub passed_on: u64,
    /// From when it went to sleep without an answer to the interrupt that was it.
    pub pending: Stats,
    /// Times of notifications, without their pauses.
    pub in_use_ns: u64,
    /// Time in which at least one notification had no answer yet.
    pub waited_ns: u64,
    first: u64,
    last: u64,
    /// When the last answer came.
    until: u64,
}

impl DeviceUse {
    fn add(&mut self, notified: &NotificationTimes) {
        let (from, to) = (notified.from, notified.to);
        self.loops.add(notified.end.saturating_sub(from));
        self.worked += u64::from(notified.worked);
        self.passed_on += u64::from(notified.passed_on);
        if let Some(ns) = notified.pending_ns {
            self.pending.add(ns);
        }
        if self.answers.count() == 0 {
            self.first = from;
            self.last = from;
            self.until = from;
        }
        self.answers.add(to.saturating_sub(from));
        // They come in the order of their ends, so what is before the last end is known at least in part: this is what
        // is new.
        let new = to.saturating_sub(from.max(self.until));
        self.waited_ns = self.waited_ns.saturating_add(new);
        self.in_use_ns += from.saturating_sub(self.last).min(PAUSE_NS);
        self.last = self.last.max(from);
        self.until = self.until.max(to);
    }

    /// Returns the time in which it was in use.
    pub(crate) fn in_use_ns(&self) -> u64 {
        // The last answer is awaited as well.
        self.in_use_ns
            .saturating_add(self.until.saturating_sub(self.last))
    }

    /// Returns when it was first notified, and when its last answer came.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.first, self.until)
    }
}

/// One notification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotificationTimes {
    /// When it was made.
    pub from: u64,
    /// When the back end answered it, or was done.
    pub to: u64,
    /// When the guest went on.
    pub end: u64,
    /// Whether the back end's work was seen.
    pub worked: bool,
    /// Whether the back end passed it on: to another thread, or to what it slept for until the answer.
    pub passed_on: bool,
    /// How long it was pending while the back end slept, if it was.
    pub pending_ns: Option<u64>,
}

/// All of one path.
#[derive(Debug, Default)]
pub(crate) struct DeviceUses {
    /// By the vCPU that notifies, the address if it is known, and the back end.
    pub devices: FxHashMap<(u32, Option<u64>, u32), DeviceUse>,
    /// By the vCPU that writes and the address: how many of its writes went to user space.
    pub to_user: FxHashMap<(u32, u64), u64>,
    /// By the vCPU that instances are about, and the access to the VMM that it was in or made most of meanwhile.
    pub met: FxHashMap<(u32, Option<GuestAccess>), AccessTotals>,
}

/// Instances about a vCPU that met the same access.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccessTotals {
    pub totals: Stats,
    /// The longest: what it took, and when it began.
    pub longest: (u64, u64),
}

impl DeviceUses {
    /// A device was notified, and its back end answered.
    pub(crate) fn device(
        &mut self,
        vcpu: u32,
        address: Option<u64>,
        back_end: (u32, TaskKind),
        notified: &NotificationTimes,
    ) {
        let key = (vcpu, address, back_end.0);
        if self.devices.len() >= MAX_ROWS && !self.devices.contains_key(&key) {
            return;
        }
        let one = self.devices.entry(key).or_default();
        (one.back_end, one.what) = back_end;
        one.add(notified);
    }

    /// A write went to user space.
    pub(crate) fn goes_to_user(&mut self, vcpu: u32, address: u64) {
        let key = (vcpu, address);
        if self.to_user.len() < MAX_ROWS || self.to_user.contains_key(&key) {
            *self.to_user.entry(key).or_default() += 1;
        }
    }

    /// An instance about a vCPU that began at some time took so long, and met an access.
    pub(crate) fn meets(&mut self, vcpu: u32, access: Option<GuestAccess>, begin: u64, ns: u64) {
        let key = (vcpu, access);
        if self.met.len() < MAX_ROWS || self.met.contains_key(&key) {
            let met = self.met.entry(key).or_default();
            if met.totals.count() == 0 || ns > met.longest.0 {
                met.longest = (ns, begin);
            }
            met.totals.add(ns);
        }
    }
}

/// A device in use, as [`crate::PathReport`] has it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceReport {
    /// Thread of the vCPU that notifies it.
    pub vcpu_tid: i32,
    /// The address that is written, if the recording has it.
    pub address: Option<u64>,
    /// What kind of thread works for it.
    pub what: TaskKind,
    /// That thread.
    pub back_end_tid: i32,
    /// Its name, if known.
    pub back_end: Option<String>,
    /// Whether it is of the vCPU's own process, where both are known.
    pub own_process: Option<bool>,
    /// From the notification to the answer, or until the back end was done.
    pub answers: Stats,
    /// From the notification until the guest went on.
    pub loops: Stats,
    /// How many of them were seen to do a device's work: a step `work`.
    pub worked: u64,
    /// How many of them the back end passed on: it woke another thread of its process (QEMU's `worker` threads do a
    /// disk's I/O), or the answer came after it had gone to sleep. A network card's packet is sent at once.
    pub passed_on: u64,
    /// Of those whose answer came after the back end had gone to sleep: from there to the interrupt.
    pub pending: Stats,
    /// Time in which a notification had no answer yet.
    pub waited_ns: u64,
    /// Time in which the device was in use: of a pause between two notifications at most a second counts.
    pub in_use_ns: u64,
    /// When it was first notified, and when its last answer came.
    pub span: (u64, u64),
    /// Writes of this vCPU to the address that went to user space instead.
    pub to_user: u64,
}

/// Instances about a vCPU that met accesses to its VMM, as [`crate::PathReport`] has them.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessReport {
    /// The vCPU's thread.
    pub vcpu_tid: i32,
    /// The access that the vCPU was in, or made most of meanwhile, and that its VMM handled; none if there was none.
    pub access: Option<GuestAccess>,
    /// Totals of these instances.
    pub totals: Stats,
    /// What the longest of them took, and when it began, in nanoseconds.
    pub longest: (u64, u64),
}
