//! The difference of two texts, as `diff -u` prints it.

use std::fmt::Write;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Lines between the first and the last difference up to which single changes are looked for. Beyond that all between
/// them is one change: as right, and in time with the length of the text.
const MAX_LINES: usize = 20_000;

/// Returns the unified diff of two texts, empty if they are the same.
///
/// It has the names `a/NAME` and `b/NAME`, so that it applies with `patch -p1` where NAME is, and with
/// `patch FILE < DIFF` anywhere. NAME should not begin with `/`, which is left out, nor go through `..`, which `patch`
/// takes for an attack. Lines end at `\n` alone, as `patch` has it, so those of CRLF stay as they are.
pub fn diff(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut out = String::new();
    for (sign, side) in [("---", "a"), ("+++", "b")] {
        let _ = writeln!(out, "{sign} {}", file_name(side, name));
    }
    for hunk in group_diff_ops(operations(&old, &new), CONTEXT) {
        write_hunk(&mut out, &hunk, &old, &new);
    }
    out
}

/// Returns what is equal and what differs.
fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let rest = |lines: &[&str]| lines.len() - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same);
    let tail = tail.count().min(rest(old)).min(rest(new));
    if rest(old) - tail <= MAX_LINES && rest(new) - tail <= MAX_LINES {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_len, new_len) = (rest(old) - tail, rest(new) - tail);
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let changed = DiffOp::Replace {
        old_index: head,
        old_len,
        new_index: head,
        new_len,
    };
    let mut all = vec![
        equal(0, 0, head),
        changed,
        equal(head + old_len, head + new_len, tail),
    ];
    all.retain(|op| !matches!(op, DiffOp::Equal { len: 0, .. }));
    all
}

fn write_hunk(out: &mut String, hunk: &[DiffOp], old: &[&str], new: &[&str]) {
    let span = |range: fn(&DiffOp) -> Range<usize>| {
        let first = hunk.first().map(range).unwrap_or_default();
        let last = hunk.last().map(range).unwrap_or_default();
        first.start..last.end
    };
    let _ = writeln!(
        out,
        "@@ -{} +{} @@",
        place(&span(DiffOp::old_range)),
        place(&span(DiffOp::new_range))
    );
    for op in hunk {
        let gone = old.get(op.old_range()).unwrap_or_default();
        let come = new.get(op.new_range()).unwrap_or_default();
        match op {
            DiffOp::Equal { .. } => write_lines(out, ' ', gone),
            _ => {
                write_lines(out, '-', gone);
                write_lines(out, '+', come);
            }
        }
    }
}

fn write_lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Returns lines as a hunk's head has them: the first, from 1, and how many; of none, the line before them.
fn place(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    }
}

/// Returns the name of a side as `patch` reads it back: quoted if it has characters that would end it.
fn file_name(side: &str, name: &str) -> String {
    let name = name.trim_start_matches('/');
    let name = if name.is_empty() { "domain.xml" } else { name };
    let special = |c: char| c.is_control() || matches!(c, '"' | '\\');
    if !name.contains(special) {
        // A tab ends a name that has blanks in it.
        let end = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}/{name}{end}");
    }
    let mut out = format!("\"{side}/");
    for c in name.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_those_of_diff() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let after = before.replace("b\n", "b\nB\n").replace("k\n", "");
        let expected = "--- a/x.xml\n+++ b/x.xml\n@@ -1,5 +1,6 @@\n a\n b\n+B\n c\n d\n e\n\
                        @@ -8,5 +9,4 @@\n h\n i\n j\n-k\n l\n";
        assert_eq!(diff("x.xml", before, &after), expected);
        assert_eq!(diff("x.xml", before, before), "");
    }

    #[test]
    fn the_last_line_may_have_no_end() {
        let none = "\\ No newline at end of file\n";
        assert_eq!(
            diff("x", "a\nb", "a\nb\n"),
            format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n{none}+b\n")
        );
        assert_eq!(
            diff("x", "a", "b"),
            format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n{none}+b\n{none}")
        );
        assert_eq!(
            diff("x", "", "a\n"),
            "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(
            diff("x", "a\n", ""),
            "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n"
        );
    }

    #[test]
    fn lines_end_at_line_feeds_alone() {
        let expected = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\rb\r\n-c\r\n+d\u{2028}\u{85}\r\n";
        assert_eq!(
            diff("x", "a\rb\r\nc\r\n", "a\rb\r\nd\u{2028}\u{85}\r\n"),
            expected
        );
    }

    #[test]
    fn names_are_reported_so_that_they_end_where_they_end() {
        for (name, printed) in [
            ("dom.xml", "--- a/dom.xml\n"),
            ("/tmp/dom.xml", "--- a/tmp/dom.xml\n"),
            ("", "--- a/domain.xml\n"),
            ("my dom.xml", "--- a/my dom.xml\t\n"),
            ("größe.xml", "--- a/größe.xml\n"),
            ("a\n+++ b\"", "--- \"a/a\\012+++ b\\\"\"\n"),
        ] {
            let diff = diff(name, "a", "b");
            assert!(diff.starts_with(printed), "{diff}");
            assert_eq!(diff.lines().count(), 7, "{diff}");
        }
    }

    #[test]
    fn long_texts_are_one_change() {
        let lines = |word: &str| {
            (0..MAX_LINES + 1)
                .map(|n| format!("{word} {n}\n"))
                .collect::<String>()
        };
        let diff = diff(
            "x",
            &format!("s\n{}e\n", lines("a")),
            &format!("s\n{}e\n", lines("b")),
        );
        let head = format!("@@ -1,{0} +1,{0} @@\n s\n-a 0\n", MAX_LINES + 3);
        assert!(diff.contains(&head) && diff.ends_with("+b 20000\n e\n"));
    }
}
