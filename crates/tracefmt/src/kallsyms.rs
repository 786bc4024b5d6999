//! The symbols of the kernel that a recorder saved.

use std::ops::Range;

use crate::index_of;

/// Kernel symbols as `/proc/kallsyms` prints them, sorted by address.
#[derive(Debug, Clone, Default)]
pub struct Kallsyms {
    /// Address and the range of the name in `names`; an empty one ends the symbols before it.
    symbols: Vec<(u64, u32, u32)>,
    names: String,
}

impl Kallsyms {
    /// Parses lines of `address type name [module]`; others are skipped.
    ///
    /// Absolute symbols (type `A`) are none of the kernel's functions, and arm64's mapping symbols (`$x`)
    /// only mark places: both are left out, as libtraceevent 1.7.1 does.
    pub fn parse(text: &[u8]) -> Kallsyms {
        let mut table = KallsymsBuilder::default();
        for line in KallsymsLines::of(text) {
            if !table.add(line.address, line.name) {
                break;
            }
        }
        table.finish()
    }

    /// Returns whether symbols have addresses: whoever may not see them is shown zeros.
    pub fn has_addresses(&self) -> bool {
        self.symbols.last().is_some_and(|symbol| symbol.0 != 0)
    }

    /// Returns the symbol that covers `address`, and how far into it the address is.
    ///
    /// The last symbol covers only its own address: nothing says where it ends.
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.symbols.partition_point(|s| s.0 <= address);
        let mut at = after.checked_sub(1)?;
        let exact = self.symbols[at].0 == address;
        if exact && at > 0 && self.symbols[at - 1].0 == address {
            at = self.first_met(address);
        } else if !exact && after == self.symbols.len() {
            return None;
        }
        let (start, name, len) = self.symbols[at];
        let name = self.names.get(index_of(name)..(name + len) as usize)?;
        (!name.is_empty()).then_some((name, address - start))
    }

    /// Returns the addresses of the function of that name: up to the next symbol. Takes a look at every symbol.
    pub fn range(&self, name: &str) -> Option<Range<u64>> {
        let start = self.address(name)?;
        let after = self.symbols.partition_point(|s| s.0 <= start);
        Some(start..self.symbols.get(after)?.0)
    }

    /// Returns which of several symbols at `address` a binary search over all of them meets first.
    fn first_met(&self, address: u64) -> usize {
        let (mut low, mut high) = (0, self.symbols.len());
        loop {
            let middle = (low + high) / 2;
            match self.symbols[middle].0.cmp(&address) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return middle,
            }
        }
    }

    /// Returns the lowest address of a symbol of that name. Takes a look at every symbol.
    pub fn address(&self, name: &str) -> Option<u64> {
        let named = |start: u32, len: u32| self.names.get(index_of(start)..(start + len) as usize);
        self.symbols
            .iter()
            .find(|s| named(s.1, s.2) == Some(name))
            .map(|s| s.0)
    }

    /// Returns where symbols begin, and end where that is known, in order, each address once.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.symbols
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| same[0].0)
    }

    /// Returns whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Returns how many symbols there are.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }
}

/// Makes a list of symbols out of each of them.
#[derive(Debug, Default)]
pub struct KallsymsBuilder {
    table: Kallsyms,
    ends: Vec<u64>,
}

impl KallsymsBuilder {
    /// Adds a symbol. Returns whether there was room: names may have 4 GiB together.
    pub fn add(&mut self, address: u64, name: &str) -> bool {
        let table = &mut self.table;
        let start = table.names.len();
        let ends = (u32::try_from(start), u32::try_from(start + name.len()));
        let (Ok(start), Ok(end)) = ends else {
            return false;
        };
        table.names.push_str(name);
        table.symbols.push((address, start, end - start));
        true
    }

    /// Says that no symbol that begins before an address reaches beyond it.
    pub fn end(&mut self, address: u64) {
        self.ends.push(address);
    }

    /// Returns the symbols in order.
    pub fn finish(self) -> Kallsyms {
        let KallsymsBuilder { mut table, ends } = self;
        // Of several names for one address libtraceevent prints the one its binary search meets first in
        // a list that has the last line of the text first. See `Kallsyms::lookup`.
        // Most lines are in order already, which a sort makes use of only if they are not turned round before it.
        table.symbols.sort_by_key(|s| s.0);
        for same in table.symbols.chunk_by_mut(|a, b| a.0 == b.0) {
            same.reverse();
        }
        let begins = |at: &u64| table.symbols.binary_search_by_key(at, |s| s.0).is_ok();
        let ends: Vec<u64> = ends.into_iter().filter(|at| !begins(at)).collect();
        if !ends.is_empty() {
            table.symbols.extend(ends.into_iter().map(|at| (at, 0, 0)));
            table.symbols.sort_by_key(|s| s.0);
        }
        table
    }
}

/// A line of `/proc/kallsyms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KallsymsLine<'t> {
    /// Where the symbol is; 0 where that is hidden from whoever made the copy.
    pub address: u64,
    /// Its type as `nm` prints it: `t` and `T` are code.
    pub kind: u8,
    /// Its name.
    pub name: &'t str,
    /// The module that it belongs to, without brackets; `None` in the kernel itself.
    pub module: Option<&'t str>,
}

/// The lines of a text as `/proc/kallsyms` has it, without those that are left out of [`Kallsyms`].
#[derive(Debug, Clone)]
pub struct KallsymsLines<'t> {
    text: &'t [u8],
    /// All of it is looked at once, not every name: there are a hundred thousand.
    whole: Option<&'t str>,
    next: usize,
}

impl<'t> KallsymsLines<'t> {
    /// Returns the lines of a text.
    pub fn of(text: &'t [u8]) -> KallsymsLines<'t> {
        KallsymsLines {
            text,
            whole: std::str::from_utf8(text).ok(),
            next: 0,
        }
    }

    fn text_of(&self, range: Range<usize>) -> Option<&'t str> {
        match self.whole {
            Some(whole) => whole.get(range),
            None => std::str::from_utf8(&self.text[range]).ok(),
        }
    }

    /// Reads the next line; `None` where it is left out.
    fn line(&mut self) -> Option<KallsymsLine<'t>> {
        let text = self.text;
        let mut at = self.next;
        let mut word = || {
            let start = at + text[at..].iter().position(|b| !is_blank(*b))?;
            let rest = &text[start..];
            let blank = rest.iter().position(|b| b.is_ascii_whitespace());
            at = start + blank.unwrap_or(rest.len());
            (start < at).then_some(start..at)
        };
        let words = (word(), word(), word(), word());
        let end = text[at..].iter().position(|&b| b == b'\n');
        self.next = end.map_or(text.len(), |end| at + end + 1);
        let (Some(address), Some(kind), Some(name), module) = words else {
            return None;
        };
        if matches!(text[kind.clone()], [b'A' | b'a']) || text[name.start] == b'$' {
            return None;
        }
        let module = module.and_then(|module| self.text_of(module));
        let module = module.and_then(|module| module.strip_prefix('['));
        Some(KallsymsLine {
            address: parse_hex(&text[address])?,
            kind: text[kind.start],
            name: self.text_of(name)?,
            module: module.and_then(|module| module.strip_suffix(']')),
        })
    }
}

impl<'t> Iterator for KallsymsLines<'t> {
    type Item = KallsymsLine<'t>;

    fn next(&mut self) -> Option<KallsymsLine<'t>> {
        while self.next < self.text.len() {
            let line = self.line();
            if line.is_some() {
                return line;
            }
        }
        None
    }
}

/// Whether a byte stands between words of a line.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() && byte != b'\n'
}

/// Parses up to 16 hexadecimal digits, and nothing else.
fn parse_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, &b| {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            b'A'..=b'F' => b - b'A' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_cover_the_addresses_up_to_the_next() {
        let text =
            b"ffffffff81000000 T _text\n0000000000001000 A fixed_percpu\nffffffff81000040 t $x\n\
            ffffffff81000100 T do_one\tsomething\nbad line\nffffffff81000200 t do_two\t[kvm]\n";
        let symbols = Kallsyms::parse(text);
        assert_eq!(symbols.len(), 3);
        assert_eq!(symbols.lookup(0xffff_ffff_8100_0050), Some(("_text", 0x50)));
        assert_eq!(symbols.lookup(0xffff_ffff_8100_0100), Some(("do_one", 0)));
        assert_eq!(symbols.lookup(0xffff_ffff_8100_0200), Some(("do_two", 0)));
        assert_eq!(symbols.lookup(0xffff_ffff_8100_0201), None);
        assert_eq!(symbols.lookup(0x1000), None);
    }

    #[test]
    fn lines_are_read_however_they_are_spaced() {
        let text = b"  10\t t  one \r\n\n20 t\n30\n  \n40 T \xff\xfe\nAb T two\x0cmore words\r\n\
            g0 T no\n00000000000000050 T long\n60 T \xc3\xa9t\xc3\xa9\n70 T last";
        let symbols = Kallsyms::parse(text);
        let names = [0x10, 0x60, 0x70, 0xab].map(|at| symbols.lookup(at).map(|(name, _)| name));
        assert_eq!(
            names,
            [
                Some("one"),
                Some("\u{e9}t\u{e9}"),
                Some("last"),
                Some("two")
            ]
        );
        assert_eq!(symbols.len(), 4);
    }

    #[test]
    fn of_several_names_the_binary_search_decides() {
        let symbols = Kallsyms::parse(b"10 t a\n20 t b\n20 t c\n20 t d\n30 t e\n");
        // Sorted: a, d, c, b, e; the middle one is met first.
        assert_eq!(symbols.lookup(0x20), Some(("c", 0)));
        assert_eq!(symbols.lookup(0x21), Some(("b", 1)));
    }

    #[test]
    fn symbols_end_where_that_is_known() {
        let mut table = KallsymsBuilder::default();
        table.end(0x30);
        for (address, name) in [(0x20, "b"), (0x10, "a"), (0x40, "c")] {
            assert!(table.add(address, name));
        }
        table.end(0x20);
        table.end(0x50);
        let symbols = table.finish();
        let at = |address| symbols.lookup(address).map(|(name, _)| name);
        let names = [0x10, 0x1f, 0x20, 0x2f, 0x30, 0x3f, 0x4f, 0x50].map(at);
        let (a, b) = (Some("a"), Some("b"));
        assert_eq!(names, [a, a, b, b, None, None, Some("c"), None]);
    }

    #[test]
    fn lines_have_the_module() {
        let text = b"10 t one\t[kvm]\n20 T two\n30 d odd [x\n";
        let lines: Vec<_> = KallsymsLines::of(text).collect();
        let modules = [Some("kvm"), None, None];
        assert_eq!([0, 1, 2].map(|at| lines[at].module), modules);
        assert_eq!([0, 1, 2].map(|at| lines[at].kind), *b"tTd");
    }
}
