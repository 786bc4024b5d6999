//! What the kernel limits and counts for VMs: control groups, memory that is swapped, reclaimed and merged, and
//! pressure (`Documentation/admin-guide/cgroup-v2.rst`, `Documentation/accounting/psi.rst`,
//! `Documentation/admin-guide/mm/ksm.rst`).
//!
//! Names are the kernel's: the file, and behind it the name in it (`cpu.stat.nr_throttled`, `vmstat.pswpin`,
//! `memory.pressure.some`). Times have the kernel's unit, microseconds, in all of them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Most control groups: each VM has some, and one for each vCPU.
pub(crate) const MAX_GROUPS: usize = 1 << 14;

/// A control group that threads of VMs are in, or one above it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ControlGroup {
    /// Its path, as `/proc/PID/cgroup` has it.
    pub path: String,
    /// Its limits by file, as the kernel prints them: `cpu.max` is `30000 100000`. Those of the first version of
    /// control groups have the names and the form of the second one's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// What was counted since it was made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// The same of the time of the recording alone, where it was read before and after.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub during: BTreeMap<String, u64>,
}

impl ControlGroup {
    /// Returns its CPU quota: microseconds in each period of so many microseconds; `None` where it has no limit or none
    /// is known.
    pub fn cpu_quota_us(&self) -> Option<(u64, u64)> {
        let (quota, period) = self.limits.get("cpu.max")?.split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?)).filter(|(_, period)| *period > 0)
    }

    /// Returns what was counted during the recording, else since the group was made.
    pub fn counted(&self, name: &str) -> Option<u64> {
        let during = self.during.get(name);
        during.or_else(|| self.counters.get(name)).copied()
    }

    /// Returns whether a path is this group's or one below it.
    pub fn holds(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.path.trim_end_matches('/'));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_and_no_limit_is_none() {
        for (max, quota) in [
            ("30000 100000", Some((30_000, 100_000))),
            ("max 100000", None),
            ("30000", None),
            ("30000 0", None),
            ("", None),
        ] {
            assert_eq!(
                ControlGroup {
                    limits: BTreeMap::from([("cpu.max".to_owned(), max.to_owned())]),
                    ..ControlGroup::default()
                }
                .cpu_quota_us(),
                quota,
                "{max}"
            );
        }
    }
}
