//! Values of events and reasons of exits, compared with what conditions want.

use std::cell::Cell;

use event::{ExitReason, FieldScalar, index_of};

use crate::lang::{ComparisonOperand, ComparisonOperator};

/// Compares a value with what a condition wants.
#[inline]
pub(crate) fn compare(
    value: &FieldScalar<'_>,
    op: ComparisonOperator,
    wanted: &ComparisonOperand,
) -> bool {
    match (value, wanted) {
        (FieldScalar::Number(number), ComparisonOperand::Number(wanted)) => {
            compare_numbers(*number, op, *wanted)
        }
        (FieldScalar::Text(text), ComparisonOperand::Text(wanted)) => match op {
            ComparisonOperator::Equal => text == wanted,
            ComparisonOperator::Differs => text != wanted,
            ComparisonOperator::Like => wildmatch::WildMatch::new(wanted).matches(text),
            _ => false,
        },
        (FieldScalar::Number(number), ComparisonOperand::Text(wanted)) => match op {
            ComparisonOperator::Like => {
                wildmatch::WildMatch::new(wanted).matches(&number.to_string())
            }
            ComparisonOperator::Differs => true,
            _ => false,
        },
        (FieldScalar::Text(text), ComparisonOperand::Number(wanted)) => match op {
            ComparisonOperator::Equal => *text == wanted.to_string(),
            ComparisonOperator::Differs => *text != wanted.to_string(),
            _ => false,
        },
    }
}

/// Compares numbers.
#[inline]
pub(crate) fn compare_numbers(number: u64, op: ComparisonOperator, wanted: i128) -> bool {
    // A field may be signed; what is negative there has its high bit set here. To ask whether a number is below 0
    // makes no sense of one that is not.
    let unsigned = i128::from(number);
    let sign = wanted == 0 && matches!(op, ComparisonOperator::Less | ComparisonOperator::AtLeast);
    let number = if wanted < 0 || sign {
        i128::from(number.cast_signed())
    } else {
        unsigned
    };
    match op {
        ComparisonOperator::Equal => number == wanted,
        ComparisonOperator::Differs => number != wanted,
        ComparisonOperator::Less => number < wanted,
        ComparisonOperator::AtMost => number <= wanted,
        ComparisonOperator::More => number > wanted,
        ComparisonOperator::AtLeast => number >= wanted,
        ComparisonOperator::Like => false,
    }
}

/// Answers that are remembered, by the lowest bits of a reason's number: a machine's exits have few reasons.
const REMEMBERED: usize = 64;

/// A reason, and whether it is what is asked for.
type CachedAnswer = Cell<Option<(ExitReason, bool)>>;

/// What is asked of the reason of an exit.
#[derive(Debug, Clone)]
pub(crate) struct ReasonCondition {
    op: ComparisonOperator,
    wanted: ComparisonOperand,
    known: Box<[CachedAnswer; REMEMBERED]>,
}

impl ReasonCondition {
    pub(super) fn new(op: ComparisonOperator, wanted: &ComparisonOperand) -> ReasonCondition {
        // HLT on Intel is hlt on AMD.
        let wanted = match wanted {
            ComparisonOperand::Text(text) => ComparisonOperand::Text(text.to_ascii_lowercase()),
            number => number.clone(),
        };
        ReasonCondition {
            op,
            wanted,
            known: Box::new([const { Cell::new(None) }; REMEMBERED]),
        }
    }

    /// Returns whether a reason is what is asked for. Reasons are compared by their names, which is not done at every
    /// exit.
    #[inline]
    pub(super) fn is(&self, reason: Option<ExitReason>) -> bool {
        let Some(reason) = reason else {
            return false;
        };
        let known = &self.known[index_of(reason.code) % REMEMBERED];
        match known.get() {
            Some((one, is)) if one == reason => is,
            _ => {
                let is = self.compare(reason);
                known.set(Some((reason, is)));
                is
            }
        }
    }

    #[cold]
    fn compare(&self, reason: ExitReason) -> bool {
        let key = reason.key().to_ascii_lowercase();
        compare(&FieldScalar::Text(key.into()), self.op, &self.wanted)
    }
}
