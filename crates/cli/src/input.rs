//! Opening recordings for the commands.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use analysis::{ExitsReport, Info, LeftOut, Study, VcpusReport, Window};
use anyhow::{Result, anyhow, bail};
use devices::Names;
use event::{Isa, Quality, Sink};
use model::{ThreadFact, ThreadFacts, VcpuFact, Vm, VmFact};
use paths::Only;
use source::{Header, OpenOptions, Outcome, Reader, ReaderOptions, Recording, TimeUnit};
use tracefmt::{Formats, Kallsyms};

use crate::args::{Common, FilterArgs};
use crate::filter::{Filtered, Scope};
use crate::wrong_input;

/// Opens a recording as the command line says.
///
/// # Errors
/// It cannot be read, or is longer than may be kept of it.
pub(crate) fn open(path: &Path, common: &Common) -> Result<Recording> {
    let options = OpenOptions {
        spool_limit: common.spool_limit,
    };
    Ok(Recording::open_with(path, options)?)
}

/// Another recording that event formats are borrowed from.
#[derive(Debug, Default)]
pub(crate) struct Lender {
    formats: Option<Formats>,
}

impl Lender {
    /// Opens the recording named with `--formats`, if any.
    pub(crate) fn open(common: &Common) -> Result<Lender> {
        let Some(path) = &common.formats else {
            return Ok(Lender::default());
        };
        if path.is_dir() {
            let formats = source::formats_of_dir(path)?;
            return Ok(Lender {
                formats: Some(formats),
            });
        }
        let recording = open(path, common)?;
        let reader = recording.reader(ReaderOptions::default())?;
        match reader.formats() {
            Some(formats) if !formats.all().is_empty() => Ok(Lender {
                formats: Some(formats.clone()),
            }),
            _ => bail!("{}: has no event formats to lend", name(path)),
        }
    }

    /// Returns how recordings are to be read.
    pub(crate) fn options(&self, symbols: bool) -> ReaderOptions<'_> {
        ReaderOptions {
            lent: self.formats.as_ref(),
            symbols,
        }
    }
}

/// Files of facts are not read beyond this many bytes: each line of `ps` may have a command line in it.
const MAX_FACTS: u64 = 64 << 20;

/// What is told of the host beside the recordings.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    all: facts::Facts,
    told: ThreadFacts,
    notes: Vec<String>,
}

impl Facts {
    /// Reads the files named with `--facts`.
    ///
    /// # Errors
    /// A file cannot be read, or nothing in it is understood.
    pub(crate) fn open(common: &Common) -> Result<Facts> {
        let (all, notes) = read_facts(&common.facts)?;
        let threads = all.threads.iter().map(|(tid, thread)| ThreadFact {
            tid: *tid,
            pid: thread.pid,
            comm: thread.comm.as_deref().map(Into::into),
        });
        let vms = all.vms.iter().map(|vm| VmFact {
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
        let told = ThreadFacts {
            threads: threads.collect(),
            vms: vms.collect(),
        };
        Ok(Facts { all, told, notes })
    }

    /// Returns all that is told.
    pub(crate) fn all(&self) -> &facts::Facts {
        &self.all
    }

    /// Returns what is told of threads and VMs beside a recording's events. The recording's own map of guests comes
    /// first: it knows best.
    pub(crate) fn told_of(&self, reader: &Reader<'_>) -> ThreadFacts {
        let mut told = self.told.clone();
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
        told.vms.splice(0..0, guests);
        told
    }

    /// Returns the threads that are told to be of a process.
    fn threads_of(&self, pid: i32) -> HashSet<i32> {
        let threads = self.told.threads.iter().filter(|t| t.pid == Some(pid));
        let vms = self.told.vms.iter().filter(|vm| vm.pid == Some(pid));
        let vcpus = vms.flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.tid);
        threads.map(|thread| thread.tid).chain(vcpus).collect()
    }

    /// Tells in `quality` what of the files was not understood.
    pub(crate) fn warn(&self, quality: &mut Quality) {
        for note in &self.notes {
            quality.warn(note.clone());
        }
    }
}

/// Files of symbols are not read beyond this many bytes: a kernel with many modules has some 20 MB.
const MAX_KALLSYMS: u64 = 128 << 20;

/// Reads symbols, as /proc/kallsyms has them.
///
/// # Errors
/// The file cannot be read, or has no symbols.
pub(crate) fn kallsyms(path: Option<&Path>) -> Result<Option<Kallsyms>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_KALLSYMS).read_to_end(&mut text));
    if let Err(error) = read {
        bail!("--kallsyms {}: {}", name(path), why(&error));
    }
    let symbols = Kallsyms::parse(&text);
    if !symbols.has_addresses() {
        bail!(
            "--kallsyms {}: holds no symbols with addresses; expected a copy of /proc/kallsyms that root made \
             (others see zeros)",
            name(path)
        );
    }
    Ok(Some(symbols))
}

/// Reads files of facts; they add up, the first one counts more. Returns what was not understood, by file and line.
///
/// # Errors
/// A file cannot be read, or nothing in it is understood.
pub(crate) fn read_facts(paths: &[PathBuf]) -> Result<(facts::Facts, Vec<String>)> {
    const EXPECTED: &str = "expected the text of 'ps -eLo pid,tid,comm,args', of 'info cpus' or 'info \
                            mtree' of QEMU's monitor, of QMP's query-cpus-fast, or JSON of trapline's own";
    let mut all = facts::Facts::default();
    let mut notes = Vec::new();
    for path in paths {
        let mut text = Vec::new();
        let (name, read) = if path.as_os_str() == "-" {
            let stdin = io::stdin().lock();
            let read = stdin.take(MAX_FACTS).read_to_end(&mut text);
            ("standard input".to_owned(), read)
        } else {
            let read = File::open(path).and_then(|f| f.take(MAX_FACTS).read_to_end(&mut text));
            (name(path), read)
        };
        if let Err(error) = read {
            bail!("{name}: {}; {EXPECTED}", why(&error));
        }
        let (found, mut told) = facts::read(&text);
        if found.is_empty() {
            let first = told.first().map(|note| format!(" ({note})"));
            let first = first.unwrap_or_default();
            bail!("{name}: tells nothing of threads, VMs, devices or its host{first}; {EXPECTED}");
        }
        if text.len() as u64 == MAX_FACTS {
            told.push(format!("is not read beyond {} MiB", MAX_FACTS >> 20));
        }
        told.extend(all.merge(found));
        notes.extend(told.into_iter().map(|note| format!("{name}: {note}")));
    }
    Ok((all, notes))
}

/// Returns why a file cannot be read, in the words that are used for recordings.
pub(crate) fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the thread names a recording saved apart from its events.
pub(crate) fn saved_names<'r>(
    reader: &'r Reader<'_>,
) -> impl Iterator<Item = (i32, &'r str)> + Clone {
    let formats = reader.formats().into_iter();
    formats.flat_map(|f| f.cmdlines.iter().map(|(tid, name)| (*tid, name.as_str())))
}

/// Returns the name of a recording as JSON and messages print it.
pub(crate) fn name(path: &Path) -> String {
    path.display().to_string()
}

/// The shared filters, made ready for one recording.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    args: &'a FilterArgs,
    /// The time asked for, on the recording's clock.
    time: Option<(u64, u64)>,
    /// Threads of the VM or vCPU that was asked for.
    threads: Option<Vec<i32>>,
    /// Threads that facts give to the process that was asked for.
    of_process: HashSet<i32>,
    told: ThreadFacts,
    /// The recording's VMs; looked for when they are needed.
    vms: OnceCell<Vec<Vm>>,
}

/// Finds a recording's VMs, which costs a walk.
pub(crate) fn find_vms(reader: &Reader<'_>, told: &ThreadFacts) -> Vec<Vm> {
    let mut study = Study::default().with(Info::vcpus_only());
    study.saved_names(saved_names(reader));
    study.told(told);
    reader.walk(&mut study);
    study.walked().machine.vms()
}

impl<'a> Filter<'a> {
    /// Makes the filters ready. Those by VM and vCPU need to know whose threads are whose, which costs a
    /// walk over the recording.
    ///
    /// # Errors
    /// The recording, called `name` in messages, does not show the VM or vCPU that was asked for, or its clock has no
    /// such times.
    pub(crate) fn new(
        args: &'a FilterArgs,
        facts: &Facts,
        reader: &Reader<'_>,
        name: &str,
    ) -> Result<Filter<'a>> {
        let of_process = args.pid.map(|pid| facts.threads_of(pid));
        let time = args.time.as_ref();
        let time = time.map(|time| time.stamps(reader.header(), name));
        let time = time
            .transpose()
            .map_err(|error| anyhow!("{name}: {error}"))?;
        let mut filter = Filter {
            args,
            time,
            threads: None,
            of_process: of_process.unwrap_or_default(),
            told: facts.told_of(reader),
            vms: OnceCell::new(),
        };
        if args.vm.is_none() && args.vcpu.is_none() {
            return Ok(filter);
        }
        let vms = filter.vms(reader);
        let wanted = vms
            .iter()
            .filter(|vm| args.vm.as_deref().is_none_or(|name| vm.is_called(name)));
        let vcpus = wanted.flat_map(|vm| &vm.vcpus);
        let threads: Vec<i32> = vcpus
            .filter(|v| args.vcpu.is_none_or(|id| id == v.id))
            .map(|v| v.tid)
            .collect();
        // Where formats are missing, that is for the command to tell.
        if threads.is_empty() && !reader.lacks_formats() {
            bail!("{}", nobody(args, vms, name));
        }
        filter.threads = Some(threads);
        Ok(filter)
    }

    /// Returns the recording's VMs.
    fn vms(&self, reader: &Reader<'_>) -> &[Vm] {
        self.vms.get_or_init(|| find_vms(reader, &self.told))
    }

    /// Says in `quality` that a VM that was asked for is a guess, if it is one.
    pub(crate) fn warn(&self, quality: &mut Quality) {
        let vms = self.vms.get().filter(|_| self.args.vm.is_some());
        if let Some(guesses) = vms.and_then(|vms| model::guesses(vms)) {
            quality.warn(guesses);
        }
    }

    /// Returns whether filters choose vCPUs or threads.
    pub(crate) fn chooses(&self) -> bool {
        self.args.pid.is_some() || self.threads.is_some()
    }

    /// Returns whether the rows of a thread are wanted, for what is made of other threads' events too.
    pub(crate) fn keeps(&self, tid: i32, process: Option<i32>) -> bool {
        let pid = self
            .args
            .pid
            .is_none_or(|pid| tid == pid || process == Some(pid) || self.of_process.contains(&tid));
        let thread = self.threads.as_ref().is_none_or(|list| list.contains(&tid));
        pid && thread
    }

    /// Returns the vCPUs that filters do not choose, and the processes of VMs of which they choose none.
    pub(crate) fn left_out(&self, reader: &Reader<'_>) -> LeftOut {
        let mut out = LeftOut::default();
        if !self.chooses() {
            return out;
        }
        for vm in self.vms(reader) {
            let of_vm = self
                .args
                .pid
                .is_some_and(|pid| vm.pid == Some(pid) || vm.helpers.contains(&pid));
            let chosen = |tid: i32| {
                let thread = self.threads.as_ref().is_none_or(|list| list.contains(&tid));
                thread && (of_vm || self.keeps(tid, vm.pid))
            };
            let others = vm.vcpus.iter().filter(|vcpu| !chosen(vcpu.tid));
            let others: Vec<i32> = others.map(|vcpu| vcpu.tid).collect();
            if others.len() == vm.vcpus.len() {
                out.processes.extend(vm.pid);
            }
            out.threads.extend(others);
        }
        out
    }

    /// Refuses to look for causes where filters choose by a process or thread that no vCPU belongs to.
    ///
    /// # Errors
    /// There are vCPUs, and none of them is chosen.
    pub(crate) fn require_vcpus(&self, reader: &Reader<'_>, name: &str) -> Result<()> {
        let Some(pid) = self.args.pid else {
            return Ok(());
        };
        let vms = self.vms(reader);
        let vcpus: usize = vms.iter().map(|vm| vm.vcpus.len()).sum();
        if vcpus > 0 && self.left_out(reader).threads.len() == vcpus {
            bail!(
                "{name}: no vCPU of process {pid} is in it; {}",
                how_to_know(vms, name)
            );
        }
        Ok(())
    }

    /// Returns which instances of paths are wanted: of the vCPUs that filters choose, wherever their events are.
    pub(crate) fn instances(&self, reader: &Reader<'_>) -> Only {
        let threads = match (self.args.pid, &self.threads) {
            (None, threads) => threads.clone(),
            (Some(pid), threads) => {
                let mut all: Vec<i32> = self.of_process.iter().copied().collect();
                all.push(pid);
                let vms = self.vms(reader).iter();
                let of_vm = vms.filter(|vm| vm.pid == Some(pid) || vm.helpers.contains(&pid));
                all.extend(of_vm.flat_map(|vm| &vm.vcpus).map(|vcpu| vcpu.tid));
                all.retain(|tid| threads.as_ref().is_none_or(|list| list.contains(tid)));
                Some(all)
            }
        };
        Only {
            threads,
            time: self.time,
            cpus: self.args.cpu.clone(),
        }
    }

    /// Returns the window that vCPUs' time is looked at in.
    pub(crate) fn window(&self) -> Window {
        Window {
            time: self.time,
            cpus: self.args.cpu.clone(),
        }
    }

    /// Runs a sink over the events that the filters let through.
    pub(crate) fn walk(&self, reader: &Reader<'_>, sink: &mut dyn Sink, scope: Scope) -> Outcome {
        let cpus = self.args.cpu.as_ref();
        let of_process = &self.of_process;
        let filtered = Filtered::window(&mut *sink, self.time, cpus, of_process);
        let mut filtered = match scope {
            Scope::Events => filtered.of(self.args.pid, self.threads.as_deref()),
            Scope::Window => filtered,
        };
        if filtered.is_idle() {
            return reader.walk(sink);
        }
        reader.walk(&mut filtered)
    }
}

/// Says that a recording has no such VM or vCPU, which it has, and how to know more.
fn nobody(args: &FilterArgs, vms: &[Vm], name: &str) -> String {
    let of_vm = args.vm.iter().map(|vm| format!(" of a VM called {vm}"));
    let vcpu = args.vcpu.map(|id| format!(" {id}")).unwrap_or_default();
    format!(
        "{name}: no vCPU{vcpu}{} is in it; {}",
        of_vm.collect::<String>(),
        how_to_know(vms, name)
    )
}

/// Says which VMs a recording knows, and how to tell it more.
fn how_to_know(vms: &[Vm], name: &str) -> String {
    const MOST: usize = 8;
    if vms.is_empty() {
        return format!("it shows no VM ('trapline info {name}')");
    }
    let unnamed = vms
        .iter()
        .any(|vm| vm.name == vm.process || vm.pid.is_none());
    let tell = match unnamed {
        true => {
            "; what the recording does not tell of them, --facts does: the text of 'ps -eLo pid,tid,comm,args' of \
             the host has processes and the names that VMMs were given"
        }
        false => "",
    };
    format!(
        "VMs known here: {} ('trapline info {name}' lists their vCPUs){tell}",
        words::list_first(&model::vm_names(vms), MOST)
    )
}

/// Text of `info mtree` is not read beyond this many bytes; real ones have some 20,000.
const MAX_MTREE: u64 = 16 << 20;

/// Names of devices, from QEMU's `info mtree` or built in.
pub(crate) struct Devices {
    mtree: Option<String>,
}

impl Devices {
    /// Reads the text of `info mtree`, if a file of it was given, else takes it from the facts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn open(mtree: Option<&Path>, facts: &Facts) -> Result<Devices> {
        let Some(path) = mtree else {
            return Ok(Devices {
                mtree: facts.all().mtree.clone(),
            });
        };
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_MTREE).read_to_end(&mut text));
        if let Err(error) = read {
            bail!(
                "{}: {}; expected the text that QEMU's monitor prints for 'info mtree'",
                name(path),
                why(&error)
            );
        }
        Ok(Devices {
            mtree: Some(String::from_utf8_lossy(&text).into_owned()),
        })
    }

    /// Returns the names for a machine, and tells in `quality` what of the text was not understood.
    pub(crate) fn names(&self, isa: Option<Isa>, quality: &mut Quality) -> Names {
        let mut names = analysis::builtin_names(isa);
        if let Some(text) = &self.mtree {
            let (with, notes) = names.with_mtree(text);
            names = with;
            for note in notes {
                quality.warn(format!("info mtree: {note}"));
            }
        }
        names
    }

    /// Names the rows of tables, and tells in `quality` what of the text was not understood.
    pub(crate) fn name(
        &self,
        isa: Option<Isa>,
        reports: &mut [ExitsReport],
        quality: &mut Quality,
    ) {
        let names = self.names(isa, quality);
        for report in reports {
            analysis::name_rows(report, &names);
        }
    }

    /// Names what vCPUs were in the VMM for.
    pub(crate) fn name_causes(&self, report: &mut VcpusReport, quality: &mut Quality) {
        let causes = report.rows.iter().flat_map(|row| &row.user);
        let isa = causes
            .filter_map(|cause| cause.reason)
            .map(|r| r.isa)
            .next();
        let names = self.names(isa, quality);
        analysis::name_causes(report, &names);
    }
}

/// Returns whether the recording's times are nanoseconds.
pub(crate) fn nanoseconds(header: &Header) -> bool {
    header.time_unit == TimeUnit::Nanoseconds
}

/// Refuses a recording whose exits cannot be counted.
pub(crate) fn require_exits(
    name: &str,
    saw_exits: bool,
    filters: &FilterArgs,
    reader: &Reader<'_>,
) -> Result<()> {
    if saw_exits {
        return Ok(());
    }
    let without_formats = reader.lacks_formats();
    if reader.header().unthreaded {
        bail!(
            "{name}: the text does not say which thread made its events, and nothing in them tells one vCPU's exits from \
             another's; print it with 'perf script -F comm,tid,cpu,time,event,trace'"
        );
    }
    if filters.any() && !without_formats {
        bail!(
            "{name}: no kvm_exit or kvm_entry event passes the filters; 'trapline info {name}' tells what \
             is in it"
        );
    }
    if without_formats {
        bail!(
            "{name}: the part of the file that has the event formats is missing, so exits cannot be told \
             from other events; name another recording of the same kernel with --formats"
        );
    }
    bail!(
        "{name}: holds no kvm_exit and kvm_entry events, which exits and vCPUs are told by ({}); record on the \
         host with 'perf kvm stat record', 'perf record -a -e \"kvm:*\"' or 'trace-cmd record -e kvm'",
        wrong_input::holds(reader)
    );
}
