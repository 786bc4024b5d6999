//! A virtio device's back end is a thread of the VMM.

use domain::Change;
use paths::{PathReport, Trait, What};
use stats::duration::human;

use crate::case::{percent, plural};
use crate::{Case, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "userspace-virtio-backend",
    title: "A virtio device's back end is a thread of the VMM",
    looks_at: "the loop from a guest's notification (kick) over the back end to the interrupt and the guest's next access, by \
               what kind of thread the back end is",
    needs: "kvm:*, sched:sched_switch, sched:sched_waking; probes on tun_get_user or handle_tx show the work itself",
    measures: &[],
    cause: "The VMM's own thread is on the critical path of every notification: it is woken, reads the queue, makes a \
            system call for each packet, and raises the interrupt by another one. A kernel back end (vhost) does the same \
            with one wake-up and no system call.",
    remedies: &[
        Remedy {
            what: "Network: let the kernel do it: vhost-net (<interface> with <driver name='vhost'/>, modprobe vhost_net; \
                   QEMU: -netdev tap,vhost=on).",
            price: "More exits, since the guest is answered faster and notifies more often; a kernel thread per queue whose \
                    CPU time is the host's and not the VMM's in accounting; packets are handled in the kernel, out of \
                    reach of the VMM's filters.",
            unless: "Not for user-mode networking (slirp), nor where packets go through a user-space switch: there \
                     vhost-user is the way.",
            check: "trapline compare BEFORE AFTER: the kick path's back end is a vhost thread, and the loop is shorter.",
        },
        Remedy {
            what: "Disk: give the device a thread of its own: <iothreads>1</iothreads>, and <driver iothread='1' io='native' \
                   cache='none'/> on the disk.",
            price: "One more thread to place on a CPU. It is still user space: the wake-up stays, what goes is waiting behind \
                    other devices of the VMM's main loop.",
            unless: "Not io='native' with cache='writeback'; not for devices on a bus that iothreads do not serve.",
            check: "trapline paths --path kick: the back end is the iothread; trapline sched: its delays.",
        },
    ],
    sources: &[
        "Linux, drivers/vhost/net.c; virt/kvm/eventfd.c (ioeventfd, irqfd)",
        "libvirt, formatdomain: Setting NIC driver-specific options, IOThreads Allocation",
        "QEMU, docs/devel/multiple-iothreads.txt",
    ],
    look,
};

fn look(case: &Case<'_>) -> Verdict {
    let Some(path) = case.picture.path("kick") else {
        let exits = case.has_exits();
        let scheduler = case.picture.sched.is_some() && !case.printed();
        return if exits && scheduler {
            Verdict::Clear
        } else {
            Verdict::Lacks(
                "Record kvm:*, sched:sched_switch and sched:sched_waking to know.".to_owned(),
            )
        };
    };
    let (user, user_ns) = path.with(|one| matches!(one, Trait::BackEnd(What::Other)));
    let (vhost, vhost_ns) = path.with(|one| matches!(one, Trait::BackEnd(What::Vhost)));
    if user == 0 {
        return Verdict::Clear;
    }
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let rate = user as f64 / case.seconds();
    // Pauses of a guest that has nothing to send are no cost: means would count them, medians hardly do.
    let loop_ns = median_ns(path, "VMM thread").unwrap_or(user_ns / user);
    let each = match vhost {
        0 => typical_ns(path),
        // Stages are of both kinds of back ends; the loops of each kind are known as wholes.
        _ => loop_ns,
    };
    let cost = case.span_cost(user.saturating_mul(each));
    // Some loops a second are a device that is hardly used.
    if rate < 10.0 || cost.share < 0.01 {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, if user >= 10 { 0.9 } else { 0.6 })
        .cost(cost)
        .title(format!(
            "A thread of the VMM answers the guest's notifications: {} of {} each",
            plural(user, "loop"),
            human(each)
        ))
        .evidence(format!(
            "{user} of {} ({}) were answered by a thread of the VMM: half of them took no longer than {} until the guest went on{}.",
            plural(path.count, "notification"),
            percent(user, path.count),
            human(loop_ns),
            match vhost {
                0 => format!(", of which {} are not the guest's own", human(each)),
                _ => String::new(),
            }
        ));
    if let Some(mean) = vhost_ns.checked_div(vhost) {
        let each = median_ns(path, "vhost thread").unwrap_or(mean);
        finding = finding.evidence(format!(
            "{vhost} were answered by a vhost thread, half of them in {}.",
            human(each)
        ));
    }
    let mut stages: Vec<_> = path
        .stages
        .iter()
        .filter(|stage| !is_guests(&stage.name))
        .collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.stats.total()));
    let of_both = if vhost > 0 { " (of both kinds)" } else { "" };
    for stage in stages.iter().take(4) {
        finding = finding.evidence(format!(
            "{}{of_both}: {}, p50 {}, p99 {}.",
            stage.name,
            plural(stage.stats.count(), "time"),
            human(stage.stats.percentile(0.5)),
            human(stage.stats.percentile(0.99)),
        ));
    }
    let net = ["tun_get_user", "tun_sendmsg", "tun_net_xmit", "handle_tx"].iter();
    let packets: u64 = net.map(|name| case.picture.events_about(name)).sum();
    if packets > 0 {
        finding = finding.evidence(format!(
            "The work is a network device's: {} of its probes.",
            plural(packets, "event")
        ));
        finding = finding.only(&[0]);
    }
    patch(case, finding).found()
}

/// Whether a stage is the guest's: its own pause until it goes on, or until it is woken by something else.
fn is_guests(stage: &str) -> bool {
    stage.ends_with("→ next access")
        || stage.ends_with("→ next kick")
        || stage.starts_with("interrupt →")
}

/// Returns the median of the loops with one kind of back end.
fn median_ns(path: &PathReport, label: &str) -> Option<u64> {
    let group = path.groups.iter().find(|group| group.label == label)?;
    Some(group.stats.percentile(0.5))
}

/// Returns what a loop typically takes without the guest's own part: each stage by its median, which pauses of a
/// device that has nothing to do hardly move.
fn typical_ns(path: &PathReport) -> u64 {
    let stages = path.stages.iter().filter(|stage| !is_guests(&stage.name));
    let sums = stages.map(|stage| {
        stage
            .stats
            .count()
            .saturating_mul(stage.stats.percentile(0.5))
    });
    sums.fold(0u64, u64::saturating_add) / path.count.max(1)
}

fn patch(case: &Case<'_>, finding: Finding) -> Finding {
    let Some(domain) = case.domain else {
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
    let changes: Vec<Change> = virtio
        .map(|(_, index)| Change::InterfaceDriver {
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
            "The definition has an interface of type 'user' (slirp): that has no kernel back end, so it has to be made a \
             network, a bridge or passt first.",
        )
    } else {
        finding
    }
}
