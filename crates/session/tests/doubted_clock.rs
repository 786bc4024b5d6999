//! Recordings whose clock says a time at which nobody records.

use session::{PictureOptions, Session, SessionOptions};

/// Returns the ids of the doubts about the picture of an exit and an entry at a time, in seconds.
fn doubts(seconds: u64) -> Vec<&'static str> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.txt");
    let line =
        |us: u64, event: &str| format!("  CPU 0/KVM-1010  [001] {seconds}.{us:06}: {event}\n");
    let text = [
        line(1, "kvm_entry: vcpu 0, rip 0xffffffff81a17a0b"),
        line(
            5,
            "kvm_exit: vcpu 0 reason HLT rip 0xffffffff81a17a0b info1 0 info2 0",
        ),
        line(9, "kvm_entry: vcpu 0, rip 0xffffffff81a17a0b"),
    ];
    std::fs::write(&path, text.concat()).expect("a file");
    let session = Session::open(SessionOptions::default()).expect("nothing beside");
    let input = session.input(&path).expect("a file");
    let taken = input
        .picture(&PictureOptions::default())
        .expect("a picture");
    taken.picture.quality.doubts.ids()
}

#[test]
fn the_year_2500_is_doubted_and_this_century_is_not() {
    let ids = doubts(16_725_225_600);
    assert!(ids.contains(&"clock-implausible"), "{ids:?}");
    // Hours after the machine began, and a date of these years.
    for seconds in [7_000, 1_790_000_000] {
        let ids = doubts(seconds);
        assert!(!ids.contains(&"clock-implausible"), "{seconds}: {ids:?}");
    }
}
