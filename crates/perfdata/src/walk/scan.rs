//! The scan: samples are found one behind the other, and of those that nobody wants no more than header and id is read.

use crate::ids::IdMap;
use crate::record::kind;
use crate::sample_head::{HeadPlaces, HeadWord, SampleHead};
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
    pub places: HeadPlaces,
}

/// Where all samples have the id that decides whether they are wanted, and their time.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdPlaces<'p> {
    base: u64,
    attrs: &'p [u32],
    id: HeadWord,
    time: HeadWord,
}

impl<'p> IdPlaces<'p> {
    /// Returns them where ids are in a table, and ids and times stand at the same place in all samples.
    #[inline(always)]
    pub(super) fn new(
        ids: &'p IdMap,
        id_at: Option<u16>,
        time_at: Option<u16>,
    ) -> Option<IdPlaces<'p>> {
        let (id, time) = (HeadWord::of(id_at), HeadWord::of(time_at));
        match ids {
            IdMap::Table { base, attrs } if id.is_there() && time.is_there() => Some(IdPlaces {
                base: *base,
                attrs,
                id,
                time,
            }),
            _ => None,
        }
    }
}

/// A sample that somebody wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedSample {
    pub at: usize,
    /// Bytes of the record.
    pub size: usize,
    pub time: u64,
    pub attr: u32,
    pub want: SampleWish,
    /// Its thread and CPU, each -1 where that is not recorded.
    pub place: (i32, i32),
}

/// Hands out the wanted samples from `start` on, up to the first record that is something else, or that is too near the
/// end of `data` for its head to be all there, and counts all. `data` ends where the records do. Returns how far it
/// came: one step at most.
#[inline(always)]
pub(super) fn scan<const BIG: bool>(
    places: &IdPlaces<'_>,
    data: &[u8],
    start: usize,
    counters: &mut [AttrCounter],
    mut wanted: impl FnMut(WantedSample),
) -> usize {
    let stop = start.saturating_add(STEP);
    let mut at = start;
    while at < stop {
        let Some(head) = SampleHead::at(data, at) else {
            break;
        };
        let header = head.header::<BIG>();
        let next = at + header.size;
        if header.kind != kind::SAMPLE || next > data.len() {
            break;
        }
        // A record is a line and a half long.
        prefetch(data, at + AHEAD);
        prefetch(data, at + AHEAD + LINE);
        let id = head.word::<BIG>(places.id).unwrap_or_default();
        let place = usize::try_from(id.wrapping_sub(places.base));
        let Some(&attr) = place.ok().and_then(|at| places.attrs.get(at)) else {
            break;
        };
        let Some(counter) = counters.get_mut(index_of(attr)) else {
            break;
        };
        if header.size < usize::from(counter.places.least) {
            break;
        }
        counter.count += 1;
        let want = counter.want;
        if want != SampleWish::No {
            let HeadPlaces { tid, cpu, .. } = counter.places;
            wanted(WantedSample {
                at,
                size: header.size,
                time: head.word::<BIG>(places.time).unwrap_or_default(),
                attr,
                want,
                place: (head.half::<BIG>(tid, true), head.half::<BIG>(cpu, false)),
            });
        }
        at = next;
    }
    at
}
