//! `trapline watch` on the machine that runs the tests: incidents that are injected one after the other are recorded
//! once each, and nothing else is.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{json, note, trapline};
use crate::record_command::{possible, signals, write_path};
use crate::record_store::runs;
use crate::record_user::{as_nobody, error, folder_of_nobody};

/// A boot sector that goes on in a circle: a guest that wants all of its CPU.
fn boot_sector(folder: &Path) -> PathBuf {
    let mut sector = vec![0; 512];
    sector[..2].copy_from_slice(&[0xeb, 0xfe]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let path = folder.join("boot.bin");
    fs::write(&path, sector).expect("a file");
    path
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A VM on CPU 0 whose guest does not run yet.
struct StoppedVm {
    running: Running,
    monitor: ChildStdin,
}

impl StoppedVm {
    fn start(boot: &Path, name: &str) -> StoppedVm {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            "0",
            "qemu-system-x86_64",
            "-S",
            "-accel",
            "kvm",
            "-m",
            "16",
        ]);
        command.args(["-nodefaults", "-display", "none", "-monitor", "stdio"]);
        command.args(["-name", &format!("guest={name},debug-threads=on")]);
        let drive = format!("file={},format=raw,if=ide,snapshot=on", boot.display());
        command.args(["-drive", &drive]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("a VM");
        let monitor = child.stdin.take().expect("its monitor");
        StoppedVm {
            running: Running(child),
            monitor,
        }
    }

    fn say(&mut self, command: &str) {
        writeln!(self.monitor, "{command}").expect("its monitor");
    }
}

/// A process that wants all of CPU 0.
fn busy() -> Running {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
    Running(command.spawn().expect("a shell"))
}

/// Whether guests can run here.
fn guests_are_possible() -> bool {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let possible =
        Path::new("/dev/kvm").exists() && qemu.is_ok_and(|output| output.status.success());
    let required = std::env::var_os("TRAPLINE_REQUIRE_KVM").is_some();
    assert!(
        possible || !required,
        "guests cannot run here: is there /dev/kvm, and QEMU for x86?"
    );
    if !possible {
        note("skipped: guests cannot run here (needs /dev/kvm and qemu-system-x86_64)");
    }
    possible
}

/// A watch that runs, and what it says.
struct RunningWatch {
    running: Running,
    folder: PathBuf,
}

impl RunningWatch {
    fn start(folder: &Path, more: &[&str]) -> RunningWatch {
        let mut command = trapline();
        // Whatever else runs on this machine is recorded too.
        command
            .current_dir(folder)
            .args(["watch", "--budget", "50%"])
            .args(more);
        let file = |name: &str| File::create(folder.join(name)).expect("a file");
        command.stdout(file("stdout")).stderr(file("stderr"));
        let watch = RunningWatch {
            running: Running(command.spawn().expect("it starts")),
            folder: folder.to_owned(),
        };
        watch.until("it watches", || watch.said().contains("watching: "));
        watch
    }

    fn said(&self) -> String {
        let texts = ["stdout", "stderr"].map(|name| fs::read_to_string(self.folder.join(name)));
        texts.map(Result::unwrap_or_default).concat()
    }

    /// The folders of incidents, oldest first.
    fn incidents(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join("trapline-watch")).expect("its folder");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < end, "{what}: {}", self.said());
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until there are so many incidents, the last with its page.
    fn recorded(&self, count: usize) {
        self.until("an incident", || {
            let incidents = self.incidents();
            incidents.len() >= count
                && incidents
                    .iter()
                    .all(|one| one.join("incident.json").exists())
        });
    }

    fn paged(&self) {
        self.until("a page", || {
            let incidents = self.incidents();
            incidents.iter().all(|one| one.join("page.html").exists())
        });
    }

    /// Checks that it can write to its folder (CAP_DAC_OVERRIDE), read what BPF counts (CAP_BPF), and no more.
    fn has_little_privilege(&self) {
        let tasks = format!("/proc/{}/task", self.running.0.id());
        for task in fs::read_dir(tasks).expect("its threads") {
            let status = task.expect("a thread").path().join("status");
            let status = fs::read_to_string(status).expect("its status");
            let set = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
            let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
            let set = set.expect("a set");
            assert_eq!(set & !(1 << 1 | 1 << 39), 0, "{status}");
        }
    }

    /// Ends it as systemd does. Returns what it said.
    fn end(mut self) -> String {
        let pid = self.running.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill").success());
        let status = self.running.0.wait().expect("it ends");
        let said = self.said();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

/// Each incident's line.
fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("trapline-watch/incidents.jsonl"));
    let text = text.unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("lines of JSON")
}

#[test]
fn a_dry_run_lists_conditions_and_events_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = trapline();
    command.current_dir(folder.path());
    command.args(["watch", "--dry-run", "--when", "irqfd > 10ms"]);
    command.args(["--limit", "steal=12%", "--limit", "short-halts=off"]);
    let output = command.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "steal           12 %        4 s",
        "back-end-waits  20 %",
        "path            10.00ms     once      path irqfd",
        "$ trapline record --keep 7 --memory 268435456",
        "costs: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("short-halts"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    for (more, status, expected) in [
        (["--limit", "steel=1%"], 2, "there is no condition steel"),
        (["--disk", "10M"], 2, "256M or more"),
        (["--interval", "10ms"], 2, "500ms or longer"),
        (
            ["--output-dir", "no/such/folder"],
            1,
            "--output-dir no/such/folder",
        ),
        // Others may write to it.
        (["--output-dir", "/tmp"], 1, "others than its owner"),
    ] {
        let mut command = trapline();
        let output = command
            .current_dir(folder.path())
            .arg("watch")
            .args(more)
            .output();
        let output = output.expect("the program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{more:?}: {said}");
        assert!(said.contains(expected), "{more:?}: {said}");
    }
}

#[test]
fn a_path_that_takes_too_long_is_recorded_once_though_it_does_so_again() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_path(folder.path(), 54);
    let when = format!("{} > 500ms", path.display());
    let watch = RunningWatch::start(
        folder.path(),
        &[
            "--when", &when, "--keep", "2", "--after", "0.5", "--store", "fleet",
        ],
    );
    watch.has_little_privilege();
    for _ in 0..2 {
        let words = signals(54, 100, "0.7");
        let status = Command::new(&words[0]).args(&words[1..]).status();
        assert!(status.expect("bash").success());
    }
    watch.recorded(1);
    watch.paged();
    let said = watch.end();
    assert!(said.contains("1 incident, 1 recorded"), "{said}");
    assert!(said.contains("202 instances completed"), "{said}");
    // Its sums are where those of other hosts are.
    assert_eq!(runs(&folder.path().join("fleet")).len(), 1, "{said}");
    let lines = lines(folder.path());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["symptoms"][0]["condition"], "path");
    let measured = lines[0]["symptoms"][0]["measured"]
        .as_f64()
        .expect("a time");
    assert!(measured >= 7e8, "{measured}");
    // What the folder has is a recording in which that instance is.
    let name = lines[0]["recording"].as_str().expect("a name");
    let recording = folder.path().join("trapline-watch").join(name);
    let paths = json(
        &["paths", "--path", &path.display().to_string()],
        &recording,
    );
    let paths = paths.expect("paths");
    assert!(
        paths["paths"][0]["total"]["max_ns"].as_u64() >= Some(700_000_000),
        "{paths}"
    );
}

#[test]
fn without_permission_it_says_what_stops_it_and_leaves_nothing() {
    if !possible() {
        return;
    }
    let (folder, _) = folder_of_nobody();
    let output = as_nobody(folder.path(), "", &["watch", "--for", "1"]);
    let said = error(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CAP_PERFMON"), "{said}");
    assert!(!folder.path().join("trapline-watch").exists(), "{said}");
}

/// Two VMs whose vCPU waits for a CPU, and between them one whose VMM does; then nothing.
#[test]
fn three_incidents_are_three_recordings_and_quiet_is_none() {
    if !possible() || !guests_are_possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let boot = boot_sector(folder.path());
    let mut vms = ["web", "db", "mail"].map(|name| StoppedVm::start(&boot, name));
    // They are there before the watch looks for them.
    sleep(Duration::from_secs(1));
    let watch = RunningWatch::start(
        folder.path(),
        &[
            "--interval",
            "500ms",
            "--keep",
            "2",
            "--after",
            "1",
            "--quiet-intervals",
            "3",
            "--cool-down",
            "3",
        ],
    );
    for (at, vm) in vms.iter_mut().enumerate() {
        assert!(
            vm.running.0.try_wait().expect("its state").is_none(),
            "QEMU has ended"
        );
        let busy = busy();
        // The guest of the second one does not run: its monitor has more to answer than it can.
        let is_back_end = at == 1;
        if is_back_end {
            let end = Instant::now() + Duration::from_secs(30);
            while watch.incidents().len() <= at && Instant::now() < end {
                for _ in 0..2000 {
                    vm.say("info version");
                }
            }
        } else {
            vm.say("cont");
        }
        watch.recorded(at + 1);
        if !is_back_end {
            vm.say("stop");
        }
        drop(busy);
        watch.paged();
        // Until it is over.
        sleep(Duration::from_secs(3));
    }
    sleep(Duration::from_secs(10));
    assert_eq!(watch.incidents().len(), 3, "{}", watch.said());
    let said = watch.end();
    assert!(said.contains("3 incidents, 3 recorded"), "{said}");
    let lines = lines(folder.path());
    let of_line = |line: &Value| {
        let first = &line["symptoms"][0];
        let text = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
        (text("condition"), text("of"))
    };
    let found: Vec<_> = lines.iter().map(of_line).collect();
    let expected = [
        ("steal", "web"),
        ("back-end-waits", "db"),
        ("steal", "mail"),
    ];
    let expected = expected.map(|(condition, of)| (condition.to_owned(), of.to_owned()));
    assert_eq!(found, expected, "{said}");
    for line in &lines {
        let name = line["recording"].as_str().expect("a name");
        let recording = folder.path().join("trapline-watch").join(name);
        let page = fs::read_to_string(recording.join("page.html")).expect("a page");
        assert!(page.contains("<title>trapline report: "), "{name}");
        let info = json(&["info"], &recording).expect("a recording");
        assert_eq!(info["quality"]["truncated"], false, "{info}");
        let text = fs::read(recording.join("incident.json")).expect("a note");
        let note: Value = serde_json::from_slice(&text).expect("JSON");
        assert!(note["lasted_ns"].as_u64() > Some(0), "{note}");
    }
}
