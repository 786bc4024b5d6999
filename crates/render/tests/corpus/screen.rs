//! The first screen of recordings made by hand.

use std::collections::BTreeSet;

use fixtures::json::list;
use fixtures::many_vcpus::many_vcpus_text;
use fixtures::{FixtureQuestion, write_text};
use render::info::Head;
use render::screen::{ScreenInput, screen};
use serde_json::Value;
use session::{PictureOptions, Session, SessionOptions};

/// Returns the screen of a text of events.
fn screen_of(text: &str) -> (String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "many.txt", text);
    let session = Session::open(SessionOptions::default()).expect("it needs nothing");
    let pictures = session.pictures(std::slice::from_ref(&path), &PictureOptions::default());
    let picture = &pictures.expect("a picture")[0];
    let diagnosis = rules::diagnose(&[rules::Case {
        picture,
        facts: None,
        domain: None,
    }]);
    let head = Head {
        format: "a text".to_owned(),
        nanoseconds: true,
        ..Head::default()
    };
    let input = ScreenInput {
        name: "many.txt",
        more: "trapline report --full many.txt",
        filters: "",
        head: &head,
        picture,
        diagnosis: &diagnosis,
    };
    let lines = screen(&input, 80).into_iter();
    let lines = lines.map(|line| {
        line.spans
            .iter()
            .map(|span| span.text.as_str())
            .collect::<String>()
            + "\n"
    });
    let vcpus = FixtureQuestion::new().vcpus_document(&path).expect("vCPUs");
    (lines.collect(), vcpus)
}

/// A hundred and twenty vCPUs of forty VMs: a row for some of the VMs, and one for the others together.
#[test]
fn many_vcpus_are_summed_by_vm() {
    let (screen, vcpus) = screen_of(&many_vcpus_text(40));
    let rows = list(&vcpus["rows"]);
    assert_eq!(rows.len(), 120);
    let lines: Vec<Vec<&str>> = screen
        .lines()
        .skip_while(|line| !line.starts_with("vcpus: "))
        .skip(2)
        .take_while(|line| !line.starts_with("-:") && !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 6, "{screen}");
    let exits = |wanted: &dyn Fn(&Value) -> bool| -> u64 {
        let of = rows.iter().filter(|row| wanted(&row["vm_pid"]));
        of.filter_map(|row| row["exits"].as_u64()).sum()
    };
    let mut shown = Vec::new();
    for line in &lines[..5] {
        let pid: i64 = line[0].parse().expect("a process");
        assert_eq!(line[1], "3", "{line:?}");
        let sum = exits(&|vm| vm.as_i64() == Some(pid));
        assert_eq!(line.last(), Some(&sum.to_string().as_str()), "{line:?}");
        shown.push(pid);
    }
    // Those with most exits.
    let largest: BTreeSet<i64> = (35..40).map(|vm| 1000 + 10 * vm).collect();
    assert!(
        shown.iter().filter(|pid| largest.contains(pid)).count() >= 4,
        "{shown:?}"
    );
    let others = &lines[5];
    assert_eq!(&others[..2], &["others", "105"]);
    let sum = exits(&|vm| vm.as_i64().is_none_or(|pid| !shown.contains(&pid)));
    assert_eq!(others.last(), Some(&sum.to_string().as_str()));
}
