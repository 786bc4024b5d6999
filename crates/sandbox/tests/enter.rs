//! What is left to a process that has entered the sandbox. It cannot leave it again, so that each test is a process.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use sandbox::{FilesRestriction, SandboxRequest, enter};

const FOLDER: &str = "TRAPLINE_TEST_SANDBOX";

/// What a reader does, and what it should not be able to do.
#[test]
#[ignore = "restricts its own process; the next test runs it"]
fn within() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let request = SandboxRequest {
        folders: vec![folder.join("out")],
        files: vec!["/dev/null".into()],
    };
    let state = enter(&request);
    writeln!(std::io::stdout(), "state: {state:?}").expect("a pipe");
    let denied = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    if state.calls {
        assert!(denied(
            TcpListener::bind("127.0.0.1:0").expect_err("no socket")
        ));
        assert!(denied(UnixStream::pair().map(drop).expect_err("no socket")));
        assert!(denied(
            Command::new("/bin/true").status().expect_err("no program")
        ));
        // Whose folder it is that may be written does not matter: Landlock has no word for modes and times.
        for file in ["kept", "out/there"] {
            let file = folder.join(file);
            let mode = fs::set_permissions(&file, Permissions::from_mode(0o777));
            assert!(denied(mode.expect_err("its mode")));
            let owner = std::os::unix::fs::chown(&file, Some(1), Some(1));
            assert!(denied(owner.expect_err("its owner")));
            let opened = File::open(&file).expect("it is read");
            assert!(denied(
                opened
                    .set_modified(SystemTime::UNIX_EPOCH)
                    .expect_err("its time")
            ));
        }
        let status = fs::read_to_string("/proc/self/status").expect("it is read");
        assert!(
            status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"),
            "{status}"
        );
    }
    // One that is there in part keeps all of this.
    if state.files != FilesRestriction::None {
        assert!(denied(
            File::create(folder.join("else")).expect_err("not there")
        ));
        assert!(denied(
            fs::remove_file(folder.join("kept")).expect_err("not there")
        ));
        assert!(denied(
            fs::create_dir(folder.join("new")).expect_err("not there")
        ));
        let append = OpenOptions::new().append(true).open(folder.join("kept"));
        assert!(denied(append.map(drop).expect_err("not there")));
        assert!(denied(
            fs::rename(folder.join("out/there"), folder.join("x")).expect_err("moved")
        ));
        // Nor anything but files and folders where those are made.
        let link = std::os::unix::fs::symlink("/etc/passwd", folder.join("out/link"));
        assert!(denied(link.expect_err("no link")));
        fs::create_dir(folder.join("out/new")).expect("a folder");
    }
    // What it is for.
    assert_eq!(fs::read(folder.join("kept")).expect("it is read"), b"kept");
    fs::write(folder.join("out/.half"), "x").expect("a half file");
    fs::rename(folder.join("out/.half"), folder.join("out/report.html")).expect("its name");
    fs::write(folder.join("out/there"), "again").expect("written over");
    let mut null = OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .expect("a device");
    null.write_all(b"x").expect("it takes all");
    std::thread::spawn(|| fs::read_dir("/").map(Iterator::count))
        .join()
        .expect("a thread")
        .expect("a folder");
}

#[test]
fn a_reader_reads_and_does_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("out")).expect("a folder");
    fs::write(folder.path().join("kept"), "kept").expect("a file");
    fs::write(folder.path().join("out/there"), "there").expect("a file");
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child.args(["within", "--exact", "--ignored", "--nocapture"]);
    let output = child.env(FOLDER, folder.path()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A kernel of the last years has both; this says so where it is required.
    if std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|set| set == "1") {
        let whole = text.contains("files: Whole") && text.contains("calls: true");
        assert!(whole, "{text}");
    }
}
