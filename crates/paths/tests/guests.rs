//! Paths that go through guests: recordings made by hand, of which it is known what happened in which guest.
//!
//! All machines stand in one text. A line of a guest's has `g1:` or `g2:` before the name of its thread.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::common::{Text, adds_up, builtin, path};
use analysis::{SharedAnalysis, Study};
use event::{Event, EventType, LostKind, Side, Sink};
use paths::lang::PathDefinition;
use paths::{CompletedInstance, DropReason, InstanceReport, PathLedger, Paths};
use source::{ReaderOptions, RecordingBytes};

/// The host's threads: vCPUs of two VMs, and who works for them.
pub(crate) const A0: (&str, i32) = ("CPU 0/KVM", 101);
pub(crate) const A1: (&str, i32) = ("CPU 1/KVM", 102);
pub(crate) const B0: (&str, i32) = ("CPU 0/KVM", 201);
pub(crate) const VHOST_A: (&str, i32) = ("vhost-100", 105);
pub(crate) const VHOST_B: (&str, i32) = ("vhost-200", 205);
/// Threads of the guests. Their numbers are those of threads of the host too.
pub(crate) const PING: (&str, i32) = ("g1:ping", 105);
pub(crate) const IDLE_A: (&str, i32) = ("g1:swapper", 0);
pub(crate) const IDLE_B: (&str, i32) = ("g2:swapper", 0);

/// Parts one text into machines.
struct Parted {
    study: Study,
    paths: SharedAnalysis<Paths>,
    /// By machine and kind, the number that the kind has among all, and whether it is wanted.
    kinds: HashMap<(u16, u32), (u32, bool)>,
    /// Machines that are recorded.
    recorded: Vec<u16>,
    instances: Vec<CompletedInstance>,
}

impl Sink for Parted {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let comm = event.comm.unwrap_or_default();
        let (machine, comm) = match (comm.strip_prefix("g1:"), comm.strip_prefix("g2:")) {
            (Some(comm), _) => (1, comm),
            (_, Some(comm)) => (2, comm),
            _ => (0, comm),
        };
        if machine != 0 && !self.recorded.contains(&machine) {
            return ControlFlow::Continue(());
        }
        if event.ty.name == "lost" {
            let lost = Side::Lost {
                time: event.time,
                cpu: event.cpu,
                buffer: 0,
                count: None,
                kind: LostKind::Ring,
            };
            self.study.side_of(machine, &lost);
            return ControlFlow::Continue(());
        }
        let next = u32::try_from(self.kinds.len()).expect("few kinds");
        let (index, asked) = match self.kinds.get(&(machine, event.ty.index)) {
            Some((index, wanted)) => (*index, Some(*wanted)),
            None => (next, None),
        };
        let ty = EventType {
            index,
            machine,
            system: "",
            format: None,
            ..*event.ty
        };
        let wanted = asked.unwrap_or_else(|| self.study.wants(&ty));
        self.kinds
            .insert((machine, event.ty.index), (index, wanted));
        if !wanted {
            return ControlFlow::Continue(());
        }
        let event = Event {
            ty: &ty,
            comm: Some(comm),
            ..*event
        };
        let flow = self.study.event(&event);
        self.instances.extend(self.paths.get_mut().take_listed());
        flow
    }
}

/// What was found of one path.
pub(crate) struct Found {
    pub(crate) instances: Vec<InstanceReport>,
    pub(crate) dropped: Vec<(DropReason, u64)>,
    pub(crate) ledger: PathLedger,
}

impl Found {
    /// Steps of the Nth instance, with microseconds from its beginning.
    pub(crate) fn steps(&self, at: usize) -> Vec<(&str, u64)> {
        let one = &self.instances[at];
        let first = one.steps[0].time;
        let steps = one.steps.iter();
        steps
            .map(|step| (&*step.name, (step.time - first) / 1000))
            .collect()
    }

    pub(crate) fn names(&self, at: usize) -> Vec<&str> {
        self.steps(at).into_iter().map(|(name, _)| name).collect()
    }
}

/// Follows one path, with the recordings of some guests.
pub(crate) fn walk(text: &Text, one: PathDefinition, recorded: &[u16]) -> Found {
    let mut paths = Paths::new(vec![one]);
    paths.list();
    for (machine, vcpus) in [(1, vec![(0, A0.1), (1, A1.1)]), (2, vec![(0, B0.1)])] {
        if recorded.contains(&machine) {
            paths.guest(machine, &format!("g{machine}"), vcpus);
        }
    }
    let mut study = Study::default();
    let paths = study.share(paths);
    study.guest_vcpus(1, [(0, A0.1), (1, A1.1)]);
    study.guest_vcpus(2, [(0, B0.1)]);
    let mut sink = Parted {
        study,
        paths: paths.clone(),
        kinds: HashMap::new(),
        recorded: recorded.to_vec(),
        instances: Vec::new(),
    };
    let recording = RecordingBytes::from_bytes("text", text.bytes()).expect("a recording");
    let reader = recording
        .reader(ReaderOptions::default())
        .expect("a reader");
    let _ = reader.walk(&mut sink);
    let mut study = sink.study;
    study.finish();
    let mut instances = sink.instances;
    instances.extend(paths.get_mut().take_listed());
    let paths = paths.get();
    assert_eq!(paths.in_flight(), 0);
    let machine = study.walked().machine;
    let instances: Vec<InstanceReport> = instances
        .iter()
        .map(|one| paths.describe(one, machine, &|_| None))
        .collect();
    let report = paths.report(machine, &|_| None).remove(0);
    // Stages add up to the totals, whichever machines they are on.
    let stages: u64 = report.stages.iter().map(|stage| stage.stats.total()).sum();
    assert_eq!(stages, report.total.total());
    adds_up(&report.ledger, &report.total, &report.name);
    Found {
        instances,
        dropped: report.dropped,
        ledger: report.ledger,
    }
}

/// An interrupt by a back end that finds its vCPU asleep, which is in its guest 6 us after it.
pub(crate) fn interrupts(
    text: &mut Text,
    by: (&str, i32),
    vcpu: (&str, i32),
    cpu: i32,
    vec: u32,
    us: u64,
) {
    let id = vcpu.0.as_bytes()[4] - b'0';
    text.event(
        by,
        5,
        us,
        &format!("kvm_msi_set_irq dst {id} vec {vec} (Fixed|physical|edge)"),
    );
    text.event(
        by,
        5,
        us + 1,
        &format!("kvm_apic_accept_irq apicid {id} vec {vec} (Fixed|edge)"),
    );
    text.wakes(by, 5, vcpu, cpu, us + 2);
    text.runs(vcpu, cpu, us + 3);
    text.event(vcpu, cpu, us + 5, &format!("kvm_inj_virq IRQ {vec:#x}"));
    text.enters(vcpu, cpu, us + 6);
}

pub(crate) fn halts(text: &mut Text, vcpu: (&str, i32), cpu: i32, us: u64) {
    text.exits(vcpu, cpu, us, "HLT");
    text.sleeps(vcpu, cpu, us + 1);
}

/// Kicks a back end that sleeps.
pub(crate) fn kicks(text: &mut Text, vcpu: (&str, i32), cpu: i32, worker: (&str, i32), us: u64) {
    text.exits(vcpu, cpu, us, "EPT_MISCONFIG");
    text.event(
        vcpu,
        cpu,
        us + 1,
        "kvm_mmio mmio write len 2 gpa 0xfebff004 val 0x1",
    );
    text.wakes(vcpu, cpu, worker, 5, us + 2);
    text.enters(vcpu, cpu, us + 3);
    text.runs(worker, 5, us + 4);
}

/// A guest has a packet from its device: interrupt, softirq, packet.
pub(crate) fn receives(text: &mut Text, idle: (&str, i32), cpu: i32, us: u64) {
    text.event(
        idle,
        cpu,
        us,
        "irq_handler_entry irq=25 name=virtio0-input.0",
    );
    text.event(idle, cpu, us + 1, "softirq_entry vec=3 [action=NET_RX]");
    text.event(
        idle,
        cpu,
        us + 2,
        "netif_receive_skb dev=eth0 skbaddr=0x1 len=84",
    );
}

/// A ping from guest 1 to guest 2 and back, which begins at a time and takes 91 us, and a second to the next.
fn pings(count: u64) -> Text {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(B0, 3, 2);
    // That a text has a kind of events is known with the first of them.
    receives(&mut text, IDLE_A, 0, 3);
    receives(&mut text, IDLE_B, 0, 3);
    text.event(PING, 0, 5, "skb_copy_datagram_iovec skbaddr=0x2 len=84");
    text.event(PING, 0, 5, "sys_exit_recvfrom 0x40");
    halts(&mut text, B0, 3, 6);
    for n in 0..count {
        let t = 1000 + n * 1_000_000;
        text.enters(A0, 1, t - 10);
        text.event(PING, 0, t, "sys_enter_sendto fd: 0x00000003");
        text.event(PING, 0, t + 5, "net_dev_queue dev=eth0 skbaddr=0x1 len=98");
        kicks(&mut text, A0, 1, VHOST_A, t + 7);
        text.wakes(VHOST_A, 5, VHOST_B, 6, t + 20);
        text.sleeps(VHOST_A, 5, t + 21);
        text.runs(VHOST_B, 6, t + 23);
        halts(&mut text, A0, 1, t + 25);
        interrupts(&mut text, VHOST_B, B0, 3, 36, t + 30);
        receives(&mut text, IDLE_B, 0, t + 38);
        text.event(
            IDLE_B,
            0,
            t + 41,
            "net_dev_queue dev=eth0 skbaddr=0x2 len=98",
        );
        text.sleeps(VHOST_B, 6, t + 42);
        kicks(&mut text, B0, 3, VHOST_B, t + 43);
        text.wakes(VHOST_B, 5, VHOST_A, 5, t + 50);
        text.runs(VHOST_A, 5, t + 52);
        halts(&mut text, B0, 3, t + 60);
        interrupts(&mut text, VHOST_A, A0, 1, 37, t + 70);
        receives(&mut text, IDLE_A, 0, t + 80);
        text.event(
            PING,
            0,
            t + 90,
            "skb_copy_datagram_iovec skbaddr=0x2 len=84",
        );
        text.event(PING, 0, t + 91, "sys_exit_recvfrom 0x40");
        text.sleeps(VHOST_A, 5, t + 92);
        halts(&mut text, A0, 1, t + 95);
    }
    text
}

const HOST: [(&str, u64); 21] = [
    ("kick", 8),
    ("back end woken", 9),
    ("back end on CPU", 11),
    ("peer: back end woken", 20),
    ("peer: back end on CPU", 23),
    ("peer: interrupt", 30),
    ("peer: accepted", 31),
    ("peer: vCPU woken", 32),
    ("peer: vCPU on CPU", 33),
    ("peer: injected", 35),
    ("peer: in guest", 36),
    ("peer: kick", 45),
    ("peer: back end woken again", 45),
    ("peer: back end again", 47),
    ("answer: back end woken", 50),
    ("answer: back end on CPU", 52),
    ("interrupt", 70),
    ("accepted", 71),
    ("vCPU woken", 72),
    ("vCPU on CPU", 73),
    ("injected", 75),
];

/// The steps of a ping with some guests recorded, from the ping's beginning.
fn truth(guests: &[u16]) -> Vec<(&'static str, u64)> {
    let mut steps = HOST.to_vec();
    steps.push(("in guest", 76));
    // virtio-pci's notification is what is first of a kick.
    for step in &mut steps {
        if step.0 == "peer: kick" {
            step.1 = 44;
        }
    }
    if guests.contains(&1) {
        steps.extend([
            ("guest: send", 0),
            ("guest: queued", 5),
            ("guest: answer: irq handler", 80),
            ("guest: answer: softirq NET_RX", 81),
            ("guest: answer: received", 82),
            ("guest: read", 90),
            ("guest: returned", 91),
        ]);
    }
    if guests.contains(&2) {
        steps.extend([
            ("peer: irq handler", 38),
            ("peer: softirq NET_RX", 39),
            ("peer: received", 40),
            ("peer: answer queued", 41),
        ]);
    }
    steps.sort_by_key(|(_, us)| *us);
    let first = steps[0].1;
    steps.iter().map(|(name, us)| (*name, us - first)).collect()
}

#[test]
fn a_ping_is_one_packet_whichever_guests_are_recorded() {
    let text = pings(5);
    for guests in [&[][..], &[1], &[2], &[1, 2]] {
        let found = walk(&text, builtin("packet"), guests);
        assert_eq!(found.instances.len(), 5, "{guests:?}");
        assert!(found.dropped.is_empty(), "{guests:?}: {:?}", found.dropped);
        for at in 0..5 {
            assert_eq!(found.steps(at), truth(guests), "{guests:?}");
            assert_eq!(found.instances[at].chain.as_deref(), Some("guest to guest"));
        }
        let machines = found.instances[0].steps.iter().filter_map(|step| {
            let machine = step.machine.as_deref()?;
            Some((machine, step.name.starts_with("peer: ")))
        });
        for (machine, of_peer) in machines {
            assert_eq!(machine, if of_peer { "g2" } else { "g1" });
        }
    }
}

/// Back ends that are at work with one thing when the next comes are woken by nobody.
#[test]
fn back_ends_that_stay_awake_are_followed() {
    let mut text = Text::default();
    text.enters(A0, 1, 1);
    text.enters(B0, 3, 2);
    halts(&mut text, B0, 3, 6);
    for n in 0..3 {
        let t = 1000 + n * 1_000_000;
        text.enters(A0, 1, t - 10);
        kicks(&mut text, A0, 1, VHOST_A, t + 7);
        text.wakes(VHOST_A, 5, VHOST_B, 6, t + 20);
        text.runs(VHOST_B, 6, t + 23);
        halts(&mut text, A0, 1, t + 25);
        interrupts(&mut text, VHOST_B, B0, 3, 36, t + 30);
        text.exits(B0, 3, t + 43, "EPT_MISCONFIG");
        let kick = "kvm_mmio mmio write len 2 gpa 0xfebff004 val 0x1";
        text.event(B0, 3, t + 44, kick);
        text.enters(B0, 3, t + 46);
        interrupts(&mut text, VHOST_A, A0, 1, 37, t + 60);
        text.sleeps(VHOST_A, 5, t + 80);
        text.sleeps(VHOST_B, 6, t + 81);
        halts(&mut text, B0, 3, t + 85);
        halts(&mut text, A0, 1, t + 95);
    }
    let found = walk(&text, builtin("packet"), &[]);
    assert_eq!(found.instances.len(), 3, "{:?}", found.dropped);
    for at in 0..3 {
        let steps = found.steps(at);
        let behind = steps.iter().skip_while(|(name, _)| *name != "peer: kick");
        let behind: Vec<(&str, u64)> = behind.map(|(name, us)| (&**name, *us)).collect();
        let expected = [
            ("peer: kick", 36),
            ("interrupt", 52),
            ("accepted", 53),
            ("vCPU woken", 54),
            ("vCPU on CPU", 55),
            ("injected", 57),
            ("in guest", 58),
        ];
        assert_eq!(behind, expected);
    }
}

#[test]
fn what_guests_record_changes_nothing_of_the_host() {
    let text = pings(5);
    let all = paths::BUILTIN.iter().chain(paths::ON_REQUEST);
    for (name, _) in all {
        let alone = walk(&text, builtin(name), &[]);
        let both = walk(&text, builtin(name), &[1, 2]);
        assert_eq!(alone.instances, both.instances, "{name}");
        assert_eq!(alone.dropped, both.dropped, "{name}");
    }
}

/// On which vCPU, and by which task, decides: threads of the same number are not the same.
#[test]
fn machines_do_not_mix() {
    let one = path(
        "name = \"x\"\n[[step]]\nname = \"in\"\nevent = \"kvm_entry\"\nbind = \"vcpu = thread\"\nunique = \"vcpu\"\n\
         [[step]]\nname = \"task\"\nmachine = \"guest\"\noptional = \"unrecorded\"\n\
         event = \"ev\"\njoin = \"thread = vcpu\"\nbind = [\"task = inside\", \"cpu = cpu\"]\n\
         [[step]]\nname = \"again\"\nmachine = \"guest\"\noptional = \"unrecorded\"\n\
         event = \"ev2\"\njoin = [\"inside = task\", \"cpu = cpu\"]\n\
         [[step]]\nname = \"out\"\nevent = \"kvm_exit\"\njoin = \"thread = vcpu\"\n",
    );
    let mut text = Text::default();
    // Kinds are known to be recorded when they have been seen.
    for (us, name) in [(1, "ev"), (2, "ev2")] {
        text.event(PING, 1, us, name);
        text.event(IDLE_B, 0, us, name);
    }
    text.enters(A0, 1, 10);
    text.enters(B0, 2, 11);
    // The same names on the host, on another vCPU, by the other guest's idle task, and by another task.
    text.event(A0, 1, 12, "ev");
    text.event(PING, 1, 13, "ev");
    text.event(IDLE_A, 0, 14, "ev");
    text.event(IDLE_B, 0, 15, "ev2");
    text.event(PING, 0, 16, "ev2");
    text.event(IDLE_A, 0, 17, "ev2");
    text.exits(A0, 1, 20, "HLT");
    text.exits(B0, 2, 21, "HLT");
    let found = walk(&text, one.clone(), &[1]);
    assert_eq!(
        found.steps(0),
        [("in", 0), ("task", 4), ("again", 7), ("out", 10)]
    );
    // Guest 2 is not recorded: its instance goes without.
    assert_eq!(found.steps(1), [("in", 0), ("out", 10)]);
    assert_eq!(found.instances.len(), 2);
    // If it is, the step has to be reached.
    let found = walk(&text, one, &[1, 2]);
    assert_eq!(found.instances.len(), 1);
    assert_eq!(found.instances[0].vcpu_tid, Some(A0.1));
}

/// Two requests are under way, and the second is done first.
fn requests(lost: bool) -> Text {
    let mut text = Text::default();
    let rq = |sector: u32| format!("8,0 R 4096 () {sector} + 8 [fio]");
    text.enters(A0, 1, 1);
    text.event(PING, 0, 10, &format!("block_rq_issue {}", rq(800)));
    text.event(PING, 0, 12, &format!("block_rq_issue {}", rq(1600)));
    text.enters(A1, 2, 13);
    if lost {
        text.event(IDLE_A, 0, 14, "lost");
    }
    text.event(IDLE_A, 1, 30, &format!("block_rq_complete {}", rq(1600)));
    text.event(IDLE_B, 0, 35, &format!("block_rq_complete {}", rq(800)));
    text.event(IDLE_A, 1, 50, &format!("block_rq_complete {}", rq(800)));
    text.exits(A0, 1, 60, "HLT");
    text
}

#[test]
fn events_lost_in_a_guest_end_what_waits_there() {
    let one = path(
        "name = \"x\"\n[[step]]\nname = \"in\"\nevent = \"kvm_entry\"\nbind = \"vcpu = thread\"\nunique = \"vcpu\"\n\
         [[step]]\nname = \"there\"\nmachine = \"guest\"\nevent = \"ev\"\njoin = \"thread = vcpu\"\n",
    );
    let mut text = Text::default();
    for vcpu in [A0, A1, B0] {
        text.enters(vcpu, vcpu.1 % 4, 10);
    }
    text.event(PING, 0, 11, "ev2");
    text.event(IDLE_A, 0, 20, "lost");
    text.event(PING, 0, 30, "ev");
    text.event(PING, 1, 31, "ev");
    text.event(IDLE_B, 0, 32, "ev");
    let found = walk(&text, one, &[1, 2]);
    let of: Vec<_> = found.instances.iter().map(|one| one.vcpu_tid).collect();
    assert_eq!(of, [Some(A1.1), Some(B0.1)]);
    assert_eq!(found.dropped, [(DropReason::LostEvents, 1)]);
}

#[test]
fn requests_to_a_disk_end_in_any_order() {
    let found = walk(&requests(false), builtin("disk"), &[1, 2]);
    let found: Vec<_> = found
        .instances
        .iter()
        .map(|one| (one.total_ns() / 1000, one.steps.len()))
        .collect();
    assert_eq!(found, [(18, 2), (40, 2)]);
    // Without the guest there is nothing to tell a disk by.
    assert!(
        walk(&requests(false), builtin("disk"), &[])
            .instances
            .is_empty()
    );
    // Where events are lost, nothing says which request was done; one that has not counted is nobody's.
    assert!(
        walk(&requests(true), builtin("disk"), &[1])
            .instances
            .is_empty()
    );
}
