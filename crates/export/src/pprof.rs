//! Stacks as a profile of pprof's, which Go's tools, Grafana, Parca and Pyroscope read.
//!
//! Numbers of fields are those of `proto/profile.proto` of <https://github.com/google/pprof>. Readers take the bytes as
//! they are, or compressed by gzip.

use rustc_hash::FxHashMap;
use stacks::{FrameOwner, Stacks};

use crate::proto::ProtoMessage;

/// Stacks, and what they are of.
#[derive(Debug, Clone, Copy)]
pub struct PprofProfile<'s> {
    /// The stacks.
    pub stacks: &'s Stacks,
    /// What the amounts are of: an event's name.
    pub event: &'s str,
    /// Whether amounts are nanoseconds; else they are counts.
    pub nanoseconds: bool,
    /// Sentences about the whole: where it is from, and what is doubted.
    pub comments: &'s [String],
}

/// Texts by their numbers; the first is empty, as the format wants it.
struct StringTable<'s> {
    numbers: FxHashMap<&'s str, u64>,
    texts: Vec<&'s str>,
}

impl<'s> StringTable<'s> {
    fn new() -> StringTable<'s> {
        let mut table = StringTable {
            numbers: FxHashMap::default(),
            texts: Vec::new(),
        };
        table.number("");
        table
    }

    fn number(&mut self, text: &'s str) -> u64 {
        let next = self.texts.len() as u64;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }
}

/// Whose code a frame is, as the name of a mapping; none of what is no code.
fn mapping(owner: FrameOwner) -> Option<(u64, &'static str)> {
    Some(match owner {
        FrameOwner::Group => return None,
        FrameOwner::Kernel => (1, "[kernel]"),
        FrameOwner::Kvm => (2, "[kvm]"),
        FrameOwner::User => (3, "[user]"),
        FrameOwner::Vmm => (4, "[vmm]"),
        FrameOwner::Guest => (5, "[guest]"),
        FrameOwner::Unknown => (6, "[unknown]"),
    })
}

/// All owners that have a mapping.
const OWNERS: [FrameOwner; 6] = [
    FrameOwner::Kernel,
    FrameOwner::Kvm,
    FrameOwner::User,
    FrameOwner::Vmm,
    FrameOwner::Guest,
    FrameOwner::Unknown,
];

impl PprofProfile<'_> {
    /// Returns the profile's bytes, not compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = ProtoMessage::default();
        let mut texts = StringTable::new();
        let unit = if self.nanoseconds {
            "nanoseconds"
        } else {
            "count"
        };
        // `sample_type`.
        for (kind, unit) in [("samples", "count"), (self.event, unit)] {
            let (kind, unit) = (texts.number(kind), texts.number(unit));
            out.message(1, |value| {
                value.uint(1, kind);
                value.uint(2, unit);
            });
        }
        // `sample`: its frames, the innermost first, and its values.
        self.stacks.each(|stack, weight| {
            out.message(2, |sample| {
                for frame in stack.iter().rev() {
                    sample.uint(1, u64::from(*frame) + 1);
                }
                sample.uint(2, weight.samples);
                sample.uint(2, weight.amount);
            });
        });
        // `mapping`, with `has_functions`: nothing is left to be named.
        for (id, name) in OWNERS.into_iter().filter_map(mapping) {
            let name = texts.number(name);
            out.message(3, |mapping| {
                mapping.uint(1, id);
                mapping.uint(5, name);
                mapping.uint(7, 1);
            });
        }
        for (name, id) in self.stacks.names().iter().zip(1..) {
            let text = texts.number(&name.text);
            // `location`, with one `line`.
            out.message(4, |location| {
                location.uint(1, id);
                if let Some((mapping, _)) = mapping(name.part) {
                    location.uint(2, mapping);
                }
                location.message(4, |line| line.uint(1, id));
            });
            // `function`.
            out.message(5, |function| {
                function.uint(1, id);
                function.uint(2, text);
                function.uint(3, text);
            });
        }
        // `comment`, and `default_sample_type`.
        for comment in self.comments {
            out.uint(13, texts.number(comment));
        }
        out.uint(14, texts.number(self.event));
        // `string_table`.
        for text in &texts.texts {
            out.bytes(6, text.as_bytes());
        }
        std::mem::take(out.bytes_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacks::{FrameName, Weight};

    #[test]
    fn frames_stand_innermost_first_with_both_values() {
        let mut stacks = Stacks::new(16);
        let mut node = stacks::ROOT;
        for (text, part) in [("sh", FrameOwner::Group), ("read", FrameOwner::Kernel)] {
            let name = stacks.number(FrameName {
                text: text.into(),
                part,
            });
            node = stacks.child(node, name).expect("there is room");
        }
        let weight = Weight {
            samples: 2,
            amount: 300,
        };
        stacks.weigh(node, weight);
        let profile = PprofProfile {
            stacks: &stacks,
            event: "cpu-clock",
            nanoseconds: true,
            comments: &[],
        };
        let bytes = profile.encode();
        let sample = b"\x12\x09\x08\x02\x08\x01\x10\x02\x10\xac\x02";
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(has(sample), "{bytes:x?}");
        // The first text is empty; a group has no mapping, and the kernel's has the first.
        assert!(has(b"\x32\x00\x32\x07samples\x32\x05count"), "{bytes:x?}");
        assert!(has(b"\x22\x06\x08\x01\x22\x02\x08\x01"), "{bytes:x?}");
        assert!(
            has(b"\x22\x08\x08\x02\x10\x01\x22\x02\x08\x02"),
            "{bytes:x?}"
        );
    }
}
