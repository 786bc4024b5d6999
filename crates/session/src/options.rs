//! What is asked for.

use std::path::{Path, PathBuf};

use analysis::TimelineLimits;
use cpuset::CpuSet;
use model::StateLimits;
use paths::lang;
use source::ReadProgress;

use crate::{Error, TimeRange};

/// What inputs are read with. The default reads nothing beside them, and all of them.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// What is kept at most of an input that is packed or comes through a pipe, in bytes.
    pub spool_limit: Option<u64>,
    /// Another recording of the same kernel, or (a copy of) its `/sys/kernel/tracing/events`, whose event formats are
    /// used where a recording has lost its own.
    pub formats: Option<PathBuf>,
    /// Files with facts of the host; the first one counts more.
    pub facts: Vec<PathBuf>,
    /// The text of `info mtree` of QEMU's monitor, which names devices. Without it, the facts may have one.
    pub mtree: Option<PathBuf>,
    /// A copy of the host's `/proc/kallsyms`, for recordings without symbols.
    pub kallsyms: Option<PathBuf>,
    /// A copy of a guest's `/proc/kallsyms`, for samples of its kernel.
    pub guest_kallsyms: Option<PathBuf>,
    /// A copy of a guest's `/proc/modules`, which says where its modules end.
    pub guest_modules: Option<PathBuf>,
    /// A folder with the file systems of guests, each in a folder called after the process of its VM:
    /// `PID/proc/kallsyms`.
    pub guestmount: Option<PathBuf>,
    /// Where object files of user space are looked for, which name its functions.
    pub binaries: binaries::SearchOptions,
    /// Where the symbols of the recorded kernel are looked for, where neither the recording nor `kallsyms` has them.
    pub kernels: binaries::SearchOptions,
    /// Threads that may work on an input; 0 is 1. What is found is the same with any number.
    pub threads: usize,
    /// What of a recording is wanted.
    pub filters: Filters,
    /// Inputs that may be tickets: texts in which several things stand, which are used together.
    pub tickets: Vec<PathBuf>,
    /// Whether a recording is taken too of which nothing is left but what stands before its events.
    pub empty: bool,
    /// How many threads and vCPUs are kept apart at most; those with the least time become sums.
    pub limits: StateLimits,
    /// Whom to tell how far the reading of inputs is.
    pub progress: Option<ReadProgress>,
}

impl SessionOptions {
    /// Returns all files that stand beside inputs.
    pub(crate) fn beside(&self) -> impl Iterator<Item = &Path> {
        let options = [
            &self.formats,
            &self.mtree,
            &self.kallsyms,
            &self.guest_kallsyms,
            &self.guest_modules,
        ];
        let options = options.into_iter().flatten();
        options.chain(&self.facts).map(PathBuf::as_path)
    }

    /// Checks, before anything is read, that standard input is named once at most. `inputs` are the paths that will be
    /// read beside those in the options.
    ///
    /// # Errors
    ///
    /// Fails when `-` is named several times: the second reader would find it empty.
    pub fn one_standard_input(&self, inputs: &[&Path]) -> Result<(), Error> {
        let all = self.beside().chain(inputs.iter().copied());
        match all.filter(|path| is_standard_input(path)).count() {
            0 | 1 => Ok(()),
            _ => Err(Error::StandardInputTwice),
        }
    }
}

/// Returns whether a path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Which vCPUs, threads and events of a recording are wanted. The default is all of them.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Those of this process or thread.
    pub pid: Option<i32>,
    /// Those of the VM with this name, UUID or process id, or whose process has this name.
    pub vm: Option<String>,
    /// Those of the vCPU with this number, of each VM without `vm`.
    pub vcpu: Option<u32>,
    /// Events on these CPUs.
    pub cpus: Option<CpuSet>,
    /// What happens in this time.
    pub time: Option<TimeRange>,
}

impl Filters {
    /// Returns whether anything is filtered.
    pub fn any(&self) -> bool {
        let threads = self.pid.is_some() || self.vm.is_some() || self.vcpu.is_some();
        threads || self.cpus.is_some() || self.time.is_some()
    }
}

/// What a picture has to show.
#[derive(Debug, Clone)]
pub struct PictureOptions {
    /// The paths that are followed; by default those that rules look at.
    pub paths: Vec<lang::PathDefinition>,
    /// The paths that are followed behind these where guests' recordings are walked too; by default none, as rules and
    /// comparisons look at none of them.
    pub guest_paths: Vec<lang::PathDefinition>,
    /// Whether pictures are to be compared. Sums are kept by slices of time then, to tell noise from news, and a text
    /// with several tables of one kind is refused.
    pub comparing: bool,
    /// Whether the parts are asked for that reports and comparisons have and no rule looks at, as interrupts.
    pub parts: bool,
    /// Whether stacks are collected, as flame graphs show them.
    pub flames: bool,
    /// Whether there is to be a timeline, and examples of paths. [`crate::Input::details`] fills it with what is of
    /// interest.
    pub timeline: bool,
    /// How large that may be.
    pub timeline_limits: TimelineLimits,
}

impl Default for PictureOptions {
    fn default() -> PictureOptions {
        PictureOptions {
            paths: rules::PATHS
                .iter()
                .filter_map(|name| paths::builtin(name))
                .collect(),
            guest_paths: Vec::new(),
            comparing: false,
            parts: true,
            flames: false,
            timeline: false,
            timeline_limits: TimelineLimits::default(),
        }
    }
}

impl PictureOptions {
    /// Returns what pictures need that are to be compared: all built-in paths, and sums by slices of time.
    pub fn to_compare() -> PictureOptions {
        PictureOptions {
            paths: paths::all_builtin(),
            comparing: true,
            ..PictureOptions::default()
        }
    }

    /// Returns what a whole report shows: all built-in paths, those that rules look at, stacks, and a timeline.
    pub fn to_report() -> PictureOptions {
        PictureOptions {
            timeline: true,
            ..PictureOptions::to_store()
        }
    }

    /// Returns what is kept of a recording: all built-in paths, those that rules look at, and stacks.
    pub fn to_store() -> PictureOptions {
        let mut paths = paths::all_builtin();
        for path in PictureOptions::default().paths {
            if !paths.iter().any(|one| one.name == path.name) {
                paths.push(path);
            }
        }
        PictureOptions {
            paths,
            flames: true,
            ..PictureOptions::default().through_guests()
        }
    }

    /// Has the built-in paths through guests followed where guests' recordings are walked too, for whoever shows paths.
    #[must_use]
    pub fn through_guests(self) -> PictureOptions {
        PictureOptions {
            guest_paths: paths::with_guests(),
            ..self
        }
    }
}
