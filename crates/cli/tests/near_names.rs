//! A name that is hardly mistyped is answered with the one that was meant, and filters that choose nothing with what
//! there is to choose.

use crate::common::{Failures, case, run};

#[test]
fn a_mistyped_name_is_answered_with_the_near_one() {
    let mut failures = Failures::default();
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    let path = path.display().to_string();
    for (args, status, meant) in [
        (
            &["events", &path, "--event", "kvm_exti"][..],
            1,
            "'kvm_exit'",
        ),
        (
            &["events", &path, "--event", "sched:sched_swich*"],
            1,
            "'sched:sched_switch'",
        ),
        (&["events", &path, "--event", "zebra"], 1, ""),
        (&["paths", &path, "--path", "irqdf"], 2, "'irqfd'"),
        (&["paths", &path, "--path", "zebra"], 2, ""),
        (&["rules", "timer-port-exit"], 2, "'timer-port-exits'"),
        (&["rules", "zebra"], 2, ""),
        (
            &["diagnose", &path, "--rule", "halt-pol-waste"],
            2,
            "'halt-poll-waste'",
        ),
        (&["exits", &path, "--vm", "tinywm"], 1, "'tinyvm'"),
        (&["exits", &path, "--vm", "zebra"], 1, ""),
        (&["exitts", &path], 2, "'exits'"),
    ] {
        let run = run(args);
        let what = format!("{args:?}: {}", run.stderr);
        failures.equal(&what, &run.status, &status);
        let asked = run.stderr.contains("did you mean") || run.stderr.contains("similar");
        failures.equal(&what, &asked, &!meant.is_empty());
        failures.check(run.stderr.contains(meant), || what.clone());
        failures.check(run.stdout.is_empty(), || run.text());
    }
    failures.finish(44);
}

/// Every command that takes filters, with what it takes beside the recording.
const COMMANDS: [&[&str]; 16] = [
    &["report"],
    &["diagnose"],
    &["info"],
    &["events"],
    &["exits"],
    &["vcpus"],
    &["irqs"],
    &["paths"],
    &["sched"],
    &["flame", "--off-cpu"],
    &["export", "--as", "md"],
    &["export", "--as", "json"],
    &["export", "--as", "csv"],
    &["export", "--as", "csv", "--table", "events"],
    &["export", "--as", "csv", "--table", "instances"],
    &["export", "--as", "pftrace"],
];

#[test]
fn filters_that_choose_nothing_say_what_there_is() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    let vms = ["process 1689, vCPUs 0-1", "process 1691, vCPUs 0-1"];
    for (filter, words) in [
        (
            ["--time", "0,1"],
            &["times ", "CPUs 0-5", "--time 0,1 is outside"][..],
        ),
        (
            ["--cpu", "4000"],
            &["times ", "CPUs 0-5", "no event is on --cpu 4000"],
        ),
        (["--pid", "1999999"], &["1999999"]),
        (["--vm", "nosuch"], &["called nosuch"]),
        (["--vcpu", "77"], &["vCPU 77"]),
    ] {
        for command in COMMANDS {
            let args = command.iter().copied().chain(filter).chain([path.as_str()]);
            let run = run(args);
            let what = format!("{command:?} {filter:?}: {}", run.stderr);
            failures.equal(&what, &run.status, &1);
            failures.equal(&what, &run.stderr.lines().count(), &1);
            failures.check(run.stdout.is_empty(), || what.clone());
            for word in words.iter().chain(&vms).chain(&["trapline info"]) {
                failures.check(run.stderr.contains(word), || format!("{what}: no {word}"));
            }
        }
    }
    failures.finish(500);
}

/// Who chooses something that is there, and finds nothing of a kind, has an answer.
#[test]
fn filters_that_choose_something_are_no_error() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    let path = path.display().to_string();
    for args in [
        ["info", "--pid", "1689"],
        ["sched", "--vcpu", "1"],
        ["paths", "--cpu", "0"],
        ["irqs", "--vm", "1691"],
    ] {
        let run = run(args.into_iter().chain([path.as_str()]));
        failures.equal(&format!("{args:?}: {}", run.stderr), &run.status, &0);
    }
    failures.finish(4);
}
