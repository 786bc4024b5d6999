//! The tests of this crate, in one binary: a file is a module, and `cargo test -p tracetext --test all -- damage::`
//! runs those of one file.

mod common;

mod cut_columns;
mod damage;
mod event_line;
mod ftrace;
mod function_graph;
mod misread;
mod no_cpu;
mod perf_script;
mod properties;
mod sniffing;
mod stacks;
mod trace_cmd;
