//! What the analyses of a walk cost, by the time of walks with and without one.

/// How long walks took: two that were made one after the other, for each pair. In nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct WalkTimes {
    /// Those with all analyses.
    pub whole_ns: Vec<u64>,
    /// Those without something, in the same order.
    pub without_ns: Vec<u64>,
}

/// What a part of a walk costs.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkCost {
    /// What it is.
    pub name: String,
    /// What it takes of a walk, in nanoseconds: the median of all pairs. It may be negative where it is less than the
    /// noise.
    pub cost_ns: i64,
    /// Where the middle half of them begins. What lies between that and its end is noise.
    pub low_ns: i64,
    /// Where it ends.
    pub high_ns: i64,
}

/// What the parts of a walk over a recording cost.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkCosts {
    /// How many events were read.
    pub events: u64,
    /// How many pairs of walks there were for each part.
    pub pairs: usize,
    /// A walk whose events are read, brought into order and followed as all analyses need it, and go to none of them;
    /// then each analysis, beginning with the dearest, with what it alone needs; last a walk with all of them.
    ///
    /// The rows between the first and the last need not add up: what several analyses need in common is there as long
    /// as one of them is.
    pub rows: Vec<WalkCost>,
}

impl WalkCosts {
    /// Returns what walks show: those without analyses, and for each analysis those without it.
    pub fn of(events: u64, reading: &WalkTimes, analyses: Vec<(String, WalkTimes)>) -> WalkCosts {
        let pairs = reading.whole_ns.len();
        let mut whole = reading.whole_ns.clone();
        whole.extend(analyses.iter().flat_map(|(_, times)| &times.whole_ns));
        let signed = |ns: &u64| i64::try_from(*ns).unwrap_or(i64::MAX);
        let alone = |ns: &[u64]| ns.iter().map(signed).collect::<Vec<i64>>();
        let mut rows: Vec<WalkCost> = analyses
            .into_iter()
            .map(|(name, times)| {
                let pairs = times.whole_ns.iter().zip(&times.without_ns);
                let less = |(whole, without)| signed(whole).saturating_sub(signed(without));
                WalkCost::of(name, pairs.map(less).collect())
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.cost_ns));
        let first = WalkCost::of("reading and order".to_owned(), alone(&reading.without_ns));
        rows.insert(0, first);
        rows.push(WalkCost::of("all".to_owned(), alone(&whole)));
        WalkCosts {
            events,
            pairs,
            rows,
        }
    }

    /// Returns what something costs an event, in nanoseconds; `None` where there is no event.
    pub fn event_ns(&self, cost_ns: i64) -> Option<f64> {
        (self.events > 0).then(|| cost_ns as f64 / self.events as f64)
    }

    /// Returns the part of a walk with all analyses that something takes; `None` where that took no time.
    pub fn share(&self, cost_ns: i64) -> Option<f64> {
        let whole = self.rows.last().map(|row| row.cost_ns);
        let whole = whole.filter(|whole| *whole > 0)?;
        Some(cost_ns as f64 / whole as f64)
    }
}

impl WalkCost {
    fn of(name: String, mut costs_ns: Vec<i64>) -> WalkCost {
        costs_ns.sort_unstable();
        let quarter = |part: usize| {
            let ns = costs_ns.get(costs_ns.len() * part / 4);
            ns.copied().unwrap_or(0)
        };
        WalkCost {
            cost_ns: quarter(2),
            low_ns: quarter(1),
            high_ns: quarter(3),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_medians_of_pairs() {
        let times = |whole: &[u64], without: &[u64]| WalkTimes {
            whole_ns: whole.to_vec(),
            without_ns: without.to_vec(),
        };
        let costs = WalkCosts::of(
            10,
            &times(&[1000, 1100, 1000], &[400, 500, 390]),
            vec![
                (
                    "cheap".to_owned(),
                    times(&[1000, 1200, 900], &[1001, 1190, 895]),
                ),
                (
                    "dear".to_owned(),
                    times(&[1000, 1000, 1000], &[700, 800, 600]),
                ),
            ],
        );
        let rows: Vec<_> = costs
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.low_ns, row.cost_ns, row.high_ns))
            .collect();
        let expected = [
            ("reading and order", 390, 400, 500),
            ("dear", 200, 300, 400),
            ("cheap", -1, 5, 10),
            ("all", 1000, 1000, 1000),
        ];
        assert_eq!(rows, expected);
        assert_eq!((costs.events, costs.pairs), (10, 3));
        assert_eq!(costs.event_ns(300), Some(30.0));
        assert_eq!(costs.share(300), Some(0.3));
        // Of nothing there is no share.
        let costs = WalkCosts::of(0, &WalkTimes::default(), Vec::new());
        assert_eq!((costs.event_ns(1), costs.share(1)), (None, None));
    }
}
