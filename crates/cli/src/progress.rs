//! How far a long read is, on standard error.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::{ReadActivity, ReadProgress, ReadStep};

/// What is over before it took this long shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a line is drawn in a second at most.
const RATE: u8 = 5;

/// Whether what is printed while a recording is walked would be mixed up with a line that is drawn.
static STREAMING: AtomicBool = AtomicBool::new(false);

/// Says that something is printed while a recording is walked: on a terminal nothing else is drawn from now on.
pub(crate) fn streams() {
    if io::stdout().is_terminal() {
        STREAMING.store(true, Ordering::Relaxed);
    }
}

/// Returns whom to tell how far reading is: nobody, unless somebody sits at a terminal and looks at it. What goes
/// through a pipe goes to a program that may draw on the terminal itself, such as `less`.
pub(crate) fn progress() -> Option<ReadProgress> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if !io::stderr().is_terminal() || dumb || output_is_pipe() {
        return None;
    }
    let meter = Mutex::new(Meter::default());
    Some(ReadProgress::new(move |step| {
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.step(step);
    }))
}

fn output_is_pipe() -> bool {
    let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let kind = output.and_then(|file| file.metadata());
    kind.is_ok_and(|meta| meta.file_type().is_fifo() || meta.file_type().is_socket())
}

/// Inputs that are read, several at once perhaps, as one.
#[derive(Debug, Default)]
struct Meter {
    under_way: u32,
    begun: Option<Instant>,
    doing: Option<ReadActivity>,
    read: u64,
    /// Bytes of all inputs that were begun; `None` where that is not known of one.
    all: Option<u64>,
    bar: Option<ProgressBar>,
}

impl Meter {
    fn step(&mut self, step: ReadStep) {
        match step {
            ReadStep::Begin { doing, bytes } => {
                if self.under_way == 0 {
                    *self = Meter {
                        begun: Some(Instant::now()),
                        all: Some(0),
                        ..Meter::default()
                    };
                }
                self.under_way += 1;
                self.doing = Some(doing);
                self.all = self
                    .all
                    .zip(bytes)
                    .map(|(all, more)| all.saturating_add(more));
            }
            ReadStep::Read(bytes) => {
                self.read = self.read.saturating_add(bytes);
                self.draw();
            }
            ReadStep::End => {
                self.under_way = self.under_way.saturating_sub(1);
                if self.under_way == 0 {
                    self.clear();
                }
            }
        }
    }

    fn draw(&mut self) {
        if STREAMING.load(Ordering::Relaxed) {
            return self.clear();
        }
        let (Some(begun), Some(doing)) = (self.begun, self.doing) else {
            return;
        };
        if self.bar.is_none() && begun.elapsed() < PATIENCE {
            return;
        }
        let text = text(doing, self.read, self.all, begun.elapsed());
        if let Some(bar) = &self.bar {
            return bar.set_message(text);
        }
        // What was read before it was drawn counts too, so that rate and time left are ours, and the line is all it
        // has.
        let target = ProgressDrawTarget::stderr_with_hz(RATE);
        let bar = ProgressBar::with_draw_target(None, target).with_message(text);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        bar.tick();
        self.bar = Some(bar);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Returns the line: how much was read, of how much if that is known, in a second, and how long the rest takes at this
/// rate.
fn text(doing: ReadActivity, read: u64, all: Option<u64>, elapsed: Duration) -> String {
    let doing = match (doing, all) {
        (ReadActivity::Reading, _) => "reading",
        (ReadActivity::Unpacking, Some(_)) => "unpacking",
        (ReadActivity::Unpacking, None) => "taking in",
    };
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = read as f64 / seconds;
    let mut text = format!("{doing}: {}", HumanBytes(read));
    if let Some(all) = all {
        text.push_str(&format!(" of {}", HumanBytes(all)));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive, and what is too large is capped"
    )]
    text.push_str(&format!(", {}/s", HumanBytes(rate as u64)));
    if let Some(left) = all.map(|all| all.saturating_sub(read)) {
        let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
        text.push_str(&format!(", {:#} left", HumanDuration(left)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_adds_up_inputs_and_waits_before_it_draws() {
        let mut meter = Meter::default();
        let begin = |bytes| ReadStep::Begin {
            doing: ReadActivity::Reading,
            bytes,
        };
        meter.step(begin(Some(100)));
        meter.step(ReadStep::Read(30));
        assert!(meter.bar.is_none(), "not yet");
        meter.begun = Instant::now().checked_sub(2 * PATIENCE);
        meter.step(begin(Some(50)));
        meter.step(ReadStep::Read(40));
        let bar = meter.bar.clone().expect("it draws");
        assert!(bar.message().starts_with("reading: 70 B of 150 B, "));
        meter.step(ReadStep::End);
        assert!(!bar.is_finished());
        meter.step(ReadStep::End);
        assert!(bar.is_finished() && meter.bar.is_none());
        // The next one begins anew.
        meter.step(begin(None));
        assert_eq!((meter.read, meter.all), (0, None));
    }

    #[test]
    fn rate_and_time_left_are_those_since_it_began() {
        let mib = 1 << 20;
        for (doing, read, all, seconds, line) in [
            (
                ReadActivity::Reading,
                40 * mib,
                Some(100 * mib),
                4,
                "reading: 40.00 MiB of 100.00 MiB, 10.00 MiB/s, 6s left",
            ),
            (
                ReadActivity::Unpacking,
                mib,
                Some(601 * mib),
                1,
                "unpacking: 1.00 MiB of 601.00 MiB, 1.00 MiB/s, 10m left",
            ),
            (
                ReadActivity::Unpacking,
                mib,
                None,
                2,
                "taking in: 1.00 MiB, 512.00 KiB/s",
            ),
            (
                ReadActivity::Reading,
                mib,
                Some(mib),
                1,
                "reading: 1.00 MiB of 1.00 MiB, 1.00 MiB/s, 0s left",
            ),
        ] {
            assert_eq!(text(doing, read, all, Duration::from_secs(seconds)), line);
        }
        // Nothing read yet: nobody knows.
        assert!(text(ReadActivity::Reading, 0, Some(mib), PATIENCE).starts_with("reading: 0 B of"));
    }
}
