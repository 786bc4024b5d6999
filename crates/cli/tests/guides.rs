//! The commands in `docs/guide`, in `docs/tour.md` and in the README are run, and have to print what stands below them.
//!
//! A block of the kind `console` has commands in lines that begin with `$ `, which go on in the next line as a shell's
//! do, and below each what it prints. A line `...` there stands for lines that are left out. The commands of a file
//! run one after another, in a folder that has the corpus as `corpus`, as the root of the repository has.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --test all -- guides::` writes what they print now. Commands of perf,
//! trace-cmd and zstd are left out where one of these is not installed, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::shipped;

/// What a command may use besides the program. All of it is on any Linux.
const FILTERS: [&str; 10] = [
    "trapline", "head", "tail", "grep", "sed", "awk", "sort", "uniq", "wc", "cut",
];
/// What may be missing.
const TOOLS: [&str; 3] = ["perf", "trace-cmd", "zstd"];

fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns the README, the tour, the guide's chapters, and their contents.
fn documents() -> Vec<PathBuf> {
    let root = shipped().join("..");
    let chapters = fs::read_dir(root.join("docs/guide")).expect("there is a guide");
    let mut files: Vec<PathBuf> = chapters
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.push(root.join("README.md"));
    files.push(root.join("docs/tour.md"));
    files.sort();
    files
}

/// A folder in which the commands of a document run.
struct Place {
    folder: tempfile::TempDir,
    path: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).expect("a folder can be made");
        let program = std::env::var_os("TRAPLINE_PROGRAM");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_trapline").into());
        symlink(program, programs.join("trapline")).expect("a link can be made");
        symlink(shipped(), folder.path().join("corpus")).expect("a link can be made");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", programs.display());
        Place { folder, path }
    }

    fn has(&self, tool: &str) -> bool {
        self.path
            .split(':')
            .any(|folder| Path::new(folder).join(tool).is_file())
    }

    /// Runs a command and returns the lines that it prints; none where a tool is missing.
    fn run(&self, command: &str) -> Result<Option<Vec<String>>, String> {
        let words = shlex::split(command).ok_or("a quote is missing")?;
        let programs = words
            .split(|word| word == "|")
            .filter_map(|part| part.first());
        let mut with_tools = false;
        for program in programs {
            let tool = TOOLS.contains(&program.as_str());
            if !tool && !FILTERS.contains(&program.as_str()) {
                return Err(format!("a guide does not run '{program}'"));
            }
            with_tools |= tool;
        }
        // One unpacks what another reads, and perf kvm stat knows the architecture that it was built for.
        let here = cfg!(target_arch = "x86_64") && TOOLS.iter().all(|tool| self.has(tool));
        if with_tools && !here && !set("TRAPLINE_REQUIRE_TOOLS") {
            return Ok(None);
        }
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("LC_ALL", "C")
            .env("TRAPLINE_NO_LOCAL_FILES", "1")
            .output()
            .map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || !(with_tools || errors.is_empty()) {
            return Err(format!("it ends with {}: {errors}", output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<String> = text
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        // A filter that lets nothing through shows nothing.
        if lines.is_empty() && !command.starts_with("zstd ") {
            return Err("it prints nothing".to_owned());
        }
        Ok(Some(lines))
    }
}

/// A line as it stays when its numbers change.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() || c == '.' {
            '0'
        } else {
            c
        };
        // How many digits a number has, and how far it stands from what is before it, changes too.
        if !(matches!(c, '0' | ' ') && shape.ends_with(c)) {
            shape.push(c);
        }
    }
    shape
}

/// Returns what is to stand below a command that prints this, where this stands now: the same but for lines left out.
fn shown(printed: &[String], now: &[String]) -> Result<Vec<String>, String> {
    if !now.iter().any(|line| line == "...") {
        return Ok(printed.to_vec());
    }
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    let parts: Vec<&[String]> = now.split(|line| line == "...").collect();
    for (number, part) in parts.iter().enumerate() {
        let rest = &printed[at..];
        let Some(first) = part.first() else {
            // Nothing stands before the first or after the last of them.
            if number > 0 {
                out.push("...".to_owned());
            }
            continue;
        };
        let whole = rest.windows(part.len()).position(|lines| lines == *part);
        let alike = || rest.iter().position(|line| shape(line) == shape(first));
        let from = if number == 0 {
            Some(0)
        } else {
            whole.or_else(alike)
        };
        let from = from.ok_or_else(|| format!("nothing printed is like '{first}'"))?;
        if number > 0 {
            if from == 0 {
                return Err(format!("nothing is left out before '{first}'"));
            }
            out.push("...".to_owned());
        }
        let last = number + 1 == parts.len();
        let end = if last {
            rest.len()
        } else {
            (from + part.len()).min(rest.len())
        };
        out.extend_from_slice(&rest[from..end]);
        at += end;
    }
    if parts.last().is_some_and(|part| part.is_empty()) && at == printed.len() {
        return Err("nothing is left out at the end".to_owned());
    }
    Ok(out)
}

/// Returns a document with what its commands print, and what is wrong with it.
fn made_again(text: &str, place: &Place) -> (String, Vec<String>) {
    let mut out: Vec<String> = Vec::new();
    let mut wrong = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    let mut inside = false;
    while let Some((number, line)) = lines.next() {
        out.push(line.to_owned());
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let Some(begin) = line.strip_prefix("$ ").filter(|_| inside) else {
            continue;
        };
        let mut command = begin.to_owned();
        // It goes on in the next line after a backslash, and while a quote is open.
        while command.ends_with('\\') || shlex::split(&command).is_none() {
            let Some((_, more)) = lines.next() else { break };
            out.push(more.to_owned());
            command = match command.strip_suffix('\\') {
                Some(begun) => format!("{begun}{}", more.trim_start()),
                None => format!("{command}\n{more}"),
            };
        }
        let mut now = Vec::new();
        while let Some((_, line)) =
            lines.next_if(|(_, line)| !line.starts_with("```") && !line.starts_with("$ "))
        {
            now.push(line.to_owned());
        }
        // An empty line parts a command from what the one before it prints.
        let empty = now.iter().rev().take_while(|line| line.is_empty()).count();
        let kept = now.split_off(now.len() - empty);
        let after = match place.run(&command) {
            Ok(None) => Ok(now),
            Ok(Some(printed)) => shown(&printed, &now),
            Err(error) => Err(error),
        };
        match after {
            Ok(after) => out.extend(after),
            Err(error) => wrong.push(format!("line {}: '{command}': {error}", number + 1)),
        }
        out.extend(kept);
    }
    (out.join("\n") + "\n", wrong)
}

fn check(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document");
    let (wanted, mut wrong) = made_again(&text, &Place::new());
    if wrong.is_empty() && wanted != text {
        if set("TRAPLINE_WRITE_DOCS") {
            fs::write(document, wanted).expect("a document that can be written");
            return wrong;
        }
        let pairs = text.lines().zip(wanted.lines()).enumerate();
        let differ = pairs.filter(|(_, (is, should))| is != should);
        wrong.push(
            match differ.map(|(number, pair)| (number + 1, pair)).next() {
                Some((line, (is, should))) => {
                    format!("line {line}\n    stands there {is}\n    is printed   {should}")
                }
                None => "lines at its end".to_owned(),
            },
        );
    }
    let name = document.file_name().unwrap_or_default().to_string_lossy();
    wrong
        .into_iter()
        .map(|what| format!("{name}, {what}"))
        .collect()
}

#[test]
fn commands_print_what_stands_below_them() {
    let documents = documents();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = documents
            .iter()
            .map(|document| scope.spawn(|| check(document)))
            .collect();
        let all = all.into_iter();
        all.flat_map(|one| one.join().expect("no panic")).collect()
    });
    assert!(
        wrong.is_empty(),
        "TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --test all -- guides:: writes what is printed now:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn lines_that_are_left_out_stay_so() {
    let lines = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let printed = lines("head x a1 b c a22 d e");
    let same = |now: &str| assert_eq!(shown(&printed, &lines(now)), Ok(lines(now)));
    same("head ... b ... d e");
    same("head x ... e");
    same("... a22 ...");
    // Numbers are written again, and lines that are new.
    assert_eq!(
        shown(&printed, &lines("head ... a7 c ...")),
        Ok(lines("head ... a1 b ..."))
    );
    assert_eq!(shown(&printed, &lines("x")), Ok(printed.clone()));
    // What is gone is for the writer to place.
    assert!(shown(&printed, &lines("head ... gone e")).is_err());
    // Three dots that stand for nothing would be a lie.
    assert!(shown(&printed, &lines("head ... x ...")).is_err());
    assert!(shown(&printed, &lines("... d e ...")).is_err());
}

#[test]
fn links_lead_somewhere() {
    let guide = shipped().join("../docs/guide");
    let contents = fs::read_to_string(guide.join("README.md")).expect("the guide has contents");
    for document in documents() {
        let name = document
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        assert!(
            contents.contains(&format!("({name})"))
                || ["README.md", "tour.md"].contains(&name.as_str()),
            "{name}"
        );
        let text = fs::read_to_string(&document).expect("a document");
        for (at, open) in text.match_indices("](") {
            let link = text[at + open.len()..]
                .split(')')
                .next()
                .unwrap_or_default();
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            let folder = document.parent().expect("a folder");
            let target = if file.is_empty() {
                document.clone()
            } else {
                folder.join(file)
            };
            assert!(target.exists(), "{name}: {link} leads nowhere");
            if !anchor.is_empty() {
                let target = fs::read_to_string(target).expect("a document");
                let slug = |line: &str| -> String {
                    let line = line.trim_start_matches('#').trim().to_lowercase();
                    let kept = line
                        .chars()
                        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                    kept.collect::<String>().replace(' ', "-")
                };
                let mut heads = target.lines().filter(|line| line.starts_with('#'));
                assert!(
                    heads.any(|line| slug(line) == anchor),
                    "{name}: no heading for {link}"
                );
            }
        }
    }
}
