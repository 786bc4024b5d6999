//! Pictures of a host's recording with those of its guests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::{
    ContextKind, ContextName, ExitTable, GuestContext, LaneGroup, Picture, SliceAmounts,
    SliceMeasure, TimelineNames,
};
use model::State;
use paths::PathReport;
use rules::{Case, Diagnosis};
use session::{Error, NamedGuest, PictureOptions, Session, SessionOptions};

use crate::guests::{A, B, Files, ROUNDS, guest, host, seconds, windows};

/// A guest's recording of which nobody says whose it is.
fn unnamed(path: PathBuf) -> NamedGuest {
    NamedGuest { path, vm: None }
}

/// Returns the pictures of some recordings, each with its causes.
fn pictures(
    recordings: &[&Path],
    guests: &[NamedGuest],
    options: &PictureOptions,
) -> Result<Vec<(Picture, Diagnosis)>, Error> {
    let session = Session::open(SessionOptions::default())?;
    let recordings: Vec<_> = recordings.iter().map(|path| path.to_path_buf()).collect();
    let (pictures, _) = session.pictures_with(&recordings, guests, options)?;
    let pictures = pictures.into_iter().map(|picture| {
        let diagnosis = rules::diagnose(&[Case {
            picture: &picture,
            facts: None,
            domain: None,
        }]);
        (picture, diagnosis)
    });
    Ok(pictures.collect())
}

fn is_of_guest(measured: &SliceMeasure) -> bool {
    match measured {
        SliceMeasure::GuestTime(_)
        | SliceMeasure::GuestSteal(_)
        | SliceMeasure::GuestKnown
        | SliceMeasure::GuestExits(..) => true,
        SliceMeasure::Exits(..)
        | SliceMeasure::State(_)
        | SliceMeasure::Delays(_)
        | SliceMeasure::Ran(_)
        | SliceMeasure::Path(_)
        | SliceMeasure::Events(_)
        | SliceMeasure::Part(..) => false,
    }
}

/// The paths through guests.
const GUEST_PATHS: [&str; 3] = ["packet", "disk", "guest-ipi"];

/// Returns what was found of the host, in words.
fn of_host((mut picture, mut diagnosis): (Picture, Diagnosis)) -> String {
    picture.guests.clear();
    picture.guest_exits.clear();
    picture.guest_paths.clear();
    picture
        .examples
        .retain(|one| !GUEST_PATHS.contains(&one.path.as_str()));
    for row in picture.vcpus.iter_mut().flat_map(|report| &mut report.rows) {
        row.guest = None;
    }
    picture
        .series
        .of
        .retain(|measured, _| !is_of_guest(measured));
    if let Some(timeline) = &mut picture.timeline {
        timeline
            .lanes
            .retain(|lane| lane.group != LaneGroup::Guests);
        timeline
            .marks
            .retain(|marks| !GUEST_PATHS.contains(&marks.label.as_str()));
        // Names stand behind those of the host.
        timeline.names = TimelineNames::default();
    }
    for finding in &mut diagnosis.findings {
        finding
            .evidence
            .retain(|one| !one.text.starts_with("In the guest"));
    }
    format!("{picture:#?}\n{diagnosis:#?}")
}

#[test]
fn what_is_found_of_a_host_is_the_same_with_guests() {
    let files = Files::new();
    let host = files.add("host", host(&[A, B]));
    let guests = [A, B].map(|of| unnamed(files.add(&format!("guest-{}", of.tid), guest(of))));
    for options in [
        PictureOptions::default(),
        PictureOptions::default().through_guests(),
        PictureOptions::to_report(),
        PictureOptions::to_compare(),
    ] {
        let through_guests = !options.guest_paths.is_empty();
        let alone = pictures(&[&host], &[], &options).expect("it is a recording");
        let with = pictures(&[&host], &guests, &options).expect("they fit");
        let [(picture, _)] = with.as_slice() else {
            panic!("{} pictures", with.len());
        };
        // What is followed beside is exactly this, and stands apart.
        let names = |paths: &[PathReport]| -> Vec<String> {
            paths.iter().map(|path| path.name.clone()).collect()
        };
        let added = names(&picture.guest_paths);
        assert_eq!(added, &GUEST_PATHS[..if through_guests { 3 } else { 0 }]);
        let followed: Vec<&str> = options
            .paths
            .iter()
            // Nobody asked for those that need probes, and these recordings have none.
            .filter(|path| !path.only_if_found)
            .map(|path| path.name.as_str())
            .collect();
        assert_eq!(names(&picture.paths), followed);
        assert_eq!(names(&alone[0].0.guest_paths), Vec::<String>::new());
        // Each exit is of what its guest did, and each guest's idle task has its own row.
        let table = picture.guest_rows(ExitTable::Vmexit);
        let exits: u64 = table.iter().map(|row| row.stats.count()).sum();
        assert_eq!(exits, picture.table(ExitTable::Vmexit).unwrap().total_count);
        let idle = table.iter().filter(|row| {
            let task = row.task.as_ref();
            task.is_some_and(|task| task.doing == GuestContext::Idle)
        });
        let idle: Vec<(Option<&str>, u64)> = idle
            .map(|row| (row.vm.as_deref(), row.stats.count()))
            .collect();
        assert_eq!(idle.len(), 2, "{idle:?}");
        assert!(
            idle.iter().all(|(_, count)| *count + 2 >= ROUNDS),
            "{idle:?}"
        );
        let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
        assert!(rows.into_iter().all(|row| row.guest.is_some()));
        if let Some(timeline) = &picture.timeline {
            let sums = picture.vcpus.iter().flat_map(|report| &report.rows);
            let lanes = timeline.lanes.iter();
            let lanes: Vec<_> = lanes
                .filter(|lane| lane.group == LaneGroup::Guests)
                .collect();
            assert_eq!(lanes.len(), 2);
            // A lane adds up to the table, state by state.
            for (lane, row) in lanes.iter().zip(sums) {
                let tasks = &row.guest.as_ref().expect("it has one").tasks;
                for (kind, _) in (0..).zip(LaneGroup::Guests.kinds()) {
                    let of = |doing: GuestContext| match doing {
                        GuestContext::Task(_) => 0,
                        GuestContext::Interrupt(_) => 1,
                        GuestContext::Softirq(_) => 2,
                        GuestContext::Idle => 3,
                        GuestContext::Unknown => 4,
                    };
                    let tasks = tasks.iter().filter(|task| of(task.who.doing) == kind);
                    let sum: u64 = tasks.map(|task| task.times.total()).sum();
                    assert_eq!(lane.of(kind), sum, "{}: {kind}", lane.label);
                }
            }
        }
        let sentences = |all: Vec<_>| all.into_iter().map(of_host).collect::<Vec<_>>();
        assert_eq!(sentences(with), sentences(alone));
    }
}

#[test]
fn slices_of_what_guests_did_add_up() {
    let files = Files::new();
    let host = files.add("host", host(&[A, B]));
    let guests = [A, B].map(|of| unnamed(files.add(&format!("guest-{}", of.tid), guest(of))));
    let all = pictures(&[&host], &guests, &PictureOptions::to_compare()).expect("they fit");
    let [(picture, _)] = all.as_slice() else {
        panic!("{} pictures", all.len());
    };
    let sum = |measured: &SliceMeasure| {
        let list = picture.series.of.get(measured);
        let each = list.into_iter().flat_map(SliceAmounts::iter);
        each.fold((0, 0), |sum, (_, one)| (sum.0 + one.count, sum.1 + one.ns))
    };
    let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
    let tasks = rows.flat_map(|row| &row.guest.as_ref().expect("it has one").tasks);
    let mut times: BTreeMap<ContextName, (u64, u64, u64)> = BTreeMap::new();
    for task in tasks {
        let one = times.entry(task.who.did()).or_default();
        one.0 += task.times.get(State::Guest);
        one.1 += task.times.get(State::Runnable);
        one.2 += task.times.total();
    }
    let mut known = 0;
    for (did, (guest, stolen, total)) in &times {
        let (count, ns) = sum(&SliceMeasure::GuestTime(did.clone()));
        assert_eq!(ns, *guest, "{did:?}");
        assert_eq!(count > 0, *guest > 0, "{did:?}");
        assert_eq!(
            sum(&SliceMeasure::GuestSteal(did.clone())).1,
            *stolen,
            "{did:?}"
        );
        known += match did.kind {
            ContextKind::Unknown => 0,
            _ => *total,
        };
    }
    assert!(times.len() > 2 && known > 0, "{times:?}");
    assert_eq!(sum(&SliceMeasure::GuestKnown).1, known);
    let mut exits: BTreeMap<(String, ContextName), (u64, u64)> = BTreeMap::new();
    for row in picture.guest_rows(ExitTable::Vmexit) {
        let did = row.task.as_ref().expect("rows are of tasks").did();
        let one = exits.entry((row.key.clone(), did)).or_default();
        *one = (one.0 + row.stats.count(), one.1 + row.stats.total());
    }
    for ((key, did), expected) in exits {
        let measured = SliceMeasure::GuestExits(ExitTable::Vmexit, key, did);
        assert_eq!(sum(&measured), expected, "{measured:?}");
    }
}

#[test]
fn recordings_that_do_not_name_each_other_stand_by_themselves() {
    let files = Files::new();
    let paths = [files.add("host", host(&[A])), files.add("guest", guest(A))];
    let paths = [paths[0].as_path(), paths[1].as_path()];
    let all = pictures(&paths, &[], &PictureOptions::default()).expect("they are recordings");
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .all(|(picture, _)| picture.guest_exits.is_empty())
    );
    // A guest that is named, of several hosts.
    let guests = [unnamed(files.add("other", guest(B)))];
    let error = pictures(&paths, &guests, &PictureOptions::default()).expect_err("of which?");
    assert!(
        error
            .to_string()
            .contains("recordings of one host's guests"),
        "{error}"
    );
}

#[test]
fn guests_in_the_folder_of_a_recording_are_taken_and_bad_ones_left_out_with_the_reason() {
    let files = Files::new();
    let folder = files.add("log", "").with_file_name("recorded");
    fs::create_dir(&folder).expect("there is room for temporary files");
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("there is room for temporary files");
    };
    write("perf.data", &host(&[A, B]));
    write("guest-a.perf.data", &guest(A));
    write("guest-broken.perf.data", "no recording");
    write("guest-empty.perf.data", "");
    write("guest-other.perf.data", &guest(A));
    let found = pictures(&[&folder], &[], &PictureOptions::default()).expect("it is a recording");
    let (picture, _) = &found[0];
    let rows = &picture.vcpus.as_ref().expect("it has vCPUs").rows;
    let guests: Vec<bool> = rows.iter().map(|row| row.guest.is_some()).collect();
    assert_eq!(guests, [true, false]);
    let warnings = picture.quality.texts().join("\n");
    for name in ["guest-broken", "guest-empty", "guest-other"] {
        assert!(warnings.contains(name), "{warnings}");
    }
    assert!(!warnings.contains("guest-a"), "{warnings}");
    // What is named is not left out.
    let guests = [unnamed(folder.join("guest-broken.perf.data"))];
    let error =
        pictures(&[&folder], &guests, &PictureOptions::default()).expect_err("it is broken");
    assert!(error.to_string().contains("guest-broken"), "{error}");
}

/// When the vCPU of a made host was in its guest, with one stall of 200 ms in the middle.
fn with_a_stall() -> Vec<(u64, u64)> {
    let later = |at: usize| if at >= 200 { 200_000 } else { 0 };
    let all = windows(A).into_iter().enumerate();
    all.map(|(at, (entry, exit))| (entry + later(at), exit + later(at)))
        .collect()
}

/// Returns a host's text in which the vCPU reads the PM timer's port at each exit, or loses its CPU to another task
/// until the next entry.
fn busy_host(preempted: bool) -> String {
    let mut out = "cpus=4\n".to_owned();
    let mut line = |who: &str, at: u64, text: &str| {
        let _ = writeln!(out, "   {who}   [001] {}: {text}", seconds(at));
    };
    let vcpu = format!("CPU 0/KVM-{}", A.tid);
    let switch = |from: (&str, i32, char), to: (&str, i32)| {
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} \
             next_prio=120",
            from.0, from.1, from.2, to.0, to.1
        )
    };
    for (entry, exit) in with_a_stall() {
        if preempted {
            let back = switch(("hog", 900, 'R'), ("CPU 0/KVM", A.tid));
            line("hog-900", entry - 5, &back);
        }
        line(&vcpu, entry, "kvm_entry: vcpu 0, rip 0x1000");
        if preempted {
            line(
                &vcpu,
                exit,
                "kvm_exit: reason EXTERNAL_INTERRUPT rip 0x1000 info 0 0",
            );
            let away = switch(("CPU 0/KVM", A.tid, 'R'), ("hog", 900));
            line(&vcpu, exit + 5, &away);
        } else {
            line(
                &vcpu,
                exit,
                "kvm_exit: reason IO_INSTRUCTION rip 0x1000 info 0 0",
            );
            line(
                &vcpu,
                exit + 2,
                "kvm_pio: pio_read at 0x608 size 4 count 1 val 0x3e38c9",
            );
        }
    }
    out
}

/// Returns its guest's text: `server` has the CPU at three of four exits, the idle task at the fourth. It ends with the
/// window that has this number.
fn busy_guest(last: usize) -> String {
    let mut out = "cpus=1\n".to_owned();
    let mut now = ("swapper/0", 0);
    for (at, (entry, _)) in with_a_stall().into_iter().enumerate().take(last) {
        let own = entry - A.behind_us;
        let mut switch = |at: u64, to: (&'static str, i32)| {
            let _ = writeln!(
                out,
                "   {}-{}   [000] {}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> \
                 next_comm={} next_pid={} next_prio=120",
                now.0,
                now.1,
                seconds(at),
                now.0,
                now.1,
                to.0,
                to.1
            );
            now = to;
        };
        switch(own + 20, ("other", 88));
        switch(
            own + 50,
            if at % 4 == 3 {
                ("swapper/0", 0)
            } else {
                ("server", 77)
            },
        );
    }
    out
}

/// Returns what is said of guests in the evidence of a finding.
fn guest_sentences(host: &str, guest: &str, rule: &str) -> Vec<String> {
    let files = Files::new();
    let host = files.add("host", host);
    let guests = [unnamed(files.add("guest", guest))];
    let all = pictures(&[&host], &guests, &PictureOptions::default()).expect("they fit");
    let (_, diagnosis) = &all[0];
    let mut findings = diagnosis.findings.iter();
    let finding = findings.find(|one| one.rule.id == rule);
    let finding = finding.unwrap_or_else(|| panic!("no {rule}: {diagnosis:#?}"));
    let texts = finding.evidence.iter().map(|one| one.text.clone());
    texts
        .filter(|text| text.starts_with("In the guest"))
        .collect()
}

#[test]
fn findings_about_exits_name_the_guests_tasks_that_made_them() {
    let ports = guest_sentences(&busy_host(false), &busy_guest(400), "timer-port-exits");
    assert_eq!(
        ports,
        [
            "In the guest, of 399 accesses to 0x608:PIN, 300 (75.19 %) were made in task server:77 and 99 (24.81 %) \
             were made in its idle task."
        ]
    );
    // A part that is not known is said, and what is mostly unknown is not said.
    let most = guest_sentences(&busy_host(false), &busy_guest(300), "timer-port-exits");
    assert!(
        most[0].contains("; for 100 (25.06 %) the guest's recording does not say where"),
        "{most:?}"
    );
    let few = guest_sentences(&busy_host(false), &busy_guest(150), "timer-port-exits");
    assert_eq!(few, Vec::<String>::new());
}

#[test]
fn findings_about_waits_name_what_waited_in_the_guest() {
    let waits = guest_sentences(&busy_host(true), &busy_guest(400), "vcpu-preempted");
    let [all, longest] = waits.as_slice() else {
        panic!("{waits:#?}");
    };
    assert!(
        all.contains("in which vCPUs waited for a CPU") && all.contains("fell on task server:77"),
        "{all}"
    );
    // The stall comes behind the window with number 199, which ends in the idle task.
    assert!(
        longest.contains("(thread 101) was in its idle task when it stalled for 20"),
        "{longest}"
    );
}
