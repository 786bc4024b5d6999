//! Stacks beside what perf prints of the same samples, stack for stack.

use std::path::Path;

use analysis::{ProfileBy, ProfileOptions};
use fixtures::answers::{FoldedStacks, differing_stacks};
use fixtures::{
    CorpusCase, FixtureQuestion, all_cases, file, read_text, small, sweeping, write_text,
};
use serde_json::Value;

use super::{folded, folded_with, one_name_each, with_idle};

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
fn of_text(text: &str, names: Names) -> FoldedStacks {
    let mut all = FoldedStacks::new();
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

/// Recordings with samples that are no tracepoints, and what perf prints of them.
fn sampled() -> Vec<(CorpusCase, String)> {
    let mut cases = all_cases();
    cases.retain(|case| case.kind == "perf.data" && (sweeping() || small(&case.path)));
    let with_text = cases.into_iter().filter_map(|case| {
        let text = case.reference("script")?;
        let sampled = text.lines().any(|line| head(line).is_some());
        sampled.then_some((case, text))
    });
    with_text.collect()
}

/// Takes out samples in guests, and returns what they weigh. perf has no name for a vCPU's thread there (`:2996`), or
/// that of all guests (`[guest/0]`), and no stack.
fn without_guests(folded: &FoldedStacks) -> (FoldedStacks, u64) {
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

#[test]
fn stacks_are_those_that_perf_prints() {
    let mut stacks = 0;
    for (case, text) in sampled() {
        let theirs = of_text(&text, Names::Nobodys);
        let ours = folded(&case.path, with_idle());
        let (ours, our_guests) = without_guests(&ours);
        let (theirs, their_guests) = without_guests(&theirs);
        differing_stacks(&case.name, &ours, &theirs);
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
        let ours = folded_with(&folder.join(recording), &symbols);
        let (ours, theirs) = (without_guests(&ours).0, without_guests(&theirs).0);
        let (ours, theirs) = (one_name_each(&ours, &names), one_name_each(&theirs, &names));
        differing_stacks(recording, &ours, &theirs);
    }
}

/// What perf printed of a recording is as good as the recording, stack for stack.
#[test]
fn texts_have_the_stacks_that_they_print() {
    let folder = tempfile::tempdir().unwrap();
    let mut stacks = 0;
    for (case, text) in sampled() {
        let path = write_text(folder.path(), "script.txt", &text);
        let ours = folded(&path, with_idle());
        let theirs = of_text(&text, Names::OfTextAlsoOfUsers);
        differing_stacks(&case.name, &ours, &theirs);
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
    let options = || ProfileOptions {
        event: Some("kvm_userspace_exit".to_owned()),
        by: ProfileBy::Thread,
        ..ProfileOptions::default()
    };
    let ours = folded(&case.path, options());
    let frames = "entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_ioctl;kvm_vcpu_ioctl;\
                  trace_event_raw_event_kvm_userspace_exit";
    let expected = [("CPU 0/KVM/3742", 26), ("CPU 1/KVM/3743", 2526)];
    let expected = expected.map(|(thread, count)| (format!("{thread};{frames}"), count));
    assert_eq!(ours, expected.into());
    let folder = tempfile::tempdir().unwrap();
    let text = case.reference("report").unwrap();
    let path = write_text(folder.path(), "report.txt", &text);
    assert_eq!(folded(&path, options()), ours);
}

#[test]
fn samples_in_are_samples_shown() {
    for (case, _) in sampled() {
        let document = |options| FixtureQuestion::new().stacks_document(&case.path, options);
        let number = |value: &Value| value.as_u64().unwrap();
        let shown = document(ProfileOptions::default()).expect("stacks");
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
        let all = document(with_idle()).expect("stacks");
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
    let all = folded(&recording, ProfileOptions::default());
    let without_group = |folded: &FoldedStacks| {
        let mut stacks = FoldedStacks::new();
        for (stack, weight) in folded {
            let rest = stack.split_once(';').map_or("", |(_, rest)| rest);
            *stacks.entry(rest.to_owned()).or_default() += weight;
        }
        stacks
    };
    for (by, begin) in [
        (ProfileBy::Thread, "perf/"),
        (ProfileBy::Cpu, "CPU "),
        (ProfileBy::Vm, "no VM"),
    ] {
        let options = ProfileOptions {
            by,
            ..ProfileOptions::default()
        };
        let folded = folded(&recording, options);
        assert!(
            folded.keys().any(|stack| stack.starts_with(begin)),
            "{by:?}"
        );
        assert_eq!(without_group(&folded), without_group(&all), "{by:?}");
    }
    let (report, _) = FixtureQuestion::new()
        .stacks(&recording, ProfileOptions::default())
        .expect("stacks");
    let text = render::flame::speedscope(&report, "recording").expect("a file");
    let document: Value = serde_json::from_str(&text).expect("a document");
    let frames = document["shared"]["frames"].as_array().unwrap();
    let profile = &document["profiles"][0];
    let samples = profile["samples"].as_array().unwrap().iter();
    let mut stacks = FoldedStacks::new();
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
