//! What a host with two VMs does, event by event, and what no host does.

use super::draw::Draw;
use super::event_formats::{LaidEvent, events};

/// One event of a recording.
#[derive(Debug, Clone)]
pub(super) struct StoryEvent {
    pub time: u64,
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
    /// Which of the events it is.
    pub kind: usize,
    /// Its fields, in the order of their declaration.
    pub values: Vec<u64>,
    /// The name in its fields that are texts.
    pub comm: Vec<u8>,
}

/// A thread of the host.
#[derive(Debug, Clone)]
pub(super) struct StoryThread {
    pub pid: u32,
    pub tid: u32,
    pub comm: Vec<u8>,
    /// KVM's number, of a vCPU.
    vcpu: Option<u64>,
}

/// All that happens.
#[derive(Debug)]
pub(super) struct Story {
    pub kinds: Vec<LaidEvent>,
    pub threads: Vec<StoryThread>,
    pub events: Vec<StoryEvent>,
}

/// What happens one after the other, of which the first name is the event and the others set its fields.
const SCENES: [&[&str]; 16] = [
    &[
        "kvm_entry",
        "kvm_exit exit_reason=12",
        "kvm_vcpu_wakeup waited=1",
        "kvm_halt_poll_ns",
        "kvm_entry",
    ],
    &[
        "kvm_exit exit_reason=30",
        "kvm_pio port=112",
        "kvm_userspace_exit reason=2",
        "kvm_entry",
    ],
    &[
        "kvm_exit exit_reason=48",
        "kvm_page_fault",
        "kvm_mmio type=2",
        "kvm_userspace_exit reason=6",
        "kvm_entry",
    ],
    &[
        "kvm_exit exit_reason=32",
        "kvm_msr write=1",
        "kvm_eoi",
        "kvm_entry",
    ],
    &[
        "kvm_exit exit_reason=1",
        "irq_handler_entry",
        "irq_handler_exit",
        "kvm_entry",
    ],
    &["kvm_exit", "kvm_exit", "kvm_entry", "kvm_entry"],
    &[
        "kvm_exit exit_reason=18",
        "kvm_hypercall",
        "kvm_apic_ipi",
        "kvm_apic_accept_irq",
        "kvm_entry",
    ],
    &[
        "kvm_set_irq",
        "kvm_msi_set_irq",
        "kvm_apic_accept_irq",
        "sched_waking",
        "sched_wakeup",
        "kvm_inj_virq",
    ],
    &[
        "sched_switch",
        "sched_waking",
        "sched_wakeup",
        "sched_switch",
    ],
    &[
        "sched_switch prev_state=0",
        "sched_migrate_task",
        "sched_switch",
    ],
    &[
        "workqueue_queue_work",
        "workqueue_execute_start",
        "workqueue_execute_end",
    ],
    &[
        "softirq_entry",
        "hrtimer_expire_entry",
        "hrtimer_expire_exit",
        "softirq_exit",
        "local_timer_entry",
    ],
    &[
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
    ],
    &[
        "cpu_idle state=1",
        "reschedule_entry",
        "cpu_idle state=4294967295",
        "cpu_frequency",
    ],
    &["sys_enter", "sys_exit", "sched_stat_runtime"],
    &[
        "kvm_nested_vmexit",
        "kvm_fast_mmio",
        "kvm_unmap_hva_range",
        "kvm_pv_tlb_flush",
    ],
];

impl Story {
    /// Makes one up.
    pub(super) fn draw(draw: &mut Draw) -> Story {
        let mut threads = threads(draw);
        if draw.absurd() {
            let twin = draw.of(&threads);
            threads.push(StoryThread {
                pid: draw.edge() as u32,
                vcpu: Some(draw.edge()),
                ..twin
            });
        }
        let mut story = Story {
            kinds: events(),
            threads,
            events: Vec::new(),
        };
        let most = draw.of(&[8, 30, 80, 250]);
        let mut clock = draw.of(&[
            0,
            1_000_000_000,
            86_400_000_000_000,
            1_700_000_000_000_000_000,
            // The year 2500, and the last second that 64 bits hold.
            16_725_225_600_000_000_000,
            u64::MAX - 1_000_000_000,
        ]);
        let step = draw.of(&[1, 900, 20_000, 3_000_000]);
        while story.events.len() < most {
            let scene = draw.of(&SCENES);
            let thread = draw.of(&story.threads);
            let cpu = draw.below(4) as u32;
            for line in scene {
                clock = later(clock, step, draw);
                if draw.absurd() {
                    continue;
                }
                story.happens(line, &thread, cpu, clock, draw);
            }
        }
        story
    }

    /// Adds an event, or something like it.
    fn happens(&mut self, line: &str, thread: &StoryThread, cpu: u32, time: u64, draw: &mut Draw) {
        let (name, set) = line.split_once(' ').unwrap_or((line, ""));
        let kind = self
            .kinds
            .iter()
            .position(|kind| kind.name == name)
            .expect("one of the events");
        let other = draw.of(&self.threads);
        let values: Vec<u64> = self.kinds[kind]
            .fields
            .iter()
            .map(|field| {
                let name = field.name.as_str();
                let given = set.split_once('=').filter(|(of, _)| *of == name);
                let value = match given {
                    Some((_, value)) => value.parse().expect("a number"),
                    None => usual(name, thread, &other, cpu, draw),
                };
                draw.or_edge(value)
            })
            .collect();
        let mut event = StoryEvent {
            time,
            cpu,
            pid: thread.pid,
            tid: thread.tid,
            kind,
            values,
            comm: other.comm,
        };
        if draw.absurd() {
            match draw.below(5) {
                // A vCPU on two CPUs at once.
                0 => event.cpu = (cpu + 1) % 4,
                1 => event.cpu = draw.edge() as u32,
                2 => event.tid = draw.edge() as u32,
                3 => event.pid = draw.edge() as u32,
                _ => event.comm = draw.odd_name(),
            }
        }
        let again = if draw.absurd() { 2 } else { 1 };
        for _ in 0..again {
            self.events.push(event.clone());
        }
    }
}

/// Returns the time of the next event: later, or anything.
fn later(clock: u64, step: u64, draw: &mut Draw) -> u64 {
    if draw.absurd() {
        return match draw.below(4) {
            0 => clock.wrapping_sub(step * 50),
            1 => draw.edge(),
            2 => clock,
            _ => clock.wrapping_add(3_600_000_000_000),
        };
    }
    clock.wrapping_add(1 + draw.below(step as usize) as u64)
}

fn threads(draw: &mut Draw) -> Vec<StoryThread> {
    let mut threads = vec![StoryThread {
        pid: 0,
        tid: 0,
        comm: b"swapper/0".to_vec(),
        vcpu: None,
    }];
    for vm in 0..1 + draw.below(2) as u32 {
        let pid = 1000 + 100 * vm;
        threads.push(StoryThread {
            pid,
            tid: pid,
            comm: b"qemu-system-x86".to_vec(),
            vcpu: None,
        });
        for vcpu in 0..1 + draw.below(3) as u32 {
            let tid = draw.or_edge(u64::from(pid + 1 + vcpu)) as u32;
            let comm = format!("CPU {}/KVM", draw.or_edge(vcpu.into())).into_bytes();
            let vcpu = Some(draw.or_edge(vcpu.into()));
            threads.push(StoryThread {
                pid,
                tid,
                comm,
                vcpu,
            });
        }
        let vhost = format!("vhost-{}", draw.or_edge(pid.into())).into_bytes();
        threads.push(StoryThread {
            pid: pid + 50,
            tid: pid + 50,
            comm: vhost,
            vcpu: None,
        });
    }
    for (tid, name) in [
        (11, "ksoftirqd/0"),
        (12, "kworker/0:1"),
        (13, "migration/0"),
        (14, "perf"),
    ] {
        let comm = if draw.absurd() {
            draw.odd_name()
        } else {
            name.as_bytes().to_vec()
        };
        threads.push(StoryThread {
            pid: tid,
            tid,
            comm,
            vcpu: None,
        });
    }
    threads
}

/// Returns what a field mostly holds.
fn usual(name: &str, thread: &StoryThread, other: &StoryThread, cpu: u32, draw: &mut Draw) -> u64 {
    match name {
        "vcpu_id" | "apicid" | "dest_id" => thread.vcpu.unwrap_or(0),
        "prev_pid" | "parent_pid" => thread.tid.into(),
        "next_pid" | "pid" | "child_pid" | "old_pid" => other.tid.into(),
        "isa" => draw.of(&[1, 1, 1, 2]),
        "exit_reason" => draw.of(&[0, 1, 7, 10, 12, 18, 28, 30, 31, 32, 48, 49, 52, 54]),
        "prev_state" => draw.of(&[0, 1, 2, 256]),
        "target_cpu" | "dest_cpu" | "orig_cpu" | "cpu_id" | "cpu" | "req_cpu" => cpu.into(),
        "prev_prio" | "next_prio" | "prio" => 120,
        "vector" | "vec" | "icr_low" => draw.of(&[32, 48, 236, 239]),
        "gpa" | "fault_address" => draw.of(&[0xfee0_00b0, 0xfed0_00f0, 0xfe00_3000, 0x1_0000_0000]),
        "port" => draw.of(&[0x70, 0x71, 0x608, 0x3f8, 0x64]),
        "ecx" => draw.of(&[0x6e0, 0x80b, 0x830, 0x4000_0070]),
        "ns" => draw.below(10_000_000) as u64,
        "rip" | "guest_rip" | "function" => 0xffff_ffff_8100_0000 + draw.below(0x1000) as u64,
        "start" => 0x7f00_0000_0000,
        "end" => 0x7f00_0020_0000,
        _ => draw.below(4) as u64,
    }
}

impl StoryEvent {
    /// Returns its record, with the common fields.
    pub(super) fn record(&self, kind: &LaidEvent, big: bool, draw: &mut Draw) -> Vec<u8> {
        let mut out = vec![0; kind.size];
        let mut put = |at: usize, size: usize, value: u64| {
            let bytes = match big {
                true => value.to_be_bytes()[8 - size..].to_vec(),
                false => value.to_le_bytes()[..size].to_vec(),
            };
            out[at..at + size].copy_from_slice(&bytes);
        };
        put(0, 2, kind.id.into());
        put(4, 4, self.tid.into());
        for (field, value) in kind.fields.iter().zip(&self.values) {
            if let size @ (1 | 2 | 4 | 8) = field.size {
                put(field.offset, size, *value);
            }
        }
        for field in &kind.fields {
            if field.ctype == "char" {
                let name = &self.comm[..self.comm.len().min(field.size)];
                out[field.offset..][..name.len()].copy_from_slice(name);
            }
            if field.ctype.contains("_loc") && !draw.absurd() {
                let place = (kind.size as u32 | 8 << 16).to_le_bytes();
                out[field.offset..][..4].copy_from_slice(&place);
                out.resize(kind.size, 0);
            }
        }
        if kind.fields.iter().any(|field| field.ctype.contains("_loc")) {
            out.extend(b"name\0\0\0\0");
        }
        if draw.absurd() {
            let end = draw.below(out.len());
            out.truncate(end);
        }
        out
    }
}
