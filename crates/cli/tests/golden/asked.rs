//! What is asked of the program, and about which recordings.

/// Recordings whose outputs are all kept in full, JSON and CSV as well.
pub(super) const IN_FULL: [&str; 12] = [
    "arm64/two-guests-mmio/perf.data.kvm.zst",
    "arm64/vhost-mmio/boot1/trace.dat.zst",
    "seed-text/case1-irqfd.trace-cmd.txt",
    "seed-text/case2-windows-before.perf-kvm-stat-ioport.txt",
    "seed-text/case4-virtio.trace-cmd.txt",
    "seed-text/case5-good-host.perf-sched-latency.txt",
    "seed-text/case5-perf-stat.txt",
    "vmx/tiny-irqchip/perf.data.zst",
    "x86/clocksource-acpi_pm/loop/perf.data.guest.zst",
    "x86/flame-iperf3/l2/perf.data.zst",
    "x86/format-variants/lost.dat.zst",
    "x86/preempted-sick/perf.data.zst",
];

/// What is asked about every recording: a name, and the arguments before the recording.
pub(super) const QUESTIONS: [(&str, &str); 8] = [
    ("report", "report"),
    ("diagnose", "diagnose"),
    ("info", "info"),
    (
        "exits",
        "exits --event vmexit,ioport,mmio,msr --by vm,vcpu --wide",
    ),
    ("vcpus", "vcpus"),
    ("sched", "sched"),
    ("sched-by-cpu", "sched --by cpu"),
    ("paths", "paths"),
];

/// Single questions, each about what shows it: a name and arguments.
const OTHERS: &str = "\
report-full: report --full x86/clocksource-acpi_pm/loop/perf.data.guest.zst
report-brief: report --brief arm64/vhost-mmio/boot1/trace.dat.zst
flame: flame --limit 6 x86/flame-iperf3/l1.perf.data.zst
flame-diff: flame --limit 6 arm64/virtio-mmio/boot2-vsock/perf.data.l1.zst --diff \
    arm64/vhost-mmio/boot2-vsock/perf.data.kvm.zst
irqs: irqs x86/console-sick/perf.data.zst
irqs-guest: irqs x86/host-guest-pingpong/host.dat.zst x86/host-guest-pingpong/host-a.dat.zst
irqs-guest-arm64: irqs arm64/virtio-mmio/boot2-vsock/trace.dat.zst arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst
exits: exits x86/clocksource-hpet/perf.data.guest.zst
exits-mmio: exits --event mmio --sort time x86/clocksource-hpet/perf.data.guest.zst
exits-as-perf: exits --as perf x86/clocksource-acpi_pm/loop/perf.data.guest.zst
exits-as-perf-arm64: exits --as perf arm64/vhost-mmio/boot1/trace.dat.zst
exits-facts: exits --vcpu 0 --facts x86/format-variants/a-info-mtree.txt x86/preempted-healthy/perf.data.zst
vcpus-wide: vcpus --wide x86/console-sick/perf.data.zst
vcpus-one: vcpus --vcpu 1 --time 88.430,89.5 x86/preempted-sick/perf.data.zst
info-vcpu: info --vcpu 0 x86/preempted-sick/perf.data.zst
sched-histogram: sched --histogram --limit 12 x86/preempted-sick/perf.data.zst
sched-by-comm: sched --by comm host/sender-flows/perf.data.zst
paths-halt-wake: paths --path halt-wake x86/console-sick/perf.data.zst
paths-irqfd: paths --path irqfd x86/console-sick/perf.data.zst
paths-ipi: paths --path ipi x86/console-sick/perf.data.zst
paths-timer: paths --path timer x86/console-sick/perf.data.zst
paths-kick: paths --path kick x86/console-sick/perf.data.zst
paths-user-exit: paths --path user-exit x86/console-sick/perf.data.zst
paths-device-irq: paths --path device-irq x86/console-sick/perf.data.zst
paths-from-to: paths --from kvm_exit[reason==hlt] --to kvm_entry --join vcpu x86/preempted-sick/perf.data.zst
paths-instance: paths --path irqfd --instance 33 x86/console-sick/perf.data.zst
paths-mermaid: paths --path irqfd --instance 33 --diagram mermaid x86/console-sick/perf.data.zst
paths-each: paths --path irqfd --each seed-text/case1-irqfd.trace-cmd.txt
events-console: events --console x86/console-sick/perf.data.zst
diagnose-domain: diagnose --domain seed-text/case2-win10.domain.xml \
    seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt seed-text/case2-windows-before.perf-kvm-stat-ioport.txt
diagnose-patch: diagnose --patch --domain seed-text/case2-win10.domain.xml \
    seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt seed-text/case2-windows-before.perf-kvm-stat-ioport.txt
compare-tables: compare seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt \
    seed-text/case2-windows-after.perf-kvm-stat-vmexit.txt
compare-latencies: compare seed-text/case5-slow-host.perf-sched-latency.txt \
    seed-text/case5-good-host.perf-sched-latency.txt
compare-each: compare --each x86/clocksource-kvm-clock/loop/perf.data.guest.zst \
    x86/clocksource-acpi_pm/loop/perf.data.guest.zst x86/clocksource-hpet/perf.data.guest.zst --score reads=9,3,1
export-md: export --as md x86/preempted-sick/perf.data.zst
export-json: export --as json seed-text/case1-irqfd.trace-cmd.txt
export-spans: export --as csv seed-text/case4-virtio.trace-cmd.txt
facts-ps: facts x86/format-variants/l1-ps.txt
facts-mtree: facts x86/format-variants/a-info-mtree.txt
rules: rules
rules-explain: rules --explain
";

/// Returns single questions: the name of each, and its arguments.
pub(super) fn others() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = OTHERS.lines();
    lines.map(|line| line.split_once(": ").expect("a name and arguments"))
}

pub(super) const COMMANDS: [&str; 15] = [
    "report", "diagnose", "compare", "rules", "info", "events", "exits", "export", "flame",
    "vcpus", "irqs", "counters", "paths", "sched", "facts",
];
