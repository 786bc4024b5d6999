//! Pictures of flame graphs in a browser: that they open from a file and ask for nothing, zoom, search, and that names
//! in them are text.

use std::fs;
use std::path::{Path, PathBuf};

use render::flame_picture::{self, FlamePicture, Graph};
use serde_json::json;
use stacks::{Diff, FrameName, FrameOwner, StackTree, Stacks, Weight};

use crate::common::browser::Browser;
use crate::common::{file, run};

/// WebDriver's keys.
const CONTROL: char = '\u{e009}';
const ENTER: char = '\u{e007}';
const ESCAPE: char = '\u{e00c}';
const DOWN: char = '\u{e015}';
const UP: char = '\u{e013}';

/// Stacks with names; threads' names begin with `*`.
fn stacks(lists: &[(&[&str], u64)]) -> Stacks {
    let mut names: Vec<&str> = Vec::new();
    let mut tree = StackTree::new(1 << 16);
    for (list, samples) in lists {
        let frames = list.iter().map(|name| {
            let known = names.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }) as u32
        });
        let frames: Vec<u32> = frames.collect();
        let weight = Weight {
            samples: *samples,
            amount: samples * 1_000_000,
        };
        tree.add(frames, weight);
    }
    let name = |frame: u32| {
        let name = names[frame as usize];
        let (text, part) = match name.strip_prefix('*') {
            Some(thread) => (thread, FrameOwner::Group),
            None if name.starts_with("kvm") => (name, FrameOwner::Kvm),
            None => (name, FrameOwner::Kernel),
        };
        FrameName {
            text: text.into(),
            part,
        }
    };
    Stacks::of(&tree, name, |_| false)
}

/// Draws a graph, and writes it as a file of each kind.
fn written(folder: &Path, graph: Graph<'_>) -> [PathBuf; 2] {
    let notes = ["a note & <b>".to_owned()];
    let picture = FlamePicture {
        title: "perf.data",
        notes: &notes,
        graph,
        nanoseconds: true,
    };
    let drawn = picture.draw();
    [("a.svg", drawn.svg()), ("a.html", drawn.page())].map(|(name, text)| {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        file
    })
}

fn small() -> Stacks {
    stacks(&[
        (&["*CPU 0/KVM", "entry", "kvm_run", "entry"], 30),
        (&["*CPU 0/KVM", "entry", "kvm_run", "kvm_exit"], 10),
        (&["*CPU 0/KVM", "entry", "read"], 20),
        (&["*vhost", "kthread", "read"], 40),
    ])
}

/// Returns what is said of each box that shows, and its width.
const BOXES: &str = "return [...document.querySelectorAll('.boxes .box[data-i]')].map(box =>
    [box.querySelector('title').textContent, Number(box.querySelector('rect').getAttribute('width'))])";

/// Returns what is said of each box, and its width in pixels.
fn boxes(browser: &Browser) -> Vec<(String, f64)> {
    let boxes = browser.run(BOXES);
    let boxes = boxes.as_array().unwrap().iter();
    boxes
        .map(|at| (at[0].as_str().unwrap().to_owned(), at[1].as_f64().unwrap()))
        .collect()
}

/// Returns what each box is called, and the share of the picture that it takes in per cent.
fn widths(browser: &Browser) -> Vec<(String, i64)> {
    let boxes = boxes(browser);
    let all = boxes.iter().map(|(_, width)| *width).fold(0.0, f64::max);
    let name = |said: &str| said.split(": ").next().unwrap_or_default().to_owned();
    let boxes = boxes.iter();
    boxes
        .map(|(said, width)| (name(said), (width / all * 100.0).round() as i64))
        .collect()
}

fn owned(widths: &[(&str, i64)]) -> Vec<(String, i64)> {
    let widths = widths.iter();
    widths
        .map(|(name, width)| ((*name).to_owned(), *width))
        .collect()
}

const FOUND: &str = "return document.querySelector('.found').textContent";
const DETAILS: &str = "return document.querySelector('.details').textContent";

#[test]
fn a_browser_s_complaints_are_heard() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [_, page] = written(folder.path(), Graph::Stacks(&small()));
    let text = fs::read_to_string(&page).unwrap();
    // The page's own policy forbids a script that it does not name, and pictures.
    let spoilt = text.replace(
        "</body>",
        "<script>let x;</script><img src=\"y.png\"></body>",
    );
    fs::write(&page, spoilt).unwrap();
    browser.open(&page);
    let complaints = browser.complaints();
    let of = |what: &str| complaints.iter().any(|one| one.contains(what));
    assert!(of("script-src") && of("img-src"), "{complaints:?}");
    let asks = "<!DOCTYPE html><title>x</title><img src=\"y.png\">";
    fs::write(&page, asks).unwrap();
    browser.open(&page);
    let complaints = browser.complaints();
    assert!(
        complaints.iter().any(|one| one.contains("asked for")),
        "{complaints:?}"
    );
}

#[test]
fn a_picture_zooms_and_searches() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for file in written(folder.path(), Graph::Stacks(&small())) {
        browser.open(&file);
        let whole = owned(&[
            ("all", 100),
            ("CPU 0/KVM", 60),
            ("entry (host kernel)", 60),
            ("kvm_run (KVM)", 40),
            ("entry (host kernel)", 30),
            ("kvm_exit (KVM)", 10),
            ("read (host kernel)", 20),
            ("vhost", 40),
            ("kthread (host kernel)", 40),
            ("read (host kernel)", 40),
        ]);
        assert_eq!(widths(&browser), whole, "{}", file.display());
        let said = &boxes(&browser)[3].0;
        assert_eq!(said, "kvm_run (KVM): 40.00ms, 40.00 %, 40 samples");

        // A click makes a box, and those below it, as wide as the picture.
        browser.click(".box[data-i='3']");
        let zoomed = owned(&[
            ("all", 100),
            ("CPU 0/KVM", 100),
            ("entry (host kernel)", 100),
            ("kvm_run (KVM)", 100),
            ("entry (host kernel)", 75),
            ("kvm_exit (KVM)", 25),
        ]);
        assert_eq!(widths(&browser), zoomed);
        let details = browser.run(DETAILS);
        assert_eq!(details, "kvm_run (KVM): 40.00ms, 40.00 %, 40 samples");
        browser.click(".tools button");
        assert_eq!(widths(&browser), whole);

        // 'entry' is in itself, and counts once: 60 of 100.
        browser.keys(&format!("{CONTROL}f"));
        browser.write("entry");
        browser.wait("return document.querySelectorAll('.hit').length === 2");
        assert_eq!(browser.run(FOUND), "matched 60.00 %, 60.00ms");
        browser.click(".box[data-i='3']");
        let found = "matched 60.00 %, 60.00ms; 100.00 % of what is shown";
        assert_eq!(browser.run(FOUND), found);

        // Escape ends the search, then the zoom.
        browser.click(".tools input");
        browser.keys(&ESCAPE.to_string());
        browser.wait("return document.querySelectorAll('.hit').length === 0");
        browser.keys(&ESCAPE.to_string());
        assert_eq!(widths(&browser), whole);
        // With a capital, case counts.
        browser.write("^(KTHREAD|K.*D)$");
        browser
            .wait("return document.querySelector('.found').textContent === 'matched 0.00 %, 0ns'");
        browser.keys(&ESCAPE.to_string());
        browser.write("^k.*d$");
        browser.wait(
            "return document.querySelector('.found').textContent === 'matched 40.00 %, 40.00ms'",
        );
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_picture_is_read_by_keyboard() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [svg, _] = written(folder.path(), Graph::Stacks(&small()));
    browser.open(&svg);
    browser.run("document.querySelector('.box[tabindex=\"0\"]').focus()");
    // The root is at the foot: up leads to the widest that it called.
    browser.write(&format!("{UP}{UP}{UP}"));
    let details = browser.run(DETAILS);
    assert_eq!(details, "kvm_run (KVM): 40.00ms, 40.00 %, 40 samples");
    browser.keys(&ENTER.to_string());
    assert_eq!(widths(&browser).len(), 6);
    browser.write(&DOWN.to_string());
    let details = browser.run(DETAILS);
    assert_eq!(details, "entry (host kernel): 60.00ms, 60.00 %, 60 samples");
    browser.keys(&ESCAPE.to_string());
    assert_eq!(widths(&browser).len(), 10);
}

#[test]
fn tools_stay_in_sight_of_a_tall_picture() {
    let deep: Vec<String> = (0..150).map(|level| format!("f{level}")).collect();
    let deep: Vec<&str> = deep.iter().map(String::as_str).collect();
    let stacks = stacks(&[(&deep, 10)]);
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), Graph::Stacks(&stacks));
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = |selector: &str| {
        let top = "getBoundingClientRect().top";
        let place = browser.run(&format!(
            "return document.querySelector(\"{selector}\").{top}"
        ));
        place.as_f64().unwrap()
    };
    for file in &files {
        browser.open(file);
        // Its root is in sight, and where a flame graph has it when that is asked for.
        assert!(place(".box[data-i='0']") < 300.0);
        browser.run("scrollTo(0, 1000)");
        browser.wait("return scrollY === 1000");
        browser.wait(
            "return Math.abs(document.querySelector('.tools').getBoundingClientRect().top) < 5",
        );
        browser.run("scrollTo(0, 0)");
        browser.click(".tools button[aria-pressed]");
        assert!(place(".box[data-i='0']") > 2000.0);
        assert!(place(".box[data-i='150']") < 300.0);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_page_can_hold_several_pictures() {
    let [a, b] = [
        small(),
        stacks(&[(&["*iperf3", "read"], 10), (&["*iperf3", "write"], 30)]),
    ];
    let notes = [];
    let drawn = [&a, &b].map(|stacks| {
        let picture = FlamePicture {
            title: "one of two",
            notes: &notes,
            graph: Graph::Stacks(stacks),
            nanoseconds: true,
        };
        picture.draw().element()
    });
    let style = flame_picture::style() + "div { margin: 0 100px; }\n";
    let page = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\
         <title>two</title><style>{style}</style><div>{}</div><div>{}</div><script>{}</script>",
        flame_picture::policy(&style),
        drawn[0],
        drawn[1],
        flame_picture::SCRIPT,
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.html");
    fs::write(&file, page).unwrap();
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open(&file);
    browser.click("div:nth-of-type(2) .box[data-i='3']");
    let details = "return [...document.querySelectorAll('.details')].map(one => one.textContent)";
    let said = [
        "all: 100.0ms, 100.00 %, 100 samples",
        "write (host kernel): 30.00ms, 75.00 %, 30 samples",
    ];
    assert_eq!(browser.run(details), json!(said));
    // Each is as wide as what it stands in, and Ctrl-F is for the one that is looked at.
    let fits = "return [...document.querySelectorAll('svg.flame')].every(one => one.clientWidth === \
                one.parentElement.clientWidth)";
    assert_eq!(browser.run(fits), true);
    browser.keys(&format!("{CONTROL}f"));
    browser.write("read");
    browser.wait(
        "return document.querySelectorAll('.found')[1].textContent.startsWith('matched 25.00 %')",
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('.found')[0].textContent"),
        ""
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn hostile_names_are_inert() {
    let hostile = [
        "</script><script>document.title='owned'</script>",
        "]]></script><script>document.title='owned'</script>",
        "</metadata></svg><img src=x onerror=\"document.title='owned'\">",
        "--><script>document.title='owned'</script><!--",
        "<a xlink:href=\"javascript:alert(1)\">",
        "&lt;b&gt;&amp;&#60;",
        "'\"`${document.title='owned'}\\",
        "\u{202e}evil\u{2066}",
        "\u{0}\u{1b}[31m\r\n\u{9b}2J\u{2028}",
        "\u{ffff}\u{fffe}\u{fffd}",
        "__proto__",
        "constructor",
        "(((((a+)+)+)+$",
    ];
    let shown = [
        (7, "\\u{202e}evil\\u{2066}"),
        (8, "\\x00\\x1b[31m\\x0d\\x0a\\x9b2J\\u{2028}"),
        (9, "\\u{ffff}\\u{fffe}\u{fffd}"),
    ];
    let lists: Vec<[&str; 2]> = hostile.iter().map(|name| ["*thread", *name]).collect();
    let lists: Vec<(&[&str], u64)> = lists.iter().map(|list| (&list[..], 10)).collect();
    let stacks = stacks(&lists);
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), Graph::Stacks(&stacks));
    let svg = fs::read_to_string(&files[0]).unwrap();
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        assert_eq!(text.matches("<script").count(), 1);
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control) && !text.contains('\u{202e}'));
    }
    let document = roxmltree::Document::parse(&svg).expect("an SVG file is XML");
    assert!(document.descendants().all(|node| !node.has_tag_name("img")));
    let Some(browser) = Browser::start() else {
        return;
    };
    for file in &files {
        browser.open(file);
        let said = boxes(&browser);
        for (at, name) in hostile.iter().enumerate() {
            let name = shown.iter().find(|(n, _)| *n == at).map_or(*name, |s| s.1);
            let begin = format!("{name} (host kernel): ");
            assert!(
                said.iter().any(|(one, _)| one.starts_with(&begin)),
                "{name}"
            );
        }
        assert_eq!(browser.run("return document.title"), "perf.data");
        let elements = "return document.querySelectorAll('img, a, script').length";
        assert_eq!(browser.run(elements), 1);
        // What is no regular expression is searched for as it stands.
        for (name, share) in [
            ("(((((a+)+)", "7.69"),
            ("__proto__", "7.69"),
            ("owned", "38.46"),
        ] {
            browser.click(".tools input");
            browser.keys(&ESCAPE.to_string());
            browser.write(name);
            let begin = format!("matched {share} %");
            browser.wait(&format!(
                "return document.querySelector('.found').textContent.startsWith({})",
                json!(begin)
            ));
        }
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_difference_shows_both_sides() {
    let a = stacks(&[
        (&["*vhost", "read", "copy"], 500),
        (&["*vhost", "gone"], 500),
    ]);
    let b = stacks(&[
        (&["*vhost", "read", "copy"], 600),
        (&["*vhost", "new"], 200),
    ]);
    let diff = Diff::of(&a, &b, FrameName::clone);
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), Graph::Diff(&diff));
    let Some(browser) = Browser::start() else {
        return;
    };
    for file in &files {
        browser.open(file);
        let by_b = owned(&[
            ("all", 100),
            ("vhost", 100),
            ("new", 25),
            ("read", 75),
            ("copy", 75),
        ]);
        assert_eq!(widths(&browser), by_b);
        let class =
            "return [...document.querySelectorAll('.box')].map(box => box.getAttribute('class'))";
        let classes = json!([
            "box same",
            "box same",
            "box more3",
            "box more2",
            "box more2"
        ]);
        assert_eq!(browser.run(class), classes);
        let read = "read: A 50.00 % (500 samples), B 75.00 % (600 samples), +25.00 points";
        assert!(boxes(&browser).iter().any(|(said, _)| said == read));
        browser.click(".tools button:last-child");
        let by_a = owned(&[
            ("all", 100),
            ("vhost", 100),
            ("gone", 50),
            ("read", 50),
            ("copy", 50),
        ]);
        assert_eq!(widths(&browser), by_a);
        let classes = json!([
            "box same",
            "box same",
            "box less3",
            "box more2",
            "box more2"
        ]);
        assert_eq!(browser.run(class), classes);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_recording_s_picture_says_the_same_without_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file("x86/flame-iperf3/l1.perf.data.zst");
    let files = ["a.svg", "a.html"].map(|name| folder.path().join(name));
    for file in &files {
        let args = [Path::new("flame"), &recording, Path::new("-o"), file];
        let done = run(args);
        assert_eq!(done.status, 0, "{}", done.stderr);
    }
    let svg = fs::read_to_string(&files[0]).unwrap();
    let svg = roxmltree::Document::parse(&svg).expect("an SVG file is XML");
    let boxes = svg.descendants().filter(|node| {
        let class = node.attribute("class").unwrap_or_default();
        class.starts_with("box ")
    });
    let text = |node: roxmltree::Node<'_, '_>, tag: &str| {
        let child = node.children().find(|child| child.tag_name().name() == tag);
        child.and_then(|child| child.text()).map(str::to_owned)
    };
    let reported: Vec<[Option<String>; 2]> = boxes
        .map(|node| [text(node, "title"), text(node, "text")])
        .collect();
    assert!(reported.len() > 100);
    let Some(browser) = Browser::start() else {
        return;
    };
    for file in &files {
        browser.open(file);
        // All that is as wide as a pixel, which the file has without a script.
        let drawn = browser.run(
            "return [...document.querySelectorAll('.boxes .box[data-i]')]
                .filter(box => Number(box.querySelector('rect').getAttribute('width')) >= 0.999)
                .map(box => [box.querySelector('title').textContent, box.querySelector('text')?.textContent ?? null])",
        );
        assert_eq!(drawn, json!(reported));
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}
