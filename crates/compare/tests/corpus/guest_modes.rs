//! Comparisons of samples in guests: their kernels apart from their user space.

use std::fmt::Write as _;
use std::path::PathBuf;

use fixtures::made_folder::MadeFolder;
use fixtures::perf_data;
use serde_json::Value;

use crate::document;
use fixtures::json::{list, text};

/// Writes 6 s of a vCPU with a sample each 2 ms: of a hundred so many are in the guest's kernel, so many in its user
/// space, and the others in the host's kernel.
fn record(folder: &MadeFolder, name: &str, kernel: u64, user: u64) -> PathBuf {
    let mut lines = String::new();
    for tick in 0..3000u64 {
        let us = 10_000_000 + tick * 2000;
        // 7 and 100 have no divisor in common, so each of a hundred comes as often.
        let (file, address) = match tick * 7 % 100 {
            part if part < kernel => (
                "[guest.kernel.kallsyms]",
                "ffffffff81001020 clear_page_erms+0x20",
            ),
            part if part < kernel + user => ("[guest.user]", "7f0000001020 main+0x20"),
            _ => ("[kernel.kallsyms]", "ffffffff81002020 vmx_vcpu_run+0x20"),
        };
        writeln!(
            lines,
            "CPU 0/KVM 4001/4002 [000] {}.{:06}: 2000000 cpu-clock:\n\t{address} ({file})",
            us / 1_000_000,
            us % 1_000_000
        )
        .unwrap();
    }
    folder.write(name, perf_data::write(&lines, true).bytes)
}

fn all(document: &Value, what: &str) -> Option<Value> {
    let members = ["changes", "likely", "noise"].into_iter();
    let mut all = members.flat_map(|member| list(&document[member]));
    all.find(|change| change["what"] == what).cloned()
}

#[test]
fn a_guests_kernel_is_apart_from_its_programs() {
    let folder = MadeFolder::new();
    let a = record(&folder, "a", 10, 60);
    let b = record(&folder, "b", 50, 20);
    let found = document(&a, &b);
    for (what, wanted) in [
        ("cpu guest kernel", [0.1, 0.5]),
        ("cpu guest user", [0.6, 0.2]),
    ] {
        let change = all(&found, what).unwrap_or_else(|| panic!("no {what} in {found:#}"));
        assert_eq!(
            (&change["unit"], &change["worse"]),
            (&"ns".into(), &Value::Null)
        );
        for (side, share) in ["a", "b"].iter().zip(wanted) {
            let value = change[side].as_f64().unwrap() / 1e9;
            assert!((value - share).abs() < 0.01, "{change}");
        }
        let is_change = list(&found["changes"])
            .iter()
            .any(|one| one["what"] == what);
        assert!(is_change, "{what} in {found:#}");
    }
    let words = text(&all(&found, "cpu guest kernel").unwrap()["text"]);
    assert!(
        words.starts_with("Guests' kernels took 10 % and then 50 % of a CPU"),
        "{words}"
    );
}

#[test]
fn the_same_and_what_has_no_guest_is_no_news() {
    let folder = MadeFolder::new();
    let a = record(&folder, "a", 30, 30);
    let same = document(&a, &a);
    assert!(list(&same["changes"]).is_empty(), "{same:#}");
    // One side has no samples in guests: what its recorder left out is no change.
    let host = record(&folder, "host", 0, 0);
    let found = document(&a, &host);
    assert!(all(&found, "cpu guest kernel").is_none(), "{found:#}");
}
