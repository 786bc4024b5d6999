/*!
Places in a document, and pieces of text to put there, so that what is new looks like what is around it: its
indentation, its line ends, its quotes. Nothing else of the document is touched.
*/

use std::ops::Range;

use roxmltree::Document;

use crate::element::{Element, ElementStyle, escape, write_attribute};
use crate::order;
use crate::scan;
use crate::tree::{self, XmlNode};

/// A piece of text in the place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The bytes that go.
    pub(crate) range: Range<usize>,
    /// What comes there.
    pub(crate) text: String,
}

/// A document with its text.
pub(crate) struct DomainText<'t> {
    text: &'t str,
    doc: Document<'t>,
}

/// Where an element's tags are.
struct Tags {
    /// The end of its start tag.
    open_end: usize,
    /// The beginning of its end tag; none if it is `<empty/>`.
    close: Option<usize>,
}

impl<'t> DomainText<'t> {
    /// Parses a text.
    pub(crate) fn new(text: &'t str) -> Result<DomainText<'t>, crate::DomainError> {
        let doc = tree::document(text)?;
        Ok(DomainText { text, doc })
    }

    /// Returns the document's tree.
    pub(crate) fn doc(&self) -> &Document<'t> {
        &self.doc
    }

    /// Returns a part of the text.
    fn part(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns where the line of a byte begins.
    fn line_start(&self, at: usize) -> usize {
        let start = self.part(0..at).rfind('\n').map_or(0, |at| at + 1);
        let marked = start == 0 && self.text.starts_with('\u{feff}');
        if marked {
            '\u{feff}'.len_utf8().min(at)
        } else {
            start
        }
    }

    /// Returns the blanks before a byte if there is nothing else before it on its line.
    fn indent(&self, at: usize) -> Option<&'t str> {
        let before = self.part(self.line_start(at)..at);
        let blank = before.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        blank.then_some(before)
    }

    /// Returns the blanks that a byte's line begins with.
    fn leading(&self, at: usize) -> &'t str {
        let line = self.part(self.line_start(at)..at);
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..blanks).unwrap_or_default()
    }

    /// Returns the end of a byte's line, before its line end, if only blanks and comments come before it. Comments
    /// behind an element are about that element.
    fn end_of_line(&self, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            let rest = self.part(at..self.text.len());
            let skipped = rest.trim_start_matches([' ', '\t']);
            at += rest.len() - skipped.len();
            if skipped.is_empty() || skipped.starts_with('\n') || skipped.starts_with("\r\n") {
                return Some(at);
            }
            let comment = skipped.strip_prefix("<!--")?;
            at += "<!--".len() + comment.find("-->")? + "-->".len();
        }
    }

    /// Returns the line end that is in use at a byte: that of its line, else of the line before, else `\n`.
    fn newline(&self, at: usize) -> &'static str {
        let before = |end: usize| self.part(0..end).ends_with('\r');
        let next = self.part(at..self.text.len()).find('\n').map(|n| at + n);
        let found = next.or_else(|| self.part(0..at).rfind('\n'));
        match found {
            Some(end) if before(end) => "\r\n",
            _ => "\n",
        }
    }

    /// Returns the quote that most attributes of the document have.
    fn quote(&self) -> char {
        let double = self.text.matches("=\"").count();
        let single = self.text.matches("='").count();
        if double > single { '"' } else { '\'' }
    }

    /// Returns one step of indentation, as it is between an element and what is in or around it.
    fn unit(&self, parent: XmlNode<'_, '_>) -> String {
        let step = |outer: XmlNode<'_, '_>, inner: XmlNode<'_, '_>| {
            let outer = self.indent(outer.range().start)?;
            let step = self.indent(inner.range().start)?.strip_prefix(outer)?;
            (!step.is_empty()).then(|| step.to_owned())
        };
        let within = parent
            .first_element_child()
            .and_then(|child| step(parent, child));
        let around = || {
            parent
                .parent_element()
                .and_then(|outer| step(outer, parent))
        };
        let root = || {
            let root = self.doc.root_element();
            root.children()
                .filter(XmlNode::is_element)
                // The first ones tell, and in a document that is one line none does.
                .take(16)
                .find_map(|child| step(root, child))
        };
        within
            .or_else(around)
            .or_else(root)
            .unwrap_or_else(|| "  ".to_owned())
    }

    fn tags(&self, node: XmlNode<'_, '_>) -> Tags {
        let range = node.range();
        let open_end = scan::tag_end(self.text, range.start).unwrap_or(range.end);
        let empty = open_end >= range.end;
        let content = self.part(open_end..range.end);
        let close = content.rfind("</").map(|at| open_end + at);
        Tags {
            open_end,
            close: close.filter(|_| !empty),
        }
    }

    /// Returns how an element is written that goes into another at a position.
    fn style(&self, parent: XmlNode<'_, '_>, at: usize) -> ElementStyle {
        ElementStyle {
            unit: self.unit(parent),
            newline: self.newline(at),
            quote: self.quote(),
        }
    }

    /// Puts an element into another, behind those that libvirt writes before it.
    pub(crate) fn insert(&self, parent: XmlNode<'_, '_>, element: &Element) -> Edit {
        let name = parent.tag_name().name();
        let place = order::of_new(name, element);
        let mut anchor = None;
        for child in tree::elements(parent) {
            if order::of(name, child).is_some_and(|known| known <= place) {
                anchor = Some(child);
            }
        }
        let new = Insertion {
            page: self,
            parent,
            element,
        };
        let tags = self.tags(parent);
        if let Some(anchor) = anchor {
            new.behind(anchor)
        } else if let Some(first) = parent.first_element_child() {
            new.before(first, &tags)
        } else {
            new.alone(&tags)
        }
    }

    /// Gives an element an attribute, or another value to one that it has.
    pub(crate) fn set(&self, node: XmlNode<'_, '_>, name: &str, value: &str) -> Edit {
        if let Some(attribute) = tree::attribute(node, name) {
            let range = attribute.range();
            let quote = self.part(range.clone()).chars().last().unwrap_or('\'');
            let mut text = String::new();
            write_attribute(&mut text, name, value, quote);
            // The value alone: what stands before it stays as it is written.
            let written = self.part(range.clone());
            let before = written.find(quote).map_or(0, |at| at + quote.len_utf8());
            let skipped = name.len() + 1 + quote.len_utf8();
            return Edit {
                range: range.start + before..range.end,
                text: text.get(skipped..).unwrap_or_default().to_owned(),
            };
        }
        let last = node.attributes().next_back();
        let (at, quote, between) = match last {
            Some(last) => {
                let range = last.range();
                let quote = self.part(range.clone()).chars().last();
                let own_line = self.line_start(range.start) > node.range().start;
                let between = match self.indent(range.start) {
                    Some(indent) if own_line => format!("{}{indent}", self.newline(range.start)),
                    _ => " ".to_owned(),
                };
                (range.end, quote.unwrap_or('\''), between)
            }
            None => {
                let start = node.range().start;
                let name = scan::tag_name(self.text, start);
                (start + 1 + name.len(), self.quote(), " ".to_owned())
            }
        };
        let mut text = between;
        write_attribute(&mut text, name, value, quote);
        Edit {
            range: at..at,
            text,
        }
    }

    /// Takes an attribute away, with the blanks before it.
    pub(crate) fn unset(&self, node: XmlNode<'_, '_>, name: &str) -> Option<Edit> {
        let range = tree::attribute(node, name)?.range();
        let start = self.part(0..range.start).trim_end().len();
        Some(Edit {
            range: start..range.end,
            text: String::new(),
        })
    }

    /// Takes an element away, with its line if there is nothing else on it.
    pub(crate) fn remove(&self, node: XmlNode<'_, '_>) -> Edit {
        let range = node.range();
        let rest = self.part(range.end..self.text.len());
        let skipped = rest.trim_start_matches([' ', '\t']);
        let end = range.end + rest.len() - skipped.len();
        let alone = self.indent(range.start).is_some();
        let line_end = ["\r\n", "\n"]
            .iter()
            .find(|newline| skipped.starts_with(**newline));
        let range = match line_end {
            Some(newline) if alone => self.line_start(range.start)..end + newline.len(),
            _ => range,
        };
        Edit {
            range,
            text: String::new(),
        }
    }

    /// Gives an element another text; comments in it and the blanks around the text stay.
    pub(crate) fn set_text(&self, node: XmlNode<'_, '_>, value: &str) -> Vec<Edit> {
        let mut text = String::new();
        escape(&mut text, value, None);
        let tags = self.tags(node);
        let Some(close) = tags.close else {
            let start = node.range().start;
            let tag = self.part(start..tags.open_end);
            let kept = tag.strip_suffix("/>").unwrap_or(tag).trim_end();
            let name = scan::tag_name(self.text, start);
            return vec![Edit {
                range: start + kept.len()..tags.open_end,
                text: format!(">{text}</{name}>"),
            }];
        };
        let mut edits: Vec<Edit> = Vec::new();
        let mut at = tags.open_end;
        while at < close {
            let rest = self.part(at..close);
            let (end, is_text) = if let Some(comment) = rest.strip_prefix("<!--") {
                (comment.find("-->").map(|n| at + n + 7), false)
            } else if rest.starts_with("<?") {
                (rest.find("?>").map(|n| at + n + 2), false)
            } else if rest.starts_with("<![CDATA[") {
                (rest.find("]]>").map(|n| at + n + 3), true)
            } else {
                // An element is nothing that belongs here: it stays.
                let from = usize::from(rest.starts_with('<'));
                let next = rest.get(from..).and_then(|rest| rest.find('<'));
                (next.map(|n| at + from + n), from == 0)
            };
            let end = end.unwrap_or(close);
            let piece = self.part(at..end);
            if is_text && !piece.trim().is_empty() {
                let start = at + piece.len() - piece.trim_start().len();
                let first = edits.is_empty();
                edits.push(Edit {
                    range: start..at + piece.trim_end().len(),
                    text: if first { text.clone() } else { String::new() },
                });
            }
            at = end;
        }
        if edits.is_empty() {
            edits.push(Edit {
                range: close..close,
                text,
            });
        }
        edits
    }
}

/// An element that goes into another.
struct Insertion<'p, 't, 'i> {
    page: &'p DomainText<'t>,
    parent: XmlNode<'p, 'i>,
    element: &'p Element,
}

impl Insertion<'_, '_, '_> {
    /// In the line that is there.
    fn flat(&self, at: usize) -> Edit {
        let mut text = String::new();
        self.element
            .write(&mut text, &self.page.style(self.parent, at), None);
        Edit {
            range: at..at,
            text,
        }
    }

    /// A line of its own behind the line that ends there.
    fn line_after(&self, at: usize, indent: &str) -> Edit {
        let style = self.page.style(self.parent, at);
        let mut text = format!("{}{indent}", style.newline);
        self.element.write(&mut text, &style, Some(indent));
        Edit {
            range: at..at,
            text,
        }
    }

    /// A line of its own before the line that begins there.
    fn line_before(&self, at: usize, indent: &str) -> Edit {
        let style = self.page.style(self.parent, at);
        let mut text = indent.to_owned();
        self.element.write(&mut text, &style, Some(indent));
        text.push_str(style.newline);
        Edit {
            range: at..at,
            text,
        }
    }

    /// Whether something in the parent begins a line below the one that the parent begins in.
    fn has_own_line(&self, at: usize) -> bool {
        self.page.line_start(at) > self.parent.range().start
    }

    /// Behind another element.
    fn behind(&self, anchor: XmlNode<'_, '_>) -> Edit {
        let range = anchor.range();
        match self.page.end_of_line(range.end) {
            Some(end) if self.has_own_line(range.start) => {
                self.line_after(end, self.page.leading(range.start))
            }
            _ => self.flat(range.end),
        }
    }

    /// Before the first element.
    fn before(&self, first: XmlNode<'_, '_>, tags: &Tags) -> Edit {
        let page = self.page;
        let start = first.range().start;
        match (self.has_own_line(start), page.end_of_line(tags.open_end)) {
            (true, Some(end)) if end < start => self.line_after(end, page.leading(start)),
            (true, _) if page.indent(start).is_some() => {
                self.line_before(page.line_start(start), page.leading(start))
            }
            _ => self.flat(tags.open_end),
        }
    }

    /// Where there is no element in the parent yet.
    fn alone(&self, tags: &Tags) -> Edit {
        let page = self.page;
        let parent = self.parent.range().start;
        let outer = page.indent(parent);
        let outer = outer.filter(|_| page.text.contains('\n'));
        let inner = outer.map(|outer| format!("{outer}{}", page.unit(self.parent)));
        let blank = tags.close.is_none_or(|close| {
            let content = page.part(tags.open_end..close);
            content.bytes().all(|byte| byte.is_ascii_whitespace())
        });
        if let (false, Some(close)) = (blank, tags.close) {
            return match (page.indent(close), inner) {
                (Some(_), Some(inner)) => self.line_before(page.line_start(close), &inner),
                _ => self.flat(close),
            };
        }
        let mut text = String::new();
        let style = page.style(self.parent, parent);
        if let Some(inner) = &inner {
            text.push_str(style.newline);
            text.push_str(inner);
        }
        self.element.write(&mut text, &style, inner.as_deref());
        if let Some(outer) = outer {
            text.push_str(style.newline);
            text.push_str(outer);
        }
        if let Some(close) = tags.close {
            let range = tags.open_end..close;
            return Edit { range, text };
        }
        // `<parent/>` gets an end tag.
        let tag = page.part(parent..tags.open_end);
        let kept = tag.strip_suffix("/>").unwrap_or(tag).trim_end();
        let full_name = scan::tag_name(page.text, parent);
        Edit {
            range: parent + kept.len()..tags.open_end,
            text: format!(">{text}</{full_name}>"),
        }
    }
}

/// Returns a text with edits made, which must not overlap; `None` if they do.
pub(crate) fn edited(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.range.start)?);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}
