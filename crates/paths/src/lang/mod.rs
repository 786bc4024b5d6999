//! The language that paths are written in: what a path file says, checked.
//!
//! The built-in paths are files of the same language (`builtin/`). `docs/path-language.md` is its manual.

mod cond;
mod error;
mod file;
#[cfg(test)]
mod manual;
mod pair;
mod part;
mod path;
mod table;

pub(crate) use cond::is_function_tracer;
pub use cond::{Attr, Class, Cond, Op, Pattern, Value};
pub use error::LangError;
pub use file::parse;
pub use pair::{Join, pair};
pub use path::{Alt, By, Chain, End, JoinRole, Optional, Path, Step};
pub(crate) use path::{MAX_ROLES, MAX_STEPS};
