//! The SQL of what the screen is made of, which a job on Spark asks too (`fleet/spark/screen.sql`).

/// All statements.
const SCREEN_SQL: &str = include_str!("../../spark/screen.sql");
/// What the line above a statement begins with; the table's name stands behind it.
const TABLE: &str = "-- Table ";

/// Returns the tables that are asked.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    SCREEN_SQL.lines().filter_map(table)
}

/// Returns the statement of a table, about some days.
pub(super) fn statement(name: &str, days: &[String]) -> String {
    let lines = SCREEN_SQL
        .lines()
        .skip_while(|line| table(line) != Some(name));
    let lines = lines.skip(1).take_while(|line| table(line).is_none());
    let sql = lines.filter(|line| !line.starts_with("--"));
    let sql = sql.collect::<Vec<_>>().join("\n");
    let days: Vec<String> = days.iter().map(|day| quoted(day)).collect();
    sql.trim()
        .trim_end_matches(';')
        .replace(":days", &days.join(", "))
}

/// Returns the table that a line begins the statement of.
fn table(line: &'static str) -> Option<&'static str> {
    Some(line.strip_prefix(TABLE)?.split_once(':')?.0)
}

/// Returns a text as SQL writes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_statement_about_its_days() {
        let days = ["2026-01-05".to_owned(), "it's".to_owned()];
        assert_eq!(tables().count(), 6);
        for name in tables() {
            let sql = statement(name, &days);
            assert!(sql.starts_with("SELECT host, run, day,"), "{sql}");
            assert!(sql.contains(&format!("FROM {name}")), "{sql}");
            assert!(
                sql.contains("day IN ('2026-01-05', 'it''s')"),
                "{name}: {sql}"
            );
            assert!(!sql.contains(';') && !sql.contains("--"), "{sql}");
        }
    }
}
