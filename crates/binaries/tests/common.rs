//! Programs that are compiled for a test, and what standard tools say of them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binaries::{Binaries, SearchOptions};

/// Returns whether all of these tools are there. Without them a test is skipped, unless `TRAPLINE_REQUIRE_TOOLS=1`.
pub(crate) fn have(tools: &[&str]) -> bool {
    let missing: Vec<&&str> = tools
        .iter()
        .filter(|tool| {
            let found = Command::new(tool).arg("--version").output();
            !found.is_ok_and(|output| output.status.success())
        })
        .collect();
    if missing.is_empty() {
        return true;
    }
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "{missing:?} are missing");
    #[expect(clippy::print_stderr, reason = "a test that did not run says so")]
    {
        eprintln!("skipped: {missing:?} are missing");
    }
    false
}

/// Runs a tool and returns what it prints.
pub(crate) fn output(tool: &str, args: &[&str], input: &str) -> String {
    let mut child = Command::new(tool)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the tool is there");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let _ = writer.join();
    assert!(output.status.success(), "{tool} {args:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles a program and returns where it is.
pub(crate) fn compile(
    folder: &Path,
    compiler: &str,
    source: (&str, &str),
    args: &[&str],
) -> PathBuf {
    let file = folder.join(source.0);
    std::fs::write(&file, source.1).expect("the folder is there");
    let program = file.with_extension("");
    let status = Command::new(compiler)
        .args(args)
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.expect("the compiler is there").success());
    program
}

/// A file as readelf sees it.
pub(crate) struct Readelf {
    pub build_id: Option<Vec<u8>>,
    /// Of the segments that are loaded: offset, address, bytes in the file, whether code is in it.
    pub loads: Vec<(u64, u64, u64, bool)>,
}

impl Readelf {
    pub(crate) fn of(file: &Path) -> Readelf {
        let file = file.display().to_string();
        let text = output("readelf", &["-lnW", &file], "");
        let hex = |word: &str| {
            let digits = word.strip_prefix("0x").expect("a number");
            u64::from_str_radix(digits, 16).expect("a number")
        };
        let loads = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (first, rest) = words.split_first()?;
            (*first == "LOAD").then(|| {
                let code = rest[5..rest.len() - 1].contains(&"E");
                let code = code
                    || rest[5..rest.len() - 1]
                        .iter()
                        .any(|flags| flags.ends_with('E'));
                (hex(rest[0]), hex(rest[1]), hex(rest[3]), code)
            })
        });
        let id = text
            .lines()
            .find_map(|line| Some(line.split_once("Build ID: ")?.1.trim()));
        let byte = |at: usize, id: &str| u8::from_str_radix(&id[at..at + 2], 16).expect("hex");
        Readelf {
            build_id: id.map(|id| (0..id.len()).step_by(2).map(|at| byte(at, id)).collect()),
            loads: loads.collect(),
        }
    }

    /// Returns where in the file an address is.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let load = self
            .loads
            .iter()
            .find(|(_, start, size, _)| *start <= address && address - start < *size)?;
        Some(address - load.1 + load.0)
    }

    /// Returns every address of code, so many bytes apart.
    pub(crate) fn code(&self, step: usize) -> Vec<u64> {
        let code = self.loads.iter().filter(|load| load.3);
        code.flat_map(|(_, start, size, _)| (*start..start + size).step_by(step))
            .collect()
    }
}

/// Returns what looks for files where the recording saw them.
pub(crate) fn here(inlines: bool) -> Binaries {
    Binaries::new(SearchOptions {
        own_paths: true,
        inlines,
        ..SearchOptions::default()
    })
}

/// Demangles names as perf does: without parameters.
pub(crate) fn demangled(names: &[String]) -> Vec<String> {
    let text = output("c++filt", &["-p"], &names.join("\n"));
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    names
}
