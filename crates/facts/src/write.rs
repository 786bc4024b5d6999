//! Facts to JSON, as [`crate::read`] takes them back.

use serde_json::{Map, Value, json};

use crate::{Facts, FreqPolicy, Host, HostCpu, Irq, Node, Policy, Thread, Vcpu, Vm};

/// Version of the JSON that [`write()`] makes: it changes when a member comes to mean something else. Members that
/// are added do not change it.
pub const FACTS_VERSION: u64 = 1;

/// Returns facts as members of a JSON document: `facts_version`, `host`, `vms`, `threads` and `mtree`. Sets of CPUs are
/// texts as the kernel's (`0-3,8`). What is not known is left out, but `pid` and `name` of a VM are null.
pub fn write(facts: &Facts) -> Map<String, Value> {
    let mut document = Object::default();
    document.put("facts_version", FACTS_VERSION);
    if let Some(told) = &facts.host {
        document.put("host", host(told));
    }
    document.put("vms", facts.vms.iter().map(vm).collect::<Value>());
    let threads = facts.threads.iter();
    document.put(
        "threads",
        threads
            .map(|(tid, told)| thread(*tid, told))
            .collect::<Value>(),
    );
    document.maybe("mtree", facts.mtree.clone());
    document.0
}

/// An object on its way out.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Puts what is known.
    fn maybe<T: Into<Value>>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Puts a list that has entries.
    fn list(&mut self, name: &str, values: impl Iterator<Item = Value>) {
        let values: Vec<Value> = values.collect();
        if !values.is_empty() {
            self.put(name, values);
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object.0)
    }
}

/// Returns what can be shown as text as text.
fn text<T: ToString>(value: Option<&T>) -> Option<String> {
    value.map(T::to_string)
}

fn vm(vm: &Vm) -> Value {
    let mut out = Object::default();
    out.put("pid", json!(vm.pid));
    out.put("name", json!(vm.name));
    out.maybe("uuid", vm.uuid.clone());
    out.maybe("emulator", vm.emulator.clone());
    out.list("args", vm.args.iter().map(|arg| json!(arg)));
    out.list("vhost", vm.vhost.iter().map(|tid| json!(tid)));
    out.put("vcpus", vm.vcpus.iter().map(vcpu).collect::<Value>());
    out.into()
}

fn vcpu(vcpu: &Vcpu) -> Value {
    let mut out = Object::default();
    out.put("id", vcpu.id);
    out.put("tid", vcpu.tid);
    out.maybe("affinity", text(vcpu.affinity.as_ref()));
    out.maybe("policy", vcpu.policy.as_ref().map(policy));
    out.into()
}

fn thread(tid: i32, thread: &Thread) -> Value {
    let mut out = Object::default();
    out.put("tid", tid);
    out.maybe("pid", thread.pid);
    out.maybe("comm", thread.comm.clone());
    out.maybe("affinity", text(thread.affinity.as_ref()));
    out.maybe("policy", thread.policy.as_ref().map(policy));
    out.into()
}

fn policy(policy: &Policy) -> Value {
    json!({"name": policy.name, "rt_priority": policy.rt_priority, "nice": policy.nice})
}

fn host(host: &Host) -> Value {
    let mut out = Object::default();
    out.maybe("kernel", host.kernel.clone());
    out.maybe("arch", host.arch.clone());
    out.maybe("cpu_model", host.cpu_model.clone());
    out.maybe("virtualized", host.virtualized);
    out.maybe("cmdline", host.cmdline.clone());
    out.maybe("online", text(host.online.as_ref()));
    out.maybe("isolated", text(host.isolated.as_ref()));
    out.maybe("nohz_full", text(host.nohz_full.as_ref()));
    out.maybe("rcu_nocbs", text(host.rcu_nocbs.as_ref()));
    out.list("cpus", host.cpus.iter().map(host_cpu));
    out.list("nodes", host.nodes.iter().map(node));
    out.list("cpufreq", host.cpufreq.iter().map(freq_policy));
    if let Some(cpuidle) = &host.cpuidle {
        let mut idle = Object::default();
        idle.maybe("driver", cpuidle.driver.clone());
        idle.maybe("governor", cpuidle.governor.clone());
        out.put("cpuidle", idle);
    }
    out.maybe("clocksource", host.clocksource.clone());
    out.list("clocksources", host.clocksources.iter().map(|c| json!(c)));
    out.maybe("hz", host.hz);
    out.put("modules", json!(host.modules));
    out.put("kvm_debug", json!(host.kvm_debug));
    out.list("irqs", host.irqs.iter().map(irq));
    out.maybe("thp", host.thp.clone());
    out.maybe("ksm", host.ksm);
    out.maybe("numa_balancing", host.numa_balancing);
    out.put("mitigations", json!(host.mitigations));
    out.maybe("smt", host.smt.clone());
    out.put("masked", host.masked);
    let unreadable = host.unreadable.iter();
    out.put(
        "unreadable",
        unreadable
            .map(|one| json!({"path": one.path, "why": one.why}))
            .collect::<Value>(),
    );
    out.into()
}

fn host_cpu(cpu: &HostCpu) -> Value {
    let mut out = Object::default();
    out.put("cpu", cpu.cpu);
    out.maybe("package", cpu.package);
    out.maybe("die", cpu.die);
    out.maybe("core", cpu.core);
    out.maybe("node", cpu.node);
    out.put("siblings", cpu.siblings.to_string());
    out.into()
}

fn node(node: &Node) -> Value {
    let mut out = Object::default();
    out.put("node", node.node);
    out.put("cpus", node.cpus.to_string());
    out.maybe("memory_bytes", node.memory_bytes);
    out.into()
}

fn freq_policy(policy: &FreqPolicy) -> Value {
    let mut out = Object::default();
    out.put("cpus", policy.cpus.to_string());
    out.maybe("driver", policy.driver.clone());
    out.maybe("governor", policy.governor.clone());
    out.list("governors", policy.governors.iter().map(|g| json!(g)));
    out.maybe("min_khz", policy.min_khz);
    out.maybe("max_khz", policy.max_khz);
    out.into()
}

fn irq(irq: &Irq) -> Value {
    let mut out = Object::default();
    out.put("irq", irq.irq);
    out.put("name", irq.name.clone());
    out.maybe("affinity", text(irq.affinity.as_ref()));
    out.maybe("effective", text(irq.effective.as_ref()));
    out.into()
}
