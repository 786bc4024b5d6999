//! The tests of this crate, in one binary: a file is a module, and `cargo test -p perftables --test all -- damage::`
//! runs those of one file.

mod cells;
mod damage;
mod distributions;
mod forms;
mod interrupts;
mod kvm_stat;
mod more_forms;
mod one_line;
mod references;
mod shares;
mod strace;
mod tables;
mod timehist;
