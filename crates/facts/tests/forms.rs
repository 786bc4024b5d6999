//! What every reader declares is so: its fixtures are read, and mangled as tickets mangle them they give the same
//! facts.

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

#[test]
fn lscpu_says_how_the_host_is_made() {
    let of = |name: &str| {
        let (_, text) = fixtures()
            .into_iter()
            .find(|(file, _)| file.ends_with(name))
            .unwrap();
        let (facts, notes) = read(text.as_bytes());
        assert_eq!(notes, [""; 0], "{name}");
        facts.host.unwrap()
    };
    let host = of("lscpu-2.34.txt");
    assert_eq!(host.arch.as_deref(), Some("x86_64"));
    let model = "Intel(R) Xeon(R) Silver 4208 CPU @ 2.10GHz";
    assert_eq!(host.cpu_model.as_deref(), Some(model));
    assert_eq!(host.smt.as_deref(), Some("on"));
    assert_eq!(host.nodes[1].cpus.to_string(), "8-15,24-31");
    assert_eq!(host.mitigations.len(), 4);
    let host = of("lscpu-2.40-terminal.txt");
    assert_eq!(host.online.unwrap().to_string(), "0-7");
    assert_eq!((host.smt, host.mitigations.len()), (None, 5));
    let retbleed = "Mitigation; untrained return thunk; SMT disabled";
    assert_eq!(host.mitigations["retbleed"], retbleed);
    let host = of("lscpu-arm64-2.39.txt");
    assert_eq!(host.cpu_model.as_deref(), Some("Neoverse-N1"));
    // In another language the same.
    for (english, others) in [
        (
            "lscpu-2.34.txt",
            ["german-2.34", "french-2.34", "chinese-2.34"],
        ),
        (
            "lscpu-2.40-terminal.txt",
            ["german-2.38-terminal", "french-2.38", "chinese-2.38"],
        ),
    ] {
        for other in others {
            assert_eq!(of(&format!("lscpu-{other}.txt")), of(english), "{other}");
        }
    }
    // Beside numactl -H, which says the same of the nodes and more.
    let both = "NUMA node0 CPU(s): 0-3\nnode 0 cpus: 0 1 2 3\nnode 0 size: 64215 MB\n";
    let (facts, notes) = read(both.as_bytes());
    let nodes = &facts.host.as_ref().unwrap().nodes;
    assert_eq!((nodes.len(), nodes[0].memory_bytes), (1, Some(64215 << 20)));
    assert_eq!(notes, [""; 0]);
    let (facts, notes) = read("Arquitectura:  x86_64\nCPU(s):  4\n".as_bytes());
    assert!(facts.is_empty() && notes.iter().any(|note| note.contains("LC_ALL=C")));
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
