//! `flame` beside perf where functions of user space have names: a program that is compiled and recorded here.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::trapline;

const PROGRAM: &str = r#"
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>
namespace work {
__attribute__((always_inline)) inline unsigned long mix(unsigned long a) {
    for (int i = 0; i < 50; i++) a = a * 6364136223846793005UL + 1442695040888963407UL;
    return a;
}
__attribute__((noinline)) unsigned long sorted(std::vector<unsigned long> &all) {
    for (auto &one : all) one = mix(one);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}
__attribute__((noinline)) unsigned long counted(int n) {
    std::map<std::string, unsigned long> seen;
    std::vector<unsigned long> all(2000);
    unsigned long sum = 0;
    for (int i = 0; i < n; i++) {
        for (auto &one : all) one = rand();
        sum += sorted(all);
        for (int k = 0; k < 200; k++) seen[std::to_string(k)] += sum;
    }
    return sum + seen.size();
}
}
int main() {
    unsigned long sum = 0;
    for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;) sum += work::counted(5);
    return sum == 42;
}
"#;

fn tool(name: &str, args: &[&str]) -> Option<String> {
    let command = Command::new(name).args(args).stderr(Stdio::null()).output();
    let output = command.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A program and what perf recorded of it.
struct Recorded {
    folder: tempfile::TempDir,
    program: PathBuf,
    recording: String,
}

/// Returns nothing where a tool is missing or may not record, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.
fn recorded(more: &[&str]) -> Option<Recorded> {
    recorded_with("-fno-omit-frame-pointer", "fp", more)
}

/// The same of a program that is compiled with an option, with call chains of a kind.
fn recorded_with(option: &str, chains: &str, more: &[&str]) -> Option<Recorded> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("work.cpp"), PROGRAM).unwrap();
    let program = path("work");
    let flags = ["-O2", "-g", option, "-Wl,--build-id"];
    let recording = path("perf.data");
    let cache = path("cache");
    let mut record = vec![
        "--buildid-dir",
        &cache,
        "record",
        "-e",
        "cpu-clock:u",
        "-F",
        "2000",
        "--call-graph",
        chains,
        "-o",
        &recording,
    ];
    record.extend(more);
    record.push(&program);
    let done = tool(
        "g++",
        &[&flags[..], &[&path("work.cpp"), "-o", &program]].concat(),
    )
    .and_then(|_| tool("perf", &record));
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    if done.is_none() {
        assert!(!required, "g++ or perf is missing");
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: no g++ or no perf that records here");
        }
        return None;
    }
    Some(Recorded {
        program: program.clone().into(),
        folder,
        recording,
    })
}

/// Runs the program, which may look for files where the recorder saw them, and returns what it prints.
fn flame<'a>(args: impl Iterator<Item = &'a &'a str>) -> String {
    let mut command = trapline();
    let output = command
        .env_remove("TRAPLINE_NO_LOCAL_FILES")
        .args(args)
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Stacks with what they weigh, the names of frames from the outermost on; `?` for what has none.
type Folded = BTreeMap<Vec<String>, u64>;

/// What objdump calls the stubs of a program, by their places in a page.
///
/// perf 6.1 calls the first stub `_init`: it lets the function before the table reach to the second stub.
fn stubs(program: &Path) -> BTreeMap<u64, String> {
    let program = program.display().to_string();
    let text = tool("objdump", &["-d", "-j", ".plt", "-j", ".plt.sec", &program]).unwrap();
    let heads = text.lines().filter_map(|line| line.strip_suffix(">:"));
    heads
        .filter_map(|head| {
            let (address, name) = head.split_once(" <")?;
            let name = name.strip_suffix("@plt")?;
            let name = tool("c++filt", &["-p", name])?;
            let place = u64::from_str_radix(address, 16).ok()? & 0xff0;
            Some((place, format!("{}@plt", name.trim())))
        })
        .collect()
}

fn of_perf(recorded: &Recorded) -> Folded {
    let recording = recorded.recording.as_str();
    let stubs = stubs(&recorded.program);
    let cache = Path::new(recording)
        .with_file_name("cache")
        .display()
        .to_string();
    let args = [
        "--buildid-dir",
        &cache,
        "script",
        "--no-inline",
        "-F",
        "comm,period,ip,sym",
        "-i",
        recording,
    ];
    let text = tool("perf", &args).unwrap();
    let mut all = Folded::new();
    for sample in text.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.is_empty());
        let Some(head) = lines.next() else {
            continue;
        };
        let (comm, period) = head.trim().rsplit_once(' ').unwrap();
        let frames = lines.map(|line| {
            let (address, name) = line.trim().split_once(' ').unwrap();
            let place = u64::from_str_radix(address, 16).unwrap() & 0xff0;
            let stub = stubs.get(&place).filter(|_| name == "_init");
            let name = stub.map_or(name, String::as_str);
            // perf looks into its own vdso where the cache has none.
            let no_name = name == "[unknown]" || name.starts_with("__vdso_");
            if no_name { "?" } else { name }.to_owned()
        });
        let mut stack: Vec<String> = frames.collect();
        stack.push(comm.trim().to_owned());
        stack.reverse();
        *all.entry(stack).or_default() += period.trim().parse::<u64>().unwrap();
    }
    all
}

fn of_program(recorded: &Recorded, more: &[&str]) -> Folded {
    let out = recorded
        .folder
        .path()
        .join("out.folded")
        .display()
        .to_string();
    let args = ["flame", &recorded.recording, "-o", &out];
    flame(args.iter().chain(more));
    let mut all = Folded::new();
    for line in fs::read_to_string(&out).unwrap().lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        // Names have no semicolons, and `?` stands for a file with a place in it.
        let frames = stack.split(';').map(|frame| {
            let place = frame.rsplit_once("+0x");
            let is_place = place.is_some_and(|(_, at)| at.chars().all(|c| c.is_ascii_hexdigit()));
            if is_place || frame == "[unknown]" || frame.starts_with("__vdso_") {
                "?"
            } else {
                frame
            }
            .to_owned()
        });
        *all.entry(frames.collect()).or_default() += weight.parse::<u64>().unwrap();
    }
    all
}

fn differ(ours: &Folded, theirs: &Folded) {
    let lines = |a: &Folded, b: &Folded| -> Vec<String> {
        let only = a
            .iter()
            .filter(|(stack, weight)| b.get(*stack) != Some(weight));
        only.take(5)
            .map(|(stack, weight)| format!("{} {weight}", stack.join(";")))
            .collect()
    };
    assert_eq!(lines(ours, theirs), lines(theirs, ours));
}

fn has(folded: &Folded, name: &str) -> bool {
    folded
        .keys()
        .any(|stack| stack.iter().any(|frame| frame == name))
}

#[test]
fn functions_of_user_space_are_those_that_perf_names() {
    // Build ids at the end of the recording, and in its mappings.
    for more in [&[][..], &["--buildid-mmap"]] {
        let Some(recorded) = recorded(more) else {
            return;
        };
        let theirs = of_perf(&recorded);
        let cache = recorded.folder.path().join("cache").display().to_string();
        let ours = of_program(&recorded, &["--no-inline", "--buildid-dir", &cache]);
        assert!(
            has(&theirs, "work::sorted") && theirs.len() > 5,
            "{theirs:?}"
        );
        differ(&ours, &theirs);
        // With what is inlined stacks are deeper, and weigh the same.
        let inlined = of_program(&recorded, &["--buildid-dir", &cache]);
        assert!(has(&inlined, "work::mix") && !has(&ours, "work::mix"));
        let sum = |folded: &Folded| folded.values().sum::<u64>();
        assert_eq!(sum(&inlined), sum(&ours));
        // Both sides of a comparison have their names in the same way.
        let file = recorded.recording.as_str();
        let args = [
            "flame",
            file,
            "--diff",
            file,
            "--buildid-dir",
            &cache,
            "--format",
            "json",
        ];
        let document: Value = serde_json::from_str(&flame(args.iter())).unwrap();
        let rows = document["functions"].as_array().unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!(row["self_a"], row["self_b"], "{row}");
        }
    }
}

/// Without frame pointers stacks are made of registers and of what was on the stack, as perf makes them.
#[test]
fn stacks_without_frame_pointers_are_those_that_perf_makes() {
    let Some(recorded) = recorded_with("-fomit-frame-pointer", "dwarf,4096", &[]) else {
        return;
    };
    let theirs = of_perf(&recorded);
    let cache = recorded.folder.path().join("cache").display().to_string();
    let ours = of_program(&recorded, &["--no-inline", "--buildid-dir", &cache]);
    let sum = |folded: &Folded| folded.values().sum::<u64>();
    assert_eq!(sum(&ours), sum(&theirs));
    // Samples in the first instructions of functions, or in the last: unwinders disagree there.
    let same = theirs
        .iter()
        .map(|(stack, weight)| (*weight).min(ours.get(stack).copied().unwrap_or(0)));
    let same: u64 = same.sum();
    let share = same as f64 / sum(&theirs) as f64;
    let deepest = theirs.keys().map(Vec::len).max().unwrap_or(0);
    assert!(
        share > 0.99 && deepest > 5,
        "{share} of {} stacks: {ours:#?} {theirs:#?}",
        theirs.len()
    );
    assert!(ours.keys().any(|stack| {
        let at = |name: &str| stack.iter().position(|frame| frame == name);
        at("main") < at("work::counted")
            && at("work::counted") < at("work::sorted")
            && at("main").is_some()
    }));
    // Where the files are not, the stack ends where the CPU was.
    let nowhere = recorded.folder.path().join("nowhere").display().to_string();
    let without = of_program(&recorded, &["--symfs", &nowhere, "--buildid-dir", &nowhere]);
    assert_eq!(sum(&without), sum(&theirs));
}

#[test]
fn another_version_of_a_file_names_nothing() {
    let Some(recorded) = recorded(&[]) else {
        return;
    };
    let named = of_program(&recorded, &[]);
    assert!(has(&named, "work::sorted"));
    // The same names elsewhere: a program with another function, and so another build id, at the same path.
    let copy = recorded.folder.path().join("symfs");
    let place = |folder: &Path| folder.join(recorded.program.strip_prefix("/").unwrap());
    fs::create_dir_all(place(&copy).parent().unwrap()).unwrap();
    fs::copy(&recorded.program, place(&copy)).unwrap();
    let source = recorded.folder.path().join("work.cpp");
    fs::write(&source, PROGRAM.replace("counted(5)", "counted(6)")).unwrap();
    let (source, program) = (
        source.display().to_string(),
        recorded.program.display().to_string(),
    );
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"];
    tool("g++", &[&flags[..], &[&source, "-o", &program]].concat()).unwrap();
    let other = of_program(&recorded, &[]);
    assert!(!has(&other, "work::sorted") && !has(&other, "main"));
    let copy = copy.display().to_string();
    assert!(has(
        &of_program(&recorded, &["--symfs", &copy]),
        "work::sorted"
    ));
    let nowhere = recorded.folder.path().join("nowhere").display().to_string();
    let args = [
        "flame",
        &recorded.recording,
        "--symfs",
        &nowhere,
        "--debug-dir",
        &nowhere,
    ];
    let text = flame(args.iter());
    assert!(text.contains("work is not here: "), "{text}");
}

/// A program of the user that talks to servers is no reason to read a file without a sandbox.
#[test]
fn debuginfod_is_asked_from_within_a_sandbox() {
    let has_sandbox = trapline().args(["rules", "--sandbox", "required"]).output();
    let Some(recorded) =
        recorded(&[]).filter(|_| has_sandbox.is_ok_and(|run| run.status.success()))
    else {
        return;
    };
    let folder = recorded.folder.path();
    fs::rename(&recorded.program, folder.join("gone")).unwrap();
    // It has no business in the sandbox's folders, and leaves something there all the same.
    let beside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let asked = beside.path().join("asked");
    let find = folder.join("debuginfod-find");
    let text = format!(
        "#!/bin/sh\necho $1 $2 >> {}\n[ $1 = executable ] && echo {}\n",
        asked.display(),
        folder.join("gone").display()
    );
    fs::write(&find, text).unwrap();
    fs::set_permissions(&find, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let named = |sandbox: &str, urls: &str| {
        let _ = fs::remove_file(&asked);
        let output = trapline()
            .env_remove("TRAPLINE_NO_LOCAL_FILES")
            .env("DEBUGINFOD_URLS", urls)
            .env("DEBUGINFOD_CACHE_PATH", folder.join("cache"))
            .env("HOME", folder)
            .env("PATH", format!("{}:{path}", folder.display()))
            .args(["flame", &recorded.recording, "--sandbox", sandbox])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let names = String::from_utf8_lossy(&output.stdout).contains("work::sorted");
        (names, fs::read_to_string(&asked).unwrap_or_default())
    };
    let (names, asked_for) = named("required", "http://127.0.0.1:9/");
    assert!(names && asked_for.contains("executable "), "{asked_for}");
    assert_eq!(named("off", "http://127.0.0.1:9/"), (names, asked_for));
    assert_eq!(named("required", ""), (false, String::new()));
}
