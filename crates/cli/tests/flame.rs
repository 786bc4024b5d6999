//! `flame` beside what perf prints of the same samples, stack for stack, and by its own rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::{Case, all_cases, file, read_text, run, small, sweeping, write_text};

/// Stacks with what they weigh.
pub(crate) type Folded = BTreeMap<String, u64>;

/// Whose functions have names: those in the text, or nobody's.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    OfText,
    OfTextAlsoOfUsers,
    Nobodys,
}

/// A sample's header line: the name of its thread, its period and its event, and what follows.
fn head(line: &str) -> Option<(&str, u64, &str, &str)> {
    // Names of threads may have blanks; times end with a colon, and have a dot.
    let mut starts = Vec::new();
    let mut at = 0;
    for word in line.split_ascii_whitespace() {
        let start = at + line[at..].find(word)?;
        at = start + word.len();
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let time = word.strip_suffix(':').filter(|time| time.contains('.'));
        if time.is_none_or(|time| !time.chars().all(digits)) {
            starts.push((start, word));
            continue;
        }
        let tid = starts.iter().rev().find(|(_, word)| !word.starts_with('['));
        let comm = line[..tid?.0].trim();
        let (period, rest) = line[at..].trim_start().split_once(' ')?;
        let (event, rest) = rest.trim_start().split_once(": ")?;
        return Some((comm, period.parse().ok()?, event, rest.trim()));
    }
    None
}

/// What a line of a stack is called: `ADDRESS NAME+0xOFFSET (FILE)`.
fn frame(line: &str, names: Names) -> Option<String> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ')?;
    let (name, file) = rest.rsplit_once(" (")?;
    let file = file.strip_suffix(')')?;
    let kernel = file.contains("kallsyms]") || file.starts_with('[') && file != "[vdso]";
    let named = match names {
        Names::OfText => kernel,
        Names::OfTextAlsoOfUsers => true,
        Names::Nobodys => false,
    };
    if named && name != "[unknown]" {
        return Some(
            name.rsplit_once("+0x")
                .map_or(name, |(name, _)| name)
                .to_owned(),
        );
    }
    if file == "[unknown]" {
        return Some("[unknown]".to_owned());
    }
    let base = file.rsplit('/').next().unwrap_or_default();
    Some(format!("{base}+0x{address}"))
}

/// Folds the text of perf script.
fn of_text(text: &str, names: Names) -> Folded {
    let mut all = Folded::new();
    let mut now: Option<(String, u64, Vec<String>)> = None;
    let mut first: Option<String> = None;
    let mut end = |now: &mut Option<(String, u64, Vec<String>)>| {
        if let Some((comm, period, frames)) = now.take() {
            let frames = frames.into_iter().rev();
            let stack: Vec<String> = std::iter::once(comm).chain(frames).collect();
            *all.entry(stack.join(";")).or_default() += period;
        }
    };
    for line in text.lines() {
        if line.starts_with(['\t', ' ']) && line.trim_start().split(' ').next().is_some_and(is_hex)
        {
            if let (Some((.., frames)), Some(frame)) = (&mut now, frame(line, names)) {
                frames.push(frame);
            }
            continue;
        }
        end(&mut now);
        if let Some((comm, period, event, rest)) = head(&format!("{line} ")) {
            let chosen = first.get_or_insert_with(|| event.to_owned());
            if chosen == event {
                let alone = frame(rest, names).into_iter().collect();
                now = Some((comm.to_owned(), period, alone));
            }
        }
    }
    end(&mut now);
    all
}

fn is_hex(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// Folds a recording by the program.
pub(crate) fn of_program(recording: &Path, more: &[&str]) -> Folded {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let mut args = vec!["flame".to_owned(), recording.display().to_string()];
    args.extend(["-o".to_owned(), out.display().to_string()]);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let done = run(&args);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let text = fs::read_to_string(out).unwrap();
    let mut folded = Folded::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let before = folded.insert(stack.to_owned(), weight.parse().unwrap());
        assert_eq!(before, None, "a stack has one line: {stack}");
    }
    folded
}

/// Recordings with samples that are no tracepoints, and what perf prints of them.
fn sampled() -> Vec<(Case, String)> {
    let mut cases = all_cases();
    cases.retain(|case| case.kind == "perf.data" && (sweeping() || small(&case.path)));
    let with_text = cases.into_iter().filter_map(|case| {
        let text = case.reference("script")?;
        let sampled = text.lines().any(|line| head(line).is_some());
        sampled.then_some((case, text))
    });
    with_text.collect()
}

/// Tells a guest's samples from the host's, and returns what they weigh. perf has no name for a vCPU's thread there (`:2996`), or that
/// of all guests (`[guest/0]`), and no stack.
fn without_guests(folded: &Folded) -> (Folded, u64) {
    let guest = |stack: &str| {
        let threads = ["[guest/", ":"]
            .iter()
            .any(|begin| stack.starts_with(begin));
        stack.contains(";[guest")
            || stack.contains("[guest.kernel")
            || threads && !stack.contains(';')
    };
    let guests = folded.iter().filter(|(stack, _)| guest(stack));
    let weight = guests.map(|(_, weight)| weight).sum();
    let host = folded.iter().filter(|(stack, _)| !guest(stack));
    let host = host.map(|(stack, weight)| (stack.clone(), *weight));
    (host.collect(), weight)
}

/// Functions at one address have several names, of which tools choose differently: perf takes global ones before local
/// ones, trapline what libtraceevent takes. Each becomes the first of them.
pub(crate) fn one_name_each(folded: &Folded, symbols: &str) -> Folded {
    let mut at: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) {
            at.entry(address).or_default().insert(name);
            of.entry(name).or_default().insert(address);
        }
    }
    let first = |name: &str| -> String {
        let addresses = of.get(name).filter(|all| all.len() == 1);
        let address = addresses.and_then(|all| all.first());
        let names = address.and_then(|address| at[address].first());
        names.map_or(name, |first| first).to_owned()
    };
    let mut all = Folded::new();
    for (stack, weight) in folded {
        let names: Vec<String> = stack.split(';').map(first).collect();
        *all.entry(names.join(";")).or_default() += weight;
    }
    all
}

pub(crate) fn differ(case: &str, ours: &Folded, theirs: &Folded) {
    let lines = |a: &Folded, b: &Folded| -> Vec<String> {
        let only = a
            .iter()
            .filter(|(stack, weight)| b.get(*stack) != Some(weight));
        only.take(5)
            .map(|(stack, weight)| format!("{stack} {weight}"))
            .collect()
    };
    assert_eq!(lines(ours, theirs), lines(theirs, ours), "{case}");
}

#[test]
fn stacks_are_those_that_perf_prints() {
    let mut stacks = 0;
    for (case, text) in sampled() {
        let theirs = of_text(&text, Names::Nobodys);
        let ours = of_program(&case.path, &["--idle"]);
        let (ours, our_guests) = without_guests(&ours);
        let (theirs, their_guests) = without_guests(&theirs);
        differ(&case.name, &ours, &theirs);
        assert_eq!(our_guests, their_guests, "{}", case.name);
        stacks += ours.len();
    }
    assert!(stacks > 200, "{stacks} stacks were compared");
}

/// Recordings of the corpus beside the repository, whose text perf made where the symbols were.
#[test]
fn functions_of_the_kernel_are_those_that_perf_names() {
    let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS") else {
        return;
    };
    let folder = Path::new(&corpus).join("x86/flame-iperf3");
    let cases = [
        ("l1.perf.data", "l1.perf.script.txt.gz", "l1-kallsyms.gz"),
        ("l2/perf.data", "l2/perf.script.txt.gz", "l2/kallsyms.gz"),
    ];
    let beside = tempfile::tempdir().unwrap();
    for (recording, text, symbols) in cases {
        let names = read_text(&folder.join(symbols));
        let symbols = write_text(beside.path(), "kallsyms", &names);
        let theirs = of_text(&read_text(&folder.join(text)), Names::OfText);
        let symbols = symbols.display().to_string();
        let ours = of_program(&folder.join(recording), &["--idle", "--kallsyms", &symbols]);
        let (ours, theirs) = (without_guests(&ours).0, without_guests(&theirs).0);
        let (ours, theirs) = (one_name_each(&ours, &names), one_name_each(&theirs, &names));
        differ(recording, &ours, &theirs);
    }
}

/// What perf printed of a recording is as good as the recording, stack for stack.
#[test]
fn texts_have_the_stacks_that_they_print() {
    let folder = tempfile::tempdir().unwrap();
    let mut stacks = 0;
    for (case, text) in sampled() {
        let path = write_text(folder.path(), "script.txt", &text);
        let ours = of_program(&path, &["--idle"]);
        let theirs = of_text(&text, Names::OfTextAlsoOfUsers);
        differ(&case.name, &ours, &theirs);
        stacks += ours.len();
    }
    assert!(stacks > 200, "{stacks} stacks were compared");
}

/// ftrace writes a stack behind each event: in a recording, and in what is printed of it.
#[test]
fn stacks_of_ftrace_are_the_same_in_a_recording_and_in_its_text() {
    let mut cases = all_cases().into_iter();
    let case = cases.find(|case| case.name == "x86/format-variants/stack.dat.zst");
    let case = case.unwrap();
    let options = ["--event", "kvm_userspace_exit", "--by", "thread"];
    let ours = of_program(&case.path, &options);
    let frames = "entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_ioctl;kvm_vcpu_ioctl;\
                  trace_event_raw_event_kvm_userspace_exit";
    let expected = [("CPU 0/KVM/3742", 26), ("CPU 1/KVM/3743", 2526)];
    let expected = expected.map(|(thread, count)| (format!("{thread};{frames}"), count));
    assert_eq!(ours, expected.into());
    let folder = tempfile::tempdir().unwrap();
    let text = case.reference("report").unwrap();
    let path = write_text(folder.path(), "report.txt", &text);
    assert_eq!(of_program(&path, &options), ours);
}

#[test]
fn samples_in_are_samples_shown() {
    for (case, _) in sampled() {
        let path = case.path.display().to_string();
        let json = |more: &[&str]| {
            let args = ["flame", &path, "--format", "json"];
            run(args.iter().chain(more)).json().unwrap()
        };
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        let shown = json(&[]);
        let rows = shown["rows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| number(&row["samples"])).sum();
        let samples = number(&shown["samples"]);
        assert_eq!(
            samples,
            sum + number(&shown["idle_samples"]),
            "{}",
            case.name
        );
        assert!(rows.iter().all(|row| row["tid"] != 0), "{}", case.name);
        let all = json(&["--idle"]);
        let rows = all["rows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| number(&row["samples"])).sum();
        assert_eq!(
            (number(&all["samples"]), sum),
            (samples, samples),
            "{}",
            case.name
        );
    }
}

/// Whatever stands below them, and in whatever form, the stacks are the same.
#[test]
fn groups_and_forms_have_the_same_stacks() {
    let recording = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2");
    let all = of_program(&recording, &[]);
    let without_group = |folded: &Folded| {
        let mut stacks = Folded::new();
        for (stack, weight) in folded {
            let rest = stack.split_once(';').map_or("", |(_, rest)| rest);
            *stacks.entry(rest.to_owned()).or_default() += weight;
        }
        stacks
    };
    for (by, begin) in [("thread", "perf/"), ("cpu", "CPU "), ("vm", "no VM")] {
        let folded = of_program(&recording, &["--by", by]);
        assert!(folded.keys().any(|stack| stack.starts_with(begin)), "{by}");
        assert_eq!(without_group(&folded), without_group(&all), "{by}");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.json");
    let paths = [&recording, &out].map(|path| path.display().to_string());
    assert_eq!(run(["flame", &paths[0], "-o", &paths[1]]).status, 0);
    let text = fs::read_to_string(out).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let frames = document["shared"]["frames"].as_array().unwrap();
    let profile = &document["profiles"][0];
    let samples = profile["samples"].as_array().unwrap().iter();
    let mut stacks = Folded::new();
    for (sample, weight) in samples.zip(profile["weights"].as_array().unwrap()) {
        let names = sample.as_array().unwrap().iter().map(|frame| {
            let frame = &frames[usize::try_from(frame.as_u64().unwrap()).unwrap()];
            frame["name"].as_str().unwrap()
        });
        let stack = names.collect::<Vec<_>>().join(";");
        *stacks.entry(stack).or_default() += weight.as_u64().unwrap();
    }
    assert_eq!(stacks, all);
    let sum: u64 = stacks.values().sum();
    assert_eq!(profile["endValue"].as_u64(), Some(sum));
    assert_eq!(profile["type"], "sampled");
}

#[test]
fn what_cannot_be_shown_is_said() {
    // Its events have no subsystem, and so may be anything: one is a line of the function tracer.
    let text = file("seed-text/case1-irqfd.trace-cmd.txt");
    let done = run(["flame", &text.display().to_string()]);
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains("perf record -a -g"), "{}", done.stderr);
    let tracepoints = all_cases()
        .into_iter()
        .find(|case| case.kind == "trace.dat")
        .unwrap();
    let done = run(["flame", &tracepoints.path.display().to_string()]);
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains("perf record -a -g"), "{}", done.stderr);
    let recording = file("arm64/vhost-mmio/boot2-vsock/perf.data.l2");
    let recording = recording.display().to_string();
    let done = run(["flame", &recording, "-o", "out.pdf"]);
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains(".folded"), "{}", done.stderr);
    assert!(!Path::new("out.pdf").exists());
    let done = run(["flame", &recording, "--event", "cycles", "--format", "csv"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let done = run(["flame", &recording, "--event", "nothing"]);
    assert_eq!(done.status, 1);
}
