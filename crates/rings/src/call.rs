//! System calls.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::attr::SIZE;

/// `PERF_EVENT_IOC_*` (`_IO('$', n)` and its kin; the same numbers on x86 and arm64).
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;
const SET_OUTPUT: libc::Ioctl = 0x2405;
const SET_FILTER: libc::Ioctl = 0x4008_2406u32 as libc::Ioctl;
const SET_BPF: libc::Ioctl = 0x4004_2408u32 as libc::Ioctl;
const ID: libc::Ioctl = 0x8008_2407u32 as libc::Ioctl;
const PAUSE_OUTPUT: libc::Ioctl = 0x4004_2409u32 as libc::Ioctl;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 8;

/// Opens an event of whatever runs on a CPU (`pid` -1), or of the calling thread (0) on all CPUs (`cpu` -1): one of
/// the group of `leader`, or one of its own.
pub(crate) fn open(
    attr: &[u8; SIZE],
    pid: i32,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads as many bytes as the structure's second word says, which is SIZE, and writes at most
    // that word. It gets a copy, so nothing else sees that.
    let fd = unsafe {
        let mut copy = *attr;
        let group: libc::c_int = leader.map_or(-1, |event| event.as_raw_fd());
        let attr = copy.as_mut_ptr();
        libc::syscall(libc::SYS_perf_event_open, attr, pid, cpu, group, CLOEXEC)
    };
    let fd = i32::try_from(fd).map_err(|_| io::Error::other("a file number out of range"))?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets a BPF program run at an event.
pub(crate) fn attach(event: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the argument is a number, and the kernel takes no memory of ours.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_BPF, program.as_raw_fd()) })
}

/// `BPF_MAP_UPDATE_ELEM` of bpf(2).
const MAP_UPDATE: libc::c_int = 2;

/// Puts an event into a map of events (`BPF_MAP_TYPE_PERF_EVENT_ARRAY`), at a CPU's place.
pub(crate) fn put_event(map: BorrowedFd<'_>, cpu: u32, event: BorrowedFd<'_>) -> io::Result<()> {
    /// The part of `union bpf_attr` that the command takes.
    #[repr(C)]
    struct MapUpdate {
        map: u32,
        unused: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let number = |fd: BorrowedFd<'_>| fd.as_raw_fd().cast_unsigned();
    let value = number(event);
    let update = MapUpdate {
        map: number(map),
        unused: 0,
        key: (&raw const cpu).expose_provenance() as u64,
        value: (&raw const value).expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads the structure, of the size that it is given, and behind its two addresses a key and a
    // value of four bytes each, as every map of this type has them; they live until the call is over. Of a map of
    // another type with longer ones it would read bytes of the stack behind them, and change nothing of ours.
    let done = unsafe {
        let size = size_of::<MapUpdate>();
        libc::syscall(libc::SYS_bpf, MAP_UPDATE, &raw const update, size)
    };
    check(libc::c_int::try_from(done).unwrap_or(-1))
}

/// Lets an event count, or not.
pub(crate) fn enable(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let what = if on { ENABLE } else { DISABLE };
    // SAFETY: these requests take no pointer.
    check(unsafe { libc::ioctl(event.as_raw_fd(), what, 0) })
}

/// Lets an event write to the ring of another.
pub(crate) fn write_to(event: BorrowedFd<'_>, ring_of: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes a file number.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, ring_of.as_raw_fd()) })
}

/// Lets only those events of a tracepoint through that a filter takes.
pub(crate) fn filter(event: BorrowedFd<'_>, filter: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads up to the text's end.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, filter.as_ptr()) })
}

/// Stops what is written to an event's ring, or lets it go on.
pub(crate) fn pause(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: this request takes a number.
    check(unsafe { libc::ioctl(event.as_raw_fd(), PAUSE_OUTPUT, libc::c_int::from(on)) })
}

/// Returns the id that an event's records carry.
pub(crate) fn id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes 64 bits.
    check(unsafe { libc::ioctl(event.as_raw_fd(), ID, &raw mut id) })?;
    Ok(id)
}

/// Waits until one of the files has something to read, at most for a time. Returns whether one has; an interrupting
/// signal ends the wait too.
///
/// # Errors
///
/// Fails when the kernel cannot wait, such as where there is no memory.
pub fn wait_for(files: &[BorrowedFd<'_>], at_most: Duration) -> io::Result<bool> {
    let mut polled: Vec<libc::pollfd> = files
        .iter()
        .map(|file| libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(libc::nfds_t::MAX);
    let ms = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the list has `count` members.
    match unsafe { libc::poll(polled.as_mut_ptr(), count, ms) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        0 => Ok(false),
        _ => Ok(true),
    }
}

/// Returns the bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: it takes a number and returns one.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Lets the process have at least so many open files, if it may: every event takes one on every CPU. Returns how many
/// it may have then.
///
/// # Errors
///
/// Fails when the limit cannot be read. That it cannot be raised is no error.
pub fn more_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes the structure.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    let raised = libc::rlimit {
        rlim_cur: wanted,
        rlim_max: limit.rlim_max.max(wanted),
    };
    let within = libc::rlimit {
        rlim_cur: wanted.min(limit.rlim_max),
        rlim_max: limit.rlim_max,
    };
    for new in [raised, within] {
        // SAFETY: the kernel reads the structure.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const new) } == 0 {
            return Ok(new.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Writes several pieces at a place of a file, which its position is not moved by. Returns how many bytes were written.
///
/// # Errors
///
/// Those of pwritev(2).
pub fn write_at(file: &File, pieces: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    // The kernel takes no more at once.
    let count = pieces.len().min(1024);
    let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
    let at = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: an `IoSlice` has the layout of an `iovec`, and there are `count` of them.
    let written = unsafe { libc::pwritev(file.as_raw_fd(), pieces.as_ptr().cast(), count, at) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
