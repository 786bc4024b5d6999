/*!
Text that stands in Markdown, as tickets show it (GitHub's and GitLab's flavours).

What a recording says must stay what it is: no markup, no HTML, no link or image, no mention of a person, and no cell of
a table may come of it. Both flavours make mentions and references after everything else, of text that is escaped too,
but leave code spans alone. So names are code spans, and of sentences, in which names stand, all words are that are not
plain ones. Inside a code span only its end and, in tables, `|` have a meaning; these are shown as control characters
are: `\x60`, `\x7c`.
*/

use crate::neutral;

/// Characters of a name at most.
const MAX_NAME: usize = 200;

/// Returns a name as a code span; `-` for none.
pub fn code(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('`');
    let shown = neutral::name(name);
    for (at, c) in shown.trim().chars().enumerate() {
        match c {
            _ if at >= MAX_NAME => {
                out.push('…');
                break;
            }
            '`' => out.push_str("\\x60"),
            '|' => out.push_str("\\x7c"),
            c => out.push(c),
        }
    }
    if out.len() == 1 {
        return "-".to_owned();
    }
    out.push('`');
    out
}

/// Returns a sentence, in which words that are not plain are code spans.
pub fn text(sentence: &str) -> String {
    let sentence = neutral::name(sentence);
    let mut out = String::with_capacity(sentence.len() + 16);
    let mut odd: Vec<&str> = Vec::new();
    let flush = |odd: &mut Vec<&str>, out: &mut String| {
        if !odd.is_empty() {
            space(out);
            let (before, inner, after) = framed(&odd.join(" "));
            out.push_str(&format!("{before}{}{after}", code(&inner)));
            odd.clear();
        }
    };
    // Words before this one belong to an element of XML that began earlier.
    let mut element_until = 0;
    let words: Vec<&str> = sentence.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        if at >= element_until && opens_element(word) {
            let mut behind = words[at + 1..].iter().take(MAX_ELEMENT_WORDS);
            let closing = behind.position(|word| word.contains('>') || opens_element(word));
            element_until = closing
                .filter(|closing| words[at + 1 + closing].contains('>'))
                .map_or(0, |closing| at + closing + 2);
        }
        let inside = at < element_until;
        if !inside && is_plain(word) && (at > 0 || may_begin(word)) {
            flush(&mut odd, &mut out);
            space(&mut out);
            out.push_str(word);
            continue;
        }
        odd.push(word);
        // A list of names is a span for each.
        if !inside && word.ends_with([',', ';']) {
            flush(&mut odd, &mut out);
        }
    }
    flush(&mut odd, &mut out);
    out
}

/// Words of an element of XML at most, so that each sentence is walked once.
const MAX_ELEMENT_WORDS: usize = 16;

/// Returns whether an element of XML begins in a word and goes on behind it: `<driver` of `<driver queues='4'/>`.
fn opens_element(word: &str) -> bool {
    word.rsplit_once('<').is_some_and(|(_, name)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('>')
    })
}

/// Returns what is odd without the punctuation of the sentence around it.
fn framed(odd: &str) -> (&'static str, String, String) {
    let mut inner = odd;
    let mut after = String::new();
    let count = |text: &str, c: char| text.matches(c).count();
    while let Some(last) = inner.chars().next_back() {
        let closes = last == ')' && count(inner, ')') > count(inner, '(');
        if inner.len() == 1 || !closes && !matches!(last, '.' | ',' | ';' | ':') {
            break;
        }
        inner = &inner[..inner.len() - 1];
        after.insert(0, last);
    }
    let within = inner
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    if let Some(within) = within.filter(|within| !within.is_empty() && !within.contains(['(', ')']))
    {
        after.insert(0, ')');
        return ("(", within.to_owned(), after);
    }
    let opens = inner.strip_prefix('(').filter(|rest| !rest.is_empty());
    match opens.filter(|_| count(inner, '(') > count(inner, ')') || after.contains(')')) {
        Some(rest) => ("(", rest.to_owned(), after),
        None => ("", inner.to_owned(), after),
    }
}

fn space(out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
}

/// Returns whether a word means nothing but itself, wherever it stands in a line.
fn is_plain(word: &str) -> bool {
    let inner = word.trim_start_matches(['(', '"']);
    let inner = inner.trim_end_matches([')', '"', '.', ',', ';', ':', '?']);
    let allowed = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                '.' | ',' | '-' | '+' | '=' | '/' | '\'' | ':' | '%' | '→' | '…'
            )
    };
    let lower = inner.to_ascii_lowercase();
    // `GH-1` is a reference, `%1` a milestone; `a://` and `www.` are links.
    let refers = lower.starts_with("gh-") || lower.starts_with("www.") || lower.contains("://");
    let ends = |c: char| {
        c.is_alphanumeric() || matches!(c, '%' | '\'' | '+' | '-' | '→' | '…' | '=' | '/')
    };
    let starts = |c: char| c.is_alphanumeric() || matches!(c, '+' | '-' | '→' | '…' | '=' | '\'');
    let single = matches!(inner, "%" | "/" | "");
    let framed = inner.starts_with(starts) && inner.ends_with(ends) && !inner.contains("%%");
    inner.chars().all(allowed) && !refers && (framed || single)
}

/// Returns whether a plain word may stand first in a line: it begins no list, no rule and no command.
fn may_begin(word: &str) -> bool {
    let number = word.trim_end_matches(['.', ')']);
    let list = number.len() < word.len() && number.bytes().all(|b| b.is_ascii_digit());
    word.starts_with(char::is_alphanumeric) && !list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code() {
        for (name, shown) in [
            ("CPU 0/KVM", "`CPU 0/KVM`"),
            ("a`b|c", "`a\\x60b\\x7cc`"),
            ("\x1b[2J\n", "`\\x1b[2J\\x0a`"),
            ("", "-"),
            ("  ", "-"),
            ("\\", "`\\`"),
        ] {
            assert_eq!(code(name), shown);
        }
        assert!(code(&"x".repeat(70_000)).chars().count() < MAX_NAME + 4);
    }

    #[test]
    fn sentences_stay_sentences_and_odd_words_are_code() {
        for (sentence, shown) in [
            (
                "16 of 597 interrupts took 67 ms (10.5 %), vCPU 1's too.",
                "16 of 597 interrupts took 67 ms (10.5 %), vCPU 1's too.",
            ),
            ("ask @root now", "ask `@root` now"),
            ("task <img src=x> runs", "task `<img src=x>` runs"),
            ("see #1 and !2", "see `#1` and `!2`"),
            ("at http://x.y/ or www.x.y", "at `http://x.y/` or `www.x.y`"),
            ("kvm_exit [a](b) end", "`kvm_exit [a](b)` end"),
            ("- item", "`-` item"),
            ("1. item", "`1`. item"),
            ("it is (kvm_exit), so", "it is (`kvm_exit`), so"),
            ("(a_b in c_d) x", "(`a_b` in `c_d`) x"),
            ("/close", "`/close`"),
            // An element of XML is one span, and each name of a list has its own.
            (
                "use <driver iothread='1' io='native' cache='none'/> on it",
                "use `<driver iothread='1' io='native' cache='none'/>` on it",
            ),
            ("pin (<a_b>, <c_d>) them", "pin (`<a_b>`, `<c_d>`) them"),
            ("it is <b and stays so", "it is `<b` and stays so"),
            ("<b one <c two> three", "`<b` one `<c two>` three"),
            ("<b at the start>", "`<b at the start>`"),
            ("5 < 6 and 7 > 6", "5 `<` 6 and 7 `>` 6"),
            ("a|b", "`a\\x7cb`"),
            ("GH-7 is", "`GH-7` is"),
            (":smile: x", "`:smile`: x"),
            ("--- x", "`---` x"),
        ] {
            assert_eq!(text(sentence), shown, "{sentence}");
        }
    }
}
