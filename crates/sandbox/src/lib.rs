/*!
Takes from this process what reading a file that nobody trusts does not need: the network, other programs, files to
write but those that were named, and the kernel's interfaces that nothing of ours uses.

Whoever reads a recording of a stranger trusts all code that reads it. None of it should have a hole through which a
file gets to run code of its own; if one has, that code is to find nothing to do.

- **Landlock** (Linux 5.13; `Documentation/userspace-api/landlock.rst`): no file is written, made, removed or run
  outside of the folders that were named; no TCP connection (ABI 4); no requests to devices that are opened from then
  on (ABI 5); no signals to and no abstract sockets of others (ABI 6).
- **seccomp** (`Documentation/userspace-api/seccomp_filter.rst`): the system calls of [`REFUSED`] give `EPERM`. A
  list of what is refused and none of what is allowed: a new version of a library that uses another system call is
  to be no message of a broken program.

What stays: whatever this user may read, and whatever the process has open. Memory and time have limits elsewhere.
Where the kernel has neither, everything goes on as without it. Threads that run already are restricted by seccomp
alone, so this belongs before the first of them.
*/
#![forbid(unsafe_code)]

mod calls;
#[cfg(test)]
mod filtered;

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};

pub use calls::REFUSED;

/// What may still be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRequest {
    /// Folders in which files and folders are made, written, renamed and removed, with those below them. No links,
    /// devices, pipes or sockets are made there.
    pub folders: Vec<PathBuf>,
    /// Files that are there already and may be written: devices, pipes.
    pub files: Vec<PathBuf>,
}

/// How far Landlock keeps files from being written, made, removed, truncated and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilesRestriction {
    /// The kernel has no Landlock, or it is not in use.
    #[default]
    None,
    /// It has one that does not know all of this: truncation came with its version 3 (Linux 6.2).
    Partial,
    /// All of it.
    Whole,
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxState {
    /// How far Landlock keeps other files from being written.
    pub files: FilesRestriction,
    /// The version of Landlock that is in force, up to the newest one that is asked for; 0 where there is none.
    pub landlock: u8,
    /// Whether seccomp refuses system calls.
    pub calls: bool,
}

/// The newest Landlock that is asked for. What the kernel does not know of it is left out.
const ABI_ASKED: ABI = ABI::V6;
/// The version since which all that writes is known. Truncating came with 3.
const WRITES: ABI = ABI::V3;

/// What may be done in a folder that may be written.
fn written() -> BitFlags<AccessFs> {
    AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

impl SandboxState {
    /// Says what is in force, one sentence for each of files, other accesses and system calls. `request` is what it was
    /// entered with.
    pub fn sentences(&self, request: &SandboxRequest) -> Vec<String> {
        let places = request
            .folders
            .iter()
            .map(|folder| format!("below {}", folder.display()));
        let files = request.files.iter().map(|file| file.display().to_string());
        let mut places: Vec<String> = places.chain(files).collect();
        places.sort();
        places.dedup();
        let places = places.join(", ");
        let version = format!("Landlock (version {})", self.landlock);
        let mut said = vec![match self.files {
            FilesRestriction::Whole => {
                format!("{version}: of files none is run, and these alone are written: {places}")
            }
            FilesRestriction::Partial => format!(
                "{version}: of files none is run, and these alone are written: {places}; truncating others is not \
                 refused (Linux 6.2 does)"
            ),
            FilesRestriction::None => {
                "no Landlock: all files that this user may write can be written".to_owned()
            }
        }];
        if self.files != FilesRestriction::None {
            let more = [
                (4, "TCP connections (Linux 6.7)"),
                (5, "requests to devices (6.10)"),
                (
                    6,
                    "signals to and abstract sockets of other processes (6.12)",
                ),
            ];
            let names = |are: bool| -> Vec<&str> {
                let ones = more
                    .iter()
                    .filter(|(since, _)| (self.landlock >= *since) == are);
                ones.map(|(_, name)| *name).collect()
            };
            for (are, verb) in [(true, "refuses"), (false, "does not refuse")] {
                if !names(are).is_empty() {
                    said.push(format!("Landlock {verb} {}", names(are).join(", ")));
                }
            }
        }
        said.push(match self.calls {
            true => {
                let names: Vec<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
                format!("seccomp refuses system calls for {}", names.join("; "))
            }
            false => "no seccomp: no system call is refused".to_owned(),
        });
        said
    }
}

/// Restricts this process, as far as its kernel knows how to. This cannot be taken back.
pub fn enter(request: &SandboxRequest) -> SandboxState {
    let (files, landlock) = restrict_files(request).unwrap_or_default();
    SandboxState {
        files,
        landlock,
        calls: restrict_calls().is_some(),
    }
}

/// Returns what Landlock has in force, and which version of it.
fn restrict_files(request: &SandboxRequest) -> Result<(FilesRestriction, u8), RulesetError> {
    let wanted = AccessFs::from_write(WRITES) | AccessFs::Execute;
    // The kernel is asked for all of it first, and it says so where it does not know all.
    let strict = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(wanted);
    let whole = match strict.and_then(Ruleset::create) {
        Ok(_) => FilesRestriction::Whole,
        Err(_) => FilesRestriction::Partial,
    };
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(wanted | AccessFs::IoctlDev)?
        .handle_access(AccessNet::from_all(ABI_ASKED))?
        .scope(Scope::from_all(ABI_ASKED))?
        .create()?;
    let rules = allowed(rules, &request.folders, written());
    let rules = allowed(
        rules?,
        &request.files,
        AccessFs::WriteFile | AccessFs::Truncate,
    );
    let status = rules?.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => (FilesRestriction::None, 0),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => {
            (whole, version(&status))
        }
    })
}

/// Returns the version of Landlock that is in force.
fn version(status: &RestrictionStatus) -> u8 {
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => (effective_abi.min(ABI_ASKED)) as u8,
        _ => 0,
    }
}

/// Allows something below these paths. What is not there, or may not be opened, could not be written either.
fn allowed(
    rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let open = |path: &PathBuf| PathFd::new(path).ok();
    paths
        .iter()
        .filter_map(open)
        .try_fold(rules, |rules, path| {
            rules.add_rule(PathBeneath::new(path, access))
        })
}

/// Returns nothing where no filter is in force.
fn restrict_calls() -> Option<()> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    apply_filter_all_threads(&filter(arch)?).ok()
}

/// Returns the program of seccomp.
fn filter(arch: TargetArch) -> Option<BpfProgram> {
    let filter = SeccompFilter::new(
        calls::rules().ok()?.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?),
        arch,
    );
    filter.ok()?.try_into().ok()
}
