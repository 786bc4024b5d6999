//! Stacks that were recorded inside a guest, in the place of what its host's recording knows of it.

use analysis::{
    FunctionNamer, GuestSide, Profile, ProfileBy, ProfileOptions, ProfileReport, Study, VcpuBy,
    VcpuThread,
};
use binaries::SearchOptions;
use doubts::{Doubt, DoubtKind, Doubts};
use model::Machine;

use crate::{Error, FilterScope, Guest, OpenRecording, Session, SessionOptions};

/// What was recorded inside a guest, ready to be put in its place.
#[derive(Debug)]
pub struct GuestStacks {
    side: GuestSide,
    name: String,
    /// CPUs that the guest had, if its recording says so.
    cpus: Option<u32>,
}

impl Session {
    /// Returns what recordings made inside guests are read with to name their functions, where this one is their
    /// host's: the kernel's symbols are those of `--guest-kallsyms`, and files without a build id, which are looked for
    /// by their paths, are the host's and none of theirs. Filters are the host's too.
    ///
    /// # Errors
    ///
    /// Fails when the symbols cannot be used.
    pub fn inside(&self) -> Result<Session, Error> {
        let options = self.options();
        Session::open(SessionOptions {
            spool_limit: options.spool_limit,
            kallsyms: options.guest_kallsyms.clone(),
            binaries: SearchOptions {
                symfs: None,
                ..options.binaries.clone()
            },
            kernels: SearchOptions {
                symfs: None,
                ..options.kernels.clone()
            },
            ..SessionOptions::default()
        })
    }
}

impl OpenRecording<'_> {
    /// Collects the stacks of this recording, which was made inside a guest; `vcpus` are the threads of the host that
    /// are its vCPUs. `None` where it has no samples.
    pub fn guest_stacks(&self, vcpus: Vec<VcpuThread>) -> Option<GuestStacks> {
        let options = ProfileOptions {
            idle: true,
            by: ProfileBy::Cpu,
            ..ProfileOptions::default()
        };
        let mut study = Study::default();
        let profile = study.add(Profile::new(options, &self.kernel_files()));
        self.prepare(&mut study);
        self.walk_filtered(&mut study, FilterScope::Events);
        let profile = study.finish().take(profile);
        let namer = FunctionNamer {
            host: self.functions(),
            ..FunctionNamer::default()
        };
        let mut user = self.user_functions();
        let side = profile.guest_side(&study.walked(), namer, &mut user);
        let any = !side.cpus.is_empty() || side.idle.samples > 0;
        any.then(|| GuestStacks {
            side: GuestSide { vcpus, ..side },
            name: self.name().to_owned(),
            cpus: self.header().cpus,
        })
    }
}

impl Guest<'_> {
    /// Collects its stacks, with [`Session::inside`] of its host's session; `host` has its host's samples. `None` where
    /// it has none.
    pub(crate) fn stacks(
        &self,
        inside: &Session,
        host: &Profile,
        machine: &Machine,
    ) -> Result<Option<GuestStacks>, Error> {
        let attrs = self.reader().perf_data().map(|perf| perf.attrs());
        let sampled = attrs.is_none_or(|attrs| {
            let mut attrs = attrs.iter();
            attrs.any(|attr| attr.tracepoint_id().is_none())
        });
        if !sampled {
            return Ok(None);
        }
        let mut vcpus = host.vcpu_threads(&machine.vms(), machine);
        let vm = self.vm();
        vcpus.retain(|vcpu| vm.vcpus.iter().any(|one| one.tid == vcpu.tid));
        let options = inside.reading(true, inside.options().threads);
        let reader = self.reader().recording().reader(options)?;
        let opened = OpenRecording::new(inside, self.name(), reader)?;
        Ok(opened.guest_stacks(vcpus))
    }
}

impl GuestStacks {
    /// Returns the recording's name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the stacks, and whose place they take.
    pub fn side(&self) -> &GuestSide {
        &self.side
    }

    /// Returns whether any of them has its place in a report of the host.
    pub fn has_place(&self, report: &ProfileReport) -> bool {
        self.spliced(report).any(|one| one.guest.amount > 0)
    }

    fn spliced<'r>(
        &'r self,
        report: &'r ProfileReport,
    ) -> impl Iterator<Item = &'r analysis::SplicedVcpu> {
        let vcpus = &self.side.vcpus;
        let own = |tid: i32| vcpus.iter().any(|vcpu| vcpu.tid == tid);
        report.spliced.iter().filter(move |one| own(one.vcpu.tid))
    }

    /// Says that none has a place, and what to record.
    pub fn without_place(&self) -> String {
        format!(
            "{}: none of it is shown, because the host's recording does not say how long vCPUs were in this guest; \
             record the host with 'trapline record --for exits,stacks', of which --both shows time in guests too",
            self.name
        )
    }

    /// Returns what the relation of host and guest rests on.
    pub fn doubts(&self, report: &ProfileReport) -> Doubts {
        let mut doubts = Doubts::default();
        let mut raise = |kind: DoubtKind| doubts.raise(Doubt::from(kind).of_input(&self.name));
        let vcpus = &self.side.vcpus;
        raise(DoubtKind::StacksJoined {
            by: match vcpus.first().map(|vcpu| vcpu.by) {
                Some(VcpuBy::Events) => "by events of KVM",
                Some(VcpuBy::Name) => "by their names",
                _ => "by the order of their ids, which is a guess",
            },
        });
        if let Some(cpus) = self.cpus.filter(|cpus| *cpus as usize != vcpus.len()) {
            raise(DoubtKind::StacksOtherCpus {
                cpus: u64::from(cpus),
                vcpus: vcpus.len() as u64,
            });
        }
        for one in self.spliced(report).filter(|one| one.guest.amount == 0) {
            raise(DoubtKind::StacksWithoutCpu { cpu: one.vcpu.vcpu });
        }
        doubts
    }
}
