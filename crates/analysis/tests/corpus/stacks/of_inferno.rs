//! Stacks beside `inferno-collapse-perf`, which folds what perf prints of the same recordings: stack for stack and
//! weight for weight. The rules are those of inferno 0.12.8, which `.ci/run` installs.
//!
//! These differences are made equal here, one rule each:
//!
//! | inferno 0.12.8 | trapline | right |
//! | --- | --- | --- |
//! | samples where blanks align the event's name (`11496   cycles:`), else periods | periods | either, not by chance |
//! | takes a tracepoint's text (`prev_comm=...`) for a frame and loses the stack behind it | the stack | trapline |
//! | takes a tracepoint's subsystem for the event and adds up all of `sched:` | one event | trapline |
//! | has no line for a sample without a frame in perf's text | the address, or `[guest]` | samples count |
//! | does not understand the id of ended threads (`:-1`) | `:-1` | samples count |
//! | `[unknown] ` for a file with a blank in its name (`memfd:x (deleted)`) | the file and the place in it | as perf |
//! | `[libc.so.6]`, `[[kvm]]` without a symbol | `libc.so.6+0xfdd6b` | both; two places are two frames here |
//! | `;` in names, and arguments of C++ functions | `:`; arguments stay | both |
//! | guests are threads of their own (`:2996;...`) | below their vCPU's thread | the thread had the CPU |
//!
//! `perf script -F -trace` avoids the second one.
//!
//! `TRAPLINE_INFERNO` names the folder with inferno's programs, else they are looked for in `PATH`. Without them
//! nothing is compared, unless `TRAPLINE_REQUIRE_TOOLS` is set.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use analysis::ProfileOptions;
use fixtures::answers::{FoldedStacks, differing_stacks};
use fixtures::{all_cases, note, read_text, small, sweeping, write_text};

use super::{folded, folded_with, one_name_each, with_idle};

/// How perf calls threads that have ended already.
const ENDED: &str = ":-1";

/// Returns the program, if it is there.
fn inferno() -> Option<PathBuf> {
    let name = "inferno-collapse-perf";
    let folder = std::env::var_os("TRAPLINE_INFERNO").filter(|folder| !folder.is_empty());
    let program = folder.map_or_else(|| name.into(), |folder| Path::new(&folder).join(name));
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    match Command::new(&program).arg("--help").output() {
        Ok(_) => Some(program),
        Err(error) if error.kind() == ErrorKind::NotFound && !required => {
            note(&format!(
                "{name} is not installed: nothing is compared with it"
            ));
            None
        }
        Err(error) => panic!("{}: {error}", program.display()),
    }
}

/// Folds a text by inferno.
fn fold(program: &Path, text: &str) -> FoldedStacks {
    let mut child = Command::new(program)
        .args(["--nthreads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // Where it ends early it says why.
        scope.spawn(move || stdin.write_all(text.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        !said.contains("Weird"),
        "inferno did not understand: {said}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap());
    lines
        .map(|(stack, weight)| (stack.to_owned(), weight.parse().unwrap()))
        .collect()
}

/// Returns the events of a text that have stacks: the first that is no tracepoint, as `flame` chooses it, or else each.
fn events(text: &str) -> Vec<String> {
    let mut all = BTreeSet::new();
    let mut now = None;
    for line in text.lines() {
        if line.starts_with('\t') && line.ends_with(')') {
            all.extend(now.take());
        } else if let Some((_, period, event, _)) = any_head(line) {
            // perf prints no period of tracepoints.
            if period.is_some() {
                return vec![event.to_owned()];
            }
            now = Some(event.to_owned());
        }
    }
    all.into_iter().collect()
}

/// A sample's header line: what is before its period, the period if it has one, its event, and what follows.
fn any_head(line: &str) -> Option<(&str, Option<u64>, &str, &str)> {
    if line.starts_with('\t') || line.is_empty() {
        return None;
    }
    let line_end = line;
    let time = line_end.split(' ').find(|word| {
        let time = word.strip_suffix(':').filter(|time| time.contains('.'));
        time.is_some_and(|time| time.chars().all(|c| c.is_ascii_digit() || c == '.'))
    })?;
    let end = line.find(time)? + time.len();
    let rest = line[end..].trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let period = rest[..digits]
        .parse()
        .ok()
        .filter(|_| rest[digits..].starts_with(' '));
    let rest = if period.is_some() {
        rest[digits..].trim_start()
    } else {
        rest
    };
    let event = rest.split_once(' ').map_or(rest, |(event, _)| event);
    let event = event.strip_suffix(':')?;
    Some((&line[..end], period, event, &rest[event.len() + 1..]))
}

/// Makes perf's text such that inferno can read it, and returns by thread what samples weigh that it leaves out.
fn readable(text: &str, event: &str) -> (String, FoldedStacks) {
    let mut out = String::new();
    let mut wanted = false;
    let mut left_out = FoldedStacks::new();
    let mut open: Option<(String, u64)> = None;
    for line in text.lines() {
        let Some((begin, period, name, rest)) = any_head(line) else {
            if wanted {
                open = open.filter(|_| line.is_empty());
                out.push_str(line);
                out.push('\n');
            }
            continue;
        };
        if let Some((comm, weight)) = open.take() {
            *left_out.entry(comm).or_default() += weight;
        }
        // 1. inferno takes the subsystem of a tracepoint for the event, so it would add up all of sched.
        wanted = name == event;
        if !wanted {
            continue;
        }
        // 11. It does not understand the id of a thread that has ended already, -1.
        if begin.contains(&format!("{ENDED} ")) {
            wanted = false;
            *left_out.entry(ENDED.to_owned()).or_default() += period.unwrap_or(1);
            continue;
        }
        // 2. It takes what a tracepoint prints for a frame, and then loses the stack: this is 'perf script -F -trace'.
        let frame = frame_of(rest).unwrap_or_default();
        // 9. A sample of which perf prints no frame is no line of it. Here the address is shown at which it was taken.
        if frame.is_empty() {
            let comm = begin
                .rsplit_once('[')
                .and_then(|(thread, _)| thread.trim().rsplit_once(' '));
            let comm = comm.map_or("", |(comm, _)| comm.trim()).replace(' ', "_");
            open = Some((comm, period.unwrap_or(1)));
        }
        // 3. It counts samples instead of periods where several blanks stand before the event's name, with which perf
        // aligns    names.
        let period = period.map_or(String::new(), |period| format!("{period} "));
        out.push_str(&format!("{begin} {period}{name}: {frame}\n"));
    }
    if let Some((comm, weight)) = open {
        *left_out.entry(comm).or_default() += weight;
    }
    (out, left_out)
}

/// A stack of one frame stands at the end of the header: `ADDRESS NAME (FILE)`.
fn frame_of(rest: &str) -> Option<&str> {
    let (before, _) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    let (before, name) = before.rsplit_once(' ')?;
    let address = before.rsplit(' ').next()?;
    let is_address = address.len() > 3 && address.chars().all(|c| c.is_ascii_hexdigit());
    let begin = before.len() - address.len();
    (is_address && !name.is_empty()).then(|| &rest[begin..])
}

/// Takes the names of functions of user space out of a text. 7. perf had the files at hand, which a recording does not
/// have.
fn without_user_names(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let frame = line
            .strip_prefix('\t')
            .and_then(|frame| frame.rsplit_once(" ("));
        let Some((name, file)) = frame.filter(|(_, file)| file.starts_with('/')) else {
            return line.to_owned();
        };
        let address = name.trim_start().split(' ').next().unwrap_or_default();
        format!("\t{address} [unknown] ({file}")
    });
    lines.map(|line| line + "\n").collect()
}

/// Names our stacks as inferno does.
fn as_inferno(ours: &FoldedStacks) -> FoldedStacks {
    let mut all = FoldedStacks::new();
    for (stack, weight) in ours {
        let (comm, frames) = stack.split_once(';').unwrap_or((stack, ""));
        // 4. Blanks in names of threads become underlines.
        let mut name = comm.replace(' ', "_");
        for frame in frames.split(';').filter(|frame| !frame.is_empty()) {
            name.push(';');
            // 5. What has no name is its file's name in brackets, without the place in it.
            match frame.rsplit_once("+0x") {
                // 10. Of a file's name with a blank in it the last word is taken for the file.
                Some((file, _)) if file.contains(' ') => name.push_str("[unknown] "),
                Some((file, _)) => name.push_str(&format!("[{file}]")),
                None => name.push_str(frame),
            }
        }
        *all.entry(name).or_default() += weight;
    }
    all
}

/// Takes out samples in guests, and returns what they weigh. 6. perf has no name for a vCPU's thread there, or that of
/// all guests, and no stack.
fn without_guests(folded: &FoldedStacks) -> (FoldedStacks, u64) {
    let guest = |stack: &str| {
        let begins = ["[guest/", ":"]
            .iter()
            .any(|begin| stack.starts_with(begin));
        stack.contains(";[guest")
            || stack.contains("[guest.kernel")
            || begins && stack.matches(';').count() <= 1
    };
    let (guests, host): (FoldedStacks, FoldedStacks) =
        (folded.clone().into_iter()).partition(|(stack, _)| guest(stack));
    (host, guests.values().sum())
}

/// Takes out of ours what inferno leaves out: stacks of one frame that are heavier than its own. Returns what samples
/// in guests weigh among these.
fn without_left_out(
    mut ours: FoldedStacks,
    theirs: &FoldedStacks,
    mut left_out: FoldedStacks,
) -> (FoldedStacks, u64) {
    for (stack, weight) in &mut ours {
        let lone = stack
            .split_once(';')
            .filter(|(_, frame)| !frame.contains(';'));
        let Some(left) = lone.and_then(|(comm, _)| left_out.get_mut(comm)) else {
            continue;
        };
        let more = weight
            .saturating_sub(theirs.get(stack).copied().unwrap_or(0))
            .min(*left);
        *left -= more;
        *weight -= more;
    }
    ours.retain(|_, weight| *weight > 0);
    (ours, left_out.values().sum())
}

#[test]
fn stacks_are_those_that_inferno_folds() {
    let Some(program) = inferno() else {
        return;
    };
    let (mut stacks, mut recordings) = (0, 0);
    for case in all_cases() {
        if case.kind != "perf.data" || !(sweeping() || small(&case.path)) {
            continue;
        }
        let Some(text) = case.reference("script") else {
            continue;
        };
        let events = events(&text);
        recordings += usize::from(!events.is_empty());
        for event in events {
            let (text, mut left_out) = readable(&text, &event);
            let theirs = fold(&program, &text);
            let ours = folded(
                &case.path,
                ProfileOptions {
                    event: Some(event.clone()),
                    ..with_idle()
                },
            );
            let (theirs, their_guests) = without_guests(&theirs);
            let what = format!("{} {event}", case.name);
            let (ended, ours): (FoldedStacks, FoldedStacks) = ours
                .into_iter()
                .partition(|(stack, _)| stack.starts_with(&format!("{ENDED};")));
            let ended: u64 = ended.values().sum();
            assert_eq!(ended, left_out.remove(ENDED).unwrap_or(0), "{what}: ended");
            let (ours, our_guests) = without_guests(&ours);
            let (ours, rest) = without_left_out(as_inferno(&ours), &theirs, left_out);
            differing_stacks(&what, &ours, &theirs);
            assert_eq!(our_guests, their_guests + rest, "{what}: guests");
            stacks += ours.len();
        }
    }
    note(&format!(
        "{stacks} stacks of {recordings} recordings are those of inferno"
    ));
    assert!(stacks > 100, "{stacks} stacks were compared");
}

/// Recordings of the corpus beside the repository, whose text perf made where the symbols were.
#[test]
fn names_are_those_that_inferno_folds() {
    let (Some(program), Some(corpus)) = (inferno(), std::env::var_os("TRAPLINE_CORPUS")) else {
        return;
    };
    let folder = Path::new(&corpus).join("x86/flame-iperf3");
    let beside = tempfile::tempdir().unwrap();
    for (recording, text, symbols) in [
        ("l1.perf.data", "l1.perf.script.txt.gz", "l1-kallsyms.gz"),
        ("l2/perf.data", "l2/perf.script.txt.gz", "l2/kallsyms.gz"),
    ] {
        let names = read_text(&folder.join(symbols));
        let symbols = write_text(beside.path(), "kallsyms", &names);
        let text = without_user_names(&read_text(&folder.join(text)));
        let event = events(&text).remove(0);
        let theirs = fold(&program, &readable(&text, &event).0);
        let ours = folded_with(&folder.join(recording), &symbols);
        let (ours, theirs) = (without_guests(&ours).0, without_guests(&theirs).0);
        let ours = as_inferno(&ours);
        // 8. Of several names of one address perf takes another one.
        let (ours, theirs) = (one_name_each(&ours, &names), one_name_each(&theirs, &names));
        differing_stacks(recording, &ours, &theirs);
    }
}
