//! Recordings of the corpus, and what is found in them when they are cut off, printed as text, or walked with their
//! guests.

mod cut_files;
mod doubt_scopes;
mod exit_details;
mod facts;
mod filters;
mod forms_agree;
mod guest_functions;
mod guest_paths;
mod guest_tasks;
mod inner_exits;
mod irqs;
mod names;
mod not_computed;
mod nothing_vanishes;
mod perf_folders;
mod printed_tables;
mod recorder;
mod sched_alone;
mod timeline;
mod timeline_hops;
mod unthreaded;
