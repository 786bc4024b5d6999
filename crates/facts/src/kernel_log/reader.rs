//! A log line by line, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use super::message::{self, LoggedMessage};
use super::prefix::{self, LogPrefix};
use super::{KernelLog, KernelLogLine, LogKind, MAX_TEXT, MOST_FIRST, MOST_LAST};
use crate::keep::name;

/// Lines that follow a stall and name its CPUs come right behind it: a stall has one for each CPU.
const MOST_AFTER_STALL: u32 = 1024;

/// Whose log it is, as its own lines say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogOwner {
    /// Nothing in it says so.
    #[default]
    Unknown,
    /// A host's: KVM wrote to it, or it names threads of VMMs.
    Host,
    /// A guest's of KVM, and it has no guests of its own.
    Guest,
}

/// A line that is kept, and which line of the log it is.
type KeptLine = (u64, KernelLogLine);

/// Takes a kernel log, line by line.
#[derive(Debug, Default)]
pub struct KernelLogReader {
    lines: u64,
    counts: BTreeMap<LogKind, u64>,
    first: Vec<KeptLine>,
    last: BTreeMap<LogKind, VecDeque<KeptLine>>,
    /// Lines since the last one of a stall.
    since_stall: Option<u32>,
    of_host: bool,
    of_guest: bool,
}

impl KernelLogReader {
    /// Takes a line; returns whether it is one of a kernel log. Without a time before it only a message is known
    /// that says something.
    pub fn line(&mut self, line: &str) -> bool {
        match prefix::of(line) {
            Some(prefix) if prefix.is_kernels => {
                // Others have such times before their lines too.
                let known = prefix.is_sure || self.says(prefix.message);
                if known {
                    self.message(&prefix);
                }
                known
            }
            // What a program wrote to the same journal.
            Some(_) => true,
            None => {
                let message = line.trim_start();
                let known = self.says(message);
                if known {
                    self.message(&LogPrefix {
                        is_kernels: true,
                        message,
                        ..LogPrefix::default()
                    });
                }
                known
            }
        }
    }

    /// Returns whether a message says something.
    fn says(&self, message: &str) -> bool {
        message::read(message).is_some()
            || message::suppressed(message).is_some()
            || (self.since_stall.is_some() && message::stalled_cpu(message).is_some())
    }

    /// Returns whether nothing of a log was read.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Returns what was read, and whose it is.
    pub fn finish(self) -> (KernelLog, LogOwner) {
        let mut kept = self.first;
        kept.extend(self.last.into_values().flatten());
        kept.sort_by_key(|(number, _)| *number);
        let owner = match (self.of_host, self.of_guest) {
            (true, _) => LogOwner::Host,
            (false, true) => LogOwner::Guest,
            (false, false) => LogOwner::Unknown,
        };
        let log = KernelLog {
            lines: self.lines,
            counts: self.counts,
            kept: kept.into_iter().map(|(_, line)| line).collect(),
        };
        (log, owner)
    }

    fn message(&mut self, prefix: &LogPrefix<'_>) {
        self.lines += 1;
        self.owner(prefix.message);
        if let Some((kind, more)) = message::suppressed(prefix.message) {
            let count = self.counts.entry(kind).or_default();
            *count = count.saturating_add(more);
            return;
        }
        if let Some(lines) = self.since_stall {
            if let Some(cpu) = message::stalled_cpu(prefix.message) {
                let stall = self.newest(LogKind::RcuStall);
                stall
                    .into_iter()
                    .for_each(|line| line.cpus.insert_range(cpu, cpu));
                return;
            }
            self.since_stall = Some(lines + 1).filter(|lines| *lines < MOST_AFTER_STALL);
        }
        let Some(found) = message::read(prefix.message) else {
            return;
        };
        if found.kind == LogKind::RcuStall {
            self.since_stall = Some(0);
        }
        // One process that was killed has several lines.
        if found.kind == LogKind::OutOfMemory
            && let Some(line) = self.newest(LogKind::OutOfMemory)
            && line.tid == found.tid
        {
            return;
        }
        *self.counts.entry(found.kind).or_default() += 1;
        self.of_host |= is_of_vmm(&found);
        self.keep(prefix, found);
    }

    fn keep(&mut self, prefix: &LogPrefix<'_>, found: LoggedMessage<'_>) {
        let end = prefix.message.floor_char_boundary(MAX_TEXT);
        let kind = found.kind;
        let line = KernelLogLine {
            kind,
            printk_ns: prefix.printk_ns,
            monotonic_ns: prefix.monotonic_ns,
            when: prefix.when.and_then(name),
            cpus: found.cpus,
            tid: found.tid,
            comm: found.comm.and_then(name),
            seconds: found.seconds,
            text: prefix.message[..end].trim().to_owned(),
        };
        let of_kind = self.first.iter().filter(|(_, line)| line.kind == kind);
        if of_kind.count() < MOST_FIRST {
            self.first.push((self.lines, line));
            return;
        }
        let last = self.last.entry(kind).or_default();
        if last.len() >= MOST_LAST {
            last.pop_front();
        }
        last.push_back((self.lines, line));
    }

    /// Returns the newest line of a kind that is kept.
    fn newest(&mut self, kind: LogKind) -> Option<&mut KernelLogLine> {
        match self.last.get_mut(&kind).and_then(VecDeque::back_mut) {
            Some((_, line)) => Some(line),
            None => {
                let mut first = self.first.iter_mut().map(|(_, line)| line);
                first.rfind(|line| line.kind == kind)
            }
        }
    }

    /// Notes what says whose log it is: what a kernel says of the machine that it runs on when it is started, and in
    /// every trace of a stack (`dump_stack_print_info` of `lib/dump_stack.c`), and what KVM's modules say.
    fn owner(&mut self, message: &str) {
        let begins = |list: &[&str]| list.iter().any(|begin| message.starts_with(begin));
        self.of_guest |= begins(&[
            "Hypervisor detected: KVM",
            "Booting paravirtualized kernel on KVM",
            "kvm-clock: ",
            "kvm-guest: ",
            "KVM setup async PF",
            "KVM setup pv ",
            "DMI: QEMU ",
            "Hardware name: QEMU ",
            "Hardware name: Red Hat KVM",
            "Hardware name: linux,dummy-virt",
        ]);
        self.of_host |= begins(&["kvm_intel: ", "kvm_amd: "]);
    }
}

/// Whether a line is about a VMM or its threads, which hosts alone have.
fn is_of_vmm(found: &LoggedMessage<'_>) -> bool {
    let of_name = |comm: &str| {
        let ends = comm.starts_with("CPU ") && comm.ends_with("/KVM");
        ends || ["qemu", "vhost-"]
            .iter()
            .any(|begin| comm.starts_with(begin))
    };
    matches!(
        found.kind,
        LogKind::KvmUnsupported | LogKind::KvmClock | LogKind::VmFailed
    ) || found.comm.is_some_and(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (KernelLog, LogOwner) {
        let mut reader = KernelLogReader::default();
        for line in text.lines() {
            assert!(reader.line(line), "{line}");
        }
        reader.finish()
    }

    #[test]
    fn a_stall_has_the_cpus_of_the_lines_behind_it() {
        let (log, owner) = read(
            "[ 100.000001] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n\
             [ 100.000002] rcu: \t1-...0: (0 ticks this GP) idle=02a/1/0x4 softirq=1/1 fqs=15000\n\
             [ 100.000003] rcu: \t5-...0: (0 ticks this GP) idle=02a/1/0x4 softirq=1/1 fqs=15000\n\
             [ 100.000004] rcu: \t(detected by 0, t=60002 jiffies, g=-1199, q=1)\n\
             [ 100.000005] Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16\n",
        );
        assert_eq!(owner, LogOwner::Guest);
        assert_eq!(log.lines, 5);
        assert_eq!(log.kept.len(), 1);
        assert_eq!(log.kept[0].cpus.to_string(), "1,5");
        assert_eq!(log.kept[0].printk_ns, Some(100_000_001_000));
    }

    #[test]
    fn memory_is_bounded_and_counts_are_not() {
        let mut reader = KernelLogReader::default();
        for number in 0..10_000 {
            reader.line(&format!(
                "[{number}.000000] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:7]"
            ));
        }
        reader.line("[10001.000000] split_lock_warn: 12 callbacks suppressed");
        let (log, owner) = reader.finish();
        assert_eq!(owner, LogOwner::Unknown);
        assert_eq!(log.counts[&LogKind::SoftLockup], 10_000);
        assert_eq!(log.counts[&LogKind::SplitLock], 12);
        assert_eq!(log.kept.len(), MOST_FIRST + MOST_LAST);
        assert_eq!(log.kept[0].printk_ns, Some(0));
        assert_eq!(
            log.kept.last().and_then(|line| line.printk_ns),
            Some(9_999_000_000_000)
        );
    }

    #[test]
    fn one_killed_process_counts_once_and_shows_a_host() {
        let (log, owner) = read(
            "Nov 27 03:50:11 web1 kernel: oom-kill:constraint=CONSTRAINT_NONE,task=qemu-system-x86,pid=17,uid=107\n\
             Nov 27 03:50:11 web1 kernel: Out of memory: Killed process 17 (qemu-system-x86) total-vm:1kB\n\
             Nov 27 03:50:12 web1 systemd[1]: web.scope: A process of this unit has been killed by the OOM killer.\n",
        );
        assert_eq!((owner, log.lines), (LogOwner::Host, 2));
        assert_eq!(log.counts[&LogKind::OutOfMemory], 1);
        assert_eq!(log.kept[0].when.as_deref(), Some("Nov 27 03:50:11"));
    }
}
