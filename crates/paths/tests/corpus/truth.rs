//! What the paths say of real recordings, against truth from elsewhere: the steps that published investigations give,
//! the log of a guest's pings, the emulated machine's own list of what its pings met, and counts made a second time
//! from the text of the events.

use fixtures::event_lines::{TEXT_NS, near};
use fixtures::instances::{InstanceRow, instances, path_reports, said};
use fixtures::json::{list, number, text};
use fixtures::pings::{PingRecording, WAS, WRITES, consoles, writes_of};
use fixtures::related::related;
use fixtures::{CorpusCase, Failures, FixtureQuestion, case, note};
use serde_json::Value;

/// Checks that a path has one instance in a recording, with these steps at these microseconds of its second.
fn only(
    failures: &mut Failures,
    case: &CorpusCase,
    path: &str,
    second: u64,
    steps: &[(&str, u64)],
) {
    let found = instances(&case.path, path);
    failures.equal(&format!("{}: instances", case.name), &found.len(), &1);
    let Some(one) = found.first() else { return };
    let expected = steps.iter();
    let expected: Vec<(String, u64)> = expected
        .map(|(name, us)| ((*name).to_owned(), (second * 1_000_000 + us) * 1000))
        .collect();
    failures.equal(&case.name, &one.steps, &expected);
    let total = expected.last().map_or(0, |last| last.1) - expected[0].1;
    failures.equal(&format!("{}: total", case.name), &one.total, &total);
    let report = &path_reports(&case.path, &FixtureQuestion::new().path(path))[path];
    let what = format!("{}: the report's", case.name);
    failures.equal(&format!("{what} count"), &number(report, "count"), &1);
    let sum: u64 = list(&report["stages"])
        .iter()
        .map(|s| number(s, "total_ns"))
        .sum();
    failures.equal(&format!("{what} stages"), &sum, &total);
    failures.equal(
        &format!("{what} drops"),
        &report["dropped"],
        &Value::Object(Default::default()),
    );
}

/// The two annotated fragments of one kick each: 568 us through a thread of the VMM, with a vCPU that sleeps until it
/// is woken; 187 us through a vhost thread, with one that does not.
#[test]
fn a_kick_through_the_vmm_and_one_through_vhost() {
    let mut failures = Failures::default();
    let virtio = case("seed-text/case4-virtio.trace-cmd.txt");
    let steps = [
        ("notified", 923_910),
        ("back end woken", 923_919),
        ("back end on CPU", 923_936),
        ("work", 924_129),
        ("interrupt", 924_377),
        ("accepted", 924_379),
        ("vCPU woken", 924_386),
        ("vCPU on CPU", 924_402),
        ("next access", 924_478),
    ];
    only(&mut failures, &virtio, "kick", 7593, &steps);
    let vhost = case("seed-text/case4-vhost.trace-cmd.txt");
    let steps = [
        ("notified", 209_498),
        ("back end woken", 209_512),
        ("back end on CPU", 209_525),
        ("work", 209_533),
        ("handed over", 209_568),
        ("interrupt", 209_649),
        ("accepted", 209_651),
        ("in guest", 209_672),
        ("next access", 209_685),
    ];
    only(&mut failures, &vhost, "kick", 83328, &steps);
    for (case, by, total) in [
        (virtio, "VMM thread", 568_000),
        (vhost, "vhost thread", 187_000),
    ] {
        let report = &path_reports(&case.path, &FixtureQuestion::new())["kick"];
        let groups: Vec<String> = list(&report["groups"])
            .iter()
            .map(|g| text(&g["label"]))
            .collect();
        failures.equal(&case.name, &groups, &vec![by.to_owned()]);
        failures.equal(&case.name, &number(&report["total"], "max_ns"), &total);
    }
    failures.finish(14);
}

/// The stages of one interrupt through a kworker, as its investigation lists them, and the instance of 1372 us that
/// was slow because its vCPU was running already.
#[test]
fn an_interrupt_through_a_kworker() {
    let mut failures = Failures::default();
    let begin = 267_113;
    let steps = [
        ("eventfd", begin),
        ("irqfd_wakeup", begin),
        ("kworker woken", begin + 98),
        ("kworker on CPU", begin + 105),
        ("irqfd_inject", begin + 111),
        ("vCPU woken", begin + 154),
        ("vCPU on CPU", begin + 181),
    ];
    let stages = case("seed-text/case1-stages.trace-cmd.txt");
    only(&mut failures, &stages, "irqfd", 97, &steps);
    let steps = [
        ("irqfd_inject", 97_055),
        ("vCPU woken", 97_059),
        ("vCPU on CPU", 97_105),
    ];
    let short = case("seed-text/case1-irqfd.trace-cmd.txt");
    only(&mut failures, &short, "irqfd", 1_212_277, &steps);

    let slow = case("seed-text/case1-slow-ping.sched.txt");
    let found = instances(&slow.path, "irqfd");
    failures.equal("instances of the slow ping", &found.len(), &3);
    let us = |time: u64| time / 1000 - 117_106_000_000;
    let steps: Vec<Vec<(&str, u64)>> = found
        .iter()
        .map(|one| {
            one.steps
                .iter()
                .map(|(n, at)| (n.as_str(), us(*at)))
                .collect()
        })
        .collect();
    let expected = vec![
        vec![
            ("kworker woken", 895_265),
            ("vCPU woken", 895_276),
            ("vCPU on CPU", 895_320),
        ],
        vec![
            ("kworker woken", 895_821),
            ("kworker on CPU", 895_824),
            ("kworker done", 895_827),
            ("answered", 897_199),
        ],
        vec![
            ("kworker woken", 897_199),
            ("kworker on CPU", 897_202),
            ("vCPU woken", 897_204),
            ("vCPU on CPU", 897_248),
        ],
    ];
    failures.equal("steps of the slow ping", &steps, &expected);
    let vcpus: Vec<i32> = found.iter().map(|one| one.vcpu).collect();
    failures.equal("vCPUs of the slow ping", &vcpus, &vec![6912, 6912, 6853]);
    let report = &path_reports(&slow.path, &FixtureQuestion::new())["irqfd"];
    let slowest = &report["slow"]["slowest"];
    failures.equal("the slowest", &number(slowest, "instance"), &2);
    failures.equal("slow ones", &number(&report["slow"], "count"), &1);
    let why = text(&slowest["text"]);
    for part in [
        "CPU 0/KVM:6912",
        "already running",
        "'kworker done' to 'answered'",
    ] {
        failures.check(why.contains(part), || format!("not {part}: {why}"));
    }
    failures.check(found[1].has("vCPU was running"), || {
        format!("{:?}", found[1])
    });
    failures.finish(18);
}

/// Every ping has its interrupt, at its time, about its vCPU, which was doing what the table says.
#[test]
fn interrupts_are_those_of_the_pings() {
    let mut failures = Failures::default();
    for console in consoles() {
        let name = &console.case.name;
        let found = instances(&console.case.path, "irqfd");
        let nic: Vec<&InstanceRow> = found.iter().filter(|one| console.is_nic(one)).collect();
        for ping in &console.pings {
            let Some((accepted, wait)) = ping.interrupt else {
                // The one before was pending still: it has none of its own.
                let own = nic.iter().filter(|one| {
                    one.at("accepted")
                        .is_some_and(|at| (ping.request..=ping.reply).contains(&at))
                });
                failures.equal(&format!("{name}: {ping:?}"), &own.count(), &0);
                continue;
            };
            let own: Vec<&&InstanceRow> = nic
                .iter()
                .filter(|one| one.at("accepted").is_some_and(|at| near(at, accepted)))
                .collect();
            failures.equal(&format!("{name}: {ping:?}"), &own.len(), &1);
            let Some(one) = own.first() else { continue };
            let ours = one.at("injected").map(|at| at - accepted);
            failures.check(
                ours.is_some_and(|ours| ours.abs_diff(wait) <= 2 * TEXT_NS),
                || format!("{name}: {ping:?} waited, ours {ours:?}"),
            );
            let was = one
                .features
                .iter()
                .filter_map(|f| f.strip_prefix("vCPU was "));
            let was: Vec<&str> = was.filter(|was| WAS.contains(was)).collect();
            let may = console.was(ping, accepted);
            failures.check(was.len() == 1 && may.contains(&was[0]), || {
                format!("{name}: {ping:?}: the vCPU was {may:?}, ours {was:?}")
            });
        }
        // What each instance says of the serial port is what was written in its time.
        for one in &found {
            let (writes, has) = (console.writes_during(one), writes_of(one));
            let holds = has <= writes
                && (writes < 2 * has.max(1) || has == 256)
                && (has > 0 || writes == 0);
            failures.check(holds, || {
                format!("{name}: {writes} writes, has {has}: {one:?}")
            });
        }
    }
    failures.finish(2000);
}

/// What is said of slow interrupts where the vCPU prints: that the time went between accepted and injected, that the
/// vCPU was running already, and that it exited to its VMM on the serial port. The shares are counted again.
#[test]
fn a_printing_vcpu_is_found_to_be_why() {
    let mut failures = Failures::default();
    for console in consoles().iter().filter(|console| console.sick) {
        let name = &console.case.name;
        let path = &console.case.path;
        let found = instances(path, "irqfd");
        for asked in [
            FixtureQuestion::new(),
            FixtureQuestion::new().slow(10_000_000),
        ] {
            let report = &path_reports(path, &asked)["irqfd"];
            let threshold = number(&report["slow"], "threshold_ns");
            let (slow, fast): (Vec<&InstanceRow>, Vec<&InstanceRow>) =
                found.iter().partition(|one| one.total >= threshold);
            failures.equal(
                name,
                &number(&report["slow"], "count"),
                &(slow.len() as u64),
            );
            explained(&mut failures, console, report, &slow, &fast);
            let nic = slow
                .iter()
                .filter(|one| console.is_nic(one) && one.total >= 10_000_000);
            for one in nic {
                failures.check(writes_of(one) > 0, || format!("{name}: no writes: {one:?}"));
            }
            let why = text(&report["slow"]["slowest"]["text"]);
            for part in ["'accepted' to 'injected'", "port 0x3f8 write"] {
                failures.check(why.contains(part), || format!("{name}: not {part}: {why}"));
            }
        }
        // The other way round: no ping's interrupt waited for long but for printing.
        let long = found
            .iter()
            .filter(|one| console.is_nic(one) && one.total > 30_000_000);
        let mut count = 0;
        for one in long {
            let at = one.at("accepted").unwrap_or(0);
            let ping = console
                .pings
                .iter()
                .find(|p| (p.request..=p.reply).contains(&at));
            failures.check(ping.is_some_and(|ping| ping.prints), || {
                format!("{name}: {ping:?} did not meet printing: {one:?}")
            });
            count += 1;
        }
        failures.check(count >= 10, || format!("{name}: {count} long interrupts"));
    }
    failures.finish(40);
}

fn explained(
    failures: &mut Failures,
    console: &PingRecording,
    report: &Value,
    slow: &[&InstanceRow],
    fast: &[&InstanceRow],
) {
    let name = &console.case.name;
    let because = list(&report["slow"]["because"]);
    let reason = |begin: &str| {
        because.iter().find(|one| {
            one["feature"]
                .as_str()
                .is_some_and(|f| f.starts_with(begin))
        })
    };
    let mut shares = |begin: &str, count: &dyn Fn(&[&InstanceRow]) -> f64| {
        let one = reason(begin);
        failures.check(one.is_some(), || {
            format!("{name}: not said: {begin}: {because:?}")
        });
        let (slow, fast) = (count(slow), count(fast));
        if let Some(one) = one {
            let has = (one["slow_share"].as_f64(), one["fast_share"].as_f64());
            let same = has.0.is_some_and(|has| (has - slow).abs() < 1e-9)
                && has.1.is_some_and(|has| (has - fast).abs() < 1e-9);
            failures.check(same, || {
                format!("{name}: {begin}: {has:?}, counted {slow} {fast}")
            });
        }
        (slow, fast)
    };
    let time = shares("time in accepted → injected", &|all| {
        let stage: u64 = all
            .iter()
            .map(|one| one.stage("accepted", "injected"))
            .sum();
        stage as f64 / all.iter().map(|one| one.total).sum::<u64>() as f64
    });
    let at_least =
        reason(WRITES).and_then(|one| one["feature"].as_str()?.strip_prefix(WRITES)?.parse().ok());
    let at_least: u64 = at_least.unwrap_or(1);
    let share = |all: &[&InstanceRow], holds: &dyn Fn(&InstanceRow) -> bool| {
        all.iter().filter(|one| holds(one)).count() as f64 / all.len() as f64
    };
    let wrote = shares(WRITES, &|all| {
        share(all, &|one| console.writes_during(one) >= at_least)
    });
    let busy = shares("vCPU was running", &|all| {
        share(all, &|one| console.is_running(one))
    });
    for one in slow.iter().chain(fast) {
        let (has, was) = (one.has("vCPU was running"), console.is_running(one));
        failures.check(has == was, || {
            format!("{name}: running {was}, has {has}: {one:?}")
        });
    }
    note(&format!(
        "{name}: time {time:?}, wrote {at_least} {wrote:?}, running {busy:?}"
    ));
    // Half of the slowest twentieth is a few milliseconds for other reasons; none of the others printed.
    failures.check(time.0 > 0.8 && time.0 > time.1 + 0.3, || {
        format!("{name}: time {time:?}")
    });
    failures.check(wrote.0 >= 0.5 && wrote.1 < 0.01, || {
        format!("{name}: wrote {wrote:?}")
    });
    failures.check(busy.0 > 0.7 && busy.0 > busy.1 + 0.3, || {
        format!("{name}: running {busy:?}")
    });
}

/// Nothing of the kind is said where that vCPU does not print.
#[test]
fn a_vcpu_that_does_not_print_is_not_blamed() {
    let mut failures = Failures::default();
    for console in consoles().iter().filter(|console| !console.sick) {
        let name = &console.case.name;
        let path = &console.case.path;
        failures.equal(name, &console.writes(console.target, 0, u64::MAX / 2), &0);
        // Of that vCPU alone: no serial port on any path, and no waiting between accepted and injected.
        let only = path_reports(path, &FixtureQuestion::new().pid(console.target));
        failures.check(number(&only["irqfd"], "count") >= 250, || {
            format!("{name}: {only:?}")
        });
        for (which, report) in &only {
            for said in said(report) {
                failures.check(!said.contains("serial"), || {
                    format!("{name}: {which}: {said}")
                });
                let waited = which == "irqfd" && said.contains("'accepted' to 'injected'");
                failures.check(!waited, || format!("{name}: {which}: {said}"));
            }
        }
        // Of all: the command that starts the pings is typed on A's console, so single instances of A's do meet it.
        // It separates no slow ones, and what is said of the slowest happened.
        for (which, report) in &path_reports(path, &FixtureQuestion::new()) {
            for one in list(&report["slow"]["because"]) {
                let said = text(&one["text"]);
                failures.check(!said.contains("0x3f8"), || {
                    format!("{name}: {which}: {said}")
                });
                let waited =
                    which == "irqfd" && text(&one["feature"]).contains("accepted → injected");
                failures.check(!waited, || format!("{name}: {which}: {said}"));
            }
            let slowest = text(&report["slow"]["slowest"]["text"]);
            if which == "irqfd" {
                failures.check(!slowest.contains("serial"), || {
                    format!("{name}: {which}: {slowest}")
                });
            }
            if !slowest.contains("0x3f8") {
                continue;
            }
            let wanted = number(&report["slow"]["slowest"], "instance");
            let found = instances(path, which);
            let one = found
                .iter()
                .find(|one| one.number == wanted)
                .expect("the slowest");
            let (writes, has) = (console.writes_during(one), writes_of(one));
            failures.check(
                has > 0 && has <= writes && one.vcpu != console.target,
                || format!("{name}: {which}: {writes} writes: {slowest}"),
            );
        }
    }
    failures.finish(20);
}

/// The times that VM A printed for its pings are those between its kick that sends a request and the injection of the
/// interrupt that the reply makes.
///
/// Measured: r 0.994 where nobody prints and 0.9998 where B does, ranks 0.987 to 0.995; against the paths of the next
/// ping r -0.08 to 0.2, ranks 0.1 to 0.28. Bounds are in `related`.
#[test]
fn pings_take_what_their_kick_and_their_interrupt_take() {
    let mut failures = Failures::default();
    for console in consoles() {
        let name = &console.case.name;
        let others = |one: &&InstanceRow| one.vcpu != console.target;
        let kicks = instances(&console.case.path, "kick");
        let replies = instances(&console.case.path, "irqfd");
        // Both guests are one image with one card: interrupts for received packets have the same vector.
        let vector = format!("vector {}", console.vector);
        let accepted = console.accepted_by_others();
        let mut pairs = Vec::new();
        for (at, ping) in console.pings.iter().enumerate() {
            let next = console
                .pings
                .get(at + 1)
                .map_or(u64::MAX, |next| next.request);
            let kick = kicks.iter().filter(others).map(|one| one.start);
            let kick = kick.filter(|start| *start <= ping.request).max();
            let injected = replies
                .iter()
                .filter(others)
                .filter(|one| {
                    one.has(&vector) && one.at("accepted").is_some_and(|at| at >= ping.reply)
                })
                .filter_map(|one| one.at("injected"))
                .min();
            let Some(injected) = injected.filter(|at| *at < next) else {
                // A reply right behind another makes no interrupt: the guest is at it already.
                let own = accepted
                    .iter()
                    .any(|at| (ping.reply..next.min(ping.reply + 50_000_000)).contains(at));
                failures.check(!own, || {
                    format!("{name}: a reply's interrupt is missing: {ping:?}")
                });
                continue;
            };
            let sent = at
                .checked_sub(1)
                .map_or(0, |before| console.pings[before].request);
            failures.check(kick.is_some_and(|kick| kick > sent), || {
                format!("{name}: no kick of its own sends the request: {ping:?}")
            });
            pairs.push(((injected - kick.unwrap_or(sent)) as f64 / 1e6, ping.ms));
        }
        failures.check(pairs.len() >= 130, || {
            format!("{name}: {} pings", pairs.len())
        });
        related(&mut failures, name, &pairs);
    }
    failures.finish(300);
}
