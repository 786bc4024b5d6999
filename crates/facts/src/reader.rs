//! Parts of a text, distinguished by their lines.

use std::collections::BTreeMap;

use crate::data::FactsBuilder;
use crate::domstats::{self, DomstatsText};
use crate::keep::name;
use crate::lscpu::{self, LscpuText};
use crate::monitor::{self, MonitorLine};
use crate::notes::FactsNotes;
use crate::numa::NumaText;
use crate::ps::{Bare, PsColumns, PsRow};
use crate::qemu::{self, PackageLine};
use crate::{Host, KernelLogReader, LogOwner, ReportedThread, ReportedVcpu, ReportedVm, vmm};

/// Most lines without a header that wait for the end of their list.
const MAX_BARE: usize = 1 << 14;

/// What the lines are part of.
#[derive(Debug, Default)]
enum TextPart {
    #[default]
    None,
    /// `ps`, with its header.
    Ps(PsColumns),
    /// `ps`, without.
    Bare(Vec<(usize, Bare)>),
    /// `info cpus`: thread by vCPU.
    Cpus(BTreeMap<u32, i32>),
    /// `info mtree`, which was moved to the right by so many bytes.
    Mtree(usize),
    /// `virsh vcpuinfo` or `virsh vcpupin`.
    Virsh,
    /// `numactl -H` or `numastat -p`.
    Numa(NumaText),
    /// A kernel's log.
    KernelLog(KernelLogReader),
    /// `lscpu`.
    Lscpu(Box<LscpuText>),
    /// `virsh domstats`.
    Domstats(DomstatsText),
}

/// What a monitor's session said about its VM.
#[derive(Debug, Default)]
pub(crate) struct MonitorSession {
    pub(crate) vm: ReportedVm,
}

#[derive(Debug, Default)]
pub(crate) struct FactsReader {
    pub(crate) gather: FactsBuilder,
    pub(crate) notes: FactsNotes,
    /// Number of the line being read.
    pub(crate) number: usize,
    pub(crate) session: MonitorSession,
    part: TextPart,
    /// The line before, which is nothing known by itself and may be a heading, with its number.
    before: Option<(usize, String)>,
    /// The QEMU that is installed, by the first line that says so.
    qemu: Option<String>,
    /// Whether others say that it is another one.
    qemus_differ: bool,
}

impl FactsReader {
    /// Returns a reader at the first line of a text.
    pub(crate) fn new() -> FactsReader {
        FactsReader {
            number: 1,
            ..FactsReader::default()
        }
    }

    /// Takes a text that stands in a string of JSON: its lines are of the line that the JSON begins in.
    pub(crate) fn text_inside(&mut self, text: &str) {
        self.end_of_part();
        for line in text.split('\n') {
            // Blanks before a brace are no part of the line, as outside of JSON.
            let unindented = line.trim_start_matches([' ', '\t']);
            let line = if unindented.starts_with(['{', '[']) {
                unindented
            } else {
                line
            };
            self.line(line.trim_end());
        }
        self.end_of_part();
    }

    /// Takes a line.
    pub(crate) fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if let Some(rest) = monitor::after_prompt(line) {
            self.end_of_part();
            // Behind the prompt stands the command, or its output where commands are not echoed.
            self.monitor(rest);
            return;
        }
        if self.monitor(line) {
            return;
        }
        if self.numa(line) {
            return;
        }
        if self.domstats(line) || self.lscpu(line) {
            return;
        }
        if let Some(columns) = PsColumns::of_header(line) {
            self.end_of_part();
            self.part = TextPart::Ps(columns);
            return;
        }
        if let TextPart::KernelLog(log) = &mut self.part
            && log.line(line)
        {
            return;
        }
        if let TextPart::Ps(columns) = &self.part
            && let Some(row) = columns.row(line)
        {
            take_row(&mut self.gather, &row);
            return;
        }
        if self.kernel_log(line) {
            return;
        }
        if is_virsh(line) {
            if !matches!(self.part, TextPart::Virsh) {
                self.end_of_part();
                self.part = TextPart::Virsh;
                self.notes.add(
                    self.number,
                    "virsh vcpuinfo and vcpupin print no thread ids; 'virsh qemu-monitor-command --hmp VM info cpus' \
                     does. Where vCPUs may run is read of them with --domain",
                );
            }
            return;
        }
        if self.package(line) {
            return;
        }
        if let Some(bare) = Bare::of(line) {
            let row = (self.number, bare);
            match &mut self.part {
                TextPart::Bare(rows) if rows.len() < MAX_BARE => rows.push(row),
                _ => {
                    self.end_of_part();
                    self.part = TextPart::Bare(vec![row]);
                }
            }
            return;
        }
        if let TextPart::Mtree(indent) = self.part
            && line.starts_with(' ')
        {
            self.gather.mtree(outdented(line, indent));
            return;
        }
        // What a shell's user typed.
        if line.starts_with("$ ") || line.starts_with("# ") {
            self.end_of_part();
            return;
        }
        self.notes.unknown(self.number);
        self.before = domstats::is_heading(line).then(|| (self.number, line.to_owned()));
    }

    /// Takes a line of lscpu; returns whether it is one.
    fn lscpu(&mut self, line: &str) -> bool {
        if let TextPart::Lscpu(text) = &mut self.part {
            return text.line(line);
        }
        let mut text = LscpuText::default();
        let known = text.line(line);
        if known {
            self.end_of_part();
            self.part = TextPart::Lscpu(Box::new(text));
        } else if lscpu::is_translated(line) {
            self.notes.add(
                self.number,
                "lscpu is not read in this language: give 'LC_ALL=C lscpu'",
            );
        }
        known
    }

    /// Takes a line of a domain's statistics; returns whether it is one.
    fn domstats(&mut self, line: &str) -> bool {
        let before = self.before.take();
        let heading = before.as_ref().map(|(_, line)| line.as_str());
        let known = match &mut self.part {
            TextPart::Domstats(text) => text.line(line, heading),
            _ => {
                let mut text = DomstatsText::default();
                let known = text.line(line, heading);
                if known {
                    self.end_of_part();
                    self.part = TextPart::Domstats(text);
                }
                known
            }
        };
        if let Some((number, _)) = before.filter(|_| known) {
            self.notes.is_known(number);
        }
        known
    }

    /// Takes a line of QEMU's monitor; returns whether it is one.
    fn monitor(&mut self, line: &str) -> bool {
        match monitor::parse(line) {
            MonitorLine::Cpu(None) => {
                self.notes.add(self.number, "a vCPU without a thread");
            }
            MonitorLine::Cpu(Some(vcpu)) => {
                // A number that comes again is another VM's.
                if let TextPart::Cpus(vcpus) = &mut self.part
                    && !vcpus.contains_key(&vcpu.id)
                {
                    vcpus.insert(vcpu.id, vcpu.tid);
                } else {
                    self.end_of_part();
                    self.part = TextPart::Cpus(BTreeMap::from([(vcpu.id, vcpu.tid)]));
                }
            }
            MonitorLine::Mtree => {
                let indent = match self.part {
                    TextPart::Mtree(indent) => indent,
                    _ => {
                        self.end_of_part();
                        let own = line.len() - line.trim_start_matches(' ').len();
                        // A region without its heading stands to the right by itself.
                        let indent =
                            own.saturating_sub(if line.contains(" (prio") { 2 } else { 0 });
                        self.part = TextPart::Mtree(indent);
                        indent
                    }
                };
                self.gather.mtree(outdented(line, indent));
            }
            MonitorLine::Banner(version) => {
                self.end_of_part();
                self.session = MonitorSession::default();
                self.session.vm.version = Some(version).filter(|text| is_version(text));
            }
            MonitorLine::Other => return false,
        }
        true
    }

    /// Takes a line of NUMA nodes or of memory on them; returns whether it is one.
    fn numa(&mut self, line: &str) -> bool {
        if let TextPart::Numa(text) = &mut self.part {
            return text.line(line);
        }
        let mut text = NumaText::default();
        let known = text.line(line);
        if known {
            self.end_of_part();
            self.part = TextPart::Numa(text);
        }
        known
    }

    /// Takes a line that says which packages are installed; returns whether it is one.
    fn package(&mut self, line: &str) -> bool {
        let Some(found) = qemu::read(line) else {
            return false;
        };
        self.end_of_part();
        let PackageLine::Qemu(version) = found else {
            return true;
        };
        let known = self.qemu.get_or_insert_with(|| version.clone());
        if qemu::release(known) != qemu::release(&version) && !self.qemus_differ {
            self.qemus_differ = true;
            let known = known.clone();
            self.notes.add(
                self.number,
                format!("QEMU {version} beside QEMU {known}: which of them runs VMs is not known"),
            );
        }
        true
    }

    /// Takes what the lines said together.
    pub(crate) fn end(&mut self) {
        self.end_of_part();
        let qemu = self.qemu.take().filter(|_| !self.qemus_differ);
        if let Some(qemu) = qemu.as_deref().and_then(name) {
            let host = Host {
                qemu: Some(qemu),
                ..Host::default()
            };
            for note in self.gather.host(host) {
                self.notes.add(self.number, note);
            }
        }
    }

    /// Takes the first line of a kernel's log; returns whether it is one. What a message of several lines has below its
    /// first is indented, and is part of the log too.
    fn kernel_log(&mut self, line: &str) -> bool {
        if matches!(self.part, TextPart::KernelLog(_)) {
            return line.starts_with([' ', '\t']);
        }
        let mut log = KernelLogReader::default();
        let known = log.line(line);
        if known {
            self.end_of_part();
            self.part = TextPart::KernelLog(log);
        }
        known
    }

    /// Takes a log that has ended: a guest's own, or the host's.
    fn logged(&mut self, log: KernelLogReader) {
        if log.is_empty() {
            return;
        }
        let notes = match log.finish() {
            (log, LogOwner::Guest) => self.gather.guest_log(log).into_iter().collect(),
            (log, LogOwner::Host | LogOwner::Unknown) => self.gather.host(Host {
                kernel_log: Some(log),
                ..Host::default()
            }),
        };
        for note in notes {
            self.notes.add(self.number, note);
        }
    }

    /// Takes the vCPUs of the session's VM, or of the next VM if this one has given its own.
    pub(crate) fn vcpus(&mut self, vcpus: Vec<ReportedVcpu>) {
        if !self.session.vm.vcpus.is_empty() {
            self.session = MonitorSession::default();
        }
        self.session.vm.vcpus = vcpus;
        self.gather.vm(self.session.vm.clone());
    }

    /// Takes a name (or UUID) of the session's VM, or of the next VM if this one has given its own.
    pub(crate) fn named(&mut self, field: fn(&mut ReportedVm) -> &mut Option<String>, name: &str) {
        if field(&mut self.session.vm).is_some() {
            self.session = MonitorSession::default();
        }
        *field(&mut self.session.vm) = Some(name.to_owned());
        // A name alone says nothing of any thread.
        if !self.session.vm.vcpus.is_empty() {
            self.gather.vm(self.session.vm.clone());
        }
    }

    pub(crate) fn end_of_part(&mut self) {
        match std::mem::take(&mut self.part) {
            TextPart::Cpus(vcpus) => {
                let vcpus = vcpus
                    .into_iter()
                    .map(|(id, tid)| ReportedVcpu::new(id, tid));
                self.vcpus(vcpus.collect());
            }
            TextPart::Bare(rows) => self.bare(&rows),
            TextPart::KernelLog(log) => self.logged(log),
            TextPart::Numa(text) => {
                let (host, vms) = text.finish();
                for vm in vms {
                    self.gather.vm(vm);
                }
                let notes = host.map(|host| self.gather.host(host));
                for note in notes.into_iter().flatten() {
                    self.notes.add(self.number, note);
                }
            }
            TextPart::Domstats(text) => {
                for domain in text.finish() {
                    let note = self.gather.domain(domain);
                    note.into_iter()
                        .for_each(|note| self.notes.add(self.number, note));
                }
            }
            TextPart::Lscpu(text) => {
                let (host, note) = text.finish();
                let notes = host.map(|host| self.gather.host(host));
                for note in notes.into_iter().flatten().chain(note) {
                    self.notes.add(self.number, note);
                }
            }
            TextPart::None | TextPart::Ps(_) | TextPart::Mtree(_) | TextPart::Virsh => {}
        }
    }

    /// Takes a list without header. Its numbers are process and thread where they say so themselves: a
    /// process's first thread has its id, and no process is its own parent; or all threads are of one
    /// process.
    fn bare(&mut self, rows: &[(usize, Bare)]) {
        let own = rows.iter().any(|(_, row)| row.first == row.second);
        let one = rows.len() > 1
            && rows.windows(2).all(|pair| {
                pair[0].1.first == pair[1].1.first && pair[0].1.second != pair[1].1.second
            });
        if own || one {
            for (_, row) in rows {
                take_row(&mut self.gather, &row.row());
            }
        } else if let Some((number, _)) = rows.first() {
            self.notes.add(
                *number,
                "a list without its header: keep the line with PID and TID, as 'ps -eLo pid,tid,comm,args' \
                 prints it",
            );
        }
    }
}

fn take_row(gather: &mut FactsBuilder, row: &PsRow<'_>) {
    let found = row.args.and_then(vmm::read);
    // The kernel names a process after its program, whose name VMMs keep for their first thread.
    let program = found.as_ref().map(|vmm| {
        let end = vmm.program.floor_char_boundary(15);
        &vmm.program[..end]
    });
    let comm = row
        .comm
        .map(|comm| {
            let own = words::task_comm(comm.as_bytes()).len();
            comm.get(..own).unwrap_or(comm)
        })
        .or_else(|| program.filter(|_| row.pid == Some(row.tid)));
    let thread = ReportedThread {
        pid: row.pid,
        comm: comm.map(str::to_owned),
        ..ReportedThread::default()
    };
    gather.thread(row.tid, thread);
    if let (Some(vmm), Some(pid)) = (found, row.pid)
        && (vmm.vm.name.is_some() || vmm.vm.uuid.is_some())
    {
        gather.vm(ReportedVm {
            pid: Some(pid),
            ..vmm.vm
        });
    }
}

/// Returns a line without so many blanks at its beginning.
fn outdented(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    line.get(indent.min(blanks)..).unwrap_or(line)
}

/// Whether a text begins as a version of QEMU: `8.2.2`.
fn is_version(text: &str) -> bool {
    let number = text.split('.').next().unwrap_or_default();
    text.contains('.') && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a line is of `virsh vcpuinfo` or of the head of `virsh vcpupin`.
fn is_virsh(line: &str) -> bool {
    let text = line.trim();
    let keys = ["VCPU:", "CPU:", "State:", "CPU time:", "CPU Affinity:"];
    keys.iter().any(|key| text.starts_with(key))
        || (text.starts_with("VCPU ") && text.contains("CPU Affinity"))
}
