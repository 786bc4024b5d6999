//! Counting whenever that is asked for, and not more often than that is worth.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use anyhow::Result;
use counts::Choice;
use httpd::{PageMaker, PageRequest};
use render::metrics::Metrics;

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
    /// The last text, and when it was counted.
    last: Option<(Instant, String)>,
}

impl<'c> ExportCounter<'c> {
    pub(super) fn new(watch: Watch, choice: &'c Choice) -> ExportCounter<'c> {
        ExportCounter {
            watch,
            choice,
            metrics: Metrics::default(),
            looked: Instant::now(),
            last: None,
        }
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

    /// Returns what is counted.
    fn text(&mut self) -> Result<&str> {
        let text = match self.last.take() {
            Some((at, text)) if at.elapsed() < YOUNG => (at, text),
            _ => {
                if self.looked.elapsed() >= LOOK {
                    self.looked = Instant::now();
                    self.watch.look()?;
                }
                let total = self.watch.total()?;
                let counted = self.watch.named(&total, self.choice);
                (Instant::now(), self.metrics.text(&counted))
            }
        };
        let (_, text) = self.last.insert(text);
        Ok(text)
    }
}
