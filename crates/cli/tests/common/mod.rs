//! What the integration tests share: the binary and its outputs. Recordings are those of the crate `fixtures`.

// Every test binary uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) mod agents;
pub(crate) mod browser;
pub(crate) mod page;
pub(crate) mod stores;

pub(crate) use fixtures::expected;
pub(crate) use fixtures::json::{list, number, text};
pub(crate) use fixtures::{
    CorpusCase as Case, Failures, all_cases, case, cases, corpus, file, fold, note, read,
    read_text, shipped, small, sweeping, write_text,
};

/// Returns whether tools that are missing are to fail tests.
pub(crate) fn tools_are_required() -> bool {
    std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1")
}

/// Returns an address of this machine that nobody listened at a moment ago.
pub(crate) fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address")
}

/// Returns the text of axe-core, which finds what cannot be read by everybody. `None`, which is said, where `npm ci`
/// was not run in `web`, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.
pub(crate) fn axe() -> Option<String> {
    let file = "../../web/node_modules/axe-core/axe.min.js";
    let axe = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).ok();
    if axe.is_none() {
        assert!(
            !tools_are_required(),
            "axe-core is missing: run `npm ci` in web"
        );
        note("skipped: no axe-core here; run `npm ci` in web");
    }
    axe
}

/// What a run of the program left behind.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Exit status; -1 when a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Returns what a program did.
    pub(crate) fn of(output: Output) -> Run {
        Run {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Returns standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard output as JSON, if it succeeded and is.
    pub(crate) fn json(&self) -> Result<Value, String> {
        if self.status != 0 {
            return Err(format!("exit status {}: {}", self.status, self.stderr));
        }
        serde_json::from_slice(&self.stdout).map_err(|e| format!("not JSON: {e}"))
    }

    /// Returns the document with its times under one name, in whichever unit the recording's clock has them.
    pub(crate) fn json_with_times_under_one_name(&self) -> Result<Value, String> {
        let mut document = self.json()?;
        under_one_name(&mut document);
        Ok(document)
    }
}

/// Returns the program, ready for arguments: the one that was built with the tests, or the one that `TRAPLINE_PROGRAM`
/// names, for long runs with a release build.
pub(crate) fn trapline() -> Command {
    let named = std::env::var_os("TRAPLINE_PROGRAM");
    let mut command = Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_trapline").into()));
    command.env_clear().stdin(Stdio::null());
    // What is printed is not to depend on the machine: some have the very files that were recorded.
    command.env("TRAPLINE_NO_LOCAL_FILES", "1");
    command
}

/// Runs the program.
pub(crate) fn run<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Run {
    let output = trapline().args(args).output().expect("the program starts");
    Run::of(output)
}

/// Runs the program with bytes on its standard input.
pub(crate) fn run_with<I: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = I>,
    input: &[u8],
) -> Run {
    let mut child = trapline()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // It need not read all of it: a program that is done closes the pipe.
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("it ends")
    });
    Run::of(output)
}

/// Runs the program on a file and returns its JSON, times under the name that they have in nanoseconds, whatever they
/// count. Of a recording as a whole (`start_ns` of `info`) they stay null where they are ticks.
pub(crate) fn json(args: &[&str], path: &Path) -> Result<Value, String> {
    raw_json(args, path).map(|mut document| {
        under_one_name(&mut document);
        document
    })
}

fn under_one_name(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let whole = object.contains_key("duration_ns");
            for (name, mut inner) in std::mem::take(object) {
                under_one_name(&mut inner);
                match name.strip_suffix("_ticks") {
                    Some(_) if whole => {}
                    Some(stem) => drop(object.insert(format!("{stem}_ns"), inner)),
                    None => drop(object.insert(name, inner)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(under_one_name),
        _ => {}
    }
}

/// Runs the program on a file and returns its JSON as it is.
pub(crate) fn raw_json(args: &[&str], path: &Path) -> Result<Value, String> {
    let path = path.to_string_lossy();
    let mut all = vec![args[0], path.as_ref(), "--format", "json"];
    all.extend_from_slice(&args[1..]);
    run(all).json()
}
