//! Names as they stand in a picture.

use std::borrow::Cow;

use crate::neutral;

/// Letters of a name that are shown; longer ones lose their middle.
const MAX_NAME: usize = 240;
/// Letters of its end that are shown then.
const TAIL: usize = 80;
/// How wide a letter in a box is, as in flame.js.
pub(super) const CELL: f64 = 6.65;

/// Returns a name without what steers, and no longer than it has to be.
pub(super) fn shown(name: &str) -> String {
    let name: Cow<'_, str> = match name.char_indices().nth(MAX_NAME) {
        None => Cow::Borrowed(name),
        Some(_) => {
            let head = name.char_indices().nth(MAX_NAME - TAIL - 1);
            let tail = name.char_indices().nth_back(TAIL - 1);
            let (head, tail) = (head.map_or(0, |at| at.0), tail.map_or(0, |at| at.0));
            Cow::Owned(format!("{}…{}", &name[..head], &name[tail..]))
        }
    };
    let name = neutral::name(&name);
    // XML has no such characters (XML 1.0, 2.2), in whatever way they are written.
    match name.contains(['\u{fffe}', '\u{ffff}']) {
        true => name
            .replace('\u{fffe}', "\\u{fffe}")
            .replace('\u{ffff}', "\\u{ffff}"),
        false => name.into_owned(),
    }
}

/// How many cells a character takes: those of scripts beyond the alphabets two, as terminals have it.
fn cells(c: char) -> usize {
    match u32::from(c) >= 0x1100 {
        true => 2,
        false => 1,
    }
}

/// Cuts a text to a width in pixels, as flame.js does.
pub(super) fn fit(text: &str, width: f64) -> String {
    let room = (width.max(0.0) / CELL).floor() as usize;
    if room < 3 {
        return String::new();
    }
    if text.chars().map(cells).sum::<usize>() <= room {
        return text.to_owned();
    }
    let mut left = room - 1;
    let mut cut = String::new();
    for c in text.chars() {
        let Some(rest) = left.checked_sub(cells(c)) else {
            break;
        };
        left = rest;
        cut.push(c);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::markup as escape;

    #[test]
    fn names_are_inert() {
        assert_eq!(
            escape(&shown("]]></script>\u{202e}\u{ffff}\x00'\"&")),
            "]]&gt;&lt;/script&gt;\\u{202e}\\u{ffff}\\x00&#39;&quot;&amp;"
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        let long = "日".repeat(150) + &"x".repeat(150);
        let short = shown(&long);
        assert_eq!(short.chars().count(), MAX_NAME);
        assert!(short.starts_with("日日") && short.ends_with("xx"));
        assert_eq!(shown(&"a".repeat(MAX_NAME)).len(), MAX_NAME);
    }

    #[test]
    fn labels_fit() {
        assert_eq!(fit("tcp_sendmsg", 100.0), "tcp_sendmsg");
        assert_eq!(fit("tcp_sendmsg", 40.0), "tcp_s…");
        assert_eq!(fit("日本語の名前", 40.0), "日本…");
        assert_eq!(fit("tcp_sendmsg", 15.0), "");
    }
}
