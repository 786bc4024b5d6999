//! What a result says of its machine.

use std::fs;

use facts::Host;
use results::BenchMachine;

use crate::call;

/// Returns what a result says of its machine.
pub(crate) fn machine(host: &Host) -> BenchMachine {
    let hypervisor = hypervisor();
    let idle = host.cpuidle.clone().unwrap_or_default();
    let governors: Vec<String> = host
        .cpufreq
        .iter()
        .filter_map(|policy| policy.governor.clone())
        .collect();
    let polls = |name: Option<&String>| name.is_some_and(|name| name == "haltpoll");
    let polls = polls(idle.driver.as_ref()) || polls(idle.governor.as_ref());
    BenchMachine {
        kernel: host.kernel.clone(),
        arch: host.arch.clone(),
        cpu_model: host.cpu_model.clone(),
        virtualized: host
            .virtualized
            .or_else(|| hypervisor.as_ref().map(|_| true)),
        cpus: host.online.as_ref().map_or(0, |cpus| cpus.len() as u64),
        nodes: host
            .nodes
            .iter()
            .filter(|node| !node.cpus.is_empty())
            .count() as u64,
        hypervisor,
        clocksource: host.clocksource.clone(),
        cpuidle_driver: idle.driver,
        cpuidle_governor: idle.governor,
        idle: host.cmdline.as_deref().and_then(idle_of),
        guest_halt_poll_ns: number("/sys/module/haltpoll/parameters/guest_halt_poll_ns")
            .filter(|_| polls),
        kvm_halt_poll_ns: host
            .parameter("kvm", "halt_poll_ns")
            .and_then(|text| text.parse().ok()),
        cpufreq_governor: one_of(governors),
    }
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the name, or that there are several.
fn one_of(mut names: Vec<String>) -> Option<String> {
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => None,
        names => Some(names.join(", ")),
    }
}

/// Returns `idle=` of a kernel's command line; the last one counts.
fn idle_of(cmdline: &str) -> Option<String> {
    let kernels = cmdline.split(" -- ").next()?;
    let words = kernels.split_ascii_whitespace();
    let mut values = words.filter_map(|word| word.strip_prefix("idle="));
    Some(values.next_back()?.to_owned())
}

/// Returns what the hypervisor calls itself: CPUID leaf 0x40000000 where leaf 1 says that there is one (bit 31 of ECX,
/// which processors leave clear), else the device tree, `/sys/hypervisor`, or what QEMU is known by.
fn hypervisor() -> Option<String> {
    let present = call::cpuid(1).is_some_and(|[_, _, ecx, _]| ecx >> 31 == 1);
    if present && let Some([_, ebx, ecx, edx]) = call::cpuid(0x4000_0000) {
        let bytes: Vec<u8> = [ebx, ecx, edx]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        return name(&bytes);
    }
    let files = [
        "/proc/device-tree/hypervisor/compatible",
        "/sys/hypervisor/type",
    ];
    let named = files.iter().find_map(|file| name(&fs::read(file).ok()?));
    named.or_else(|| is_of_qemu().then(|| "QEMU".to_owned()))
}

/// Whether firmware tables or the device tree are QEMU's: its vendor, or its `fw-cfg` device, which no other machine
/// has.
fn is_of_qemu() -> bool {
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let nodes = fs::read_dir("/proc/device-tree")
        .into_iter()
        .flatten()
        .flatten();
    let mut names = nodes.map(|node| node.file_name());
    vendor.trim() == "QEMU" || names.any(|name| name.to_string_lossy().starts_with("fw-cfg"))
}

/// Returns what can be read of a name.
fn name(bytes: &[u8]) -> Option<String> {
    let text: String = bytes
        .iter()
        .map(|byte| char::from(*byte))
        .take_while(|letter| *letter != '\0')
        .filter(|letter| letter.is_ascii_graphic() || *letter == ' ')
        .take(64)
        .collect();
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_how_cpus_idle() {
        assert_eq!(idle_of("quiet idle=poll"), Some("poll".to_owned()));
        assert_eq!(idle_of("idle=poll idle=halt x"), Some("halt".to_owned()));
        assert_eq!(idle_of("cpuidle=x quiet -- idle=poll"), None);
    }

    #[test]
    fn names_are_what_can_be_read() {
        assert_eq!(name(b"KVMKVMKVM\0\0\0"), Some("KVMKVMKVM".to_owned()));
        assert_eq!(name(b"linux,kvm\0"), Some("linux,kvm".to_owned()));
        assert_eq!(name(b"\0\0"), None);
        assert_eq!(name(b"\x1b[2J"), Some("[2J".to_owned()));
    }
}
