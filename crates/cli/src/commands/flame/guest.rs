//! `--guest REC`: a recording made inside a guest, in the place of what the host knows of it.

use std::path::{Path, PathBuf};

use analysis::{
    GuestSide, Namer, Profile, ProfileBy, ProfileOptions, ProfileReport, Study, VcpuBy, Vcpus,
    Walked,
};
use anyhow::{Result, bail};
use session::{BinaryOptions, Options, Scope, Session};

use crate::args::Common;

/// A recording made inside a guest, and the process of its VM if that is said.
#[derive(Debug, Clone)]
pub(super) struct GuestRecording {
    vm_pid: Option<i32>,
    path: PathBuf,
}

/// Reads `PID=REC`, or a path alone.
pub(super) fn parse(text: &str) -> Result<GuestRecording, String> {
    let (vm_pid, path) = match text.split_once('=') {
        Some((pid, path)) if pid.parse::<i32>().is_ok() => (pid.parse().ok(), path),
        _ => (None, text),
    };
    if path.is_empty() {
        return Err("names no recording".to_owned());
    }
    let path = path.into();
    Ok(GuestRecording { vm_pid, path })
}

/// What was recorded inside a guest, ready to be put in its place.
#[derive(Debug)]
pub(super) struct Ready {
    pub side: GuestSide,
    name: String,
    /// CPUs that the guest had, if its recording says so, and vCPUs that the host has of it.
    cpus: Option<u32>,
}

impl GuestRecording {
    /// Walks the guest's recording, and finds out which threads of the host are its vCPUs.
    pub(super) fn side(
        &self,
        common: &Common,
        kallsyms: Option<&Path>,
        binaries: BinaryOptions,
        host: &Profile,
        walked: &Walked<'_>,
    ) -> Result<Ready> {
        let name = self.path.display().to_string();
        let mut vcpus = host.vcpu_threads(walked.machine);
        let mut vms: Vec<Option<i32>> = vcpus.iter().map(|vcpu| vcpu.vm_pid).collect();
        vms.sort_unstable();
        vms.dedup();
        match (self.vm_pid, vms.len()) {
            (_, 0) => bail!(
                "{name}: no thread of the host's recording is known as a vCPU, so no guest has a place in it"
            ),
            (Some(pid), _) if !vms.contains(&Some(pid)) => {
                bail!(
                    "--guest {pid}={name}: the host's recording has no VM with process {pid}, only {}",
                    list(&vms)
                )
            }
            (Some(pid), _) => vcpus.retain(|vcpu| vcpu.vm_pid == Some(pid)),
            (None, 1) => {}
            (None, _) => bail!(
                "{name}: the host's recording has several VMs, {}; say whose guest this is with --guest PID={name}",
                list(&vms)
            ),
        }
        let session = Session::open(Options {
            spool_limit: common.spool_limit,
            kallsyms: kallsyms.map(Path::to_owned),
            // Files without a build id are the host's.
            binaries: BinaryOptions {
                symfs: None,
                ..binaries
            },
            ..Options::default()
        })?;
        let input = session.input(&self.path)?;
        let recording = input.recording_with_symbols()?;
        let options = ProfileOptions {
            idle: true,
            by: ProfileBy::Cpu,
            ..ProfileOptions::default()
        };
        let mut study = Study::default().with(Profile::new(options, &recording.kernel_files()));
        recording.prepare(&mut study);
        recording.walk_filtered(&mut study, Scope::Events);
        study.finish();
        let namer = Namer {
            host: recording.functions(),
            ..Namer::default()
        };
        let mut user = recording.user_functions();
        let side = study
            .get::<Profile>()
            .map(|profile| profile.guest_side(&study.walked(), namer, &mut user));
        let Some(mut side) = side.filter(|side| !side.cpus.is_empty() || side.idle.samples > 0)
        else {
            bail!("{name}: holds no samples; record inside the guest with 'perf record -a -g'");
        };
        side.vcpus = vcpus;
        Ok(Ready {
            side,
            name,
            cpus: recording.header().cpus,
        })
    }
}

fn list(vms: &[Option<i32>]) -> String {
    let names = vms.iter().map(|pid| match pid {
        Some(pid) => pid.to_string(),
        None => "one whose process is not known".to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

impl Ready {
    /// Refuses where the host does not say how long the guest ran.
    pub(super) fn check(&self, report: &ProfileReport) -> Result<()> {
        if report.spliced.iter().any(|one| one.guest.amount > 0) {
            return Ok(());
        }
        bail!(
            "{}: nothing of it has a place: the host's recording does not say how long vCPUs were in this guest; record the host \
             with 'perf kvm --host --guest record -a -g', or with kvm events and switches for --both",
            self.name
        );
    }

    /// Returns what the relation of host and guest rests on, in sentences.
    pub(super) fn warnings(&self, report: &ProfileReport) -> Vec<String> {
        let vcpus = &self.side.vcpus;
        let by = match vcpus.first().map(|vcpu| vcpu.by) {
            Some(VcpuBy::Events) => "by events of KVM",
            Some(VcpuBy::Name) => "by their names",
            _ => "by the order of their ids, which is a guess",
        };
        let mut warnings = vec![format!(
            "{}: CPU n of the guest is taken for vCPU n, and the host's threads for vCPUs {by}. Clocks are not related: all of both \
             recordings counts.",
            self.name
        )];
        if let Some(cpus) = self.cpus.filter(|cpus| *cpus as usize != vcpus.len()) {
            warnings.push(format!(
                "{}: the guest had {}, and the host's recording has {} of it: some may be another's.",
                self.name,
                words::plural(cpus, "CPU"),
                words::plural(vcpus.len() as u64, "vCPU"),
            ));
        }
        for one in report.spliced.iter().filter(|one| one.guest.amount == 0) {
            warnings.push(format!(
                "{}: has no samples of CPU {}: what the host knows of it stays [guest].",
                self.name, one.vcpu.vcpu
            ));
        }
        warnings
    }
}

/// Returns how long vCPUs were in their guests, by thread, where events of KVM say so.
pub(super) fn guest_ns(study: &Study) -> Vec<(i32, u64)> {
    let walked = study.walked();
    let vcpus = study.get::<Vcpus>().map(|vcpus| vcpus.report(&walked));
    let rows = vcpus.into_iter().flat_map(|report| report.rows);
    let known = rows.filter(|row| row.exits > 0);
    known
        .map(|row| (row.tid, row.times.get(model::State::Guest)))
        .collect()
}
