//! All formats of one recording, with the tables their print formats refer to.

use crate::{Abi, Diagnostic, Format};

/// Where the parts of a ring buffer page lie, as `events/header_page` says.
///
/// Source: `kernel/trace/ring_buffer.c`, `ring_buffer_print_page_header`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderPage {
    /// Bytes of the `commit` word that follows the 8-byte time stamp: `sizeof(long)` of the kernel.
    pub commit_size: u8,
    /// Offset of the first record in the page, in bytes.
    pub data_offset: u32,
}

impl Default for HeaderPage {
    fn default() -> Self {
        HeaderPage {
            commit_size: 8,
            data_offset: 16,
        }
    }
}

impl HeaderPage {
    /// Parses the text of `events/header_page`; what it does not say keeps the 64-bit kernel's value.
    pub fn parse(text: &[u8]) -> HeaderPage {
        let text = String::from_utf8_lossy(text);
        let mut page = HeaderPage::default();
        let number = |line: &str, key: &str| -> Option<u32> {
            let rest = &line[line.find(key)? + key.len()..];
            rest.split(';').next()?.trim().parse().ok()
        };
        for line in text.lines() {
            if line.contains(" commit;") {
                page.commit_size = match number(line, "size:") {
                    Some(4) => 4,
                    _ => 8,
                };
            } else if line.contains(" data;")
                && let Some(offset) = number(line, "offset:")
            {
                page.data_offset = offset;
            }
        }
        page
    }
}

/// Kernel symbols as `/proc/kallsyms` prints them, sorted by address.
#[derive(Debug, Clone, Default)]
pub struct Kallsyms {
    /// Address and the range of the name in `names`.
    symbols: Vec<(u64, u32, u32)>,
    names: String,
}

impl Kallsyms {
    /// Parses lines of `address type name [module]`; others are skipped.
    ///
    /// Absolute symbols (type `A`) are none of the kernel's functions, and arm64's mapping symbols (`$x`)
    /// only mark places: both are left out, as libtraceevent 1.7.1 does.
    pub fn parse(text: &[u8]) -> Kallsyms {
        let mut table = Kallsyms::default();
        for line in text.split(|&b| b == b'\n') {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|w| !w.is_empty());
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if matches!(kind, b"A" | b"a") || name.starts_with(b"$") {
                continue;
            }
            let (Some(address), Ok(name)) = (parse_hex(address), std::str::from_utf8(name)) else {
                continue;
            };
            let start = table.names.len();
            if start + name.len() > u32::MAX as usize {
                break;
            }
            table.names.push_str(name);
            table
                .symbols
                .push((address, start as u32, name.len() as u32));
        }
        // Of several names for one address libtraceevent prints the one its binary search meets first in
        // a list that has the last line of the text first. See `lookup`.
        table.symbols.reverse();
        table.symbols.sort_by_key(|s| s.0);
        table
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
        let name = self.names.get(name as usize..(name + len) as usize)?;
        Some((name, address - start))
    }

    /// Returns the addresses of the function of that name: up to the next symbol. Takes a look at every symbol.
    pub fn range(&self, name: &str) -> Option<std::ops::Range<u64>> {
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
        let named = |start: u32, len: u32| self.names.get(start as usize..(start + len) as usize);
        self.symbols
            .iter()
            .find(|s| named(s.1, s.2) == Some(name))
            .map(|s| s.0)
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

/// Parses up to 16 hexadecimal digits, and nothing else.
fn parse_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, &b| {
        let digit = (b as char).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// All formats of one recording, and what their print formats refer to.
#[derive(Debug, Clone, Default)]
pub struct Formats {
    /// Byte order and word size of the records.
    pub abi: Abi,
    /// Page size of the recording machine, in bytes; 0 when not told.
    pub page_size: u32,
    /// Layout of ring buffer pages.
    pub header_page: HeaderPage,
    /// Kernel symbols the recorder saved, for `%pS` and stacks.
    pub kallsyms: Kallsyms,
    /// Strings of `trace_printk` by address, sorted by address.
    pub printk: Vec<(u64, String)>,
    /// Names of threads the recorder saved, sorted by thread id.
    pub cmdlines: Vec<(i32, String)>,
    /// What of the texts could not be taken.
    pub diagnostics: Vec<Diagnostic>,
    formats: Vec<Format>,
    /// Index into `formats` by event id, `u32::MAX` for none. Ids are 16-bit in the ring buffer.
    by_id: Vec<u32>,
}

/// Ids above this are not believed: `common_type` has 16 bits.
const MAX_ID: u32 = 0xffff;

impl Formats {
    /// Adds one format text of a subsystem.
    pub fn add(&mut self, system: &str, text: &[u8]) {
        let Some(format) = Format::parse(system, text, self.abi) else {
            self.diagnostics.push(Diagnostic::new(format!(
                "a format of {system} has no usable ID line"
            )));
            return;
        };
        if format.id > MAX_ID {
            self.diagnostics.push(Diagnostic::new(format!(
                "format {system}:{} has id {}, more than 16 bits",
                format.name, format.id
            )));
            return;
        }
        let id = format.id as usize;
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, u32::MAX);
        }
        self.by_id[id] = self.formats.len() as u32;
        self.formats.push(format);
    }

    /// Returns the format whose records carry this `common_type`.
    #[inline]
    pub fn by_id(&self, id: u32) -> Option<&Format> {
        let index = *self.by_id.get(id as usize)?;
        self.formats.get(index as usize)
    }

    /// Returns the format of `system:name`.
    pub fn by_name(&self, system: &str, name: &str) -> Option<&Format> {
        self.formats
            .iter()
            .find(|f| f.name == name && f.system == system)
    }

    /// Returns all formats in the order they were added.
    pub fn all(&self) -> &[Format] {
        &self.formats
    }

    /// Returns the saved name of a thread.
    pub fn comm(&self, tid: i32) -> Option<&str> {
        let at = self.cmdlines.binary_search_by_key(&tid, |c| c.0).ok()?;
        Some(&self.cmdlines[at].1)
    }

    /// Returns the `trace_printk` string at an address.
    pub fn printk(&self, address: u64) -> Option<&str> {
        let at = self.printk.binary_search_by_key(&address, |c| c.0).ok()?;
        Some(&self.printk[at].1)
    }

    /// Takes `saved_cmdlines` text: lines of `PID NAME`.
    pub fn set_cmdlines(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.cmdlines = text
            .lines()
            .filter_map(|line| {
                let (pid, name) = line.trim_start().split_once(' ')?;
                Some((pid.trim().parse().ok()?, name.to_owned()))
            })
            .collect();
        self.cmdlines.sort_by_key(|c| c.0);
        self.cmdlines.dedup_by_key(|c| c.0);
    }

    /// Takes `printk_formats` text: lines of `0xADDRESS : "STRING"`.
    pub fn set_printk(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.printk = text
            .lines()
            .filter_map(|line| {
                let (address, string) = line.split_once(':')?;
                let address = address.trim().trim_start_matches("0x");
                let string = string.trim();
                let string = string.strip_prefix('"').unwrap_or(string);
                let string = string.strip_suffix('"').unwrap_or(string);
                let string = string.strip_suffix("\\n").unwrap_or(string);
                Some((u64::from_str_radix(address, 16).ok()?, string.to_owned()))
            })
            .collect();
        self.printk.sort_by_key(|c| c.0);
    }
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
    fn of_several_names_the_binary_search_decides() {
        let symbols = Kallsyms::parse(b"10 t a\n20 t b\n20 t c\n20 t d\n30 t e\n");
        // Sorted: a, d, c, b, e; the middle one is met first.
        assert_eq!(symbols.lookup(0x20), Some(("c", 0)));
        assert_eq!(symbols.lookup(0x21), Some(("b", 1)));
    }

    #[test]
    fn printk_strings_lose_their_quotes_and_line_feed() {
        let mut formats = Formats::default();
        formats.set_printk(b"0xffffffff82000010 : \"a: %d\\n\"\n0xffffffff82000000 : \"b \"\n");
        assert_eq!(formats.printk(0xffff_ffff_8200_0010), Some("a: %d"));
        assert_eq!(formats.printk(0xffff_ffff_8200_0000), Some("b "));
        assert_eq!(formats.printk(1), None);
    }
}
