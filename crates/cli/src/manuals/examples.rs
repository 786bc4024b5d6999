//! Examples in help, in the guides and in the README are commands that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use super::page::Below;
use super::{definition, root};
use crate::first_word;

/// Returns the command lines of the program in a line of a shell: of `virsh dumpxml a | trapline exits - > x` the
/// second.
fn of_program(line: &str) -> Vec<Vec<String>> {
    let Some(words) = shlex::split(line) else {
        panic!("a quote is missing in: {line}")
    };
    let parts = words.split(|word| ["|", "||", "&&", ";", "&"].contains(&word.as_str()));
    let mut found = Vec::new();
    for part in parts {
        let until = part.iter().position(|word| word.starts_with(['>', '<']));
        let part = &part[..until.unwrap_or(part.len())];
        // Variables and `sudo` may stand before it.
        if let Some(at) = part.iter().position(|word| word == "trapline")
            && at < 2
        {
            found.push(part[at..].to_vec());
        }
    }
    found
}

/// Parses every command line of the program in a line, and returns how many there are.
fn check(place: &str, line: &str) -> usize {
    let lines = of_program(line);
    for words in &lines {
        if let Err(error) = first_word::parse(words.iter().map(Into::into).collect(), false) {
            assert!(
                !error.use_stderr(),
                "{place}: the program does not take '{}': {error}",
                words.join(" ")
            );
        }
    }
    lines.len()
}

/// An example's command: remarks stand beside it, two columns away or more.
fn without_remark(line: &str) -> &str {
    line.split("  ").next().unwrap_or_default()
}

#[test]
fn help_has_examples_and_they_are_taken() {
    let program = definition();
    let commands: Vec<&clap::Command> = program.get_subcommands().collect();
    let below = commands
        .iter()
        .flat_map(|command| command.get_subcommands());
    for command in below.chain(commands.iter().copied()).chain([&program]) {
        let name = command.get_display_name().unwrap_or_default();
        let examples = Below::of(command).examples;
        let taken = examples.iter().filter(|line| !line.starts_with(' '));
        let taken: usize = taken
            .map(|line| check(&format!("{name} --help"), without_remark(line)))
            .sum();
        assert!(taken > 0, "{name} --help has no examples");
    }
}

#[test]
fn commands_in_guides_are_taken() {
    let guides = fs::read_dir(root().join("docs/guide")).unwrap();
    let mut files: Vec<_> = guides.map(|entry| entry.unwrap().path()).collect();
    for name in [
        "README.md",
        "docs/tour.md",
        "docs/commands.md",
        "docs/watch.md",
        "docs/why.md",
    ] {
        files.push(root().join(name));
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Those of `console` blocks are run as well (tests/guides.rs).
        let mut shell = false;
        let mut whole = String::new();
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("```") {
                shell = !shell && kind == "sh";
                continue;
            }
            if !shell || line.trim_start().starts_with('#') {
                continue;
            }
            whole.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                let line = std::mem::take(&mut whole);
                check(&file.display().to_string(), &line);
            }
        }
    }
}

/// Files below a folder.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, out),
            path => out.push(path),
        }
    }
}

/// Lines of `trapline record` that messages name.
#[test]
fn lines_in_messages_are_taken() {
    let mut files = Vec::new();
    for one in fs::read_dir(root().join("crates")).unwrap().flatten() {
        sources(&one.path().join("src"), &mut files);
    }
    let mut taken = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let code = text.lines().map(|line| line.trim().trim_end_matches('\\'));
        let code = code.collect::<Vec<_>>().join(" ");
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in code.split("'trapline record").skip(1) {
            let (rest, _) = part.split_once('\'').unwrap_or_default();
            // What is put in is known when the program runs; an option may be named without its word.
            if !rest.contains(['{', '<']) && rest != " --agent" {
                taken += check(
                    &file.display().to_string(),
                    &format!("trapline record{rest}"),
                );
            }
        }
    }
    assert!(taken > 20, "{taken} lines");
}
