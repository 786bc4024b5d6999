//! How questions are put to a recording: analyses are added, and the recording is walked once with its guests and
//! filters. The answers come back with what has to be known before they are believed.

use analysis::{
    AccountScope, AccountedEvents, Analysis, AnalysisTuple, Answers, Continuity, EventAccount,
    FilterScope, GuestTasks, Handle, InsideEvents, LeftOut, SharedAnalysis, Slices, Study,
    StudySilence, WalkState,
};
use doubts::{AnswerScope, Concern, Concerns, Doubt, DoubtKind, Doubts};
use event::{EventAccounting, Kind, Quality, Sink};
use source::WalkOutcome;

use crate::doubted_clock;
use crate::window::FilterPasses;
use crate::{Guest, GuestClock, GuestPairing, OpenRecording};

/// A walk over a recording that is being put together.
///
/// ```no_run
/// use analysis::{ExitOptions, Exits};
/// use session::{GuestPairing, Session};
///
/// # fn exits(session: &Session) -> Result<(), session::Error> {
/// let input = session.input("perf.data".as_ref())?;
/// let (recording, paired) = (input.recording()?, GuestPairing::default());
/// let mut question = recording.question(&paired);
/// let exits = question.add(Exits::new(ExitOptions::default()));
/// let answers = question.walk();
/// for report in answers.take(exits).reports(answers.walked().machine) {
///     println!("{} exits", report.total_count);
/// }
/// for doubt in &answers.quality.doubts {
///     println!("{}: {}", doubt.id(), doubt.text());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RecordingQuestion<'q> {
    opened: &'q OpenRecording<'q>,
    paired: &'q GuestPairing<'q>,
    study: Study,
    /// Which filters may take events away: what all analyses can do with.
    scope: Option<FilterScope>,
    concerns: Concerns,
    /// Whether vCPUs that filters do not choose are looked at all the same.
    all_threads: bool,
    /// The kinds of numbers that are shown, where they are fewer than analyses make.
    only: Option<Concerns>,
    has_continuity: bool,
    inside: Option<Handle<InsideEvents>>,
    tasks: Option<SharedAnalysis<GuestTasks>>,
}

/// What a walk found, and what has to be known before it is believed.
#[derive(Debug)]
pub struct RecordingAnswers {
    answers: Answers,
    study: Study,
    /// How guests' events lie in their vCPUs' time in the guest, by machine; empty where no guest is walked.
    inside: Option<InsideEvents>,
    /// What the recordings miss, and all doubts that touch the numbers.
    pub quality: Quality,
}

/// Events that are held against what analyses have counted.
struct EventBalance<'t> {
    outcome: &'t WalkOutcome,
    passed: Option<&'t FilterPasses>,
}

impl OpenRecording<'_> {
    /// Begins a question to the recording and to those of its guests.
    pub fn question<'q>(&'q self, paired: &'q GuestPairing<'q>) -> RecordingQuestion<'q> {
        RecordingQuestion {
            opened: self,
            paired,
            study: Study::default(),
            scope: None,
            concerns: Concerns::of(&[Concern::Host, Concern::Guests]),
            all_threads: false,
            only: None,
            has_continuity: false,
            inside: None,
            tasks: None,
        }
    }
}

impl<'q> RecordingQuestion<'q> {
    /// Adds an analysis.
    pub fn add<A: Analysis>(&mut self, analysis: A) -> Handle<A> {
        self.note(&analysis);
        self.study.add(analysis)
    }

    /// Adds several analyses of one turn, which are called together ([`Study::add_together`]).
    pub fn add_together<T: AnalysisTuple>(&mut self, analyses: T) -> T::Handles {
        analyses.each(&mut |one| self.note(one));
        self.study.add_together(analyses)
    }

    /// Adds an analysis that is looked at while the walk goes on.
    pub fn share<A: Analysis>(&mut self, analysis: A) -> SharedAnalysis<A> {
        self.note(&analysis);
        self.study.share(analysis)
    }

    /// Adds what guests did, where their recordings are walked, and says of those that do not show it that they do not.
    pub fn share_guest_tasks(&mut self, tasks: GuestTasks) -> Option<SharedAnalysis<GuestTasks>> {
        if self.paired.guests.is_empty() {
            return None;
        }
        let tasks = self.share(tasks);
        self.tasks = Some(tasks.clone());
        Some(tasks)
    }

    fn note(&mut self, analysis: &dyn Analysis) {
        self.scope = self.scope.max(analysis.filter_scope());
        self.concerns = self.concerns.and(analysis.concerns());
    }

    /// Says that more kinds of numbers are shown than analyses say.
    pub fn showing(&mut self, concern: Concern) {
        self.concerns = self.concerns.with(concern);
    }

    /// Looks at all threads, whatever vCPUs filters choose: rows are chosen among what was found.
    pub fn all_threads(&mut self) {
        self.all_threads = true;
    }

    /// Asks how well guests fit alone: filters by thread and CPU leave nothing out.
    pub fn guests_alone(&mut self) {
        self.scope = self.scope.max(Some(FilterScope::Time));
    }

    /// Shows these kinds of numbers and no others, whatever analyses make.
    pub fn showing_only(&mut self, concerns: Concerns) {
        self.only = Some(concerns);
    }

    /// Has analyses sit the walk out, of those that are added from now on.
    pub(crate) fn silence(&mut self, silence: StudySilence) {
        self.study = std::mem::take(&mut self.study).silence(silence);
    }

    /// Returns the names of the analyses that were added, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.study.names()
    }

    /// Asks how much of everything happened when.
    pub fn slices(&mut self) {
        self.study = std::mem::take(&mut self.study).slices(Slices::new());
    }

    /// Keeps moments from which a second walk can go on.
    pub fn resumable(&mut self) {
        self.study = std::mem::take(&mut self.study).resumable();
    }

    /// Returns whether what it shows is made of times between events, so that a missing event counts.
    fn rests_on_turns(&self) -> bool {
        let times = [Concern::Exits, Concern::States, Concern::Paths];
        times.iter().any(|one| self.concerns.has(*one))
    }

    /// Returns which filters take events away before analyses see them.
    fn scope(&self) -> FilterScope {
        self.scope.unwrap_or(FilterScope::Events)
    }

    /// Adds what is asked of every recording, and makes the study ready to be walked.
    fn ready(&mut self) {
        if self.rests_on_turns() && !self.has_continuity {
            self.add_continuity();
        }
        // How well a guest fits is seen in all that its host saw of it, whatever is asked for.
        let whole =
            self.scope() >= FilterScope::Time || !self.opened.session.options().filters.any();
        if !self.paired.guests.is_empty() && whole {
            self.inside = Some(self.study.add(InsideEvents::new()));
        }
        let guests = &self.paired.guests;
        self.opened.prepare_with(&mut self.study, guests);
        let left_out = match self.all_threads {
            true => LeftOut::default(),
            false => self.opened.left_out(),
        };
        self.study = std::mem::take(&mut self.study).choose(self.opened.window(), left_out);
    }

    /// Returns the guests whose recordings are walked too.
    pub fn guests(&self) -> &'q [Guest<'q>] {
        &self.paired.guests
    }

    /// Adds whether events are missing that come in turns, for who shows it; `None` where a filter hides what it
    /// looks at. It is asked in any case where numbers rest on it.
    pub fn add_continuity(&mut self) -> Option<Handle<Continuity>> {
        // What a filter by CPU takes away is missing by the user's own wish.
        let filters = &self.opened.session.options().filters;
        let hidden = filters.cpus.is_some() && self.scope() <= FilterScope::Window;
        self.has_continuity = true;
        (!hidden).then(|| self.study.add(Continuity::new()))
    }

    /// Walks all recordings once.
    pub fn walk(self) -> RecordingAnswers {
        self.walk_by(|study| study).0
    }

    /// Walks all recordings once, by a sink that hands what it gets on to the study and looks at what is found
    /// between two events. `make` makes it, and it is returned behind the walk.
    pub fn walk_by<S: StudySink>(mut self, make: impl FnOnce(Study) -> S) -> (RecordingAnswers, S) {
        self.ready();
        let mut sink = make(std::mem::take(&mut self.study));
        let guests = &self.paired.guests;
        let walk = |sink: &mut dyn Sink| self.opened.walk_with(guests, sink);
        let (outcomes, passed) = self.opened.filtered(&mut sink, self.scope(), walk);
        let answers = sink.study().finish();
        sink.ended();
        let study = std::mem::take(sink.study());
        let is_whole = sink.handed_on_all();
        let answered = self.answered(study, answers, outcomes, passed.as_ref(), is_whole);
        (answered, sink)
    }

    fn answered(
        self,
        study: Study,
        answers: Answers,
        outcomes: Vec<WalkOutcome>,
        passed: Option<&FilterPasses>,
        is_whole: bool,
    ) -> RecordingAnswers {
        let tally = outcomes
            .first()
            .filter(|_| is_whole)
            .map(|outcome| EventBalance { outcome, passed });
        let accounts = tally.map(|tally| tally.accounts(&answers));
        let mut quality = self.paired.quality(outcomes);
        let walked = study.walked();
        let mut doubts = std::mem::take(&mut quality.doubts);
        self.raise(&answers, &walked, &mut doubts);
        for (counted, accounted) in accounts.iter().flatten() {
            if accounted.events != accounted.read {
                doubts.raise(DoubtKind::NotAccounted {
                    noun: match counted.which {
                        AccountedEvents::Own { noun, .. } => noun,
                        _ => "event",
                    },
                    of: counted.name,
                    events: accounted.read.abs_diff(accounted.events),
                    all: accounted.read,
                });
            }
        }
        // Several analyses may count the same events: each kind counts once.
        let mut names = Vec::new();
        let mut sum: Option<EventAccounting> = None;
        for (counted, one) in accounts.into_iter().flatten() {
            let is_own = matches!(counted.which, AccountedEvents::Own { .. });
            if is_own || names.contains(&counted.name) {
                continue;
            }
            names.push(counted.name);
            let all = sum.get_or_insert_default();
            all.events = all.events.saturating_add(one.events);
            all.read = all.read.saturating_add(one.read);
        }
        quality.accounted = sum;
        quality.doubts = doubts.touching(&self.shown());
        RecordingAnswers {
            inside: self.inside.map(|inside| answers.take(inside)),
            answers,
            study,
            quality,
        }
    }

    /// Raises what the machine, analyses and what stands beside the recording say.
    fn raise(&self, answers: &Answers, walked: &WalkState<'_>, doubts: &mut Doubts) {
        let opened = self.opened;
        if !opened.nanoseconds() {
            doubts.raise(DoubtKind::ClockTicks);
        }
        let newest = walked.counts.span().map(|(_, end)| end);
        if let Some(newest) = newest.max(walked.activity.newest()).or(walked.latest_ns) {
            doubts.extend(doubted_clock::doubt(opened.header(), newest));
        }
        let chosen = opened.threads.as_ref();
        let mut vms = match (&opened.found_vms(), chosen) {
            (Some(vms), Some(_)) => vms.to_vec(),
            _ => walked.machine.vms(),
        };
        if let Some(chosen) = chosen {
            vms.retain(|vm| vm.vcpus.iter().any(|vcpu| chosen.contains(&vcpu.tid)));
        }
        doubts.extend(model::guesses(&vms));
        doubts.extend(model::presumptions(&vms));
        for (machine, raised) in &answers.doubts {
            for doubt in raised {
                let machine = match doubt.scope.machine {
                    0 => *machine,
                    machine => machine,
                };
                let mut doubt = doubt.clone();
                doubt.scope.machine = machine;
                let guest = usize::from(machine).checked_sub(1);
                if let Some(guest) = guest.and_then(|at| self.paired.guests.get(at)) {
                    doubt = doubt.of_input(guest.name());
                }
                doubts.raise(doubt);
            }
        }
        for (guest, machine) in self.paired.guests.iter().zip(1u16..) {
            let about = |kind: DoubtKind| {
                let doubt = Doubt::from(kind).of_input(guest.name());
                doubt.of_machine(machine)
            };
            if guest.clock() == GuestClock::Undecided {
                doubts.raise(about(DoubtKind::GuestClockUndecided));
            }
            let tasks = self.tasks.as_ref();
            if tasks.is_some_and(|tasks| !tasks.get().has_heard_of(machine)) {
                doubts.raise(about(DoubtKind::GuestSilent));
            }
        }
        let session = opened.session;
        doubts.extend(session.host_facts().doubts());
        doubts.extend(session.devices().doubts());
    }

    /// Returns what the answers show.
    fn shown(&self) -> AnswerScope {
        let mut concerns = self.only.unwrap_or(self.concerns);
        let filters = &self.opened.session.options().filters;
        if filters.vm.is_some() {
            concerns = concerns.with(Concern::Vms);
        }
        if self.paired.guests.len() > 1 {
            concerns = concerns.with(Concern::Vms);
        }
        self.opened.chosen(concerns)
    }
}

/// A sink that hands what it gets on to a study.
pub trait StudySink: Sink {
    /// Returns the study.
    fn study(&mut self) -> &mut Study;

    /// Looks at what is found last: the study's walk has ended.
    fn ended(&mut self) {}

    /// Returns whether the study got all events: where it did not, its analyses cannot account for them.
    fn handed_on_all(&self) -> bool {
        true
    }
}

impl StudySink for Study {
    fn study(&mut self) -> &mut Study {
        self
    }
}

impl RecordingAnswers {
    /// Returns an analysis with what it found.
    pub fn take<A>(&self, handle: Handle<A>) -> A {
        self.answers.take(handle)
    }

    /// Returns what all analyses share.
    pub fn walked(&self) -> WalkState<'_> {
        self.study.walked()
    }

    /// Returns the answers, for who makes a picture of them, with what analyses share and the quality.
    pub fn parts(&mut self) -> (&mut Answers, WalkState<'_>, &mut Quality) {
        (&mut self.answers, self.study.walked(), &mut self.quality)
    }

    /// Returns how guests' events lie in their vCPUs' time in the guest; `None` where no guest was walked.
    pub fn inside(&self) -> Option<&InsideEvents> {
        self.inside.as_ref()
    }
}

impl EventBalance<'_> {
    /// Returns what the host's analyses have counted, each with the events that were read of its kinds.
    fn accounts(&self, answers: &Answers) -> Vec<(EventAccount, EventAccounting)> {
        // A walk that a filter by time has ended has read more than it handed out.
        let read = match self.passed {
            Some(passed) => &passed.counts,
            None => &self.outcome.read,
        };
        let of_host = answers.counted.iter().filter(|(machine, _)| *machine == 0);
        let account = |counted: &EventAccount| {
            if let AccountedEvents::Own { count, .. } = counted.which {
                return EventAccounting {
                    events: counted.events,
                    read: count,
                };
            }
            let is_of = |index: u32, kind: Kind| match &counted.which {
                AccountedEvents::All => true,
                AccountedEvents::Kinds(kinds) => kinds.contains(&kind),
                AccountedEvents::Types(types) => types.contains(&index),
                AccountedEvents::Own { .. } => false,
            };
            let all = read.iter().zip(0u32..);
            let all = all.filter(|((kind, _), index)| is_of(*index, *kind));
            let all = all.fold(0u64, |sum, ((_, count), _)| sum.saturating_add(*count));
            let over = answers.passed_over.iter().zip(0u32..);
            let over = over.filter(|(one, index)| is_of(*index, one.kind));
            let over = over.fold(0u64, |sum, (one, _)| {
                sum.saturating_add(match counted.of {
                    AccountScope::Read => 0,
                    AccountScope::Inside => one.outside,
                    AccountScope::Chosen => one.outside.saturating_add(one.left_out),
                })
            });
            EventAccounting {
                events: counted.events,
                read: all.saturating_sub(over),
            }
        };
        of_host
            .map(|(_, counted)| (counted.clone(), account(counted)))
            .collect()
    }
}
