//! What every reader declares is so: its fixtures are read, and mangled as tickets mangle them they give the same facts.

use std::fs;
use std::path::Path;

use facts::{Facts, read};

/// Each fixture: its file and its text.
fn fixtures() -> Vec<(&'static str, String)> {
    let files = facts::FORMS.iter().flat_map(|form| form.fixtures);
    let each = files.map(|file| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        (*file, text)
    });
    each.collect()
}

/// Says what a mangled text gives, where that is not the same.
fn differs(file: &str, how: &str, want: &Facts, mangled: &str) -> Option<String> {
    let (have, notes) = read(mangled.as_bytes());
    (have != *want).then(|| format!("{file}, {how}: {notes:?}\n{mangled}\n{have:?}"))
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn every_fixture_is_read() {
    for form in facts::FORMS {
        assert!(!form.fixtures.is_empty(), "{}", form.printed_by);
    }
    for (file, text) in fixtures() {
        let (facts, notes) = read(text.as_bytes());
        assert!(!facts.is_empty(), "{file}");
        let noted = notes.iter().all(|note| note.ends_with("not understood"));
        assert!(noted, "{file}: {notes:?}");
    }
}

#[test]
fn pasted_fixtures_give_the_same_facts() {
    let mut wrong = Vec::new();
    for (file, text) in fixtures() {
        let (want, _) = read(text.as_bytes());
        let mut same = |how, mangled: &str| wrong.extend(differs(file, how, &want, mangled));
        same("quoted", &each_line(&text, |line| format!("> {line}")));
        same(
            "quoted twice",
            &each_line(&text, |line| format!(">> {line}")),
        );
        same("CRLF", &text.replace('\n', "\r\n"));
        same("CR", &text.replace('\n', "\r"));
        same(
            "indented",
            &each_line(&text, |line| format!("    {line}  ")),
        );
        same(
            "with blank lines",
            &each_line(&text, |line| format!("{line}\n")),
        );
        same("no end of the last line", text.trim_end());
        let fenced = format!("Hello,\nwe see this:\n```\n{text}```\nWhat is it?\n");
        same("fenced, in prose", &fenced);
        let prose = format!("Guten Tag, hier die Ausgabe:\n\n{text}\nViele Grüße\n");
        same("in German prose", &prose);
        if !text.starts_with('{') {
            let coloured = each_line(&text, |line| format!("\x1b[0m{line}"));
            same("coloured", &coloured);
            same("no-break blanks", &text.replace("  ", "\u{a0} "));
            same("HTML", &text.replace("  ", "&nbsp; "));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Facts are of whatever stands in a text, and texts of other tools have none of them.
#[test]
fn other_texts_have_no_facts() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/cases");
    let mut read_of = Vec::new();
    for entry in fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".txt") {
            continue;
        }
        let (facts, _) = read(&fs::read(&path).unwrap());
        if !facts.is_empty() {
            read_of.push(name);
        }
    }
    read_of.sort();
    assert_eq!(read_of, ["domstats.txt"]);
}
