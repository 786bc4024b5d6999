//! The program's tests, in one binary: linking one for each file took longer than running them.
//!
//! A file of tests is a module here; `cargo test -p trapline --test all -- compare::` runs those of one file.

mod common;

mod accesses_alone;
mod attacks;
mod bench;
mod bench_explain;
mod cases;
mod check_commands;
mod compare;
mod compare_each;
mod compare_sides;
mod console;
mod counters;
mod cut_files;
mod definition_alone;
mod dependencies;
mod diagnose_command;
mod documents;
mod doubt_scopes;
mod doubts_agree;
mod errors;
mod exit_statuses;
mod explain;
mod export;
mod export_ctf;
mod exporter;
mod facts;
mod facts_command;
mod filters;
mod flame;
mod flame_firefox;
mod flame_folded;
mod flame_guest;
mod flame_picture;
mod flame_pprof;
mod flame_user;
mod fleet_questions;
mod forms_agree;
mod front_door;
mod golden;
mod guest_agent;
mod guest_compare;
mod guest_export;
mod guest_paths;
mod guest_questions;
mod guest_reports;
mod guest_several;
mod guest_stacks;
mod guests;
mod guides;
mod hostile_names;
mod house;
mod interrupted;
mod irqs;
mod json_contract;
mod kills;
mod max_memory;
mod multiplied;
mod near_names;
mod new_files;
mod paths_command;
mod printed_tables;
mod progress;
mod prometheus_files;
mod record_command;
mod record_compact;
mod record_flight;
mod record_lines;
mod record_pairs;
mod record_selectors;
mod record_store;
mod record_user;
mod redact;
mod report_cost;
mod report_page;
mod report_real;
mod report_web;
mod salvage;
mod sandbox;
mod sched_waits;
mod schemas;
mod screen;
mod sql;
mod store;
mod store_breaks;
mod store_sums;
mod system_registers;
mod terminal_tables;
mod tickets;
mod ticks;
mod top;
mod virtqueues;
mod watch_command;
mod why_command;
mod wrong_inputs;

#[test]
fn every_file_of_tests_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(folder).expect("the folder of this file") {
        let name = entry.expect("a readable folder").file_name();
        let name = name.to_string_lossy();
        if let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") {
            let line = format!("\nmod {name};\n");
            assert!(
                include_str!("main.rs").contains(&line),
                "main.rs has no mod {name}"
            );
        }
    }
}
