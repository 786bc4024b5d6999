//! Names of threads that are there when a recording begins.

use std::fs;

use crate::side;

/// `PERF_RECORD_COMM`.
const COMM: u32 = 3;
/// Bytes of a name that the kernel keeps (`TASK_COMM_LEN`), with its end.
const NAME: usize = 16;

/// Returns a record for each thread's name. Threads that end meanwhile are left out.
pub fn names() -> Vec<u8> {
    let mut out = Vec::new();
    for pid in numbers("/proc") {
        for tid in numbers(&format!("/proc/{pid}/task")) {
            if let Ok(name) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
                let name = name.trim_ascii_end();
                let name = &name[..name.len().min(NAME - 1)];
                let ids = [pid.to_ne_bytes(), tid.to_ne_bytes()].concat();
                side::push(&mut out, COMM, 0, &[&ids], name);
            }
        }
    }
    out
}

/// Returns the numbers that name something in a folder of /proc.
pub(crate) fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}
