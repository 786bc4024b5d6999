//! Analyses of whole recordings: those made by hand, with the truth at their head, and those of the corpus, beside what
//! the standard tools, the guest or the events themselves say. A file is a module:
//! `cargo test -p analysis --test corpus -- vcpu_states::` runs the tests of one.

mod any_events;
mod console;
mod exits_equal_perf;
mod figures;
mod filtered_counts;
mod holes;
mod intel_truth;
mod one_walk;
mod polls_equal_kvms;
mod sched_equals_perf;
mod stacks;
mod unknown_reasons;
mod vcpu_states;
mod vcpus_add_up;
