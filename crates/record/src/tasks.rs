//! Names of threads that are there when a recording begins.

use std::fs;

use rings::record_type::COMM;

use crate::side;

/// Bytes of a name that the kernel keeps (`TASK_COMM_LEN`), with its end.
const NAME: usize = 16;

/// A thread that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningThread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its name, up to 15 bytes.
    pub name: Vec<u8>,
}

/// Returns a record for each thread's name. Threads that end meanwhile are left out.
pub fn names() -> Vec<u8> {
    records(&threads())
}

/// Returns the threads that are there now.
pub fn threads() -> Vec<RunningThread> {
    let mut out = Vec::new();
    for pid in numbers("/proc") {
        for tid in numbers(&format!("/proc/{pid}/task")) {
            if let Ok(name) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
                let name = short(&name);
                out.push(RunningThread { pid, tid, name });
            }
        }
    }
    out
}

/// Returns a thread by its number, if it is there now.
pub(crate) fn thread(tid: u32) -> Option<RunningThread> {
    let name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    Some(RunningThread {
        pid: pid.trim().parse().ok()?,
        tid,
        name: short(&name),
    })
}

/// Returns a name as the kernel keeps it.
fn short(name: &[u8]) -> Vec<u8> {
    let name = name.trim_ascii_end();
    name[..name.len().min(NAME - 1)].to_vec()
}

/// Returns a record for the name of each thread.
pub fn records<'t>(threads: impl IntoIterator<Item = &'t RunningThread>) -> Vec<u8> {
    let mut out = Vec::new();
    for thread in threads {
        let ids = [thread.pid.to_ne_bytes(), thread.tid.to_ne_bytes()].concat();
        side::push(&mut out, COMM, 0, &[&ids], &thread.name);
    }
    out
}

/// Returns the numbers that name something in a folder of /proc.
pub(crate) fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}
