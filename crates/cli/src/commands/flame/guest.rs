//! `--guest REC`: a recording made inside a guest, in the place of what the host knows of it.

use std::path::PathBuf;

use analysis::{Profile, ProfileReport, VcpuThread, VcpusReport, WalkState};
use anyhow::{Result, anyhow, bail};
use model::Vm;
use session::{GuestStacks, NamedGuest, OpenRecording, Session, SessionOptions};

/// A recording made inside a guest, and the VM whose it is if that is said.
#[derive(Debug, Clone)]
pub(super) struct GuestRecording {
    vm: Option<String>,
    path: PathBuf,
}

impl From<&NamedGuest> for GuestRecording {
    fn from(guest: &NamedGuest) -> GuestRecording {
        GuestRecording {
            vm: guest.vm.clone(),
            path: guest.path.clone(),
        }
    }
}

/// Returns the threads of the host that are vCPUs of a guest's VM. Where several VMs are left, `paired` says which they
/// are, by the events of both.
fn chosen(
    name: &str,
    guest: Option<&str>,
    vms: &[Vm],
    vcpus: Vec<VcpuThread>,
    paired: impl FnOnce() -> Result<Vec<(u32, i32)>>,
) -> Result<Vec<VcpuThread>> {
    let mut pids: Vec<Option<i32>> = vcpus.iter().map(|vcpu| vcpu.vm_pid).collect();
    pids.sort_unstable();
    pids.dedup();
    if pids.is_empty() {
        bail!(
            "{name}: no thread of the host's recording is known as a vCPU, so no guest has a place in it"
        );
    }
    let Some(guest) = guest else {
        if pids.len() == 1 {
            return Ok(vcpus);
        }
        let paired = paired().map_err(|error| {
            anyhow!(
                "{name}: the host's recording has several VMs, {}; say whose guest this is with --guest NAME={name} \
                 (its events do not: {error})",
                list(&pids)
            )
        })?;
        let of = |vcpu: &VcpuThread| paired.iter().any(|(_, tid)| *tid == vcpu.tid);
        return Ok(vcpus.into_iter().filter(of).collect());
    };
    let vm = vms.iter().find(|vm| vm.is_called(guest));
    let pid = guest.parse::<i32>().ok();
    let of = |vcpu: &VcpuThread| match vm {
        Some(vm) => vm.vcpus.iter().any(|one| one.tid == vcpu.tid),
        None => pid.is_some() && vcpu.vm_pid == pid,
    };
    let found: Vec<VcpuThread> = vcpus.into_iter().filter(of).collect();
    if found.is_empty() {
        bail!(
            "--guest {guest}={name}: the host's recording has no VM that is called so, or has that process, only {}",
            list(&pids)
        );
    }
    Ok(found)
}

impl GuestRecording {
    /// Walks the guest's recording, and finds out which threads of the host are its vCPUs. `inside` is what it is read
    /// with.
    pub(super) fn stacks(
        &self,
        inside: &Session,
        recording: &OpenRecording<'_>,
        host: &Profile,
        walked: &WalkState<'_>,
    ) -> Result<GuestStacks> {
        let name = self.path.display().to_string();
        let vcpus = chosen(
            &name,
            self.vm.as_deref(),
            recording.vms(),
            host.vcpu_threads(recording.vms(), walked.machine),
            || {
                let session = Session::open(SessionOptions::default())?;
                let input = session.input(&self.path)?;
                let guests = recording.guests(vec![input.guest(None)?])?;
                let vcpus = guests.iter().flat_map(|guest| guest.vcpus());
                Ok(vcpus.copied().collect())
            },
        )?;
        let input = inside.input(&self.path)?;
        let opened = input.recording_with_symbols()?;
        opened.guest_stacks(vcpus).ok_or_else(|| {
            anyhow!("{name}: holds no samples; record inside the guest with 'trapline agent'")
        })
    }
}

/// Refuses two recordings of one guest.
pub(super) fn each_of_its_own(guests: &[GuestStacks]) -> Result<()> {
    for (at, one) in guests.iter().enumerate() {
        let vcpus = &one.side().vcpus;
        let same = |other: &&GuestStacks| {
            let mut theirs = other.side().vcpus.iter();
            theirs.any(|vcpu| vcpus.iter().any(|own| own.tid == vcpu.tid))
        };
        if let Some(other) = guests.iter().take(at).find(same) {
            bail!(
                "{}: the VM whose guest it is taken for has another recording, {}; say whose each is with --guest \
                 NAME=REC",
                one.name(),
                other.name()
            );
        }
    }
    Ok(())
}

fn list(vms: &[Option<i32>]) -> String {
    let names = vms.iter().map(|pid| match pid {
        Some(pid) => pid.to_string(),
        None => "one whose process is not known".to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Refuses a guest of which the host does not say how long it ran.
pub(super) fn check(guest: &GuestStacks, report: &ProfileReport) -> Result<()> {
    match guest.has_place(report) {
        true => Ok(()),
        false => Err(anyhow!("{}", guest.without_place())),
    }
}

/// Returns how long vCPUs were in their guests, by thread, where events of KVM say so.
pub(super) fn guest_ns(vcpus: Option<&VcpusReport>) -> Vec<(i32, u64)> {
    let rows = vcpus.into_iter().flat_map(|report| &report.rows);
    let known = rows.filter(|row| row.exits > 0);
    known
        .map(|row| (row.tid, row.times.get(model::State::Guest)))
        .collect()
}

#[cfg(test)]
mod tests {
    use analysis::VcpuBy;
    use model::Vcpu;

    use super::*;

    /// Two VMs with a vCPU each: `web`, process 100, and `db`, process 200.
    fn two() -> (Vec<Vm>, Vec<VcpuThread>) {
        let vms = [("web", 100), ("db", 200)].map(|(name, pid)| Vm {
            pid: Some(pid),
            name: Some(name.to_owned()),
            process: None,
            uuid: None,
            vcpus: vec![Vcpu {
                id: 0,
                tid: pid + 1,
                thread: 0,
            }],
            helpers: Vec::new(),
            guessed: false,
            presumed: false,
        });
        let vcpus = [100, 200].map(|pid| VcpuThread {
            vm_pid: Some(pid),
            tid: pid + 1,
            vcpu: 0,
            by: VcpuBy::Events,
        });
        (vms.to_vec(), vcpus.to_vec())
    }

    fn tids(guest: Option<&str>, paired: Result<Vec<(u32, i32)>>) -> Result<Vec<i32>> {
        let (vms, vcpus) = two();
        let found = chosen("guest.data", guest, &vms, vcpus, || paired)?;
        Ok(found.iter().map(|vcpu| vcpu.tid).collect())
    }

    #[test]
    fn a_guest_is_of_the_vm_that_is_said_or_that_events_show() {
        let unasked = || Err(anyhow!("nobody asked"));
        for (guest, tid) in [("web", 101), ("100", 101), ("db", 201), ("200", 201)] {
            assert_eq!(
                tids(Some(guest), unasked()).ok(),
                Some(vec![tid]),
                "{guest}"
            );
        }
        assert_eq!(tids(None, Ok(vec![(0, 201)])).ok(), Some(vec![201]));
        let error = |found: Result<Vec<i32>>| found.expect_err("it is refused").to_string();
        let several = error(tids(None, Err(anyhow!("it has no kvm_entry"))));
        assert!(
            several.contains("several VMs, 100, 200") && several.contains("kvm_entry"),
            "{several}"
        );
        let nobody = error(tids(Some("mail"), unasked()));
        assert!(nobody.contains("only 100, 200"), "{nobody}");
        // One VM needs neither.
        let (vms, mut vcpus) = two();
        vcpus.truncate(1);
        let one = chosen("guest.data", None, &vms, vcpus, unasked);
        assert_eq!(one.map(|one| one.len()).ok(), Some(1));
        assert!(
            error(chosen("guest.data", None, &[], Vec::new(), unasked).map(|_| Vec::new()))
                .contains("no thread")
        );
    }
}
