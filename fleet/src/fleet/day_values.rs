//! A metric's values by host and day.

use std::collections::BTreeMap;

/// The logarithms of a metric's values: of each host one for each day, those before first, in order, and that of the day
/// in question last.
#[derive(Debug, Default)]
pub(crate) struct DayValues {
    by_host: BTreeMap<String, Vec<Option<f64>>>,
}

impl DayValues {
    /// Says the value of a host on a day, of so many days.
    pub(crate) fn set(&mut self, host: &str, (at, days): (usize, usize), log: f64) {
        if !self.by_host.contains_key(host) {
            self.by_host.insert(host.to_owned(), vec![None; days]);
        }
        let of_host = self.by_host.get_mut(host);
        if let Some(value) = of_host.and_then(|of_host| of_host.get_mut(at)) {
            *value = Some(log);
        }
    }

    /// Returns a host's values: those of the days before, and that of the day in question.
    pub(crate) fn of(&self, host: &str) -> (&[Option<f64>], Option<f64>) {
        let of_host = self.by_host.get(host).and_then(|days| days.split_last());
        of_host.map_or((&[], None), |(now, before)| (before, *now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_value_a_day() {
        let mut values = DayValues::default();
        values.set("web", (2, 3), 2.0);
        values.set("web", (0, 3), 1.0);
        values.set("web", (3, 3), 9.0);
        assert_eq!(values.of("web"), (&[Some(1.0), None][..], Some(2.0)));
        assert_eq!(values.of("db"), (&[][..], None));
    }
}
