//! Changes to a document: which pieces of text each one is.

mod advice;
mod cpu;
mod devices;
mod features;
mod memory;

use crate::change::DomainChange;
use crate::element::Element;
use crate::error::{DomainError, DomainNote, ErrorKind, NoteKind, position, quoted};
use crate::page::{DomainText, Edit, edited};
use crate::tree::{self, XmlNode, attr, child, is};

/// What becomes of a change.
enum ChangeOutcome {
    /// These edits make it.
    Edits(Vec<Edit>),
    /// There is nothing to do: the kind of the note, the byte that it is about, and why.
    Nothing(NoteKind, usize, String),
}

/// Elements of one name at one place that a change is made to: more of them is no domain that was ever run.
const MAX_SAME: usize = 64;

/// Makes changes to a domain's XML, in their order.
///
/// Only what they are about is edited: the rest of the text stays byte by byte, and what is new follows the
/// indentation, the quotes and the line ends around it. A change that holds already changes nothing, so changes that
/// are made twice are made once. The notes tell of each change that made no difference, and what else a change needs;
/// their lines are those of the text when it was the change's turn.
///
/// # Errors
///
/// Those of [`crate::parse`]; and it fails for a document that wraps a domain (`<domstatus>`, `<domainsnapshot>`),
/// since libvirt takes none of these back.
pub fn apply(
    text: &str,
    changes: &[DomainChange],
) -> Result<(String, Vec<DomainNote>), DomainError> {
    let mut notes = Vec::new();
    let mut text = text.to_owned();
    editable(&DomainText::new(&text)?)?;
    for (index, change) in changes.iter().enumerate() {
        let page = DomainText::new(&text)?;
        let target = ChangeTarget {
            domain: editable(&page)?,
            page: &page,
        };
        let outcome = target.outcome(change);
        let outcome = match outcome {
            // Edits that would spoil the document are none.
            ChangeOutcome::Edits(edits) => edited(&text, edits)
                .filter(|new| tree::document(new).is_ok())
                .ok_or_else(|| {
                    let what = "this change cannot be written as XML: not made".to_owned();
                    (NoteKind::Refused, target.domain.range().start, what)
                }),
            ChangeOutcome::Nothing(kind, at, what) => Err((kind, at, what)),
        };
        match outcome {
            Ok(new) => text = new,
            Err((kind, at, what)) => notes.push(DomainNote {
                kind,
                line: position(&text, at).0,
                change: Some(index),
                what,
            }),
        }
    }
    advice::add(&text, changes, &mut notes)?;
    Ok((text, notes))
}

/// Returns the domain of a document if libvirt takes the document back.
fn editable<'p, 't>(page: &'p DomainText<'t>) -> Result<XmlNode<'p, 't>, DomainError> {
    let domain = tree::domain(page.doc())?;
    if let Some(outer) = domain.parent_element() {
        let what = format!(
            "<{}> cannot be changed, since libvirt does not take it back; \
             expected <domain>, as virsh dumpxml --inactive prints it",
            quoted(outer.tag_name().name())
        );
        let at = outer.range().start;
        let text = page.doc().input_text();
        return Err(DomainError::at(text, at, ErrorKind::NotEditable, what));
    }
    Ok(domain)
}

/// What is changed.
struct ChangeTarget<'p, 't> {
    page: &'p DomainText<'t>,
    domain: XmlNode<'p, 't>,
}

impl<'p, 't> ChangeTarget<'p, 't> {
    fn outcome(&self, change: &DomainChange) -> ChangeOutcome {
        match change {
            DomainChange::ClockOffset(offset) => self.clock_offset(offset),
            DomainChange::Timer { name, present } => self.timer(name, *present),
            DomainChange::HypervFeature { name, on } => self.hyperv(name, *on),
            DomainChange::KvmFeature { name, on } => self.kvm(name, *on),
            DomainChange::Feature { name, on } => self.feature(name, *on),
            DomainChange::ApicEoi(on) => self.apic_eoi(*on),
            DomainChange::CpuMode(mode) => self.cpu_mode(mode),
            DomainChange::CpuFeature { name, policy } => self.cpu_feature(name, policy),
            DomainChange::VcpuPin { vcpu, cpus } => self.vcpu_pin(*vcpu, cpus),
            DomainChange::EmulatorPin(cpus) => self.emulator_pin(cpus),
            DomainChange::IothreadPin { iothread, cpus } => self.iothread_pin(*iothread, cpus),
            DomainChange::Iothreads(count) => self.iothreads(*count),
            DomainChange::NumaMemory { mode, nodeset } => self.numa_memory(mode, nodeset),
            DomainChange::HugePages { size_kib } => self.huge_pages(*size_kib),
            DomainChange::MemoryLocked => self.memory_flag("locked"),
            DomainChange::NoSharePages => self.memory_flag("nosharepages"),
            DomainChange::DiskCache { disk, cache } => self.disk_cache(disk, cache),
            DomainChange::DiskIo { disk, io } => self.disk_io(disk, io),
            DomainChange::DiskIothread { disk, iothread } => self.disk_iothread(disk, *iothread),
            DomainChange::DiskQueues { disk, queues } => self.disk_queues(disk, *queues),
            DomainChange::ControllerIothread { index, iothread } => {
                self.controller_iothread(*index, *iothread)
            }
            DomainChange::InterfaceDriver { interface, name } => {
                self.interface_driver(interface, name)
            }
            DomainChange::InterfaceQueues { interface, queues } => {
                self.interface_queues(interface, *queues)
            }
            DomainChange::ConsoleVirtio => self.console_virtio(),
            DomainChange::RemoveSerial { port } => self.remove_serial(*port),
        }
    }

    /// The change holds already.
    fn holds(&self, node: XmlNode<'_, '_>, what: impl Into<String>) -> ChangeOutcome {
        ChangeOutcome::Nothing(NoteKind::Holds, node.range().start, what.into())
    }

    /// The change cannot be made.
    fn refused(&self, node: XmlNode<'_, '_>, what: impl Into<String>) -> ChangeOutcome {
        ChangeOutcome::Nothing(NoteKind::Refused, node.range().start, what.into())
    }

    /// Returns why a word is none of those that libvirt knows.
    fn unknown(&self, what: &str, word: &str, known: &[&str]) -> Option<ChangeOutcome> {
        if known.contains(&word) {
            return None;
        }
        let said = format!(
            "'{}' is no {what} that is known; expected one of {}: not made",
            quoted(word),
            known.join(", ")
        );
        Some(self.refused(self.domain, said))
    }

    /// Returns why a guest of another architecture cannot have something that is x86's.
    fn not_x86(&self, what: &str) -> Option<ChangeOutcome> {
        let os_type = self.all(&["os", "type"]).into_iter().next()?;
        let arch = attr(os_type, "arch")?;
        let said = || {
            format!(
                "the guest's architecture is {}, and {} is for x86 guests: not made",
                quoted(arch),
                quoted(what)
            )
        };
        let x86 = ["x86_64", "i686"].contains(&arch);
        (!x86).then(|| self.refused(os_type, said()))
    }

    /// Returns the elements at a path within the domain.
    fn all(&self, path: &[&str]) -> Vec<XmlNode<'p, 't>> {
        let mut found = vec![self.domain];
        for name in path {
            let inner = found.iter().flat_map(|node| node.children());
            found = inner.filter(|node| is(*node, name)).collect();
        }
        found
    }

    /// Puts an element at a path within the domain, and what of the path is not there around it.
    fn put(&self, path: &[&str], element: Element) -> ChangeOutcome {
        ChangeOutcome::Edits(vec![self.put_in(self.domain, path, element)])
    }

    /// Puts an element at a path within another.
    fn put_in(&self, node: XmlNode<'p, 't>, path: &[&str], element: Element) -> Edit {
        let mut parent = node;
        let mut missing = path.iter();
        for name in path {
            let Some(found) = child(parent, name) else {
                break;
            };
            parent = found;
            missing.next();
        }
        let mut element = element;
        for name in missing.rev() {
            let around = match *name {
                "hyperv" => Element::new(name).with("mode", "custom"),
                // What libvirt takes for a domain without a clock (virDomainDefPostParse).
                "clock" => Element::new(name).with("offset", "utc"),
                _ => Element::new(name),
            };
            element = around.holding(element);
        }
        self.page.insert(parent, &element)
    }

    /// Returns why so many elements are not changed.
    fn too_many(&self, nodes: &[XmlNode<'p, 't>]) -> Option<ChangeOutcome> {
        let first = nodes.first().filter(|_| nodes.len() > MAX_SAME)?;
        let what = format!(
            "there are {} elements <{}> that this change is about; expected one: not made",
            nodes.len(),
            quoted(first.tag_name().name())
        );
        Some(self.refused(*first, what))
    }

    /// Takes elements away.
    fn remove_all(&self, nodes: &[XmlNode<'p, 't>]) -> ChangeOutcome {
        let edits = || nodes.iter().map(|node| self.page.remove(*node)).collect();
        self.too_many(nodes)
            .unwrap_or_else(|| ChangeOutcome::Edits(edits()))
    }

    /// Gives elements an attribute, unless all have it; `what` says that they have.
    fn set_all(
        &self,
        nodes: &[XmlNode<'p, 't>],
        name: &str,
        value: &str,
        what: String,
    ) -> ChangeOutcome {
        if let Some(refused) = self.too_many(nodes) {
            return refused;
        }
        let differ = nodes
            .iter()
            .filter(|node| attr(**node, name) != Some(value));
        let edits: Vec<_> = differ
            .map(|node| self.page.set(*node, name, value))
            .collect();
        if edits.is_empty() {
            let node = nodes.first().copied().unwrap_or(self.domain);
            return self.holds(node, what);
        }
        ChangeOutcome::Edits(edits)
    }
}
