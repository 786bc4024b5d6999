//! What a first walk found out, which a second one needs from its beginning.

use std::sync::Arc;

use analysis::{GuestTasks, LeftOut, Unknowable, WalkState, access_key};
use devices::AddressNames;
use event::ExitReason;
use model::{BySlot, Cause, GuestAccess, Machine, RetiredThreads, SeenEvents, Span, State, Vm};
use rustc_hash::{FxHashMap, FxHashSet};

/// Names of devices that are kept; what is beyond is looked up each time.
const MAX_NAMES: usize = 1 << 16;

/// What a vCPU is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuName {
    /// Its thread.
    pub tid: i32,
    /// Position of its VM among those of the recording, if it is known.
    pub vm: Option<usize>,
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// The name that its VM has, if it is known.
    pub vm_name: Option<Arc<str>>,
    /// Its number in the VM; 0 where that is not known.
    pub number: u32,
    /// Whether filters leave it out.
    pub left_out: bool,
}

/// What a first walk found out.
#[derive(Debug)]
pub struct FirstWalk<'k> {
    machine: &'k Machine,
    seen: SeenEvents,
    unknowable: Arc<[Unknowable]>,
    vms: Vec<Vm>,
    vm_names: Vec<Arc<str>>,
    /// vCPUs by thread id: several where an id was used again, in the order in which they came.
    by_tid: FxHashMap<i32, Vec<VcpuName>>,
    /// Threads of vCPUs whose guests' recordings say what they did.
    reported: FxHashSet<i32>,
    names: &'k AddressNames,
    begin: u64,
    end: u64,
}

impl<'k> FirstWalk<'k> {
    /// Keeps what a walk found out that followed the vCPUs' states. `names` has the names of devices.
    pub fn new(walked: &WalkState<'k>, names: &'k AddressNames) -> FirstWalk<'k> {
        let machine = walked.machine;
        let vms = machine.vms();
        let vm_names = model::vm_names(&vms);
        let vm_names: Vec<Arc<str>> = vm_names.into_iter().map(Arc::from).collect();
        let own_names = vms.iter().map(|vm| vm.name.as_deref().map(Arc::from));
        let own_names: Vec<Option<Arc<str>>> = own_names.collect();
        let mut places: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
        for (at, vm) in vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                places.entry(vcpu.thread).or_insert((at, vcpu.id));
            }
        }
        let mut by_tid: FxHashMap<i32, Vec<VcpuName>> = FxHashMap::default();
        let (mut begin, mut end) = (u64::MAX, 0);
        for vcpu in machine.vcpus() {
            let place = places.get(&vcpu.thread).copied();
            let vm = place.map(|(vm, _)| vm);
            by_tid.entry(vcpu.tid).or_default().push(VcpuName {
                tid: vcpu.tid,
                vm,
                vm_pid: vm.and_then(|vm| vms.get(vm)).and_then(|vm| vm.pid),
                vm_name: vm.and_then(|vm| own_names.get(vm)?.clone()),
                number: place.map_or(0, |(_, number)| number),
                left_out: is_left_out(walked.left_out, vcpu.tid),
            });
            begin = begin.min(vcpu.from);
            end = end.max(vcpu.to);
        }
        FirstWalk {
            machine,
            seen: machine.seen(),
            unknowable: analysis::unknowable(&machine.seen()).into(),
            vms,
            vm_names,
            by_tid,
            reported: FxHashSet::default(),
            names,
            begin: begin.min(end),
            end,
        }
    }

    /// Takes what the walk found of guests whose recordings were walked too.
    pub fn with_guests(mut self, walked: &WalkState<'_>, tasks: &GuestTasks) -> FirstWalk<'k> {
        let tids = walked.machine.vcpus().map(|vcpu| vcpu.tid);
        self.reported = tids
            .filter(|tid| tasks.report(walked, *tid).is_some())
            .collect();
        self
    }

    /// Returns whether a recording says what the guest did on a vCPU, by the vCPU's thread.
    pub(crate) fn guest_reported(&self, tid: i32) -> bool {
        self.reported.contains(&tid)
    }

    /// Returns the machine as the first walk left it: all threads with the last names they had.
    pub(crate) fn machine(&self) -> &'k Machine {
        self.machine
    }

    /// Returns what kinds of events the recording has.
    pub(crate) fn seen(&self) -> &SeenEvents {
        &self.seen
    }

    /// Returns what of the vCPUs' time cannot be known without the events that the recording does not have.
    pub(crate) fn unknowable(&self) -> &Arc<[Unknowable]> {
        &self.unknowable
    }

    /// Returns a VM and what it is called.
    pub(crate) fn vm(&self, at: usize) -> Option<(&Vm, &Arc<str>)> {
        self.vms.get(at).zip(self.vm_names.get(at))
    }

    /// Returns from when until when vCPUs were observed.
    pub(crate) fn observed(&self) -> (u64, u64) {
        (self.begin, self.end)
    }

    /// Returns the state under which the sums of `vcpus` count a span.
    pub(crate) fn state(&self, span: &Span) -> State {
        let waiting = span.cause.reason.is_some_and(ExitReason::is_waiting);
        self.seen.state(span.state, waiting)
    }
}

fn is_left_out(left_out: &LeftOut, tid: i32) -> bool {
    left_out.has(tid)
}

/// The vCPUs of a second walk, by their numbers in its machine, with the names that the first found.
#[derive(Debug, Default)]
pub(crate) struct VcpuNumbers {
    all: BySlot<VcpuName>,
    /// The number of the next vCPU.
    next: u32,
    /// By thread id, which of them is the last.
    by_tid: FxHashMap<i32, u32>,
    /// By thread id, how many there have been since its vCPUs were retired.
    counts: FxHashMap<i32, usize>,
}

impl VcpuNumbers {
    /// Learns of the vCPUs that have come.
    fn learn(&mut self, machine: &Machine, known: &FirstWalk<'_>) {
        for number in self.next..machine.vcpu_numbers() {
            self.next = number + 1;
            // No more is kept of it, and it had no time.
            let Some(tid) = machine.vcpu(number).map(|vcpu| vcpu.tid) else {
                continue;
            };
            let nth = self.counts.entry(tid).or_default();
            let same = known.by_tid.get(&tid);
            let name = same.and_then(|list| list.get(*nth).or(list.last()));
            *nth += 1;
            self.by_tid.insert(tid, number);
            self.all.entry(number, || {
                name.cloned().unwrap_or(VcpuName {
                    tid,
                    vm: None,
                    vm_pid: None,
                    vm_name: None,
                    number: 0,
                    left_out: false,
                })
            });
        }
    }

    /// Forgets vCPUs of which no more is kept.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        for vcpu in retired.vcpus() {
            self.all.remove(vcpu);
        }
        for tid in retired.tids() {
            self.by_tid.remove(&tid);
            self.counts.remove(&tid);
        }
    }

    /// Returns a vCPU by its number in the machine.
    pub(crate) fn at(
        &mut self,
        vcpu: u32,
        machine: &Machine,
        known: &FirstWalk<'_>,
    ) -> Option<&VcpuName> {
        if self.next <= vcpu {
            self.learn(machine, known);
        }
        self.all.get(vcpu)
    }

    /// Returns the vCPU that has a thread id, and its number.
    pub(crate) fn of(
        &mut self,
        tid: i32,
        machine: &Machine,
        known: &FirstWalk<'_>,
    ) -> Option<(u32, &VcpuName)> {
        if !self.by_tid.contains_key(&tid) {
            self.learn(machine, known);
        }
        let at = *self.by_tid.get(&tid)?;
        Some((at, self.all.get(at)?))
    }
}

/// What an access is called.
#[derive(Debug, Clone)]
pub(crate) struct AccessName {
    /// As tables of exits call it.
    pub(crate) key: Arc<str>,
    /// Device and register behind it, where they are known.
    pub(crate) device: Option<Arc<str>>,
}

/// What accesses are called, each name made once.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    all: FxHashMap<GuestAccess, AccessName>,
    last: Option<(GuestAccess, AccessName)>,
}

impl Devices {
    /// Returns what the access behind an exit is called, if there is one.
    pub(crate) fn of(&mut self, cause: &Cause, known: &FirstWalk<'_>) -> Option<&AccessName> {
        let access = cause.access?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != access) {
            let name = self.all.get(&access).cloned();
            let name = name.unwrap_or_else(|| self.made(access, known));
            self.last = Some((access, name));
        }
        self.last.as_ref().map(|(_, name)| name)
    }

    #[cold]
    fn made(&mut self, access: GuestAccess, known: &FirstWalk<'_>) -> AccessName {
        let name = AccessName {
            key: access_key(&access).into(),
            device: analysis::name_access(&access, known.names).map(Arc::from),
        };
        if self.all.len() < MAX_NAMES {
            self.all.insert(access, name.clone());
        }
        name
    }

    /// Returns device and register behind an access, where that is known.
    pub(crate) fn name(&mut self, cause: &Cause, known: &FirstWalk<'_>) -> Option<Arc<str>> {
        self.of(cause, known)?.device.clone()
    }
}
