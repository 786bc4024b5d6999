//! Memory maps: the only unsafe code of the readers.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memmap2::{Mmap, UncheckedAdvice};
use perfdata::ByteSource;

/// A file mapped into memory for reading.
#[derive(Debug)]
pub(crate) struct FileMap {
    map: Mmap,
    file: File,
    /// Whether nobody else can make it shorter.
    ours: bool,
    /// Its number in [`REGIONS`], if it has one.
    region: Option<usize>,
}

/// Files that are read whatever lies where; parts of a larger one that are looked at, and their bytes.
const SMALL: usize = 8 << 20;
const PARTS: usize = 4;
const PART: usize = 512 << 10;
/// Page faults of a part, at most, where a map is cheaper: with folios of 64 KiB there are 8.
const MOST_FAULTS: u64 = 5;

/// Bytes of the largest page of any architecture that Linux runs on: advice is given on multiples of it.
pub(crate) const PAGE: usize = 64 << 10;

/// A map that the handler of SIGBUS knows.
struct MapRegion {
    taken: AtomicBool,
    /// Its first byte; 0 when there is none.
    start: AtomicUsize,
    len: AtomicUsize,
    /// From where on nothing is behind it.
    gone_from: AtomicUsize,
}

/// Maps at once that the handler knows: commands hold one or two. Those beyond are as if there were no handler.
const REGION_COUNT: usize = 64;

static REGIONS: [MapRegion; REGION_COUNT] = [const {
    MapRegion {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        gone_from: AtomicUsize::new(usize::MAX),
    }
}; REGION_COUNT];

/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(PAGE);

/// Makes reading outlive that the file is cut while it is read.
///
/// Touching a page of a map that lies behind the file's end raises SIGBUS, which ends a process. This installs a
/// handler for the whole process that puts zeros in the place of what is gone, and notes where;
/// [`crate::RecordingReader::walk`] then ends and says so. For maps of others than this crate the handler does what was
/// done before. To be called once, by the program; without it, such files end the process.
pub fn outlive_truncation() {
    if BEFORE.get().is_some() {
        return;
    }
    // SAFETY: sysconf and sigaction are called with valid arguments: the structures live on the stack and are whole
    // (all zero bytes are a valid sigaction). The handler has the signature that SA_SIGINFO asks for, and calls only
    // what may be called in a handler: loads and stores of atomics, mmap, sigaction.
    unsafe {
        if let Ok(size @ 1..) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
            PAGE_SIZE.store(size, Ordering::Relaxed);
        }
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0
            || BEFORE.set(before).is_err()
        {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_sigbus;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

/// Takes a fault in one of the maps; all others go to who had the signal before.
extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid siginfo_t, whose si_addr is set for SIGBUS.
    let fault = unsafe { (*info).si_addr() } as usize;
    let page = PAGE_SIZE.load(Ordering::Relaxed);
    for region in &REGIONS {
        let start = region.start.load(Ordering::Acquire);
        let len = region.len.load(Ordering::Relaxed).next_multiple_of(page);
        if start == 0 || fault < start || fault - start >= len {
            continue;
        }
        let from = fault / page * page;
        // SAFETY: the range lies within a map of this crate, which is read-only, private and still there (it
        // is taken out of the table before it is unmapped), so nothing else is at these addresses. Its pages
        // cannot be read, or what is behind them is gone; zeros come in their place, until the map's end.
        let got = unsafe {
            libc::mmap(
                from as *mut c_void,
                start + len - from,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if got != libc::MAP_FAILED {
            region.gone_from.fetch_min(from - start, Ordering::Relaxed);
            return;
        }
    }
    let before = BEFORE.get();
    let chained = before.filter(|before| {
        before.sa_flags & libc::SA_SIGINFO != 0
            && before.sa_sigaction != libc::SIG_DFL
            && before.sa_sigaction != libc::SIG_IGN
    });
    match chained {
        // SAFETY: a handler that was installed with SA_SIGINFO has this signature.
        Some(before) => unsafe {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(before.sa_sigaction);
            handler(signal, info, context);
        },
        // SAFETY: as above; the default ends the process when the access is tried again.
        None => unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, ptr::null_mut());
        },
    }
}

impl FileMap {
    /// Maps a whole file. It is `ours` if nobody else can make it shorter.
    pub(crate) fn new(file: File, ours: bool) -> io::Result<FileMap> {
        // SAFETY: the map is private and read-only. Bytes of a file that another process changes meanwhile
        // may change under our eyes; every reader takes any bytes for possible and checks them when it
        // reads them, so that gives wrong numbers at worst. A file that is cut while it is mapped ends the
        // process with SIGBUS unless `outlive_truncation` was called.
        let map = unsafe { Mmap::map(&file)? };
        let region = if ours { None } else { register(&map) };
        Ok(FileMap {
            map,
            file,
            ours,
            region,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns whether it costs less to read the file by pieces than to look at it here.
    ///
    /// At a page fault the kernel maps as much as lies together in the page cache, up to the size of a folio; where
    /// folios are as small as pages, as those of a file are that was written by small pieces, that is 64 KiB. A few
    /// parts of the file are touched and their faults counted. A small file is read in any case: what a map takes and
    /// gives back costs more.
    pub(crate) fn costs_more_than_reading(&self) -> bool {
        let bytes = self.bytes();
        if bytes.len() < SMALL {
            return true;
        }
        let before = minor_faults();
        let mut touched = 0u8;
        for part in 0..PARTS {
            let start = bytes.len() / PARTS * part;
            let part = bytes.get(start..start + PART).unwrap_or_default();
            touched ^= part.iter().step_by(4096).fold(0, |all, byte| all ^ byte);
        }
        // Else it is as if nobody had looked.
        std::hint::black_box(touched);
        let faults = minor_faults().saturating_sub(before);
        self.release(0..bytes.len());
        faults > MOST_FAULTS * PARTS as u64
    }

    /// Returns where the file ends now, if that is before the map's end.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        if self.ours {
            return None;
        }
        let gone = self.region.and_then(|at| REGIONS.get(at));
        let gone = gone.map_or(usize::MAX, |region| {
            region.gone_from.load(Ordering::Relaxed)
        });
        let now = self.file.metadata().ok();
        let now = now
            .and_then(|meta| usize::try_from(meta.len()).ok())
            .unwrap_or(usize::MAX);
        let end = gone.min(now);
        (end < self.map.len()).then_some(end)
    }

    /// Lets the pages of a range go; they are read from the file again when they are touched again.
    pub(crate) fn release(&self, range: Range<usize>) {
        let start = range.start.div_ceil(PAGE) * PAGE;
        let end = range.end.min(self.map.len()) / PAGE * PAGE;
        if start < end {
            // SAFETY: MADV_DONTNEED on a private, never written file mapping drops clean pages only; the
            // next access reads the same bytes from the file. A failure changes nothing and is ignored.
            let _ = unsafe {
                self.map
                    .unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }
}

impl ByteSource for FileMap {
    fn read_at(&self, at: u64, into: &mut [u8]) -> usize {
        loop {
            match self.file.read_at(into, at) {
                Ok(read) => return read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What cannot be read is not there, and the walk says where it ends.
                Err(_) => return 0,
            }
        }
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if let Some(region) = self.region.and_then(|at| REGIONS.get(at)) {
            region.start.store(0, Ordering::Release);
            region.taken.store(false, Ordering::Release);
        }
    }
}

/// Returns how many page faults this thread has had that took nothing from a disk.
fn minor_faults() -> u64 {
    // SAFETY: all zero bytes are a valid rusage, which getrusage fills; it is called with valid arguments.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        match libc::getrusage(libc::RUSAGE_THREAD, &mut usage) {
            0 => usage,
            _ => return 0,
        }
    };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// Notifies the handler of a map.
fn register(map: &Mmap) -> Option<usize> {
    let free = |region: &MapRegion| {
        let taken = &region.taken;
        taken
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let at = REGIONS.iter().position(free)?;
    let region = REGIONS.get(at)?;
    region.gone_from.store(usize::MAX, Ordering::Relaxed);
    region.len.store(map.len(), Ordering::Relaxed);
    region.start.store(map.as_ptr() as usize, Ordering::Release);
    Some(at)
}
