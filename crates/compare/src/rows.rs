//! What is news of a row that has a count and a time.

/// Changes by less than this share are called none in sentences.
const SMALL: f64 = 0.1;
/// What is improbable enough to be what a sentence is of.
const RARE: f64 = 0.01;

/// What the sentence is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    Count,
    Time,
}

/// How likely the differences of a row are by chance, and their values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPieces {
    pub count: (f64, [f64; 2]),
    pub time: (f64, [f64; 2]),
    /// How many there are on both sides together.
    pub few: u64,
}

impl RowPieces {
    /// Fewer of something on both sides together say nothing.
    pub(crate) const FEW: u64 = 5;

    /// Returns what the sentence is of, and the confidence that it is news. It is the better of two, each of which had
    /// its chance to be so by accident.
    pub(crate) fn lead(&self) -> (Lead, f64) {
        if self.few < Self::FEW {
            return (Lead::Count, 0.0);
        }
        let counts = self.count.0 <= RARE && !small(self.count.1);
        let times = self.time.0 < self.count.0 || self.time.0 <= RARE && !small(self.time.1);
        let (lead, chance) = if times && !counts {
            (Lead::Time, self.time.0)
        } else {
            (Lead::Count, self.count.0)
        };
        (lead, 1.0 - (2.0 * chance).min(1.0))
    }

    /// Returns the words for how often, beside a time that is the news.
    pub(crate) fn often(&self) -> &'static str {
        if small(self.count.1) {
            "as often as before"
        } else {
            "how often may be noise"
        }
    }
}

fn small([a, b]: [f64; 2]) -> bool {
    (b - a).abs() < SMALL * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_leads() {
        let of = |count: (f64, [f64; 2]), time: (f64, [f64; 2])| {
            let few = 100;
            RowPieces { count, time, few }
        };
        let doubled = of((0.8, [100.0, 101.0]), (1e-9, [1e6, 2e6]));
        assert_eq!(doubled.lead(), (Lead::Time, 1.0 - 2e-9));
        assert_eq!(doubled.often(), "as often as before");
        let both = of((1e-6, [100.0, 150.0]), (1e-9, [1e6, 2e6]));
        assert_eq!(both.lead(), (Lead::Count, 1.0 - 2e-6));
        // Many counts tell small differences apart, which are not what matters.
        let slower = of((1e-6, [100.0, 102.0]), (1e-9, [1e6, 2e6]));
        assert_eq!(slower.lead().0, Lead::Time);
        let few = RowPieces { few: 4, ..doubled };
        assert_eq!(few.lead(), (Lead::Count, 0.0));
    }
}
