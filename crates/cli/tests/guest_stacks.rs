//! Guests' own stacks in the flame graphs of `report` and `flame`: both have the same, and name the command that shows
//! them. What the stacks are is in `crates/session/tests/guest_stacks.rs`.

use std::fs;
use std::path::Path;

use fixtures::answers::{FoldedStacks, folded_stacks, read_folded_stacks};
use fixtures::sampled_guests::sampled_guests;
use session::{NamedGuest, PictureOptions, Session, SessionOptions};

use crate::common::list;
use crate::common::{json, number, run, write_text};
use crate::guests::over;

/// The stacks that the page of `report` has.
fn of_page(host: &Path, guests: &[NamedGuest]) -> FoldedStacks {
    let session = Session::open(SessionOptions::default()).expect("a session");
    let hosts = session.hosts(&[host.to_owned()], guests).expect("a host");
    let taken = hosts[0].picture(&PictureOptions::to_report());
    folded_stacks(&taken.expect("a picture").flames[0].report)
}

/// What `trapline flame` writes.
fn of_flame(folder: &Path, host: &Path, guests: &[String]) -> FoldedStacks {
    let out = folder.join("out.folded");
    let paths = [host, &out].map(|path| path.display().to_string());
    let mut args = vec!["flame", &paths[0], "-o", &paths[1]];
    args.extend(guests.iter().map(String::as_str));
    let run = run(args);
    assert_eq!(run.status, 0, "{}", run.stderr);
    read_folded_stacks(&fs::read_to_string(out).expect("it was written"))
}

#[test]
fn the_page_has_the_stacks_that_flame_has() {
    let files = sampled_guests();
    for guests in [
        &[][..],
        &[(&files.web, None)],
        &[(&files.db, None)],
        &[(&files.web, None), (&files.db, None)],
        &[(&files.db, Some("200")), (&files.web, Some("100"))],
    ] {
        let named = guests.iter().map(|(path, vm)| NamedGuest {
            path: (*path).clone(),
            vm: vm.map(str::to_owned),
        });
        let given = guests.iter().map(|(path, vm)| match vm {
            Some(vm) => format!("--guest={vm}={}", path.display()),
            None => format!("--guest={}", path.display()),
        });
        let given: Vec<String> = given.collect();
        let ours = of_page(&files.host, &named.collect::<Vec<_>>());
        assert!(ours.len() >= 4, "{given:?}");
        assert_eq!(
            ours,
            of_flame(files.folder.path(), &files.host, &given),
            "{given:?}"
        );
    }
}

#[test]
fn the_page_names_the_command_that_shows_the_same() {
    let files = sampled_guests();
    let page = files.folder.path().join("page.html");
    let written = format!("-o{}", page.display());
    let guests = [&files.web, &files.db].map(|path| format!("--guest={}", path.display()));
    let more = [written.as_str(), &guests[0], &guests[1]];
    let run = over("report", &[&files.host], &more);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let html = fs::read_to_string(&page).expect("it was written");
    let command = format!(
        "trapline flame {} {}",
        files.host.display(),
        guests.join(" ")
    );
    assert!(html.contains(&command), "no {command}");
    assert!(html.contains("web_main") && html.contains("db_main"));
    // Both VMs' vCPUs are distinguished there.
    let document = json(&["flame", &guests[0], &guests[1]], &files.host).expect("stacks");
    let spliced = list(&document["spliced"]);
    let of: Vec<(u64, u64)> = spliced
        .iter()
        .map(|one| (number(one, "vm_pid"), number(one, "vcpu")))
        .collect();
    assert_eq!(of, [(100, 0), (100, 1), (200, 0), (200, 1)]);
}

#[test]
fn guests_that_have_no_place_are_refused() {
    let files = sampled_guests();
    let text = fs::read_to_string(&files.web).expect("a text");
    let wakeups = text.lines().filter(|line| line.contains("sched_wakeup"));
    let wakeups: String = wakeups.map(|line| format!("{line}\n\n")).collect();
    let silent = write_text(files.folder.path(), "silent.txt", &wakeups);
    let guest = |vm: &str, path: &Path| format!("--guest={vm}{}", path.display());
    let refused = over("flame", &[&files.host], &[&guest("", &silent)]);
    assert!(
        refused.stderr.contains("holds no samples"),
        "{}",
        refused.stderr
    );
    // The host's samples know nothing of guests.
    let text = fs::read_to_string(&files.host).expect("a text");
    let mut samples = text
        .split_inclusive("\n\n")
        .map(str::to_owned)
        .collect::<Vec<_>>();
    for sample in samples.iter_mut().filter(|one| one.contains("[guest.")) {
        // Events of KVM stand before a sample, a line each.
        let kept = sample.lines().filter(|line| line.contains(" kvm:"));
        *sample = kept.map(|line| format!("{line}\n")).collect();
    }
    let blind = write_text(files.folder.path(), "blind.txt", &samples.concat());
    let refused = over("flame", &[&blind], &[&guest("", &files.web)]);
    assert!(
        refused.stderr.contains("none of it is shown"),
        "{}",
        refused.stderr
    );
    let twice = [guest("100=", &files.web), guest("100=", &files.db)];
    let run = over("flame", &[&files.host], &[&twice[0], &twice[1]]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("has another recording"),
        "{}",
        run.stderr
    );
}
