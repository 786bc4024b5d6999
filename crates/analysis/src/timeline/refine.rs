//! Stretches in the place of sums.

use super::cell::{Cell, KINDS, OUTSIDE};

/// Puts stretches in the place of the sums that have some times, where they add up to the same.
pub(super) fn replace(cells: &mut Vec<Cell>, times: &[(u64, u64)], stretches: &[Cell]) {
    let mut out = Vec::with_capacity(cells.len() + stretches.len());
    for cell in cells.drain(..) {
        let part = part(&cell, times, stretches);
        match part {
            Some(part) => out.extend_from_slice(part),
            None => out.push(cell),
        }
    }
    *cells = out;
}

/// Returns the stretches that a cell is the sum of, if it is one of those that are to be replaced, and they are.
fn part<'t>(cell: &Cell, times: &[(u64, u64)], stretches: &'t [Cell]) -> Option<&'t [Cell]> {
    let Cell::Sum(sum) = cell else { return None };
    times.binary_search(&(sum.start, sum.end)).ok()?;
    let first = stretches.partition_point(|one| one.start() < sum.start);
    let rest = stretches.get(first..)?;
    let part = rest.get(..rest.partition_point(|one| one.end() <= sum.end))?;
    let mut ns = [0u64; KINDS];
    for one in part {
        let Cell::One(one) = one else { return None };
        let of = ns.get_mut(usize::from(one.kind))?;
        *of = of.checked_add(one.ns())?;
    }
    let mut expected = sum.ns;
    expected[usize::from(OUTSIDE)] = 0;
    (ns == expected).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::cell::{Stretch, StretchSum};

    fn one(start: u64, end: u64, kind: u8) -> Cell {
        Cell::One(Stretch {
            start,
            end,
            kind,
            cpu: 0,
            what: 0,
            behind: 0,
        })
    }

    fn sum(start: u64, end: u64, parts: &[(u8, u64)]) -> Cell {
        let mut ns = [0; KINDS];
        for (kind, part) in parts {
            ns[usize::from(*kind)] = *part;
        }
        let count = parts.len() as u64;
        Cell::Sum(Box::new(StretchSum {
            start,
            end,
            count,
            ns,
        }))
    }

    #[test]
    fn what_adds_up_takes_the_place_of_a_sum_and_nothing_else_does() {
        let stretches = [
            one(10, 12, 0),
            one(12, 20, 1),
            one(40, 41, 2),
            one(45, 50, 0),
        ];
        let before = vec![
            one(0, 10, 3),
            sum(10, 20, &[(0, 2), (1, 8)]),
            sum(20, 40, &[(0, 19), (1, 1)]),
            sum(40, 50, &[(0, 5), (2, 1), (OUTSIDE, 4)]),
        ];
        let mut cells = before.clone();
        replace(&mut cells, &[(10, 20), (20, 40), (40, 50)], &stretches);
        let expected = [
            before[0].clone(),
            stretches[0].clone(),
            stretches[1].clone(),
            before[2].clone(),
            stretches[2].clone(),
            stretches[3].clone(),
        ];
        assert_eq!(cells, expected);
        let mut cells = before.clone();
        replace(&mut cells, &[], &stretches);
        assert_eq!(cells, before, "it was not asked for");
    }
}
