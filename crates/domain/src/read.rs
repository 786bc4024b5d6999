//! The document to a [`Domain`].

use std::collections::{BTreeMap, BTreeSet};

use cpuset::CpuSet;

use crate::data::{
    CpuFeature, DefinitionForm, Domain, DomainTimer, HugePages, MemoryBacking, NumaCell,
    NumaMemory, ThreadScheduling, Topology,
};
use crate::error::{DomainError, DomainNote, NoteKind, position, quoted};
use crate::tree::{self, XmlNode, attr, child, children, elements, is};
use crate::{os, scan};

/// The namespace of `<qemu:commandline>`.
const QEMU: &str = "http://libvirt.org/schemas/domain/qemu/1.0";

/// Elements that a domain has once. libvirt takes the first of several, as its XPath expressions do.
const ONCE: &[&str] = &[
    "name",
    "uuid",
    "os",
    "memory",
    "currentMemory",
    "vcpu",
    "iothreads",
    "cpu",
];

/// Most notes about a document: what follows is counted.
const MAX_NOTES: usize = 32;

/// vCPUs and iothreads beyond this are not believed: libvirt's schema has 16 bits for a vCPU (`countCPU`).
pub(crate) const MAX_VCPUS: u32 = u16::MAX as u32;

/// Reads a domain's XML: the document that `virsh dumpxml` prints and that lies in `/etc/libvirt/qemu`.
///
/// A document that libvirt wraps around one domain (`<domstatus>`, `<domainsnapshot>`) is taken too. What is not
/// understood is left out and noted, with its line.
///
/// # Errors
///
/// Fails if the text is not well-formed XML, has a document type or entities of its own (which are never read), is
/// larger or deeper than any domain, or holds no domain or several.
pub fn parse(text: &str) -> Result<(Domain, Vec<DomainNote>), DomainError> {
    let doc = tree::document(text)?;
    let node = tree::domain(&doc)?;
    let mut reader = DomainReader::new(text);
    let domain = reader.domain(node);
    Ok((domain, reader.finish()))
}

/// Reads a domain's XML that ends before the domain does: the elements that are whole. Returns `None` if it is not cut
/// off, or has none.
pub(crate) fn parse_cut(text: &str) -> Option<(Domain, Vec<DomainNote>)> {
    let (whole, last) = scan::completed(text)?;
    let (mut domain, mut notes) = parse(&whole).ok()?;
    domain.form = DefinitionForm::CutLibvirt;
    notes.push(DomainNote {
        kind: NoteKind::Unread,
        line: position(text, last).0,
        change: None,
        what: "the definition is cut off behind this line, before </domain>: nothing is concluded from what is \
               missing, and there is no patch"
            .to_owned(),
    });
    Some((domain, notes))
}

/// Checks that bytes are text as a domain's XML is: UTF-8, with or without a byte order mark.
///
/// # Errors
///
/// Fails if they are not UTF-8 or their XML declaration names another encoding, and says which.
pub fn decode(bytes: &[u8]) -> Result<&str, DomainError> {
    let error = |offset: usize, what: String| DomainError {
        kind: crate::ErrorKind::Encoding,
        line: 1 + bytes.iter().take(offset).filter(|b| **b == b'\n').count(),
        column: 1 + bytes
            .iter()
            .take(offset)
            .rev()
            .take_while(|b| **b != b'\n')
            .count(),
        what,
    };
    let other = |name: &str| {
        format!(
            "the document is in {name}; expected UTF-8: convert it with iconv -f {name} -t UTF-8, \
             and take the encoding out of its first line"
        )
    };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(error(0, other("UTF-16")));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(wrong) => {
            let at = wrong.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let what = format!("the byte 0x{byte:02x} is not UTF-8; expected text in UTF-8");
            // A declaration says more than the byte.
            let named = std::str::from_utf8(bytes.get(..at).unwrap_or_default())
                .ok()
                .and_then(declared_encoding);
            let what = named.map_or(what, |name| other(&quoted(name)));
            return Err(error(at, what));
        }
    };
    match declared_encoding(text) {
        Some(name) => Err(error(0, other(&quoted(name)))),
        None => Ok(text),
    }
}

/// Reads a domain's XML from bytes: [`decode`], then [`parse`].
///
/// # Errors
///
/// Those of [`decode`] and [`parse`].
pub fn parse_bytes(bytes: &[u8]) -> Result<(Domain, Vec<DomainNote>), DomainError> {
    parse(decode(bytes)?)
}

/// Returns the encoding that the XML declaration names, if it is not UTF-8 or a part of it.
fn declared_encoding(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let declaration = text.strip_prefix("<?xml")?.split("?>").next()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let name = value.get(1..)?.split(quote).next()?;
    let known = ["utf-8", "utf8", "us-ascii", "ascii"];
    let is_known = known.iter().any(|known| name.eq_ignore_ascii_case(known));
    (!is_known).then_some(name)
}

/// What is read of a document, and noted.
pub(crate) struct DomainReader {
    /// Where the lines begin, but for the first.
    lines: Vec<usize>,
    notes: Vec<DomainNote>,
    more: usize,
}

impl DomainReader {
    fn new(text: &str) -> DomainReader {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        DomainReader {
            lines: ends.map(|(at, _)| at + 1).collect(),
            notes: Vec::new(),
            more: 0,
        }
    }

    fn finish(mut self) -> Vec<DomainNote> {
        if self.more > 0 {
            let what = format!("{} more notes about this document", self.more);
            self.notes.push(DomainNote {
                kind: NoteKind::Unread,
                line: self.notes.last().map_or(1, |note| note.line),
                change: None,
                what,
            });
        }
        self.notes
    }

    /// Returns the line of an element, from 1.
    pub(crate) fn line(&self, node: XmlNode<'_, '_>) -> usize {
        1 + self
            .lines
            .partition_point(|start| *start <= node.range().start)
    }

    /// Notes that something is left out.
    pub(crate) fn note(&mut self, node: XmlNode<'_, '_>, what: String) {
        if self.notes.len() >= MAX_NOTES {
            self.more += 1;
            return;
        }
        self.notes.push(DomainNote {
            kind: NoteKind::Unread,
            line: self.line(node),
            change: None,
            what,
        });
    }

    /// Reads a number from a text in or on an element.
    pub(crate) fn parsed<T: std::str::FromStr>(
        &mut self,
        node: XmlNode<'_, '_>,
        what: &str,
        text: &str,
        expected: &str,
    ) -> Option<T> {
        let value = text.trim().parse().ok();
        if value.is_none() {
            let name = quoted(node.tag_name().name());
            let what = format!(
                "{what} of <{name}> is '{}'; expected {expected}: left out",
                quoted(text)
            );
            self.note(node, what);
        }
        value
    }

    /// Reads an attribute that is a number.
    pub(crate) fn number(&mut self, node: XmlNode<'_, '_>, name: &str) -> Option<u32> {
        let text = attr(node, name)?;
        self.parsed(node, name, text, "a number")
    }

    /// Reads an attribute that is a set of CPUs or nodes.
    fn cpus(&mut self, node: XmlNode<'_, '_>, name: &str) -> Option<CpuSet> {
        let text = attr(node, name)?;
        // The kernel's steps, as in 0-31:2/4, are not in libvirt's lists.
        let list = if text.contains(':') { "" } else { text };
        let cpus = list.parse::<CpuSet>().ok().filter(|cpus| !cpus.is_empty());
        if cpus.is_none() {
            let what = format!(
                "{name} of <{}> is '{}'; expected a list such as 0-3,8: left out",
                quoted(node.tag_name().name()),
                quoted(text)
            );
            self.note(node, what);
        }
        cpus
    }

    /// Reads an attribute that is one of two words: `yes` and `no`, or `on` and `off`.
    pub(crate) fn switch(&mut self, node: XmlNode<'_, '_>, name: &str) -> Option<bool> {
        let text = attr(node, name)?;
        match text {
            "yes" | "on" => Some(true),
            "no" | "off" => Some(false),
            _ => {
                let element = quoted(node.tag_name().name());
                let what = format!(
                    "{name} of <{element}> is '{}'; expected yes or no, on or off: left out",
                    quoted(text)
                );
                self.note(node, what);
                None
            }
        }
    }

    /// Reads a number of bytes that has a unit: KiB if none is given (`scaledInteger`, `virParseScaledValue`).
    fn bytes(&mut self, node: XmlNode<'_, '_>, number: &str) -> Option<u64> {
        let unit = attr(node, "unit").unwrap_or("KiB");
        let number: u64 = self.parsed(node, "the size", number, "a number")?;
        let bytes = scale(unit).and_then(|scale| number.checked_mul(scale));
        if bytes.is_none() {
            let what = format!(
                "the size {number} with the unit '{}' is none; expected a unit such as KiB: left out",
                quoted(unit)
            );
            self.note(node, what);
        }
        bytes
    }

    fn domain(&mut self, node: XmlNode<'_, '_>) -> Domain {
        let mut domain = Domain {
            kind: attr(node, "type").unwrap_or_default().to_owned(),
            ..Domain::default()
        };
        if let Some(root) = node.parent_element() {
            let what = format!(
                "the domain stands in <{}>: what is read is that of the inner <domain>",
                quoted(root.tag_name().name())
            );
            self.note(root, what);
        }
        let mut seen = BTreeSet::new();
        for element in node.children().filter(XmlNode::is_element) {
            let namespace = element.tag_name().namespace();
            let name = element.tag_name().name();
            if namespace == Some(QEMU) && name == "commandline" {
                let args = element.children().filter(|arg| {
                    arg.is_element()
                        && arg.tag_name().namespace() == Some(QEMU)
                        && arg.tag_name().name() == "arg"
                });
                let values = args.filter_map(|arg| attr(arg, "value"));
                domain.qemu_args.extend(values.map(str::to_owned));
            }
            if namespace.is_some() {
                continue;
            }
            if ONCE.contains(&name) && !seen.insert(name) {
                self.note(
                    element,
                    format!("there is another <{name}> before: left out"),
                );
                continue;
            }
            self.element(&mut domain, element, name);
        }
        os::recognize(&mut domain);
        domain
    }

    /// An element in `<domain>`.
    fn element(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>, name: &str) {
        match name {
            "name" => domain.name = tree::text(node).into_owned(),
            "uuid" => domain.uuid = Some(tree::text(node).into_owned()),
            "metadata" => self.metadata(domain, node),
            "os" => {
                if let Some(kind) = child(node, "type") {
                    domain.os_type = Some(tree::text(kind).into_owned());
                    domain.arch = attr(kind, "arch").map(str::to_owned);
                    domain.machine = attr(kind, "machine").map(str::to_owned);
                }
            }
            "memory" => domain.memory_bytes = self.bytes(node, &tree::text(node)),
            "currentMemory" => domain.current_memory_bytes = self.bytes(node, &tree::text(node)),
            "memoryBacking" => self.memory_backing(&mut domain.memory_backing, node),
            "vcpu" => self.vcpu(domain, node),
            "iothreads" => {
                domain.iothreads =
                    self.parsed(node, "the text", &tree::text(node), "how many there are");
            }
            "iothreadids" => {
                for thread in children(node, "iothread") {
                    domain.iothread_ids.extend(self.number(thread, "id"));
                }
            }
            "cputune" => self.cputune(domain, node),
            "numatune" => {
                for element in elements(node) {
                    let memory = NumaMemory {
                        cell: self.number(element, "cellid"),
                        mode: attr(element, "mode").map(str::to_owned),
                        nodeset: self.cpus(element, "nodeset"),
                        placement: attr(element, "placement").map(str::to_owned),
                    };
                    if is(element, "memory") {
                        domain.numa_memory.get_or_insert(memory);
                    } else if is(element, "memnode") {
                        domain.numa_nodes.push(memory);
                    }
                }
            }
            "cpu" => self.cpu(domain, node),
            "clock" => {
                let offset = attr(node, "offset").map(str::to_owned);
                domain.clock_offset = domain.clock_offset.take().or(offset);
                for timer in children(node, "timer") {
                    domain.timers.push(DomainTimer {
                        name: attr(timer, "name").unwrap_or_default().to_owned(),
                        present: self.switch(timer, "present"),
                        tickpolicy: attr(timer, "tickpolicy").map(str::to_owned),
                        mode: attr(timer, "mode").map(str::to_owned),
                    });
                }
            }
            "features" => self.features(domain, node),
            "devices" => self.devices(domain, node),
            _ => {}
        }
    }

    fn metadata(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        let named = |node: &XmlNode<'_, '_>, name: &str| {
            node.tag_name().namespace() == Some(os::LIBOSINFO) && node.tag_name().name() == name
        };
        let outer = node.children().filter(|n| named(n, "libosinfo"));
        let mut inner = outer.flat_map(|n| n.children().filter(|n| named(n, "os")));
        if let Some(id) = inner.find_map(|os| attr(os, "id")) {
            domain.os_id = Some(id.to_owned());
        }
    }

    fn vcpu(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        let text = tree::text(node);
        // An empty element is one vCPU (virDomainVcpuParse).
        let count = if text.is_empty() { "1" } else { text.as_ref() };
        let expected = "the number of vCPUs";
        domain.vcpus = self.parsed(node, "the text", count, expected);
        domain.current_vcpus = self.number(node, "current");
        for count in [&mut domain.vcpus, &mut domain.current_vcpus] {
            if let Some(many) = count.filter(|n| *n > MAX_VCPUS || *n == 0) {
                let what = format!("{many} vCPUs cannot be; expected 1 to {MAX_VCPUS}: left out");
                self.note(node, what);
                *count = None;
            }
        }
        domain.vcpu_placement = attr(node, "placement").map(str::to_owned);
        domain.vcpu_cpuset = self.cpus(node, "cpuset");
    }

    fn cputune(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        for element in elements(node) {
            let name = element.tag_name().name();
            match name {
                "vcpupin" | "iothreadpin" => {
                    let (who, pins) = if name == "vcpupin" {
                        ("vcpu", &mut domain.vcpu_pins)
                    } else {
                        ("iothread", &mut domain.iothread_pins)
                    };
                    let who = self.number(element, who).filter(|n| *n <= MAX_VCPUS);
                    if let (Some(who), Some(cpus)) = (who, self.cpus(element, "cpuset")) {
                        pins.insert(who, cpus);
                    }
                }
                "emulatorpin" => domain.emulator_pin = self.cpus(element, "cpuset"),
                "vcpusched" | "iothreadsched" | "emulatorsched" => {
                    let who = if name == "vcpusched" {
                        "vcpus"
                    } else {
                        "iothreads"
                    };
                    domain.scheds.push(ThreadScheduling {
                        element: name.to_owned(),
                        who: self.cpus(element, who),
                        scheduler: attr(element, "scheduler").unwrap_or_default().to_owned(),
                        priority: self.number(element, "priority"),
                    });
                }
                "shares" => self.tune(domain, element),
                _ if name.ends_with("period") || name.ends_with("quota") => {
                    self.tune(domain, element);
                }
                _ => {}
            }
        }
    }

    fn tune(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        let text = tree::text(node);
        if let Some(value) = self.parsed(node, "the text", &text, "a number") {
            let name = node.tag_name().name().to_owned();
            domain.cputune.insert(name, value);
        }
    }

    fn memory_backing(&mut self, backing: &mut MemoryBacking, node: XmlNode<'_, '_>) {
        for element in elements(node) {
            match element.tag_name().name() {
                "locked" => backing.locked = true,
                "nosharepages" => backing.nosharepages = true,
                "discard" => backing.discard = true,
                "source" => backing.source = attr(element, "type").map(str::to_owned),
                "access" => backing.access = attr(element, "mode").map(str::to_owned),
                "allocation" => backing.allocation = attr(element, "mode").map(str::to_owned),
                "hugepages" => {
                    let sizes = backing.hugepages.get_or_insert_default();
                    for page in children(element, "page") {
                        sizes.push(HugePages {
                            size_bytes: attr(page, "size").and_then(|size| self.bytes(page, size)),
                            nodeset: self.cpus(page, "nodeset"),
                        });
                    }
                }
                _ => {}
            }
        }
    }

    fn cpu(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        domain.cpu_mode = attr(node, "mode").map(str::to_owned);
        let model = child(node, "model").map(|model| tree::text(model).into_owned());
        domain.cpu_model = model.filter(|model| !model.is_empty());
        for feature in children(node, "feature") {
            domain.cpu_features.push(CpuFeature {
                name: attr(feature, "name").unwrap_or_default().to_owned(),
                policy: attr(feature, "policy").map(str::to_owned),
            });
        }
        if let Some(topology) = child(node, "topology") {
            domain.topology = Some(Topology {
                sockets: self.number(topology, "sockets"),
                dies: self.number(topology, "dies"),
                clusters: self.number(topology, "clusters"),
                cores: self.number(topology, "cores"),
                threads: self.number(topology, "threads"),
            });
        }
        for cell in children(node, "numa").flat_map(|numa| children(numa, "cell")) {
            let memory = attr(cell, "memory").and_then(|memory| self.bytes(cell, memory));
            domain.cells.push(NumaCell {
                id: self.number(cell, "id"),
                cpus: self.cpus(cell, "cpus"),
                memory_bytes: memory,
            });
        }
    }

    fn features(&mut self, domain: &mut Domain, node: XmlNode<'_, '_>) {
        for element in elements(node) {
            let name = element.tag_name().name();
            // These are there or not: libvirt looks at no state of theirs (virDomainFeaturesDefParse).
            let flag = ["acpi", "apic", "pae", "hyperv", "kvm"].contains(&name);
            let state = if flag {
                None
            } else {
                self.switch(element, "state")
            };
            if let Some(on) = state {
                domain.feature_states.insert(name.to_owned(), on);
            }
            if state != Some(false) {
                domain.features.insert(name.to_owned());
            }
            match name {
                "apic" => domain.apic_eoi = self.switch(element, "eoi"),
                "gic" => domain.gic_version = attr(element, "version").map(str::to_owned),
                "kvm" => self.states(&mut domain.kvm_features, element),
                "hyperv" => {
                    let hyperv = domain.hyperv.get_or_insert_default();
                    let mode = attr(element, "mode");
                    if hyperv.mode.is_none() || mode == Some("passthrough") {
                        hyperv.mode = mode.map(str::to_owned);
                    }
                    self.states(&mut hyperv.features, element);
                }
                _ => {}
            }
        }
    }

    /// Elements with a `state`, and those in them.
    fn states(&mut self, states: &mut BTreeMap<String, bool>, node: XmlNode<'_, '_>) {
        for element in elements(node) {
            let name = element.tag_name().name();
            // libvirt's schema wants a state; without one an element that is there is taken to be on.
            let on = self.switch(element, "state").unwrap_or(true);
            states.insert(name.to_owned(), on);
            for inner in elements(element) {
                let on = self.switch(inner, "state").unwrap_or(true);
                states.insert(format!("{name}-{}", inner.tag_name().name()), on);
            }
        }
    }
}

/// Returns how many bytes a unit is (`virScaleInteger`).
pub(crate) fn scale(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "b" | "byte" | "bytes") {
        return Some(1);
    }
    let mut letters = unit.chars();
    let power = "kmgtpe".find(letters.next()?)? + 1;
    let base: u64 = match letters.as_str() {
        "" | "ib" => 1024,
        "b" => 1000,
        _ => return None,
    };
    base.checked_pow(u32::try_from(power).ok()?)
}
