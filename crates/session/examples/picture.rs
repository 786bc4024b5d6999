//! Prints the exits of a recording by reason, and what makes its VMs slow:
//! `cargo run -p session --example picture -- perf.data`.

#![allow(clippy::print_stdout)]

use analysis::ExitTable;
use rules::Case;
use session::{PictureOptions, Session, SessionOptions};

fn main() -> Result<(), session::Error> {
    let inputs: Vec<_> = std::env::args_os().skip(1).map(Into::into).collect();
    let session = Session::open(SessionOptions::default())?;
    for picture in session.pictures(&inputs, &PictureOptions::default())? {
        for row in picture.rows(ExitTable::Vmexit) {
            let (count, total_ns) = (row.stats.count(), row.stats.total());
            println!("{:20} {count:>10} {total_ns:>15} ns", row.key);
        }
        let case = Case {
            picture: &picture,
            facts: None,
            domain: None,
        };
        for finding in rules::diagnose(&[case]).findings {
            println!("{}: {}", finding.rule.id, finding.title);
        }
    }
    Ok(())
}
