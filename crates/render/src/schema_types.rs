//! The shapes of what other crates write as JSON.

use analysis::{CpuHolder, Unknowable};
use compare::{Difference, PerWork};
use facts::{
    ControlGroup, CountedSums, CpuIdle, DomainStatistics, FactsDocument, FreqPolicy, Host, HostCpu,
    HostNode, Irq, KernelLog, KernelLogLine, Policy, ReportedThread, ReportedVcpu, ReportedVm,
    Unreadable,
};
use paths::{ClearedPath, SlowCause, SlowReport, SlowestInstance};
use results::{BenchMachine, BenchPlan, ClockReadings, Noise, ResultsHead, Slow};
use rules::Remedy;

use crate::schema::{HasShape, Member, Shape};
use crate::shape;

shape!(Unknowable { fields, why });
shape!(CpuHolder { comm, tid, count, "ran_ns" = ns });
shape!(PerWork { of, a, b });
shape!(Difference { what, text });
shape!(SlowCause {
    feature,
    slow_share,
    fast_share,
    text,
    gain,
    slow_instances,
    fast_instances
});
shape!(SlowReport {
    threshold_ns,
    count,
    because,
    found,
    mean_ns,
    fast_mean_ns,
    slowest
});
shape!(SlowestInstance { instance, text });
shape!(ClearedPath {
    path,
    slow_by_ns,
    longest_ns
});
shape!(ResultsHead {
    result_version,
    bench,
    label,
    interrupted,
    machine,
    plan,
    started,
    ended,
    noise
});
shape!(BenchMachine {
    kernel,
    arch,
    cpu_model,
    virtualized,
    hypervisor,
    cpus,
    nodes,
    clocksource,
    cpuidle_driver,
    cpuidle_governor,
    idle,
    guest_halt_poll_ns,
    kvm_halt_poll_ns,
    cpufreq_governor
});
shape!(BenchPlan {
    iterations,
    warmup,
    row_time_ns,
    cpus,
    settings
});
shape!(ClockReadings {
    realtime_ns,
    monotonic_ns,
    monotonic_raw_ns,
    boottime_ns,
    counter,
    recording_ns,
    within_ns
});
shape!(Noise {
    cpu,
    watched_ns,
    longest_gap_ns,
    gaps,
    lost_share,
    steal_ns,
    waited_ns
});
shape!(Slow { begin_ns, ns });
shape!(Remedy { "do" = what, price, check, unless });
shape!(ReportedThread { pid?, comm?, affinity?: Shape::Text, policy? });
shape!(Policy {
    name,
    rt_priority,
    nice
});
shape!(ReportedVm { pid, name, uuid?, emulator?, version?, args?, vhost?, cgroups?,
    node_bytes?: Shape::Map(Box::new(Shape::Integer)), memory_policy?, vcpus });
shape!(ReportedVcpu { id, tid, affinity?: Shape::Text, policy? });
shape!(Host {
    machine_id?, kernel?, arch?, cpu_model?, virtualized?, cmdline?, online?: Shape::Text, isolated?: Shape::Text,
    nohz_full?: Shape::Text, rcu_nocbs?: Shape::Text, cpus?, nodes?, cpufreq?, cpuidle?, qemu?, clocksource?,
    clocksources?, hz?, modules, kvm_debug, cgroups?, counters?, counters_during?, kernel_log?,
    kernel_log_during?, irqs?, thp?, ksm?, numa_balancing?, mitigations, smt?, masked,
    unreadable,
});
shape!(HostCpu { cpu, package?, die?, core?, node?, siblings: Shape::Text });
shape!(HostNode { node, cpus: Shape::Text, memory_bytes?, distances? });
shape!(FreqPolicy { cpus: Shape::Text, driver?, governor?, governors?, min_khz?, max_khz?, cur_khz?, end_khz? });
shape!(ControlGroup { path, limits?, counters?, during? });
shape!(KernelLog {
    lines,
    counts: Shape::Map(Box::new(Shape::Integer)),
    kept
});
shape!(KernelLogLine {
    kind: Shape::Text, printk_ns?, monotonic_ns?, when?, cpus?: Shape::Text, tid?, comm?, seconds?, text,
});
shape!(CountedSums { counters, during? });
shape!(CpuIdle { driver?, governor? });
shape!(Irq { irq, name, affinity?: Shape::Text, effective?: Shape::Text });
shape!(Unreadable { path, why });

impl HasShape for DomainStatistics {
    fn shape() -> Shape {
        let sums = || Shape::Map(Box::new(CountedSums::shape()));
        CountedSums::shape().with([
            Member::new("name", Shape::Text).sometimes(),
            Member::new("vcpus_in_all", Shape::Integer).sometimes(),
            Member::new("vcpus", sums()).sometimes(),
            Member::new("disks", sums()).sometimes(),
            Member::new("nics", sums()).sometimes(),
        ])
    }
}

impl HasShape for FactsDocument<'static> {
    fn shape() -> Shape {
        let thread = ReportedThread::shape().with([Member::new("tid", Shape::Integer)]);
        Shape::Object(vec![
            Member::new("facts_version", Shape::Integer),
            Member::new("host", Host::shape()).sometimes(),
            Member::new("vms", Vec::<ReportedVm>::shape()),
            Member::new("threads", thread.list()),
            Member::new("mtree", Shape::Text).sometimes(),
            Member::new("guest_log", KernelLog::shape()).sometimes(),
            Member::new("domstats", Vec::<DomainStatistics>::shape()).sometimes(),
        ])
    }
}
