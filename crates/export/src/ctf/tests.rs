use event::{Body, EventSample};
use tracefmt::{Abi, EventFormat};

use super::*;

const FORMAT: &[u8] = b"name: probe\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \n\
    \tfield:char comm[4];\toffset:2;\tsize:4;\tsigned:0;\n\
    \tfield:int pid;\toffset:6;\tsize:4;\tsigned:1;\n\
    \tfield:void * where;\toffset:10;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc u16[] list;\toffset:18;\tsize:4;\tsigned:0;\n\
    \tfield:u8 pid;\toffset:22;\tsize:1;\tsigned:0;\n\
    \nprint fmt: \"\"\n";

/// A record of it: `ab`, -2, 0x10, the numbers 5 and 6, and 9.
fn record() -> Vec<u8> {
    let mut bytes = vec![7, 0, b'a', b'b', 0, b'x'];
    bytes.extend((-2i32).to_le_bytes());
    bytes.extend(0x10u64.to_le_bytes());
    bytes.extend((23u32 | 4 << 16).to_le_bytes());
    bytes.extend([9, 5, 0, 6, 0]);
    bytes
}

/// The files of a trace of what `fill` puts into it, and what it does not have.
fn trace(fill: impl FnOnce(&mut CtfTrace<'_>)) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let mut files = BTreeMap::<String, Vec<u8>>::new();
    let mut write = |name: &str, bytes: &[u8]| {
        files.entry(name.to_owned()).or_default().extend(bytes);
        ControlFlow::Continue(())
    };
    let mut trace = CtfTrace::new(Endian::Little, Threads::default(), &mut write);
    fill(&mut trace);
    let left_out = trace.finish(&TraceMachine::default(), true);
    (files, left_out)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

#[test]
fn events_have_the_bytes_that_the_description_says() {
    let abi = Abi {
        endian: Endian::Little,
        long_size: 8,
    };
    let format = EventFormat::parse("my", FORMAT, abi).expect("a format");
    let ty = EventType::of_format(3, &format, "my:probe");
    let record = record();
    let (files, left_out) = trace(|trace| {
        let mut event = Event::bare(&ty, (1_000, 2, 40), Body::Raw(&record));
        event.comm = Some("sh");
        event.pid = 39;
        assert!(trace.event(&event).is_continue());
        assert_eq!(trace.events(), 1);
    });
    assert!(left_out.is_empty(), "{left_out:?}");
    let metadata = String::from_utf8(files["metadata"].clone()).expect("text");
    let begin = metadata.find("name = \"my:probe\"").expect("the kind");
    let lines: Vec<&str> = metadata[begin..].lines().map(str::trim).collect();
    let number = |bits: u32, signed: bool, base: u32| {
        format!("integer {{ size = {bits}; align = 8; signed = {signed}; base = {base}; }}")
    };
    let expected = [
        "name = \"my:probe\";".to_owned(),
        "id = 3;".to_owned(),
        "stream_id = 0;".to_owned(),
        "fields := struct {".to_owned(),
        "string _comm;".to_owned(),
        format!("{} _pid;", number(32, true, 10)),
        format!("{} _where;", number(64, false, 16)),
        "uint32_t __list_length;".to_owned(),
        format!("{} _list[__list_length];", number(16, false, 10)),
        format!("{} _pid_2;", number(8, false, 10)),
    ];
    assert_eq!(lines[..expected.len()], expected);
    let packet = &files["cpu_2"];
    assert_eq!(packet[..8], [0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0]);
    let context: Vec<u64> = (0..5).map(|at| word(packet, 8 + at * 8)).collect();
    let bits = packet.len() as u64 * 8;
    assert_eq!(context, [1_000, 1_000, bits, bits, 0]);
    let mut expected = vec![2, 0, 0, 0, 3, 0, 0, 0];
    expected.extend(1_000u64.to_le_bytes());
    expected.extend([39, 0, 0, 0, 40, 0, 0, 0, b's', b'h', 0]);
    expected.extend([
        b'a', b'b', 0, 0xfe, 0xff, 0xff, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0,
    ]);
    expected.extend([2, 0, 0, 0, 5, 0, 6, 0, 9]);
    assert_eq!(packet[48..], expected);
}

#[test]
fn what_is_not_whole_is_counted() {
    let abi = Abi {
        endian: Endian::Little,
        long_size: 8,
    };
    let format = EventFormat::parse("my", FORMAT, abi).expect("a format");
    let ty = EventType::of_format(0, &format, "my:probe");
    let record = record();
    let (files, left_out) = trace(|trace| {
        for (time, cpu, bytes) in [
            (20, 0, &record[..]),
            (10, 0, &record[..12]),
            (15, NONE, &record[..]),
        ] {
            assert!(
                trace
                    .event(&Event::bare(&ty, (time, cpu, 1), Body::Raw(bytes)))
                    .is_continue()
            );
        }
        let loss = |cpu: i32, count: Option<u64>, kind: LostKind| Side::Lost {
            time: 30,
            cpu,
            buffer: 0,
            count,
            kind,
        };
        trace.side(&loss(0, Some(5), LostKind::Ring));
        trace.side(&loss(0, Some(5), LostKind::Sum));
        trace.side(&loss(1, None, LostKind::Ring));
    });
    assert_eq!(
        left_out,
        [
            "1 event came behind a later one of its CPU, and has that one's time.",
            "Fields of 1 event are not whole in the recording, and are 0 or empty in the trace.",
            "Events were lost 1 time without a number: the trace counts one event each.",
        ]
    );
    // The packet before the loss says none, the one behind it all.
    let packets = &files["cpu_0"];
    let first = (word(packets, 24) / 8) as usize;
    assert_eq!(
        [word(packets, 8), word(packets, 16), word(packets, 40)],
        [20, 20, 0]
    );
    let second = &packets[first..];
    assert_eq!(
        [word(second, 8), word(second, 16), word(second, 40)],
        [30, 30, 5]
    );
    assert_eq!(word(second, 24) as usize, second.len() * 8);
    assert_eq!(word(&files["cpu_1"], 40), 1);
    assert!(files.contains_key("cpu_unknown"));
    let metadata = String::from_utf8_lossy(&files["metadata"]);
    assert_eq!(metadata.matches("name = \"my:probe\"").count(), 2);
}

#[test]
fn lines_and_samples_have_fields_too() {
    let line = EventType::bare(0, "kvm:kvm_exit", true);
    let sampled = EventType::bare(1, "cycles\":u", false);
    let sample = EventSample {
        ip: Some(0xffff),
        period: Some(3),
        ..EventSample::default()
    };
    let (files, left_out) = trace(|trace| {
        let body = Body::Text {
            text: "reason HLT \n",
            data: event::Data::Other,
        };
        assert!(
            trace
                .event(&Event::bare(&line, (1, 0, 1), body))
                .is_continue()
        );
        let mut event = Event::bare(&sampled, (2, 0, 1), Body::None);
        event.sample = Some(&sample);
        assert!(trace.event(&event).is_continue());
    });
    assert!(left_out.is_empty(), "{left_out:?}");
    let metadata = String::from_utf8_lossy(&files["metadata"]);
    for part in [
        "\"kvm:kvm_exit\"",
        "string _text;",
        "\"cycles\\\":u\"",
        "base = 16; } _ip;",
        "} _period;",
    ] {
        assert!(metadata.contains(part), "{part}: {metadata}");
    }
    let stream = &files["cpu_0"];
    assert!(stream.windows(11).any(|bytes| bytes == b"reason HLT\0"));
    assert_eq!(word(stream, stream.len() - 16), 0xffff);
    assert_eq!(word(stream, stream.len() - 8), 3);
}
