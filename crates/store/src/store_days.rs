//! The days of a store, and which of them a clock made up.

use std::path::Path;

use render::store::StoreTable;

use crate::StoreError;
use crate::place::days;

/// The days of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDays {
    past: Vec<String>,
    future: Vec<String>,
}

impl StoreDays {
    /// Reads them. `today` is the day it is, in UTC, as 2026-11-23.
    ///
    /// # Errors
    ///
    /// The store's folders cannot be read.
    pub fn of(store: &Path, today: &str) -> Result<StoreDays, StoreError> {
        Ok(StoreDays::new(days(store, StoreTable::Runs)?, today))
    }

    fn new(mut days: Vec<String>, today: &str) -> StoreDays {
        days.retain(|day| words::parse_utc_day(day).is_some());
        days.sort();
        let (future, past) = days.into_iter().partition(|day| is_future(day, today));
        StoreDays { past, future }
    }

    /// Returns the days that a store is asked of by itself, earliest first: those until today, or where there is none
    /// of these, all.
    pub fn asked(&self) -> &[String] {
        match self.past.is_empty() {
            true => &self.future,
            false => &self.past,
        }
    }

    /// Returns the days after today, earliest first: a host's clock was wrong.
    pub fn future(&self) -> &[String] {
        &self.future
    }
}

/// Returns whether a day is after today.
pub(crate) fn is_future(day: &str, today: &str) -> bool {
    day > today
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_after_today_stand_apart() {
        let of = |days: &[&str]| {
            let days = days.iter().map(|day| (*day).to_owned()).collect();
            let days = StoreDays::new(days, "2026-11-23");
            (days.asked().join(" "), days.future().join(" "))
        };
        let pair = |asked: &str, future: &str| (asked.to_owned(), future.to_owned());
        assert_eq!(
            of(&["2026-11-24", "2026-11-23", "yesterday", "2026-11-09"]),
            pair("2026-11-09 2026-11-23", "2026-11-24")
        );
        assert_eq!(of(&["2999-01-01"]), pair("2999-01-01", "2999-01-01"));
        assert_eq!(of(&[]), pair("", ""));
    }
}
