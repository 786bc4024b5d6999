//! trapline's own documents: of `trapline facts`, and the VMs in that of `trapline info`.
//!
//! Every member may be missing. Those that are not known are a later version's, and passed over; those that are not
//! what they should be are noted, and everything else is taken.

mod host;
mod kernel_log;
mod members;
mod statistics;

use std::collections::BTreeMap;

use forms::InputForm;

use serde_json::{Map, Value};

use crate::keep::{MAX_ARGS, MAX_THREADS, MAX_VCPUS, MAX_VHOST, MAX_VMS};
use crate::numa::MAX_NODES;
use crate::reader::FactsReader;
use crate::write::FACTS_VERSION;
use crate::{Policy, ReportedThread, ReportedVcpu, ReportedVm};
use members::Members;

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "trapline facts --format json, trapline info --format json",
    recognised_by: "a JSON object with one of the members of docs/facts.md",
    yields: "all facts of a host and its VMs",
    fixtures: &["tests/texts/document.json"],
};

/// Takes a document.
pub(crate) fn take(object: &Map<String, Value>, reader: &mut FactsReader) {
    let document = Members::of_document(object);
    if let Some(version) = document.number("facts_version", reader)
        && version > FACTS_VERSION
    {
        let note = format!(
            "facts of a later version of trapline (facts_version {version}; this one knows {FACTS_VERSION}): \
             what is known is read"
        );
        reader.notes.add(reader.number, note);
    }
    for vm in document.objects("vms", MAX_VMS, reader) {
        take_vm(&vm, reader);
    }
    for thread in document.objects("threads", MAX_THREADS, reader) {
        let Some(tid) = thread.required("tid", Members::thread_id, reader) else {
            continue;
        };
        let reported = ReportedThread {
            pid: thread.thread_id("pid", reader),
            comm: thread.text("comm", reader),
            affinity: thread.cpus("affinity", reader),
            policy: policy(&thread, reader),
        };
        reader.gather.thread(tid, reported);
    }
    let mtree = document.read("mtree", "a text", reader, Value::as_str);
    for line in mtree.into_iter().flat_map(str::lines) {
        reader.gather.mtree(line.trim_end());
    }
    if let Some(log) = kernel_log::read(&document, "guest_log", reader)
        && let Some(note) = reader.gather.guest_log(log)
    {
        reader.notes.add(reader.number, note);
    }
    for domain in document.objects("domstats", MAX_VMS, reader) {
        let domain = statistics::read(&domain, reader);
        if let Some(note) = reader.gather.domain(domain) {
            reader.notes.add(reader.number, note);
        }
    }
    if let Some(members) = document.object("host", reader) {
        let host = host::read(&members, reader);
        // An object without any known member gives no facts.
        if host != crate::Host::default() {
            for note in reader.gather.host(host) {
                reader.notes.add(reader.number, note);
            }
        }
    }
}

fn take_vm(vm: &Members<'_>, reader: &mut FactsReader) {
    // What info guessed of one recording is no fact of another.
    if vm.read("guessed", "true or false", reader, Value::as_bool) == Some(true) {
        return;
    }
    let mut reported = ReportedVm {
        pid: vm.thread_id("pid", reader),
        name: vm.text("name", reader),
        uuid: vm.text("uuid", reader),
        emulator: vm.text("emulator", reader),
        version: vm.text("version", reader),
        args: vm.texts("args", MAX_ARGS, reader),
        vhost: Vec::new(),
        cgroups: vm.texts("cgroups", MAX_VCPUS, reader),
        node_bytes: node_bytes(vm, reader),
        memory_policy: vm.text("memory_policy", reader),
        vcpus: Vec::new(),
    };
    let vhost = vm.list("vhost", MAX_VHOST, reader);
    let ids = vhost.iter().filter_map(|v| crate::keep::id(v.as_i64()?));
    reported.vhost.extend(ids);
    if reported.vhost.len() < vhost.len() {
        vm.wrong("vhost", "a list of thread ids", reader);
    }
    for vcpu in vm.objects("vcpus", MAX_VCPUS, reader) {
        let id = vcpu.required("id", Members::small, reader);
        let tid = vcpu.required("tid", Members::thread_id, reader);
        if let Some((id, tid)) = id.zip(tid) {
            reported.vcpus.push(ReportedVcpu {
                affinity: vcpu.cpus("affinity", reader),
                policy: policy(&vcpu, reader),
                ..ReportedVcpu::new(id, tid)
            });
        }
    }
    if reported.pid.is_some() || !reported.vcpus.is_empty() {
        reader.gather.vm(reported);
    }
}

/// Memory by NUMA node, whose numbers are names in JSON.
fn node_bytes(vm: &Members<'_>, reader: &mut FactsReader) -> BTreeMap<u32, u64> {
    let Some(nodes) = vm.object("node_bytes", reader) else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for (node, bytes) in nodes.iter().take(MAX_NODES) {
        match node.parse().ok().zip(bytes.as_u64()) {
            Some((node, bytes)) => drop(all.insert(node, bytes)),
            None => nodes.wrong(node, "bytes of a node", reader),
        }
    }
    all
}

/// How a thread is scheduled, as a member shows.
fn policy(of: &Members<'_>, reader: &mut FactsReader) -> Option<Policy> {
    let policy = of.object("policy", reader)?;
    let nice = |value: &Value| i32::try_from(value.as_i64()?).ok();
    Some(Policy {
        name: policy.text("name", reader)?,
        rt_priority: policy.small("rt_priority", reader).unwrap_or(0),
        nice: policy
            .read("nice", "a whole number", reader, nice)
            .unwrap_or(0),
    })
}
