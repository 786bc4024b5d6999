//! Which control groups limit a VM, and what was counted during a recording.

use std::collections::BTreeMap;

use crate::{ControlGroup, Facts, Host, ReportedVm};

impl Facts {
    /// Returns the control groups that limit a VM: those of its threads, and all above them.
    pub fn groups_of<'f>(&'f self, vm: &'f ReportedVm) -> impl Iterator<Item = &'f ControlGroup> {
        let all = self.host.iter().flat_map(|host| &host.cgroups);
        all.filter(|group| vm.cgroups.iter().any(|path| group.holds(path)))
    }

    /// Takes what was counted at the end of a recording at whose beginning these facts were read: counters stay, and
    /// what they have more at the end is what was counted during it. A counter that is less has begun anew.
    pub fn count_during(&mut self, end: &Host) {
        let Some(host) = &mut self.host else {
            return;
        };
        for policy in &mut host.cpufreq {
            let same = end.cpufreq.iter().find(|other| other.cpus == policy.cpus);
            policy.end_khz = same.and_then(|same| same.cur_khz);
        }
        host.counters_during = more(&host.counters, &end.counters);
        for group in &mut host.cgroups {
            let same = end.cgroups.iter().find(|other| other.path == group.path);
            if let Some(same) = same {
                group.during = more(&group.counters, &same.counters);
            }
        }
    }

    /// Takes what is counted now, of a host of which these facts were read some time ago: counters and clocks become
    /// those of now, and nothing is said of any time between.
    pub fn count_up_to(&mut self, now: Host) {
        let Some(host) = &mut self.host else {
            return;
        };
        for policy in &mut host.cpufreq {
            let same = now.cpufreq.iter().find(|other| other.cpus == policy.cpus);
            policy.cur_khz = same.and_then(|same| same.cur_khz);
        }
        host.counters = now.counters;
        for group in &mut host.cgroups {
            let same = now.cgroups.iter().find(|other| other.path == group.path);
            if let Some(same) = same {
                group.counters.clone_from(&same.counters);
            }
        }
    }
}

/// Returns by how much counters grew.
fn more(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = after.iter().filter_map(|(name, after)| {
        let more = after.checked_sub(*before.get(name)?)?;
        Some((name.clone(), more))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &str, max: &str, throttled: u64) -> ControlGroup {
        ControlGroup {
            path: path.to_owned(),
            limits: BTreeMap::from([("cpu.max".to_owned(), max.to_owned())]),
            counters: BTreeMap::from([("cpu.stat.nr_throttled".to_owned(), throttled)]),
            during: BTreeMap::new(),
        }
    }

    #[test]
    fn groups_above_a_thread_limit_it_and_others_do_not() {
        let vm = ReportedVm {
            cgroups: vec!["/machine.slice/a/vcpu0".to_owned()],
            ..ReportedVm::default()
        };
        let paths = [
            "/",
            "/machine.slice",
            "/machine.slice/a",
            "/machine.slice/ab",
            "/machine.slice/a/vcpu1",
        ];
        let facts = Facts {
            host: Some(Host {
                cgroups: paths.map(|path| group(path, "max 100000", 0)).to_vec(),
                ..Host::default()
            }),
            ..Facts::default()
        };
        let of: Vec<&str> = facts
            .groups_of(&vm)
            .map(|group| group.path.as_str())
            .collect();
        assert_eq!(of, ["/", "/machine.slice", "/machine.slice/a"]);
    }

    #[test]
    fn what_was_counted_during_a_recording_is_what_grew() {
        let host = |throttled, swapped| Host {
            cgroups: vec![group("/a", "30000 100000", throttled)],
            counters: BTreeMap::from([("vmstat.pswpin".to_owned(), swapped)]),
            ..Host::default()
        };
        let mut facts = Facts {
            host: Some(host(10, 7)),
            ..Facts::default()
        };
        facts.count_during(&host(25, 3));
        let known = facts.host.as_ref().expect("a host");
        assert_eq!(known.cgroups[0].counted("cpu.stat.nr_throttled"), Some(15));
        assert_eq!(known.cgroups[0].counters["cpu.stat.nr_throttled"], 10);
        assert!(known.counters_during.is_empty());
    }

    #[test]
    fn what_is_counted_now_says_nothing_of_any_time_between() {
        let host = |throttled, swapped, khz| Host {
            cgroups: vec![group("/a", "30000 100000", throttled)],
            counters: BTreeMap::from([("vmstat.pswpin".to_owned(), swapped)]),
            cpufreq: vec![crate::FreqPolicy {
                cur_khz: Some(khz),
                ..crate::FreqPolicy::default()
            }],
            ..Host::default()
        };
        let mut facts = Facts {
            host: Some(host(10, 7, 800_000)),
            ..Facts::default()
        };
        facts.count_up_to(host(25, 9, 3_600_000));
        assert_eq!(facts.host, Some(host(25, 9, 3_600_000)));
    }
}
