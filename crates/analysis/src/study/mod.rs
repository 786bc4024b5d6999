//! Several questions answered in one walk over a recording.

mod silence;
mod sink;

use event::{Body, Event, NONE, index_of};
use model::{Span, StateLimits, ThreadFacts};

use crate::analysis::{Analysis, Context, GuestEvent, Notes, States, Turn, WalkState};
use crate::answers::{Answers, FilteredCount};
use crate::chosen::{Chosen, LeftOut, Window};
use crate::handle::{Handle, Seat, SharedAnalysis};
use crate::resume::{Resume, Resumes};
use crate::round::{FollowLevel, FollowedMachine, KindReaders, Round, StudyMember, each};
use crate::series::{Series, SliceMeasure};
use crate::slices::{Amount, SliceCounter, Slices};

use silence::SilenceState;
pub use silence::StudySilence;

/// Analyses, and what they share: the events are walked and decoded once for all.
///
/// Each event goes to those that want its kind, in this order: those whose [`Turn`] is before the machine's, the
/// machine, those after it, the last ones; among equals as they were added.
#[derive(Debug)]
pub struct Study {
    members: Vec<StudyMember>,
    /// The machines that are walked together; there is one at least.
    machines: Vec<FollowedMachine>,
    /// By kind of events, who wants them.
    kinds: Vec<KindReaders>,
    /// How much of everything happened when.
    slices: Option<Slices>,
    /// Moments from which another walk can go on.
    resumes: Resumes,
    /// Where and when events count.
    window: Window,
    /// vCPUs whose events do not.
    left_out: LeftOut,
    /// Whether either of these leaves anything out.
    chooses: bool,
    /// Whether the reader follows that events happen.
    tallied: bool,
    /// What the event now has ended, and what is noted about it.
    spans: Vec<Span>,
    notes: Notes,
    /// Who sits the walk out, and who was added.
    silenced: SilenceState,
    /// How many threads are kept apart.
    limits: StateLimits,
}

impl Default for Study {
    fn default() -> Study {
        Study {
            members: Vec::new(),
            machines: vec![FollowedMachine::default()],
            kinds: Vec::new(),
            slices: None,
            resumes: Resumes::default(),
            window: Window::default(),
            left_out: LeftOut::default(),
            chooses: false,
            tallied: false,
            spans: Vec::new(),
            notes: Notes::default(),
            silenced: SilenceState::default(),
            limits: StateLimits::default(),
        }
    }
}

impl Study {
    /// Adds an analysis. Up to 64 go together.
    pub fn add<A: Analysis>(&mut self, analysis: A) -> Handle<A> {
        self.add_of(0, analysis)
    }

    /// Adds an analysis of one of several machines that are walked together ([`event::EventType::machine`]).
    pub fn add_of<A: Analysis>(&mut self, machine: u16, analysis: A) -> Handle<A> {
        let (handle, seated) = Handle::of(analysis, self.silenced.joins::<A>());
        self.seat(machine, Box::new(seated));
        handle
    }

    /// Adds an analysis that is looked at while the walk goes on.
    pub fn share<A: Analysis>(&mut self, analysis: A) -> SharedAnalysis<A> {
        self.share_of(0, analysis)
    }

    /// Adds one of one of several machines that is looked at while the walk goes on.
    pub fn share_of<A: Analysis>(&mut self, machine: u16, analysis: A) -> SharedAnalysis<A> {
        let shared = SharedAnalysis::new(analysis);
        self.add_of(machine, shared.clone());
        shared
    }

    pub(crate) fn seat(&mut self, machine: u16, analysis: Box<dyn Seat>) {
        let needs = analysis.needs();
        let turn = analysis.turn();
        let member = 1u64.checked_shl(self.members.len() as u32).unwrap_or(0);
        debug_assert_ne!(member, 0, "more analyses than go together");
        let heard = self.silenced.heard(member);
        let followed = self.followed(machine);
        followed.counted |= needs.counts;
        followed.active |= needs.activity;
        followed.vcpus |= needs.vcpus;
        followed.threads |=
            needs.threads || needs.vcpus || needs.task_spans || needs.states > States::Nothing;
        followed.states = followed.states.max(needs.states);
        let no_accesses = followed.states == States::WithoutAccesses;
        followed.machine.ignore_accesses(no_accesses);
        if needs.task_spans {
            followed.machine.task_states_mut().follow();
        }
        if needs.spans {
            followed.spans |= heard;
        }
        if needs.task_spans {
            followed.task_spans |= heard;
        }
        if turn == Turn::Last && !analysis.is_absent() {
            followed.last |= heard;
            self.notes.heard = true;
        }
        self.members.push(StudyMember {
            machine,
            needs,
            turn,
            analysis,
        });
    }

    /// Asks how much of everything that is asked for happened when.
    pub fn slices(self, slices: Slices) -> Study {
        Study {
            slices: Some(slices),
            ..self
        }
    }

    /// Keeps moments from which another study of a timeline alone can go on ([`Study::resume`]), where the recording
    /// has any.
    pub fn resumable(self) -> Study {
        Study {
            resumes: Resumes::new(),
            ..self
        }
    }

    /// Returns whether it finds all that is asked for up to a time even if it goes on at a later moment.
    pub fn may_resume(&self, resume: &Resume, time: u64) -> bool {
        let (now, then) = (self.walked().machine.threads(), resume.machine.threads());
        // Of a thread that is not kept apart any more nobody knows at another moment which it was.
        let retired = [self.walked().machine, &resume.machine].map(|machine| machine.retired());
        if retired.iter().any(|retired| retired.threads > 0) {
            return false;
        }
        let mut members = self.members.iter();
        members.all(|one| one.analysis.may_resume(&resume.open, time, now, then))
    }

    /// Goes on at a moment that another study has kept. Both have to be of the same recording, and prepared alike.
    pub fn resume(&mut self, resume: &Resume) {
        let followed = self.followed(0);
        let before = std::mem::replace(&mut followed.machine, resume.machine.clone());
        for member in &mut self.members {
            let now = resume.machine.threads();
            member.analysis.resume(&resume.open, before.threads(), now);
        }
    }

    /// Looks at a part only: what happens in a window, and what vCPUs do that are not left out. Threads and states are
    /// followed everywhere all the same, since what a vCPU does may be known from any thread's events, and before or
    /// after.
    pub fn choose(self, window: Window, left_out: LeftOut) -> Study {
        Study {
            chooses: !window.is_all() || !left_out.is_empty(),
            window,
            left_out,
            ..self
        }
    }

    /// Returns what is left out.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn followed(&mut self, machine: u16) -> &mut FollowedMachine {
        let at = usize::from(machine);
        if self.machines.len() <= at {
            let limits = self.limits;
            self.machines.resize_with(at + 1, || {
                let mut followed = FollowedMachine::default();
                followed.machine.limit(limits);
                followed
            });
        }
        &mut self.machines[at]
    }

    /// Returns what all analyses share: as much of it as one of them needs.
    pub fn walked(&self) -> WalkState<'_> {
        WalkState {
            machine: &self.machines[0].machine,
            counts: &self.machines[0].counts,
            activity: &self.machines[0].activity,
            latest_ns: self.machines[0].latest_ns,
            window: &self.window,
            left_out: &self.left_out,
        }
    }

    /// Returns the same of one of several machines.
    pub fn walked_of(&self, machine: u16) -> Option<WalkState<'_>> {
        let followed = self.machines.get(usize::from(machine))?;
        Some(WalkState {
            machine: &followed.machine,
            counts: &followed.counts,
            activity: &followed.activity,
            latest_ns: followed.latest_ns,
            window: &self.window,
            left_out: &self.left_out,
        })
    }

    /// Sets how many threads and vCPUs of each machine are kept apart, before any event.
    pub fn limit(&mut self, limits: StateLimits) {
        self.limits = limits;
        for followed in &mut self.machines {
            followed.machine.limit(limits);
        }
    }

    /// Says that the recording's clock counts ticks and no nanoseconds.
    pub fn counts_ticks(&mut self) {
        self.followed(0).machine.counts_ticks();
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl Iterator<Item = (i32, &'n str)>) {
        self.followed(0).machine.saved_names(names);
    }

    /// Says that the recording has no exit and no entry: threads are presumed to be vCPUs by names and facts.
    pub fn presume_vcpus(&mut self) {
        self.followed(0).machine.presume_vcpus();
    }

    /// Takes facts given beside the recording, before its events.
    pub fn add_facts(&mut self, facts: &ThreadFacts) {
        self.followed(0).machine.add_facts(facts);
    }

    /// Says which threads of the host are the vCPUs of a guest that is walked with it, each with the CPU that it is in
    /// the guest.
    pub fn guest_vcpus(&mut self, machine: u16, vcpus: impl IntoIterator<Item = (u32, i32)>) {
        let threads = &mut self.followed(machine).vcpu_threads;
        for (cpu, tid) in vcpus {
            let cpu = index_of(cpu);
            if cpu >= event::MAX_CPUS {
                continue;
            }
            if threads.len() <= cpu {
                threads.resize(cpu + 1, NONE);
            }
            threads[cpu] = tid;
        }
    }

    /// Reports all sums so far.
    fn counters(
        members: &[StudyMember],
        machines: &[FollowedMachine],
        (window, left_out): (&Window, &LeftOut),
        report: &mut dyn FnMut(SliceCounter, Amount),
    ) {
        for ((machine, analysis), of) in leaves(members).into_iter().zip(0u8..) {
            let Some(followed) = machines.get(usize::from(machine)) else {
                continue;
            };
            let walked = WalkState {
                machine: &followed.machine,
                counts: &followed.counts,
                activity: &followed.activity,
                latest_ns: followed.latest_ns,
                window,
                left_out,
            };
            analysis.counters(&walked, &mut |part, number, amount| {
                report(SliceCounter { of, part, number }, amount);
            });
        }
    }

    /// Hands an event of a guest to the host's analyses.
    fn of_guest(&mut self, event: &Event<'_>, chosen: Chosen) {
        let threads = self.machines.get(usize::from(event.machine()));
        let cpu = usize::try_from(event.cpu).ok();
        let tid = threads
            .zip(cpu)
            .and_then(|(of, cpu)| of.vcpu_threads.get(cpu))
            .copied();
        let (Some(kind), Some(host)) = (
            self.kinds.get(index_of(event.ty.index)),
            self.machines.first_mut(),
        ) else {
            return;
        };
        let guest = GuestEvent {
            event,
            data: &event.data(),
            vcpu_tid: tid.filter(|tid| *tid != NONE),
        };
        let mut round = Round {
            members: &mut self.members,
            followed: host,
            window: &self.window,
            left_out: &self.left_out,
            notes: &mut self.notes,
            spans: &mut self.spans,
        };
        round.of_guest(&guest, kind, chosen);
    }

    /// Whether it matters of each event when it happened and whose it is: whether it is left out, and in which slice.
    #[inline(always)]
    fn looks_at_each(&self) -> bool {
        self.chooses || self.slices.is_some()
    }

    /// Takes an event that may be left out, or begin a slice.
    #[inline(never)]
    fn choose_event(&mut self, event: &Event<'_>) {
        let chosen = match self.chooses {
            true => Chosen::of(event, &self.window, &self.left_out),
            false => Chosen::ALL,
        };
        // The host's clock goes on by the host's events alone: slices of a host are the same with its guests and
        // without.
        if chosen.inside
            && event.machine() == 0
            && let Some(slices) = &mut self.slices
            && slices.is_due(event.time)
        {
            self.cut(event.time);
        }
        let kind = self.kinds.get_mut(index_of(event.ty.index));
        let followed = self.machines.get_mut(usize::from(event.machine()));
        let (Some(kind), Some(followed)) = (kind, followed) else {
            return;
        };
        kind.outside += u64::from(!chosen.inside);
        kind.left_out += u64::from(chosen.inside && !chosen.counts);
        if followed.counted {
            followed.counts.take(event, chosen);
        }
        if followed.active {
            let sampled = matches!(event.body, Body::None);
            let place = (event.cpu, event.tid);
            followed.activity.happened(event.time, place, sampled);
        }
        if kind.goes_round {
            self.round(event, chosen);
        }
    }

    /// Hands an event to all that look at it.
    #[inline(always)]
    fn round(&mut self, event: &Event<'_>, chosen: Chosen) {
        let kind = self.kinds.get(index_of(event.ty.index));
        let followed = self.machines.get_mut(usize::from(event.machine()));
        let (Some(kind), Some(followed)) = (kind, followed) else {
            return;
        };
        followed.latest_ns = Some(event.time);
        let mut round = Round {
            members: &mut self.members,
            followed,
            window: &self.window,
            left_out: &self.left_out,
            notes: &mut self.notes,
            spans: &mut self.spans,
        };
        if kind.is_read() || kind.follows != FollowLevel::Nothing {
            round.read(event, kind, chosen);
        }
        if kind.heads != 0 {
            round.heads(event, kind, chosen);
        }
        if kind.of_guest != 0 {
            self.of_guest(event, chosen);
        }
        if self
            .machines
            .get(usize::from(event.machine()))
            .is_some_and(FollowedMachine::is_full)
        {
            self.retire(event.machine(), event.time);
        }
    }

    /// Makes threads part of sums, since there are as many as are kept apart.
    #[cold]
    fn retire(&mut self, machine: u16, now: u64) {
        let Some(followed) = self.machines.get_mut(usize::from(machine)) else {
            return;
        };
        let retired = followed.machine.choose_retired(&followed.handles, now);
        if followed.states > States::Nothing {
            let readers = followed.spans;
            let context = followed.without_event(&self.window, &self.left_out, &mut self.notes);
            context.machine.finish_retired(&retired, &mut self.spans);
            each(&mut self.members, readers, |one| {
                one.spans(&self.spans, &context)
            });
            self.spans.clear();
        }
        for member in self.members.iter_mut().filter(|one| one.machine == machine) {
            member.analysis.retire(&retired, &followed.machine);
        }
        if let Some(slices) = &mut self.slices {
            let all = leaves(&self.members);
            slices.retire(|counter| match all.get(usize::from(counter.of)) {
                Some((of, analysis)) if *of == machine => {
                    let number = analysis.counted_by(counter.part, counter.number, &retired);
                    SliceCounter { number, ..counter }
                }
                _ => counter,
            });
        }
        for tid in retired.tids() {
            followed.handles.remove(tid);
        }
        followed.machine.retire(&retired);
    }

    #[cold]
    fn cut(&mut self, time: u64) {
        if let Some(slices) = &mut self.slices {
            slices.cut(time, |report| {
                let chosen = (&self.window, &self.left_out);
                Study::counters(&self.members, &self.machines, chosen, report);
            });
        }
    }

    /// Returns what was counted by slice up to the last event that was asked for.
    fn series(&mut self) -> Series {
        let Some(slices) = self.slices.take() else {
            return Series::default();
        };
        let end = self.walked().counts.span().map_or(0, |(_, end)| end);
        let slices = slices.finish(end, |report| {
            let chosen = (&self.window, &self.left_out);
            Study::counters(&self.members, &self.machines, chosen, report);
        });
        Series::of(slices, |counter| self.measured(counter))
    }

    /// Returns what a sum is of.
    fn measured(&self, counter: SliceCounter) -> Option<SliceMeasure> {
        let all = leaves(&self.members);
        let (machine, analysis) = all.get(usize::from(counter.of))?;
        let walked = self.walked_of(*machine)?;
        analysis.measured(counter.part, counter.number, &walked)
    }

    /// Ends the walk, and gives analyses back to their handles. Shared ones stay to be looked at, with
    /// [`Study::walked`].
    pub fn finish(&mut self) -> Answers {
        for number in 0..self.machines.len() {
            self.finish_machine(number);
        }
        let series = self.series();
        let passed_over = self.kinds.iter().map(|kind| FilteredCount {
            kind: kind.kind,
            outside: kind.outside,
            left_out: kind.left_out,
        });
        let passed_over = passed_over.collect();
        let mut answers = Answers::new(
            std::mem::take(&mut self.resumes).taken(),
            series,
            passed_over,
        );
        for (machine, analysis) in leaves(&self.members) {
            if let Some(walked) = self.walked_of(machine) {
                answers.ask(machine, analysis, &walked);
            }
        }
        for (followed, machine) in self.machines.iter().zip(0u16..) {
            answers.say_retired(machine, &followed.machine);
        }
        for member in std::mem::take(&mut self.members) {
            member.analysis.give_back();
        }
        answers
    }

    fn finish_machine(&mut self, number: usize) {
        let Some(followed) = self.machines.get_mut(number) else {
            return;
        };
        let (states, readers) = (followed.states, followed.spans);
        let mut context = followed.without_event(&self.window, &self.left_out, &mut self.notes);
        let end = |members: &mut [StudyMember], turn: Turn, context: &mut Context<'_>| {
            let of_machine = |one: &&mut StudyMember| usize::from(one.machine) == number;
            let members = members.iter_mut().filter(of_machine);
            for member in members.filter(|one| one.turn == turn) {
                member.analysis.finish(context);
            }
        };
        end(&mut self.members, Turn::Before, &mut context);
        if states > States::Nothing {
            context.machine.finish(&mut self.spans);
            each(&mut self.members, readers, |one| {
                one.spans(&self.spans, &context)
            });
            self.spans.clear();
        }
        end(&mut self.members, Turn::After, &mut context);
        end(&mut self.members, Turn::Last, &mut context);
        self.notes.clear();
    }
}

/// Returns the analyses of all members, each with its machine.
fn leaves(members: &[StudyMember]) -> Vec<(u16, &dyn Analysis)> {
    let mut all = Vec::new();
    for member in members {
        let mut list = Vec::new();
        member.analysis.leaves(&mut list);
        all.extend(list.into_iter().map(|one| (member.machine, one)));
    }
    all
}
