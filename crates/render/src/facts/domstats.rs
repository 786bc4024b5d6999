//! Statistics of domains.

use facts::{CountedSums, DomainStatistics};
use words::duration::human;

use super::page::Page;
use super::{gib, joined};

/// Kinds of exits that KVM counts, and what they are (`struct kvm_vcpu_stat` of `arch/x86/include/asm/kvm_host.h` and
/// `arch/arm64/include/asm/kvm_host.h`). The first ones are counted where the access goes on to the VMM
/// (`x86_emulate_instruction` of `arch/x86/kvm/x86.c`, `io_mem_abort` of `arch/arm64/kvm/mmio.c`).
const EXITS: [(&str, &str); 10] = [
    ("mmio_exits", "MMIO that the VMM emulates"),
    ("mmio_exit_user", "MMIO that the VMM emulates"),
    ("mmio_exit_kernel", "MMIO that KVM emulates"),
    ("io_exits", "ports"),
    ("halt_exits", "halts"),
    ("wfi_exit_stat", "WFI"),
    ("wfe_exit_stat", "WFE"),
    ("irq_exits", "interrupts of the host"),
    ("hvc_exit_stat", "hypercalls"),
    ("signal_exits", "signals"),
];

/// What a domain's vCPUs waited, polled and exited for, and what its disks took.
pub(super) fn domain(page: &mut Page, of: &DomainStatistics) {
    page.gap();
    let listed = of.vcpus.len();
    let vcpus = of.vcpus_in_all.map(|all| match of.lists_all_vcpus() {
        true => words::plural(all, "vCPU"),
        false => format!("{} of which {listed} listed", words::plural(all, "vCPU")),
    });
    let when = match of.is_difference() {
        true => "counted between two outputs of virsh domstats",
        false => "counted since it began (virsh domstats)",
    };
    let name = of.name.as_deref().unwrap_or("without a name");
    let text = joined([Some(name.to_owned()), vcpus, Some(when.to_owned())]);
    page.line("domain", &text);
    cpu_time(page, of);
    halts(page, of);
    exits(page, of);
    for (name, disk) in &of.disks {
        requests(page, name, disk);
    }
    for (name, nic) in &of.nics {
        packets(page, name, nic);
    }
    let kib = |name: &str| {
        of.all
            .counters
            .get(name)
            .map(|kib| kib.saturating_mul(1024))
    };
    let text = joined([
        kib("balloon.current").map(|bytes| format!("{} given", gib(bytes))),
        kib("balloon.rss").map(|bytes| format!("{} of the host's in use", gib(bytes))),
        kib("balloon.unused").map(|bytes| format!("{} unused by the guest", gib(bytes))),
        kib("balloon.swap_in")
            .filter(|bytes| *bytes > 0)
            .map(|bytes| format!("the guest swapped {} in", gib(bytes))),
    ]);
    page.line("memory", &text);
}

fn cpu_time(page: &mut Page, of: &DomainStatistics) {
    let part = |name: &str, what: &str| {
        let ns = of.all.counted(name)?;
        Some(format!("{what} {}", human(ns)))
    };
    let text = joined([
        part("cpu.time", "in all"),
        part("cpu.user", "guests and user mode"),
        part("cpu.system", "the host's kernel"),
    ]);
    page.line("CPU time", &text);
    let few = page.layout.limit.saturating_mul(4);
    for (id, vcpu) in of.vcpus.iter().take(few) {
        let Some((waited, ran)) = DomainStatistics::waited_ns(vcpu) else {
            continue;
        };
        let text = format!(
            "{} on a CPU, waited {} for one ({})",
            human(ran),
            human(waited),
            words::share::of(waited, waited.saturating_add(ran)),
        );
        page.line(&words::vcpu(None, *id), &text);
    }
    page.left_out(of.vcpus.len(), few, "vCPUs");
}

fn halts(page: &mut Page, of: &DomainStatistics) {
    let polled = |all: &str, vcpus: &str| of.all.counted(all).or_else(|| of.of_vcpus(vcpus));
    let failed = polled("cpu.haltpoll.fail.time", "halt_poll_fail_ns");
    let all = of.all.counted("cpu.time").filter(|all| *all > 0);
    let of_cpu_time = |ns: u64| {
        let share = all.map(|all| format!(" ({} of the CPU time)", words::share::of(ns, all)));
        share.unwrap_or_default()
    };
    let succeeded = polled("cpu.haltpoll.success.time", "halt_poll_success_ns");
    let text = joined([
        of.of_vcpus("halt_exits").map(|halts| {
            let ended = of.of_vcpus("halt_successful_poll");
            let ended = ended.map(|ended| {
                let share = words::share::of(ended, halts);
                format!(", {ended} ended by a poll ({share})")
            });
            format!("{halts} halts{}", ended.unwrap_or_default())
        }),
        succeeded.map(|ns| format!("{} in polls that succeeded", human(ns))),
        failed.map(|ns| format!("{} in polls that failed{}", human(ns), of_cpu_time(ns))),
    ]);
    page.line("polling", &text);
}

fn exits(page: &mut Page, of: &DomainStatistics) {
    let Some(all) = of.of_vcpus("exits").filter(|all| *all > 0) else {
        return;
    };
    let kinds = EXITS.iter().map(|(name, what)| {
        let count = of.of_vcpus(name).filter(|count| *count > 0)?;
        Some(format!("{count} {what} ({})", words::share::of(count, all)))
    });
    let emulated = of.of_vcpus("insn_emulation").filter(|count| *count > 0);
    let emulated = emulated.map(|count| format!("{count} instructions emulated"));
    let text = joined(kinds.chain([emulated]));
    let text = if text.is_empty() {
        text
    } else {
        format!(": {text}")
    };
    page.line("exits", &format!("{all}{text}"));
}

fn requests(page: &mut Page, name: &str, disk: &CountedSums) {
    let kind = |short: &str, what: &str| {
        let count = disk.counted(&format!("{short}.reqs"))?;
        let ns = disk.counted(&format!("{short}.times"));
        let each = ns.and_then(|ns| ns.checked_div(count));
        let each = each.map(|ns| format!(" of {}", human(ns)));
        Some(format!("{count} {what}{}", each.unwrap_or_default()))
    };
    let text = joined([
        kind("rd", "reads"),
        kind("wr", "writes"),
        kind("fl", "flushes"),
    ]);
    page.line(&format!("disk {name}"), &text);
}

fn packets(page: &mut Page, name: &str, nic: &CountedSums) {
    let kind = |short: &str, what: &str| {
        let count = nic.counted(&format!("{short}.pkts"))?;
        let dropped = nic.counted(&format!("{short}.drop")).filter(|n| *n > 0);
        let dropped = dropped.map(|dropped| format!(" and {dropped} dropped"));
        Some(format!("{count} {what}{}", dropped.unwrap_or_default()))
    };
    let text = joined([kind("rx", "received"), kind("tx", "sent")]);
    page.line(&format!("NIC {name}"), &text);
}

#[cfg(test)]
mod tests {
    use crate::Layout;

    #[test]
    fn a_page_has_what_was_counted() {
        let layout = Layout {
            width: 100,
            limit: usize::MAX,
            nanoseconds: false,
        };
        let page = |text: &str| {
            let (facts, _) = facts::read(text.as_bytes());
            super::super::table(&facts, layout)
        };
        let text = page(include_str!("../../../cli/tests/cases/domstats.txt"));
        for line in [
            "domain     guest1, 4 vCPUs of which 1 listed, counted since it began (virsh domstats)",
            "CPU time   in all 1702s, guests and user mode 1330s, the host's kernel 372.2s",
            "vCPU 0     955.3s on a CPU, waited 1.306s for one (0.14 %)",
            "polling    1173865 halts, 457799 ended by a poll (39.00 %), 60.24s in polls that succeeded, 34.40s",
            "           in polls that failed (2.02 % of the CPU time)",
            "exits      28094008: 6536664 MMIO that the VMM emulates (23.27 %), 1173865 halts (4.18 %), 6544119",
            "memory     8.0 GiB given",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let text = page(include_str!(
            "../../../facts/tests/texts/domstats-libvirt-7.txt"
        ));
        for line in [
            "disk vda   246802 reads of 339.0us, 471370 writes of 336.4us, 46269 flushes of 3.918ms",
            "NIC vnet0  291468 received and 7 dropped, 35405 sent",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
