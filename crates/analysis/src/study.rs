//! Several questions answered in one walk over a recording.

use std::ops::ControlFlow;

use event::{Body, Event, EventOrder, EventType, Kind, NONE, ResumePlace, Side, Sink, index_of};
use model::{Span, ThreadFacts};

use crate::analysis::{Analysis, Context, EventDetail, GuestEvent, Notes, States, Turn, WalkState};
use crate::answers::{Answers, FilteredCount};
use crate::chosen::{Chosen, LeftOut, Window};
use crate::handle::{Handle, Seat, SharedAnalysis};
use crate::resume::{Resume, Resumes};
use crate::round::{FollowLevel, FollowedMachine, KindReaders, Round, StudyMember, each};
use crate::series::{Series, SliceMeasure};
use crate::slices::{Amount, SliceCounter, Slices};

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
    /// What the event now has ended, and what is noted about it.
    spans: Vec<Span>,
    notes: Notes,
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
            spans: Vec::new(),
            notes: Notes::default(),
        }
    }
}

impl Study {
    /// Adds an analysis. Up to 64 go together.
    pub fn add<A: Analysis>(&mut self, analysis: A) -> Handle<A> {
        self.add_of(0, analysis)
    }

    /// Adds an analysis of one of several machines that are walked together ([`EventType::machine`]).
    pub fn add_of<A: Analysis>(&mut self, machine: u16, analysis: A) -> Handle<A> {
        let (handle, seated) = Handle::of(analysis);
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

    fn seat(&mut self, machine: u16, analysis: Box<dyn Seat>) {
        let needs = analysis.needs();
        let turn = analysis.turn();
        let member = 1u64.checked_shl(self.members.len() as u32).unwrap_or(0);
        debug_assert_ne!(member, 0, "more analyses than go together");
        let followed = self.followed(machine);
        followed.counted |= needs.counts;
        followed.active |= needs.activity;
        followed.vcpus |= needs.vcpus;
        followed.threads |=
            needs.threads || needs.vcpus || needs.task_spans || needs.states > States::Nothing;
        followed.states = followed.states.max(needs.states);
        let no_accesses = followed.states == States::WithoutAccesses;
        followed.machine.ignore_accesses(no_accesses);
        if needs.spans {
            followed.spans |= member;
        }
        if needs.task_spans {
            followed.task_spans |= member;
            followed.machine.task_states_mut().follow();
        }
        if turn == Turn::Last {
            followed.last |= member;
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
            self.machines.resize_with(at + 1, FollowedMachine::default);
        }
        &mut self.machines[at]
    }

    /// Returns what all analyses share: as much of it as one of them needs.
    pub fn walked(&self) -> WalkState<'_> {
        WalkState {
            machine: &self.machines[0].machine,
            counts: &self.machines[0].counts,
            activity: &self.machines[0].activity,
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
            window: &self.window,
            left_out: &self.left_out,
        })
    }

    /// Says that the recording's clock counts ticks and no nanoseconds.
    pub fn counts_ticks(&mut self) {
        self.followed(0).machine.counts_ticks();
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl Iterator<Item = (i32, &'n str)>) {
        self.followed(0).machine.saved_names(names);
    }

    /// Says that the recording has no event of KVM: threads are presumed to be vCPUs by names and facts.
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
        for (member, of) in members.iter().zip(0u8..) {
            let Some(followed) = machines.get(usize::from(member.machine)) else {
                continue;
            };
            let walked = WalkState {
                machine: &followed.machine,
                counts: &followed.counts,
                activity: &followed.activity,
                window,
                left_out,
            };
            member
                .analysis
                .counters(&walked, &mut |part, number, amount| {
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
        Series::of(&slices, |counter| self.measured(counter))
    }

    /// Returns what a sum is of.
    fn measured(&self, counter: SliceCounter) -> Option<SliceMeasure> {
        let member = self.members.get(usize::from(counter.of))?;
        let walked = self.walked_of(member.machine)?;
        member
            .analysis
            .measured(counter.part, counter.number, &walked)
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
        for member in &self.members {
            let Some(walked) = self.walked_of(member.machine) else {
                continue;
            };
            answers.ask(member.machine, member.analysis.as_ref(), &walked);
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
        let mut context = Context {
            machine: &mut followed.machine,
            activity: &followed.activity,
            chosen: Chosen::default(),
            window: &self.window,
            left_out: &self.left_out,
            notes: &mut self.notes,
        };
        let end = |members: &mut [StudyMember], turn: Turn, context: &mut Context<'_>| {
            let of_machine = |one: &&mut StudyMember| usize::from(one.machine) == number;
            let members = members.iter_mut().filter(of_machine);
            for member in members.filter(|one| one.turn == turn) {
                member.analysis.finish(context);
            }
        };
        end(&mut self.members, Turn::Before, &mut context);
        if followed.states > States::Nothing {
            context.machine.finish(&mut self.spans);
            each(&mut self.members, followed.spans, |one| {
                one.spans(&self.spans, &context);
            });
            self.spans.clear();
        }
        end(&mut self.members, Turn::After, &mut context);
        end(&mut self.members, Turn::Last, &mut context);
        self.notes.clear();
    }
}

impl Sink for Study {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let mut wanted = KindReaders {
            kind: ty.kind,
            order: EventOrder::Any,
            ..KindReaders::default()
        };
        let mut any = false;
        let of_machine = self.members.iter_mut().zip(0u32..);
        for (member, number) in of_machine.filter(|(one, _)| one.machine == ty.machine) {
            let member_set = 1u64.checked_shl(number).unwrap_or(0);
            let want = member.analysis.wants(ty);
            wanted.order = wanted.order.max(want.order());
            let set = match (want, member.turn) {
                (EventDetail::Nothing, _) => continue,
                (EventDetail::Count, _) => {
                    any = true;
                    continue;
                }
                (EventDetail::Head, _) => &mut wanted.heads,
                (EventDetail::Thread | EventDetail::Order, Turn::Before) => &mut wanted.before,
                (EventDetail::Thread | EventDetail::Order, Turn::After) => &mut wanted.after,
                (EventDetail::Thread | EventDetail::Order, Turn::Last) => &mut wanted.last,
            };
            *set |= member_set;
        }
        if ty.machine != 0 {
            for (member, number) in self.members.iter_mut().zip(0u32..) {
                if member.machine == 0 && member.analysis.wants_of_guest(ty) {
                    wanted.of_guest |= 1u64.checked_shl(number).unwrap_or(0);
                    wanted.order = EventOrder::Time;
                }
            }
        }
        any |= wanted.is_read() || (wanted.heads | wanted.of_guest) != 0;
        let followed = self.followed(ty.machine);
        if followed.active {
            any = true;
            wanted.order = EventOrder::Time;
        }
        let of_threads = ty.kind.is_sched() || matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit);
        if followed.states > States::Nothing && followed.machine.wants(ty) {
            wanted.follows = FollowLevel::States;
        } else if followed.threads
            && of_threads
            && (any || followed.vcpus || followed.task_spans != 0 && ty.kind.is_sched())
        {
            followed.machine.announced(ty);
            wanted.follows = FollowLevel::Threads;
        }
        if wanted.follows != FollowLevel::Nothing {
            // Events of the scheduler are about other threads than the one that makes them.
            let order = match ty.kind.is_sched() {
                true => EventOrder::Time,
                false => EventOrder::Thread,
            };
            wanted.order = wanted.order.max(order);
        }
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, KindReaders::default());
        }
        self.kinds[index] = wanted;
        let sliced = self.slices.is_some() && ty.machine == 0;
        any || wanted.follows != FollowLevel::Nothing || sliced
    }

    fn order(&self, ty: &EventType<'_>) -> EventOrder {
        // What one analysis notes of an event others hear with it, and slices are cut at a time.
        let at_once = self.notes.heard || self.slices.is_some();
        match self.kinds.get(index_of(ty.index)) {
            Some(kind) if !at_once => kind.order,
            _ => EventOrder::Time,
        }
    }

    fn wants_samples(&self) -> bool {
        self.members.iter().any(|member| member.needs.samples)
    }

    fn places(&self) -> bool {
        self.resumes.are_kept()
    }

    fn place(&mut self, place: &ResumePlace) {
        let mut resumes = std::mem::take(&mut self.resumes);
        if self.machines.len() == 1 {
            // One analysis alone has something under way that another walk takes up.
            let open = || {
                self.members
                    .iter()
                    .find_map(|one| one.analysis.open_lanes())
            };
            resumes.add(place, &self.machines[0].machine, open);
        }
        self.resumes = resumes;
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
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
            return ControlFlow::Continue(());
        };
        if self.chooses {
            kind.outside += u64::from(!chosen.inside);
            kind.left_out += u64::from(chosen.inside && !chosen.counts);
        }
        if followed.counted {
            followed.counts.take(event, chosen);
        }
        if followed.active {
            let sampled = matches!(event.body, Body::None);
            let Event { time, cpu, tid, .. } = *event;
            followed.activity.take(time, cpu, tid, sampled);
        }
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
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.side_of(0, side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        for member in &mut self.members {
            if member.machine == machine {
                member.analysis.side(side);
            } else if member.machine == 0 {
                member.analysis.guest_side(machine, side);
            }
        }
        let followed = self.followed(machine);
        followed.activity.side(side);
        followed.machine.side(side);
    }
}
