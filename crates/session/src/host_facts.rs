//! Facts of the host, from files beside the recordings.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use doubts::{DoubtKind, Doubts};
use facts::Facts;
use model::{RecorderClue, ThreadFact, ThreadFacts, VcpuFact, VmFact};
use source::{FileContent, RecordingHeader, RecordingReader};

use crate::{Error, InputPurpose, sniff};

/// Files of facts are not read beyond this many bytes: each line of `ps` may have a command line in it.
const MAX_FACTS: u64 = 64 << 20;

/// What is known of the host beside the recordings.
#[derive(Debug, Default)]
pub struct HostFacts {
    all: Facts,
    threads: ThreadFacts,
    notes: Vec<String>,
}

impl HostFacts {
    /// Reads files of facts.
    pub(crate) fn open(paths: &[PathBuf]) -> Result<HostFacts, Error> {
        let (all, notes) = read(paths, "--facts ")?;
        let threads = thread_facts(&all);
        Ok(HostFacts {
            all,
            threads,
            notes,
        })
    }

    /// Adds what texts among the inputs say of the host: files of facts count more.
    pub(crate) fn with<'t>(
        mut self,
        tickets: impl Iterator<Item = (&'t str, &'t Facts)>,
    ) -> HostFacts {
        for (name, facts) in tickets {
            let notes = self.all.merge(facts.clone()).into_iter();
            self.notes
                .extend(notes.map(|note| format!("{name}: {note}")));
        }
        self.threads = thread_facts(&self.all);
        self
    }

    /// Returns all facts.
    pub fn all(&self) -> &Facts {
        &self.all
    }

    /// Returns what is known of threads and VMs beside a recording's events. The recording's own map of guests comes
    /// first: it knows best.
    pub(crate) fn of(&self, reader: &RecordingReader<'_>) -> ThreadFacts {
        let mut known = self.threads.clone();
        let guests = reader.header().guests.iter().map(|guest| {
            let number = !guest.name.is_empty() && guest.name.bytes().all(|b| b.is_ascii_digit());
            VmFact {
                // 'trace-cmd record -A 3' knows the number of its vsock alone.
                name: match number {
                    true => Some(format!("guest {}", guest.name)),
                    false => Some(guest.name.clone()).filter(|name| !name.is_empty()),
                },
                vcpus: guest
                    .vcpus
                    .iter()
                    .map(|&(id, tid)| VcpuFact { id, tid })
                    .collect(),
                ..VmFact::default()
            }
        });
        known.vms.splice(0..0, guests);
        known.recorder = recorder(reader.header());
        known
    }

    /// Returns the threads that belong to a process.
    pub(crate) fn threads_of(&self, pid: i32) -> HashSet<i32> {
        let threads = self.threads.threads.iter().filter(|t| t.pid == Some(pid));
        let vms = self.threads.vms.iter().filter(|vm| vm.pid == Some(pid));
        let vcpus = vms.flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.tid);
        threads.map(|thread| thread.tid).chain(vcpus).collect()
    }

    /// Returns what of the files was not understood.
    pub fn doubts(&self) -> Doubts {
        let mut doubts = Doubts::default();
        for note in &self.notes {
            doubts.raise(DoubtKind::FactsNotUnderstood { note: note.clone() });
        }
        doubts
    }
}

/// Returns what a recording's header says of who made it. Threads carry the name of their program's file, cut to 15
/// bytes (`TASK_COMM_LEN`).
fn recorder(header: &RecordingHeader) -> RecorderClue {
    const COMM_BYTES: usize = 15;
    let format = header.format.as_str();
    let forks_readers = format.starts_with("trace.dat") || format.starts_with("text of trace-cmd");
    let is_perf = format.starts_with("perf.data") || format.starts_with("text of perf");
    let command = header.command.as_deref().filter(|_| is_perf);
    let program = command.and_then(|command| command.split(' ').next());
    let program = program.and_then(|path| path.rsplit('/').next());
    let comm = match program {
        Some(name) if !name.is_empty() => Some(name.get(..COMM_BYTES).unwrap_or(name)),
        _ if is_perf => Some("perf"),
        _ if forks_readers => Some("trace-cmd"),
        _ => None,
    };
    RecorderClue {
        pid: header.recorder_pid,
        comm: comm.map(Into::into),
        forks_readers,
    }
}

/// Returns what facts say of threads and VMs, for the machine that is rebuilt from events.
pub(crate) fn thread_facts(facts: &Facts) -> ThreadFacts {
    let threads = facts.threads.iter().map(|(tid, thread)| ThreadFact {
        tid: *tid,
        pid: thread.pid,
        comm: thread.comm.as_deref().map(Into::into),
    });
    let vms = facts.vms.iter().map(|vm| VmFact {
        pid: vm.pid,
        name: vm.name.clone(),
        uuid: vm.uuid.clone(),
        vcpus: vm
            .vcpus
            .iter()
            .map(|v| VcpuFact {
                id: v.id,
                tid: v.tid,
            })
            .collect(),
    });
    ThreadFacts {
        threads: threads.collect(),
        vms: vms.collect(),
        ..ThreadFacts::default()
    }
}

/// Reads files of facts; they add up, and the first one counts more. Returns what was not understood too, by file and
/// line. `-` is standard input.
///
/// # Errors
///
/// Fails when a file cannot be read, or has no facts.
pub fn read_facts(paths: &[PathBuf]) -> Result<(Facts, Vec<String>), Error> {
    read(paths, "")
}

/// Reads files of facts. Errors name the file with `option` before it.
fn read(paths: &[PathBuf], option: &str) -> Result<(Facts, Vec<String>), Error> {
    let mut all = Facts::default();
    let mut notes = Vec::new();
    for path in paths {
        let name = name(path);
        let (found, file_notes) = read_one(path, &format!("{option}{name}"))?;
        let merge_notes = all.merge(found);
        let of_file = file_notes.into_iter().chain(merge_notes);
        notes.extend(of_file.map(|note| format!("{name}: {note}")));
    }
    Ok((all, notes))
}

fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

fn read_one(path: &Path, name: &str) -> Result<(Facts, Vec<String>), Error> {
    let wanted = InputPurpose::Facts;
    let text = source::read_beside(path, MAX_FACTS).map_err(|error| Error::Unreadable {
        name: name.to_owned(),
        error,
        wanted,
    })?;
    let wrong = |kind| Error::WrongKind {
        name: name.to_owned(),
        kind,
        wanted,
    };
    // Among a recording's bytes there may be anything.
    if text.contains(&0) && matches!(source::sniff(&text), FileContent::Recording(_)) {
        return Err(wrong(sniff(&text)));
    }
    let (found, mut notes) = facts::read(&text);
    if found.is_empty() {
        let kind = sniff(&text);
        if kind.is_taken() {
            return Err(wrong(kind));
        }
        let first = notes.first().map(|note| format!(" ({note})"));
        let first = first.unwrap_or_default();
        return Err(Error::Nothing {
            name: name.to_owned(),
            reason: format!("says nothing about threads, VMs, devices or its host{first}"),
            wanted,
        });
    }
    if text.len() as u64 == MAX_FACTS {
        notes.push(format!("is not read beyond {} MiB", MAX_FACTS >> 20));
    }
    Ok((found, notes))
}
