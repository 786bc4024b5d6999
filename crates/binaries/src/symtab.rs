//! Tables of symbols.
//!
//! Which symbols count and which of several has an address is as in `tools/perf/util/{symbol,symbol-elf}.c` of kernel
//! 6.1 (`dso__load_sym`, `symbols__fixup_end`, `choose_best_symbol`), so that names are those that perf prints. One
//! rule is stricter: a symbol without a size goes to the next symbol, and no further than its section.

use std::cmp::Reverse;
use std::sync::Arc;

use object::elf::{
    STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STV_HIDDEN, STV_INTERNAL, Sym32,
    Sym64,
};
use object::read::elf::Sym;
use object::{Architecture, Endianness, pod};

use crate::demangle::MAX_MANGLED;
use crate::elf::{Elf, ElfSection};
use crate::why::MissingReason;

/// A function, as its table has it.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: u64,
    end: u64,
    /// Where its section ends.
    section_end: u64,
    /// Where its name is.
    name: u32,
    is_label: bool,
    is_weak: bool,
    is_global: bool,
}

/// Addresses in a row that have one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SymbolStretch {
    start: u64,
    end: u64,
    name: u32,
}

/// The functions of a file, by address.
#[derive(Debug, Default)]
pub(crate) struct FileSymbols {
    stretches: Vec<SymbolStretch>,
    names: Arc<[u8]>,
    /// Whether all functions have a symbol: `.symtab`, and not the symbols that other files may use.
    pub complete: bool,
}

impl FileSymbols {
    /// Reads the symbols of a file: all, or where these were taken out, those that other files may use. There may be
    /// none.
    pub(crate) fn read(elf: &mut Elf) -> Result<FileSymbols, MissingReason> {
        let tables: [(&[u8], &[u8]); 2] = [(b".symtab", b".strtab"), (b".dynsym", b".dynstr")];
        for (table, names) in tables {
            let (Some(bytes), Some(names)) = (elf.read(table)?, elf.read(names)?) else {
                continue;
            };
            let symbols = parse(elf, &bytes, &names, |_| true)?;
            if !symbols.is_empty() {
                return Ok(FileSymbols {
                    stretches: stretches(symbols, &names),
                    names,
                    complete: table == b".symtab",
                });
            }
        }
        Ok(FileSymbols::default())
    }

    /// Reads the symbols of one section of a file whose sections have no addresses: they count from its beginning.
    pub(crate) fn of_section(elf: &mut Elf, number: u16) -> Result<FileSymbols, MissingReason> {
        let (Some(bytes), Some(names)) = (elf.read(b".symtab")?, elf.read(b".strtab")?) else {
            return Ok(FileSymbols::default());
        };
        let symbols = parse(elf, &bytes, &names, |section| section == number)?;
        Ok(FileSymbols {
            stretches: stretches(symbols, &names),
            names,
            complete: true,
        })
    }

    /// Returns the addresses and names of functions, in order. What begins within another is followed by the rest of
    /// that.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let stretches = self.stretches.iter();
        stretches.map(|stretch| (stretch.start, name_at(&self.names, stretch.name)))
    }

    /// Returns the mangled name of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&[u8]> {
        let next = self.stretches.partition_point(|s| s.start <= address);
        let stretch = self.stretches.get(next.checked_sub(1)?)?;
        (address < stretch.end).then(|| name_at(&self.names, stretch.name))
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.names.len() + self.stretches.len() * size_of::<SymbolStretch>()
    }
}

fn name_at(names: &[u8], at: u32) -> &[u8] {
    let name = names.get(at as usize..).unwrap_or_default();
    let name = &name[..name.len().min(MAX_MANGLED)];
    let end = name.iter().position(|byte| *byte == 0);
    &name[..end.unwrap_or(name.len())]
}

/// Returns the lowest address of a function, or of a label in code, by its name.
pub(crate) fn address_of(elf: &mut Elf, name: &[u8]) -> Option<u64> {
    let (bytes, names) = (elf.read(b".symtab").ok()??, elf.read(b".strtab").ok()??);
    let symbols = parse(elf, &bytes, &names, |_| true).ok()?;
    let named = symbols
        .iter()
        .filter(|symbol| name_at(&names, symbol.name) == name);
    named.map(|symbol| symbol.start).min()
}

/// Reads a table, of the sections that `wanted` chooses by their numbers.
fn parse(
    elf: &Elf,
    bytes: &[u8],
    names: &[u8],
    wanted: impl Fn(u16) -> bool,
) -> Result<Vec<Symbol>, MissingReason> {
    // The tables are arrays of a fixed size each; `object` has no alignment to keep with these types.
    let size = match elf.is_64 {
        true => size_of::<Sym64<Endianness>>(),
        false => size_of::<Sym32<Endianness>>(),
    };
    let mut found = Vec::new();
    for entry in bytes.chunks_exact(size) {
        let symbol = if elf.is_64 {
            let (symbol, _) =
                pod::from_bytes::<Sym64<Endianness>>(entry).map_err(|()| MissingReason::Damaged)?;
            function(elf, symbol, names).filter(|_| wanted(symbol.st_shndx(elf.endian).0))
        } else {
            let (symbol, _) =
                pod::from_bytes::<Sym32<Endianness>>(entry).map_err(|()| MissingReason::Damaged)?;
            function(elf, symbol, names).filter(|_| wanted(symbol.st_shndx(elf.endian).0))
        };
        found.extend(symbol);
    }
    Ok(found)
}

/// Returns a symbol if it is a function's, or a label in code.
fn function<S>(elf: &Elf, symbol: &S, names: &[u8]) -> Option<Symbol>
where
    S: Sym<Endian = Endianness>,
{
    let name = symbol.st_name(elf.endian);
    let section = section_of(elf, symbol.st_shndx(elf.endian).0)?;
    let kind = symbol.st_type();
    let is_label = kind == STT_NOTYPE;
    let hidden = [STV_HIDDEN, STV_INTERNAL].contains(&symbol.st_visibility());
    let wanted = kind == STT_FUNC || kind == STT_GNU_IFUNC || is_label && section.code && !hidden;
    if name == 0 || !wanted {
        return None;
    }
    // Marks of where code and data begin, which ARM, AArch64 and RISC-V have between functions.
    let text = names.get(name as usize..).unwrap_or_default();
    if is_label && text.first() == Some(&b'$') || text.first().is_none_or(|byte| *byte == 0) {
        return None;
    }
    let mut start: u64 = symbol.st_value(elf.endian).into();
    if elf.architecture == Architecture::Arm && !is_label {
        // The lowest bit says that a function is Thumb code.
        start &= !1;
    }
    Some(Symbol {
        start,
        end: start.saturating_add(symbol.st_size(elf.endian).into()),
        section_end: section.address.saturating_add(section.size),
        name,
        is_label,
        is_weak: symbol.st_bind() == STB_WEAK,
        is_global: symbol.st_bind() == STB_GLOBAL,
    })
}

/// Returns the section of a symbol. What has none is no function of this file.
fn section_of(elf: &Elf, index: u16) -> Option<&ElfSection> {
    elf.sections.get(usize::from(index).checked_sub(1)?)
}

fn stretches(mut symbols: Vec<Symbol>, names: &[u8]) -> Vec<SymbolStretch> {
    // Those at one address stay in the order of the table, as perf has them.
    symbols.sort_by_key(|symbol| symbol.start);
    let next: Vec<u64> = symbols.iter().skip(1).map(|s| s.start).collect();
    for (symbol, next) in symbols.iter_mut().zip(next.into_iter().chain([u64::MAX])) {
        if symbol.end == symbol.start {
            symbol.end = next.min(symbol.section_end).max(symbol.start);
        }
    }
    symbols.dedup_by(|later, first| {
        if later.start != first.start {
            return false;
        }
        if rank(later, names) > rank(first, names) {
            *first = *later;
        }
        true
    });
    flatten(&symbols)
}

/// What makes one of several symbols at an address the better one.
fn rank(symbol: &Symbol, names: &[u8]) -> impl Ord {
    let name = name_at(names, symbol.name);
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    (
        symbol.end > symbol.start,
        !symbol.is_label,
        !symbol.is_weak,
        symbol.is_global,
        Reverse(underscores),
        name.len(),
    )
}

/// Makes of symbols that may lie in each other stretches that do not: the one that begins last has an address.
fn flatten(symbols: &[Symbol]) -> Vec<SymbolStretch> {
    let mut found: Vec<SymbolStretch> = Vec::with_capacity(symbols.len());
    let mut open: Vec<&Symbol> = Vec::new();
    let mut at = 0;
    let mut add = |symbol: &Symbol, start: u64, end: u64| {
        if start < end {
            let name = symbol.name;
            found.push(SymbolStretch { start, end, name });
        }
    };
    for symbol in symbols {
        while let Some(last) = open.pop_if(|last| last.end <= symbol.start) {
            add(last, at, last.end);
            at = at.max(last.end);
        }
        if let Some(last) = open.last() {
            add(last, at, symbol.start);
        }
        at = symbol.start;
        open.push(symbol);
    }
    while let Some(last) = open.pop() {
        add(last, at, last.end);
        at = at.max(last.end);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn symbol(start: u64, end: u64, name: u32) -> Symbol {
        Symbol {
            start,
            end,
            section_end: 1000,
            name,
            is_label: false,
            is_weak: false,
            is_global: true,
        }
    }

    proptest! {
        #[test]
        fn the_symbol_that_begins_last_has_an_address(
            ranges in prop::collection::btree_map(0..60u64, 1..30u64, 0..20),
        ) {
            let symbols: Vec<Symbol> = ranges
                .iter()
                .zip(0..)
                .map(|((start, size), name)| symbol(*start, start + size, name))
                .collect();
            let table = FileSymbols {
                stretches: flatten(&symbols),
                names: Arc::from(*b""),
                complete: true,
            };
            for address in 0..100 {
                let has = |s: &&Symbol| s.start <= address && address < s.end;
                let expected = symbols.iter().rev().find(has).map(|s| s.name);
                let next = table.stretches.partition_point(|s| s.start <= address);
                let found = next.checked_sub(1).map(|at| table.stretches[at]);
                let found = found.filter(|s| address < s.end).map(|s| s.name);
                prop_assert_eq!(found, expected, "{}", address);
            }
        }
    }

    #[test]
    fn symbols_without_a_size_go_to_the_next_or_to_the_end_of_their_section() {
        let names = b"\0a\0b\0";
        let mut first = symbol(100, 100, 1);
        first.section_end = 150;
        let found = stretches(vec![symbol(200, 210, 3), first], names);
        let stretch = |start, end, name| SymbolStretch { start, end, name };
        assert_eq!(found, [stretch(100, 150, 1), stretch(200, 210, 3)]);
        first.section_end = 1000;
        let found = stretches(vec![symbol(200, 210, 3), first], names);
        assert_eq!(found, [stretch(100, 200, 1), stretch(200, 210, 3)]);
    }

    #[test]
    fn the_better_of_two_names_is_perfs() {
        let names = b"\0__write\0write\0writing\0";
        let (under, plain, long) = (1, 9, 15);
        let best = |a: Symbol, b: Symbol| stretches(vec![a, b], names)[0].name;
        assert_eq!(best(symbol(5, 9, under), symbol(5, 9, plain)), plain);
        assert_eq!(best(symbol(5, 9, plain), symbol(5, 9, long)), long);
        let mut weak = symbol(5, 9, long);
        weak.is_weak = true;
        weak.is_global = false;
        assert_eq!(best(weak, symbol(5, 9, under)), under);
        let mut label = symbol(5, 9, plain);
        label.is_label = true;
        assert_eq!(best(label, symbol(5, 9, under)), under);
    }
}
