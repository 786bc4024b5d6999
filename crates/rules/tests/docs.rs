//! `RULES.md`, the reference in this crate's documentation, is made of what stands with the rules.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs` writes it.

use std::fs;
use std::path::Path;

use rules::{ParameterValues, TuningParameter};

/// What stands above the rules.
const INTRODUCTION: &str = "\
# The rules

Generated with `TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs` from the rules in `crates/rules/src/rules`.
`trapline rules ID` also prints which events the rule needs, its sources, and for each remedy when not to use it and how
to check it. Limits are set so that a healthy guest stays below them, with room; none is tuned to a machine.

";

#[test]
fn the_document_says_what_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RULES.md");
    let sections = rules::all().iter().map(|rule| rule.describe());
    let wanted = INTRODUCTION.to_owned() + &sections.collect::<Vec<String>>().join("\n");
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
        return;
    }
    let text = fs::read_to_string(&path).unwrap();
    let differs = text
        .lines()
        .zip(wanted.lines())
        .find(|(is, should)| is != should);
    assert!(
        text == wanted,
        "RULES.md is not what the rules say ({differs:?}); TRAPLINE_WRITE_DOCS=1 writes it"
    );
}

#[test]
fn texts_have_all_their_parts() {
    for rule in rules::all() {
        let text = rule.describe();
        assert!(!rule.found.is_empty(), "{}: when is it found?", rule.id);
        assert!(!rule.remedies.is_empty(), "{}", rule.id);
        let described = rule.described_as;
        let whole = |one: &&str| one.len() > 5 && one.trim() == *one && !one.ends_with('.');
        assert!(
            described.len() >= 2 && described.iter().all(whole),
            "{}: how do people describe it? {described:?}",
            rule.id
        );
        let least = rule.least_found();
        assert!(
            !least.is_empty() && !least.contains(['{', '`', '*']),
            "{}: what is 'not found' worth? {least}",
            rule.id
        );
        for remedy in rule.remedies {
            let parts = [remedy.what, remedy.price, remedy.unless, remedy.check];
            let whole = parts.iter().all(|part| part.ends_with('.'));
            assert!(whole, "{}: {parts:?}", rule.id);
        }
        // A name in braces that no limit has would stay.
        assert!(!text.contains(['{', '}']), "{}: {text}", rule.id);
        for (name, _) in rule.limits {
            let written = rule
                .found
                .iter()
                .chain([&rule.unknown])
                .any(|part| part.contains(&format!("{{{name}}}")));
            assert!(written, "{}: no text has the limit '{name}'", rule.id);
        }
    }
}

#[test]
fn links_lead_to_rules() {
    for rule in rules::all() {
        let text = rule.describe();
        for (_, rest) in text
            .match_indices("](")
            .map(|(at, link)| text.split_at(at + link.len()))
        {
            let link = rest.split(')').next().unwrap_or_default();
            let id = link.strip_prefix('#');
            let file = link.split('#').next().unwrap_or_default();
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(file).is_file();
            assert!(
                id.is_some_and(|id| rules::rule(id).is_some()) || there,
                "{}: {link}",
                rule.id
            );
        }
    }
}

/// Words of remedies that look like parameters of modules or sysctls, and are none.
const NO_PARAMETERS: [&str; 4] = ["cpu.stat", "io.stat", "vulnerabilities", "nr_throttled"];

/// What remedies change has a name in the table of parameters, and takes the values that they say.
#[test]
fn remedies_name_parameters_that_exist_with_values_that_they_take() {
    let mut named = 0;
    for rule in rules::all() {
        for remedy in rule.remedies {
            let text = remedy.what;
            let known: Vec<_> = remedy.parameters().collect();
            named += known.len();
            for parameter in &known {
                for name in parameter.written {
                    for behind in rules::places(text, name) {
                        value(rule.id, parameter, name, &text[behind..]);
                    }
                }
            }
            for word in words_with_a_dot(text).chain(elements(text)) {
                let is_known = known.iter().any(|one| {
                    one.written
                        .iter()
                        .any(|name| word.contains(name) || name.contains(&word))
                });
                let is_none = NO_PARAMETERS.contains(&word.as_str());
                assert!(is_known || is_none, "{}: '{word}' is in no table", rule.id);
            }
        }
    }
    assert!(named > 60, "{named}");
    let unused = rules::parameters().iter().filter(|parameter| {
        let mut remedies = rules::all().iter().flat_map(|rule| rule.remedies);
        !remedies.any(|remedy| parameter.is_named_in(remedy.what))
    });
    let unused: Vec<&str> = unused.map(|parameter| parameter.name).collect();
    assert!(unused.is_empty(), "no remedy names {unused:?}");
    for parameter in rules::parameters() {
        assert!(!parameter.source.is_empty(), "{}", parameter.name);
    }
}

/// Checks what stands behind a parameter as its value.
fn value(rule: &str, parameter: &TuningParameter, name: &str, behind: &str) {
    let value = match name.ends_with('=') {
        true => Some(behind),
        false => behind.strip_prefix('='),
    };
    let Some(value) = value else { return };
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let value = &value[..end.unwrap_or(value.len())];
    let takes = match parameter.values {
        ParameterValues::Any => true,
        ParameterValues::Number(from, to) => {
            let number = value.parse::<u64>();
            number.is_ok_and(|number| (from..=to).contains(&number))
        }
        ParameterValues::Word(words) => words.contains(&value),
    };
    // A name in the place of a value, as in nohz_full=CPUS.
    assert!(
        takes || value.is_empty(),
        "{rule}: {} takes no {value}",
        parameter.name
    );
}

/// Words such as `kvm_intel.ple_gap`, `kernel.numa_balancing`, `cpu.max`.
fn words_with_a_dot(text: &str) -> impl Iterator<Item = String> + '_ {
    const SPACES: [&str; 8] = [
        "kvm",
        "kvm_intel",
        "kvm_amd",
        "kernel",
        "net",
        "cpu",
        "memory",
        "io",
    ];
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| {
            let space = word.split_once('.').map(|(space, _)| space);
            space.is_some_and(|space| SPACES.contains(&space))
        })
        .map(str::to_owned)
}

/// Elements of a definition: `<vcpupin`.
fn elements(text: &str) -> impl Iterator<Item = String> + '_ {
    // They hold others, or say what is meant.
    const PLAIN: [&str; 13] = [
        "interface",
        "driver",
        "memoryBacking",
        "cputune",
        "clock",
        "hyperv",
        "console",
        "video",
        "timer",
        "model",
        "target",
        "qemu",
        "iotune",
    ];
    let opened = text.split('<').skip(1);
    opened
        .filter_map(|behind| {
            let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            Some(&behind[..end])
        })
        .filter(|name| !name.is_empty() && !PLAIN.contains(name))
        .map(|name| format!("<{name}"))
}

/// What a definition alone says is documented, and never sure.
#[test]
fn remarks_on_definitions_have_all_their_parts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnose.md");
    let text = fs::read_to_string(path).unwrap();
    for kind in rules::remark_kinds() {
        assert!(
            text.contains(&format!("`{}`", kind.id)),
            "{} is not in docs/diagnose.md",
            kind.id
        );
        let whole = [kind.why, kind.price, kind.refuted_by]
            .iter()
            .all(|part| part.ends_with('.'));
        assert!(whole, "{}: {kind:?}", kind.id);
        assert!(
            kind.confidence > 0.0 && kind.confidence <= 0.5,
            "{}",
            kind.id
        );
        assert!(
            !kind.sources.is_empty() && !kind.record.is_empty(),
            "{}",
            kind.id
        );
    }
}

/// The folder of the recordings of causes.
fn causes() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/causes")
}

/// What is expected of recordings, of one of the lists.
fn expected(file: &Path) -> serde_json::Value {
    let text = fs::read_to_string(file).expect("a list");
    serde_json::from_str(&text).expect("a document")
}

#[test]
fn every_rule_says_which_recordings_have_its_cause() {
    let folder = causes();
    let lists = [
        expected(&folder.join("expected.json")),
        expected(&folder.join("../expected.json")),
    ];
    let text = fs::read_to_string(folder.join("README.md")).expect("a table");
    let (_, table) = text.split_once("## By rule").expect("its heading");
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<Vec<&str>> = rows
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .filter(|cells: &Vec<&str>| !["rule", "---"].contains(&cells[0]))
        .collect();
    let ids: Vec<&str> = rows.iter().map(|cells| cells[0]).collect();
    let mut wanted: Vec<&str> = rules::all().iter().map(|rule| rule.id).collect();
    wanted.sort_unstable();
    assert_eq!(ids, wanted, "each rule has a row");
    for cells in &rows {
        let [rule, x86, arm64, healthy, why] = cells[..] else {
            panic!("{cells:?}");
        };
        let mut any = false;
        for (arch, recordings) in [("x86", x86), ("arm64", arm64)] {
            for name in recordings.split(", ").filter(|name| *name != "-") {
                any = true;
                assert_eq!(name.contains("arm64/"), arch == "arm64", "{rule}: {name}");
                let bare = name.trim_start_matches("../");
                let list = &lists[usize::from(bare != name)];
                let packed = format!("{bare}/perf.data.zst");
                let entry = [&list[bare], &list[&packed]];
                let must = |one: &&&serde_json::Value| one["must"].get(rule).is_some();
                assert!(
                    entry.iter().any(|one| must(&one)),
                    "{rule}: {name} is not of it"
                );
            }
        }
        let twins = healthy.split(", ");
        for twin in twins.filter(|twin| !["by hand", "every recording"].contains(twin)) {
            assert!(folder.join(twin).exists(), "{rule}: there is no {twin}");
        }
        let by_hand = causes().join("../../crates/rules/tests/by_hand").join(rule);
        assert!(by_hand.is_dir(), "{rule} has no recording by hand");
        let missing = x86 == "-" || arm64 == "-";
        assert!(!missing || !why.is_empty(), "{rule}: why is one missing?");
        assert!(
            any || why.contains("by hand") || why.contains("By hand"),
            "{rule}: {why}"
        );
    }
}
