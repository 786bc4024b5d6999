//! Where files are written: what their names promise, and what was there before.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::{Run, file, read_text, run, trapline, write_text};

fn report(to: &Path) -> Run {
    let recording = file("x86/flame-iperf3/l1.perf.data.zst");
    run([
        Path::new("report"),
        Path::new("-o"),
        to,
        recording.as_path(),
    ])
}

#[test]
fn a_name_that_promises_no_page_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "report.pdf",
        "report.md",
        "report",
        "report.html.gz",
        "html",
    ] {
        let to = folder.path().join(name);
        let run = run([
            Path::new("report"),
            Path::new("-o"),
            &to,
            Path::new("no-such-recording"),
        ]);
        assert_ne!(run.status, 0, "{name}");
        let reported = run.stderr;
        assert!(
            reported.contains("its name ends in .html or .htm"),
            "{reported}"
        );
        assert!(!to.exists(), "{name}");
    }
    for name in ["report.html", "report.htm"] {
        let to = folder.path().join(name);
        assert_eq!(report(&to).status, 0, "{name}");
        assert!(read_text(&to).starts_with("<!DOCTYPE html>"), "{name}");
    }
}

#[test]
fn a_page_goes_to_standard_output_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("report.html");
    assert_eq!(report(&to).status, 0);
    let printed = report(Path::new("-"));
    assert_eq!(printed.status, 0);
    assert_eq!(printed.text(), read_text(&to));
}

/// A file that takes the place of a pipe, of a terminal or of /dev/null takes it away from everybody.
#[test]
fn what_is_no_file_is_written_to_and_stays_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    // What it reads is more than another pipe would hold.
    let read = folder.path().join("read.html");
    let mut reader = Command::new("cat")
        .arg(&pipe)
        .stdout(fs::File::create(&read).expect("a file"))
        .spawn()
        .expect("cat");
    let recording = file("x86/flame-iperf3/l1.perf.data.zst");
    let mut writer = trapline();
    let writer = writer.args(["report", "-o"]).arg(&pipe).arg(&recording);
    let written = writer.output().expect("the program");
    assert!(written.status.success(), "{written:?}");
    assert!(reader.wait().expect("cat").success());
    let page = read_text(&read);
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.ends_with("</html>\n"));
    let kind = fs::symlink_metadata(&pipe).expect("a pipe").file_type();
    assert!(kind.is_fifo());
}

#[test]
fn a_link_stays_and_where_it_leads_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = write_text(folder.path(), "old.html", "what was there before");
    let link = folder.path().join("latest.html");
    symlink("old.html", &link).expect("a link");
    assert_eq!(report(&link).status, 0);
    let kind = fs::symlink_metadata(&link).expect("a link").file_type();
    assert!(kind.is_symlink());
    assert!(read_text(&old).starts_with("<!DOCTYPE html>"));
}

#[test]
fn functions_of_the_page_are_named_by_the_given_symbols() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = (0xffff_ffff_8100_0000_u64..0xffff_ffff_8200_0000).step_by(4096);
    let symbols: String = pages.map(|at| format!("{at:x} T page_{at:x}\n")).collect();
    let symbols = write_text(folder.path(), "kallsyms.txt", &symbols);
    let recording = file("x86/flame-iperf3/l2/perf.data.zst");
    let page = |args: &[&Path]| {
        let to = folder.path().join("report.html");
        let first = [Path::new("report"), Path::new("-o"), &to, &recording];
        let run = run(first.iter().chain(args));
        assert_eq!(run.status, 0, "{}", run.stderr);
        read_text(&to)
    };
    assert!(!page(&[]).contains("page_ffffffff81"));
    let named = page(&[Path::new("--kallsyms"), &symbols]);
    assert!(named.contains("page_ffffffff81"));
    let command = format!("--kallsyms={}", symbols.display());
    assert!(named.contains(&command), "no command has {command}");
}
