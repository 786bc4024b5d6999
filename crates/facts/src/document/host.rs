//! What a document says of the host itself.

use std::collections::BTreeMap;

use cpuset::MAX_CPUS;
use serde_json::Value;

use super::kernel_log;
use super::members::{MAX_NAMES, Members, text};
use crate::counters::MAX_GROUPS;
use crate::host::MAX_UNREADABLE;
use crate::numa::MAX_NODES;
use crate::reader::FactsReader;
use crate::{ControlGroup, CpuIdle, FreqPolicy, Host, HostCpu, HostNode, Irq, Unreadable};

/// Most interrupts; large hosts have some ten thousand.
const MAX_IRQS: usize = 1 << 17;
/// Most modules.
const MAX_MODULES: usize = 64;

/// Reads the member `host`.
pub(super) fn read(host: &Members<'_>, reader: &mut FactsReader) -> Host {
    Host {
        machine_id: host.text("machine_id", reader),
        kernel: host.text("kernel", reader),
        arch: host.text("arch", reader),
        cpu_model: host.text("cpu_model", reader),
        virtualized: host.flag("virtualized", reader),
        cmdline: host.text("cmdline", reader),
        online: host.cpus("online", reader),
        isolated: host.cpus("isolated", reader),
        nohz_full: host.cpus("nohz_full", reader),
        rcu_nocbs: host.cpus("rcu_nocbs", reader),
        cpus: cpus(host, reader),
        nodes: nodes(host, reader),
        cpufreq: cpufreq(host, reader),
        cpuidle: cpuidle(host, reader),
        qemu: host.text("qemu", reader),
        clocksource: host.text("clocksource", reader),
        clocksources: host.texts("clocksources", MAX_NAMES, reader),
        hz: host.small("hz", reader),
        modules: modules(host, reader),
        kvm_debug: host.values("kvm_debug", "whole numbers", reader, Value::as_u64),
        cgroups: cgroups(host, reader),
        counters: host.values("counters", "whole numbers", reader, Value::as_u64),
        counters_during: host.values("counters_during", "whole numbers", reader, Value::as_u64),
        kernel_log: kernel_log::read(host, "kernel_log", reader),
        kernel_log_during: kernel_log::read(host, "kernel_log_during", reader),
        irqs: irqs(host, reader),
        thp: host.text("thp", reader),
        ksm: host.flag("ksm", reader),
        numa_balancing: host.flag("numa_balancing", reader),
        mitigations: host.values("mitigations", "texts", reader, text),
        smt: host.text("smt", reader),
        masked: host.number("masked", reader).unwrap_or(0),
        unreadable: unreadable(host, reader),
    }
}

fn cpus(host: &Members<'_>, reader: &mut FactsReader) -> Vec<HostCpu> {
    let mut cpus = Vec::new();
    for cpu in host.objects("cpus", MAX_CPUS, reader) {
        let Some(number) = cpu.required("cpu", Members::small, reader) else {
            continue;
        };
        cpus.push(HostCpu {
            cpu: number,
            package: cpu.small("package", reader),
            die: cpu.small("die", reader),
            core: cpu.small("core", reader),
            node: cpu.small("node", reader),
            siblings: cpu.cpus("siblings", reader).unwrap_or_default(),
        });
    }
    cpus.sort_by_key(|cpu| cpu.cpu);
    cpus.dedup_by_key(|cpu| cpu.cpu);
    cpus
}

fn nodes(host: &Members<'_>, reader: &mut FactsReader) -> Vec<HostNode> {
    let mut nodes = Vec::new();
    for node in host.objects("nodes", MAX_NODES, reader) {
        let Some(number) = node.required("node", Members::small, reader) else {
            continue;
        };
        nodes.push(HostNode {
            node: number,
            cpus: node.cpus("cpus", reader).unwrap_or_default(),
            memory_bytes: node.number("memory_bytes", reader),
            distances: node.numbers("distances", MAX_NODES, reader),
        });
    }
    nodes.sort_by_key(|node| node.node);
    nodes.dedup_by_key(|node| node.node);
    nodes
}

fn cpufreq(host: &Members<'_>, reader: &mut FactsReader) -> Vec<FreqPolicy> {
    let mut policies = Vec::new();
    for policy in host.objects("cpufreq", MAX_CPUS, reader) {
        policies.push(FreqPolicy {
            cpus: policy.cpus("cpus", reader).unwrap_or_default(),
            driver: policy.text("driver", reader),
            governor: policy.text("governor", reader),
            governors: policy.texts("governors", MAX_NAMES, reader),
            min_khz: policy.number("min_khz", reader),
            max_khz: policy.number("max_khz", reader),
            cur_khz: policy.number("cur_khz", reader),
            end_khz: policy.number("end_khz", reader),
        });
    }
    policies
}

fn cpuidle(host: &Members<'_>, reader: &mut FactsReader) -> Option<CpuIdle> {
    let cpuidle = host.object("cpuidle", reader)?;
    Some(CpuIdle {
        driver: cpuidle.text("driver", reader),
        governor: cpuidle.text("governor", reader),
    })
}

fn modules(
    host: &Members<'_>,
    reader: &mut FactsReader,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let Some(modules) = host.object("modules", reader) else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for (name, _) in modules.iter().take(MAX_MODULES) {
        all.insert(name.clone(), modules.values(name, "texts", reader, text));
    }
    all
}

fn cgroups(host: &Members<'_>, reader: &mut FactsReader) -> Vec<ControlGroup> {
    let mut groups = Vec::new();
    for group in host.objects("cgroups", MAX_GROUPS, reader) {
        let Some(path) = group.required("path", Members::text, reader) else {
            continue;
        };
        groups.push(ControlGroup {
            path,
            limits: group.values("limits", "texts", reader, text),
            counters: group.values("counters", "whole numbers", reader, Value::as_u64),
            during: group.values("during", "whole numbers", reader, Value::as_u64),
        });
    }
    groups
}

fn irqs(host: &Members<'_>, reader: &mut FactsReader) -> Vec<Irq> {
    let mut irqs = Vec::new();
    for irq in host.objects("irqs", MAX_IRQS, reader) {
        let Some(number) = irq.required("irq", Members::small, reader) else {
            continue;
        };
        irqs.push(Irq {
            irq: number,
            name: irq.text("name", reader).unwrap_or_default(),
            affinity: irq.cpus("affinity", reader),
            effective: irq.cpus("effective", reader),
        });
    }
    irqs.sort_by_key(|irq| irq.irq);
    irqs.dedup_by_key(|irq| irq.irq);
    irqs
}

fn unreadable(host: &Members<'_>, reader: &mut FactsReader) -> Vec<Unreadable> {
    let mut all = Vec::new();
    for one in host.objects("unreadable", MAX_UNREADABLE, reader) {
        all.push(Unreadable {
            path: one.text("path", reader).unwrap_or_default(),
            why: one.text("why", reader).unwrap_or_default(),
        });
    }
    all
}
