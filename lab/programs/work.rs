//! A known number of operations that leave the guest, for jobs that compare a count with the truth.
//!
//! `work cpuid N`, `work port PORT N` (bytes read from an I/O port) and `work mmio ADDRESS N` (words read from device memory,
//! through /dev/mem; the guest's kernel needs `iomem=relaxed` for what a driver uses). The first two are x86's only. It prints
//! what it did.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::{env, process};

const PAGE: u64 = 4096;

unsafe extern "C" {
    fn mmap(
        at: *mut u8,
        bytes: usize,
        protection: i32,
        flags: i32,
        file: i32,
        offset: i64,
    ) -> *mut u8;
}

fn number(text: Option<String>) -> u64 {
    let text = text.unwrap_or_else(|| usage());
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| usage())
}

fn usage() -> ! {
    eprintln!("usage: work cpuid N | work port PORT N | work mmio ADDRESS N");
    process::exit(2);
}

#[cfg(target_arch = "x86_64")]
fn cpuid(times: u64) {
    for _ in 0..times {
        std::hint::black_box(std::arch::x86_64::__cpuid(0));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid(_: u64) {
    usage();
}

/// Through the kernel: QEMU's emulation of SVM does not let a guest's programs at ports, whatever iopl(2) allowed.
fn port(port: u64, times: u64) {
    let ports = File::open("/dev/port").expect("open /dev/port");
    for _ in 0..times {
        ports.read_exact_at(&mut [0], port).expect("read /dev/port");
    }
}

fn mmio(address: u64, times: u64) {
    let memory = File::options()
        .read(true)
        .write(true)
        .open("/dev/mem")
        .expect("open /dev/mem");
    let page = (address & !(PAGE - 1)) as i64;
    // SAFETY: a new mapping (PROT_READ 1, MAP_SHARED 1) at an address of the kernel's choice, checked before its use; the
    // word lies in its one page. Reading the device that a job names is what it asks for.
    unsafe {
        let mapped = mmap(
            std::ptr::null_mut(),
            PAGE as usize,
            1,
            1,
            memory.as_raw_fd(),
            page,
        );
        assert_ne!(mapped as isize, -1, "mmap of /dev/mem");
        let word = mapped.add((address & (PAGE - 4)) as usize).cast::<u32>();
        for _ in 0..times {
            word.read_volatile();
        }
    }
}

fn main() {
    let mut words = env::args().skip(1);
    let what = words.next().unwrap_or_else(|| usage());
    let times = match what.as_str() {
        "cpuid" => {
            let times = number(words.next());
            cpuid(times);
            times
        }
        "port" | "mmio" => {
            let place = number(words.next());
            let times = number(words.next());
            if what == "port" {
                port(place, times)
            } else {
                mmio(place, times)
            }
            times
        }
        _ => usage(),
    };
    println!("{what}: {times}");
}
