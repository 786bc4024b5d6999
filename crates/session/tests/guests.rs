//! A host's recording with those of its guests: texts made by hand, of which it is known whose guest each is and when
//! everything was.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use analysis::{
    GuestContext, GuestTasks, InsideEvents, RecordingContents, SharedAnalysis, Study, Vcpus, Window,
};
use event::{Event, EventOrder, EventType, Sink};
use proptest::prelude::*;
use session::{Error, Guest, GuestClock, OpenRecording, PairingEvidence, Session, SessionOptions};

/// A VM of a host: the thread of its vCPU, and how far its guest's clock is behind, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) tid: i32,
    seed: u64,
    pub(crate) behind_us: u64,
}

pub(crate) const A: Made = Made {
    tid: 101,
    seed: 1,
    behind_us: 86_400_000_000,
};
pub(crate) const B: Made = Made {
    tid: 201,
    seed: 2,
    behind_us: 12_345_678,
};

/// When the host's recording begins, in microseconds.
const BEGIN_US: u64 = 100_000_000_000;
pub(crate) const ROUNDS: u64 = 400;

/// Returns when a VM was in its guest, in microseconds: from, and until. No two are alike.
pub(crate) fn windows(of: Made) -> Vec<(u64, u64)> {
    let mut state = of.seed;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut at = BEGIN_US;
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        at += 300 + next(900);
        let exit = at + 60 + next(200);
        out.push((at, exit));
        at = exit;
    }
    out
}

pub(crate) fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Returns the host's text: entries and exits of all VMs.
pub(crate) fn host(of: &[Made]) -> String {
    let mut lines = Vec::new();
    for vm in of {
        for (entry, exit) in windows(*vm) {
            let head = |at: u64| {
                format!(
                    "   CPU 0/KVM-{}   [00{}] {}",
                    vm.tid,
                    vm.tid / 100,
                    seconds(at)
                )
            };
            lines.push((
                entry,
                format!("{}: kvm_entry: vcpu 0, rip 0x1000", head(entry)),
            ));
            lines.push((
                exit,
                format!("{}: kvm_exit: reason HLT rip 0x1000 info 0 0", head(exit)),
            ));
        }
    }
    lines.sort();
    let lines = lines.into_iter().map(|(_, line)| line + "\n");
    "cpus=4\n".to_owned() + &lines.collect::<String>()
}

/// Returns a guest's text: in each of its windows `server` gets the CPU 20 us after the entry, and gives it back 50 us
/// after it.
pub(crate) fn guest(of: Made) -> String {
    let mut out = "cpus=1\n".to_owned();
    for (entry, _) in windows(of) {
        let own = entry - of.behind_us;
        let mut switch = |at: u64, from: (&str, i32), to: (&str, i32)| {
            let _ = writeln!(
                out,
                "   {}-{}   [000] {}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> \
                 next_comm={} next_pid={} next_prio=120",
                from.0,
                from.1,
                seconds(at),
                from.0,
                from.1,
                to.0,
                to.1
            );
        };
        switch(own + 20, ("swapper/0", 0), ("server", 77));
        switch(own + 50, ("server", 77), ("swapper/0", 0));
    }
    out
}

pub(crate) struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    pub(crate) fn new() -> Files {
        Files {
            folder: tempfile::tempdir().expect("there is room for temporary files"),
        }
    }

    pub(crate) fn add(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("there is room for temporary files");
        path
    }
}

/// Whose guest a recording was found to be, and how far its clock is behind.
#[derive(Debug, PartialEq)]
struct Found {
    whose: PairingEvidence,
    clock: GuestClock,
    tid: i32,
    offset_ns: i64,
    outside: u64,
}

/// Pairs a host with guests, each said to be of a VM or not.
fn found(host: &str, guests: &[(&str, Option<&str>)]) -> Result<Vec<Found>, Error> {
    let files = Files::new();
    let session = Session::open(SessionOptions::default())?;
    let path = files.add("host.txt", host);
    let host = session.input(&path)?;
    let host = host.recording()?;
    let inputs: Vec<_> = (guests.iter().zip(0..))
        .map(|((text, vm), number)| {
            let path = files.add(&format!("guest{number}.txt"), text);
            (session.input(&path).expect("it was written"), *vm)
        })
        .collect();
    let inputs = inputs.iter().map(|(input, vm)| input.guest(*vm));
    let inputs: Result<Vec<_>, Error> = inputs.collect();
    let guests = host.guests(inputs?)?;
    let found = guests.iter().map(|guest| Found {
        whose: guest.whose(),
        clock: guest.clock(),
        tid: guest.vcpus()[0].1,
        offset_ns: guest.fit().offset_ns,
        outside: guest.fit().outside,
    });
    Ok(found.collect())
}

fn assert_is(found: &Found, of: Made, whose: PairingEvidence) {
    let right = i64::try_from(of.behind_us * 1000).expect("some days");
    assert_eq!((found.whose, found.tid), (whose, of.tid), "{found:?}");
    assert_eq!(
        (found.clock, found.outside),
        (GuestClock::Fitted, 0),
        "{found:?}"
    );
    // An event comes 20 us after the entry, and another one at least 10 us before the exit.
    assert!(
        found.offset_ns.abs_diff(right) <= 20_000,
        "{found:?} for {right}"
    );
}

#[test]
fn guests_are_known_by_their_events_however_far_their_clocks_are_apart() {
    let host = host(&[A, B]);
    let both = found(&host, &[(&guest(B), None), (&guest(A), None)]).expect("they fit");
    assert_is(&both[0], B, PairingEvidence::Shown);
    assert_is(&both[1], A, PairingEvidence::Shown);
    let named = found(&host, &[(&guest(A), Some("101"))]).expect("it fits");
    assert_is(&named[0], A, PairingEvidence::Chosen);
}

#[test]
fn wrong_pairs_are_refused_with_the_reason() {
    let host = host(&[A, B]);
    let refused = |guests: &[(&str, Option<&str>)]| match found(&host, guests) {
        Ok(found) => panic!("{found:?}"),
        Err(error) => error.to_string(),
    };
    // Swapped, of another boot, of nobody, and one guest twice.
    let swapped = refused(&[(&guest(A), Some("201"))]);
    assert!(
        swapped.contains("is no guest of") && swapped.contains("by chance"),
        "{swapped}"
    );
    let other = Made { seed: 3, ..A };
    let other = refused(&[(&guest(other), None)]);
    assert!(other.contains("at the best offset of its clock"), "{other}");
    let nobody = refused(&[(&guest(A), Some("web"))]);
    assert!(nobody.contains("has no VM web"), "{nobody}");
    let twice = refused(&[(&guest(A), None), (&guest(A), None)]);
    assert!(twice.contains("is no guest of"), "{twice}");
    // A host that shows no vCPU.
    let none = found(&guest(B), &[(&guest(A), None)]).expect_err("it has no vCPU");
    assert!(none.to_string().contains("kvm_entry"), "{none}");
}

/// Notes the times and machines of all events.
#[derive(Default)]
struct All(Vec<(u64, u16)>);

impl Sink for All {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Any
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.0.push((event.time, event.machine()));
        ControlFlow::Continue(())
    }
}

/// Walks a host and guests, if they can be paired.
fn walk<S: Sink>(
    host: &str,
    guests: &[&[u8]],
    sink: &mut S,
    prepare: impl Fn(&mut S, &OpenRecording<'_>, &[Guest<'_>]),
) -> bool {
    let files = Files::new();
    let session = Session::open(SessionOptions::default()).expect("nothing is read");
    let path = files.add("host.txt", host);
    let host = session.input(&path).expect("it was written");
    let host = host.recording().expect("it is a recording");
    let paths = guests
        .iter()
        .zip(0..)
        .map(|(text, number)| files.add(&format!("{number}"), text));
    let inputs: Vec<_> = paths.filter_map(|path| session.input(&path).ok()).collect();
    let inputs: Result<Vec<_>, Error> = inputs.iter().map(|input| input.guest(None)).collect();
    let Some(guests) = inputs.ok().and_then(|inputs| host.guests(inputs).ok()) else {
        return false;
    };
    prepare(sink, &host, &guests);
    host.walk_with(&guests, sink);
    true
}

#[test]
fn all_events_come_in_the_order_of_the_hosts_clock() {
    let mut all = All::default();
    let guests = [guest(A), guest(B)];
    let guests = [guests[0].as_bytes(), guests[1].as_bytes()];
    assert!(walk(&host(&[A, B]), &guests, &mut all, |_, _, _| ()));
    let of = |machine: u16| all.0.iter().filter(|one| one.1 == machine).count() as u64;
    assert_eq!([of(0), of(1), of(2)], [4 * ROUNDS, 2 * ROUNDS, 2 * ROUNDS]);
    assert!(all.0.is_sorted_by_key(|one| one.0));
}

/// What a study finds of the host, in words.
fn of_host(asked: &AskedStudy) -> String {
    let walked = asked.study.walked();
    let vcpus = asked.vcpus.get().clone().report(&walked);
    let info = asked.info.get().report(&walked);
    format!("{vcpus:#?}\n{info:#?}")
}

/// A study, and the analyses that it has.
struct AskedStudy {
    study: Study,
    info: SharedAnalysis<RecordingContents>,
    vcpus: SharedAnalysis<Vcpus>,
    inside: SharedAnalysis<InsideEvents>,
    tasks: SharedAnalysis<GuestTasks>,
}

fn asked() -> AskedStudy {
    let mut study = Study::default();
    AskedStudy {
        info: study.share(RecordingContents::new()),
        vcpus: study.share(Vcpus::new(Window::default())),
        inside: study.share(InsideEvents::new()),
        tasks: study.share(GuestTasks::new(Window::default())),
        study,
    }
}

/// A path through the guest of one VM, whose clock is a day behind, and through that of another, which is not recorded.
#[test]
fn paths_go_through_guests_however_far_their_clocks_are_apart() {
    const PATH: &str = "name = \"x\"\n\
        [[step]]\nname = \"entered\"\nevent = \"kvm_entry\"\nbind = \"vcpu = thread\"\nunique = \"vcpu\"\n\
        [[step]]\nname = \"guest: runs\"\nmachine = \"guest\"\noptional = \"unrecorded\"\nevent = \"sched_switch\"\n\
        where = \"next_pid == 77\"\njoin = \"thread = vcpu\"\nbind = \"task = task\"\n\
        [[step]]\nname = \"guest: done\"\nmachine = \"guest\"\noptional = \"unrecorded\"\nevent = \"sched_switch\"\n\
        join = \"prev = task\"\n\
        [[step]]\nname = \"exit\"\nevent = \"kvm_exit\"\njoin = \"thread = vcpu\"\n";
    let one = paths::lang::parse(PATH).expect("a path");
    let mut study = Study::default();
    let paths = study.share(paths::Paths::new(vec![one]));
    let follower = paths.clone();
    let prepare = |study: &mut Study, host: &OpenRecording<'_>, guests: &[Guest<'_>]| {
        for (guest, machine) in guests.iter().zip(1..) {
            let mut follower = follower.get_mut();
            follower.guest(machine, guest.name(), guest.vcpus().iter().copied());
        }
        host.prepare_with(study, guests);
    };
    let own = guest(A);
    assert!(walk(&host(&[A, B]), &[own.as_bytes()], &mut study, prepare));
    study.finish();
    let paths = paths.get();
    let report = paths.report(study.walked().machine, &|_| None).remove(0);
    assert_eq!(report.count, 2 * ROUNDS);
    let count = |name: &str| report.stage(name).map_or(0, |stage| stage.stats.count());
    let ns = |name: &str| {
        report
            .stage(name)
            .map(|stage| (stage.stats.min(), stage.stats.max()))
    };
    // Whether the guest's events are recorded is known with the first of them.
    assert_eq!(count("entered → exit"), ROUNDS);
    assert_eq!(count("guest: done → exit"), ROUNDS);
    assert_eq!(ns("guest: runs → guest: done"), Some((30_000, 30_000)));
    let (least, most) = ns("entered → guest: runs").expect("there are some");
    // The clocks are apart by no more than the events between them say.
    assert_eq!(least, most);
    assert!((10_000..=20_000).contains(&least), "{least}");
    let total: u64 = [A, B]
        .iter()
        .flat_map(|vm| windows(*vm))
        .map(|(entry, exit)| (exit - entry) * 1000)
        .sum();
    assert_eq!(report.total.total(), total);
}

#[test]
fn what_guests_did_is_split_by_their_events() {
    let files = Files::new();
    let session = Session::open(SessionOptions::default()).expect("nothing is read");
    let (path, own) = (files.add("host", host(&[A])), files.add("guest", guest(A)));
    let host = session.input(&path).expect("it was written");
    let host = host.recording().expect("it is a recording");
    let input = session.input(&own).expect("it was written");
    let guests = host.guests(vec![input.guest(None).expect("it is a recording")]);
    let guests = guests.expect("it fits");
    let mut asked = asked();
    host.prepare_with(&mut asked.study, &guests);
    host.walk_with(&guests, &mut asked.study);
    asked.study.finish();
    let inside = asked.inside.get().report(1);
    // Behind the last exit the host has nothing, and before it has two events for each entry.
    assert_eq!((inside.inside, inside.outside), (2 * ROUNDS, 0));
    assert_eq!(inside.residual_ns(), 0);
    let walked = asked.study.walked();
    let tasks = asked.tasks.get();
    let report = tasks.report(&walked, A.tid).expect("its guest was walked");
    let server = report
        .tasks
        .iter()
        .find(|task| task.who.doing == GuestContext::Task(77));
    let server = server.expect("it ran");
    assert_eq!(server.who.name.as_deref(), Some("server"));
    // 30 us in each window.
    assert_eq!(server.times.get(model::State::Guest), ROUNDS * 30_000);
    assert_eq!(server.exits, 0);
    let idle = report
        .tasks
        .iter()
        .find(|task| task.who.doing == GuestContext::Idle);
    assert_eq!(idle.map(|idle| idle.exits), Some(ROUNDS - 1));
    // The last exit comes when the guest's recording has ended.
    let unknown = report
        .tasks
        .iter()
        .find(|task| task.who.doing == GuestContext::Unknown);
    assert_eq!(unknown.map(|unknown| unknown.exits), Some(1));
    let rows = asked.vcpus.get().clone().report(&walked).rows;
    for state in model::State::ALL {
        let sum: u64 = report.tasks.iter().map(|task| task.times.get(state)).sum();
        assert_eq!(sum, rows[0].times.get(state), "{state:?}");
    }
    // What is found of the host is what is found of it alone.
    let mut alone = self::asked();
    host.prepare(&mut alone.study);
    host.walk(&mut alone.study);
    alone.study.finish();
    assert_eq!(of_host(&asked), of_host(&alone));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn damaged_guests_cost_themselves_alone(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = guest(B).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() / 2 + cut.index(bytes.len() / 2));
        let text = host(&[A, B]);
        let mut alone = asked();
        let prepare = |study: &mut Study, host: &OpenRecording<'_>, guests: &[Guest<'_>]| {
            host.prepare_with(study, guests);
        };
        prop_assert!(walk(&text, &[], &mut alone.study, prepare));
        alone.study.finish();
        let mut with = asked();
        if walk(&text, &[&bytes], &mut with.study, prepare) {
            with.study.finish();
            prop_assert_eq!(of_host(&with), of_host(&alone));
        }
    }
}
