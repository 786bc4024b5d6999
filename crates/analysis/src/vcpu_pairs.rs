//! What is counted of pairs of a vCPU and somebody it waited behind, or something that the VMM did for it.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::slices::Amount;

/// Tasks and causes that a row lists; what is beyond is summed up in the last one.
pub const LISTED: usize = 16;

/// Pairs of a vCPU and a task that it waited behind, or an access that the VMM handled, that are counted apart; what is
/// beyond is in the item of each vCPU's list that says "others".
const MAX_PAIRS: usize = 1 << 20;

/// Adds to a pair, or where there are too many to what stands for all others of the vCPU.
#[inline]
pub(crate) fn pair<K: Copy + Eq + Hash>(
    sums: &mut FxHashMap<(u32, K), Amount>,
    vcpu: u32,
    of: K,
    others: K,
) -> &mut Amount {
    let full = sums.len() >= MAX_PAIRS;
    let of = if full && !sums.contains_key(&(vcpu, of)) {
        others
    } else {
        of
    };
    sums.entry((vcpu, of)).or_default()
}

/// Moves the sums of those pairs that are others now, in place: there are up to a million.
pub(crate) fn renumber<K: Copy + Eq + Hash>(
    sums: &mut FxHashMap<(u32, K), Amount>,
    now: impl Fn(u32, K) -> (u32, K),
) {
    let moved = sums.extract_if(|&(vcpu, of), _| now(vcpu, of) != (vcpu, of));
    let moved: Vec<((u32, K), Amount)> = moved.collect();
    for ((vcpu, of), sum) in moved {
        sums.entry(now(vcpu, of)).or_default().merge(sum);
    }
}

/// What is counted of a vCPU and somebody, or something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VcpuPair<K> {
    pub(crate) vcpu: u32,
    pub(crate) of: K,
    pub(crate) sum: Amount,
}

impl<K> VcpuPair<K> {
    /// Returns the same sum for another.
    pub(crate) fn with<O>(self, of: O) -> VcpuPair<O> {
        VcpuPair {
            vcpu: self.vcpu,
            of,
            sum: self.sum,
        }
    }
}

/// The sums of pairs, in the order of their vCPUs.
#[derive(Debug)]
pub(crate) struct PairsByVcpu<K>(Vec<VcpuPair<K>>);

impl<K: Copy> PairsByVcpu<K> {
    pub(crate) fn of(sums: FxHashMap<(u32, K), Amount>) -> PairsByVcpu<K> {
        let pairs = sums.into_iter();
        let mut list: Vec<VcpuPair<K>> = pairs
            .map(|((vcpu, of), sum)| VcpuPair { vcpu, of, sum })
            .collect();
        list.sort_unstable_by_key(|pair| pair.vcpu);
        PairsByVcpu(list)
    }

    /// Returns those of a vCPU.
    pub(crate) fn get(&self, vcpu: u32) -> &[VcpuPair<K>] {
        let from = self.0.partition_point(|pair| pair.vcpu < vcpu);
        let pairs = self.0.get(from..).unwrap_or_default();
        let to = pairs.partition_point(|pair| pair.vcpu == vcpu);
        pairs.get(..to).unwrap_or_default()
    }
}

/// Makes what is listed, and sums up the rest in the last item. Of each of many vCPUs only what is listed takes memory.
pub(crate) fn fold<K: Copy, R>(
    mut list: Vec<VcpuPair<K>>,
    others: K,
    made: impl Fn(VcpuPair<K>) -> R,
) -> Vec<R> {
    if list.len() > LISTED {
        let mut rest = list.drain(LISTED - 1..);
        let last = rest.next().map(|first| {
            rest.fold(first.with(others), |mut all, one| {
                all.sum.merge(one.sum);
                all
            })
        });
        list.extend(last);
    }
    let mut out = Vec::with_capacity(list.len());
    out.extend(list.into_iter().map(made));
    out
}
