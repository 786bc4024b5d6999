//! What stands before a message of a kernel log: when it was written, by whom.
//!
//! The forms are those of `dmesg` (util-linux, `sys-utils/dmesg.c`: plain, `-T`, `-e`, `-d`, `-x`, `-r`, `--time-format
//! iso`), of `journalctl` (systemd, `src/shared/logs-show.c`: `short`, `short-precise`, `short-full`, `short-iso`,
//! `short-unix`, `short-monotonic`), of syslog's files, and of `/dev/kmsg` (`Documentation/ABI/testing/dev-kmsg`). The
//! kernel writes the thread or CPU behind its time where it was built so (`CONFIG_PRINTK_CALLER`).

/// Longest prefix: times have some thirty letters, names of hosts 64 (`HOST_NAME_MAX`).
const MAX_PREFIX: usize = 160;

/// A line without what stands before its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogPrefix<'t> {
    pub(crate) printk_ns: Option<u64>,
    pub(crate) monotonic_ns: Option<u64>,
    pub(crate) when: Option<&'t str>,
    /// Whether the kernel wrote it, and not a program to the same journal.
    pub(crate) is_kernels: bool,
    /// Whether nothing but a kernel's log has this form.
    pub(crate) is_sure: bool,
    pub(crate) message: &'t str,
}

/// Returns whether a line begins as one of a kernel log.
pub(crate) fn is_stamped(line: &str) -> bool {
    of(line).is_some()
}

/// Returns when a line of a kernel log was written, in nanoseconds on the clock of printk, if it says so.
pub fn printk_ns(line: &str) -> Option<u64> {
    of(line)?.printk_ns
}

/// Takes the prefix of a line; `None` if it has none that is known.
pub(crate) fn of(line: &str) -> Option<LogPrefix<'_>> {
    let line = line.trim_start_matches([' ', '\t']);
    stamped(line).or_else(|| stamped(behind_file(line)?).filter(|prefix| prefix.is_sure))
}

fn stamped(line: &str) -> Option<LogPrefix<'_>> {
    // Who cut times and hosts off leaves this.
    if let Some(message) = line.strip_prefix("kernel: ") {
        let own = bracket(message).filter(|own| own.is_sure);
        return own.or(Some(LogPrefix {
            is_kernels: true,
            is_sure: true,
            message,
            ..LogPrefix::default()
        }));
    }
    kmsg(line)
        .or_else(|| bracket(without_facility(without_level(line))))
        .or_else(|| journal(line))
}

/// Returns what grep prints behind a file's name and the number of a line.
fn behind_file(line: &str) -> Option<&str> {
    let (file, rest) = line.split_once(':')?;
    let number = !file.is_empty() && file.bytes().all(|b| b.is_ascii_digit());
    let known = number || (file.contains(['/', '.']) && !file.contains(char::is_whitespace));
    if !known || file.len() > MAX_PREFIX {
        return None;
    }
    let numbered = rest.split_once(':').filter(|(number, _)| {
        !number.is_empty() && number.len() < 8 && number.bytes().all(|b| b.is_ascii_digit())
    });
    Some(numbered.map_or(rest, |(_, rest)| rest))
}

/// `6,339,5140900,-;message`: level, number, microseconds, flags.
fn kmsg(line: &str) -> Option<LogPrefix<'_>> {
    let (head, message) = line.split_once(';')?;
    let mut parts = head.split(',');
    let (level, number, us) = (parts.next()?, parts.next()?, parts.next()?);
    let flags = parts.next()?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let known = digits(level) && digits(number) && digits(us);
    if !known || level.len() > 4 || flags.len() > 1 {
        return None;
    }
    Some(LogPrefix {
        printk_ns: Some(us.parse::<u64>().ok()?.checked_mul(1000)?),
        is_kernels: true,
        is_sure: true,
        message,
        ..LogPrefix::default()
    })
}

/// `<4>` of `dmesg -r`.
fn without_level(line: &str) -> &str {
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match level {
        Some((level, rest))
            if (1..=3).contains(&level.len()) && level.bytes().all(|b| b.is_ascii_digit()) =>
        {
            rest
        }
        _ => line,
    }
}

/// `kern  :warn  : ` of `dmesg -x`.
fn without_facility(line: &str) -> &str {
    let mut parts = line.splitn(3, ':');
    let (Some(facility), Some(level), Some(rest)) = (parts.next(), parts.next(), parts.next())
    else {
        return line;
    };
    let is_word = |text: &str| {
        let text = text.trim_end();
        (2..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase())
    };
    let rest = rest.trim_start();
    let stamped = rest.starts_with('[');
    if is_word(facility) && is_word(level) && stamped {
        rest
    } else {
        line
    }
}

/// `[12345.678901] message`, and what else stands in brackets.
fn bracket(line: &str) -> Option<LogPrefix<'_>> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    if inside.len() > MAX_PREFIX {
        return None;
    }
    let inside = inside.trim();
    // dmesg -d has the time since the line before in the same brackets.
    let (time, delta) = match inside.split_once('<') {
        Some((time, delta)) => (time.trim_end(), Some(delta)),
        None => (inside, None),
    };
    let rest = without_caller(rest.strip_prefix(' ').unwrap_or(rest));
    let mut prefix = LogPrefix {
        is_kernels: true,
        message: rest,
        ..LogPrefix::default()
    };
    if let Some(ns) = seconds(time) {
        // The kernel prints microseconds; Xorg's log has three digits.
        prefix.is_sure = time.rsplit('.').next().is_some_and(|part| part.len() == 6);
        // journalctl -o short-monotonic has the host and the program behind another clock's time.
        let program = rest.split_once(": ").map(|(head, message)| {
            let mut words = head.split(' ');
            (words.next(), words.next(), words.next(), message)
        });
        match program {
            Some((Some(_), Some("kernel"), None, message)) => {
                prefix.monotonic_ns = Some(ns);
                prefix.message = message;
            }
            Some((Some(_), Some(other), None, _)) if is_program(other) => {
                prefix.monotonic_ns = Some(ns);
                prefix.is_kernels = false;
            }
            _ => prefix.printk_ns = Some(ns),
        }
        return Some(prefix);
    }
    if is_calendar(time) {
        prefix.when = Some(time);
        // Web servers' times have fractions, or more in brackets behind them.
        prefix.is_sure = !time.contains('.') && !rest.starts_with('[');
        return Some(prefix);
    }
    // The time since the line before alone.
    let since = time.strip_prefix('+').and_then(seconds).is_some();
    prefix.is_sure = true;
    (since || (time.is_empty() && delta.is_some())).then_some(prefix)
}

/// `systemd[1]`, as opposed to words of a message.
fn is_program(word: &str) -> bool {
    let pid = word
        .strip_suffix(']')
        .and_then(|word| word.rsplit_once('['));
    pid.is_some_and(|(_, pid)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

/// `[   T12]` or `[    C1]` (`print_caller` of `kernel/printk/printk.c`).
fn without_caller(rest: &str) -> &str {
    let caller = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let Some((caller, after)) = caller else {
        return rest;
    };
    let number = caller.trim().strip_prefix(['T', 'C']);
    match number {
        Some(number) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            after.strip_prefix(' ').unwrap_or(after)
        }
        _ => rest,
    }
}

/// `Nov 27 03:50:11 host kernel: message`, and with other times.
fn journal(line: &str) -> Option<LogPrefix<'_>> {
    let bytes = line.len().min(MAX_PREFIX);
    let head = &line[..line.floor_char_boundary(bytes)];
    let (end, len) = time_end(head)?;
    let when = &head[..end];
    let rest = line.get(len..)?;
    let mut prefix = LogPrefix {
        when: Some(when),
        is_kernels: true,
        is_sure: is_dmesg_iso(when),
        message: rest,
        ..LogPrefix::default()
    };
    let program = rest
        .split_once(": ")
        .or_else(|| Some((rest.strip_suffix(':')?, "")));
    let Some((who, message)) = program else {
        // dmesg's ISO times have no host behind them.
        return when.contains('T').then_some(prefix);
    };
    let mut words = who.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some(_), Some("kernel"), None) => {
            prefix.is_sure = true;
            // Syslog's files keep the kernel's own time.
            let own = bracket(message).filter(|own| own.printk_ns.is_some());
            prefix.printk_ns = own.as_ref().and_then(|own| own.printk_ns);
            prefix.message = own.map_or(message, |own| own.message);
            Some(prefix)
        }
        (Some(_), Some(program), None)
            if is_program(program) || !program.contains(['(', '#', '=']) =>
        {
            // A message of dmesg may begin with two words and a colon too; a program's line has no 'T' without a host.
            if when.contains('T') && !is_program(program) {
                return Some(prefix);
            }
            prefix.is_kernels = false;
            Some(prefix)
        }
        _ => when.contains('T').then_some(prefix),
    }
}

/// Returns where a calendar's time ends at the beginning of a line, and where what is behind it begins.
fn time_end(head: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut words = 0;
    let mut clock = false;
    // Month, day and time; a weekday before; a zone behind.
    for word in head.split(' ') {
        let next = at + word.len();
        if word.is_empty() {
            at = next + 1;
            continue;
        }
        words += 1;
        let iso = is_iso(word);
        let unix = words == 1 && word.len() >= 12 && seconds(word).is_some();
        if iso || unix {
            return (words == 1).then_some((next, next + 1));
        }
        if clock {
            // short-full has a zone behind the time.
            let zone = (2..=5).contains(&word.len())
                && word
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b == b'+' || b.is_ascii_digit());
            let full = head.get(..at).is_some_and(|t| t.contains("-"));
            return match zone && full {
                true => Some((next, next + 1)),
                false => Some((at.saturating_sub(1), at)),
            };
        }
        let known = match words {
            1 => is_name_of(word, &MONTHS) || is_name_of(word, &DAYS),
            2 => is_day(word) || is_date(word) || is_name_of(word, &MONTHS),
            _ => false,
        };
        if words > 1 && is_clock(word) {
            clock = true;
        } else if !known {
            return None;
        }
        at = next + 1;
    }
    None
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

fn is_name_of(word: &str, names: &[&str]) -> bool {
    names.contains(&word)
}

fn is_day(word: &str) -> bool {
    word.len() <= 2 && word.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
}

/// `2026-11-27`
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    word.len() == 10 && parts.len() == 3 && parts.iter().all(digits)
}

/// `03:50:11`, or with a fraction.
fn is_clock(word: &str) -> bool {
    let whole = word.split(['.', ',']).next().unwrap_or_default();
    let parts: Vec<&str> = whole.split(':').collect();
    let digits = |text: &&str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(digits)
}

/// `2026-11-27T03:50:11,123456+00:00`
fn is_iso(word: &str) -> bool {
    let Some((date, time)) = word.split_once('T') else {
        return false;
    };
    is_date(date) && time.get(..8).is_some_and(is_clock)
}

/// `2026-11-27T03:50:11,123456+00:00` of `dmesg --time-format iso`: others have a point, or no zone.
fn is_dmesg_iso(word: &str) -> bool {
    let fraction = word.split_once(',').map(|(_, rest)| rest);
    fraction.is_some_and(|rest| {
        let zone = rest.get(6..).unwrap_or_default();
        let digits = rest.bytes().take(6).all(|b| b.is_ascii_digit());
        digits && zone.len() == 6 && zone.starts_with(['+', '-'])
    })
}

/// `Fri Nov 27 03:50:11 2026` of `dmesg -T`, `Nov27 03:50` of `dmesg -e`.
fn is_calendar(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let month = first.get(..3).unwrap_or_default();
    if is_name_of(first, &DAYS) {
        return text.split_ascii_whitespace().any(is_clock);
    }
    let hour = words.next().unwrap_or_default();
    let minutes = hour.len() == 5 && hour.as_bytes().get(2) == Some(&b':');
    is_name_of(month, &MONTHS) && first.get(3..).is_some_and(is_day) && minutes
}

/// Returns the nanoseconds of `12345.678901`: digits, a point, three to nine digits.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || !(3..=9).contains(&part.len()) {
        return None;
    }
    let scale = 10_u64.checked_pow(9 - u32::try_from(part.len()).ok()?)?;
    let ns = part.parse::<u64>().ok()?.checked_mul(scale)?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "rcu: INFO: rcu_sched self-detected stall on CPU";

    #[test]
    fn times_of_every_form_stand_before_the_same_message() {
        let ns = Some(12_345_678_901_000);
        for (head, printk_ns, monotonic_ns, when) in [
            ("[12345.678901] ", ns, None, None),
            ("<4>[12345.678901] ", ns, None, None),
            ("kern  :warn  : [12345.678901] ", ns, None, None),
            ("[12345.678901 <    0.000012>] ", ns, None, None),
            ("[12345.678901][   T12] ", ns, None, None),
            ("[12345.678901] [    C3] ", ns, None, None),
            ("4,339,12345678901,-;", ns, None, None),
            ("4,339,12345678901,c,caller=T1;", ns, None, None),
            (
                "[Fri Nov 27 03:50:11 2026] ",
                None,
                None,
                Some("Fri Nov 27 03:50:11 2026"),
            ),
            ("[Nov27 03:50] ", None, None, Some("Nov27 03:50")),
            ("[  +0.000012] ", None, None, None),
            ("[12345.678901] web1 kernel: ", None, ns, None),
            (
                "Nov 27 03:50:11 web1 kernel: ",
                None,
                None,
                Some("Nov 27 03:50:11"),
            ),
            (
                "Nov  7 03:50:11.123456 web1 kernel: ",
                None,
                None,
                Some("Nov  7 03:50:11.123456"),
            ),
            (
                "Nov 27 03:50:11 web1 kernel: [12345.678901] ",
                ns,
                None,
                Some("Nov 27 03:50:11"),
            ),
            (
                "Fri 2026-11-27 03:50:11 UTC web1 kernel: ",
                None,
                None,
                Some("Fri 2026-11-27 03:50:11 UTC"),
            ),
            (
                "2026-11-27T03:50:11+0000 web1 kernel: ",
                None,
                None,
                Some("2026-11-27T03:50:11+0000"),
            ),
            (
                "2026-11-27T03:50:11,123456+00:00 ",
                None,
                None,
                Some("2026-11-27T03:50:11,123456+00:00"),
            ),
            ("kernel: ", None, None, None),
            ("kernel: [12345.678901] ", ns, None, None),
            ("dmesg.txt:[12345.678901] ", ns, None, None),
            ("17:[12345.678901] ", ns, None, None),
            (
                "/var/log/syslog.1:Nov 27 03:50:11 web1 kernel: ",
                None,
                None,
                Some("Nov 27 03:50:11"),
            ),
            (
                "1764215411.123456 web1 kernel: ",
                None,
                None,
                Some("1764215411.123456"),
            ),
        ] {
            let line = format!("{head}{MESSAGE}");
            let found = of(&line).unwrap_or_else(|| panic!("{line}"));
            assert!(found.is_kernels && found.is_sure, "{line}");
            assert_eq!(found.message, MESSAGE, "{line}");
            let times = (found.printk_ns, found.monotonic_ns, found.when);
            assert_eq!(times, (printk_ns, monotonic_ns, when), "{line}");
        }
    }

    #[test]
    fn other_lines_have_no_such_prefix_and_programs_are_not_the_kernel() {
        for line in [
            "",
            "[",
            "[1, 2]",
            "[{\"a\": 1}]",
            "[99999999999999999999.123] x",
            "  PID   TID COMMAND",
            " 1700  1703 CPU 0/KVM",
            "Nov is a month",
            "CPU 0/KVM-1010  [001]    10.000000: kvm_exit: reason HLT",
            "1,2,3",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        for line in [
            "Nov 27 03:50:11 web1 systemd[1]: Started kernel: x.",
            "[12345.678901] web1 systemd[1]: Started.",
        ] {
            assert!(of(line).is_some_and(|found| !found.is_kernels), "{line}");
        }
        // Times that logs of programs have too.
        for line in [
            "2026-11-27T03:50:11.123Z INFO org.example.Main - started",
            "2026-11-27T03:50:11Z qemu-system-x86_64: warning: x",
            "[Fri Nov 27 03:50:11.123456 2026] [core:error] [pid 7] x",
            "[Fri Nov 27 03:50:11 2026] [error] [client 10.0.0.1] x",
            "[    37.123] (II) Loading x",
        ] {
            assert!(of(line).is_none_or(|found| !found.is_sure), "{line}");
        }
    }
}
