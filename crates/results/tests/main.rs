//! Results that other tools printed.

mod scores;
