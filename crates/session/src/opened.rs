//! A recording with its filters ready, to be walked.

use std::cell::OnceCell;
use std::collections::HashSet;

use analysis::{FilterScope, RecordingContents, Study};
use binaries::Binaries;
use cpuset::NumaNode;
use doubts::{AnswerScope, Concerns, DoubtKind, Doubts};
use event::{NONE, Side, Sink};
use model::{ThreadFacts, Vm};
use paths::{PathReport, Paths};
use source::{RecordingHeader, RecordingReader, TimeStampUnit, WalkOutcome};
use symbols::{KernelFile, KernelFunctions, UserUnwinder};

use crate::holds::GuestSwitches;
use crate::kernel_names::{self, FoundSymbols};
use crate::user_functions::BuildIds;
use crate::user_stacks::UserStacks;
use crate::window::{FilterPasses, FilterSink};
use crate::{Error, Session, UserFunctions};

/// A recording, with the session's filters ready for it.
#[derive(Debug)]
pub struct OpenRecording<'s> {
    pub(crate) session: &'s Session,
    name: &'s str,
    reader: RecordingReader<'s>,
    /// The time asked for, on the recording's clock.
    pub(crate) time: Option<(u64, u64)>,
    /// Threads of the VM or vCPU that was asked for.
    pub(crate) threads: Option<Vec<i32>>,
    /// Threads that facts give to the process that was asked for.
    pub(crate) of_process: HashSet<i32>,
    known: ThreadFacts,
    /// The recording's VMs; looked for when they are needed.
    vms: OnceCell<Vec<Vm>>,
    /// Whether it has no exit and no entry; found out when it is needed.
    presumes: OnceCell<bool>,
    /// Symbols of its kernel that stand neither in it nor in a file that was given; looked for when they are needed.
    found_symbols: OnceCell<Option<FoundSymbols>>,
}

impl<'s> OpenRecording<'s> {
    /// Makes the session's filters ready. Those by VM and vCPU need to know whose threads are whose, which costs a
    /// walk.
    pub(crate) fn new(
        session: &'s Session,
        name: &'s str,
        reader: RecordingReader<'s>,
    ) -> Result<OpenRecording<'s>, Error> {
        let filters = &session.options().filters;
        let facts = session.host_facts();
        let time = filters.time.as_ref();
        let time = time.map(|time| time.stamps(reader.header(), name));
        let time = time.transpose().map_err(|error| Error::Time {
            name: name.to_owned(),
            error,
        })?;
        let of_process = filters.pid.map(|pid| facts.threads_of(pid));
        let mut opened = OpenRecording {
            session,
            name,
            time,
            threads: None,
            of_process: of_process.unwrap_or_default(),
            known: facts.of(&reader),
            vms: OnceCell::new(),
            presumes: OnceCell::new(),
            found_symbols: OnceCell::new(),
            reader,
        };
        opened.threads = opened.chosen_threads()?;
        Ok(opened)
    }

    /// Returns the recording's name, as it was given.
    pub fn name(&self) -> &'s str {
        self.name
    }

    /// Returns the recording itself.
    pub fn reader(&self) -> &RecordingReader<'s> {
        &self.reader
    }

    /// Returns what it says of itself.
    pub fn header(&self) -> &RecordingHeader {
        self.reader.header()
    }

    /// Returns whether its times are nanoseconds.
    pub fn nanoseconds(&self) -> bool {
        self.header().time_unit == TimeStampUnit::Nanoseconds
    }

    /// Returns what is known of its threads beside its events.
    pub fn thread_facts(&self) -> &ThreadFacts {
        &self.known
    }

    /// Returns the thread names it saved apart from its events.
    pub fn saved_names(&self) -> impl Iterator<Item = (i32, &str)> + Clone {
        let formats = self.reader.formats().into_iter();
        formats.flat_map(|f| f.cmdlines.iter().map(|(tid, name)| (*tid, name.as_str())))
    }

    /// Hands those names to a sink that prints events, as it takes them from a recording.
    pub fn hand_saved_names(&self, sink: &mut dyn Sink) {
        for (tid, comm) in self.saved_names() {
            sink.side(&Side::Comm {
                time: 0,
                pid: NONE,
                tid,
                comm,
                exec: false,
            });
        }
    }

    /// Returns its VMs, as an own walk finds them.
    pub fn vms(&self) -> &[Vm] {
        self.vms.get_or_init(|| {
            let mut study = Study::default();
            study.limit(self.session.options.limits);
            study.add(RecordingContents::vcpus_only());
            study.saved_names(self.saved_names());
            study.add_facts(&self.known);
            if self.presumes_vcpus() {
                study.presume_vcpus();
            }
            self.reader.walk(&mut study);
            study.walked().machine.vms()
        })
    }

    /// Returns its VMs if they were looked for.
    pub(crate) fn found_vms(&self) -> Option<&[Vm]> {
        self.vms.get().map(Vec::as_slice)
    }

    /// Gives a study what is known beside the recording's events: names of threads, facts, and what its clock counts;
    /// and how many threads it keeps apart.
    pub fn prepare(&self, study: &mut Study) {
        study.limit(self.session.options.limits);
        study.saved_names(self.saved_names());
        study.add_facts(&self.known);
        if self.presumes_vcpus() {
            study.presume_vcpus();
        }
        if !self.nanoseconds() {
            study.counts_ticks();
        }
    }

    /// Returns whether vCPUs can be known by names and facts alone: there is not one exit or entry, as in
    /// recordings of the scheduler alone, and of hosts whose KVM makes no such events (PVM). That takes a walk up to
    /// the first of them.
    fn presumes_vcpus(&self) -> bool {
        *self.presumes.get_or_init(|| {
            let mut events = GuestSwitches::default();
            self.reader.walk(&mut events);
            !events.found
        })
    }

    /// Returns the machine's NUMA nodes: by the facts given, else by the recording.
    pub fn nodes(&self) -> Vec<NumaNode> {
        let facts = self.session.facts.all().host.as_ref();
        let nodes: Vec<NumaNode> = facts
            .iter()
            .flat_map(|host| &host.nodes)
            .map(NumaNode::from)
            .collect();
        match nodes.is_empty() {
            true => self.header().nodes.clone(),
            false => nodes,
        }
    }

    /// Gives paths the machine's NUMA nodes, and the addresses of the functions that they ask for, for the function
    /// tracer's events.
    pub fn locate(&self, paths: &mut Paths) {
        paths.nodes(&self.nodes());
        let Some(formats) = self.reader.formats() else {
            return;
        };
        for function in paths.functions() {
            if let Some(range) = formats.kallsyms.range(&function) {
                paths.function_at(&function, range);
            }
        }
    }

    /// Completes what was found of paths by what recording cost, and leaves out those for which nobody asked and of
    /// which there is nothing.
    pub fn complete_paths(&self, reports: &mut Vec<PathReport>) {
        let cost = self.header().cost;
        paths::complete_reports(reports, cost.map(|cost| cost.per_event_ns()));
        reports.retain(PathReport::is_listed);
    }

    /// Returns the kernel's functions: by the recording's own symbols, or else those given beside it, or else those
    /// that are found by the kernel's build id.
    pub fn functions(&self) -> KernelFunctions<'_> {
        let own = self.reader.formats().map(|formats| &formats.kallsyms);
        let found = || self.found_symbols().map(|found| &found.symbols);
        KernelFunctions::new(own, self.session.kallsyms.as_ref().or_else(found))
    }

    /// Returns the symbols of the kernel that are found by its build id. They are looked for where there are no others.
    fn found_symbols(&self) -> Option<&FoundSymbols> {
        let found = self.found_symbols.get_or_init(|| {
            let own = self.reader.formats();
            let named = own.is_some_and(|formats| formats.kallsyms.has_addresses());
            if named || self.session.kallsyms.is_some() {
                return None;
            }
            kernel_names::find(&self.reader, &self.session.options().kernels)
        });
        found.as_ref()
    }

    /// Returns from where names of the kernel's functions are, if it is neither the recording nor a file that was
    /// given.
    pub fn naming_doubts(&self) -> Doubts {
        let mut doubts = Doubts::default();
        if let Some(Some(found)) = self.found_symbols.get() {
            doubts.raise(DoubtKind::KernelNamedHere {
                origin: found.origin,
            });
        }
        doubts
    }

    /// Returns the functions of guests' kernels: by the symbols given beside the recording, since it has none of them.
    pub fn guest_functions(&self) -> KernelFunctions<'_> {
        let given = KernelFunctions::new(None, self.session.guest_kallsyms.as_ref());
        given.with_modules(&self.session.guest_modules)
    }

    /// Returns the kernels and modules that the recording has build ids of.
    pub fn kernel_files(&self) -> Vec<KernelFile<'_>> {
        let perf = self.reader.perf_data().into_iter();
        let ids = perf.flat_map(|perf| &perf.info().build_ids);
        ids.filter(|id| id.kernel)
            .map(|id| KernelFile {
                path: &id.path,
                guest: id.guest,
            })
            .collect()
    }

    /// Returns what names functions of user space, by the build ids that the recording has of its files.
    pub fn user_functions(&self) -> UserFunctions {
        UserFunctions::new(self.binaries(), self.build_ids())
    }

    /// Returns what makes stacks of user space of registers and of what was on the stack; `None` on machines that it
    /// does not know.
    pub fn user_stacks(&self) -> Option<Box<dyn UserUnwinder>> {
        let aarch64 = match self.header().arch.as_deref() {
            Some("aarch64" | "arm64") => true,
            Some("x86_64") => false,
            _ => return None,
        };
        let stacks = UserStacks::new(self.binaries(), self.build_ids(), aarch64);
        Some(Box::new(stacks))
    }

    fn binaries(&self) -> Binaries {
        Binaries::new(self.session.options().binaries.clone())
    }

    fn build_ids(&self) -> BuildIds {
        let perf = self.reader.perf_data().into_iter();
        let ids = perf.flat_map(|perf| &perf.info().build_ids);
        let user = ids.filter(|id| !id.kernel && !id.guest);
        BuildIds::new(user.map(|id| (id.path.as_bytes(), &id.id[..])))
    }

    /// Walks a sink over all events. What has to be known of the recording is limited to what the filters choose.
    pub fn walk(&self, sink: &mut dyn Sink) -> WalkOutcome {
        self.limited(self.reader.walk(sink))
    }

    /// Returns what a walk leaves behind without losses and doubts about other CPUs, threads and times than the
    /// filters choose.
    pub(crate) fn limited(&self, mut outcome: WalkOutcome) -> WalkOutcome {
        outcome.quality.limit(&self.chosen(Concerns::everything()));
        outcome
    }

    /// Returns an answer of some kinds of numbers about what the filters choose.
    pub(crate) fn chosen(&self, concerns: Concerns) -> AnswerScope {
        let cpus = self.session.options().filters.cpus.as_ref();
        AnswerScope {
            concerns,
            threads: self.threads.clone(),
            cpus: cpus.map(|cpus| cpus.ranges().to_vec()),
            time: self.time,
        }
    }

    /// Walks a sink over the events that the filters let through.
    pub fn walk_filtered(&self, sink: &mut dyn Sink, scope: FilterScope) -> WalkOutcome {
        self.filtered(sink, scope, |sink| self.walk(sink)).0
    }

    /// Puts the filters before a sink that is walked. Returns how many events passed them too, where there are any.
    pub(crate) fn filtered<R>(
        &self,
        sink: &mut dyn Sink,
        scope: FilterScope,
        walk: impl FnOnce(&mut dyn Sink) -> R,
    ) -> (R, Option<FilterPasses>) {
        let filters = &self.session.options().filters;
        let cpus = filters
            .cpus
            .as_ref()
            .filter(|_| scope <= FilterScope::Window);
        let time = self.time.filter(|_| scope <= FilterScope::Time);
        let filtered = FilterSink::window(&mut *sink, time, cpus, &self.of_process);
        let mut filtered = match scope {
            FilterScope::Events => filtered.of(filters.pid, self.threads.as_deref()),
            _ => filtered,
        };
        if filtered.is_idle() {
            return (walk(sink), None);
        }
        let walked = walk(&mut filtered);
        (walked, Some(filtered.passed()))
    }
}
