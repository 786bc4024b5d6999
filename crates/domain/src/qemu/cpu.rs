//! `-cpu`: the model, its features, Hyper-V's enlightenments, and the timers that other options set.

use crate::data::{CpuFeature, Domain, DomainTimer};

use super::properties::{Properties, switch};

/// Flags of Hyper-V that are no enlightenment by themselves (`docs/system/i386/hyperv.rst`).
const NO_ENLIGHTENMENT: [&str; 3] = ["vendor-id", "enforce-cpuid", "no-nonarch-coresharing"];

/// Reads `-cpu`; of several the last counts.
pub(super) fn cpu(domain: &mut Domain, value: &str) {
    let list = Properties::read(value, "model");
    domain.hyperv = None;
    domain.cpu_features.clear();
    let model = list.get("model").unwrap_or_default();
    domain.cpu_model = None;
    domain.cpu_mode = match model {
        "" => None,
        "host" => Some("host-passthrough".to_owned()),
        "max" => Some("maximum".to_owned()),
        model => {
            domain.cpu_model = Some(model.to_owned());
            Some("custom".to_owned())
        }
    };
    for (key, value) in list.all().filter(|(key, _)| *key != "model") {
        // Older command lines write +feature and -feature, and underscores.
        let (name, on) = match (key.strip_prefix('+'), key.strip_prefix('-')) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => (key, switch(value).unwrap_or(true)),
        };
        feature(domain, &name.replace('_', "-"), on);
    }
}

fn feature(domain: &mut Domain, name: &str, on: bool) {
    let Some(hyperv) = name.strip_prefix("hv-") else {
        if name == "kvmclock" {
            timer(domain, "kvmclock", |one| one.present = Some(on));
        } else if domain.cpu_features.len() < 512 {
            domain.cpu_features.push(CpuFeature {
                name: name.to_owned(),
                policy: Some(if on { "require" } else { "disable" }.to_owned()),
            });
        }
        return;
    };
    if NO_ENLIGHTENMENT.contains(&hyperv) || hyperv.starts_with("version-id-") {
        return;
    }
    match hyperv {
        // libvirt calls the clock a timer.
        "time" => timer(domain, "hypervclock", |one| one.present = Some(on)),
        "passthrough" => {
            let hyperv = domain.hyperv.get_or_insert_default();
            hyperv.mode = on.then(|| "passthrough".to_owned());
        }
        name => {
            let name = if name == "apicv" { "avic" } else { name };
            let hyperv = domain.hyperv.get_or_insert_default();
            hyperv.features.insert(name.to_owned(), on);
        }
    }
}

/// Sets something of a timer, which is there from then on.
pub(super) fn timer(domain: &mut Domain, name: &str, set: impl FnOnce(&mut DomainTimer)) {
    let known = domain.timers.iter_mut().find(|timer| timer.name == name);
    match known {
        Some(timer) => set(timer),
        None => {
            let mut timer = DomainTimer {
                name: name.to_owned(),
                ..DomainTimer::default()
            };
            set(&mut timer);
            domain.timers.push(timer);
        }
    }
}
