//! Paths of the pairs of events that the recorder was asked for.

use paths::lang::{EventAttribute, PairJoin, PathDefinition, pair};

use crate::{OpenRecording, PictureOptions};

impl OpenRecording<'_> {
    /// Returns a path for each pair of events of which the recorder wrote no more than belongs to them: from the first
    /// to the second, in a thread.
    pub fn pair_paths(&self) -> Vec<PathDefinition> {
        let join = PairJoin::Same(EventAttribute::Thread);
        let pairs = self.header().pairs.iter();
        // A name that the language does not take is no event's.
        let paths = pairs.filter_map(|(first, second)| pair(first, second, &join).ok());
        paths
            .map(|path| PathDefinition {
                only_if_found: true,
                ..path
            })
            .collect()
    }

    /// Returns options with these among the paths, for whoever shows all.
    pub(crate) fn with_pairs(&self, options: &PictureOptions) -> PictureOptions {
        let mut options = options.clone();
        if options.timeline {
            options.paths.extend(self.pair_paths());
        }
        options
    }
}
