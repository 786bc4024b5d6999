//! The host's kernel log.
//!
//! `/dev/kmsg` (`Documentation/ABI/testing/dev-kmsg`) has one record for each read, and says `EAGAIN` behind the last
//! one where it was opened so as not to wait. Who opens it needs `CAP_SYSLOG` where `kernel.dmesg_restrict` is set
//! (`check_syslog_permissions` of `kernel/printk/printk.c`); who has it open needs nothing more.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
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
fn records(mut file: &File) -> io::Result<KernelLog> {
    let mut log = KernelLogReader::default();
    let mut record = [0; MAX_RECORD];
    for _ in 0..MAX_RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&record[..bytes.min(MAX_RECORD)]);
                // Below the message stand properties of the device that it is about.
                log.line(text.lines().next().unwrap_or_default());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error)
                if error.kind() == ErrorKind::Interrupted
                    || error.raw_os_error() == Some(OVERWRITTEN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(log.finish().0)
}
