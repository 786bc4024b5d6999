//! What has to be true of whatever is read, and of whatever is printed of it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::{Origin, Picture};
use binaries::{Binaries, CodeMapping, SearchOptions, UserRegisters};
use fixtures::FileForm;
use fixtures::FixtureQuestion;
use render::Layout;
use render::clock_unit::ClockedDocument;
use render::info::Head;
use report::{Flame, Invocation, Page, Recording, timeline_data};
use rules::{Case, Diagnosis};
use serde_json::Value;
use session::{PictureOptions, RecordingStacks, Session, SessionOptions};
use source::{OpenOptions, RecordingBytes};

use crate::common::page::Page as ReadPage;

const LAYOUT: Layout = Layout {
    width: 80,
    limit: usize::MAX,
    nanoseconds: true,
};

/// Reads a recording, or a text with tables, in one of the ways in which the commands do; `which` says in which.
pub(super) fn recording(path: &Path, which: u64) {
    match which % 8 {
        0..3 => pictured(path, &PictureOptions::default(), which),
        3 => pictured(path, &PictureOptions::to_report(), which),
        4 => compared(path, which),
        5 => rewritten(path),
        _ => asked(path, which),
    }
}

/// Opens what an input needs.
fn session(path: &Path) -> Option<Session> {
    let options = SessionOptions {
        tickets: vec![path.to_owned()],
        empty: true,
        threads: 1,
        ..SessionOptions::default()
    };
    let opened = Session::open(options);
    opened.inspect_err(said).ok()
}

/// Takes a picture of a recording, as `report` does.
fn pictured(path: &Path, wanted: &PictureOptions, which: u64) {
    let Some(session) = session(path) else {
        return;
    };
    let host = session.host(path, &[]).and_then(|host| {
        let recording = host.picture(wanted)?;
        let mut picture = recording.picture;
        let diagnosis = diagnosed(&picture, &session);
        host.input().details(&mut picture, &diagnosis.findings)?;
        Ok((picture, recording.flames, diagnosis))
    });
    match host {
        Ok((picture, flames, diagnosis)) => shown(&picture, &flames, &diagnosis),
        Err(session::Error::WrongKind { .. }) => compared(path, which),
        Err(error) => said(&error),
    }
}

/// Takes pictures of an input, be it a recording or tables, and compares them with themselves.
fn compared(path: &Path, which: u64) {
    let Some(session) = session(path) else {
        return;
    };
    let wanted = match which.is_multiple_of(2) {
        true => PictureOptions::to_compare(),
        false => PictureOptions::default(),
    };
    match session.pictures(&[path.to_owned()], &wanted) {
        Ok(pictures) => {
            for picture in pictures.iter().chain(&session.of_facts()) {
                let diagnosis = diagnosed(picture, &session);
                shown(picture, &[], &diagnosis);
                same(picture, &diagnosis);
            }
        }
        Err(error) => said(&error),
    }
}

/// An answer has words.
fn said(error: &session::Error) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n'), "{text}");
    plain(&render::neutral::name(&text));
}

fn diagnosed(picture: &Picture, session: &Session) -> Diagnosis {
    let domain = session.domain_of(picture);
    rules::diagnose(&[Case {
        picture,
        facts: Some(session.facts()),
        domain,
    }])
}

/// Of a recording and itself nothing is different.
fn same(picture: &Picture, diagnosis: &Diagnosis) {
    let pictures = std::slice::from_ref(picture);
    let side = compare::ComparedSide {
        pictures,
        diagnosis,
    };
    if let Ok(same) = compare::compare(side, side, None, compare::CompareOptions::default()) {
        assert_eq!(same.changes, []);
    }
}

/// Asks one question: for events, files of other tools, tables with filters.
fn asked(path: &Path, which: u64) {
    let question = FixtureQuestion::new();
    let forms = [
        FileForm::Trace,
        FileForm::Spans,
        FileForm::Exits,
        FileForm::Instances,
    ];
    let which = which / 8;
    let filtered = match which % 5 {
        0 => question.clone().vcpu(which as u32 % 3),
        1 => question.clone().cpu("0-1,3"),
        2 => question
            .clone()
            .time(&format!("{},{}", which % 7, which % 7 + which % 11)),
        3 => question.clone().pid(1000),
        _ => question.clone(),
    };
    let document = match which % 8 {
        0 => filtered.exits_document(path),
        1 => filtered.vcpus_document(path),
        2 => filtered.irqs_document(path),
        3 => filtered.sched_document(path),
        4 | 5 => {
            let form = forms[which as usize / 8 % 4];
            let bytes = question.exported(path, form).unwrap_or_default();
            assert!(
                form == FileForm::Trace || String::from_utf8(bytes).is_ok(),
                "CSV is text"
            );
            return;
        }
        _ => {
            let _ = fixtures::events::events_text_in_style(path, which.is_multiple_of(2));
            return;
        }
    };
    match document {
        Ok(document) => numbers(&document),
        Err(error) => said(&error),
    }
}

/// A recording that is made whole, or fit for others, is as long as it says.
fn rewritten(path: &Path) {
    let Ok(recording) = RecordingBytes::open_with(path, OpenOptions::default()) else {
        return;
    };
    if let Ok(salvage) = recording.salvage(None) {
        let mut file = Vec::new();
        salvage.write(&mut file).expect("memory");
        assert_eq!(salvage.account().output_bytes, file.len() as u64);
        let again =
            RecordingBytes::from_bytes("new", file).expect("what was made whole can be read");
        again.salvage(None).expect("and made whole again");
    }
    if let Ok(redactable) = recording.redactable() {
        let mut file = Vec::new();
        redactable.write(7, &mut file).expect("memory");
    }
}

/// Whatever was found, what is shown of it is text, JSON and HTML, and adds up.
fn shown(picture: &Picture, flames: &[RecordingStacks], diagnosis: &Diagnosis) {
    added_up(picture, diagnosis);
    let doubts = picture.quality.all_doubts();
    let mut text = render::quality::lines("input", &picture.quality, 80);
    text.push_str(&render::diagnose::text(
        diagnosis,
        render::diagnose::CauseList::Named,
        80,
    ));
    for report in &picture.exits {
        text.push_str(&render::exits::table(picture.isa, report, true, LAYOUT));
        text.push_str(&render::exits::split(report, LAYOUT));
    }
    numbers(&clocked(render::exits_document::document(
        picture.isa,
        &picture.exits,
        &doubts,
    )));
    if let Some(report) = &picture.vcpus {
        text.push_str(&render::vcpus::table(report, true, usize::MAX, LAYOUT));
        numbers(&clocked(render::vcpus::document(report, &doubts)));
    }
    if let Some(report) = &picture.sched {
        text.push_str(&render::sched::table(report, LAYOUT));
        text.push_str(&render::sched::cpus(report, LAYOUT));
        numbers(&clocked(render::sched::document(report, &doubts)));
    }
    text.push_str(&render::paths::table(picture.all_paths(), LAYOUT));
    numbers(&clocked(render::paths::document(
        picture.all_paths(),
        &doubts,
    )));
    numbers(&Value::Object(render::parts::members(picture)));
    numbers(&clocked(render::diagnose::document(
        diagnosis,
        None,
        Vec::new(),
    )));
    plain(&text);
    // A page takes as long as all the rest: where a timeline was asked for.
    if picture.timeline.is_some() {
        page(picture, flames, diagnosis);
    }
}

fn clocked(part: impl serde::Serialize) -> Value {
    let text = render::json::line(ClockedDocument {
        clock: render::ClockUnit::default(),
        part,
    });
    serde_json::from_str(&text).expect("JSON")
}

fn page(picture: &Picture, flames: &[RecordingStacks], diagnosis: &Diagnosis) {
    let flames = flames.iter().map(|flame| Flame {
        report: &flame.report,
        notes: flame.doubts.texts(),
        guests: &flame.guests,
    });
    let timeline = picture.timeline.as_ref();
    let timeline = timeline.map(|timeline| timeline_data::json(timeline, picture.all_paths(), &[]));
    if let Some(json) = &timeline {
        numbers(&serde_json::from_str(json).expect("JSON"));
    }
    let recording = Recording {
        name: "input",
        head: &Head {
            nanoseconds: true,
            ..Head::default()
        },
        picture,
        diagnosis,
        guests: &[],
        flames: flames.collect(),
        timeline,
        examples: &picture.examples,
        invocation: Invocation::new(OsStr::new("input")),
        headline: String::new(),
    };
    let mut html = Vec::new();
    let page = Page {
        title: "input",
        version: "0",
        recordings: &[recording],
        against: None,
    };
    page.write(&mut html).expect("a page");
    let page = ReadPage::read(String::from_utf8(html).expect("a text"));
    let document = page.document();
    for node in document.descendants() {
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on"), "{}", attribute.name());
            let elsewhere =
                matches!(attribute.name(), "src" | "href") && !attribute.value().starts_with('#');
            assert!(!elsewhere, "{}", attribute.value());
        }
        assert!(!node.has_tag_name("img") && !node.has_tag_name("iframe"));
    }
}

/// Sums are what the model promises.
fn added_up(picture: &Picture, diagnosis: &Diagnosis) {
    // A printed table may say more than its rows.
    let printed = picture.origin == Origin::Printed;
    for report in picture.exits.iter().filter(|_| !printed) {
        let rows = report
            .rows
            .iter()
            .map(|row| row.count())
            .fold(0u64, u64::saturating_add);
        assert_eq!(rows, report.total_count, "{:?}", report.table);
    }
    for row in picture.vcpus.iter().flat_map(|report| &report.rows) {
        assert_eq!(
            row.times.total(),
            row.to - row.from,
            "vCPU {} of {:?}",
            row.vcpu,
            row.vm_pid
        );
    }
    for report in picture.all_paths() {
        assert_eq!(report.total.count(), report.count, "{}", report.name);
        let stages = report.stages.iter().map(|stage| stage.stats.total());
        assert_eq!(
            stages.fold(0u64, u64::saturating_add),
            report.total.total(),
            "{}",
            report.name
        );
    }
    if let Some(accounted) = picture.quality.accounted {
        assert!(accounted.events <= accounted.read, "{accounted:?}");
    }
    for finding in &diagnosis.findings {
        assert!(!finding.evidence.is_empty(), "{}", finding.rule.id);
        assert!(
            (0.0..=1.0).contains(&finding.confidence),
            "{}",
            finding.rule.id
        );
    }
    for lane in picture
        .timeline
        .iter()
        .flat_map(|timeline| timeline.lanes.iter().map(move |lane| (timeline, lane)))
    {
        let (timeline, lane) = lane;
        let shown = (0..lane.group.kinds().len() as u8).map(|kind| lane.of(kind));
        assert!(
            shown.fold(0u64, u64::saturating_add) <= timeline.end - timeline.begin,
            "{}",
            lane.id
        );
    }
}

/// Shares are no more than all, and durations not below nothing.
pub(super) fn numbers(value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(numbers),
        Value::Object(members) => {
            for (name, member) in members {
                let share = name == "share"
                    || name.ends_with("_share")
                    || matches!(name.as_str(), "confidence" | "accounted");
                if let Some(number) = member.as_f64().filter(|_| share) {
                    assert!((0.0..=1.000_001).contains(&number), "{name}: {number}");
                }
                let signed = matches!(name.as_str(), "offset_ns" | "delta_ns" | "change_ns");
                if name.ends_with("_ns") && !signed && member.is_number() {
                    assert!(
                        !member.is_f64() && member.as_i64().is_none_or(|ns| ns >= 0),
                        "{name}: {member}"
                    );
                }
                numbers(member);
            }
        }
        _ => {}
    }
}

/// Nothing in a text steers a terminal.
fn plain(text: &str) {
    let steers = |c: &char| {
        c.is_control() && *c != '\n' && *c != '\t' || matches!(c, '\u{202a}'..='\u{202e}')
    };
    assert_eq!(text.chars().find(steers), None);
}

/// A definition is read, changed, and changed again to no effect.
pub(super) fn definition(bytes: &[u8]) {
    if let Ok(all) = domain::definitions(bytes) {
        // Those that are listed, how many more there are, and that it is cut off.
        assert!(all.iter().all(|one| one.notes.len() <= 34));
    }
    let (Ok(text), Ok((_, notes))) = (domain::decode(bytes), domain::parse_bytes(bytes)) else {
        return;
    };
    assert!(notes.len() <= 33);
    for change in [
        domain::DomainChange::Timer {
            name: "hpet".to_owned(),
            present: false,
        },
        domain::DomainChange::VcpuPin {
            vcpu: 1,
            cpus: [2, 5].into_iter().collect(),
        },
        domain::DomainChange::Iothreads(2),
        domain::DomainChange::DiskCache {
            disk: domain::DeviceChoice::Index(0),
            cache: "none".to_owned(),
        },
    ] {
        let Ok((after, notes)) = domain::apply(text, std::slice::from_ref(&change)) else {
            continue;
        };
        assert!(domain::parse(&after).is_ok());
        if notes
            .iter()
            .all(|note| note.kind != domain::NoteKind::Refused)
        {
            let (again, _) = domain::apply(&after, &[change]).expect("it was changed once");
            assert_eq!(again, after);
        }
    }
}

/// Facts are read, and given twice they add nothing; as a file beside a recording they are of use.
pub(super) fn facts(path: &Path, recording: &Path) {
    let bytes = fs::read(path).expect("it was written");
    let (facts, notes) = facts::read(&bytes);
    assert!(notes.len() <= 18);
    let mut twice = facts.clone();
    twice.merge(facts.clone());
    assert_eq!(twice.threads, facts.threads);
    assert_eq!(twice.vms, facts.vms);
    if let Ok(result) = results::read(&bytes) {
        let written = serde_json::to_vec(&result).expect("JSON");
        assert_eq!(
            results::read(&written).expect("what was written").rows,
            result.rows
        );
    }
    let options = SessionOptions {
        facts: vec![path.to_owned()],
        threads: 1,
        ..SessionOptions::default()
    };
    let session = match Session::open(options) {
        Ok(session) => session,
        Err(error) => return said(&error),
    };
    let pictures = session.pictures(&[PathBuf::from(recording)], &PictureOptions::default());
    for picture in pictures.expect("a recording of the corpus") {
        let diagnosis = diagnosed(&picture, &session);
        shown(&picture, &[], &diagnosis);
    }
}

/// Any place in an object file has a name, or a reason why not; stacks end.
pub(super) fn object(folder: &Path, name: &str, bytes: u64) {
    let mut binaries = Binaries::new(SearchOptions {
        symfs: Some(folder.to_owned()),
        inlines: true,
        ..SearchOptions::default()
    });
    let path = format!("/{name}").into_bytes();
    for offset in (0..bytes).step_by(1 + bytes as usize / 64) {
        if let Ok(names) = binaries.names(&path, None, offset) {
            assert!(!names.is_empty() && names.len() < 256);
        }
    }
    let mapping = CodeMapping {
        start: 0x10_0000,
        end: 0x10_0000 + bytes,
        pgoff: 0,
        path: &path,
        build_id: None,
    };
    for aarch64 in [false, true] {
        let mut unwinding = binaries.unwinding(aarch64, &[mapping]);
        for offset in [0, 0x78, 0x100, bytes / 2] {
            let (ip, at) = (0x10_0000 + offset, 0x7000);
            let registers = match aarch64 {
                false => UserRegisters::X86_64 { ip, all: [at; 16] },
                true => UserRegisters::Aarch64 {
                    pc: ip,
                    lr: ip,
                    sp: at,
                    fp: at,
                },
            };
            assert!(unwinding.stack(&registers, &[0x10; 512], 64).len() <= 64);
        }
    }
}
