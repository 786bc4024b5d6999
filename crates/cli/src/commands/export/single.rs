//! Files of single things: they are made while the recording is walked a second time.

use std::io::{self, Write};
use std::ops::ControlFlow;

use analysis::{
    Continuity, ExitTable, Exits, GuestTasks, Inside, Options, Study, Unpaired, Vcpus, unknowable,
};
use anyhow::Result;
use devices::AddressNames;
use event::Quality;
use export::{
    ExitRows, ExportFile, ExportWalk, ExportWish, FirstWalk, InstanceRows, Perfetto, SpanRows, Tap,
    TraceMachine,
};
use paths::{Paths, lang};
use render::ClockUnit;
use session::Session;

use super::{Together, Told};
use crate::args::{ExportArgs, Kind, Rows};

/// What the first walk found.
pub(super) struct First {
    kind: Kind,
    rows: Rows,
    study: Study,
    names: AddressNames,
    quality: Quality,
}

fn exits() -> Exits {
    Exits::new(Options {
        tables: vec![ExitTable::Vmexit],
        split: true,
        ..Options::default()
    })
}

/// Walks the recording for names, and for what it cannot tell.
///
/// # Errors
/// The recording does not have what is to be exported.
pub(super) fn first(
    args: &ExportArgs,
    kind: Kind,
    rows: Rows,
    session: &Session,
    together: &Together<'_>,
) -> Result<First> {
    let recording = together.recording;
    let guests = together.guests();
    let mut study = Study::default()
        .with(Vcpus::new(recording.window()))
        .with(exits())
        .choose(recording.window(), recording.left_out());
    if args.common.filter.cpu.is_none() {
        study = study.with(Continuity::new());
    }
    if !guests.is_empty() {
        study = study
            .with(GuestTasks::new(recording.window()))
            .with(Inside::new());
    }
    recording.prepare_with(&mut study, guests);
    let mut quality = together
        .paired
        .quality(recording.walk_with(guests, &mut study));
    study.finish();
    let walked = study.walked();
    let report = study.get::<Vcpus>().map(|vcpus| vcpus.report(&walked));
    let seen = walked.machine.seen();
    let observed = report.is_some_and(|report| !report.rows.is_empty());
    match (kind, rows) {
        (Kind::Pftrace, _) => recording.require_exits(observed || seen.switches)?,
        (_, Rows::Spans | Rows::Exits) => recording.require_exits(observed)?,
        _ => {}
    }
    session.host_facts().warn(&mut quality);
    together.warn(&study, &mut quality);
    let continuity = study.get::<Continuity>().map(Continuity::report);
    if let Some(warning) = continuity.and_then(|report| report.warning()) {
        quality.warn(warning);
    }
    if let Some(guesses) = model::guesses(&walked.machine.vms()) {
        quality.warn(guesses);
    }
    if rows != Rows::Instances || kind == Kind::Pftrace {
        for item in unknowable(&seen) {
            quality.warn(item.to_string());
        }
        let unpaired = study.get::<Exits>().map(Exits::unpaired);
        for warning in unpaired.iter().flat_map(Unpaired::warnings) {
            quality.warn(warning);
        }
    }
    if !recording.nanoseconds() {
        quality.warn(
            "The recording's clock counts ticks of unknown rate: times are ticks, also those of traces, which call them nanoseconds.",
        );
    }
    let isa = study.get::<Exits>().and_then(Exits::isa);
    let names = session.devices().names(isa, &mut quality);
    Ok(First {
        kind,
        rows,
        study,
        names,
        quality,
    })
}

impl First {
    /// Walks the recording again, and writes what is found.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(
        &self,
        wanted: &[lang::PathDefinition],
        together: &Together<'_>,
        out: &mut dyn Write,
    ) -> Result<Told> {
        let recording = together.recording;
        let walked = self.study.walked();
        let mut known = FirstWalk::new(&walked, &self.names);
        let tasks = self.study.get::<GuestTasks>();
        if let Some(tasks) = tasks {
            known = known.with_guests(&walked, tasks);
        }
        let clock = ClockUnit::of(recording.nanoseconds());
        let mut into: Box<dyn ExportFile> = match (self.kind, self.rows) {
            (Kind::Pftrace, _) => {
                let header = recording.header();
                let about = TraceMachine {
                    kernel: header.kernel.clone(),
                    arch: header.arch.clone(),
                    lost_events: self.quality.lost_events,
                };
                Box::new(Perfetto::new(&known, &about))
            }
            (_, Rows::Exits) => Box::new(ExitRows::new(clock)),
            (_, Rows::Instances) => Box::new(InstanceRows::new(clock)),
            _ if tasks.is_some() => Box::new(SpanRows::with_guests(clock)),
            _ => Box::new(SpanRows::new(clock)),
        };
        let study = self.second(wanted, together);
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
        let mut walk = ExportWalk::new(study, &known, into.as_mut(), &mut write);
        recording.walk_with(together.guests(), &mut walk);
        let left_out = walk.finish();
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(Told {
                quality: self.quality.clone(),
                left_out,
            }),
        }
    }

    /// Returns the study of the second walk.
    fn second(&self, wanted: &[lang::PathDefinition], together: &Together<'_>) -> Study {
        let (recording, guests) = (together.recording, together.guests());
        let trace = self.kind == Kind::Pftrace;
        let spans = trace || matches!(self.rows, Rows::Spans | Rows::Exits);
        let tap = Tap::new(
            ExportWish {
                spans,
                moments: trace,
            },
            recording.window(),
        );
        let mut study = Study::default();
        if spans {
            study = study.with(tap);
        }
        // What guests did has no place in rows of exits.
        if spans && self.rows != Rows::Exits && !guests.is_empty() {
            study = study.with(GuestTasks::new(recording.window()));
        }
        if trace || self.rows == Rows::Exits {
            study = study.with(exits());
        }
        if trace || self.rows == Rows::Instances {
            let mut follower = Paths::new(wanted.to_vec());
            follower.only(recording.instances());
            recording.locate_with(&mut follower, guests);
            study = study.with(follower);
        }
        recording.prepare_with(&mut study, guests);
        study.choose(recording.window(), recording.left_out())
    }
}
