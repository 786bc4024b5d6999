//! Pages of pictures made by hand: that links lead to the times, threads and rows of their evidence, that whatever has
//! a name is shown as text, and that the data of the timeline comes out as it went in.

use std::ffi::OsStr;

use analysis::{
    EventCount, ExitRow, ExitTable, ExitsReport, InfoReport, OtherTask, PathExamples, Picture,
    SchedKinds, SchedReport, Stats, TaskRow,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use doubts::DoubtKind;
use paths::{InstanceReport, PathReport, StageReport, StepReport};
use render::info::Head;
use report::{Invocation, Page, Recording};
use rules::{Diagnosis, Evidence, Finding, PathInstance, TableRow, TimeWindow};

const EVIL: &str = "</script><img src=x onerror=\"document.title='owned'\">\x1b[2J\u{202e}&amp;";

fn stats(durations: &[u64]) -> Stats {
    let mut stats = Stats::default();
    durations.iter().for_each(|ns| stats.add(*ns));
    stats
}

fn exit(key: &str) -> ExitRow {
    ExitRow {
        key: key.to_owned(),
        name: Some(EVIL.to_owned()),
        reason: None,
        address: None,
        write: false,
        waiting: false,
        vm_pid: None,
        vm: None,
        vm_name: None,
        vcpu: None,
        tids: Vec::new(),
        task: None,
        function: None,
        stats: stats(&[1_000, 2_500]),
        times: None,
        untimed: 0,
        contradicts: false,
        user_count: 0,
        whole: Default::default(),
    }
}

fn task() -> TaskRow {
    TaskRow {
        comm: EVIL.to_owned(),
        tid: 7,
        pid: Some(7),
        threads: 1,
        runtime_ns: 0,
        on_cpu_ns: 12,
        off_cpu_ns: 0,
        delays: stats(&[5]),
        delay_max_at: 443_995_733_142,
        woken_waits: Stats::default(),
        preempted: stats(&[5]),
        longest_wait: None,
        preempted_by: vec![OtherTask {
            tid: Some(8),
            comm: Some(EVIL.into()),
            count: 1,
            ns: 5,
        }],
        woken_by: Vec::new(),
        migrations: 0,
    }
}

fn path() -> PathReport {
    PathReport {
        name: EVIL.to_owned(),
        about: EVIL.to_owned(),
        count: 2,
        total: stats(&[10, 20]),
        longest: Default::default(),
        ledger: ::paths::PathLedger::default(),
        stages: vec![StageReport {
            ledger: ::paths::PathLedger::default(),
            name: EVIL.to_owned(),
            chain: Some(EVIL.to_owned()),
            stats: stats(&[10, 20]),
            slow_mean_ns: None,
            fast_mean_ns: None,
            saving_ns: 0,
        }],
        by: None,
        groups: Vec::new(),
        dropped: Vec::new(),
        traits: Vec::new(),
        vcpus: Vec::new(),
        devices: Vec::new(),
        met: Vec::new(),
        slow: None,
        in_guests: None,
        recording_ns: Some(3),
        only_if_found: false,
        clears: Some(::paths::ClearedPath {
            path: EVIL.to_owned(),
            slow_by_ns: 4,
            longest_ns: 1,
        }),
    }
}

fn picture() -> Picture {
    let mut picture = Picture {
        names: vec![EVIL.to_owned()],
        info: InfoReport {
            events: vec![EventCount {
                name: EVIL.to_owned(),
                count: 3,
            }],
            start: Some(443_000_000_000),
            end: Some(464_000_000_000),
            ..InfoReport::default()
        },
        exits: vec![ExitsReport {
            table: ExitTable::Ioport,
            rows: vec![exit("0x60:PIN"), exit("0x3f8:POUT")],
            total_count: 4,
            total_ns: 7_000,
            handling_ns: 7_000,
            seen: None,
            from_exits: false,
            sums_of_rows: true,
        }],
        sched: Some(SchedReport {
            delays_as: Default::default(),
            kinds: SchedKinds::default(),
            is_whole: true,
            rows: vec![task()],
            cpus: Vec::new(),
            work: Vec::new(),
            delays: stats(&[5]),
        }),
        paths: vec![path()],
        ..Picture::default()
    };
    picture.quality.raise(DoubtKind::GuestLeftOut {
        text: EVIL.to_owned(),
    });
    picture
}

fn diagnosis() -> Diagnosis {
    let evidence = Evidence {
        text: EVIL.to_owned(),
        windows: vec![TimeWindow {
            start_ns: 443_990_000_000,
            end_ns: 444_100_000_000,
        }],
        threads: vec![1700, 1705],
        instances: vec![PathInstance {
            path: EVIL.to_owned(),
            begin_ns: 450_000_000_000,
            total_ns: 67_000_000,
        }],
        rows: vec![TableRow {
            table: ExitTable::Ioport.name(),
            key: "0x3f8:POUT".to_owned(),
        }],
        ..Evidence::default()
    };
    let of_all = Evidence {
        text: "a thread".to_owned(),
        threads: vec![1700],
        ..Evidence::default()
    };
    let finding = Finding::new(rules::all()[0], 0.9)
        .title(EVIL)
        .evidence(evidence)
        .evidence(of_all);
    Diagnosis {
        findings: vec![finding],
        ..Diagnosis::default()
    }
}

fn instance() -> InstanceReport {
    let step = |name: &str, time: u64| StepReport {
        machine: None,
        name: name.into(),
        time,
        cpu: 0,
        tid: 7,
        thread: EVIL.into(),
        does: EVIL.into(),
        to: None,
    };
    InstanceReport {
        path: EVIL.into(),
        number: 4,
        steps: vec![step(EVIL, 5), step("b", 9)],
        ..InstanceReport::default()
    }
}

/// The page without what its scripts and styles say, as XML.
fn xml(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").expect("a document");
    for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let (before, after) = rest.split_once(open).expect("it has one");
        out.push_str(before);
        out.push_str(open);
        let (_, behind) = after.split_once(close).expect("it ends");
        rest = behind;
        out.push_str(close);
    }
    out + rest
}

const TIMELINE: &str = "{\"names\":[\"</script><img src=x>\"]}";

fn page(timeline: bool) -> String {
    let (picture, diagnosis) = (picture(), diagnosis());
    let head = Head {
        nanoseconds: true,
        ..Head::default()
    };
    let examples = [PathExamples {
        path: EVIL.to_owned(),
        slow: instance(),
        fast: Some(instance()),
        longest: vec![instance()],
    }];
    let recording = Recording {
        name: EVIL,
        head: &head,
        picture: &picture,
        diagnosis: &diagnosis,
        guests: &[],
        flames: Vec::new(),
        timeline: timeline.then(|| TIMELINE.to_owned()),
        examples: &examples,
        invocation: Invocation::new(OsStr::new(EVIL)),
        headline: EVIL.to_owned(),
    };
    let page = Page {
        title: EVIL,
        version: "0",
        recordings: &[recording],
        against: None,
    };
    let mut html = Vec::new();
    page.write(&mut html).expect("a page");
    String::from_utf8(html).expect("a text")
}

#[test]
fn whatever_has_a_name_is_shown_as_text() {
    let page = page(true);
    let xml = xml(&page);
    let document = roxmltree::Document::parse(&xml).expect("a page is well-formed");
    let tags = |tag: &str| {
        let nodes = document.descendants();
        nodes.filter(|node| node.tag_name().name() == tag).count()
    };
    assert_eq!(tags("img"), 0);
    // Its script, the data of its plot, and that of its timeline.
    assert_eq!((tags("script"), page.matches("</script>").count()), (3, 3));
    assert_eq!(page.matches("<img").count(), 0);
    assert!(!page.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!page.contains('\u{202e}'));
    for node in document.descendants().filter(|node| node.is_element()) {
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(name != "style" && !name.starts_with("on"), "{name}");
        }
    }
    let shown = "&lt;/script&gt;&lt;img src=x onerror=&quot;\
                 document.title=&#39;owned&#39;&quot;&gt;\\x1b[2J\\u{202e}&amp;amp;";
    assert!(page.matches(shown).count() >= 12);
}

#[test]
fn evidence_links_to_its_times_threads_and_rows() {
    let page = page(true);
    for link in [
        "<a href=\"#t=443.990000000,444.100000000&amp;lane=tid-1700,tid-1705\">443.990000000 to 444.100000000</a>",
        "<a href=\"#t=450.000000000,450.067000000&amp;lane=tid-1700,tid-1705&amp;path=%3C%2Fscript%3E%3Cimg%20src%3Dx",
        "<a href=\"#row-exits-ioport-1\">ioport 0x3f8:POUT</a>",
        "<a href=\"#t=443.000000000,464.000000000&amp;lane=tid-1700\">show on timeline",
    ] {
        assert!(page.contains(link), "{link}");
    }
    assert!(page.contains("<tr id=\"row-exits-ioport-1\"><td>0x3f8:POUT</td>"));
    // Without a timeline there is nowhere to lead.
    assert!(!self::page(false).contains("href=\"#t="));
}

#[test]
fn the_timeline_s_data_is_packed() {
    let page = page(true);
    let (_, data) = page
        .split_once("class=\"timeline-data\">")
        .expect("a timeline");
    let (data, _) = data.split_once('<').expect("an end");
    let packed = BASE64_STANDARD.decode(data).expect("base64");
    let json = miniz_oxide::inflate::decompress_to_vec(&packed).expect("deflate");
    assert_eq!(json, TIMELINE.as_bytes());
}

#[test]
fn a_slow_and_a_fast_instance_stand_side_by_side() {
    let page = page(false);
    assert_eq!(page.matches("<figure class=\"sequence\">").count(), 2);
    assert!(page.contains("a slow one: instance 4, 4ns"));
    assert!(page.contains(" --instance 4 "));
}
