//! What a message says.
//!
//! | kind | source |
//! | --- | --- |
//! | split lock, bus lock | `arch/x86/kernel/cpu/bus_lock.c` (`split_lock_warn`, `handle_guest_split_lock`, `handle_bus_lock`; before Linux 6.13 in `cpu/intel.c`), `arch/x86/kernel/traps.c` (a split lock of the kernel's own) |
//! | soft, hard lockup | `kernel/watchdog.c` (`watchdog_timer_fn`, `watchdog_hardlockup_check`), `kernel/watchdog_hld.c` before Linux 6.5; "watchdog: " before it since Linux 4.14, "NMI watchdog: " from 4.6 to then |
//! | RCU stall | `kernel/rcu/tree_stall.h` (`print_cpu_stall`, `print_other_cpu_stall`), `kernel/rcu/tree_exp.h`; "rcu: " before it since Linux 4.19, with CPUs in braces in the same line before 3.19 or so |
//! | hung task | `kernel/hung_task.c` (`check_hung_task`, `hung_task_info`) |
//! | clock source | `kernel/time/clocksource.c` (`clocksource_watchdog`), `arch/x86/kernel/tsc.c` (`mark_tsc_unstable`) |
//! | out of memory | `mm/oom_kill.c` (`__oom_kill_process`, `dump_oom_victim`); "Killed process" is a line of its own before Linux 5.0 |
//! | real-time throttling | `kernel/sched/rt.c` (`sched_rt_runtime_exceeded`) |
//! | too hot | `drivers/thermal/intel/therm_throt.c`; `arch/x86/kernel/cpu/mce/therm_throt.c` before Linux 5.7 |
//! | hardware error | `HW_ERR` of `include/linux/printk.h`; `drivers/edac/edac_mc.c` |
//! | sampling | `kernel/events/core.c` (`perf_duration_warn`) |
//! | guest that cannot go on | `kvm_cpu_exec` of QEMU's `accel/kvm/kvm-all.c`, `kvm_arch_handle_exit` of `target/i386/kvm/kvm.c`; `dump_vmcs` of `arch/x86/kvm/vmx/vmx.c`, `dump_vmcb` of `svm/svm.c` |
//! | KVM | `arch/x86/kvm/x86.c` (`kvm_arch_vcpu_precreate`), `arch/x86/kvm/x86.h` (`kvm_pr_unimpl_wrmsr`), `vcpu_unimpl` of `include/linux/kvm_host.h` |

use cpuset::{CpuSet, MAX_CPU};

use super::LogKind;
use crate::keep::id;

/// What a message says, and of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoggedMessage<'t> {
    pub(super) kind: LogKind,
    pub(super) cpus: CpuSet,
    pub(super) tid: Option<i32>,
    pub(super) comm: Option<&'t str>,
    pub(super) seconds: Option<u64>,
}

impl<'t> LoggedMessage<'t> {
    fn of(kind: LogKind) -> LoggedMessage<'t> {
        LoggedMessage {
            kind,
            cpus: CpuSet::new(),
            tid: None,
            comm: None,
            seconds: None,
        }
    }

    fn on(mut self, cpu: Option<u32>) -> LoggedMessage<'t> {
        if let Some(cpu) = cpu {
            self.cpus.insert_range(cpu, cpu);
        }
        self
    }

    /// With a thread, as `name/12` or `name:12` has it.
    fn by(mut self, thread: Option<(&'t str, &str)>) -> LoggedMessage<'t> {
        if let Some((comm, tid)) = thread {
            self.tid = tid.parse().ok().and_then(id);
            self.comm = self.tid.map(|_| comm);
        }
        self
    }

    fn lasting(mut self, seconds: Option<u64>) -> LoggedMessage<'t> {
        self.seconds = seconds;
        self
    }
}

/// Reads a message; `None` for those of which nothing is made.
pub(super) fn read(message: &str) -> Option<LoggedMessage<'_>> {
    let message = message.trim();
    lock(message)
        .or_else(|| lockup(message))
        .or_else(|| stall(message))
        .or_else(|| memory(message))
        .or_else(|| machine(message))
        .or_else(|| failed(message))
        .or_else(|| kvm(message))
}

/// Returns how many messages of a kind the kernel held back: `split_lock_warn: 12 callbacks suppressed` (`___ratelimit`
/// of `lib/ratelimit.c`, which names the function).
pub(super) fn suppressed(message: &str) -> Option<(LogKind, u64)> {
    let (function, rest) = message.trim().split_once(": ")?;
    let count = rest.strip_suffix(" callbacks suppressed")?.parse().ok()?;
    match function {
        "split_lock_warn" | "handle_user_split_lock" => Some((LogKind::SplitLock, count)),
        "handle_bus_lock" => Some((LogKind::BusLock, count)),
        _ => None,
    }
}

/// Returns the CPU of a line that follows one of a stall: `rcu: 4-....: (5249 ticks this GP) idle=51e4/1/0x…`.
pub(super) fn stalled_cpu(message: &str) -> Option<u32> {
    let message = message.trim_start();
    let rest = message.strip_prefix("rcu:").unwrap_or(message).trim_start();
    let (number, rest) = rest.split_once('-')?;
    let (flags, rest) = rest.split_once(':')?;
    let known = flags.len() <= 4 && rest.starts_with(" (");
    known.then(|| cpu(number))?
}

fn cpu(digits: &str) -> Option<u32> {
    let digits = digits.trim();
    let only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let cpu = digits.parse().ok().filter(|_| only)?;
    (cpu <= MAX_CPU).then_some(cpu)
}

/// Returns the number that a text begins with, and what is behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}

fn cpu_first(text: &str) -> Option<(u32, &str)> {
    let (found, rest) = number(text)?;
    let found = u32::try_from(found).ok().filter(|cpu| *cpu <= MAX_CPU)?;
    Some((found, rest))
}

fn lock(message: &str) -> Option<LoggedMessage<'_>> {
    // A split lock of the kernel itself ends it.
    let own = message.strip_prefix("Oops: ").unwrap_or(message);
    if own.starts_with("Split lock detected") {
        return Some(LoggedMessage::of(LogKind::SplitLock));
    }
    let rest = message.strip_prefix("x86/split lock detection: ")?;
    let (kind, rest, ends): (_, _, &[&str]) = match rest.split_at_checked(5)? {
        ("#AC: ", rest) => (
            LogKind::SplitLock,
            rest,
            &[
                " took a split_lock trap at ",
                " fatal split_lock trap at ",
                " bogus split_lock trap at ",
            ],
        ),
        ("#DB: ", rest) => (LogKind::BusLock, rest, &[" took a bus_lock trap at "]),
        _ => return None,
    };
    let who = ends.iter().find_map(|end| rest.split_once(end))?.0;
    Some(LoggedMessage::of(kind).by(who.rsplit_once('/')))
}

fn lockup(message: &str) -> Option<LoggedMessage<'_>> {
    let rest = message.strip_prefix("NMI ").unwrap_or(message);
    let rest = rest.strip_prefix("watchdog: ").unwrap_or(rest);
    if let Some(rest) = rest.strip_prefix("BUG: soft lockup - CPU#") {
        let (cpu, rest) = cpu_first(rest)?;
        let rest = rest.strip_prefix(" stuck for ")?;
        let (seconds, rest) = number(rest)?;
        let thread = rest.split_once('[').and_then(|(_, rest)| {
            let (thread, _) = rest.rsplit_once(']')?;
            thread.rsplit_once(':')
        });
        return Some(
            LoggedMessage::of(LogKind::SoftLockup)
                .on(Some(cpu))
                .by(thread)
                .lasting(Some(seconds)),
        );
    }
    let (before, on) = rest.split_once("atchdog detected hard LOCKUP on cpu ")?;
    // A CPU may stand before it that is not the one that is locked up.
    (before.len() <= 16).then_some(())?;
    Some(LoggedMessage::of(LogKind::HardLockup).on(cpu_first(on).map(|(cpu, _)| cpu)))
}

fn stall(message: &str) -> Option<LoggedMessage<'_>> {
    let rest = message.strip_prefix("rcu: ").unwrap_or(message);
    let rest = rest.strip_prefix("INFO: ")?;
    if let Some(rest) = rest.strip_prefix("task ") {
        // "blocked for more than", and of a task that waits for a disk "blocked in I/O wait for more than".
        let (thread, rest) = rest.split_once(" blocked ")?;
        let (_, rest) = rest.split_once("for more than ")?;
        let (seconds, rest) = number(rest)?;
        rest.starts_with(" seconds").then_some(())?;
        return Some(
            LoggedMessage::of(LogKind::HungTask)
                .by(thread.rsplit_once(':'))
                .lasting(Some(seconds)),
        );
    }
    // The flavour of RCU: rcu_sched, rcu_preempt, rcu_bh.
    let (flavour, rest) = rest.split_once(' ')?;
    let begins = [
        "self-detected stall on CPU",
        "detected stalls on CPUs/tasks",
        "detected expedited stalls on CPUs/tasks",
    ];
    let known = begins.iter().any(|begin| rest.starts_with(begin));
    (flavour.starts_with("rcu") && known).then_some(())?;
    let mut found = LoggedMessage::of(LogKind::RcuStall);
    let braces = rest
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    for word in braces.into_iter().flat_map(|(list, _)| list.split(' ')) {
        let number = word.split('-').next().unwrap_or_default();
        found = found.on(cpu(number));
    }
    Some(found)
}

fn memory(message: &str) -> Option<LoggedMessage<'_>> {
    if let Some(rest) = message.strip_prefix("oom-kill:constraint=") {
        let (before, pid) = rest.rsplit_once(",pid=")?;
        let (_, comm) = before.rsplit_once(",task=")?;
        let pid = pid.split(',').next().unwrap_or_default();
        return Some(LoggedMessage::of(LogKind::OutOfMemory).by(Some((comm, pid))));
    }
    let killed = "Killed process ";
    let rest = match message.strip_prefix(killed) {
        Some(rest) => rest,
        None => {
            let (why, rest) = message.split_once(&format!(": {killed}"))?;
            // "Out of memory", "Memory cgroup out of memory", "Out of memory (oom_kill_allocating_task)".
            why.to_ascii_lowercase()
                .contains("out of memory")
                .then_some(rest)?
        }
    };
    let (pid, rest) = rest.split_once(' ')?;
    // Some kernels have the user's id and a comma between.
    let pid = pid.trim_end_matches(',');
    let (_, rest) = rest.split_once('(')?;
    let (comm, _) = rest.split_once(')')?;
    let found = LoggedMessage::of(LogKind::OutOfMemory).by(Some((comm, pid)));
    found.tid.is_some().then_some(found)
}

fn machine(message: &str) -> Option<LoggedMessage<'_>> {
    let of = LoggedMessage::of;
    if message.starts_with("sched: RT throttling activated") {
        return Some(of(LogKind::RtThrottling));
    }
    let clock = message.strip_prefix("clocksource: ").unwrap_or(message);
    if let Some(rest) = clock.strip_prefix("timekeeping watchdog") {
        let on = rest.strip_prefix(" on CPU").and_then(cpu_first);
        let unstable = rest.contains(": Marking clocksource '") && rest.contains("unstable");
        return unstable.then(|| of(LogKind::UnstableClock).on(on.map(|(cpu, _)| cpu)));
    }
    let tsc = message.strip_prefix("tsc: ").unwrap_or(message);
    let before = message.strip_prefix("Clocksource ");
    if tsc.starts_with("Marking TSC unstable due to")
        || before.is_some_and(|rest| rest.contains(" unstable (delta = "))
    {
        return Some(of(LogKind::UnstableClock));
    }
    let hot = message.strip_prefix("mce: ").unwrap_or(message);
    if let Some((cpu, rest)) = hot.strip_prefix("CPU").and_then(cpu_first)
        && rest.starts_with(": ")
        && rest.contains(" temperature ")
        && rest.contains("above threshold, cpu clock ")
    {
        return Some(of(LogKind::CpuTooHot).on(Some(cpu)));
    }
    let perf = message.strip_prefix("perf").map(|rest| {
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        rest.trim_start()
    });
    if perf.is_some_and(|rest| rest.contains("too long (") && rest.contains("max_sample_rate")) {
        return Some(of(LogKind::SamplingLowered));
    }
    // Errors that APEI reports have a number in braces before them.
    let error = message.strip_prefix("mce: ").unwrap_or(message);
    let error = match error
        .strip_prefix('{')
        .and_then(|rest| rest.split_once('}'))
    {
        Some((number, rest)) if number.len() <= 10 => rest,
        _ => error,
    };
    if let Some(rest) = error.strip_prefix("[Hardware Error]: ") {
        let cpu = rest.strip_prefix("CPU ").and_then(cpu_first);
        return Some(of(LogKind::HardwareError).on(cpu.map(|(cpu, _)| cpu)));
    }
    let edac = message.strip_prefix("EDAC ")?;
    let counted = edac.split_once(": ").and_then(|(_, rest)| number(rest))?;
    let error = counted.1.starts_with(" CE ") || counted.1.starts_with(" UE ");
    error.then(|| of(LogKind::HardwareError))
}

/// What QEMU writes to its own log, and KVM to the kernel's, where a guest cannot go on.
fn failed(message: &str) -> Option<LoggedMessage<'_>> {
    let qemus = message.strip_prefix("qemu-").and_then(|rest| {
        let (program, rest) = rest.split_once(": ")?;
        (!program.contains(' ')).then_some(rest)
    });
    let qemus = qemus.unwrap_or(message);
    let begins = [
        "KVM: entry failed, hardware error 0x",
        "KVM internal error. Suberror: ",
        "error: kvm run failed ",
    ];
    let dumps = [
        "set kvm_intel.dump_invalid_vmcs=1 to dump internal KVM state",
        "set kvm_amd.dump_invalid_vmcb=1 to dump internal KVM state",
    ];
    let known = begins.iter().any(|begin| qemus.starts_with(begin))
        || dumps.iter().any(|dump| {
            message.ends_with(dump) || message.strip_suffix('.').is_some_and(|m| m.ends_with(dump))
        });
    known.then(|| LoggedMessage::of(LogKind::VmFailed))
}

fn kvm(message: &str) -> Option<LoggedMessage<'_>> {
    let (module, rest) = message.split_once(": ")?;
    let process = module
        .strip_prefix("kvm [")
        .and_then(|rest| rest.strip_suffix(']'));
    let known = matches!(module, "kvm" | "kvm_intel" | "kvm_amd");
    (known || process.is_some()).then_some(())?;
    if rest.contains("host with unstable TSC") {
        return Some(LoggedMessage::of(LogKind::KvmClock));
    }
    let words = [
        "unhandled rdmsr",
        "unhandled wrmsr",
        "ignored rdmsr",
        "ignored wrmsr",
        "Unhandled RDMSR",
        "Unhandled WRMSR",
        "Ignored RDMSR",
        "Ignored WRMSR",
        ", guest rIP: 0x",
    ];
    let unsupported = words.iter().any(|word| rest.contains(word));
    unsupported.then_some(())?;
    let mut found = LoggedMessage::of(LogKind::KvmUnsupported);
    // The VMM's process: its first thread.
    found.tid = process.and_then(|pid| id(pid.parse().ok()?));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, CPUs, thread, its name, seconds, and the message.
    const READ: &str = "\
split-lock||3123|CPU 0/KVM||x86/split lock detection: #AC: CPU 0/KVM/3123 took a split_lock trap at address: 0x7f1
split-lock||77|qemu||x86/split lock detection: #AC: qemu/77 fatal split_lock trap at address: 0x1e3
bus-lock||2211|myapp||x86/split lock detection: #DB: myapp/2211 took a bus_lock trap at address: 0x7f3c2a1b4d
soft-lockup|11|905|CPU 1/KVM|94|watchdog: BUG: soft lockup - CPU#11 stuck for 94s! [CPU 1/KVM:905]
soft-lockup|0|707|kworker/1:0|61|BUG: soft lockup - CPU#0 stuck for 61s! [kworker/1:0:707]
soft-lockup|7|||26|NMI watchdog: BUG: soft lockup - CPU#7 stuck for 26s!
hard-lockup|27||||NMI watchdog: Watchdog detected hard LOCKUP on cpu 27
hard-lockup|3||||watchdog: CPU2: Watchdog detected hard LOCKUP on cpu 3
rcu-stall|||||rcu: INFO: rcu_preempt self-detected stall on CPU
rcu-stall|3||||INFO: rcu_sched self-detected stall on CPU { 3}  (t=15000 jiffies)
rcu-stall|0,5||||rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-...D 5-.... } 26
hung-task||289|xfsaild/nvme1n1|120|INFO: task xfsaild/nvme1n1:289 blocked for more than 120 seconds.
hung-task||1010|CPU 0/KVM|122|INFO: task CPU 0/KVM:1010 blocked in I/O wait for more than 122 seconds.
unstable-clock|373||||clocksource: timekeeping watchdog on CPU373: Marking clocksource 'tsc' as unstable
unstable-clock|||||Clocksource tsc unstable (delta = -250013288 ns)
unstable-clock|||||tsc: Marking TSC unstable due to clocksource watchdog
out-of-memory||1689|qemu-system-x86||Out of memory: Killed process 1689 (qemu-system-x86) total-vm:1kB, anon-rss:1kB
out-of-memory||1689|kvm||Memory cgroup out of memory: Killed process 1689 (kvm), UID 0, total-vm:1kB
out-of-memory||1234|qemu-kvm||Killed process 1234 (qemu-kvm) total-vm:2345678kB, anon-rss:1234567kB
out-of-memory||17|qemu||oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,task=qemu,pid=17,uid=107
rt-throttling|||||sched: RT throttling activated
cpu-too-hot|1||||CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)
cpu-too-hot|9||||mce: CPU9: Package temperature is above threshold, cpu clock is throttled (total events = 7)
hardware-error|||||mce: [Hardware Error]: Machine check events logged
hardware-error|3||||mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070f0f
hardware-error|||||{1}[Hardware Error]: event severity: corrected
hardware-error|||||EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#1 (channel:0 slot:0)
sampling-lowered|||||perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79750
sampling-lowered|||||perf samples too long (2506 > 2500), lowering kernel.perf_event_max_sample_rate to 50000
kvm-unsupported||2254|||kvm [2254]: vcpu0, guest rIP: 0xfffff8037e disabled perfctr wrmsr: 0xc2 data 0xffff
kvm-unsupported|||||kvm: vcpu1, guest rIP: 0x1 ignored rdmsr: 0x122
kvm-unsupported||2254|||kvm [2254]: ignored wrmsr: 0x1d9 data 0x1
vm-failed|||||KVM: entry failed, hardware error 0x80000021
vm-failed|||||KVM internal error. Suberror: 1
vm-failed|||||qemu-system-x86_64: error: kvm run failed Bad address
vm-failed|||||error: kvm run failed Input/output error
vm-failed|||||kvm_intel: set kvm_intel.dump_invalid_vmcs=1 to dump internal KVM state.
kvm-clock|||||kvm: SMP vm created on host with unstable TSC; guest TSC will not be reliable
";

    #[test]
    fn messages_of_old_and_new_kernels_are_read() {
        for row in READ.lines() {
            let (expected, message) = row.rsplit_once('|').expect("a message");
            let found = read(message).unwrap_or_else(|| panic!("{message}"));
            let number = |number: Option<u64>| number.map_or_else(String::new, |n| n.to_string());
            let said = [
                found.kind.name().to_owned(),
                found.cpus.to_string(),
                number(found.tid.map(i32::unsigned_abs).map(u64::from)),
                found.comm.unwrap_or_default().to_owned(),
                number(found.seconds),
            ];
            assert_eq!(said.join("|"), expected, "{message}");
        }
    }

    #[test]
    fn messages_that_resemble_them_are_left_alone() {
        for message in [
            "",
            "x86/split lock detection: #AC: crashing the kernel on kernel split_locks and warning on \
             user-space split_locks",
            "x86/split lock detection: #DB: warning on user-space bus_locks",
            "x86/split lock detection: é",
            "systemd[1]: watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
            "BUG: soft lockup - CPU#99999999999 stuck for 22s!",
            "INFO: task blocked for more than",
            "INFO: rcuc detected nothing",
            "CPU1: Core temperature/speed normal",
            "clocksource: Switched to clocksource tsc",
            "clocksource: timekeeping watchdog on CPU1: wd-tsc-wd excessive read-back delay",
            "Killed process x (y)",
            "kvm_amd: Nested Virtualization enabled",
            "kvm [1]: VHE mode initialized successfully",
            "EDAC MC: Ver: 3.0.0",
            "perf_event_intel: PEBS disabled",
            "qemu-system-x86_64: warning: host doesn't support requested feature",
            "qemu is what says: KVM internal error. Suberror: 1",
            "we see KVM: entry failed, hardware error 0x80000021",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
    }

    #[test]
    fn lines_behind_a_stall_name_its_cpus_and_others_do_not() {
        assert_eq!(
            stalled_cpu("rcu: \t4-....: (5249 ticks this GP) idle=51e4"),
            Some(4)
        );
        assert_eq!(
            stalled_cpu("\t16-...!: (1 GPs behind) idle=37e/1"),
            Some(16)
        );
        for line in [
            "rcu: \t(t=5250 jiffies g=-319 q=608 ncpus=24)",
            "2-3: x",
            "a-b: (c",
        ] {
            assert_eq!(stalled_cpu(line), None, "{line}");
        }
        assert_eq!(
            suppressed("split_lock_warn: 12 callbacks suppressed"),
            Some((LogKind::SplitLock, 12))
        );
        assert_eq!(suppressed("net_ratelimit: 12 callbacks suppressed"), None);
    }
}
