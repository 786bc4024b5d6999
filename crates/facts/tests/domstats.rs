//! `virsh domstats`: whose the sums are, and what was counted between two outputs.

use facts::{DomainStatistics, Facts, read};

const NEW: &str = include_str!("texts/domstats-libvirt-10.txt");
const OLD: &str = include_str!("texts/domstats-libvirt-7.txt");
const TWICE: &str = include_str!("texts/domstats-before-and-after.txt");
const CASE: &str = include_str!("../../cli/tests/cases/domstats.txt");

fn names(facts: &Facts) -> Vec<Option<&str>> {
    let all = facts.domstats.iter();
    all.map(|one| one.name.as_deref()).collect()
}

#[test]
fn old_and_new_outputs_are_read() {
    let (facts, notes) = read(format!("{NEW}{OLD}").as_bytes());
    assert_eq!(notes, [""; 0]);
    assert_eq!(names(&facts), [Some("cloud"), Some("db 1")]);
    assert!(facts.vms.is_empty() && facts.host.is_none());
    let [cloud, db] = &facts.domstats[..] else {
        panic!("{facts:?}")
    };
    assert!(!cloud.is_difference() && cloud.lists_all_vcpus() && db.lists_all_vcpus());
    assert_eq!(cloud.of_vcpus("halt_exits"), Some(1_324_370 + 1_668_730));
    assert_eq!(db.of_vcpus("halt_exits"), None);
    assert_eq!(
        DomainStatistics::waited_ns(&db.vcpus[&1]),
        Some((198_210_442_101, 1_702_120_000_000))
    );
    assert_eq!(db.disks["vda"].counted("fl.times"), Some(181_262_854_634));
    assert_eq!(db.nics["vnet0"].counted("rx.drop"), Some(7));
    // One whose vCPUs are not all there.
    let (facts, notes) = read(CASE.as_bytes());
    assert_eq!((names(&facts), notes.len()), (vec![Some("guest1")], 0));
    assert!(!facts.domstats[0].lists_all_vcpus());
}

#[test]
fn two_outputs_of_a_domain_are_what_was_counted_between_them() {
    let (facts, notes) = read(TWICE.as_bytes());
    let [web] = &facts.domstats[..] else {
        panic!("{facts:?}")
    };
    assert!(web.is_difference());
    assert_eq!(web.all.counted("cpu.time"), Some(17_000_000_000));
    assert_eq!(web.of_vcpus("mmio_exits"), Some(100_100));
    assert_eq!(
        DomainStatistics::waited_ns(&web.vcpus[&0]),
        Some((2_000_000_000, 8_000_000_000))
    );
    // Prose is prose, the command is passed over, and headings are not among what is not understood.
    assert_eq!(notes, ["line 1: not understood", "line 25: not understood"]);
    // In the other order it is no difference, as after a start.
    let (first, second) = TWICE.split_once("und danach").unwrap();
    let (facts, notes) = read(format!("{second}\n{first}").as_bytes());
    assert!(!facts.domstats[0].is_difference());
    assert!(notes.iter().any(|note| note.contains("(web)")), "{notes:?}");
    // Those of another domain are not put to it.
    let other = TWICE.replacen("Domain: 'web'", "Domain: 'db'", 1);
    let (facts, _) = read(other.as_bytes());
    assert_eq!(names(&facts), [Some("db"), Some("web")]);
    assert!(facts.domstats.iter().all(|one| !one.is_difference()));
    // From two files it is the same.
    let (mut sum, _) = read(first.as_bytes());
    assert_eq!(sum.merge(read(second.as_bytes()).0), [""; 0]);
    assert_eq!(sum.domstats, read(TWICE.as_bytes()).0.domstats);
}

#[test]
fn without_headings_nobody_knows_whether_it_is_one_domain() {
    let text = TWICE.replace("Domain: 'web'\n", "");
    let (facts, notes) = read(text.as_bytes());
    assert_eq!(names(&facts), [None]);
    assert!(!facts.domstats[0].is_difference());
    assert!(
        notes.iter().any(|note| note.contains("Domain: 'NAME'")),
        "{notes:?}"
    );
}

#[test]
fn sums_are_written_and_read_again() {
    for text in [NEW, OLD, TWICE] {
        let (facts, _) = read(text.as_bytes());
        let written = serde_json::to_string(&facts::write(&facts)).unwrap();
        let (again, notes) = read(written.as_bytes());
        assert_eq!((again, notes), (facts, Vec::new()));
    }
}
