//! The host takes memory away from guests that still use it.

use analysis::UnmapRow;
use event::ExitClass;
use words::duration::human;

use crate::evidence::{Evidence, Many, Ns, Of, ThreadMention, Times, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

/// Faults of memory a second that are more than a guest that has settled makes, and how many it takes.
const PER_SECOND: f64 = 100.0;
const LEAST: u64 = 200;
/// Unmapped ranges to a fault. A guest's start, and pages that are shared and written once, have fewer.
const RATIO: f64 = 0.25;
/// Share of the vCPUs' time.
const SHARE: f64 = 0.02;

pub(crate) static RULE: Rule = Rule {
    id: "memory-taken-away",
    title: "The host takes memory away from the guest, which faults for it again",
    described_as: &[
        "the VM is slow while the host swaps",
        "guest stalls during memory pressure or ballooning",
        "KSM or NUMA balancing slows the VM",
        "kswapd runs, the guest faults",
    ],
    looks_at: "exits for memory that is not mapped, and who has memory of VMs unmapped meanwhile (kvm_unmap_hva_range)",
    needs: "kvm_exit and kvm_entry; kvm_page_fault (arm64: kvm_guest_fault), kvm_unmap_hva_range",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "Something on the host unmaps the VMM's memory: reclaim and swap (kswapd, or whoever allocates), the \
        balloon, KSM, NUMA balancing, khugepaged, or a migration of pages. The guest's next access of each page is an \
        exit, in which the page is mapped again, or read from the swap.",
    found: &[
        "{least} faults of memory, {rate} a second, that take {share} of the vCPUs' time, and a range of the VMM's \
         memory \
         that is unmapped for every four of them. Confidence 0.85. Who had it unmapped is the task that ran: kswapd is \
         reclaim, and so is whoever asks first whether pages were used (`kvm_age_hva`); ksmd is KSM; a thread of the \
         VM's own that unmaps single pages while nobody asks gives them back (the balloon), and one that unmaps large \
         ranges is NUMA balancing. That one's remedies come first.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("rate", EvidenceNumber::PerSecond(PER_SECOND)),
        ("share", EvidenceNumber::Share(SHARE)),
    ],
    seen_from: "{least} faults, {rate} a second, that take {share} of the vCPUs' time, with an unmapping for \
        every four",
    unknown: "*all*: without `kvm_unmap_hva_range` it is not known whether memory was there before.",
    advice: "",
    looks_alike: "Memory that is touched for the first time is mapped page by page \
        ([ept-violation-storm](#ept-violation-storm)); nothing is unmapped then.",
    remedies: &[
        Remedy {
            what: "Give the host more free memory, or the VM less: see memory.max, memory.high and memory.events of \
                its cgroup, free, and vmstat's si and so; move a VM away, or lower overcommitment.",
            price: "Fewer VMs on the host.",
            unless: "The VM's own cgroup is the limit: then more memory on the host does not help.",
            check: "trapline exits: fewer faults; vmstat: si and so are 0.",
        },
        Remedy {
            what: "Keep this VM's memory in RAM: <memoryBacking><locked/></memoryBacking>, or huge pages, which are \
                not swapped; memory.min and memory.low of its cgroup.",
            price: "Others are reclaimed instead, or have no memory.",
            unless: "Do not lock memory during a post-copy migration.",
            check: "trapline diagnose of a new recording.",
        },
        Remedy {
            what: "If it is KSM, NUMA balancing or khugepaged: turn it off for pinned VMs (/sys/kernel/mm/ksm/run, \
                <nosharepages/>, kernel.numa_balancing=0).",
            price: "Less memory is shared, or memory may be on another node.",
            unless: "The task that unmaps is none of these.",
            check: "trapline diagnose of a new recording.",
        },
        Remedy {
            what: "If it is the balloon: leave it alone while the guest is busy (virsh setmem DOM SIZE --live sets its \
                size; who manages it may move memory back and forth), or take it away: <memballoon model='none'/>. \
                Reports of free pages are turned off with <memballoon freePageReporting='off'/>.",
            price: "The host gets no memory back from this guest.",
            unless: "The host needs that memory: then its VMs have more than it has.",
            check: "trapline exits: fewer faults; virsh dommemstat DOM: actual stands still.",
        },
    ],
    sources: &[
        "Linux, virt/kvm/kvm_main.c (kvm_mmu_notifier_invalidate_range_start); mm/vmscan.c, mm/rmap.c (try_to_unmap)",
        "Linux, Documentation/admin-guide/cgroup-v2.rst (memory)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Asleep,
    ],
    look: RuleLook::Case(look),
};

/// Returns whether the host takes memory away: what vCPUs sleep for in KVM then.
pub(crate) fn is_taken_away(case: &Case<'_>) -> bool {
    matches!(look(case), Verdict::Found(_))
}

/// Returns the thread of the VM's own that gives most of the memory back, if that is what takes it away: the VMM does
/// nothing else in that thread meanwhile.
pub(crate) fn giver(case: &Case<'_>) -> Option<i32> {
    let row = main_taker(case)?;
    let gives = MemoryTaker::of(case, row) == MemoryTaker::GivenBack;
    (gives && is_taken_away(case)).then_some(row.tid)
}

/// Returns the task that had at least half of the ranges unmapped.
fn main_taker<'a>(case: &Case<'a>) -> Option<&'a UnmapRow> {
    let unmaps = &case.picture.unmaps;
    let mut rows = unmaps.rows.iter();
    rows.find(|row| row.unmapped >= unmaps.unmapped / 2)
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.has_exits() || case.printed() {
        return unknown();
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let Some(faults) = &case.picture.faults else {
        return unknown();
    };
    let memory = faults.memory;
    let many = memory.count >= LEAST && memory.count as f64 >= case.seconds() * PER_SECOND;
    let cost = case.vcpu_cost(memory.ns);
    if !many || cost.share < SHARE {
        return Verdict::Clear;
    }
    let unmaps = &case.picture.unmaps;
    if !unmaps.recorded {
        return unknown();
    }
    if (unmaps.unmapped as f64) < memory.count as f64 * RATIO {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    // Who did most of it; where nobody did, any of them may have.
    let taker = main_taker(case).map_or(MemoryTaker::Unknown, |row| MemoryTaker::of(case, row));
    let mut finding = Finding::new(&RULE, 0.85)
        .only(taker.remedies())
        .cost(cost)
        .title(format!(
            "{} took memory away from the guest {} times, and it faulted {} times for it, {}",
            taker.subject(),
            unmaps.unmapped,
            memory.count,
            human(memory.ns)
        ))
        .evidence(says!(
            "Exits for memory that was not mapped: {faults}, {time} ({share} of the vCPUs' time), {each} each.",
            faults = memory.count,
            time = Ns(memory.ns),
            share = Of(memory.ns, case.picture.observed_ns()),
            each = Ns(memory.ns / memory.count.max(1)),
        ))
        .evidence(says!(
            "Meanwhile {ranges} of VMs' memory were unmapped, and {pages} asked for whether they were used.",
            ranges = Many(unmaps.unmapped, "range"),
            pages = Many(unmaps.aged, "page"),
        ));
    // Its effect, and no finding beside it.
    let stalls = case.picture.stalls.iter();
    let asleep = stalls.flat_map(|stalls| &stalls.asleep);
    if let Some((tid, ns)) = asleep.max_by_key(|(_, ns)| *ns) {
        finding = finding.evidence(says!(
            "{vcpu} slept uninterruptibly in KVM for {time} of it, while its pages were read back.",
            vcpu = case.vcpu_called(*tid).capital(),
            time = Ns(*ns),
        ));
    }
    for row in unmaps.rows.iter().filter(|row| row.unmapped > 0).take(4) {
        finding = finding.evidence(actor(case, row, unmaps.unmapped));
    }
    for line in counted(case) {
        finding = finding.evidence(line);
    }
    finding.found()
}

/// What the host counted meanwhile, and which limits of the VM's memory were reached.
fn counted(case: &Case<'_>) -> Vec<Evidence> {
    let mut out = Vec::new();
    let during = |name| case.counted_during(name).unwrap_or(0);
    let (swapped_in, swapped_out) = (during("vmstat.pswpin"), during("vmstat.pswpout"));
    if swapped_in > 0 || swapped_out > 0 {
        out.push(says!(
            "The host read {pages_in} from its swap during the recording, and wrote {pages_out} to it.",
            pages_in = Many(swapped_in, "page"),
            pages_out = Many(swapped_out, "page"),
        ));
    }
    let pressure = during("memory.pressure.some");
    if pressure > 0 {
        out.push(says!(
            "Some task waited for memory for {time} of the recording (/proc/pressure/memory).",
            time = Ns(pressure.saturating_mul(1000)),
        ));
    }
    let mut groups: Vec<_> = case.groups().collect();
    groups.dedup_by_key(|group| &group.path);
    for (limit, event) in [
        ("memory.high", "memory.events.high"),
        ("memory.max", "memory.events.max"),
    ] {
        let reached = groups.iter().find_map(|group| {
            let limit = group.limits.get(limit).filter(|limit| *limit != "max")?;
            let times = group.counted(event).filter(|times| *times > 0)?;
            Some((group, limit, times))
        });
        if let Some((group, bytes, times)) = reached {
            out.push(says!(
                "The control group {path} has {limit} {bytes}, which was reached {times}.",
                path = group.path.as_str(),
                limit = limit,
                bytes = bytes.as_str(),
                times = Times(times),
            ));
        }
    }
    out
}

/// What has memory unmapped, by who does it and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryTaker {
    /// kswapd, or a task that needs memory itself.
    Reclaim,
    /// KSM maps one page for several that are equal.
    Ksm,
    /// khugepaged and kcompactd move pages.
    Moves,
    /// A thread of the VM's own gives single pages back, which nobody asked for whether they were used: the guest's
    /// balloon, or pages that it reports as free.
    GivenBack,
    /// A thread of the VM's own has large ranges unmapped, to see where they are used from.
    NumaBalancing,
    Unknown,
}

/// A range of so many bytes is a page table's whole: NUMA balancing takes these together (`change_pmd_range` of
/// `mm/mprotect.c`).
const LARGE: u64 = 64 << 10;

impl MemoryTaker {
    fn of(case: &Case<'_>, row: &UnmapRow) -> MemoryTaker {
        let comm = row.comm.as_deref().unwrap_or_default();
        let own = case.vms().iter().any(|vm| vm.is_of(row.tid));
        let mean = row.unmapped_bytes / row.unmapped.max(1);
        match comm {
            _ if comm.starts_with("kswapd") => MemoryTaker::Reclaim,
            _ if comm.starts_with("ksmd") => MemoryTaker::Ksm,
            _ if comm.starts_with("khugepaged") || comm.starts_with("kcompactd") => {
                MemoryTaker::Moves
            }
            // Reclaim asks whether a page was used before it takes it.
            _ if row.aged > 0 => MemoryTaker::Reclaim,
            _ if own && mean >= LARGE => MemoryTaker::NumaBalancing,
            _ if own && mean > 0 && case.picture.unmaps.aged == 0 => MemoryTaker::GivenBack,
            _ => MemoryTaker::Unknown,
        }
    }

    /// Returns who does it, as the subject of a sentence.
    fn subject(self) -> &'static str {
        match self {
            MemoryTaker::Reclaim => "The host's reclaim",
            MemoryTaker::Ksm => "KSM",
            MemoryTaker::Moves | MemoryTaker::NumaBalancing | MemoryTaker::Unknown => "The host",
            MemoryTaker::GivenBack => "The VM's balloon, or its reports of free pages,",
        }
    }

    /// Returns what it is, behind a colon.
    fn words(self) -> &'static str {
        match self {
            MemoryTaker::Reclaim => ": reclaim",
            MemoryTaker::Ksm => ": KSM",
            MemoryTaker::Moves => ": pages are moved together",
            MemoryTaker::GivenBack => {
                ": a thread of the VM's own, which gives single pages back (balloon, free pages)"
            }
            MemoryTaker::NumaBalancing => {
                ": a thread of the VM's own, in large ranges, as NUMA balancing does"
            }
            MemoryTaker::Unknown => "",
        }
    }

    /// Returns the remedies that help against it, best first.
    fn remedies(self) -> &'static [usize] {
        match self {
            MemoryTaker::Reclaim => &[0, 1],
            MemoryTaker::Ksm | MemoryTaker::Moves | MemoryTaker::NumaBalancing => &[2, 1],
            MemoryTaker::GivenBack => &[3, 0],
            MemoryTaker::Unknown => &[0, 1, 2, 3],
        }
    }
}

/// Who had memory unmapped.
fn actor(case: &Case<'_>, row: &UnmapRow, all: u64) -> Evidence {
    let comm = row.comm.as_deref().unwrap_or("a task without a name");
    says!(
        "{task} had {ranges} of them unmapped ({share}){what}.",
        task = ThreadMention::named(comm, row.tid),
        ranges = row.unmapped,
        share = Of(row.unmapped, all),
        what = MemoryTaker::of(case, row).words(),
    )
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record kvm:kvm_exit, kvm:kvm_entry, kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault) and \
         kvm:kvm_unmap_hva_range."
            .to_owned(),
    )
}
