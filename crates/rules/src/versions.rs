//! Remedies that the recorded host's kernel, or the VM's QEMU, is too old for.

use facts::release;

use crate::{Case, Finding, TuningParameter};

/// Says of remedies that need a later kernel than the host runs, or a later QEMU than runs the VM, that they do, and
/// puts them behind the others.
pub(crate) fn apply(case: &Case<'_>, finding: &mut Finding) {
    let recorded = case.picture.about.kernel.as_deref();
    let kernel = recorded.or_else(|| case.host()?.kernel.as_deref());
    let kernel = kernel.and_then(|text| Some((text, release(text)?)));
    let qemu = case.qemu();
    let mut late = Vec::new();
    for (at, advice) in finding.remedies.iter_mut().enumerate() {
        let newer = |one: &TuningParameter| {
            let of_kernel = one.first_host_kernel().and_then(|since| {
                let (text, _) = kernel.filter(|(_, runs)| release(since) > Some(*runs))?;
                Some((one.name, since, format!("The host runs Linux {text}")))
            });
            let of_qemu = || {
                let since = one.first_qemu()?;
                Some((one.name, since, qemu.older_than(release(since)?)?))
            };
            of_kernel.or_else(of_qemu)
        };
        let Some((name, since, runs)) = advice.remedy.parameters().find_map(newer) else {
            continue;
        };
        let text = format!(
            "{runs}, and {name} is there from {since} on; distributions may have it earlier."
        );
        advice.note = Some(match advice.note.take() {
            Some(note) => format!("{note} {text}"),
            None => text,
        });
        // One that names another way too can still be used.
        if advice.remedy.parameters().all(|one| newer(one).is_some()) {
            late.push(at);
        }
    }
    if late.is_empty() || late.len() == finding.remedies.len() {
        return;
    }
    let mut at = 0;
    let mut behind = Vec::new();
    finding.remedies.retain(|advice| {
        let is_late = late.contains(&at);
        at += 1;
        if is_late {
            behind.push(advice.clone());
        }
        !is_late
    });
    finding.remedies.append(&mut behind);
}

#[cfg(test)]
mod tests {
    use analysis::{Picture, RecordedMachine};

    use super::*;
    use crate::CaseAdvice;

    #[test]
    fn a_remedy_that_the_kernel_is_too_old_for_comes_last() {
        let remedies = |rule, kernel: &str| {
            let picture = Picture {
                about: RecordedMachine {
                    kernel: Some(kernel.to_owned()),
                    ..RecordedMachine::default()
                },
                ..Picture::default()
            };
            let case = Case {
                picture: &picture,
                facts: None,
                domain: None,
            };
            let mut finding = Finding::new(rule, 0.9);
            apply(&case, &mut finding);
            finding.remedies
        };
        let (mut noted, mut moved) = (0, 0);
        for rule in crate::all() {
            let new = remedies(rule, "6.12.0");
            assert!(new.iter().all(|one| one.note.is_none()), "{}", rule.id);
            assert_eq!(remedies(rule, "unreleased"), new);
            let old = remedies(rule, "3.10.0-1160.el7.x86_64");
            assert_eq!(old.len(), new.len());
            let notes = old.iter().filter_map(|one| one.note.as_deref());
            noted += notes
                .filter(|note| note.contains("3.10.0-1160.el7.x86_64"))
                .count();
            let order =
                |list: &[CaseAdvice]| -> Vec<_> { list.iter().map(|one| one.remedy).collect() };
            if order(&old) != order(&new) {
                assert!(
                    old.last().is_some_and(|one| one.note.is_some()),
                    "{}",
                    rule.id
                );
                moved += 1;
            }
        }
        assert!(noted > moved && moved > 0, "{noted} {moved}");
    }

    #[test]
    fn a_remedy_that_qemu_is_too_old_for_says_so() {
        let notes_of = |text: &str| {
            let facts = facts::read(text.as_bytes()).0;
            let picture = Picture::default();
            let case = Case {
                picture: &picture,
                facts: Some(&facts),
                domain: None,
            };
            let of = |rule| {
                let mut finding = Finding::new(rule, 0.9);
                apply(&case, &mut finding);
                finding.remedies.into_iter().filter_map(|one| one.note)
            };
            crate::all()
                .iter()
                .copied()
                .flat_map(of)
                .collect::<Vec<String>>()
        };
        let notes = |version: &str| {
            notes_of(&format!(
                "{{\"vms\": [{{\"pid\": 7, \"version\": \"{version}\"}}]}}"
            ))
        };
        let old = notes("2.5.0 (Debian)");
        assert!(old.len() > 3, "{old:?}");
        assert!(
            old.iter()
                .all(|note| note.starts_with("QEMU 2.5.0 (Debian) runs the VM, and "))
        );
        assert_eq!(notes("99.0.0"), [""; 0]);
        assert_eq!(notes("unreleased"), [""; 0]);
        // What the host has is not said to run, and is not what runs where a machine type needs a later one.
        let installed = |machine: &str| {
            notes_of(&format!(
                "{{\"vms\": [{{\"pid\": 7, \"emulator\": \"/usr/bin/qemu-system-x86_64\", \
                 \"args\": [\"/usr/bin/qemu-system-x86_64\", \"-machine\", \"{machine}\"]}}], \
                 \"host\": {{\"qemu\": \"2.5.0\"}}}}"
            ))
        };
        for machine in ["q35", "pc-q35-2.4", "pc-q35-rhel9.2.0"] {
            let host = installed(machine);
            assert_eq!(host.len(), old.len(), "{machine}");
            let says = |note: &String| note.starts_with("The host has QEMU 2.5.0, and ");
            assert!(host.iter().all(says), "{host:?}");
        }
        assert_eq!(installed("pc-q35-9.0,accel=kvm"), [""; 0]);
    }
}
