//! `<features>` and `<clock>`.

use super::{ChangeOutcome, ChangeTarget};
use crate::element::Element;
use crate::order::{HYPERV, KVM};
use crate::tree::{attr, child, elements, is};

/// Timers of libvirt (`virDomainTimerName`), but for `armvtimer`, which only ever gets a tick policy.
const TIMERS: &[&str] = &[
    "platform",
    "pit",
    "rtc",
    "hpet",
    "tsc",
    "kvmclock",
    "hypervclock",
];

/// How often a guest tries for a lock before it notifies the hypervisor: what virt-install gives Windows guests.
/// libvirt wants at least 4095.
const SPINLOCK_RETRIES: u32 = 8191;

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl ChangeTarget<'_, '_> {
    pub(super) fn clock_offset(&self, offset: &str) -> ChangeOutcome {
        if let Some(refused) = self.unknown("offset of a clock", offset, &["utc", "localtime"]) {
            return refused;
        }
        let clocks = self.all(&["clock"]);
        let Some(clock) = clocks.first() else {
            return self.put(&[], Element::new("clock").with("offset", offset));
        };
        if attr(*clock, "offset") == Some(offset) {
            return self.holds(*clock, format!("the clock's offset is '{offset}' already"));
        }
        // These belong to other offsets; libvirt's schema takes them with no other.
        let mut edits = vec![self.page.set(*clock, "offset", offset)];
        for other in ["timezone", "basis", "start"] {
            edits.extend(self.page.unset(*clock, other));
        }
        ChangeOutcome::Edits(edits)
    }

    pub(super) fn timer(&self, name: &str, present: bool) -> ChangeOutcome {
        if let Some(refused) = self.unknown("timer", name, TIMERS) {
            return refused;
        }
        if ["pit", "hpet", "tsc", "kvmclock", "hypervclock"].contains(&name)
            && let Some(refused) = self.not_x86(name)
        {
            return refused;
        }
        let value = if present { "yes" } else { "no" };
        let timers: Vec<_> = self
            .all(&["clock", "timer"])
            .into_iter()
            .filter(|timer| attr(*timer, "name") == Some(name))
            .collect();
        if timers.is_empty() {
            let timer = Element::new("timer");
            return self.put(&["clock"], timer.with("name", name).with("present", value));
        }
        let what = format!("the timer {name} is present='{value}' already");
        self.set_all(&timers, "present", value, what)
    }

    pub(super) fn hyperv(&self, name: &str, on: bool) -> ChangeOutcome {
        let (name, inner) = match name {
            "stimer-direct" => ("stimer", Some("direct")),
            name => (name, None),
        };
        if let Some(refused) = self.unknown("enlightenment", name, HYPERV) {
            return refused;
        }
        if let Some(refused) = self.not_x86(name) {
            return refused;
        }
        let hypervs = self.all(&["features", "hyperv"]);
        let passthrough = hypervs
            .iter()
            .find(|hyperv| attr(**hyperv, "mode") == Some("passthrough"));
        if let Some(hyperv) = passthrough {
            let what = "<hyperv mode='passthrough'> gives the guest all enlightenments of the host";
            return if on {
                self.holds(*hyperv, format!("{what}: {name} is among them"))
            } else {
                self.refused(*hyperv, format!("{what} and takes no single one: not made"))
            };
        }
        let found = self.all(&["features", "hyperv", name]);
        let Some(inner) = inner else {
            let mut element = Element::new(name).with("state", on_off(on));
            if name == "spinlocks" && on {
                element = element.with("retries", SPINLOCK_RETRIES);
            }
            // libvirt wants a value with it, and there is none to be known here.
            let nameless = |node: &&_| attr(**node, "value").is_none();
            if name == "vendor_id" && on && (found.is_empty() || found.iter().any(|n| nameless(&n)))
            {
                let what = "vendor_id needs a value, which this change does not have: not made";
                return self.refused(self.domain, what);
            }
            let outcome = self.state(&["features", "hyperv"], name, on, element);
            return match outcome {
                ChangeOutcome::Edits(mut edits) if name == "spinlocks" && on => {
                    let bare = found
                        .iter()
                        .filter(|node| attr(**node, "retries").is_none());
                    let retries = SPINLOCK_RETRIES.to_string();
                    for node in bare {
                        edits.push(self.page.set(*node, "retries", &retries));
                    }
                    ChangeOutcome::Edits(edits)
                }
                outcome => outcome,
            };
        };
        let element = Element::new(inner).with("state", on_off(on));
        match found.first() {
            Some(outer) if on && attr(*outer, "state") == Some("off") => {
                let mut edits = vec![self.page.set(*outer, "state", "on")];
                match child(*outer, inner) {
                    Some(node) => edits.push(self.page.set(node, "state", "on")),
                    None => edits.push(self.page.insert(*outer, &element)),
                }
                ChangeOutcome::Edits(edits)
            }
            None if on => {
                let outer = Element::new(name).with("state", "on").holding(element);
                self.put(&["features", "hyperv"], outer)
            }
            _ => self.state(&["features", "hyperv", name], inner, on, element),
        }
    }

    pub(super) fn kvm(&self, name: &str, on: bool) -> ChangeOutcome {
        // It has a size that has to fit the guest, and is about migration.
        let known: Vec<_> = KVM
            .iter()
            .copied()
            .filter(|name| *name != "dirty-ring")
            .collect();
        if let Some(refused) = self.unknown("feature of KVM", name, &known) {
            return refused;
        }
        if let Some(refused) = self.not_x86(name) {
            return refused;
        }
        let element = Element::new(name).with("state", on_off(on));
        self.state(&["features", "kvm"], name, on, element)
    }

    /// Sets the `state` of an element that is off as long as it is not there.
    fn state(&self, path: &[&str], name: &str, on: bool, element: Element) -> ChangeOutcome {
        let value = on_off(on);
        let parents = self.all(path);
        let of_parent = |parent: &_| {
            elements(*parent)
                .filter(|node| is(*node, name))
                .collect::<Vec<_>>()
        };
        let found: Vec<_> = parents.iter().flat_map(of_parent).collect();
        if !found.is_empty() {
            return self.set_all(&found, "state", value, format!("{name} is {value} already"));
        }
        if !on {
            let what = format!("{name} is not there, so it is off already");
            return self.holds(self.domain, what);
        }
        self.put(path, element)
    }

    pub(super) fn feature(&self, name: &str, on: bool) -> ChangeOutcome {
        let flags = ["acpi", "apic", "pae"];
        let known = ["acpi", "apic", "pae", "pmu", "vmport", "pvspinlock"];
        if let Some(refused) = self.unknown("feature", name, &known) {
            return refused;
        }
        if !["acpi", "pmu"].contains(&name)
            && let Some(refused) = self.not_x86(name)
        {
            return refused;
        }
        let found = self.all(&["features", name]);
        if flags.contains(&name) {
            return match (found.first(), on) {
                (Some(node), true) => self.holds(*node, format!("{name} is there already")),
                (None, false) => self.holds(self.domain, format!("{name} is not there already")),
                (None, true) => self.put(&["features"], Element::new(name)),
                (Some(_), false) => self.remove_all(&found),
            };
        }
        let value = on_off(on);
        if found.is_empty() {
            // What these are by default is decided elsewhere, so both states are written.
            return self.put(&["features"], Element::new(name).with("state", value));
        }
        self.set_all(&found, "state", value, format!("{name} is {value} already"))
    }

    pub(super) fn apic_eoi(&self, on: bool) -> ChangeOutcome {
        if let Some(refused) = self.not_x86("the apic") {
            return refused;
        }
        let value = on_off(on);
        let found = self.all(&["features", "apic"]);
        if found.is_empty() {
            return self.put(&["features"], Element::new("apic").with("eoi", value));
        }
        self.set_all(
            &found,
            "eoi",
            value,
            format!("the apic has eoi='{value}' already"),
        )
    }
}
