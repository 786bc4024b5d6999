//! Tests of the programs without a kernel: an interpreter runs what is committed, on the records of real recordings,
//! and what comes of it is what `analysis` says of the same recordings.

mod interpreter;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use analysis::{ExitTable, Exits, Study, Vcpus, VcpusReport, Window};
use event::{Body, Data, Event, EventOrder, EventType, Kind, MmioAccess, Sink, SystemRegister};
use model::{GuestAccess, State, Times};
use source::{ReaderOptions, RecordingBytes};
use tracefmt::EventFormat;

use crate::events::EventCounter;
use crate::layout::RecordFormats;
use crate::load::OBJECT;
use crate::raw;
use crate::read;
use crate::seeds::ThreadSeed;
use counts::{LiveRow, LiveThread, RowSubject, Snapshot, WaitBehind};
use interpreter::{Kernel, RunningTask};

/// Count, total, shortest, longest, how many the VMM handled, time of whole exits for a port, and what vCPUs did.
type ReplaySum = (u64, u64, u64, u64, u64, u64, Times);

/// Runs the programs on events.
struct Replay {
    kernel: Kernel,
    /// Whether exits are taken from their arguments.
    exit_by_argument: bool,
    /// Time of the last event.
    end: u64,
}

impl Replay {
    fn new(kernel: Kernel) -> Replay {
        Replay {
            kernel,
            exit_by_argument: false,
            end: 0,
        }
    }
}

impl Sink for Replay {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        program(ty.kind, ty.name).is_some()
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Some(name) = program(event.ty.kind, event.ty.name) else {
            return ControlFlow::Continue(());
        };
        let Body::Raw(record) = event.body else {
            return ControlFlow::Continue(());
        };
        let tid = event.tid.cast_unsigned();
        let task = RunningTask {
            tid,
            tgid: event.pid.max(0).cast_unsigned(),
            cpu: event.cpu.cast_unsigned(),
            now_ns: event.time,
        };
        let field = |name: &str| {
            let format = event.ty.format.expect("a record has a format");
            let field = format.field(name).expect("the event has this field");
            field
                .value(record, format.abi.endian)
                .expect("it is a number")
        };
        // As the kernel hands them over, in the order of the tracepoint's arguments.
        let arguments: Vec<u64> = match event.data() {
            Data::KvmUserspaceExit(_) => vec![field("reason"), field("errno")],
            Data::KvmFpu(fpu) => vec![u64::from(fpu.load)],
            Data::KvmPio(pio) => vec![pio.write.into(), pio.port.into()],
            Data::KvmMmio(mmio) => {
                let kind = match mmio.access {
                    MmioAccess::ReadUnsatisfied => 0,
                    MmioAccess::Read => 1,
                    MmioAccess::Write => 2,
                    MmioAccess::Unknown(number) => number,
                };
                vec![kind.into(), 0, mmio.gpa]
            }
            Data::KvmMsr(msr) => vec![msr.write.into(), msr.msr.into()],
            Data::KvmHaltPollNs(_) => vec![0, 0, field("new"), field("old")],
            Data::KvmVcpuWakeup(_) => vec![field("ns"), field("waited")],
            _ if name == "kvm_fast_mmio" => vec![field("gpa")],
            _ => Vec::new(),
        };
        let (name, arguments) = match self.exit_by_argument && name == "kvm_exit" {
            true => ("kvm_exit_by_argument", vec![field("ret"), field("esr_ec")]),
            false => (name, arguments),
        };
        let by_record = name == "kvm_exit" || name.starts_with("record_");
        let context: Vec<u8> = match by_record {
            true => record.to_vec(),
            false => arguments
                .iter()
                .chain(&[0])
                .flat_map(|arg| arg.to_le_bytes())
                .collect(),
        };
        let returned = self.kernel.run(name, task, &context);
        assert!(
            returned == 1 || !by_record,
            "{name} keeps its event from perf"
        );
        self.end = self.end.max(event.time);
        ControlFlow::Continue(())
    }
}

/// The program that takes a kind of event.
fn program(kind: Kind, name: &str) -> Option<&'static str> {
    Some(match kind {
        Kind::KvmExit => "kvm_exit",
        Kind::KvmEntry => "kvm_entry",
        Kind::KvmUserspaceExit => "kvm_userspace_exit",
        Kind::KvmFpu => "kvm_fpu",
        Kind::KvmPio => "kvm_pio",
        Kind::KvmMmio => "kvm_mmio",
        Kind::KvmMsr => "kvm_msr",
        Kind::KvmHaltPollNs => "kvm_halt_poll_ns",
        Kind::KvmVcpuWakeup => "kvm_vcpu_wakeup",
        Kind::SchedSwitch => "record_sched_switch",
        Kind::SchedWakeup => "record_sched_wakeup",
        Kind::SchedMigrateTask => "record_sched_migrate_task",
        Kind::SchedProcessExit => "record_sched_process_exit",
        _ if name == "kvm_fast_mmio" => "kvm_fast_mmio",
        _ => return None,
    })
}

/// What both sides say of exits and accesses: by table and key.
type ReplaySums = BTreeMap<(u8, String), ReplaySum>;

fn reported_by_programs(rows: &[LiveRow]) -> ReplaySums {
    let mut sums = ReplaySums::new();
    for row in rows {
        let (table, key) = match row.what {
            RowSubject::Exit(reason) => (0, reason.key().into_owned()),
            RowSubject::Access(access) => {
                let table = match access {
                    GuestAccess::Port { .. } => 1,
                    GuestAccess::Mmio { .. } => 2,
                    GuestAccess::Msr { .. } => 3,
                };
                (table, analysis::access_key(&access))
            }
            RowSubject::FastMmio { .. } => continue,
        };
        let sum = sums
            .entry((table, key))
            .or_insert((0, 0, u64::MAX, 0, 0, 0, Times::default()));
        sum.0 += row.durations.count;
        sum.1 += row.durations.total_ns;
        sum.2 = sum.2.min(row.min_ns.unwrap_or(0));
        sum.3 = sum.3.max(row.durations.max_ns);
        sum.4 += row.user_count;
        sum.5 += row.whole_ns;
        sum.6.merge(&row.times);
        assert_eq!(
            row.durations.buckets.iter().sum::<u64>(),
            row.durations.count
        );
    }
    sums.retain(|_, sum| sum.0 > 0);
    sums
}

/// Returns whether a row is of a system register of arm64: neither the programs nor the events that are counted
/// instead take those, as `kvm_sys_access` has the register behind pointers.
fn is_system_register(address: Option<u64>) -> bool {
    let number = address.and_then(|address| u32::try_from(address).ok());
    number.and_then(SystemRegister::from_number).is_some()
}

fn counted_by_analysis(study: &Study, exits: &Exits) -> ReplaySums {
    let walked = study.walked();
    let mut sums = ReplaySums::new();
    for (report, table) in exits.reports(walked.machine).iter().zip(0u8..) {
        for row in report
            .rows
            .iter()
            .filter(|row| report.table != ExitTable::Msr || !is_system_register(row.address))
        {
            let times = match report.table {
                ExitTable::Vmexit => row.times.unwrap_or_default(),
                _ => Times::default(),
            };
            let stats = &row.stats;
            let whole = row.whole.ns;
            let sum = (
                stats.count(),
                stats.total(),
                stats.min(),
                stats.max(),
                row.user_count,
                whole,
                times,
            );
            sums.insert((table, row.key.clone()), sum);
        }
    }
    sums
}

fn records(reader: &source::RecordingReader<'_>) -> Option<RecordFormats> {
    let formats = reader.formats()?;
    let format = |system: &str, name: &str| -> Option<EventFormat> {
        formats.by_name(system, name).cloned()
    };
    Some(RecordFormats {
        exit: format("kvm", "kvm_exit")?,
        switch: format("sched", "sched_switch")?,
        wakeup: format("sched", "sched_wakeup")?,
        migrate: format("sched", "sched_migrate_task"),
        end: format("sched", "sched_process_exit"),
    })
}

fn corpus() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                // Recordings with an injected cause are the rules' own; to replay them takes minutes.
                if name != "causes" {
                    folders.push(path);
                }
            } else if name.contains("perf.data") || name.contains(".dat") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Everything that the programs ask for was recorded, and nothing lost: else they would know more than the recording.
fn is_whole(study: &Study, outcome: &source::WalkOutcome) -> bool {
    let seen = study.walked().machine.seen();
    let halts = seen.halts && seen.poll_lengths && seen.userspace_exits;
    halts && seen.switches && seen.returns && seen.wakeups && outcome.quality.lost_events == 0
}

fn rows(kernel: &Kernel) -> Vec<LiveRow> {
    let rows = kernel.map("rows");
    let rows = rows.iter().map(|(_, row)| interpreter::read(row));
    let rows = rows.filter(|row: &raw::RawRow| row.key.tid != 0);
    rows.map(|row| read::row(&row)).collect()
}

/// What ran while a vCPU waited, by thread.
fn behind(kernel: &Kernel, tid: i32) -> BTreeMap<i32, (u64, u64)> {
    let blames = kernel.map("blames");
    let blames = blames
        .iter()
        .map(|(key, blame)| read::behind(&interpreter::read(key), &interpreter::read(blame)));
    let of_vcpu = blames.filter(|one| one.tid == tid && one.count > 0);
    of_vcpu
        .map(|one| (one.by_tid, (one.count, one.ns)))
        .collect()
}

fn vcpus_agree(replay: &Replay, report: &VcpusReport, name: &str) -> usize {
    let kernel = &replay.kernel;
    let raws = kernel.map("vcpus");
    let mut compared = 0;
    for row in &report.rows {
        // A thread's end is recorded by an event that only live programs can count on.
        if row.to < replay.end {
            continue;
        }
        let raws = raws
            .iter()
            .map(|(_, vcpu)| interpreter::read::<raw::RawVcpu>(vcpu));
        let mut raws = raws.filter(|vcpu| vcpu.tid.cast_signed() == row.tid);
        let raw = raws.next().expect("the programs know the vCPU");
        assert_eq!(
            raw.finished, raw.changes,
            "{name}: a change was not finished"
        );
        let mut vcpu = read::vcpu(&raw, row.to);
        if row.times.get(State::Unknown) > 0 {
            // Where an event was missed amid a halt, what came before it is the way to sleep for the one and a part of
            // it for the other. Nothing is made of this number.
            vcpu.polls.unpolled_ns = row.polls.unpolled_ns;
        }
        let reported = (vcpu.times, vcpu.exits, vcpu.polls);
        assert_eq!(
            reported,
            (row.times, row.exits, row.polls),
            "{name}: {}",
            row.tid
        );
        // A recording ends amid waits, which its analysis counts as far as they went.
        const RUNNABLE: u8 = 1;
        let open = u64::from(raw.sched == RUNNABLE && raw.wait_from < row.to);
        let waits = vcpu.woken.count + vcpu.preempted.count + open;
        assert_eq!(waits, row.waits.count(), "{name}: {}", row.tid);
        if open == 0 && row.behind.iter().all(|one| one.tid.is_some()) {
            let list = row.behind.iter();
            let list = list.map(|one| (one.tid.unwrap_or(-1), (one.count, one.ns)));
            assert_eq!(
                behind(kernel, row.tid),
                list.collect(),
                "{name}: {}",
                row.tid
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn the_programs_say_of_recordings_what_analyses_say() {
    let (mut recordings, mut waits, mut by_argument) = (0, 0, 0);
    for path in corpus() {
        let name = path.display().to_string();
        let Ok(recording) = RecordingBytes::open(&path) else {
            continue;
        };
        let Ok(reader) = recording.reader(ReaderOptions::default()) else {
            continue;
        };
        let Some(records) = records(&reader) else {
            continue;
        };
        let Ok(layout) = records.layout() else {
            continue;
        };
        let options = analysis::ExitOptions {
            split: true,
            ..analysis::ExitOptions::default()
        };
        let mut study = Study::default();
        let exits = study.add(Exits::new(options));
        let vcpus = study.add(Vcpus::new(Window::default()));
        let outcome = reader.walk(&mut study);
        let answers = study.finish();
        let (exits, vcpus) = (answers.take(exits), answers.take(vcpus));
        if !is_whole(&study, &outcome) {
            continue;
        }
        let mut replay = Replay::new(Kernel::new(OBJECT, &layout, &[]));
        let _ = reader.walk(&mut replay);
        let programs = reported_by_programs(&rows(&replay.kernel));
        assert_eq!(programs, counted_by_analysis(&study, &exits), "{name}");
        waits += vcpus_agree(&replay, &vcpus.report(&study.walked()), &name);
        recordings += 1;
        if records.exit_by_argument() {
            let rows_by_record = rows(&replay.kernel);
            let mut replay = Replay::new(Kernel::new(OBJECT, &layout, &[]));
            replay.exit_by_argument = true;
            let _ = reader.walk(&mut replay);
            assert_eq!(rows(&replay.kernel), rows_by_record, "{name}");
            by_argument += 1;
        }
    }
    assert!(recordings >= 12, "only {recordings} recordings have it all");
    assert!(by_argument >= 3, "only {by_argument} say it in arguments");
    assert!(
        waits >= 12,
        "behind whom only {waits} vCPUs waited was compared"
    );
}

/// Threads that get a CPU in a recording, and the first event's time.
#[derive(Default)]
struct ReplayThreads {
    tids: BTreeSet<i32>,
    first: Option<u64>,
}

impl Sink for ReplayThreads {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        program(ty.kind, ty.name).is_some()
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.first.get_or_insert(event.time);
        if let Data::SchedSwitch(switch) = event.data() {
            self.tids.insert(switch.next_tid);
        }
        ControlFlow::Continue(())
    }
}

/// What was counted by the programs, in the form of the way that counts events.
fn snapshot(kernel: &Kernel, to_ns: u64) -> Snapshot {
    let mut snapshot = Snapshot {
        to_ns,
        rows: rows(kernel),
        ..Snapshot::default()
    };
    snapshot.rows.retain(|row| row.durations.count > 0);
    for (_, raw) in kernel.map("vcpus") {
        let raw = interpreter::read::<raw::RawVcpu>(&raw);
        if raw.tid == 0 {
            continue;
        }
        let mut vcpu = read::vcpu(&raw, to_ns);
        // Records of trace-cmd do not tell the process, and facts tell the number.
        (vcpu.number, vcpu.pid) = (None, 0);
        match raw.other {
            0 => snapshot.vcpus.push(vcpu),
            _ => snapshot.threads.push(LiveThread::of(vcpu)),
        }
    }
    for (key, blame) in kernel.map("blames") {
        let one = read::behind(&interpreter::read(&key), &interpreter::read(&blame));
        snapshot.behind.push(WaitBehind { comm: None, ..one });
    }
    snapshot.behind.retain(|one| one.count > 0);
    snapshot.sort();
    snapshot
}

#[test]
fn events_that_are_counted_say_what_the_programs_say() {
    let (mut recordings, mut waits, mut threads) = (0, 0, 0);
    for path in corpus() {
        let name = path.display().to_string();
        let Ok(recording) = RecordingBytes::open(&path) else {
            continue;
        };
        let Ok(reader) = recording.reader(ReaderOptions::default()) else {
            continue;
        };
        let layout = records(&reader).and_then(|records| records.layout().ok());
        let Some(layout) = layout else { continue };
        let mut study = Study::default();
        study.add(Vcpus::new(Window::default()));
        let outcome = reader.walk(&mut study);
        study.finish();
        if !is_whole(&study, &outcome) {
            continue;
        }
        let vcpus: BTreeSet<i32> = study.walked().machine.vcpus().map(|one| one.tid).collect();
        let mut seen = ReplayThreads::default();
        let _ = reader.walk(&mut seen);
        let first = seen.first.expect("it has events");
        // Some threads that are no vCPUs, as if they worked for a VM; of the first it is not known that it sleeps.
        let others = seen.tids.difference(&vcpus).filter(|tid| **tid > 0).take(5);
        let others: Vec<ThreadSeed> = others
            .zip(0..)
            .map(|(tid, at)| ThreadSeed {
                tid: *tid,
                vm_pid: 1,
                asleep: at > 0,
                cpu: -1,
            })
            .collect();
        let mut kernel = Kernel::new(OBJECT, &layout, &[]);
        for one in &others {
            let tid = one.tid.cast_unsigned();
            let thread = raw::RawVcpu::other(tid, 1, one.asleep, -1, first);
            kernel.follow(thread);
        }
        let mut replay = Replay::new(kernel);
        let _ = reader.walk(&mut replay);
        let mut events = EventCounter::new(Vec::new(), others);
        events.whole(&reader, first);
        let mut counted = events.snapshot();
        for vcpu in &mut counted.vcpus {
            (vcpu.number, vcpu.pid) = (None, 0);
        }
        for thread in &mut counted.threads {
            thread.vm_pid = 0;
        }
        counted.behind.iter_mut().for_each(|one| one.comm = None);
        counted.rows.retain(|row| match row.what {
            RowSubject::Access(GuestAccess::Msr { msr, .. }) => {
                !is_system_register(Some(u64::from(msr)))
            }
            _ => true,
        });
        counted.sort();
        let mut reported = snapshot(&replay.kernel, counted.to_ns);
        // perf records a thread's end beside events, a little earlier than the scheduler.
        let ended = counted.ended().union(&reported.ended()).copied().collect();
        counted.forget(&ended);
        reported.forget(&ended);
        for (ours, theirs) in counted.vcpus.iter_mut().zip(&reported.vcpus) {
            if ours.times.get(State::Unknown) > 0 {
                // As above.
                ours.polls.unpolled_ns = theirs.polls.unpolled_ns;
            }
        }
        assert_eq!(counted.vcpus, reported.vcpus, "{name}");
        assert_eq!(counted.threads, reported.threads, "{name}");
        assert_eq!(counted.rows, reported.rows, "{name}");
        assert_eq!(counted.behind, reported.behind, "{name}");
        recordings += 1;
        waits += counted.behind.len();
        threads += counted.threads.iter().filter(|one| one.ran_ns > 0).count();
    }
    assert!(recordings >= 12, "only {recordings} recordings");
    assert!(waits >= 50, "only {waits} waits behind tasks");
    assert!(threads >= 50, "only {threads} threads ran");
}

#[test]
fn what_finds_no_room_is_counted() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/vmx/tiny-irqchip/trace.dat");
    let recording = RecordingBytes::open(&path).expect("it is in the corpus");
    let reader = recording
        .reader(ReaderOptions::default())
        .expect("it is a recording");
    let layout = records(&reader)
        .expect("it has formats")
        .layout()
        .expect("they are x86's");
    let full = |most: &[(&str, usize)]| {
        let mut replay = Replay::new(Kernel::new(OBJECT, &layout, most));
        let _ = reader.walk(&mut replay);
        let counted: u64 = rows(&replay.kernel)
            .iter()
            .map(|row| row.durations.count)
            .sum();
        let dropped: Vec<u64> = replay
            .kernel
            .map("dropped")
            .iter()
            .map(|(_, value)| interpreter::read(value))
            .collect();
        (counted, dropped)
    };
    let (all, none) = full(&[]);
    assert_eq!(none, [0; 4]);
    let (some, dropped) = full(&[("free_rows", 1)]);
    assert!(some < all, "{some} of {all}");
    // A port's row is looked up once more, for the whole exit.
    let lost = dropped[raw::dropped::ROWS as usize];
    assert!(
        lost >= all - some && lost <= 2 * (all - some),
        "{lost} of {}",
        all - some
    );
    let (_, dropped) = full(&[("free_vcpus", 1)]);
    assert!(dropped[raw::dropped::VCPUS as usize] > 0);
    let (_, dropped) = full(&[("blames", 1)]);
    assert!(dropped[raw::dropped::BLAMES as usize] > 0);
}
