//! Options that several commands understand, and the values of options.

mod common;
mod guests;
pub(crate) mod values;

pub(crate) use common::{Common, FilterArgs, Format};
pub(crate) use guests::{GuestArgs, GuestOptions, named_guest};
pub(crate) use values::cpus;
