//! The text of procps' `ps` (and `top`), by the header of its columns.
//!
//! `ps` pads columns with blanks: numbers to the right, texts to the left, each at least as wide as its
//! header; a value that is too wide moves the rest of its line. Only the last column and names of threads
//! (`CPU 0/KVM`) hold blanks. So columns before the first such text are words counted from the left, those
//! behind the last one words counted from the right, and two texts in a line part where the header of the
//! second stands, moved by as much as the first has moved.

use forms::InputForm;

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "ps, top -bH",
    recognised_by: "a header in capitals with PID, TID, LWP or SPID; without it lists of numbers that say \
        themselves which are processes",
    yields: "threads with their processes and names; names and UUIDs of VMs, from command lines",
    fixtures: &["tests/texts/ps-threads.txt"],
};

/// Most columns of a header.
const MAX_COLUMNS: usize = 64;
/// Bytes of a thread's name: `TASK_COMM_LEN` of `linux/sched.h` without its end.
const COMM: usize = 15;

/// The columns of a `ps` text.
#[derive(Debug)]
pub(crate) struct PsColumns {
    columns: Vec<PsColumn>,
    pid: Option<usize>,
    tid: Option<usize>,
    command: PsCommand,
}

#[derive(Debug)]
struct PsColumn {
    /// Where its header begins.
    start: usize,
    /// Whether its values may hold blanks.
    text: bool,
    /// Whether its values are padded to the left, as times are.
    right: bool,
}

/// Which columns tell what runs.
#[derive(Debug, Clone, Copy)]
enum PsCommand {
    None,
    /// The thread's name.
    Comm(usize),
    /// The process's command line.
    Args(usize),
    /// One or the other: the value shows.
    Either(usize),
    /// The thread's name and the command line.
    Both(usize, usize),
}

/// One line of a `ps` text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PsRow<'t> {
    pub(crate) pid: Option<i32>,
    pub(crate) tid: i32,
    pub(crate) comm: Option<&'t str>,
    pub(crate) args: Option<&'t str>,
}

impl PsColumns {
    /// Reads a line as a header; none if it is not one.
    pub(crate) fn of_header(line: &str) -> Option<PsColumns> {
        let is_name = |word: &str| {
            word.bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"%_+:?-/".contains(&b))
        };
        let mut names = Vec::new();
        for (start, word) in words(line) {
            // Tables of what was counted by thread have such headers too (bcc's tools).
            let counts = word.ends_with("COUNT") || word.contains("EXIT");
            if !is_name(word) || counts || names.len() == MAX_COLUMNS {
                return None;
            }
            names.push((start, word));
        }
        let at = |wanted: &[&str]| names.iter().position(|(_, name)| wanted.contains(name));
        let mut pid = at(&["PID", "TGID"]);
        let mut tid = at(&["TID", "LWP", "SPID"]);
        // top calls a thread's id PID too.
        if at(&["TIME+"]).is_some() && tid.is_none() {
            tid = pid.take();
        }
        if (pid.is_none() && tid.is_none()) || names.len() < 2 {
            return None;
        }
        let is_command = |name: &str| matches!(name, "COMMAND" | "CMD" | "COMM" | "ARGS" | "UCMD");
        let mut commands = (0..names.len()).filter(|i| is_command(names[*i].1));
        let command = match (commands.next(), commands.next()) {
            (Some(comm), Some(args)) => PsCommand::Both(comm, args),
            (Some(one), None) => {
                let has = |name| at(&[name]).is_some();
                if has("STIME") || has("START") || (has("TTY") && has("STAT")) {
                    // ps -f, ps -F, ps u, ps x
                    PsCommand::Args(one)
                } else if has("TIME+") || (has("TTY") && has("TIME")) {
                    // top; ps -e, ps -L, ps -T
                    PsCommand::Comm(one)
                } else {
                    PsCommand::Either(one)
                }
            }
            _ => PsCommand::None,
        };
        let columns = names.iter().map(|(start, name)| PsColumn {
            start: *start,
            // STARTED is a time of day, or a day, or both and a year.
            text: is_command(name) || *name == "STARTED",
            right: *name == "STARTED",
        });
        Some(PsColumns {
            columns: columns.collect(),
            pid,
            tid,
            command,
        })
    }

    /// Reads a line below the header; none if it is not one of a thread or process.
    pub(crate) fn row<'t>(&self, line: &'t str) -> Option<PsRow<'t>> {
        let values = self.values(line)?;
        let value = |at: usize| values.get(at).copied().filter(|v: &&str| !v.is_empty());
        let number = |at: Option<usize>| match at {
            Some(at) => Some(crate::keep::id(value(at)?.parse().ok()?)?),
            None => None,
        };
        let pid = number(self.pid);
        let tid = if self.tid.is_some() {
            number(self.tid)?
        } else {
            pid?
        };
        if self.pid.is_some() && pid.is_none() {
            return None;
        }
        let (comm, args) = match self.command {
            PsCommand::None => (None, None),
            PsCommand::Comm(at) => (value(at), None),
            PsCommand::Args(at) => of_args(value(at)),
            PsCommand::Either(at) => match value(at) {
                Some(text) if !is_args(text) => (Some(text), None),
                text => of_args(text),
            },
            PsCommand::Both(comm, args) => (value(comm), value(args)),
        };
        Some(PsRow {
            pid,
            tid,
            comm,
            args,
        })
    }

    /// Parts a line into its columns.
    fn values<'t>(&self, line: &'t str) -> Option<Vec<&'t str>> {
        let columns = &self.columns;
        let mut values = Vec::with_capacity(columns.len());
        let first = columns.iter().position(|c| c.text);
        let mut rest = PsRest::new(line);
        for _ in 0..first.unwrap_or(columns.len()) {
            values.push(rest.word()?);
        }
        let Some(mut at) = first else {
            return rest.text.is_empty().then_some(values);
        };
        // From one text to the next.
        while let Some(next) = (at + 1..columns.len()).find(|i| columns[*i].text) {
            let between = next - at - 1;
            let from = if columns[at].right {
                line.trim_ascii_end().len() - rest.text.len()
            } else {
                columns[at].start
            };
            let start = columns[next].start;
            let starts = if columns[next].right {
                // The two widths of times whose header is STARTED: lstart's and start's.
                [24, 8].map(|width| (start + "STARTED".len()).saturating_sub(width))
            } else {
                [start, start]
            };
            let parts = starts
                .iter()
                .find_map(|start| split(rest.text, start.saturating_sub(from)));
            let (mut value, behind) = parts.unwrap_or_else(|| by_habit(rest.text));
            let mut few = Vec::with_capacity(between);
            for _ in 0..between {
                let (before, word) = last_word(value)?;
                few.push(word);
                value = before;
            }
            values.push(value.trim_end());
            values.extend(few.into_iter().rev());
            rest.text = behind;
            at = next;
        }
        let mut value = rest.text;
        let mut few = Vec::new();
        for _ in at + 1..columns.len() {
            let (before, word) = last_word(value)?;
            few.push(word);
            value = before;
        }
        values.push(value.trim_end());
        values.extend(few.into_iter().rev());
        Some(values)
    }
}

/// A line of a list that lost its header: two or three numbers and a text.
#[derive(Debug)]
pub(crate) struct Bare {
    pub(crate) first: i32,
    pub(crate) second: i32,
    text: String,
}

impl Bare {
    /// Longest text that is kept, for lack of a command line that needs more.
    const MAX_TEXT: usize = 4096;

    /// Reads a line; none if it does not begin with two numbers that can be thread ids.
    pub(crate) fn of(line: &str) -> Option<Bare> {
        let mut rest = PsRest::new(line);
        let mut number = || crate::keep::id(rest.word()?.parse().ok()?);
        let (first, second) = (number()?, number()?);
        // The CPU it ran on last.
        if rest.text.starts_with(|c: char| c.is_ascii_digit()) {
            let cpu = rest.word()?;
            if cpu.parse::<u16>().is_err() {
                return None;
            }
        }
        if !rest.text.starts_with(|c: char| !c.is_ascii_digit()) {
            return None;
        }
        let end = rest.text.floor_char_boundary(Self::MAX_TEXT);
        Some(Bare {
            first,
            second,
            text: rest.text[..end].trim_end().to_owned(),
        })
    }

    /// Returns the line as one of process, thread, name and command line.
    pub(crate) fn row(&self) -> PsRow<'_> {
        let text = self.text.as_str();
        let (comm, args) = match split(text, COMM + 1) {
            Some((comm, args)) => (comm.trim_end(), Some(args)),
            None if text.len() <= COMM => (text, None),
            None => {
                let (comm, args) = by_habit(text);
                (comm, Some(args))
            }
        };
        PsRow {
            pid: Some(self.first),
            tid: self.second,
            comm: Some(comm),
            args: args.filter(|args| !args.is_empty()),
        }
    }
}

/// Returns whether a text is a command line rather than a thread's name.
fn is_args(text: &str) -> bool {
    // A blank in a name is rare but for those that VMMs give.
    text.len() > COMM || text.starts_with(['/', '[', '.']) || !by_habit(text).1.is_empty()
}

/// Returns a thread's name and command line as the latter has them: a kernel thread has no command line,
/// and `ps` puts its name into brackets.
fn of_args(args: Option<&str>) -> (Option<&str>, Option<&str>) {
    let kernel = args.and_then(|args| args.strip_prefix('[')?.strip_suffix(']'));
    match kernel {
        // ps puts the name of a kworker's work behind it and so goes beyond the kernel's own length.
        Some(name) => (Some(&name[..name.floor_char_boundary(COMM)]), None),
        None => (None, args),
    }
}

/// Parts a text before a column, if a word begins there.
fn split(text: &str, column: usize) -> Option<(&str, &str)> {
    let before = column.checked_sub(1)?;
    let (at, blank) = text.char_indices().nth(before)?;
    let behind = text.get(at + 1..)?;
    (blank == ' ' && behind.starts_with(|c: char| c != ' ')).then(|| (&text[..at], behind))
}

/// Parts a name from what follows where blanks were folded, by the names with blanks that VMMs give.
fn by_habit(text: &str) -> (&str, &str) {
    let mut rest = PsRest::new(text);
    let first = rest.word().unwrap_or("");
    let mut more = PsRest { text: rest.text };
    let second = more.word().unwrap_or("");
    let two = match first {
        "CPU" => second.ends_with("/KVM") || second.ends_with("/TCG"),
        "fc_vcpu" | "vcpu" => second.bytes().all(|b| b.is_ascii_digit()),
        "IO" => second.starts_with("mon_") || second.starts_with("iothread"),
        _ => false,
    };
    if two {
        let end = text.len() - rest.text.len() + second.len();
        (text.get(..end).unwrap_or(first), more.text)
    } else {
        (first, rest.text)
    }
}

/// Returns what stands before the last word, and that word.
fn last_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end();
    let at = text.rfind(|c: char| c.is_ascii_whitespace());
    let at = at.map_or(0, |at| at + 1);
    (!text.is_empty()).then(|| text.split_at(at))
}

/// What is left of a line.
struct PsRest<'t> {
    text: &'t str,
}

impl<'t> PsRest<'t> {
    fn new(line: &'t str) -> PsRest<'t> {
        PsRest {
            text: line.trim_ascii(),
        }
    }

    fn word(&mut self) -> Option<&'t str> {
        let end = self.text.find(|c: char| c.is_ascii_whitespace());
        let (word, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest.trim_ascii_start();
        (!word.is_empty()).then_some(word)
    }
}

/// Words of a line and where they begin.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = line.get(at..)?;
        let start = at + (rest.len() - rest.trim_ascii_start().len());
        let word = line[start..].split_ascii_whitespace().next()?;
        at = start + word.len();
        Some((start, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process, thread, name and command line of a row.
    type Reported<'t> = (Option<i32>, i32, Option<&'t str>, Option<&'t str>);

    fn row<'t>(header: &str, line: &'t str) -> Option<Reported<'t>> {
        let columns = PsColumns::of_header(header).unwrap_or_else(|| panic!("{header}"));
        columns.row(line).map(|r| (r.pid, r.tid, r.comm, r.args))
    }

    #[test]
    fn names_with_blanks_end_where_the_next_column_begins() {
        let header = "    PID     TID PSR COMMAND         COMMAND";
        for (line, expected) in [
            (
                "   1689    1700   1 CPU 0/KVM       qemu-system-x86_64 -name a",
                (
                    Some(1689),
                    1700,
                    Some("CPU 0/KVM"),
                    Some("qemu-system-x86_64 -name a"),
                ),
            ),
            // A value too wide for its column moves the rest.
            (
                "41616890 41617000   1 CPU 0/KVM       qemu -name a",
                (None, 0, None, None),
            ),
            (
                "  161689  161700 128 qemu-system-x86 qemu -name a",
                (
                    Some(161_689),
                    161_700,
                    Some("qemu-system-x86"),
                    Some("qemu -name a"),
                ),
            ),
            (
                "  161689  161700 1281 IO mon_iothread qemu -name a",
                (
                    Some(161_689),
                    161_700,
                    Some("IO mon_iothread"),
                    Some("qemu -name a"),
                ),
            ),
            // Not only ASCII.
            (
                "   1689    1701   1 Zäh 0/KVM       qemu ü",
                (Some(1689), 1701, Some("Zäh 0/KVM"), Some("qemu ü")),
            ),
        ] {
            let found = row(header, line);
            match expected.1 {
                0 => assert_eq!(found, None, "{line}"),
                _ => assert_eq!(found, Some(expected), "{line}"),
            }
        }
        // Blanks folded by whatever carried the text here.
        assert_eq!(
            row(
                "PID TID PSR COMMAND COMMAND",
                "1689 1700 1 CPU 0/KVM qemu-system-x86_64 -name a"
            ),
            Some((
                Some(1689),
                1700,
                Some("CPU 0/KVM"),
                Some("qemu-system-x86_64 -name a")
            ))
        );
    }

    #[test]
    fn columns_are_found_by_their_header_in_any_order() {
        for (header, line, expected) in [
            (
                "UID          PID    PPID     LWP  C NLWP STIME TTY          TIME CMD",
                "libvirt+    1689       1    1700 12    4 06:41 ?        00:00:07 /usr/bin/qemu-system-x86_64 -name \
                 guest=a",
                (
                    Some(1689),
                    1700,
                    None,
                    Some("/usr/bin/qemu-system-x86_64 -name guest=a"),
                ),
            ),
            (
                "    PID    SPID TTY          TIME CMD",
                "   1689    1700 ?        00:00:07 CPU 0/KVM",
                (Some(1689), 1700, Some("CPU 0/KVM"), None),
            ),
            (
                "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
                "root           2  0.0  0.0      0     0 ?        S    Nov20   0:00 [kthreadd]",
                (Some(2), 2, Some("kthreadd"), None),
            ),
            (
                "COMMAND             PID     TID PSR",
                "CPU 0/KVM          1689    1700   3",
                (Some(1689), 1700, Some("CPU 0/KVM"), None),
            ),
            (
                "    TID COMMAND         PSR COMMAND",
                "   1700 CPU 0/KVM         3 qemu -name a",
                (None, 1700, Some("CPU 0/KVM"), Some("qemu -name a")),
            ),
            (
                "    PID                  STARTED COMMAND",
                "   1689 Fri Nov 20 18:01:02 2026 sh",
                (Some(1689), 1689, Some("sh"), None),
            ),
            (
                "    PID     TID COMMAND                          STARTED COMMAND",
                "   1689    1700 CPU 0/KVM       Fri Nov 20 18:01:02 2026 qemu -name a",
                (Some(1689), 1700, Some("CPU 0/KVM"), Some("qemu -name a")),
            ),
            (
                "    PID     TID COMMAND",
                "   1700    1700 sh /dev/fd/3",
                (Some(1700), 1700, None, Some("sh /dev/fd/3")),
            ),
            (
                "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
                "   1700 root      20   0  900000 300000  20000 S  99.0   2.0   0:07.01 CPU 0/KVM",
                (None, 1700, Some("CPU 0/KVM"), None),
            ),
            (
                "    TID COMMAND",
                "   1700 CPU 0/KVM",
                (None, 1700, Some("CPU 0/KVM"), None),
            ),
            (
                "    PID     LWP",
                "   1689    1700",
                (Some(1689), 1700, None, None),
            ),
        ] {
            assert_eq!(row(header, line), Some(expected), "{header}\n{line}");
        }
        for line in [
            "",
            "PID",
            "CMD",
            "PID of the process",
            "THE TIME IS 12",
            "1 2 3",
        ] {
            assert!(PsColumns::of_header(line).is_none(), "{line}");
        }
    }
}
