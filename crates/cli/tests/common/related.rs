//! Whether two measurements of the same things are related.

use super::{Failures, tell};

/// Pearson's correlation of pairs.
pub(crate) fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |product: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs
            .iter()
            .map(|pair| product(pair.0 - x, pair.1 - y))
            .sum()
    };
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

/// The correlation of ranks (Spearman's): one long time more or less does not decide it.
pub(crate) fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0.0; values.len()];
        for (rank, at) in order.into_iter().enumerate() {
            ranks[at] = rank as f64;
        }
        ranks
    };
    let x = ranks(pairs.iter().map(|pair| pair.0).collect());
    let y = ranks(pairs.iter().map(|pair| pair.1).collect());
    correlation(&x.into_iter().zip(y).collect::<Vec<_>>())
}

/// Checks that what the guest measured of each ping and what the paths did are related, and each and what the paths
/// did for the next ping are not.
pub(crate) fn related(failures: &mut Failures, name: &str, pairs: &[(f64, f64)]) {
    let shifted: Vec<(f64, f64)> = pairs.windows(2).map(|two| (two[0].0, two[1].1)).collect();
    let (all, ranks) = (correlation(pairs), rank_correlation(pairs));
    let next = (correlation(&shifted), rank_correlation(&shifted));
    tell(&format!(
        "{name}: {} pings, r {all:.4}, ranks {ranks:.4}, the next ping's {next:.3?}",
        pairs.len()
    ));
    failures.check(all > 0.95 && ranks > 0.95, || {
        format!("{name}: r {all}, ranks {ranks}")
    });
    failures.check(next.0.abs() < 0.6 && next.1.abs() < 0.6, || {
        format!("{name}: {next:?}")
    });
}
