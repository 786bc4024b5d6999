//! One account: its rows, and what of them is explained, normal, or neither.

use super::part::{AccountPart, ExplainedTime};

/// More than this share of an account that nothing explains leaves it open.
pub const OPEN_SHARE: f64 = 0.1;

/// What a finding costs, and which time that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplainedCost<'f> {
    /// The finding's rule.
    pub rule: &'static str,
    /// Which time, what is taken first standing first.
    pub explains: &'f [ExplainedTime],
    /// How much of it.
    pub ns: u64,
}

/// One kind of time in an account.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountRow {
    /// What kind.
    pub part: AccountPart,
    /// What it is called: `npf exits in the VMM`, `waiting while its CPU was idle`.
    pub name: String,
    /// How long.
    pub ns: u64,
    /// How much of that findings explain.
    pub explained_ns: u64,
    /// Which rules do.
    pub explained_by: Vec<&'static str>,
    /// Whether what is left is normal.
    pub normal: bool,
    /// The arguments of `trapline` that show it.
    pub shown_by: String,
}

impl AccountRow {
    /// Returns a row that nothing explains yet.
    pub(super) fn new(
        part: AccountPart,
        name: impl Into<String>,
        ns: u64,
        shown_by: &str,
    ) -> AccountRow {
        AccountRow {
            part,
            name: name.into(),
            ns,
            explained_ns: 0,
            explained_by: Vec::new(),
            normal: false,
            shown_by: shown_by.to_owned(),
        }
    }

    /// Returns what neither a finding nor a criterion accounts for.
    pub fn unexplained_ns(&self) -> u64 {
        match self.normal || self.part == AccountPart::NotRecorded {
            true => 0,
            false => self.ns.saturating_sub(self.explained_ns),
        }
    }
}

/// One account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeAccount {
    /// Its rows, most time first.
    pub rows: Vec<AccountRow>,
    /// Whether all that is known is a sum of exits, as a printed table has it: how long the guest ran is not in it.
    pub of_exits: bool,
}

impl TimeAccount {
    pub(super) fn new(rows: Vec<AccountRow>) -> TimeAccount {
        let mut account = TimeAccount {
            rows: rows.into_iter().filter(|row| row.ns > 0).collect(),
            of_exits: false,
        };
        account.sort();
        account
    }

    fn sort(&mut self) {
        self.rows
            .sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    }

    fn sum(&self, of: impl Fn(&AccountRow) -> u64) -> u64 {
        self.rows.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns the time that was observed.
    pub fn observed_ns(&self) -> u64 {
        self.sum(|row| row.ns)
    }

    /// Returns what findings explain.
    pub fn explained_ns(&self) -> u64 {
        self.sum(|row| row.explained_ns)
    }

    /// Returns what is normal.
    pub fn normal_ns(&self) -> u64 {
        self.sum(|row| match row.normal {
            true => row.ns.saturating_sub(row.explained_ns),
            false => 0,
        })
    }

    /// Returns what nothing explains.
    pub fn unexplained_ns(&self) -> u64 {
        self.sum(AccountRow::unexplained_ns)
    }

    /// Returns the time of which the recording does not say what it was.
    pub fn unknown_ns(&self) -> u64 {
        self.sum(|row| match row.part {
            AccountPart::NotRecorded => row.ns.saturating_sub(row.explained_ns),
            _ => 0,
        })
    }

    /// Returns a part of it as a share of what was observed.
    pub fn share(&self, ns: u64) -> f64 {
        match self.observed_ns() {
            0 => 0.0,
            all => ns as f64 / all as f64,
        }
    }

    /// Returns whether so little is left that nothing large can be hidden in it.
    pub fn is_closed(&self) -> bool {
        let left = self.unexplained_ns().saturating_add(self.unknown_ns());
        self.share(left) <= OPEN_SHARE
    }

    /// Returns the rows that nothing explains, most time first.
    pub fn unexplained(&self) -> Vec<&AccountRow> {
        let mut rows: Vec<&AccountRow> = self.rows.iter().collect();
        rows.retain(|row| row.unexplained_ns() > 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.unexplained_ns()));
        rows
    }

    /// Gives a finding the time that it explains, as much as it costs and is left.
    pub(super) fn explain(&mut self, cost: &ExplainedCost<'_>) {
        let mut left = cost.ns;
        for what in cost.explains {
            let mut rows: Vec<&mut AccountRow> = self.rows.iter_mut().collect();
            rows.retain(|row| what.is(row.part));
            for row in rows {
                let ns = left.min(row.ns.saturating_sub(row.explained_ns));
                if ns > 0 {
                    row.explained_ns += ns;
                    left -= ns;
                    row.explained_by.push(cost.rule);
                }
            }
        }
    }

    /// Returns what findings explain of a kind of time.
    pub(super) fn explained_of(&self, part: AccountPart) -> u64 {
        let rows = self.rows.iter().filter(|row| row.part == part);
        rows.map(|row| row.explained_ns)
            .fold(0, u64::saturating_add)
    }

    /// Says of what is left of a single vCPU's time whether it is normal.
    pub(super) fn judge_single(&mut self) {
        let observed = self.observed_ns();
        for row in &mut self.rows {
            let left = row.ns.saturating_sub(row.explained_ns);
            let share = left as f64 / observed.max(1) as f64;
            row.normal = share <= row.part.normal_share_of_one();
        }
    }

    /// Says of what is left whether it is normal.
    pub(super) fn judge(&mut self) {
        let observed = self.observed_ns();
        let of_exits = self.of_exits;
        for row in &mut self.rows {
            let left = row.ns.saturating_sub(row.explained_ns);
            let share = left as f64 / observed.max(1) as f64;
            row.normal = share <= row.part.normal_share(of_exits);
        }
    }

    /// Adds another recording's.
    pub(super) fn merge(&mut self, other: TimeAccount) {
        self.of_exits |= other.of_exits;
        self.rows.extend(other.rows);
        self.sort();
    }
}
