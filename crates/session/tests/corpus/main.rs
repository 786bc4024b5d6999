//! Recordings of the corpus, and what is found in them when they are cut off, printed as text, or walked with their
//! guests.

mod forms_agree;
mod guest_paths;
mod guest_tasks;
mod nothing_vanishes;
mod timeline;
mod timeline_hops;
