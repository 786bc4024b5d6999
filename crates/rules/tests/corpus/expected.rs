//! Every recording and printed table of a corpus leads to the findings that it has to lead to, and to no others:
//! precision and recall of diagnoses are 1 on the corpus' own table (`expected.json`).
//!
//! With `TRAPLINE_CORPUS` it runs over that corpus as well.

use fixtures::expected::tables;
use fixtures::{Failures, note};
use rules::Severity;

use crate::{CaseFiles, diagnosed};

#[test]
fn findings_are_the_expected_ones() {
    let mut failures = Failures::default();
    for (root, table) in tables() {
        let (mut found, mut right, mut musts, mut met) = (0, 0, 0, 0);
        for expected in &table {
            let name = &expected.name;
            let both = |id: &&String| {
                usize::from(expected.must.contains_key(*id))
                    + usize::from(expected.may.contains_key(*id))
                    + usize::from(expected.not.contains_key(*id))
                    > 1
            };
            let twice: Vec<&String> = expected
                .must
                .keys()
                .chain(expected.may.keys())
                .filter(both)
                .collect();
            failures.check(twice.is_empty(), || {
                format!("{name}: listed twice: {twice:?}")
            });
            let findings = match diagnosed(&expected.files, CaseFiles::default()) {
                Ok(findings) => findings,
                Err(error) => {
                    failures.check(false, || format!("{name}: {error}"));
                    continue;
                }
            };
            for one in &findings.diagnosis.findings {
                found += 1;
                let (id, severity) = (one.rule.id, one.severity());
                let allowed = expected.allows(id, severity == Severity::Low);
                right += usize::from(allowed);
                failures.check(allowed, || {
                    format!(
                        "{name}: wrong: {id} ({}, {:.2}): {}\n    {}",
                        severity.name(),
                        one.confidence,
                        one.title,
                        expected.reason(id)
                    )
                });
            }
            // An injected cause is what to look at first.
            let is_sick = name.split('/').any(|folder| folder.ends_with("-sick"));
            let first = findings.diagnosis.findings.first().map(|one| one.rule.id);
            let is_first = first.is_some_and(|id| expected.must.contains_key(id));
            failures.check(!is_sick || expected.must.is_empty() || is_first, || {
                format!("{name}: the first finding is {first:?}, and not the injected cause")
            });
            for (id, why) in &expected.must {
                musts += 1;
                let is_found = findings.ids().contains(&id.as_str());
                met += usize::from(is_found);
                failures.check(is_found, || format!("{name}: missed: {id}\n    {why}"));
            }
        }
        note(&format!(
            "{}: {} inputs, {right} of {found} findings right, {met} of {musts} causes found",
            root.display(),
            table.len()
        ));
    }
    failures.finish(80);
}
