//! How often probes of programs were run into, as the kernel counts it.

use std::fs::File;
use std::io::{Read, Seek};

use crate::tracefs::Tracefs;

/// Bytes that are read at most: a line for each probe of the machine.
const MOST: u64 = 1 << 20;

/// The kernel's count of a probe's hits, by whoever uses it (`uprobe_profile` in tracefs,
/// `kernel/trace/trace_uprobe.c`).
#[derive(Debug, Default)]
pub(super) struct ProbeProfile {
    file: Option<File>,
    name: String,
}

impl ProbeProfile {
    /// Opens it for the probe of a name.
    pub(super) fn open(tracefs: &Tracefs, name: &str) -> ProbeProfile {
        ProbeProfile {
            file: File::open(tracefs.root().join("uprobe_profile")).ok(),
            name: name.to_owned(),
        }
    }

    /// Returns how often it was run into; `None` where the kernel does not say.
    pub(super) fn hits(&mut self) -> Option<u64> {
        let file = self.file.as_mut()?;
        file.rewind().ok()?;
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text).ok()?;
        hits(&text, &self.name)
    }
}

/// Returns the hits of a probe: behind its file and its name, of a file whose path may have spaces. Those of one name
/// in several groups are added up.
fn hits(text: &str, name: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().rev();
        // Since 6.13 those that were missed stand behind the hits.
        let last: u64 = words.next()?.parse().ok()?;
        let (hits, own) = match words.next()? {
            word if word == name => (last, true),
            word => (word.parse().ok()?, words.next()? == name),
        };
        own.then_some(hits)
    });
    lines.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_stand_behind_the_name_in_all_kernels() {
        let old = "  /usr/bin/a                poll_once           5000\n  /a b  other 7\n";
        assert_eq!(hits(old, "poll_once"), Some(5000));
        assert_eq!(hits(old, "other"), Some(7));
        let new = "  /usr/bin/a                poll_once           5000   3\n";
        assert_eq!(hits(new, "poll_once"), Some(5000));
        assert_eq!(hits(new, "none"), None);
    }
}
