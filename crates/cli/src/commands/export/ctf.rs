//! A recording as a CTF trace, which is a folder.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use export::{CtfTrace, TraceMachine};
use model::Threads;
use session::{FilterScope, HostInput};
use tracefmt::Endian;

use super::WrittenExport;
use crate::new_file;

/// Writes the events of the host that filters let through.
pub(super) fn write(host: &HostInput<'_>, folder: &Path) -> Result<WrittenExport> {
    let recording = host.input().recording_with_symbols()?;
    let formats = recording.reader().formats();
    let first = formats.and_then(|formats| formats.all().first());
    let endian = first.map_or(Endian::Little, |format| format.abi.endian);
    let mut threads = Threads::default();
    threads.saved_names(recording.saved_names());
    threads.add_facts(recording.thread_facts());
    let header = recording.header();
    let about = TraceMachine {
        kernel: header.kernel.clone(),
        arch: header.arch.clone(),
        lost_events: 0,
    };
    let mut written = WrittenExport::default();
    let mut refused = None;
    new_file::write_folder(folder, |begun| {
        let mut failed: Option<io::Error> = None;
        let mut append = |name: &str, bytes: &[u8]| {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(begun.join(name));
            match file.and_then(|mut file| file.write_all(bytes)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed.get_or_insert(error);
                    ControlFlow::Break(())
                }
            }
        };
        let mut trace = CtfTrace::new(endian, threads, &mut append);
        let walked = recording.walk_filtered(&mut trace, FilterScope::Events);
        if let Err(error) = recording.require_events(trace.events() > 0) {
            refused = Some(error);
            return Err(io::Error::other("there are no events"));
        }
        written.left_out = trace.finish(&about, recording.nanoseconds());
        written.quality = walked.quality;
        failed.map_or(Ok(()), Err)
    })
    .map_err(|error| refused.map_or(error, anyhow::Error::from))?;
    if host.guests().next().is_some() {
        let text = "Recordings of guests are not in a CTF trace: their CPUs and threads have the numbers of others.";
        written.left_out.push(text.to_owned());
    }
    Ok(written)
}
