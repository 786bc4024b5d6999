//! Lines that QEMU's human monitor prints.

use forms::InputForm;

use crate::ReportedVcpu;

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "QEMU's monitor: info cpus, info mtree",
    recognised_by: "lines `CPU #0: … thread_id=`; regions `…-… (prio 0, i/o): NAME` below their headings",
    yields: "vCPUs with their threads; where a VM has its devices",
    fixtures: &["tests/texts/info-cpus.txt", "tests/texts/info-mtree.txt"],
};

/// A line of the monitor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MonitorLine {
    /// A vCPU of `info cpus`; none where its thread is not recorded.
    Cpu(Option<ReportedVcpu>),
    /// A heading or region of `info mtree`.
    Mtree,
    /// What the monitor says when somebody connects: QEMU's version (`monitor_init_hmp`'s `monitor_event`).
    Banner(String),
    Other,
}

/// Reads a line.
pub(crate) fn parse(line: &str) -> MonitorLine {
    if let Some(cpu) = cpu(line) {
        return MonitorLine::Cpu(cpu);
    }
    if is_mtree(line) {
        return MonitorLine::Mtree;
    }
    if let Some((version, _)) = line
        .trim_start()
        .strip_prefix("QEMU ")
        .and_then(|rest| rest.split_once(" monitor"))
    {
        return MonitorLine::Banner(version.to_owned());
    }
    MonitorLine::Other
}

/// Returns what follows the monitor's prompts, if there are any.
pub(crate) fn after_prompt(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("(qemu)")?;
    while let Some(more) = rest.trim_start().strip_prefix("(qemu)") {
        rest = more;
    }
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `* CPU #0: thread_id=1700`; before QEMU 2.12 with `pc=0x… (halted)` between (`hmp_info_cpus`).
fn cpu(line: &str) -> Option<Option<ReportedVcpu>> {
    let line = line.trim_start();
    let line = line.strip_prefix('*').unwrap_or(line).trim_start();
    let (number, rest) = line.strip_prefix("CPU #")?.split_once(':')?;
    let id: u32 = number.parse().ok()?;
    let tid = rest
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("thread_id="));
    let tid = tid.and_then(|tid| crate::keep::id(tid.parse().ok()?));
    Some(tid.map(|tid| ReportedVcpu::new(id, tid)))
}

/// Headings and regions of `info mtree` in its forms (see the crate `devices`, which reads the text).
fn is_mtree(line: &str) -> bool {
    let text = line.trim();
    let heading = ["address-space:", "memory-region:", "FlatView #"]
        .iter()
        .any(|heading| text.starts_with(heading));
    // Before QEMU 2.3 the headings are the bare names.
    heading || matches!(line, "memory" | "I/O" | "aliases") || is_region(text)
}

/// `0000000000000000-ffffffffffffffff (prio 0, i/o): system`
fn is_region(text: &str) -> bool {
    let Some((range, rest)) = text.split_once(" (") else {
        return false;
    };
    let is_address = |s: &str| s.len() >= 8 && s.bytes().all(|b| b.is_ascii_hexdigit());
    let is_range = range
        .split_once('-')
        .is_some_and(|(a, b)| is_address(a) && is_address(b));
    is_range && rest.starts_with("prio")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_monitor() {
        let cpu = |id, tid| MonitorLine::Cpu(Some(ReportedVcpu::new(id, tid)));
        for (line, expected) in [
            ("* CPU #0: thread_id=1700", cpu(0, 1700)),
            ("  CPU #11: thread_id=1703", cpu(11, 1703)),
            (
                "* CPU #1: pc=0x00000000fff0 (halted) thread_id=71",
                cpu(1, 71),
            ),
            ("  CPU #1: thread_id=0", MonitorLine::Cpu(None)),
            ("  CPU #x: thread_id=3", MonitorLine::Other),
            ("address-space: I/O", MonitorLine::Mtree),
            (
                "    0000000000000608-000000000000060b (prio 0, i/o): acpi-tmr",
                MonitorLine::Mtree,
            ),
            (
                "QEMU 7.2.22 monitor - type 'help' for more information",
                MonitorLine::Banner("7.2.22".to_owned()),
            ),
            ("CPU 0/KVM", MonitorLine::Other),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
        assert_eq!(after_prompt("(qemu) (qemu) info cpus"), Some("info cpus"));
        assert_eq!(after_prompt("(qemu)"), Some(""));
        assert_eq!(after_prompt("qemu"), None);
    }
}
