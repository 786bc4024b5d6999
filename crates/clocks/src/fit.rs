//! How a guest's clock reads on its host's: an offset, and a drift where one constant does not do.

use crate::VcpuWindows;
use crate::plateau::{Plateau, plateau};

/// Parts of the time in which offsets are looked for on their own, where one does not do for all.
const PARTS: u64 = 16;
/// Events that a part needs to say something.
const FEW: u64 = 8;
/// Parts of a thousand events that may lie outside before a drift is looked for.
const OUTSIDE_PER_MILLE: u64 = 1;

/// How far from what was found, in nanoseconds, a better drift is looked for.
const REACH: u64 = 200_000;
/// How far from the best offset of some of the events, in nanoseconds, that of all is looked for.
const NEAR: u64 = 50_000;
/// How often the distance is halved meanwhile.
const HALVINGS: u32 = 8;
/// How far from a window, in nanoseconds, an event may be that is taken to belong there: first all, then those of which
/// that is most likely.
const STRAY: [u64; 2] = [REACH, 20_000];
/// How often it is decided anew what belongs where.
const AGAIN: u32 = 4;
/// How often a stretch of drifts becomes two thirds of it.
const THIRDS: u32 = 48;

/// How a guest's clock reads on its host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Host's time less guest's, in nanoseconds, at `at`.
    pub offset_ns: i64,
    /// The guest's time at which the offset is that.
    pub at: u64,
    /// How much more the host's clock advances than the guest's, in parts of 10^9.
    pub drift_ppb: i64,
    /// By how much the offset can be wrong in nanoseconds: as far as the furthest offset that puts as many events into
    /// windows.
    pub bound_ns: u64,
    /// Events that were tried and lie in a window of their vCPU.
    pub inside: u64,
    /// Events that were tried and do not.
    pub outside: u64,
    /// Events that were tried and would lie in one by chance: the mean of all offsets within reach.
    pub by_chance: u64,
    /// Events before a vCPU's first window and behind its last one: the host's recording says nothing of them.
    pub uncovered: u64,
}

impl Fit {
    /// Returns the host's time of a guest's time.
    pub fn host(&self, guest: u64) -> u64 {
        let since = i128::from(guest) - i128::from(self.at);
        let drift = since * i128::from(self.drift_ppb) / 1_000_000_000;
        let time = i128::from(guest) + i128::from(self.offset_ns) + drift;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns which part of the events that were tried would lie in a window by chance; `None` where none was tried.
    pub fn chance_share(&self) -> Option<f64> {
        let tried = self.inside + self.outside;
        (tried > 0).then(|| to_f64(self.by_chance) / to_f64(tried))
    }

    fn of(found: Plateau, at: u64, drift_ppb: i64, uncovered: u64) -> Fit {
        Fit {
            offset_ns: found.middle(),
            at,
            drift_ppb,
            bound_ns: found.bound(),
            inside: found.inside,
            outside: found.of - found.inside,
            by_chance: found.by_chance,
            uncovered,
        }
    }
}

/// Finds how a guest's clock reads on its host's, with an offset no further than `within` from `around`: one constant
/// if that does, else one with a drift, if that puts more events into windows. `None` where no event has a window in
/// reach.
pub fn fit(vcpus: &[VcpuWindows<'_>], around: i64, within: u64) -> Option<Fit> {
    let first = best(vcpus, around, within)?;
    let all = count(vcpus);
    // What the host did not record is no evidence.
    let vcpus: Vec<VcpuWindows<'_>> = vcpus
        .iter()
        .map(|vcpu| covered(vcpu, first.middle()))
        .collect();
    let vcpus = vcpus.as_slice();
    let uncovered = all - count(vcpus);
    let found = best(vcpus, around, within)?;
    let first = vcpus.iter().filter_map(|vcpu| vcpu.events.first()).min()?;
    let last = vcpus.iter().filter_map(|vcpu| vcpu.events.last()).max()?;
    let span = last.saturating_sub(*first);
    let at = first.saturating_add(span / 2);
    let constant = Fit::of(found, at, 0, uncovered);
    if constant.outside * 1000 <= found.of * OUTSIDE_PER_MILLE {
        return Some(constant);
    }
    let drifting = drift(vcpus, (*first, *last), around, within)
        .and_then(|drift_ppb| with_drift(vcpus, &constant, drift_ppb, (around, within)))
        .map(|found| refined(vcpus, found, span));
    let better = drifting.filter(|one| one.outside < constant.outside);
    Some(better.unwrap_or(constant))
}

/// The best offset: where it is some of the events say, looked for in all of the reach, and how exactly all of them,
/// looked for near that.
fn best(vcpus: &[VcpuWindows<'_>], around: i64, within: u64) -> Option<Plateau> {
    let wide = plateau(vcpus, around, within)?;
    if wide.of == count(vcpus) {
        return Some(wide);
    }
    let near = plateau(
        vcpus,
        wide.middle(),
        wide.bound().saturating_add(NEAR).min(within),
    )?;
    // What chance is the wide one says: near the best offset more are inside.
    let by_chance = u128::from(wide.by_chance) * u128::from(near.of) / u128::from(wide.of.max(1));
    Some(Plateau {
        by_chance: u64::try_from(by_chance).unwrap_or(u64::MAX),
        ..near
    })
}

/// Tries drifts on both sides, closer and closer, as long as events lie outside.
fn refined(vcpus: &[VcpuWindows<'_>], mut best: Fit, span: u64) -> Fit {
    // What moves the ends by as much as an offset is wrong where parts are short.
    let mut step = i128::from(REACH) * 1_000_000_000 / i128::from(span.max(1));
    for _ in 0..HALVINGS {
        step /= 2;
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        for drift_ppb in [
            best.drift_ppb.saturating_sub(step),
            best.drift_ppb.saturating_add(step),
        ] {
            let reach = (best.offset_ns, REACH);
            let found = with_drift(vcpus, &best, drift_ppb, reach);
            if let Some(found) = found.filter(|one| one.outside < best.outside) {
                best = Fit {
                    by_chance: best.by_chance,
                    ..found
                };
            }
        }
    }
    straightened(vcpus, best)
}

/// Takes the line that lies deepest in all windows that events are in or next to. Halving drifts may end where each
/// small step puts as many events out as in; this does not, since what windows leave of room is a concave function of
/// the drift.
fn straightened(vcpus: &[VcpuWindows<'_>], mut best: Fit) -> Fit {
    for reach in STRAY {
        for _ in 0..AGAIN {
            let moves = allowed(vcpus, &best, reach);
            let Some(drift_ppb) = deepest(&moves, best.drift_ppb).filter(|_| best.outside > 0)
            else {
                break;
            };
            let found = with_drift(vcpus, &best, drift_ppb, (best.offset_ns, REACH));
            let Some(found) = found.filter(|one| one.outside < best.outside) else {
                break;
            };
            best = Fit {
                by_chance: best.by_chance,
                ..found
            };
        }
    }
    best
}

/// What the nearest window of an event allows.
#[derive(Debug, Clone, Copy)]
struct AllowedOffsets {
    /// The guest's time of the event, less that at which the offset is said.
    time: f64,
    /// By how much the event may be moved, in nanoseconds of the host.
    low: f64,
    high: f64,
}

/// What the windows allow of events that are in one, or no further from it than `reach`.
fn allowed(vcpus: &[VcpuWindows<'_>], fit: &Fit, reach: u64) -> Vec<AllowedOffsets> {
    let mut out = Vec::new();
    for vcpu in vcpus {
        for event in vcpu.events {
            let host = fit.host(*event);
            let behind = vcpu.windows.partition_point(|one| one.entry <= host);
            let near = vcpu.windows[behind.saturating_sub(1)..].iter().take(2);
            let away = |one: &crate::GuestWindow| {
                one.entry.saturating_sub(host) + host.saturating_sub(one.exit)
            };
            let nearest = near.min_by_key(|one| away(one));
            let Some(window) = nearest.filter(|one| away(one) <= reach) else {
                continue;
            };
            let apart = |to: u64, from: u64| (i128::from(to) - i128::from(from)) as f64;
            out.push(AllowedOffsets {
                time: apart(*event, fit.at),
                low: apart(window.entry, host),
                high: apart(window.exit, host),
            });
        }
    }
    out
}

/// The drift near `around_ppb` that leaves most room between what all events allow.
fn deepest(moves: &[AllowedOffsets], around_ppb: i64) -> Option<i64> {
    let longest = moves.iter().map(|one| one.time.abs()).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    // How much room there is with more drift than now, in parts of one.
    let room = |more: f64| {
        let turned = moves
            .iter()
            .map(|one| (one.low - more * one.time, one.high - more * one.time));
        let (low, high) = turned.fold((f64::MIN, f64::MAX), |(low, high), one| {
            (low.max(one.0), high.min(one.1))
        });
        high - low
    };
    let most = to_f64(REACH) / longest;
    let (mut from, mut to) = (-most, most);
    for _ in 0..THIRDS {
        let third = (to - from) / 3.0;
        match room(from + third) < room(to - third) {
            true => from += third,
            false => to -= third,
        }
    }
    #[allow(clippy::cast_possible_truncation, reason = "it saturates")]
    let more = (f64::midpoint(from, to) * 1e9).round() as i64;
    Some(around_ppb.saturating_add(more))
}

fn count(vcpus: &[VcpuWindows<'_>]) -> u64 {
    vcpus.iter().map(|vcpu| vcpu.events.len() as u64).sum()
}

/// The events that are neither before the first window nor behind the last one.
fn covered<'a>(vcpu: &VcpuWindows<'a>, offset_ns: i64) -> VcpuWindows<'a> {
    let (Some(first), Some(last)) = (vcpu.windows.first(), vcpu.windows.last()) else {
        return VcpuWindows::default();
    };
    let [from, to] = [first.entry, last.exit].map(|host| {
        let guest = i128::from(host) - i128::from(offset_ns);
        u64::try_from(guest.max(0)).unwrap_or(u64::MAX)
    });
    stretch(vcpu, from, to.saturating_add(1))
}

/// The best offset with a drift.
fn with_drift(
    vcpus: &[VcpuWindows<'_>],
    constant: &Fit,
    drift_ppb: i64,
    (around, within): (i64, u64),
) -> Option<Fit> {
    // The same with the guest's clock as fast as the host's.
    let turn = Fit {
        offset_ns: 0,
        drift_ppb,
        ..*constant
    };
    let events = vcpus.iter().map(|vcpu| vcpu.events.iter());
    let events: Vec<Vec<u64>> = events
        .map(|events| events.map(|event| turn.host(*event)).collect())
        .collect();
    let turned = vcpus.iter().zip(&events).map(|(vcpu, events)| VcpuWindows {
        windows: vcpu.windows,
        events,
    });
    let turned: Vec<VcpuWindows<'_>> = turned.collect();
    let found = plateau(&turned, around, within)?;
    Some(Fit::of(found, constant.at, drift_ppb, constant.uncovered))
}

/// The slope of the line through the offsets that parts of the time allow, in parts of 10^9: by least squares, each
/// part with the weight of how exactly it says it.
fn drift(
    vcpus: &[VcpuWindows<'_>],
    (first, last): (u64, u64),
    around: i64,
    within: u64,
) -> Option<i64> {
    let each = last.saturating_sub(first) / PARTS + 1;
    let mut points = Vec::new();
    for part in 0..PARTS {
        let from = first.saturating_add(part * each);
        let to = from.saturating_add(each);
        let cut = vcpus.iter().map(|vcpu| stretch(vcpu, from, to));
        let cut: Vec<VcpuWindows<'_>> = cut.collect();
        let Some(found) = plateau(&cut, around, within) else {
            continue;
        };
        // A part in which a tenth lies outside drifts too much itself, or is another machine's.
        if found.of >= FEW && found.inside * 10 >= found.of * 9 {
            let weight = 1.0 / (1.0 + to_f64(found.bound()));
            let time = to_f64(from - first) + to_f64(each) / 2.0;
            let offset = (i128::from(found.middle()) - i128::from(around)) as f64;
            points.push((time, offset, weight));
        }
    }
    if points.len() < 2 {
        return None;
    }
    let sum = |value: fn(&(f64, f64, f64)) -> f64| points.iter().map(value).sum::<f64>();
    let weights = sum(|one| one.2);
    let (x, y) = (
        sum(|one| one.0 * one.2) / weights,
        sum(|one| one.1 * one.2) / weights,
    );
    let over = points.iter().map(|one| one.2 * (one.0 - x) * (one.1 - y));
    let under = points.iter().map(|one| one.2 * (one.0 - x).powi(2));
    let slope = over.sum::<f64>() / under.sum::<f64>();
    let ppb = (slope * 1e9).round();
    #[allow(clippy::cast_possible_truncation, reason = "it is within these bounds")]
    (ppb.abs() < 1e9).then_some(ppb as i64)
}

#[allow(clippy::cast_precision_loss, reason = "a time within a recording")]
fn to_f64(ns: u64) -> f64 {
    ns as f64
}

/// The events of a stretch of the guest's time.
fn stretch<'a>(vcpu: &VcpuWindows<'a>, from: u64, to: u64) -> VcpuWindows<'a> {
    let first = vcpu.events.partition_point(|event| *event < from);
    let behind = vcpu.events.partition_point(|event| *event < to);
    VcpuWindows {
        windows: vcpu.windows,
        events: &vcpu.events[first..behind],
    }
}
