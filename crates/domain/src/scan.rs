/*!
The one pass over a document before it is parsed: limits that keep the parser's work in proportion to the input,
and the errors whose place the parser does not say.

A parser that is given too much attributes, namespaces or levels works in the square of their number, so those are
bounded here, before it runs. The bounds are far beyond what libvirt takes (its own remote protocol carries
documents up to 4 MiB: `REMOTE_STRING_MAX` in `remote_protocol.x`).
*/

use crate::error::{DomainError, ErrorKind, quoted};

/// Bytes of a document.
pub(crate) const MAX_BYTES: usize = 4 << 20;
/// Levels of elements: a disk's backing chain nests one level for each image, and libvirt stops at 200 of them.
pub(crate) const MAX_DEPTH: usize = 300;
/// Elements, comments and the like: for each the parser reserves memory.
const MAX_MARKUP: usize = 200_000;
/// Attributes of a document: for each the parser reserves memory.
const MAX_ATTRIBUTES: usize = 400_000;
/// Attributes of one element: they are compared with each other.
const MAX_ATTRIBUTES_OF_ONE: usize = 256;
/// Declarations of namespaces in a document: each can be handed down to every element.
const MAX_NAMESPACES: usize = 64;

/// Checks a document against the limits, and that its tags pair up.
pub(crate) fn check(text: &str) -> Result<(), DomainError> {
    let limit = |offset, what: String| Err(DomainError::at(text, offset, ErrorKind::Limit, what));
    if text.len() > MAX_BYTES {
        let what = format!(
            "the document has {} bytes; expected the XML of one domain, of at most {MAX_BYTES}",
            text.len()
        );
        return limit(0, what);
    }
    for (byte, most, name) in [
        (b'<', MAX_MARKUP, "tags"),
        (b'=', MAX_ATTRIBUTES, "attributes"),
    ] {
        let found = text.bytes().filter(|b| *b == byte).count();
        if found > most {
            let what = format!("the document has about {found} {name}; at most {most} are read");
            return limit(0, what);
        }
    }
    let mut scan = MarkupScan {
        text,
        open: Vec::new(),
        had_root: false,
        namespaces: 0,
    };
    let mut at = 0;
    while let Some(found) = rest(text, at).find('<') {
        let start = at + found;
        scan.between(at, start)?;
        at = scan.markup(start)?;
    }
    scan.between(at, text.len())?;
    scan.end()
}

/// Completes a document of a domain that ends before the domain does: up to its last element that is whole, with the
/// ends of those around it, which are the domain and one element in it. Returns it, and where that element ends; `None`
/// if the document does not end too early, or has no such element.
pub(crate) fn completed(text: &str) -> Option<(String, usize)> {
    /// The domain, and one element in it.
    const AROUND: usize = 2;
    let mut scan = MarkupScan {
        text,
        open: Vec::new(),
        had_root: false,
        namespaces: 0,
    };
    let mut whole = None;
    let mut at = 0;
    while let Some(found) = rest(text, at).find('<') {
        let start = at + found;
        scan.between(at, start).ok()?;
        let before = scan.open.len();
        let Ok(end) = scan.markup(start) else {
            // Only what the document ends in is cut off.
            let tag = rest(text, start);
            let open_comment = tag.starts_with("<!--") && !tag.contains("-->");
            let ends = tag.starts_with("</domain");
            if ends || !open_comment && tag.get(1..)?.contains(['<', '>']) {
                return None;
            }
            break;
        };
        let tag = text.get(start..end)?;
        let is_element = tag.starts_with("</") || tag.ends_with("/>");
        let is_root = before == 0 && !scan.open.is_empty();
        if is_root && tag_name(text, start) != "domain" {
            return None;
        }
        if is_element && (1..=AROUND).contains(&scan.open.len()) {
            whole = Some((end, scan.open.clone()));
        }
        at = end;
    }
    let (end, around) = whole.filter(|_| !scan.open.is_empty())?;
    let mut out = text.get(..end)?.to_owned();
    for start in around.iter().rev() {
        out.push_str("</");
        out.push_str(tag_name(text, *start));
        out.push('>');
    }
    Some((out, end))
}

/// Returns the text from a byte on.
fn rest(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

struct MarkupScan<'a> {
    text: &'a str,
    /// Where the tags of the elements that are open begin.
    open: Vec<usize>,
    had_root: bool,
    namespaces: usize,
}

impl MarkupScan<'_> {
    fn error(&self, offset: usize, what: impl Into<String>) -> DomainError {
        DomainError::at(self.text, offset, ErrorKind::Malformed, what)
    }

    /// Text between two pieces of markup.
    fn between(&self, from: usize, to: usize) -> Result<(), DomainError> {
        if !self.open.is_empty() {
            return Ok(());
        }
        let text = self.text.get(from..to).unwrap_or_default();
        let skipped = |c: char| c.is_ascii_whitespace() || (from == 0 && c == '\u{feff}');
        match text.find(|c| !skipped(c)) {
            None => Ok(()),
            Some(at) => {
                let line = text.get(at..).unwrap_or_default();
                let line = quoted(line.lines().next().unwrap_or_default());
                let what = if self.had_root {
                    format!("'{line}' follows the end of the document; expected nothing more")
                } else {
                    format!("'{line}' is no XML; expected <domain>, as virsh dumpxml prints it")
                };
                Err(self.error(from + at, what))
            }
        }
    }

    /// A piece of markup; returns where it ends.
    fn markup(&mut self, start: usize) -> Result<usize, DomainError> {
        let from = rest(self.text, start);
        for (begins, ends, name) in [
            ("<!--", "-->", "comment"),
            ("<![CDATA[", "]]>", "CDATA section"),
            ("<?", "?>", "processing instruction"),
        ] {
            if let Some(inner) = from.strip_prefix(begins) {
                let what = || format!("this {name} is not closed; expected '{ends}'");
                let end = inner.find(ends).ok_or_else(|| self.error(start, what()))?;
                return Ok(start + begins.len() + end + ends.len());
            }
        }
        if from.starts_with("<!") {
            let what = "there is a document type declaration, which can define entities; \
                        a domain's XML has none and it is not read: remove it";
            return Err(DomainError::at(self.text, start, ErrorKind::Entity, what));
        }
        if from.starts_with("</") {
            let end = from
                .find('>')
                .ok_or_else(|| self.error(start, "this tag is not closed; expected '>'"))?;
            if self.open.pop().is_none() {
                return Err(self.error(start, "this tag closes nothing"));
            }
            return Ok(start + end + 1);
        }
        self.start_tag(start)
    }

    /// A start tag or an empty element.
    fn start_tag(&mut self, start: usize) -> Result<usize, DomainError> {
        if self.open.is_empty() && self.had_root {
            let what = "another element begins after the end of the document; \
                        expected one domain in a file";
            return Err(self.error(start, what));
        }
        self.had_root = true;
        let end = tag_end(self.text, start)
            .ok_or_else(|| self.error(start, "this tag is not closed; expected '>'"))?;
        let tag = self.text.get(start..end).unwrap_or_default();
        let (attributes, namespaces) = attributes(tag);
        self.namespaces += namespaces;
        let limit = |what| Err(DomainError::at(self.text, start, ErrorKind::Limit, what));
        if attributes > MAX_ATTRIBUTES_OF_ONE {
            return limit(format!(
                "this element has {attributes} attributes; at most {MAX_ATTRIBUTES_OF_ONE} are read"
            ));
        }
        if self.namespaces > MAX_NAMESPACES {
            return limit(format!(
                "more than {MAX_NAMESPACES} namespaces are declared; no more are read"
            ));
        }
        if !tag.ends_with("/>") {
            if self.open.len() >= MAX_DEPTH {
                return limit(format!(
                    "elements are nested deeper than {MAX_DEPTH} levels; no deeper ones are read"
                ));
            }
            self.open.push(start);
        }
        Ok(end)
    }

    /// The end of the document.
    fn end(self) -> Result<(), DomainError> {
        if let Some(&start) = self.open.last() {
            let name = quoted(tag_name(self.text, start));
            let what = format!(
                "the document ends before </{name}> closes this element; it seems to be cut off"
            );
            return Err(self.error(start, what));
        }
        if !self.had_root {
            let what = "there is no element; expected <domain>, as virsh dumpxml prints it";
            return Err(self.error(0, what));
        }
        Ok(())
    }
}

/// Returns where the tag that begins at a byte ends, behind its `>`.
pub(crate) fn tag_end(text: &str, start: usize) -> Option<usize> {
    let mut quote = None;
    let after = start.checked_add(1)?;
    for (at, byte) in rest(text, after).bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'<') => return None,
            (None, b'>') => return Some(after + at + 1),
            (None, _) => {}
        }
    }
    None
}

/// Returns the name of the tag that begins at a byte, with its prefix.
pub(crate) fn tag_name(text: &str, start: usize) -> &str {
    let name = rest(text, start + 1);
    let ends = |c: char| c.is_ascii_whitespace() || c == '/' || c == '>';
    name.get(..name.find(ends).unwrap_or(name.len()))
        .unwrap_or_default()
}

/// Returns how many attributes a tag has, and how many of them declare a namespace.
fn attributes(tag: &str) -> (usize, usize) {
    let mut quote = None;
    let mut word = 0;
    let (mut attributes, mut namespaces) = (0, 0);
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => {
                quote = None;
                word = at + 1;
            }
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => {
                attributes += 1;
                let before = tag.get(word..at).unwrap_or_default();
                let name = before.split_ascii_whitespace().last();
                namespaces += usize::from(name.is_some_and(|name| name.starts_with("xmlns")));
            }
            (None, _) => {}
        }
    }
    (attributes, namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> (ErrorKind, String) {
        match check(text) {
            Ok(()) => panic!("{text} was taken"),
            Err(error) => (error.kind, error.to_string()),
        }
    }

    #[test]
    fn tags_pair_up_or_it_is_said_which_does_not() {
        assert_eq!(
            check("\u{feff}<?xml version='1.0'?>\n<!-- > --><a x='>'>&lt;<b/></a>\n"),
            Ok(())
        );
        for (text, place, what) in [
            ("<a>\n <b>\n", "line 2, column 2", "before </b> closes"),
            (
                "<a>\n <b x='1\n",
                "line 2, column 2",
                "this tag is not closed",
            ),
            ("<a/>\n<b/>", "line 2, column 1", "one domain in a file"),
            ("<a/></a>", "line 1, column 5", "closes nothing"),
            ("<a/>\n$ ls", "line 2, column 1", "'$ ls' follows the end"),
            ("$ virsh dumpxml x\n<a/>", "line 1, column 1", "is no XML"),
            ("<a><!-- ", "line 1, column 4", "this comment is not closed"),
            (
                "<a><![CDATA[ ]></a>",
                "line 1, column 4",
                "this CDATA section",
            ),
            (
                "<a><?x ></a>",
                "line 1, column 4",
                "this processing instruction",
            ),
            (" \n", "line 1, column 1", "there is no element"),
        ] {
            let (kind, said) = said(text);
            assert_eq!(kind, ErrorKind::Malformed, "{said}");
            assert!(said.starts_with(place) && said.contains(what), "{said}");
        }
    }

    #[test]
    fn what_would_cost_too_much_is_refused() {
        let deep = "<a>".repeat(MAX_DEPTH + 1) + &"</a>".repeat(MAX_DEPTH + 1);
        assert!(said(&deep).1.contains("deeper than"));
        let deep = "<a>".repeat(MAX_DEPTH) + &"</a>".repeat(MAX_DEPTH);
        assert_eq!(check(&deep), Ok(()));
        let wide: String = (0..=MAX_ATTRIBUTES_OF_ONE)
            .map(|n| format!(" a{n}=''"))
            .collect();
        assert!(said(&format!("<a{wide}/>")).1.contains("257 attributes"));
        let spaces: String = (0..=MAX_NAMESPACES)
            .map(|n| format!("<a xmlns:n{n}='u'/>"))
            .collect();
        assert!(said(&format!("<a>{spaces}</a>")).1.contains("namespaces"));
        assert!(said(&"<".repeat(MAX_MARKUP + 1)).1.contains("tags"));
        assert!(
            said(&"=".repeat(MAX_ATTRIBUTES + 1))
                .1
                .contains("attributes")
        );
        assert!(said(&" ".repeat(MAX_BYTES + 1)).1.contains("bytes"));
        for (kind, _) in [
            said(&deep.replace("<a>", "<a><b>")),
            said(&" ".repeat(MAX_BYTES + 1)),
        ] {
            assert_eq!(kind, ErrorKind::Limit);
        }
    }

    #[test]
    fn no_document_type_is_let_in() {
        for text in [
            "<!DOCTYPE a>\n<a/>",
            "<a><!ENTITY x 'y'></a>",
            "<a/><!DOCTYPE a [<!ENTITY x SYSTEM 'f'>]>",
        ] {
            assert_eq!(said(text).0, ErrorKind::Entity, "{text}");
        }
        assert_eq!(
            check("<a><!-- <!DOCTYPE a> --><![CDATA[<!DOCTYPE]]></a>"),
            Ok(())
        );
    }

    #[test]
    fn attributes_are_counted_as_the_parser_will() {
        assert_eq!(
            attributes("<a xmlns='u' b = \"x='y'\" xmlns:c='d'/>"),
            (3, 2)
        );
        assert_eq!(attributes("<a/>"), (0, 0));
    }
}
