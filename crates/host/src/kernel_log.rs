//! The host's kernel log.
//!
//! `/dev/kmsg` (`Documentation/ABI/testing/dev-kmsg`) has one record for each read, and says `EAGAIN` behind the last
//! one where it was opened so as not to wait. Who opens it needs `CAP_SYSLOG` where `kernel.dmesg_restrict` is set
//! (`check_syslog_permissions` of `kernel/printk/printk.c`); who has it open needs nothing more.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;

use facts::{KernelLog, KernelLogReader};

use crate::tree::HostTree;

const KMSG: &str = "/dev/kmsg";
/// `O_NONBLOCK` of `asm-generic/fcntl.h`, which x86 and arm64 have.
const NONBLOCK: i32 = 0o4000;
/// Longest record (`PRINTK_MESSAGE_MAX` of `kernel/printk/internal.h`): a shorter buffer is refused.
const MAX_RECORD: usize = 8192;
/// More records than the largest log has (`LOG_BUF_SHIFT` is 25 at most): others came while it was read.
const MAX_RECORDS: usize = 1 << 20;
/// `EPIPE`: records were overwritten before they were read, and the next read gives the oldest that is there.
const OVERWRITTEN: i32 = 32;

/// Where sosreport keeps what `dmesg` printed (its plugin `kernel`).
const OF_SOSREPORT: &str = "/sos_commands/kernel/dmesg";
/// Most bytes of a copied log.
const MAX_COPY: u64 = 32 << 20;

/// The end of this host's kernel log: what is written to it from now on.
#[derive(Debug)]
pub struct KernelLogTail {
    file: Option<File>,
}

/// What a log says of a stretch of time, and what it still has of the time before.
#[derive(Debug, Default)]
pub(crate) struct CutLog {
    pub(crate) before: KernelLog,
    pub(crate) during: KernelLog,
}

impl KernelLogTail {
    /// Opens the log behind its last record. Where it may not be read, there is nothing to be read later either.
    pub fn open() -> KernelLogTail {
        let file = open_log().and_then(|mut file| {
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        KernelLogTail { file: file.ok() }
    }

    /// Returns what was written to the log since it was opened, or since this was asked before; `None` where it may
    /// not be read.
    pub fn read(&self) -> Option<KernelLog> {
        records(self.file.as_ref()?).ok()
    }

    /// Returns what was written to the log in a stretch of time on the clock of printk, and what it has of the time
    /// before; `None` where it may not be read. This may be asked again, of whatever stretch: the log is read from its
    /// oldest record on.
    pub(crate) fn cut(&self, during_ns: &RangeInclusive<u64>) -> Option<CutLog> {
        let mut file = self.file.as_ref()?;
        // The only place but the end that a seek takes is the first record (`devkmsg_llseek` of
        // `kernel/printk/printk.c`).
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut cut = LogCutter::new(during_ns);
        each_record(file, |line| cut.line(line)).ok()?;
        Some(cut.finish())
    }
}

/// Takes the records of a log, and keeps those of a stretch of time apart from those before it.
struct LogCutter<'r> {
    during_ns: &'r RangeInclusive<u64>,
    before: KernelLogReader,
    during: KernelLogReader,
}

impl LogCutter<'_> {
    fn new(during_ns: &RangeInclusive<u64>) -> LogCutter<'_> {
        LogCutter {
            during_ns,
            before: KernelLogReader::default(),
            during: KernelLogReader::default(),
        }
    }

    fn line(&mut self, line: &str) {
        let Some(at) = facts::printk_ns(line) else {
            return;
        };
        // A record has microseconds: what was written within the first one is of the stretch.
        if at / 1000 < self.during_ns.start() / 1000 {
            self.before.line(line);
        } else if at <= *self.during_ns.end() {
            self.during.line(line);
        }
    }

    fn finish(self) -> CutLog {
        CutLog {
            before: self.before.finish().0,
            during: self.during.finish().0,
        }
    }
}

/// Reads the log of the host: of the running one itself, of a copied tree what was copied of it.
pub(crate) fn read(tree: &mut HostTree) -> Option<KernelLog> {
    if !tree.is_running() {
        let text = tree.text_within(OF_SOSREPORT, MAX_COPY)?;
        let mut log = KernelLogReader::default();
        for line in text.lines() {
            log.line(line);
        }
        return (!log.is_empty()).then(|| log.finish().0);
    }
    match open_log().and_then(|file| records(&file)) {
        Ok(log) => Some(log),
        Err(error) => {
            let why = match error.kind() {
                ErrorKind::NotFound => "no such file",
                ErrorKind::PermissionDenied => {
                    "permission denied: the kernel log takes root or CAP_SYSLOG"
                }
                _ => "cannot be read",
            };
            tree.refuse(KMSG, why);
            None
        }
    }
}

fn open_log() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(NONBLOCK)
        .open(KMSG)
}

/// Reads all records that are there.
fn records(file: &File) -> io::Result<KernelLog> {
    let mut log = KernelLogReader::default();
    each_record(file, |line| {
        log.line(line);
    })?;
    Ok(log.finish().0)
}

/// Reads all records that are there, and hands out the line of each.
fn each_record(mut file: &File, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut record = [0; MAX_RECORD];
    for _ in 0..MAX_RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&record[..bytes.min(MAX_RECORD)]);
                // Below the message stand properties of the device that it is about.
                take(text.lines().next().unwrap_or_default());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error)
                if error.kind() == ErrorKind::Interrupted
                    || error.raw_os_error() == Some(OVERWRITTEN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use facts::LogKind;

    use super::*;

    #[test]
    fn a_log_is_cut_where_a_stretch_begins_and_ends() {
        let during = 20_000_000_500..=30_000_000_500;
        let mut cut = LogCutter::new(&during);
        for (us, message) in [
            (1_000_000, "Linux version 6.1.0"),
            (19_999_999, "sched: RT throttling activated"),
            (
                20_000_000,
                "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [CPU 0/KVM:7]",
            ),
            (25_000_000, "usb 1-1: new device"),
            (30_000_000, "sched: RT throttling activated"),
            (
                30_000_001,
                "watchdog: BUG: soft lockup - CPU#2 stuck for 22s! [CPU 1/KVM:8]",
            ),
        ] {
            cut.line(&format!("4,77,{us},-;{message}"));
        }
        // What has no time is of no stretch.
        cut.line("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [CPU 1/KVM:8]");
        let CutLog { before, during } = cut.finish();
        assert_eq!((before.lines, during.lines), (2, 3));
        let kinds = |log: &KernelLog| log.counts.keys().copied().collect::<Vec<LogKind>>();
        assert_eq!(kinds(&before), [LogKind::RtThrottling]);
        assert_eq!(kinds(&during), [LogKind::SoftLockup, LogKind::RtThrottling]);
        let times: Vec<Option<u64>> = during.kept.iter().map(|line| line.printk_ns).collect();
        assert_eq!(times, [Some(20_000_000_000), Some(30_000_000_000)]);
    }

    #[test]
    fn this_machines_log_can_be_cut_again_and_again() {
        // Who may not read it has nothing, and nothing fails.
        let tail = KernelLogTail::open();
        let Some(all) = tail.cut(&(0..=u64::MAX)) else {
            assert!(tail.read().is_none());
            return;
        };
        assert_eq!(all.before, KernelLog::default());
        let again = tail.cut(&(u64::MAX..=u64::MAX)).expect("a log");
        assert!(again.before.lines >= all.during.lines);
        assert_eq!(again.during, KernelLog::default());
    }
}
