//! Guests' own stacks in the flame graphs of `report` and `flame`: two VMs whose recordings, texts of perf, have
//! samples with stacks.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::ProfileOf;
use session::{NamedGuest, PictureOptions, RecordingStacks, Session, SessionOptions};

use crate::common::list;
use crate::common::{json, number, run, write_text};
use crate::guests::over;

/// Bytes of a folded line.
const LINE: usize = 1 << 16;

/// Numbers that look like chance and are the same each time.
struct Chance(u64);

impl Chance {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        from + (self.0 >> 33) % (to - from)
    }
}

/// A VM: what its guest's functions are called, its process, and how far its guest's clock is behind the host's.
struct Guest {
    name: &'static str,
    pid: i32,
    behind_ns: i64,
}

const WEB: Guest = Guest {
    name: "web",
    pid: 100,
    behind_ns: 3_000_000_000,
};
const DB: Guest = Guest {
    name: "db",
    pid: 200,
    behind_ns: -2_000_000_000,
};

/// Lines with their times.
type Lines = Vec<(u64, String)>;

fn head(comm: &str, pid: i32, tid: i32, cpu: i32, time: u64) -> String {
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    format!("{comm} {pid}/{tid} [{cpu:03}] {seconds}.{rest:09}:")
}

fn sample(head: &str, period: u64, stack: &[&str], file: &str) -> String {
    let mut text = format!("{head} {period} cpu-clock: \n");
    for function in stack {
        text.push_str(&format!("\tffffffff81000abc {function} ({file})\n"));
    }
    text + "\n"
}

/// Appends what the host saw of a VM of two vCPUs, and returns what its guest recorded.
fn recorded(guest: &Guest, host: &mut Lines) -> Lines {
    let mut inside = Lines::new();
    let mut chance = Chance(guest.pid.unsigned_abs().into());
    for vcpu in 0..2 {
        let (comm, tid) = (format!("CPU {vcpu}/KVM"), guest.pid + 1 + vcpu);
        let mut at = 5_000_000_000 + chance.between(0, 10_000);
        for turn in 0..300 {
            let (runs, away) = (
                chance.between(60_000, 400_000),
                chance.between(20_000, 500_000),
            );
            let of_host = |time| head(&comm, guest.pid, tid, vcpu, time);
            let task = format!("task{vcpu}");
            let of_guest = |time: u64| {
                let time = time.saturating_add_signed(-guest.behind_ns);
                (time, head(&task, 50 + vcpu, 50 + vcpu, vcpu, time))
            };
            host.push((
                at,
                format!("{} kvm:kvm_entry: vcpu {vcpu}, rip 0x1\n", of_host(at)),
            ));
            for part in [1, runs / 2, runs - 2] {
                let (time, head) = of_guest(at + part);
                let wakes = format!("comm={task} pid=50 prio=120 target_cpu=000");
                inside.push((time, format!("{head} sched:sched_wakeup: {wakes}\n\n")));
            }
            if turn % 3 == 0 {
                let middle = at + runs / 3;
                let stack = ["[unknown]"];
                let file = "[guest.kernel.kallsyms]";
                host.push((middle, sample(&of_host(middle), 250_000, &stack, file)));
                let (time, head) = of_guest(middle);
                let inner = ["spin+0x1", "copy+0x1", "hash+0x1"][chance.between(0, 3) as usize];
                let outer = format!("{}_main+0x1", guest.name);
                let own = sample(&head, 100_000, &[inner, &outer], "[kernel.kallsyms]");
                inside.push((time, own));
            }
            let exit = format!("vcpu {vcpu} reason hlt rip 0x1 info1 0 info2 0 intr_info 0");
            let left = at + runs;
            host.push((
                left,
                format!("{} kvm:kvm_exit: {exit} error_code 0\n", of_host(left)),
            ));
            if turn % 5 == 0 {
                let out = left + away / 2;
                let stack = ["handle_exit+0x1", "vcpu_run+0x1"];
                host.push((out, sample(&of_host(out), 250_000, &stack, "[kvm]")));
            }
            at = left + away;
        }
    }
    inside
}

fn text(mut lines: Lines) -> String {
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The files of a host and of both guests.
struct Files {
    folder: tempfile::TempDir,
    host: PathBuf,
    web: PathBuf,
    db: PathBuf,
}

fn files() -> Files {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let mut host = Lines::new();
    let [web, db] = [WEB, DB].map(|guest| {
        let inside = text(recorded(&guest, &mut host));
        write_text(folder.path(), &format!("{}.txt", guest.name), &inside)
    });
    Files {
        host: write_text(folder.path(), "host.txt", &text(host)),
        folder,
        web,
        db,
    }
}

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

/// What `trapline flame` writes.
fn of_flame(folder: &Path, host: &Path, guests: &[String]) -> Vec<String> {
    let out = folder.join("out.folded");
    let paths = [host, &out].map(|path| path.display().to_string());
    let mut args = vec!["flame", &paths[0], "-o", &paths[1]];
    args.extend(guests.iter().map(String::as_str));
    let run = run(args);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let text = fs::read_to_string(out).expect("it was written");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
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
fn the_page_has_the_stacks_that_flame_has() {
    let files = files();
    let alone = of_page(&files.host, &[]);
    let plain = folded(&alone[0]);
    assert_eq!(plain, of_flame(files.folder.path(), &files.host, &[]));
    assert!(alone[0].guests.is_empty());
    let (web, db) = (&files.web, &files.db);
    let none = |path: &PathBuf| (path.clone(), None);
    let told = |path: &PathBuf, vm: &str| (path.clone(), Some(vm.to_owned()));
    for (guests, mains) in [
        (vec![none(web)], vec!["web_main"]),
        (vec![none(db)], vec!["db_main"]),
        (vec![none(web), none(db)], vec!["web_main", "db_main"]),
        (
            vec![told(db, "200"), told(web, "100")],
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
        let given = guests.iter().map(|(path, vm)| match vm {
            Some(vm) => format!("--guest={vm}={}", path.display()),
            None => format!("--guest={}", path.display()),
        });
        let given: Vec<String> = given.collect();
        let ours = folded(&flames[0]);
        let theirs = of_flame(files.folder.path(), &files.host, &given);
        assert_eq!(ours, theirs, "{given:?}");
        // Nothing is lost and nothing is added.
        assert_eq!(total(&ours), total(&plain), "{given:?}");
        for main in ["web_main", "db_main"] {
            let there = ours.iter().any(|line| line.contains(main));
            assert_eq!(there, mains.contains(&main), "{given:?}: {main}");
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

#[test]
fn the_page_names_the_command_that_shows_the_same() {
    let files = files();
    let page = files.folder.path().join("page.html");
    let written = format!("-o{}", page.display());
    let guests = [&files.web, &files.db].map(|path| format!("--guest={}", path.display()));
    let more = [written.as_str(), &guests[0], &guests[1]];
    let run = over("report", &[&files.host], &more);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let html = fs::read_to_string(&page).expect("it was written");
    let command = format!(
        "trapline flame {} {}",
        files.host.display(),
        guests.join(" ")
    );
    assert!(html.contains(&command), "no {command}");
    assert!(html.contains("web_main") && html.contains("db_main"));
    // Both VMs' vCPUs are told apart there.
    let document = json(&["flame", &guests[0], &guests[1]], &files.host).expect("stacks");
    let spliced = list(&document["spliced"]);
    let of: Vec<(u64, u64)> = spliced
        .iter()
        .map(|one| (number(one, "vm_pid"), number(one, "vcpu")))
        .collect();
    assert_eq!(of, [(100, 0), (100, 1), (200, 0), (200, 1)]);
}

/// A guest without samples changes nothing, and stacks that have no place are told.
#[test]
fn stacks_that_are_not_there_or_have_no_place_change_nothing() {
    let files = files();
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
    let told = format!("--guest={}", silent.display());
    let refused = over("flame", &[&files.host], &[&told]);
    assert!(
        refused.stderr.contains("holds no samples"),
        "{}",
        refused.stderr
    );
    // The host's samples know nothing of guests.
    let blind = write_text(folder, "blind.txt", &without(&files.host, "[guest."));
    let plain = of_page(&blind, &[]);
    let flames = of_page(&blind, &[guest(&files.web)]);
    assert_eq!(folded(&flames[0]), folded(&plain[0]));
    assert!(flames[0].guests.is_empty());
    let said = flames[0].doubts.texts().join(" ");
    assert!(said.contains("none of it is shown"), "{said}");
    let told = format!("--guest={}", files.web.display());
    let refused = over("flame", &[&blind], &[&told]);
    assert!(
        refused.stderr.contains("none of it is shown"),
        "{}",
        refused.stderr
    );
    for flame in of_page(&files.host, &[guest(&files.web)]) {
        assert!(flame.report.of == ProfileOf::OnCpu || flame.guests.is_empty());
    }
}

#[test]
fn two_recordings_of_one_guest_are_refused() {
    let files = files();
    let web = format!("--guest=100={}", files.web.display());
    let db = format!("--guest=100={}", files.db.display());
    let run = over("flame", &[&files.host], &[&web, &db]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("has another recording"),
        "{}",
        run.stderr
    );
}
