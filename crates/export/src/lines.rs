//! Single things as the rows of tables, whatever the table is written as.

use analysis::{NamedContext, SingleExit};
use model::{BySlot, GuestAccess, RetiredThreads, Span, State};
use render::exit_list::ExitLine;
use render::spans::{SpanHolder, SpanLine, SpanVcpu};

use crate::known::{Devices, VcpuName};
use crate::walk::{ExportedThing, Scene};

fn vcpu(name: &VcpuName) -> SpanVcpu {
    SpanVcpu {
        vm_pid: name.vm_pid,
        vm_name: name.vm_name.clone(),
        number: name.vm.map(|_| name.number),
        tid: name.tid,
    }
}

/// Makes rows of spans and of exits.
#[derive(Debug, Default)]
pub(crate) struct LineMaker {
    devices: Devices,
    causes: ExitAccesses,
}

impl LineMaker {
    /// Returns the row of a span, or of a part of one in which the guest did one thing; `None` of what is neither.
    /// `guests` says which of the two is wanted.
    pub(crate) fn span(
        &mut self,
        found: &ExportedThing<'_>,
        guests: bool,
        scene: &Scene<'_>,
    ) -> Option<SpanLine> {
        match found {
            ExportedThing::Span { vcpu, span } if !guests => {
                Some(self.span_line(vcpu, span, None, scene))
            }
            ExportedThing::Guest { vcpu, part } if guests => {
                let reported = scene.known.guest_reported(vcpu.tid);
                let tasks = scene.guests.filter(|_| reported);
                let guest = tasks.map(|tasks| tasks.who(vcpu.tid, part.doing));
                Some(self.span_line(vcpu, &part.span, guest, scene))
            }
            _ => None,
        }
    }

    /// Forgets threads of which no more is kept.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        self.causes.retire(retired);
    }

    fn span_line(
        &mut self,
        name: &VcpuName,
        span: &Span,
        guest: Option<NamedContext>,
        scene: &Scene<'_>,
    ) -> SpanLine {
        let behind = span.behind.and_then(|slot| {
            let (tid, thread) = scene.machine.threads().at(slot)?;
            Some(SpanHolder {
                tid,
                comm: thread.comm.clone(),
            })
        });
        let access = self.devices.of(&span.cause, scene.known);
        SpanLine {
            vcpu: vcpu(name),
            state: scene.known.state(span),
            start: span.start,
            end: span.end,
            cpu: (span.cpu >= 0).then_some(span.cpu),
            reason: span.cause.reason,
            access: access.map(|access| access.key.clone()),
            device: access.and_then(|access| access.device.clone()),
            behind,
            guest,
        }
    }

    /// Returns the row of an exit of a known vCPU; `None` of what is none. Spans say what the exits behind them were
    /// for.
    pub(crate) fn exit(
        &mut self,
        found: &ExportedThing<'_>,
        scene: &Scene<'_>,
    ) -> Option<ExitLine> {
        let (number, name, exit) = match found {
            ExportedThing::Span { span, .. } => {
                self.causes.note(span);
                return None;
            }
            ExportedThing::Exit {
                vcpu: Some((number, name)),
                exit,
            } => (*number, *name, *exit),
            _ => return None,
        };
        let seen = scene.known.seen();
        let waiting = exit.reason.is_waiting();
        let of_waiting = if waiting {
            exit.times.get(State::Kernel)
        } else {
            0
        };
        let cause = self.causes.of(number, exit);
        let access = self.devices.of(&cause, scene.known);
        Some(ExitLine {
            vcpu: vcpu(name),
            start: exit.start,
            end: exit.end,
            cpu: (exit.cpu >= 0).then_some(exit.cpu),
            reason: exit.reason,
            access: access.map(|access| access.key.clone()),
            device: access.and_then(|access| access.device.clone()),
            user: seen.userspace_exits.then_some(exit.user),
            times: seen.settle(&exit.times, of_waiting),
            unknowable: scene.known.unknowable().clone(),
        })
    }
}

/// Which access made the exit of each vCPU that is under way: its spans say so.
#[derive(Debug, Default)]
pub(crate) struct ExitAccesses(BySlot<(u64, Option<GuestAccess>)>);

impl ExitAccesses {
    /// Notes what a span says.
    pub(crate) fn note(&mut self, span: &Span) {
        if span.cause.reason.is_some() {
            *self.0.entry(span.vcpu, || (0, None)) = (span.end, span.cause.access);
        }
    }

    /// Forgets vCPUs of which no more is kept.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        for vcpu in retired.vcpus() {
            self.0.remove(vcpu);
        }
    }

    /// Returns why a vCPU left its guest.
    pub(crate) fn of(&self, vcpu: u32, exit: &SingleExit) -> model::Cause {
        let last = self.0.get(vcpu);
        // The last span of the exit ends with it.
        let last = last.filter(|(end, _)| *end > exit.start && *end <= exit.end);
        model::Cause {
            reason: Some(exit.reason),
            access: last.and_then(|(_, access)| *access),
        }
    }
}
