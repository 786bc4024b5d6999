//! How the records of a recording are read.

use crate::attr::{EventAttr, SampleLayout, Trailers};
use crate::file::PerfRecording;
use crate::ids::IdMap;
use crate::record::{PerfRecordHeader, kind, u64_at};
use tracefmt::index_of;

/// What a walk has to know of a recording to read its records.
#[derive(Debug)]
pub(crate) struct WalkPlan<'r, 'a> {
    pub recording: &'r PerfRecording<'a>,
    pub ids: IdMap,
    /// Where every sample has its id, if there is more than one attribute.
    pub id_at: Option<u16>,
    /// Where every sample has its time; `None` when that depends on the attribute.
    pub time_at: Option<u16>,
    trailers: Trailers,
}

impl<'r, 'a> WalkPlan<'r, 'a> {
    /// Finds it out.
    pub(crate) fn new(recording: &'r PerfRecording<'a>) -> WalkPlan<'r, 'a> {
        let attrs = &recording.attrs;
        let layout = attrs[0].layout;
        let same_time = attrs.iter().all(|a| a.layout.time == layout.time);
        let same_id = attrs.iter().all(|a| a.layout.id == layout.id);
        let ids = match (attrs.len() > 1 && same_id, layout.id) {
            (true, Some(_)) => IdMap::new(attrs),
            _ => IdMap::Single,
        };
        WalkPlan {
            recording,
            ids,
            id_at: layout.id.filter(|_| same_id),
            time_at: layout.time.filter(|_| same_time),
            trailers: Trailers::new(attrs),
        }
    }

    /// Returns the time stamp of a record of the kernel, 0 when it has none.
    #[inline(always)]
    pub(crate) fn time_of<const BIG: bool>(
        &self,
        header: PerfRecordHeader,
        body: &[u8],
        attr: u32,
    ) -> u64 {
        let at = if header.kind == kind::SAMPLE {
            let at = match self.time_at {
                Some(at) => Some(at),
                None => self.recording.attrs[index_of(attr)].layout.time,
            };
            at.map(usize::from)
        } else {
            let back = self.trailer::<BIG>(body).trailer_time;
            back.and_then(|back| body.len().checked_sub(usize::from(back)))
        };
        at.and_then(|at| u64_at::<BIG>(body, at)).unwrap_or(0)
    }

    /// Returns the CPU of a record that is no sample, -1 when it has none.
    pub(crate) fn cpu_of<const BIG: bool>(&self, body: &[u8]) -> i32 {
        let back = self.trailer::<BIG>(body).trailer_cpu;
        let at = back.and_then(|back| body.len().checked_sub(usize::from(back)));
        let cpu = at.and_then(|at| self.recording.endian.u32(body, at));
        cpu.map_or(-1, u32::cast_signed)
    }

    /// Returns the layout that the trailer of a record that is no sample follows.
    #[inline]
    pub(crate) fn trailer<const BIG: bool>(&self, body: &[u8]) -> &'r SampleLayout {
        let attr = match self.trailers {
            Trailers::Same => 0,
            Trailers::ById => {
                // The id stands last. Records that perf made itself have none, and follow the first
                // attribute (`evlist__event2evsel` in `tools/perf/util/evlist.c`).
                let id = body
                    .len()
                    .checked_sub(8)
                    .and_then(|at| u64_at::<BIG>(body, at));
                id.and_then(|id| self.ids.get(id)).unwrap_or(0)
            }
        };
        &self.recording.attrs[index_of(attr)].layout
    }

    /// Returns number and attribute of the event whose id stands last in a record that is no sample.
    pub(crate) fn attr_at_end<const BIG: bool>(&self, body: &[u8]) -> Option<(u32, &'r EventAttr)> {
        let attr = match self.ids {
            IdMap::Single if self.recording.attrs.len() == 1 => 0,
            IdMap::Single => return None,
            _ => self
                .ids
                .get(u64_at::<BIG>(body, body.len().checked_sub(8)?)?)?,
        };
        Some((attr, self.recording.attrs.get(index_of(attr))?))
    }

    /// Returns the attribute whose trailer a record has that is no sample and names this event.
    pub(crate) fn trailer_attr(&self, attr: u32) -> &'r EventAttr {
        let attr = match self.trailers {
            Trailers::Same => 0,
            Trailers::ById => attr,
        };
        let attrs = &self.recording.attrs;
        attrs.get(index_of(attr)).unwrap_or(&attrs[0])
    }

    #[inline(always)]
    pub(crate) fn attr_of<const BIG: bool>(&self, body: &[u8]) -> Option<u32> {
        if let IdMap::Single = self.ids {
            return Some(0);
        }
        self.ids.get(u64_at::<BIG>(body, usize::from(self.id_at?))?)
    }
}
