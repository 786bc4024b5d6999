//! Statistics of domains, as `virsh domstats` prints them.
//!
//! `cmdDomstats` of libvirt's `tools/virsh-domain-monitor.c` prints `Domain: 'NAME'` and below it a line `  KEY=VALUE`
//! for each field; names of fields are in `docs/manpages/virsh.rst`. In newer libvirt KVM's own counters are among them
//! (`vcpu.0.halt_exits.sum`), which QEMU 7.1 and later have (`query-stats`).

use std::collections::BTreeMap;

use forms::InputForm;

use crate::keep::name;
use crate::{CountedSums, DomainStatistics};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "virsh domstats",
    recognised_by: "lines `KEY=VALUE` with libvirt's names of fields, as `cpu.time=`, `vcpu.0.delay=`; \
        `Domain: 'NAME'` above them says of which domain they are",
    yields: "what was counted of a domain since it began, and of two outputs what was counted between them: CPU time, \
        waits for a CPU, halt polling and exits of vCPUs, requests of disks, packets",
    fixtures: &[
        "tests/texts/domstats-libvirt-10.txt",
        "tests/texts/domstats-libvirt-7.txt",
        "tests/texts/domstats-before-and-after.txt",
    ],
};

/// Longest name of a field; KVM's have 48 bytes (`KVM_STATS_NAME_SIZE`).
const MAX_FIELD: usize = 80;
/// Most fields of one thing; KVM has some sixty of a vCPU.
const MAX_FIELDS: usize = 512;
/// Most vCPUs, disks, and network interfaces of one domain.
const MAX_DEVICES: usize = 4096;

/// A line: whose fields follow, and the fields that stand in it.
#[derive(Debug, PartialEq)]
struct StatisticsLine<'t> {
    /// `Domain: 'web'`, before the fields where line ends were lost.
    heading: Option<&'t str>,
    /// `  cpu.time=1702145606000`; several where line ends were lost.
    fields: Vec<StatisticsField<'t>>,
}

/// A field and its value.
#[derive(Debug, PartialEq)]
struct StatisticsField<'t> {
    key: &'t str,
    value: &'t str,
}

/// The output of one or more domains, line by line.
#[derive(Debug, Default)]
pub(crate) struct DomstatsText {
    done: Vec<DomainStatistics>,
    open: Option<OpenDomain>,
}

#[derive(Debug, Default)]
struct OpenDomain {
    found: DomainStatistics,
    disks: NamedDevices,
    nics: NamedDevices,
}

/// Devices, whose name is a field like the others.
#[derive(Debug, Default)]
struct NamedDevices {
    names: BTreeMap<u32, String>,
    sums: BTreeMap<String, CountedSums>,
}

impl DomstatsText {
    /// Takes a line; returns whether it is one of these texts. `before` is the line before it where nothing else is
    /// known of that: it may name the domain.
    pub(crate) fn line(&mut self, line: &str, before: Option<&str>) -> bool {
        let Some(read) = read(line) else {
            return false;
        };
        if let Some(of) = read.heading.or_else(|| before.and_then(quoted_name)) {
            self.begin(name(of));
        }
        for field in read.fields {
            // A field that comes again is of the next output, whose heading is not there.
            if (self.open.as_ref()).is_some_and(|open| open.has(field.key)) {
                self.begin(None);
            }
            self.open.get_or_insert_default().take(&field);
        }
        true
    }

    /// Returns what was read of each output, in their order.
    pub(crate) fn finish(mut self) -> Vec<DomainStatistics> {
        self.end();
        self.done
    }

    fn begin(&mut self, name: Option<String>) {
        self.end();
        let mut open = OpenDomain::default();
        open.found.name = name;
        self.open = Some(open);
    }

    fn end(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.done.push(DomainStatistics {
            disks: open.disks.sums,
            nics: open.nics.sums,
            ..open.found
        });
    }
}

/// Returns whether a line may be what names the domain of the fields below it.
pub(crate) fn is_heading(line: &str) -> bool {
    quoted_name(line).is_some()
}

impl OpenDomain {
    fn has(&self, key: &str) -> bool {
        let found = &self.found;
        match key.split_once('.') {
            Some(("vcpu", "current")) => found.vcpus_in_all.is_some(),
            Some(("vcpu", rest)) => numbered(rest).is_some_and(|(id, what)| {
                let vcpu = found.vcpus.get(&id);
                vcpu.is_some_and(|vcpu| vcpu.counters.contains_key(counter(what)))
            }),
            Some(("cpu" | "balloon" | "vm", _)) => found.all.counters.contains_key(counter(key)),
            _ => false,
        }
    }

    fn take(&mut self, field: &StatisticsField<'_>) {
        let Some((group, rest)) = field.key.split_once('.') else {
            return;
        };
        let word = field.value.split_ascii_whitespace().next();
        let value = word.and_then(|word| word.trim_end_matches([',', ';']).parse().ok());
        match (group, numbered(rest), value) {
            ("vcpu", None, _) if rest == "current" => self.found.vcpus_in_all = value,
            ("vcpu", Some((id, what)), Some(value)) if what != "state" => {
                let vcpus = &mut self.found.vcpus;
                if vcpus.len() < MAX_DEVICES || vcpus.contains_key(&id) {
                    put(vcpus.entry(id).or_default(), counter(what), value);
                }
            }
            ("block", Some((id, "name")), _) => self.disks.called(id, field.value),
            ("net", Some((id, "name")), _) => self.nics.called(id, field.value),
            ("block", Some((id, what)), Some(value)) => self.disks.take(id, what, value),
            ("net", Some((id, what)), Some(value)) => self.nics.take(id, what, value),
            ("cpu" | "balloon" | "vm", None, Some(value)) => {
                put(&mut self.found.all, counter(field.key), value);
            }
            _ => {}
        }
    }
}

impl NamedDevices {
    fn called(&mut self, id: u32, text: &str) {
        if self.names.len() < MAX_DEVICES
            && let Some(text) = name(text)
        {
            self.names.insert(id, text);
        }
    }

    fn take(&mut self, id: u32, what: &str, value: u64) {
        // Sizes of images are no sums.
        let mut sums = ["rd.", "wr.", "fl.", "rx.", "tx."].iter();
        if sums.any(|begin| what.starts_with(begin))
            && let Some(name) = self.names.get(&id)
        {
            put(self.sums.entry(name.clone()).or_default(), what, value);
        }
    }
}

fn put(sums: &mut CountedSums, name: &str, value: u64) {
    if sums.counters.len() < MAX_FIELDS {
        sums.counters.entry(name.to_owned()).or_insert(value);
    }
}

/// KVM's name of a sum: libvirt puts `.sum` behind it.
fn counter(name: &str) -> &str {
    name.strip_suffix(".sum").unwrap_or(name)
}

/// `0.halt_exits.sum`
fn numbered(rest: &str) -> Option<(u32, &str)> {
    let (number, what) = rest.split_once('.')?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    Some((number.parse().ok().filter(|_| digits)?, what))
}

/// Reads a line.
fn read(line: &str) -> Option<StatisticsLine<'_>> {
    let line = line.trim();
    let mut read = StatisticsLine {
        heading: None,
        fields: Vec::new(),
    };
    let mut rest = line;
    if line.starts_with("Domain:") {
        // Line ends that were lost leave the fields behind it.
        let begin = next_field(line)?;
        let (heading, fields) = line.split_at(begin);
        read.heading = Some(quoted_name(heading)?);
        rest = fields;
    }
    loop {
        let (key, behind) = rest.split_once('=')?;
        let key = key.trim_end();
        if !is_field(key) {
            return None;
        }
        // A value goes on to the next field, mostly to the end of the line.
        let end = next_field(behind).unwrap_or(behind.len());
        let (value, next) = behind.split_at(end);
        read.fields.push(StatisticsField {
            key,
            value: value.trim(),
        });
        rest = next;
        if rest.is_empty() {
            return Some(read);
        }
    }
}

/// Returns where the next field of a line begins.
fn next_field(text: &str) -> Option<usize> {
    let ends = text.char_indices().filter(|(_, c)| c.is_whitespace());
    let mut begins = ends.map(|(at, c)| at + c.len_utf8());
    begins.find(|at| {
        let rest = &text[*at..];
        let rest = &rest[..rest.floor_char_boundary(MAX_FIELD + 2)];
        let key = rest.split_once('=');
        key.is_some_and(|(key, _)| is_field(key.trim_end()))
    })
}

/// Returns the name that a line ends with, in quotes, behind one word and a colon: virsh says "Domain" in its user's
/// language.
fn quoted_name(line: &str) -> Option<&str> {
    const QUOTES: [char; 9] = [
        '\'', '"', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{201e}', '\u{ab}', '\u{bb}',
    ];
    let (word, rest) = line.trim().split_once(':')?;
    let inner = rest.trim().strip_prefix(QUOTES)?.strip_suffix(QUOTES)?;
    let is_one = word.split_whitespace().count() == 1;
    Some(inner.trim()).filter(|inner| is_one && !inner.is_empty())
}

/// Returns whether a word is the name of a field.
fn is_field(key: &str) -> bool {
    if key.len() > MAX_FIELD || key.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let Some((group, rest)) = key.split_once('.') else {
        return false;
    };
    let one_of = |list: &[&str]| list.contains(&rest);
    let begins = |list: &[&str]| list.iter().any(|begin| rest.starts_with(begin));
    let word = rest
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b));
    match group {
        "state" => one_of(&["state", "reason"]),
        "cpu" => one_of(&["time", "user", "system"]) || begins(&["haltpoll.", "cache.monitor."]),
        "balloon" => word,
        "vcpu" => one_of(&["current", "maximum"]) || (numbered(rest).is_some() && word),
        "net" => {
            rest == "count"
                || numbered(rest).is_some_and(|(_, what)| {
                    what == "name" || ["rx.", "tx."].iter().any(|begin| what.starts_with(begin))
                })
        }
        "block" => rest == "count" || numbered(rest).is_some(),
        "iothread" => rest == "count" || numbered(rest).is_some(),
        "memory" => begins(&["bandwidth.monitor."]),
        "dirtyrate" => word,
        "vm" => {
            word && [".sum", ".cur", ".max"]
                .iter()
                .any(|end| rest.ends_with(end))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<DomainStatistics> {
        let mut reader = DomstatsText::default();
        let mut before = None;
        for line in text.lines() {
            let known = reader.line(line, before);
            assert!(known || is_heading(line), "{line}");
            before = (!known).then_some(line);
        }
        reader.finish()
    }

    #[test]
    fn names_are_those_of_kvm() {
        let all = of(
            "Domain: 'my web'\n  state.state=1\n  cpu.haltpoll.fail.time=34\n  vcpu.current=2\n  \
                      vcpu.0.state=1\n  vcpu.0.halt_exits.sum=7\n  vcpu.0.blocking.cur=yes\n  vcpu.1.exits=9\n  \
                      vm.pages_2m.cur=859\n  vm.remote_tlb_flush.sum=3\n  block.count=1\n  block.0.name=sda\n  \
                      block.0.path=/var/lib/a b.qcow2\n  block.0.rd.reqs=5\n  block.0.capacity=8\n",
        );
        let [web] = &all[..] else { panic!("{all:?}") };
        assert_eq!(web.name.as_deref(), Some("my web"));
        assert_eq!((web.vcpus_in_all, web.lists_all_vcpus()), (Some(2), true));
        let counters: Vec<_> = web
            .all
            .counters
            .iter()
            .map(|(name, n)| (name.as_str(), *n))
            .collect();
        let expected = [
            ("cpu.haltpoll.fail.time", 34),
            ("vm.pages_2m.cur", 859),
            ("vm.remote_tlb_flush", 3),
        ];
        assert_eq!(counters, expected);
        assert_eq!(
            web.vcpus[&0].counters.keys().collect::<Vec<_>>(),
            ["halt_exits"]
        );
        assert_eq!(web.of_vcpus("exits"), Some(9));
        assert_eq!(
            web.disks["sda"].counters.keys().collect::<Vec<_>>(),
            ["rd.reqs"]
        );
    }

    #[test]
    fn a_field_that_comes_again_is_of_an_output_without_heading() {
        let all = of("Domain: 'a'\ncpu.time=5\ncpu.user=4\ncpu.time=9\nDomain: 'b'\nvcpu.0.time=3");
        let names: Vec<_> = all.iter().map(|one| one.name.as_deref()).collect();
        assert_eq!(names, [Some("a"), None, Some("b")]);
        assert_eq!(all[1].all.counted("cpu.time"), Some(9));
        // A heading alone is nothing.
        assert!(of("Domain: 'a'\n").is_empty());
    }

    #[test]
    fn line_ends_may_be_lost_and_blanks_around_signs_be_there() {
        let all = of("Domain: 'web' cpu.time=5 cpu.user = 4 vcpu.0.time=3, vcpu.0.delay=2 <- look");
        assert_eq!(all[0].name.as_deref(), Some("web"));
        assert_eq!(all[0].all.counters.len(), 2);
        assert_eq!(all[0].all.counted("cpu.user"), Some(4));
        assert_eq!(DomainStatistics::waited_ns(&all[0].vcpus[&0]), Some((2, 3)));
    }

    #[test]
    fn headings_are_of_any_language() {
        for (heading, name) in [
            ("Domaine : 'web'", "web"),
            ("ドメイン: \u{2018}web\u{2019}", "web"),
            ("Domäne: \u{201e}a b\u{201c}", "a b"),
        ] {
            let all = of(&format!("{heading}\n  cpu.time=5\n"));
            assert_eq!(all[0].name.as_deref(), Some(name), "{heading}");
        }
        for line in ["Domain: web", "what is 'web': 'a'", "Domain: ''", "'web'"] {
            assert!(!is_heading(line), "{line}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for line in [
            "",
            "vm.swappiness=60",
            "vm.nr_hugepages = 512",
            "net.ipv4.ip_forward=1",
            "cpu.max=30000 100000",
            "cpu.shares=1024",
            "memory.max=max",
            "state=running",
            "vcpu.hotadd = \"TRUE\"",
            "block.size=512",
            "the cpu.time=5",
            "A cpu.time of 5",
            "Domain: is this the name",
            "Domain 'web' started",
            "kvm.halt_poll_ns=0",
            "=",
            "cpu.time",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
