//! What is asked of a recording, and which events answer it.

use std::env::consts::ARCH;

use event::{AskedEvents, EXIT_EVENTS, PATH_EVENTS, QUEUE_EVENTS, SCHED_EVENTS};

use crate::plan::PlannedEvent;

/// What a recording is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// What exits there were, of which device, and what they took.
    Exits,
    /// Who waited for a CPU, and behind whom.
    Sched,
    /// What became of each interrupt, wake-up and kick.
    Paths,
    /// Which code the CPUs ran, and where threads waited.
    Stacks,
    /// Within a guest: what its CPUs did while the host let them run.
    GuestCpus,
    /// Within a guest: what it sent, received, wrote and read.
    GuestIo,
    /// Within a guest: when a program asked to send, and when it had what it received.
    GuestSockets,
    /// On a host: how often guests notified virtio devices, what their back ends gave back, and tap devices' frames.
    Virtqueues,
    /// Within a guest: what went through its virtqueues.
    GuestVirtqueues,
}

/// Samples of call chains a second: not a divisor of common timers, so that they are not met in step. perf's own
/// default is 4000.
const SAMPLES_HZ: u64 = 99;

/// Few events say what a guest's CPU does: which thread it runs and who woke that, its interrupts, softirqs, what one
/// CPU asks of another and when it is idle (`include/trace/events/{sched,irq,ipi,csd,power}.h`,
/// `arch/x86/include/asm/trace/irq_vectors.h`).
///
/// Linux has `ipi_send_cpumask` and `ipi_send_cpu` since 6.4, and `csd` since 6.5. Events of `irq_work` are left out:
/// perf itself makes them, and the kernel refuses to sample their end.
const GUEST_CPUS: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "sched",
        names: &[
            "sched_switch",
            "sched_waking",
            "sched_wakeup",
            "sched_wakeup_new",
            "sched_process_fork",
            "sched_process_exit",
        ],
    },
    AskedEvents {
        arch: None,
        system: "irq",
        names: &[
            "irq_handler_entry",
            "irq_handler_exit",
            "softirq_entry",
            "softirq_exit",
        ],
    },
    AskedEvents {
        arch: Some("x86_64"),
        system: "irq_vectors",
        names: &[
            "local_timer_entry",
            "local_timer_exit",
            "reschedule_entry",
            "reschedule_exit",
            "call_function_entry",
            "call_function_exit",
            "call_function_single_entry",
            "call_function_single_exit",
        ],
    },
    AskedEvents {
        arch: Some("aarch64"),
        system: "ipi",
        names: &["ipi_raise", "ipi_entry", "ipi_exit"],
    },
    AskedEvents {
        arch: None,
        system: "ipi",
        names: &["ipi_send_cpu", "ipi_send_cpumask"],
    },
    AskedEvents {
        arch: None,
        system: "csd",
        names: &["csd_queue_cpu", "csd_function_entry", "csd_function_exit"],
    },
    AskedEvents {
        arch: None,
        system: "power",
        names: &["cpu_idle"],
    },
];

/// Where packets and block requests leave a guest and come back, and where a program has what came
/// (`include/trace/events/{net,skb,sock,block}.h`): an event or two for each. Linux has `sock_recv_length` since
/// 6.3. No path needs its twin, `sock_send_length`.
const GUEST_IO: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "net",
        names: &["net_dev_queue", "net_dev_xmit", "netif_receive_skb"],
    },
    AskedEvents {
        arch: None,
        system: "skb",
        names: &["skb_copy_datagram_iovec"],
    },
    AskedEvents {
        arch: None,
        system: "sock",
        names: &["sock_recv_length"],
    },
    AskedEvents {
        arch: None,
        system: "block",
        names: &["block_rq_issue", "block_rq_complete"],
    },
];

/// The system calls by which programs send and receive (`include/trace/events/syscalls.h`). The kernel takes a longer
/// way into and out of each system call of each thread as long as one of these is open, whichever system call that is.
const GUEST_SOCKETS: &[AskedEvents] = &[AskedEvents {
    arch: None,
    system: "syscalls",
    names: &[
        "sys_enter_sendto",
        "sys_enter_sendmsg",
        "sys_exit_recvfrom",
        "sys_exit_recvmsg",
    ],
}];

/// Writes by which guests notify devices. Exits have these events too.
const NOTIFICATIONS: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "kvm",
        names: &["kvm_mmio"],
    },
    AskedEvents {
        arch: Some("x86_64"),
        system: "kvm",
        names: &["kvm_pio", "kvm_fast_mmio"],
    },
];

/// Requests to a guest's disks, and interrupts of its devices, which have the queue in their names.
const GUEST_DEVICES: &[AskedEvents] = &[
    AskedEvents {
        arch: None,
        system: "block",
        names: &["block_rq_issue", "block_rq_complete"],
    },
    AskedEvents {
        arch: None,
        system: "irq",
        names: &["irq_handler_entry"],
    },
];

/// Functions by which vhost gives buffers back (`drivers/vhost/vhost.c`), a back end interrupts its guest
/// (`virt/kvm/eventfd.c`), and a tap device takes a frame (`drivers/net/tun.c`).
const BACK_ENDS: &[&str] = &[
    "vhost_add_used_and_signal_n",
    "vhost_add_used_and_signal",
    "irqfd_wakeup",
    "tun_get_user",
];

/// Functions by which a driver gives a queue buffers, notifies the device and takes them back
/// (`drivers/virtio/virtio_ring.c`). Those of buffers that are mapped already are of Linux 6.14.
const DRIVERS: &[&str] = &[
    "virtqueue_add_sgs",
    "virtqueue_add_outbuf",
    "virtqueue_add_inbuf",
    "virtqueue_add_inbuf_ctx",
    "virtqueue_add_outbuf_premapped",
    "virtqueue_add_inbuf_premapped",
    "virtqueue_notify",
    "virtqueue_get_buf",
    "virtqueue_get_buf_ctx",
    "r:virtqueue_get_buf__return virtqueue_get_buf ret=$retval",
    "r:virtqueue_get_buf_ctx__return virtqueue_get_buf_ctx ret=$retval",
];

impl Question {
    /// Those questions about a host that `all` stands for, in the order in which they are listed. Virtqueues cost a
    /// probe or more for each packet, and are for who asks.
    pub const ALL: [Question; 4] = [
        Question::Exits,
        Question::Sched,
        Question::Paths,
        Question::Stacks,
    ];

    /// Returns how many samples of call chains a second it asks for.
    pub fn samples_hz(self) -> Option<u64> {
        (self == Question::Stacks).then_some(SAMPLES_HZ)
    }

    /// Returns the functions that are probed for it, where the kernel can: back ends raise interrupts by them, and take
    /// what a guest sends.
    pub fn probes(self) -> &'static [&'static str] {
        match self {
            Question::Paths => &["irqfd_wakeup", "irqfd_inject", "tun_get_user", "handle_tx"],
            Question::Virtqueues => BACK_ENDS,
            Question::GuestVirtqueues => DRIVERS,
            _ => &[],
        }
    }

    fn events(self) -> &'static [&'static [AskedEvents]] {
        match self {
            Question::Exits => &[EXIT_EVENTS],
            Question::Sched => &[SCHED_EVENTS],
            // Instances go through exits, wake-ups and switches.
            Question::Paths => &[EXIT_EVENTS, SCHED_EVENTS, PATH_EVENTS],
            Question::Stacks => &[],
            Question::GuestCpus => &[GUEST_CPUS],
            Question::GuestIo => &[GUEST_IO],
            Question::GuestSockets => &[GUEST_SOCKETS],
            Question::Virtqueues => &[NOTIFICATIONS, QUEUE_EVENTS],
            Question::GuestVirtqueues => &[QUEUE_EVENTS, GUEST_DEVICES],
        }
    }
}

/// Where threads leave their CPU, and where they are woken: with call chains that is where they wait.
const WITH_STACKS: [&str; 2] = ["sched_switch", "sched_waking"];

/// Returns the events that answer questions, each once. No kernel has all of them.
pub fn events(questions: &[Question]) -> Vec<PlannedEvent> {
    let mut out: Vec<PlannedEvent> = Vec::new();
    let lists = questions.iter().flat_map(|one| one.events());
    let own = |one: &&AskedEvents| one.arch.is_none_or(|arch| arch == ARCH);
    for asked in lists.copied().flatten().filter(own) {
        for name in asked.names {
            if !out.iter().any(|one| one.name == *name) {
                out.push(PlannedEvent::all(asked.system, name));
            }
        }
    }
    if questions.contains(&Question::Stacks) {
        for name in WITH_STACKS {
            match out.iter_mut().find(|one| one.name == name) {
                Some(one) => one.stack = true,
                None => out.push(PlannedEvent {
                    stack: true,
                    ..PlannedEvent::all("sched", name)
                }),
            }
        }
    }
    out
}
