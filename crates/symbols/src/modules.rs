//! Where a kernel's modules are, as `/proc/modules` has them.

use std::collections::BTreeMap;

/// Modules kept. A kernel has some hundred.
const MAX_MODULES: usize = 1 << 16;

/// Where modules are: name, first address, first address behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    by_start: BTreeMap<u64, (u64, Box<str>)>,
}

impl Modules {
    /// Reads a copy of `/proc/modules`: lines `NAME SIZE REFERENCES DEPENDENCIES STATE ADDRESS`. Lines that are none of
    /// these, and modules whose address was hidden (who is not root reads 0), are left out.
    pub fn parse(text: &[u8]) -> Modules {
        let mut modules = Modules::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(size), Some(address)) =
                (words.next(), words.next(), words.nth(3))
            else {
                continue;
            };
            let digits = address.strip_prefix("0x");
            let start = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let (Some(start), Ok(size)) = (start.filter(|start| *start > 0), size.parse::<u64>())
            else {
                continue;
            };
            if modules.by_start.len() < MAX_MODULES {
                let end = start.saturating_add(size);
                modules.by_start.insert(start, (end, name.into()));
            }
        }
        modules
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Returns where modules begin and end.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = u64> + '_ {
        let modules = self.by_start.iter();
        modules.flat_map(|(start, (end, _))| [*start, *end])
    }

    /// Returns the modules: name, first address, bytes.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let modules = self.by_start.iter();
        modules.map(|(start, (end, name))| (&**name, *start, end - start))
    }

    /// Returns the module that an address is in, and where that begins.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (end, name)) = self.by_start.range(..=address).next_back()?;
        (address < *end).then_some((name, *start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_their_places() {
        let text = b"virtio_net 57344 0 - Live 0xffffc22915898000\n\
            vsock 40960 2 a,b, Live 0xffffc229158a7000 (OE)\n\
            hidden 4096 0 - Live 0x0000000000000000\nodd\n\xff\n";
        let modules = Modules::parse(text);
        assert_eq!(
            modules.find(0xffff_c229_1589_8010),
            Some(("virtio_net", 0xffff_c229_1589_8000))
        );
        assert_eq!(
            modules.find(0xffff_c229_158a_7000),
            Some(("vsock", 0xffff_c229_158a_7000))
        );
        assert_eq!(modules.find(0xffff_c229_158a_6fff), None);
        assert_eq!(modules.find(0), None);
        assert!(Modules::parse(b"").is_empty());
    }
}
