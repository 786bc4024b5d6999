//! Loads for guests with an injected cause. Each ends after SECONDS and prints what it did, which is the truth beside a
//! recording.
//!
//! `load work SECONDS BUSY_US SLEEP_US`    a thread for each CPU computes and sleeps in turn
//! `load lock SECONDS HELD_US THREADS`     threads take one lock in turn and spin for it
//! `load dirty SECONDS MIB [same]`         writes to each page of a piece of memory, again and again; `same` gives all
//!                                         pages the same content, which KSM merges
//! `load read SECONDS FILE`                reads blocks of 4 KiB at random places, one at a time, past the cache
//! `load wake SECONDS BUSY_US`             a thread on CPU 0 wakes one on each other CPU by a pipe, and waits for their answers;
//!                                         each computes first, so that who waits for it has gone to sleep
//!

use std::alloc::{Layout, alloc, dealloc};
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, hint, process, slice, thread};

const PAGE: usize = 4096;
/// `O_DIRECT` of `<fcntl.h>`.
#[cfg(target_arch = "x86_64")]
const DIRECT: i32 = 0o40000;
#[cfg(target_arch = "aarch64")]
const DIRECT: i32 = 0o200_000;

fn usage() -> ! {
    eprintln!("usage: load work|lock|dirty|read|wake SECONDS ..., see programs/load.rs");
    process::exit(2);
}

fn number(text: Option<&String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| usage())
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        hint::spin_loop();
    }
}

fn work(end: Instant, busy: Duration, sleep: Duration) {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let rounds = AtomicU64::new(0);
    let longest = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while Instant::now() < end {
                    let begin = Instant::now();
                    compute(busy);
                    let us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
                    longest.fetch_max(us, Ordering::Relaxed);
                    rounds.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(sleep);
                }
            });
        }
    });
    println!(
        "work: {} rounds on {cpus} CPUs, longest {} us of {} us",
        rounds.into_inner(),
        longest.into_inner(),
        busy.as_micros()
    );
}

fn lock(end: Instant, held: Duration, threads: u64) {
    let taken = AtomicBool::new(false);
    let (rounds, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while Instant::now() < end {
                    let begin = Instant::now();
                    while taken.swap(true, Ordering::Acquire) {
                        while taken.load(Ordering::Relaxed) {
                            hint::spin_loop();
                        }
                    }
                    let us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
                    longest.fetch_max(us, Ordering::Relaxed);
                    compute(held);
                    taken.store(false, Ordering::Release);
                    rounds.fetch_add(1, Ordering::Relaxed);
                    compute(held);
                }
            });
        }
    });
    println!(
        "lock: taken {} times by {threads} threads, longest wait {} us",
        rounds.into_inner(),
        longest.into_inner()
    );
}

/// Memory that begins at a page.
struct Pages(*mut u8, Layout);

impl Pages {
    fn new(pages: usize) -> Pages {
        let layout = Layout::from_size_align(pages * PAGE, PAGE).unwrap_or_else(|_| usage());
        // SAFETY: the layout has a size.
        let at = unsafe { alloc(layout) };
        if at.is_null() {
            usage();
        }
        Pages(at, layout)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: it was allocated with that size; what is read was written before, or is nobody's concern here.
        unsafe { slice::from_raw_parts_mut(self.0, self.1.size()) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.0, self.1) }
    }
}

fn dirty(end: Instant, mib: u64, same: bool) {
    let mut memory = Pages::new(usize::try_from(mib).unwrap_or_else(|_| usage()) << 8);
    let (mut passes, mut first, mut longest) = (0u64, Duration::ZERO, Duration::ZERO);
    while Instant::now() < end {
        let begin = Instant::now();
        for (number, page) in (0u64..).zip(memory.bytes().chunks_exact_mut(PAGE)) {
            let value = if same { passes } else { passes.wrapping_mul(1_000_003) ^ number };
            page[..8].copy_from_slice(&value.to_le_bytes());
        }
        hint::black_box(memory.bytes());
        match passes {
            0 => first = begin.elapsed(),
            _ => longest = longest.max(begin.elapsed()),
        }
        passes += 1;
        thread::sleep(Duration::from_millis(if same { 300 } else { 1 }));
    }
    println!("dirty: {passes} passes over {mib} MiB, first {first:?}, longest other {longest:?}");
}

fn read(end: Instant, file: &str) {
    let disk = OpenOptions::new().read(true).custom_flags(DIRECT).open(file);
    let disk = disk.unwrap_or_else(|error| {
        eprintln!("load: {file}: {error}");
        process::exit(1);
    });
    let blocks = 4096;
    let mut memory = Pages::new(1);
    let (mut reads, mut longest, mut random) = (0u64, Duration::ZERO, 1u32);
    let begin = Instant::now();
    while Instant::now() < end {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let at = u64::from(random >> 8) % blocks * PAGE as u64;
        let begin = Instant::now();
        if let Err(error) = disk.read_exact_at(memory.bytes(), at) {
            eprintln!("load: {file}: {error}");
            process::exit(1);
        }
        longest = longest.max(begin.elapsed());
        reads += 1;
    }
    let mean = begin.elapsed() / u32::try_from(reads.max(1)).unwrap_or(u32::MAX);
    println!("read: {reads} reads, mean {mean:?}, longest {longest:?}");
}

unsafe extern "C" {
    /// `<sched.h>`.
    fn sched_setaffinity(pid: i32, bytes: usize, cpus: *const u64) -> i32;
}

fn stay_on(cpu: u32) {
    let cpus = 1u64 << cpu;
    // SAFETY: 0 is the thread that calls, and the mask is as long as is said.
    if unsafe { sched_setaffinity(0, size_of_val(&cpus), &raw const cpus) } != 0 {
        eprintln!("load: there is no CPU {cpu}");
        process::exit(1);
    }
}

fn wake(end: Instant, busy: Duration) -> io::Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let mut others = Vec::new();
        for cpu in 1..u32::try_from(cpus).unwrap_or(1) {
            let (mut asked, ask) = io::pipe()?;
            let (answered, mut answer) = io::pipe()?;
            others.push((ask, answered));
            scope.spawn(move || {
                stay_on(cpu);
                let mut byte = [0];
                while asked.read_exact(&mut byte).is_ok() {
                    compute(busy);
                    if answer.write_all(&byte).is_err() {
                        break;
                    }
                }
            });
        }
        stay_on(0);
        let (mut rounds, mut longest) = (0u64, Duration::ZERO);
        while Instant::now() < end {
            compute(busy);
            let begin = Instant::now();
            for (ask, _) in &mut others {
                ask.write_all(&[0])?;
            }
            for (_, answered) in &mut others {
                answered.read_exact(&mut [0])?;
            }
            longest = longest.max(begin.elapsed());
            rounds += 1;
        }
        // With their pipes the others end.
        drop(others);
        println!("wake: {rounds} rounds with {} others, longest {longest:?}", cpus - 1);
        Ok(())
    })
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let [_, what, seconds, rest @ ..] = args.as_slice() else {
        usage();
    };
    let end = Instant::now() + Duration::from_secs(number(Some(seconds)));
    let us = |at: usize| Duration::from_micros(number(rest.get(at)));
    match what.as_str() {
        "work" => work(end, us(0), us(1)),
        "lock" => lock(end, us(0), number(rest.get(1))),
        "dirty" => dirty(end, number(rest.first()), rest.get(1).is_some_and(|word| word == "same")),
        "wake" => wake(end, us(0)).unwrap_or_else(|error| {
            eprintln!("load: {error}");
            process::exit(1);
        }),
        "read" => read(end, rest.first().map_or_else(|| usage(), String::as_str)),
        _ => usage(),
    }
}
