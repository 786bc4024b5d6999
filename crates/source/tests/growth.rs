//! Each parser's work grows with its input, and not with the square of it.
//!
//! Work is counted in bytes that are asked of the allocator, all together and not at once: a list that is copied, a
//! line that is put together, or a text that is made anew for each row shows in them on any machine. What is looked at
//! again and again and never copied does not; with `TRAPLINE_GROWTH_TIMES=1` each test prints how long its inputs took,
//! for who looks for that by hand.

use std::fmt::Write as _;
use std::time::Instant;

use source::{ReaderOptions, RecordingBytes};

use crate::packed::All;
use crate::support::meter;
use crate::writer::*;

/// How many times longer an input is than the one before it.
const STEP: usize = 4;
/// How many times more the work may be: lists that double when they are full are not in step with their inputs.
const MOST: u64 = 5;
/// What is asked for whatever the input is, as buffers and tables of names.
const FIXED: u64 = 4 << 20;

/// Reads an input of one size, and of four and sixteen times that.
fn grows_in_line(what: &str, size: usize, make: impl Fn(usize) -> Vec<u8>, read: impl Fn(&[u8])) {
    let mut before: Option<u64> = None;
    for size in [size, size * STEP, size * STEP * STEP] {
        let input = make(size);
        let begun = Instant::now();
        let work = meter::asked(|| read(&input));
        if std::env::var_os("TRAPLINE_GROWTH_TIMES").is_some() {
            let took = begun.elapsed();
            fixtures::note(&format!(
                "{what}: {} bytes, {work} asked for, {took:?}",
                input.len()
            ));
        }
        assert!(work > 0, "{what}: nothing was done");
        if let Some(before) = before {
            assert!(
                work <= before * MOST + FIXED,
                "{what}: {work} bytes asked for, {before} of an input of a quarter"
            );
        }
        before = Some(work);
    }
}

/// Reads a recording as the commands do.
fn recording(bytes: &[u8]) {
    let Ok(recording) = RecordingBytes::from_bytes("input", bytes.to_vec()) else {
        return;
    };
    let options = ReaderOptions {
        symbols: true,
        threads: 1,
        ..ReaderOptions::default()
    };
    if let Ok(reader) = recording.reader(options) {
        reader.walk(&mut All);
    }
}

fn attr(ids: Vec<u64>) -> Attr {
    Attr {
        sample_type: TIME | IDENTIFIER | CPU | TID,
        read_format: 0,
        sample_id_all: true,
        ids,
    }
}

fn record(attr: usize, time: u64, tid: u32, body: Body) -> Item {
    Item::Kernel(Record {
        attr,
        time,
        cpu: tid % 8,
        pid: 1,
        tid,
        misc: 0,
        body,
    })
}

fn perf_data(pipe: bool, attrs: Vec<Attr>, items: Vec<Item>) -> Vec<u8> {
    let recording = Recording {
        big: false,
        pipe,
        storage: Storage::Plain,
        attrs,
        items,
    };
    recording.write().bytes
}

#[test]
fn perf_data_with_more_of_anything() {
    let sample = Body::empty_sample;
    let many_attrs = |size: usize| {
        let attrs = (0..size as u64).map(|id| attr(vec![id + 1, id + 100_000]));
        perf_data(false, attrs.collect(), Vec::new())
    };
    grows_in_line("attributes with ids", 500, many_attrs, recording);
    let backwards = |size: usize| {
        let items = (0..size).map(|n| record(0, (size - n) as u64, 1, sample()));
        perf_data(true, vec![attr(vec![1])], items.collect())
    };
    grows_in_line("samples that step back", 4000, backwards, recording);
    let rounds = |size: usize| {
        let items = (0..size).flat_map(|n| [record(0, n as u64, n as u32, sample()), Item::Round]);
        perf_data(true, vec![attr(vec![1])], items.collect())
    };
    grows_in_line("rounds of one sample", 4000, rounds, recording);
    let sides = |size: usize| {
        let items = (0..size as u32).map(|n| {
            let name = format!("/lib/{n}").into_bytes();
            let body = match n % 4 {
                0 => Body::Comm(name),
                1 => Body::Fork,
                2 => Body::Mmap2(name),
                _ => Body::Lost(u64::MAX),
            };
            record(0, n.into(), n, body)
        });
        perf_data(true, vec![attr(vec![1])], items.collect())
    };
    grows_in_line("names, forks, mappings and losses", 4000, sides, recording);
    let holes = |size: usize| {
        let one = perf_data(true, vec![attr(vec![1])], vec![record(0, 5, 1, sample())]);
        let head = perf_data(true, vec![attr(vec![1])], Vec::new());
        let hole = [&one[head.len()..], &[0; 24]].concat();
        [head, hole.repeat(size)].concat()
    };
    grows_in_line("holes between samples", 2000, holes, recording);
}

/// Lines of events, as trace-cmd report prints them.
fn lines(size: usize, line: impl Fn(usize, &mut String)) -> Vec<u8> {
    let mut text = String::new();
    for number in 0..size {
        let at = format!(
            "[{:03}] {:>6}.{:06}",
            number % 8,
            10 + number / 1_000_000,
            number % 1_000_000
        );
        let _ = write!(text, "  CPU 0/KVM-{} {at}: ", 1000 + number % 500);
        line(number, &mut text);
        text.push('\n');
    }
    text.into_bytes()
}

#[test]
fn texts_with_more_of_anything() {
    let entries = |size| {
        lines(size, |_, text| {
            text.push_str("kvm_entry: vcpu 0, rip 0xffffffff81a17a0b")
        })
    };
    grows_in_line("lines of one event", 1000, entries, recording);
    let kinds = |size| {
        lines(size, |number, text| {
            let _ = write!(text, "event_{number}: x={number}");
        })
    };
    grows_in_line("lines of as many events", 400, kinds, recording);
    let odd = |size| {
        lines(size, |number, text| {
            let _ = write!(text, "event {number} has no colon");
        })
    };
    grows_in_line("lines that are none", 1000, odd, recording);
    let begin = "  CPU 0/KVM-1 [001] 10.000001: kvm_entry: vcpu 0, rip 0x0\n";
    for (what, part) in [
        ("brackets", "("),
        ("times", " 1.0: "),
        ("fields", " prev_comm=x"),
        ("CPUs", " [001]"),
    ] {
        let long = |size: usize| {
            format!("{begin}{}{}\n{begin}", begin.trim_end(), part.repeat(size)).into_bytes()
        };
        grows_in_line(&format!("a line with {what}"), 1000, long, recording);
    }
    let lost = |size: usize| {
        (begin.to_owned() + &"CPU:1 [LOST 5 EVENTS]\n".repeat(size) + begin).into_bytes()
    };
    grows_in_line("losses", 1000, lost, recording);
}

#[test]
fn formats_with_more_of_anything() {
    let format = |fields: &str, print: &str| {
        let text = format!(
            "name: x\nID: 9\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n{fields}\n\
             print fmt: {print}\n"
        );
        text.into_bytes()
    };
    let read = |text: &[u8]| {
        let mut formats = tracefmt::FormatCatalog::default();
        formats.add("test", text);
        for one in formats.all() {
            let mut out = tracefmt::FormatText::new();
            one.print(&[9; 64], &formats, tracefmt::PrintStyle::TraceCmd, &mut out);
        }
    };
    let fields = |size: usize| {
        let one = |number: usize| {
            format!(
                "\tfield:int f{number};\toffset:{};\tsize:4;\tsigned:1;\n",
                8 + number
            )
        };
        format(&(0..size).map(one).collect::<String>(), "\"%d\", REC->f1")
    };
    grows_in_line("fields", 500, fields, read);
    let field = "\tfield:int f;\toffset:8;\tsize:4;\tsigned:1;\n";
    for (what, begin, part, end) in [
        ("nested brackets", "\"%d\", ", "(", "REC->f"),
        ("signs", "\"%d\", ", "-", "REC->f"),
        (
            "names of values",
            "\"%s\", __print_symbolic(REC->f",
            ", { 1, \"x\" }",
            ")",
        ),
        ("choices", "\"%s\", ", "REC->f ? \"a\" : ", "\"b\""),
        ("arguments", "\"%d\"", ", REC->f", ""),
        ("places", "\"", "%d ", "\", REC->f"),
    ] {
        let print = |size: usize| format(field, &format!("{begin}{}{end}", part.repeat(size)));
        grows_in_line(what, 500, print, read);
    }
}

/// What is written around a growing part: before it, what is repeated, with its number for `{}`, and behind it.
type GrowingText = (&'static str, &'static str, &'static str, &'static str);

fn written((_, begin, part, end): GrowingText, size: usize) -> Vec<u8> {
    let mut text = begin.to_owned();
    for number in 0..size {
        text.push_str(&part.replace("{}", &number.to_string()));
    }
    (text + end).into_bytes()
}

#[test]
fn tables_with_more_of_anything() {
    let head =
        "   VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time\n\n";
    let sched = " ---\n  Task |  Runtime ms | Switches | Average delay ms | \
                 Maximum delay ms | Maximum delay at |\n ---\n";
    for text in [
        (
            "rows of exits",
            head,
            "  R{}  10 1.0% 1.0% 1.0us 2.0us 1.5us ( +- 1.0% )\n",
            "\nTotal Samples:10\n",
        ),
        (
            "rows of tasks",
            sched,
            " t:{} | 0.029 ms | 2 | avg: 1.0 ms | max: 2.0 ms | max at: 3.0 s\n",
            "",
        ),
        (
            "counts",
            "",
            "  2,507,215,365      event-{}\n",
            "\n  10.04 seconds time elapsed\n",
        ),
        (
            "lines of a histogram",
            "@usecs:\n",
            "[{}, 9999999)  5 |@@@   |\n",
            "",
        ),
        (
            "calls of strace",
            "",
            "[pid {}] 10:00:00.000001 ioctl(13, KVM_RUN, 0 <unfinished ...>\n",
            "",
        ),
        ("bars", "", "| a | {} |\n", ""),
        ("words", "", "hello {} world\n", ""),
    ] {
        let read = |text: &[u8]| drop(perftables::read(text));
        grows_in_line(text.0, 300, |size| written(text, size), read);
    }
}

#[test]
fn facts_with_more_of_anything() {
    let ps = "  PID   TID COMMAND COMMAND\n";
    let mtree = "address-space: memory\n";
    for text in [
        (
            "threads",
            ps,
            " 1{} 1{} qemu qemu-system-x86_64 -name web{}\n",
            "",
        ),
        (
            "arguments",
            "  PID   TID COMMAND COMMAND\n 1 1 qemu qemu-system-x86_64",
            " -device x{},a=b",
            "\n",
        ),
        (
            "secrets",
            "  PID   TID COMMAND COMMAND\n 1 1 qemu qemu-system-x86_64",
            " --password=x{}",
            "\n",
        ),
        (
            "lines of a log",
            "",
            "[  {}.123456] kvm [{}]: vcpu{}, guest rIP: 0xfff disabled perfctr wrmsr\n",
            "",
        ),
        (
            "domains",
            "",
            "Domain: 'g{}'\n  state.state=1\n  cpu.time={}\n  vcpu.0.time=9\n",
            "",
        ),
        (
            "regions",
            mtree,
            "  0000000000001000-0000000000001fff (prio 0, i/o): r{}\n",
            "",
        ),
        (
            "replies",
            "",
            "{\"return\": [{\"thread-id\": 1{}, \"cpu-index\": {}}]}\n",
            "",
        ),
        ("beginnings of JSON", "", "{\"return\": [\n", ""),
        (
            "nodes",
            "available: 2 nodes (0-1)\n",
            "node {} cpus: 0 1\nnode {} size: 100 MB\n",
            "",
        ),
    ] {
        let read = |text: &[u8]| drop(facts::read(text));
        grows_in_line(text.0, 300, |size| written(text, size), read);
    }
}

#[test]
fn definitions_with_more_of_anything() {
    let begin = "<domain type='kvm'><name>x</name><memory>1</memory><vcpu>4</vcpu>";
    let disk = "<disk type='file' device='disk'><driver name='qemu'/><target dev='vda{}' bus='virtio'/></disk>";
    let in_devices = "<domain type='kvm'><name>x</name><memory>1</memory><devices>";
    let in_tune = "<domain type='kvm'><name>x</name><memory>1</memory><vcpu>4</vcpu><cputune>";
    for text in [
        ("disks", in_devices, disk, "</devices></domain>"),
        (
            "pins",
            in_tune,
            "<vcpupin vcpu='{}' cpuset='{}'/>",
            "</cputune></domain>",
        ),
        (
            "attributes",
            "<domain type='kvm'><name>x</name><memory",
            " a{}='1'",
            ">1</memory></domain>",
        ),
        ("elements that do not end", begin, "<a>", ""),
        ("comments", begin, "<!-- {} -->", "</domain>"),
        (
            "arguments of QEMU",
            "qemu-system-x86_64 -name x -m 1024",
            " -device virtio-net-pci,netdev=n{}",
            "\n",
        ),
    ] {
        let read = |text: &[u8]| drop((domain::parse_bytes(text), domain::definitions(text)));
        grows_in_line(text.0, 200, |size| written(text, size), read);
    }
}

#[test]
fn tickets_with_more_of_anything() {
    let line = "> > CPU 0/KVM-1010 [001] 10.000001: kvm_entry: vcpu {}, rip 0x0\n";
    for text in [
        ("quoted lines", "", line, ""),
        ("words", "", "Hello, it is slow {}.\n", ""),
        (
            "traces between words",
            "",
            "CPU 0/KVM-1 [001] 10.000001: kvm_entry: vcpu {}, rip 0x0\nand then\n\n",
            "",
        ),
        ("commands", "", "$ perf kvm stat report -i {}\n", ""),
    ] {
        let read = |text: &[u8]| drop((ticket::read(text), ticket::named_commands(text)));
        grows_in_line(text.0, 200, |size| written(text, size), read);
    }
}
