//! What every reader declares is so: its fixtures are read.

use std::fs;
use std::path::Path;

#[test]
fn every_fixture_is_read() {
    for form in facts::FORMS {
        assert!(!form.fixtures.is_empty(), "{}", form.printed_by);
        for file in form.fixtures {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = fs::read(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            let (facts, _) = facts::read(&text);
            assert!(!facts.is_empty(), "{}: {file}", form.printed_by);
        }
    }
}
