//! Numbers for tests, the same in every run.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct MadeNumbers(pub(crate) u64);

impl MadeNumbers {
    /// Returns a number between 0 and 1, neither of them included.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns one of some things.
    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.uniform() * all.len() as f64) as usize]
    }

    /// Returns a number of Student's distribution.
    pub(crate) fn student(&mut self, freedom: f64) -> f64 {
        let student = StudentsT::new(0.0, 1.0, freedom).expect("a distribution");
        student.inverse_cdf(self.uniform())
    }

    /// Returns a number of the normal distribution about 0.
    pub(crate) fn normal(&mut self, deviation: f64) -> f64 {
        let normal = Normal::new(0.0, 1.0).expect("a distribution");
        deviation * normal.inverse_cdf(self.uniform())
    }
}
