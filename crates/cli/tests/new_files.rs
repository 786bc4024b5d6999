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

/// What a program left that was killed while it wrote is removed by the next one that writes there.
#[test]
fn half_files_of_killed_programs_are_removed_and_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let make = |name: &str, age: Option<std::time::SystemTime>| {
        let path = folder.path().join(name);
        let file = fs::File::create(&path).expect("a file");
        if let Some(age) = age {
            file.set_modified(age).expect("a time");
        }
        (path, file)
    };
    let (left, _) = make(".trapline-aB3dEf", Some(old));
    let (locked, lock) = make(".trapline-aB3dEg", Some(old));
    lock.lock().expect("a lock");
    let (new, _) = make(".trapline-aB3dEh", None);
    let (other, _) = make(".trapline-notes77", Some(old));
    let (named, _) = make(".trapline-a.b.cd", Some(old));
    symlink(&other, folder.path().join(".trapline-aB3dEi")).expect("a link");
    // A trace is a folder while it is half written, too.
    let make_folder = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("cpu_0"), "half").expect("a file");
        let opened = fs::File::open(&path).expect("a folder");
        opened.set_modified(old).expect("a time");
        (path, opened)
    };
    let (left_folder, _) = make_folder(".trapline-aB3dEj");
    let (locked_folder, folder_lock) = make_folder(".trapline-aB3dEk");
    folder_lock.lock().expect("a lock");
    let to = folder.path().join("report.html");
    assert_eq!(report(&to).status, 0);
    assert!(!left.exists());
    assert!(!left_folder.exists());
    for stays in [&locked, &locked_folder, &new, &other, &named] {
        assert!(stays.exists(), "{}", stays.display());
    }
    assert!(folder.path().join(".trapline-aB3dEi").exists());
}

/// The name that a file has while it is written is nobody's business.
#[test]
fn a_full_disk_is_said_of_the_file_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("report.html");
    let recording = file("x86/flame-iperf3/l1.perf.data.zst");
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_trapline"),
        ])
        .args([Path::new("report"), Path::new("-o"), &to, &recording])
        .env("LC_ALL", "C")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains("report.html: cannot be written: "), "{text}");
    assert!(!text.contains(".trapline-"), "{text}");
    assert!(!to.exists());
}
