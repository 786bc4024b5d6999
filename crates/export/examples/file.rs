//! Exports a recording, to measure what that costs: `cargo run --release -p export --example file -- spans perf.data
//! OUT`, or `exits`, `instances`, `trace`.

use std::fs;
use std::path::Path;

use fixtures::{FileForm, FixtureQuestion};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [form, recording, out] = args.as_slice() else {
        return Err("which file, of which recording, to where?".into());
    };
    let form = match form.as_str() {
        "trace" => FileForm::Trace,
        "exits" => FileForm::Exits,
        "instances" => FileForm::Instances,
        _ => FileForm::Spans,
    };
    let made = FixtureQuestion::new().exported(Path::new(recording), form)?;
    Ok(fs::write(out, made)?)
}
