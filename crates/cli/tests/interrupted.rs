//! A program that is interrupted dies of the signal, and leaves no file that is half written.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{file, read, trapline};

/// The program with signals as a shell gives them to what it runs: what runs the tests may have been made to ignore
/// some (nohup, jobs in the background), and who starts with that goes on ignoring them.
fn with_signals() -> Command {
    let program = trapline();
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,TERM");
    command.arg(program.get_program());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn an_interrupted_command_leaves_the_old_file_alone() {
    let recording = read(&file("x86/flame-iperf3/l1.perf.data.zst"));
    for (command, name, signal, number) in [
        ("report", "report.html", "INT", 2),
        ("flame", "x.svg", "INT", 2),
        ("flame", "x.folded", "TERM", 15),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join(name);
        fs::write(&out, "what was there before").expect("a written file");
        // A recording that goes on for ever: the end of standard input does not come.
        let mut child = with_signals()
            .args([command, "-", "-o"])
            .arg(&out)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(&recording).expect("it reads");
        sleep(Duration::from_millis(200));
        assert!(child.try_wait().expect("a child").is_none(), "it has ended");
        let kill = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(kill.expect("kill").success());
        // It is not the end of its input that ends it, nor does a test that fails wait for ever.
        sleep(Duration::from_millis(500));
        drop(input);
        let ended = child.wait_with_output().expect("an end");
        assert_eq!(ended.status.signal(), Some(number), "{command}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
        let files: Vec<_> = fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let left = fs::read_to_string(&out).expect("the old file");
        assert_eq!(left, "what was there before");
    }
}
