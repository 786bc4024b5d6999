//! A back end sleeps while a request of the guest is pending: what it waits for is slow, or held back.

use analysis::Stats;
use paths::{DeviceReport, TaskKind};
use words::duration::human;

use crate::evidence::{Ns, Of, says};
use crate::{
    Base, Case, EvidenceNumber, Finding, FindingCost, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Verdict,
};

/// Requests that show it.
const LEAST: u64 = 20;
/// Share of the path's time, and of its requests.
const SHARE: f64 = 0.4;
/// In the mean: a disk of flash answers in a tenth of that.
const EACH_NS: u64 = 1_000_000;

pub(crate) static RULE: Rule = Rule {
    id: "slow-storage",
    title: "A device's back end sleeps while the guest's request is pending",
    described_as: &[
        "disk I/O of the VM is slow, iowait in the guest",
        "a read takes tens of milliseconds",
        "IOPS stop at a round number",
        "jbd2 or task blocked for more than 120 seconds",
    ],
    looks_at: "the path kick: from when the back end went to sleep without an answer, up to the interrupt that \
        brings it",
    needs: "kvm:*, sched:sched_switch and sched:sched_waking",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "The back end has handed the request on and waits: for the storage below it, which is slow or busy; for a \
        limit, which holds each request back (<iotune>, QEMU's throttling groups, io.max of its cgroup); or for a \
        reply \
        from the network. The host's CPUs have no part in that time.",
    found: &[
        "{least} requests and {share} of all were pending when the back end went to sleep; that is {share} of the \
         path's \
         time or more, and {each} or more each in the mean. Confidence 0.8. A queue that is served with an event and \
         answered by another thread looks the same, in microseconds.",
        "On arm64 interrupts of PCI devices leave no event of KVM. A request ends there when a thread of the VMM wakes \
         a halted vCPU; where no interrupt is seen at all it is not known.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("share", EvidenceNumber::Share(SHARE)),
        ("each", EvidenceNumber::Nanoseconds(EACH_NS)),
    ],
    seen_from: "{least} requests, {share} of all, that are pending for {each} each while the back end sleeps",
    unknown: "*all*.",
    advice: "",
    looks_alike: "A back end that is slow itself is on its CPU meanwhile, or waits for one \
        ([userspace-virtio-backend](#userspace-virtio-backend), [helper-waits-for-cpu](#helper-waits-for-cpu)).",
    remedies: &[
        Remedy {
            what: "See what the requests wait for: limits first (virsh blkdeviotune DOM vda; info block in QEMU's \
                monitor; io.max and io.stat of the VM's cgroup), then the device (iostat -x: await and %util; record \
                block:block_rq_issue and block:block_rq_complete).",
            price: "None.",
            unless: "The device is a network card: then it waits for a reply.",
            check: "trapline paths --path kick: the stage 'back end done' to 'interrupt' is short.",
        },
        Remedy {
            what: "Raise or take away a limit that holds requests back (virsh blkdeviotune DOM vda --total-iops-sec \
            0), \
                or allow bursts (--total-iops-sec-max).",
            price: "The VM may take more of the storage from others.",
            unless: "The limit is what the VM's owner pays for.",
            check: "trapline paths --path kick.",
        },
        Remedy {
            what: "If the device is slow: more requests at once (queue depth, io='io_uring' or io='native' with \
                cache='none'), or faster storage.",
            price: "cache='none' leaves the host's page cache out.",
            unless: "The guest waits for each request before it sends the next.",
            check: "trapline paths --path kick.",
        },
    ],
    sources: &[
        "QEMU, docs/throttle.txt; block/throttle-groups.c",
        "Linux, Documentation/admin-guide/cgroup-v2.rst (io.max); libvirt, formatdomain: iotune",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let Some(path) = case.picture.path("kick") else {
        return match case
            .picture
            .events("kvm_mmio")
            .or(case.picture.events("kvm_pio"))
        {
            Some(_) if case.picture.sched.is_some() => Verdict::Clear,
            _ => Verdict::Unknown(
                "Record kvm:*, sched:sched_switch and sched:sched_waking.".to_owned(),
            ),
        };
    };
    // What waits for the network's next packet is no storage: vhost workers, and what is seen to send packets.
    let no_card = |one: &&DeviceReport| one.what != TaskKind::Vhost && one.worked == 0;
    let served = path.devices.iter().filter(no_card);
    let (mut pending, mut loops) = (Stats::default(), Stats::default());
    for device in served {
        pending.merge(&device.pending);
        loops.merge(&device.loops);
    }
    if loops.count() == 0 {
        return Verdict::Clear;
    }
    // Where no request is seen to be answered, nobody knows how long one was pending.
    let mut stages = path.stages.iter();
    if !stages.any(|stage| stage.name.ends_with("→ interrupt")) {
        return Verdict::Unknown(
            "No device was seen to interrupt the guest, so how long requests were pending is not known. Record \
             kvm:*, sched:sched_switch and sched:sched_waking."
                .to_owned(),
        );
    }
    let (count, ns) = (pending.count(), pending.total());
    let often = count >= LEAST && count as f64 >= loops.count() as f64 * SHARE;
    let long = ns as f64 >= loops.total() as f64 * SHARE && pending.mean() >= EACH_NS;
    if !often || !long {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let span = case.picture.span_ns.unwrap_or(0);
    Finding::new(&RULE, 0.8)
        .rests_on(RestsOn::Absence)
        .cost(FindingCost::of(ns, span, Base::Span))
        .title(format!(
            "{count} of {} requests were pending while their back end slept, {} each",
            loops.count(),
            human(pending.mean())
        ))
        .evidence(
            says!(
                "{count} of {all} requests were pending when the back end went to sleep. Up to the interrupt: p50 \
                 {p50}, \
                 p99 {p99}, {share} of the path's time.",
                count = count,
                all = loops.count(),
                p50 = Ns(pending.percentile(0.5)),
                p99 = Ns(pending.percentile(0.99)),
                share = Of(ns, loops.total()),
            )
            .slowest(path),
        )
        .evidence(says!(
            "All of the way took {p50} (p50) and {p99} (p99), from the guest's notification to its next access.",
            p50 = Ns(loops.percentile(0.5)),
            p99 = Ns(loops.percentile(0.99)),
        ))
        .found()
}
