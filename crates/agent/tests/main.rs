//! Both sides over the loopback of this machine, in one process.

mod hostile;
mod round_trip;
mod support;
