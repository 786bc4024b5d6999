//! The machine that is recorded: what a perf.data file says of it.

use std::fs;
use std::path::Path;

use cpuset::CpuSet;

use crate::file::Feature;

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// Returns the first value that /proc/cpuinfo has for a name.
fn value<'t>(cpuinfo: &'t str, name: &str) -> Option<&'t str> {
    let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs.find_map(|(key, value)| (key.trim() == name).then(|| value.trim()))
}

/// Returns the CPU's identification as perf writes it: on x86 vendor, family, model and stepping, elsewhere the
/// register that says it.
fn cpu_id(cpuinfo: &str) -> Option<String> {
    if let Some(midr) = line("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") {
        return Some(midr);
    }
    let part = |name| value(cpuinfo, name);
    Some(format!(
        "{},{},{},{}",
        part("vendor_id")?,
        part("cpu family")?,
        part("model")?,
        part("stepping")?
    ))
}

/// Returns the CPUs that are on line.
pub fn online() -> CpuSet {
    cpus("online")
}

/// Returns the CPUs of one of the kernel's lists, such as `online`.
pub(crate) fn cpus(list: &str) -> CpuSet {
    let path = Path::new("/sys/devices/system/cpu").join(list);
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// Returns the memory, KiB; 0 where it is not known.
pub(crate) fn memory_kib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let value = value(&text, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    value.unwrap_or(0)
}

/// Returns what is to be said of the running machine. What cannot be read is left out.
pub fn features() -> Vec<Feature> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let count = |list| u32::try_from(cpus(list).len()).unwrap_or(0);
    let known = [
        line("/proc/sys/kernel/hostname").map(Feature::Hostname),
        line("/proc/sys/kernel/osrelease").map(Feature::OsRelease),
        Some(Feature::Arch(std::env::consts::ARCH.to_owned())),
        Some(Feature::Cpus(count("present"), count("online"))),
        value(&cpuinfo, "model name").map(|name| Feature::CpuDescription(name.to_owned())),
        cpu_id(&cpuinfo).map(Feature::CpuId),
        Some(memory_kib())
            .filter(|kib| *kib > 0)
            .map(Feature::TotalMemory),
    ];
    known.into_iter().flatten().collect()
}
