//! The time that threads had CPUs, shared out to their samples.

use event::index_of;
use rustc_hash::FxHashMap;
use stacks::{ROOT, Weight};

use super::calls::{Calls, Mode, NOBODY, StackRow};
use super::doing::ThreadState;
use super::off_cpu::OffCpu;

/// A part of a thread's time: by its slot, and whether it was in its guest, where that is known apart.
type Pool = (u32, bool);

/// A row, what it weighs, and its number in what was collected if it is of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeighedRow {
    pub row: StackRow,
    pub weight: Weight,
    pub number: Option<u32>,
}

/// Makes samples weigh the time that their threads had CPUs, by switches: each the share that it has of its thread's
/// samples. Where it is known how long a thread was in its guest, samples there share that, and the others the rest. A
/// thread without samples has a row without a stack, so that nothing is lost.
pub(super) fn share_out(
    rows: &mut Vec<WeighedRow>,
    calls: &Calls,
    off: &OffCpu,
    in_guest: FxHashMap<u32, u64>,
) {
    let mut times: FxHashMap<Pool, u64> = FxHashMap::default();
    for (slot, ns) in off.on_cpu() {
        let guest = in_guest.get(&slot).copied().unwrap_or_default().min(ns);
        times.insert((slot, true), guest);
        times.insert((slot, false), ns - guest);
    }
    let pool = |row: &StackRow| -> Option<Pool> {
        let slot = calls.threads.get(index_of(row.thread))?.slot;
        let guest = row.mode == Mode::Guest && in_guest.contains_key(&slot);
        (row.doing == ThreadState::Runs).then_some((slot, guest))
    };
    let mut sums: FxHashMap<Pool, u64> = FxHashMap::default();
    for WeighedRow { row, weight, .. } in rows.iter() {
        if let Some(pool) = pool(row) {
            let sum = sums.entry(pool).or_default();
            *sum = sum.saturating_add(weight.amount);
        }
    }
    for WeighedRow { row, weight, .. } in rows.iter_mut() {
        let Some(pool) = pool(row) else {
            continue;
        };
        // What is left of both, so that nothing is lost by rounding.
        let left = sums.entry(pool).or_default();
        let time = times.entry(pool).or_default();
        let part = u128::from(*time) * u128::from(weight.amount) / u128::from((*left).max(1));
        *left -= weight.amount.min(*left);
        weight.amount = u64::try_from(part).unwrap_or(u64::MAX).min(*time);
        *time -= weight.amount;
    }
    let mut by_slot: FxHashMap<u32, u32> = FxHashMap::default();
    for (thread, number) in calls.threads.iter().zip(0u32..) {
        by_slot.entry(thread.slot).or_insert(number);
    }
    let mut unsampled: Vec<(Pool, u64)> = times.into_iter().filter(|(_, ns)| *ns > 0).collect();
    unsampled.sort_unstable();
    for ((slot, guest), ns) in unsampled {
        let Some(thread) = by_slot.get(&slot) else {
            continue;
        };
        let row = StackRow {
            event: 0,
            thread: *thread,
            doing: ThreadState::Runs,
            mode: if guest { Mode::Guest } else { Mode::Kernel },
            stack: ROOT,
            waker: NOBODY,
            waker_stack: ROOT,
        };
        let weight = Weight {
            samples: 0,
            amount: ns,
        };
        rows.push(WeighedRow {
            row,
            weight,
            number: None,
        });
    }
}
