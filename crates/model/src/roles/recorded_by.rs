//! The threads that made the recording, by what it shows of its recorder.

use std::collections::BTreeMap;

use event::sched::Leaves;
use event::{Data, Event};

use super::recorder::PERF_WORKLOAD;
use crate::{Thread, Threads};

/// How far apart ids of trace-cmd's processes may be: other programs fork meanwhile.
const NEAR: i32 = 64;

/// The threads that made a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecorderThreads {
    pid: Option<i32>,
    tids: Vec<i32>,
}

impl RecorderThreads {
    /// Returns whether nothing says who recorded.
    pub fn is_unknown(&self) -> bool {
        self.pid.is_none() && self.tids.is_empty()
    }

    /// Returns whether a thread is the recorder's.
    pub fn has(&self, tid: i32, thread: &Thread) -> bool {
        let of_process = || self.pid.is_some() && (thread.pid == self.pid || self.pid == Some(tid));
        !thread.is_vcpu && (self.tids.binary_search(&tid).is_ok() || of_process())
    }
}

impl Threads {
    /// Takes what an event of the scheduler shows of who made the recording, before what it says of its tasks.
    #[inline]
    pub(crate) fn shows_recorder(&mut self, event: &Event<'_>, data: &Data) {
        let traces = &mut self.recorder_traces;
        match data {
            Data::SchedSwitch(switch)
                if traces.clue.forks_readers && switch.prev_state.leaves() == Leaves::Blocked =>
            {
                traces.sleeps(switch.prev_tid, &switch.prev_comm);
            }
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                if traces.clue.forks_readers {
                    traces.sleeps(wakeup.tid, &wakeup.comm);
                } else if wakeup.comm.as_bytes() == PERF_WORKLOAD.as_bytes() {
                    self.lets_go(event);
                }
            }
            _ => {}
        }
    }

    /// A thread wakes perf's command: it is the recorder's if it is called so, and has had its CPU since before the
    /// recording began.
    #[cold]
    fn lets_go(&mut self, event: &Event<'_>) {
        let waker = self.get(event.tid);
        let comm = waker.and_then(|thread| thread.comm.as_deref());
        let named = (comm.or(event.comm)).is_some_and(|comm| self.recorder_traces.is_called(comm));
        let since_before = waker.is_none_or(|thread| !thread.has_acted());
        if named && since_before && event.tid > 0 && self.recorder_traces.command_waker.is_none() {
            self.recorder_traces.command_waker = Some(event.tid);
        }
    }

    /// Returns the threads that made the recording, as far as it shows them.
    pub fn recorder(&self) -> RecorderThreads {
        let traces = &self.recorder_traces;
        if traces.clue.forks_readers {
            return RecorderThreads {
                pid: None,
                tids: self.readers(),
            };
        }
        let pid = traces.process();
        let waker = traces.command_waker.filter(|_| pid.is_none());
        let of_waker = waker.and_then(|tid| self.get(tid)?.pid);
        RecorderThreads {
            pid: pid.or(of_waker.filter(|pid| *pid > 0)),
            tids: waker.into_iter().collect(),
        }
    }

    /// Returns whether a thread may be the recorder's, as far as is known now: who it is may be decided later.
    pub fn may_record(&self, tid: i32, comm: Option<&str>) -> bool {
        let traces = &self.recorder_traces;
        let thread = self.get(tid);
        match traces.process() {
            Some(pid) => tid == pid || thread.is_some_and(|thread| thread.pid == Some(pid)),
            None => {
                let named = thread.and_then(|thread| thread.comm.as_deref()).or(comm);
                named.is_some_and(|comm| traces.is_called(comm))
            }
        }
    }

    /// Returns the processes of trace-cmd.
    fn readers(&self) -> Vec<i32> {
        let traces = &self.recorder_traces;
        let named = self.iter().filter(|(_, thread)| {
            let comm = thread.comm.as_deref();
            comm.is_some_and(|comm| traces.is_called(comm)) && !thread.is_vcpu
        });
        let all: BTreeMap<i32, bool> = named
            .map(|(tid, _)| (tid, traces.sleepers.contains(&tid)))
            .collect();
        let mut families: Vec<(usize, Vec<i32>)> = Vec::new();
        for (tid, slept) in all {
            match families.last_mut() {
                Some((sleepers, family))
                    if family.last().is_some_and(|last| tid - last <= NEAR) =>
                {
                    *sleepers += usize::from(slept);
                    family.push(tid);
                }
                _ => families.push((usize::from(slept), vec![tid])),
            }
        }
        families.retain(|(sleepers, _)| *sleepers >= 2);
        match families.len() {
            1 => families.swap_remove(0).1,
            _ => Vec::new(),
        }
    }
}
