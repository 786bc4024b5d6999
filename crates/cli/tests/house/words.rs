//! Words that names, comments, documents and outputs do not use, and lines that are too long to read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use super::{Allowances, crates, root, rust_files};

/// Columns that a line of code or comment has at most.
const WIDEST: usize = 120;

/// A word or a form of several words that is not used, and what stands in its place.
struct Banned {
    words: Vec<String>,
    instead: String,
}

/// Reads the list of words that are not used.
fn banned() -> Vec<Banned> {
    let text = include_str!("banned-words.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('|'))
        .map(|(form, instead)| Banned {
            words: words(form),
            instead: instead.trim().to_owned(),
        })
        .collect()
}

/// Returns the words of a line in small letters; an identifier is cut at underscores and before capitals. A colon
/// counts as part of the word before it, since it makes a form.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for character in line.chars() {
        let begins = character.is_uppercase() && before.is_lowercase();
        if character.is_alphanumeric() || (character == ':' && before.is_alphanumeric()) {
            if begins || !before.is_alphanumeric() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        before = character;
    }
    words
}

/// Returns whether a line has all words of a form side by side.
fn has(line: &[String], form: &[String]) -> bool {
    let same = |word: &String, of: &String| {
        word == of || (!of.ends_with(':') && word.strip_suffix(':') == Some(of))
    };
    line.windows(form.len())
        .any(|part| part.iter().zip(form).all(|(word, of)| same(word, of)))
}

/// Returns the lines of a text that have a word that is not used.
fn offences(file: &Path, text: &str, banned: &[Banned]) -> Vec<String> {
    let mut found = Vec::new();
    // Most files and lines have none, and are not cut into words.
    let small = text.to_lowercase();
    let may_have = |text: &str| banned.iter().any(|form| text.contains(&form.words[0]));
    if !may_have(&small) {
        return found;
    }
    let lines = text.lines().zip(small.lines()).zip(1usize..);
    for ((line, small), number) in lines {
        if !may_have(small) {
            continue;
        }
        let words = words(line);
        for form in banned {
            if has(&words, &form.words) {
                let form_text = form.words.join(" ");
                let instead = &form.instead;
                found.push(format!(
                    "{}:{number}: \"{form_text}\" (instead: {instead})",
                    file.display()
                ));
            }
        }
    }
    found
}

/// Returns the files of some kinds below a folder.
fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else if extensions.contains(&extension.as_ref()) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn code_uses_no_banned_word() {
    let banned = banned();
    let mut allowed = Allowances::of("words");
    for (name, folder) in crates() {
        let mut found = Vec::new();
        for file in rust_files(&folder) {
            // This list itself.
            if file
                .parent()
                .is_some_and(|parent| parent.ends_with("tests/house"))
            {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source file is text");
            found.extend(offences(&file, &text, &banned));
        }
        allowed.check(&name, &found);
    }
    allowed.finish();
}

#[test]
fn documents_use_no_banned_word() {
    let banned = banned();
    let mut allowed = Allowances::of("words");
    let mut files = files_below(&root().join("docs"), &["md"]);
    for name in ["README.md", "ARCHITECTURE.md"] {
        files.push(root().join(name));
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a document is text");
        found.extend(offences(&file, &text, &banned));
    }
    allowed.check("docs", &found);
    allowed.finish();
}

#[test]
fn outputs_use_no_banned_word() {
    let banned = banned();
    let mut allowed = Allowances::of("words");
    let mut found = Vec::new();
    for file in files_below(&root().join("corpus/golden"), &["txt", "json", "csv"]) {
        let text = fs::read_to_string(&file).expect("an output is text");
        found.extend(offences(&file, &text, &banned));
    }
    allowed.check("outputs", &found);
    allowed.finish();
}

/// Adds the lines of text that stands in a file as it is: strings of several lines, and raw ones. They may be as wide
/// as they are.
fn verbatim(tokens: TokenStream, lines: &[&str], found: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => verbatim(group.stream(), lines, found),
            TokenTree::Literal(literal) => {
                let (first, last) = (literal.span().start(), literal.span().end());
                let line = lines.get(first.line - 1).copied().unwrap_or_default();
                let text: String = line.chars().skip(first.column).take(2).collect();
                let several = last.line > first.line && !line.ends_with('\\');
                // A document of an item is a literal too.
                if !text.starts_with('/') && (several || text.starts_with('r') || text == "br") {
                    found.extend(first.line..=last.line);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn lines_are_short() {
    let mut allowed = Allowances::of("wide");
    for (name, folder) in crates() {
        let mut found = Vec::new();
        for file in rust_files(&folder) {
            let text = fs::read_to_string(&file).expect("a source file is text");
            let lines: Vec<&str> = text.lines().collect();
            let wide = |line: &&str| line.chars().count() > WIDEST && !line.trim().starts_with('|');
            if !lines.iter().any(wide) {
                continue;
            }
            let mut as_it_is = BTreeSet::new();
            let tokens = text.parse().expect("a source file has tokens");
            verbatim(tokens, &lines, &mut as_it_is);
            for (line, number) in lines.iter().zip(1usize..) {
                // A table's row is one line.
                let is_row = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
                if wide(line) && !is_row && !as_it_is.contains(&number) {
                    let columns = line.chars().count();
                    found.push(format!("{}:{number}: {columns} columns", file.display()));
                }
            }
        }
        allowed.check(&name, &found);
    }
    allowed.finish();
}

#[test]
fn words_of_a_line() {
    let words = |line| words(line).join(" ");
    assert_eq!(
        words("fn is_told(&self) -> ToldTimes"),
        "fn is told self told times"
    );
    assert_eq!(words("unless: Not if x::y"), "unless: not if x: y");
    let line = super::words::words("what of it?");
    assert!(has(&line, &super::words::words("of it")));
    assert!(!has(&line, &super::words::words("it of")));
}
