//! What a file says of itself, and how its times are converted.

use crate::writer::{BufferSpec, FileSpec, Machine, Pack, Page};
use std::ops::ControlFlow;
use tracedat::{
    RingRecord, ShiftSample, TraceDat, TraceDatError, TraceGuest, TraceTimeUnit, TraceVisitor,
    Tsc2Nsec, is_trace_dat,
};

struct Times(Vec<u64>);

impl TraceVisitor for Times {
    fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
        self.0.push(r.time);
        ControlFlow::Continue(())
    }
}

fn times(data: &[u8]) -> Vec<u64> {
    let mut times = Times(Vec::new());
    TraceDat::parse(data).unwrap().walk(&[], &mut times);
    times.0
}

/// One CPU with records at these times.
fn buffer(m: Machine, name: &str, cpu: u32, at: &[u64]) -> BufferSpec {
    let pages: Vec<_> = at
        .iter()
        .map(|&t| Page::new(m, t).record(0, &m.payload(300, 1, 0)))
        .collect();
    let mut buffer = BufferSpec::new(name, &[]);
    for empty in 0..cpu {
        buffer.cpus.push((empty, Vec::new()));
    }
    buffer
        .cpus
        .push((cpu, pages.iter().flat_map(|p| p.bytes()).collect()));
    buffer
}

fn spec(m: Machine, at: &[u64]) -> FileSpec {
    FileSpec::new(m, vec![buffer(m, "", 0, at)])
}

#[test]
fn the_magic_and_the_version_tell_what_a_file_is() {
    let m = Machine::default();
    assert!(is_trace_dat(&spec(m, &[1]).v6()));
    assert!(is_trace_dat(&spec(m, &[1]).v7()));
    // perf's tracing data begins alike.
    assert!(!is_trace_dat(b"\x17\x08\x44tracing0.6\0"));
    assert!(!is_trace_dat(b"PERFILE2"));
    assert_eq!(
        TraceDat::parse(b"").unwrap_err(),
        TraceDatError::NotTraceDat
    );
    assert_eq!(
        TraceDat::parse(b"\x17\x08").unwrap_err(),
        TraceDatError::NotTraceDat
    );
    let error = TraceDat::parse(b"\x17\x08\x44tracing8\0\0\x08").unwrap_err();
    assert_eq!(
        error,
        TraceDatError::UnknownVersion {
            offset: 10,
            found: "8".into()
        }
    );
    assert_eq!(
        error.to_string(),
        "at byte 0xa: trace.dat version \"8\": expected 6 or 7"
    );
    let error = TraceDat::parse(b"\x17\x08\x44tracing7\0\0\x08\0").unwrap_err();
    assert_eq!(
        error,
        TraceDatError::EndsEarly {
            offset: 14,
            expected: "its page size"
        }
    );
    let mut data = spec(m, &[1]).v7();
    data[18..22].copy_from_slice(b"lzma");
    let error = TraceDat::parse(&data).unwrap_err();
    assert_eq!(
        error,
        TraceDatError::UnknownCompression {
            offset: 18,
            found: "lzma".into()
        }
    );
}

#[test]
fn formats_names_and_symbols_are_read() {
    for (big, long) in [(false, 8), (true, 4)] {
        let m = Machine {
            big,
            long,
            page_size: 4096,
        };
        let spec = spec(m, &[1]);
        for data in [
            spec.v6(),
            spec.v7(),
            spec.clone().pack(Pack::Zlib).v7(),
            spec.clone().pack(Pack::Zstd).v7(),
        ] {
            let mut file = TraceDat::parse(&data).unwrap();
            assert_eq!(file.diagnostics(), []);
            assert!(!file.truncated());
            let formats = file.formats();
            assert_eq!(formats.all().len(), 3);
            assert_eq!(formats.by_id(301).unwrap().name, "second");
            assert_eq!(formats.by_id(6).unwrap().system, "ftrace");
            assert_eq!(formats.abi.long_size, long);
            assert_eq!(formats.comm(1234), Some("CPU 0/KVM"));
            assert_eq!(formats.printk(0xffff_ffff_8200_0000), Some("hello"));
            // Symbols are left alone until asked for.
            assert!(formats.kallsyms.is_empty());
            file.load_symbols();
            assert_eq!(
                file.formats().kallsyms.lookup(0xffff_ffff_8100_0104),
                Some(("helper", 4))
            );
            assert_eq!(file.diagnostics(), []);
        }
    }
}

#[test]
fn every_option_is_reported() {
    let m = Machine::default();
    let mut guest = b"vm1\0".to_vec();
    guest.extend(m.u64(0xabc));
    guest.extend(m.u32(2));
    for (cpu, pid) in [(0, 100), (1, 101)] {
        guest.extend(m.u32(cpu));
        guest.extend(m.u32(pid));
    }
    let stats = "CPU: 0\nentries: 5\noverrun: 3317\ncommit overrun: 2\nbytes: 108\n\
                 oldest event ts:   868.376166\nnow ts:   868.378770\ndropped events: 1\nread events: 20989\n";
    let spec = spec(m, &[1])
        .option(2, stats)
        .option(2, "\nBuffer: foo\n\n\0")
        .option(2, "CPU: 3\noverrun: 10\n\0")
        .option(
            4,
            "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n",
        )
        .option(5, "Linux l1 6.1.0-56-amd64 x86_64\0")
        .option(6, "sched:sched_waking,pid/sched:sched_switch,next_pid\0")
        .option(8, m.u32(9))
        .option(9, "3.1.6 not-a-git-repo\0")
        .option(10, "1 0 init\n\0")
        .option(11, m.u64(0x4182_d12f_0852_3458))
        .option(13, guest)
        .option(24, "boot:ffffffff81000000 T\n\0")
        .option(999, "what");
    let data = spec.v7();
    let file = TraceDat::parse(&data).unwrap();
    let info = file.info();
    assert_eq!(
        (info.version, info.page_size, info.cpus, info.user_long_size),
        (7, 4096, 9, 8)
    );
    assert_eq!(info.compression, Some(("none".into(), String::new())));
    assert_eq!(info.clock.as_deref(), Some("local"));
    assert!(info.clocks.as_deref().unwrap().ends_with("x86-tsc"));
    assert_eq!(
        (info.time_unit, info.prints_seconds),
        (TraceTimeUnit::Nanoseconds, true)
    );
    assert_eq!(
        info.uname.as_deref(),
        Some("Linux l1 6.1.0-56-amd64 x86_64")
    );
    assert_eq!(info.recorder.as_deref(), Some("3.1.6 not-a-git-repo"));
    assert_eq!(info.trace_id, Some(0x4182_d12f_0852_3458));
    assert_eq!(
        info.hooks,
        ["sched:sched_waking,pid/sched:sched_switch,next_pid"]
    );
    assert_eq!(info.procmaps.as_deref(), Some("1 0 init"));
    assert_eq!(info.last_boot.as_deref(), Some("boot:ffffffff81000000 T"));
    assert_eq!(
        info.guests,
        [TraceGuest {
            name: "vm1".into(),
            trace_id: 0xabc,
            vcpus: vec![(0, 100), (1, 101)]
        }]
    );
    let [first, second] = info.cpu_stats.as_slice() else {
        panic!("{:?}", info.cpu_stats)
    };
    assert_eq!(
        (first.cpu, first.entries, first.overrun, first.read),
        (0, 5, 3317, 20989)
    );
    assert_eq!(
        (first.commit_overrun, first.dropped, first.buffer.as_str()),
        (2, 1, "")
    );
    assert_eq!(
        (second.cpu, second.overrun, second.buffer.as_str()),
        (3, 10, "foo")
    );
    assert_eq!(info.stats_lost(), 3330);
    let modules: Vec<_> = info
        .modules
        .iter()
        .map(|m| (m.name.as_str(), m.size, m.address))
        .collect();
    assert_eq!(
        modules,
        [("kvm", 1_134_592, 0xffff_ffff_c0a0_0000), ("nls", 16384, 0)]
    );
    assert_eq!(info.buffers.len(), 1);
    assert_eq!(info.buffers[0].clock.as_deref(), Some("local"));
    assert_eq!(
        file.diagnostics().len(),
        1,
        "the unknown option: {:?}",
        file.diagnostics()
    );
    assert_eq!(times(&data), [1]);
    // The same options in v6; there the clock's text follows the list of CPUs.
    let mut spec = spec;
    spec.options.retain(|o| o.0 != 8 && o.0 != 4);
    let data = spec.option(4, "").v6();
    let file = TraceDat::parse(&data).unwrap();
    assert_eq!(file.info().clock.as_deref(), Some("mono"));
    assert_eq!(file.info().uname, info.uname);
    assert_eq!(
        (file.info().cpus, file.info().compression.clone()),
        (1, None)
    );
    assert_eq!(times(&data), [1]);
}

#[test]
fn the_clock_decides_what_a_time_is() {
    let m = Machine::default();
    for (clock, unit, seconds) in [
        ("local", TraceTimeUnit::Nanoseconds, true),
        ("global", TraceTimeUnit::Nanoseconds, true),
        ("mono", TraceTimeUnit::Nanoseconds, true),
        ("mono_raw", TraceTimeUnit::Nanoseconds, true),
        ("tai", TraceTimeUnit::Nanoseconds, true),
        ("perf", TraceTimeUnit::Nanoseconds, true),
        ("boot", TraceTimeUnit::Nanoseconds, false),
        ("uptime", TraceTimeUnit::Ticks, true),
        ("counter", TraceTimeUnit::Ticks, false),
        ("x86-tsc", TraceTimeUnit::Ticks, false),
    ] {
        let data = spec(m, &[1])
            .option(4, format!("global [{clock}] other"))
            .v7();
        let file = TraceDat::parse(&data).unwrap();
        let info = file.info();
        assert_eq!(
            (info.time_unit, info.prints_seconds),
            (unit, seconds),
            "{clock}"
        );
        assert_eq!(info.clock.as_deref(), Some(clock));
    }
}

fn tsc2nsec(m: Machine, mult: u32, shift: u32) -> Vec<u8> {
    [&m.u32(mult)[..], &m.u32(shift), &m.u64(77)].concat()
}

/// The data of a time shift option: samples of time, offset, scaling and fraction by CPU.
fn shift(m: Machine, flags: u32, cpus: &[&[(u64, i64, u64, u64)]]) -> Vec<u8> {
    let mut out = m.u64(0x1234).to_vec();
    out.extend(m.u32(flags));
    out.extend(m.u32(cpus.len() as u32));
    for samples in cpus {
        out.extend(m.u32(samples.len() as u32));
        samples.iter().for_each(|s| out.extend(m.u64(s.0)));
        samples.iter().for_each(|s| out.extend(m.u64(s.1 as u64)));
        samples.iter().for_each(|s| out.extend(m.u64(s.2)));
    }
    for samples in cpus {
        samples.iter().for_each(|s| out.extend(m.u64(s.3)));
    }
    out
}

#[test]
fn fixed_offsets_are_added() {
    let m = Machine::default();
    let spec = spec(m, &[5000])
        .option(7, "-1000\0")
        .option(1, "0x3\0")
        .option(7, "20\0");
    for data in [spec.v6(), spec.v7()] {
        assert_eq!(times(&data), [5000 - 1000 + 3000 + 20]);
        let file = TraceDat::parse(&data).unwrap();
        assert_eq!(
            (file.info().date_offset_ns, file.info().offset_ns),
            (3000, -980)
        );
    }
}

#[test]
fn ticks_become_nanoseconds() {
    for big in [false, true] {
        let m = Machine {
            big,
            ..Machine::default()
        };
        let data = spec(m, &[10_000_000_000_000, 3])
            .option(4, "local [x86-tsc]")
            .option(14, tsc2nsec(m, 827_203_372, 31))
            .v7();
        let expected = |t: u128| ((t * 827_203_372) >> 31) as u64;
        assert_eq!(times(&data), [expected(10_000_000_000_000), 1]);
        let file = TraceDat::parse(&data).unwrap();
        assert_eq!(
            file.info().tsc2nsec,
            Some(Tsc2Nsec {
                mult: 827_203_372,
                shift: 31,
                offset: 77
            })
        );
        assert_eq!(
            (file.info().time_unit, file.info().prints_seconds),
            (TraceTimeUnit::Nanoseconds, true)
        );
    }
}

#[test]
fn guest_time_is_shifted_by_the_samples_around_it() {
    let m = Machine::default();
    let at = [500, 1000, 1500, 2000, 2900, 3000, 9000];
    let samples = [
        (3000, 300, 1, 0),
        (1000, 100, 1, 0),
        (2000, 200, 1, 0),
        (2000, 999, 1, 0),
    ];
    // Not interpolated: the sample before, or the first; behind the last, the one before the last.
    let data = spec(m, &at).option(12, shift(m, 0, &[&samples])).v7();
    assert_eq!(times(&data), [600, 1100, 1600, 2200, 3100, 3200, 9200]);
    let info = TraceDat::parse(&data).unwrap().info().clone();
    let reported = info.time_shift.unwrap();
    assert_eq!(
        (
            reported.peer_trace_id,
            reported.flags,
            reported.cpus[0].len()
        ),
        (0x1234, 0, 4)
    );
    assert_eq!(
        reported.cpus[0][1],
        ShiftSample {
            time: 1000,
            offset: 100,
            scaling: 1,
            fraction: 0
        }
    );
    // Interpolated, and beyond the ends extrapolated. Half a step is added before dividing, and the
    // quotient is cut toward zero, as C does: so the first is 551, not 550.
    let data = spec(m, &at).option(12, shift(m, 1, &[&samples])).v7();
    assert_eq!(times(&data), [551, 1100, 1650, 2200, 3190, 3300, 9900]);
    // Rounded to the nearest.
    let two = [(1000, 10, 1, 0), (1010, 13, 1, 0)];
    let data = spec(m, &[1001, 1002, 1009])
        .option(12, shift(m, 1, &[&two]))
        .v7();
    assert_eq!(times(&data), [1011, 1013, 1022]);
    // One sample: its offset alone.
    let data = spec(m, &[1000])
        .option(12, shift(m, 1, &[&[(1, -400, 7, 3)]]))
        .v7();
    assert_eq!(times(&data), [600]);
}

#[test]
fn guest_time_is_scaled_before_it_is_shifted_and_converted_after() {
    let m = Machine::default();
    let samples = [(0, -50, 3 << 20, 21), (1 << 40, -50, 3 << 20, 21)];
    let data = spec(m, &[1000]).option(12, shift(m, 1, &[&samples])).v7();
    assert_eq!(times(&data), [1500 - 50]);
    let data = spec(m, &[1000])
        .option(14, tsc2nsec(m, 2, 0))
        .option(12, shift(m, 1, &[&samples]))
        .option(7, "5")
        .v7();
    assert_eq!(times(&data), [2 * (1500 - 50) + 5]);
    // A scaling with 48 bits of fraction needs more than 64 bits on the way.
    let far = [(0, 0, 1 << 48, 48), (1, 0, 1 << 48, 48)];
    let data = spec(m, &[1 << 50]).option(12, shift(m, 0, &[&far])).v7();
    assert_eq!(times(&data), [1 << 50]);
}

#[test]
fn each_cpu_has_its_own_shift_and_instances_none() {
    let m = Machine::default();
    let buffers = vec![buffer(m, "", 0, &[1000]), buffer(m, "instance", 0, &[3000])];
    let mut spec = FileSpec::new(m, buffers);
    let other = buffer(m, "", 2, &[2000]).cpus.pop().unwrap();
    spec.buffers[0].cpus.extend([(1, Vec::new()), other]);
    let data = spec
        .option(
            12,
            shift(
                m,
                0,
                &[&[(1, 10, 1, 0)], &[(1, 20, 1, 0)], &[(1, 30, 1, 0)]],
            ),
        )
        .v7();
    assert_eq!(times(&data), [1010, 2030, 3000]);
    // No option gave the number of CPUs.
    let file = TraceDat::parse(&data).unwrap();
    assert_eq!((file.info().cpus, file.info().printed_cpus()), (3, 3));
}

#[test]
fn text_buffers_are_read_in_pieces() {
    let m = Machine::default();
    let text: Vec<u8> = (0..20_000)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let top = BufferSpec {
        text: Some(text.clone()),
        ..BufferSpec::new("", &[])
    };
    for pack in [Pack::None, Pack::Zlib, Pack::Zstd] {
        let data = FileSpec::new(m, vec![top.clone()]).pack(pack).v7();
        let file = TraceDat::parse(&data).unwrap();
        let [buffer] = file.info().texts.as_slice() else {
            panic!("{:?}", file.info())
        };
        assert_eq!(
            (buffer.name.as_str(), buffer.clock.as_deref()),
            ("", Some("local"))
        );
        let mut out = Vec::new();
        let missing = file.read_text(buffer, &mut |piece| out.extend_from_slice(piece));
        assert!(
            out == text,
            "{pack:?}: {} of {} bytes",
            out.len(),
            text.len()
        );
        assert_eq!(missing, None);
        let cut = &data[..buffer.offset as usize + 45_000.min(buffer.size as usize / 2)];
        let file = TraceDat::parse(cut).unwrap();
        assert!(file.truncated());
    }
    let data = FileSpec::new(m, vec![top]).v6();
    let file = TraceDat::parse(&data).unwrap();
    let mut out = Vec::new();
    assert_eq!(
        file.read_text(&file.info().texts[0], &mut |piece| out
            .extend_from_slice(piece)),
        None
    );
    assert!(out == text);
}
