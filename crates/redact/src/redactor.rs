//! What stands in place of what.

use model::public_form;
use perfdata::{OmittedParts, PrivacyMask};
use tracedat::TracePrivacyMask;
use tracefmt::FormatCatalog;

use crate::pseudonyms::Pseudonyms;
use crate::records::{self, FieldMask};
use crate::texts;

/// Addresses of the kernel on x86-64 and arm64 begin here (`Documentation/arch/x86/x86_64/mm.rst`,
/// `Documentation/arch/arm64/memory.rst`, with 52 bits), and small negative numbers there.
const KERNEL: u64 = 0xfff0_0000_0000_0000;
const NEGATIVE: u64 = 0xffff_ffff_ff00_0000;
/// Kernels lie at multiples of this; addresses keep their place within it.
const PAGE: u64 = 4096;
/// How far addresses are moved at least and at most, down: 1 MiB and 512 MiB.
const LEAST: u64 = 1 << 20;
const MOST: u64 = 512 << 20;

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

#[derive(Debug)]
struct RedactedNames {
    /// How far down addresses of the kernel are moved, in bytes.
    distance: u64,
    comms: Pseudonyms,
    paths: Pseudonyms,
    symbols: Pseudonyms,
    texts: Pseudonyms,
}

impl<'f> Redactor<'f> {
    /// Returns one for a recording with these formats. Of `random` nobody may know what it is: it says how far
    /// addresses are moved.
    pub fn new(formats: &'f FormatCatalog, random: u64) -> Redactor<'f> {
        let pages = (MOST - LEAST) / PAGE;
        Redactor {
            formats,
            names: RedactedNames {
                distance: LEAST + random % pages * PAGE,
                comms: Pseudonyms::new("task-"),
                paths: Pseudonyms::new("/file-"),
                symbols: Pseudonyms::new("symbol-"),
                texts: Pseudonyms::new("n"),
            },
        }
    }

    /// Returns how much was replaced.
    pub fn counts(&self) -> RedactedCounts {
        RedactedCounts {
            comms: self.names.comms.count(),
            paths: self.names.paths.count(),
            symbols: self.names.symbols.count(),
            texts: self.names.texts.count(),
        }
    }
}

impl Redactor<'_> {
    fn record(&mut self, id: Option<u32>, record: &mut [u8]) {
        let format = id.and_then(|id| self.formats.by_id(id));
        records::mask(record, format, &mut self.names);
    }
}

impl RedactedNames {
    fn comm(&mut self, comm: &[u8]) -> Vec<u8> {
        let public = std::str::from_utf8(comm).ok().and_then(public_form);
        public.unwrap_or_else(|| self.comms.of(comm)).into_bytes()
    }
}

impl FieldMask for RedactedNames {
    fn moved(&self, address: u64) -> u64 {
        match (KERNEL..NEGATIVE).contains(&address) {
            true => address - self.distance,
            false => address,
        }
    }

    fn text(&mut self, field: &str, text: &[u8]) -> Vec<u8> {
        match field.ends_with("comm") {
            true => self.comm(text),
            false => self.texts.of(text).into_bytes(),
        }
    }
}

impl PrivacyMask for Redactor<'_> {
    fn address(&mut self, address: u64) -> u64 {
        self.names.moved(address)
    }

    fn tracepoint(&mut self, id: Option<u32>, record: &mut [u8]) {
        self.record(id, record);
    }

    fn comm(&mut self, comm: &[u8]) -> Vec<u8> {
        self.names.comm(comm)
    }

    fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(path).unwrap_or_default();
        match MAPPINGS.contains(&text) {
            true => path.to_vec(),
            false => self.names.paths.of(path).into_bytes(),
        }
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
        texts::tracing(data, &mut |comm| self.names.comm(comm))
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

    fn label(&mut self, name: &str) -> String {
        self.names.texts.of(name.as_bytes())
    }

    fn version(&mut self, text: &str) -> String {
        texts::release(text)
    }
}
