//! `--from EVENT[cond] --to EVENT[cond] --join ...`: any pair of events.

use super::cond::{EventAttribute, EventCondition, EventPattern};
use super::error::LanguageError;
use super::path::{PathChain, PathDefinition, PathStep, RoleJoin, StepAlternative, StepOption};

/// What both events of a pair have the same of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairJoin {
    /// Nothing: the last event before.
    Nearest,
    /// An attribute: thread, cpu, vcpu or a field.
    Same(EventAttribute),
}

impl PairJoin {
    /// Parses `thread`, `cpu`, `vcpu`, `any`, or the name of a field.
    ///
    /// # Errors
    /// It is no name.
    pub fn parse(text: &str) -> Result<PairJoin, LanguageError> {
        Ok(match text.trim() {
            "any" | "none" => PairJoin::Nearest,
            // A vCPU is its thread.
            "vcpu" => PairJoin::Same(EventAttribute::Thread),
            name => PairJoin::Same(EventAttribute::parse(name)?),
        })
    }
}

/// Makes a path of two events: each `to` is joined to the nearest `from` before it.
///
/// # Errors
/// A selector is none.
pub fn pair(from: &str, to: &str, join: &PairJoin) -> Result<PathDefinition, LanguageError> {
    let mut roles = Vec::new();
    let mut first = selector(from).map_err(|e| LanguageError(format!("--from {from}: {e}")))?;
    let mut second = selector(to).map_err(|e| LanguageError(format!("--to {to}: {e}")))?;
    let mut unique = Vec::new();
    {
        let attr = match join {
            PairJoin::Nearest => &EventAttribute::Any,
            PairJoin::Same(attr) => attr,
        };
        roles.push("same".to_owned());
        first.binds.push((0, attr.clone()));
        second.joins.push(RoleJoin {
            attr: attr.clone(),
            role: 0,
            differs: false,
        });
        unique.push(0);
    }
    let step = |name: &str, alt: StepAlternative, unique: Vec<usize>| PathStep {
        name: name.to_owned(),
        optional: StepOption::Never,
        counts: true,
        unique,
        alts: vec![alt],
        ..PathStep::default()
    };
    let (from, to) = (from.trim(), to.trim());
    Ok(PathDefinition {
        name: format!("{from} → {to}"),
        about: "From the nearest event before to the event.".to_owned(),
        by: None,
        only_if_found: false,
        chains: vec![PathChain {
            name: None,
            steps: vec![step(from, first, unique), step(to, second, Vec::new())],
            roles,
        }],
    })
}

/// Parses `EVENT`, or `EVENT[COND, COND]`.
pub(super) fn selector(text: &str) -> Result<StepAlternative, LanguageError> {
    let text = text.trim();
    let (name, conds) = match text.split_once('[') {
        None => (text, None),
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(conds) => (name, Some(conds)),
            None => {
                return Err(LanguageError(
                    "has a '[' and no ']' at its end; expected EVENT[COND, COND]".to_owned(),
                ));
            }
        },
    };
    let mut alt = StepAlternative {
        events: vec![EventPattern::parse(name)?],
        ..StepAlternative::default()
    };
    for cond in conds.iter().flat_map(|conds| split(conds)) {
        alt.conds.push(EventCondition::parse(cond)?);
    }
    Ok(alt)
}

/// Splits at commas and `&&` outside of quotes.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quote, mut skip) = (0, None, 0);
    for (at, c) in text.char_indices() {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ',') => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, '&') if text[at..].starts_with("&&") => {
                parts.push(&text[start..at]);
                start = at + 2;
                skip = 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}
