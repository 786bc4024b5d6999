//! Sampled groups (`perf record -e '{cpu-clock,page-faults}:S'`): one sample of the leader holds what every member of
//! its group has counted until then. What a member counted since the leader's last sample is handed out as a sample of
//! the member, as perf does (`evlist__deliver_sample` in `tools/perf/util/session.c`).

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::visitor::{PerfVisitor, SampleWish, Totals};
use crate::attr::EventAttr;
use crate::ids::IdMap;
use crate::sample::PerfSample;
use tracefmt::{Diagnostic, index_of};

/// Counters that are followed, by id and thread. What those beyond them counted between two samples is not known.
const MAX_COUNTERS: usize = 1 << 20;

/// What the counters of a recording's groups have counted.
#[derive(Debug)]
pub(super) struct SampledGroups {
    ids: IdMap,
    /// By attribute, whether its samples are wanted.
    wanted: Vec<bool>,
    /// By attribute, whether it counts by thread, as events do that are inherited and read with their samples (Linux
    /// 6.12; `perf_evsel__attr_has_per_thread_sample_period` in `tools/lib/perf/evsel.c`).
    by_thread: Vec<bool>,
    /// The last value, by id and thread.
    last: HashMap<(u64, i32), u64>,
    /// Samples of members, by attribute.
    samples: Vec<u64>,
    /// Values of counters that are not followed.
    not_followed: u64,
}

impl SampledGroups {
    /// Returns them where a recording has groups whose members are read with their leader's samples.
    pub(super) fn new(attrs: &[EventAttr], wanted: &[SampleWish]) -> Option<SampledGroups> {
        attrs
            .iter()
            .any(EventAttr::is_group_member)
            .then(|| SampledGroups {
                ids: IdMap::new(attrs),
                wanted: (0..attrs.len())
                    .map(|attr| wanted.get(attr) != Some(&SampleWish::No))
                    .collect(),
                by_thread: attrs.iter().map(|attr| attr.inherit).collect(),
                last: HashMap::new(),
                samples: vec![0; attrs.len()],
                not_followed: 0,
            })
    }

    /// Goes on from what counters had counted before.
    pub(super) fn follow(&mut self, before: SampledGroups) {
        self.last = before.last;
    }

    /// Returns what is wanted of an attribute in a recording that has groups: samples of leaders are read in any case,
    /// as members are counted by them.
    pub(super) fn wish(attr: &EventAttr, wish: SampleWish) -> SampleWish {
        match attr.reads_group() {
            true => SampleWish::InOrder,
            false => wish,
        }
    }

    /// Hands out a leader's sample as one of each event of the group that counted anything since the last one.
    #[cold]
    pub(super) fn push<V: PerfVisitor>(
        &mut self,
        sample: &PerfSample<'_>,
        visitor: &mut V,
    ) -> ControlFlow<()> {
        for (id, value) in sample.group_values() {
            let Some(attr) = self.ids.get(id) else {
                continue;
            };
            let place = index_of(attr);
            let thread = match self.by_thread.get(place) {
                Some(true) => sample.tid,
                _ => -1,
            };
            let is_room = self.last.len() < MAX_COUNTERS;
            let last = match self.last.get_mut(&(id, thread)) {
                Some(last) => std::mem::replace(last, value),
                None if is_room => {
                    self.last.insert((id, thread), value);
                    0
                }
                // Nothing is better than all that it has counted from the beginning, once more with each sample.
                None => {
                    self.not_followed += 1;
                    value
                }
            };
            let is_leader = attr == sample.attr;
            let counted = value.saturating_sub(last);
            if counted == 0 && !is_leader {
                continue;
            }
            if !is_leader && let Some(samples) = self.samples.get_mut(place) {
                *samples += 1;
            }
            if self.wanted.get(place) == Some(&true) {
                visitor.sample(&sample.of_member(attr, counted))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds the samples of members to those that are records of their own.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        for (all, members) in totals.samples.iter_mut().zip(&self.samples) {
            *all += members;
        }
        if self.not_followed > 0 {
            totals.diagnostics.push(Diagnostic::new(format!(
                "more than {MAX_COUNTERS} counters of sampled groups: what {} of the others' values counted is not \
                 known, and counts as nothing",
                self.not_followed
            )));
        }
    }
}
