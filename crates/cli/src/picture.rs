//! All that a recording or a printed table tells, gathered in one walk.

use std::path::{Path, PathBuf};

use analysis::{
    About, Continuity, Exits, ExitsReport, Faults, Info, Ipis, Moves, Options, Picture, Recorder,
    Sched, Signs, Sleeps, Slices, Stalls, Study, Timers, Unpaired, Vcpus,
};
use anyhow::{Result, bail};
use paths::{Paths, lang};
use render::info::Head;
use source::{Header, Reader, Recording};
use symbols::Functions;
use tracefmt::Kallsyms;

use crate::args::Common;
use crate::commands::info::head;
use crate::{input, wrong_input};

/// Returns the paths that rules look at.
pub(crate) fn paths_of_rules() -> Vec<lang::Path> {
    rules::PATHS
        .iter()
        .filter_map(|name| paths::builtin(name))
        .collect()
}

/// What pictures are taken with.
pub(crate) struct Camera<'a> {
    pub common: &'a Common,
    pub lender: &'a input::Lender,
    pub facts: &'a input::Facts,
    pub devices: &'a input::Devices,
    /// Symbols of the recording's kernel, where it has none itself.
    pub kallsyms: Option<&'a Kallsyms>,
    /// Paths that are followed.
    pub paths: Vec<lang::Path>,
    /// Whether pictures are to be compared: it counts by slice of time then, to tell noise from news, and wants to know
    /// which table of a text is meant.
    pub comparing: bool,
}

impl Camera<'_> {
    /// Returns a picture of each recording, and of all printed tables together.
    ///
    /// # Errors
    /// An input cannot be read, or is neither a recording nor a printed table.
    pub(crate) fn take(&self, inputs: &[PathBuf]) -> Result<Vec<Picture>> {
        let mut pictures = Vec::new();
        let mut tables = Vec::new();
        let mut notes = Vec::new();
        for path in inputs {
            let name = input::name(path);
            let recording = input::open(path, self.common)?;
            let is_recording = recording.reader(self.lender.options(false)).is_ok();
            if perftables::looks_like(recording.bytes()) {
                let (found, told) = perftables::read(recording.bytes());
                if found.is_empty() && !is_recording {
                    bail!("{name}: looks like a printed table, and none could be read from it");
                }
                if self.comparing
                    && let Some(several) = analysis::ambiguous(&found)
                {
                    bail!("{name}: {several}");
                }
                notes.extend(told.into_iter().map(|note| format!("{name}: {note}")));
                tables.extend(found.into_iter().map(|table| (name.clone(), table)));
                // A ticket may hold both.
                if !is_recording {
                    continue;
                }
            }
            pictures.push(self.of_recording(&recording, path)?.0);
        }
        if !tables.is_empty() {
            if self.common.filter.any() {
                bail!("printed tables cannot be filtered: they hold sums");
            }
            let mut of_tables = analysis::of_tables(tables);
            for picture in &mut of_tables {
                self.devices
                    .name(picture.isa, &mut picture.exits, &mut picture.quality);
            }
            if let Some(first) = of_tables.first_mut() {
                self.facts.warn(&mut first.quality);
                for note in notes {
                    first.quality.warn(note);
                }
            }
            pictures.append(&mut of_tables);
        }
        Ok(pictures)
    }

    /// Returns a picture of one recording, and what it says of itself.
    ///
    /// # Errors
    /// It is no recording, or lacks what filters ask for.
    pub(crate) fn of_recording(
        &self,
        recording: &Recording,
        path: &Path,
    ) -> Result<(Picture, Head)> {
        let reader = wrong_input::reader(recording, self.lender.options(true))?;
        let name = input::name(path);
        let filter = input::Filter::new(&self.common.filter, self.facts, &reader, &name)?;
        filter.require_vcpus(&reader, &name)?;
        let mut follower = Paths::new(self.paths.clone());
        follower.only(filter.instances(&reader));
        locate(&mut follower, &reader);
        let mut sched = Sched::new();
        let symbols = reader.formats().map(|formats| &formats.kallsyms);
        let functions = Functions::new(symbols, self.kallsyms);
        sched.caller_at(functions.range(Sched::caller()));
        let mut study = Study::default()
            .with(Info::new())
            .with(Exits::new(Options {
                split: true,
                ..Options::default()
            }))
            .with(Vcpus::new(filter.window()))
            .with(sched)
            .with(Sleeps::new())
            .with(Signs::new())
            .with(Faults::new())
            .with(Timers::new())
            .with(Moves::new())
            .with(Stalls::new())
            .with(Recorder::new(has_agents(&reader)))
            .with(Ipis::new(&mut follower));
        if !self.paths.is_empty() {
            study = study.with(follower);
        }
        // What a filter by CPU takes away is missing by the user's own wish.
        if self.common.filter.cpu.is_none() {
            study = study.with(Continuity::new());
        }
        if self.comparing {
            study = study.slices(Slices::new());
        }
        study.saved_names(input::saved_names(&reader));
        study.told(&self.facts.told_of(&reader));
        let nanoseconds = input::nanoseconds(reader.header());
        if !nanoseconds {
            study.counts_ticks();
        }
        let mut study = study.choose(filter.window(), filter.left_out(&reader));
        let outcome = reader.walk(&mut study);
        study.finish();
        let keep = |tid: i32, pid: Option<i32>| filter.keeps(tid, pid);
        let mut picture = Picture::of(
            &mut study,
            outcome.quality,
            filter.chooses().then_some(&keep),
            functions,
            &|isa, quality| self.devices.names(isa, quality),
        );
        picture.names = vec![name];
        picture.about = about(reader.header(), &picture);
        for warning in picture.exits.iter().filter_map(ExitsReport::warning) {
            picture.quality.warn(warning);
        }
        if self.comparing {
            picture.only_asked();
        }
        let unpaired = study.get::<Exits>().map(Exits::unpaired);
        for warning in unpaired.iter().flat_map(Unpaired::warnings) {
            picture.quality.warn(warning);
        }
        if !nanoseconds {
            picture.span_ns = None;
            picture.quality.warn(
                "The recording's clock counts ticks of unknown rate: what is told in seconds is in ticks.",
            );
        }
        self.facts.warn(&mut picture.quality);
        Ok((picture, head(reader.header())))
    }
}

/// Returns whether a recording says that guests were recorded at the same time, each by an agent in it.
fn has_agents(reader: &Reader<'_>) -> bool {
    reader.header().more.iter().any(|(what, _)| what == "guest")
}

/// Returns what a recording's header says of its machine and recorder.
fn about(header: &Header, picture: &Picture) -> About {
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
    About {
        arch: header.arch.clone(),
        kernel: header.kernel.clone(),
        cpus: header.cpus,
        cpu: header.cpu_desc.clone(),
        recorder: recorder.map(str::to_owned),
        lists_events: lists,
    }
}

/// Tells where the functions are that paths ask for, for the function tracer's events.
pub(crate) fn locate(follower: &mut Paths, reader: &Reader<'_>) {
    let Some(formats) = reader.formats() else {
        return;
    };
    for function in follower.functions() {
        if let Some(range) = formats.kallsyms.range(&function) {
            follower.function_at(&function, range);
        }
    }
}
