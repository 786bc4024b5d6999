//! A line of `strace` (`src/strace.c`, `src/syscall.c` of strace 4.x to 6.x) or of `perf trace`
//! (`tools/perf/builtin-trace.c`): who called what, when, and what it returned.

use crate::number::{count, scaled};

/// What a line says when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTime {
    /// By a clock: the time of day (`-t`, `-tt`), seconds since 1970 (`-ttt`), or since `perf trace` began.
    At(u64),
    /// Since the line before (`-r`).
    Since(u64),
}

/// Who prints such lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTracer {
    Strace,
    PerfTrace,
}

/// A system call that returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemCall<'t> {
    pub by: CallTracer,
    pub thread: CallThread<'t>,
    pub time: Option<CallTime>,
    /// Its name, of `ioctl` with the request: `ioctl(KVM_RUN)`.
    pub name: String,
    /// Its first argument, if that is a file descriptor.
    pub file: Option<CallFile<'t>>,
    /// What it returned; `None` where it did not (`?`), or failed.
    pub result: Option<u64>,
}

/// The thread of a line, as far as the line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallThread<'t> {
    pub comm: Option<&'t str>,
    pub tid: Option<i32>,
}

/// A file descriptor, and what it is, which `-y` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallFile<'t> {
    pub fd: u64,
    pub path: Option<&'t str>,
}

/// What stands in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallLine<'t> {
    Call(SystemCall<'t>),
    /// A call that does not return on its line: `ioctl(32, KVM_RUN <unfinished ...>`. `args` are what is printed of it.
    Begun {
        thread: CallThread<'t>,
        time: Option<CallTime>,
        text: &'t str,
    },
    /// `<... ioctl resumed>) = 0`: its end.
    Resumed {
        thread: CallThread<'t>,
        time: Option<CallTime>,
        text: &'t str,
    },
    /// A signal, or a thread's end or beginning.
    Other,
}

/// Requests of ioctl by number, where old versions print no name (`include/uapi/linux/kvm.h`).
const REQUESTS: [(&str, &str); 3] = [
    ("0xae80", "KVM_RUN"),
    ("0x4008ae61", "KVM_IRQ_LINE"),
    ("0xc008ae67", "KVM_IRQ_LINE_STATUS"),
];
/// Characters of a name that are kept: a request of a device nobody knows is a number.
const MAX_NAME: usize = 40;

/// Reads a line. Returns nothing for other text.
pub(crate) fn line(text: &str) -> Option<CallLine<'_>> {
    let text = text.trim();
    if let Some(found) = perf_line(text) {
        return Some(found);
    }
    let (thread, rest) = strace_thread(text);
    let (time, rest) = strace_time(rest);
    if rest.starts_with("+++ ") && rest.ends_with(" +++")
        || rest.starts_with("--- ") && rest.ends_with(" ---")
    {
        return Some(CallLine::Other);
    }
    if rest.starts_with("strace: Process ")
        || rest.starts_with("Process ") && rest.contains("attached")
    {
        return Some(CallLine::Other);
    }
    if let Some((begun, _)) = rest.split_once("<unfinished ...>") {
        name(begun)?;
        let text = begun.trim_end();
        return Some(CallLine::Begun { thread, time, text });
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let (_, text) = resumed.split_once(" resumed>")?;
        text.split_whitespace()
            .any(|word| word == "=")
            .then_some(())?;
        return Some(CallLine::Resumed { thread, time, text });
    }
    let mut call = call(rest)?;
    call.thread = thread;
    call.time = time;
    Some(CallLine::Call(call))
}

/// Reads what `strace -f` puts before lines: `[pid  6912] `, or with `-o` the number alone.
fn strace_thread(text: &str) -> (CallThread<'_>, &str) {
    let of = |tid: &str| CallThread {
        comm: None,
        tid: tid.trim().parse().ok(),
    };
    if let Some((tid, rest)) = text
        .strip_prefix("[pid")
        .and_then(|rest| rest.split_once(']'))
    {
        // With -Y the name stands behind the number: `[pid 6912<CPU 0/KVM>]`.
        let (tid, comm) = tid.split_once('<').unwrap_or((tid, ""));
        let comm = Some(comm.trim_end_matches('>')).filter(|comm| !comm.is_empty());
        return (CallThread { comm, ..of(tid) }, rest.trim_start());
    }
    match text.split_once(char::is_whitespace) {
        Some((tid, rest)) if count(tid).is_some() => (of(tid), rest.trim_start()),
        _ => (CallThread::default(), text),
    }
}

/// Reads a time, if a line begins with one.
fn strace_time(text: &str) -> (Option<CallTime>, &str) {
    let Some((word, rest)) = text.split_once(char::is_whitespace) else {
        return (None, text);
    };
    let time = match word.split(':').collect::<Vec<_>>()[..] {
        [hours, minutes, seconds] => day_ns(hours, minutes, seconds).map(CallTime::At),
        // What is more than some years is since 1970.
        [seconds] => fraction(seconds).map(|ns| match ns >= SINCE_1970_NS {
            true => CallTime::At(ns),
            false => CallTime::Since(ns),
        }),
        _ => None,
    };
    match time {
        Some(_) => (time, rest.trim_start()),
        None => (None, text),
    }
}

/// No line is so long after the one before.
const SINCE_1970_NS: u64 = 500_000_000 * 1_000_000_000;

/// Reads seconds with a fraction.
fn fraction(text: &str) -> Option<u64> {
    let (_, part) = text.split_once(['.', ','])?;
    (part.len() >= 3)
        .then(|| scaled(text, 9))
        .flatten()
        .map(|time| time.ns)
}

/// Returns the nanoseconds of a day.
fn day_ns(hours: &str, minutes: &str, seconds: &str) -> Option<u64> {
    let (hours, minutes) = (count(hours)?, count(minutes)?);
    let ns = scaled(seconds, 9)?.ns;
    // Only then it has room in 64 bits.
    (hours < 24 && minutes < 60 && ns < 61_000_000_000)
        .then(|| (hours * 60 + minutes) * 60_000_000_000 + ns)
}

/// Reads `     0.123 ( 0.012 ms): CPU 0/KVM/6912 ioctl(fd: 30, cmd: KVM_RUN) = 0`.
fn perf_line(text: &str) -> Option<CallLine<'_>> {
    let (begin, rest) = text.split_once("): ")?;
    let (at, took) = begin.split_once('(')?;
    let at = at.trim();
    let known = match at {
        "?" => None,
        at => {
            at.split_once(['.', ','])
                .filter(|(_, part)| part.len() == 3)?;
            Some(CallTime::At(scaled(at, 6)?.ns))
        }
    };
    let took = took.trim();
    if !(took.is_empty() || took == "?" || took.ends_with("ms")) {
        return None;
    }
    // Names may hold blanks and slashes: the call begins at the last word before its parenthesis.
    let open = rest.find('(')?;
    let before = rest.get(..open)?;
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (thread, call_text) = (before.get(..start)?.trim(), rest.get(start..)?);
    let thread = perf_thread(thread.trim_end_matches("... [continued]:").trim());
    if before.contains("... [continued]:") {
        let (_, text) = call_text.split_once('(')?;
        text.split_whitespace()
            .any(|word| word == "=")
            .then_some(())?;
        return Some(CallLine::Resumed {
            thread,
            time: known,
            text,
        });
    }
    let unfinished = call_text.trim_end().strip_suffix("...");
    if let Some(begun) = unfinished.and_then(|text| text.trim_end().strip_suffix(')')) {
        name(begun)?;
        return Some(CallLine::Begun {
            thread,
            time: known,
            text: begun,
        });
    }
    let mut call = call(call_text)?;
    call.by = CallTracer::PerfTrace;
    call.thread = thread;
    call.time = known;
    Some(CallLine::Call(call))
}

/// Reads a thread as `perf trace` has it: `CPU 0/KVM/6912`.
fn perf_thread(text: &str) -> CallThread<'_> {
    match text
        .rsplit_once('/')
        .and_then(|(comm, tid)| Some((comm, tid.parse().ok()?)))
    {
        Some((comm, tid)) => CallThread {
            comm: Some(comm),
            tid: Some(tid),
        },
        None => CallThread::default(),
    }
}

/// Reads a call's name and its arguments.
fn name(text: &str) -> Option<(&str, &str)> {
    let (name, args) = text.split_once('(')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let named = name.len() > 1 && name.len() <= MAX_NAME && name.bytes().all(plain);
    (named && name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some((name, args))
}

/// Reads a whole call: `ioctl(32, KVM_RUN, 0)   = 0 <0.000059>`.
pub(crate) fn call(text: &str) -> Option<SystemCall<'_>> {
    let (name, args) = name(text)?;
    // Arguments may hold an equals sign, and what is returned may have words behind it.
    let (args, result) = args.match_indices('=').find_map(|(at, _)| {
        let (before, behind) = (args.get(..at)?, args.get(at + 1..)?);
        let apart = before.ends_with([' ', '\t']) && behind.starts_with([' ', '\t']);
        let before = before.trim_end().strip_suffix(')').filter(|_| apart)?;
        Some((before, returned(behind.trim_start())?))
    })?;
    let first = args.split(", ").next().unwrap_or_default();
    Some(SystemCall {
        by: CallTracer::Strace,
        thread: CallThread::default(),
        time: None,
        name: called(name, args),
        file: file(first),
        result,
    })
}

/// Reads what a call returned. None inside is one that failed or did not return.
fn returned(text: &str) -> Option<Option<u64>> {
    let text = text.trim_end();
    // How long it took stands last.
    let text = match text.rsplit_once(" <") {
        Some((before, took)) if took.strip_suffix('>').and_then(fraction).is_some() => before,
        _ => text,
    };
    let (value, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    // Behind an error stands its name, behind a number what it means.
    let means =
        rest.is_empty() || rest.starts_with('(') || rest.starts_with('E') || rest.starts_with('<');
    if !means || rest.ends_with(';') {
        return None;
    }
    let bare = value.split('<').next().unwrap_or(value);
    let number = match bare.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => count(bare),
    };
    let failed = value == "?" || value.strip_prefix('-').and_then(count).is_some();
    (failed || number.is_some()).then_some(number.filter(|_| !failed))
}

/// Returns a call's name, of `ioctl` with the request.
fn called(name: &str, args: &str) -> String {
    if name != "ioctl" {
        return name.to_owned();
    }
    let second = args.split(", ").nth(1).unwrap_or_default();
    let request = second.trim_start_matches("cmd: ").trim_end_matches(')');
    let known = REQUESTS.iter().find(|(number, _)| *number == request);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match known {
        Some((_, request)) => format!("ioctl({request})"),
        None if !request.is_empty() && request.len() <= MAX_NAME && request.bytes().all(plain) => {
            format!("ioctl({request})")
        }
        None => name.to_owned(),
    }
}

/// Reads a file descriptor: `12`, `12</dev/pts/3>`, `fd: 12`.
fn file(arg: &str) -> Option<CallFile<'_>> {
    let arg = arg.trim_start_matches("fd: ");
    let (fd, path) = match arg.split_once('<') {
        Some((fd, path)) => (fd, Some(path.trim_end_matches('>'))),
        None => (arg, None),
    };
    let fd = count(fd.trim())?;
    Some(CallFile { fd, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str) -> SystemCall<'_> {
        match line(text) {
            Some(CallLine::Call(call)) => call,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    /// A fuzzer found the first: hours that no day has were multiplied before they were refused.
    #[test]
    fn times_that_no_day_has_are_none() {
        for hours in ["48480000000000000", "18446744073709551615", "24"] {
            assert_eq!(day_ns(hours, "42", "00.000000"), None, "{hours}");
        }
        assert_eq!(day_ns("23", "59", "59.5"), Some(86_399_500_000_000));
    }

    #[test]
    fn lines_of_all_options_are_calls() {
        let call = reads("19:16:03.422829 writev(12, [{\"6\", 1}], 1) = 1");
        assert_eq!((call.name.as_str(), call.result), ("writev", Some(1)));
        assert_eq!(call.file, Some(CallFile { fd: 12, path: None }));
        assert_eq!(call.time, Some(CallTime::At(69_363_422_829_000)));
        let call = reads("[pid  6912] 19:16:03 ioctl(32, KVM_RUN, 0)   = 0 <0.000059>");
        assert_eq!(
            (call.name.as_str(), call.result),
            ("ioctl(KVM_RUN)", Some(0))
        );
        assert_eq!(call.thread.tid, Some(6912));
        let call = reads("6912  1795811084.003835 ioctl(32<anon_inode:kvm-vcpu:0>, 0xae80, 0) = 0");
        assert_eq!(
            (call.name.as_str(), call.thread.tid),
            ("ioctl(KVM_RUN)", Some(6912))
        );
        assert_eq!(call.time, Some(CallTime::At(1_795_811_084_003_835_000)));
        let path = call.file.and_then(|file| file.path);
        assert_eq!(path, Some("anon_inode:kvm-vcpu:0"));
        let call = reads(
            "     0.000517 read(7, 0x7ffc, 16) = -1 EAGAIN (Resource temporarily unavailable)",
        );
        assert_eq!(
            (call.result, call.time),
            (None, Some(CallTime::Since(517_000)))
        );
        let call = reads("write(1, \"a) = 3 b\", 9) = 9");
        assert_eq!(call.result, Some(9));
        let call = reads("poll([{fd=5, events=POLLIN}], 1, 0) = 1 ([{fd=5, revents=POLLIN}])");
        assert_eq!((call.name.as_str(), call.file), ("poll", None));
    }

    #[test]
    fn lines_of_perf_trace_are_calls() {
        let call = reads("     0.123 ( 0.012 ms): CPU 0/KVM/6912 ioctl(fd: 30, cmd: KVM_RUN) = 0");
        assert_eq!(
            (call.by, call.name.as_str()),
            (CallTracer::PerfTrace, "ioctl(KVM_RUN)")
        );
        assert_eq!(
            (call.thread.comm, call.thread.tid),
            (Some("CPU 0/KVM"), Some(6912))
        );
        assert_eq!(call.time, Some(CallTime::At(123_000)));
        let call =
            reads("     1.000 ( 0.002 ms): write(fd: 12</dev/pts/3>, buf: 0x7ffe, count: 1) = 1");
        assert_eq!(call.thread, CallThread::default());
        assert_eq!(call.file.map(|file| file.fd), Some(12));
        let begun = line("     1.1 (         ): CPU 0/KVM/6912 ioctl(fd: 30, cmd: KVM_RUN) ...");
        assert_eq!(begun, None, "a time has three decimals");
        let begun =
            line("     1.100 (         ): CPU 0/KVM/6912 ioctl(fd: 30, cmd: KVM_RUN)      ...");
        assert!(matches!(begun, Some(CallLine::Begun { .. })), "{begun:?}");
        let end = line("     9.100 ( 8.000 ms): CPU 0/KVM/6912  ... [continued]: ioctl()) = 0");
        assert!(matches!(end, Some(CallLine::Resumed { .. })), "{end:?}");
    }

    #[test]
    fn other_text_is_no_call() {
        for text in [
            "ret = ioctl(vcpu_fd, KVM_RUN, 0);",
            "write(fd, buf, 1) = 1;",
            "the call ioctl(32, KVM_RUN, 0) = 0 returns",
            "if (read(fd, buf, 4) == 4) return;",
            "f(x) = 2",
            "CPU 0/KVM-1010 [001] 10.0: sys_exit_ioctl: 0x0",
            "kvm_vcpu_ioctl(file, ioctl, arg) = kvm",
        ] {
            assert_eq!(line(text), None, "{text}");
        }
    }
}
