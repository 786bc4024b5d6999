//! Where this machine keeps the files that name functions.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use session::{DebuginfodAccess, DebuginfodProcess, SearchOptions, serve_debuginfod};

/// elfutils' program, which is on `PATH`.
const FIND: &str = "debuginfod-find";
/// How long `debuginfod-find` may take for one file. It is the program's own limit for a slow server
/// (`DEBUGINFOD_TIMEOUT`).
const DEBUGINFOD: Duration = Duration::from_secs(90);
/// With the value 1: no file of this machine is looked for where no option says so.
const NO_LOCAL_FILES: &str = "TRAPLINE_NO_LOCAL_FILES";

/// A process that asks debuginfod's servers for one that may not any more.
static ASKS_FOR_US: OnceLock<Arc<DebuginfodProcess>> = OnceLock::new();

/// The program's only argument where it is that process.
const PROCESS: &str = "--debuginfod-process";

/// Returns how debuginfod's servers are asked.
fn debuginfod() -> DebuginfodAccess {
    match ASKS_FOR_US.get() {
        Some(process) => DebuginfodAccess::Process(process.clone()),
        None => DebuginfodAccess::Program(FIND.into(), DEBUGINFOD),
    }
}

/// Leaves asking debuginfod's servers to a process of its own from now on, where anybody is to be asked. The servers
/// are those of the user's environment, and the process is given build ids alone.
///
/// # Errors
/// The process cannot be started.
pub(crate) fn leave_debuginfod_to_a_process() -> io::Result<()> {
    if places().debuginfod.is_some() {
        let process = DebuginfodProcess::start(Command::new("/proc/self/exe").arg(PROCESS))?;
        let _ = ASKS_FOR_US.set(Arc::new(process));
    }
    Ok(())
}

/// Serves another process of this program, if that is what this one was started for; returns how that ended.
pub(crate) fn served_debuginfod() -> Option<io::Result<()>> {
    let mut words = env::args_os().skip(1);
    let is_process = words.next().is_some_and(|word| word == PROCESS) && words.next().is_none();
    let serve = || serve_debuginfod(io::stdin(), io::stdout(), Path::new(FIND), DEBUGINFOD);
    is_process.then(serve)
}

/// Returns where files of this machine are looked for; nowhere with `TRAPLINE_NO_LOCAL_FILES=1`, for whoever wants to
/// have the same text on every machine.
pub(crate) fn places() -> SearchOptions {
    if env::var_os(NO_LOCAL_FILES).is_some_and(|value| value == "1") {
        return SearchOptions::default();
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
        own_paths: true,
        root: Some("/".into()),
        buildid_dirs: of_home(".debug").into_iter().collect(),
        debug_dirs: vec!["/usr/lib/debug".into()],
        debuginfod_cache: cache,
        debuginfod: asks.then(debuginfod),
        ..SearchOptions::default()
    }
}
