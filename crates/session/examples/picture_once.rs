//! Takes the picture of a recording that rules look at, once, with one thread, and prints a number that changes with
//! anything in it: what a profiler, or a tool that counts instructions, is pointed at.
//!
//! `cargo build --release -p session --example picture_once`, then
//! `valgrind --tool=callgrind target/release/examples/picture_once RECORDING`

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};

use session::{PictureOptions, Session, SessionOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give a recording")?;
    let options = SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    };
    let session = Session::open(options)?;
    let pictures = session.pictures(&[file.into()], &PictureOptions::default())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(format!("{pictures:?}").as_bytes());
    writeln!(io::stdout(), "{:016x}", hasher.finish())?;
    Ok(())
}
