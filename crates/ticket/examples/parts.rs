//! Prints the parts of a text: `cargo run -p ticket --example parts FILE`.

#![allow(clippy::print_stdout)]

use std::{env, fs};

fn main() {
    for path in env::args().skip(1) {
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let ticket = ticket::read(&text);
        println!("{path}");
        for part in &ticket.parts {
            println!(
                "{:>6}-{:<6} {:?} {:?} {:?}",
                part.first_line, part.last_line, part.kind, part.definition, part.name
            );
        }
        println!(
            "read {}, unread {} from {}",
            ticket.lines_read(),
            ticket.unread.lines,
            ticket.unread.first
        );
    }
}
