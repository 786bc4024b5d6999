//! Where object files of user space are looked for, and kernels.

use std::path::PathBuf;

use clap::Args;
use doubts::{DoubtKind, Doubts};
use session::{SearchOptions, UserFunctions};

use crate::local_files;

/// Files that are named where functions have no names.
const MAX_FILES: usize = 3;

/// Options for names of user space.
#[derive(Debug, Clone, Args)]
pub(super) struct BinaryArgs {
    /// Name functions of user space with the files below DIR, a copy of the recorded machine's. Files of which the
    /// recording has no build id are taken from here alone.
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Look for files by build id in DIR, a cache as perf's. The default is ~/.debug; can be repeated.
    #[arg(long, value_name = "DIR")]
    buildid_dir: Vec<PathBuf>,

    /// Look for debug files in DIR. The default is /usr/lib/debug; can be repeated.
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,

    /// Name functions of just-in-time compilers with the files perf-PID.map in DIR, as they are in /tmp of the recorded
    /// machine.
    #[arg(long, value_name = "DIR")]
    perf_maps: Option<PathBuf>,

    /// Do not show inlined functions of user space.
    #[arg(long)]
    no_inline: bool,
}

impl BinaryArgs {
    /// Returns where files are looked for.
    pub(super) fn options(&self) -> SearchOptions {
        // Where an option names a folder, it stands in the place of those of this machine.
        let here = local_files::places();
        let or_here = |given: &[PathBuf], here: Vec<PathBuf>| match given {
            [] => here,
            given => given.to_vec(),
        };
        SearchOptions {
            own_paths: here.own_paths && self.symfs.is_none(),
            root: here.root.filter(|_| self.symfs.is_none()),
            symfs: self.symfs.clone(),
            buildid_dirs: or_here(&self.buildid_dir, here.buildid_dirs),
            debug_dirs: or_here(&self.debug_dir, here.debug_dirs),
            perf_maps: self.perf_maps.clone(),
            inlines: !self.no_inline,
            ..here
        }
    }

    /// Raises why functions have no names, where the user named folders that should have the files.
    pub(super) fn doubts(&self, functions: &UserFunctions) -> Doubts {
        let mut doubts = Doubts::default();
        let named = !self.buildid_dir.is_empty() || !self.debug_dir.is_empty();
        if self.symfs.is_none() && self.perf_maps.is_none() && !named {
            return doubts;
        }
        for (file, why, places) in functions.without_names().into_iter().take(MAX_FILES) {
            doubts.raise(DoubtKind::FileWithoutNames {
                file: file.to_string(),
                why: why.words().to_string(),
                places,
            });
        }
        doubts
    }
}
