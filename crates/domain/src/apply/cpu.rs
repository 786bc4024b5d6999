//! `<cpu>`, `<cputune>` and `<iothreads>`.

use cpuset::CpuSet;

use super::{ChangeOutcome, ChangeTarget};
use crate::element::Element;
use crate::error::quoted;
use crate::read::MAX_VCPUS;
use crate::tree::{self, XmlNode, attr, elements, is};

impl ChangeTarget<'_, '_> {
    pub(super) fn cpu_mode(&self, mode: &str) -> ChangeOutcome {
        let known = ["host-passthrough", "host-model", "maximum"];
        if let Some(refused) = self.unknown("mode of a CPU without a model", mode, &known) {
            return refused;
        }
        let Some(cpu) = self.all(&["cpu"]).into_iter().next() else {
            return self.put(&[], Element::new("cpu").with("mode", mode));
        };
        if attr(cpu, "mode") == Some(mode) {
            return self.holds(cpu, format!("the CPU's mode is '{mode}' already"));
        }
        // A model and how to match it are for the mode 'custom' (formatdomain, CPU model and topology).
        let models: Vec<_> = elements(cpu)
            .filter(|node| is(*node, "model") || is(*node, "vendor"))
            .collect();
        if let Some(refused) = self.too_many(&models) {
            return refused;
        }
        let mut edits = vec![self.page.set(cpu, "mode", mode)];
        edits.extend(self.page.unset(cpu, "match"));
        edits.extend(models.iter().map(|node| self.page.remove(*node)));
        ChangeOutcome::Edits(edits)
    }

    pub(super) fn cpu_feature(&self, name: &str, policy: &str) -> ChangeOutcome {
        let known = ["force", "require", "optional", "disable", "forbid"];
        if let Some(refused) = self.unknown("policy", policy, &known) {
            return refused;
        }
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(sound) {
            let what = format!("'{}' is no name of a CPU feature: not made", quoted(name));
            return self.refused(self.domain, what);
        }
        let Some(cpu) = self.all(&["cpu"]).into_iter().next() else {
            let what = "there is no <cpu>, and features need one with a mode or model: not made";
            return self.refused(self.domain, what);
        };
        let found: Vec<_> = self
            .all(&["cpu", "feature"])
            .into_iter()
            .filter(|feature| attr(*feature, "name") == Some(name))
            .collect();
        if found.is_empty() {
            let feature = Element::new("feature");
            let feature = feature.with("policy", policy).with("name", name);
            return ChangeOutcome::Edits(vec![self.page.insert(cpu, &feature)]);
        }
        let what = format!("the CPU feature {name} has policy='{policy}' already");
        self.set_all(&found, "policy", policy, what)
    }

    pub(super) fn vcpu_pin(&self, vcpu: u32, cpus: &CpuSet) -> ChangeOutcome {
        // A domain without <vcpu> has one; a number that cannot be read is no reason against.
        let element = self.all(&["vcpu"]).into_iter().next();
        let vcpus = element.map_or(1, |vcpu| tree::text(vcpu).parse().unwrap_or(MAX_VCPUS));
        if vcpu >= vcpus.min(MAX_VCPUS) {
            let what = format!("there is no vCPU {vcpu}: the domain has {vcpus}, from 0: not made");
            return self.refused(element.unwrap_or(self.domain), what);
        }
        self.pin(
            Some(("vcpu", vcpu)),
            "vcpupin",
            &format!("vCPU {vcpu}"),
            cpus,
        )
    }

    pub(super) fn emulator_pin(&self, cpus: &CpuSet) -> ChangeOutcome {
        self.pin(None, "emulatorpin", "the emulator", cpus)
    }

    pub(super) fn iothread_pin(&self, iothread: u32, cpus: &CpuSet) -> ChangeOutcome {
        if iothread == 0 {
            let what = "iothreads are counted from 1: there is no iothread 0: not made";
            return self.refused(self.domain, what);
        }
        let whose = format!("iothread {iothread}");
        self.pin(Some(("iothread", iothread)), "iothreadpin", &whose, cpus)
    }

    fn pin(
        &self,
        number: Option<(&'static str, u32)>,
        name: &str,
        whose: &str,
        cpus: &CpuSet,
    ) -> ChangeOutcome {
        if cpus.is_empty() {
            let what = format!("no CPU was given for {whose}; expected one at least: not made");
            return self.refused(self.domain, what);
        }
        let same = |node: &XmlNode<'_, '_>| match number {
            None => true,
            Some((key, number)) => {
                let value = attr(*node, key).and_then(|value| value.trim().parse().ok());
                value == Some(number)
            }
        };
        let mut found = self.all(&["cputune", name]);
        found.retain(same);
        if found.is_empty() {
            let mut pin = Element::new(name);
            if let Some((key, number)) = number {
                pin = pin.with(key, number);
            }
            return self.put(&["cputune"], pin.with("cpuset", cpus));
        }
        // Sets are compared: 0-1 and 0,1 are the same.
        let pinned = |node: &XmlNode<'_, '_>| {
            let set = attr(*node, "cpuset").and_then(|set| set.parse::<CpuSet>().ok());
            set.as_ref() == Some(cpus)
        };
        if found.iter().all(pinned) {
            let node = found.first().copied().unwrap_or(self.domain);
            return self.holds(node, format!("{whose} is pinned to CPUs {cpus} already"));
        }
        found.retain(|node| !pinned(node));
        self.set_all(&found, "cpuset", &cpus.to_string(), String::new())
    }

    pub(super) fn iothreads(&self, count: u32) -> ChangeOutcome {
        if count == 0 || count > MAX_VCPUS {
            let what = format!("{count} iothreads cannot be; expected 1 to {MAX_VCPUS}: not made");
            return self.refused(self.domain, what);
        }
        let Some(node) = self.all(&["iothreads"]).into_iter().next() else {
            return self.put(&[], Element::new("iothreads").text(count));
        };
        match tree::text(node).parse::<u32>() {
            Ok(have) if have >= count => {
                self.holds(node, format!("there are {have} iothreads already"))
            }
            _ => ChangeOutcome::Edits(self.page.set_text(node, &count.to_string())),
        }
    }
}
