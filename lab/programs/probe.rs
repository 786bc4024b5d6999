//! What a kernel offers to those who record, asked by system calls alone, so that a job sees what works without their tools.
//!
//! `probe SECONDS WHAT...` attaches, waits, and prints how often it was met, or the error:
//! `tracepoint ID` (of `id` in tracefs), `kprobe SYMBOL` and `uprobe FILE OFFSET` (by perf's PMUs, no tracefs), each on all
//! CPUs; `tp_btf OBJECT TYPE` and `fentry OBJECT TYPE`, a BPF program at a BTF type of a BTF object (its id, 0 for the
//! kernel; `bpftool btf` lists both).

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;
use std::{env, process};

unsafe extern "C" {
    fn syscall(number: i64, ...) -> i64;
}

// Numbers of bpf(2) and perf_event_open(2).
#[cfg(target_arch = "x86_64")]
const CALLS: (i64, i64) = (321, 298);
#[cfg(target_arch = "aarch64")]
const CALLS: (i64, i64) = (280, 241);

// Of include/uapi/linux/bpf.h.
const BPF_PROG_LOAD: i64 = 5;
const BPF_OBJ_GET_INFO_BY_FD: i64 = 15;
const BPF_RAW_TRACEPOINT_OPEN: i64 = 17;
const BPF_BTF_GET_FD_BY_ID: i64 = 19;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_TRACE_RAW_TP: u32 = 23;
const BPF_TRACE_FENTRY: u32 = 24;
/// Where `run_cnt` stands in struct bpf_prog_info.
const RUN_COUNT: usize = 200;

/// A struct of the kernel's, written by offsets.
struct Fields([u8; 256]);

impl Fields {
    fn new() -> Self {
        Fields([0; 256])
    }

    fn u32(mut self, offset: usize, value: u32) -> Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, offset: usize, value: u64) -> Self {
        self.0[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }
}

fn file_or_error(value: i64) -> io::Result<OwnedFd> {
    if value < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned a new file descriptor, which belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(value as i32) })
}

/// A command of bpf(2) that returns a file.
fn bpf(command: i64, attributes: &Fields, bytes: usize) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `bytes` of the attributes; what they point to lives as long as the caller's frame.
    file_or_error(unsafe { syscall(CALLS.0, command, attributes.0.as_ptr(), bytes) })
}

/// Counts an event of perf on all CPUs, for all tasks.
fn count(kind: u32, config: [u64; 3], wait: Duration) -> io::Result<u64> {
    let attributes = Fields::new()
        .u32(0, kind)
        .u32(4, 128)
        .u64(8, config[0])
        .u64(56, config[1])
        .u64(64, config[2]);
    let mut counters = Vec::new();
    for cpu in 0..available_parallelism()?.get() as i64 {
        // SAFETY: as above; the task is -1 (all), no group (-1), flags 8 is PERF_FLAG_FD_CLOEXEC.
        let file = file_or_error(unsafe {
            syscall(CALLS.1, attributes.0.as_ptr(), -1_i64, cpu, -1_i64, 8_i64)
        })?;
        counters.push(File::from(file));
    }
    sleep(wait);
    let mut sum = 0;
    for counter in &mut counters {
        let mut value = [0; 8];
        counter.read_exact(&mut value)?;
        sum += u64::from_ne_bytes(value);
    }
    Ok(sum)
}

fn pmu(name: &str) -> io::Result<u32> {
    let text = fs::read_to_string(format!("/sys/bus/event_source/devices/{name}/type"))?;
    Ok(text.trim().parse().expect("a PMU's type is a number"))
}

/// Runs a BPF program that does nothing, and counts its runs (kernel.bpf_stats_enabled has to be 1).
fn run(attach: u32, object: u32, kind: u32, wait: Duration) -> io::Result<u64> {
    // r0 = 0; exit
    let program: [u64; 2] = [0xb7, 0x95];
    let license = c"GPL";
    let object = match object {
        0 => None,
        id => Some(bpf(BPF_BTF_GET_FD_BY_ID, &Fields::new().u32(0, id), 12)?),
    };
    let attributes = Fields::new()
        .u32(0, BPF_PROG_TYPE_TRACING)
        .u32(4, program.len() as u32)
        .u64(8, program.as_ptr() as u64)
        .u64(16, license.as_ptr() as u64)
        .u32(68, attach)
        .u32(108, kind)
        .u32(
            112,
            object.as_ref().map_or(0, |file| file.as_raw_fd() as u32),
        );
    let loaded = bpf(BPF_PROG_LOAD, &attributes, 120)?;
    let attributes = Fields::new().u32(8, loaded.as_raw_fd() as u32);
    let _attached = bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes, 16)?;
    sleep(wait);
    let mut info = [0_u8; 232];
    let attributes = Fields::new()
        .u32(0, loaded.as_raw_fd() as u32)
        .u32(4, info.len() as u32)
        .u64(8, info.as_mut_ptr() as u64);
    // SAFETY: the kernel writes at most the bytes of `info` that the attributes say; the answer is no file.
    if unsafe { syscall(CALLS.0, BPF_OBJ_GET_INFO_BY_FD, attributes.0.as_ptr(), 16) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let runs = info[RUN_COUNT..RUN_COUNT + 8]
        .try_into()
        .expect("eight bytes");
    Ok(u64::from_ne_bytes(runs))
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| usage())
}

fn usage() -> ! {
    eprintln!(
        "usage: probe SECONDS tracepoint ID | kprobe SYMBOL | uprobe FILE OFFSET | tp_btf OBJECT TYPE | fentry OBJECT TYPE"
    );
    process::exit(2);
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [seconds, what @ ..] = &words[..] else {
        usage()
    };
    let wait = Duration::from_secs(number(seconds));
    let name = |text: &str| CString::new(text).expect("an argument has no zero byte");
    let met = match what {
        ["tracepoint", id] => count(2, [number(id), 0, 0], wait),
        ["kprobe", symbol] => {
            let symbol = name(symbol);
            pmu("kprobe").and_then(|kind| count(kind, [0, symbol.as_ptr() as u64, 0], wait))
        }
        ["uprobe", file, offset] => {
            let file = name(file);
            pmu("uprobe")
                .and_then(|kind| count(kind, [0, file.as_ptr() as u64, number(offset)], wait))
        }
        ["tp_btf", object, kind] => run(
            BPF_TRACE_RAW_TP,
            number(object) as u32,
            number(kind) as u32,
            wait,
        ),
        ["fentry", object, kind] => run(
            BPF_TRACE_FENTRY,
            number(object) as u32,
            number(kind) as u32,
            wait,
        ),
        _ => usage(),
    };
    match met {
        Ok(times) => println!("{}: {times} times", what.join(" ")),
        Err(error) => {
            println!("{}: {error}", what.join(" "));
            process::exit(1);
        }
    }
}
