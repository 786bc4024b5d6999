//! The graphs that cases 4 and 5 were solved with, out of the corpus beside the repository: beside what perf says of
//! the same recordings, and beside what stacks say that are folded here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::{ProfileBy, ProfileOf, ProfileOptions};
use fixtures::json::number;
use fixtures::{FixtureQuestion, read_text, write_text};
use serde_json::Value;

use super::{folded, with_idle};

/// Where the corpus is, if it is.
fn corpus() -> Option<PathBuf> {
    std::env::var_os("TRAPLINE_CORPUS").map(PathBuf::from)
}

/// The recording of that name, packed or not.
fn recording(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(name);
    match plain.exists() {
        true => plain,
        false => folder.join(format!("{name}.zst")),
    }
}

fn share(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_default() * 100.0
}

/// A line of `perf kvm report --sort=comm --show-cpu-utilization` (or `--sort=pid,comm`): the thread, and how much of
/// all samples it had in the kernel, in user space, in a guest's kernel and in its user space.
fn utilization(line: &str) -> Option<(&str, [f64; 4])> {
    let mut words = line.split_whitespace();
    let mut percent = || words.next()?.strip_suffix('%')?.parse::<f64>().ok();
    // Children and self come first.
    percent()?;
    percent()?;
    let parts = [percent()?, percent()?, percent()?, percent()?];
    let name = line.rsplit_once('%')?.1.trim();
    Some((
        name.split_once(':')
            .filter(|(pid, _)| pid.parse::<i32>().is_ok())
            .map_or(name, |_| name),
        parts,
    ))
}

/// The table is perf's, to the digit that it prints, idle CPUs and guests included.
#[test]
fn threads_have_the_shares_of_perf_kvm_report() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut lines = 0;
    for folder in ["virtio-mmio/boot2-vsock", "vhost-mmio/boot2-vsock"] {
        let folder = corpus.join("arm64").join(folder);
        let recording = recording(&folder, "perf.data.kvm");
        let document = FixtureQuestion::new().stacks_document(&recording, with_idle());
        let document = document.expect("stacks");
        let rows = document["rows"].as_array().unwrap();
        let mut ours: BTreeMap<String, [f64; 3]> = BTreeMap::new();
        for row in rows {
            let host = ours
                .entry(row["comm"].as_str().unwrap().to_owned())
                .or_default();
            host[0] += share(row, "kernel") + share(row, "kvm");
            host[1] += share(row, "user");
            // perf has no names of threads in guests.
            let guest = ours.entry(format!(":{}", row["tid"])).or_default();
            guest[2] += share(row, "guest");
        }
        for line in read_text(&folder.join("perf-kvm-report-comm.txt")).lines() {
            let Some((name, [kernel, user, guest_kernel, guest_user])) = utilization(line) else {
                continue;
            };
            let found = ours.get(name).copied().unwrap_or_default();
            let theirs = [kernel, user, guest_kernel + guest_user];
            for (ours, theirs) in found.iter().zip(theirs) {
                // Sums of two numbers that are rounded each.
                assert!(
                    (ours - theirs).abs() < 0.0101,
                    "{name}: {found:?}, perf {theirs:?}"
                );
            }
            lines += 1;
        }
        let shown: u64 = rows.iter().map(|row| number(row, "samples")).sum();
        assert_eq!(shown, number(&document, "samples"));
        assert_eq!(number(&document, "left_out_samples"), 0);
        // Without idle CPUs and guests, these are what is not shown.
        let options = ProfileOptions::default();
        let document = FixtureQuestion::new().stacks_document(&recording, options);
        let document = document.expect("stacks");
        let rows = document["rows"].as_array().unwrap();
        let shown: u64 = rows.iter().map(|row| number(row, "samples")).sum();
        let idle = number(&document, "idle_samples");
        assert!(idle > 0);
        assert_eq!(shown + idle, number(&document, "samples"));
    }
    assert_eq!(lines, 30);
}

/// What threads waited for, folded here from the text of perf script: by thread, state and stack.
fn waits(text: &str) -> BTreeMap<String, u64> {
    #[derive(Default, Clone)]
    struct Away {
        left: Option<u64>,
        state: &'static str,
        stack: Vec<String>,
        woken: Option<u64>,
    }
    let field = |line: &str, name: &str| -> Option<String> {
        let at = line.find(&format!("{name}="))? + name.len() + 1;
        Some(line[at..].split_whitespace().next()?.to_owned())
    };
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    let mut away: BTreeMap<String, Away> = BTreeMap::new();
    let mut running: BTreeMap<String, bool> = BTreeMap::new();
    let mut over = |tid: &str, away: &Away, time: u64| {
        let mut add = |state: &str, from: u64, to: u64| {
            let mut frames = away.stack.clone();
            if frames.is_empty() {
                frames.push("[no stack]".to_owned());
            }
            frames.reverse();
            if to > from {
                let stack = format!("{tid};{state};{}", frames.join(";"));
                *waits.entry(stack).or_default() += to - from;
            }
        };
        match (away.left, away.woken) {
            (Some(left), _) if away.state.starts_with("runnable") => add(away.state, left, time),
            (Some(left), woken) => {
                add(away.state, left, woken.unwrap_or(time));
                add("runnable (woken)", woken.unwrap_or(time), time);
            }
            (None, Some(woken)) => add("runnable (woken)", woken, time),
            (None, None) => {}
        }
    };
    let mut last: Option<String> = None;
    let mut end = 0;
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix('\t') {
            let mut words = frame.trim().splitn(2, ' ');
            let (address, rest) = (words.next().unwrap(), words.next().unwrap_or_default());
            // Names of files may have brackets too: `/memfd:x (deleted)`.
            let unknown = rest
                .strip_prefix("[unknown] (")
                .map(|file| ("[unknown]", file));
            let named = rest.rsplit_once(" (").unwrap_or((rest, ")"));
            let (name, file) = unknown.unwrap_or(named);
            let file = file.strip_suffix(')').unwrap_or(file);
            let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
            let base = file.rsplit('/').next().unwrap();
            let name = match name {
                "[unknown]" if base == "[unknown]" => name.to_owned(),
                "[unknown]" => format!("{base}+0x{address}"),
                name => name.to_owned(),
            };
            if let Some(away) = last.as_ref().and_then(|tid| away.get_mut(tid)) {
                away.stack.push(name);
            }
            continue;
        }
        let Some((head, rest)) = line.split_once(": ") else {
            continue;
        };
        last = None;
        let time = head.rsplit(' ').next().unwrap();
        let (seconds, fraction) = time.split_once('.').unwrap();
        let time = seconds.parse::<u64>().unwrap() * 1_000_000_000
            + fraction.parse::<u64>().unwrap() * 10u64.pow(9 - fraction.len() as u32);
        end = end.max(time);
        if rest.contains("sched_switch:") {
            let (prev, next) = (
                field(rest, "prev_pid").unwrap(),
                field(rest, "next_pid").unwrap(),
            );
            if let Some(was) = away.remove(&next) {
                over(&next, &was, time);
            }
            running.insert(next, true);
            running.insert(prev.clone(), false);
            let state = field(rest, "prev_state").unwrap();
            let state = match state.as_str() {
                "S" => "sleeping (S)",
                "D" => "uninterruptible (D)",
                "I" => "idle kernel thread (I)",
                "T" => "stopped (T)",
                state if state.starts_with('R') => "runnable (preempted)",
                state => {
                    assert!(state.starts_with(['X', 'Z']), "{state}");
                    ""
                }
            };
            let left = (!state.is_empty()).then_some(time);
            away.insert(
                prev.clone(),
                Away {
                    left,
                    state,
                    ..Away::default()
                },
            );
            last = Some(prev);
        } else if rest.contains("sched_wakeup:") {
            let tid = field(rest, " pid").unwrap();
            let away = away.entry(tid.clone()).or_default();
            if !running.get(&tid).copied().unwrap_or(false) && !away.state.starts_with("runnable") {
                away.woken.get_or_insert(time);
            }
        }
    }
    for (tid, was) in &away {
        over(tid, was, end);
    }
    waits.retain(|stack, _| !stack.starts_with("0;"));
    waits
}

/// Case 5: what the sender waited for, thread by thread and stack by stack, to the digit that perf prints.
#[test]
fn senders_waits_are_those_of_the_text() {
    let Some(corpus) = corpus() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut asleep = Vec::new();
    for name in ["sender-waits", "sender-flows"] {
        let text = read_text(
            &corpus
                .join("host")
                .join(name)
                .join("perf.data.script.txt.gz"),
        );
        let path = write_text(folder.path(), "script.txt", &text);
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        let options = ProfileOptions {
            of: ProfileOf::OffCpu,
            by: ProfileBy::Thread,
            ..ProfileOptions::default()
        };
        for (stack, weight) in folded(&path, options) {
            let (thread, stack) = stack.split_once(';').unwrap();
            let tid = thread.rsplit_once('/').unwrap().1;
            *ours.entry(format!("{tid};{stack}")).or_default() += weight;
        }
        let theirs = waits(&text);
        assert!(theirs.len() > 100, "{}", theirs.len());
        let differ = theirs
            .iter()
            .filter(|(stack, ns)| ours.get(*stack) != Some(ns));
        let differ: Vec<_> = differ
            .take(3)
            .map(|(stack, ns)| (stack, ns, ours.get(stack)))
            .collect();
        assert!(differ.is_empty(), "{name}: {differ:#?}");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        // Of the waits for memory, how much was sleep: the rest was for a CPU.
        let memory = |state: &str| -> u64 {
            let these = theirs.iter().filter(|(stack, _)| {
                stack.contains("sk_stream_wait_memory") && stack.contains(state)
            });
            these.map(|(_, ns)| ns).sum()
        };
        let (sleeps, all) = (memory(";sleeping"), memory(""));
        asleep.push(sleeps as f64 / all as f64);
    }
    // With small buffers the sender is woken for every few bytes and waits for its CPU; with large ones it sleeps.
    assert!(asleep[0] < 0.4 && asleep[1] > 0.8, "{asleep:?}");
}

/// Functions of a guest's kernel are those that perf names with the same symbols, sample for sample; with a folder of
/// guests' file systems, as perf has it, too.
#[test]
fn functions_of_guests_are_those_that_perf_names() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut samples = 0;
    for (name, pid) in [("virtio-mmio", 2508), ("vhost-mmio", 2706)] {
        let folder = corpus.join("arm64").join(name).join("boot2-vsock");
        let mount = tempfile::tempdir().unwrap();
        let proc = mount.path().join(pid.to_string()).join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        let names = read_text(&folder.join("guest-kallsyms.gz"));
        let symbols = write_text(&proc, "kallsyms", &names);
        // Of several names at one address tools choose differently: each becomes the first.
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        let mut at: BTreeMap<&str, &str> = BTreeMap::new();
        for line in names.lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some(address), Some(name)) = (words.next(), words.nth(1)) {
                first.insert(name, at.entry(address).or_insert(name));
            }
        }
        let called = |name: &str| -> String {
            match name {
                "[unknown]" | "[guest user]" => "[guest]".to_owned(),
                name => first.get(name).map_or(name, |first| first).to_owned(),
            }
        };
        let modules = write_text(&proc, "modules", &read_text(&folder.join("guest-modules")));
        let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
        let text = read_text(&folder.join("perf-script-kvm-flat.txt.zst"));
        for line in text
            .lines()
            .filter(|line| line.trim_start().starts_with(':'))
        {
            let (_, place) = line.split_once("cycles:").unwrap();
            let name = place.split_whitespace().nth(1).unwrap();
            *theirs.entry(called(name)).or_default() += 1;
        }
        samples += theirs.values().sum::<u64>();
        let recording = recording(&folder, "perf.data.kvm");
        let by_file = FixtureQuestion::new().beside(|beside| {
            beside.guest_kallsyms = Some(symbols.clone());
            beside.guest_modules = Some(modules.clone());
        });
        let by_mount = FixtureQuestion::new()
            .beside(|beside| beside.guestmount = Some(mount.path().to_owned()));
        for asked in [by_file, by_mount] {
            let document = asked
                .stacks_document(&recording, with_idle())
                .expect("stacks");
            let functions = document["functions"].as_array().unwrap().iter();
            let guest = functions.filter(|function| function["part"] == "guest");
            let mut ours: BTreeMap<String, u64> = BTreeMap::new();
            for function in guest {
                let name = called(function["function"].as_str().unwrap());
                *ours.entry(name).or_default() += number(function, "self_samples");
            }
            let of_thread = theirs.iter().filter(|(name, n)| ours.get(*name) != Some(n));
            let differ: Vec<_> = of_thread
                .map(|(name, n)| (name, n, ours.get(name)))
                .collect();
            assert!(differ.is_empty(), "{name}: {differ:?}");
            assert_eq!(ours.len(), theirs.len(), "{name}");
        }
    }
    assert!(samples > 500, "{samples}");
}
