//! Lines of `perf script`: the expected ones were printed by perf 6.1 (`--symfs` of an empty folder,
//! `--guestkallsyms=/dev/null`) for recordings that hold the same records.

mod addresses;
mod anything;
mod columns;
mod script;
