//! A man page: clap's own sections, and those that a man page has and `--help` has not.

use std::collections::BTreeMap;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::status::STATUSES;

/// A variable of the environment, what the program does with it, and the commands that read it.
struct Variable {
    name: &'static str,
    about: &'static str,
    /// None: all that read recordings.
    of: Option<&'static [&'static str]>,
}

const FLAME: Option<&[&str]> = Some(&["flame"]);
/// Commands that name functions of kernels.
const NAMING: Option<&[&str]> = Some(&["compare", "diagnose", "flame", "report", "sched"]);
const RECORD: Option<&[&str]> = Some(&["record"]);

const TOP: Option<&[&str]> = Some(&["top"]);

const ENVIRONMENT: [Variable; 12] = [
    Variable {
        name: "NO_COLOR",
        about: "If it is set and not empty, nothing is coloured, unless --color says so.",
        of: None,
    },
    Variable {
        name: "CLICOLOR_FORCE",
        about: "If it is set and not 0, output is coloured where it does not go to a terminal, too.",
        of: None,
    },
    Variable {
        name: "TERM",
        about: "A terminal that is called dumb gets no colour, and no line that says how far a long read is.",
        of: None,
    },
    Variable {
        name: "TMPDIR",
        about: "The folder for recordings that are compressed or come through a pipe, as far as they are longer than \
            16 MiB. \
                The file has no name there and is gone with the program. Default: /tmp.",
        of: None,
    },
    Variable {
        name: "PATH",
        about: "Where the command is found that is recorded.",
        of: RECORD,
    },
    Variable {
        name: "LISTEN_PID",
        about: "The process that systemd hands sockets to: with --prometheus systemd it has to be this one.",
        of: TOP,
    },
    Variable {
        name: "LISTEN_FDS",
        about: "How many sockets these are, from file descriptor 3 on.",
        of: TOP,
    },
    Variable {
        name: "HOME",
        about: "Its folder .debug is where perf keeps the binaries and kernels of recordings (--buildid-dir of flame \
                names another).",
        of: NAMING,
    },
    Variable {
        name: "DEBUGINFOD_URLS",
        about: "If it is set, debuginfod-find is asked for binaries that are not on this machine.",
        of: FLAME,
    },
    Variable {
        name: "DEBUGINFOD_CACHE_PATH",
        about: "Where debuginfod-find keeps them. Default: debuginfod_client in XDG_CACHE_HOME.",
        of: NAMING,
    },
    Variable {
        name: "XDG_CACHE_HOME",
        about: "The folder of caches. Default: .cache in HOME.",
        of: NAMING,
    },
    Variable {
        name: "TRAPLINE_NO_LOCAL_FILES",
        about: "If it is 1, functions are named by nothing but the recording and the folders that options name, so \
            that the \
                output is the same on every machine.",
        of: NAMING,
    },
];

/// Pages of other programs, by command; the program's own page names them all.
const OTHERS: [(&str, &[&str]); 8] = [
    ("report", &["perf-kvm(1)"]),
    ("events", &["perf-script(1)", "trace-cmd-report(1)"]),
    ("exits", &["perf-kvm(1)"]),
    ("sched", &["perf-sched(1)"]),
    ("flame", &["perf-record(1)", "perf-script(1)"]),
    ("paths", &["perf-probe(1)", "trace-cmd-record(1)"]),
    ("diagnose", &["virsh(1)", "patch(1)"]),
    ("info", &["perf-report(1)", "trace-cmd-dump(1)"]),
];

/// Commands whose readers want another one next.
const NEXT: [(&str, &[&str]); 20] = [
    ("report", &["diagnose", "compare"]),
    ("diagnose", &["rules", "compare", "facts"]),
    ("compare", &["diagnose"]),
    ("rules", &["diagnose"]),
    ("info", &["events"]),
    ("events", &["info"]),
    ("exits", &["vcpus", "irqs", "explain"]),
    ("explain", &["exits", "vcpus", "sched", "paths", "diagnose"]),
    ("vcpus", &["exits", "sched"]),
    ("irqs", &["paths"]),
    ("counters", &["record", "vcpus"]),
    ("paths", &["events", "irqs"]),
    ("sched", &["vcpus", "flame"]),
    ("flame", &["sched"]),
    ("top", &["exits", "vcpus"]),
    ("record", &["overhead", "report"]),
    ("overhead", &["record"]),
    ("bench", &["compare", "facts"]),
    ("salvage", &["info", "report"]),
    ("redact", &["info", "export"]),
];

/// Returns the variables that the pages name.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    ENVIRONMENT.iter().map(|variable| variable.name)
}

/// Returns the pages of a built definition, by file name.
pub(super) fn all(program: &Command) -> BTreeMap<String, Vec<u8>> {
    let commands: Vec<&Command> = program.get_subcommands().collect();
    let names: Vec<&str> = commands.iter().map(|command| command.get_name()).collect();
    let mut pages = BTreeMap::new();
    let below = commands
        .iter()
        .flat_map(|command| command.get_subcommands());
    for command in below.chain(commands.iter().copied()).chain([program]) {
        let (name, bytes) = page(command, &names);
        pages.insert(name, bytes);
    }
    pages
}

/// Returns the words of a command behind the program's name: `bench-ipi`. The program itself has its name.
fn key(command: &Command) -> &str {
    let name = command.get_display_name().unwrap_or(command.get_name());
    name.strip_prefix("trapline-").unwrap_or(name)
}

fn is_program(command: &Command) -> bool {
    key(command) == "trapline"
}

fn page(command: &Command, names: &[&str]) -> (String, Vec<u8>) {
    // Clap's usage says in a line what a synopsis would list in ten.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let man = Man::new(command.clone().override_usage(usage))
        .source(concat!("trapline ", env!("CARGO_PKG_VERSION")))
        .manual("trapline manual");
    let mut out = Vec::new();
    let below = Below::of(command);
    man.render_title(&mut out).unwrap();
    man.render_name_section(&mut out).unwrap();
    man.render_synopsis_section(&mut out).unwrap();
    man.render_description_section(&mut out).unwrap();
    let mut notes = Roff::new();
    below.write_notes(&mut notes);
    notes.to_writer(&mut out).unwrap();
    man.render_options_section(&mut out).unwrap();
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out).unwrap();
    }
    let mut rest = Roff::new();
    below.write_examples(&mut rest);
    let codes = STATUSES.map(|one| (one.code.to_string(), one.meaning));
    let statuses = codes
        .iter()
        .map(|(code, meaning)| (code.as_str(), *meaning));
    items(&mut rest, "EXIT STATUS", statuses);
    items(&mut rest, "ENVIRONMENT", environment(command));
    rest.control("SH", ["SEE ALSO"]);
    rest.text([roman(see_also(command, names))]);
    rest.to_writer(&mut out).unwrap();
    (man.get_filename(), mended(out))
}

/// What roff begins every piece with: how an apostrophe is written.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Puts the pieces of a page together, and mends what mandoc warns of: roff leaves an empty date out, so that what
/// follows is taken for it, and clap_mangen breaks a line before and after an empty one.
fn mended(page: Vec<u8>) -> Vec<u8> {
    let page = String::from_utf8(page).unwrap();
    let page = page
        .replace(PREAMBLE, "")
        .replacen(" 1  \"", " 1 \"\" \"", 1);
    let page = page.replace("\n.br\n\n.br\n", "\n.sp\n");
    format!("{PREAMBLE}{page}").into_bytes()
}

fn environment(command: &Command) -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = key(command).to_owned();
    let program = is_program(command);
    let reads = command.get_arguments().any(|a| a.get_id() == "spool_limit");
    let read = ENVIRONMENT
        .iter()
        .filter(move |variable| match variable.of {
            None => reads || program,
            Some(of) => program || of.contains(&name.as_str()),
        });
    read.map(|variable| (variable.name, variable.about))
}

fn see_also(command: &Command, names: &[&str]) -> String {
    let mut pages = Vec::new();
    let own = |name: &str| format!("trapline-{name}(1)");
    if is_program(command) {
        pages.extend(names.iter().map(|name| own(name)));
        pages.extend(["perf(1)", "perf-kvm(1)", "trace-cmd(1)"].map(str::to_owned));
        return pages.join(", ");
    }
    pages.push("trapline(1)".to_owned());
    if let Some((of, _)) = key(command).split_once('-') {
        pages.push(own(of));
    }
    pages.extend(command.get_subcommands().map(|below| own(key(below))));
    let of = |table: &[(&str, &'static [&'static str])]| -> Vec<&'static str> {
        let found = table.iter().filter(|(name, _)| *name == key(command));
        found.flat_map(|(_, list)| list.iter().copied()).collect()
    };
    for next in of(&NEXT) {
        assert!(names.contains(&next), "there is no command {next}");
        pages.push(own(next));
    }
    pages.extend(of(&OTHERS).iter().map(|&page| page.to_owned()));
    pages.join(", ")
}

/// Writes a section that is a list, if there is anything in it.
fn items<'t>(roff: &mut Roff, section: &str, list: impl IntoIterator<Item = (&'t str, &'t str)>) {
    let mut list = list.into_iter().peekable();
    if list.peek().is_some() {
        roff.control("SH", [section]);
    }
    for (name, about) in list {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(about)]);
    }
}

/// A piece of what stands below the options in a command's help.
enum Note {
    Text(String),
    /// A line such as `  guest     the guest runs`.
    Item(String, String),
}

/// What stands below the options in a command's help.
pub(super) struct Below {
    notes: Vec<Note>,
    /// The lines of the examples, without their margin.
    pub(super) examples: Vec<String>,
}

impl Below {
    pub(super) fn of(command: &Command) -> Below {
        let text = command.get_after_help().map(ToString::to_string);
        let text = text.unwrap_or_default();
        let mut notes = Vec::new();
        let mut examples = Vec::new();
        for paragraph in text.split("\n\n") {
            if let Some(lines) = paragraph.strip_prefix("Examples:\n") {
                let lines = lines.lines();
                examples
                    .extend(lines.map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()));
            } else if !paragraph.starts_with("Exit status:") {
                // The status is a section of its own.
                notes.push(Note::Text(String::new()));
                paragraph.lines().for_each(|line| add(&mut notes, line));
            }
        }
        notes.retain(|note| !matches!(note, Note::Text(text) if text.is_empty()));
        Below { notes, examples }
    }

    fn write_notes(&self, roff: &mut Roff) {
        for note in &self.notes {
            match note {
                Note::Text(text) => {
                    roff.control("PP", []);
                    roff.text([roman(text)]);
                }
                Note::Item(name, about) => {
                    roff.control("TP", []);
                    roff.text([bold(name)]);
                    roff.text([roman(about)]);
                }
            }
        }
    }

    fn write_examples(&self, roff: &mut Roff) {
        if self.examples.is_empty() {
            return;
        }
        roff.control("SH", ["EXAMPLES"]);
        roff.control("EX", []);
        for line in &self.examples {
            roff.text([roman(line)]);
        }
        roff.control("EE", []);
    }
}

/// Adds a line of a paragraph to the notes, the last of which is the paragraph as far as it is read.
fn add(notes: &mut Vec<Note>, line: &str) {
    let item = line
        .strip_prefix("  ")
        .filter(|rest| !rest.starts_with(' '));
    if let Some((name, about)) = item.and_then(|item| item.split_once(' ')) {
        notes.push(Note::Item(name.to_owned(), about.trim().to_owned()));
        return;
    }
    match notes.last_mut() {
        Some(Note::Text(text)) if !line.starts_with(' ') => {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line);
        }
        Some(Note::Item(_, about)) if line.starts_with(' ') => {
            about.push(' ');
            about.push_str(line.trim());
        }
        _ => notes.push(Note::Text(line.trim().to_owned())),
    }
}
