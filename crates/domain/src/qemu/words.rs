//! Command lines of QEMU in a text: what `ps` printed, a script, libvirt's log, `/proc/PID/cmdline`.

use std::collections::BTreeSet;

/// Command lines beyond this many are not read: hosts have fewer VMs.
const MAX_COMMANDS: usize = 1024;
/// Words of a command line beyond this many are left out.
const MAX_WORDS: usize = 16_384;

/// A command line of QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QemuCommand {
    /// Its line, from 1.
    pub line: usize,
    /// The program, then its arguments.
    pub words: Vec<String>,
    /// The CPUs that `taskset` before it gives it.
    pub cpus: Option<String>,
}

/// Returns the command lines in a file, each once: `ps -eL` prints one for every thread.
pub(super) fn commands(bytes: &[u8]) -> Vec<QemuCommand> {
    if bytes.contains(&0) {
        let words: Vec<String> = bytes
            .split(|byte| *byte == 0)
            .take(MAX_WORDS)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        return program(&words, 1).into_iter().collect();
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Vec::new();
    };
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for (line, text) in joined(text) {
        if out.len() >= MAX_COMMANDS {
            break;
        }
        if let Some(found) = program(&words(&text), line)
            && seen.insert(found.words.clone())
        {
            out.push(found);
        }
    }
    out
}

/// Returns whether a word names QEMU: `qemu-system-x86_64`, and what distributions call it.
fn is_qemu(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let name = name.trim_start_matches('"');
    name.starts_with("qemu-system-") || matches!(name, "qemu-kvm" | "kvm" | "qemu")
}

/// Returns the command line that begins with QEMU and has an option next, so that a user or a thread of that name is
/// none.
fn program(words: &[String], line: usize) -> Option<QemuCommand> {
    let is_it = |at: &usize| {
        let next = words.get(at + 1);
        words.get(*at).is_some_and(|word| is_qemu(word))
            && next.is_some_and(|next| next.starts_with('-'))
    };
    let at = (0..words.len()).find(is_it)?;
    let before = words.get(..at).unwrap_or_default();
    let pinned = before.windows(3).find_map(|three| match three {
        [program, option, list] if program.ends_with("taskset") => {
            matches!(option.as_str(), "-c" | "--cpu-list").then(|| list.clone())
        }
        _ => None,
    });
    Some(QemuCommand {
        line,
        words: words.get(at..).unwrap_or_default().to_vec(),
        cpus: pinned,
    })
}

/// Returns lines with those that a backslash continues, and the number of the first.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let end = line.trim_end();
        let (part, more) = match end.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (end, false),
        };
        match out.last_mut().filter(|_| open) {
            Some((_, whole)) => {
                whole.push(' ');
                whole.push_str(part);
            }
            None => out.push((at + 1, part.to_owned())),
        }
        open = more;
    }
    out
}

/// Cuts a line into words. Quotes are a shell's; a word in braces is JSON, whose quotes are its own.
fn words(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && out.len() < MAX_WORDS {
        let (word, behind) = match rest.starts_with('{') {
            true => json_word(rest),
            false => shell_word(rest),
        };
        out.push(word);
        rest = behind.trim_start();
    }
    out
}

fn json_word(text: &str) -> (String, &str) {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let (word, behind) = text.split_at(at + 1);
                    return (word.to_owned(), behind);
                }
            }
            _ => {}
        }
    }
    // It is cut off.
    (text.to_owned(), "")
}

fn shell_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote: Option<char> = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() => return (word, text.get(at..).unwrap_or_default()),
            (None, c) => word.push(c),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Vec<String>> {
        let all = commands(text.as_bytes());
        all.into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn command_lines_are_found_in_what_people_have() {
        let ps = "UID PID PPID C STIME TTY TIME CMD\n\
                  qemu 77 1 9 10:00 ? 00:10:00 /usr/bin/qemu-system-x86_64 -name guest=a -m 4G\n\
                  qemu 77 1 9 10:00 ? 00:10:00 /usr/bin/qemu-system-x86_64 -name guest=a -m 4G\n\
                  root 78 1 0 10:00 ? 00:00:00 grep qemu-system-x86_64\n";
        assert_eq!(
            found(ps),
            [[
                "/usr/bin/qemu-system-x86_64",
                "-name",
                "guest=a",
                "-m",
                "4G"
            ]]
        );
        let script = "taskset -c 4-7 qemu-system-x86_64 \\\n  -name 'a b' \\\n  -device '{\"driver\":\"e1000\"}'\n";
        assert_eq!(
            found(script),
            [[
                "qemu-system-x86_64",
                "-name",
                "a b",
                "-device",
                "{\"driver\":\"e1000\"}"
            ]]
        );
        assert_eq!(commands(script.as_bytes())[0].cpus.as_deref(), Some("4-7"));
        let json = "kvm -device {\"driver\":\"scsi-hd\",\"id\":\"a b\"} -S";
        assert_eq!(found(json)[0][2], "{\"driver\":\"scsi-hd\",\"id\":\"a b\"}");
        let proc = "/usr/bin/kvm -id 100 -name web ".replace(' ', "\0");
        assert_eq!(
            commands(proc.as_bytes())[0].words[..3],
            ["/usr/bin/kvm", "-id", "100"]
        );
        for none in ["", "kvm", "kvm 4 -x", "Dear all, qemu is slow", "{", "'"] {
            assert_eq!(found(none), Vec::<Vec<String>>::new(), "{none}");
        }
    }
}
