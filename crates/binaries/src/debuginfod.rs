//! `debuginfod-find`, the program of elfutils that gets files of a build id from a server.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Bytes of a file name: `PATH_MAX`.
const MAX_PATH: u64 = 4096;
/// Files that the program is asked for.
pub(crate) const MAX_ASKED: usize = 256;
/// How often it is looked whether the program has ended.
const TURN: Duration = Duration::from_millis(10);

/// Asks for a file, `executable` or `debuginfo`, and returns where it was put. The program is ended when it takes too
/// long.
pub(crate) fn find(program: &Path, kind: &str, build_id: &str, limit: Duration) -> Option<PathBuf> {
    let mut child = Command::new(program)
        .args([kind, build_id])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let begun = Instant::now();
    // Whoever the program started may keep its output open when it has ended: reading is left to a thread, and not
    // waited for.
    let (send, receive) = mpsc::channel();
    let pipe = child.stdout.take()?.take(MAX_PATH);
    std::thread::spawn(move || send.send(first_line(pipe)));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(TURN),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let left = limit.saturating_sub(begun.elapsed()).max(TURN);
    let line = receive.recv_timeout(left).ok().flatten();
    let path = line.filter(|line| status.success() && !line.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(&path)))
}

fn first_line(pipe: impl Read) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(pipe).read_until(b'\n', &mut line).ok()?;
    Some(line.trim_ascii_end().to_vec())
}
