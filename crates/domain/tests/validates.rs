//! Every change of every domain, as its users get it: `patch` applies the diff, and libvirt's schema takes the result.
//!
//! It needs `virt-xml-validate` (Debian's libvirt-clients, with libxml2-utils for xmllint) and `patch`. Without them
//! the test says so and passes, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use domain::{DomainChange, NoteKind};

/// The schema that virt-xml-validate takes for a domain.
const SCHEMA: &str = "/usr/share/libvirt/schemas/domain.rng";

/// Returns whether the tools are there.
fn has_tools() -> bool {
    let mut missing: Vec<_> = ["virt-xml-validate", "xmllint", "patch"]
        .into_iter()
        .filter(|tool| {
            let run = Command::new(tool)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            run.is_err()
        })
        .collect();
    if !Path::new(SCHEMA).exists() {
        missing.push(SCHEMA);
    }
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(
        missing.is_empty() || !required,
        "TRAPLINE_REQUIRE_TOOLS=1 is set, and these are missing: {missing:?}"
    );
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    if !missing.is_empty() {
        eprintln!("skipped: no {} here", missing.join(", "));
    }
    missing.is_empty()
}

/// Runs a command in a folder; what it printed if it fails.
fn run(folder: &Path, command: &mut Command) -> Result<(), String> {
    let output = command.current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(said)
    }
}

/// Applies a diff in both ways, and checks that each gives the same text.
fn patches(folder: &Path, name: &str, before: &str, after: &str) {
    let diff = domain::diff(name, before, after);
    assert_eq!(diff.is_empty(), before == after);
    if before == after {
        return;
    }
    fs::write(folder.join("change.diff"), &diff).unwrap();
    for arguments in [
        &["-p1", "-i", "change.diff"][..],
        &[name, "change.diff"][..],
    ] {
        fs::write(folder.join(name), before).unwrap();
        // --fuzz=0: it has to apply where it says, not only nearby.
        let mut patch = Command::new("patch");
        patch
            .arg("--fuzz=0")
            .arg("--no-backup-if-mismatch")
            .args(arguments);
        if let Err(said) = run(folder, &mut patch) {
            panic!("{name}: {said}\n{diff}");
        }
        let found = fs::read_to_string(folder.join(name)).unwrap();
        assert!(found == after, "{name} is another text\n{diff}");
    }
}

/// Checks files against libvirt's schema, all at once: what `virt-xml-validate` runs for one.
fn validates(folder: &Path, files: &[(String, String)]) {
    let mut said = String::new();
    for chunk in files.chunks(200) {
        let mut names = Vec::new();
        for (at, (_, text)) in chunk.iter().enumerate() {
            names.push(format!("{at}.xml"));
            fs::write(folder.join(format!("{at}.xml")), text).unwrap();
        }
        let mut xmllint = Command::new("xmllint");
        xmllint.args(["--noout", "--relaxng", SCHEMA]).args(&names);
        if let Err(what) = run(folder, &mut xmllint) {
            for (at, (title, text)) in chunk.iter().enumerate() {
                if what.contains(&format!("\n{at}.xml fails to validate"))
                    || what.starts_with(&format!("{at}.xml fails to validate"))
                {
                    said.push_str(&format!("{title} as {at}.xml:\n{text}\n"));
                }
            }
            said.push_str(&what);
        }
    }
    assert!(said.is_empty(), "{said}");
}

/// Returns whether a change is one that turns something on.
fn is_wanted(change: &DomainChange) -> bool {
    match change {
        DomainChange::Timer { present, .. } => *present,
        DomainChange::HypervFeature { on, .. }
        | DomainChange::KvmFeature { on, .. }
        | DomainChange::Feature { on, .. } => *on,
        DomainChange::InterfaceDriver { name, .. } => name == "vhost",
        _ => true,
    }
}

/// What the casebook's second case gives a Windows guest.
fn casebook() -> Vec<DomainChange> {
    let mut changes = vec![DomainChange::Timer {
        name: "hypervclock".to_owned(),
        present: true,
    }];
    for name in ["vpindex", "synic", "stimer"] {
        changes.push(DomainChange::HypervFeature {
            name: name.to_owned(),
            on: true,
        });
    }
    changes
}

#[test]
fn what_is_changed_validates_and_the_diffs_apply() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let changes = crate::common::changes();
    let (wanted, unwanted): (Vec<DomainChange>, Vec<DomainChange>) =
        changes.iter().cloned().partition(is_wanted);
    let mut results = Vec::new();
    for (name, text) in crate::common::DOMAINS {
        fs::write(folder.path().join(name), text).unwrap();
        let mut validate = Command::new("virt-xml-validate");
        run(folder.path(), validate.args([name, "domain"])).unwrap();
        let mut made = 0;
        for change in &changes {
            let (after, _) = domain::apply(text, std::slice::from_ref(change)).unwrap();
            patches(folder.path(), name, text, &after);
            if after != *text {
                made += 1;
                results.push((format!("{name} with {change:?}"), after));
            }
        }
        assert!(made > 30, "{name}: only {made} changes were made");
        for (all, what) in [
            (&wanted, "all that is wanted"),
            (&unwanted, "all that is not"),
            (&changes, "all"),
        ] {
            let (after, _) = domain::apply(text, all).unwrap();
            patches(folder.path(), name, text, &after);
            fs::write(folder.path().join("all.xml"), &after).unwrap();
            let mut validate = Command::new("virt-xml-validate");
            if let Err(said) = run(folder.path(), validate.args(["all.xml", "domain"])) {
                panic!("{name}, {what}: {said}\n{after}");
            }
        }
    }
    validates(folder.path(), &results);
}

#[test]
fn the_casebooks_lines_validate() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (name, text) = ("windows.xml", include_str!("domains/windows.xml"));
    let (after, notes) = domain::apply(text, &casebook()).unwrap();
    assert!(
        notes.iter().all(|note| note.kind == NoteKind::Advice),
        "{notes:?}"
    );
    patches(folder.path(), name, text, &after);
    fs::write(folder.path().join(name), &after).unwrap();
    run(folder.path(), Command::new("virt-xml-validate").arg(name)).unwrap();
}

#[test]
fn diffs_of_any_lines_apply() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        "",
        "a",
        "a\n",
        "a\nb",
        "a\r\nb\r\n",
        "\n\n",
        "--- a\n+++ b\n",
        "a\rb\n",
        "b\nc\nd\ne\nf\ng\nh\na",
    ];
    for before in texts {
        for after in texts {
            // patch removes a file that becomes empty, as it should.
            if !after.is_empty() {
                patches(folder.path(), "my file.xml", before, after);
            }
        }
    }
}
