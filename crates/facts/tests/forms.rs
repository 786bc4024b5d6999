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

#[test]
fn logs_of_programs_are_none_of_a_kernel() {
    let text = "2026-11-27T03:50:11.123Z INFO org.example.Main - soft lockup of the pool\n\
                2026-11-27 03:50:11,123 ERROR kvm: could not start\n\
                [Fri Nov 27 03:50:11.123456 2026] [core:error] [pid 7] kvm [7]: x\n\
                10.0.0.1 - - [27/Nov/2026:03:50:11 +0000] \"GET /kvm HTTP/1.1\" 200 7\n\
                [    37.123] (II) Loading /usr/lib/xorg/modules/x.so\n\
                Nov 27 03:50:12 node7 systemd[1]: Started Session 4 of user root.\n\
                On Nov 27 we saw that kvm: it was slow, and rcu: stalled\n\
                Unser kernel: sagt nichts\n";
    for line in text.lines() {
        let (facts, _) = read(line.as_bytes());
        assert!(facts.is_empty(), "{line}: {facts:?}");
    }
    assert!(read(text.as_bytes()).0.is_empty());
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
