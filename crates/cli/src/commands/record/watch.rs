//! `--until PATH=TIME`: what is recorded is looked at while it is.

use std::fs;
use std::sync::Arc;

use anyhow::Result;
use facts::Facts;
use record::file::{Feature, Features};
use record::{Flight, OpenedEvents};
use recording::{LateInstance, LateWatch};
use session::PathWatch;
use source::{RecordingBytes, RecordingReader};

use crate::commands::record::args::PathBound;

/// Returns what stands before the records that are watched. `formats` are those of the events, without the kernel's
/// functions, which are megabytes that nobody needs for that.
pub(in crate::commands) fn head(
    opened: &OpenedEvents,
    (features, side): &(Features, Vec<u8>),
    formats: Vec<u8>,
) -> Result<RecordingBytes> {
    let mut features = features.clone();
    features.set(Feature::TracingData(formats));
    let head = Flight::head(opened, &features, side);
    Ok(RecordingBytes::from_bytes("what is recorded", head)?)
}

/// Begins to watch paths.
pub(in crate::commands) fn all<'r>(
    bounds: &'r [PathBound],
    facts: &Facts,
    head: &'r RecordingReader<'_>,
) -> Result<Vec<Box<dyn LateWatch + 'r>>> {
    let watches = bounds.iter().map(|bound| {
        let limit = PathLimit::new(bound, facts, head)?;
        Ok(Box::new(limit) as Box<dyn LateWatch + 'r>)
    });
    watches.collect()
}

/// A path, and how long its instances may take.
struct PathLimit<'r> {
    path: &'r str,
    watch: PathWatch<'r>,
}

impl<'r> PathLimit<'r> {
    /// Begins to watch the path that was named.
    fn new(
        until: &'r PathBound,
        facts: &Facts,
        head: &'r RecordingReader<'_>,
    ) -> Result<PathLimit<'r>> {
        let path = session::read_path_of("--until", &until.path)?;
        let kallsyms = || fs::read("/proc/kallsyms").unwrap_or_default();
        Ok(PathLimit {
            path: &until.path,
            watch: PathWatch::new(head, path, until.bound_ns, facts, kallsyms)?,
        })
    }
}

impl LateWatch for PathLimit<'_> {
    fn path(&self) -> &str {
        self.path
    }

    fn look(&mut self, piece: &Arc<Vec<u8>>, last: bool) -> Option<LateInstance> {
        let found = self.watch.look(piece, last);
        let longest = found.iter().max_by_key(|one| one.total_ns);
        longest.map(|one| LateInstance {
            begin_ns: one.begin_ns,
            total_ns: one.total_ns,
        })
    }

    fn completed(&self) -> u64 {
        self.watch.seen()
    }
}
