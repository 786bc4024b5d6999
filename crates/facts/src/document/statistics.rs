//! What a document says of a domain's statistics.

use std::collections::BTreeMap;

use serde_json::Value;

use super::members::Members;
use crate::reader::FactsReader;
use crate::{CountedSums, DomainStatistics};

/// Most vCPUs, disks or network interfaces of one domain.
const MAX_PARTS: usize = 4096;

/// Reads an entry of the member `domstats`.
pub(super) fn read(domain: &Members<'_>, reader: &mut FactsReader) -> DomainStatistics {
    let mut vcpus = BTreeMap::new();
    for (id, of) in domain.named("vcpus", MAX_PARTS, reader) {
        match id.parse() {
            Ok(id) => drop(vcpus.insert(id, sums(&of, reader))),
            Err(_) => domain.wrong(&format!("vcpus.{id}"), "the number of a vCPU", reader),
        }
    }
    let mut named = |name: &str| {
        let all = domain.named(name, MAX_PARTS, reader).into_iter();
        all.map(|(name, of)| (name.to_owned(), sums(&of, reader)))
            .collect()
    };
    let (disks, nics) = (named("disks"), named("nics"));
    DomainStatistics {
        name: domain.text("name", reader),
        vcpus_in_all: domain.number("vcpus_in_all", reader),
        all: sums(domain, reader),
        vcpus,
        disks,
        nics,
    }
}

fn sums(of: &Members<'_>, reader: &mut FactsReader) -> CountedSums {
    CountedSums {
        counters: of.values("counters", "whole numbers", reader, Value::as_u64),
        during: of.values("during", "whole numbers", reader, Value::as_u64),
    }
}
