//! `debuginfod-find` asked by a process of its own, for one that may not start programs itself.
//!
//! A request is a line, `executable HEX` or `debuginfo HEX`, and an answer is one with the file's path, empty where
//! there is none. What is asked for is checked on that side: the process that asks has read files of strangers.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::debuginfod::{self, MAX_ASKED};

/// Bytes of a request: a word and a build id, of which the longest has 64 bytes (SHA-512).
const MAX_REQUEST: u64 = 160;
/// Bytes of an answer: `PATH_MAX` and the end of the line.
const MAX_ANSWER: u64 = 4097;

/// What of a build id can be asked for.
const KINDS: [&str; 2] = ["executable", "debuginfo"];

/// A process that runs `debuginfod-find` for this one. It ends when this is dropped, or its owner ends.
#[derive(Debug)]
pub struct DebuginfodProcess {
    /// Nothing once it did not answer.
    pipes: Mutex<Option<ProcessPipes>>,
}

#[derive(Debug)]
struct ProcessPipes {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl DebuginfodProcess {
    /// Starts it: `command` is to call [`serve_debuginfod`] with its standard input and output.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: &mut Command) -> io::Result<DebuginfodProcess> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let pipes = pipes.map(|(requests, answers)| ProcessPipes {
            requests,
            answers: BufReader::new(answers),
        });
        Ok(DebuginfodProcess {
            pipes: Mutex::new(pipes),
        })
    }

    /// Asks for a file, `executable` or `debuginfo`, and returns where it is.
    pub(crate) fn find(&self, kind: &str, build_id: &str) -> Option<PathBuf> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = pipes.as_mut()?.ask(kind, build_id);
        if answer.is_err() {
            *pipes = None;
        }
        let path = answer.ok().filter(|path| !path.is_empty())?;
        Some(PathBuf::from(OsString::from_vec(path)))
    }
}

impl ProcessPipes {
    fn ask(&mut self, kind: &str, build_id: &str) -> io::Result<Vec<u8>> {
        writeln!(self.requests, "{kind} {build_id}")?;
        let mut line = Vec::new();
        let mut answers = (&mut self.answers).take(MAX_ANSWER);
        answers.read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => Ok(line),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Answers requests until there are no more, with `program`, which is called as `debuginfod-find` is and may take so
/// long for one file. Whatever is no request ends it.
///
/// # Errors
/// The requests cannot be read, or the answers not be written.
pub fn serve_debuginfod(
    requests: impl Read,
    mut answers: impl Write,
    program: &Path,
    limit: Duration,
) -> io::Result<()> {
    let mut requests = BufReader::new(requests);
    for _ in 0..MAX_ASKED {
        let mut line = Vec::new();
        (&mut requests)
            .take(MAX_REQUEST)
            .read_until(b'\n', &mut line)?;
        let Some((kind, build_id)) = request(&line) else {
            return Ok(());
        };
        let path = debuginfod::find(program, kind, build_id, limit).unwrap_or_default();
        answers.write_all(path.as_os_str().as_bytes())?;
        answers.write_all(b"\n")?;
        answers.flush()?;
    }
    Ok(())
}

/// Reads a request.
fn request(line: &[u8]) -> Option<(&str, &str)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (kind, build_id) = line.split_once(' ')?;
    let is_hex = |text: &str| {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !text.is_empty() && text.bytes().all(digit)
    };
    (KINDS.contains(&kind) && is_hex(build_id)).then_some((kind, build_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(requests: &str) -> String {
        let mut answers = Vec::new();
        let program = Path::new("/bin/echo");
        let served = serve_debuginfod(
            requests.as_bytes(),
            &mut answers,
            program,
            Duration::from_secs(10),
        );
        served.expect("it is read from memory");
        String::from_utf8(answers).expect("text")
    }

    #[test]
    fn requests_are_answered_one_by_one() {
        let answers = served("executable 00ff\ndebuginfo 12\n");
        assert_eq!(answers, "executable 00ff\ndebuginfo 12\n");
        let many = "executable 00\n".repeat(MAX_ASKED + 3);
        assert_eq!(served(&many).lines().count(), MAX_ASKED);
    }

    #[test]
    fn what_is_no_request_starts_no_program() {
        for bad in [
            "source 00ff /etc/passwd\n",
            "executable 00fF\n",
            "executable --help\n",
            "executable \n",
            "executable\n",
            "\n",
        ] {
            assert_eq!(served(&format!("{bad}executable 11\n")), "", "{bad:?}");
        }
        assert_eq!(served(&format!("executable {}\n", "0".repeat(200))), "");
        assert_eq!(served("executable 00"), "");
    }
}
