//! Results of benchmarks: any bytes are a result or an error, and what was read is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = results::looks_like(data);
    let Ok(read) = results::read(data) else {
        return;
    };
    let written = serde_json::to_vec(&read).expect("JSON");
    let again = results::read(&written).expect("what was written");
    assert_eq!(again.rows, read.rows);
    let _ = compare::results(&[read, again]).map(|found| found.rows.len());
});
