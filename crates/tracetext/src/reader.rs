//! Reads a text piece by piece and pushes what it holds.

use std::ops::ControlFlow;

use event::{Kind, Sink, TextReader, TextReading};

use crate::clean;
use crate::event_like::{begins_event, ends_in_thread_and_time, looks_like_event};
use crate::graph::{self, GraphLine};
use crate::head::{self, EventHead, HeadRest};
use crate::head_cache::HeadCache;
use crate::lines::{Cut, MAX_LINE, TextLine, TextLines};
use crate::other::{self, LineContext, OtherLine};
use crate::scan;
use crate::state::TextState;
use crate::summary::{TextProducer, TextSummary};
use crate::who::LineTask;
use crate::wrap::{BrokenWidth, Glue, PendingEvent};

/// How far [`TraceTextReader::feed`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedProgress {
    /// Bytes that were read; the rest is to be given again, with more behind it.
    pub consumed: usize,
    /// Whether the sink asked to end.
    pub flow: ControlFlow<()>,
}

/// Reads a text that comes in pieces, with memory that does not grow with its length.
///
/// Give [`feed`](TraceTextReader::feed) what there is, keep what it did not consume, and give it again with more
/// behind it. Of more than a megabyte it consumes something always. Pieces of 64 KiB and more read fastest.
#[derive(Debug, Default)]
pub struct TraceTextReader {
    state: TextState,
    /// What events say.
    says: TextReader,
    /// What ends a line, once a line was seen.
    separator: Option<u8>,
    /// Inside a line that is too long.
    skipping: bool,
    /// Heads of earlier lines.
    heads: HeadCache,
    /// Where lines are broken.
    broken: BrokenWidth,
}

/// A line, and its head if it is an event's.
type ParsedLine<'b> = (TextLine<'b>, Option<EventHead>);

/// An event may be broken into so many lines.
const MAX_PARTS: usize = 8;

/// A piece of text on its way through the reader.
struct TextPiece<'b> {
    lines: TextLines<'b>,
    /// Whether the text ends with this piece.
    end: bool,
    /// Bytes in it.
    len: usize,
    /// Where the first line starts that was not looked at.
    at: usize,
    /// A line that was looked at and not read yet.
    held: Option<ParsedLine<'b>>,
}

/// What stands behind the line in hand.
enum Peek {
    Line,
    /// Nothing, or nothing that could belong to it.
    Nothing,
    /// The piece ends, the text does not.
    More,
}

/// What became of a line.
enum LineFate {
    Read,
    /// Whether it ends here can only be known with more text.
    More,
    Break,
}

impl TraceTextReader {
    /// Returns a reader at the start of a text.
    pub fn new() -> TraceTextReader {
        TraceTextReader::default()
    }

    /// Reads lines from `bytes` and pushes their events into `sink`. `end` says that nothing follows.
    pub fn feed(&mut self, bytes: &[u8], end: bool, sink: &mut dyn Sink) -> FeedProgress {
        let at = self.begin(bytes, end);
        let mut piece = TextPiece {
            lines: TextLines::new(bytes, end, self.separator.unwrap_or(b'\n')),
            end,
            len: bytes.len(),
            at,
            held: None,
        };
        let mut flow = ControlFlow::Continue(());
        let mut consumed = at;
        while let Some((line, head)) = self.next(&mut piece) {
            let start = line.start;
            let done = match head {
                Some(head) => self.event(line, head, &mut piece, sink),
                None => self.no_event(line, &mut piece, sink),
            };
            consumed = piece.held.as_ref().map_or(piece.at, |(line, _)| line.start);
            match done {
                LineFate::Read => {}
                LineFate::More => {
                    consumed = start;
                    break;
                }
                LineFate::Break => {
                    flow = ControlFlow::Break(());
                    break;
                }
            }
        }
        // Lines that were too long are behind the last one read.
        if self.skipping {
            consumed = piece.at;
        }
        self.state.consumed(consumed);
        FeedProgress { consumed, flow }
    }

    /// Returns how many lines of each kind of events there were until now, by its name without the subsystem. Kinds
    /// come in the order in which they appeared.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let kinds = self.state.types().entries().iter();
        kinds.map(|kind| (&*kind.name, kind.count))
    }

    /// Returns how many events were lost until now, where the text says so.
    pub fn lost(&self) -> u64 {
        self.state.lost_until_now()
    }

    /// Ends the reading and returns what was found.
    pub fn finish(self, sink: &mut dyn Sink) -> TextSummary {
        self.state.finish(self.says.isa(), sink)
    }

    /// Prepares for a piece. Returns where its first line starts.
    fn begin(&mut self, bytes: &[u8], end: bool) -> usize {
        if self.separator.is_none() {
            let head = &bytes[..bytes.len().min(MAX_LINE)];
            // Line ends of old Macintoshes; a line feed may follow at the end.
            let cr = memchr::memchr(b'\r', &head[..head.len().saturating_sub(1)]).is_some();
            if memchr::memchr(b'\n', head).is_some() {
                self.separator = Some(b'\n');
            // Of less it depends on where the piece was cut.
            } else if cr && (end || head.len() == MAX_LINE) {
                self.separator = Some(b'\r');
            }
        }
        let mark = self.state.at_start() && bytes.starts_with(b"\xef\xbb\xbf");
        if mark { 3 } else { 0 }
    }

    #[inline]
    fn parse<'b>(&mut self, line: TextLine<'b>) -> ParsedLine<'b> {
        let (types, perf) = (self.state.types(), self.state.no_thread_column());
        let head = self.heads.parse(&line.bytes, types, perf);
        match &head {
            Some(head) if head.ty.is_none() && head.is_tabbed(&line.bytes) => {
                return self.parse_tabbed(line);
            }
            None if !line.bytes.is_ascii() => return self.parse_repaired(line),
            _ => {}
        }
        (line, head)
    }

    /// Reads a line with tabs where the tools print blanks.
    #[cold]
    fn parse_tabbed<'b>(&mut self, line: TextLine<'b>) -> ParsedLine<'b> {
        let blank = |byte: &u8| if *byte == b'\t' { b' ' } else { *byte };
        let bytes: Vec<u8> = line.bytes.iter().map(blank).collect();
        let (types, perf) = (self.state.types(), self.state.no_thread_column());
        let head = head::parse(&bytes, types, perf);
        let line = TextLine::made(bytes, line.start, line.next, line.count);
        (line, head)
    }

    /// Reads a line whose spaces, hyphens or colons may be others than the tools print.
    #[cold]
    fn parse_repaired<'b>(&mut self, line: TextLine<'b>) -> ParsedLine<'b> {
        let (types, perf) = (self.state.types(), self.state.no_thread_column());
        match clean::repair(&line.bytes) {
            Some(bytes) => {
                let head = head::parse(&bytes, types, perf);
                (
                    TextLine::made(bytes, line.start, line.next, line.count),
                    head,
                )
            }
            None => (line, None),
        }
    }

    /// Takes the next line.
    #[inline]
    fn next<'b>(&mut self, piece: &mut TextPiece<'b>) -> Option<ParsedLine<'b>> {
        if let Some(held) = piece.held.take() {
            return Some(held);
        }
        loop {
            match piece.lines.cut(piece.at) {
                Cut::Line(line) => {
                    piece.at = line.next;
                    if self.skipping {
                        self.skipping = false;
                    } else if line.bytes.len() > MAX_LINE {
                        self.state.not_understood(&line);
                    } else {
                        return Some(self.parse(line));
                    }
                }
                Cut::TooLong => {
                    if !self.skipping {
                        self.skipping = true;
                        let line = TextLine::made(Vec::new(), piece.at, piece.len, 1);
                        self.state.not_understood(&line);
                    }
                    piece.at = piece.len;
                    return None;
                }
                Cut::More => return None,
            }
        }
    }

    /// Looks at the line behind the one in hand, and holds it.
    #[inline]
    fn peek<'b>(&mut self, piece: &mut TextPiece<'b>) -> Peek {
        if piece.held.is_some() {
            return Peek::Line;
        }
        match piece.lines.cut(piece.at) {
            Cut::Line(line) if line.bytes.len() <= MAX_LINE => {
                piece.at = line.next;
                piece.held = Some(self.parse(line));
                Peek::Line
            }
            Cut::More if !piece.end => Peek::More,
            _ => Peek::Nothing,
        }
    }

    /// Reads an event's line, with the lines it was broken into.
    #[inline]
    fn event<'b>(
        &mut self,
        line: TextLine<'b>,
        head: EventHead,
        piece: &mut TextPiece<'b>,
        sink: &mut dyn Sink,
    ) -> LineFate {
        if self.state.is_foreign(&head) {
            self.state.not_understood(&line);
            return LineFate::Read;
        }
        if head.what == HeadRest::Record {
            self.state.record(&line, &head, sink);
            return LineFate::Read;
        }
        if let Peek::More = self.peek(piece) {
            return LineFate::More;
        }
        let apart = head.who.has_tid && !head.who.joined;
        if apart
            && head.args as usize >= line.bytes.len()
            && !head.has_system
            && let Some((line, head)) = self.named_in_two(&line, piece)
        {
            return self.event(line, head, piece, sink);
        }
        let Some(ty) = self.state.type_of(&line, &head, sink) else {
            self.state.not_understood(&line);
            return LineFate::Read;
        };
        let (kind, wanted) = self.state.wants(ty);
        let whole = if wanted { kind } else { Kind::Other };
        // What is not read in parts is read once the line is whole.
        let kind = if wanted && kind.is_read_in_parts() {
            kind
        } else {
            Kind::Other
        };
        let reading = self.says.read(
            kind,
            line.bytes.get(head.args as usize..).unwrap_or_default(),
        );
        let broken = piece.held.as_ref().is_some_and(|(_, head)| head.is_none());
        let flow = if broken {
            match self.join(line, head, (kind, whole), reading, piece) {
                Some((line, head, reading)) => self.state.event(&line, &head, ty, reading, sink),
                None => return LineFate::More,
            }
        } else {
            self.state.event(&line, &head, ty, reading, sink)
        };
        if flow.is_break() {
            LineFate::Break
        } else {
            LineFate::Read
        }
    }

    /// Joins a line that ends behind the colon in `kvm:kvm_exit` with the next.
    #[cold]
    fn named_in_two<'b>(
        &mut self,
        line: &TextLine<'b>,
        piece: &mut TextPiece<'b>,
    ) -> Option<(TextLine<'b>, EventHead)> {
        let (next, None) = piece.held.as_ref()? else {
            return None;
        };
        let joined = Glue::None.join(&line.bytes, other::without_quotes(&next.bytes, &line.bytes));
        let (types, perf) = (self.state.types(), self.state.no_thread_column());
        let head = head::parse(&joined, types, perf).filter(|head| head.has_system)?;
        let count = line.count + next.count;
        let joined = TextLine::made(joined, line.start, next.next, count);
        piece.held = None;
        Some((joined, head))
    }

    /// Puts the lines together that an event was broken into; `None` when more text is needed.
    #[inline(never)]
    fn join<'b>(
        &mut self,
        mut line: TextLine<'b>,
        mut head: EventHead,
        (kind, whole): (Kind, Kind),
        mut reading: TextReading,
        piece: &mut TextPiece<'b>,
    ) -> Option<(TextLine<'b>, EventHead, TextReading)> {
        let width = line.bytes.len();
        let at_width = self.broken.is_hard(width);
        let parts = line.count;
        for _ in 1..MAX_PARTS {
            match self.peek(piece) {
                Peek::More => return None,
                Peek::Nothing => break,
                Peek::Line => {}
            }
            let Some((next, None)) = &piece.held else {
                break;
            };
            if head::may_begin(&next.bytes) {
                break;
            }
            let rest = scan::trim(other::without_quotes(&next.bytes, &line.bytes));
            let context = LineContext {
                after_event: true,
                in_stack: false,
            };
            let indented = next.bytes.first().is_some_and(|b| scan::is_blank(*b));
            let foreign = match other::classify(other::unquoted(&next.bytes), context) {
                OtherLine::Unknown if begins_event(other::unquoted(&next.bytes)) => break,
                OtherLine::Unknown if graph::begins(&next.bytes) => break,
                OtherLine::Unknown => false,
                OtherLine::Stack => true,
                _ => break,
            };
            let begun = PendingEvent {
                kind,
                whole,
                reading,
                line: &line.bytes,
                args: head.args as usize,
                foreign,
                indented,
                hard: at_width,
            };
            if line.bytes.len() + rest.len() > MAX_LINE {
                break;
            }
            let Some(glue) = begun.continued_by(rest, &mut self.says) else {
                break;
            };
            let joined = glue.join(&line.bytes, rest);
            line = TextLine::made(joined, line.start, next.next, line.count + next.count);
            let args = scan::skip_blanks(&line.bytes, head.args as usize);
            head.args = u32::try_from(args).unwrap_or(u32::MAX);
            reading = self.says.read(
                kind,
                line.bytes.get(head.args as usize..).unwrap_or_default(),
            );
            piece.held = None;
        }
        if line.count > parts {
            self.broken.note(width);
        }
        Some((line, head, reading))
    }

    /// Reads a line that is no event's, or not as it stands.
    fn no_event<'b>(
        &mut self,
        line: TextLine<'b>,
        piece: &mut TextPiece<'b>,
        sink: &mut dyn Sink,
    ) -> LineFate {
        let context = self.state.context();
        let mut bare = other::unquoted(&line.bytes);
        let mut what = other::classify(bare, context);
        if what == OtherLine::Unknown && graph::is_broken(&line.bytes) {
            if let Peek::More = self.peek(piece) {
                return LineFate::More;
            }
            if let Some((line, read)) = whole_graph(&line, piece) {
                return self.graph(line, &read, piece, sink);
            }
        } else if what == OtherLine::Unknown
            && let Some(read) = graph::parse(&line.bytes)
        {
            return self.graph(line, &read, piece, sink);
        }
        if what == OtherLine::Unknown {
            if head::may_begin(&line.bytes) || ends_in_thread_and_time(line.bytes.trim_ascii_end())
            {
                match self.begun(&line, piece) {
                    Ok(Some((line, head))) => return self.event(line, head, piece, sink),
                    Ok(None) => {}
                    Err(NeedsMore) => return LineFate::More,
                }
            }
            bare = other::without_junk(&line.bytes);
            if bare.len() < line.bytes.len() {
                what = other::classify(bare, context);
            }
        }
        let flow = self.state.other(&line, what, bare, sink);
        if let OtherLine::Arch(isa) = what {
            self.says.set_isa(isa);
        }
        if flow.is_break() {
            LineFate::Break
        } else {
            LineFate::Read
        }
    }

    /// Reads a line of the function_graph tracer.
    #[cold]
    fn graph<'b>(
        &mut self,
        line: TextLine<'b>,
        read: &GraphLine,
        piece: &mut TextPiece<'b>,
        sink: &mut dyn Sink,
    ) -> LineFate {
        if let Some(bytes) = read.as_event(&line.bytes)
            && let Some(head) = head::parse(&bytes, self.state.types(), false)
        {
            let line = TextLine::made(bytes, line.start, line.next, line.count);
            return self.event(line, head, piece, sink);
        }
        self.state.untimed_graph(&line);
        LineFate::Read
    }

    /// Joins a line that could be the beginning of an event with the next, if that makes one.
    fn begun<'b>(
        &mut self,
        line: &TextLine<'b>,
        piece: &mut TextPiece<'b>,
    ) -> Result<Option<(TextLine<'b>, EventHead)>, NeedsMore> {
        if let Peek::More = self.peek(piece) {
            return Err(NeedsMore);
        }
        let Some((next, next_head)) = &piece.held else {
            return Ok(None);
        };
        // A line that says where it is from stands for itself.
        if next_head.is_some_and(|h| h.who.cpu >= 0) || looks_like_event(&next.bytes) {
            return Ok(None);
        }
        let rest = scan::trim(other::without_quotes(&next.bytes, &line.bytes));
        for glue in [Glue::None, Glue::Blank] {
            let bytes = glue.join(&line.bytes, rest);
            let head = head::parse(&bytes, self.state.types(), self.state.no_thread_column());
            let placed = |who: &LineTask| who.cpu >= 0 || (who.has_tid && !who.joined);
            if let Some(head) = head.filter(|h| placed(&h.who) && h.what == HeadRest::Event) {
                let count = line.count + next.count;
                let joined = TextLine::made(bytes, line.start, next.next, count);
                piece.held = None;
                return Ok(Some((joined, head)));
            }
        }
        Ok(None)
    }
}

/// Joins a line of the function_graph tracer that was broken between words with the next, if that makes a whole one.
#[cold]
fn whole_graph<'b>(
    line: &TextLine<'b>,
    piece: &mut TextPiece<'b>,
) -> Option<(TextLine<'b>, GraphLine)> {
    let (next, None) = piece.held.as_ref()? else {
        return None;
    };
    if graph::begins(&next.bytes) {
        return None;
    }
    let rest = scan::trim(other::without_quotes(&next.bytes, &line.bytes));
    let joined = Glue::Blank.join(line.bytes.trim_ascii_end(), rest);
    let read = graph::parse(&joined).filter(|_| joined.len() <= MAX_LINE)?;
    let line = TextLine::made(joined, line.start, next.next, line.count + next.count);
    piece.held = None;
    Some((line, read))
}

/// The piece ends before it can be known what a line is.
struct NeedsMore;

/// What was found so far, for telling what a text is.
pub(crate) struct StyleEvidence {
    pub lines: u64,
    /// Those of them that belong to events, or are empty.
    pub beside: u64,
    /// Lines of the function_graph tracer that are no events.
    pub untimed_graph: u64,
    pub events: u64,
    pub certain: u64,
    pub style: Option<TextProducer>,
    pub style_reported: bool,
}

impl TraceTextReader {
    pub(crate) fn found(&self) -> StyleEvidence {
        StyleEvidence {
            lines: self.state.lines(),
            beside: self.state.beside(),
            untimed_graph: self.state.untimed_graph_lines(),
            events: self.state.events(),
            certain: self.state.certain(),
            style: self.state.style(),
            style_reported: self.state.style_reported(),
        }
    }
}
