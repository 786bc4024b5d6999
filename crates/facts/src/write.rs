//! Facts to JSON, as [`crate::read`] takes them back.

use serde::Serialize;

use crate::{DomainStatistics, Facts, Host, KernelLog, ReportedThread, ReportedVm};

/// Version of the JSON that [`write()`] makes: it changes when a member comes to mean something else. Members that
/// are added do not change it.
pub const FACTS_VERSION: u64 = 1;

/// The fields of a document of facts. Sets of CPUs are texts as the kernel's (`0-3,8`). What is not known is left out,
/// but `pid` and `name` of a VM are null.
#[derive(Debug, Serialize)]
pub struct FactsDocument<'a> {
    facts_version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a Host>,
    vms: &'a [ReportedVm],
    threads: Vec<KnownThread<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtree: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest_log: Option<&'a KernelLog>,
    #[serde(skip_serializing_if = "<[DomainStatistics]>::is_empty")]
    domstats: &'a [DomainStatistics],
}

/// A thread and its id.
#[derive(Debug, Serialize)]
struct KnownThread<'a> {
    tid: i32,
    #[serde(flatten)]
    thread: &'a ReportedThread,
}

/// Returns facts as the fields of a JSON document.
pub fn write(facts: &Facts) -> FactsDocument<'_> {
    let threads = facts.threads.iter();
    FactsDocument {
        facts_version: FACTS_VERSION,
        host: facts.host.as_ref(),
        vms: &facts.vms,
        threads: threads
            .map(|(tid, thread)| KnownThread { tid: *tid, thread })
            .collect(),
        mtree: facts.mtree.as_deref(),
        guest_log: facts.guest_log.as_ref(),
        domstats: &facts.domstats,
    }
}
