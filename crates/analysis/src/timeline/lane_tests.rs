use proptest::prelude::*;

use super::*;

const CAP: usize = FEWEST;

fn stretch(start: u64, end: u64, kind: u8) -> Stretch {
    Stretch {
        start,
        end,
        kind,
        cpu: 0,
        what: 0,
        behind: 0,
    }
}

fn as_is(one: &Stretch) -> u8 {
    one.kind
}

/// Time by state of cells, and their lengths.
fn sums(cells: &[Cell]) -> [u64; KINDS] {
    let mut ns = [0; KINDS];
    for cell in cells {
        let mut length = 0;
        for (sum, kind) in ns.iter_mut().zip(0u8..) {
            *sum += cell.of(kind);
            length += cell.of(kind);
        }
        assert_eq!(length, cell.ns(), "a sum adds up to its length");
    }
    ns
}

/// What the final grain makes of all stretches, done at once and in another way.
fn at_once(stretches: &[Stretch], shift: u32) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut at = 0;
    while at < stretches.len() {
        let bucket = stretches[at].start >> shift;
        let short = |one: &&Stretch| one.ns() >> shift == 0 && one.start >> shift == bucket;
        let run = stretches[at..].iter().take_while(short).count();
        if run < 2 {
            cells.push(Cell::One(stretches[at]));
            at += 1;
            continue;
        }
        let part = &stretches[at..at + run];
        let mut ns = [0; KINDS];
        for one in part {
            ns[usize::from(one.kind)] += one.ns();
        }
        cells.push(Cell::Sum(Box::new(StretchSum {
            start: part[0].start,
            end: part[run - 1].end,
            count: part.iter().filter(|one| one.kind != OUTSIDE).count() as u64,
            ns,
        })));
        at += run;
    }
    cells
}

/// Stretches as a lane sees them: those that go on as one, and what lies between.
fn joined(stretches: &[Stretch]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    for one in stretches {
        if let Some(last) = out.last_mut() {
            if last.goes_on(one) {
                last.end = one.end;
                continue;
            }
            let end = last.end;
            if end < one.start {
                out.push(outside(end, one.start));
            }
        }
        out.push(*one);
    }
    out
}

fn any_stretches() -> impl Strategy<Value = Vec<Stretch>> {
    // Lengths of all sizes, gaps now and then, and states that go on.
    let one = (
        0u32..40,
        any::<u64>(),
        0u8..5,
        prop::bool::weighted(0.1),
        0i32..2,
    );
    prop::collection::vec(one, 0..400).prop_map(|list| {
        let mut at = 5;
        list.into_iter()
            .map(|(bits, random, kind, gap, cpu)| {
                let start = at
                    + if gap {
                        1 + random % (1 << (bits / 2))
                    } else {
                        0
                    };
                let end = start + 1 + random % (1 << bits);
                at = end;
                Stretch {
                    cpu,
                    ..stretch(start, end, kind)
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sums_are_exact_and_cells_few(stretches in any_stretches(), cap in 0usize..200) {
        let mut lane = Lane::default();
        for one in &stretches {
            lane.push(*one, cap, &as_is);
            prop_assert!(lane.len() <= cap.max(FEWEST));
        }
        lane.finish(cap, &as_is);
        let all = joined(&stretches);
        let whole: Vec<Cell> = all.iter().map(|one| Cell::One(*one)).collect();
        prop_assert_eq!(sums(lane.cells()), sums(&whole));
        // However it came to its grain, the cells are those of the grain.
        prop_assert_eq!(lane.cells(), &at_once(&all, lane.shift)[..]);
        let before = lane.clone();
        lane.fit(cap / 2, &as_is);
        prop_assert!(lane.len() <= (cap / 2).max(FEWEST));
        prop_assert_eq!(sums(before.cells()), sums(lane.cells()));
        prop_assert_eq!(lane.cells(), &at_once(&all, lane.shift)[..]);
    }

    #[test]
    fn ranges_of_sums_become_stretches(
        stretches in any_stretches(),
        chosen in prop::collection::vec(any::<bool>(), 64),
    ) {
        let mut lane = Lane::default();
        for one in &stretches {
            lane.push(*one, CAP, &as_is);
        }
        lane.finish(CAP, &as_is);
        let mut cells = lane.into_cells();
        let times = cells.iter().zip(&chosen).filter(|(cell, chosen)| **chosen && matches!(cell, Cell::Sum(_)));
        let times: Vec<(u64, u64)> = times.map(|(cell, _)| (cell.start(), cell.end())).collect();
        let mut again = Lane::of_ranges(Ranges::new(times.clone()));
        for one in &stretches {
            again.push(*one, usize::MAX, &as_is);
        }
        again.finish(usize::MAX, &as_is);
        let stretches: Vec<Cell> = again.into_cells().into_iter().filter(|cell| cell.of(OUTSIDE) == 0).collect();
        let before = sums(&cells);
        crate::timeline::refine::replace(&mut cells, &times, &stretches);
        let mut after = [0; KINDS];
        for cell in &cells {
            for (sum, kind) in after.iter_mut().zip(0u8..) {
                *sum += cell.of(kind);
            }
            prop_assert!(!times.contains(&(cell.start(), cell.end())) || matches!(cell, Cell::One(_)), "a sum stayed");
        }
        // What was not looked at is no cell any more.
        prop_assert_eq!(&after[..usize::from(OUTSIDE)], &before[..usize::from(OUTSIDE)]);
    }
}

#[test]
fn a_stretch_that_goes_on_is_one() {
    let mut lane = Lane::default();
    for at in 0..100 {
        lane.push(stretch(at * 10, at * 10 + 10, 2), CAP, &as_is);
    }
    lane.finish(CAP, &as_is);
    assert_eq!(lane.cells(), [Cell::One(stretch(0, 1000, 2))]);
}

#[test]
fn clocks_that_step_back_and_times_at_the_end_of_time_do_no_harm() {
    let mut lane = Lane::default();
    for (start, end) in [
        (50, 40),
        (50, 60),
        (20, 55),
        (20, 70),
        (u64::MAX - 5, u64::MAX),
        (0, u64::MAX),
    ] {
        lane.push(stretch(start, end, (start % 3) as u8), CAP, &as_is);
    }
    lane.finish(CAP, &as_is);
    assert_eq!(sums(lane.cells()).iter().sum::<u64>(), u64::MAX - 50);
    for at in 0..1000 {
        let far = stretch(at << 53, (at << 53) + (1 << (at % 53)), (at % 4) as u8);
        let mut one = lane.clone();
        one.push(far, CAP, &as_is);
        assert!(one.len() <= CAP);
    }
    let mut wide = Lane::default();
    for at in 0..1000u64 {
        wide.push(
            stretch(at << 53, (at << 53) + (1 << (at % 53)), (at % 4) as u8),
            CAP,
            &as_is,
        );
        assert!(wide.len() <= CAP);
    }
}
