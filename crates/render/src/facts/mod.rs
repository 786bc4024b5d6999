//! The facts of a host.

mod domstats;
mod log;
mod page;

use std::collections::BTreeMap;

use cpuset::CpuSet;
use facts::{ControlGroup, Facts, FreqPolicy, Host, HostCpu, Policy, ReportedThread, ReportedVm};
use serde_json::Value;

use crate::{Layout, csv};
use log::kernel_log;
use page::{LABEL, Page};

/// Columns of a list of CPUs in rows.
const LIST: usize = 14;

/// Returns the facts as rows of their path in the JSON document and value.
pub fn csv(facts: &Facts) -> String {
    let mut out = String::new();
    csv::row(&mut out, ["key", "value"]);
    each(facts, &mut |key, value| {
        csv::row(&mut out, [key, value.unwrap_or_default()]);
    });
    out
}

/// Calls a function with each fact: its path in the JSON document, and its value where it is known.
pub(crate) fn each(facts: &Facts, fact: &mut dyn FnMut(&str, Option<&str>)) {
    if let Ok(Value::Object(members)) = serde_json::to_value(facts::write(facts)) {
        for (name, value) in &members {
            each_below(name, value, fact);
        }
    }
}

/// The JSON is ours, and no deeper than its format.
fn each_below(path: &str, value: &Value, fact: &mut dyn FnMut(&str, Option<&str>)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                each_below(&format!("{path}.{name}"), value, fact);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                each_below(&format!("{path}[{at}]"), value, fact);
            }
        }
        Value::Null => fact(path, None),
        Value::String(text) => fact(path, Some(text)),
        Value::Bool(_) | Value::Number(_) => fact(path, Some(&value.to_string())),
    }
}

/// Returns the facts as lines for people.
pub fn table(facts: &Facts, layout: Layout) -> String {
    let mut page = Page {
        out: String::new(),
        layout,
    };
    if let Some(host) = &facts.host {
        machine(&mut page, host);
        settings(&mut page, host);
        kvm(&mut page, host);
        let during = ("meanwhile", host.kernel_log_during.as_ref());
        for (name, log) in [("kernel log", host.kernel_log.as_ref()), during] {
            log.into_iter()
                .for_each(|log| kernel_log(&mut page, name, log));
        }
    }
    for vm in &facts.vms {
        one_vm(&mut page, facts, vm);
    }
    for domain in &facts.domstats {
        domstats::domain(&mut page, domain);
    }
    threads(&mut page, facts);
    if let Some(log) = &facts.guest_log {
        page.gap();
        kernel_log(&mut page, "guest's log", log);
    }
    if let Some(host) = &facts.host {
        irqs(&mut page, host);
        rest(&mut page, host);
    }
    let regions = facts.mtree.as_deref().map(|text| text.lines().count());
    if let Some(lines) = regions {
        page.line("devices", &format!("{lines} lines of info mtree"));
    }
    page.out
}

/// Joins what is known.
fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    known.join(", ")
}

fn machine(page: &mut Page, host: &Host) {
    let virtualized = host.virtualized.filter(|guest| *guest);
    let text = joined([
        host.cpu_model.clone(),
        host.arch.clone(),
        host.kernel
            .as_ref()
            .map(|kernel| format!("kernel {kernel}")),
        host.hz.map(|hz| format!("HZ {hz}")),
        virtualized.map(|_| "a virtual machine itself".to_owned()),
    ]);
    page.line("host", &text);
    let count = |part: fn(&HostCpu) -> [Option<u32>; 3]| {
        let mut parts: Vec<_> = host.cpus.iter().map(part).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.len()
    };
    let facts = host.cpus.iter().any(|cpu| cpu.core.is_some());
    let text = joined([
        host.online
            .as_ref()
            .map(|set| format!("{} online ({set})", set.len())),
        facts.then(|| {
            let packages = count(|cpu| [cpu.package, None, None]);
            let cores = count(|cpu| [cpu.package, cpu.die, cpu.core]);
            format!(
                "{}, {}",
                words::plural(packages, "package"),
                words::plural(cores, "core")
            )
        }),
        host.smt.as_ref().map(|smt| format!("SMT {smt}")),
    ]);
    page.line("CPUs", &text);
    for node in &host.nodes {
        let text = joined([
            Some(if node.cpus.is_empty() {
                "no CPUs".to_owned()
            } else {
                format!("CPUs {}", node.cpus)
            }),
            node.memory_bytes.map(gib),
        ]);
        page.line(&format!("node {}", node.node), &text);
    }
}

fn settings(page: &mut Page, host: &Host) {
    let sets = [
        ("isolated", &host.isolated),
        ("nohz_full", &host.nohz_full),
        ("rcu_nocbs", &host.rcu_nocbs),
    ];
    let sets = sets.map(|(name, set)| {
        let set = set.as_ref()?;
        let none = set.is_empty().then(|| "none".to_owned());
        Some(format!(
            "{name} {}",
            none.unwrap_or_else(|| set.to_string())
        ))
    });
    page.line("isolation", &joined(sets));
    for (policy, cpus) in by_setting(&host.cpufreq) {
        let range = policy.min_khz.zip(policy.max_khz);
        let at = |khz: fn(&FreqPolicy) -> Option<u64>| {
            let mut all: Vec<u64> = (host.cpufreq.iter())
                .filter(|one| one.cpus.intersects(&cpus))
                .filter_map(khz)
                .collect();
            all.sort_unstable();
            let (least, most) = (*all.first()?, *all.last()?);
            Some(match least == most {
                true => ghz(least),
                false => format!("{} to {}", ghz(least), ghz(most)),
            })
        };
        let text = joined([
            Some(format!(
                "CPUs {cpus}: {}",
                policy.driver.as_deref().unwrap_or("driver unknown")
            )),
            policy
                .governor
                .as_ref()
                .map(|governor| format!("governor {governor}")),
            range.map(|(min, max)| format!("{} to {} GHz", ghz(min), ghz(max))),
            at(|one| one.cur_khz).map(|at| format!("at {at} GHz")),
            at(|one| one.end_khz).map(|at| format!("at the recording's end {at} GHz")),
        ]);
        page.line("frequency", &text);
    }
    if let Some(idle) = &host.cpuidle {
        let governor = idle.governor.as_ref();
        let text = joined([
            idle.driver.clone(),
            governor.map(|governor| format!("governor {governor}")),
        ]);
        page.line("idle", &text);
    }
    let installed = host
        .qemu
        .as_deref()
        .map(|qemu| format!("{qemu} is installed"));
    page.line("QEMU", &installed.unwrap_or_default());
    let others = Some(host.clocksources.join(", ")).filter(|list| !list.is_empty());
    let clock = host.clocksource.clone().map(|clock| match others {
        Some(others) => format!("{clock}, of {others}"),
        None => clock,
    });
    page.line("clock", &clock.unwrap_or_default());
    let switch = |name: &str, on: Option<bool>| {
        let on = if on? { "on" } else { "off" };
        Some(format!("{name} {on}"))
    };
    let text = joined([
        host.thp.as_ref().map(|thp| format!("huge pages {thp}")),
        switch("KSM", host.ksm),
        switch("NUMA balancing", host.numa_balancing),
    ]);
    page.line("memory", &text);
    page.line("cmdline", host.cmdline.as_deref().unwrap_or_default());
    let all = page.layout.limit == usize::MAX;
    let open = host
        .mitigations
        .iter()
        .filter(|(_, what)| all || what.starts_with("Vulnerable"));
    let open: Vec<String> = open.map(|(name, what)| format!("{name}: {what}")).collect();
    page.line(
        if all { "hardware" } else { "vulnerable" },
        &open.join("; "),
    );
}

fn kvm(page: &mut Page, host: &Host) {
    for (module, parameters) in &host.modules {
        let list: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let text = if list.is_empty() {
            "loaded".to_owned()
        } else {
            list.join(" ")
        };
        page.line(module, &text);
    }
    let counted = host.kvm_debug.iter().filter(|(_, count)| **count > 0);
    let list: Vec<String> = counted
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    page.line("counted", &list.join(", "));
    // What was counted during a recording says more than what was since the host's start.
    let during = !host.counters_during.is_empty();
    let counters = match during {
        true => &host.counters_during,
        false => &host.counters,
    };
    let counted = counters.iter().filter(|(_, count)| **count > 0);
    let list: Vec<String> = counted
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let name = if during { "meanwhile" } else { "since boot" };
    page.line(name, &list.join(", "));
}

fn one_vm(page: &mut Page, facts: &Facts, vm: &ReportedVm) {
    page.gap();
    let text = joined([
        Some(
            vm.name
                .clone()
                .unwrap_or_else(|| "without a name".to_owned()),
        ),
        vm.pid.map(|pid| format!("process {pid}")),
        vm.uuid.clone(),
        vm.version.as_ref().map(|version| format!("QEMU {version}")),
    ]);
    page.line("VM", &text);
    // Quotes show which blanks are a word's own.
    let words = vm.args.iter().map(|word| {
        let plain = !word.is_empty() && !word.contains(char::is_whitespace);
        if plain {
            word.clone()
        } else {
            format!("'{word}'")
        }
    });
    page.line("command", &words.collect::<Vec<_>>().join(" "));
    let few = page.layout.limit.saturating_mul(4);
    for vcpu in vm.vcpus.iter().take(few) {
        let name = words::vcpu(None, vcpu.id);
        let row = thread_row(
            &name,
            vcpu.tid,
            vcpu.affinity.as_ref(),
            vcpu.policy.as_ref(),
        );
        page.row(&row);
    }
    page.left_out(vm.vcpus.len(), few, "vCPUs");
    let memory = vm
        .node_bytes
        .iter()
        .map(|(node, bytes)| Some(format!("{} on node {node}", gib(*bytes))));
    let policy = vm.memory_policy.as_ref();
    let policy = policy.map(|policy| format!("policy {policy}"));
    page.line("memory", &joined(memory.chain([policy])));
    let groups: Vec<&ControlGroup> = facts.groups_of(vm).collect();
    for group in groups
        .iter()
        .filter(|group| is_worth_a_line(group))
        .take(few)
    {
        page.line("cgroup", &group_text(group));
    }
    let workers: Vec<String> = vm.vhost.iter().map(i32::to_string).collect();
    if !workers.is_empty() {
        page.line("vhost", &format!("threads {}", workers.join(", ")));
    }
}

/// Whether a group limits anything, or has held anybody back.
fn is_worth_a_line(group: &ControlGroup) -> bool {
    let limited = |(name, value): (&String, &String)| match name.as_str() {
        // What everybody has who was given nothing else.
        "cpu.weight" => value != "100",
        "memory.low" => value != "0",
        _ => !value.starts_with("max"),
    };
    group.limits.iter().any(limited) || group.counted("cpu.stat.nr_throttled") > Some(0)
}

/// Returns a group's limits, and what they did.
fn group_text(group: &ControlGroup) -> String {
    let limits = group
        .limits
        .iter()
        .map(|(name, value)| format!("{name} {value}"));
    let throttled = group
        .counted("cpu.stat.nr_throttled")
        .filter(|count| *count > 0);
    let throttled = throttled.map(|count| {
        let periods = group.counted("cpu.stat.nr_periods").unwrap_or(0);
        let us = group.counted("cpu.stat.throttled_usec").unwrap_or(0);
        let time = words::duration::human(us.saturating_mul(1000));
        format!("throttled in {count} of {periods} periods, {time}")
    });
    let all: Vec<String> = limits.chain(throttled).collect();
    format!("{}: {}", group.path, all.join(", "))
}

fn thread_row(name: &str, tid: i32, affinity: Option<&CpuSet>, policy: Option<&Policy>) -> String {
    let cpus = affinity.map_or_else(|| "-".to_owned(), |set| format!("CPUs {set}"));
    let policy = policy.map(|policy| {
        let own = match (policy.rt_priority, policy.nice) {
            (0, 0) => String::new(),
            (0, nice) => format!(" nice {nice}"),
            (priority, _) => format!(" {priority}"),
        };
        format!("{}{own}", policy.name)
    });
    format!(
        "{name:<LABEL$}thread {tid:<8} {cpus:<LIST$} {}",
        policy.unwrap_or_default()
    )
}

/// Threads that are no vCPUs, and may not run everywhere.
fn threads(page: &mut Page, facts: &Facts) {
    let vcpus: Vec<i32> = facts
        .vms
        .iter()
        .flat_map(|vm| &vm.vcpus)
        .map(|v| v.tid)
        .collect();
    let vcpus: std::collections::HashSet<i32> = vcpus.into_iter().collect();
    let pinned = |thread: &ReportedThread| {
        let affinity = thread.affinity.as_ref();
        let online = facts.host.as_ref().and_then(|host| host.online.as_ref());
        affinity.is_some_and(|set| online.is_none_or(|online| set.len() < online.len()))
    };
    let others: Vec<(&i32, &ReportedThread)> = facts
        .threads
        .iter()
        .filter(|(tid, thread)| !vcpus.contains(tid) && pinned(thread))
        .collect();
    if facts.threads.is_empty() {
        return;
    }
    page.gap();
    page.line("threads", &format!("{} known", facts.threads.len()));
    if others.is_empty() {
        return;
    }
    page.line(
        "pinned",
        &format!("{} other than vCPUs may not run on all CPUs", others.len()),
    );
    for (tid, thread) in others.iter().take(page.layout.limit) {
        let name = thread.comm.as_deref().unwrap_or("?");
        let cpus = thread.affinity.as_ref().map(CpuSet::to_string);
        let process = thread
            .pid
            .map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        page.row(&format!(
            "{:LABEL$}{name:<16} {tid:>8} of {process:<8} CPUs {}",
            "",
            cpus.unwrap_or_default()
        ));
    }
    page.left_out(others.len(), page.layout.limit, "threads");
}

fn irqs(page: &mut Page, host: &Host) {
    if host.irqs.is_empty() {
        return;
    }
    page.gap();
    page.line(
        "interrupts",
        &format!("{} that devices use", host.irqs.len()),
    );
    for irq in host.irqs.iter().take(page.layout.limit) {
        let cpus = |set: &Option<CpuSet>| {
            set.as_ref()
                .map_or_else(|| "-".to_owned(), CpuSet::to_string)
        };
        let (affinity, effective) = (cpus(&irq.affinity), cpus(&irq.effective));
        page.row(&format!(
            "{:>10} CPUs {affinity:<LIST$} sent to {effective:<8} {}",
            irq.irq, irq.name
        ));
    }
    page.left_out(host.irqs.len(), page.layout.limit, "interrupts");
}

fn rest(page: &mut Page, host: &Host) {
    page.gap();
    let masked = match host.masked {
        0 => "no value of a command line looked secret".to_owned(),
        1 => "1 value of a command line that is or may be secret".to_owned(),
        many => format!("{many} values of command lines that are or may be secret"),
    };
    page.line("masked", &masked);
    for one in &host.unreadable {
        page.line("unreadable", &format!("{}: {}", one.path, one.why));
    }
}

/// Returns the CPUs that have the same setting, in the order of their first CPU.
fn by_setting(policies: &[FreqPolicy]) -> Vec<(&FreqPolicy, CpuSet)> {
    let mut all: Vec<(&FreqPolicy, CpuSet)> = Vec::new();
    let key = |policy: &FreqPolicy| {
        let texts = (policy.driver.clone(), policy.governor.clone());
        (texts, policy.min_khz, policy.max_khz)
    };
    let mut known = BTreeMap::new();
    for policy in policies {
        let at = *known.entry(key(policy)).or_insert_with(|| {
            all.push((policy, CpuSet::new()));
            all.len() - 1
        });
        if let Some((_, set)) = all.get_mut(at) {
            for (first, last) in policy.cpus.ranges() {
                set.insert_range(*first, *last);
            }
        }
    }
    all
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

fn ghz(khz: u64) -> String {
    format!("{:.2}", khz as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let text = br#"{"facts_version": 1,
            "host": {"kernel": "6.1.0", "cmdline": "a=0-3 \u001b[31m isolcpus=2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7 x=\"y\"",
              "online": "0-7", "isolated": "2-3", "nohz_full": "",
              "cpus": [{"cpu": 0, "package": 0, "core": 0, "siblings": "0,4"},
                       {"cpu": 4, "package": 0, "core": 0, "siblings": "0,4"}],
              "cpufreq": [{"cpus": "0-3", "driver": "acpi-cpufreq", "governor": "ondemand", "min_khz": 1500000, "max_khz": 3000000},
                          {"cpus": "6", "driver": "acpi-cpufreq", "governor": "performance"},
                          {"cpus": "4-5", "driver": "acpi-cpufreq", "governor": "ondemand", "min_khz": 1500000, "max_khz": 3000000}],
              "modules": {"kvm": {"halt_poll_ns": "200000"}, "vhost_net": {}},
              "kvm_debug": {"exits": 7, "irq_exits": 0},
              "irqs": [{"irq": 24, "name": "nvme0q0", "affinity": "0-7"}, {"irq": 25, "name": "x, y", "effective": "3"}],
              "masked": 2,
              "unreadable": [{"path": "/sys/kernel/debug/kvm", "why": "permission denied"}]},
            "vms": [{"pid": 1689, "name": "web", "args": ["qemu-kvm", "-name", "web 1", ""], "vhost": [1710],
              "vcpus": [{"id": 0, "tid": 1700, "affinity": "2", "policy": {"name": "SCHED_FIFO", "rt_priority": 10, "nice": 0}},
                        {"id": 1, "tid": 1703}]}],
            "threads": [{"tid": 1700, "pid": 1689, "comm": "CPU 0/KVM", "affinity": "2"},
                        {"tid": 951, "pid": 950, "comm": "pmd-c02", "affinity": "4"},
                        {"tid": 952, "pid": 950, "comm": "main", "affinity": "0-7"}]}"#;
        let (facts, notes) = facts::read(text);
        assert_eq!(notes, [""; 0]);
        facts
    }

    #[test]
    fn tables_fit_and_tell_what_is_unreadable() {
        let layout = Layout {
            width: 80,
            limit: 1,
            nanoseconds: true,
        };
        let table = table(&facts(), layout);
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
        assert!(!table.contains('\u{1b}'), "{table}");
        for line in [
            "host       kernel 6.1.0",
            "CPUs       8 online (0-7), 1 package, 1 core",
            "isolation  isolated 2-3, nohz_full none",
            "frequency  CPUs 0-5: acpi-cpufreq, governor ondemand, 1.50 to 3.00 GHz",
            "frequency  CPUs 6: acpi-cpufreq, governor performance",
            "kvm        halt_poll_ns=200000",
            "vhost_net  loaded",
            "counted    exits 7",
            "VM         web, process 1689",
            "command    qemu-kvm -name 'web 1' ''",
            "vCPU 0     thread 1700     CPUs 2         SCHED_FIFO 10",
            "vCPU 1     thread 1703     -",
            "vhost      threads 1710",
            "threads    3 known",
            "pinned     1 other than vCPUs may not run on all CPUs",
            "           pmd-c02               951 of 950      CPUs 4",
            "interrupts 2 that devices use",
            "        24 CPUs 0-7            sent to -        nvme0q0",
            "           1 more interrupts; --wide shows all",
            "masked     2 values of command lines that are or may be secret",
            "unreadable /sys/kernel/debug/kvm: permission denied",
        ] {
            assert!(table.lines().any(|found| found == line), "{line}\n{table}");
        }
        // Lists of CPUs are not torn apart.
        assert!(table.contains("nohz_full=2-3,6-7"), "{table}");
        let all = super::table(
            &facts(),
            Layout {
                width: 80,
                limit: usize::MAX,
                nanoseconds: true,
            },
        );
        assert!(all.contains("x, y") && !all.contains("--wide"), "{all}");
    }

    #[test]
    fn rows_have_the_path_of_each_value() {
        let text = csv(&facts());
        for line in [
            "key,value",
            "facts_version,1",
            "host.modules.kvm.halt_poll_ns,200000",
            "host.irqs[1].name,\"x, y\"",
            "host.nohz_full,",
            "vms[0].vcpus[0].affinity,2",
            "vms[0].vcpus[0].policy.rt_priority,10",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
