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
pub use cond::{
    ComparisonOperand, ComparisonOperator, EventAttribute, EventCondition, EventPattern,
    ThreadClass,
};
pub use error::LanguageError;
pub use file::parse;
pub use pair::{PairJoin, pair};
pub use path::{
    EXIT_EVENT, PathChain, PathDefinition, PathGrouping, PathStep, RoleJoin, StepAlternative,
    StepOption, WaitEnd,
};
pub(crate) use path::{MAX_ROLES, MAX_STEPS};
