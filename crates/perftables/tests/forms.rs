//! What every reader declares is so: its fixtures are read, and mangled as tickets mangle them they give the same rows.

use std::fs;
use std::path::Path;

use perftables::{PerfTable, forms, read, read_placed};

/// Each fixture, with who prints it.
fn fixtures() -> Vec<(&'static str, &'static str, String)> {
    let forms = forms();
    let each = forms.iter().flat_map(|form| {
        let files = form.fixtures.iter();
        files.map(|file| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            (form.printed_by, *file, text)
        })
    });
    each.collect()
}

/// Returns tables as text without places and headings, which mangling changes.
fn content(tables: &[PerfTable]) -> String {
    let text = format!("{tables:#?}");
    let place = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("line: ") && !line.starts_with("label: ")
    };
    // A label stands on one line, or on three.
    let mut out = String::new();
    let mut label = false;
    for line in text.lines() {
        let bare = line.trim_start();
        label |= bare.starts_with("label: Some(");
        if !label && place(&line) {
            out.push_str(line);
            out.push('\n');
        }
        label &= bare != "),";
    }
    out
}

#[track_caller]
fn same(file: &str, how: &str, text: &str, mangled: &str) {
    let (want, _) = read(text.as_bytes());
    let (have, _) = read(mangled.as_bytes());
    assert_eq!(content(&have), content(&want), "{file}, {how}:\n{mangled}");
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn every_fixture_is_read() {
    for (printed_by, file, text) in fixtures() {
        let (tables, _) = read_placed(text.as_bytes());
        assert!(
            !tables.is_empty(),
            "{printed_by}: nothing is read of {file}"
        );
        for one in &tables {
            let lines = u64::try_from(text.lines().count()).unwrap();
            assert!(
                one.table.line() <= one.last_line && one.last_line <= lines,
                "{file}"
            );
        }
    }
}

#[test]
fn pasted_fixtures_have_the_same_rows() {
    for (_, file, text) in fixtures() {
        same(
            file,
            "quoted",
            &text,
            &each_line(&text, |line| format!("> {line}")),
        );
        same(file, "CRLF", &text, &text.replace('\n', "\r\n"));
        same(
            file,
            "indented",
            &text,
            &each_line(&text, |line| format!("    {line}  ")),
        );
        same(file, "HTML", &text, &text.replace("  ", "&nbsp; "));
        let fenced = format!("Hello,\nwe see this:\n```\n{text}```\nWhat is it?\n");
        same(file, "fenced, in prose", &text, &fenced);
    }
}

/// Columns that a page or an editor separated by tabs.
#[test]
fn tabs_are_blanks() {
    // What a hierarchy's levels are is in its blanks.
    let others = fixtures()
        .into_iter()
        .filter(|(_, file, _)| !file.contains("hierarchy"));
    for (_, file, text) in others {
        let mut tabs = text.clone();
        for blanks in ["        ", "    ", "   ", "  "] {
            tabs = tabs.replace(blanks, "\t");
        }
        same(file, "tabs", &text, &tabs);
    }
}

/// Lines that a mailer broke, tables without their first or last line: nothing is read that does not stand in the text.
#[test]
fn what_is_left_of_a_table_has_no_new_numbers() {
    for (_, file, text) in fixtures() {
        let lines: Vec<&str> = text.lines().collect();
        let wrapped = each_line(&text, |line| {
            let chars: Vec<char> = line.chars().collect();
            let pieces = chars
                .chunks(72)
                .map(|piece| piece.iter().collect::<String>());
            pieces.collect::<Vec<_>>().join("\n")
        });
        let headless = lines.get(2..).unwrap_or_default().join("\n");
        let endless = lines.get(..lines.len() - 1).unwrap_or_default().join("\n");
        let known = names(&read(text.as_bytes()).0);
        for (how, mangled) in [
            ("wrapped", wrapped),
            ("headless", headless),
            ("endless", endless),
        ] {
            let (tables, _) = read(mangled.as_bytes());
            for name in names(&tables) {
                let stands_there =
                    known.contains(&name) || mangled.replace('\n', "").contains(&name);
                assert!(stands_there, "{file}, {how}: {name} is not in the text");
            }
        }
    }
}

/// Returns what rows are called, by their debugging text: what stands in quotation marks.
fn names(tables: &[PerfTable]) -> Vec<String> {
    let text = content(tables);
    let names = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once('"')?;
        let (name, _) = rest.rsplit_once('"')?;
        Some(name.replace("\\\"", "\"").replace("\\'", "'"))
    });
    names.collect()
}

#[test]
fn a_second_table_is_another() {
    for (_, file, text) in fixtures() {
        let (once, _) = read(text.as_bytes());
        let twice = format!("before:\n\n{text}\n\nand after the change it is this:\n\n{text}");
        let (both, _) = read(twice.as_bytes());
        assert_eq!(both.len(), 2 * once.len(), "{file}");
        let (first, second) = both.split_at(once.len());
        assert_eq!(content(first), content(second), "{file}");
    }
}
