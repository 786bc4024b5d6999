//! From the ids that samples carry to attributes.

use crate::attr::EventAttr;

/// Looks up the attribute a sample belongs to.
#[derive(Debug, Clone)]
pub(crate) enum IdMap {
    /// One attribute, or no ids to tell them apart.
    Single,
    /// Ids are numbered consecutively by the kernel: a table from the lowest.
    Table { base: u64, attrs: Vec<u32> },
    /// Ids too far apart for a table, sorted.
    Sorted(Vec<(u64, u32)>),
}

/// Tables beyond this many ids are searched instead.
const MAX_TABLE: usize = 1 << 20;

impl IdMap {
    pub(crate) fn new(attrs: &[EventAttr]) -> IdMap {
        let pairs = || {
            let numbered = (0u32..).zip(attrs);
            numbered.flat_map(|(i, a)| a.ids.iter().map(move |&id| (id, i)))
        };
        let (Some(low), Some(high)) = (pairs().map(|p| p.0).min(), pairs().map(|p| p.0).max())
        else {
            return IdMap::Single;
        };
        let place = |id: u64| usize::try_from(id - low).ok();
        if let Some(last) = place(high).filter(|&at| at < MAX_TABLE) {
            let mut table = vec![u32::MAX; last + 1];
            for (id, attr) in pairs() {
                if let Some(slot) = place(id).and_then(|at| table.get_mut(at)) {
                    *slot = attr;
                }
            }
            return IdMap::Table {
                base: low,
                attrs: table,
            };
        }
        let mut sorted: Vec<_> = pairs().collect();
        sorted.sort_unstable();
        IdMap::Sorted(sorted)
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        match self {
            IdMap::Single => Some(0),
            IdMap::Table { base, attrs } => {
                let at = usize::try_from(id.wrapping_sub(*base)).ok()?;
                attrs.get(at).copied().filter(|&a| a != u32::MAX)
            }
            IdMap::Sorted(sorted) => {
                let at = sorted.binary_search_by_key(&id, |p| p.0).ok()?;
                Some(sorted[at].1)
            }
        }
    }
}
