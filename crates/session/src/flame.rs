//! Stacks of a recording: who collects them, and who names them.

use analysis::{
    FunctionNamer, GuestSide, Handle, Profile, ProfileContext, ProfileOf, ProfileOptions,
    ProfileReport, WalkState,
};
use doubts::{DoubtKind, Doubts};

use crate::flame_doubts::flame_doubts;
use crate::{Error, Guest, GuestStacks, OpenRecording, RecordingQuestion};

/// The stacks of a recording, with names.
#[derive(Debug, Clone)]
pub struct RecordingStacks {
    /// What was collected.
    pub report: ProfileReport,
    /// What is left out or not certain.
    pub doubts: Doubts,
    /// The names of the recordings of guests whose own stacks stand in the place of what the host knows of them.
    pub guests: Vec<String>,
}

impl OpenRecording<'_> {
    /// Returns what collects stacks of the recording.
    pub fn collector(&self, options: ProfileOptions) -> Profile {
        let profile = Profile::new(options, &self.kernel_files());
        match self.user_stacks() {
            Some(unwinder) => profile.unwinding(unwinder),
            None => profile,
        }
    }

    /// Asks for stacks, of time on CPUs and without one, as far as the recording may have any.
    pub(crate) fn ask_stacks(&self, question: &mut RecordingQuestion<'_>) -> Vec<Handle<Profile>> {
        let attrs = self.reader().perf_data().map(|perf| perf.attrs());
        // perf.data says of each kind of events whether they have stacks; what says nothing is asked.
        let samples = attrs.is_none_or(|attrs| {
            let mut sampled = attrs.iter().filter(|attr| attr.tracepoint_id().is_none());
            sampled.any(|attr| attr.has_callchain())
        });
        let switches = attrs.is_none_or(|attrs| {
            let mut switches = attrs
                .iter()
                .filter(|attr| attr.name.contains("sched_switch"));
            switches.any(|attr| attr.has_callchain())
        });
        let of = [(samples, ProfileOf::OnCpu), (switches, ProfileOf::OffCpu)];
        let asked = of.into_iter().filter(|(has, _)| *has);
        let options = asked.map(|(_, of)| ProfileOptions {
            of,
            ..ProfileOptions::default()
        });
        options
            .map(|options| question.add(self.collector(options)))
            .collect()
    }

    /// Returns the stacks that a study has collected; those without any are left out. Where recordings of guests have
    /// samples, their stacks stand in the place of the host's samples in the guest: what is waited for is the host's
    /// alone.
    pub(crate) fn flames(
        &self,
        profiles: &[Profile],
        walked: &WalkState<'_>,
        guests: &[Guest<'_>],
    ) -> Result<Vec<RecordingStacks>, Error> {
        let mut flames = Vec::new();
        for profile in profiles {
            let inside = match profile.of() {
                ProfileOf::OnCpu => self.inside_stacks(profile, walked, guests)?,
                _ => Vec::new(),
            };
            let sides: Vec<&GuestSide> = inside.iter().map(GuestStacks::side).collect();
            let guests = self.session.guest_kernels(&profile.guests())?;
            let of_guests = guests.functions();
            let keep = |tid: i32, pid: Option<i32>| !self.chooses() || self.keeps(tid, pid);
            let beside = ProfileContext {
                namer: FunctionNamer {
                    host: self.functions(),
                    guest: self.guest_functions(),
                    guests: &of_guests,
                },
                keep: &keep,
                guests: &sides,
                guest_ns: &[],
            };
            let report = profile.report(walked, beside, &mut self.user_functions());
            if has_stacks(&report) {
                let mut doubts = Doubts::default();
                let mut names = Vec::new();
                for guest in &inside {
                    if guest.has_place(&report) {
                        doubts.extend(guest.doubts(&report));
                        names.push(guest.name().to_owned());
                    } else {
                        let text = format!("{}.", guest.without_place());
                        doubts.raise(DoubtKind::GuestLeftOut { text });
                    }
                }
                doubts.extend(flame_doubts(&report));
                flames.push(RecordingStacks {
                    report,
                    doubts,
                    guests: names,
                });
            }
        }
        Ok(flames)
    }

    /// Returns the stacks of guests whose recordings have samples, where this one has samples to be replaced.
    fn inside_stacks(
        &self,
        profile: &Profile,
        walked: &WalkState<'_>,
        guests: &[Guest<'_>],
    ) -> Result<Vec<GuestStacks>, Error> {
        let mut found = Vec::new();
        if guests.is_empty() || !profile.has_samples() {
            return Ok(found);
        }
        let inside = self.session.inside()?;
        for guest in guests {
            found.extend(guest.stacks(&inside, profile, walked.machine)?);
        }
        Ok(found)
    }
}

/// Whether any stack has more than a thread and one function.
fn has_stacks(report: &ProfileReport) -> bool {
    let nodes = report.stacks.tree().nodes();
    let parent = |at: u32| nodes.get(at as usize).map(|node| node.parent);
    let depth = |at: u32| {
        let up = std::iter::successors(Some(at), |at| parent(*at).filter(|up| *up != *at));
        up.take_while(|at| *at != stacks::ROOT).take(3).count()
    };
    (0u32..).zip(nodes).any(|(at, _)| depth(at) == 3)
}
