//! Pictures of a host's recording with those of its guests.

use std::fs;
use std::path::Path;

use analysis::{ExitTable, GuestDoing, Picture};
use rules::{Case, Diagnosis};
use session::{Error, Options, PictureOptions, Session, Told};

use crate::guests::{A, B, Files, ROUNDS, guest, host};

/// Returns the pictures of some recordings, each with its causes.
fn pictures(
    recordings: &[&Path],
    told: &[Told],
    options: &PictureOptions,
) -> Result<Vec<(Picture, Diagnosis)>, Error> {
    let session = Session::open(Options::default())?;
    let recordings: Vec<_> = recordings.iter().map(|path| path.to_path_buf()).collect();
    let (pictures, _) = session.pictures_with(&recordings, told, options)?;
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

/// Returns what is told of the host, in words.
fn of_host((mut picture, mut diagnosis): (Picture, Diagnosis)) -> String {
    picture.guest_exits.clear();
    for row in picture.vcpus.iter_mut().flat_map(|report| &mut report.rows) {
        row.guest = None;
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
    let told = [A, B].map(|of| (files.add(&format!("guest-{}", of.tid), guest(of)), None));
    for options in [PictureOptions::default(), PictureOptions::to_report()] {
        let alone = pictures(&[&host], &[], &options).expect("it is a recording");
        let with = pictures(&[&host], &told, &options).expect("they fit");
        let [(picture, _)] = with.as_slice() else {
            panic!("{} pictures", with.len());
        };
        // Each exit is of what its guest did, and each guest's idle task has its own row.
        let table = picture.guest_rows(ExitTable::Vmexit);
        let exits: u64 = table.iter().map(|row| row.stats.count()).sum();
        assert_eq!(exits, picture.table(ExitTable::Vmexit).unwrap().total_count);
        let idle = table.iter().filter(|row| {
            let task = row.task.as_ref();
            task.is_some_and(|task| task.doing == GuestDoing::Idle)
        });
        let idle: Vec<(Option<&str>, u64)> = idle
            .map(|row| (row.vm_name.as_deref(), row.stats.count()))
            .collect();
        assert_eq!(idle.len(), 2, "{idle:?}");
        assert!(
            idle.iter().all(|(_, count)| *count + 2 >= ROUNDS),
            "{idle:?}"
        );
        let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
        assert!(rows.into_iter().all(|row| row.guest.is_some()));
        let told = |all: Vec<_>| all.into_iter().map(of_host).collect::<Vec<_>>();
        assert_eq!(told(with), told(alone));
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
    // A guest that is told, of several hosts.
    let told = [(files.add("other", guest(B)), None)];
    let error = pictures(&paths, &told, &PictureOptions::default()).expect_err("of which?");
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
    let warnings = picture.quality.warnings.join("\n");
    for name in ["guest-broken", "guest-empty", "guest-other"] {
        assert!(warnings.contains(name), "{warnings}");
    }
    assert!(!warnings.contains("guest-a"), "{warnings}");
    // What is named is not left out.
    let told = [(folder.join("guest-broken.perf.data"), None)];
    let error = pictures(&[&folder], &told, &PictureOptions::default()).expect_err("it is broken");
    assert!(error.to_string().contains("guest-broken"), "{error}");
}
