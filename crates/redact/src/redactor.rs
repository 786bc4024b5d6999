//! What stands in place of what.

use std::collections::BTreeSet;

use model::public_form;
use perfdata::{OmittedParts, PrivacyMask};
use tracedat::TracePrivacyMask;
use tracefmt::FormatCatalog;

use crate::pseudonyms::Pseudonyms;
use crate::records::{self, FieldMask};
use crate::remaining::ReplacedNames;
use crate::symbols::{self, SymbolMask};
use crate::texts::{self, TracingMask};

/// Addresses of the kernel on x86-64 and arm64 begin here (`Documentation/arch/x86/x86_64/mm.rst`,
/// `Documentation/arch/arm64/memory.rst`, with 52 bits), and small negative numbers there.
const KERNEL: u64 = 0xfff0_0000_0000_0000;
const NEGATIVE: u64 = 0xffff_ffff_ff00_0000;
/// Of a kernel of 32 bits these, where 3 GiB are user space's (`PAGE_OFFSET` of `VMSPLIT_3G`, `arch/x86/Kconfig` and
/// `arch/arm/Kconfig`). They are moved by less, so that no address becomes a low one of user space.
const NARROW: (u64, u64) = (0xc000_0000, 0xff00_0000);
const NARROW_MOST: u64 = 64 << 20;
/// Kernels lie at multiples of this; addresses keep their place within it.
const PAGE: u64 = 4096;
/// How far addresses are moved at least and at most, down: 1 MiB and 512 MiB.
const LEAST: u64 = 1 << 20;
const MOST: u64 = 512 << 20;

/// More addresses than these are moved, and what stands there loses its name.
const MAX_ADDRESSES: usize = 1 << 20;

/// Names of mappings that the kernel and perf give.
const MAPPINGS: [&str; 12] = [
    "[kernel.kallsyms]",
    "[kernel.kallsyms]_text",
    "[kernel.kallsyms]_stext",
    "[guest.kernel.kallsyms]",
    "[guest.kernel.kallsyms]_text",
    "[guest.kernel.kallsyms]_stext",
    "[vdso]",
    "[vsyscall]",
    "[heap]",
    "[stack]",
    "//anon",
    "[uprobes]",
];

/// How much was replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedactedCounts {
    /// Names of threads.
    pub comms: usize,
    /// Paths of files, and names of mappings.
    pub paths: usize,
    /// Names of code that the kernel made.
    pub symbols: usize,
    /// Other texts in events.
    pub texts: usize,
}

/// What was replaced in a recording, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedactionCounts {
    /// What was replaced.
    pub replaced: RedactedCounts,
    /// What was left out.
    pub omitted: OmittedParts,
}

/// Replaces what is private in a recording, the same by the same.
#[derive(Debug)]
pub struct Redactor<'f> {
    formats: &'f FormatCatalog,
    names: RedactedNames,
}

/// What stands in place of names and addresses.
#[derive(Debug)]
pub(crate) struct RedactedNames {
    /// How far down addresses of the kernel are moved, in bytes.
    distance: u64,
    /// The size of an address of the kernel in bytes: 4 or 8.
    long_size: u8,
    /// Addresses that were moved, up to [`MAX_ADDRESSES`]: what stands there keeps its name.
    moved: BTreeSet<u64>,
    comms: Pseudonyms,
    paths: Pseudonyms,
    symbols: Pseudonyms,
    texts: Pseudonyms,
}

impl<'f> Redactor<'f> {
    /// Returns one for a recording with these formats. Of `random` nobody may know what it is: it says how far
    /// addresses are moved.
    pub fn new(formats: &'f FormatCatalog, random: u64) -> Redactor<'f> {
        Redactor {
            formats,
            names: RedactedNames::new(formats.abi.long_size, random, ["task-", "symbol-"]),
        }
    }

    /// Returns the names that were replaced: of threads, files and code, and other texts.
    pub fn replaced(&self) -> ReplacedNames {
        self.names.replaced(self.formats)
    }

    /// Returns how much was replaced.
    pub fn counts(&self) -> RedactedCounts {
        self.names.counts()
    }
}

impl Redactor<'_> {
    fn record(&mut self, id: Option<u32>, record: &mut [u8]) {
        let format = id.and_then(|id| self.formats.by_id(id));
        records::mask(record, format, &mut self.names);
    }
}

impl RedactedNames {
    /// Returns none yet, for a kernel whose addresses have this size. In place of threads' and functions' names stand
    /// words that begin so.
    fn new(long_size: u8, random: u64, [comms, symbols]: [&'static str; 2]) -> RedactedNames {
        let most = if long_size == 4 { NARROW_MOST } else { MOST };
        let pages = (most - LEAST) / PAGE;
        RedactedNames {
            distance: LEAST + random % pages * PAGE,
            long_size,
            moved: BTreeSet::new(),
            comms: Pseudonyms::new(comms),
            paths: Pseudonyms::new("/file-"),
            symbols: Pseudonyms::new(symbols),
            texts: Pseudonyms::new("n"),
        }
    }

    /// Returns none yet, for a text: a hyphen stands before a thread's id there.
    pub(crate) fn of_text(random: u64) -> RedactedNames {
        RedactedNames::new(8, random, ["task_", "symbol_"])
    }

    /// Returns the names that were replaced, but for those that formats have.
    pub(crate) fn replaced(&self, formats: &FormatCatalog) -> ReplacedNames {
        let RedactedNames {
            comms,
            paths,
            symbols,
            texts,
            ..
        } = self;
        let all = [comms, paths, symbols, texts].into_iter();
        ReplacedNames::of(all.flat_map(Pseudonyms::originals), formats)
    }

    /// Returns how much was replaced.
    pub(crate) fn counts(&self) -> RedactedCounts {
        RedactedCounts {
            comms: self.comms.count(),
            paths: self.paths.count(),
            symbols: self.symbols.count(),
            texts: self.texts.count(),
        }
    }

    /// Returns what stands in place of a thread's name.
    pub(crate) fn comm(&mut self, comm: &[u8]) -> Vec<u8> {
        if is_no_name(comm) {
            return comm.to_vec();
        }
        let public = std::str::from_utf8(comm).ok().and_then(public_form);
        public.unwrap_or_else(|| self.comms.of(comm)).into_bytes()
    }

    /// Returns what stands in place of a file's path, or of what a mapping is called.
    pub(crate) fn file(&mut self, path: &[u8]) -> Vec<u8> {
        match is_public_mapping(path) {
            true => path.to_vec(),
            false => self.paths.of(path).into_bytes(),
        }
    }

    /// Returns what stands in place of a function's name, or of a module's.
    pub(crate) fn function(&mut self, name: &str) -> String {
        self.symbols.of(name.as_bytes())
    }

    /// Returns what stands in place of a text.
    pub(crate) fn free_text(&mut self, text: &[u8]) -> Vec<u8> {
        self.texts.of(text).into_bytes()
    }

    /// Returns what stands in place of a word of which it is not known what it names: of a thread's name what stands
    /// for that elsewhere.
    pub(crate) fn word(&mut self, word: &[u8]) -> Vec<u8> {
        let public = str::from_utf8(word).ok().and_then(public_form);
        match public {
            Some(public) => public.into_bytes(),
            None if self.comms.has(word) => self.comms.of(word).into_bytes(),
            None => self.free_text(word),
        }
    }

    /// Returns what stands in place of an address, if that is one of the kernel.
    pub(crate) fn kernel_address(&mut self, address: u64) -> u64 {
        FieldMask::moved(self, address)
    }
}

/// Returns whether this stands for a thread whose name was not recorded: `<...>`, `<idle>`, and perf's `:123`.
fn is_no_name(comm: &[u8]) -> bool {
    let id = comm.strip_prefix(b":").unwrap_or_default();
    let id = id.strip_prefix(b"-").unwrap_or(id);
    comm == b"<...>" || comm == b"<idle>" || (!id.is_empty() && id.iter().all(u8::is_ascii_digit))
}

/// Returns whether the kernel or perf gives a mapping this name.
pub(crate) fn is_public_mapping(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok_and(|name| MAPPINGS.contains(&name))
}

impl TracingMask for RedactedNames {
    fn thread(&mut self, comm: &[u8]) -> Vec<u8> {
        self.comm(comm)
    }

    fn kernel_symbols(&mut self, text: &[u8]) -> Vec<u8> {
        self.kallsyms(text)
    }
}

impl FieldMask for RedactedNames {
    fn moved(&mut self, address: u64) -> u64 {
        let moved = SymbolMask::moved(self, address);
        if moved != address && self.moved.len() < MAX_ADDRESSES {
            self.moved.insert(address);
        }
        moved
    }

    fn long_size(&self) -> u8 {
        self.long_size
    }

    fn text(&mut self, field: &str, text: &[u8]) -> Vec<u8> {
        match field.ends_with("comm") {
            true => self.comm(text),
            false => self.free_text(text),
        }
    }
}

impl SymbolMask for RedactedNames {
    fn moved(&self, address: u64) -> u64 {
        let kernel = match self.long_size {
            4 => NARROW.0..NARROW.1,
            _ => KERNEL..NEGATIVE,
        };
        match kernel.contains(&address) {
            true => address - self.distance,
            false => address,
        }
    }

    fn symbol(&mut self, name: &str) -> String {
        self.symbols.of(name.as_bytes())
    }
}

impl RedactedNames {
    /// Returns the lines of `/proc/kallsyms` of which addresses were moved.
    fn kallsyms(&mut self, text: &[u8]) -> Vec<u8> {
        let used = std::mem::take(&mut self.moved);
        let reduced = symbols::reduced(text, &used, self.long_size, self);
        self.moved = used;
        reduced
    }
}

impl PrivacyMask for Redactor<'_> {
    fn address(&mut self, address: u64) -> u64 {
        FieldMask::moved(&mut self.names, address)
    }

    fn tracepoint(&mut self, id: Option<u32>, record: &mut [u8]) {
        self.record(id, record);
    }

    fn comm(&mut self, comm: &[u8]) -> Vec<u8> {
        self.names.comm(comm)
    }

    fn path(&mut self, path: &[u8]) -> Vec<u8> {
        self.names.file(path)
    }

    fn symbol(&mut self, symbol: &[u8]) -> Vec<u8> {
        self.names.symbols.of(symbol).into_bytes()
    }

    fn release(&mut self, release: &str) -> String {
        texts::release(release)
    }

    fn recorder(&mut self, json: &str) -> Option<String> {
        texts::recorder(json)
    }

    fn tracing(&mut self, data: &[u8]) -> Vec<u8> {
        texts::tracing(data, &mut self.names)
    }
}

impl TracePrivacyMask for Redactor<'_> {
    fn ring_record(&mut self, record: &mut [u8]) {
        let id = self.formats.abi.endian.u16(record, 0).map(u32::from);
        self.record(id, record);
    }

    fn saved_names(&mut self, text: &[u8]) -> Vec<u8> {
        texts::saved_names(text, &mut |comm| self.names.comm(comm))
    }

    fn symbols(&mut self, kallsyms: &[u8]) -> Vec<u8> {
        self.names.kallsyms(kallsyms)
    }

    fn label(&mut self, name: &str) -> String {
        self.names.texts.of(name.as_bytes())
    }

    fn version(&mut self, text: &str) -> String {
        texts::release(text)
    }
}
