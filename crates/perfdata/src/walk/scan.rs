//! The scan: samples are found one behind the other, and of those that nobody wants no more than header and id is read.

use crate::ids::IdMap;
use crate::record::{HEADER, PerfRecordHeader, kind, u64_at};
use tracefmt::index_of;

use super::prefetch::{LINE, prefetch};
use super::visitor::SampleWish;

/// Bytes that the scan looks ahead: the processor does not by itself look beyond a page.
const AHEAD: usize = 4096;
/// Bytes that the scan goes at once, so that pages can be released.
pub(super) const STEP: usize = 4 << 20;

/// Samples of one attribute.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttrCounter {
    pub count: u64,
    pub want: SampleWish,
}

/// Where all samples have the id that decides whether they are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdPlaces<'p> {
    base: u64,
    attrs: &'p [u32],
    id_at: usize,
    time_at: usize,
}

impl<'p> IdPlaces<'p> {
    /// Returns them where ids are in a table, and ids and times stand at the same place in all samples.
    #[inline(always)]
    pub(super) fn new(
        ids: &'p IdMap,
        id_at: Option<usize>,
        time_at: Option<usize>,
    ) -> Option<IdPlaces<'p>> {
        match (ids, id_at, time_at) {
            (IdMap::Table { base, attrs }, Some(id_at), Some(time_at)) => Some(IdPlaces {
                base: *base,
                attrs,
                id_at,
                time_at,
            }),
            _ => None,
        }
    }
}

/// A sample that somebody wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedSample<'d> {
    pub header: PerfRecordHeader,
    pub body: &'d [u8],
    pub at: usize,
    pub time: u64,
    pub attr: u32,
    pub want: SampleWish,
}

/// Hands out the wanted samples from `start` on, up to the first record that is something else, and counts all. `data`
/// ends where the records do. Returns how far it came: one step at most.
#[inline(always)]
pub(super) fn scan<'d, const BIG: bool>(
    places: &IdPlaces<'_>,
    data: &'d [u8],
    start: usize,
    counters: &mut [AttrCounter],
    mut wanted: impl FnMut(WantedSample<'d>),
) -> usize {
    let stop = start.saturating_add(STEP);
    let mut at = start;
    while at < stop {
        let Some(header) = PerfRecordHeader::read::<BIG>(data, at) else {
            break;
        };
        let next = at + header.size;
        if header.kind != kind::SAMPLE || next > data.len() {
            break;
        }
        // A record is a line and a half long.
        prefetch(data, at + AHEAD);
        prefetch(data, at + AHEAD + LINE);
        let body = &data[at + HEADER..next.max(at + HEADER)];
        let Some(id) = u64_at::<BIG>(body, places.id_at) else {
            break;
        };
        let place = usize::try_from(id.wrapping_sub(places.base));
        let Some(&attr) = place.ok().and_then(|at| places.attrs.get(at)) else {
            break;
        };
        let Some(counter) = counters.get_mut(index_of(attr)) else {
            break;
        };
        let want = counter.want;
        if want != SampleWish::No {
            let Some(time) = u64_at::<BIG>(body, places.time_at) else {
                break;
            };
            wanted(WantedSample {
                header,
                body,
                at,
                time,
                attr,
                want,
            });
        }
        counter.count += 1;
        at = next;
    }
    at
}
