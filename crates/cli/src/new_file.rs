//! Files and folders that are there whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::Builder;

use crate::usage::Usage;

/// Writes a file. One that was there before stays as it is until this one is whole; where the program is interrupted,
/// nothing of this one stays.
///
/// # Errors
/// The file cannot be written; the error names it.
pub(crate) fn write(
    file: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    whole(file, content).with_context(|| format!("{}: cannot be written", file.display()))
}

/// Writes a folder of files, whose path while it is not whole `content` gets. A folder that is there already has to be
/// empty; where the program is interrupted, nothing of this one stays.
///
/// # Errors
/// The folder cannot be written, or is there and not empty; the error names it.
pub(crate) fn write_folder(
    folder: &Path,
    content: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<()> {
    whole_folder(folder, content)
        .with_context(|| format!("{}: cannot be written", folder.display()))
}

/// Returns the file that a command writes which makes another recording of one: the one that is named, or one beside
/// the input with `ending` behind its name. It is none of those that are read.
///
/// # Errors
/// The command line is wrong: it would be, or standard input or output is meant, of which there is no name.
pub(crate) fn beside(
    input: &Path,
    output: Option<&Path>,
    ending: &str,
    read: &[Option<&Path>],
) -> Result<PathBuf> {
    let is_standard = |path: &Path| path.as_os_str() == "-";
    let to = match output {
        Some(to) if is_standard(to) => {
            return Err(Usage::error(
                "standard output has the account of what was done; name a file with -o FILE",
            ));
        }
        Some(to) => to.to_owned(),
        None if is_standard(input) => {
            return Err(Usage::error(
                "standard input has no name to make another of; name a file with -o FILE",
            ));
        }
        None => {
            let mut name = input.to_owned().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        }
    };
    let same = |other: &Path| match (to.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    match read.iter().flatten().find(|path| same(path)) {
        Some(path) => Err(Usage::error(format!(
            "{} is read, and would be written over; name another file with -o FILE",
            path.display()
        ))),
        None => Ok(to),
    }
}

/// Where a file that is named is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenPlace {
    /// A terminal, a pipe or /dev/null is written to: a new file in its place would take it away from everybody.
    Itself,
    /// The folder in which a file is made that gets the name when it is whole: that of the file that a link leads to,
    /// since the link stays.
    Folder(PathBuf),
}

impl WrittenPlace {
    /// Returns where that is.
    pub(crate) fn of(file: &Path) -> WrittenPlace {
        if fs::metadata(file).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return WrittenPlace::Itself;
        }
        let followed = fs::canonicalize(file);
        let folder = followed.as_deref().unwrap_or(file).parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        WrittenPlace::Folder(folder.unwrap_or(Path::new(".")).to_owned())
    }
}

fn whole(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = match WrittenPlace::of(file) {
        WrittenPlace::Itself => {
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(file)?);
            content(&mut out)?;
            return out.flush();
        }
        WrittenPlace::Folder(folder) => folder,
    };
    let followed = fs::canonicalize(file);
    let file = followed.as_deref().unwrap_or(file);
    clean_up_when_interrupted();
    remove_left(&folder);
    let mut begun = Builder::new();
    begun
        .prefix(HALF_NAME)
        .permissions(Permissions::from_mode(0o666));
    // A signal that comes now has to wait until it is known what to remove.
    let mut half = half();
    let begun = begun.tempfile_in(&folder);
    let begun = begun.map_err(without_name)?;
    *half = Some(begun.path().to_owned());
    drop(half);
    // Who finds it locked leaves it alone. Where a file system has no locks, it is taken for one that was left.
    let _ = flock(begun.as_file(), FlockOperation::NonBlockingLockExclusive);
    let result = fill(begun, file, content).map_err(without_name);
    *self::half() = None;
    result
}

fn whole_folder(folder: &Path, content: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    // An empty folder gives way to another; one with something in it is somebody's.
    if fs::symlink_metadata(folder).is_ok_and(|there| !there.is_dir()) {
        return Err(io::Error::other("it is no folder, and one is written"));
    }
    if fs::read_dir(folder).is_ok_and(|mut there| there.next().is_some()) {
        return Err(io::Error::other(
            "the folder is not empty: name another one",
        ));
    }
    let above = folder
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    clean_up_when_interrupted();
    remove_left(above);
    let mut begun = Builder::new();
    begun
        .prefix(HALF_NAME)
        .permissions(Permissions::from_mode(0o777));
    let mut half = half();
    let begun = begun.tempdir_in(above).map_err(without_name)?;
    *half = Some(begun.path().to_owned());
    drop(half);
    let locked = File::open(begun.path())?;
    let _ = flock(&locked, FlockOperation::NonBlockingLockExclusive);
    let result = content(begun.path()).and_then(|()| fs::rename(begun.path(), folder));
    *self::half() = None;
    if result.is_ok() {
        // It has another name now, and stays.
        let _ = begun.keep();
    }
    result
}

/// Removes a half file, or a half folder with its files.
fn remove_half(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// What the names of half files begin with.
const HALF_NAME: &str = ".trapline-";
/// Letters behind it ([`Builder`]), and half files of a folder that are looked at.
const HALF_LETTERS: usize = 6;
const MAX_HALF: usize = 64;
/// How long a half file may be there before its program has locked it.
const UNLOCKED: Duration = Duration::from_secs(2);

/// Removes half files and folders of programs that were killed: nobody has them locked. What cannot be looked at stays.
fn remove_left(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let is_half = |name: &OsStr| {
        let behind = name.to_str().and_then(|name| name.strip_prefix(HALF_NAME));
        behind.is_some_and(|letters| {
            letters.len() == HALF_LETTERS
                && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let names = entries.flatten().map(|entry| entry.path());
    let half = names.filter(|path| path.file_name().is_some_and(is_half));
    for path in half.take(MAX_HALF) {
        // Neither through a link, nor a pipe that nobody writes to; and none that another program may be about to lock.
        let is_left = fs::symlink_metadata(&path).is_ok_and(|there| {
            let age = there.modified().ok().and_then(|at| at.elapsed().ok());
            (there.is_file() || there.is_dir()) && age.is_some_and(|age| age >= UNLOCKED)
        });
        let Some(file) = is_left.then(|| File::open(&path).ok()).flatten() else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = remove_half(&path);
        }
    }
}

/// Returns an error without the name of the half file, which nobody knows: `tempfile` puts ` at path "..."` behind what
/// the system says.
fn without_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

fn fill(
    begun: tempfile::NamedTempFile,
    file: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(begun);
    content(&mut out)?;
    let whole = out.into_inner().map_err(IntoInnerError::into_error)?;
    whole.persist(file)?;
    Ok(())
}

/// The file or folder that is half written, if one is.
static HALF: Mutex<Option<PathBuf>> = Mutex::new(None);

fn half() -> MutexGuard<'static, Option<PathBuf>> {
    HALF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the file that is half written removed when a signal ends the program, which then dies of that signal, as a shell
/// expects.
fn clean_up_when_interrupted() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // What ignores a signal does so for a reason (nohup, jobs in the background), and stays so.
        let ignored = ignored();
        let signals = [SIGHUP, SIGINT, SIGTERM].into_iter();
        let signals = signals.filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // Without a thread that listens all is as it was before.
        let Ok(mut signals) = Signals::new(signals) else {
            return;
        };
        let handle = signals.handle();
        let listen = move || {
            if let Some(signal) = signals.forever().next() {
                let half = half();
                if let Some(path) = half.as_ref() {
                    let _ = remove_half(path);
                }
                // The lock is held: nothing is begun any more.
                let _ = emulate_default_handler(signal);
            }
        };
        if std::thread::Builder::new().spawn(listen).is_err() {
            handle.close();
        }
    });
}

/// Returns the set of signals that this process ignores, a bit each, the lowest for signal 1 (`SigIgn` of
/// `/proc/self/status`, proc_pid_status(5)).
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Names the file that the test below, run as a program of its own, is to write.
    const FILE: &str = "TRAPLINE_TEST_HALF_WRITTEN";

    /// Writes half a file and waits to be interrupted.
    #[test]
    #[ignore = "waits for a signal; the next test runs it"]
    fn half_a_file() {
        let Some(file) = std::env::var_os(FILE) else {
            return;
        };
        let written = write(Path::new(&file), |out| {
            out.write_all(&[b'x'; 100_000])?;
            out.flush()?;
            // Past what the test harness keeps of standard output.
            writeln!(io::stderr(), "half written")?;
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        written.expect("a written file");
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn wait_until_half_written(child: &mut Child) {
        let said = BufReader::new(child.stderr.take().expect("a pipe"));
        let half = said.lines().map_while(Result::ok);
        let half = half.into_iter().any(|line| line.contains("half written"));
        assert!(half, "it wrote nothing");
    }

    #[test]
    fn what_is_interrupted_leaves_nothing() {
        for (name, signal) in [("INT", SIGINT), ("TERM", SIGTERM), ("HUP", SIGHUP)] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("report.html");
            fs::write(&file, "what was there before").expect("a written file");
            // What runs the tests may ignore signals, and what it starts would go on ignoring them.
            let mut child = Command::new("env")
                .arg("--default-signal=HUP,INT,TERM")
                .arg(std::env::current_exe().expect("this test"))
                .args(["--exact", "new_file::tests::half_a_file"])
                .args(["--ignored", "--nocapture"])
                .env(FILE, &file)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a child");
            wait_until_half_written(&mut child);
            assert_eq!(files(folder.path()).len(), 2, "the half file is there");
            let kill = Command::new("kill")
                .args(["-s", name, &child.id().to_string()])
                .status();
            assert!(kill.expect("kill").success());
            let status = child.wait().expect("an end");
            assert_eq!(status.signal(), Some(signal), "{status}");
            assert_eq!(files(folder.path()), ["report.html"]);
            let left = fs::read_to_string(&file).expect("the old file");
            assert_eq!(left, "what was there before");
        }
    }

    #[test]
    fn who_ignores_a_signal_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("report.html");
        let program = std::env::current_exe().expect("this test");
        let mut child = Command::new("env")
            .args(["--default-signal=HUP,INT,TERM", "sh", "-c"])
            .args(["trap '' INT; exec \"$0\" \"$@\""])
            .arg(program)
            .args(["--exact", "new_file::tests::half_a_file"])
            .args(["--ignored", "--nocapture"])
            .env(FILE, &file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child");
        wait_until_half_written(&mut child);
        let kill = |name: &str| {
            let id = child.id().to_string();
            let kill = Command::new("kill").args(["-s", name, &id]).status();
            assert!(kill.expect("kill").success());
        };
        kill("INT");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(files(folder.path()).len(), 1, "it is still at work");
        kill("TERM");
        let status = child.wait().expect("an end");
        assert_eq!(status.signal(), Some(SIGTERM), "{status}");
        assert!(files(folder.path()).is_empty());
    }

    #[test]
    fn a_whole_file_takes_the_place_of_the_old_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x");
        for text in ["one", "two"] {
            write(&file, |out| out.write_all(text.as_bytes())).expect("a written file");
            assert_eq!(fs::read_to_string(&file).expect("a file"), text);
        }
        let failed = write(&file, |_| Err(io::Error::other("no more")));
        assert!(failed.is_err());
        let nowhere = folder.path().join("nowhere/x");
        let error = format!("{:#}", write(&nowhere, |_| Ok(())).unwrap_err());
        assert!(
            error.contains("nowhere/x: cannot be written: No such file"),
            "{error}"
        );
        assert!(!error.contains(".trapline-"), "{error}");
        assert_eq!(files(folder.path()), ["x"]);
        assert_eq!(fs::read_to_string(&file).expect("a file"), "two");
    }
}
