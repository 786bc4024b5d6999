//! Counting whenever that is asked for, and not more often than that is worth.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use anyhow::Result;
use counts::{Choice, NamedCounts};
use httpd::{PageMaker, PageRequest};
use render::metrics::{CountingHealth, Metrics};

use super::super::watch::Watch;

/// How often it is looked which VMs there are.
const LOOK: Duration = Duration::from_secs(10);
/// How old a count may be that is served once more: however many ask, counting costs no more than this.
const YOUNG: Duration = Duration::from_millis(100);

/// Who counts for the exporter.
pub(super) struct ExportCounter<'c> {
    watch: Watch,
    choice: &'c Choice,
    metrics: Metrics,
    looked: Instant,
    last: Option<LastCount>,
    health: CountingHealth,
}

/// What was counted last.
struct LastCount {
    at: Instant,
    counted: NamedCounts,
    text: String,
}

impl<'c> ExportCounter<'c> {
    pub(super) fn new(watch: Watch, choice: &'c Choice) -> ExportCounter<'c> {
        ExportCounter {
            watch,
            choice,
            metrics: Metrics::default(),
            looked: Instant::now(),
            last: None,
            health: CountingHealth {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..CountingHealth::default()
            },
        }
    }

    /// Notes that who serves is started again.
    pub(super) fn note_restart(&mut self) {
        self.health.restarts += 1;
    }

    /// Answers who serves. Returns whether this process is to end; else who serves is gone, or cannot be answered.
    ///
    /// # Errors
    ///
    /// Where nothing can be counted any more.
    pub(super) fn answer(&mut self, maker: &mut PageMaker, stop: BorrowedFd<'_>) -> Result<bool> {
        // The other process may say anything, and take nothing: then it is ended, and another one is started.
        while let Ok(request) = maker.wait(stop) {
            match request {
                PageRequest::Stop => return Ok(true),
                PageRequest::Gone => break,
                PageRequest::Text => {}
            }
            if maker.send(self.text()?.as_bytes()).is_err() {
                break;
            }
        }
        Ok(false)
    }

    /// Returns what is counted, and what counting was like.
    fn text(&mut self) -> Result<String> {
        if self
            .last
            .as_ref()
            .is_none_or(|last| last.at.elapsed() >= YOUNG)
        {
            let begun = Instant::now();
            if self.looked.elapsed() >= LOOK {
                self.looked = begun;
                self.watch.look()?;
            }
            let total = self.watch.total()?;
            let counted = self.watch.named(&total, self.choice);
            let text = self.metrics.text(&counted);
            let at = Instant::now();
            self.health.counted += 1;
            self.health.counting_ns += ns(at - begun);
            self.last = Some(LastCount { at, counted, text });
        }
        let Some(last) = &self.last else {
            return Ok(String::new());
        };
        self.health.age_ns = ns(last.at.elapsed());
        Ok(last.text.clone() + &self.health.text(&last.counted))
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
