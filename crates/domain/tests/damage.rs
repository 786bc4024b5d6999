//! Damaged domains: nothing panics, what could be read can be changed and read again, and diffs say what changed.
//!
//! `PROPTEST_CASES` says how many cases to run.

use std::collections::BTreeMap;

use crate::common::{DOMAINS, changes};
use domain::{Domain, DomainChange, ErrorKind, NoteKind, apply, diff, parse, parse_bytes};
use proptest::prelude::*;

/// What is put between tags: well-formed, so that there is something to be read.
const BETWEEN: &[&str] = &[
    "\n",
    "\r\n",
    "\t",
    "  ",
    "x",
    "<!-- x -->",
    "<!-- <a>\n -->",
    "<![CDATA[<b>]]>",
    "<?x y?>",
    "&lt;",
    "<a/>",
    "<features/>",
    "<features></features>",
    "<features>\n</features>",
    "<clock/>",
    "<clock offset='utc'> </clock>",
    "<cputune/>",
    "<hyperv/>",
    "<hyperv mode='passthrough'/>",
    "<kvm><!-- z --></kvm>",
    "<vpindex/>",
    "<stimer/>",
    "<timer name='hypervclock'/>",
    "<timer name=\"hpet\" present='x'/>",
    "<vcpu/>",
    "<vcpu>x</vcpu>",
    "<cpu/>",
    "<vcpu>4294967296</vcpu>",
    "<iothreads/>",
    "<iothreads>\n 1</iothreads>",
    "<devices/>",
    "<console/>",
    "<serial/>",
    "<driver/>",
    "<memoryBacking/>",
    "<hugepages/>",
    "<page size='1'/>",
    "<vcpupin/>",
    "<emulatorpin cpuset='^'/>",
    "<vcpupin vcpu='1' cpuset='x'/>",
    "<y:clock xmlns:y='u'/>",
    "<clock xmlns='u'/>",
    "<domain/>",
    "<apic/>",
    "<interface type='bridge'><model type='virtio'/></interface>",
    "<disk/>",
    "<disk><target dev='vda'/></disk>",
];

/// What is put into tags.
const WITHIN: &[&str] = &[
    " a='1'",
    "\n",
    "\t",
    " present='no'",
    " state=\"off\"",
    " mode='custom'",
    " mode = 'passthrough'",
    " name='x'",
    " xmlns='u'",
    " xmlns:z='u'",
    " cpuset='1'",
    " offset='utc'",
    " eoi='on'",
];

/// What is put anywhere.
const ANYWHERE: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "'",
    "\"",
    "=",
    "&",
    ";",
    "\r",
    "\0",
    "\u{feff}",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE a>",
    "&#10;",
    "&x;",
    "<a>",
    "</a>",
    "x:",
    "größe",
    "</features>",
    "</domain>",
    "<domain>",
    "",
];

/// One harm: where, and what: a piece between tags, in one, or anywhere in the place of some characters; or an
/// element without others that goes, or stands there twice.
#[derive(Debug, Clone)]
enum Harm {
    Between(prop::sample::Index, &'static str),
    Within(prop::sample::Index, &'static str),
    Anywhere(prop::sample::Index, usize, &'static str),
    Gone(prop::sample::Index),
    Twice(prop::sample::Index),
}

fn harms() -> impl Strategy<Value = Vec<Harm>> {
    let place = any::<prop::sample::Index>;
    let piece = prop::sample::select;
    let harm = prop_oneof![
        8 => (place(), piece(BETWEEN)).prop_map(|(at, piece)| Harm::Between(at, piece)),
        3 => (place(), piece(WITHIN)).prop_map(|(at, piece)| Harm::Within(at, piece)),
        1 => (place(), 0..9usize, piece(ANYWHERE)).prop_map(|(at, n, piece)| Harm::Anywhere(at, n, piece)),
        4 => place().prop_map(Harm::Gone),
        2 => place().prop_map(Harm::Twice),
    ];
    prop::collection::vec(harm, 0..8)
}

/// Returns a place out of several, if there are any.
fn pick(place: &prop::sample::Index, places: impl Iterator<Item = usize>) -> Option<usize> {
    let places: Vec<usize> = places.collect();
    (!places.is_empty()).then(|| places[place.index(places.len())])
}

/// Harms a text.
fn harm(text: &mut String, harm: &Harm) -> Option<()> {
    let at = |c: char| text.match_indices(c).map(|(at, _)| at);
    match harm {
        Harm::Between(place, piece) => {
            let at = pick(place, at('<').chain(at('>').map(|at| at + 1)))?;
            text.insert_str(at, piece);
        }
        Harm::Within(place, piece) => {
            let ends = at('>').map(|at| {
                if text[..at].ends_with('/') {
                    at - 1
                } else {
                    at
                }
            });
            let names = at('<').map(|at| at + text[at..].find(' ').unwrap_or(0));
            let at = pick(place, ends.chain(names))?;
            text.insert_str(at, piece);
        }
        Harm::Anywhere(place, gone, piece) => {
            let start = pick(place, text.char_indices().map(|(at, _)| at))?;
            let end = text[start..]
                .char_indices()
                .nth(*gone)
                .map_or(text.len(), |(at, _)| start + at);
            text.replace_range(start..end, piece);
        }
        Harm::Gone(place) | Harm::Twice(place) => {
            let end = pick(place, text.match_indices("/>").map(|(at, _)| at + 2))?;
            let start = text[..end].rfind('<')?;
            if matches!(harm, Harm::Gone(_)) {
                text.replace_range(start..end, "");
            } else {
                let element = text[start..end].to_owned();
                text.insert_str(end, &element);
            }
        }
    }
    Some(())
}

/// Harms a text in several ways.
fn harmed(text: &str, harms: &[Harm]) -> String {
    let mut text = text.to_owned();
    for one in harms {
        let _ = harm(&mut text, one);
    }
    text
}

/// Applies a unified diff as its definition says, to check it without `patch`.
fn patched(before: &str, diff: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    let mut lines = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("@@ -") {
            let range = head.split(' ').next().unwrap();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let (start, count): (usize, usize) = (start.parse().unwrap(), count.parse().unwrap());
            let start = if count == 0 { start } else { start - 1 };
            out.push_str(&old[at..start].concat());
            at = start;
            continue;
        }
        let mut body = line.get(1..).unwrap();
        if lines.peek().is_some_and(|next| next.starts_with('\\')) {
            body = body.strip_suffix('\n').unwrap();
            lines.next();
        }
        if !line.starts_with('+') {
            assert_eq!(old[at], body);
            at += 1;
        }
        if !line.starts_with('-') {
            out.push_str(body);
        }
    }
    out.push_str(&old[at..].concat());
    out
}

/// Returns the comments of a document and how often each is there.
fn comments(text: &str) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for piece in text.split("<!--").skip(1) {
        let comment = piece.split("-->").next().unwrap_or_default();
        *found.entry(comment).or_default() += 1;
    }
    found
}

/// Returns whether a change holds in a domain, as far as its reading shows; `None` where it shows nothing.
fn holds(change: &DomainChange, domain: &Domain) -> Option<bool> {
    match change {
        DomainChange::ClockOffset(offset) => Some(domain.clock_offset.as_ref() == Some(offset)),
        DomainChange::Timer { name, present } => {
            Some(domain.timer(name).and_then(|timer| timer.present) == Some(*present))
        }
        DomainChange::HypervFeature { name, on } => {
            Some(domain.hyperv_on(name).unwrap_or(false) == *on)
        }
        DomainChange::KvmFeature { name, on } => {
            Some(domain.kvm_features.get(name).copied().unwrap_or(false) == *on)
        }
        DomainChange::Feature { name, on } => Some(domain.features.contains(name) == *on),
        DomainChange::ApicEoi(on) => Some(domain.apic_eoi == Some(*on)),
        DomainChange::CpuMode(mode) => Some(domain.cpu_mode.as_ref() == Some(mode)),
        DomainChange::CpuFeature { name, policy } => {
            let mut named = domain
                .cpu_features
                .iter()
                .filter(|feature| feature.name == *name);
            Some(named.all(|feature| feature.policy.as_ref() == Some(policy)))
        }
        DomainChange::VcpuPin { vcpu, cpus } => Some(domain.vcpu_pins.get(vcpu) == Some(cpus)),
        DomainChange::EmulatorPin(cpus) => Some(domain.emulator_pin.as_ref() == Some(cpus)),
        DomainChange::IothreadPin { iothread, cpus } => {
            Some(domain.iothread_pins.get(iothread) == Some(cpus))
        }
        DomainChange::Iothreads(count) => Some(domain.iothreads >= Some(*count)),
        DomainChange::HugePages { .. } => Some(domain.memory_backing.hugepages.is_some()),
        DomainChange::MemoryLocked => Some(domain.memory_backing.locked),
        DomainChange::NoSharePages => Some(domain.memory_backing.nosharepages),
        DomainChange::ConsoleVirtio => {
            let virtio = |kind: &Option<String>| kind.as_deref() == Some("virtio");
            Some(
                domain
                    .consoles
                    .iter()
                    .any(|console| virtio(&console.target_type)),
            )
        }
        _ => None,
    }
}

/// What has to hold for any text and change.
fn check(text: &str, change: &DomainChange) {
    let Ok((_, notes)) = parse(text) else {
        // What cannot be read cannot be changed, and it is said.
        assert!(apply(text, std::slice::from_ref(change)).is_err());
        return;
    };
    assert!(notes.len() <= 33);
    let (after, notes) = match apply(text, std::slice::from_ref(change)) {
        Ok(done) => done,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::NotEditable, "{error}");
            return;
        }
    };
    let (domain, _) = parse(&after).unwrap();
    let difference = diff("x.xml", text, &after);
    assert_eq!(patched(text, &difference), after);
    let nothing = |kind| notes.iter().any(|note| note.kind == kind);
    let same = nothing(NoteKind::Holds) || nothing(NoteKind::Refused);
    assert_eq!(same, after == text, "{change:?}: {notes:?}\n{difference}");
    if !nothing(NoteKind::Refused) {
        assert_ne!(
            holds(change, &domain),
            Some(false),
            "{change:?}: {notes:?}\n{difference}\n{after}"
        );
        let (again, notes) = apply(&after, std::slice::from_ref(change)).unwrap();
        assert_eq!(
            again,
            after,
            "{change:?} twice\n{}",
            diff("x.xml", &after, &again)
        );
        assert!(
            notes.iter().any(|note| note.kind == NoteKind::Holds),
            "{change:?}: {notes:?}"
        );
    }
    // These take elements away, with what is in them.
    let removes = matches!(
        change,
        DomainChange::CpuMode(_)
            | DomainChange::RemoveSerial { .. }
            | DomainChange::Feature { on: false, .. }
    );
    if !removes {
        let (before, after) = (comments(text), comments(&after));
        assert_eq!(before, after, "{change:?}\n{difference}");
    }
}

#[test]
fn every_change_of_every_domain_holds_and_stays() {
    for (_, text) in DOMAINS {
        for change in changes() {
            check(text, &change);
        }
    }
}

proptest! {
    #[test]
    fn damaged_domains_are_read_and_changed_or_refused(
        which in 0..DOMAINS.len(),
        harms in harms(),
        picked in any::<prop::sample::Index>(),
        others in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = harmed(DOMAINS[which].1, &harms);
        let all = changes();
        check(&text, picked.get(&all));
        let several: Vec<DomainChange> = others.iter().map(|other| other.get(&all).clone()).collect();
        if let Ok((after, notes)) = apply(&text, &several) {
            prop_assert!(parse(&after).is_ok());
            prop_assert!(notes.iter().all(|note| note.line > 0 && note.change < Some(several.len())));
            prop_assert_eq!(patched(&text, &diff("x", &text, &after)), after);
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_bytes(&bytes);
    }

    #[test]
    fn any_diff(before in "([ab\r]{0,2}\n?){0,12}", after in "([ab\r]{0,2}\n?){0,12}") {
        prop_assert_eq!(patched(&before, &diff("x", &before, &after)), after);
    }

    #[test]
    fn words_of_any_sort_do_no_harm(word in "\\PC{0,12}|[<>&'\"\0\r\n\t -]{0,6}", number in any::<u32>()) {
        let text = DOMAINS[7].1;
        let cpus: cpuset::CpuSet = [number].into_iter().collect();
        let all = [
            DomainChange::ClockOffset(word.clone()),
            DomainChange::Timer { name: word.clone(), present: true },
            DomainChange::HypervFeature { name: word.clone(), on: true },
            DomainChange::KvmFeature { name: word.clone(), on: true },
            DomainChange::Feature { name: word.clone(), on: true },
            DomainChange::CpuMode(word.clone()),
            DomainChange::CpuFeature { name: word.clone(), policy: "require".to_owned() },
            DomainChange::CpuFeature { name: "x2apic".to_owned(), policy: word.clone() },
            DomainChange::DiskCache { disk: word.as_str().into(), cache: "none".to_owned() },
            DomainChange::DiskCache { disk: (number as usize).into(), cache: word.clone() },
            DomainChange::InterfaceDriver { interface: 0.into(), name: word },
            DomainChange::VcpuPin { vcpu: number, cpus: cpus.clone() },
            DomainChange::IothreadPin { iothread: number, cpus: cpus.clone() },
            DomainChange::EmulatorPin(cpus),
            DomainChange::Iothreads(number),
            DomainChange::HugePages { size_kib: Some(u64::from(number)) },
            DomainChange::DiskQueues { disk: 0.into(), queues: number },
        ];
        let (after, _) = apply(text, &all).unwrap();
        prop_assert!(parse(&after).is_ok());
    }
}
