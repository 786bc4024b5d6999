//! The kernel: on which machine it runs, which it is, how it was started, built and set.

use std::io::Read;

use cpuset::CpuSet;
use facts::Host;

use crate::tree::{HostTree, MAX_FILE};

/// `/proc/cpuinfo` gives the same of each CPU; the first ones do.
const CPUINFO: u64 = 16 << 10;
/// Kernels take command lines of some thousand bytes (`COMMAND_LINE_SIZE`).
const MAX_CMDLINE: u64 = 64 << 10;
/// A kernel's configuration is not unpacked beyond this many bytes; they have some 300,000.
const MAX_CONFIG: u64 = 4 * MAX_FILE;

/// Reads what the kernel is, its clock source and its settings of memory.
pub(crate) fn read(tree: &mut HostTree, host: &mut Host) {
    host.machine_id = tree
        .line("/etc/machine-id")
        .and_then(|number| mask::machine_id(&number));
    host.kernel = tree.expected("/proc/sys/kernel/osrelease");
    cpuinfo(tree, host);
    if let Some(arch) = tree.line("/proc/sys/kernel/arch") {
        host.arch = Some(arch);
    }
    tree.expect("/proc/cmdline");
    if let Some(line) = tree.text_within("/proc/cmdline", MAX_CMDLINE) {
        let (line, masked) = mask::cmdline(line.trim());
        host.cmdline = Some(line);
        host.masked += masked;
    }
    host.hz = hz(tree, host.kernel.as_deref());

    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    host.clocksource = tree.expected(&format!("{CLOCK}/current_clocksource"));
    host.clocksources = tree.words(&format!("{CLOCK}/available_clocksource"));

    // always [madvise] never
    let thp = tree.line("/sys/kernel/mm/transparent_hugepage/enabled");
    host.thp = thp.and_then(|line| {
        let chosen = line.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    });
    let ksm = tree.number::<u8>("/sys/kernel/mm/ksm/run");
    host.ksm = ksm.map(|run| run == 1);
    let balancing = tree.number::<u8>("/proc/sys/kernel/numa_balancing");
    host.numa_balancing = balancing.map(|mode| mode != 0);
    const HOLES: &str = "/sys/devices/system/cpu/vulnerabilities";
    for name in tree.names(HOLES) {
        if let Some(line) = tree.line(&format!("{HOLES}/{name}")) {
            host.mitigations.insert(name, line);
        }
    }
}

/// Reads what `/proc/cpuinfo` says of the first CPU (`arch/*/kernel/cpu/proc.c`, `arch/arm64/kernel/cpuinfo.c`).
fn cpuinfo(tree: &mut HostTree, host: &mut Host) {
    tree.expect("/proc/cpuinfo");
    let text = tree.head("/proc/cpuinfo", CPUINFO).unwrap_or_default();
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
    };
    if let Some(flags) = value("flags") {
        let has = |flag: &str| flags.split_ascii_whitespace().any(|f| f == flag);
        host.virtualized = Some(has("hypervisor"));
        host.arch = has("lm").then(|| "x86_64".to_owned());
    }
    let implementer = value("CPU implementer");
    if implementer.is_some() && value("CPU architecture").as_deref() == Some("8") {
        host.arch = Some("aarch64".to_owned());
    }
    host.cpu_model = value("model name").or_else(|| {
        let (implementer, part) = (implementer?, value("CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    });
}

/// Returns the ticks in a second, as the kernel's configuration has them.
fn hz(tree: &mut HostTree, kernel: Option<&str>) -> Option<u32> {
    let of_text = |text: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.trim().parse().ok())
    };
    const PACKED: &str = "/proc/config.gz";
    if let Some(packed) = tree.bytes(PACKED) {
        let mut text = Vec::new();
        let unpacked = flate2::read::GzDecoder::new(&packed[..]);
        if unpacked.take(MAX_CONFIG).read_to_end(&mut text).is_err() {
            tree.refuse(PACKED, "cannot be unpacked");
        }
        if let Some(hz) = of_text(&String::from_utf8_lossy(&text)) {
            return Some(hz);
        }
    }
    // The release is a name of files here: one with slashes would lead elsewhere.
    let kernel = kernel.filter(|kernel| !kernel.contains('/'))?;
    let boot = format!("/boot/config-{kernel}");
    let paths = [
        boot.clone(),
        format!("/lib/modules/{kernel}/config"),
        format!("/usr/lib/modules/{kernel}/config"),
    ];
    let found = paths.iter().find_map(|path| tree.text(path));
    if found.is_none() {
        tree.refuse(
            &boot,
            "no such file, and no /proc/config.gz: CONFIG_HZ is not known",
        );
    }
    of_text(&found?)
}

/// Reads which CPUs are kept free of what. Where the kernel does not say, its command line does.
pub(crate) fn read_isolation(tree: &mut HostTree, host: &mut Host) {
    const CPU: &str = "/sys/devices/system/cpu";
    let isolated = tree.cpus(&format!("{CPU}/isolated"));
    let nohz_full = tree.cpus(&format!("{CPU}/nohz_full"));
    let possible = tree.cpus(&format!("{CPU}/possible"));
    let all = possible.or_else(|| host.online.clone());
    let Some(line) = host.cmdline.as_deref() else {
        host.isolated = isolated;
        host.nohz_full = nohz_full;
        return;
    };
    let given = |name: &str| boot_list(line, name, all.as_ref());
    host.isolated = isolated.or_else(|| given("isolcpus"));
    host.nohz_full = nohz_full.or_else(|| given("nohz_full"));
    // The callbacks of CPUs without tick are offloaded too (rcu_init_nohz of kernel/rcu/tree_nocb.h).
    host.rcu_nocbs = given("rcu_nocbs").map(|mut set| {
        for (first, last) in host.nohz_full.iter().flat_map(CpuSet::ranges) {
            set.insert_range(*first, *last);
        }
        set
    });
}

/// Returns the CPUs that a parameter of the command line names, none of them if it is not there. Its value may begin
/// with flags (`isolcpus=managed_irq,domain,2-7`; without `domain`, they isolate from something else), name all CPUs
/// (`all`), or the last one as `N` (`bitmap_parselist` of `lib/bitmap-str.c`). None if that cannot be read.
fn boot_list(line: &str, name: &str, all: Option<&CpuSet>) -> Option<CpuSet> {
    let kernels = line.split(" -- ").next().unwrap_or_default();
    let mut values = kernels
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    // The last one counts.
    let Some(value) = values.next_back() else {
        return Some(CpuSet::new());
    };
    let is_flag = |part: &&str| matches!(*part, "nohz" | "domain" | "managed_irq");
    let flags: Vec<&str> = value.split(',').take_while(is_flag).collect();
    if !flags.is_empty() && !flags.contains(&"domain") {
        return Some(CpuSet::new());
    }
    let parts: Vec<&str> = value.split(',').skip(flags.len()).collect();
    let list = parts.join(",");
    if list.contains("all") {
        return all.cloned();
    }
    let last = all.and_then(|all| all.ranges().last());
    let list = match last {
        Some((_, last)) => list.replace('N', &last.to_string()),
        None => list,
    };
    list.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_command_line_are_read_as_the_kernel_reads_them() {
        let all: CpuSet = "0-7".parse().unwrap();
        for (line, expected) in [
            ("quiet", Some("")),
            ("isolcpus=2-3", Some("2-3")),
            ("isolcpus=1 isolcpus=2,4", Some("2,4")),
            ("isolcpus=managed_irq,domain,4-N", Some("4-7")),
            ("isolcpus=nohz,5", Some("")),
            ("isolcpus=all", Some("0-7")),
            ("isolcpus=0-7:1/2", Some("0,2,4,6")),
            ("quiet -- isolcpus=3", Some("")),
            ("my.isolcpus=3", Some("")),
            ("isolcpus=banana", None),
        ] {
            let found = boot_list(line, "isolcpus", Some(&all));
            let expected = expected.map(str::to_owned);
            assert_eq!(found.map(|set| set.to_string()), expected, "{line}");
        }
        assert_eq!(boot_list("isolcpus=2-N", "isolcpus", None), None);
    }
}
