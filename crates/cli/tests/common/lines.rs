//! Events as `trapline events` prints them, taken apart with the simplest means: an independent look at a recording,
//! for tests that count or time something a second time.

use std::path::Path;

use super::run;

/// Texts of events are precise to the microsecond; some tools round, some cut off.
pub(crate) const TEXT_NS: u64 = 1000;

/// Returns whether two times are the same, as far as texts tell.
pub(crate) fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= TEXT_NS
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Nanoseconds, as precise as the text is.
    pub time: u64,
    /// The thread that was running.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The event's name without its system.
    pub name: String,
    /// What is behind the name.
    pub rest: String,
}

impl Line {
    /// Returns the value behind a key, up to the next space: `pid=` of a wake-up, `gpa ` of an MMIO.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let at = self.rest.find(key)? + key.len();
        self.rest[at..].split_ascii_whitespace().next()
    }

    /// Returns the thread that a `sched_waking` wakes or a `sched_switch` gives the CPU to.
    pub(crate) fn task(&self) -> Option<i32> {
        let key = if self.name == "sched_switch" {
            "next_pid="
        } else {
            "pid="
        };
        self.value(key)?.parse().ok()
    }

    /// Returns the address of a `kvm_mmio` or `kvm_pio` that writes.
    pub(crate) fn written(&self) -> Option<u64> {
        let key = match self.name.as_str() {
            "kvm_mmio" if self.rest.starts_with("mmio write") => "gpa ",
            "kvm_pio" if self.rest.starts_with("pio_write") => "at ",
            _ => return None,
        };
        u64::from_str_radix(self.value(key)?.strip_prefix("0x")?, 16).ok()
    }
}

/// Returns a recording's events that a condition on their name takes.
pub(crate) fn lines(path: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Line> {
    let output = run(["events".as_ref(), path.as_os_str()]);
    assert_eq!(output.status, 0, "{}: {}", path.display(), output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(parse)
        .filter(|line| wanted(line.name))
        .map(|line| Line {
            time: line.time,
            tid: line.tid,
            comm: line.comm.to_owned(),
            name: line.name.to_owned(),
            rest: line.rest.to_owned(),
        })
        .collect()
}

struct Parts<'a> {
    time: u64,
    tid: i32,
    comm: &'a str,
    name: &'a str,
    rest: &'a str,
}

/// Takes `COMM-TID [CPU] SECONDS.FRACTION: EVENT: REST` apart, or with a space before TID and `SYSTEM:EVENT`.
fn parse(line: &str) -> Option<Parts<'_>> {
    let mut from = 0;
    let (head, tail) = loop {
        let at = from + line.get(from..)?.find(" [")?;
        let (cpu, tail) = line[at + 2..].split_once(']')?;
        if !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit()) {
            break (line[..at].trim(), tail);
        }
        from = at + 2;
    };
    let split = head.rfind(['-', ' '])?;
    let (time, tail) = tail.trim_start().split_once(": ")?;
    let (seconds, fraction) = time.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let tail = tail.trim_start();
    let (name, rest) = tail.split_once(char::is_whitespace).unwrap_or((tail, ""));
    let name = name.trim_end_matches(':');
    Some(Parts {
        time: seconds.parse::<u64>().ok()? * 1_000_000_000
            + fraction * 10u64.checked_pow(9u32.checked_sub(digits)?)?,
        tid: head[split + 1..].parse().ok()?,
        comm: head[..split].trim_end(),
        name: name.rsplit(':').next().unwrap_or(name),
        rest: rest.trim_start(),
    })
}
