//! What the command line asks for, as the library takes it.

use std::path::{Path, PathBuf};

use recording::HOST_FACTS;
use session::{Error, Filters, Session, SessionOptions};

use crate::heap;
use crate::local_files;
use crate::options::{Common, FilterArgs};
use crate::progress;

/// Files that some commands take beside those that all take.
#[derive(Debug, Default)]
pub(crate) struct AccompanyingFiles<'a> {
    /// The text of `info mtree`.
    pub mtree: Option<&'a Path>,
    /// A copy of `/proc/kallsyms`.
    pub kallsyms: Option<&'a Path>,
    /// A copy of a guest's.
    pub guest_kallsyms: Option<&'a Path>,
    /// A copy of a guest's `/proc/modules`.
    pub guest_modules: Option<&'a Path>,
    /// The folder with guests' file systems.
    pub guestmount: Option<&'a Path>,
    /// Where object files of user space are looked for.
    pub binaries: session::SearchOptions,
    /// Where the symbols of kernels are looked for; without it where this machine keeps them.
    pub kernels: Option<session::SearchOptions>,
    /// The command has something to say of a recording that was cut off before its first event.
    pub empty: bool,
    /// The first input is a host's recording, and the others are those of its guests.
    pub with_guests: bool,
    /// So many of the inputs, the first ones, are recordings; without it all are.
    pub recordings: Option<usize>,
    /// So many recordings are held beside these: those of another session, or of a comparison behind the report.
    pub beside_recordings: usize,
    /// The recordings may be tickets, of which all parts are used.
    pub tickets: bool,
}

/// Opens what stands beside the inputs of a command. `inputs` are these, and other files that the command reads itself.
///
/// # Errors
/// Standard input is named twice, or a file beside the inputs cannot be used.
pub(crate) fn session(
    common: &Common,
    beside: &AccompanyingFiles<'_>,
    inputs: &[&Path],
) -> Result<Session, Error> {
    let hosts = match beside.with_guests {
        true => 1,
        false => beside.recordings.unwrap_or(inputs.len()),
    };
    let options = SessionOptions {
        limits: heap::limit(common.max_memory).shared_by(hosts + beside.beside_recordings),
        spool_limit: common.spool_limit,
        formats: common.formats.clone(),
        facts: facts(common, inputs.get(..hosts).unwrap_or(inputs)),
        mtree: beside.mtree.map(Path::to_owned),
        kallsyms: beside.kallsyms.map(Path::to_owned),
        guest_kallsyms: beside.guest_kallsyms.map(Path::to_owned),
        guest_modules: beside.guest_modules.map(Path::to_owned),
        guestmount: beside.guestmount.map(Path::to_owned),
        binaries: beside.binaries.clone(),
        kernels: beside.kernels.clone().unwrap_or_else(local_files::places),
        threads: threads(common),
        filters: filters(&common.filter),
        tickets: match beside.tickets {
            true => {
                let inputs = inputs
                    .iter()
                    .take(beside.recordings.unwrap_or(inputs.len()));
                inputs.map(|path| (*path).to_owned()).collect()
            }
            false => Vec::new(),
        },
        empty: beside.empty,
        progress: progress::progress(),
    };
    options.one_standard_input(inputs)?;
    Session::open(options)
}

/// Returns the files of facts: those that are given, or those that stand in the folder of the one recording.
fn facts(common: &Common, inputs: &[&Path]) -> Vec<PathBuf> {
    match (common.facts.as_slice(), inputs) {
        ([], [folder]) => {
            let beside = folder.join(HOST_FACTS);
            let there = folder.is_dir() && beside.is_file();
            there.then_some(beside).into_iter().collect()
        }
        (given, _) => given.to_vec(),
    }
}

/// Threads to use where the user does not say: more than a few have nothing to do.
const MAX_THREADS: usize = 4;

fn threads(common: &Common) -> usize {
    let asked = common.threads.map(usize::from);
    asked.unwrap_or_else(|| {
        let all = std::thread::available_parallelism();
        all.map_or(1, usize::from).min(MAX_THREADS)
    })
}

fn filters(args: &FilterArgs) -> Filters {
    Filters {
        pid: args.pid,
        vm: args.vm.clone(),
        vcpu: args.vcpu,
        cpus: args.cpu.clone(),
        time: args.time.clone(),
    }
}
