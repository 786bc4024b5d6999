//! The path `packet` against what pings printed, and `guest-ipi` and the others with guests' recordings: the pairs of
//! the corpus.

use std::path::{Path, PathBuf};

use fixtures::{Failures, FixtureQuestion, note, read_text};
use paths::InstanceReport;

/// The corpus that is not shipped, if it is there.
fn corpus() -> Option<PathBuf> {
    let at = std::env::var_os("TRAPLINE_CORPUS").map(PathBuf::from);
    let at =
        at.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    at.join("x86/console-sick").is_dir().then_some(at)
}

/// Returns the instances of a path in a host's recording, and in those of its guests.
fn instances(recordings: &[&Path], path: &str) -> Vec<InstanceReport> {
    let (host, guests) = recordings.split_first().expect("a host");
    let asked = FixtureQuestion::new().path(path);
    let asked = guests.iter().fold(asked, |asked, guest| asked.guest(guest));
    asked.instances(host).expect("it can be read")
}

fn start(one: &InstanceReport) -> u64 {
    one.steps.first().map_or(0, |step| step.time)
}

fn total(one: &InstanceReport) -> u64 {
    one.steps.last().map_or(0, |step| step.time) - start(one)
}

/// A ping: when its request was handed to tun, and what it printed, in nanoseconds.
struct Ping {
    request: u64,
    took: u64,
}

fn pings(table: &str) -> Vec<Ping> {
    let rows = table.lines().skip(1);
    let rows = rows.filter_map(|line| {
        let mut cells = line.split('\t').skip(1);
        let ms: f64 = cells.next()?.parse().ok()?;
        let seconds: f64 = cells.next()?.parse().ok()?;
        Some(Ping {
            request: (seconds * 1e9).round() as u64,
            took: (ms * 1e6).round() as u64,
        })
    });
    rows.collect()
}

/// How much two lists go together (Pearson's coefficient).
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (a, b) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let mut sums = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        sums.0 += (x - a) * (y - b);
        sums.1 += (x - a) * (x - a);
        sums.2 += (y - b) * (y - b);
    }
    sums.0 / (sums.1 * sums.2).sqrt()
}

/// Of each ping the one instance that had begun when its request was handed on, and was not over: its total and the
/// ping's.
fn matched(pings: &[Ping], instances: &[InstanceReport]) -> Vec<(f64, f64)> {
    let mut used = vec![false; instances.len()];
    let mut out = Vec::new();
    for ping in pings {
        let fits = |one: &InstanceReport| {
            let (start, total) = (start(one), total(one));
            // The tables have microseconds.
            start <= ping.request + 2_000 && ping.request <= start + total
        };
        let all = instances.iter().enumerate();
        let found = all
            .filter(|(at, one)| !used[*at] && fits(one))
            .max_by_key(|(_, one)| start(one));
        if let Some((at, one)) = found {
            used[at] = true;
            out.push((ping.took as f64, total(one) as f64));
        }
    }
    out
}

/// A round trip is one instance, and as long as the ping says but for what the guests do, which the host does not see.
#[test]
fn pings_are_packets_with_the_host_alone() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut failures = Failures::default();
    let mut checked = 0;
    for case in ["console-sick", "console-healthy"] {
        let folder = corpus.join("x86").join(case).join("run1");
        for (recording, table) in [
            ("trace.dat", "pings-trace-cmd.tsv"),
            ("perf.data.zst", "pings-perf.tsv"),
        ] {
            let name = format!("{case}/{recording}");
            let pings = pings(&read_text(&folder.join(table)));
            let all = instances(&[&folder.join(recording)], "packet");
            let matched = matched(&pings, &all);
            let correlation = correlation(&matched);
            note(&format!(
                "{name}: {} of {} pings, {} instances, correlation {correlation:.4}",
                matched.len(),
                pings.len(),
                all.len()
            ));
            checked += matched.len();
            failures.check(matched.len() + 1 >= pings.len(), || {
                format!("{name}: {} of {} pings", matched.len(), pings.len())
            });
            failures.check(all.len() <= pings.len() + 4, || {
                format!("{name}: {} instances", all.len())
            });
            failures.check(correlation > 0.95, || {
                format!("{name}: correlation {correlation}")
            });
        }
    }
    assert!(checked >= 590, "{checked} pings");
    failures.finish(12);
}

/// The same where QEMU is the back end: its main loop is at work with one packet when the next comes, and nobody wakes
/// it.
#[test]
fn pings_through_qemu_are_packets_too() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut failures = Failures::default();
    let folder = corpus.join("x86/vmping-vhost-off");
    for (recording, log) in [
        ("trace.dat", "l2-ping-during-trace-cmd.txt"),
        ("perf.data.zst", "l2-ping-during-perf.txt"),
    ] {
        let text = read_text(&folder.join(log));
        let printed = text.lines().filter_map(|line| {
            let (_, time) = line.split_once(" time=")?;
            time.strip_suffix(" ms")?.parse::<f64>().ok()
        });
        let printed: Vec<f64> = printed.collect();
        let all = instances(&[&folder.join(recording)], "packet");
        let totals: Vec<f64> = all.iter().map(|one| total(one) as f64 / 1e6).collect();
        // The recording ends before the pings do, and begins with one of the first. Both are in order; one instance may
        // be none of a ping.
        let mut best = 0.0f64;
        for first in 0..3 {
            for left_out in 0..=totals.len() {
                let of_pings = totals.iter().enumerate().filter(|(at, _)| *at != left_out);
                let pairs = printed.iter().skip(first).zip(of_pings);
                let pairs: Vec<(f64, f64)> =
                    pairs.map(|(ping, (_, total))| (*ping, *total)).collect();
                best = best.max(correlation(&pairs));
            }
        }
        note(&format!(
            "vmping-vhost-off/{recording}: {} instances, correlation {best:.4}",
            totals.len()
        ));
        // Pings are 200 ms apart, and the recordings 8 s long, of which the pings have less than all.
        failures.check((33..=37).contains(&totals.len()), || {
            format!("{recording}: {} instances", totals.len())
        });
        failures.check(best > 0.95, || format!("{recording}: correlation {best}"));
    }
    failures.finish(4);
}

/// What is found of the host does not depend on whether guests' recordings are given, and stages add up.
#[test]
fn guests_add_steps_and_change_none() {
    let Some(corpus) = corpus() else {
        return;
    };
    let mut failures = Failures::default();
    let pairs = [
        (
            "x86/host-guest-pingpong/host.dat",
            "x86/host-guest-pingpong/host-a.dat",
        ),
        (
            "arm64/virtio-mmio/boot2-vsock/trace.dat",
            "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat",
        ),
    ];
    let mut checked = 0;
    for (host, guest) in pairs {
        let (host, guest) = (corpus.join(host), corpus.join(guest));
        for (path, _) in paths::BUILTIN {
            let alone = instances(&[&host], path);
            let both = instances(&[&host, &guest], path);
            checked += alone.len();
            failures.check(alone == both, || {
                format!("{}: {path} differs with its guest", host.display())
            });
        }
        for (path, _) in paths::WITH_GUESTS {
            let found = [&[host.as_path(), &guest][..], &[&host]];
            for one in found.iter().flat_map(|given| instances(given, path)) {
                // There is one guest on each of these hosts.
                let chain = one.chain.as_deref();
                failures.check(chain != Some("guest to guest"), || format!("{one:?}"));
                let times: Vec<u64> = one.steps.iter().map(|step| step.time).collect();
                failures.check(times.is_sorted(), || format!("{path}: {one:?}"));
                checked += 1;
            }
        }
        // The host's part of an IPI is there whether its handler is recorded or not.
        let alone = instances(&[&host], "guest-ipi").len();
        let both = instances(&[&host, &guest], "guest-ipi").len();
        failures.equal(&format!("{}: IPIs", host.display()), &both, &alone);
    }
    // A program in the guest counted its round trips: each is a wake-up there and one back, most of an idle CPU.
    let (host, guest) = pairs[0];
    let printed = read_text(&corpus.join(host).with_file_name("l2-pingpong.txt"));
    let trips = printed
        .split_ascii_whitespace()
        .nth(3)
        .and_then(|count| count.parse::<f64>().ok());
    let trips = trips.expect("pingpong prints how many round trips it made");
    let all = instances(&[&corpus.join(host), &corpus.join(guest)], "guest-ipi");
    let having = |step: &str| {
        let named = |one: &&InstanceReport| one.steps.iter().any(|reached| *reached.name == *step);
        all.iter().filter(named).count() as f64
    };
    let (woken, on_cpu) = (having("guest: task woken"), having("guest: task on CPU"));
    note(&format!(
        "{trips} round trips: {woken} wake-ups, {on_cpu} on an idle CPU"
    ));
    failures.check((0.95..=1.0).contains(&(woken / (2.0 * trips))), || {
        format!("{woken} wake-ups of {trips} round trips")
    });
    failures.check((0.95..=1.0).contains(&(on_cpu / (2.0 * trips))), || {
        format!("{on_cpu} tasks on an idle CPU, of {trips} round trips")
    });
    assert!(checked > 10_000, "{checked} instances");
    failures.finish(1_000);
}

/// Interrupts of an irqfd are of the devices whose notifications wake the thread that raises them.
#[test]
fn irqfds_are_those_of_the_devices_that_their_raisers_work_for() {
    let mut failures = Failures::default();
    let mut named = 0;
    let causes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/causes");
    for name in ["vhost-waits-sick", "virtionet-healthy", "ping-healthy"] {
        let recording = causes.join(name).join("perf.data.zst");
        let (reports, _) = FixtureQuestion::new().paths(&recording).expect(name);
        let report = |name: &str| reports.iter().find(|one| one.name == name);
        let (Some(irqfd), Some(kick)) = (report("irqfd"), report("kick")) else {
            continue;
        };
        for group in &irqfd.groups {
            let Some((raiser, addresses)) = group.label.split_once(", for ") else {
                continue;
            };
            named += 1;
            let thread = raiser.split(',').next().unwrap_or_default();
            let address = addresses.split([' ', ',']).next().unwrap_or_default();
            let mut devices = kick.devices.iter();
            let works = devices.any(|device| {
                thread.ends_with(&format!(":{}", device.back_end_tid))
                    && device
                        .address
                        .is_some_and(|at| address == format!("{at:#x}"))
            });
            failures.check(works, || format!("{name}: {}", group.label));
        }
    }
    note(&format!("irqfds' groups with a device {named}"));
    failures.finish(3);
}
