//! More threads and vCPUs than a walk keeps apart: sums stay what they are, and those with the most time are kept,
//! whenever they come.

use std::fmt::Write as _;
use std::path::Path;

use analysis::{Amount, Picture, SliceMeasure};
use model::{State, StateLimits};
use session::{PictureOptions, Session, SessionOptions};

/// What a host does: lines as perf script prints them, one after the other in time.
struct HostText {
    text: String,
    at_ns: u64,
}

impl HostText {
    fn new() -> HostText {
        HostText {
            text: String::new(),
            at_ns: 1_000_000_000_000,
        }
    }

    fn event(&mut self, who: (&str, i32, i32), cpu: i32, after_ns: u64, event: &str) {
        self.at_ns += after_ns;
        let (s, ns) = (self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000);
        let (comm, pid, tid) = who;
        let _ = writeln!(
            self.text,
            "{comm:>16} {pid}/{tid} [{cpu:03}] {s}.{ns:09}: {event}"
        );
    }

    fn switch(&mut self, from: (&str, i32), state: &str, to: (&str, i32), cpu: i32, after_ns: u64) {
        let event = format!(
            "sched:sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} \
             next_pid={} next_prio=120",
            from.0, from.1, to.0, to.1
        );
        self.event((from.0, from.1, from.1), cpu, after_ns, &event);
    }

    fn exit(&mut self, who: (&str, i32, i32), vcpu: u32, after_ns: u64, reason: &str) {
        let event =
            format!("kvm:kvm_exit: vcpu {vcpu} reason {reason} rip 0x1 info1 0x0 info2 0x0");
        self.event(who, 2, after_ns, &event);
    }

    fn entry(&mut self, who: (&str, i32, i32), vcpu: u32, after_ns: u64) {
        let event = format!("kvm:kvm_entry: vcpu {vcpu}, rip 0x1");
        self.event(who, 2, after_ns, &event);
    }

    /// Returns a picture of it where so many are kept apart.
    fn picture(&self, folder: &Path, limits: StateLimits) -> Picture {
        self.picture_with(folder, limits, &PictureOptions::default())
    }

    fn picture_with(
        &self,
        folder: &Path,
        limits: StateLimits,
        options: &PictureOptions,
    ) -> Picture {
        let path = folder.join("host.txt");
        std::fs::write(&path, &self.text).expect("a file");
        let session = Session::open(SessionOptions {
            limits,
            ..SessionOptions::default()
        });
        let session = session.expect("a session");
        let mut pictures = session.pictures(&[path], options).expect("a picture");
        pictures.remove(0)
    }
}

const FEW: StateLimits = StateLimits {
    threads: 64,
    vcpus: 16,
};

/// Returns sums of everything: exits and their time, time of vCPUs but their halts, which go on to the end where they
/// are kept apart, their exits, switches, time on CPUs.
fn sums(picture: &Picture) -> [u64; 6] {
    let exits = || picture.exits.iter().flat_map(|table| &table.rows);
    let vcpus = || picture.vcpus.iter().flat_map(|report| &report.rows);
    let sched = || picture.sched.iter();
    [
        exits().map(|row| row.stats.count()).sum(),
        exits().map(|row| row.stats.total()).sum(),
        vcpus()
            .map(|row| row.times.total() - row.times.get(State::Halted))
            .sum(),
        vcpus().map(|row| row.exits).sum(),
        sched()
            .flat_map(|report| &report.cpus)
            .map(|cpu| cpu.switches)
            .sum(),
        sched()
            .flat_map(|report| &report.rows)
            .map(|row| row.on_cpu_ns)
            .sum(),
    ]
}

/// Each of many threads takes the CPU of one vCPU, one of them for long.
#[test]
fn threads_that_preempt_a_vcpu_one_after_the_other_are_summed_by_name() {
    let mut host = HostText::new();
    let vcpu = ("CPU 0/KVM", 500, 501);
    for number in 0..2000 {
        let long = number == 777;
        let comm = if long { "greedy" } else { "sh" };
        host.exit(vcpu, 0, 20_000, "EXTERNAL_INTERRUPT");
        host.switch((vcpu.0, vcpu.2), "R", (comm, 10_000 + number), 2, 1000);
        let ran = if long { 400_000 } else { 5000 };
        host.switch((comm, 10_000 + number), "S", (vcpu.0, vcpu.2), 2, ran);
        host.entry(vcpu, 0, 1000);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let all = host.picture(folder.path(), StateLimits::default());
    let few = host.picture(folder.path(), FEW);
    assert_eq!(sums(&few), sums(&all));
    assert!(few.quality.doubts.has("threads-merged") && !all.quality.doubts.has("threads-merged"));
    let row = |picture: &Picture| picture.vcpus.clone().expect("vCPUs").rows.remove(0);
    let (of_few, of_all) = (row(&few), row(&all));
    assert_eq!(of_few.times, of_all.times);
    assert_eq!(of_few.waits, of_all.waits);
    // Behind whom: the one that ran for long by itself, the others together by their name.
    let greedy = of_few.behind.iter().find(|one| one.tid == Some(10_777));
    assert_eq!(greedy.map(|one| one.ns), Some(400_000));
    let crowds = |picture: &Picture| {
        let crowds = picture.waits.crowds.iter();
        let sh = crowds.filter(|crowd| crowd.name == "sh");
        sh.fold((0, 0), |sum, crowd| {
            (sum.0 + crowd.ns, sum.1 + crowd.threads)
        })
    };
    assert_eq!(crowds(&few), (1999 * 5000, 1999));
    assert_eq!(crowds(&few), crowds(&all));
}

/// Many vCPUs, and the one that is sick comes last, or first.
#[test]
fn a_vcpu_with_more_time_than_the_others_is_kept_whenever_it_comes() {
    for sick in [0, 1000, 1999] {
        let mut host = HostText::new();
        for number in 0..2000i32 {
            let comm = format!("CPU {}/KVM", number % 4);
            let (pid, vcpu) = (10_000 + 8 * (number / 4), (number as u32) % 4);
            let who = (comm.as_str(), pid, pid + 1 + number % 4);
            host.entry(who, vcpu, 1000);
            for _ in 0..3 {
                host.exit(who, vcpu, 1000, "IO_INSTRUCTION");
                let took = if number == sick { 90_000_000 } else { 3000 };
                host.entry(who, vcpu, took);
            }
            host.exit(who, vcpu, 1000, "HLT");
            host.switch((&comm, who.2), "S", ("swapper/2", 0), 2, 500);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let all = host.picture(folder.path(), StateLimits::default());
        let few = host.picture(folder.path(), FEW);
        assert_eq!(sums(&few), sums(&all), "{sick}");
        let rows = |picture: &Picture| picture.vcpus.clone().expect("vCPUs").rows;
        let tid = 10_000 + 8 * (sick / 4) + 1 + sick % 4;
        let find = |picture: &Picture| rows(picture).into_iter().find(|row| row.tid == tid);
        let (of_few, of_all) = (find(&few).expect("the sick vCPU"), find(&all).expect("it"));
        assert_eq!((of_few.times, of_few.exits), (of_all.times, of_all.exits));
        let others = rows(&few).into_iter().find(|row| row.others > 0);
        let others = others.map_or(0, |row| row.others as usize);
        assert_eq!(others + rows(&few).len() - 1, 2000);
        let doubts = &few.quality.doubts;
        assert!(doubts.has("threads-merged"));
        // Its long exits are found, as they are where all are kept apart.
        let stalls = |picture: &Picture| {
            let stalls = picture.stalls.iter().flat_map(|report| &report.longest);
            stalls.map(|one| (one.tid, one.ns())).collect::<Vec<_>>()
        };
        assert_eq!(stalls(&few), stalls(&all));
    }
}

/// What is counted by slices of time adds up the same, slice by slice, and few names of many have their own.
#[test]
fn slices_of_threads_that_are_not_kept_apart_are_those_of_others() {
    let mut host = HostText::new();
    let vcpu = ("CPU 0/KVM", 500, 501);
    for number in 0..2000 {
        let comm = format!("task{number}");
        host.exit(vcpu, 0, 20_000, "EXTERNAL_INTERRUPT");
        host.switch((vcpu.0, vcpu.2), "R", (&comm, 10_000 + number), 2, 1000);
        host.switch((&comm, 10_000 + number), "S", (vcpu.0, vcpu.2), 2, 5000);
        host.entry(vcpu, 0, 1000);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = PictureOptions::to_compare();
    let all = host.picture_with(folder.path(), StateLimits::default(), &options);
    let few = host.picture_with(folder.path(), FEW, &options);
    let each = |picture: &Picture, amount: fn(&Amount) -> u64| {
        let mut sums = vec![0.0; picture.series.slice_ns.len()];
        let mut names = 0;
        for (what, amounts) in &picture.series.of {
            if matches!(what, SliceMeasure::Delays(_) | SliceMeasure::Ran(_)) {
                amounts.add_to(&mut sums, amount);
                names += 1;
            }
        }
        (sums, names)
    };
    let (ran_few, names_few) = each(&few, |one| one.ns);
    let (ran_all, names_all) = each(&all, |one| one.ns);
    assert!(ran_all.len() > 12 && ran_all.iter().all(|ns| *ns > 0.0));
    assert_eq!(ran_few, ran_all);
    assert_eq!(each(&few, |one| one.count).0, each(&all, |one| one.count).0);
    assert!(
        names_all > 2000 && names_few < 200,
        "{names_few} of {names_all}"
    );
    let switches = |picture: &Picture| picture.off_cpu.as_ref().map(|sums| sums.switches);
    assert_eq!(switches(&few), Some(4000));
    assert_eq!(switches(&few), switches(&all));
}
