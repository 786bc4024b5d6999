/*!
The machine rebuilt from events: threads with their names and processes, and which of them are vCPUs of
which VM.

A VM is found from its vCPUs, and a vCPU from what only vCPU threads do: enter a guest. What is told beside
the recording fills gaps. This crate does no I/O.
*/
#![forbid(unsafe_code)]

mod threads;
mod told;
mod vms;

pub use threads::{Thread, Threads, vcpu_from_comm};
pub use told::{Told, ToldThread, ToldVm};
pub use vms::{Vcpu, Vm, find_vms};
