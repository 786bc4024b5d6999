//! Stacks of a recording: who collects them, and who names them.

use analysis::{Beside, Namer, Profile, ProfileOf, ProfileOptions, ProfileReport, Study};

use crate::flame_warnings::flame_warnings;
use crate::{Error, Opened};

/// The stacks of a recording, with names.
#[derive(Debug, Clone)]
pub struct Flame {
    /// What was collected.
    pub report: ProfileReport,
    /// What of it is left out or not certain, in sentences.
    pub notes: Vec<String>,
}

impl Opened<'_> {
    /// Returns what collects stacks of the recording.
    pub fn collector(&self, options: ProfileOptions) -> Profile {
        let profile = Profile::new(options, &self.kernel_files());
        match self.user_stacks() {
            Some(unwinder) => profile.unwinding(unwinder),
            None => profile,
        }
    }

    /// Adds to a study what collects stacks, of time on CPUs and without one, as far as the recording may have any.
    pub(crate) fn with_stacks(&self, study: Study) -> Study {
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
        asked.fold(study, |study, (_, of)| {
            study.with(self.collector(ProfileOptions {
                of,
                ..ProfileOptions::default()
            }))
        })
    }

    /// Returns the stacks that a study has collected; those without any are left out.
    pub(crate) fn flames(&self, study: &Study) -> Result<Vec<Flame>, Error> {
        let walked = study.walked();
        let mut flames = Vec::new();
        for profile in study.all::<Profile>() {
            let guests = self.session.guest_kernels(&profile.guests())?;
            let of_guests = guests.functions();
            let keep = |tid: i32, pid: Option<i32>| !self.chooses() || self.keeps(tid, pid);
            let beside = Beside {
                namer: Namer {
                    host: self.functions(),
                    guest: self.guest_functions(),
                    guests: &of_guests,
                },
                keep: &keep,
                guest: None,
                guest_ns: &[],
            };
            let report = profile.report(&walked, beside, &mut self.user_functions());
            if has_stacks(&report) {
                let notes = flame_warnings(&report);
                flames.push(Flame { report, notes });
            }
        }
        Ok(flames)
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
