/*!
Traces for Perfetto (<https://ui.perfetto.dev>).

| track | contents |
| --- | --- |
| a process for each VM | its vCPUs and counters; where the process is not recorded, a track of that name |
| `vCPU N`, below it | a slice for each span of its states |
| `exits`, below a vCPU | a slice for each exit from `kvm_exit` to `kvm_entry`, named by reason and device |
| `guest`, below a vCPU | a slice for each task, interrupt, softirq, `idle` or `unknown` of its guest |
| `exits per second`, `halt polling` | counters of a vCPU and of a VM, in slices of time |
| `paths` | a track for each path, more where instances overlap: a slice for each instance and stage |
| threads | an instant for each step of an instance, and a flow from the instance through its steps |
| CPUs, states of threads | made by Perfetto of switches and wake-ups, which are written as ftrace's events |
| `lost events` | an instant where events were lost, and one at the end for what only the recorder's sum says |

- States have the names of the columns of `vcpus`, with `kernel_blocked` and `user_blocked` by themselves. Their
  arguments: `cpu`, `reason` of the exit, `device` in the VMM; of a wait for a CPU `behind` and `behind_tid`.
- Exits have `reason`, `access`, `device`, `waiting`, `user` (the VMM handled it) and `cpu`.
- A guest's slices have `what` (task, interrupt, ...) and the task's `tid` in the guest. An interrupt or softirq ends a
  task's slice, and another begins after it.
- Counters have slices of about a thousandth of the recording, at least 1 ms; polling is in nanoseconds.
- Instances have `instance` (the number in `paths --each`), `chain`, `by`, `vcpu`, `features`. A step in a guest is on
  the thread of its vCPU, with `guest`, the recording, and `guest_cpu`. Losses in a guest's recording have `guest` true.
*/

mod bundles;
mod causes;
mod guests;
mod instances;
mod lanes;
mod numbers;
mod packets;
mod rates;
mod tracks;

use std::cell::RefCell;

use analysis::SingleExit;
use model::{BySlot, Cause, RetiredThreads, Span, State};
use render::spans::state_name;

use crate::known::{Devices, FirstWalk, VcpuName};
use crate::lines::ExitAccesses;
use crate::walk::{ExportFile, ExportedThing, Scene};
use bundles::Bundles;
use causes::CauseTable;
use guests::GuestSlices;
use instances::InstanceSlices;
use lanes::Lanes;
use numbers::{clock, packet, system, tree};
use packets::{Arg, ArgList, PacketKind, PacketText, Packets, TrackEvent, shown};
use rates::Rate;
use tracks::Tracks;

/// Lanes of a vCPU's exits, at most.
const MAX_EXIT_LANES: usize = 8;
/// Processes and threads that a packet names.
const IN_A_PACKET: usize = 512;

/// What a recording says of its machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceMachine {
    /// Kernel release.
    pub kernel: Option<String>,
    /// Architecture as `uname -m` has it.
    pub arch: Option<String>,
    /// How many events were lost, as far as its recorder says.
    pub lost_events: u64,
}

/// Makes a trace for Perfetto.
#[derive(Debug)]
pub struct Perfetto {
    packets: Packets,
    tracks: Tracks,
    bundles: Bundles,
    guests: GuestSlices,
    instances: InstanceSlices,
    /// Lanes of exits, by vCPU.
    exits: BySlot<Lanes>,
    causes: ExitAccesses,
    /// What causes are called.
    names: CauseTable,
    devices: RefCell<Devices>,
    /// Length of a counter's slices of time.
    slice: u64,
    /// Exits that overlap too many others.
    unplaced: u64,
    /// Lost events without a recorded time, so far; and when the recording ends.
    lost: (u64, u64),
}

impl Perfetto {
    /// Returns a trace that has said what is known at the beginning: clock, machine, processes and threads with their
    /// names.
    pub fn new(known: &FirstWalk<'_>, about: &TraceMachine) -> Perfetto {
        let (begin, end) = known.observed();
        let mut packets = Packets::new();
        head(&mut packets, begin, about);
        processes(&mut packets, known);
        Perfetto {
            packets,
            tracks: Tracks::default(),
            bundles: Bundles::new(about.kernel.is_some()),
            guests: GuestSlices::default(),
            instances: InstanceSlices::default(),
            exits: BySlot::default(),
            causes: ExitAccesses::default(),
            names: CauseTable::default(),
            devices: RefCell::default(),
            slice: rates::length(end.saturating_sub(begin)),
            unplaced: 0,
            lost: (about.lost_events, end),
        }
    }

    fn span(&mut self, vcpu: &VcpuName, span: &Span, scene: &Scene<'_>) {
        self.causes.note(span);
        let state = scene.known.state(span);
        let mut args = ArgList::default();
        // Of all exits the slices of the exits say it.
        let in_user = matches!(state, State::User | State::UserBlocked);
        let cause = match in_user {
            true => span.cause,
            false => Cause {
                access: None,
                ..span.cause
            },
        };
        let cause = self.names.of(cause, &self.devices, scene.known);
        let behind = span
            .behind
            .and_then(|slot| scene.machine.threads().at(slot));
        if span.cpu >= 0 {
            args.push(("cpu", Arg::Int(i64::from(span.cpu))));
        }
        if let Some(reason) = &cause.reason {
            args.push(("reason", Arg::Name(PacketText::Numbered(reason))));
        }
        if let Some(device) = &cause.device {
            args.push(("device", Arg::Name(PacketText::Numbered(device))));
        }
        if let Some((tid, thread)) = behind {
            args.push(("behind_tid", Arg::Int(i64::from(tid))));
            if let Some(comm) = &thread.comm {
                args.push(("behind", Arg::Name(PacketText::Plain(comm))));
            }
        }
        let tracks = self.tracks.vcpu(vcpu, scene.known, &mut self.packets);
        let track = tracks.states;
        if state == State::Poll {
            let (rate, packets) = (&mut tracks.polls, &mut self.packets);
            let counter = rate.track;
            rate.stretch((span.start, span.end), self.slice, &mut |time, ns| {
                packets.event(&TrackEvent::new(time, counter, PacketKind::Count(ns)));
            });
        }
        self.packets.event(&TrackEvent {
            category: Some("state"),
            name: Some(PacketText::Ours(state_name(state))),
            args: &args,
            ..TrackEvent::new(span.start, track, PacketKind::Begin)
        });
        self.packets
            .event(&TrackEvent::new(span.end, track, PacketKind::End));
    }

    /// A vCPU left its guest: that counts.
    fn left(&mut self, name: &VcpuName, time: u64, scene: &Scene<'_>) {
        let (slice, packets) = (self.slice, &mut self.packets);
        let vcpu = self.tracks.vcpu(name, scene.known, packets);
        count(&mut vcpu.exits, time, slice, packets);
        let vm = vcpu.vm;
        let (_, rate) = self.tracks.vm(vm, scene.known, packets);
        count(rate, time, slice, packets);
    }

    fn exit(&mut self, (number, name): (u32, &VcpuName), exit: &SingleExit, scene: &Scene<'_>) {
        let cause = self.causes.of(number, exit);
        let names = self.names.of(cause, &self.devices, scene.known);
        let mut args = ArgList::default();
        for (name, text) in [
            ("reason", &names.reason),
            ("access", &names.access),
            ("device", &names.device),
        ] {
            if let Some(text) = text {
                args.push((name, Arg::Name(PacketText::Numbered(text))));
            }
        }
        args.push(("waiting", Arg::Flag(exit.reason.is_waiting())));
        if scene.known.seen().userspace_exits {
            args.push(("user", Arg::Flag(exit.user)));
        }
        if exit.cpu >= 0 {
            args.push(("cpu", Arg::Int(i64::from(exit.cpu))));
        }
        let (tracks, packets) = (&mut self.tracks, &mut self.packets);
        let parent = tracks.vcpu(name, scene.known, packets).states;
        let lanes = self.exits.entry(number, Lanes::default);
        let lane = lanes.place((exit.start, exit.end), MAX_EXIT_LANES, || {
            tracks.below(parent, "exits", packets)
        });
        let Some(track) = lane else {
            self.unplaced += 1;
            return;
        };
        self.packets.event(&TrackEvent {
            category: Some("exit"),
            name: Some(PacketText::Numbered(&names.title)),
            args: &args,
            ..TrackEvent::new(exit.start, track, PacketKind::Begin)
        });
        self.packets
            .event(&TrackEvent::new(exit.end, track, PacketKind::End));
    }

    fn lost(
        &mut self,
        time: u64,
        (cpu, guest): (i32, bool),
        count: Option<u64>,
        scene: &Scene<'_>,
    ) {
        // Where it is only noticed that some were lost, at least one was.
        self.lost.0 = self.lost.0.saturating_sub(count.unwrap_or(1));
        let mut args = Vec::new();
        if let Some(count) = count {
            args.push(("count", Arg::Uint(count)));
        }
        if cpu >= 0 {
            args.push(("cpu", Arg::Int(i64::from(cpu))));
        }
        if guest {
            args.push(("guest", Arg::Flag(true)));
        }
        let (begin, _) = scene.known.observed();
        let time = if time == 0 { begin } else { time };
        self.loss(time, "lost events", &args);
    }

    fn loss(&mut self, time: u64, name: &str, args: &[(&'static str, Arg<'_>)]) {
        let track = self.tracks.group("lost events", &mut self.packets);
        self.packets.event(&TrackEvent {
            category: Some("lost"),
            name: Some(PacketText::Plain(name)),
            args,
            ..TrackEvent::new(time, track, PacketKind::Instant)
        });
    }
}

/// Counts an exit.
fn count(rate: &mut Rate, time: u64, slice: u64, packets: &mut Packets) {
    let track = rate.track;
    rate.add(time, 1, slice, &mut |time, count| {
        rate_reported(time, track, count, slice, packets);
    });
}

/// Ends counters of exits and of polling.
fn close<'r>(
    exits: impl IntoIterator<Item = &'r mut Rate>,
    polls: impl IntoIterator<Item = &'r mut Rate>,
    slice: u64,
    packets: &mut Packets,
) {
    for rate in exits {
        let track = rate.track;
        rate.close(slice, None, &mut |time, count| {
            rate_reported(time, track, count, slice, packets);
        });
    }
    for rate in polls {
        let track = rate.track;
        rate.close(slice, None, &mut |time, ns| {
            packets.event(&TrackEvent::new(time, track, PacketKind::Count(ns)));
        });
    }
}

/// Says how many exits there were in a slice of time, for each second.
fn rate_reported(time: u64, track: u64, count: u64, slice: u64, packets: &mut Packets) {
    let rate = count as f64 * 1e9 / slice as f64;
    packets.event(&TrackEvent::new(time, track, PacketKind::Rate(rate)));
}

/// Says what clock times are of, and what machine this is.
fn head(packets: &mut Packets, begin: u64, about: &TraceMachine) {
    packets.packet(|one| {
        one.uint(packet::TIMESTAMP, packets::time(begin));
        one.message(packet::CLOCK_SNAPSHOT, |one| {
            one.message(clock::CLOCKS, |one| {
                one.uint(clock::CLOCK_ID, clock::BOOTTIME);
                one.uint(clock::TIMESTAMP, packets::time(begin));
            });
            one.uint(clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
        });
    });
    let Some(kernel) = &about.kernel else { return };
    packets.packet(|one| {
        one.message(packet::SYSTEM_INFO, |one| {
            one.message(system::UTSNAME, |one| {
                one.bytes(system::SYSNAME, b"Linux");
                one.bytes(system::RELEASE, shown(kernel).as_bytes());
                if let Some(arch) = &about.arch {
                    one.bytes(system::MACHINE, shown(arch).as_bytes());
                }
            });
        });
    });
}

/// Says which threads are of which process, and what they are called.
fn processes(packets: &mut Packets, known: &FirstWalk<'_>) {
    let threads = known.machine().threads();
    let all: Vec<(i32, i32, &str)> = threads
        .iter()
        .filter_map(|(tid, thread)| {
            let pid = thread.pid.filter(|pid| *pid > 0 && tid > 0)?;
            Some((pid, tid, thread.comm.as_deref().unwrap_or_default()))
        })
        .collect();
    for part in all.chunks(IN_A_PACKET) {
        packets.packet(|one| {
            one.message(packet::PROCESS_TREE, |one| {
                for (pid, tid, comm) in part {
                    let comm = shown(comm);
                    if pid == tid {
                        one.message(tree::PROCESSES, |one| {
                            one.int(tree::PROCESS_PID, i64::from(*pid));
                            one.bytes(tree::PROCESS_CMDLINE, comm.as_bytes());
                            one.uint(tree::CMDLINE_IS_COMM, 1);
                        });
                    }
                    one.message(tree::THREADS, |one| {
                        one.int(tree::THREAD_TID, i64::from(*tid));
                        if !comm.is_empty() {
                            one.bytes(tree::THREAD_NAME, comm.as_bytes());
                        }
                        one.int(tree::THREAD_TGID, i64::from(*pid));
                    });
                }
            });
        });
    }
}

impl ExportFile for Perfetto {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        match found {
            ExportedThing::Span { vcpu, span } => self.span(vcpu, span, scene),
            ExportedThing::Guest { vcpu, part } => {
                let into = (&mut self.tracks, &mut self.packets);
                self.guests.add(vcpu, part, scene, into);
            }
            ExportedThing::Exit {
                vcpu: Some(vcpu),
                exit,
            } => self.exit(*vcpu, exit, scene),
            ExportedThing::Exit { vcpu: None, .. } => {}
            ExportedThing::Instance(one) => {
                let into = (&mut self.tracks, &mut self.packets);
                self.instances.add(one, scene, &self.devices, into);
            }
            ExportedThing::Left { name, time, .. } => self.left(name, *time, scene),
            ExportedThing::Switch { time, cpu, switch } => {
                self.bundles
                    .switch((*time, *cpu), switch, &mut self.packets);
            }
            ExportedThing::Wakes {
                time,
                cpu,
                tid,
                waking,
                wakeup,
            } => {
                let at = (*time, *cpu, *tid);
                self.bundles.wakes(at, *waking, wakeup, &mut self.packets);
            }
            ExportedThing::Lost {
                time,
                cpu,
                count,
                guest,
            } => self.lost(*time, (*cpu, *guest), *count, scene),
        }
    }

    fn retire(&mut self, retired: &RetiredThreads) {
        self.causes.retire(retired);
        self.guests.retire(retired, &mut self.packets);
        for vcpu in retired.vcpus() {
            self.exits.remove(vcpu);
        }
        for vcpu in &mut self.tracks.retire(retired) {
            let (exits, polls) = ([&mut vcpu.exits], [&mut vcpu.polls]);
            close(exits, polls, self.slice, &mut self.packets);
        }
    }

    fn finish(&mut self) -> Vec<String> {
        self.bundles.flush(&mut self.packets);
        self.guests.finish(&mut self.packets);
        let (rest, end) = self.lost;
        if rest > 0 {
            let args = [("count", Arg::Uint(rest))];
            self.loss(end, "lost events, their time is unknown", &args);
        }
        let (exits, polls) = self.tracks.counters();
        close(exits, polls, self.slice, &mut self.packets);
        let (exits, instances) = (self.unplaced, self.instances.unplaced());
        let left_out = [
            (exits, "exit", "it overlaps", "they overlap", MAX_EXIT_LANES),
            (
                instances,
                "instance",
                "it overlaps",
                "they overlap",
                instances::MAX_LANES,
            ),
        ];
        let mut missing: Vec<String> = left_out
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, what, one, several, most)| {
                let overlap = if count == 1 { one } else { several };
                let counted = words::plural(count, what);
                format!("The trace leaves out {counted}: {overlap} {most} others.")
            })
            .collect();
        if self.bundles.nowhere() > 0 {
            let events = words::plural(self.bundles.nowhere(), "event");
            missing.push(format!(
                "The trace leaves out {events} of the scheduler whose CPU is not recorded."
            ));
        }
        missing
    }

    fn made(&mut self) -> &mut Vec<u8> {
        self.packets.made()
    }
}
