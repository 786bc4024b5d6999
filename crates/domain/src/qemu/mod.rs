/*!
QEMU's command line as a [`Domain`]: options and devices as `qemu-options.hx` and `-device help` have them, read into
the fields of libvirt's elements that lead to them (`src/qemu/qemu_command.c` of libvirt).

Words that are not known are passed over: a command line has hundreds that are not about time.
*/

mod cpu;
mod devices;
mod properties;
mod words;

use cpuset::CpuSet;

use crate::data::{
    DefinitionForm, Domain, GuestDefinition, HugePages, NumaCell, NumaMemory, Topology,
};
use crate::error::{DomainNote, NoteKind};
use crate::os;
use crate::read::MAX_VCPUS;

use devices::DeviceReader;
use properties::Properties;
use words::QemuCommand;

/// Returns a definition for each command line of QEMU in a file; none where there is none.
pub(crate) fn definitions(bytes: &[u8]) -> Vec<GuestDefinition> {
    let commands = words::commands(bytes);
    commands.iter().map(definition).collect()
}

/// Returns the machine type that a command line of QEMU names: the program, then its arguments.
pub fn machine_of_args(args: &[String]) -> Option<String> {
    let options = options(args);
    let of_type = |(name, value): &(&str, String)| match *name {
        "machine" | "M" => Properties::read(value, "type")
            .get("type")
            .map(str::to_owned),
        _ => None,
    };
    options.iter().rev().find_map(of_type)
}

fn definition(command: &QemuCommand) -> GuestDefinition {
    let options = options(&command.words);
    let mut notes = Vec::new();
    if let Some((name, _)) = options.last().filter(|(name, _)| *name == "cpu") {
        notes.push(DomainNote {
            kind: NoteKind::Unread,
            line: command.line,
            change: None,
            what: format!(
                "the command line ends with -{name}: if it is cut off, give what 'ps -ww' prints"
            ),
        });
    }
    let mut domain = domain(&command.words, &options);
    let cpus = command
        .cpus
        .as_deref()
        .and_then(|list| list.parse::<CpuSet>().ok());
    domain.vcpu_cpuset = cpus.filter(|cpus| !cpus.is_empty());
    GuestDefinition {
        domain,
        text: String::new(),
        notes,
    }
}

/// Returns options and their values: what stands behind one up to the next, since a value printed by `ps` may have
/// blanks.
fn options(words: &[String]) -> Vec<(&str, String)> {
    let mut out: Vec<(&str, String)> = Vec::new();
    for word in words.iter().skip(1) {
        let name = word
            .strip_prefix('-')
            .map(|name| name.strip_prefix('-').unwrap_or(name));
        match (name, out.last_mut()) {
            (Some(name), _) if !name.is_empty() => out.push((name, String::new())),
            (_, Some((_, value))) => {
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(word);
            }
            _ => {}
        }
    }
    out
}

fn domain(words: &[String], options: &[(&str, String)]) -> Domain {
    let program = words
        .first()
        .map_or("", |word| word.rsplit('/').next().unwrap_or_default());
    let mut domain = Domain {
        form: DefinitionForm::Qemu,
        kind: "qemu".to_owned(),
        emulator: words.first().cloned(),
        arch: program.strip_prefix("qemu-system-").map(|arch| match arch {
            "i386" => "i686".to_owned(),
            arch => arch.to_owned(),
        }),
        // What QEMU has without -smp.
        vcpus: Some(1),
        ..Domain::default()
    };
    if matches!(program, "kvm" | "qemu-kvm") {
        domain.kind = "kvm".to_owned();
    }
    // Devices name what options before and behind them define, and the bus of a disk is the machine's.
    let mut reader = DeviceReader::default();
    for (name, value) in options {
        option(&mut domain, name, value);
        reader.backend(name, value);
    }
    reader.machine(domain.machine.as_deref());
    for (name, value) in options {
        reader.device(&mut domain, name, value);
    }
    reader.finish(&mut domain);
    os::recognize(&mut domain);
    domain
}

fn option(domain: &mut Domain, name: &str, value: &str) {
    match name {
        "name" => {
            let list = Properties::read(value, "guest");
            domain.name = list.get("guest").unwrap_or_default().to_owned();
        }
        "uuid" => domain.uuid = Some(value.to_owned()),
        "enable-kvm" => domain.kind = "kvm".to_owned(),
        "accel" if value.starts_with("kvm") => domain.kind = "kvm".to_owned(),
        "machine" | "M" => machine(domain, &Properties::read(value, "type")),
        "cpu" => cpu::cpu(domain, value),
        "smp" => smp(domain, &Properties::read(value, "cpus")),
        "m" => domain.memory_bytes = size(Properties::read(value, "size").get("size")),
        "mem-path" if is_huge(value) => domain.memory_backing.hugepages = Some(Vec::new()),
        "mem-prealloc" => domain.memory_backing.allocation = Some("immediate".to_owned()),
        "no-hpet" => cpu::timer(domain, "hpet", |one| one.present = Some(false)),
        "rtc" => {
            let list = Properties::read(value, "base");
            let base = list.get("base").map(str::to_owned);
            domain.clock_offset = base.or(domain.clock_offset.take());
            if list.get("driftfix") == Some("slew") {
                cpu::timer(domain, "rtc", |one| {
                    one.tickpolicy = Some("catchup".to_owned())
                });
            }
        }
        "global" => {
            let policy = value
                .strip_prefix("kvm-pit.lost_tick_policy=")
                .or_else(|| value.strip_prefix("driver=kvm-pit,property=lost_tick_policy,value="));
            if let Some(policy) = policy {
                cpu::timer(domain, "pit", |one| {
                    one.tickpolicy = Some(policy.to_owned())
                });
            }
        }
        "numa" => {
            let list = Properties::read(value, "type");
            if list.get("type") == Some("node") {
                domain.cells.push(NumaCell {
                    id: list.number("nodeid"),
                    cpus: list.get("cpus").and_then(|cpus| cpus.parse().ok()),
                    memory_bytes: None,
                });
            }
        }
        "object" => object(domain, &Properties::read(value, "qom-type")),
        _ => {}
    }
}

fn machine(domain: &mut Domain, list: &Properties) {
    if let Some(machine) = list.get("type") {
        domain.machine = Some(machine.to_owned());
    }
    if list
        .get("accel")
        .is_some_and(|accel| accel.starts_with("kvm"))
    {
        domain.kind = "kvm".to_owned();
    }
    if let Some(hpet) = list.on("hpet") {
        cpu::timer(domain, "hpet", |one| one.present = Some(hpet));
    }
}

/// Memory back ends (`qapi/qom.json`).
fn object(domain: &mut Domain, list: &Properties) {
    let kind = list.get("qom-type").unwrap_or_default();
    if !kind.starts_with("memory-backend-") {
        return;
    }
    let huge = list.get("mem-path").is_some_and(is_huge) || list.on("hugetlb") == Some(true);
    if huge {
        let sizes = domain.memory_backing.hugepages.get_or_insert_default();
        let size = list.get("hugetlbsize").map(|text| HugePages {
            size_bytes: size(Some(text)),
            nodeset: None,
        });
        sizes.extend(size);
    }
    if list.on("prealloc") == Some(true) {
        domain.memory_backing.allocation = Some("immediate".to_owned());
    }
    if let Some(nodes) = list
        .get("host-nodes")
        .and_then(|nodes| nodes.parse::<CpuSet>().ok())
    {
        domain.numa_memory.get_or_insert(NumaMemory {
            mode: list.text("policy"),
            nodeset: Some(nodes),
            ..NumaMemory::default()
        });
    }
}

/// Whether a path is one of hugetlbfs, as hosts mount it (`/dev/hugepages`, libvirt's `/dev/hugepages/libvirt/qemu`).
fn is_huge(path: &str) -> bool {
    path.contains("huge")
}

/// Returns a size: MiB where no unit is given (`-m`).
fn size(text: Option<&str>) -> Option<u64> {
    let text = text?.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let scale = match unit {
        "" => 1 << 20,
        unit => crate::read::scale(unit.strip_suffix(['B', 'b']).unwrap_or(unit))?,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

fn smp(domain: &mut Domain, list: &Properties) {
    let sound = |count: &u32| (1..=MAX_VCPUS).contains(count);
    let part = |name: &str| list.number::<u32>(name);
    let topology = Topology {
        sockets: part("sockets"),
        dies: part("dies"),
        clusters: part("clusters"),
        cores: part("cores"),
        threads: part("threads"),
    };
    let parts = [
        topology.sockets,
        topology.dies,
        topology.clusters,
        topology.cores,
        topology.threads,
    ];
    let all = parts
        .iter()
        .flatten()
        .try_fold(1_u32, |all, part| all.checked_mul(*part));
    let given = parts.iter().any(Option::is_some);
    let cpus = part("cpus").or(all.filter(|_| given)).filter(sound);
    domain.vcpus = part("maxcpus").filter(sound).or(cpus).or(Some(1));
    domain.current_vcpus = cpus.filter(|cpus| Some(*cpus) != domain.vcpus);
    domain.topology = given.then_some(topology);
}
