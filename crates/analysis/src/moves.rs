//! What it costs when a vCPU's thread moves to another CPU, as far as events tell.
//!
//! Each time that the thread gets a CPU it is either the one it had before, or another one: it moved. What the two have
//! in common is compared: how long it waited, how long KVM took from there to the guest (`vcpu_load` puts the virtual
//! processor's state on the new CPU), and how long the first exit after that took to be handled, in cold caches. What
//! the guest itself loses to cold caches is in no event.
//!
//! It costs more than 2 ns an event, because the first exit behind a move is known only by following each vCPU
//! through all exits and entries, and the time in the guest is summed by CPU.

use event::{Data, Event, EventType, ExitReason, Kind, MAX_CPUS, NONE};
use model::{ByThread, Machine, RetiredThreads, SpanEnd, TaskChanges, ThreadHandle, ThreadHandles};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, Needs};

/// What runs had in common that began on one CPU, or on another one than before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    /// How many.
    pub count: u64,
    /// From when it could run to when it did.
    pub waits: Stats,
    /// From there to the guest, where it had to be entered.
    pub enters: Stats,
    /// The first exit that followed and was no wait, from `kvm_exit` to `kvm_entry`.
    pub first_exits: Stats,
}

/// One vCPU's thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MovesRow {
    /// The thread.
    pub tid: i32,
    /// From its first event of KVM to its last.
    pub observed_ns: u64,
    /// Runs on another CPU than the one before.
    pub moved: Runs,
    /// Runs on the same one.
    pub stayed: Runs,
    /// How long its guest ran on each CPU, from `kvm_entry` to `kvm_exit`, by CPU.
    pub guest_ns: Vec<(u32, u64)>,
}

#[derive(Debug, Default)]
struct MovingVcpu {
    row: MovesRow,
    first: u64,
    cpu: Option<i32>,
    /// Since when its guest runs, and on which CPU.
    inside: Option<(u64, i32)>,
    /// Since when it runs, whether it moved, if it has not entered its guest since.
    runs: Option<(u64, bool)>,
    /// Whether it moved, if no exit came since.
    fresh: Option<bool>,
    /// The exit under way: its beginning and whether it moved before.
    exit: Option<(u64, bool)>,
}

/// Follows the threads of vCPUs from CPU to CPU.
#[derive(Debug, Default)]
pub struct Moves {
    vcpus: ByThread<MovingVcpu>,
}

impl Runs {
    /// Returns how much longer these took than others, by the medians: negative if they were faster. Nothing is
    /// compared of which either has too few.
    pub fn excess_ns(&self, than: &Runs, least: u64) -> i64 {
        let pairs = [
            (&self.waits, &than.waits),
            (&self.enters, &than.enters),
            (&self.first_exits, &than.first_exits),
        ];
        let excess = pairs.into_iter().map(|(a, b)| {
            if a.count() < least || b.count() < least {
                return 0;
            }
            let half = |stats: &Stats| i64::try_from(stats.percentile(0.5)).unwrap_or(i64::MAX);
            let count = i64::try_from(a.count()).unwrap_or(i64::MAX);
            half(a).saturating_sub(half(b)).saturating_mul(count)
        });
        excess.fold(0, i64::saturating_add)
    }
}

impl Moves {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Moves {
        Moves::default()
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, thread: ThreadHandle) {
        match data {
            Data::KvmExit(exit) => {
                let waiting = ExitReason::is_waiting(exit.reason);
                let vcpu = self.kvm(event, thread);
                if let Some((since, cpu)) = vcpu.inside.take() {
                    vcpu.row.ran_guest(cpu, event, since);
                }
                if exit.inner {
                    vcpu.exit = vcpu.exit.take().filter(|_| !waiting);
                    return;
                }
                let fresh = vcpu.fresh.take();
                vcpu.exit = fresh.filter(|_| !waiting).map(|moved| (event.time, moved));
            }
            Data::KvmEntry(_) => {
                let vcpu = self.kvm(event, thread);
                vcpu.inside = Some((event.time, event.cpu));
                if let Some((since, moved)) = vcpu.exit.take() {
                    let runs = vcpu.row.of(moved);
                    runs.first_exits.add(event.time.saturating_sub(since));
                }
                if let Some((since, moved)) = vcpu.runs.take() {
                    let runs = vcpu.row.of(moved);
                    runs.enters.add(event.time.saturating_sub(since));
                    vcpu.fresh = Some(moved);
                }
            }
            Data::KvmUserspaceExit(_) => {
                // What follows is the VMM's time.
                if let Some(vcpu) = self.vcpus.get_mut(thread) {
                    vcpu.runs = None;
                    vcpu.exit = None;
                }
            }
            _ => {}
        }
    }

    /// A CPU went from one task to another.
    fn switched(&mut self, changes: &TaskChanges, machine: &Machine, handles: &ThreadHandles) {
        let Some(switch) = changes.switch else {
            return;
        };
        let thread = |slot: u32| {
            let thread = machine.threads().at(slot);
            thread.and_then(|(tid, _)| handles.find(tid))
        };
        if let Some(vcpu) = thread(switch.prev).and_then(|one| self.vcpus.get_mut(one)) {
            vcpu.cpu = Some(switch.cpu);
            (vcpu.runs, vcpu.fresh, vcpu.exit) = (None, None, None);
        }
        if let Some(vcpu) = thread(switch.next).and_then(|one| self.vcpus.get_mut(one))
            && switch.cpu != NONE
            && let Some(before) = vcpu.cpu.replace(switch.cpu)
        {
            let moved = before != switch.cpu;
            let runs = vcpu.row.of(moved);
            runs.count += 1;
            let waited = (changes.tasks.iter())
                .find(|span| span.thread == switch.next && span.ended_by == SpanEnd::GotCpu);
            if let Some(span) = waited.filter(|span| span.state.is_runnable()) {
                runs.waits.add(span.whole_ns());
            }
            vcpu.runs = Some((switch.time, moved));
        }
    }

    /// A thread does what only vCPUs do.
    fn kvm(&mut self, event: &Event<'_>, thread: ThreadHandle) -> &mut MovingVcpu {
        let vcpu = self.vcpus.entry(thread, || MovingVcpu {
            first: event.time,
            row: MovesRow {
                tid: event.tid,
                ..MovesRow::default()
            },
            ..MovingVcpu::default()
        });
        vcpu.row.observed_ns = event.time.saturating_sub(vcpu.first);
        vcpu
    }

    /// Returns what was found, by thread.
    pub fn report(&self) -> Vec<MovesRow> {
        let mut rows: Vec<MovesRow> = self.vcpus.values().map(|vcpu| vcpu.row.clone()).collect();
        rows.sort_by_key(|row| row.tid);
        rows.iter_mut().for_each(|row| row.guest_ns.sort_unstable());
        rows
    }
}

impl Analysis for Moves {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for thread in retired.handles() {
            self.vcpus.remove(thread);
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            task_spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmEntry | Kind::KvmUserspaceExit => {
                EventDetail::Order
            }
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.follows {
            self.take(event, data, context.thread);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if context.chosen.follows {
            self.switched(changes, context.machine, context.handles);
        }
    }
}

impl MovesRow {
    /// Its guest ran until it left it on the same CPU: it cannot move inside.
    #[inline]
    fn ran_guest(&mut self, cpu: i32, exit: &Event<'_>, since: u64) {
        let Ok(cpu) = u32::try_from(cpu) else {
            return;
        };
        if exit.cpu.unsigned_abs() != cpu {
            return;
        }
        let ns = exit.time.saturating_sub(since);
        // The one it was on last stands last.
        let known = self.guest_ns.iter().rposition(|(known, _)| *known == cpu);
        if let Some(at) = known {
            let end = self.guest_ns.len() - 1;
            self.guest_ns.swap(at, end);
            self.guest_ns[end].1 = self.guest_ns[end].1.saturating_add(ns);
        } else if self.guest_ns.len() < MAX_CPUS {
            self.guest_ns.push((cpu, ns));
        }
    }

    fn of(&mut self, moved: bool) -> &mut Runs {
        if moved {
            &mut self.moved
        } else {
            &mut self.stayed
        }
    }
}
