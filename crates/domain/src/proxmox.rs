//! A VM's `.conf` of Proxmox VE as a [`Domain`]: what `PVE/QemuServer.pm` and the modules beside it make of each line
//! is put into the fields of libvirt's elements that would do the same.

use std::collections::BTreeMap;

use cpuset::CpuSet;

use crate::data::{
    Controller, DISK_LIMITS, DefinitionForm, Disk, Domain, DomainTimer, GuestDefinition, HugePages,
    Hyperv, InputDevice, Interface, NumaCell, Topology,
};
use crate::error::{DomainNote, NoteKind, quoted};
use crate::machine::machine_release;
use crate::os;
use crate::read::MAX_VCPUS;

/// Keys by which such a file is known: two of these have to be there.
const KNOWN: [&str; 14] = [
    "boot", "bootdisk", "cores", "cpu", "machine", "memory", "net0", "numa", "ostype", "scsihw",
    "smbios1", "sockets", "vmgenid", "meta",
];
/// Notes beyond this many are left out.
const MAX_NOTES: usize = 32;
/// Microseconds of a period of the CPU's bandwidth, as the kernel has it (Documentation/scheduler/sched-bwc.rst).
const PERIOD_US: f64 = 100_000.0;

/// The lines of the VM as it is: those of snapshots and of changes that wait for a restart are other sections.
struct ConfigLines<'t> {
    lines: BTreeMap<&'t str, (usize, &'t str)>,
}

impl<'t> ConfigLines<'t> {
    /// Reads lines `key: value`; none if the text has others, as far as it is looked at.
    fn read(text: &'t str) -> Option<ConfigLines<'t>> {
        let mut lines = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('[') {
                break;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once(':')?;
            let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if key.is_empty() || !key.chars().all(is_key) {
                return None;
            }
            lines.entry(key).or_insert((at + 1, value.trim()));
        }
        let known = KNOWN.iter().filter(|key| lines.contains_key(**key)).count();
        (known >= 2).then_some(ConfigLines { lines })
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.lines.get(key).map(|(_, value)| *value)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }
}

/// A value that is a list: `volume,iothread=1`, the first part without a name.
struct ConfigList<'t>(Vec<(&'t str, &'t str)>);

impl<'t> ConfigList<'t> {
    fn read(text: &'t str) -> ConfigList<'t> {
        let part = |part: &'t str| part.split_once('=').unwrap_or(("", part));
        ConfigList(text.split(',').map(part).collect())
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.0
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }

    fn on(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            "1" | "on" | "yes" | "true" => Some(true),
            "0" | "off" | "no" | "false" => Some(false),
            _ => None,
        }
    }
}

/// Reads a `.conf`; `None` where a text is none.
pub(crate) fn definition(text: &str) -> Option<GuestDefinition> {
    let lines = ConfigLines::read(text)?;
    let mut notes = Vec::new();
    let mut domain = Domain {
        form: DefinitionForm::Proxmox,
        name: lines.get("name").unwrap_or_default().to_owned(),
        // Without "kvm: 0" a VM runs on KVM.
        kind: if lines.get("kvm") == Some("0") {
            "qemu"
        } else {
            "kvm"
        }
        .to_owned(),
        arch: Some(lines.get("arch").unwrap_or("x86_64").to_owned()),
        machine: lines
            .get("machine")
            .map(|value| value.split(',').next().unwrap_or(value).to_owned()),
        ..Domain::default()
    };
    cpus(&mut domain, &lines, &mut notes);
    memory(&mut domain, &lines);
    let windows = windows_version(lines.get("ostype").unwrap_or_default());
    system(&mut domain, &lines, windows);
    devices(&mut domain, &lines);
    if let Some(args) = lines.get("args") {
        notes.push(note(
            lines.lines.get("args").map_or(1, |(line, _)| *line),
            format!(
                "args: '{}' goes to QEMU unread; what it changes is not seen here",
                quoted(args)
            ),
        ));
    }
    os::recognize(&mut domain);
    notes.truncate(MAX_NOTES);
    Some(GuestDefinition {
        domain,
        text: text.to_owned(),
        notes,
    })
}

fn note(line: usize, what: String) -> DomainNote {
    DomainNote {
        kind: NoteKind::Unread,
        line,
        change: None,
        what,
    }
}

fn cpus(domain: &mut Domain, lines: &ConfigLines<'_>, notes: &mut Vec<DomainNote>) {
    let sockets: u32 = lines.number("sockets").unwrap_or(1);
    let cores: u32 = lines.number("cores").unwrap_or(1);
    let most = sockets
        .checked_mul(cores)
        .filter(|count| (1..=MAX_VCPUS).contains(count));
    domain.vcpus = most;
    domain.current_vcpus = lines.number("vcpus").filter(|count| Some(*count) != most);
    domain.topology = Some(Topology {
        sockets: Some(sockets),
        cores: Some(cores),
        ..Topology::default()
    });
    // 0 is no limit; 1.5 are one and a half CPUs for all of the VM's threads.
    if let Some(limit) = lines
        .number::<f64>("cpulimit")
        .filter(|limit| (0.001..=4096.0).contains(limit))
    {
        domain
            .cputune
            .insert("global_quota".to_owned(), (limit * PERIOD_US) as i64);
        domain
            .cputune
            .insert("global_period".to_owned(), PERIOD_US as i64);
    }
    // taskset for all threads of the VM.
    if let Some(list) = lines.get("affinity") {
        domain.vcpu_cpuset = list.parse::<CpuSet>().ok().filter(|cpus| !cpus.is_empty());
        if domain.vcpu_cpuset.is_none() {
            let line = lines.lines.get("affinity").map_or(1, |(line, _)| *line);
            let what = format!(
                "affinity: is '{}'; expected a list such as 0-3,8: left out",
                quoted(list)
            );
            notes.push(note(line, what));
        }
    }
    // Which model it is without the line depends on the version of Proxmox, and is none of the host's.
    let list = lines.get("cpu").map(ConfigList::read);
    let model = list
        .as_ref()
        .and_then(|list| list.get("").or_else(|| list.get("cputype")));
    domain.cpu_mode = Some(
        match model {
            Some("host") => "host-passthrough",
            Some("max") => "maximum",
            _ => "custom",
        }
        .to_owned(),
    );
    let own = domain.cpu_mode.as_deref() == Some("custom");
    domain.cpu_model = model.filter(|_| own).map(str::to_owned);
}

fn memory(domain: &mut Domain, lines: &ConfigLines<'_>) {
    // memory: 4096, or current=4096; MiB.
    let list = lines.get("memory").map(ConfigList::read);
    let size = list
        .as_ref()
        .and_then(|list| list.get("").or_else(|| list.get("current")));
    let mib: Option<u64> = size.and_then(|size| size.parse().ok());
    domain.memory_bytes = mib.and_then(|mib| mib.checked_mul(1 << 20));
    match lines.get("hugepages") {
        Some("any") => domain.memory_backing.hugepages = Some(Vec::new()),
        Some(size) => {
            let mib = size.parse::<u64>().ok();
            domain.memory_backing.hugepages = Some(vec![HugePages {
                size_bytes: mib.and_then(|mib| mib.checked_mul(1 << 20)),
                nodeset: None,
            }]);
        }
        None => {}
    }
    // numa: 1 makes a node of each socket; numa0: and so on say it themselves.
    let own = (0..8)
        .filter(|node| lines.get(&format!("numa{node}")).is_some())
        .count();
    let sockets = domain
        .topology
        .as_ref()
        .and_then(|topology| topology.sockets)
        .unwrap_or(1);
    let nodes = match (own, lines.get("numa")) {
        (0, Some("1")) => sockets as usize,
        (own, _) => own,
    };
    domain.cells = vec![NumaCell::default(); nodes.min(64)];
}

/// Returns Windows' version by `ostype` (`windows_version` in `PVE/QemuServer/Helpers.pm`); 0 for others.
fn windows_version(ostype: &str) -> u32 {
    match ostype {
        "wxp" | "w2k3" | "w2k" => 5,
        "wvista" | "w2k8" => 6,
        other => other
            .strip_prefix("win")
            .and_then(|number| number.parse().ok())
            .unwrap_or(0),
    }
}

/// Returns a machine's version, as in `pc-q35-7.1`; the newest where none is pinned.
fn machine_version(domain: &Domain) -> (u32, u32) {
    let named = domain.machine.as_deref();
    named.and_then(machine_release).unwrap_or((u32::MAX, 0))
}

/// What `ostype` does: Hyper-V's enlightenments (`get_hyperv_enlightenments` in `PVE/QemuServer/CPUConfig.pm`), the
/// clock and the HPET (`PVE/QemuServer/Cfg2Cmd/Timer.pm`).
fn system(domain: &mut Domain, lines: &ConfigLines<'_>, windows: u32) {
    let version = machine_version(domain);
    let mut timer = |name: &str, present: bool| {
        domain.timers.push(DomainTimer {
            name: name.to_owned(),
            present: Some(present),
            ..DomainTimer::default()
        });
    };
    let ostype = lines.get("ostype").unwrap_or_default();
    if windows >= 6 || (ostype == "l26" && version >= (10, 1)) {
        timer("hpet", false);
    }
    let mut features = BTreeMap::new();
    let firmware = lines.get("bios") == Some("ovmf");
    if windows >= 6 && !(firmware && windows < 8) && domain.kind == "kvm" {
        let mut on = |names: &[&str]| {
            features.extend(names.iter().map(|name| ((*name).to_owned(), true)));
        };
        on(&["spinlocks"]);
        if version >= (2, 3) {
            on(&["vapic"]);
            timer("hypervclock", true);
        }
        if version >= (2, 6) {
            on(&["reset", "vpindex", "runtime"]);
        }
        if windows >= 7 {
            on(&["relaxed"]);
            if version >= (2, 12) {
                on(&["synic", "stimer"]);
            }
            if version >= (3, 1) {
                on(&["ipi"]);
            }
        }
    }
    let cpu = lines.get("cpu").map(ConfigList::read);
    let flags = cpu
        .as_ref()
        .and_then(|list| list.get("flags"))
        .unwrap_or_default();
    for flag in flags.split(';') {
        let (name, on) = match (flag.strip_prefix("+hv-"), flag.strip_prefix("-hv-")) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => continue,
        };
        features.insert(name.to_owned(), on);
    }
    if !features.is_empty() {
        domain.hyperv = Some(Hyperv {
            mode: None,
            features,
        });
    }
    let local = match lines.get("localtime") {
        Some(value) => value == "1",
        None => windows >= 5,
    };
    domain.clock_offset = Some(if local { "localtime" } else { "utc" }.to_owned());
    domain.os_id = match ostype {
        _ if windows > 0 => Some("http://microsoft.com/win".to_owned()),
        "l24" | "l26" => Some("http://libosinfo.org/linux/2022".to_owned()),
        _ => None,
    };
}

fn devices(domain: &mut Domain, lines: &ConfigLines<'_>) {
    let hardware = lines.get("scsihw").unwrap_or("lsi");
    let virtio = hardware.starts_with("virtio-scsi");
    // With virtio-scsi-single each disk has a controller, and its iothread.
    let single = hardware == "virtio-scsi-single";
    for (key, (line, value)) in &lines.lines {
        let number = key.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let kind = key.get(..key.len() - number.len()).unwrap_or_default();
        if number.parse::<u32>().is_err() {
            continue;
        }
        match kind {
            "scsi" | "virtio" | "sata" | "ide" => {
                let mut disk = disk(key, kind, *line, &ConfigList::read(value));
                if kind == "scsi" {
                    disk.controller = Some(if single {
                        number.parse().unwrap_or(0)
                    } else {
                        0
                    });
                    // An iothread is the controller's: without -single the setting does nothing.
                    disk.iothread = disk.iothread.filter(|_| single);
                }
                domain.disks.push(disk);
            }
            "net" => domain
                .interfaces
                .push(interface(key, *line, &ConfigList::read(value))),
            _ => {}
        }
    }
    let mut controllers: Vec<Option<u32>> =
        domain.disks.iter().map(|disk| disk.controller).collect();
    controllers.sort_unstable();
    controllers.dedup();
    for index in controllers.into_iter().flatten() {
        domain.controllers.push(Controller {
            kind: "scsi".to_owned(),
            index: Some(index),
            model: Some(if virtio { "virtio-scsi" } else { hardware }.to_owned()),
            ..Controller::default()
        });
    }
    tablet(domain, lines);
}

/// The tablet, which is there unless it is turned off or the display has no use for it (`config_to_command` in
/// `PVE/QemuServer.pm`); on the PIIX3's UHCI, or on q35 on the ICH9's controllers (`PVE/QemuServer/USB.pm`,
/// `pve-q35-4.0.cfg`).
fn tablet(domain: &mut Domain, lines: &ConfigLines<'_>) {
    let display = lines.get("vga").unwrap_or_default();
    let display = display.strip_prefix("type=").unwrap_or(display);
    let unused = display.starts_with("qxl") || display.starts_with("serial");
    let wanted = lines.get("tablet").map_or(!unused, |value| value == "1");
    if !wanted {
        return;
    }
    domain.inputs.push(InputDevice {
        kind: "tablet".to_owned(),
        bus: Some("usb".to_owned()),
        controller: None,
    });
    let q35 = domain
        .machine
        .as_deref()
        .is_some_and(|machine| machine.contains("q35"));
    let model = match (q35, domain.arch.as_deref()) {
        (_, Some("aarch64")) => "usb-ehci",
        (true, _) => "ich9-usb-ehci1",
        (false, _) => "piix3-usb-uhci",
    };
    domain.controllers.push(Controller {
        kind: "usb".to_owned(),
        model: Some(model.to_owned()),
        ..Controller::default()
    });
}

fn disk(key: &str, bus: &str, line: usize, list: &ConfigList<'_>) -> Disk {
    let source = list
        .get("")
        .or_else(|| list.get("file"))
        .or_else(|| list.get("volume"));
    let cdrom = list.get("media") == Some("cdrom") || matches!(source, Some("none" | "cdrom"));
    let mut limits = BTreeMap::new();
    for (libvirt, _, name) in DISK_LIMITS {
        let number = |key: &str| list.get(key).and_then(|text| text.parse::<f64>().ok());
        // mbps are MiB a second ($add_throttle_desc in PVE/QemuServer/Drive.pm, 1024 * 1024 where it is used).
        let mib = number(&format!("m{name}")).map(|mib| mib * f64::from(1 << 20));
        let value = number(name).or(mib.filter(|_| name.starts_with("bps")));
        if let Some(value) = value.filter(|value| (1.0..1e18).contains(value)) {
            limits.insert(libvirt, value as u64);
        }
    }
    Disk {
        line,
        kind: "volume".to_owned(),
        device: if cdrom { "cdrom" } else { "disk" }.to_owned(),
        target: Some(key.to_owned()),
        bus: Some(bus.to_owned()),
        source: source.map(str::to_owned),
        driver: Some("qemu".to_owned()),
        format: list.get("format").map(str::to_owned),
        // What Proxmox has without one.
        cache: Some(list.get("cache").unwrap_or("none").to_owned()),
        io: list.get("aio").map(str::to_owned),
        iothread: (list.on("iothread") == Some(true)).then_some(1),
        limits,
        ..Disk::default()
    }
}

fn interface(key: &str, line: usize, list: &ConfigList<'_>) -> Interface {
    // virtio=52:54:00:..., or model=virtio,macaddr=...; a card without an address has the model alone.
    const MODELS: [&str; 14] = [
        "e1000",
        "e1000-82540em",
        "e1000-82544gc",
        "e1000-82545em",
        "e1000e",
        "i82551",
        "i82557b",
        "i82559er",
        "ne2k_isa",
        "ne2k_pci",
        "pcnet",
        "rtl8139",
        "virtio",
        "vmxnet3",
    ];
    let named = list.0.iter().find(|(name, _)| MODELS.contains(name));
    let model = named
        .map(|(name, _)| *name)
        .or_else(|| list.get("model"))
        .or_else(|| list.get(""));
    Interface {
        line,
        kind: "bridge".to_owned(),
        source: list.get("bridge").map(str::to_owned),
        mac: named
            .map(|(_, mac)| (*mac).to_owned())
            .or_else(|| list.get("macaddr").map(str::to_owned)),
        model: model.map(str::to_owned),
        queues: list.get("queues").and_then(|queues| queues.parse().ok()),
        target: Some(key.to_owned()),
        ..Interface::default()
    }
}
