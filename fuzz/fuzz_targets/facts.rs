//! Facts beside a recording: any text, and given twice it adds nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (facts, notes) = facts::read(data);
    assert!(notes.len() <= 18);
    let mut twice = facts.clone();
    twice.merge(facts.clone());
    assert_eq!(twice.threads, facts.threads);
    assert_eq!(twice.vms, facts.vms);
    assert_eq!(twice.mtree, facts.mtree);
});
