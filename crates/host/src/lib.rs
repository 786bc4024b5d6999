/*!
The facts of a host, read from its files: `/proc`, `/sys` and the configuration of its kernel in `/boot`.

Nothing is started, mounted, changed or asked over a network, and nothing that is read takes more than a look of the
kernel at its own state, but for `numa_maps`, for which it walks a VMM's page tables. The environment of processes is
never read; what is or may be secret on command lines is masked ([`mask`]). What cannot be read is listed, with the
reason.

The files may stand below any folder, so the tree of another host can be read, as a container has it mounted or as
`sosreport` copies it. Such a tree is taken for hostile: what is read is bounded, and links that lead out of it are not
followed.

| facts | from |
| --- | --- |
| machine id | `/etc/machine-id`, of which nobody finds the number in what is kept ([`mask::machine_id`]) |
| kernel, architecture, CPU | `/proc/sys/kernel/osrelease`, `/proc/sys/kernel/arch`, `/proc/cpuinfo` |
| ticks in a second | `CONFIG_HZ` of `/proc/config.gz`, `/boot/config-RELEASE`, `/lib/modules/RELEASE/config` |
| kernel command line | `/proc/cmdline` |
| isolation | `isolated`, `nohz_full` of `/sys/devices/system/cpu`; `rcu_nocbs=` of the command line |
| topology, NUMA | `topology/…` of each online CPU, `/sys/devices/system/node` |
| clock frequency, idling | `cpufreq/policy*`, `cpuidle`, `smt/control` of `/sys/devices/system/cpu` |
| clock source | `/sys/devices/system/clocksource/clocksource0` |
| huge pages, KSM | `transparent_hugepage/enabled` and `ksm/run` of `/sys/kernel/mm` |
| NUMA balancing | `/proc/sys/kernel/numa_balancing` |
| mitigations | `/sys/devices/system/cpu/vulnerabilities` |
| parameters | `parameters` of `kvm`, `kvm_intel`, `kvm_amd`, `vhost`, `vhost_net` in `/sys/module` |
| KVM's counters | files of `/sys/kernel/debug/kvm` that are one number: sums over all VMs (root, debugfs) |
| QEMU's version | the program of VMMs (`/proc/PID/exe`), which has it as a text; else lists of packages: `/var/lib/dpkg/status`, `/var/lib/pacman/local`, `/lib/apk/db/installed`, sosreport's `installed-rpms` and `installed-debs` |
| VMs' memory by NUMA node | `/proc/PID/numa_maps`, where the host has memory on several nodes |
| control groups | `/proc/PID/cgroup` of VMMs and their vCPUs; `cpu.max`, `cpu.stat`, `memory.*`, `io.max` and pressure of those and of all above, in `/sys/fs/cgroup`; `cpu.cfs_*` of the first version |
| memory, pressure | names of `/proc/vmstat`, `/sys/kernel/mm/ksm`, `/proc/pressure` |
| kernel log | `/dev/kmsg` (root, or anybody where `kernel.dmesg_restrict` is 0); of a tree that sosreport copied, `sos_commands/kernel/dmesg` |
| interrupts | `/proc/interrupts`, `smp_affinity_list` and `effective_affinity_list` of `/proc/irq` |
| VMs | command lines of QEMU, Cloud Hypervisor, Firecracker, crosvm and kvmtool |
| vCPUs | thread names: `CPU 0/KVM`, `vcpu0`, `fc_vcpu 0`, `crosvm_vcpu0`, `kvm-vcpu-0` |
| threads | name, `Cpus_allowed_list`, policy of VMMs' threads, of the kernel's `vhost-*`, `kvm-*`, `irq/…` |
| other threads | the same of those that may not run on all CPUs, as those of poll-mode drivers |

The command line also has `isolcpus=` and `nohz_full=` where a kernel has no such files.

```
// The tree of another host: here one that has nothing.
let nothing = std::env::temp_dir().join("trapline-no-such-tree");
let facts = host::collect(&nothing);
assert!(facts.threads.is_empty());
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod available;
mod cgroups;
mod cpus;
mod irqs;
mod kernel;
mod kernel_log;
mod kvm;
mod numa;
mod processes;
mod program;
mod qemu;
mod tree;

use std::ops::RangeInclusive;
use std::path::Path;

use facts::{Facts, Host};

pub use kernel_log::KernelLogTail;
use tree::HostTree;

/// Collects the facts of the host whose files stand below `root`: `/` is the running one.
pub fn collect(root: &Path) -> Facts {
    let mut tree = HostTree::new(root);
    let mut host = Host::default();
    kernel::read(&mut tree, &mut host);
    cpus::read(&mut tree, &mut host);
    kernel::read_isolation(&mut tree, &mut host);
    kvm::read(&mut tree, &mut host);
    host.irqs = irqs::read(&mut tree);
    host.counters = cgroups::counters(&mut tree);
    host.kernel_log = kernel_log::read(&mut tree);
    let mut facts = Facts::default();
    host.masked += processes::read(&mut tree, &mut facts, host.online.as_ref());
    facts.host = Some(host);
    cgroups::read(&mut tree, &mut facts);
    qemu::read(&mut tree, &mut facts);
    numa::read(&mut tree, &mut facts);
    if let Some(host) = &mut facts.host {
        host.unreadable = tree.finish();
    }
    facts
}

/// Returns how many bytes a process of the host may still take: half of that is what one should take at most. `None`
/// where the host does not say it.
pub fn available_memory(root: &Path) -> Option<u64> {
    available::memory(&mut HostTree::new(root))
}

/// Reads the counters of the host and of the control groups of its VMs again, at the end of a recording, and adds to
/// the facts what they counted since ([`Facts::count_during`]), and what was written to the kernel's log.
pub fn count_again(root: &Path, facts: &mut Facts, log: &KernelLogTail) {
    let during = log.read();
    let mut tree = HostTree::new(root);
    let mut end = cgroups::read_again(&mut tree, facts);
    end.cpufreq = cpus::cpufreq(&mut tree);
    facts.count_during(&end);
    if let Some(host) = &mut facts.host {
        host.kernel_log_during = during;
    }
}

/// Reads the same of a flight recording, of which only the last seconds are kept: `during_ns` is that stretch on the
/// events' clock, which is that of the kernel's log, if it is known; `from_begin` says that it reaches back to when the
/// facts were read.
///
/// Lines of the log have times, so those of the stretch are found now. A counter has none: what it counted in the
/// stretch is known only where the stretch reaches back to when it was read before. Else counters become those of now,
/// and of the stretch nothing is said.
pub fn count_kept(
    root: &Path,
    facts: &mut Facts,
    log: &KernelLogTail,
    during_ns: Option<&RangeInclusive<u64>>,
    from_begin: bool,
) {
    let cut = during_ns.and_then(|during_ns| log.cut(during_ns));
    let mut tree = HostTree::new(root);
    let mut end = cgroups::read_again(&mut tree, facts);
    end.cpufreq = cpus::cpufreq(&mut tree);
    match from_begin {
        true => facts.count_during(&end),
        false => facts.count_up_to(end),
    }
    if let (Some(host), Some(cut)) = (&mut facts.host, cut) {
        host.kernel_log = Some(cut.before);
        host.kernel_log_during = Some(cut.during);
    }
}
