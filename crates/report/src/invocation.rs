//! Commands that print again what the page shows, as they can be given to a shell.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns an argument as shells read it: as it is where it has nothing that they read, else in quotes. What could not
/// be seen, and what is no text, stands in `$'...'` (bash, zsh, ksh), so that it can be copied.
pub fn quoted(argument: &OsStr) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-./,:=@%+".contains(b);
    let bytes = argument.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if render::neutral::name(text) == text => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let mut out = "$'".to_owned();
            for byte in bytes {
                match byte {
                    b'\'' | b'\\' => {
                        out.push('\\');
                        out.push(char::from(*byte));
                    }
                    b' '..=b'~' => out.push(char::from(*byte)),
                    other => drop(write!(out, "\\x{other:02x}")),
                }
            }
            out.push('\'');
            out
        }
    }
}

/// Returns the name of an input as shells read it, and as no option.
fn file(name: &OsStr) -> String {
    let bytes = name.as_bytes();
    let name = match bytes.starts_with(b"-") && bytes.len() > 1 {
        true => [b"./", bytes].concat(),
        false => bytes.to_vec(),
    };
    quoted(OsStr::from_bytes(&name))
}

/// How a recording was given to trapline: commands name it, and what stood beside it, in the same way.
#[derive(Debug, Clone)]
pub struct Invocation {
    recording: String,
    /// What all commands take: filters, facts.
    common: String,
    /// Filters alone, as they were given.
    filters: String,
    mtree: String,
    symbols: String,
    /// Guests' recordings: what each is called, and how it is given.
    guests: Vec<(String, String)>,
    only_report: bool,
}

impl Invocation {
    /// Returns that of a recording without options.
    pub fn new(recording: &OsStr) -> Invocation {
        Invocation {
            recording: file(recording),
            common: String::new(),
            filters: String::new(),
            mtree: String::new(),
            symbols: String::new(),
            guests: Vec::new(),
            only_report: false,
        }
    }

    /// Adds another input, whose printed tables are of the same situation.
    pub fn and(mut self, other: &OsStr) -> Invocation {
        let _ = write!(self.recording, " {}", file(other));
        self
    }

    /// Adds a guest's recording, and the VM that it is said to be of. Only commands take it that show of the host what
    /// they show without it.
    pub fn guest(mut self, recording: &OsStr, vm: Option<&str>) -> Invocation {
        let value = match vm {
            Some(vm) => {
                let value = [vm.as_bytes(), b"=", recording.as_bytes()].concat();
                quoted(OsStr::from_bytes(&value))
            }
            None => quoted(recording),
        };
        let name = Path::new(recording).display().to_string();
        self.guests.push((name, format!(" --guest={value}")));
        self
    }

    fn all_guests(&self) -> String {
        self.guests
            .iter()
            .map(|(_, given)| given.as_str())
            .collect()
    }

    /// Returns a command that prints what is known by guests' recordings.
    pub(crate) fn command_with_guests(&self, command: &str, arguments: &str) -> String {
        let given = Invocation {
            recording: format!("{}{}", self.recording, self.all_guests()),
            guests: Vec::new(),
            ..self.clone()
        };
        given.command(command, arguments)
    }

    /// Returns a command that prints what is known by the recordings of some guests, which are called so.
    pub(crate) fn command_with(&self, names: &[String], command: &str, arguments: &str) -> String {
        let mut given = self.clone();
        given.guests.retain(|(name, _)| names.contains(name));
        given.command_with_guests(command, arguments)
    }

    /// Adds an option that all commands take.
    pub fn option(mut self, name: &str, value: &OsStr) -> Invocation {
        // Joined, so that a value may begin with a hyphen.
        let _ = write!(self.common, " {name}={}", quoted(value));
        self
    }

    /// Adds a filter, which all commands take.
    pub fn filter(mut self, name: &str, value: &OsStr) -> Invocation {
        let space = if self.filters.is_empty() { "" } else { " " };
        let _ = write!(self.filters, "{space}{name}={}", quoted(value));
        self.option(name, value)
    }

    /// Returns the filters, as they can be given to a shell; nothing where there are none.
    pub fn filters(&self) -> &str {
        &self.filters
    }

    /// Adds the map of devices, which commands take that name devices.
    pub fn mtree(mut self, file: &OsStr) -> Invocation {
        self.mtree = format!(" --mtree={}", quoted(file));
        self
    }

    /// Adds a file of symbols, which commands take that name functions.
    pub fn symbols(mut self, option: &str, file: &OsStr) -> Invocation {
        let _ = write!(self.symbols, " {option}={}", quoted(file));
        self
    }

    /// Says that no command but `report` takes this one out of its file: of several printed tables, or one beside a
    /// recording.
    pub fn only_report(mut self) -> Invocation {
        self.only_report = true;
        self
    }

    /// Returns a command with its own arguments.
    pub fn command(&self, command: &str, arguments: &str) -> String {
        let (command, arguments) = match self.only_report && command != "report" {
            true => ("report", "--format json"),
            false => (command, arguments),
        };
        let names = matches!(
            command,
            "exits" | "vcpus" | "paths" | "report" | "diagnose" | "compare"
        );
        let mtree = if names { self.mtree.as_str() } else { "" };
        let functions = matches!(command, "flame" | "report" | "diagnose" | "compare");
        let symbols = if functions { self.symbols.as_str() } else { "" };
        let with_guests = matches!(command, "report" | "diagnose" | "vcpus" | "info");
        let guests = match with_guests {
            true => self.all_guests(),
            false => String::new(),
        };
        let space = if arguments.is_empty() { "" } else { " " };
        format!(
            "trapline {command}{space}{arguments}{}{mtree}{symbols} {}{guests}",
            self.common, self.recording
        )
    }

    /// Returns the command that prints the events behind a number, up to where the row is named; `None` where no
    /// command takes the numbers out of their file.
    pub(crate) fn explained(&self, of: &str) -> Option<String> {
        let Invocation {
            common, recording, ..
        } = self;
        (!self.only_report).then(|| format!("trapline explain{common} {recording} {of}"))
    }

    /// Returns the command that compares this recording with others, which come first.
    pub(crate) fn compared(&self, first: &[Invocation], second: &[&Invocation]) -> String {
        let first = first.iter().map(|one| one.recording.as_str());
        let second = second.iter().map(|one| one.recording.as_str());
        let (first, second): (Vec<_>, Vec<_>) = (first.collect(), second.collect());
        let with = match (first.len(), second.len()) {
            (1, 1) => " ",
            _ => " --with ",
        };
        format!(
            "trapline compare --all{}{}{} {}{with}{}",
            self.common,
            self.mtree,
            self.symbols,
            first.join(" "),
            second.join(" ")
        )
    }
}

/// Returns an argument as shells read it.
pub(crate) fn argument(text: &str) -> String {
    quoted(OsStr::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        for (argument, text) in [
            (&b"a/b.dat"[..], "a/b.dat"),
            (b"a b", "'a b'"),
            (b"it's $HOME `x`", "'it'\\''s $HOME `x`'"),
            (b"", "''"),
            (b"a\nb'\\", "$'a\\x0ab\\'\\\\'"),
            (b"\xff", "$'\\xff'"),
            ("Größe".as_bytes(), "'Größe'"),
            ("a\u{202e}".as_bytes(), "$'a\\xe2\\x80\\xae'"),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(argument)), text);
        }
    }

    #[test]
    fn commands_have_what_stood_beside_the_recording() {
        let invocation = Invocation::new(OsStr::new("-x.dat"))
            .option("--vm", OsStr::new("a b"))
            .mtree(OsStr::new("m.txt"))
            .symbols("--kallsyms", OsStr::new("k.txt"));
        assert_eq!(
            invocation.command("flame", ""),
            "trapline flame --vm='a b' --kallsyms=k.txt ./-x.dat"
        );
        assert_eq!(
            invocation.command("exits", "--wide"),
            "trapline exits --wide --vm='a b' --mtree=m.txt ./-x.dat"
        );
        assert_eq!(
            invocation.command("sched", ""),
            "trapline sched --vm='a b' ./-x.dat"
        );
        assert_eq!(
            invocation.only_report().command("sched", ""),
            "trapline report --format json --vm='a b' --mtree=m.txt --kallsyms=k.txt ./-x.dat"
        );
    }
}
