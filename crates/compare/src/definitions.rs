//! In what the definitions of both sides' guests differ.

use domain::{Domain, DomainDifference, differences};

use crate::change::Difference;

/// Differences that are named.
const LISTED: usize = 12;

/// Returns in what two definitions differ, as what was there before anything was measured; `None` where they say the
/// same.
pub fn definitions(a: &Domain, b: &Domain) -> Option<Difference> {
    let found = differences(a, b);
    let one = |one: &DomainDifference| {
        let side = |said: &Option<String>| said.clone().unwrap_or_else(|| "not given".to_owned());
        format!("{} ({} and {})", one.what, side(&one.a), side(&one.b))
    };
    let mut named: Vec<String> = found.iter().take(LISTED).map(one).collect();
    let more = found.len().saturating_sub(LISTED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    (!found.is_empty()).then(|| Difference {
        what: "definition",
        text: format!("The guests' definitions differ: {}.", named.join("; ")),
    })
}
