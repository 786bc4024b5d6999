//! Where in a line what stands: for those who replace parts of a text and leave the rest as it is.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use crate::clean;
use crate::graph;
use crate::head::{self, EventHead, HeadRest};
use crate::lines::MAX_LINE;
use crate::other::{self, LineContext, OtherLine};
use crate::types::Types;

/// What a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineContent {
    /// An event.
    Event,
    /// A record that perf script prints beside events: what it says begins with `PERF_RECORD_`.
    Record,
    /// A line of the function tracer: `callee <-caller`.
    Function,
    /// A line of the function_graph tracer: a duration and a call.
    FunctionGraph,
    /// Part of a call chain.
    Stack,
    /// A line of perf's or ftrace's header, which begins with `#`.
    Header,
    /// Anything else.
    Other,
}

/// A line, and where in it its parts stand. A part that it has not is empty.
#[derive(Debug, Clone)]
pub struct SplitLine<'l> {
    /// Its bytes, without what ends it; HTML's entities, colours of terminals and other spaces of Unicode are undone.
    pub bytes: Cow<'l, [u8]>,
    /// What it has.
    pub content: LineContent,
    /// The name of the file or buffer that a merged report prints before each line.
    pub source: Range<usize>,
    /// The name of the thread.
    pub comm: Range<usize>,
    /// The name of the event, with its subsystem if that is printed.
    pub event: Range<usize>,
    /// Where what it says begins: behind the event's name, or where the line begins.
    pub says: usize,
}

/// Names of events are not remembered from one line to the next.
static NO_TYPES: LazyLock<Types> = LazyLock::new(Types::default);

/// Splits the lines of a text, one after the other: what a line is may depend on the one before it.
#[derive(Debug, Clone, Copy)]
pub struct LineSplitter {
    context: LineContext,
}

impl Default for LineSplitter {
    fn default() -> LineSplitter {
        LineSplitter {
            context: LineContext {
                after_event: false,
                in_stack: false,
            },
        }
    }
}

impl LineSplitter {
    /// Splits the next line.
    pub fn split<'l>(&mut self, line: &'l [u8]) -> SplitLine<'l> {
        let split = self.split_in_context(line);
        let is_stack = split.content == LineContent::Stack;
        self.context = LineContext {
            after_event: matches!(split.content, LineContent::Event | LineContent::Function),
            in_stack: is_stack,
        };
        split
    }

    fn split_in_context<'l>(self, line: &'l [u8]) -> SplitLine<'l> {
        let mut bytes = match clean::next_suspect(line, 0) {
            usize::MAX => Cow::Borrowed(line),
            _ => Cow::Owned(clean::clean(line)),
        };
        if bytes.len() > MAX_LINE {
            return SplitLine::of(bytes, LineContent::Other);
        }
        let mut head = head::parse(&bytes, &NO_TYPES, false);
        if head.is_none()
            && !bytes.is_ascii()
            && let Some(repaired) = clean::repair(&bytes)
        {
            head = head::parse(&repaired, &NO_TYPES, false);
            bytes = Cow::Owned(repaired);
        }
        if let Some(head) = head {
            return SplitLine::of_head(bytes, &head);
        }
        if let Some(read) = graph::parse(&bytes) {
            let mut split = SplitLine::of(bytes, LineContent::FunctionGraph);
            (split.comm, split.says) = (read.comm.range(), read.says.range().start);
            return split;
        }
        let bare = other::unquoted(&bytes);
        let content = match other::classify(bare, self.context) {
            OtherLine::Stack => LineContent::Stack,
            _ if bare.trim_ascii_start().starts_with(b"#") => LineContent::Header,
            _ => LineContent::Other,
        };
        let says = bytes.len() - bare.len();
        let mut split = SplitLine::of(bytes, content);
        split.says = says;
        split
    }
}

impl<'l> SplitLine<'l> {
    fn of(bytes: Cow<'l, [u8]>, content: LineContent) -> SplitLine<'l> {
        SplitLine {
            bytes,
            content,
            source: 0..0,
            comm: 0..0,
            event: 0..0,
            says: 0,
        }
    }

    fn of_head(bytes: Cow<'l, [u8]>, head: &EventHead) -> SplitLine<'l> {
        let content = match head.what {
            HeadRest::Event => LineContent::Event,
            HeadRest::Record => LineContent::Record,
            HeadRest::Function | HeadRest::KernelStack | HeadRest::UserStack => {
                LineContent::Function
            }
        };
        let says = match content {
            LineContent::Event => head.args as usize,
            _ => usize::from(head.colon) + 1,
        };
        SplitLine {
            source: head.who.source.range(),
            comm: head.who.comm.range(),
            event: match content {
                LineContent::Event => head.name.range(),
                _ => 0..0,
            },
            says: says.min(bytes.len()),
            ..SplitLine::of(bytes, content)
        }
    }

    /// Returns a part as text bytes.
    pub fn part(&self, part: &Range<usize>) -> &[u8] {
        self.bytes.get(part.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (LineContent, String, String, String) {
        let split = LineSplitter::default().split(line.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            split.content,
            text(split.part(&split.comm)),
            text(split.part(&split.event)),
            text(&split.bytes[split.says..]),
        )
    }

    #[test]
    fn parts_of_every_form_are_found() {
        for (line, content, comm, event, says) in [
            (
                "   CPU 0/KVM  1240 [001]   444.000100: kvm:kvm_exit: vcpu 0 reason HLT",
                LineContent::Event,
                "CPU 0/KVM",
                "kvm:kvm_exit",
                "vcpu 0 reason HLT",
            ),
            (
                "my shell-12 [001] d..1. 444.000100: sched_wakeup: a b:1 [120]",
                LineContent::Event,
                "my shell",
                "sched_wakeup",
                "a b:1 [120]",
            ),
            (
                " bash 12 [001] 444.000100: PERF_RECORD_COMM: bash:12/12",
                LineContent::Record,
                "bash",
                "",
                " PERF_RECORD_COMM: bash:12/12",
            ),
            (
                " 1)  bash-12  |   0.541 us    |  kvm_arch_vcpu_put();",
                LineContent::FunctionGraph,
                "bash",
                "",
                "0.541 us    |  kvm_arch_vcpu_put();",
            ),
            (
                "\tffffffff8108a0b1 vmx_vcpu_run+0x1 ([kvm_intel])",
                LineContent::Stack,
                "",
                "",
                "\tffffffff8108a0b1 vmx_vcpu_run+0x1 ([kvm_intel])",
            ),
            (
                "# hostname : db1",
                LineContent::Header,
                "",
                "",
                "# hostname : db1",
            ),
            (
                "Since noon it hangs.",
                LineContent::Other,
                "",
                "",
                "Since noon it hangs.",
            ),
        ] {
            let expected = (content, comm.to_owned(), event.to_owned(), says.to_owned());
            assert_eq!(parts(line), expected, "{line}");
        }
    }
}
