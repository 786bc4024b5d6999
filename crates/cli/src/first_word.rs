//! `trapline FILE` is `trapline report FILE`, and `trapline` alone says what it would do on this host.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, CommandFactory, Parser};

use crate::args::Args;

/// What names of recordings and of texts about them end in.
const ENDINGS: [&str; 10] = [
    "data", "dat", "guest", "txt", "log", "trace", "gz", "zst", "html", "folded",
];

/// The command that files are for.
const REPORT: &str = "report";

/// What `trapline` alone does on a host with KVM, for who has been given the program and nothing else.
const ALONE: [&str; 2] = ["why", "--dry-run"];

/// Reads the words of a command line, the program's name first. Where there is none, `kvm` says whether this is a host
/// of VMs.
///
/// # Errors
/// What clap says of them, which may be the help that was asked for.
pub(crate) fn parse(mut words: Vec<OsString>, kvm: bool) -> Result<Args, clap::Error> {
    if words.len() == 1 && kvm {
        words.extend(ALONE.map(OsString::from));
    }
    Args::try_parse_from(with_report(&Args::command(), words))
}

/// Returns the words of a command line with `report` before the first one that is no option of the program itself, if
/// it is a file's name and no command's. `program` is what the program understands.
fn with_report(program: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = place(program, &words) {
        words.insert(at, REPORT.into());
    }
    words
}

/// Returns where the command is missing.
fn place(program: &Command, words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?;
        let Some(text) = word.to_str() else {
            // No command and no option is called so.
            return Some(at);
        };
        if text.len() < 2 || !text.starts_with('-') {
            return is_file(program, word).then_some(at);
        }
        // Who knows perf begins with its option.
        if text.starts_with("-i") || text == "--input" || text.starts_with("--input=") {
            return Some(at);
        }
        let (name, value) = match text.strip_prefix("--")?.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.get(2..)?, None),
        };
        let option = program
            .get_arguments()
            .find(|arg| arg.get_long() == Some(name))?;
        let takes_value = value.is_none() && takes_value(option);
        at += if takes_value { 2 } else { 1 };
    }
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Returns whether a word names a file and no command.
fn is_file(program: &Command, word: &OsStr) -> bool {
    let commands = || program.get_subcommands();
    if word == "help" || commands().any(|command| word == command.get_name()) {
        return false;
    }
    let path = Path::new(word);
    let ending = path.extension().and_then(OsStr::to_str);
    word == "-"
        || path.exists()
        || word.as_encoded_bytes().contains(&b'/')
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_report(&Args::command(), words);
        let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn a_file_is_reported() {
        for (line, rest) in [
            ("t x.dat --full", "t report x.dat --full"),
            ("t --color never ./x", "t --color never report ./x"),
            (
                "t --color=never --strict a/b",
                "t --color=never --strict report a/b",
            ),
            ("t perf.data.guest", "t report perf.data.guest"),
            ("t -", "t report -"),
            ("t -i x --full", "t report -i x --full"),
            ("t --input=x", "t report --input=x"),
            ("t Cargo.toml", "t report Cargo.toml"),
        ] {
            assert_eq!(settled(line), rest, "{line}");
        }
    }

    #[test]
    fn commands_options_and_what_is_mistyped_stay() {
        for line in [
            "t",
            "t exits x.dat",
            "t exist",
            "t --full x.dat",
            "t --help",
            "t -V",
            "t help exits",
            "t --color",
            "t --nothing x.dat",
        ] {
            assert_eq!(settled(line), line);
        }
    }
}
