//! What was counted, with the names that people have for it: VMs, vCPUs, devices.

use std::collections::{BTreeMap, HashMap};

use analysis::{ExitTable, access_key, builtin_names, name_access};
use event::{ExitReason, Isa};
use facts::Facts;
use model::{Access, Times};

use crate::load::Seed;
use crate::snapshot::{Dropped, Durations, Row, Snapshot, Vcpu, What};

/// Returns the vCPUs that a host's facts tell.
pub fn seeds(facts: &Facts) -> Vec<Seed> {
    let vms = facts.vms.iter().filter_map(|vm| Some((vm.pid?, vm)));
    let vcpus = vms.flat_map(|(pid, vm)| {
        vm.vcpus.iter().map(move |vcpu| Seed {
            tid: vcpu.tid,
            pid,
            number: vcpu.id,
        })
    });
    vcpus.collect()
}

/// Which vCPU, or which VM where vCPUs are added up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose {
    /// What the VM is called: its name, or its process.
    pub vm: String,
    /// Its VMM's process.
    pub vm_pid: i32,
    /// Its name, if known.
    pub vm_name: Option<String>,
    /// The vCPU's number, if known.
    pub vcpu: Option<u32>,
    /// The vCPU's thread; `None` where vCPUs are added up.
    pub tid: Option<i32>,
}

/// The kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Exits, or accesses timed as the table of this name of `trapline exits`.
    Of(ExitTable),
    /// Notifications of virtio that KVM takes itself (`kvm_fast_mmio`).
    FastMmio,
}

impl Table {
    /// Returns the name that documents have.
    pub fn name(self) -> &'static str {
        match self {
            Table::Of(table) => table.name(),
            Table::FastMmio => "fast_mmio",
        }
    }
}

/// Exits or accesses of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRow {
    /// Of which table.
    pub table: Table,
    /// Whose.
    pub whose: Whose,
    /// As `trapline exits` has it: `IO_INSTRUCTION`, `0x608:PIN`.
    pub key: String,
    /// Device and register, if known.
    pub name: Option<String>,
    /// Whether the guest asked to wait, so that the time is nobody's work.
    pub waiting: bool,
    /// How many and how long.
    pub durations: Durations,
    /// The shortest in nanoseconds, where it is known.
    pub min_ns: Option<u64>,
    /// How many of them the VMM handled.
    pub user_count: u64,
    /// Of ports: the time in nanoseconds of the exits that were made for it.
    pub whole_ns: u64,
    /// Of exits: what vCPUs did in them.
    pub times: Times,
}

impl NamedRow {
    /// Returns whether these are notifications of a virtio device: writes to an address that means nothing else, or to a
    /// register of that name.
    pub fn is_notification(&self) -> bool {
        let register = self.name.as_deref().unwrap_or_default();
        let written = self.table == Table::FastMmio
            || self.key.ends_with(":W")
            || self.key.ends_with(":POUT");
        self.table == Table::FastMmio || (written && register.contains("notify"))
    }
}

/// Behind whom vCPUs waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBehind {
    /// Whose vCPU.
    pub whose: Whose,
    /// The other task's name, if known.
    pub comm: Option<String>,
    /// Its thread; `None` where several of this name are added up. 0 is the idle task.
    pub by_tid: Option<i32>,
    /// If it is a vCPU of a VM that is watched, which VM's.
    pub vm: Option<String>,
    /// How often.
    pub count: u64,
    /// For how long, in nanoseconds.
    pub ns: u64,
}

/// A vCPU with its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVcpu {
    /// Which.
    pub whose: Whose,
    /// What it did.
    pub vcpu: Vcpu,
}

/// What was counted in an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Named {
    /// How long it was, in nanoseconds.
    pub interval_ns: u64,
    /// Whose table of reasons exits are of.
    pub isa: Option<Isa>,
    /// vCPUs, by VM and number.
    pub vcpus: Vec<NamedVcpu>,
    /// Exits and accesses, most time first.
    pub rows: Vec<NamedRow>,
    /// Behind whom vCPUs waited, most time first.
    pub behind: Vec<NamedBehind>,
    /// What found no room.
    pub dropped: Dropped,
}

/// Which rows are wanted, and how far they are added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The VM of this name alone.
    pub vm: Option<String>,
    /// The VM of this process alone.
    pub pid: Option<i32>,
    /// Rows of a VM's vCPUs are added up.
    pub by_vm: bool,
}

impl Choice {
    fn takes(&self, whose: &Whose) -> bool {
        let named = |name: &String| whose.vm_name.as_ref() == Some(name) || *name == whose.vm;
        self.vm.as_ref().is_none_or(named) && self.pid.is_none_or(|pid| pid == whose.vm_pid)
    }
}

fn row_key(what: What) -> (Table, String, Option<ExitReason>, Option<Access>) {
    match what {
        What::Exit(reason) => (
            Table::Of(ExitTable::Vmexit),
            reason.key().into_owned(),
            Some(reason),
            None,
        ),
        What::Access(access) => {
            let table = match access {
                Access::Port { .. } => ExitTable::Ioport,
                Access::Mmio { .. } => ExitTable::Mmio,
                Access::Msr { .. } => ExitTable::Msr,
            };
            (Table::Of(table), access_key(&access), None, Some(access))
        }
        What::FastMmio { gpa } => {
            let access = Access::Mmio { gpa, write: true };
            (Table::FastMmio, access_key(&access), None, Some(access))
        }
    }
}

/// The vCPUs of a snapshot by their thread, with what they are called.
fn whose(snapshot: &Snapshot, facts: &Facts) -> HashMap<i32, Whose> {
    let names = facts
        .vms
        .iter()
        .filter_map(|vm| Some((vm.pid?, vm.name.clone()?)));
    let names: HashMap<i32, String> = names.collect();
    let numbers = facts.vms.iter().flat_map(|vm| &vm.vcpus);
    let numbers: HashMap<i32, u32> = numbers.map(|vcpu| (vcpu.tid, vcpu.id)).collect();
    let shared = |name: &String| names.values().filter(|other| *other == name).count() > 1;
    let whose = snapshot.vcpus.iter().map(|vcpu| {
        let name = names.get(&vcpu.pid).cloned();
        let vm = match &name {
            Some(name) if shared(name) => format!("{name} ({})", vcpu.pid),
            Some(name) => name.clone(),
            None => vcpu.pid.to_string(),
        };
        let whose = Whose {
            vm,
            vm_pid: vcpu.pid,
            vm_name: name,
            vcpu: numbers.get(&vcpu.tid).copied().or(vcpu.number),
            tid: Some(vcpu.tid),
        };
        (vcpu.tid, whose)
    });
    whose.collect()
}

/// Whose vCPU waited, the name of the task that ran meanwhile, and its thread where that is told apart.
type By = (Whose, Option<String>, Option<i32>);

/// Names what was counted in an interval.
pub fn named(interval: &Snapshot, facts: &Facts, choice: &Choice) -> Named {
    let everyone = whose(interval, facts);
    let of = |tid: i32| everyone.get(&tid).filter(|whose| choice.takes(whose));
    let group = |whose: &Whose| match choice.by_vm {
        true => Whose {
            vcpu: None,
            tid: None,
            ..whose.clone()
        },
        false => whose.clone(),
    };
    let isa = interval.rows.iter().find_map(|row| match row.what {
        What::Exit(reason) => Some(reason.isa),
        _ => None,
    });
    let mut named = Named {
        interval_ns: interval.to_ns.saturating_sub(interval.from_ns),
        isa,
        dropped: interval.dropped,
        ..Named::default()
    };
    for vcpu in &interval.vcpus {
        if let Some(whose) = of(vcpu.tid) {
            named.vcpus.push(NamedVcpu {
                whose: whose.clone(),
                vcpu: vcpu.clone(),
            });
        }
    }
    named.vcpus.sort_by(|a, b| a.whose.cmp(&b.whose));
    let mut rows: BTreeMap<(Whose, What), Row> = BTreeMap::new();
    for row in &interval.rows {
        let Some(whose) = of(row.tid) else { continue };
        match rows.entry((group(whose), row.what)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(row.clone());
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => add(entry.get_mut(), row),
        }
    }
    let devices = builtin_names(isa);
    named.rows = rows
        .into_iter()
        .map(|((whose, what), row)| {
            let (table, key, reason, access) = row_key(what);
            NamedRow {
                table,
                whose,
                key,
                name: access.and_then(|access| name_access(&access, &devices)),
                waiting: reason.is_some_and(ExitReason::is_waiting),
                durations: row.durations,
                min_ns: row.min_ns,
                user_count: row.user_count,
                whole_ns: row.whole_ns,
                times: row.times,
            }
        })
        .collect();
    named.rows.sort_by(|a, b| {
        let order = b.durations.total_ns.cmp(&a.durations.total_ns);
        order.then_with(|| (a.table, &a.whose, &a.key).cmp(&(b.table, &b.whose, &b.key)))
    });
    let mut behind: BTreeMap<By, (u64, u64)> = BTreeMap::new();
    for one in &interval.behind {
        let Some(whose) = of(one.tid) else { continue };
        // Threads of one name are one row, but for vCPUs, which are called alike in all VMs.
        let by = (one.by_tid == 0 || everyone.contains_key(&one.by_tid) || one.comm.is_none())
            .then_some(one.by_tid);
        let sum = behind
            .entry((group(whose), one.comm.clone(), by))
            .or_default();
        sum.0 += one.count;
        sum.1 += one.ns;
    }
    named.behind = behind
        .into_iter()
        .map(|((whose, comm, by_tid), (count, ns))| NamedBehind {
            vm: by_tid.and_then(|tid| Some(everyone.get(&tid)?.vm.clone())),
            whose,
            comm,
            by_tid,
            count,
            ns,
        })
        .collect();
    named.behind.sort_by_key(|one| std::cmp::Reverse(one.ns));
    named
}

fn add(sum: &mut Row, row: &Row) {
    sum.durations.merge(&row.durations);
    sum.min_ns = sum.min_ns.zip(row.min_ns).map(|(a, b)| a.min(b));
    sum.user_count += row.user_count;
    sum.whole_ns += row.whole_ns;
    sum.times.merge(&row.times);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Behind;

    fn vcpu(pid: i32, tid: i32) -> Vcpu {
        Vcpu {
            tid,
            pid,
            number: None,
            ended: false,
            times: Times::default(),
            exits: 0,
            before_first_entry: 0,
            without_entry: 0,
            polls: model::Polls::default(),
            woken: Durations::default(),
            preempted: Durations::default(),
        }
    }

    fn row(tid: i32, code: u32, ns: u64) -> Row {
        Row {
            tid,
            what: What::Exit(ExitReason {
                isa: Isa::Vmx,
                code,
            }),
            durations: Durations {
                count: 1,
                total_ns: ns,
                max_ns: ns,
                buckets: vec![1],
            },
            min_ns: Some(ns),
            user_count: 0,
            whole_ns: 0,
            times: Times::default(),
        }
    }

    fn interval() -> Snapshot {
        let behind = |tid, by_tid, comm: &str, ns| Behind {
            tid,
            by_tid,
            comm: Some(comm.to_owned()),
            count: 1,
            ns,
        };
        Snapshot {
            from_ns: 0,
            to_ns: 1000,
            vcpus: vec![vcpu(10, 11), vcpu(10, 12), vcpu(20, 21)],
            rows: vec![row(11, 12, 5), row(12, 12, 7), row(21, 30, 9)],
            behind: vec![
                behind(11, 21, "CPU 0/KVM", 3),
                behind(11, 70, "sh", 1),
                behind(11, 71, "sh", 1),
            ],
            dropped: Dropped::default(),
        }
    }

    fn facts() -> Facts {
        let mut facts = Facts::default();
        for (pid, name, tids) in [(10, "web", vec![11, 12]), (20, "db", vec![21])] {
            let vcpus = tids.into_iter().zip(0..);
            facts.vms.push(facts::Vm {
                pid: Some(pid),
                name: Some(name.to_owned()),
                vcpus: vcpus.map(|(tid, id)| facts::Vcpu::new(id, tid)).collect(),
                ..facts::Vm::default()
            });
        }
        facts
    }

    #[test]
    fn rows_have_the_names_of_vms_and_the_numbers_of_vcpus() {
        let named = named(&interval(), &facts(), &Choice::default());
        let rows = named.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (&*row.whose.vm, row.whose.vcpu, &*row.key, row.waiting))
            .collect();
        let expected = [
            ("db", Some(0), "IO_INSTRUCTION", false),
            ("web", Some(1), "HLT", true),
            ("web", Some(0), "HLT", true),
        ];
        assert_eq!(rows, expected);
        let behind = named.behind.iter();
        let behind: Vec<_> = behind
            .map(|one| (one.comm.as_deref(), one.vm.as_deref(), one.ns))
            .collect();
        assert_eq!(
            behind,
            [(Some("CPU 0/KVM"), Some("db"), 3), (Some("sh"), None, 2)]
        );
    }

    #[test]
    fn vcpus_of_a_vm_can_be_added_up_and_others_left_out() {
        let choice = Choice {
            vm: Some("web".to_owned()),
            by_vm: true,
            ..Choice::default()
        };
        let named = named(&interval(), &facts(), &choice);
        assert_eq!(named.rows.len(), 1);
        assert_eq!(named.rows[0].durations.total_ns, 12);
        assert_eq!(named.rows[0].min_ns, Some(5));
        assert_eq!(named.vcpus.len(), 2);
    }
}
