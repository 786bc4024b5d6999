//! Maps of `bpftrace` whose keys are exit reasons, as exits by reason.

use event::{ExitReason, Isa};
use perftables::KvmTotal;

/// Numbers that only VMX has for what guests do: HLT, CPUID, VMCALL, CR, I/O, RDMSR, WRMSR, EPT violation and
/// misconfiguration, the preemption timer (Intel SDM volume 3, appendix C).
const OF_VMX: [u64; 10] = [12, 10, 18, 28, 30, 31, 32, 48, 49, 52];
/// SVM's codes of interrupts, instructions and what comes after (AMD APM volume 2, appendix C); VMX has none above 77.
const OF_SVM: std::ops::Range<u64> = 0x60..0x500;

/// A line of a map: its name and its keys.
fn parts(event: &str) -> Option<(&str, Vec<&str>)> {
    let (name, keys) = event
        .strip_prefix('@')?
        .strip_suffix(']')?
        .split_once('[')?;
    Some((name, keys.split(", ").collect()))
}

/// Returns the number of a key that may be a reason's.
fn number(key: &str) -> Option<u64> {
    match key.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => key.parse().ok(),
    }
}

/// Returns the reason that a key names.
fn named(isa: Option<Isa>, key: &str) -> Option<ExitReason> {
    let bare = key
        .strip_prefix("EXIT_REASON_")
        .or_else(|| key.strip_prefix("SVM_EXIT_"))
        .unwrap_or(key);
    ExitReason::from_name(isa, bare)
}

/// Whether a map says that its last key is an exit's reason.
fn says_exits(name: &str) -> bool {
    name.contains("exit") || name.contains("reason")
}

/// Returns whose numbers the keys of maps of exits are; none where they could be several's.
fn isa_of_numbers(rows: &[KvmTotal]) -> Option<Isa> {
    let keys = rows.iter().filter_map(|row| {
        let (name, keys) = parts(&row.event)?;
        says_exits(name).then(|| number(keys.last()?)).flatten()
    });
    let keys: Vec<u64> = keys.collect();
    if keys.iter().any(|key| OF_SVM.contains(key)) {
        return Some(Isa::Svm);
    }
    let vmx = keys.iter().any(|key| OF_VMX.contains(key));
    vmx.then_some(Isa::Vmx)
}

/// Returns the counts of maps with those by exit reason as `kvm_exit(REASON)`, added up over their other keys, and
/// all of these as `kvm_exit`. `isa` is that of the exits where it is known.
///
/// A key that is a name of a reason is one in any map; a number only in a map that is called for exits or reasons.
pub(crate) fn reasons_of_maps(rows: Vec<KvmTotal>, isa: Option<Isa>) -> Vec<KvmTotal> {
    let numbers = isa.or_else(|| isa_of_numbers(&rows));
    let reason = |event: &str| -> Option<String> {
        let (name, keys) = parts(event)?;
        let found = keys.iter().find_map(|key| named(isa, key)).or_else(|| {
            let code = number(keys.last()?).filter(|_| says_exits(name))?;
            Some(ExitReason::of_number(numbers?, code))
        })?;
        Some(found.name()?.to_owned())
    };
    let mut out: Vec<KvmTotal> = Vec::new();
    let mut all: Option<KvmTotal> = None;
    for row in rows {
        let Some(key) = reason(&row.event) else {
            out.push(row);
            continue;
        };
        let sum = all.get_or_insert_with(|| KvmTotal {
            event: "kvm_exit".to_owned(),
            total: 0,
            ..row.clone()
        });
        sum.total = sum.total.saturating_add(row.total);
        let event = format!("kvm_exit({key})");
        match out.iter_mut().find(|one| one.event == event) {
            Some(one) => one.total = one.total.saturating_add(row.total),
            None => out.push(KvmTotal { event, ..row }),
        }
    }
    all.into_iter().chain(out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
        let rows = rows.iter().map(|(event, total)| KvmTotal {
            line: 1,
            event: (*event).to_owned(),
            total: *total,
            per_second: None,
        });
        let found = reasons_of_maps(rows.collect(), None).into_iter();
        found.map(|row| (row.event, row.total)).collect()
    }

    fn wanted(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
        let rows = rows.iter();
        rows.map(|(event, total)| ((*event).to_owned(), *total))
            .collect()
    }

    #[test]
    fn names_are_reasons_in_any_map() {
        let found = of(&[
            ("@[CPU 0/KVM, HLT]", 3),
            ("@[CPU 1/KVM, HLT]", 4),
            ("@n", 5),
        ]);
        assert_eq!(
            found,
            wanted(&[("kvm_exit", 7), ("kvm_exit(HLT)", 7), ("@n", 5)])
        );
    }

    #[test]
    fn numbers_are_reasons_where_the_map_says_so() {
        let found = of(&[("@exits[12]", 3), ("@exits[30]", 4), ("@exits[1]", 1)]);
        let names = [
            ("kvm_exit", 8),
            ("kvm_exit(HLT)", 3),
            ("kvm_exit(IO_INSTRUCTION)", 4),
        ];
        assert_eq!(found[..3], wanted(&names));
        assert_eq!(found[3], ("kvm_exit(EXTERNAL_INTERRUPT)".to_owned(), 1));
        let amd = of(&[("@exit_reason[0x7b]", 3), ("@exit_reason[120]", 4)]);
        assert_eq!(
            amd[1..],
            wanted(&[("kvm_exit(io)", 3), ("kvm_exit(hlt)", 4)])
        );
        // Nobody knows what these are.
        for rows in [
            [("@[12]", 3), ("@[30]", 4)],
            [("@exits[1]", 3), ("@exits[2]", 4)],
        ] {
            assert_eq!(of(&rows), wanted(&rows));
        }
    }
}
