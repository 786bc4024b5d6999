//! What guests say whose recordings are walked with their host's.

mod inside;

pub use inside::{Inside, InsideReport};
