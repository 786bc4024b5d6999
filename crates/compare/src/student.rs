//! Student's t distribution.

/// Steps of the continued fraction, at most; it converges within some dozen.
const STEPS: usize = 300;

/// Returns the probability that a variable of this distribution is as far from zero as `t` or farther.
pub(crate) fn two_sided(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return if t.is_nan() { 1.0 } else { 0.0 };
    }
    let freedom = if freedom.is_finite() {
        freedom.clamp(1.0, 1e6)
    } else {
        1e6
    };
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The regularized incomplete beta function, by its continued fraction (Lentz's method).
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges on the near side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let tiny = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0));
    let mut out = d;
    for step in 1..=STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / tiny(1.0 + term * d);
            c = tiny(1.0 + term / c);
            factor = c * d;
            out *= factor;
        }
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    out
}

/// Returns the probability that of `count` things, each of which is of the first kind with probability `share`, as few
/// or as many are as `first` of them, two-sided: twice that of the nearer end.
pub(crate) fn binomial(first: u64, count: u64, share: f64) -> f64 {
    if first > count || !(share > 0.0 && share < 1.0) {
        return 1.0;
    }
    let n = count as f64;
    let of = |k: u64| {
        let k = k as f64;
        let ways = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0);
        (ways + k * share.ln() + (n - k) * (1.0 - share).ln()).exp()
    };
    let low: f64 = (0..=first).map(of).sum();
    let high: f64 = (first..=count).map(of).sum();
    (2.0 * low.min(high)).min(1.0)
}

/// The logarithm of the gamma function of a positive number, by Stirling's series after the number was made large.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0f64);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::{binomial, two_sided};

    #[test]
    fn all_of_thirteen_on_one_side_are_no_chance() {
        for (first, count, share, expected) in [
            (13, 13, 0.5, 2.0 / 8192.0),
            (0, 5, 0.5, 0.0625),
            (3, 4, 0.5, 0.625),
            (2, 4, 0.5, 1.0),
            // One in ten of the time has all three.
            (3, 3, 0.1, 0.002),
        ] {
            let ours = binomial(first, count, share);
            assert!((ours - expected).abs() < 1e-9, "{first} {count}: {ours}");
        }
        assert_eq!(binomial(1, 3, 0.0), 1.0);
        assert_eq!(binomial(4, 3, 0.5), 1.0);
    }

    #[test]
    fn it_is_what_tables_of_the_distribution_say() {
        for (t, freedom, expected) in [
            (12.706, 1.0, 0.05),
            (4.604, 4.0, 0.01),
            (2.750, 30.0, 0.01),
            (-2.042, 30.0, 0.05),
            (2.576, 1e6, 0.01),
            (4.417, 1e6, 1e-5),
            (0.0, 7.0, 1.0),
        ] {
            let ours = two_sided(t, freedom);
            assert!(
                (ours / expected - 1.0).abs() < 3e-3,
                "{t} {freedom}: {ours}"
            );
        }
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
        assert_eq!(two_sided(f64::NAN, 3.0), 1.0);
        assert!(two_sided(1e9, 1e9) < 1e-300);
    }
}
