//! Hosts' names that several machines have: a clone keeps the name of what it was made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;

use crate::column_values::text_column;

/// Machines by the name of their host, as recordings of a store have them.
#[derive(Debug, Default)]
pub(crate) struct HostNames {
    machines: BTreeMap<String, BTreeSet<String>>,
}

impl HostNames {
    /// Takes the recordings of a file of the table `runs`. Those stored without facts have no machine's id, and say
    /// nothing.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn add(&mut self, reader: &SerializedFileReader<File>) -> Result<(), ParquetError> {
        let hosts = text_column(reader, "host")?.into_iter().flatten();
        let ids = text_column(reader, "machine_id")?.into_iter().flatten();
        for (host, id) in hosts.zip(ids) {
            if let (Some(host), Some(id)) = (host, id) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let machines = self.machines.entry(text(host.data())).or_default();
                machines.insert(text(id.data()));
            }
        }
        Ok(())
    }

    /// Returns a sentence for each name of several machines.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let shared = self.machines.iter().filter(|(_, ids)| ids.len() > 1);
        let sentence = |(host, ids): (&String, &BTreeSet<String>)| {
            format!(
                "{host} is the name of {} machines, which have other machine ids: 'trapline fleet' keeps them apart, \
                 SQL does by runs.machine_id.",
                ids.len()
            )
        };
        shared.map(sentence).collect()
    }
}
