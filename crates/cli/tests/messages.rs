//! Messages name what is wrong, not what is beside it.

mod common;

use std::fs;
use std::io::Write;

use common::{case, run, trapline};

fn refused(run: &common::Run, words: &[&str], not: &[&str]) {
    assert_eq!((run.status, run.stdout.len()), (1, 0), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    for word in words {
        assert!(
            run.stderr.contains(word),
            "{} does not say {word}",
            run.stderr
        );
    }
    for word in not {
        assert!(!run.stderr.contains(word), "{} says {word}", run.stderr);
    }
}

#[test]
fn a_path_that_is_not_there_is_said_to_be_neither_built_in_nor_a_file() {
    let path = case("x86/ipi-default/perf.kvm.pingpong.data.zst").path;
    let run = run([
        "paths".as_ref(),
        "--path".as_ref(),
        "foo".as_ref(),
        path.as_os_str(),
    ]);
    refused(
        &run,
        &["--path foo", "no built-in path", "halt-wake", "irqfd"],
        &["os error"],
    );
}

/// What is too large for memory is unpacked into a file in TMPDIR: if that is not there, it is not the recording that is
/// missing.
#[test]
fn a_missing_folder_for_temporary_files_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.gz");
    let file = fs::File::create(&path).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    for _ in 0..20 {
        packed.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    packed.finish().unwrap();
    let nowhere = folder.path().join("nowhere");
    let output = trapline()
        .env("TMPDIR", &nowhere)
        .arg("info")
        .arg(&path)
        .output()
        .unwrap();
    let run = common::Run {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    refused(&run, &["TMPDIR", "nowhere", "large.gz"], &["no such file"]);
}

#[test]
fn a_broken_zstd_file_is_told_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    for (what, bytes, words) in [
        ("four bytes", &b"\x28\xb5\x2f\xfd"[..], "cut off"),
        ("half a header", b"\x28\xb5\x2f\xfd\x04", "cut off"),
        (
            "a reserved kind of block",
            b"\x28\xb5\x2f\xfd\x00\x58\x07\x00\x00AAAAAAAAAAAAAAAAAAAAAAAA",
            "damaged",
        ),
    ] {
        let path = folder.path().join("broken.zst");
        fs::write(&path, bytes).unwrap();
        let run = run(["info".as_ref(), path.as_os_str()]);
        refused(&run, &["broken.zst", "zstd", words], &["{", "Error", "(("]);
        assert!(!run.stderr.contains("kind:"), "{what}");
    }
}
