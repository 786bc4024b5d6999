//! Files of single things: they are made while the recording is walked a second time.

use std::io::{self, Write};
use std::ops::ControlFlow;

use analysis::{ExitOptions, ExitTable, Exits, GuestTasks, SharedAnalysis, Study, Vcpus};
use anyhow::Result;
use devices::AddressNames;
use doubts::{Concern, Concerns};
use export::{
    ExitRows, ExportFile, ExportSources, ExportWalk, ExportWish, FirstWalk, InstanceRows, Perfetto,
    SpanRows, Tap, TraceMachine,
};
use paths::{Paths, lang};
use render::ClockUnit;
use session::{Guest, OpenRecording, RecordingAnswers, Session};

use super::{HostWithGuests, WrittenExport};
use crate::commands::export::args::{Kind, Rows};

/// What the first walk found.
pub(super) struct ExportAnswers {
    kind: Kind,
    rows: Rows,
    tasks: Option<SharedAnalysis<GuestTasks>>,
    names: AddressNames,
    answered: RecordingAnswers,
    /// Why a table has no rows, where it has none.
    empty: Option<String>,
}

fn exits() -> Exits {
    Exits::new(ExitOptions {
        tables: vec![ExitTable::Vmexit],
        split: true,
        ..ExitOptions::default()
    })
}

/// Walks the recording for names, and for what it cannot tell.
///
/// # Errors
/// The recording does not have what is to be exported.
pub(super) fn first(
    kind: Kind,
    rows: Rows,
    session: &Session,
    together: &HostWithGuests<'_>,
) -> Result<ExportAnswers> {
    let recording = together.recording;
    let mut question = recording.question(&together.paired);
    let vcpus = question.add(Vcpus::new(recording.window()));
    let exits = question.add(exits());
    let tasks = question.share_guest_tasks(GuestTasks::new(recording.window()));
    if rows == Rows::Instances && kind != Kind::Pftrace {
        question.showing_only(Concerns::of(&[
            Concern::Paths,
            Concern::Names,
            Concern::Vms,
            Concern::Guests,
            Concern::Host,
        ]));
    } else {
        question.showing(Concern::Paths);
    }
    let answered = question.walk();
    let walked = answered.walked();
    let seen = walked.machine.seen();
    let observed = !answered.take(vcpus).report(&walked).rows.is_empty();
    // A table without rows is a table, and whoever exports many recordings goes on.
    let empty = match (kind, rows) {
        (Kind::Pftrace, _) => {
            recording.require_exits(observed || seen.switches)?;
            None
        }
        (_, Rows::Spans | Rows::Exits) if !recording.reader().misses_formats() => {
            recording.require_exits(observed).err()
        }
        _ => None,
    };
    let empty = empty.map(|why| format!("The table has no rows: {why}"));
    // Instances and a trace may be of no exit at all.
    recording.require_choice(observed)?;
    let isa = answered.take(exits).isa();
    Ok(ExportAnswers {
        kind,
        rows,
        tasks,
        names: session.devices().names(isa),
        answered,
        empty,
    })
}

impl ExportAnswers {
    /// Walks the recording again, and writes what is found.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(
        &self,
        wanted: &[lang::PathDefinition],
        together: &HostWithGuests<'_>,
        out: &mut dyn Write,
    ) -> Result<WrittenExport> {
        let recording = together.recording;
        let walked = self.answered.walked();
        let mut known = FirstWalk::new(&walked, &self.names);
        let tasks = self.tasks.as_ref();
        if let Some(tasks) = tasks {
            known = known.with_guests(&walked, &tasks.get());
        }
        let clock = ClockUnit::of(recording.nanoseconds());
        let mut into: Box<dyn ExportFile> = match (self.kind, self.rows) {
            (Kind::Pftrace, _) => {
                let header = recording.header();
                let about = TraceMachine {
                    kernel: header.kernel.clone(),
                    arch: header.arch.clone(),
                    lost_events: self.answered.quality.lost_events,
                };
                Box::new(Perfetto::new(&known, &about))
            }
            (_, Rows::Exits) => Box::new(ExitRows::new(clock)),
            (_, Rows::Instances) => Box::new(InstanceRows::new(clock)),
            _ if tasks.is_some() => Box::new(SpanRows::with_guests(clock)),
            _ => Box::new(SpanRows::new(clock)),
        };
        let trace = self.kind == Kind::Pftrace;
        let spans = trace || matches!(self.rows, Rows::Spans | Rows::Exits);
        let wish = SecondWish {
            spans,
            // What guests did has no place in rows of exits.
            by_task: spans && self.rows != Rows::Exits,
            exits: trace || self.rows == Rows::Exits,
            paths: trace || self.rows == Rows::Instances,
            moments: trace,
        };
        let (study, sources) = second(wish, wanted, recording, together.guests());
        let mut failed: Option<io::Error> = None;
        let mut write = |made: &mut Vec<u8>| {
            let written = out.write_all(made);
            made.clear();
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed.get_or_insert(error);
                    ControlFlow::Break(())
                }
            }
        };
        let mut walk = ExportWalk::new(study, sources, &known, into.as_mut(), &mut write);
        recording.walk_with(together.guests(), &mut walk);
        let mut left_out = walk.finish();
        left_out.extend(self.empty.clone());
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(WrittenExport {
                quality: self.answered.quality.clone(),
                left_out,
            }),
        }
    }
}

/// What a second walk finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecondWish {
    /// Spans and exits.
    pub(super) spans: bool,
    /// Spans by what guests did.
    pub(super) by_task: bool,
    /// Exits.
    pub(super) exits: bool,
    /// Instances of paths.
    pub(super) paths: bool,
    /// Moments that only traces show.
    pub(super) moments: bool,
}

/// Returns the study of a second walk.
pub(super) fn second(
    wish: SecondWish,
    wanted: &[lang::PathDefinition],
    recording: &OpenRecording<'_>,
    guests: &[Guest<'_>],
) -> (Study, ExportSources) {
    let tap = Tap::new(
        ExportWish {
            spans: wish.spans,
            moments: wish.moments,
        },
        recording.window(),
    );
    let mut study = Study::default();
    let tap = wish.spans.then(|| study.share(tap));
    let by_task = wish.by_task && !guests.is_empty();
    let tasks = by_task.then(|| study.share(GuestTasks::new(recording.window())));
    let exits = wish.exits.then(|| study.share(exits()));
    let paths = wish.paths.then(|| {
        let mut follower = Paths::new(wanted.to_vec());
        follower.only(recording.instances());
        recording.locate_with(&mut follower, guests);
        study.share(follower)
    });
    recording.prepare_with(&mut study, guests);
    let study = study.choose(recording.window(), recording.left_out());
    let sources = ExportSources {
        tap,
        exits,
        paths,
        tasks,
    };
    (study, sources)
}
