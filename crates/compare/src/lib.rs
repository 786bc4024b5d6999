/*!
What changed between two recordings, or two groups of them.

Each side is what its recordings (or printed tables) tell. Rates are for each second that was recorded; where tables
do not say how long they are of, counts are compared as they stand, and where a recording stands against a table only
shares and means (`basis.rs`). Each change has a confidence that it is more than what varies within the recordings
anyway (`chance.rs`), and an effect on time, by which changes are ranked.

Results of `trapline bench` stand side by side (`results.rs`).
*/
#![forbid(unsafe_code)]

mod apic;
mod basis;
mod burst;
mod chance;
mod change;
mod contradictions;
mod counters;
mod definitions;
mod differs;
mod distributions;
mod each;
mod exits;
mod families;
mod findings;
mod functions;
mod guest_modes;
mod guests;
mod latency;
mod names;
mod off_cpu;
mod parts;
mod printed_interrupts;
mod printed_shares;
mod results;
mod rows;
mod sched;
mod scores;
mod side;
mod stack_keys;
mod states;
mod student;
mod tails;
mod wait_causes;
mod whole;

pub use change::{
    ChangeUnit, CompareOptions, ComparedSide, Comparison, Difference, PerWork, SideAmount,
    SideChange, SideName,
};
pub use definitions::definitions;
pub use each::{EachCell, EachRow, EachSide, each, letter};
pub use names::{comparable_frame, stack_group};
pub use results::{Fact, ResultRow, Results, results};
pub use whole::{compare, compare_scored};
