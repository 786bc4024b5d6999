//! What just-in-time compilers tell perf: files `perf-PID.map` of lines `START SIZE name`, in hexadecimal.
//!
//! Source: `tools/perf/Documentation/jit-interface.txt`.

use std::path::Path;

use crate::read::FileSource;
use crate::why::MissingReason;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 4096;
/// Functions that are kept of one file.
const MAX_FUNCTIONS: usize = 4 << 20;

/// The functions that one process had compiled.
#[derive(Debug, Default)]
pub(crate) struct PerfMap {
    text: Vec<u8>,
    /// First address, the one behind the last, and where in the text the name is; by first address.
    functions: Vec<(u64, u64, u32, u32)>,
}

/// Returns whether a file is one of those by its name, as mappings without a file are called.
pub(crate) fn is_perf_map(path: &[u8]) -> bool {
    let name = path.strip_prefix(b"/tmp/perf-");
    let pid = name.and_then(|name| name.strip_suffix(b".map"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

impl PerfMap {
    /// Reads a file of at most so many bytes.
    pub(crate) fn open(path: &Path, most: u64) -> Result<PerfMap, MissingReason> {
        let mut source = FileSource::open(path, most.min(u64::from(u32::MAX)))?;
        let length = source.length();
        Ok(PerfMap::parse(source.bytes(0, length)?))
    }

    /// Reads the text. Lines of another form are left out.
    pub(crate) fn parse(text: Vec<u8>) -> PerfMap {
        let mut functions = Vec::new();
        let mut at = 0;
        for line in text.split(|byte| *byte == b'\n') {
            if functions.len() == MAX_FUNCTIONS {
                break;
            }
            functions.extend(function(line, at));
            at += line.len() + 1;
        }
        // Code is compiled again where other code was: of those that begin at one address the later one counts.
        functions.reverse();
        functions.sort_by_key(|(start, ..)| *start);
        functions.dedup_by_key(|(start, ..)| *start);
        PerfMap { text, functions }
    }

    /// Returns the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&[u8]> {
        let next = self.functions.partition_point(|f| f.0 <= address);
        let (_, end, name, name_end) = *self.functions.get(next.checked_sub(1)?)?;
        let name = self.text.get(name as usize..name_end as usize)?;
        (address < end).then_some(name)
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.functions.len() * size_of::<(u64, u64, u32, u32)>()
    }
}

/// Reads a line that begins at a place of the text.
fn function(line: &[u8], at: usize) -> Option<(u64, u64, u32, u32)> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let number = |word: &[u8]| {
        let text = std::str::from_utf8(word).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, size) = (number(words.next()?)?, number(words.next()?)?);
    let name = words.next()?;
    let name_at = at + line.len() - name.len();
    let name = name.trim_ascii_end();
    if name.is_empty() {
        return None;
    }
    let name_end = name_at + name.len().min(MAX_NAME);
    let end = start.saturating_add(size);
    Some((
        start,
        end,
        name_at.try_into().ok()?,
        name_end.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_addresses() {
        let map = PerfMap::parse(
            b"1000 10 old\n1010 20 LazyCompile:*f /a b.js:1\nnonsense\n0x1000 8 new\n2000 0 none\n"
                .to_vec(),
        );
        assert_eq!(map.find(0x1004), Some(&b"new"[..]));
        assert_eq!(map.find(0x1009), None);
        assert_eq!(map.find(0x102f), Some(&b"LazyCompile:*f /a b.js:1"[..]));
        assert_eq!(map.find(0x1030), None);
        assert_eq!(map.find(0x2000), None);
        assert_eq!(map.find(0xfff), None);
    }

    #[test]
    fn files_are_known_by_their_name() {
        assert!(is_perf_map(b"/tmp/perf-12.map"));
        for other in [
            "/tmp/perf-.map",
            "/tmp/perf-1/../2.map",
            "perf-1.map",
            "/tmp/perf-1.map2",
        ] {
            assert!(!is_perf_map(other.as_bytes()), "{other}");
        }
    }
}
