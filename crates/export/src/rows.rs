//! Tables for spreadsheets, a row for each thing that is found.

use std::sync::Arc;

use analysis::NamedContext;
use model::{GuestAccess, Span};
use render::ClockUnit;
use render::exit_list::{self, ExitLine};
use render::paths_instance::Instances;
use render::spans::{self, SpanHolder, SpanLine, SpanVcpu};

use crate::known::{Devices, FirstWalk, VcpuName};
use crate::walk::{ExportFile, ExportedThing, Scene};

fn vcpu(name: &VcpuName) -> SpanVcpu {
    SpanVcpu {
        vm_pid: name.vm_pid,
        vm_name: name.vm_name.clone(),
        number: name.vm.map(|_| name.number),
        tid: name.tid,
    }
}

/// Spans of the vCPUs' states.
#[derive(Debug)]
pub struct SpanRows {
    made: Vec<u8>,
    line: String,
    spans: spans::Spans,
    devices: Devices,
    /// Rows are parts of spans, in each of which the guest did one thing.
    guests: bool,
}

impl SpanRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> SpanRows {
        SpanRows::of(spans::Spans::new(clock), false)
    }

    /// Returns rows that say what guests did, too: a row for each part of a span in which the guest did one thing.
    pub fn with_guests(clock: ClockUnit) -> SpanRows {
        SpanRows::of(spans::Spans::with_guests(clock), true)
    }

    fn of(spans: spans::Spans, guests: bool) -> SpanRows {
        SpanRows {
            made: spans.csv_head().into_bytes(),
            line: String::new(),
            spans,
            devices: Devices::default(),
            guests,
        }
    }

    fn row(
        &mut self,
        name: &VcpuName,
        span: &Span,
        guest: Option<NamedContext>,
        scene: &Scene<'_>,
    ) {
        let behind = span.behind.and_then(|slot| {
            let (tid, thread) = scene.machine.threads().at(slot)?;
            Some(SpanHolder {
                tid,
                comm: thread.comm.clone(),
            })
        });
        let access = self.devices.of(&span.cause, scene.known);
        let line = SpanLine {
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
        };
        self.line.clear();
        self.spans.put_csv(&line, &mut self.line);
        self.made.extend_from_slice(self.line.as_bytes());
    }
}

impl ExportFile for SpanRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        match found {
            ExportedThing::Span { vcpu, span } if !self.guests => self.row(vcpu, span, None, scene),
            ExportedThing::Guest { vcpu, part } if self.guests => {
                let reported = scene.known.guest_reported(vcpu.tid);
                let tasks = scene.guests.filter(|_| reported);
                let guest = tasks.map(|tasks| tasks.who(vcpu.tid, part.doing));
                self.row(vcpu, &part.span, guest, scene);
            }
            _ => {}
        }
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}

/// Exits, as `exits` counts them by reason.
#[derive(Debug)]
pub struct ExitRows {
    made: Vec<u8>,
    line: String,
    exits: exit_list::ExitList,
    devices: Devices,
    causes: ExitAccesses,
}

impl ExitRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> ExitRows {
        let exits = exit_list::ExitList::new(clock);
        ExitRows {
            made: exits.csv_head().into_bytes(),
            line: String::new(),
            exits,
            devices: Devices::default(),
            causes: ExitAccesses::default(),
        }
    }
}

impl ExportFile for ExitRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        let (name, exit) = match found {
            ExportedThing::Span { span, .. } => return self.causes.note(span),
            ExportedThing::Exit {
                vcpu: Some((number, name)),
                exit,
            } => ((*number, *name), exit),
            _ => return,
        };
        let (number, name) = name;
        let seen = scene.known.seen();
        let waiting = exit.reason.is_waiting();
        let of_waiting = if waiting {
            exit.times.get(model::State::Kernel)
        } else {
            0
        };
        let cause = self.causes.of(number, exit);
        let access = self.devices.of(&cause, scene.known);
        let line = ExitLine {
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
        };
        self.line.clear();
        self.exits.put_csv(&line, &mut self.line);
        self.made.extend_from_slice(self.line.as_bytes());
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}

/// Which access made the exit of each vCPU that is under way: its spans say so.
#[derive(Debug, Default)]
pub(crate) struct ExitAccesses(Vec<(u64, Option<GuestAccess>)>);

impl ExitAccesses {
    /// Notes what a span says.
    pub(crate) fn note(&mut self, span: &Span) {
        let at = span.vcpu as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, (0, None));
        }
        if span.cause.reason.is_some()
            && let Some(last) = self.0.get_mut(at)
        {
            *last = (span.end, span.cause.access);
        }
    }

    /// Returns why a vCPU left its guest.
    pub(crate) fn of(&self, vcpu: u32, exit: &analysis::SingleExit) -> model::Cause {
        let last = self.0.get(vcpu as usize);
        // The last span of the exit ends with it.
        let last = last.filter(|(end, _)| *end > exit.start && *end <= exit.end);
        model::Cause {
            reason: Some(exit.reason),
            access: last.and_then(|(_, access)| *access),
        }
    }
}

/// Instances of paths.
#[derive(Debug)]
pub struct InstanceRows {
    made: Vec<u8>,
    instances: Instances,
    devices: std::cell::RefCell<Devices>,
}

impl InstanceRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> InstanceRows {
        let instances = Instances::new(clock);
        InstanceRows {
            made: instances.csv_head().into_bytes(),
            instances,
            devices: std::cell::RefCell::default(),
        }
    }
}

/// Calls a function with what names the device behind an access.
pub(crate) fn with_names<R>(
    scene: &Scene<'_>,
    devices: &std::cell::RefCell<Devices>,
    call: impl FnOnce(paths::AccessNamer<'_>) -> R,
) -> R {
    let known: &FirstWalk<'_> = scene.known;
    call(&|access: &GuestAccess| {
        let cause = model::Cause {
            reason: None,
            access: Some(*access),
        };
        let name: Option<Arc<str>> = devices.borrow_mut().name(&cause, known);
        name.map(|name| name.to_string())
    })
}

impl ExportFile for InstanceRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if let ExportedThing::Instance(one) = found
            && let Some(paths) = scene.paths
        {
            let describe =
                |names: paths::AccessNamer<'_>| paths.describe(one, scene.machine, names);
            let reported = with_names(scene, &self.devices, describe);
            self.made
                .extend_from_slice(self.instances.csv(&reported).as_bytes());
        }
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}
