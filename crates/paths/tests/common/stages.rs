//! What bounds the stages of the built-in paths, looked at a second time: beside a walk, what every thread does is
//! written down, and of every instance it is asked whether what it waited for had gone on in between.

// Every test binary uses its own part of this.
#![allow(dead_code)]

use std::collections::HashMap;

use event::sched::Leaves;
use event::{Data, Event, Side};
use model::Machine;
use paths::{CompletedInstance, Paths};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// It enters its guest; out of a halt, or not.
    Enters { from_halt: bool },
    /// It leaves its guest, which asks to wait, or does not.
    Exits { halts: bool },
    /// It returns to user space.
    ToUser,
    /// It gets a CPU.
    Gets,
    /// It leaves its CPU; to sleep in a halt, or for something else.
    Leaves { asleep_in_halt: bool },
}

/// All that threads did.
#[derive(Debug, Default)]
pub(crate) struct Log {
    of: HashMap<i32, Vec<(u64, Does)>>,
    halted: HashMap<i32, bool>,
}

impl Log {
    pub(crate) fn take(&mut self, event: &Event<'_>, data: &Data) {
        let halted = self.halted.get(&event.tid).copied().unwrap_or(false);
        let does = match data {
            Data::KvmEntry(_) => {
                self.halted.insert(event.tid, false);
                Does::Enters { from_halt: halted }
            }
            Data::KvmExit(exit) => {
                let halts = exit.reason.is_waiting();
                self.halted.insert(event.tid, halts);
                Does::Exits { halts }
            }
            Data::KvmUserspaceExit(_) => Does::ToUser,
            Data::KvmVcpuWakeup(_) => {
                self.halted.insert(event.tid, false);
                return;
            }
            Data::SchedSwitch(switch) => {
                let sleeps = switch.prev_state.leaves() == Leaves::Blocked;
                let halted = self.halted.get(&switch.prev_tid).copied();
                let asleep_in_halt = sleeps && halted.unwrap_or(false);
                self.add(event.time, switch.prev_tid, Does::Leaves { asleep_in_halt });
                self.add(event.time, switch.next_tid, Does::Gets);
                return;
            }
            _ => return,
        };
        self.add(event.time, event.tid, does);
    }

    fn add(&mut self, time: u64, tid: i32, does: Does) {
        if tid > 0 {
            self.of.entry(tid).or_default().push((time, does));
        }
    }

    /// After lost events nothing is known of halts.
    pub(crate) fn side(&mut self, side: &Side<'_>) {
        if let Side::Lost { .. } = side {
            self.halted.clear();
        }
    }

    /// Whether a thread did something between two times, both left out.
    fn did(&self, tid: i32, from: u64, to: u64, what: impl Fn(Does) -> bool) -> bool {
        let all = self.of.get(&tid).map_or(&[][..], Vec::as_slice);
        let begin = all.partition_point(|(time, _)| *time <= from);
        all[begin..]
            .iter()
            .take_while(|(time, _)| *time < to)
            .any(|(_, does)| what(*does))
    }
}

/// Returns what is wrong with an instance: stages in which what they wait for had gone on. `halts` says whether the
/// order of events is a machine's, so that it can be known who is in a halt.
pub(crate) fn wrong(
    log: &Log,
    one: &CompletedInstance,
    paths: &Paths,
    machine: &Machine,
    halts: bool,
) -> Vec<String> {
    let path = &paths.paths()[one.path];
    let steps = &path.chains[one.chain].steps;
    let name = |step: u8| steps[step as usize].name.as_str();
    let tid = |slot: u32| machine.threads().at(slot).map_or(0, |(tid, _)| tid);
    let mut out = Vec::new();
    for pair in one.reached.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let (a, b) = (name(from.step), name(to.step));
        let thread = tid(to.thread);
        let task = to.task.map_or(0, tid);
        let did = |tid: i32, what: &dyn Fn(Does) -> bool| log.did(tid, from.time, to.time, what);
        let enters = |does| matches!(does, Does::Enters { .. });
        let leaves = |does| matches!(does, Does::Leaves { .. });
        let gets = |does| does == Does::Gets;
        let asks_to_wait = |does| does == Does::Exits { halts: true };
        let mut fail = |bad: bool, what: &str| {
            if bad {
                out.push(format!(
                    "{} {}: '{a}' → '{b}' takes {} ns, and {what}",
                    path.name,
                    one.number,
                    to.time - from.time
                ));
            }
        };
        let woken = matches!(a, "woken" | "vCPU woken");
        match b {
            "in guest" => fail(did(thread, &enters), "the vCPU entered its guest before"),
            "user space" => fail(did(thread, &enters), "the vCPU entered its guest before"),
            "poll hit" => fail(
                did(thread, &|does| enters(does) || leaves(does)),
                "the vCPU did not poll all the time",
            ),
            "on CPU" | "vCPU on CPU" | "back end on CPU" | "kworker on CPU"
                if a.ends_with("woken") =>
            {
                fail(did(task, &gets), "it had a CPU before");
                fail(
                    woken && did(task, &enters),
                    "the vCPU entered its guest before",
                );
            }
            "accepted" | "raised" if path.name == "timer" && a == "on CPU" => fail(
                did(thread, &|does| {
                    !matches!(does, Does::Gets | Does::Leaves { .. })
                }),
                "the vCPU did something else before",
            ),
            "accepted" | "raised" if path.name == "timer" && a == "woken" => {
                fail(did(thread, &enters), "the vCPU entered its guest before");
            }
            "eventfd" | "back end woken"
                if a == "notified" || a == "eventfd" && path.name == "kick" =>
            {
                fail(
                    did(thread, &|does| enters(does) || does == Does::ToUser),
                    "the guest was entered before, or user space",
                )
            }
            "injected" if a.ends_with("on CPU") && halts => fail(
                did(thread, &|does| {
                    does == Does::Leaves {
                        asleep_in_halt: true,
                    }
                }),
                "the vCPU went to sleep in a halt before",
            ),
            "injected" if woken => fail(did(thread, &asks_to_wait), "the vCPU halted again before"),
            "next access" if matches!(a, "in guest" | "posted") => {
                fail(did(thread, &asks_to_wait), "the vCPU halted before");
            }
            "interrupt" if a == "back end done" && halts => fail(
                did(tid(one.reached[0].thread), &|does| {
                    does == Does::Enters { from_halt: true }
                }),
                "the vCPU that waited went on before",
            ),
            _ => {}
        }
    }
    out
}
