//! What a walk over a recording hands out, and what is compared of a record.

use std::ops::ControlFlow;

use perfdata::{
    ByteSource, LostSource, PerfRecording, PerfVisitor, SampleWish, SideRecord, Totals,
};

use super::{ADDR, Body, CALLCHAIN, CPU, IP, Numbers, PERIOD, RAW, Record, Recording, TID};

/// What a walk handed out, as values of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    Sample {
        attr: u32,
        misc: u16,
        time: u64,
        pid: i32,
        tid: i32,
        cpu: i32,
        ip: Option<u64>,
        addr: Option<u64>,
        period: Option<u64>,
        callchain: Option<Vec<u8>>,
        raw: Option<Vec<u8>>,
    },
    Side {
        time: u64,
        cpu: i32,
        misc: u16,
        text: String,
    },
}

impl Out {
    pub(crate) fn time(&self) -> u64 {
        match self {
            Out::Sample { time, .. } | Out::Side { time, .. } => *time,
        }
    }

    /// What a walk has to say about a record; `None` for kinds that it passes over.
    pub(crate) fn expected(record: &Record, recording: &Recording) -> Option<Out> {
        let attr = &recording.attrs[record.attr];
        let known = |bit: u64, value: u32| if attr.has(bit) { value as i32 } else { -1 };
        let time = if record.timed(&recording.attrs) {
            record.time
        } else {
            0
        };
        if let Body::Sample {
            ip,
            addr,
            period,
            callchain,
            raw,
            ..
        } = &record.body
        {
            let opt = |bit: u64, value: u64| attr.has(bit).then_some(value);
            let mut chain = Numbers::new(recording.big);
            chain.u64s(callchain);
            return Some(Out::Sample {
                attr: record.attr as u32,
                misc: record.misc,
                time,
                pid: known(TID, record.pid),
                tid: known(TID, record.tid),
                cpu: known(CPU, record.cpu),
                ip: opt(IP, *ip),
                addr: opt(ADDR, *addr),
                period: opt(PERIOD, *period),
                callchain: attr.has(CALLCHAIN).then_some(chain.out),
                raw: attr.has(RAW).then(|| raw.clone()),
            });
        }
        let (pid, tid) = (record.pid as i32, record.tid as i32);
        // What stands for device and inode, taken for a build id: its length is a number's first byte.
        let mut place = Numbers::new(recording.big);
        place.u64(8).u64(9).u64(10);
        let length = usize::from(place.out[0]);
        let id =
            (record.misc & 1 << 14 != 0 && length > 0).then(|| place.out[4..4 + length].to_vec());
        let side = match &record.body {
            Body::Comm(name) => SideRecord::Comm {
                pid,
                tid,
                comm: name,
                exec: record.misc & 1 << 13 != 0,
            },
            Body::Fork => SideRecord::Fork {
                pid,
                tid,
                ppid: pid + 1,
                ptid: tid + 1,
            },
            Body::Exit => SideRecord::Exit { pid, tid },
            Body::Mmap(path) | Body::Mmap2(path) => SideRecord::Mmap {
                pid,
                tid,
                start: 0x1000,
                len: 0x2000,
                pgoff: 0x3000,
                // The second kind has a protection of its own, 5: it may be read and run.
                exec: matches!(&record.body, Body::Mmap2(_)) || record.misc & 1 << 13 == 0,
                huge: false,
                build_id: id
                    .as_deref()
                    .filter(|_| matches!(&record.body, Body::Mmap2(_))),
                path,
            },
            Body::Ksymbol(name) => SideRecord::Ksymbol {
                start: 0x4000,
                len: 0x500,
                name,
                gone: true,
            },
            Body::Lost(count) => SideRecord::Lost {
                count: *count,
                source: LostSource::Ring,
            },
            // A filter left them out.
            Body::LostSamples(_) if record.misc & 1 << 15 != 0 => return None,
            Body::LostSamples(count) => SideRecord::Lost {
                count: *count,
                source: LostSource::Samples,
            },
            Body::Aux | Body::Sample { .. } => return None,
        };
        Some(Out::Side {
            time,
            cpu: if attr.sample_id_all {
                known(CPU, record.cpu)
            } else {
                -1
            },
            misc: record.misc,
            text: format!("{side:?}"),
        })
    }
}

/// Collects what a walk hands out.
#[derive(Debug, Default)]
pub(crate) struct Collect(pub Vec<Out>);

impl PerfVisitor for Collect {
    type Tally = ();

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> ControlFlow<()> {
        self.0.push(Out::Sample {
            attr: sample.attr,
            misc: sample.misc,
            time: sample.time,
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            ip: sample.ip(),
            addr: sample.addr(),
            period: sample.period(),
            callchain: sample.callchain().map(<[u8]>::to_vec),
            raw: sample.raw().map(<[u8]>::to_vec),
        });
        ControlFlow::Continue(())
    }

    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        self.0.push(Out::Side {
            time,
            cpu,
            misc,
            text: format!("{record:?}"),
        });
    }
}

/// Reads bytes by pieces of a length that nothing else has.
#[derive(Debug)]
struct ReadSlowly<'b>(&'b [u8]);

impl ByteSource for ReadSlowly<'_> {
    fn read_at(&self, at: u64, into: &mut [u8]) -> usize {
        let from = self.0.get(at as usize..).unwrap_or_default();
        let count = from.len().min(into.len()).min(40_009);
        into[..count].copy_from_slice(&from[..count]);
        count
    }
}

/// Walks with one thread and with two, in the bytes and reading them by pieces, which must be the same.
pub(crate) fn walk_wanting(data: &PerfRecording<'_>, wants: &[SampleWish]) -> (Vec<Out>, Totals) {
    let mut collect = Collect::default();
    let totals = data.walk(wants, &mut collect);
    let mut threads = Collect::default();
    let with_threads = data.walk_on(2, wants, &mut threads);
    assert!(threads.0 == collect.0, "two threads give other records");
    assert_eq!(with_threads, totals, "two threads count otherwise");
    let source = ReadSlowly(data.bytes());
    if let Ok(again) = PerfRecording::parse(data.bytes()) {
        let again = again.read_by(Some(&source));
        for threads in [1, 2] {
            let mut pieces = Collect::default();
            let counted = again.walk_on(threads, wants, &mut pieces);
            assert!(pieces.0 == collect.0, "pieces give other records");
            assert_eq!(counted, totals, "pieces count otherwise");
        }
    }
    (collect.0, totals)
}

/// Parses and walks, everything wanted.
pub(crate) fn walk(bytes: &[u8]) -> (Vec<Out>, Totals, bool) {
    let data = PerfRecording::parse(bytes).expect("a header that can be read");
    let (out, totals) = walk_wanting(&data, &[]);
    let truncated = data.truncated() || totals.truncated;
    (out, totals, truncated)
}
