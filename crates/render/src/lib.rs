/*!
Numbers to text, JSON, CSV and HTML.

Nothing here counts or decides: it prints what analyses found. Names of JSON fields are a contract with
other people's scripts.
*/
#![forbid(unsafe_code)]

pub mod bench;
pub mod bench_compare;
pub mod bench_explain;
pub mod clock_unit;
pub mod compare;
pub mod compare_each;
pub mod console;
#[cfg(test)]
mod contract;
pub mod cost;
pub mod csv;
pub mod diagnose;
pub mod exit_list;
pub mod exits;
pub mod facts;
pub mod flame;
pub mod flame_diff;
pub mod flame_folded;
pub mod flame_picture;
mod guest_tasks;
pub mod html;
pub mod info;
pub mod irqs;
pub mod json;
mod layout;
pub mod markdown;
pub mod metrics;
pub mod neutral;
pub mod overhead;
pub mod paths;
pub mod paths_instance;
pub mod perf_kvm;
pub mod perf_stat;
pub mod quality;
pub mod rules;
pub mod sched;
pub mod screen;
pub mod spans;
mod speedscope;
mod table;
mod times;
pub mod top;
pub mod vcpus;
mod vms;

pub use clock_unit::ClockUnit;
pub use layout::Layout;

/// Returns a name as it may stand in a line.
fn clean(text: &str) -> String {
    neutral::name(text).into_owned()
}

/// Returns every table with the place where documents have it, described for `docs/columns.md`.
#[cfg(test)]
fn tables() -> Vec<(&'static str, String)> {
    let durations: Vec<&str> = times::names(true).collect();
    let shares: Vec<&str> = times::names(false).collect();
    let states = [&durations[..], &shares];
    vec![
        ("`info`: `events`", info::columns().described(&[])),
        (
            "`exits`: `rows`",
            exits::columns().described(&[&exits::NARROW, &exits::WIDE, &shares]),
        ),
        ("`vcpus`: `rows`", vcpus::columns().described(&states)),
        (
            "`sched`: `rows`",
            sched::tasks().described(&[&sched::TASKS]),
        ),
        (
            "`sched`: `cpus` (CSV: `--by cpu`)",
            sched::cpu_columns().described(&[&sched::CPUS]),
        ),
        (
            "`flame`: `rows`",
            flame::columns().described(&[&flame::SHOWN, &flame::SHOWN_WAITS, &flame::SHOWN_BOTH]),
        ),
        (
            "`flame`: `vms`",
            flame::vms().described(&[&flame::SHOWN_VMS]),
        ),
        (
            "`flame --guest`: `spliced`",
            flame::spliced().described(&[&flame::SHOWN_GUESTS]),
        ),
        (
            "`flame`: `functions`",
            flame::functions().described(&[&flame::SHOWN_FUNCTIONS]),
        ),
        (
            "`flame --diff`: `functions`",
            flame_diff::columns().described(&[&flame_diff::SHOWN]),
        ),
        (
            "`flame` of folded stacks: `rows`",
            flame_folded::columns().described(&[&flame_folded::SHOWN, &flame_folded::SHOWN_TIMES]),
        ),
        (
            "`flame` of folded stacks: `functions`",
            flame::functions().described(&[&flame::SHOWN_FUNCTIONS]),
        ),
        (
            "`paths`: `paths[].stages`",
            paths::stages().described(&[&paths::SHOWN]),
        ),
        (
            "`paths --each`: `instances`",
            paths::instances().described(&[]),
        ),
        (
            "`compare`: `changes`, `likely`, `noise`",
            compare::columns().described(&[]),
        ),
        (
            "`compare --each`: `rows`, here of two recordings",
            compare_each::columns(2).described(&[]),
        ),
        ("`diagnose`: `findings`", diagnose::columns().described(&[])),
        (
            "`report` of what perf stat printed: `counts`",
            perf_stat::columns().described(&[&perf_stat::SHOWN]),
        ),
        (
            "`events --console`: `console`",
            console::columns().described(&[]),
        ),
        (
            "`export --table spans` (CSV alone)",
            spans::columns().described(&[]),
        ),
        (
            "`export --table spans` with recordings of guests (CSV alone)",
            spans::columns_with_guests().described(&[]),
        ),
        (
            "`export --table exits` (CSV alone)",
            exit_list::columns().described(&[&durations, &shares]),
        ),
        ("`rules`: `rules`", rules::columns().described(&[])),
    ]
}

/// Returns the tables of interrupts, in the same way.
#[cfg(test)]
fn irq_tables() -> Vec<(&'static str, String)> {
    vec![
        ("`irqs`: `rows`", irqs::columns().described(&[&irqs::SHOWN])),
        (
            "`irqs` with recordings of guests: `rows`",
            irqs::columns_with_guests().described(&[&irqs::SHOWN, &irqs::DELAYS]),
        ),
        (
            "`irqs` with recordings of guests: `rows[].guest.handlers`",
            irqs::handler_columns().described(&[&irqs::RUNS]),
        ),
    ]
}

/// Returns the tables of what is counted live, in the same way.
#[cfg(test)]
fn live_tables() -> Vec<(&'static str, String)> {
    vec![
        (
            "`top`: `vcpus`",
            top::vcpus().described(&[&top::views()[0]]),
        ),
        (
            "`top`: `rows`, `notifications`",
            top::exits().described(&[&top::views()[1], &top::views()[2]]),
        ),
        (
            "`top`: `threads`",
            top::threads().described(&[&top::views()[3]]),
        ),
        (
            "`top`: `behind`",
            top::behind().described(&[&top::views()[4]]),
        ),
        (
            "`overhead`: `rows`",
            overhead::columns().described(&[&overhead::SHOWN]),
        ),
        (
            "`bench`: `rows`",
            bench::columns(0).described(&[
                bench::shown(results::Bench::Ipi),
                bench::shown(results::Bench::Clock),
                bench::shown(results::Bench::Wake),
            ]),
        ),
        (
            "`compare` of results of `bench`: `rows`, here of two results",
            bench_compare::columns(2).described(&[]),
        ),
        (
            "`bench explain`: a row of CSV for each of `iterations`",
            bench_explain::columns().described(&[]),
        ),
    ]
}
