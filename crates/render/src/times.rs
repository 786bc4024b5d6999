//! Time by state, as columns and as fields.
use analysis::Unknowable;
use model::{State, Times};
use serde_json::{Value, json};
use words::{duration, share};

/// One column: states that are told together.
pub(crate) struct Column {
    /// What it is called; the field of a document is this with `_ns`.
    pub name: &'static str,
    states: &'static [State],
    /// Width of the column where it holds a share.
    pub width: usize,
}

/// The columns; they add up to the whole.
pub(crate) const COLUMNS: [Column; 7] = [
    column("guest", &[State::Guest], 6),
    column("kernel", &[State::Kernel, State::KernelBlocked], 7),
    column("user", &[State::User, State::UserBlocked], 6),
    column("poll", &[State::Poll], 6),
    column("halted", &[State::Halted], 7),
    column("runnable", &[State::Runnable], 9),
    column("unknown", &[State::Unknown], 8),
];

const fn column(name: &'static str, states: &'static [State], width: usize) -> Column {
    Column {
        name,
        states,
        width,
    }
}

impl Column {
    fn ns(&self, times: &Times) -> u64 {
        let of = self.states.iter().map(|state| times.get(*state));
        of.fold(0, u64::saturating_add)
    }

    fn hidden(&self, ns: u64, unknowable: &[Unknowable]) -> bool {
        let is_this = |field: &&str| field.strip_suffix("_ns") == Some(self.name);
        ns == 0
            && unknowable
                .iter()
                .any(|item| item.fields.iter().any(is_this))
    }

    /// Returns its share of the whole in per cent; a dash where nothing can be known of it.
    pub(crate) fn percent(&self, times: &Times, total: u64, unknowable: &[Unknowable]) -> String {
        let ns = self.ns(times);
        if self.hidden(ns, unknowable) {
            return "-".to_owned();
        }
        share::cell(ns as f64 / total.max(1) as f64)
    }

    /// Returns its time; a dash where nothing can be known of it.
    pub(crate) fn duration(
        &self,
        times: &Times,
        unknowable: &[Unknowable],
        nanoseconds: bool,
    ) -> String {
        let ns = self.ns(times);
        if self.hidden(ns, unknowable) {
            return "-".to_owned();
        }
        duration::of(ns, nanoseconds)
    }
}

/// Returns the fields of a document that tell times by state: their names and values in nanoseconds. The first
/// seven add up to the whole; the others are parts of them.
pub(crate) fn time_fields(times: &Times) -> Vec<(String, u64)> {
    let mut fields: Vec<(String, u64)> = COLUMNS
        .iter()
        .map(|column| (format!("{}_ns", column.name), column.ns(times)))
        .collect();
    for (name, state) in [
        ("kernel_blocked_ns", State::KernelBlocked),
        ("user_blocked_ns", State::UserBlocked),
    ] {
        fields.push((name.to_owned(), times.get(state)));
    }
    fields
}

/// Returns what cannot be known as JSON.
pub(crate) fn unknowable_json(list: &[Unknowable]) -> Value {
    let items = list
        .iter()
        .map(|item| json!({"fields": item.fields, "why": item.why}));
    items.collect()
}
