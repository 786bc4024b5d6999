//! Options that several commands understand, and the values of options.

mod common;
mod format;
mod guests;
mod recordings;
mod rows;
mod storing;
pub(crate) mod values;

pub(crate) use common::{Common, FilterArgs};
pub(crate) use format::Format;
pub(crate) use guests::{GuestArgs, GuestOptions, named_guest};
pub(crate) use recordings::GivenRecordings;
pub(crate) use rows::{RowLimit, RowSort, sort_by};
pub(crate) use storing::StoringOptions;
pub(crate) use values::cpus;
