//! Each fixture is read, and mangled as tickets mangle it the same scores are read; nothing else has any.

use std::fs;
use std::path::{Path, PathBuf};

use results::{FORMS, Score, ScoreUnit, scores};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns scores without their lines, which mangling moves.
fn content(text: &str) -> Vec<Score> {
    let found = scores(text.as_bytes()).into_iter();
    found.map(|score| Score { line: 0, ..score }).collect()
}

/// The same by their names: those of one line have no order.
fn sorted(text: &str) -> Vec<Score> {
    let mut found = content(text);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn fixtures() -> impl Iterator<Item = (&'static str, String)> {
    let files = FORMS.iter().flat_map(|form| form.fixtures);
    files.map(|file| (*file, fixture(file)))
}

/// The tool, what a score is of, how much in what.
type NamedValue<'s> = (&'s str, &'s str, f64, ScoreUnit);

#[track_caller]
fn reads(name: &str, want: &[NamedValue<'_>]) {
    let found = scores(fixture(&format!("tests/scores/{name}")).as_bytes());
    let found: Vec<NamedValue<'_>> = found
        .iter()
        .map(|score| {
            (
                score.printed_by,
                score.name.as_str(),
                score.value,
                score.unit,
            )
        })
        .collect();
    let alike = |(a, b): (&NamedValue<'_>, &NamedValue<'_>)| {
        (a.0, a.1, a.3) == (b.0, b.1, b.3) && (a.2 - b.2).abs() <= 1e-9 * a.2.abs().max(1.0)
    };
    let same = found.len() == want.len() && found.iter().zip(want).all(alike);
    assert!(same, "{name}: {found:#?}\nand not {want:#?}");
}

#[test]
fn every_fixture_is_read() {
    for (file, text) in fixtures() {
        let found = scores(text.as_bytes());
        assert!(!found.is_empty(), "{file}");
        for score in found {
            assert!(score.value >= 0.0 && score.line > 0, "{file}: {score:?}");
            let rate = matches!(
                score.unit,
                ScoreUnit::PerSecond | ScoreUnit::BitsPerSecond | ScoreUnit::BytesPerSecond
            );
            assert_eq!(score.higher_is_better, rate, "{file}: {score:?}");
        }
    }
}

#[test]
fn sysbench_has_a_rate_in_every_version() {
    use ScoreUnit::{BytesPerSecond, Nanoseconds, PerSecond};
    let tool = "sysbench";
    reads(
        "sysbench-cpu-0.4.12.txt",
        &[
            (tool, "events per second", 400.0, PerSecond),
            (tool, "latency min", 2_400_000.0, Nanoseconds),
            (tool, "latency avg", 2_500_000.0, Nanoseconds),
            (tool, "latency max", 7_250_000.0, Nanoseconds),
            (tool, "latency p95", 2_610_000.0, Nanoseconds),
        ],
    );
    let first = |name: &str| {
        let found = scores(fixture(&format!("tests/scores/{name}")).as_bytes());
        let first = found.first().expect("a score");
        (first.name.clone(), first.value, first.unit)
    };
    let named = |name: &str, value, unit| (name.to_owned(), value, unit);
    assert_eq!(
        first("sysbench-cpu-1.0.20.txt"),
        named("events per second", 4701.24, PerSecond)
    );
    assert_eq!(
        first("sysbench-oltp-1.1.txt"),
        named("transactions per second", 100.0, PerSecond)
    );
    assert_eq!(
        first("sysbench-fileio-0.5.txt"),
        named("requests per second", 3000.0, PerSecond)
    );
    let memory = scores(fixture("tests/scores/sysbench-memory-1.0.20.txt").as_bytes());
    assert_eq!(memory[1].unit, BytesPerSecond);
    assert_eq!(memory[1].value, 2864.25 * 1024.0 * 1024.0);
}

#[test]
fn iperf_has_the_bitrates_of_the_whole_time() {
    use ScoreUnit::{BitsPerSecond, Nanoseconds, Number, Share};
    reads(
        "iperf3-tcp-parallel-3.12.txt",
        &[
            ("iperf3", "bitrate (sender)", 12.6e9, BitsPerSecond),
            ("iperf3", "retransmits (sender)", 1.0, Number),
            ("iperf3", "bitrate (receiver)", 12.5e9, BitsPerSecond),
        ],
    );
    reads(
        "iperf3-udp-3.12.txt",
        &[
            ("iperf3", "bitrate (sender)", 50.1e6, BitsPerSecond),
            ("iperf3", "bitrate (receiver)", 50.1e6, BitsPerSecond),
            ("iperf3", "jitter (receiver)", 9000.0, Nanoseconds),
            ("iperf3", "loss (receiver)", 0.0, Share),
        ],
    );
    let bitrate = |value| [("iperf", "bitrate", value, BitsPerSecond)];
    reads("iperf-tcp-2.1.txt", &bitrate(14.4e9));
    reads("iperf-tcp-parallel-2.1.txt", &bitrate(30.4e9));
    reads("iperf-tcp-2.0.txt", &bitrate(9.5e9));
    // The last line is missing: the mean of what is there.
    let text = fixture("tests/scores/iperf-tcp-2.0.txt");
    let cut = text.trim_end().rsplit_once('\n').expect("lines").0;
    let found = scores(cut.as_bytes());
    assert_eq!((found.len(), found[0].value), (1, 9.5e9));
    // Two streams without their sum are no bitrate of both.
    let text = fixture("tests/scores/iperf-tcp-parallel-2.1.txt");
    let streams: Vec<&str> = text.lines().filter(|line| !line.contains("SUM")).collect();
    assert_eq!(scores(streams.join("\n").as_bytes()), []);
}

#[test]
fn fio_and_ping_have_rates_and_times() {
    use ScoreUnit::{BytesPerSecond, Nanoseconds, PerSecond, Share};
    reads(
        "fio-2.2.txt",
        &[
            ("fio", "read IOPS", 102_400.0, PerSecond),
            ("fio", "read bandwidth", 409_600.0 * 1024.0, BytesPerSecond),
            ("fio", "read clat avg", 150_250.0, Nanoseconds),
            ("fio", "read clat max", 12_050_000.0, Nanoseconds),
            ("fio", "read clat p99", 302_000.0, Nanoseconds),
        ],
    );
    for name in ["ping-german.txt", "ping-french.txt", "ping-chinese.txt"] {
        reads(
            name,
            &[
                ("ping", "loss", 0.25, Share),
                ("ping", "rtt min", 43_000.0, Nanoseconds),
                ("ping", "rtt avg", 76_000.0, Nanoseconds),
                ("ping", "rtt max", 120_000.0, Nanoseconds),
                ("ping", "rtt mdev", 32_000.0, Nanoseconds),
            ],
        );
    }
    reads(
        "ping-busybox.txt",
        &[
            ("ping", "loss", 0.25, Share),
            ("ping", "rtt min", 287_000.0, Nanoseconds),
            ("ping", "rtt avg", 366_000.0, Nanoseconds),
            ("ping", "rtt max", 512_000.0, Nanoseconds),
        ],
    );
    // Two jobs are not one.
    let two = "\
web: (groupid=0, jobs=1): err= 0: pid=1: Fri Nov 27 20:32:49 2026
  read: IOPS=12.3k, BW=48.0MiB/s (50.3MB/s)(2892MiB/60001msec)
log: (groupid=0, jobs=1): err= 0: pid=2: Fri Nov 27 20:32:49 2026
  write: IOPS=10, BW=40.0KiB/s (41.0kB/s)(2892MiB/60001msec); 0 zone resets
";
    let found = content(two);
    let names: Vec<&str> = found.iter().map(|score| score.name.as_str()).collect();
    let want = [
        "web read IOPS",
        "web read bandwidth",
        "log write IOPS",
        "log write bandwidth",
    ];
    assert_eq!(names, want);
    assert_eq!((found[0].value, found[3].value), (12_300.0, 40_960.0));
}

#[track_caller]
fn same(file: &str, how: &str, text: &str, mangled: &str) {
    assert_eq!(sorted(mangled), sorted(text), "{file}, {how}:\n{mangled}");
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn what_tickets_do_to_texts_changes_nothing() {
    for (file, text) in fixtures() {
        let quoted = each_line(&text, |line| format!("> {line}"));
        same(file, "quoted", &text, &quoted);
        let entities = each_line(&text, |line| {
            format!("&gt; {}", line.replace('"', "&quot;"))
        });
        same(file, "entities", &text, &entities);
        same(file, "CRLF", &text, &text.replace('\n', "\r\n"));
        same(file, "no-break blanks", &text, &text.replace(' ', "\u{a0}"));
        if !file.ends_with("json") {
            same(file, "tabs", &text, &text.replace("  ", "\t"));
            let prose = each_line(&text, |line| {
                format!("{line}\n这里 we see 12 of 30 ms, (foo):\n")
            });
            // A heading that stands between is foreign to each row.
            if !file.contains("iperf") && !file.contains("sysbench") {
                same(file, "prose between", &text, &prose);
            }
        }
    }
}

#[test]
fn decimal_commas_and_one_line_are_read() {
    let comma = |text: &str| -> String {
        let chars: Vec<char> = text.chars().collect();
        let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
        let each = chars.iter().enumerate();
        each.map(|(at, c)| match c {
            '.' if at > 0 && digit(at - 1) && digit(at + 1) => ',',
            c => *c,
        })
        .collect()
    };
    for file in [
        "sysbench-cpu-1.0.20.txt",
        "ping-iputils.txt",
        "iperf3-tcp-3.12.txt",
    ] {
        let text = fixture(&format!("tests/scores/{file}"));
        same(file, "decimal commas", &text, &comma(&text));
    }
    for file in [
        "sysbench-cpu-1.0.20.txt",
        "sysbench-cpu-0.4.12.txt",
        "iperf3-tcp-3.12.txt",
        "fio-randrw-3.33.txt",
    ] {
        let text = fixture(&format!("tests/scores/{file}"));
        let words: Vec<&str> = text.split_whitespace().collect();
        same(file, "one line", &text, &words.join(" "));
    }
}

#[test]
fn two_runs_are_two() {
    for (file, text) in fixtures().filter(|(file, _)| !file.contains("without-its-end")) {
        let once = content(&text);
        let twice = content(&format!("{text}\nand again:\n\n{text}"));
        assert_eq!(twice.len(), 2 * once.len(), "{file}: {twice:#?}");
    }
}

#[test]
fn prose_and_other_tools_have_no_scores() {
    for text in [
        "客户机 events per secord 在280.83:\n",
        "we got events per second: about 280\nmax: 3\navg: 5.0\n",
        "  clocksource sysbench(events per second) vmexit(Total Samples)\n  hpet 280.83 38804\n",
        "the ping is 0.18ms, with time=0.045 ms sometimes, rtt min/avg/max = fine\n",
        "iperf3 gives 9.41 Gbits/sec here and 3.26 Gbits/sec there, 0.00-10.00 sec 1 GBytes 2 Gbits/sec\n",
        "[ 12.5] 0.00-10.00 sec of what\nread: the manual\nread: IOPS=high, BW=low\n",
        "{ not JSON\n{\"end\": {\"sum\": {}}}\n{\"end\": {}}\n",
        "read: 14000\nwrite: 4000\ntransactions: 17\n",
    ] {
        assert_eq!(scores(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn texts_of_other_tools_have_no_scores() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [
        "crates/cli/tests/cases",
        "crates/perftables/tests/tables",
        "corpus/seed-text",
    ] {
        let entries =
            fs::read_dir(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        files.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    assert!(files.len() > 20, "{}", files.len());
    for file in files.into_iter().filter(|file| file.is_file()) {
        let bytes = fs::read(&file).expect("a file");
        assert_eq!(scores(&bytes), [], "{}", file.display());
    }
}

#[test]
fn no_text_breaks_it() {
    let mut seed = 7u64;
    for (file, text) in fixtures() {
        let bytes = text.as_bytes();
        for _ in 0..40 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % bytes.len();
            let mut damaged = bytes.to_vec();
            damaged[at] = (seed >> 20) as u8;
            damaged.truncate(bytes.len() - at / 3);
            for score in scores(&damaged) {
                assert!(score.value.is_finite(), "{file}: {score:?}");
            }
        }
    }
}
