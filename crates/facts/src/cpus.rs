//! Sets of CPUs in documents: texts as the kernel's (`0-3,8`).

use cpuset::CpuSet;
use serde::Serializer;

/// Writes a set, or that it is not known.
pub(crate) fn serialize<'a, S: Serializer>(
    set: impl Into<Option<&'a CpuSet>>,
    out: S,
) -> Result<S::Ok, S::Error> {
    match set.into() {
        Some(set) => out.collect_str(set),
        None => out.serialize_none(),
    }
}
