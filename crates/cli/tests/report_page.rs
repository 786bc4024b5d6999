//! The report as one HTML file: its sections, that its numbers are those of the commands it names, that its links lead
//! somewhere, and that no name in it becomes markup.

mod sections;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::sections::wrong_sections;
use crate::common::browser::Browser;
use crate::common::page::{Page, Table, shell, text_of};
use crate::common::{Failures, all_cases, cases, file, note, read, run};

/// What a file may take.
const MAX_BYTES: usize = 5 << 20;

/// Checks what holds for every page.
pub(crate) fn is_sound(failures: &mut Failures, what: &str, page: &Page) {
    failures.check(page.text.len() < MAX_BYTES, || {
        format!("{what}: {} bytes", page.text.len())
    });
    let document = page.document();
    let nodes = || document.descendants().filter(|node| node.is_element());
    let sections = nodes().filter(|node| node.has_tag_name("section"));
    let sections: Vec<&str> = sections.filter_map(|node| node.attribute("id")).collect();
    let absent = nodes().find(|node| node.attribute("id") == Some("absent"));
    let wrong = wrong_sections(&sections, &absent.map(text_of).unwrap_or_default());
    failures.check(wrong.is_none(), || format!("{what}: sections: {wrong:?}"));
    for section in nodes().filter(|node| node.has_tag_name("section")) {
        let text = text_of(section);
        failures.check(
            text.lines().filter(|line| !line.is_empty()).count() > 1,
            || format!("{what}: {:?} says nothing", section.attribute("id")),
        );
    }
    let mut ids = BTreeSet::new();
    for node in nodes() {
        for attribute in node.attributes() {
            let name = attribute.name();
            failures.check(name != "style" && !name.starts_with("on"), || {
                format!("{what}: an attribute {name}")
            });
        }
        if let Some(id) = node.attribute("id") {
            failures.check(ids.insert(id), || format!("{what}: {id} is there twice"));
        }
    }
    for link in nodes().filter_map(|node| node.attribute("href")) {
        let target = link.strip_prefix('#');
        let known = target.is_some_and(|id| ids.contains(id) || id.starts_with("t="));
        failures.check(known, || format!("{what}: {link} leads nowhere"));
    }
    let script = nodes().filter(|node| node.has_tag_name("script"));
    let live = script.filter(|node| node.attribute("type").is_none());
    failures.check(live.count() <= 2, || format!("{what}: scripts"));
    let control = |c: char| c.is_control() && c != '\n';
    failures.check(!page.xml.contains(control), || {
        format!("{what}: control characters")
    });
}

/// Returns the rows of a command's document that a table shows.
fn rows_of(table: &Table, document: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let within = |name: &str| -> Vec<Value> {
        let rows = list(&document["rows"]).into_iter();
        rows.flat_map(|row| list(&row[name])).collect()
    };
    let name = table.name.as_str();
    let all = document["paths"].as_array();
    let mut all = all.into_iter().flatten();
    let is_of = |path: &&Value| {
        let of = format!("path-{}", path["path"].as_str().unwrap_or_default());
        let rest = table.name.strip_prefix(of.as_str());
        rest.is_some_and(|rest| {
            matches!(rest, "" | "-totals" | "-because" | "-dropped" | "-ledger")
        })
    };
    let path = all.find(is_of).unwrap_or(&Value::Null);
    let total = || {
        let mut total = path["total"].clone();
        total["count"] = path["count"].clone();
        total
    };
    let with_total =
        |rows: &Value| -> Vec<Value> { std::iter::once(total()).chain(list(rows)).collect() };
    match name {
        "events" => {
            let all = list(&document["events"]).into_iter();
            all.filter(|event| event["count"] != 0).collect()
        }
        "vcpus-behind" => within("behind"),
        "vcpus-guest" => within("guest"),
        "vcpus-user" => within("user"),
        "sched-cpus" => list(&document["cpus"]),
        "sched-work" => list(&document["work"]),
        "sched-delays" => list(&document["delays"]),
        "sched-preempted" => {
            let mut rows = list(&document["rows"]);
            rows.sort_by_key(|row| std::cmp::Reverse(row["preempted_wait_ns"].as_u64()));
            rows.iter()
                .flat_map(|row| list(&row["preempted_by"]))
                .collect()
        }
        "counts" => list(&document["recordings"][0]["counts"]),
        _ if name.ends_with("-totals") => with_total(&path["groups"]),
        _ if name.ends_with("-ledger") => list(&path["ledger"]),
        _ if name.ends_with("-because") => list(&path["slow"]["because"]),
        _ if name.ends_with("-dropped") => {
            let dropped = path["dropped"].as_object().cloned().unwrap_or_default();
            let one = |count: &Value| serde_json::json!({ "count": count });
            dropped.values().map(one).collect()
        }
        _ if name.starts_with("path-") => with_total(&path["stages"]),
        "compare-changes" => list(&document["changes"]),
        "compare-likely" => list(&document["likely"]),
        "compare-noise" => list(&document["noise"]),
        "irqs-between-vcpus" => list(&document["ipis"]["by_distance"]),
        _ => list(&document["rows"]),
    }
}

/// Returns what a document says of a column, wherever in a row that stands.
fn said<'v>(row: &'v Value, column: &str) -> Option<&'v Value> {
    let own = row.get(column);
    own.or_else(|| {
        let (outer, inner) = column.split_once('_')?;
        let inside = row.get(outer).or_else(|| row.get(format!("{outer}s")))?;
        inside.get(inner)
    })
    .or_else(|| row.get(column)?.get("count"))
    .or_else(|| row.get(column.strip_prefix("delay_")?))
    .map(|value| match value.get("count") {
        Some(count) if column == "waits" => count,
        _ => value,
    })
}

/// Columns that documents do not have: shares of what they have, and threads that tables name beside their lists.
const OWN: [&str; 3] = ["total_share", "vcpu_tid", "task_pid"];

/// Compares a table with what its command prints as JSON.
fn equals(failures: &mut Failures, what: &str, table: &Table, document: &Value) -> usize {
    let rows = rows_of(table, document);
    let shown = rows.len().min(300);
    failures.equal(&format!("{what}: rows"), &table.rows.len(), &shown);
    let mut compared = 0;
    for (cells, row) in table.rows.iter().zip(&rows) {
        for (column, (exact, text)) in table.columns.iter().zip(cells) {
            let reported = said(row, column);
            match (exact, reported) {
                (Some(exact), Some(reported)) => {
                    // serde_json reads a share a last digit off.
                    let near = |a: f64, b: f64| (a - b).abs() <= 4.0 * f64::EPSILON * b.abs();
                    let reported_text = reported.to_string();
                    let same = match (exact.parse::<f64>(), reported.as_f64()) {
                        (Ok(exact), Some(reported_f64)) if reported.is_f64() => {
                            near(exact, reported_f64)
                        }
                        _ => *exact == reported_text,
                    };
                    failures.check(same, || {
                        format!("{what}: {column}: {exact}, not {reported}")
                    });
                    compared += 1;
                }
                (Some(_), None) => {
                    let own = OWN.iter().any(|own| own == column);
                    failures.check(own, || format!("{what}: {column} is not in {row}"));
                }
                (None, Some(Value::String(reported))) if !reported.contains(char::is_control) => {
                    // Documents call sides A and B, and people read the names of their files.
                    let verdict = |text: &str| text.rfind(". ").map_or(text.len(), |at| at + 2);
                    let (ours, theirs) = match column.as_str() {
                        "worse" if table.name.starts_with("compare-") => continue,
                        "text" if table.name.starts_with("compare-") => {
                            (&text[..verdict(text)], &reported[..verdict(reported)])
                        }
                        _ => (text.as_str(), reported.as_str()),
                    };
                    failures.equal(&format!("{what}: {column}"), &ours, &theirs);
                    compared += 1;
                }
                (None, Some(reported)) => {
                    let nothing = reported.is_null() || reported.is_array() || reported.is_string();
                    failures.check(nothing, || format!("{what}: {column} is {reported}"));
                }
                (None, None) => {}
            }
        }
    }
    compared
}

/// Runs the commands of a page: all of them succeed, and their numbers are those of its tables. Returns how many were
/// compared.
pub(crate) fn commands_say_the_same(failures: &mut Failures, what: &str, page: &Page) -> usize {
    let mut documents: BTreeMap<String, Option<Value>> = BTreeMap::new();
    for command in page.commands() {
        let run = shell(&command, "--format json");
        failures.check(run.status == 0, || {
            format!("{what}: {command}: {}", run.stderr)
        });
        documents.insert(command, run.json_with_times_under_one_name().ok());
    }
    let mut compared = 0;
    for table in page.tables() {
        let document = documents.get(&table.command).and_then(Option::as_ref);
        let what = format!("{what}: {}", table.name);
        let Some(document) = document else {
            failures.check(false, || {
                format!("{what}: '{}' is not among the commands", table.command)
            });
            continue;
        };
        compared += equals(failures, &what, &table, document);
    }
    compared
}

#[test]
fn every_recording_makes_a_page_whose_numbers_its_commands_print() {
    let mut failures = Failures::default();
    let mut compared = 0;
    let mut largest = 0;
    for case in cases() {
        let what = &case.name;
        let (run, page) = Page::of(&[&case.path], &[]);
        failures.check(run.status == 0, || format!("{what}: {}", run.stderr));
        let Some(page) = page else {
            continue;
        };
        largest = largest.max(page.text.len());
        is_sound(&mut failures, what, &page);
        compared += commands_say_the_same(&mut failures, what, &page);
    }
    note(&format!(
        "{compared} numbers; the largest page has {largest} bytes"
    ));
    failures.check(compared > 2_000, || format!("{compared} numbers"));
    failures.finish(2_000);
}

#[test]
fn texts_and_printed_tables_make_a_page() {
    let mut failures = Failures::default();
    let mut compared = 0;
    let seed = file("seed-text");
    let mut files: Vec<PathBuf> = fs::read_dir(seed)
        .expect("texts")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for path in files.iter().filter(|path| path.is_file()) {
        let what = path.display().to_string();
        let text = run(["report".as_ref(), path.as_os_str()]);
        let (page_run, page) = Page::of(&[path], &[]);
        let no_page = 2 * i32::from(text.text().contains("nothing was measured"));
        failures.equal(&what, &page_run.status, &(text.status + no_page));
        let Some(page) = page else {
            continue;
        };
        is_sound(&mut failures, &what, &page);
        let command = |one: &String| one.starts_with("trapline report --format json");
        if !page.commands().iter().any(command) {
            compared += commands_say_the_same(&mut failures, &what, &page);
        }
    }
    failures.check(compared > 100, || format!("{compared} numbers"));
    failures.finish(100);
}

/// Returns two recordings of the shipped corpus that have exits.
fn two() -> [PathBuf; 2] {
    let with_exits = |path: &Path| run(["exits".as_ref(), path.as_os_str()]).status == 0;
    let mut found = cases().into_iter().map(|case| case.path);
    let mut next = || found.find(|path| with_exits(path)).expect("a recording");
    [next(), next()]
}

#[test]
fn several_recordings_stand_in_one_page() {
    let [a, b] = two();
    let mut failures = Failures::default();
    let (run, page) = Page::of(&[&a, &b], &[]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = page.expect("a page");
    is_sound(&mut failures, "two", &page);
    let document = page.document();
    let headings = document
        .descendants()
        .filter(|node| node.has_tag_name("h3"))
        .map(text_of);
    let headings: Vec<String> = headings.collect();
    // Those that have something of each recording.
    let sections = document
        .descendants()
        .filter(|node| node.has_tag_name("section"));
    let whole = ["compare", "commands", "absent"];
    let each = sections.filter(|node| !whole.contains(&node.attribute("id").unwrap_or_default()));
    let each = each.count();
    failures.check(each >= 6, || format!("{each} sections"));
    for path in [&a, &b] {
        let name = path.display().to_string();
        let times = headings.iter().filter(|one| **one == name).count();
        failures.equal(&name, &times, &each);
    }
    failures.finish(20);
}

#[test]
fn a_page_has_the_comparison_that_was_asked_for() {
    let [a, b] = two();
    let mut failures = Failures::default();
    let against = a.display().to_string();
    let (run, page) = Page::of(&[&b], &["--against", &against]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = page.expect("a page");
    is_sound(&mut failures, "against", &page);
    let tables = page.tables();
    let table = tables.iter().find(|one| one.name.starts_with("compare-"));
    let table = table.expect("a table of changes");
    let command = format!("trapline compare --all {} {}", a.display(), b.display());
    assert_eq!(table.command, command);
    // What ranks changes is no measure, and a value stands with its unit.
    failures.check(
        !table.columns.iter().any(|column| column == "effect_ns"),
        || format!("{:?}", table.columns),
    );
    let at = table.columns.iter().position(|column| column == "a");
    let values = table.rows.iter().filter_map(|row| Some(&row.get(at?)?.1));
    let with_unit = |text: &&String| text.ends_with('s') || text.ends_with('%') || *text == "-";
    failures.check(values.clone().any(|text| text.ends_with("/s")), || {
        "no rate".to_owned()
    });
    for text in values {
        let known = with_unit(&text) || text.parse::<f64>().is_err();
        failures.check(known, || format!("{text} has no unit"));
    }
    let compared = commands_say_the_same(&mut failures, "against", &page);
    failures.check(compared > 50, || format!("{compared} numbers"));
    failures.finish(20);
    let without_file = run_report_against(&a, &b);
    assert_eq!(without_file, 2, "--against goes with -o");
}

fn run_report_against(a: &Path, b: &Path) -> i32 {
    let args = ["report".as_ref(), "--against".as_ref(), a.as_os_str()];
    run(args.into_iter().chain([b.as_os_str()])).status
}

#[test]
fn commands_have_the_filters_and_a_name_that_a_shell_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, _] = two();
    let name = folder.path().join("it's \"a\" $HOME `x` & <b>\n.data");
    fs::copy(&a, &name).expect("a copy");
    let mut failures = Failures::default();
    let (run, page) = Page::of(&[&name], &["--vcpu", "0", "--cpu", "0-63", "--time", "0,"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = page.expect("a page");
    is_sound(&mut failures, "filters", &page);
    for command in page.commands() {
        failures.check(command.contains("--vcpu=0 --cpu=0-63 --time=0,"), || {
            command.clone()
        });
        let run = shell(&command, "");
        failures.check(run.status == 0, || format!("{command}: {}", run.stderr));
    }
    failures.finish(10);
}

/// A page begins with the sentence of the screen, and counts what could not be checked in one line.
#[test]
fn a_page_begins_with_the_sentence_of_its_screen() {
    let mut failures = Failures::default();
    for name in [
        "x86/console-healthy/perf.data.zst",
        "seed-text/case2-hpet.perf-kvm-stat-vmexit.txt",
        "seed-text/case5-good-host.perf-sched-latency.txt",
    ] {
        let path = file(name);
        let screen = run(["report".as_ref(), path.as_os_str()]).text();
        let sentence: Vec<&str> = screen.lines().take_while(|line| !line.is_empty()).collect();
        let (_, page) = Page::of(&[&path], &[]);
        let page = page.expect("a page").text;
        let between = |from: &str, to: &str| -> String {
            let rest = page.split(from).nth(1).unwrap_or_default();
            rest.split(to).next().unwrap_or_default().to_owned()
        };
        let headline = between("<p class=\"headline\">", "</p>");
        failures.check(
            sentence.join(" ").starts_with(&headline) && !headline.is_empty(),
            || format!("{name}: {headline:?} is not {sentence:?}"),
        );
        let folded = between("<details class=\"unchecked\"><summary>", "</summary>");
        failures.check(
            folded.contains(" of ") && folded.contains("could not be checked"),
            || format!("{name}: {folded:?}"),
        );
        let diagnosis = run(["diagnose".as_ref(), path.as_os_str()]).text();
        let words: Vec<&str> = diagnosis.split_whitespace().collect();
        let reported = words.join(" ");
        let record = reported.split("'trapline record ").nth(1);
        let record = record.and_then(|rest| rest.split('\'').next());
        let record = record.unwrap_or("is named by no line");
        failures.check(
            page.contains(&format!("<code>trapline record {record}</code>")),
            || format!("{name}: {record}"),
        );
    }
    failures.finish(9);
}

/// What filters leave out is no lack of the recording, and what a reader would take for a contradiction is explained.
#[test]
fn a_page_explains_what_seems_to_contradict_itself() {
    let mut failures = Failures::default();
    let path = file("x86/console-sick/perf.data.zst");
    let (_, page) = Page::of(&[&path], &[]);
    let page = page.expect("a page").text;
    for words in [
        "timed from kvm_pio, which comes after the VMM",
        "sched_stat_runtime), which is kept of",
    ] {
        failures.check(page.contains(words), || format!("the page has no: {words}"));
    }
    for arguments in [&["report", "--full"][..], &["export", "--as", "md"]] {
        let arguments = arguments.iter().map(AsRef::<std::ffi::OsStr>::as_ref);
        let text = run(arguments.chain([path.as_os_str()])).text();
        failures.check(text.contains("timed from kvm_pio"), || text.clone());
    }
    let (_, page) = Page::of(&[&path], &["--cpu", "0"]);
    let page = page.expect("a page").text;
    failures.check(
        page.contains("No kvm_exit event passes the filters"),
        || "the page does not say that filters left out the exits".to_owned(),
    );
    for words in ["There are no kvm_exit events", "No kvm_exit events:"] {
        failures.check(!page.contains(words), || format!("the page says: {words}"));
    }
    failures.finish(6);
}

/// A window of a moment shows no rates, and what began in it may end behind it.
#[test]
fn a_short_window_is_not_judged() {
    let path = file("x86/console-sick/perf.data.zst");
    let time = "--time=450.2,450.3";
    let screen = run(["report".as_ref(), time.as_ref(), path.as_os_str()]).text();
    let text: Vec<&str> = screen.split_whitespace().collect();
    let text = text.join(" ");
    assert!(
        text.starts_with(&format!(
            "Too short to judge: the events that pass {time} span 91.78ms,"
        )),
        "{screen}"
    );
    assert!(
        text.contains(
            "An instance of irqfd that begins in this time took 263.4ms, and ends after it."
        ),
        "{screen}"
    );
    assert!(
        text.contains(&format!("5500 events, only {time},")),
        "{screen}"
    );
}

/// A line of the page's title is one line, whatever a file is called.
#[test]
fn a_title_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("two\nlines.txt");
    fs::copy(
        file("seed-text/case2-hpet.perf-kvm-stat-vmexit.txt"),
        &recording,
    )
    .expect("a copy");
    let page = folder.path().join("page.html");
    let arguments = [
        "report".as_ref(),
        recording.as_os_str(),
        "-o".as_ref(),
        page.as_os_str(),
    ];
    assert_eq!(run(arguments).status, 0);
    let html = fs::read_to_string(&page).expect("a page");
    let title = html
        .split("<title>")
        .nth(1)
        .and_then(|rest| rest.split("</title>").next());
    let title = title.expect("a title");
    assert!(title.contains("two\\x0alines.txt"), "{title}");
    let headings = html
        .split("<h1>")
        .nth(1)
        .and_then(|rest| rest.split("</h1>").next());
    assert_eq!(headings, Some(title));
}

#[test]
fn hostile_names_stay_text() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    // A folder's name and a file's have a slash between them.
    let inner = folder.path().join("<");
    fs::create_dir(&inner).expect("a folder");
    let named = inner.join("script><img src=x onerror=\"document.title='owned'\">");
    let vm = "</script><img src=x onerror=alert(1)>";
    let found = all_cases()
        .into_iter()
        .filter(|one| one.kind == "perf.data");
    let found = found.filter(|one| crate::common::small(&one.path));
    let bytes = found
        .map(|one| read(&one.path))
        .find(|bytes| memchr::memmem::find(bytes, b"CPU 0/KVM").is_some());
    let mut bytes = bytes.expect("a recording with names");
    let at: Vec<usize> = memchr::memmem::find_iter(&bytes, b"CPU 0/KVM").collect();
    for at in at {
        bytes[at..at + 9].copy_from_slice(b"</script>");
    }
    fs::write(&named, &bytes).expect("a written file");
    let info = run([
        "info".as_ref(),
        named.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    let info = info.json().expect("JSON");
    let pid = info["vms"][0]["pid"].as_i64().unwrap_or(1);
    let ps = format!(
        "    PID     TID COMMAND         COMMAND\n{pid:>7} {pid:>7} qemu-system-x86 /usr/bin/qemu-system-x86_64 \
         -name \"{vm}\",debug-threads=on -m 1G\n"
    );
    let facts = folder.path().join("ps.txt");
    fs::write(&facts, ps).expect("a written file");
    let facts = facts.display().to_string();
    let (run, page) = Page::of(&[&named], &["--facts", &facts]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = page.expect("a page");
    is_sound(&mut failures, "hostile", &page);
    let document = page.document();
    let elements = document.descendants();
    let images = elements.filter(|node| node.has_tag_name("img")).count();
    failures.equal("images", &images, &0);
    // Only the page's own scripts, and data.
    let data = page
        .text
        .matches("<script type=\"application/json\">")
        .count();
    let scripts = page.text.matches("<script").count();
    failures.check(scripts - data <= 3, || format!("{scripts} scripts"));
    failures.check(page.text.contains("&lt;/script&gt;"), || {
        "the names are not shown".to_owned()
    });
    let file = folder.path().join("page.html");
    fs::write(&file, &page.text).expect("a written file");
    if let Some(browser) = Browser::start() {
        browser.open(&file);
        let title = browser.run("return document.title");
        failures.check(title.as_str().is_some_and(|title| title != "owned"), || {
            format!("{title}")
        });
        let images = browser.run("return document.querySelectorAll('img').length");
        failures.equal("images in a browser", &images, &Value::from(0));
        failures.equal("complaints", &browser.complaints(), &Vec::new());
    }
    failures.finish(10);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("no-such-folder").join("report.html");
    let args = [
        "report".as_ref(),
        two()[0].as_os_str().to_owned().as_os_str(),
        "-o".as_ref(),
        file.as_os_str(),
    ]
    .map(std::ffi::OsStr::to_owned);
    let run = run(args);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("cannot be written"), "{}", run.stderr);
}
