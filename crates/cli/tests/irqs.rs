//! `trapline irqs`: with the recording of a guest its rows are what the lines of both say. What is counted is in
//! `crates/session/tests/corpus/irqs.rs`.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::common::list;
use crate::common::{file, json, number, run, shipped};
use crate::guests::{GUEST, HOST, document, over};

fn handlers(document: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let rows = list(&document["rows"]).iter();
    rows.flat_map(|row| {
        list(&row["guest"]["handlers"])
            .iter()
            .map(move |one| (row, one))
    })
}

/// What the events say: by vCPU and vector, delays of handled injections; by vCPU, vector and interrupt, times of runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct OfLines {
    delays: BTreeMap<(u64, u64), Vec<u64>>,
    times: BTreeMap<(u64, Option<u64>, u64), Vec<u64>>,
}

/// Reads lines of both recordings: the first handler of a device up to the next injection is that of the last one.
fn of_lines(text: &str) -> OfLines {
    let mut found = OfLines::default();
    let mut last: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
    let mut open = BTreeMap::new();
    for line in text.lines() {
        let behind = |word: &str| {
            let rest = line.split_once(word)?.1;
            let end = rest.find(|c: char| !c.is_ascii_hexdigit());
            Some(&rest[..end.unwrap_or(rest.len())])
        };
        let decimal = |word: &str| behind(word).and_then(|text| text.parse::<u64>().ok());
        let time = line
            .split_once("] ")
            .and_then(|(_, rest)| rest.split_once(": "));
        let time = time.and_then(|(time, _)| time.trim().replace('.', "").parse::<u64>().ok());
        let time = time.expect("a time");
        if line.contains(" kvm_inj_virq: ") {
            let vcpu = decimal("CPU ").expect("a vCPU's thread");
            let vector = behind("IRQ 0x").and_then(|text| u64::from_str_radix(text, 16).ok());
            if !line.contains("reinjected") {
                last.insert(vcpu, (vector.expect("a vector"), time, false));
            }
        } else if line.contains(" irq_handler_entry: ") {
            let (vcpu, irq) = (decimal(" [").expect("a CPU"), decimal("irq=").expect("irq"));
            let of = last.get_mut(&vcpu).filter(|one| one.0 < 0xec);
            let vector = of.as_ref().map(|one| one.0);
            if let Some((vector, injected, handled)) = of
                && !std::mem::replace(handled, true)
            {
                let delays = found.delays.entry((vcpu, *vector)).or_default();
                delays.push(time - *injected);
            }
            open.insert((vcpu, irq), (vector, time));
        } else if line.contains(" irq_handler_exit: ") {
            let (vcpu, irq) = (decimal(" [").expect("a CPU"), decimal("irq=").expect("irq"));
            if let Some((vector, since)) = open.remove(&(vcpu, irq)) {
                let times = found.times.entry((vcpu, vector, irq)).or_default();
                times.push(time - since);
            }
        }
    }
    found
}

#[test]
fn handlers_are_those_that_the_lines_of_both_recordings_show() {
    let (host, guest) = (file(HOST), file(GUEST));
    let of_events = of_lines(&over("events", &[&host, &guest], &[]).text());
    let both = document("irqs", &[&host, &guest], &[]);
    // Lines have microseconds, each cut: a difference may be one off.
    let near = |ns: u64, us: u64| ns.abs_diff(us * 1000) <= 1000;
    let mut seen = 0;
    for row in list(&both["rows"]) {
        let guest = &row["guest"];
        let (vcpu, vector) = (number(row, "vcpu"), row["vector"].as_u64());
        let delays = vector.and_then(|vector| of_events.delays.get(&(vcpu, vector)));
        let delays = delays.map_or(&[][..], Vec::as_slice);
        assert_eq!(
            guest["handled"].as_u64().unwrap_or(0),
            delays.len() as u64,
            "{row}"
        );
        if let Some(max) = delays.iter().max() {
            assert!(near(number(guest, "delay_max_ns"), *max), "{row}: {max}");
        }
        for one in list(&guest["handlers"]) {
            let times = &of_events.times[&(vcpu, vector, number(one, "irq"))];
            assert_eq!(number(one, "runs"), times.len() as u64, "{row}");
            let max = *times.iter().max().expect("one");
            assert!(near(number(one, "max_ns"), max), "{one}: {max}");
            let most = 1000 * times.len() as u64;
            let sum: u64 = times.iter().sum();
            assert!(
                number(one, "total_ns").abs_diff(sum * 1000) <= most,
                "{one}: {sum}"
            );
            seen += 1;
        }
    }
    // Four are before the host's recording.
    let before = &of_events.times[&(1, None, 25)];
    assert_eq!(before.len() as u64, number(&both, "guest_outside"));
    assert_eq!((seen, of_events.times.len()), (2, 3), "{of_events:?}");
    // What these are, and that the guest's recording has no events of Linux's own vectors.
    let named: Vec<_> = handlers(&both)
        .map(|(row, one)| {
            (
                row["vector"].as_u64(),
                number(one, "irq"),
                one["name"].as_str(),
            )
        })
        .collect();
    let virtio = Some("virtio0-virtqueues");
    let expected = [(Some(0x23), 4, Some("ttyS0")), (Some(0x24), 25, virtio)];
    assert_eq!(named, expected);
    for row in list(&both["rows"])
        .iter()
        .filter(|row| number(row, "injected") > 0)
    {
        let known = matches!(row["vector"].as_u64(), Some(0x23 | 0x24));
        assert_eq!(row["guest"]["handled"].is_u64(), known, "{row}");
    }
    // Who stands first, and the number of threads, do not matter.
    let again = document("irqs", &[&guest, &host], &["--threads", "1"]);
    assert_eq!(again["rows"], both["rows"]);
}

#[test]
fn a_recording_without_formats_is_not_called_one_without_interrupts() {
    let cut = shipped().join("x86/format-variants/truncated.perf.data.zst");
    let refused = run(["irqs".as_ref(), cut.as_os_str()]);
    assert_eq!(refused.status, 1);
    let said = refused.stderr;
    assert!(said.contains("event formats is missing"), "{said}");
}

/// arm64's interrupts are counted as the events that say so, and those that vCPUs share are nobody's.
#[test]
fn interrupts_of_arm64_are_counted_by_intid() {
    let path = shipped().join("arm64/vhost-mmio/boot1/perf.data.tracepoints.zst");
    let events = run([
        "events".as_ref(),
        "--event".as_ref(),
        "*vgic*".as_ref(),
        path.as_os_str(),
    ]);
    let mut counted: BTreeMap<(Option<u64>, u64), [u64; 2]> = BTreeMap::new();
    for line in events.text().lines() {
        let (_, says) = line.split_once("VCPU: ").expect("an event of the vgic");
        let numbers: Vec<u64> = says
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse().ok())
            .collect();
        let [vcpu, intid, level] = numbers[..] else {
            panic!("{line}");
        };
        let vcpu = (intid < 32).then_some(vcpu);
        counted.entry((vcpu, intid)).or_default()[usize::from(level == 0)] += 1;
    }
    let document = json(&["irqs"], &path).expect("a document");
    let rows = document["rows"].as_array().cloned().unwrap_or_default();
    let found = rows.iter().map(|row| {
        let amounts = ["raised", "lowered"].map(|name| row[name].as_u64().expect("a count"));
        assert_eq!(row["vector"], Value::Null, "{row}");
        let intid = row["intid"].as_u64().expect("a number");
        ((row["vcpu"].as_u64(), intid), amounts)
    });
    let found: BTreeMap<_, _> = found.collect();
    assert!(!counted.is_empty());
    assert_eq!(found, counted);
    // A shared interrupt may have gone to another vCPU.
    let of_one = json(&["irqs", "--vcpu", "1"], &path).expect("a document");
    let rows = of_one["rows"].as_array().cloned().unwrap_or_default();
    assert!(rows.iter().all(|row| row["vcpu"] == 1), "{of_one}");
}
