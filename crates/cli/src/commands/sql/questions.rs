//! The questions that come along.

use anyhow::Result;

use super::SqlArgs;
use crate::usage::Usage;

const ALL: &str = include_str!("questions.sql");

/// A question: what it asks, and its SQL.
struct ShippedQuestion {
    title: &'static str,
    sql: &'static str,
}

fn all() -> Vec<ShippedQuestion> {
    let questions = ALL.split("\n-- Q").skip(1);
    let questions = questions.filter_map(|text| {
        let (head, sql) = text.split_once('\n')?;
        let (_, title) = head.split_once(' ')?;
        let sql = sql.trim().trim_end_matches(';');
        Some(ShippedQuestion { title, sql })
    });
    questions.collect()
}

/// Returns their list.
pub(super) fn list() -> String {
    let all = all();
    let lines = all.iter().zip(1..);
    lines
        .map(|(question, number)| format!("{number:>2}  {}\n", question.title))
        .collect()
}

/// Returns the SQL of one, of the days that are asked for, or the last of these.
///
/// # Errors
/// There is no such question, or a day is none.
pub(super) fn text(number: usize, args: &SqlArgs, days: Option<&[String]>) -> Result<String> {
    let all = all();
    let Some(question) = number.checked_sub(1).and_then(|at| all.get(at)) else {
        return Err(Usage::error(format!(
            "there is no question {number}; --question 0 lists those from 1 to {}",
            all.len()
        )));
    };
    for day in [&args.day, &args.before].into_iter().flatten() {
        if words::parse_utc_day(day).is_none() {
            return Err(Usage::error(format!(
                "{day} is no day: write it as 2026-11-23"
            )));
        }
    }
    let days = days.unwrap_or_default();
    let day = args.day.clone().or_else(|| days.last().cloned());
    let day = day.unwrap_or_default();
    let earlier = days.iter().rev().find(|one| **one < day).cloned();
    // A store of one day has none to hold it against: nothing came and nothing went.
    let before = args.before.clone().or(earlier).unwrap_or_default();
    let sql = question.sql.replace(":day", &format!("'{day}'"));
    Ok(sql.replace(":before", &format!("'{before}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No parameter stays behind in any of them.
    #[test]
    fn questions_are_whole() {
        let all = all();
        assert_eq!(all.len(), 12);
        for question in &all {
            let first = question.sql.split_whitespace().next();
            assert!(
                matches!(first, Some("SELECT" | "WITH")),
                "{}",
                question.title
            );
            let sql = question.sql.replace(":day", "").replace(":before", "");
            assert!(!sql.contains(':'), "{}", question.title);
        }
    }
}
