//! The man pages in `docs/man` and the shells' completions in `completions`, made of the definitions of the commands.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins manuals` writes them; without it the same tests compare. They
//! stand beside the definitions because the program has no library that other tests could ask for them. Whoever
//! installs them needs nothing but the files, and the program carries none of this.

mod examples;
mod inputs;
mod page;
mod schemas;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::status::STATUSES;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Args;

/// Returns the definition of the program, with all that clap adds, but without the command `help`.
fn definition() -> Command {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the files of a folder with these, or writes them.
fn keep(folder: &str, files: &BTreeMap<String, Vec<u8>>) {
    let path = root().join(folder);
    let there = fs::read_dir(&path).into_iter().flatten().flatten();
    let there = there.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let more: Vec<String> = there.filter(|name| !files.contains_key(name)).collect();
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::create_dir_all(&path).unwrap();
        for name in more {
            fs::remove_file(path.join(name)).unwrap();
        }
        for (name, bytes) in files {
            fs::write(path.join(name), bytes).unwrap();
        }
        return;
    }
    let how = "TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins manuals writes it";
    assert!(
        more.is_empty(),
        "{folder}: {more:?} belong to no command; {how}"
    );
    for (name, bytes) in files {
        let kept = fs::read(path.join(name)).unwrap_or_default();
        assert!(
            kept == *bytes,
            "{folder}/{name} is not what the definitions of the commands say; {how}"
        );
    }
}

#[test]
fn man_pages_are_those_that_are_kept() {
    keep("docs/man", &page::all(&definition()));
}

#[test]
fn completions_are_those_that_are_kept() {
    let mut files = BTreeMap::new();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut bytes = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "trapline", &mut bytes);
        let name = clap_complete::Generator::file_name(&shell, "trapline");
        files.insert(name, bytes);
    }
    keep("completions", &files);
}

/// What has a fixed set of names is completed by them, and not by files.
#[test]
fn completions_know_the_names_of_rules_and_of_paths() {
    let mut bytes = Vec::new();
    clap_complete::generate(Shell::Bash, &mut Args::command(), "trapline", &mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    for (option, name) in [("--rule)", "timer-port-exits"), ("--path)", "halt-wake")] {
        let mut cases = text.split(option).skip(1);
        assert!(
            cases.all(|case| case.lines().nth(1).unwrap_or_default().contains(name)),
            "{option} is not completed by {name}"
        );
        assert!(text.contains(option));
    }
}

/// A variable that the program reads and no man page names would be found by nobody.
#[test]
fn man_pages_name_the_variables_that_are_read() {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        if path.to_string_lossy().contains("manuals") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (at, call) in text.match_indices("env::var") {
            let argument = text[at + call.len()..].split(['(', ')']).nth(1);
            let Some(name) = argument.and_then(|argument| argument.strip_prefix('"')) else {
                continue;
            };
            let name = name.trim_end_matches('"');
            assert!(
                page::variables().any(|known| known == name),
                "{}: {name} is read, and ENVIRONMENT in manuals/page.rs does not say what for",
                path.display()
            );
        }
    }
}

/// The list of commands has the statuses that the man pages have.
#[test]
fn the_list_of_commands_has_the_exit_statuses() {
    let path = root().join("docs/commands.md");
    let text = fs::read_to_string(&path).unwrap();
    let rows = STATUSES.map(|one| format!("| {} | {} |\n", one.code, one.meaning));
    let (before, rest) = text
        .split_once("| status | when |\n| --- | --- |\n")
        .expect("a table");
    let (_, after) = rest.split_once("\n\n").expect("its end");
    let wanted = format!(
        "{before}| status | when |\n| --- | --- |\n{}\n{after}",
        rows.concat()
    );
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, wanted).unwrap();
        return;
    }
    assert!(
        text == wanted,
        "docs/commands.md: TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins manuals writes it"
    );
}
