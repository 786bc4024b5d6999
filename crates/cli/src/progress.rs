//! How far a long read is, on standard error.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::{ReadActivity, ReadProgress, ReadStep};
use terminal_size::Width;
use words::large;

/// What is over before it took this long shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a line is drawn in a second at most.
const RATE: u8 = 5;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;
/// Kinds of events that are named at most, those of which there are most.
const KINDS: usize = 3;

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
    let meter = Mutex::new(Meter::new(PATIENCE));
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
#[derive(Debug)]
struct Meter {
    patience: Duration,
    under_way: u32,
    begun: Option<Instant>,
    state: ReadState,
    bar: Option<ProgressBar>,
}

/// How far they are.
#[derive(Debug)]
struct ReadState {
    doing: ReadActivity,
    read: u64,
    /// Bytes of all inputs that were begun; `None` where that is not known of one.
    all: Option<u64>,
    /// By name of a kind, how many events were found.
    kinds: HashMap<String, u64>,
    lost: u64,
}

impl ReadState {
    fn new(doing: ReadActivity) -> ReadState {
        ReadState {
            doing,
            read: 0,
            all: Some(0),
            kinds: HashMap::new(),
            lost: 0,
        }
    }

    fn count(&mut self, kinds: &[(&str, u64)], lost: u64) {
        for (name, more) in kinds {
            match self.kinds.get_mut(*name) {
                Some(count) => *count = count.saturating_add(*more),
                None => drop(self.kinds.insert((*name).to_owned(), *more)),
            }
        }
        self.lost = self.lost.saturating_add(lost);
    }
}

impl Meter {
    /// Returns one that draws what takes longer than `patience`.
    fn new(patience: Duration) -> Meter {
        Meter {
            patience,
            under_way: 0,
            begun: None,
            state: ReadState::new(ReadActivity::Reading),
            bar: None,
        }
    }

    fn step(&mut self, step: ReadStep<'_>) {
        match step {
            ReadStep::Begin { doing, bytes } => {
                if self.under_way == 0 {
                    self.clear();
                    self.begun = Some(Instant::now());
                    self.state = ReadState::new(doing);
                }
                self.under_way += 1;
                let state = &mut self.state;
                state.doing = doing;
                state.all = state
                    .all
                    .zip(bytes)
                    .map(|(all, more)| all.saturating_add(more));
            }
            ReadStep::Read(bytes) => {
                self.state.read = self.state.read.saturating_add(bytes);
                self.draw();
            }
            ReadStep::Counted { kinds, lost } => {
                self.state.count(kinds, lost);
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
        let Some(begun) = self.begun else {
            return;
        };
        if self.bar.is_none() && begun.elapsed() < self.patience {
            return;
        }
        let text = text(&self.state, begun.elapsed(), columns());
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

/// Returns how many columns a line may have: a terminal that gets one in the last column may begin a new line.
fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    let columns = size.map_or(COLUMNS, |(Width(width), _)| usize::from(width));
    columns.saturating_sub(1)
}

/// Returns the line, of as many columns as there are at most: how much was read, of how much if that is known, how long
/// the rest takes at this rate, how many events were found and lost, and of which kinds most of them are. What does not
/// fit is left out: how much there is in all, then what stands last.
fn text(state: &ReadState, elapsed: Duration, columns: usize) -> String {
    let doing = match (state.doing, state.all) {
        (ReadActivity::Reading, _) => "reading",
        (ReadActivity::Unpacking, Some(_)) => "unpacking",
        (ReadActivity::Unpacking, None) => "taking in",
    };
    let rest = counts(state, elapsed);
    let Some(all) = state.all else {
        let first = format!("{doing}: {}", HumanBytes(state.read));
        return joined(&first, &rest, columns).0;
    };
    let hundredths = state.read.min(all).saturating_mul(100).checked_div(all);
    let short = format!("{doing}: {} %", hundredths.unwrap_or(100));
    let long = format!("{short} of {}", HumanBytes(all));
    let (long, has) = joined(&long, &rest, columns);
    match has == Some(rest.len()) {
        true => long,
        false => joined(&short, &rest, columns).0,
    }
}

/// Returns what follows how much was read, what matters most first.
fn counts(state: &ReadState, elapsed: Duration) -> Vec<String> {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = state.read as f64 / seconds;
    let mut parts = Vec::new();
    let left = state.all.map(|all| all.saturating_sub(state.read));
    if let Some(left) = left.filter(|_| state.read > 0) {
        let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
        parts.push(format!("{:#} left", HumanDuration(left)));
    }
    let events = state.kinds.values().copied().fold(0, u64::saturating_add);
    if events > 0 {
        parts.push(format!("{} events", large(events as f64)));
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is positive, and what is too large is capped"
        )]
        parts.push(format!("{}/s", HumanBytes(rate as u64)));
    }
    if state.lost > 0 {
        parts.push(format!("{} lost", large(state.lost as f64)));
    }
    let mut kinds: Vec<_> = state.kinds.iter().collect();
    kinds.sort_unstable_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    parts.extend(kinds.into_iter().take(KINDS).map(|(name, count)| {
        let name = render::neutral::name(name);
        format!("{name} {}", large(*count as f64))
    }));
    parts
}

/// Returns a line of parts, as many as fit behind the first, and how many these are; `None` where the first had to be
/// cut.
fn joined(first: &str, parts: &[String], columns: usize) -> (String, Option<usize>) {
    let mut room = columns.checked_sub(first.chars().count());
    let mut line: String = first.chars().take(columns).collect();
    let mut has = room.map(|_| 0);
    for part in parts {
        room = room.and_then(|room| room.checked_sub(2 + part.chars().count()));
        if room.is_none() {
            break;
        }
        line.push_str(", ");
        line.push_str(part);
        has = has.map(|has| has + 1);
    }
    (line, has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(bytes: Option<u64>) -> ReadStep<'static> {
        ReadStep::Begin {
            doing: ReadActivity::Reading,
            bytes,
        }
    }

    #[test]
    fn a_meter_waits_before_it_draws() {
        let mut meter = Meter::new(Duration::from_secs(3600));
        meter.step(begin(Some(100)));
        meter.step(ReadStep::Read(30));
        assert!(meter.bar.is_none());
        // One that has to wait for nothing draws at once.
        let mut meter = Meter::new(Duration::ZERO);
        meter.step(begin(Some(100)));
        assert!(meter.bar.is_none(), "nothing was read");
        meter.step(ReadStep::Read(30));
        assert!(meter.bar.is_some());
    }

    #[test]
    fn a_meter_adds_up_inputs() {
        let mut meter = Meter::new(Duration::ZERO);
        meter.step(begin(Some(100)));
        meter.step(ReadStep::Read(30));
        meter.step(begin(Some(50)));
        meter.step(ReadStep::Read(45));
        meter.step(ReadStep::Counted {
            kinds: &[("kvm_exit", 3), ("sched_switch", 7)],
            lost: 1,
        });
        meter.step(ReadStep::Counted {
            kinds: &[("kvm_exit", 2)],
            lost: 1,
        });
        let bar = meter.bar.clone().expect("it draws");
        assert!(bar.message().starts_with("reading: 50 % of 150 B, "));
        assert_eq!(meter.state.kinds["kvm_exit"], 5);
        assert_eq!(meter.state.lost, 2);
        meter.step(ReadStep::End);
        assert!(!bar.is_finished());
        meter.step(ReadStep::End);
        assert!(bar.is_finished() && meter.bar.is_none());
        // The next one begins anew.
        meter.step(begin(None));
        assert_eq!((meter.state.read, meter.state.all), (0, None));
        assert!(meter.state.kinds.is_empty() && meter.state.lost == 0);
    }

    fn state(doing: ReadActivity, read: u64, all: Option<u64>) -> ReadState {
        ReadState {
            read,
            all,
            ..ReadState::new(doing)
        }
    }

    #[test]
    fn rate_and_time_left_are_those_since_it_began() {
        let mib = 1 << 20;
        for (state, seconds, line) in [
            (
                state(ReadActivity::Reading, 40 * mib, Some(100 * mib)),
                4,
                "reading: 40 % of 100.00 MiB, 6s left, 10.00 MiB/s",
            ),
            (
                state(ReadActivity::Unpacking, mib, Some(601 * mib)),
                1,
                "unpacking: 0 % of 601.00 MiB, 10m left, 1.00 MiB/s",
            ),
            (
                state(ReadActivity::Unpacking, mib, None),
                2,
                "taking in: 1.00 MiB, 512.00 KiB/s",
            ),
            (
                state(ReadActivity::Reading, mib, Some(mib)),
                1,
                "reading: 100 % of 1.00 MiB, 0s left, 1.00 MiB/s",
            ),
            (
                // Nothing read yet: nobody knows.
                state(ReadActivity::Reading, 0, Some(mib)),
                2,
                "reading: 0 % of 1.00 MiB, 0 B/s",
            ),
        ] {
            assert_eq!(text(&state, Duration::from_secs(seconds), 79), line);
        }
    }

    #[test]
    fn a_line_has_what_fits_beginning_with_what_matters_most() {
        let mut state = state(ReadActivity::Reading, 6 << 30, Some(20 << 30));
        state.count(
            &[
                ("kvm_entry", 30_000_000),
                ("kvm_exit", 30_000_100),
                ("sched_switch", 2_500),
                ("sched_waking", 2_000),
            ],
            0,
        );
        let line = |state: &ReadState, columns| text(state, Duration::from_secs(60), columns);
        assert_eq!(
            line(&state, 79),
            "reading: 30 %, 2m left, 60.00 M events, kvm_exit 30.00 M, kvm_entry 30.00 M"
        );
        assert_eq!(
            line(&state, 199),
            "reading: 30 % of 20.00 GiB, 2m left, 60.00 M events, kvm_exit 30.00 M, kvm_entry 30.00 M, \
             sched_switch 2500"
        );
        state.count(&[], 12);
        assert_eq!(
            line(&state, 79),
            "reading: 30 %, 2m left, 60.00 M events, 12 lost, kvm_exit 30.00 M"
        );
        assert_eq!(line(&state, 40), "reading: 30 %, 2m left, 60.00 M events");
        assert_eq!(line(&state, 10), "reading: 3");
        assert_eq!(line(&state, 0), "");
        // Whatever the numbers are, no line is longer than there is room for.
        let state = ReadState {
            read: u64::MAX,
            all: Some(u64::MAX),
            lost: u64::MAX,
            kinds: HashMap::from([("\x1b[2J".repeat(50), u64::MAX), ("a".to_owned(), 1)]),
            ..state
        };
        for columns in 0..300 {
            let line = line(&state, columns);
            assert!(
                line.chars().count() <= columns && !line.contains('\x1b'),
                "{line}"
            );
        }
    }
}
