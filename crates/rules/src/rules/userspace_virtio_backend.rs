//! A virtio device's back end is a thread of the VMM.

use event::ExitClass;
use std::collections::BTreeMap;

use analysis::{ExitRow, ExitTable};
use domain::DomainChange;
use paths::{DeviceReport, PathReport, TaskKind};
use stats::Stats;
use words::duration::human;

use crate::case::RowSum;
use crate::evidence::{Evidence, Many, Ns, Of, ThreadMention, says};
use crate::{
    AccountPart, Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds,
    Remedy, Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "userspace-virtio-backend",
    title: "A virtio device's back end runs in a thread of the VMM",
    described_as: &[
        "QEMU's main thread or iothread is at 100 %",
        "virtio-net without vhost",
        "virtio-blk without an iothread is slow",
        "the ioeventfd wakes a busy main loop",
    ],
    looks_at: "the latency from a guest's notification (kick) to the back end's answer, for each notification address, \
        and which kind of thread the back end is",
    needs: "kvm:*, sched:sched_switch, sched:sched_waking; probes on tun_get_user or handle_tx show the work itself",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "Every notification goes through a thread of the VMM: it is woken, reads the queue, makes a system call for \
        each packet, and another one to raise the interrupt. A kernel back end (vhost) does the same with one wake-up \
        and no system call.",
    found: &[
        "The path `kick`, for each address that the vCPUs of one VM notify by itself: a network card is not hidden by \
         a vsock or console device beside it. An address is a BAR's (0x1000 and above), and most of its notifications \
         are answered by threads of the vCPU's own process, and few of its writes go to user space instead. From \
         {loops} loops on, which take 0.1 % of the time in which the device is in use, or {long} each by the median: \
         no rate is asked for, since latency matters for sparse requests too. Less than {loops}: where notifications \
         had no answer yet in a tenth of the whole recording. A loop is taken from the notification to the interrupt, \
         or until the thread goes to sleep. Time in use is from the first notification to the last answer; of a pause \
         at most a second counts. The cost is the time in which a notification had no answer yet, as a share of the \
         time in use. Confidence 0.9; 0.5 with less than {loops} loops, where one event in a hundred was lost, or \
         where neither exits to user space (`kvm_userspace_exit`) nor the thread's work (a probe) are recorded: then \
         it may be the vCPU's own thread that handles the write and wakes another.",
        "Low at most where more than half of the requests go on to another thread, or are pending when the back end \
         goes to sleep: it is a disk then, or works like one, which a thread of the VMM serves by design.",
    ],
    limits: &[
        ("loops", EvidenceNumber::Count(SEVERAL)),
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
    ],
    seen_from: "{loops} notifications answered by a thread of the VMM that take 0.1 % of the device's time in \
        use",
    unknown: "*all*. Probes of `tun_get_user` or `handle_tx` show that the device is a network's; then the disk's \
        remedy is left out.",
    advice: "",
    looks_alike: "If the back end's *thread waits for a CPU*, the stage `back end woken → back end on CPU` is long; \
        vhost would wait there too.",
    remedies: &[
        Remedy {
            what: "Network: use vhost-net (<interface> with <driver name='vhost'/>, modprobe vhost_net; QEMU: -netdev \
                tap,vhost=on).",
            price: "More exits, because the guest gets answers sooner and notifies more often. Each queue has a kernel \
                thread, whose CPU time is accounted to the host. The VMM cannot filter the packets any more.",
            unless: "User-mode networking (slirp) cannot use it. For a user-space switch use vhost-user instead.",
            check: "trapline compare BEFORE AFTER: the kick path's back end is a vhost thread, and the loop is \
                shorter.",
        },
        Remedy {
            what: "Disk: give the device a thread of its own: <iothreads>1</iothreads>, and <driver iothread='1' \
                io='native' cache='none'/> on the disk.",
            price: "One more thread, which needs a CPU. It is still in user space: the wake-up stays, only the wait \
                behind other devices in the VMM's main loop goes.",
            unless: "io='native' does not work with cache='writeback', and iothreads do not serve every bus.",
            check: "trapline paths --path kick: the back end is the iothread; trapline sched: its delays.",
        },
        Remedy {
            what: "Disk of a guest with many vCPUs: a queue for each vCPU (<driver queues='N'/>; QEMU does it by \
                itself since 5.2) and several I/O threads for them (iothread-vq-mapping), io='io_uring', or a back \
                end in a process of its own (vhost-user-blk).",
            price: "More threads, which need CPUs. A process of its own has to be looked after, and needs shared \
                memory.",
            unless: "One request at a time is under way: more queues do not make it faster.",
            check: "trapline paths --path kick: the stage 'back end woken → back end on CPU' is shorter.",
        },
    ],
    sources: &[
        "Linux, drivers/vhost/net.c; virt/kvm/eventfd.c (ioeventfd, irqfd)",
        "libvirt, formatdomain: Setting NIC driver-specific options, IOThreads Allocation",
        "QEMU, docs/devel/multiple-iothreads.txt",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Mmio),
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Exits(ExitClass::Port),
        // A vCPU's thread waits in the VMM for the lock that the answering thread has.
        ExplainedTime::Part(AccountPart::AsleepInVmm),
        ExplainedTime::Part(AccountPart::Thread),
    ],
    look: RuleLook::Case(look),
};

/// Fewer loops of one device are no habit: they count only where they are what the recorded time went to.
const SEVERAL: u64 = 10;
/// What a VMM's thread needs at least to be woken, read a queue, make its system calls and interrupt, on a machine that
/// has nothing else to do, is some tens of microseconds. From here on a request waits longer than it would for the
/// kernel.
const LONG_NS: u64 = 100_000;

/// Ports below this are the chipset's (serial ports, timers, PCI configuration), and no number of a hypercall is
/// higher. A virtio device's are in a BAR of its own, for which firmware leaves these out.
const BARS: u64 = 0x1000;

/// One queue of a device: an address that the vCPUs of one VM notify.
#[derive(Default)]
struct DeviceQueue<'a> {
    /// A vCPU's thread of that VM.
    vcpu_tid: i32,
    address: Option<u64>,
    /// Those that threads of the VMM answer, most loops first.
    of_vmm: Vec<&'a DeviceReport>,
    answers: Stats,
    loops: Stats,
    worked: u64,
    passed_on: u64,
    waited_ns: u64,
    in_use_ns: u64,
    /// When it was first notified, and when the last answer came.
    span: Option<(u64, u64)>,
    /// Loops that others answer: vhost workers, threads of the kernel or of another process.
    others: u64,
    /// Writes that the VMM handled in the vCPU's own thread.
    to_user: u64,
}

impl DeviceQueue<'_> {
    fn share(&self) -> f64 {
        self.waited_ns as f64 / self.in_use_ns.max(1) as f64
    }

    /// Whether its requests go on to something else, as a disk's do: threads that do the I/O, or the storage itself.
    fn is_storage(&self) -> bool {
        self.passed_on.saturating_mul(2) > self.answers.count() && self.worked == 0
    }

    /// Whether the VMM's threads are its back end, and whether that matters.
    fn is_found(&self, case: &Case<'_>) -> bool {
        let count = self.answers.count();
        // A queue has one back end; what is another's, or goes to user space, was joined to a thread that did something
        // else.
        let a_bar = self.address.is_none_or(|address| address >= BARS);
        if count == 0 || !a_bar || count <= self.others || count <= self.to_user {
            return false;
        }
        match count {
            SEVERAL.. => self.share() >= 0.001 || self.answers.percentile(0.5) >= LONG_NS,
            _ => self.waited_ns as f64 * 1e-9 >= case.seconds() * 0.1,
        }
    }

    /// What it is called: the address that is written, and whose.
    fn called(&self, case: &Case<'_>) -> String {
        let what = match self.address {
            Some(address) => format!("{address:#x}"),
            None => "an address that is not recorded".to_owned(),
        };
        match case.vm_name(self.vcpu_tid) {
            Some(vm) => format!("{what} ({vm})"),
            None => what,
        }
    }

    /// The rows of its writes in a table of accesses: guests' own recordings say which of their tasks made them.
    fn written<'c>(&self, case: &Case<'c>, table: ExitTable) -> Vec<&'c ExitRow> {
        let address = self.address;
        case.accesses(table, |row| {
            row.write && address.is_some() && row.address == address
        })
    }

    /// The thread that answers it most.
    fn back_end(&self) -> Evidence {
        let who = self.of_vmm.first();
        let named = who.and_then(|one| Some((one.back_end.as_deref()?, one.back_end_tid)));
        match named {
            Some((name, tid)) => says!("{back_end}", back_end = ThreadMention::named(name, tid)),
            None => "A thread of the VMM".into(),
        }
    }
}

/// Puts together what the vCPUs of one VM notify at one address.
fn queues<'a>(case: &Case<'_>, path: &'a PathReport) -> Vec<DeviceQueue<'a>> {
    let mut all: BTreeMap<(Option<usize>, i32, Option<u64>), DeviceQueue<'a>> = BTreeMap::new();
    for device in &path.devices {
        let vm = case.vm_of(device.vcpu_tid);
        // Without a VM, by thread.
        let key = (vm, vm.map_or(device.vcpu_tid, |_| 0), device.address);
        let queue = all.entry(key).or_default();
        queue.vcpu_tid = device.vcpu_tid;
        queue.address = device.address;
        queue.to_user = queue.to_user.saturating_add(device.to_user);
        if device.what != TaskKind::Other || device.own_process == Some(false) {
            queue.others += device.answers.count();
            continue;
        }
        queue.answers.merge(&device.answers);
        queue.loops.merge(&device.loops);
        queue.worked += device.worked;
        queue.passed_on += device.passed_on;
        queue.waited_ns = queue.waited_ns.saturating_add(device.waited_ns);
        queue.in_use_ns = queue.in_use_ns.saturating_add(device.in_use_ns);
        queue.of_vmm.push(device);
        let (first, last) = device.span;
        let known = queue.span.unwrap_or(device.span);
        queue.span = Some((known.0.min(first), known.1.max(last)));
    }
    for queue in all.values_mut() {
        let (first, last) = queue.span.unwrap_or_default();
        // vCPUs use it at the same time.
        queue.in_use_ns = queue.in_use_ns.min(last.saturating_sub(first));
        queue.waited_ns = queue.waited_ns.min(queue.in_use_ns);
        let loops = |device: &&DeviceReport| std::cmp::Reverse(device.answers.count());
        queue.of_vmm.sort_by_key(loops);
    }
    all.into_values().collect()
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(path) = case.picture.path("kick") else {
        return unnotified(case);
    };
    let queues = queues(case, path);
    let found = worst_first(case, &queues);
    let Some((worst, more)) = found.split_first() else {
        return Verdict::Clear;
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let recorded = is_recorded(case, worst);
    let mut finding = of_worst(case, worst, recorded);
    for queue in more.iter().take(3) {
        finding = finding.evidence(
            says!(
                "The same for {queue}: {loops}, p50 {answer_p50}.",
                queue = queue.called(case),
                loops = Many(queue.answers.count(), "loop"),
                answer_p50 = Ns(queue.answers.percentile(0.5)),
            )
            .thread(queue.vcpu_tid)
            .window(queue.span),
        );
    }
    finding = beside(path, finding);
    if !recorded {
        finding = finding.evidence(
            "Exits to user space are not recorded: the vCPU's own thread may have handled these writes and woken the \
             other one for something else. kvm:kvm_userspace_exit shows it.",
        );
    }
    if worst.is_storage() {
        return storage(worst, finding).found();
    }
    patch(case, network(case, worst, finding)).found()
}

/// No notification was seen to be answered: whether there was none, or whether one would not have been seen.
fn unnotified(case: &Case<'_>) -> Verdict {
    let recorded = |name: &str| case.picture.events(name).is_some();
    let accesses = ["kvm_mmio", "kvm_pio", "kvm_fast_mmio"].iter();
    let accesses = accesses.copied().any(recorded);
    // Exits that may be notifications, whose address is not known.
    let may_be = RowSum::of(case.picture.exits_that(|reason| {
        let classes = [ExitClass::Port, ExitClass::Mmio, ExitClass::PageFault];
        classes.contains(&reason.class())
    }));
    let known = accesses || may_be.count == 0;
    let scheduler = case.picture.sched.is_some() && recorded("sched_waking");
    match case.has_exits() && scheduler && known && !case.printed() {
        true => Verdict::Clear,
        false => {
            Verdict::Unknown("Record kvm:*, sched:sched_switch and sched:sched_waking.".to_owned())
        }
    }
}

/// Returns the queues that threads of the VMM answer where that matters, the worst first.
fn worst_first<'q, 'a>(case: &Case<'_>, queues: &'q [DeviceQueue<'a>]) -> Vec<&'q DeviceQueue<'a>> {
    let mut found: Vec<_> = queues.iter().filter(|queue| queue.is_found(case)).collect();
    found.sort_by(|a, b| {
        let weight = |queue: &DeviceQueue<'_>| (queue.answers.count() >= SEVERAL, queue.waited_ns);
        weight(b).cmp(&weight(a))
    });
    found
}

/// Whether a queue's writes are known to end in the kernel and to wake a back end: where exits to user space are
/// recorded, or the thread is seen to do a device's work. Else it may be the vCPU's own thread that wakes another.
fn is_recorded(case: &Case<'_>, queue: &DeviceQueue<'_>) -> bool {
    let user_space = case.picture.events("kvm_userspace_exit").unwrap_or(0) > 0;
    user_space || queue.worked * 2 > queue.answers.count()
}

/// What is said of the worst queue.
fn of_worst(case: &Case<'_>, worst: &DeviceQueue<'_>, recorded: bool) -> Finding {
    let count = worst.answers.count();
    let each = worst.answers.percentile(0.5);
    let confidence = match count {
        _ if !recorded || case.doubtful() => 0.5,
        SEVERAL.. => 0.9,
        _ => 0.5,
    };
    let loops = match count {
        1 => format!("one, in {}", human(each)),
        _ => format!("{count} loops, p50 {}", human(each)),
    };
    let mut finding = Finding::new(&RULE, confidence);
    if let Some(one) = worst.of_vmm.first()
        && let Some(name) = one.back_end.as_deref()
    {
        finding = finding.headline(format!(
            "A thread of the VMM, {}, answers the guest's notifications: {loops}",
            words::with_thread(name, one.back_end_tid)
        ));
    }
    finding
        .cost(FindingCost::of(worst.waited_ns, worst.in_use_ns, Base::InUse))
        .title(format!(
            "A thread of the VMM answers the guest's notifications: {loops}"
        ))
        .evidence(
            says!(
                "{thread} answered {answered} of {all} of {queue}: {times}.",
                thread = worst.back_end(),
                answered = count,
                all = Many(count.saturating_add(worst.others), "notification"),
                queue = worst.called(case),
                times = match count {
                    1 => says!("from kick to answer {answer}", answer = Ns(each)),
                    _ => says!(
                        "from kick to answer p50 {answer_p50}, p90 {answer_p90}",
                        answer_p50 = Ns(each),
                        answer_p90 = Ns(worst.answers.percentile(0.9)),
                    ),
                },
            )
            .thread(worst.vcpu_tid)
            .rows_of(ExitTable::Mmio, &worst.written(case, ExitTable::Mmio))
            .rows_of(ExitTable::Ioport, &worst.written(case, ExitTable::Ioport)),
        )
        .evidence(
            says!(
                "Notifications waited for their answer for {waited} of the {in_use} in which the device was in use \
                 ({share}).",
                waited = Ns(worst.waited_ns),
                in_use = Ns(worst.in_use_ns),
                share = Of(worst.waited_ns, worst.in_use_ns),
            )
            .window(worst.span),
        )
        .evidence(match count {
            1 => says!(
                "From kick to the guest's next step it took {loop_time}.",
                loop_time = Ns(worst.loops.max()),
            ),
            _ => says!(
                "From kick until the guest went on: p50 {loop_p50}.",
                loop_p50 = Ns(worst.loops.percentile(0.5)),
            ),
        })
}

/// What is to set beside it: how fast vhost answers other queues, or else where the way takes longest.
fn beside(path: &PathReport, mut finding: Finding) -> Finding {
    let vhost = path
        .devices
        .iter()
        .filter(|one| one.what == TaskKind::Vhost);
    let mut of_vhost = Stats::default();
    vhost.for_each(|one| of_vhost.merge(&one.answers));
    if of_vhost.count() > 0 {
        return finding.evidence(says!(
            "A vhost thread answered {answered} of other queues: p50 {answer_p50}.",
            answered = Many(of_vhost.count(), "notification"),
            answer_p50 = Ns(of_vhost.percentile(0.5)),
        ));
    }
    // Stages are of all devices: they tell of this one where there is no other kind.
    let mut stages: Vec<_> = path
        .stages
        .iter()
        .filter(|stage| !is_guests(&stage.name))
        .collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.stats.total()));
    for stage in stages.iter().take(3) {
        finding = finding.evidence(
            says!(
                "{stage}: {count}, p50 {p50}, p99 {p99}.",
                stage = stage.name.as_str(),
                count = Many(stage.stats.count(), "time"),
                p50 = Ns(stage.stats.percentile(0.5)),
                p99 = Ns(stage.stats.percentile(0.99)),
            )
            .slowest(path),
        );
    }
    finding
}

/// A disk is served by a thread of the VMM by design, and there is no kernel back end to change to: how long its
/// requests take is for the most part not that thread's doing.
fn storage(worst: &DeviceQueue<'_>, mut finding: Finding) -> Finding {
    finding.at_most = Severity::Low;
    let count = worst.answers.count();
    finding
        .title(format!(
            "A thread of the VMM serves a disk, or a device like one: {}, p50 {}",
            words::plural(count, "request"),
            human(worst.answers.percentile(0.5))
        ))
        .evidence(says!(
            "{passed_on} of {all} were passed on to another thread, or were pending when the back end went to sleep: \
             a network card's packets are not. Every virtio disk without an I/O thread works like this; only the wait \
             behind other work of the main loop can be saved.",
            passed_on = worst.passed_on,
            all = Many(count, "request"),
        ))
        .only(&[1, 2])
}

/// Where probes show that the work is a network's, the disk's remedy is none.
fn network(case: &Case<'_>, worst: &DeviceQueue<'_>, finding: Finding) -> Finding {
    let net = ["tun_get_user", "tun_sendmsg", "tun_net_xmit", "handle_tx"].iter();
    let packets: u64 = net
        .map(|name| case.picture.events_about(name))
        .fold(0, u64::saturating_add);
    if packets == 0 || worst.worked == 0 {
        return finding;
    }
    let work = says!(
        "It is a network device: {events} of its probes were recorded.",
        events = Many(packets, "event"),
    );
    finding.evidence(work).only(&[0])
}

/// Whether a stage is not the back end's: the way of its interrupt to the guest, and the guest's own.
fn is_guests(stage: &str) -> bool {
    let own = [
        "interrupt →",
        "accepted →",
        "posted →",
        "vCPU ",
        "injected →",
        "in guest →",
    ];
    own.iter().any(|begin| stage.starts_with(begin))
        || stage.starts_with("back end done →")
        || stage.ends_with("→ next kick")
}

fn patch(case: &Case<'_>, finding: Finding) -> Finding {
    let Some(domain) = case.whole_domain() else {
        return finding;
    };
    let virtio = domain
        .interfaces
        .iter()
        .zip(0usize..)
        .filter(|(interface, _)| {
            let model = interface.model.as_deref().unwrap_or_default();
            model.starts_with("virtio") && interface.driver.as_deref() == Some("qemu")
        });
    let changes: Vec<DomainChange> = virtio
        .map(|(_, index)| DomainChange::InterfaceDriver {
            interface: index.into(),
            name: "vhost".to_owned(),
        })
        .collect();
    let slirp = domain
        .interfaces
        .iter()
        .any(|interface| interface.kind == "user");
    let finding = finding.changes(0, changes);
    if slirp {
        finding.note(
            0,
            "The definition has an interface of type 'user' (slirp), which has no kernel back end: change it to a \
             network, a bridge or passt first.",
        )
    } else {
        finding
    }
}
