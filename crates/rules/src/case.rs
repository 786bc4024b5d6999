//! What rules look at, and how they ask it.

use std::collections::HashSet;

use analysis::{ExitRow, ExitTable, ExitsReport, Origin, Picture};
use domain::{Domain, GuestOs};
use doubts::DoubtKind;
use event::{ExitClass, ExitReason, Isa};
use facts::{Facts, Host, ReportedVm};
use model::{NamedRole, Vm};

use crate::evidence::{Evidence, Ns, Of, says};
use crate::qemu::RunningQemu;

/// What is missing where times of exits are not theirs (`tools/perf/arch/arm64/util/kvm-stat.c` pairs an entry with the
/// exit behind it).
const ARM_TIMES: &str = "perf's table of arm64 has how long the guest ran before each exit, and not how long the exit \
                         took; record kvm:kvm_exit and kvm:kvm_entry.";

/// One recording, or one set of printed tables, with what is known beside it.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What the recording says.
    pub picture: &'a Picture,
    /// Facts about the host, if there are any.
    pub facts: Option<&'a Facts>,
    /// The guest's definition, if it is known.
    pub domain: Option<&'a Domain>,
}

/// Count and time of several rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowSum {
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub ns: u64,
}

impl RowSum {
    /// Returns the sum of some rows.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r ExitRow>) -> RowSum {
        let each = rows.into_iter().map(|row| RowSum {
            count: row.stats.count(),
            ns: row.stats.total(),
        });
        each.fold(RowSum::default(), RowSum::plus)
    }

    /// Returns both together.
    pub fn plus(self, other: RowSum) -> RowSum {
        RowSum {
            count: self.count.saturating_add(other.count),
            ns: self.ns.saturating_add(other.ns),
        }
    }
}

/// Threads that work for VMs and are no vCPUs.
pub(crate) struct VmHelpers(HashSet<i32>);

impl VmHelpers {
    /// Returns whether events and facts show it of a thread, or a process.
    pub(crate) fn has(&self, tid: i32) -> bool {
        self.0.contains(&tid)
    }

    /// Returns whether a thread is one by its name, or as events and facts show it.
    pub(crate) fn has_named(&self, tid: i32, comm: &str) -> bool {
        NamedRole::from(comm).is_helper_of_vms() || self.has(tid)
    }
}

impl<'a> Case<'a> {
    /// Returns the guest's definition where it is whole, so that what it does not say is not there.
    pub(crate) fn whole_domain(&self) -> Option<&'a Domain> {
        self.domain.filter(|domain| !domain.is_part())
    }

    /// Returns facts about the host itself.
    pub fn host(&self) -> Option<&'a Host> {
        self.facts?.host.as_ref()
    }

    /// Returns what is known of the QEMU that runs the recorded VMs.
    pub(crate) fn qemu(&self) -> RunningQemu<'a> {
        let recorded: Vec<i32> = self.vms().iter().filter_map(|vm| vm.pid).collect();
        let vms = self.facts.iter().flat_map(|facts| &facts.vms);
        let of = vms.filter(|vm| {
            let pid = vm.pid.filter(|_| !recorded.is_empty());
            pid.is_none_or(|pid| recorded.contains(&pid))
        });
        let of: Vec<&ReportedVm> = of.collect();
        let defined = self.domain.and_then(|domain| domain.machine.as_deref());
        RunningQemu::of(
            &of,
            self.host().and_then(|host| host.qemu.as_deref()),
            defined,
        )
    }

    /// Returns the guest's operating system, as its definition has it.
    pub fn guest(&self) -> GuestOs {
        self.domain.map_or(GuestOs::Unknown, |domain| domain.os)
    }

    /// Returns whether numbers come from printed tables.
    pub fn printed(&self) -> bool {
        self.picture.origin == Origin::Printed
    }

    /// Returns whether the times of its exits are those of the guest before them: perf's table of arm64 has these.
    pub(crate) fn exit_times_are_guests(&self) -> bool {
        let doubts = self.picture.quality.all_doubts();
        doubts
            .iter()
            .any(|doubt| matches!(doubt.kind, DoubtKind::ArmTimesAreGuests))
    }

    /// Returns why no finding can rest on times and shares of its exits, in a full sentence; `None` if some can.
    pub(crate) fn exits_in_doubt(&self) -> Option<String> {
        if self.exit_times_are_guests() {
            return Some(ARM_TIMES.to_owned());
        }
        let reports = self.picture.exits.iter();
        let rows: Vec<&str> = reports.flat_map(ExitsReport::contradictions).collect();
        (!rows.is_empty()).then(|| {
            format!(
                "the table's rows contradict each other ({}): one of their numbers is wrong; give the table as perf \
                 printed it",
                rows.join(", ")
            )
        })
    }

    /// Returns whether exits were counted.
    pub fn has_exits(&self) -> bool {
        let table = self.picture.table(ExitTable::Vmexit);
        table.is_some_and(|report| report.total_count > 0)
    }

    /// Returns whether exits were recorded and there was none.
    pub fn exits_did_not_occur(&self) -> bool {
        !self.has_exits() && !self.printed() && self.picture.recorded("kvm_exit") == Some(true)
    }

    /// Returns whether exits are x86's.
    pub fn x86(&self) -> bool {
        match self.picture.isa {
            Some(isa) => matches!(isa, Isa::Vmx | Isa::Svm),
            None => (self.picture.about.arch.as_deref())
                .is_none_or(|arch| matches!(arch, "x86_64" | "i686" | "i386")),
        }
    }

    /// Returns all exits and their time.
    pub(crate) fn all_exits(&self) -> RowSum {
        let report = self.picture.table(ExitTable::Vmexit);
        report.map_or(RowSum::default(), |report| RowSum {
            count: report.total_count,
            ns: report.total_ns,
        })
    }

    /// Returns the time of all exits in which the guest did not ask to wait.
    pub fn handling_ns(&self) -> u64 {
        let report = self.picture.table(ExitTable::Vmexit);
        report.map_or(0, |report| report.handling_ns)
    }

    /// Returns the exits of a reason that goes by one of these names.
    pub(crate) fn exits(&self, names: &[&str]) -> RowSum {
        RowSum::of(self.picture.reason(names))
    }

    /// Returns the exits of a class, on any architecture.
    pub(crate) fn exits_of_class(&self, class: ExitClass) -> RowSum {
        RowSum::of(self.picture.exits_of_class(class))
    }

    /// Returns the exits that may be writes of a model specific register: SVM does not tell them from reads.
    pub(crate) fn msr_writes(&self) -> RowSum {
        RowSum::of(self.picture.exits_that(ExitReason::may_write_msr))
    }

    /// Says how much of all exits those of a reason are, which `exits` found.
    pub(crate) fn says_exits(&self, reason: &str, sum: RowSum) -> Evidence {
        let all = self.all_exits();
        says!(
            "{reason}: {exits} of {all} exits ({share}), {share_of_handling} of the handling time without waits, \
             {each} each.",
            exits = sum.count,
            all = all.count,
            share = Of(sum.count, all.count),
            share_of_handling = Of(sum.ns, self.handling_ns()),
            each = Ns(sum.ns / sum.count.max(1)),
        )
        .rows_of(ExitTable::Vmexit, &self.picture.reason(&[reason]))
    }

    /// Returns what all other exits take on average in which the guest does not ask to wait.
    pub(crate) fn others_mean_ns(&self, but: RowSum) -> u64 {
        let rows = self.picture.rows(ExitTable::Vmexit).iter();
        let handled = RowSum::of(rows.filter(|row| !row.waiting));
        let count = handled.count.saturating_sub(but.count);
        handled.ns.saturating_sub(but.ns) / count.max(1)
    }

    /// Returns the rows of accesses that a test picks.
    pub(crate) fn accesses(
        &self,
        table: ExitTable,
        pick: impl Fn(&ExitRow) -> bool,
    ) -> Vec<&'a ExitRow> {
        self.picture
            .rows(table)
            .iter()
            .filter(|row| pick(row))
            .collect()
    }

    /// Returns whether time spent on exits is worth a word: a twentieth of all that exits take, and a thousandth of
    /// the time in which vCPUs had something to do.
    pub fn matters(&self, ns: u64) -> bool {
        let handling = self.handling_ns();
        let busy = self.picture.busy_ns();
        handling > 0 && ns >= handling / 20 && ns >= busy / 1000
    }

    /// Returns whether events of a kind were recorded, though none may have come, or a printed table has them.
    pub(crate) fn records(&self, event: &str, table: ExitTable) -> bool {
        self.picture.events(event).is_some() || !self.picture.rows(table).is_empty()
    }

    /// Returns whether the scheduler was recorded of the threads of one process only (perf record -p): nothing else is
    /// seen to run, nor its own threads to get a CPU.
    pub(crate) fn one_process(&self) -> bool {
        let seen = self.picture.vcpus.as_ref().map(|report| report.seen);
        seen.is_some_and(|seen| seen.switches && !seen.returns)
    }

    /// Returns whether only run times of tasks were printed: nothing is known of their waits.
    pub(crate) fn run_times_alone(&self) -> bool {
        self.printed() && !self.picture.latencies_by.has_delays()
    }

    /// Returns whether addresses of faults were recorded.
    pub(crate) fn records_addresses(&self) -> bool {
        let events = ["kvm_page_fault", "kvm_guest_fault"];
        events
            .iter()
            .any(|name| self.picture.events(name).is_some())
    }

    /// Returns seconds of the recording; one where that is not known.
    pub fn seconds(&self) -> f64 {
        match self.picture.span_ns {
            Some(ns) if ns > 0 => ns as f64 / 1e9,
            _ => 1.0,
        }
    }

    /// Returns the VMs, as events or facts beside them show them.
    pub fn vms(&self) -> &'a [Vm] {
        &self.picture.info.vms
    }

    /// Returns the threads that events and facts show to work for VMs: for who asks of many threads.
    pub(crate) fn vm_helpers(&self) -> VmHelpers {
        let vms = self.vms().iter();
        let tids = vms.flat_map(|vm| vm.pid.into_iter().chain(vm.helpers.iter().copied()));
        VmHelpers(tids.collect())
    }

    /// Returns the threads of the vCPUs.
    pub fn vcpu_tids(&self) -> HashSet<i32> {
        let of_vms = self.vms().iter().flat_map(|vm| &vm.vcpus);
        let rows = self.picture.vcpus.iter().flat_map(|report| &report.rows);
        of_vms
            .map(|vcpu| vcpu.tid)
            .chain(rows.map(|row| row.tid))
            .collect()
    }
}
