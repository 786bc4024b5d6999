//! Tracks: made when something stands on them for the first time.

use model::{Machine, RetiredThreads};
use paths::Paths;
use rustc_hash::FxHashMap;

use super::numbers::{packet, track};
use super::packets::{Packets, shown};
use super::rates::Rate;
use crate::known::{FirstWalk, VcpuName};

/// The tracks of a vCPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct VcpuTracks {
    /// Its states.
    pub states: u64,
    /// How often it exits.
    pub exits: Rate,
    /// How long it was polled for.
    pub polls: Rate,
    /// Position of its VM, if known.
    pub vm: Option<usize>,
}

/// All tracks.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    last: u64,
    vms: FxHashMap<Option<usize>, (u64, Rate)>,
    vcpus: FxHashMap<(Option<usize>, u32, i32), VcpuTracks>,
    /// By slot of the thread.
    threads: FxHashMap<u32, u64>,
    /// What others are below.
    groups: FxHashMap<&'static str, u64>,
}

/// What a track is, beside its name.
#[derive(Debug, Clone, Copy)]
enum TrackKind {
    Plain,
    /// Children stand by their rank.
    Ordered,
    Ranked(i64),
    Process(i32),
    Thread {
        pid: i32,
        tid: i32,
    },
    /// A counter, in this unit; durations where there is none.
    Counter(Option<&'static str>),
}

impl Tracks {
    /// Makes a track.
    fn make(
        &mut self,
        parent: Option<u64>,
        name: &str,
        what: TrackKind,
        packets: &mut Packets,
    ) -> u64 {
        self.last += 1;
        let uuid = self.last;
        let name = shown(name);
        packets.packet(|one| {
            one.message(packet::TRACK_DESCRIPTOR, |one| {
                one.uint(track::UUID, uuid);
                if !matches!(what, TrackKind::Thread { .. }) {
                    one.bytes(track::NAME, name.as_bytes());
                }
                if let Some(parent) = parent {
                    one.uint(track::PARENT_UUID, parent);
                }
                match what {
                    TrackKind::Plain => {}
                    TrackKind::Ordered => one.uint(track::CHILD_ORDERING, track::EXPLICIT),
                    TrackKind::Ranked(rank) => one.int(track::SIBLING_ORDER_RANK, rank),
                    TrackKind::Process(pid) => {
                        one.message(track::PROCESS, |one| {
                            one.int(track::PROCESS_PID, i64::from(pid));
                            one.bytes(track::PROCESS_NAME, name.as_bytes());
                        });
                        one.uint(track::CHILD_ORDERING, track::EXPLICIT);
                    }
                    TrackKind::Thread { pid, tid } => one.message(track::THREAD, |one| {
                        one.int(track::THREAD_PID, i64::from(pid));
                        one.int(track::THREAD_TID, i64::from(tid));
                        one.bytes(track::THREAD_NAME, name.as_bytes());
                    }),
                    TrackKind::Counter(unit) => one.message(track::COUNTER, |one| match unit {
                        Some(unit) => one.bytes(track::COUNTER_UNIT_NAME, unit.as_bytes()),
                        None => one.uint(track::COUNTER_UNIT, track::TIME_NS),
                    }),
                }
            });
        });
        uuid
    }

    /// Returns the track that others are below.
    pub(super) fn group(&mut self, name: &'static str, packets: &mut Packets) -> u64 {
        if let Some(uuid) = self.groups.get(name) {
            return *uuid;
        }
        let uuid = self.make(None, name, TrackKind::Plain, packets);
        self.groups.insert(name, uuid);
        uuid
    }

    /// Makes a track below another.
    pub(super) fn below(&mut self, parent: u64, name: &str, packets: &mut Packets) -> u64 {
        self.make(Some(parent), name, TrackKind::Plain, packets)
    }

    /// Returns the track of a VM, and how often its vCPUs exit.
    pub(super) fn vm(
        &mut self,
        vm: Option<usize>,
        known: &FirstWalk<'_>,
        packets: &mut Packets,
    ) -> &mut (u64, Rate) {
        if !self.vms.contains_key(&vm) {
            let uuid = match vm.and_then(|vm| known.vm(vm)) {
                Some((vm, name)) => {
                    let what = vm.pid.map_or(TrackKind::Ordered, TrackKind::Process);
                    let name = match (&vm.name, vm.guessed) {
                        (_, true) => format!("{name} (a guess)"),
                        (Some(_), false) => format!("VM {name}"),
                        (None, false) => name.to_string(),
                    };
                    self.make(None, &name, what, packets)
                }
                None => self.make(None, "vCPUs of no known VM", TrackKind::Ordered, packets),
            };
            let unit = TrackKind::Counter(Some("exits/s"));
            let exits = self.make(Some(uuid), "exits per second", unit, packets);
            self.vms.insert(vm, (uuid, Rate::new(exits)));
        }
        self.vms.entry(vm).or_insert((0, Rate::new(0)))
    }

    /// Returns the tracks of a vCPU.
    pub(super) fn vcpu(
        &mut self,
        name: &VcpuName,
        known: &FirstWalk<'_>,
        packets: &mut Packets,
    ) -> &mut VcpuTracks {
        let key = (name.vm, name.number, name.tid);
        if !self.vcpus.contains_key(&key) {
            let (vm, _) = *self.vm(name.vm, known, packets);
            let called = match name.vm {
                Some(_) => format!("vCPU {}", name.number),
                None => format!("vCPU of thread {}", name.tid),
            };
            let rank = TrackKind::Ranked(i64::from(name.number).saturating_add(1));
            let states = self.make(Some(vm), &called, rank, packets);
            let unit = TrackKind::Counter(Some("exits/s"));
            let exits = self.make(Some(states), "exits per second", unit, packets);
            let polls = self.make(
                Some(states),
                "halt polling",
                TrackKind::Counter(None),
                packets,
            );
            let tracks = VcpuTracks {
                states,
                exits: Rate::new(exits),
                polls: Rate::new(polls),
                vm: name.vm,
            };
            self.vcpus.insert(key, tracks);
        }
        self.vcpus.entry(key).or_insert(VcpuTracks {
            states: 0,
            exits: Rate::new(0),
            polls: Rate::new(0),
            vm: None,
        })
    }

    /// Returns the track of a thread: Perfetto's own where its process is known.
    pub(super) fn thread(&mut self, slot: u32, machine: &Machine, packets: &mut Packets) -> u64 {
        if let Some(uuid) = self.threads.get(&slot) {
            return *uuid;
        }
        let known = machine.threads().at(slot).and_then(|(tid, thread)| {
            let pid = thread.pid.filter(|_| tid > 0)?;
            Some((tid, pid, thread.comm.clone()))
        });
        let uuid = match known {
            Some((tid, pid, comm)) => {
                let what = TrackKind::Thread { pid, tid };
                self.make(None, comm.as_deref().unwrap_or_default(), what, packets)
            }
            None => {
                let group = self.group("threads of no known process", packets);
                self.below(group, &Paths::task_name(machine, slot), packets)
            }
        };
        self.threads.insert(slot, uuid);
        uuid
    }

    /// Forgets threads of which no more is kept. Returns the tracks of the vCPUs among them, in the order in which they
    /// were made.
    pub(super) fn retire(&mut self, retired: &RetiredThreads) -> Vec<VcpuTracks> {
        for slot in retired.slots() {
            self.threads.remove(&slot);
        }
        let past = self
            .vcpus
            .extract_if(|(_, _, tid), _| retired.has_tid(*tid));
        let mut past: Vec<VcpuTracks> = past.map(|(_, tracks)| tracks).collect();
        past.sort_by_key(|vcpu| vcpu.states);
        past
    }

    /// Returns all counters of exits and of polling.
    pub(super) fn counters(&mut self) -> (Vec<&mut Rate>, Vec<&mut Rate>) {
        let mut exits: Vec<&mut Rate> = self.vms.values_mut().map(|(_, rate)| rate).collect();
        let mut polls = Vec::new();
        for vcpu in self.vcpus.values_mut() {
            exits.push(&mut vcpu.exits);
            polls.push(&mut vcpu.polls);
        }
        // The tables are in no order.
        exits.sort_by_key(|rate| rate.track);
        polls.sort_by_key(|rate| rate.track);
        (exits, polls)
    }
}
