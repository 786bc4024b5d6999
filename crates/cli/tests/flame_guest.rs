//! `flame --guest`: what a guest recorded stands below the vCPUs that ran it, and weighs what the host says that they
//! did.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixtures::answers::{FoldedStacks, read_folded_stacks};

use crate::common::{file, json, number, run};

fn folded(recording: &Path, more: &[&str]) -> FoldedStacks {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.folded");
    let paths = [recording, &out].map(|path| path.display().to_string());
    let args = ["flame", &paths[0], "-o", &paths[1]];
    let done = run(args.iter().chain(more));
    assert_eq!(done.status, 0, "{}", done.stderr);
    read_folded_stacks(&fs::read_to_string(out).unwrap())
}

/// What stands below each thread: in its guest, and in the host.
fn by_thread(folded: &FoldedStacks) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (stack, weight) in folded {
        let (thread, rest) = stack.split_once(';').unwrap_or((stack, ""));
        let sum = sums.entry(thread.to_owned()).or_default();
        match rest.starts_with("[guest") {
            true => sum.0 += weight,
            false => sum.1 += weight,
        }
    }
    sums
}

#[test]
fn host_and_guest_add_up() {
    let host = file("x86/flame-iperf3/l1.perf.data.zst");
    let guest = file("x86/flame-iperf3/l2/perf.data.zst");
    let guest_path = guest.display().to_string();
    let plain = folded(&host, &["--by", "thread"]);
    let spliced = folded(&host, &["--by", "thread", "--guest", &guest_path]);
    // Nothing is lost and nothing is added, thread by thread.
    assert_eq!(by_thread(&plain), by_thread(&spliced));
    // Below each vCPU, every stack of its CPU has the share that it has in the guest.
    let own = folded(&guest, &["--by", "cpu"]);
    for (vcpu, thread) in [(0, "CPU 0/KVM/2996"), (1, "CPU 1/KVM/2997")] {
        let begin = format!("{thread};[guest];");
        let below = spliced.iter().filter_map(|(stack, weight)| {
            let (_, stack) = stack.strip_prefix(&begin)?.split_once(';')?;
            Some((stack.to_owned(), *weight))
        });
        let mut theirs = FoldedStacks::new();
        for (stack, weight) in below {
            *theirs.entry(stack).or_default() += weight;
        }
        let begin = format!("CPU {vcpu};");
        let ours = own
            .iter()
            .filter_map(|(stack, weight)| Some((stack.strip_prefix(&begin)?.to_owned(), *weight)));
        let ours: FoldedStacks = ours.collect();
        assert!(
            ours.len() > 10 && ours.keys().eq(theirs.keys()),
            "vCPU {vcpu}"
        );
        let (all, whole) = (ours.values().sum::<u64>(), theirs.values().sum::<u64>());
        assert_eq!(whole, by_thread(&plain)[thread].0);
        for (stack, weight) in &ours {
            let share = *weight as f64 / all as f64 * whole as f64;
            // Several threads of the guest may have a stack, each rounded for itself.
            assert!(
                (share - theirs[stack] as f64).abs() < 8.0,
                "{stack}: {share}"
            );
        }
    }
    let document = json(&["flame", "--guest", &guest_path], &host).unwrap();
    let rows = document["spliced"].as_array().unwrap();
    let shares: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| (number(row, "vcpu"), number(row, "guest_samples")))
        .collect();
    assert_eq!(shares, [(0, 249), (1, 39)]);
    let error = rows[0]["error"].as_f64().unwrap();
    assert!((error - 0.98 / 249f64.sqrt()).abs() < 1e-6, "{error}");
    let quality = document["quality"].to_string();
    assert!(quality.contains("vCPUs by their names"), "{quality}");
}

#[test]
fn what_cannot_be_put_together_is_refused() {
    let host = file("x86/flame-iperf3/l1.perf.data.zst")
        .display()
        .to_string();
    let guest = file("x86/flame-iperf3/l2/perf.data.zst")
        .display()
        .to_string();
    let refused = |args: &[&str], why: &str| {
        let done = run(["flame"].iter().chain(args));
        assert_ne!(done.status, 0, "{args:?}");
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
    };
    refused(&[&host, "--guest", &format!("77={guest}")], "2989");
    refused(
        &[&host, "--guest", &format!("web={guest}")],
        "no VM that is called so",
    );
    // It may stand behind the host's as well, as other commands have it.
    let given = |args: &[&str]| run(["flame"].iter().chain(args)).text();
    let by_option = given(&[&host, "--guest", &format!("2989={guest}")]);
    assert_eq!(given(&[&host, &guest]), by_option);
    refused(&[&host, &guest, "--guest", &guest], "cannot be used with");
    // The guest has no vCPUs of its own.
    refused(&[&guest, "--guest", &host], "no thread");
    let switches = file("vmx/tiny-irqchip/perf.data.zst").display().to_string();
    refused(&[&host, "--guest", &switches], "holds no samples");
    // There is one guest's recording, and two of hosts; exits and waits are no time in a guest.
    for other in [&["--diff", &host][..], &["--off-cpu"], &["--guest-exits"]] {
        let args = [&[host.as_str(), "--guest", &guest], other].concat();
        refused(&args, "cannot be used with");
    }
    refused(&[&host, "--wakeup"], "--off-cpu or --both");
    refused(&[&host, "--off-cpu"], "sched_switch");
    refused(&[&switches, "--both"], "--off-cpu shows waits");
}
