//! Guests' own stacks in pictures: two VMs whose recordings, texts of perf, have samples with stacks.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::ProfileOf;
use fixtures::sampled_guests::sampled_guests;
use fixtures::write_text;
use session::{NamedGuest, PictureOptions, RecordingStacks, Session, SessionOptions};

/// Bytes of a folded line.
const LINE: usize = 1 << 16;

/// A guest's recording of which nobody says whose it is.
fn guest(path: &Path) -> NamedGuest {
    NamedGuest {
        path: path.to_owned(),
        vm: None,
    }
}

/// The stacks that the page of `report` has.
fn of_page(host: &Path, guests: &[NamedGuest]) -> Vec<RecordingStacks> {
    let session = Session::open(SessionOptions::default()).expect("a session");
    let hosts = session.hosts(&[host.to_owned()], guests).expect("a host");
    let taken = hosts[0].picture(&PictureOptions::to_report());
    taken.expect("a picture").flames
}

fn folded(flame: &RecordingStacks) -> Vec<String> {
    let mut lines = Vec::new();
    stacks::folded(&flame.report.stacks, LINE, &mut |line: &str| {
        lines.push(line.to_owned());
    });
    lines.sort();
    lines
}

fn total(lines: &[String]) -> u64 {
    let weights = lines.iter().map(|line| {
        let (_, weight) = line.rsplit_once(' ').expect("a weight");
        weight.parse::<u64>().expect("a number")
    });
    weights.sum()
}

#[test]
fn stacks_of_guests_stand_in_the_place_of_what_the_host_knows() {
    let files = sampled_guests();
    let alone = of_page(&files.host, &[]);
    let plain = folded(&alone[0]);
    assert!(alone[0].guests.is_empty());
    let (web, db) = (&files.web, &files.db);
    let none = |path: &PathBuf| (path.clone(), None);
    let said = |path: &PathBuf, vm: &str| (path.clone(), Some(vm.to_owned()));
    for (guests, mains) in [
        (vec![none(web)], vec!["web_main"]),
        (vec![none(db)], vec!["db_main"]),
        (vec![none(web), none(db)], vec!["web_main", "db_main"]),
        (
            vec![said(db, "200"), said(web, "100")],
            vec!["web_main", "db_main"],
        ),
    ] {
        let named: Vec<NamedGuest> = guests
            .iter()
            .map(|(path, vm)| NamedGuest {
                path: path.clone(),
                vm: vm.clone(),
            })
            .collect();
        let flames = of_page(&files.host, &named);
        assert_eq!(flames.len(), alone.len());
        let ours = folded(&flames[0]);
        // Nothing is lost and nothing is added.
        assert_eq!(total(&ours), total(&plain), "{guests:?}");
        for main in ["web_main", "db_main"] {
            let there = ours.iter().any(|line| line.contains(main));
            assert_eq!(there, mains.contains(&main), "{guests:?}: {main}");
        }
        let rest = |line: &&String| line.contains("[guest.kernel.kallsyms]");
        assert_eq!(ours.iter().any(|line| rest(&line)), mains.len() == 1);
        // It is said what was put in, and in whose place.
        let names: Vec<String> = guests
            .iter()
            .map(|(path, _)| path.display().to_string())
            .collect();
        assert_eq!(flames[0].guests, names);
        for name in &names {
            let notes = flames[0].doubts.texts();
            let notes = notes.iter();
            let mut notes = notes.filter(|note| note.starts_with(name.as_str()));
            let note = notes.next().expect("a note");
            assert!(note.contains("by events of KVM"), "{note}");
        }
    }
}

/// A guest without samples changes nothing, and stacks that have no place are reported.
#[test]
fn stacks_that_are_not_there_or_have_no_place_change_nothing() {
    let files = sampled_guests();
    let folder = files.folder.path();
    let plain = of_page(&files.host, &[]);
    // Samples of texts stand apart by empty lines.
    let without = |path: &Path, word: &str| -> String {
        let text = fs::read_to_string(path).expect("a text");
        let mut kept = String::new();
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            let mut whole = line.to_owned();
            while let Some(more) = lines.next_if(|more| more.starts_with('\t') || *more == "\n") {
                whole.push_str(more);
            }
            if !whole.contains(word) {
                kept.push_str(&whole);
            }
        }
        kept
    };
    let silent = write_text(folder, "silent.txt", &without(&files.web, "cpu-clock"));
    let flames = of_page(&files.host, &[guest(&silent)]);
    assert_eq!(folded(&flames[0]), folded(&plain[0]));
    assert_eq!(flames[0].doubts, plain[0].doubts);
    assert!(flames[0].guests.is_empty());
    // The host's samples know nothing of guests.
    let blind = write_text(folder, "blind.txt", &without(&files.host, "[guest."));
    let plain = of_page(&blind, &[]);
    let flames = of_page(&blind, &[guest(&files.web)]);
    assert_eq!(folded(&flames[0]), folded(&plain[0]));
    assert!(flames[0].guests.is_empty());
    let said = flames[0].doubts.texts().join(" ");
    assert!(said.contains("none of it is shown"), "{said}");
    for flame in of_page(&files.host, &[guest(&files.web)]) {
        assert!(flame.report.of == ProfileOf::OnCpu || flame.guests.is_empty());
    }
}
