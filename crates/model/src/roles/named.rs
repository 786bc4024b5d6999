//! What a thread's name says that it is.

/// What a thread's name says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedRole {
    /// An idle task of the kernel: `swapper/3`.
    Idle,
    /// A vCPU's thread, with the vCPU's number ([`vcpu_from_comm`]).
    Vcpu(u32),
    /// A thread of QEMU that does I/O: `IO iothread1`, `IO mon_iothread` (`iothread.c`).
    Iothread,
    /// A thread of QEMU's process: its main loop, or one without a name of its own.
    Qemu,
    /// A worker of vhost, which moves a VM's packets or blocks, with the process that it works for: `vhost-4509`
    /// (`drivers/vhost/vhost.c`). A newer kernel's is a thread of the process itself, `vhost-4509-4522`.
    Vhost(Option<i32>),
    /// A thread of KVM's own, with the VMM's process: `kvm-pit/4509` (`arch/x86/kvm/i8254.c`),
    /// `kvm-nx-lpage-recovery-4509` (`arch/x86/kvm/mmu/mmu.c`).
    Kvm(Option<i32>),
    /// A worker of the kernel's work queues, with the CPU that it is bound to: `kworker/9:1`; `kworker/u449:3` is of
    /// none. irqfds inject interrupts of level in one (`virt/kvm/eventfd.c`).
    Kworker(Option<u32>),
    /// A poll-mode thread of a software switch or of DPDK: `pmd-c03/id:9` (Open vSwitch, `lib/dpif-netdev.c`), `pmd9`
    /// (older ones), `lcore-worker-3`, `lcore-slave-3`, `dpdk-worker3` (DPDK, `lib/eal/linux/eal.c`).
    PollMode,
    /// A thread that handles interrupts of a device: `irq/30-eth0` (`kernel/irq/manage.c`).
    Irq,
    /// Another thread of the kernel.
    Kernel,
    /// Nothing that is known here.
    Other,
}

/// What names of the kernel's other threads begin with: they serve everybody.
const KERNEL: [&str; 14] = [
    "ksoftirqd/",
    "migration/",
    "rcu_",
    "rcuc/",
    "rcub/",
    "rcuog/",
    "rcuop/",
    "rcuos/",
    "cpuhp/",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "ksmd",
];

/// What is behind so many bytes of a name says nothing.
const MOST_NAMED: usize = 256;

impl From<&str> for NamedRole {
    /// Returns what a thread is by its name.
    fn from(comm: &str) -> NamedRole {
        // The kernel's names have 16 bytes, those of its workers 64 (TASK_COMM_LEN, WORKER_DESC_LEN). A file may say
        // anything, and each thread's name is looked through.
        let comm = &comm[..comm.floor_char_boundary(MOST_NAMED)];
        if let Some(number) = vcpu_from_comm(comm) {
            return NamedRole::Vcpu(number);
        }
        // The first letter says of most names that they are none of these.
        match comm.as_bytes().first() {
            Some(b'v') => match comm.strip_prefix("vhost-") {
                Some(rest) => NamedRole::Vhost(leading_pid(rest)),
                None => NamedRole::Other,
            },
            Some(b'k') => kernels(comm),
            Some(b'i') if comm.starts_with("irq/") => NamedRole::Irq,
            Some(b's') if comm == "swapper" || comm.starts_with("swapper/") => NamedRole::Idle,
            Some(b'q') if comm.starts_with("qemu") => NamedRole::Qemu,
            Some(b'I') if comm.starts_with("IO ") => NamedRole::Iothread,
            Some(b'p' | b'l' | b'd') if is_poll_mode(comm) => NamedRole::PollMode,
            _ => kernel_or_other(comm),
        }
    }
}

impl NamedRole {
    /// Returns the process in a kernel thread's name that it works for.
    pub fn served(self) -> Option<i32> {
        match self {
            NamedRole::Vhost(pid) | NamedRole::Kvm(pid) => pid,
            _ => None,
        }
    }

    /// Returns whether it is a vhost worker.
    pub fn is_vhost(self) -> bool {
        matches!(self, NamedRole::Vhost(_))
    }

    /// Returns whether it works for VMs and is no vCPU: the VMM's own threads, and the kernel's that work for one VM.
    pub fn is_helper_of_vms(self) -> bool {
        matches!(
            self,
            NamedRole::Iothread | NamedRole::Qemu | NamedRole::Vhost(_) | NamedRole::Kvm(_)
        )
    }

    /// Returns whether it is a kworker.
    pub fn is_kworker(self) -> bool {
        matches!(self, NamedRole::Kworker(_))
    }

    /// Returns whether it is a vCPU's thread.
    pub fn is_vcpu(self) -> bool {
        matches!(self, NamedRole::Vcpu(_))
    }

    /// Returns whether it is a thread of the kernel that works for anybody. vhost's workers work for one VM.
    pub(crate) fn serves_anybody(self) -> bool {
        matches!(
            self,
            NamedRole::Idle | NamedRole::Kworker(_) | NamedRole::Irq | NamedRole::Kernel
        )
    }
}

/// Returns what a name is that begins as most of the kernel's do.
fn kernels(comm: &str) -> NamedRole {
    if let Some(rest) = comm.strip_prefix("kworker/") {
        let cpu = rest.split_once(':').and_then(|(cpu, _)| cpu.parse().ok());
        return NamedRole::Kworker(cpu);
    }
    if let Some(rest) = comm.strip_prefix("kvm-") {
        let pid = (rest.strip_prefix("pit/")).or_else(|| rest.strip_prefix("nx-lpage-recovery-"));
        return NamedRole::Kvm(pid.and_then(|pid| pid.parse().ok()));
    }
    kernel_or_other(comm)
}

fn kernel_or_other(comm: &str) -> NamedRole {
    match KERNEL.iter().any(|prefix| comm.starts_with(prefix)) {
        true => NamedRole::Kernel,
        false => NamedRole::Other,
    }
}

fn is_poll_mode(comm: &str) -> bool {
    let after = |prefix: &str| {
        let rest = comm.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    comm.starts_with("pmd-c")
        || ["pmd", "lcore-worker-", "lcore-slave-", "dpdk-worker"]
            .into_iter()
            .any(after)
}

/// Returns the number that a text begins with, up to a hyphen.
fn leading_pid(text: &str) -> Option<i32> {
    text.split('-').next().unwrap_or_default().parse().ok()
}

/// Returns the vCPU's number that a thread's name has: `CPU 3/KVM` (QEMU with debug-threads=on, as libvirt
/// starts it), `fc_vcpu 3` (Firecracker and libkrun, early ones `fc_vcpu3`), `vcpu3` (Cloud
/// Hypervisor), `crosvm_vcpu3`, `kvm-vcpu-3` (kvmtool).
pub fn vcpu_from_comm(comm: &str) -> Option<u32> {
    let number = |s: &str| {
        let digits = s.trim_start_matches([' ', '_', '-']);
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits[..end].parse().ok()
    };
    if let Some(rest) = comm.strip_prefix("CPU ") {
        // QEMU's own emulation has threads called `CPU 3/TCG`.
        let number = rest.split_once('/').filter(|(_, how)| *how == "KVM");
        return number.and_then(|(number, _)| number.parse().ok());
    }
    comm.find("vcpu")
        .and_then(|at| number(&comm[at + "vcpu".len()..]))
}

/// Names that say what a thread is and nothing of who runs it, whole: QEMU's and the standard recorders' programs, and
/// threads of the kernel that have no number.
const PUBLIC: [&str; 24] = [
    "qemu-system-x86",
    "qemu-system-aar",
    "qemu-kvm",
    "perf",
    "perf-exec",
    "trace-cmd",
    "trapline",
    "swapper",
    "kthreadd",
    "khugepaged",
    "ksmd",
    "rcu_sched",
    "rcu_preempt",
    "rcu_bh",
    "rcu_gp",
    "rcu_par_gp",
    "rcu_tasks_kthre",
    "rcu_tasks_rude_",
    "rcu_tasks_trace",
    "kswapd",
    "kcompactd",
    "IO iothread",
    "IO mon_iothread",
    "kvm-nx-lpage-re",
];

/// What stands before a number in names of threads that say what they are.
const NUMBERED: [&str; 26] = [
    "swapper/",
    "fc_vcpu ",
    "fc_vcpu",
    "vcpu",
    "crosvm_vcpu",
    "kvm-vcpu-",
    "IO iothread",
    "vhost-",
    "kvm-pit/",
    "kvm-nx-lpage-recovery-",
    "kworker/",
    "kworker/u",
    "pmd-c",
    "pmd",
    "lcore-worker-",
    "lcore-slave-",
    "dpdk-worker",
    "irq/",
    "ksoftirqd/",
    "migration/",
    "rcuc/",
    "rcub/",
    "cpuhp/",
    "kswapd",
    "kcompactd",
    "rcuop/",
];

/// Returns a thread's name as far as it says what the thread is and nothing of who runs it: `CPU 3/KVM`, `vhost-4509`,
/// `kworker/9:1H`, `irq/30`. `None` for all others. Roles are the same before and after ([`NamedRole`]).
pub fn public_form(comm: &str) -> Option<String> {
    if PUBLIC.contains(&comm) {
        return Some(comm.to_owned());
    }
    if let Some((number, "KVM")) = comm
        .strip_prefix("CPU ")
        .and_then(|rest| rest.split_once('/'))
    {
        return number
            .parse::<u32>()
            .ok()
            .map(|number| format!("CPU {number}/KVM"));
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    // The longest that fits: `kworker/u` before `kworker/`.
    let fits = NUMBERED.iter().filter(|prefix| {
        let rest = comm.strip_prefix(**prefix);
        rest.is_some_and(|rest| digits(rest) > 0)
    });
    let prefix = fits.max_by_key(|prefix| prefix.len())?;
    let mut kept = (*prefix).to_owned();
    let mut rest = &comm[prefix.len()..];
    loop {
        let number = digits(rest);
        kept.push_str(&rest[..number]);
        rest = &rest[number..];
        // A second number follows in some: the worker's, a vhost thread's, `pmd-c03/id:9`.
        let more = ["/id:", ":", "-"].into_iter().find(|sign| {
            let behind = rest.strip_prefix(sign);
            behind.is_some_and(|behind| digits(behind) > 0)
        });
        let Some(sign) = more.filter(|_| number > 0) else {
            break;
        };
        kept.push_str(sign);
        rest = &rest[sign.len()..];
    }
    // A worker of high priority.
    if prefix.starts_with("kworker/") && rest.starts_with('H') {
        kept.push('H');
    }
    Some(kept)
}
