//! Tails: how many instances took longer than some bound, on both sides.
//!
//! A median hides the one interrupt in fifty that takes a tenth of a second, and a 99th percentile gives its length but
//! not how sure it is. So the slow ones are counted against bounds that both sides have in common and that nobody
//! fitted to them: 1, 2, 5, 10, 20, 50 us and so on, as far as they part a tail, one instance in twenty at most. If
//! both sides are the same, each slow one is of either side with the probability that is its share of all instances: an
//! exact (binomial) test needs nothing else. The same has to hold of their shares of the time: where one side has ten
//! times as many instances of a quick kind, the slow ones are a smaller share of them, and are what they were.
//!
//! It needs that they come one by one. What makes one instance slow often makes others slow with it: instances that
//! overlap in time are one, and of those that follow each other as many are taken to be independent as the gaps between
//! them say (the intervals estimator of the extremal index: Ferro and Segers, 2003). What both sides say of that is put
//! together: the same bursts are on both, if both are the same.

use stats::Longest;

use crate::student::binomial;

/// Fewer above a bound, on both sides together, say nothing.
const FEW: u64 = 5;
/// A tail is one instance in so many, at most.
const TAIL: u64 = 20;

/// Durations of one recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailSample<'a> {
    /// The longest of them.
    pub longest: &'a Longest,
    /// How many there are in all.
    pub count: u64,
    /// How long the recording is.
    pub span_ns: u64,
}

/// What is above a bound on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    /// From which duration on.
    pub bound_ns: u64,
    /// How many took as long.
    pub slow: [u64; 2],
    /// Of how many.
    pub of: [u64; 2],
    /// How long they took together.
    pub ns: [f64; 2],
    /// The probability that they differ as much by chance, after all bounds that were tried.
    pub chance: f64,
}

/// Returns how many instances in so many took a bound and longer, and how long all of them took; `None` if there were
/// more than are known.
fn above(side: &[TailSample<'_>], bound: u64) -> Option<TailCount> {
    let mut out = TailCount::default();
    for sample in side {
        let slow = sample.longest.reaching(bound)?;
        out.slow += slow.len() as u64;
        out.ns += slow.iter().map(|(ns, _)| *ns as f64).sum::<f64>();
        out.alone += alone(&slow, sample.count, sample.span_ns);
    }
    Some(out)
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct TailCount {
    slow: u64,
    ns: f64,
    /// How many of them are independent.
    alone: u64,
}

/// Returns how many of slow instances are independent of each other.
fn alone(slow: &[(u64, u64)], count: u64, span_ns: u64) -> u64 {
    let mut begins: Vec<u64> = Vec::new();
    let mut end = 0;
    for (ns, begin) in slow {
        if begins.is_empty() || *begin > end {
            begins.push(*begin);
        }
        end = end.max(begin.saturating_add(*ns));
    }
    let clusters = begins.len() as f64;
    if begins.len() < 3 || span_ns == 0 {
        return begins.len() as u64;
    }
    // Gaps in instances: as many as there are in that time on average, one at least.
    let rate = count as f64 / span_ns as f64;
    let gaps = begins
        .windows(2)
        .map(|pair| ((pair[1] - pair[0]) as f64 * rate).ceil().max(1.0));
    let (mut sum, mut squares, mut less, mut product, mut most) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
    for gap in gaps {
        sum += gap;
        squares += gap * gap;
        less += gap - 1.0;
        product += (gap - 1.0) * (gap - 2.0);
        most = most.max(gap);
    }
    let of = |sum: f64, squares: f64| {
        if squares > 0.0 {
            2.0 * sum * sum / ((clusters - 1.0) * squares)
        } else {
            1.0
        }
    };
    let index = if most <= 2.0 {
        of(sum, squares)
    } else {
        of(less, product)
    };
    (index.clamp(0.0, 1.0) * clusters).max(1.0) as u64
}

/// Bounds in the steps in which people think of durations.
fn bounds() -> impl Iterator<Item = u64> {
    let decades = std::iter::successors(Some(1000u64), |bound| bound.checked_mul(10));
    decades.flat_map(|bound| [1, 2, 5].map(|step| bound.saturating_mul(step)))
}

/// Compares the tails of two sides: at the bound that separates them best, or at one that is given.
pub(crate) fn tail(sides: [&[TailSample<'_>]; 2], reported: Option<u64>) -> Option<Tail> {
    let of = sides.map(|side| {
        side.iter()
            .map(|sample| sample.count)
            .fold(0u64, u64::saturating_add)
    });
    if of.contains(&0) {
        return None;
    }
    let all = of[0].saturating_add(of[1]);
    let share = of[0] as f64 / all as f64;
    let spans = sides.map(|side| side.iter().map(|sample| sample.span_ns as f64).sum::<f64>());
    let of_time = spans[0] / (spans[0] + spans[1]);
    let longest = sides
        .iter()
        .flat_map(|side| side.iter().map(|sample| sample.longest.max()));
    let longest = longest.max().unwrap_or(0);
    let mut found: Vec<Tail> = Vec::new();
    let at = |bound_ns: u64| -> Option<Tail> {
        let [a, b] = [above(sides[0], bound_ns)?, above(sides[1], bound_ns)?];
        let slow = [a.slow, b.slow];
        let alone = (a.alone + b.alone) as f64 / (a.slow + b.slow).max(1) as f64;
        let [few_a, few_b] = slow.map(|slow| (slow as f64 * alone).round() as u64);
        // It has to be more by both, or less by both.
        let more = |of: [f64; 2]| slow[1] as f64 * of[0] > slow[0] as f64 * of[1];
        let same = more(of.map(|of| of as f64)) == more(spans);
        let chance = if same {
            let by = |share: f64| binomial(few_a, few_a + few_b, share);
            by(share).max(by(of_time))
        } else {
            1.0
        };
        Some(Tail {
            bound_ns,
            slow,
            of,
            ns: [a.ns, b.ns],
            chance,
        })
    };
    if let Some(bound) = reported {
        return at(bound);
    }
    for bound in bounds().take_while(|bound| *bound <= longest) {
        let Some(tail) = at(bound) else { continue };
        let slow = tail.slow[0] + tail.slow[1];
        if slow < FEW || slow > all / TAIL {
            continue;
        }
        match found.last_mut() {
            // The same instances are no second look, and a longer bound says more of them.
            Some(last) if last.slow == tail.slow => last.bound_ns = tail.bound_ns,
            _ => found.push(tail),
        }
    }
    let best = found
        .iter()
        .copied()
        .reduce(|best, one| if one.chance < best.chance { one } else { best })?;
    // Bounds are nested, so what they say hangs together: Simes's test (1986) takes that into account.
    let mut chances: Vec<f64> = found.iter().map(|tail| tail.chance).collect();
    chances.sort_by(f64::total_cmp);
    let looks = chances.len() as f64;
    let ranks = (1..).map(f64::from);
    let simes = chances.iter().zip(ranks).map(|(p, rank)| p * looks / rank);
    Some(Tail {
        chance: simes.fold(1.0, f64::min),
        ..best
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 20_000_000_000;

    /// 600 instances in 20 seconds of 300 us each, and slow ones at these times (ms) of so many ms.
    fn sample(slow: &[(u64, u64)]) -> Longest {
        let mut out = Longest::default();
        for at in 0..600u64 {
            out.add(300_000 + at * 100, at * 33_000_000);
        }
        for (at, ms) in slow {
            out.add(ms * 1_000_000, at * 1_000_000);
        }
        out
    }

    fn compare(a: &Longest, b: &Longest) -> Option<Tail> {
        let of = |longest| {
            [TailSample {
                longest,
                count: 600,
                span_ns: SPAN,
            }]
        };
        let (a, b) = (of(a), of(b));
        tail([&a, &b], None)
    }

    #[test]
    fn slow_ones_on_one_side_alone_are_news() {
        let at = [120, 1900, 3300, 4100, 6800, 7100, 9000, 11_200];
        let more = [12_900, 13_100, 15_500, 17_000, 19_700];
        let all = at.iter().chain(&more);
        let slow: Vec<(u64, u64)> = all.map(|at| (*at, 30 + at % 90)).collect();
        let tail = compare(&sample(&slow), &sample(&[])).expect("a tail");
        assert_eq!((tail.slow, tail.of), ([13, 0], [600, 600]));
        assert_eq!(tail.bound_ns, 20_000_000);
        assert!(tail.chance < 1e-3, "{tail:?}");
        let same = compare(&sample(&slow), &sample(&slow)).expect("a tail");
        assert_eq!(same.chance, 1.0);
        // Nothing is beyond one in twenty: no tail.
        assert_eq!(compare(&sample(&[]), &sample(&[])), None);
    }

    #[test]
    fn more_quick_ones_do_not_make_the_slow_ones_fewer() {
        let at = [120, 1900, 3300, 4100, 6800, 7100, 9000, 11_200, 12_900];
        let slow: Vec<(u64, u64)> = at.iter().map(|at| (*at, 30)).collect();
        let mut many = sample(&slow);
        for at in 0..9000u64 {
            many.add(2000, at * 2_000_000);
        }
        let few = sample(&slow);
        let of = |longest, count| {
            [TailSample {
                longest,
                count,
                span_ns: SPAN,
            }]
        };
        let (a, b) = (of(&few, 600), of(&many, 9600));
        assert_eq!(
            tail([&a, &b], Some(20_000_000)).map(|tail| tail.chance),
            Some(1.0)
        );
    }

    #[test]
    fn what_comes_together_counts_once() {
        // Thirteen that overlap are one.
        let one: Vec<(u64, u64)> = (0..13).map(|at| (5000 + at, 100)).collect();
        assert!(compare(&sample(&one), &sample(&[])).expect("a tail").chance > 0.5);
        // Twelve in two bursts are two or three, though none overlaps another.
        let bursts = |at: u64| (0..6).map(move |n| (at + n * 25, 20));
        let two: Vec<(u64, u64)> = bursts(3000).chain(bursts(14_000)).collect();
        let tail = compare(&sample(&two), &sample(&[])).expect("a tail");
        assert!(tail.chance > 0.1, "{tail:?}");
    }

    #[test]
    fn the_same_tails_are_seldom_distinguished() {
        // Pairs of the same, whose slow ones are exponential above 1 ms and come one by one.
        let mut state = 7u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) + 1) as f64 / (1u64 << 53) as f64
        };
        let (mut tested, mut reported) = (0, 0);
        for _ in 0..400 {
            let [a, b] = [0, 1].map(|_| {
                let mut slow = Vec::new();
                let mut at = 0.0;
                loop {
                    at += -1000.0 * random().ln();
                    if at >= 20_000.0 {
                        break;
                    }
                    slow.push((at as u64, 1 + (-20.0 * random().ln()) as u64));
                }
                sample(&slow)
            });
            let tail = compare(&a, &b);
            tested += u32::from(tail.is_some());
            reported += u32::from(tail.is_some_and(|tail| tail.chance <= 0.05));
        }
        assert!(tested > 390, "{tested}");
        assert!(reported <= tested / 20, "{reported} of {tested} at 0.05");
    }
}
