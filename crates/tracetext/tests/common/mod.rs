//! Gathers what a text holds, for tests to compare.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ops::ControlFlow;

use event::sched::{SchedWakeup, TaskComm};
use event::{
    Body, Data, Event, EventType, ExitQualification, ExitReason, Isa, KvmEntry, KvmExit, KvmMmio,
    KvmMsr, KvmPio, LostKind, MmioAccess, Side, Sink,
};
use tracetext::TextSummary;

/// One event, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub time: u64,
    pub cpu: i32,
    pub tid: i32,
    pub pid: i32,
    pub comm: Option<String>,
    pub system: String,
    pub name: String,
    pub text: String,
    pub data: Data,
    pub buffer: u16,
}

/// Everything a text holds.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub events: Vec<Seen>,
    /// Debug prints of side records.
    pub sides: Vec<String>,
    /// Lost events: time, CPU, count, kind.
    pub lost: Vec<(u64, i32, Option<u64>, LostKind)>,
    pub asked: Vec<String>,
}

impl Sink for Gathered {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        assert_eq!(
            ty.index as usize,
            self.asked.len(),
            "kinds are numbered in order"
        );
        self.asked.push(ty.label.to_owned());
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Body::Text { text, data } = event.body else {
            panic!("a text has texts");
        };
        self.events.push(Seen {
            time: event.time,
            cpu: event.cpu,
            tid: event.tid,
            pid: event.pid,
            comm: event.comm.map(str::to_owned),
            system: event.ty.system.to_owned(),
            name: event.ty.name.to_owned(),
            text: text.to_owned(),
            data,
            buffer: event.buffer,
        });
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Side::Lost {
            time,
            cpu,
            count,
            kind,
            ..
        } = side
        {
            self.lost.push((*time, *cpu, *count, *kind));
        }
        self.sides.push(format!("{side:?}"));
    }
}

/// Reads a text.
pub(crate) fn read(text: impl AsRef<[u8]>) -> (Gathered, TextSummary) {
    let mut gathered = Gathered::default();
    let summary = tracetext::walk(text.as_ref(), &mut gathered);
    (gathered, summary)
}

/// Reads a text of one event without anything odd in it.
#[track_caller]
pub(crate) fn one(line: &str) -> Seen {
    let (gathered, summary) = read(line);
    assert_eq!(gathered.events.len(), 1, "{line}: {summary:?}");
    assert_eq!(summary.quality.texts(), [""; 0], "{line}");
    gathered.events.into_iter().next().expect("one event")
}

/// Returns CPU, thread, process, thread's name and event's name.
pub(crate) fn who(seen: &Seen) -> (i32, i32, i32, Option<&str>, &str) {
    (
        seen.cpu,
        seen.tid,
        seen.pid,
        seen.comm.as_deref(),
        &seen.name,
    )
}

pub(crate) fn exit(isa: Isa, code: u32, vcpu: Option<u32>, guest_pc: Option<u64>) -> Data {
    let reason = ExitReason { isa, code };
    Data::KvmExit(KvmExit {
        reason,
        vcpu,
        guest_pc,
        info: None,
        inner: false,
    })
}

/// The same with what the processor recorded of it.
pub(crate) fn with_info(exit: Data, info1: u64, info2: Option<u64>) -> Data {
    match exit {
        Data::KvmExit(exit) => Data::KvmExit(KvmExit {
            info: Some(ExitQualification { info1, info2 }),
            ..exit
        }),
        other => other,
    }
}

pub(crate) fn entry(vcpu: Option<u32>, guest_pc: Option<u64>) -> Data {
    Data::KvmEntry(KvmEntry { vcpu, guest_pc })
}

pub(crate) fn mmio(access: MmioAccess, gpa: u64, len: u32, value: u64) -> Data {
    Data::KvmMmio(KvmMmio {
        access,
        gpa,
        len,
        value,
    })
}

pub(crate) fn pio(write: bool, port: u16, size: u32, count: u32, value: u32) -> Data {
    Data::KvmPio(KvmPio {
        write,
        port,
        size,
        count,
        value: Some(value),
    })
}

pub(crate) fn msr(write: bool, msr: u32, value: u64, exception: bool) -> Data {
    Data::KvmMsr(KvmMsr {
        write,
        msr,
        value,
        exception,
    })
}

pub(crate) fn wakeup(tid: i32, comm: &str, target_cpu: i32) -> SchedWakeup {
    SchedWakeup {
        tid,
        comm: TaskComm::new(comm.as_bytes()),
        target_cpu: Some(target_cpu),
    }
}

/// Breaks lines between words, as mail programs do.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            if column > 0 && column + word.trim_end().len() > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                column = 0;
            }
            out.push_str(word);
            column += word.len();
        }
        out.push('\n');
    }
    out
}
