//! Where this machine keeps the files that name functions.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use session::SearchOptions;

/// How long `debuginfod-find` may take for one file. It is the program's own limit for a slow server
/// (`DEBUGINFOD_TIMEOUT`).
const DEBUGINFOD: Duration = Duration::from_secs(90);
/// With the value 1: no file of this machine is looked for where no option says so.
const NO_LOCAL_FILES: &str = "TRAPLINE_NO_LOCAL_FILES";

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
        debuginfod_find: asks.then(|| ("debuginfod-find".into(), DEBUGINFOD)),
        ..SearchOptions::default()
    }
}
