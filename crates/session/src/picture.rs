//! All that an input has to tell, gathered in one walk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use analysis::{
    Counters, Exits, Faults, FunctionNamer, GuestTasks, Handle, Handling, IdleWakeups,
    InsideReport, Ipis, Irqs, MainLoops, Moves, NestedExits, OffCpuSums, Picture, PictureContext,
    PictureHandles, Profile, ProfileSums, Progress, RecordedMachine, Recorder, RecordingContents,
    RowSplit, SampledTime, SchedLatencies, SharedAnalysis, Signs, Sleeps, Stalls, Timeline, Timers,
    Unmaps, Vcpus, VmmSleeps, WaitedTime, WalkState,
};
use paths::Paths;
use source::{RecordingHeader, TimeStampUnit};

use crate::input::InputPart;
use crate::{
    Error, GuestAbout, GuestPairing, HostInput, Input, NamedGuest, OpenRecording, PictureOptions,
    PrintedTables, RecordingQuestion, RecordingStacks, Session,
};

/// The picture of a recording, and what the recording says of itself.
#[derive(Debug)]
pub struct RecordingPicture {
    /// What was found.
    pub picture: Picture,
    /// What the recording says of itself.
    pub header: RecordingHeader,
    /// Its stacks, where they were asked for and it has any: of time on CPUs, then without one.
    pub flames: Vec<RecordingStacks>,
    /// How the recordings of its guests join it, and how many of their events lie where they can have happened.
    pub guests: Vec<(GuestAbout, InsideReport)>,
    /// Whether the part of it is missing that has the formats of its events, so that nobody knows what they are.
    pub formats_missing: bool,
}

impl Session {
    /// Returns a picture of each recording, and of all tables that perf printed together, each input walked once.
    ///
    /// # Errors
    ///
    /// Fails when an input cannot be read, is neither a recording nor a text with tables, or does not have what the
    /// filters ask for.
    pub fn pictures(
        &self,
        inputs: &[PathBuf],
        options: &PictureOptions,
    ) -> Result<Vec<Picture>, Error> {
        let looked = self.at_once(inputs, |path, threads| {
            self.input_with(path, threads)?.look(options)
        });
        self.put_together(looked)
    }

    /// Returns pictures for each of several lists of hosts with their guests. Hosts are walked at once by as many
    /// threads as there may be.
    ///
    /// # Errors
    ///
    /// As [`Session::pictures`] and [`HostInput::picture`], of the first host that fails.
    pub fn sides(
        &self,
        sides: &[&[HostInput<'_>]],
        options: &PictureOptions,
    ) -> Result<Vec<Vec<Picture>>, Error> {
        let all: Vec<&HostInput<'_>> = sides.iter().copied().flatten().collect();
        let looked = self.at_once(&all, |host, _| host.look(options));
        let mut looked = looked.into_iter();
        let sides = sides.iter();
        sides
            .map(|side| self.put_together(looked.by_ref().take(side.len())))
            .collect()
    }

    /// Returns the pictures of what was looked at, and those of all its tables together.
    fn put_together(
        &self,
        looked: impl IntoIterator<Item = Result<InputContent, Error>>,
    ) -> Result<Vec<Picture>, Error> {
        let mut pictures = Vec::new();
        let mut tables = PrintedTables::default();
        for one in looked {
            let mut one = one?;
            tables.append(&mut one.tables);
            pictures.extend(one.picture);
        }
        pictures.append(&mut self.of_printed(tables)?);
        pictures.append(&mut self.of_facts());
        Ok(pictures)
    }

    /// Returns a picture of each host with its guests, and of all tables that perf printed together
    /// ([`Session::hosts`]), with the names of all inputs in their order.
    ///
    /// # Errors
    ///
    /// As [`Session::pictures`], and as [`HostInput::picture`].
    pub fn pictures_with(
        &self,
        recordings: &[PathBuf],
        guests: &[NamedGuest],
        options: &PictureOptions,
    ) -> Result<(Vec<Picture>, Vec<String>), Error> {
        let mut hosts = self.hosts_among(recordings, recordings.len())?;
        self.add_guests(&mut hosts, guests)?;
        let looked = self.at_once(&hosts, |host, _| host.look(options));
        let pictures = self.put_together(looked)?;
        let mut names: Vec<String> = hosts.iter().flat_map(HostInput::names).collect();
        let all = pictures.iter().flat_map(|picture| &picture.names);
        for name in all {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok((pictures, names))
    }

    /// Does something for each item, for several at once if there may be threads; it takes how many it may have itself.
    /// The answers stand in the items' order.
    pub(crate) fn at_once<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T, usize) -> R + Sync,
    ) -> Vec<R> {
        let threads = self.options().threads.max(1);
        let workers = threads.min(items.len());
        if workers < 2 {
            return items.iter().map(|item| work(item, threads)).collect();
        }
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<(usize, R)>> = Mutex::default();
        let all = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(number) else {
                    return;
                };
                let one = work(item, threads / workers);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push((number, one));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                // Where there can be no more threads, those that there are do it all.
                let _ = Builder::new().spawn_scoped(scope, all);
            }
            all();
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, one)| one).collect()
    }
}

/// What was found in one input.
struct InputContent {
    tables: PrintedTables,
    picture: Option<Picture>,
}

impl Input<'_> {
    /// Looks at it.
    fn look(&self, options: &PictureOptions) -> Result<InputContent, Error> {
        let mut tables = PrintedTables::default();
        let picture = match self.printed(&mut tables, options)? {
            true => None,
            false => Some(self.picture(options)?.picture),
        };
        Ok(InputContent { tables, picture })
    }

    /// Takes a picture of a recording in one walk.
    ///
    /// # Errors
    ///
    /// Fails when it is no recording, or does not have what the filters ask for.
    pub fn picture(&self, options: &PictureOptions) -> Result<RecordingPicture, Error> {
        self.picture_of(options, &|_| Ok(GuestPairing::default()), |picture, _| {
            picture
        })
    }

    /// Does the same with guests, which are looked for when the recording has been opened; what is said of them becomes
    /// warnings. `then` gets the picture while what the walk followed is still at hand.
    pub(crate) fn picture_of<'g, R>(
        &self,
        options: &PictureOptions,
        paired: &dyn Fn(&OpenRecording<'_>) -> Result<GuestPairing<'g>, Error>,
        then: impl FnOnce(RecordingPicture, &PictureWalk<'_, 'g>) -> R,
    ) -> Result<R, Error> {
        let opened = self.recording_with_symbols()?;
        opened.require_vcpus()?;
        let options = &opened.with_pairs(options);
        let paired = paired(&opened)?;
        let mut question = opened.question(&paired);
        let asked = opened.ask_picture(options, &mut question);
        let tasks = asked
            .handles
            .guests
            .as_ref()
            .map(|(tasks, _)| tasks.clone());
        let mut answered = question.walk();
        let keep = |tid: i32, pid: Option<i32>| opened.keeps(tid, pid);
        let devices = self.session.devices();
        let context = PictureContext {
            keep: opened.chooses().then_some(&keep),
            functions: opened.functions(),
            names: &|isa| devices.names(isa),
        };
        let AskedPicture {
            handles,
            sampled,
            waited,
            stacks,
        } = asked;
        let (answers, walked, quality) = answered.parts();
        let (sampled, stacks) = (
            answers.take(sampled),
            stacks
                .into_iter()
                .map(|one| answers.take(one))
                .collect::<Vec<Profile>>(),
        );
        let mut picture = Picture::of(handles, answers, &walked, context);
        picture.quality = std::mem::take(quality);
        // Those through guests were followed behind the host's.
        let of_host = picture.paths.iter().take(options.paths.len());
        let of_host = of_host.filter(|report| report.is_listed()).count();
        opened.complete_paths(&mut picture.paths);
        picture.guest_paths = picture.paths.split_off(of_host);
        // A window without an event may show vCPUs that slept all through it.
        let observed = picture.vcpus.iter().flat_map(|report| &report.rows);
        let happened = picture.info.events.iter().any(|kind| kind.count > 0);
        opened.require_events(happened || observed.into_iter().any(|row| row.times.total() > 0))?;
        let waited = waited.map(|waited| answers.take(waited));
        (picture.profile, picture.off_cpu) =
            opened.thread_time(&sampled, waited.as_ref(), &walked, &picture);
        picture.quality.doubts.extend(opened.naming_doubts());
        picture.names = vec![self.name().to_owned()];
        if let InputPart::Trace(first, last) = self.part() {
            picture.first_line = Some(first);
            picture.places = vec![words::lines(first, last)];
        }
        let guests = &paired.guests;
        picture.guests = guests.iter().map(|one| one.name().to_owned()).collect();
        if let Some(timeline) = &mut picture.timeline {
            timeline.nanoseconds = opened.nanoseconds();
        }
        picture.about = about(opened.header(), &picture);
        if options.comparing {
            picture.only_asked();
        }
        if !opened.nanoseconds() {
            picture.span_ns = None;
        }
        let flames = opened.flames(&stacks, &walked, guests)?;
        let inside = |machine| answered.inside().map(|inside| inside.report(machine));
        let guests = (guests.iter().zip(1..))
            .map(|(guest, machine)| (guest.about().clone(), inside(machine).unwrap_or_default()));
        let picture = RecordingPicture {
            guests: guests.collect(),
            picture,
            flames,
            header: opened.header().clone(),
            formats_missing: opened.reader().misses_formats(),
        };
        let walk = PictureWalk {
            recording: &opened,
            paired: &paired,
            walked: answered.walked(),
            tasks,
        };
        Ok(then(picture, &walk))
    }
}

/// A recording of which a picture was taken, and what its walk followed.
pub struct PictureWalk<'w, 'g> {
    /// The recording.
    pub recording: &'w OpenRecording<'w>,
    /// Its guests.
    pub paired: &'w GuestPairing<'g>,
    /// Threads, vCPUs and their states at its end.
    pub walked: WalkState<'w>,
    /// What guests did, where their recordings were walked too.
    pub tasks: Option<SharedAnalysis<GuestTasks>>,
}

impl std::fmt::Debug for PictureWalk<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PictureWalk").finish_non_exhaustive()
    }
}

impl HostInput<'_> {
    /// Takes a picture of the host's recording, with what its guests did, in one walk ([`Input::picture`]).
    ///
    /// # Errors
    ///
    /// As [`Input::picture`]. Fails when a guest's recording that was named is of no guest of this host, and says what
    /// speaks against it.
    pub fn picture(&self, options: &PictureOptions) -> Result<RecordingPicture, Error> {
        self.picture_then(options, |picture, _| picture)
    }

    /// Takes a picture, and does something with it while what the walk followed is still at hand.
    ///
    /// # Errors
    ///
    /// As [`HostInput::picture`].
    pub fn picture_then<R>(
        &self,
        options: &PictureOptions,
        then: impl FnOnce(RecordingPicture, &PictureWalk<'_, '_>) -> R,
    ) -> Result<R, Error> {
        self.input()
            .picture_of(options, &|opened| self.paired(opened), then)
    }

    /// Looks at it, and at its guests.
    fn look(&self, options: &PictureOptions) -> Result<InputContent, Error> {
        let mut tables = PrintedTables::default();
        let only_tables = self.input().printed(&mut tables, options)?;
        let picture = match only_tables && !self.has_guests() {
            true => None,
            false => Some(self.picture(options)?.picture),
        };
        Ok(InputContent { tables, picture })
    }
}

/// What is asked of a recording for its picture.
pub(crate) struct AskedPicture {
    pub(crate) handles: PictureHandles,
    sampled: Handle<SampledTime>,
    /// What threads waited for, which comparisons alone look at.
    waited: Option<Handle<WaitedTime>>,
    stacks: Vec<Handle<Profile>>,
}

impl OpenRecording<'_> {
    /// Asks everything that rules and comparisons look at: an analysis is one line.
    pub(crate) fn ask_picture(
        &self,
        options: &PictureOptions,
        question: &mut RecordingQuestion<'_>,
    ) -> AskedPicture {
        let guests = question.guests();
        let mut followed = options.paths.clone();
        if !guests.is_empty() {
            followed.extend(options.guest_paths.iter().cloned());
        }
        let any_paths = !followed.is_empty();
        let mut follower = Paths::new(followed);
        follower.only(self.instances());
        self.locate_with(&mut follower, guests);
        let mut sched = SchedLatencies::new();
        sched.caller_at(self.functions().range(SchedLatencies::caller()));
        let split = analysis::ExitOptions {
            split: true,
            ..analysis::ExitOptions::default()
        };
        let window = || self.window();
        let ipis = Ipis::new(&mut follower).on_nodes(&self.nodes());
        if options.timeline {
            // It marks every instance, and keeps examples.
            follower.list();
            question.resumable();
        }
        if options.comparing {
            question.slices();
        }
        let timeline =
            Timeline::new(window(), options.timeline_limits).of_host(options.paths.len());
        // Nearly every event is for these.
        let (
            exits,
            vcpus,
            signs,
            faults,
            timers,
            handling,
            moves,
            progress,
            nested,
            vmm_sleeps,
            stalls,
        ) = question.add_together((
            Exits::new(split),
            Vcpus::new(window()),
            Signs::new(),
            Faults::new(),
            Timers::new(),
            Handling::new(),
            Moves::new(),
            Progress::new(),
            NestedExits::new(),
            VmmSleeps::new(),
            Stalls::new(),
        ));
        AskedPicture {
            handles: PictureHandles {
                info: question.add(RecordingContents::new()),
                exits,
                vcpus,
                sched: question.add(sched),
                sleeps: question.add(Sleeps::new()),
                signs,
                faults,
                timers,
                handling,
                moves,
                progress,
                unmaps: question.add(Unmaps::new()),
                nested,
                vmm_sleeps,
                main_loops: question.add(MainLoops::new()),
                idle: question.add(IdleWakeups::new()),
                stalls,
                recorder: question.add(Recorder::new(has_agents(self.header()), window())),
                ipis: question.add(ipis),
                irqs: options.parts.then(|| question.add(Irqs::new())),
                counters: options.parts.then(|| question.add(Counters::new(window()))),
                timeline: options.timeline.then(|| question.add(timeline)),
                paths: any_paths.then(|| question.add(follower)),
                continuity: question.add_continuity(),
                guests: self.ask_guests(options, question),
            },
            sampled: question.add(SampledTime::new(&self.kernel_files(), options.comparing)),
            waited: (options.comparing)
                .then(|| question.add(WaitedTime::new(&self.kernel_files()))),
            stacks: match options.flames {
                true => self.ask_stacks(question),
                false => Vec::new(),
            },
        }
    }

    /// Asks what guests did whose recordings are walked too.
    fn ask_guests(
        &self,
        options: &PictureOptions,
        question: &mut RecordingQuestion<'_>,
    ) -> Option<(SharedAnalysis<GuestTasks>, Handle<Exits>)> {
        let by_task = analysis::ExitOptions {
            by: RowSplit {
                vm: question.guests().len() > 1,
                task: true,
                ..RowSplit::default()
            },
            ..analysis::ExitOptions::default()
        };
        let mut tasks = GuestTasks::new(self.window());
        if options.timeline {
            tasks = tasks.with_lanes(options.timeline_limits);
        }
        let tasks = question.share_guest_tasks(tasks)?;
        Some((tasks, question.add(Exits::new(by_task))))
    }

    /// Returns what samples found, and what threads waited for, which is asked in comparisons alone. A cause may be any
    /// thread, but for the vCPUs of which nobody asked; where there are no VMs, and in comparisons, threads are asked
    /// for.
    fn thread_time(
        &self,
        sampled: &SampledTime,
        waited: Option<&WaitedTime>,
        walked: &WalkState<'_>,
        picture: &Picture,
    ) -> (Option<ProfileSums>, Option<OffCpuSums>) {
        let threads = walked.machine.threads();
        let threads_asked = self.chooses() && (waited.is_some() || picture.info.vms.is_empty());
        let asked = |tid: i32| {
            let pid = threads.get(tid).and_then(|thread| thread.pid);
            match threads_asked {
                true => self.keeps(tid, pid),
                false => !picture.left_out.has(tid),
            }
        };
        let namer = FunctionNamer {
            host: self.functions(),
            guest: self.guest_functions(),
            guests: &[],
        };
        let waits = waited.and_then(|waited| waited.report(walked, namer, &asked));
        (sampled.report(walked, namer, &asked), waits)
    }
}

/// Returns whether a recording says that guests were recorded at the same time, each by an agent in it.
pub(crate) fn has_agents(header: &RecordingHeader) -> bool {
    header.more.iter().any(|(what, _)| what == "guest")
}

/// Returns what a recording's header says of its machine and recorder.
fn about(header: &RecordingHeader, picture: &Picture) -> RecordedMachine {
    let text = header.format.strip_prefix("text of ");
    let recorder = match (&header.recorder, text) {
        (Some(recorder), _) => recorder.split_whitespace().next(),
        (None, Some(text)) => text.split_whitespace().next(),
        (None, None) if header.format.starts_with("perf.data") => Some("perf"),
        (None, None) if header.format.starts_with("trace.dat") => Some("trace-cmd"),
        (None, None) => None,
    };
    let happened = picture.info.events.iter().filter(|kind| kind.count > 0);
    let lists = header.format.starts_with("perf.data")
        || text.is_none() && picture.info.recorded.len() > happened.count();
    RecordedMachine {
        arch: header.arch.clone(),
        kernel: header.kernel.clone(),
        cpus: header.cpus,
        cpu: header.cpu_desc.clone(),
        nodes: header.nodes.clone(),
        recorder: recorder.map(str::to_owned),
        cost: header.cost,
        clock: header.clock.clone(),
        in_ticks: header.time_unit != TimeStampUnit::Nanoseconds,
        lists_events: lists,
    }
}
