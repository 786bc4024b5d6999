//! Which of the names that are known somebody most likely meant.

/// Names are compared by so many of their first characters.
const LONGEST: usize = 100;

/// How alike two names are that one may be a slip for, by Jaro's measure, from 0 to 1: one letter of four exchanged,
/// swapped, left out or added, and hardly more.
const ALIKE: f64 = 0.8;

/// Returns the one of the known names that is most like another one; `None` where none is like it. Upper and lower
/// case are the same, and a part of a name is like it.
///
/// ```
/// assert_eq!(words::nearest("irqdf", ["irqfd", "timer"]), Some("irqfd"));
/// assert_eq!(words::nearest("halt-poll", ["halt-polling", "timer"]), Some("halt-polling"));
/// assert_eq!(words::nearest("zebra", ["irqfd", "timer"]), None);
/// ```
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let meant = folded(name);
    let mut best: Option<(f64, &str)> = None;
    for one in known {
        let likeness = likeness(&meant, &folded(one));
        if likeness >= ALIKE && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, one));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns a remark in brackets, with a blank before it, that asks for the nearest of the known names; nothing where
/// none is near.
///
/// ```
/// assert_eq!(words::did_you_mean("irqfs", ["irqfd", "timer"]), " (did you mean 'irqfd'?)");
/// assert_eq!(words::did_you_mean("zebra", ["web", "db"]), "");
/// ```
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let near = nearest(name, known);
    near.map_or_else(String::new, |near| format!(" (did you mean '{near}'?)"))
}

fn folded(name: &str) -> String {
    name.chars()
        .take(LONGEST)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Shorter words than this are parts of too many others.
const PART: usize = 3;

fn likeness(meant: &str, known: &str) -> f64 {
    let alike = strsim::jaro(meant, known);
    match meant.len() >= PART && known.contains(meant) {
        true => alike.max(ALIKE),
        false => alike,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_is_meant() {
        let known = ["kvm_exit", "kvm_entry", "kvm_eoi", "sched_switch"];
        for (slip, meant) in [
            ("kvm_exti", Some("kvm_exit")),
            ("KVM_EXIT", Some("kvm_exit")),
            ("kvm_exits", Some("kvm_exit")),
            ("sched_swich", Some("sched_switch")),
            ("switch", Some("sched_switch")),
            ("block_rq_issue", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, known), meant, "{slip}");
        }
    }

    #[test]
    fn long_names_are_compared_by_their_beginning() {
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str()]), Some(long.as_str()));
    }
}
