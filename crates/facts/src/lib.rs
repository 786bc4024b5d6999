/*!
Facts about a host beside a recording: which thread is whose and how it is called, which threads are
vCPUs of which VM, where a VM has its devices, and how the host itself is made and set ([`Host`]).

[`read`] takes the texts people have at hand and decides by content what each part is, so that several may
stand in one file:

- `ps`, with threads or without, by the names of its columns: `ps -eLo pid,tid,psr,comm,args`, `ps -eLf`,
  `ps -T`, `ps aux`, `top -bH`; and lists whose header was lost to `grep`, where the numbers say what they are;
- QEMU's monitor: `info cpus` and `info mtree`, with its prompts or as libvirt's `--hmp` prints them;
- NUMA nodes and processes' memory on each: `numactl -H`, `numastat -p PID`;
- a host's CPUs as `lscpu` prints them in English, German, French or Chinese;
- a kernel's log as `dmesg` and `journalctl -k` print it, with times of any form or without ([`KernelLog`]);
- what libvirt and KVM counted of domains: `virsh domstats`, of two outputs what was counted between them;
- which QEMU is installed: what `qemu-system-x86_64 --version`, `dpkg -l`, `rpm -qa`, `dnf list`, `pacman -Q` and `apk
  list` print;
- QMP: the replies to `query-cpus-fast`, `query-cpus`, `query-name`, `query-uuid` and
  `human-monitor-command`, with greetings, events and other replies around them;
- trapline's own JSON documents: of `trapline facts`, which [`write()`] makes, and the VMs in that of `trapline info`.

Command lines carry passwords: `mask` takes out what is or may be secret.

What is not recognised is left out and noted with its line number. All input is hostile: what is kept is
bounded, and nothing is guessed from a line that does not say what it is.

```
let text = b"* CPU #0: thread_id=1700\n  CPU #1: thread_id=1703\n";
let (facts, notes) = facts::read(text);
assert_eq!(facts.vms[0].vcpus[1], facts::ReportedVcpu::new(1, 1703));
assert!(notes.is_empty());
```
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod counters;
mod cpus;
mod data;
mod document;
mod domstats;
mod during;
mod host;
mod json;
mod keep;
mod kernel_log;
mod lscpu;
mod lscpu_words;
mod monitor;
mod notes;
mod numa;
mod ps;
mod qemu;
mod reader;
mod statistics;
mod summary;
mod text;
mod vmm;
mod write;

use forms::InputForm;

pub use counters::ControlGroup;
pub use data::{Facts, Policy, ReportedThread, ReportedVcpu, ReportedVm};
pub use host::{CpuIdle, FreqPolicy, Host, HostCpu, HostNode, Irq, Unreadable};
pub use kernel_log::{KernelLog, KernelLogLine, KernelLogReader, LogKind, LogOwner, printk_ns};
pub use qemu::{qemu_of_line, release};
pub use statistics::{CountedSums, DomainStatistics};
pub use text::{read, read_lines};
pub use vmm::vm_of_args;
pub use write::{FACTS_VERSION, FactsDocument, write};

/// What its readers read, each with what it is known by.
pub const FORMS: &[InputForm] = &[
    ps::FORM,
    monitor::FORM,
    json::FORM,
    numa::FORM,
    lscpu::FORM,
    domstats::FORM,
    kernel_log::FORM,
    qemu::FORM,
    document::FORM,
];
