//! Stubs that call functions of other files. They have no symbols; perf calls them `memcpy@plt`.
//!
//! Source: `dso__synthesize_plt_symbols` in `tools/perf/util/symbol-elf.c`; the ABI supplements of x86-64 and AArch64,
//! which have one entry of the table for each relocation of `.rela.plt`, in the same order.

use object::elf::{Rela64, Sym64};
use object::{Architecture, Endianness, pod};

use crate::demangle::{MAX_MANGLED, demangle};
use crate::elf::Elf;
use crate::why::MissingReason;

/// Bytes of an entry.
const ENTRY: u64 = 16;

/// A table of stubs.
#[derive(Debug, Default)]
pub(crate) struct Plt {
    /// Where the tables begin, behind their headers: `.plt`, and `.plt.sec` where stubs are split in two.
    tables: Vec<u64>,
    /// By entry, the mangled name of the function that it calls; empty where it has none.
    names: Vec<Box<[u8]>>,
}

impl Plt {
    /// Reads the stubs of a file. A file in which entries and relocations are not of one number has none that can be
    /// named.
    pub(crate) fn read(elf: &mut Elf) -> Result<Plt, MissingReason> {
        let header = match elf.architecture {
            Architecture::X86_64 => 16,
            Architecture::Aarch64 => 32,
            _ => return Ok(Plt::default()),
        };
        let mut sections = [b".rela.plt".as_slice(), b".dynsym", b".dynstr"]
            .into_iter()
            .map(|name| elf.read(name));
        let mut next = || sections.next().unwrap_or(Ok(None));
        let (Some(relocations), Some(symbols), Some(strings)) = (next()?, next()?, next()?) else {
            return Ok(Plt::default());
        };
        let name = |relocation: &[u8]| -> Option<Box<[u8]>> {
            let (relocation, _) = pod::from_bytes::<Rela64<Endianness>>(relocation).ok()?;
            let symbol = relocation.r_sym(elf.endian, false);
            let at = (symbol as usize).checked_mul(size_of::<Sym64<Endianness>>())?;
            let (symbol, _) = pod::from_bytes::<Sym64<Endianness>>(symbols.get(at..)?).ok()?;
            let name = strings.get(symbol.st_name.get(elf.endian) as usize..)?;
            let name = &name[..name.len().min(MAX_MANGLED)];
            Some(name.split(|byte| *byte == 0).next()?.into())
        };
        let relocations = relocations.chunks_exact(size_of::<Rela64<Endianness>>());
        let count = relocations.len() as u64;
        // Several tables of one file have the same entries; a name is short, and yet each may be the whole table of
        // strings.
        let mut left = strings.len().saturating_add(MAX_MANGLED);
        let names = relocations.map(|relocation| {
            let name = name(relocation).filter(|name| name.len() <= left);
            left -= name.as_ref().map_or(0, |name| name.len());
            name.unwrap_or_default()
        });
        let names = names.collect();
        let tables = [(b".plt".as_slice(), header), (b".plt.sec", 0)];
        let tables = tables.into_iter().filter_map(|(name, header)| {
            let section = elf.section(name).filter(|section| section.code)?;
            let fits = Some(section.size) == count.checked_mul(ENTRY)?.checked_add(header);
            fits.then(|| section.address.saturating_add(header))
        });
        Ok(Plt {
            tables: tables.collect(),
            names,
        })
    }

    /// Returns what a stub is called.
    pub(crate) fn find(&self, address: u64) -> Option<String> {
        let mut entries = self.tables.iter().filter_map(|table| {
            let entry = address.checked_sub(*table)? / ENTRY;
            self.names.get(usize::try_from(entry).ok()?)
        });
        let name = entries.find(|name| !name.is_empty())?;
        Some(format!("{}@plt", demangle(name)))
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.names.iter().map(|name| name.len() + 16).sum()
    }
}
