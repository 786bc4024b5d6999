//! One line of folded text: frames with semicolons between, a blank, and a count.
//!
//! Forms: `stackcollapse-perf.pl` and `flamegraph.pl` (FlameGraph 1.0), inferno 0.12.8, and `offcputime`,
//! `offwaketime`, `wakeuptime` and `profile` of bcc 0.29.
//!
//! Annotations end a frame's name and are removed from it: `_[k]` is the kernel's, `_[j]` user space's (compiled at
//! run time), `_[i]` that of its caller (inlined), `_[w]` a waker's. Where some frame has `_[k]`, those without are of
//! user space. A frame `-` is the border between user space and kernel (`-d` of bcc's tools). Behind `--` is the stack
//! of the thread that woke this one, turned round, and its name (`offwaketime`). `[guest]` and `[[kernel.kallsyms]]`
//! need no annotation. Every other frame is unknown: nothing is guessed from names.

use crate::named::FrameOwner;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FoldedLine<'l> {
    /// Nothing but blanks.
    Empty,
    /// Frames, and what they weigh.
    Stack(CountedStack<'l>),
    /// What a tool says beside its stacks.
    Message,
    /// None of these.
    Other,
}

/// A stack with its count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CountedStack<'l> {
    /// The frames, with semicolons between.
    pub(crate) frames: &'l [u8],
    pub(crate) count: Decimal,
    /// Whether the last frame ends in a number too, as where a file has two counts.
    pub(crate) two: bool,
}

/// A number, its decimals as so many of 10^9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    whole: u64,
    billionths: u32,
}

impl Decimal {
    /// Returns it times `scale`, rounded to a whole number, and whether that made a difference.
    pub(crate) fn times(self, scale: u32) -> (u64, bool) {
        const UNIT: u128 = 1_000_000_000;
        let exact =
            (u128::from(self.whole) * UNIT + u128::from(self.billionths)) * u128::from(scale);
        let rounded = (exact + UNIT / 2) / UNIT;
        let number = u64::try_from(rounded).unwrap_or(u64::MAX);
        (number, !exact.is_multiple_of(UNIT))
    }
}

/// What bcc's tools say first, and when they lost stacks. Some print it into the same file.
const MESSAGES: &[&[u8]] = &[
    b"Tracing off-CPU time",
    b"Tracing blocked time",
    b"Sampling at ",
    b"WARNING: ",
    b"Hit Ctrl-C",
];

/// Returns what a line is; it has no line feed.
pub(crate) fn line(bytes: &[u8]) -> FoldedLine<'_> {
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return FoldedLine::Empty;
    }
    match counted(text) {
        Some(stack) => FoldedLine::Stack(stack),
        None if MESSAGES.iter().any(|begin| text.starts_with(begin)) => FoldedLine::Message,
        None => FoldedLine::Other,
    }
}

fn counted(text: &[u8]) -> Option<CountedStack<'_>> {
    let (frames, count) = last_word(text)?;
    Some(CountedStack {
        frames,
        count: decimal(count)?,
        two: last_word(frames).is_some_and(|(_, word)| decimal(word).is_some()),
    })
}

/// Returns the last word and what stands before it; `None` where there is no other.
fn last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = text.iter().rposition(u8::is_ascii_whitespace)?;
    let before = text.get(..blank)?.trim_ascii_end();
    let word = text.get(blank + 1..)?;
    (!before.is_empty() && !word.is_empty()).then_some((before, word))
}

/// Returns a number: `12`, `12.5`, `12.`.
fn decimal(word: &[u8]) -> Option<Decimal> {
    let mut whole = 0u64;
    let mut digits = word.iter();
    let mut some = false;
    for byte in digits.by_ref() {
        match byte {
            b'0'..=b'9' => {
                whole = whole.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                some = true;
            }
            b'.' => break,
            _ => return None,
        }
    }
    let mut billionths = 0;
    let mut place = 100_000_000;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        billionths += u32::from(byte - b'0') * place;
        place /= 10;
    }
    some.then_some(Decimal { whole, billionths })
}

/// A frame as a line has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineFrame<'l> {
    /// Its name without what says whose code it is.
    pub(crate) name: &'l [u8],
    pub(crate) part: FrameOwner,
    /// Whether the line says that it is the kernel's (`_[k]`), so that those that do not say so are not.
    pub(crate) marked_kernel: bool,
}

/// Goes through a line's frames, outermost first. The first one is what stands below the stack.
pub(crate) struct Frames<'l> {
    rest: Option<&'l [u8]>,
    first: bool,
    place: StackPlace,
    /// Whose code frames are that do not say so themselves.
    unsaid: FrameOwner,
    caller: FrameOwner,
}

/// Which stack of a line frames are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackPlace {
    Own,
    Waker,
}

/// Between the stack of a thread and that of the one that woke it up, which is turned round (`offwaketime`).
pub(crate) const WAKER: &[u8] = b"--";
/// Between kernel and user space (`-d` of bcc's tools).
const BORDER: &[u8] = b"-";

impl<'l> Frames<'l> {
    pub(crate) fn new(frames: &'l [u8]) -> Frames<'l> {
        let mut all = Frames {
            rest: Some(frames),
            first: true,
            place: StackPlace::Own,
            unsaid: FrameOwner::Unknown,
            caller: FrameOwner::Unknown,
        };
        all.unsaid = all.before_border(frames);
        all
    }

    /// Whose the frames are up to the border between kernel and user space, if this stack has one.
    fn before_border(&self, frames: &[u8]) -> FrameOwner {
        for frame in frames.split(|byte| *byte == b';') {
            match (frame, self.place) {
                (BORDER, StackPlace::Own) => return FrameOwner::User,
                (BORDER, StackPlace::Waker) => return FrameOwner::Kernel,
                (WAKER, _) => return FrameOwner::Unknown,
                _ => {}
            }
        }
        FrameOwner::Unknown
    }

    fn frame(&mut self, text: &'l [u8]) -> LineFrame<'l> {
        let group = |name| LineFrame {
            name,
            part: FrameOwner::Group,
            marked_kernel: false,
        };
        let innermost = self.rest.is_none();
        if std::mem::take(&mut self.first) {
            return group(text);
        }
        if text == WAKER {
            self.place = StackPlace::Waker;
            self.unsaid = self
                .rest
                .map_or(FrameOwner::Unknown, |rest| self.before_border(rest));
            self.caller = FrameOwner::Unknown;
            return group(text);
        }
        if text == BORDER {
            self.unsaid = match self.unsaid {
                FrameOwner::User => FrameOwner::Kernel,
                FrameOwner::Kernel => FrameOwner::User,
                other => other,
            };
            return group(text);
        }
        // The thread that woke this one up.
        if innermost && self.place == StackPlace::Waker {
            return group(text);
        }
        let (name, mark) = without_mark(text);
        let part = match mark {
            Some(b'k') => FrameOwner::Kernel,
            Some(b'j') => FrameOwner::User,
            // What the compiler put into its caller is of the same code.
            Some(b'i') if self.caller != FrameOwner::Group => self.caller,
            _ => by_name(name).unwrap_or(self.unsaid),
        };
        self.caller = part;
        LineFrame {
            name,
            part,
            marked_kernel: mark == Some(b'k'),
        }
    }
}

impl<'l> Iterator for Frames<'l> {
    type Item = LineFrame<'l>;

    fn next(&mut self) -> Option<LineFrame<'l>> {
        let rest = self.rest?;
        let (text, rest) = match memchr::memchr(b';', rest) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        self.rest = rest;
        Some(self.frame(text))
    }
}

/// Takes the annotation from a name: kernel, compiled while it ran, inlined, waker (`flamegraph.pl`, `color_map` and
/// `--color=chain`).
fn without_mark(text: &[u8]) -> (&[u8], Option<u8>) {
    match text {
        [
            name @ ..,
            b'_',
            b'[',
            mark @ (b'k' | b'j' | b'i' | b'w'),
            b']',
        ] => (name, Some(*mark)),
        _ => (text, None),
    }
}

/// Returns whose code frames of some names are, which stand for code that has no name.
fn by_name(name: &[u8]) -> Option<FrameOwner> {
    match name {
        b"[guest]" => Some(FrameOwner::Guest),
        // Where tools left frames out, or had none.
        b"[left out]" | b"[...]" | b"[Missed Kernel Stack]" | b"[Missed User Stack]" => {
            Some(FrameOwner::Group)
        }
        _ if name.starts_with(b"[Missed User Stack] ") => Some(FrameOwner::Group),
        _ if name.starts_with(b"[[guest.kernel") || name.starts_with(b"[guest.kernel") => {
            Some(FrameOwner::Guest)
        }
        _ if name.starts_with(b"[[kernel.") || name.starts_with(b"[kernel.") => {
            Some(FrameOwner::Kernel)
        }
        _ => None,
    }
}

/// Functions that the idle task alone runs, around all that it does (`kernel/sched/idle.c`; `cpu_idle` before 3.10).
const IDLE_LOOP: &[&[u8]] = &[
    b"cpu_startup_entry",
    b"do_idle",
    b"cpu_idle_loop",
    b"cpuidle_idle_call",
    b"cpu_idle",
];

/// Functions in which CPUs rest (`symbol__is_idle` in `tools/perf/util/symbol.c` of 6.12, without those that others
/// call).
const IDLE: &[&[u8]] = &[
    b"acpi_idle_do_entry",
    b"acpi_processor_ffh_cstate_enter",
    b"arch_cpu_idle",
    b"default_idle",
    b"intel_idle",
    b"intel_idle_ibrs",
    b"mwait_idle",
    b"mwait_idle_with_hints",
    b"mwait_idle_with_hints.constprop.0",
    b"native_safe_halt",
    b"poll_idle",
    b"pseries_dedicated_idle_sleep",
    b"psw_idle",
];

/// Whether a stack is of an idle CPU: that of the idle task `swapper`, one in its loop, or a function alone in which
/// CPUs rest. Such a function below a thread's name may be a guest's.
pub(crate) fn is_idle(frames: &[u8]) -> bool {
    let mut all = frames.split(|byte| *byte == b';');
    let first = all.next().unwrap_or_default();
    if is_swapper(first) {
        return true;
    }
    let alone = plain(first);
    if IDLE_LOOP.contains(&alone) || IDLE.contains(&alone) && !frames.contains(&b';') {
        return true;
    }
    // What wakes a thread up is often an interrupt of an idle CPU.
    all.take_while(|frame| *frame != WAKER)
        .any(|frame| IDLE_LOOP.contains(&plain(frame)))
}

/// Whether a thread is the idle task of some CPU: `swapper`, `swapper/3`, and with ids as `--pid` and `--tid` of
/// collapsers have them.
fn is_swapper(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(b"swapper") else {
        return false;
    };
    matches!(
        rest,
        [] | [b'/', b'0'..=b'9', ..] | [b'-', b'0'..=b'9' | b'?', ..]
    )
}

/// A function without annotation and place in it.
fn plain(frame: &[u8]) -> &[u8] {
    let (name, _) = without_mark(frame);
    let place = name.windows(3).rposition(|three| three == b"+0x");
    place.map_or(name, |at| &name[..at])
}

/// Takes the ids from a thread's name, as collapsers with `--tid` write them: `qemu-1700/1703`, and `qemu-?/1703`.
pub(crate) fn thread(name: &str) -> (&str, Option<i32>) {
    let with_ids = || {
        let (rest, tid) = name.rsplit_once('/')?;
        let (comm, pid) = rest.rsplit_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let known = (pid == "?" || is_number(pid)) && is_number(tid) && !comm.is_empty();
        known.then(|| tid.parse().ok().map(|tid| (comm, Some(tid))))?
    };
    with_ids().unwrap_or((name, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<(String, u64, bool)> {
        match line(text.as_bytes()) {
            FoldedLine::Stack(stack) => Some((
                String::from_utf8_lossy(stack.frames).into_owned(),
                stack.count.times(1000).0,
                stack.two,
            )),
            _ => None,
        }
    }

    #[test]
    fn a_line_is_a_stack_and_a_count() {
        let is = |text: &str, two| Some((text.to_owned(), 5000, two));
        assert_eq!(count("a;b c 5"), is("a;b c", false));
        assert_eq!(count("  a;b  5\r"), is("a;b", false));
        assert_eq!(count("a;b 4.9999"), is("a;b", false));
        assert_eq!(count("a;b 5."), is("a;b", false));
        assert_eq!(count("a;b 7 5"), is("a;b 7", true));
        assert_eq!(
            count("[Missed User Stack] -14;x 5"),
            is("[Missed User Stack] -14;x", false)
        );
        for other in [
            "a;b",
            "5",
            " 5",
            "a;b -5",
            "a;b 1e5",
            "a;b .",
            "a;b 5.x",
            "a;b 99999999999999999999",
        ] {
            assert_eq!(line(other.as_bytes()), FoldedLine::Other, "{other}");
        }
        assert_eq!(line(b" \t\r"), FoldedLine::Empty);
        let banner = "Tracing off-CPU time (us) of all threads by user + kernel stack for 10 secs.";
        assert_eq!(line(banner.as_bytes()), FoldedLine::Message);
        assert_eq!(
            line(b"WARNING: 7 stack traces could not be displayed."),
            FoldedLine::Message
        );
    }

    #[test]
    fn decimals_are_exact_in_a_smaller_unit() {
        let times = |text: &str, scale| decimal(text.as_bytes()).unwrap().times(scale);
        assert_eq!(times("1.5", 1000), (1500, false));
        assert_eq!(times("1.5", 1), (2, true));
        assert_eq!(times("0.4", 1), (0, true));
        assert_eq!(times("0.0001", 1000), (0, true));
        assert_eq!(times("3.000", 1), (3, false));
        assert_eq!(times("18446744073709551615", 1000), (u64::MAX, false));
    }

    fn parts(text: &str) -> Vec<(String, FrameOwner)> {
        Frames::new(text.as_bytes())
            .map(|frame| (String::from_utf8_lossy(frame.name).into_owned(), frame.part))
            .collect()
    }

    #[test]
    fn annotations_say_whose_code_it_is() {
        use FrameOwner::{Group, Guest, Kernel, Unknown, User};
        let named = |list: &[(&str, FrameOwner)]| -> Vec<(String, FrameOwner)> {
            list.iter()
                .map(|(name, part)| ((*name).to_owned(), *part))
                .collect()
        };
        assert_eq!(
            parts("java;start;hot_[j];inner_[i];sys_read_[k];vfs_read_[i];[unknown]"),
            named(&[
                ("java", Group),
                ("start", Unknown),
                ("hot", User),
                ("inner", User),
                ("sys_read", Kernel),
                ("vfs_read", Kernel),
                ("[unknown]", Unknown),
            ])
        );
        // `offwaketime -d -f`: the sleeper's stack, and its waker's turned round.
        assert_eq!(
            parts("dd;main;-;vfs_read;schedule;--;try_to_wake_up;blk_done;-;poll;main;fio"),
            named(&[
                ("dd", Group),
                ("main", User),
                ("-", Group),
                ("vfs_read", Kernel),
                ("schedule", Kernel),
                ("--", Group),
                ("try_to_wake_up", Kernel),
                ("blk_done", Kernel),
                ("-", Group),
                ("poll", User),
                ("main", User),
                ("fio", Group),
            ])
        );
        assert_eq!(
            parts("dd;read;--;wake_[w];fio"),
            named(&[
                ("dd", Group),
                ("read", Unknown),
                ("--", Group),
                ("wake", Unknown),
                ("fio", Group)
            ])
        );
        assert_eq!(
            parts("CPU 0/KVM;[guest]"),
            named(&[("CPU 0/KVM", Group), ("[guest]", Guest)])
        );
        assert_eq!(parts("a;;b").len(), 3);
    }

    #[test]
    fn idle_stacks_are_those_of_the_idle_task() {
        for idle in [
            "swapper",
            "swapper;a;b",
            "swapper/3;a",
            "swapper-?/0;a",
            "swapper-0/0;irq",
            "start_secondary;cpu_startup_entry_[k];do_idle_[k];default_idle",
            "x;do_idle+0x12;asm_sysvec_apic_timer_interrupt",
            "native_safe_halt",
        ] {
            assert!(is_idle(idle.as_bytes()), "{idle}");
        }
        for busy in [
            "qemu;a",
            "swapperd;a",
            "swapper-x;a",
            // A guest's own idling, below its vCPU.
            "CPU 0/KVM;default_idle",
            // A task that waits for a lock of a paravirtual guest.
            "cc1;__pv_queued_spin_lock_slowpath;kvm_wait;native_safe_halt",
            // Woken up by an interrupt of an idle CPU.
            "dd;read;schedule;--;try_to_wake_up;do_idle;cpu_startup_entry;swapper/0",
        ] {
            assert!(!is_idle(busy.as_bytes()), "{busy}");
        }
    }

    #[test]
    fn ids_are_no_part_of_a_threads_name() {
        assert_eq!(thread("qemu-1700/1703"), ("qemu", Some(1703)));
        assert_eq!(thread("CPU_0/KVM-?/17"), ("CPU_0/KVM", Some(17)));
        for name in [
            "qemu",
            "CPU 0/KVM",
            "kworker/0:1",
            "ksoftirqd/0",
            "a-b/1",
            "-1/2",
            "kworker/u8:2-3",
        ] {
            assert_eq!(thread(name), (name, None));
        }
    }
}
