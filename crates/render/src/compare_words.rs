//! Values that are compared, in words.

use compare::{ChangeUnit, SideAmount};
use words::{duration, share};

/// Returns a side's value as people read it.
pub(crate) fn worded(value: &SideAmount, unit: ChangeUnit) -> String {
    match value {
        SideAmount::Number(number) => with_unit(*number, unit),
        SideAmount::Word(word) => crate::clean(word),
        SideAmount::Absent => "-".to_owned(),
    }
}

/// Returns a number with its unit.
pub(crate) fn with_unit(number: f64, unit: ChangeUnit) -> String {
    match unit {
        ChangeUnit::Nanoseconds => duration::human(number.max(0.0).round() as u64),
        ChangeUnit::Share => share::tenths(number),
        ChangeUnit::PerSecond => format!("{}/s", words::number(number)),
        ChangeUnit::BitsPerSecond => format!("{} bit/s", words::number(number)),
        ChangeUnit::BytesPerSecond => format!("{} B/s", words::number(number)),
        ChangeUnit::Count | ChangeUnit::Ratio | ChangeUnit::Number | ChangeUnit::Word => {
            words::number(number)
        }
    }
}
