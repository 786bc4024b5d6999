//! Where object files of user space are looked for.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use doubts::{DoubtKind, Doubts};
use session::{SearchOptions, UserFunctions};

/// How long `debuginfod-find` may take for one file. It is the program's own limit for a slow server
/// (`DEBUGINFOD_TIMEOUT`).
const DEBUGINFOD: Duration = Duration::from_secs(90);
/// With the value 1: no file of this machine is looked for where no option says so.
const NO_LOCAL_FILES: &str = "TRAPLINE_NO_LOCAL_FILES";
/// Files that are named where functions have no names.
const MAX_FILES: usize = 3;

/// Options for names of user space.
#[derive(Debug, Args)]
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

fn or_default(given: &[PathBuf], default: Option<PathBuf>) -> Vec<PathBuf> {
    match given {
        [] => default.into_iter().collect(),
        given => given.to_vec(),
    }
}

impl BinaryArgs {
    /// Returns where files are looked for.
    pub(super) fn options(&self) -> SearchOptions {
        // Whoever wants to have the same text on every machine has folders that the options name, and no others.
        if env::var_os(NO_LOCAL_FILES).is_some_and(|value| value == "1") {
            return SearchOptions {
                symfs: self.symfs.clone(),
                buildid_dirs: self.buildid_dir.clone(),
                debug_dirs: self.debug_dir.clone(),
                perf_maps: self.perf_maps.clone(),
                inlines: !self.no_inline,
                ..SearchOptions::default()
            };
        }
        let home = env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.map(PathBuf::from);
        let of_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let asks = env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty());
        // As debuginfod_find_debuginfo(3) has it.
        let cache = env::var_os("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        let cache = cache.or_else(|| {
            let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            Some(caches.or(of_home(".cache"))?.join("debuginfod_client"))
        });
        SearchOptions {
            own_paths: self.symfs.is_none(),
            symfs: self.symfs.clone(),
            buildid_dirs: or_default(&self.buildid_dir, of_home(".debug")),
            debug_dirs: or_default(&self.debug_dir, Some("/usr/lib/debug".into())),
            debuginfod_cache: cache,
            debuginfod_find: asks.then(|| ("debuginfod-find".into(), DEBUGINFOD)),
            perf_maps: self.perf_maps.clone(),
            inlines: !self.no_inline,
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
