/*!
The machine rebuilt from events: threads with their names and processes, and which of them are vCPUs of
which VM.

What a thread is by its name, [`NamedRole`] says.

A VM is found from its vCPUs, and a vCPU from what only vCPU threads do: enter a guest. Where no process ids are
recorded, wake-ups tell which threads are of one VM (`bonds`). [`Machine`] follows
every vCPU through its states and hands them out as [`Span`]s. Facts given beside the recording fill gaps.
This crate does no I/O.
*/
#![forbid(unsafe_code)]

mod bonds;
mod by_number;
mod by_slot;
mod by_thread;
mod machine;
mod names;
mod retired;
mod roles;
mod seen;
mod span;
mod tasks;
mod thread_facts;
mod threads;
mod track;
mod vms;

pub use bonds::in_interrupt;
pub use by_number::ByNumber;
pub use by_slot::BySlot;
pub use by_thread::{ByThread, ThreadHandle, ThreadHandles};
pub use machine::{Follow, Halt, Machine, VcpuTimes};
pub use names::{guesses, presumptions, vcpu_name, vm_names};
pub use retired::{RetiredCount, RetiredThreads, STATE_LIMITS, StateLimits};
pub use roles::{
    NamedRole, PERF_WORKLOAD, RecorderClue, RecorderThreads, VmWorkers, public_form, vcpu_from_comm,
};
pub use seen::SeenEvents;
pub use span::{Cause, GuestAccess, Span, SpanSink, State, Times};
pub use tasks::{
    CpuSpan, CpuSwitch, RunState, SpanEnd, TaskChanges, TaskSpan, TaskStates, TaskWakeup,
};
pub use thread_facts::{ThreadFact, ThreadFacts, VcpuFact, VmFact};
pub use threads::{Tasks, Thread, Threads};
pub use track::Polls;
pub use vms::{Vcpu, Vm, find_vms};
