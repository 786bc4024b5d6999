//! All formats of one recording, with the tables their print formats refer to.

use crate::cast::index;
use crate::index_of;
use crate::{Abi, Diagnostic, EventFormat, Kallsyms};

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

/// All formats of one recording, and what their print formats refer to.
#[derive(Debug, Clone, Default)]
pub struct FormatCatalog {
    /// Byte order and word size of the records.
    pub abi: Abi,
    /// Page size of the recording machine, in bytes; 0 when not recorded.
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
    formats: Vec<EventFormat>,
    /// Index into `formats` by event id, `u32::MAX` for none. Ids are 16-bit in the ring buffer.
    by_id: Vec<u32>,
}

/// Ids above this are not believed: `common_type` has 16 bits.
const MAX_ID: u32 = 0xffff;

impl FormatCatalog {
    /// Adds one format text of a subsystem.
    pub fn add(&mut self, system: &str, text: &[u8]) {
        let Some(format) = EventFormat::parse(system, text, self.abi) else {
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
        let id = index_of(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, u32::MAX);
        }
        self.by_id[id] = index(self.formats.len());
        self.formats.push(format);
    }

    /// Returns the format whose records carry this `common_type`.
    #[inline]
    pub fn by_id(&self, id: u32) -> Option<&EventFormat> {
        let index = *self.by_id.get(index_of(id))?;
        self.formats.get(index_of(index))
    }

    /// Returns the format of `system:name`.
    pub fn by_name(&self, system: &str, name: &str) -> Option<&EventFormat> {
        self.formats
            .iter()
            .find(|f| f.name == name && f.system == system)
    }

    /// Returns all formats in the order they were added.
    pub fn all(&self) -> &[EventFormat] {
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
    fn printk_strings_lose_their_quotes_and_line_feed() {
        let mut formats = FormatCatalog::default();
        formats.set_printk(b"0xffffffff82000010 : \"a: %d\\n\"\n0xffffffff82000000 : \"b \"\n");
        assert_eq!(formats.printk(0xffff_ffff_8200_0010), Some("a: %d"));
        assert_eq!(formats.printk(0xffff_ffff_8200_0000), Some("b "));
        assert_eq!(formats.printk(1), None);
    }
}
