//! What else a change needs, seen when all are made.

use crate::change::{DeviceChoice, DomainChange};
use crate::data::{Disk, Domain};
use crate::error::{DomainError, DomainNote, NoteKind};
use crate::page::DomainText;
use crate::tree;

/// What QEMU wants of an enlightenment's others (its `docs/system/i386/hyperv.rst`); `hypervclock` is the timer that it
/// calls `hv-time`.
const NEEDS: &[(&str, &[&str])] = &[
    ("synic", &["vpindex"]),
    ("stimer", &["vpindex", "synic", "hypervclock"]),
    (
        "stimer-direct",
        &["vpindex", "synic", "stimer", "hypervclock"],
    ),
    ("tlbflush", &["vpindex"]),
    ("ipi", &["vpindex"]),
    ("evmcs", &["vapic"]),
];

/// Adds a note for what a change needs that the document does not have; notes are put in the changes' order.
pub(super) fn add(
    text: &str,
    changes: &[DomainChange],
    notes: &mut Vec<DomainNote>,
) -> Result<(), DomainError> {
    let page = DomainText::new(text)?;
    let line = {
        let at = tree::domain(page.doc())?.range().start;
        crate::error::position(text, at).0
    };
    let (domain, _) = crate::parse(text)?;
    let refused: Vec<_> = notes
        .iter()
        .filter(|note| note.kind == NoteKind::Refused)
        .filter_map(|note| note.change)
        .collect();
    for (index, change) in changes.iter().enumerate() {
        if !refused.contains(&index)
            && let Some(what) = of(change, &domain)
        {
            notes.push(DomainNote {
                kind: NoteKind::Advice,
                line,
                change: Some(index),
                what,
            });
        }
    }
    notes.sort_by_key(|note| note.change);
    Ok(())
}

fn find<'d>(domain: &'d Domain, which: &DeviceChoice) -> Option<&'d Disk> {
    match which {
        DeviceChoice::Index(index) => domain.disks.get(*index),
        DeviceChoice::Name(name) => domain.disk(name),
    }
}

/// Returns whether there is an iothread of a number.
fn has_iothread(domain: &Domain, iothread: u32) -> bool {
    let count = domain.iothreads.unwrap_or(0);
    if domain.iothread_ids.is_empty() {
        return (1..=count).contains(&iothread);
    }
    // Numbers that are not written are given from 1 on (virDomainDefIOThreadsFill).
    let reported = u32::try_from(domain.iothread_ids.len()).unwrap_or(u32::MAX);
    domain.iothread_ids.contains(&iothread) || (count > reported && iothread <= count)
}

/// Returns whether the guest has an enlightenment; all are there with `passthrough`, the clock among them.
fn is_on(name: &str, domain: &Domain) -> bool {
    let clock = || domain.timer("hypervclock").and_then(|timer| timer.present);
    (name == "hypervclock" && clock() == Some(true)) || domain.hyperv_on(name) == Some(true)
}

/// Returns what still needs an enlightenment that was taken away.
fn needed(name: &str, domain: &Domain) -> Option<String> {
    let needing = NEEDS.iter().filter(|(_, needs)| needs.contains(&name));
    let still = needing
        .filter(|(of, _)| is_on(of, domain))
        .map(|(of, _)| *of);
    let still: Vec<_> = still.collect();
    (!still.is_empty()).then(|| {
        format!(
            "{} needs {name}, without which QEMU does not start the guest: take it away too",
            still.join(" and ")
        )
    })
}

fn of(change: &DomainChange, domain: &Domain) -> Option<String> {
    match change {
        DomainChange::HypervFeature { name, on: false } => needed(name, domain),
        DomainChange::Timer {
            name,
            present: false,
        } => needed(name, domain),
        DomainChange::HypervFeature { name, on: true } => {
            let (_, needs) = NEEDS.iter().find(|(of, _)| of == name)?;
            let is_missing = |need: &&str| !is_on(need, domain);
            let missing: Vec<_> = needs.iter().copied().filter(is_missing).collect();
            (!missing.is_empty()).then(|| {
                format!(
                    "{name} needs {} too, without which QEMU does not start the guest",
                    missing.join(" and ")
                )
            })
        }
        DomainChange::DiskIothread { iothread, .. }
        | DomainChange::ControllerIothread { iothread, .. }
        | DomainChange::IothreadPin { iothread, .. } => (!has_iothread(domain, *iothread)).then(|| {
            format!(
                "there is no iothread {iothread}: the domain needs <iothreads> of so many at least"
            )
        }),
        DomainChange::DiskIo { disk, .. } | DomainChange::DiskCache { disk, .. } => {
            let disk = find(domain, disk)?;
            let direct = matches!(disk.cache.as_deref(), Some("none" | "directsync"));
            (disk.io.as_deref() == Some("native") && !direct).then(|| {
                "io='native' works with cache='none' or cache='directsync' only: \
                 libvirt refuses it with others"
                    .to_owned()
            })
        }
        // qemuValidateDomainDefFeatures
        DomainChange::KvmFeature { name, on: true } if name == "hint-dedicated" => {
            let mode = domain.cpu_mode.as_deref();
            (!matches!(mode, Some("host-passthrough" | "maximum"))).then(|| {
                "libvirt takes hint-dedicated only with <cpu mode='host-passthrough'> or 'maximum'"
                    .to_owned()
            })
        }
        DomainChange::ConsoleVirtio => Some(
            "the guest has to use it: console=hvc0 on a Linux guest's kernel command line, \
             in the place of the serial port"
                .to_owned(),
        ),
        DomainChange::MemoryLocked => Some(
            "libvirt advises a <memtune><hard_limit> beside <locked/>, \
             above all that QEMU may need: else QEMU may lock all of the host's memory"
                .to_owned(),
        ),
        DomainChange::HugePages { .. } => Some(
            "the host has to have as many huge pages free as the guest has memory, \
             else it does not start"
                .to_owned(),
        ),
        _ => None,
    }
}
