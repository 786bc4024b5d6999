//! Undoes what the way into a ticket does to characters: HTML entities, terminal colours, no-break spaces.

/// Returns where the next byte stands from `at` that may need cleaning: `&` of an entity, the escape
/// character, or the first byte of U+00A0. Clean texts are passed over at memory speed.
pub(crate) fn next_suspect(text: &[u8], at: usize) -> usize {
    text.get(at..)
        .and_then(|rest| memchr::memchr3(b'&', 0x1b, 0xc2, rest))
        .map_or(usize::MAX, |found| at + found)
}

/// Entities that stand for characters of these texts.
const ENTITIES: [(&[u8], u8); 10] = [
    (b"&gt;", b'>'),
    (b"&lt;", b'<'),
    (b"&amp;", b'&'),
    (b"&nbsp;", b' '),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
    (b"&tab;", b'\t'),
    (b"&lbrack;", b'['),
    (b"&rbrack;", b']'),
    (b"&colon;", b':'),
];

/// Returns the line with entities, escape sequences and no-break spaces replaced.
///
/// Ticket systems escape twice now and then (`&amp;gt;`); two rounds are done.
pub(crate) fn clean(line: &[u8]) -> Vec<u8> {
    let mut once = replace(line);
    if once.contains(&b'&') {
        once = replace(&once);
    }
    once
}

fn replace(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(&b) = line.get(at) {
        let rest = &line[at..];
        let (byte, len) = match b {
            b'&' => entity(rest).unwrap_or((Some(b), 1)),
            0x1b => (None, escape_len(rest)),
            0xc2 if rest.get(1) == Some(&0xa0) => (Some(b' '), 2),
            _ => (Some(b), 1),
        };
        out.extend(byte);
        at += len;
    }
    out
}

/// Reads an entity. Returns its character and length.
fn entity(rest: &[u8]) -> Option<(Option<u8>, usize)> {
    if let Some((name, byte)) = ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((Some(*byte), name.len()));
    }
    let body = rest.strip_prefix(b"&#")?;
    let end = memchr::memchr(b';', &body[..body.len().min(8)])?;
    let text = std::str::from_utf8(&body[..end]).ok()?;
    let code = match text.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    let byte = match code {
        0xa0 => b' ',
        0x09 | 0x20..=0x7e => u8::try_from(code).ok()?,
        _ => return None,
    };
    Some((Some(byte), end + 3))
}

/// Returns the length of a terminal's escape sequence: CSI (colours), OSC (titles), or two bytes.
fn escape_len(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'[') => {
            let params = rest[2..]
                .iter()
                .take_while(|b| (0x20..0x40).contains(*b))
                .count();
            (2 + params + 1).min(rest.len())
        }
        Some(b']') => {
            let near = &rest[..rest.len().min(80)];
            let end = near.iter().position(|b| *b == 0x07);
            let st = memchr::memmem::find(&near[1..], b"\x1b\\").map(|at| at + 3);
            match (end, st) {
                (Some(bell), _) => bell + 1,
                (None, Some(st)) => st,
                (None, None) => 2,
            }
        }
        Some(_) => 2,
        None => 1,
    }
}

/// Tries harder on a line that could not be read: other spaces of Unicode, dashes for hyphens, bytes of
/// Latin-1. Returns nothing when there is nothing to change.
pub(crate) fn repair(line: &[u8]) -> Option<Vec<u8>> {
    if line.len() > MAX_REPAIR || line.is_ascii() {
        return None;
    }
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(&b) = line.get(at) {
        let rest = &line[at..];
        let (byte, len) = match rest {
            // U+2000 to U+200A and U+202F are spaces, U+200B to U+200F, U+2028 and U+FEFF take no room.
            [0xe2, 0x80, 0x80..=0x8a | 0xaf, ..] => (Some(b' '), 3),
            [0xe2, 0x80, 0x8b..=0x8f | 0xa8, ..] => (None, 3),
            [0xe3, 0x80, 0x80, ..] => (Some(b' '), 3),
            [0xef, 0xbb, 0xbf, ..] => (None, 3),
            // U+2010 to U+2014: hyphens and dashes, which editors put for a hyphen.
            [0xe2, 0x80, 0x90..=0x94, ..] => (Some(b'-'), 3),
            // U+FF1A, the full-width colon of CJK input methods.
            [0xef, 0xbc, 0x9a, ..] => (Some(b':'), 3),
            [0xa0, ..] => (Some(b' '), 1),
            [0..=8 | 11..=31, ..] => (None, 1),
            _ => (Some(b), 1),
        };
        out.extend(byte);
        at += len;
    }
    (out != line).then_some(out)
}

/// A longer line was not pasted.
const MAX_REPAIR: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn cleaned(line: &str, want: &str) {
        assert_eq!(String::from_utf8_lossy(&clean(line.as_bytes())), want);
    }

    #[test]
    fn entities_become_characters() {
        cleaned("&lt;idle&gt;-0 R ==&gt; a", "<idle>-0 R ==> a");
        cleaned("CAN&#39;T &quot;x&quot; &#x3c;&#62;", "CAN'T \"x\" <>");
        cleaned("a&nbsp;&#160;b", "a  b");
        cleaned("==&amp;gt;", "==>");
    }

    #[test]
    fn what_is_no_entity_stays() {
        cleaned(
            "a & b &c; &#; &#xzz; &#1234567890;",
            "a & b &c; &#; &#xzz; &#1234567890;",
        );
        cleaned("&", "&");
        cleaned("&#8364;", "&#8364;");
    }

    #[test]
    fn colours_and_titles_go() {
        cleaned("\x1b[1;31mred\x1b[0m", "red");
        cleaned("\x1b]0;title\x07text", "text");
        cleaned("\x1b]0;title\x1b\\text", "text");
        cleaned("cut\x1b[", "cut");
        cleaned("cut\x1b", "cut");
    }

    #[test]
    fn no_break_spaces_become_spaces_and_other_letters_stay() {
        cleaned("a\u{a0}b \u{b0}C", "a b \u{b0}C");
        let latin1 = b"a\xa0b";
        assert_eq!(repair(latin1).as_deref(), Some(&b"a b"[..]));
        assert_eq!(
            repair("a\u{2003}b\u{200b}".as_bytes()).as_deref(),
            Some(&b"a b"[..])
        );
        assert_eq!(repair(b"plain"), None);
    }
}
