//! A second look at a recording, for its timeline: at the times of interest that are known after the first.

use std::collections::HashSet;
use std::ops::ControlFlow;

use analysis::{
    LeftOut, PathExamples, Picture, Resume, SharedAnalysis, Study, Timeline, TimelineEvent,
    TimelineNames, TimelineReport, TimelineWindow, Window,
};
use event::{Event, EventOrder, EventType, Side, Sink};
use eventtext::{EventPrinter, TextStyle, TimeColumns};
use rules::Finding;
use tracefmt::{FormatCatalog, FormatText};

use crate::hops::Hops;
use crate::{Error, Input, OpenRecording};

/// Windows that are looked at again, at most.
const WINDOWS: usize = 24;
/// Beyond these, the slowest instances of paths through guests.
const OF_GUESTS: usize = 4;
/// Windows of a finding, and findings of which they are.
const OF_FINDING: usize = 2;
const FINDINGS: usize = 8;
/// The longest instances of a path, and the longest stalls.
const LONGEST: usize = 4;
const STALLS: usize = 4;
/// Where there are fewer windows, a piece from the middle shows what is usual.
const FEW: usize = 4;
/// Windows of a finding that are marked.
const MARKED: usize = 64;
/// Paths whose examples are looked at again.
const PATHS: usize = 8;
/// How far a window reaches beyond both ends of its instance: a part of its length, and at least so many nanoseconds.
const AROUND_PART: u64 = 10;
const AROUND_NS: u64 = 20_000;
/// Events after which it is looked at whether the walk can go on elsewhere.
const EVERY: u32 = 1 << 10;
/// Whether all is found is looked at when this many lowest bits of the time have gone round: at the same times wherever
/// a walk began.
const SLICE_BITS: u32 = 20;

impl Input<'_> {
    /// Fills the timeline of this input's picture ([`crate::PictureOptions::timeline`]) with what is of interest: marks
    /// of findings, lanes of the threads that they name, and, in a second walk, every stretch and every event of the
    /// times that they and examples of paths are about, as far as there is room; of a small recording every event.
    /// Without a timeline it does nothing, and nothing is walked where nothing is to be found.
    ///
    /// # Errors
    ///
    /// Fails when the input is no recording any more.
    pub fn details(&self, picture: &mut Picture, findings: &[Finding]) -> Result<(), Error> {
        let Some(mut timeline) = picture.timeline.take() else {
            return Ok(());
        };
        add_findings(&mut timeline, findings);
        let events = picture.info.events.iter().map(|kind| kind.count);
        let events = events.fold(0, u64::saturating_add);
        timeline.windows = match usize::try_from(events) {
            Ok(events) if events <= timeline.limits.events => whole(&timeline, events),
            _ => of_interest(&timeline, findings, picture, events),
        };
        let done = self.look_again(&mut timeline, picture);
        picture.timeline = Some(timeline);
        done
    }

    fn look_again(&self, timeline: &mut TimelineReport, picture: &Picture) -> Result<(), Error> {
        let plan = timeline.plan();
        let events = !timeline.windows.is_empty() && timeline.limits.events > 0;
        if plan.is_empty() && !events {
            return Ok(());
        }
        timeline
            .windows
            .sort_by_key(|window| (window.begin, window.end));
        let opened = self.recording_with_symbols()?;
        let none = FormatCatalog::default();
        let formats = opened.reader().formats().unwrap_or(&none);
        let times = TimeColumns {
            seconds: true,
            ns: true,
        };
        let study = (!plan.is_empty()).then(|| {
            let found = Timeline::of_plan(&plan, opened.window());
            let mut study = Study::default();
            let found = study.share(found);
            opened.prepare(&mut study);
            (study.choose(opened.window(), opened.left_out()), found)
        });
        let (study, found) = study.unzip();
        let windows = timeline.windows.len();
        let resumes = std::mem::take(&mut timeline.resumes);
        let hops = Hops::new(&resumes, &plan, &timeline.windows);
        let mut again = SecondWalk {
            hops: Some(hops).filter(Hops::any),
            resumes: &resumes,
            study,
            found: found.clone(),
            until: plan.until(),
            windows: &mut timeline.windows,
            names: &mut timeline.names,
            printer: EventPrinter::text(formats, TextStyle::Perf, times),
            text: FormatText::new(),
            window: opened.window(),
            left_out: &picture.left_out,
            first: 0,
            room: timeline.limits.events,
            most: vec![None; windows],
            since: 0,
            slice: 0,
        };
        again.walk(&opened);
        if let Some(mut study) = again.study {
            study.finish();
            let devices = self.session.devices();
            let devices = analysis::with_used(devices.names(picture.isa), &picture.exits);
            if let Some(found) = &found {
                let found = std::mem::take(&mut *found.get_mut());
                timeline.refine(&plan, found, &study.walked(), &devices);
            }
        }
        say_left_out(timeline);
        Ok(())
    }
}

/// Marks the times that findings are about.
fn add_findings(timeline: &mut TimelineReport, findings: &[Finding]) {
    let mut threads = HashSet::new();
    let mut marks = Vec::new();
    for finding in findings {
        let evidence = || finding.evidence.iter();
        threads.extend(evidence().flat_map(|one| &one.threads));
        let windows = evidence().flat_map(|one| &one.windows).take(MARKED);
        marks.extend(windows.map(|one| (one.start_ns, one.end_ns, finding.title.clone())));
    }
    timeline.add_findings(marks, &threads);
}

/// Returns the whole of a small recording as one window; nothing if it has no event.
fn whole(timeline: &TimelineReport, events: usize) -> Vec<TimelineWindow> {
    let window = TimelineWindow {
        begin: timeline.begin,
        end: timeline.end,
        why: "the whole recording".to_owned(),
        ..TimelineWindow::default()
    };
    (events > 0).then_some(window).into_iter().collect()
}

/// Returns the times that are of interest, those that matter most first: examples of paths, what findings are about,
/// the longest instances and stalls.
fn of_interest(
    timeline: &TimelineReport,
    findings: &[Finding],
    picture: &Picture,
    events: u64,
) -> Vec<TimelineWindow> {
    let length = |ns: u64| words::duration::of(ns, timeline.nanoseconds);
    let mut all: Vec<(u64, u64, String)> = Vec::new();
    let is_of_guests = |one: &&PathExamples| {
        let mut paths = picture.guest_paths.iter();
        paths.any(|path| path.name == one.path)
    };
    let all_examples = || picture.examples.iter();
    let examples = || all_examples().filter(|one| !is_of_guests(one)).take(PATHS);
    let slow = examples().map(|one| (&one.path, Some(&one.slow), "slowest"));
    let fast = examples().map(|one| (&one.path, one.fast.as_ref(), "typical"));
    for (path, one, which) in slow.chain(fast) {
        if let Some((one, first)) = one.and_then(|one| Some((one, one.steps.first()?))) {
            let ns = one.total_ns();
            let why = format!("path {path}: its {which} instance, {}", length(ns));
            all.push(around(first.time, ns, why));
        }
    }
    for finding in findings.iter().take(FINDINGS) {
        let windows = finding.evidence.iter().flat_map(|one| &one.windows);
        let windows = windows.take(OF_FINDING);
        all.extend(windows.map(|one| (one.start_ns, one.end_ns, finding.title.clone())));
    }
    for path in picture.paths.iter().take(PATHS) {
        for (ns, begin) in path.longest.first(LONGEST) {
            let why = format!(
                "path {}: one of its longest instances, {}",
                path.name,
                length(ns)
            );
            all.push(around(begin, ns, why));
        }
    }
    let stalls = picture.stalls.iter().flat_map(|stalls| &stalls.longest);
    for stall in stalls.take(STALLS) {
        let why = format!("a vCPU stalled for {}", length(stall.ns()));
        all.push(around(stall.from, stall.ns(), why));
    }
    let mut out: Vec<TimelineWindow> = Vec::new();
    for (begin, end, why) in all {
        add(&mut out, timeline, (begin, end), why, WINDOWS);
    }
    if out.len() < FEW {
        // About as long as there is room for its events, were they the same all through.
        let whole = timeline.end.saturating_sub(timeline.begin);
        let room = timeline.limits.events / 2;
        let part = u128::from(whole) * room as u128 / u128::from(events.max(1));
        let part = u64::try_from(part).unwrap_or(whole).min(whole);
        let begin = timeline.begin + (whole - part) / 2;
        let why = "from the middle of the recording".to_owned();
        add(&mut out, timeline, (begin, begin + part), why, WINDOWS);
    }
    // Behind all that is of the host, which has its windows with guests and without.
    for one in all_examples().filter(is_of_guests) {
        if let Some(first) = one.slow.steps.first() {
            let ns = one.slow.total_ns();
            let why = format!("path {}: its slowest instance, {}", one.path, length(ns));
            let (begin, end, why) = around(first.time, ns, why);
            add(&mut out, timeline, (begin, end), why, WINDOWS + OF_GUESTS);
        }
    }
    out
}

/// Returns a window around something that happened.
fn around(begin: u64, ns: u64, why: String) -> (u64, u64, String) {
    let around = (ns / AROUND_PART).max(AROUND_NS);
    let end = begin.saturating_add(ns).saturating_add(around);
    (begin.saturating_sub(around), end, why)
}

/// Adds a window, if it is in the recording, none of the others shows the same, and there are not so many yet.
fn add(
    windows: &mut Vec<TimelineWindow>,
    timeline: &TimelineReport,
    (begin, end): (u64, u64),
    why: String,
    most: usize,
) {
    let begin = begin.clamp(timeline.begin, timeline.end);
    // The last event of a window is in it.
    let end = end.saturating_add(1).clamp(begin, timeline.end);
    // One that is little wider than another shows little more.
    let known = windows.iter().any(|one| {
        let within = one.begin <= begin && end <= one.end;
        let wider = (one.end - one.begin).saturating_mul(2);
        within || begin <= one.begin && one.end <= end && end - begin <= wider
    });
    if begin < end && !known && windows.len() < most {
        windows.push(TimelineWindow {
            begin,
            end,
            why,
            ..TimelineWindow::default()
        });
    }
}

/// Says how many events there was no room for.
fn say_left_out(timeline: &mut TimelineReport) {
    let cut = timeline.windows.iter().filter(|window| window.more > 0);
    let (windows, events) = cut.fold((0u64, 0u64), |sum, window| {
        (sum.0 + 1, sum.1.saturating_add(window.more))
    });
    if events > 0 {
        timeline.notes.push(format!(
            "{} in {} of interest found no room here; 'trapline events REC --time FROM,TO' prints them.",
            words::plural(events, "event"),
            words::plural(windows, "window"),
        ));
    }
}

/// Takes the events of windows, and lets a study find stretches.
struct SecondWalk<'a, 'f> {
    /// Where it need not look.
    hops: Option<Hops>,
    /// Moments from which it can go on.
    resumes: &'a [Resume],
    study: Option<Study>,
    /// What it finds.
    found: Option<SharedAnalysis<Timeline>>,
    /// When the last stretch that is looked for is over.
    until: u64,
    windows: &'a mut [TimelineWindow],
    names: &'a mut TimelineNames,
    printer: EventPrinter<'f>,
    text: FormatText,
    window: Window,
    left_out: &'a LeftOut,
    /// The first window that is not past.
    first: usize,
    /// Events that there is room for, and how many of them each window may have: what earlier ones leave is for later
    /// ones.
    room: usize,
    most: Vec<Option<usize>>,
    since: u32,
    /// The time of the last event, without its lowest bits.
    slice: u64,
}

impl SecondWalk<'_, '_> {
    /// Walks over all that is asked for.
    fn walk(&mut self, opened: &OpenRecording<'_>) {
        let mut next = self.hops.as_mut().and_then(Hops::take);
        if next.is_none() {
            opened.walk(self);
            next = self.hops.as_mut().and_then(Hops::take);
        }
        while let Some(resume) = next.and_then(|next| self.resumes.get(next)) {
            if let Some(study) = &mut self.study {
                study.resume(resume);
            }
            // A file that was cut since has no more to tell.
            if !opened.reader().walk_from(&resume.place, self) {
                break;
            }
            next = self.hops.as_mut().and_then(Hops::take);
        }
    }

    /// Looks whether the walk is to go on at a later moment.
    #[cold]
    fn goes_elsewhere(&mut self, now: u64) -> bool {
        self.since = 0;
        let study = self.study.as_ref();
        self.hops.as_mut().is_some_and(|hops| {
            hops.ends(now, |next, time| {
                let resume = self.resumes.get(next);
                let may = |study: &Study| resume.is_some_and(|one| study.may_resume(one, time));
                study.is_none_or(may)
            })
        })
    }

    /// Takes an event, if it is in a window.
    fn take(&mut self, event: &Event<'_>) {
        while let Some(window) = self.windows.get(self.first)
            && window.end < event.time
        {
            self.first += 1;
        }
        let windows = self.windows.iter().enumerate().skip(self.first);
        let mut near = windows.take_while(|(_, one)| one.begin <= event.time);
        let Some((at, _)) = near.find(|(_, one)| event.time <= one.end) else {
            return;
        };
        if !self.window.has(event.time, event.cpu) || self.left_out.made(event) {
            return;
        }
        let to_come = self.windows.len().saturating_sub(at).max(1);
        let (Some(window), Some(most)) = (self.windows.get_mut(at), self.most.get_mut(at)) else {
            return;
        };
        let most = *most.get_or_insert(self.room / to_come);
        if self.room == 0 || window.events.len() >= most {
            window.more += 1;
            return;
        }
        self.room -= 1;
        self.text.clear();
        self.printer.body(event, &mut self.text);
        let text = String::from_utf8_lossy(self.text.as_bytes());
        window.events.push(TimelineEvent {
            time: event.time,
            cpu: event.cpu,
            tid: event.tid,
            name: self.names.number(event.ty.name),
            text: self.names.number(text.trim()),
        });
    }

    /// Returns whether all is found.
    #[cold]
    fn is_done(&mut self) -> bool {
        let timeline = self.found.as_ref();
        self.first >= self.windows.len() && timeline.is_none_or(|one| one.get().is_past())
    }
}

impl Sink for SecondWalk<'_, '_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let studied = self.study.as_mut().is_some_and(|study| study.wants(ty));
        // From one moment to another all have to be taken alike.
        studied || self.hops.is_some() || !self.windows.is_empty() && self.room > 0
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.machine() == 0 {
            self.take(event);
        }
        if let Some(study) = &mut self.study {
            let _ = study.event(event);
        }
        let slice = event.time >> SLICE_BITS;
        if event.time > self.until && self.slice != slice && self.is_done() {
            return ControlFlow::Break(());
        }
        self.slice = slice;
        self.since += 1;
        if self.since >= EVERY && self.goes_elsewhere(event.time) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Some(study) = &mut self.study {
            study.side(side);
        }
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        if let Some(study) = &mut self.study {
            study.side_of(machine, side);
        }
    }
}
