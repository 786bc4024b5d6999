//! From what was collected to lanes with names.

use devices::AddressNames;
use model::{SeenEvents, State, Vm, vm_names};
use paths::{PathReport, Paths};
use rustc_hash::FxHashMap;

use super::cell::{Cell, LaneGroup, OUTSIDE, Stretch};
use super::class::{IDLE, OTHER};
use super::examples::PathExamples;
use super::lane::{FEWEST, Lane};
use super::limits::unit;
use super::marks::Mark;
use super::names::{LaneNamer, TimelineNames};
use super::plan::StretchPlan;
use super::refine::replace;
use super::report::{TimelineLane, TimelineMarks, TimelineReport};
use super::tasks::ThreadLane;
use super::{CPU_WEIGHT, KERNEL_WAITING, Timeline, VCPU_WEIGHT, as_is};
use crate::analysis::WalkState;

/// Lanes of threads that are kept aside, in case a finding names one.
const RESERVE: usize = 192;

impl Timeline {
    /// Returns examples of paths as text.
    pub(crate) fn examples(
        &self,
        paths: &Paths,
        reports: &[PathReport],
        walked: &WalkState<'_>,
        names: paths::AccessNamer<'_>,
    ) -> Vec<PathExamples> {
        let all = self.paths.iter().zip(reports);
        all.filter_map(|(of_path, report)| {
            let median_ns = report.total.percentile(0.5);
            of_path
                .examples
                .describe(paths, walked.machine, names, median_ns)
        })
        .collect()
    }

    /// Returns what was found. `span` are the times of the first and the last event.
    pub(crate) fn report(
        mut self,
        walked: &WalkState<'_>,
        devices: &AddressNames,
        paths: Option<&Paths>,
        span: (u64, u64),
    ) -> TimelineReport {
        let machine = walked.machine;
        let mut notes = Vec::new();
        let (threads, reserve, without_lane) = self.choose_threads(walked);
        let (cpus_have, _) = self.scheduled.cells();
        let mut lanes: Vec<(usize, usize)> = Vec::new();
        lanes.extend(self.vcpus.iter().map(|lane| (lane.len(), VCPU_WEIGHT)));
        lanes.extend(cpus_have.map(|cells| (cells, CPU_WEIGHT)));
        lanes.extend(threads.iter().map(|one| (one.lane.len(), 1)));
        let unit = unit(&lanes, self.limits.cells);
        let cpus = self.scheduled.take_cpus(unit * CPU_WEIGHT, machine);
        if self.beyond {
            notes.push(
                "There are more vCPUs than have a lane here; 'trapline vcpus' has all.".to_owned(),
            );
        }
        let mut names = TimelineNames::default();
        let causes = std::mem::take(&mut self.causes);
        let namer = LaneNamer::new(machine, devices, &causes, &mut names);
        let vms = machine.vms();
        let mut builder = LaneBuilder {
            vm_names: vm_names(&vms),
            vms,
            seen: machine.seen(),
            ids: FxHashMap::default(),
            first: first_slots(walked),
            namer,
        };
        let mut report = TimelineReport {
            lanes: builder.vcpus(std::mem::take(&mut self.vcpus), unit * VCPU_WEIGHT, walked),
            limits: self.limits,
            nanoseconds: !machine.in_ticks(),
            ..TimelineReport::default()
        };
        report.lanes.extend(builder.threads(threads, unit));
        report.reserve = builder.threads(reserve, FEWEST * 4);
        let class = |slot| self.scheduled.class(slot, machine.threads());
        report.lanes.extend(builder.cpus(cpus, &class));
        report.marks = builder.marks(&mut self, paths);
        report.notes = notes;
        report.without_lane = without_lane;
        report.names = names;
        report.bound(span);
        report.say_sums();
        report
    }

    /// Chooses threads that have lanes: back ends and those that instances of paths went through; all where there is no
    /// VM. Returns them, some of the others, and how many others there are.
    fn choose_threads(
        &mut self,
        walked: &WalkState<'_>,
    ) -> (Vec<ThreadLane>, Vec<ThreadLane>, u64) {
        let machine = walked.machine;
        let given_up = self.scheduled.given_up;
        let any_vcpus = machine.vcpus().next().is_some();
        let all = self.scheduled.take_threads(machine).into_iter();
        let asked = all.filter(|(one, _)| {
            let thread = machine.threads().at(one.slot);
            thread.is_some_and(|(tid, thread)| {
                let process = thread.pid.unwrap_or(event::NONE);
                !walked.left_out.has(tid) && !walked.left_out.processes.contains(&process)
            })
        });
        let (mut chosen, mut reserve) = (Vec::new(), Vec::new());
        for (one, back_end) in asked {
            let wanted = back_end || one.takes_part || !any_vcpus;
            if wanted && one.ran_ns > 0 && chosen.len() < self.limits.threads {
                chosen.push(one);
            } else {
                reserve.push(one);
            }
        }
        let others = reserve.len() as u64 + given_up;
        reserve.truncate(RESERVE);
        (chosen, reserve, others)
    }
}

/// Returns, by thread id, the first slot that has it.
fn first_slots(walked: &WalkState<'_>) -> FxHashMap<i32, u32> {
    let mut first = FxHashMap::default();
    for (slot, tid, _) in walked.machine.threads().slots() {
        first.entry(tid).or_insert(slot);
    }
    first
}

/// Makes lanes of what was collected.
struct LaneBuilder<'n> {
    namer: LaneNamer<'n>,
    vms: Vec<Vm>,
    vm_names: Vec<String>,
    seen: SeenEvents,
    /// How many lanes have an id.
    ids: FxHashMap<String, u32>,
    first: FxHashMap<i32, u32>,
}

impl LaneBuilder<'_> {
    fn id(&mut self, id: String) -> String {
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        match *count {
            1 => id,
            again => format!("{id}-{again}"),
        }
    }

    fn vcpus(&mut self, lanes: Vec<Lane>, cap: usize, walked: &WalkState<'_>) -> Vec<TimelineLane> {
        let mut out: Vec<((usize, u32), TimelineLane)> = Vec::new();
        let mut places: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
        for (at, vm) in self.vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                places.entry(vcpu.thread).or_insert((at, vcpu.id));
            }
        }
        for (mut lane, number) in lanes.into_iter().zip(0u32..) {
            let Some(vcpu) = walked.machine.vcpu(number) else {
                continue;
            };
            if lane.len() == 0 || walked.left_out.has(vcpu.tid) {
                continue;
            }
            lane.fit(cap, &as_is);
            let place = places.get(&vcpu.thread).copied();
            let vm = place.and_then(|(at, _)| self.vm_names.get(at).cloned());
            let id = place.map_or(0, |(_, id)| id);
            let several = self.vms.len() > 1;
            let pid = place.and_then(|(at, _)| self.vms.get(at)?.pid);
            let cells = lane.into_cells();
            let lane = TimelineLane {
                id: self.id(format!("tid-{}", vcpu.tid)),
                group: LaneGroup::Vcpus,
                label: match place.filter(|_| several) {
                    Some((at, _)) => format!("{} {}", self.short_name(at), words::vcpu(None, id)),
                    None => words::vcpu(None, id),
                },
                detail: match pid {
                    Some(pid) => format!("thread {}, process {pid}", vcpu.tid),
                    None => format!("thread {}", vcpu.tid),
                },
                vm: vm.unwrap_or_default(),
                tid: Some(vcpu.tid),
                cells: self.vcpu_cells(cells),
                number: i32::try_from(number).ok(),
            };
            out.push(((place.map_or(usize::MAX, |(at, _)| at), id), lane));
        }
        out.sort_by_key(|(place, _)| *place);
        out.into_iter().map(|(_, lane)| lane).collect()
    }

    /// Returns a short name that no other VM has: its own if it is the only one with it, else its process, as in
    /// tables.
    fn short_name(&self, at: usize) -> String {
        let Some(vm) = self.vms.get(at) else {
            return String::new();
        };
        let same = self.vms.iter().filter(|other| other.name == vm.name);
        match (&vm.name, vm.pid, vm.vcpus.first()) {
            (Some(name), ..) if same.count() == 1 => name.clone(),
            (_, Some(pid), _) => pid.to_string(),
            (_, None, Some(vcpu)) => format!("t{}", vcpu.tid),
            (_, None, None) => String::new(),
        }
    }

    /// Gives the cells of a vCPU their states as the whole recording shows them, and names.
    fn vcpu_cells(&mut self, cells: Vec<Cell>) -> Vec<Cell> {
        let seen = self.seen;
        let named = cells.into_iter().map(|cell| match cell {
            Cell::One(one) => Cell::One(Stretch {
                kind: settled(one.kind, &seen),
                what: self.namer.cause(one.what),
                behind: self.namer.task(one.behind),
                ..one
            }),
            Cell::Sum(mut sum) => {
                for kind in [
                    KERNEL_WAITING,
                    State::Kernel as u8,
                    State::KernelBlocked as u8,
                ] {
                    let (from, to) = (usize::from(kind), usize::from(settled(kind, &seen)));
                    if from == to {
                        continue;
                    }
                    let ns = std::mem::take(&mut sum.ns[from]);
                    sum.ns[to] += ns;
                }
                Cell::Sum(sum)
            }
        });
        named.filter(is_looked_at).collect()
    }

    fn threads(&mut self, threads: Vec<ThreadLane>, cap: usize) -> Vec<TimelineLane> {
        let mut out = Vec::new();
        for mut one in threads {
            let machine = self.namer.machine;
            let Some((tid, thread)) = machine.threads().at(one.slot) else {
                continue;
            };
            one.lane.fit(cap, &as_is);
            // Workers of the kernel that serve one VM are named after its process.
            let serves = thread.named_role().served();
            let of_vm = |vm: &Vm| {
                vm.is_of(tid) || vm.pid.is_some() && (vm.pid == thread.pid || vm.pid == serves)
            };
            let vm = self.vms.iter().position(of_vm);
            let vm = vm.and_then(|at| self.vm_names.get(at).cloned());
            let comm = thread.comm.as_deref();
            let cells = self.thread_cells(one.lane.into_cells());
            out.push(TimelineLane {
                id: self.id(format!("tid-{tid}")),
                group: LaneGroup::Threads,
                label: comm.map_or_else(|| format!(":{tid}"), str::to_owned),
                detail: match thread.pid {
                    Some(pid) => format!("thread {tid}, process {pid}"),
                    None => format!("thread {tid}"),
                },
                vm: vm.unwrap_or_default(),
                tid: Some(tid),
                cells,
                number: Some(tid).filter(|_| self.first.get(&tid) == Some(&one.slot)),
            });
        }
        out
    }

    fn thread_cells(&mut self, cells: Vec<Cell>) -> Vec<Cell> {
        let named = cells.into_iter().map(|cell| match cell {
            Cell::One(one) => Cell::One(Stretch {
                behind: self.namer.task(one.behind),
                what: 0,
                ..one
            }),
            sum => sum,
        });
        named.filter(is_looked_at).collect()
    }

    fn cpus(&mut self, lanes: Vec<Lane>, class: &dyn Fn(u32) -> u8) -> Vec<TimelineLane> {
        let mut out = Vec::new();
        for (lane, number) in lanes.into_iter().zip(0i32..) {
            if lane.len() == 0 {
                continue;
            }
            let cells = self.cpu_cells(lane.into_cells(), class);
            out.push(TimelineLane {
                id: self.id(format!("cpu-{number}")),
                group: LaneGroup::Cpus,
                label: format!("CPU {number}"),
                detail: String::new(),
                vm: String::new(),
                tid: None,
                cells,
                number: Some(number),
            });
        }
        out
    }

    fn cpu_cells(&mut self, cells: Vec<Cell>, class: &dyn Fn(u32) -> u8) -> Vec<Cell> {
        let named = cells.into_iter().map(|cell| match cell {
            Cell::One(one) if one.kind == OTHER => {
                let kind = class(one.what);
                Cell::One(Stretch {
                    kind,
                    what: if kind == IDLE {
                        0
                    } else {
                        self.namer.task(one.what)
                    },
                    behind: 0,
                    ..one
                })
            }
            Cell::One(one) => Cell::One(Stretch {
                what: 0,
                behind: 0,
                ..one
            }),
            sum => sum,
        });
        named.filter(is_looked_at).collect()
    }

    /// Returns the marks of paths and losses.
    fn marks(&mut self, timeline: &mut Timeline, paths: Option<&Paths>) -> Vec<TimelineMarks> {
        let most = timeline.limits.marks;
        let mut out = Vec::new();
        let lost = std::mem::take(&mut timeline.lost).taken(most);
        if !lost.is_empty() {
            let marks = lost.into_iter().map(|mark| Mark {
                what: self.namer.names.number(&loss(&mark)),
                ..mark
            });
            out.push(TimelineMarks {
                id: "lost".to_owned(),
                label: "lost events".to_owned(),
                marks: marks.collect(),
            });
        }
        let known = paths.map_or(&[][..], Paths::paths);
        for (of_path, path) in timeline.paths.iter_mut().zip(known) {
            let marks = std::mem::take(&mut of_path.marks).taken(most);
            if marks.is_empty() {
                continue;
            }
            let marks = marks.into_iter().map(|mark| Mark {
                what: self.namer.task(mark.what),
                ..mark
            });
            out.push(TimelineMarks {
                id: format!("path:{}", path.name),
                label: path.name.clone(),
                marks: marks.collect(),
            });
        }
        out
    }
}

/// Says what was lost.
fn loss(mark: &Mark) -> String {
    let events = match mark.amount {
        0 => "events lost".to_owned(),
        amount => format!("{} lost", words::plural(amount, "event")),
    };
    match i32::try_from(mark.what) {
        Ok(cpu) => format!("{events} on CPU {cpu}"),
        Err(_) => events,
    }
}

/// Whether a cell is more than time that was not looked at.
fn is_looked_at(cell: &Cell) -> bool {
    !matches!(cell, Cell::One(one) if one.kind == OUTSIDE)
}

/// Returns what a state of a vCPU is called where a recording has no events that would say more
/// ([`SeenEvents::settle`]).
fn settled(kind: u8, seen: &SeenEvents) -> u8 {
    const KERNEL: u8 = State::Kernel as u8;
    const KERNEL_BLOCKED: u8 = State::KernelBlocked as u8;
    match kind {
        KERNEL_WAITING if !seen.switches => State::Halted as u8,
        KERNEL_WAITING => KERNEL,
        KERNEL | KERNEL_BLOCKED if !seen.userspace_exits => State::Unknown as u8,
        kind => kind,
    }
}

impl TimelineReport {
    /// Puts stretches in the place of the sums that a plan has, as another walk found them. What does not add up to the
    /// same stays a sum.
    pub fn refine(
        &mut self,
        plan: &StretchPlan,
        found: Timeline,
        walked: &WalkState<'_>,
        devices: &AddressNames,
    ) {
        let mut found = found;
        let machine = walked.machine;
        let causes = std::mem::take(&mut found.causes);
        let mut builder = LaneBuilder {
            namer: LaneNamer::new(machine, devices, &causes, &mut self.names),
            vm_names: Vec::new(),
            vms: Vec::new(),
            seen: machine.seen(),
            ids: FxHashMap::default(),
            first: FxHashMap::default(),
        };
        let mut stretches: FxHashMap<(LaneGroup, i32), Vec<Cell>> = FxHashMap::default();
        for (lane, number) in std::mem::take(&mut found.vcpus).into_iter().zip(0i32..) {
            let cells = builder.vcpu_cells(lane.into_cells());
            stretches.insert((LaneGroup::Vcpus, number), cells);
        }
        let threads = found.scheduled.take_threads(machine);
        let cpus = found.scheduled.take_cpus(usize::MAX, machine);
        for (one, _) in threads {
            if let Some((tid, _)) = machine.threads().at(one.slot) {
                let cells = builder.thread_cells(one.lane.into_cells());
                stretches.insert((LaneGroup::Threads, tid), cells);
            }
        }
        let class = |slot| found.scheduled.class(slot, machine.threads());
        for (lane, number) in cpus.into_iter().zip(0i32..) {
            let cells = builder.cpu_cells(lane.into_cells(), &class);
            stretches.insert((LaneGroup::Cpus, number), cells);
        }
        for (group, number, times) in &plan.lanes {
            let lane = self.lanes.iter_mut();
            let lane = { lane }.find(|lane| lane.group == *group && lane.number == Some(*number));
            if let (Some(lane), Some(cells)) = (lane, stretches.get(&(*group, *number))) {
                replace(&mut lane.cells, times, cells);
            }
        }
    }
}
