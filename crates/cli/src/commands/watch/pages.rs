//! Pages of incidents: each is written by a process of its own, one after the other, at the lowest priority.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use recording::KeptPrivileges;
use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
use rustix::thread::set_no_new_privs;

use crate::commands::why::line::ReportLine;

/// Pages that may wait to be written.
const MOST_WAITING: usize = 64;
/// The lowest priority: beside one of the usual priority it gets 1.5 % of a CPU (15 of 1024 in `sched_prio_to_weight`
/// of `kernel/sched/core.c`).
const NICE: i32 = 19;
/// How long a page may take.
const MOST_TIME: Duration = Duration::from_secs(600);
/// How long nobody looks whether it is written.
const NAP: Duration = Duration::from_millis(50);
/// What is read of what it says.
const MOST_SAID: u64 = 4096;

/// A page that is to be written.
#[derive(Debug)]
pub(super) struct PageOrder {
    /// The name of the incident's folder.
    pub(super) name: String,
    /// The folder.
    pub(super) folder: PathBuf,
    /// The page.
    pub(super) page: PathBuf,
    /// What it may have, in bytes.
    pub(super) most_bytes: u64,
    /// The words of the command that stores the recording's sums, where they are to be stored.
    pub(super) store: Option<Vec<OsString>>,
}

/// A page that was written, or why not.
#[derive(Debug)]
pub(super) struct PageOutcome {
    /// The name of the incident's folder.
    pub(super) name: String,
    /// Why there is none.
    pub(super) missing: Option<String>,
    /// Why the recording's sums are not in the store, where they should be.
    pub(super) not_stored: Option<String>,
}

/// Who writes pages.
#[derive(Debug)]
pub(super) struct PageThread {
    orders: Option<SyncSender<PageOrder>>,
    outcomes: Receiver<PageOutcome>,
    abandon: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PageThread {
    /// Begins.
    pub(super) fn start() -> Result<PageThread> {
        let (orders, ordered) = sync_channel(MOST_WAITING);
        let (sender, outcomes) = channel();
        let abandon = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&abandon);
        let thread = thread::Builder::new().name("trapline-pages".to_owned());
        let thread = thread.spawn(move || write_all(&ordered, &sender, &asked))?;
        Ok(PageThread {
            orders: Some(orders),
            outcomes,
            abandon,
            thread: Some(thread),
        })
    }

    /// Has a page written. Returns what was not taken up: too many wait.
    pub(super) fn order(&self, order: PageOrder) -> Option<PageOutcome> {
        let sent = self.orders.as_ref().map(|orders| orders.try_send(order));
        let order = match sent {
            Some(Err(TrySendError::Full(order) | TrySendError::Disconnected(order))) => order,
            _ => return None,
        };
        Some(PageOutcome {
            name: order.name,
            missing: Some("too many pages wait to be written".to_owned()),
            not_stored: order
                .store
                .map(|_| "too many recordings wait for it".to_owned()),
        })
    }

    /// Returns a page that was finished since, if one was.
    pub(super) fn outcome(&self) -> Option<PageOutcome> {
        self.outcomes.try_recv().ok()
    }

    /// Waits for what was ordered, at most for a time, and not if somebody says `stop`. Returns what was finished.
    pub(super) fn end(&mut self, at_most: Duration, stop: &AtomicBool) -> Vec<PageOutcome> {
        self.orders = None;
        let until = Instant::now() + at_most;
        let mut outcomes = Vec::new();
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            match self.outcomes.recv_timeout(NAP) {
                Ok(one) => outcomes.push(one),
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody sends any more: all is written.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.abandon.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        outcomes.extend(self.outcomes.try_iter());
        outcomes
    }
}

/// Writes pages until nobody can order one any more.
fn write_all(ordered: &Receiver<PageOrder>, outcomes: &Sender<PageOutcome>, abandon: &AtomicBool) {
    // Of this thread and of what it starts. Where that cannot be, pages are written all the same.
    let _ = setpriority_process(None, NICE);
    let folders = KeptPrivileges {
        folders: true,
        ..KeptPrivileges::default()
    };
    recording::give_away(folders);
    // What reads a recording, in which there are guests' names, can have no more than this thread has.
    let _ = set_no_new_privs(true);
    while let Ok(order) = ordered.recv() {
        let line = ReportLine::new(&order.folder, &order.page);
        let run = |words: &[OsString]| match abandon.load(Ordering::Relaxed) {
            true => Some("the watch ended before".to_owned()),
            false => run(words, order.most_bytes, abandon).err(),
        };
        // Sums take less time than a page, and are what is left once the recording is gone.
        let not_stored = order.store.as_deref().and_then(run);
        let outcome = PageOutcome {
            missing: run(line.words()),
            not_stored,
            name: order.name,
        };
        if outcomes.send(outcome).is_err() {
            return;
        }
    }
}

/// Runs a command of this program, whose files may have so many bytes. Returns why that failed.
fn run(words: &[OsString], most_bytes: u64, abandon: &AtomicBool) -> Result<(), String> {
    // This very program, whatever has its name by now.
    let mut command = Command::new("/proc/self/exe");
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C is for who watches: it ends when that says so.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(most_bytes),
        maximum: Some(most_bytes),
    };
    // It reads first, for longer than this takes.
    let _ = pid.map(|pid| prlimit(Some(pid), Resource::Fsize, limit));
    let said = child.stderr.take().map(|stderr| {
        thread::spawn(move || {
            let mut text = Vec::new();
            let mut stderr = stderr;
            let _ = stderr.by_ref().take(MOST_SAID).read_to_end(&mut text);
            // The rest goes nowhere, so that nobody waits for who reads it.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let ended = ended(&mut child, abandon);
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}: {}", said.trim())),
        Err(why) => Err(why),
    }
}

/// Waits until a process has ended, and ends it where it takes too long.
fn ended(child: &mut Child, abandon: &AtomicBool) -> Result<ExitStatus, String> {
    let until = Instant::now() + MOST_TIME;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        let why = match abandon.load(Ordering::Relaxed) {
            true => "the watch ended before it was written",
            false if Instant::now() >= until => "it took longer than ten minutes",
            false => {
                thread::sleep(NAP);
                continue;
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        return Err(why.to_owned());
    }
}
