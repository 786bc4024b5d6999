/*!
Numbers to text, JSON, CSV and HTML.

Nothing here counts or decides: it prints what analyses found. Names of JSON fields are a contract with
other people's scripts.
*/
#![forbid(unsafe_code)]

mod amounts;
pub mod bench;
pub mod bench_compare;
pub mod bench_explain;
pub mod clock_unit;
pub mod compare;
pub mod compare_each;
pub mod compare_sides;
mod compare_table;
mod compare_words;
pub mod console;
#[cfg(test)]
mod contract;
pub mod cost;
pub mod counters;
pub mod cpu_usage;
pub mod csv;
pub mod definition;
pub mod diagnose;
pub mod distributions;
pub mod exit_list;
pub mod exits;
pub mod exits_document;
pub mod explain;
pub mod facts;
pub mod firefox;
pub mod flame;
pub mod flame_diff;
pub mod flame_folded;
pub mod flame_picture;
pub mod guest_tasks;
pub mod html;
pub mod info;
pub mod interrupts;
pub mod ipis;
pub mod irqs;
pub mod json;
mod layout;
pub mod ledger;
pub mod markdown;
pub mod metrics;
pub mod neutral;
pub mod overhead;
pub mod part;
pub mod parts;
pub mod paths;
pub mod paths_instance;
pub mod paths_order;
mod paths_stored;
pub mod perf_kvm;
pub mod perf_stat;
pub mod quality;
pub mod redact;
mod row_doubts;
pub mod rules;
pub mod salvage;
pub mod sched;
pub mod sched_page;
mod sched_waits;
pub mod schema;
mod schema_types;
pub mod screen;
pub mod shares;
pub mod spans;
mod speedscope;
pub mod store;
mod table;
pub mod tickets;
mod times;
pub mod top;
pub mod vcpus;
pub mod virtqueues;
mod vms;
pub mod walk_costs;

pub use clock_unit::ClockUnit;
pub use layout::Layout;
pub use table::{StoredColumn, UnknownColumn};

/// Returns a name as it may stand in a line.
fn clean(text: &str) -> String {
    neutral::name(text).into_owned()
}

/// Returns every table with the place where documents have it, described for `docs/columns.md`.
#[cfg(test)]
fn tables() -> Vec<(&'static str, String)> {
    let none = doubts::Doubts::default();
    vec![
        ("`info`: `events`", info::columns().described()),
        (
            "`exits`: `rows`",
            exits::columns_in_documents(&none).described(),
        ),
        (
            "`vcpus`: `rows`",
            vcpus::columns_in_documents(&none).described(),
        ),
        (
            "`sched`: `rows`",
            sched::tasks_in_documents(&none).described(),
        ),
        (
            "`sched`: `cpus` (CSV: `--by cpu`)",
            sched::cpus_in_documents(&none).described(),
        ),
        (
            "`flame`: `rows`",
            flame::columns_in_documents(&none).described(),
        ),
        ("`flame`: `vms`", flame::vms().described()),
        ("`flame --guest`: `spliced`", flame::spliced().described()),
        ("`flame`: `functions`", flame::functions().described()),
        (
            "`flame --diff`: `functions`",
            flame_diff::columns().described(),
        ),
        (
            "`flame` of folded stacks: `rows`",
            flame_folded::columns().described(),
        ),
        (
            "`flame` of folded stacks: `functions`",
            flame::functions().described(),
        ),
        ("`paths`: `paths[].stages`", paths::stages().described()),
        (
            "`paths --each`: `instances`",
            paths_instance::instances().described(),
        ),
        (
            "`compare`: `changes`, `likely`, `noise`",
            compare::columns().described(),
        ),
        (
            "`compare --each`: `rows`, here of two recordings",
            compare_each::columns(2).described(),
        ),
        ("`diagnose`: `findings`", diagnose::columns().described()),
        (
            "`diagnose --domain`: `remarks` (CSV without a recording)",
            definition::columns().described(),
        ),
        (
            "`events --console`: `console`",
            console::columns().described(),
        ),
        (
            "`export --table spans` (CSV alone)",
            spans::columns().described(),
        ),
        (
            "`export --table spans` with recordings of guests (CSV alone)",
            spans::columns_with_guests().described(),
        ),
        (
            "`export --table exits` (CSV alone)",
            exit_list::columns().described(),
        ),
        ("`rules`: `rules`", rules::columns().described()),
    ]
}

/// Returns the tables of what tools printed, in the same way.
#[cfg(test)]
fn printed_tables() -> Vec<(&'static str, String)> {
    vec![
        (
            "`report` of what perf stat printed: `counts`",
            perf_stat::columns().described(),
        ),
        (
            "`report` of what perf report printed: `shares.tasks`, `shares.functions`",
            shares::columns().described(),
        ),
        (
            "`report` of `/proc/interrupts`: `interrupts.rows`",
            interrupts::columns().described(),
        ),
        (
            "`report` of what virtiostat printed: `virtio`",
            interrupts::queues().described(),
        ),
        (
            "`report` of what mpstat printed: `cpu_usage`",
            cpu_usage::columns().described(),
        ),
        (
            "`report` of what bcc's tools and bpftrace printed: `distributions`",
            distributions::columns().described(),
        ),
    ]
}

/// Returns the tables of interrupts, in the same way.
#[cfg(test)]
fn irq_tables() -> Vec<(&'static str, String)> {
    vec![
        ("`irqs`: `rows`", irqs::columns().described()),
        (
            "`irqs` with recordings of guests: `rows`",
            irqs::columns_with_guests().described(),
        ),
        (
            "`irqs` with recordings of guests: `rows[].guest.handlers`",
            irqs::handler_columns().described(),
        ),
        ("`counters`: `rows`", counters::columns().described()),
        ("`irqs`: `ipis.by_distance`", ipis::columns().described()),
    ]
}

/// Returns the tables of what is counted live, in the same way.
#[cfg(test)]
fn live_tables() -> Vec<(&'static str, String)> {
    vec![
        ("`virtqueues`: `rows`", virtqueues::columns().described()),
        ("`top`: `vcpus`", top::vcpus().described()),
        ("`top`: `rows`, `notifications`", top::exits().described()),
        ("`top`: `threads`", top::threads().described()),
        ("`top`: `behind`", top::behind().described()),
        (
            "`top --counters`: `counters`",
            top::counter_columns().described(),
        ),
        ("`overhead`: `rows`", overhead::columns().described()),
        ("`redact`: `rows`", redact::columns().described()),
        ("`salvage`: `cpus`", salvage::columns().described()),
        ("`explain`: `parts`", explain::parts().described()),
        ("`explain`: `evidence`", explain::commands().described()),
        (
            "`report --cost`: `costs[].rows`",
            walk_costs::columns().described(),
        ),
        ("`bench`: `rows`", bench::columns(0).described()),
        (
            "`compare` of results of `bench`: `rows`, here of two results",
            bench_compare::columns(2).described(),
        ),
        (
            "`bench explain`: a row of CSV for each of `iterations`",
            bench_explain::columns().described(),
        ),
    ]
}
