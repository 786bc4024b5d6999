//! A guest on Intel VMX that made a known number of every kind of exit, and counted them itself.
//!
//! What the guest did is in `guest-counts.*.json`: its own operations, the exits to user space its VMM saw,
//! and KVM's statistics of each vCPU. Which operation costs which exits is the architecture's and KVM's: a
//! read of the local APIC faults twice without APICv, for KVM maps the page and lets the guest try again;
//! `rep outsb` of 16 bytes is 17 exits in Linux 6.1.

use std::collections::BTreeMap;

use analysis::ExitTable;
use fixtures::json::number;
use fixtures::{CorpusCase, Failures, FixtureQuestion, all_cases, read};
use serde_json::Value;

/// Counts by exit reason.
type Counts = BTreeMap<String, u64>;

/// Returns what the exits table of one vCPU counts, timed or not.
fn counts(case: &CorpusCase, vcpu: u32) -> (Counts, u64) {
    let document = FixtureQuestion::new().vcpu(vcpu).exits_document(&case.path);
    let document = document.expect("it reads");
    let mut counts = Counts::new();
    for row in document["rows"].as_array().expect("rows") {
        let key = row["key"].as_str().expect("a key");
        counts.insert(key.to_owned(), number(row, "count"));
    }
    // An exit behind which the recording ends has no duration; a warning names it.
    let mut untimed = 0;
    for warning in document["quality"]["warnings"].as_array().expect("a list") {
        let warning = warning.as_str().expect("a sentence");
        let Some((_, list)) = warning
            .strip_prefix("Not timed, ")
            .and_then(|rest| rest.split_once(": "))
        else {
            continue;
        };
        for item in list.trim_end_matches('.').split(", ") {
            let (count, reason) = item.split_once(' ').expect("a count and a reason");
            let count: u64 = count.parse().expect("a count");
            *counts.entry(reason.to_owned()).or_default() += count;
            untimed += count;
        }
    }
    (counts, untimed)
}

/// Returns the counts of one of the other tables.
fn accesses(case: &CorpusCase, vcpu: u32, table: ExitTable) -> Counts {
    let document = FixtureQuestion::new()
        .vcpu(vcpu)
        .table(table)
        .exits_document(&case.path);
    let document = document.expect("it reads");
    let rows = document["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let key = row["key"].as_str().expect("a key").to_owned();
        (key, number(row, "count"))
    })
    .collect()
}

/// One vCPU's own counts.
struct Truth<'a>(&'a Value);

impl Truth<'_> {
    /// How often the guest did something.
    fn did(&self, operation: &str) -> u64 {
        number(&self.0["guest_operations"][operation], "count")
    }

    /// What KVM's statistics of the vCPU say.
    fn kvm(&self, name: &str) -> u64 {
        number(&self.0["kvm_stats"], name)
    }

    /// Exits to user space: `0x608:POUT`, `0xfed000f0:R` and how many.
    fn user_exits(&self) -> Vec<(String, u64)> {
        let list = self.0["userspace_exits"].as_array().expect("a list").iter();
        list.map(|exit| {
            let write = number(exit, "write") == 1;
            let key = match exit["port"].as_str() {
                Some(port) => format!("{port}:{}", if write { "POUT" } else { "PIN" }),
                None => {
                    let gpa = exit["gpa"].as_str().expect("a port or an address");
                    format!("{gpa}:{}", if write { "W" } else { "R" })
                }
            };
            (key, number(exit, "count"))
        })
        .collect()
    }
}

#[test]
fn exits_equal_what_the_guest_counted() {
    let mut failures = Failures::default();
    for case in all_cases() {
        let Some(file) = &case.guest_counts else {
            continue;
        };
        let document: Value = serde_json::from_slice(&read(file)).expect("JSON");
        for vcpu in document["vcpu"].as_array().expect("vCPUs") {
            let truth = Truth(vcpu);
            let id = number(vcpu, "id") as u32;
            let (ours, untimed) = counts(&case, id);
            let ours = |reason: &str| ours.get(reason).copied().unwrap_or(0);
            let what = |reason: &str| format!("{} vCPU {id} {reason}", case.name);
            let did = |operation: &str| truth.did(operation);

            let user_exits: BTreeMap<String, u64> = truth.user_exits().into_iter().collect();
            let marks = user_exits["0x80:POUT"] + user_exits["0xf4:POUT"];
            let io = did("out_608_b") + did("in_608_l") + 2 * did("rtc_70_71") + did("out_3f8_b");
            let io = io + did("in_3fd_b") + 17 * did("rep_outsb") + did("pic_in") + did("pit_in");
            for (reason, expected) in [
                ("IO_INSTRUCTION", io + marks),
                ("CPUID", did("cpuid_") + did("cpuid_1")),
                (
                    "MSR_READ",
                    did("rdmsr_1b") + did("rdmsr_pat") + did("rdmsr_bad"),
                ),
                ("MSR_WRITE", did("wrmsr_pat") + did("wrmsr_3b")),
                ("VMCALL", did("vmcall_")),
                ("WBINVD", did("wbinvd_")),
                ("XSETBV", did("xsetbv_")),
                // The first xsetbv needs CR4.OSXSAVE set.
                ("CR_ACCESS", did("cr0w") + did("cr4w") + 1),
                ("PREEMPTION_TIMER", did("spin_timer")),
                ("HLT", truth.kvm("halt_exits")),
                ("EXTERNAL_INTERRUPT", truth.kvm("irq_exits")),
            ] {
                failures.equal(&what(reason), &ours(reason), &expected);
            }

            // Accesses to pages that are not there: devices, and memory touched for the first time.
            let mmio =
                did("mmio_w_hpet") + did("mmio_r_hpet") + did("mmio_w_unb") + did("mmio_r_unb");
            let ioapic = 2 * did("ioapic_r");
            let setup = 4;
            let end_of_interrupt = number(vcpu, "guest_timer_irqs") + number(vcpu, "guest_ipis");
            let timers = did("hlt_timer") + did("spin_timer");
            // vCPU 0 sends: two writes of the interrupt command register each.
            let sends = if id == 0 { 2 * did("ipi") } else { 0 };
            let lapic =
                2 * did("lapic_r") + did("lapic_w") + setup + end_of_interrupt + timers + sends;
            let counted = mmio + ioapic + lapic + did("touch");
            let faults = ours("EPT_VIOLATION") + ours("EPT_MISCONFIG");
            // The handful beyond that: pages of code, stack and tables, which the guest does not count. KVM
            // does: faults it took that were not accesses to devices, less those of the pages the guest
            // counted. (Mapped at once or, when the other vCPU held the lock, at the second try.)
            let mapped = truth.kvm("pf_taken") - truth.kvm("pf_emulate");
            let extra = mapped - did("touch");
            failures.equal(&what("page faults"), &faults, &(counted + extra));
            failures.check((1..=5).contains(&extra), || {
                what(&format!("{extra} page faults that the guest did not count"))
            });
            failures.equal(
                &what("EPT_VIOLATION"),
                &ours("EPT_VIOLATION"),
                &truth.kvm("pf_taken"),
            );

            // The rest is the PAUSE loop, whose length the guest does not know: all together is KVM's count.
            let (all, _) = counts(&case, id);
            let all: u64 = all.values().sum();
            failures.equal(&what("all exits"), &all, &truth.kvm("exits"));
            failures.check(untimed <= 1, || what(&format!("{untimed} exits not timed")));

            // By port and address, as the VMM saw them.
            let mut ports = accesses(&case, id, ExitTable::Ioport);
            let mut addresses = accesses(&case, id, ExitTable::Mmio);
            for (key, expected) in truth.user_exits() {
                let found = ports.remove(&key).or_else(|| addresses.remove(&key));
                // The last one ends the guest: no entry follows, so it has no duration.
                let expected = if key == "0xf4:POUT" { 0 } else { expected };
                failures.equal(&what(&key), &found.unwrap_or(0), &expected);
            }
            // What is left never reaches the VMM: the interrupt controllers and the timer inside KVM.
            let inside = Counts::from([
                ("0x21:PIN".to_owned(), did("pic_in")),
                ("0x40:PIN".to_owned(), did("pit_in")),
            ]);
            failures.equal(&what("ports inside KVM"), &ports, &inside);
            let ipis = if id == 0 { did("ipi") } else { 0 };
            let inside = [
                ("0xfec00000:W", did("ioapic_r")),
                ("0xfec00010:R", did("ioapic_r")),
                ("0xfee00020:R", did("lapic_r")),
                // One write of each of these four set the local APIC up.
                ("0xfee00080:W", did("lapic_w") + 1),
                ("0xfee000f0:W", 1),
                ("0xfee00320:W", 1),
                ("0xfee003e0:W", 1),
                ("0xfee000b0:W", end_of_interrupt),
                ("0xfee00300:W", ipis),
                ("0xfee00310:W", ipis),
                ("0xfee00380:W", timers),
            ];
            let inside = inside.into_iter().filter(|&(_, count)| count > 0);
            let inside: Counts = inside.map(|(key, n)| (key.to_owned(), n)).collect();
            failures.equal(&what("addresses inside KVM"), &addresses, &inside);
            let registers = Counts::from([
                ("0x1b:R".to_owned(), did("rdmsr_1b")),
                ("0x277:R".to_owned(), did("rdmsr_pat")),
                ("0x277:W".to_owned(), did("wrmsr_pat")),
                ("0x3b:W".to_owned(), did("wrmsr_3b")),
                ("0xdead:R".to_owned(), did("rdmsr_bad")),
            ]);
            failures.equal(
                &what("registers"),
                &accesses(&case, id, ExitTable::Msr),
                &registers,
            );
        }
    }
    failures.finish(150);
}
