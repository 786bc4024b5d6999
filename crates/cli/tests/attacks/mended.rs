//! What attacks have found, made small.

use super::checks;

/// Reads an input in every way.
fn read(text: impl AsRef<[u8]>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    std::fs::write(&path, text).expect("a file");
    (0..8).for_each(|which| checks::recording(&path, which));
}

/// A vCPU's thread falls asleep in the kernel, and has a CPU again before that.
#[test]
fn a_vcpu_wakes_before_it_slept() {
    read(include_str!("went_back.txt"));
}
