//! Where the threads of a guest may run, as `virsh` lists it: `vcpuinfo`, `vcpupin`, `emulatorpin` and `iothreadinfo`
//! (`tools/virsh-domain.c` of libvirt: `cmdVcpuinfo`, `cmdVcpuPin`, `cmdEmulatorPin`, `cmdIOThreadInfo`; lists have a
//! colon behind their number before 4.8, and none since `vsh-table.c`).

use cpuset::CpuSet;

use crate::data::{DefinitionForm, Domain, GuestDefinition};
use crate::read::MAX_VCPUS;

/// Subcommands whose output is read.
const COMMANDS: [&str; 4] = ["vcpuinfo", "vcpupin", "emulatorpin", "iothreadinfo"];

/// What the rows of a list are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListOf {
    Vcpus,
    Emulator,
    Iothreads,
}

/// A text under way.
#[derive(Debug, Default)]
struct VirshText {
    domain: Domain,
    /// The vCPU of `vcpuinfo` whose lines follow.
    vcpu: Option<u32>,
    list: Option<ListOf>,
    /// Whether something was said of where a thread may run.
    known: bool,
    /// Whether a command, a heading or a vCPU was read, and not yet what belongs to it.
    waits: bool,
}

/// Returns how many lines, from the first on, are what `virsh` prints of where threads may run: 0 if the first is not.
pub fn virsh_lines(lines: impl IntoIterator<Item: AsRef<str>>) -> usize {
    let mut text = VirshText::default();
    let mut used = 0;
    for (line, count) in lines.into_iter().zip(1..) {
        let line = line.as_ref();
        if line.trim().is_empty() {
            continue;
        }
        if !text.line(line) {
            break;
        }
        used = count;
    }
    if text.known { used } else { 0 }
}

/// Reads a text that is nothing else.
pub(crate) fn definition(text: &str) -> Option<GuestDefinition> {
    let mut reader = VirshText::default();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    if !lines.all(|line| reader.line(line)) || !reader.known {
        return None;
    }
    let mut domain = reader.domain;
    domain.form = DefinitionForm::Virsh;
    // Of one vCPU alone nobody knows how many there are.
    let ids = domain.vcpu_pins.keys().copied();
    let count = u32::try_from(domain.vcpu_pins.len()).ok();
    domain.vcpus = count.filter(|count| *count > 0 && ids.eq(0..*count));
    Some(GuestDefinition {
        domain,
        text: String::new(),
        notes: Vec::new(),
    })
}

impl VirshText {
    /// Takes a line; returns whether it is one of such a text.
    fn line(&mut self, line: &str) -> bool {
        let text = line.trim();
        if let Some(name) = command(text) {
            // Another guest's is another text.
            let other = self.known && self.domain.name != name;
            if other || std::mem::replace(&mut self.waits, true) {
                return false;
            }
            name.clone_into(&mut self.domain.name);
            (self.vcpu, self.list) = (None, None);
            return true;
        }
        if let Some(list) = heading(text) {
            if self.waits && self.list.is_some() {
                return false;
            }
            (self.vcpu, self.list, self.waits) = (None, Some(list), true);
            return true;
        }
        if let Some(list) = self.list {
            return text.bytes().all(|byte| byte == b'-') || self.row(list, text);
        }
        self.info(text)
    }

    /// Takes a line of `vcpuinfo`.
    fn info(&mut self, text: &str) -> bool {
        let Some((label, value)) = text.split_once(':') else {
            // Of a guest that does not run.
            return self.vcpu.is_some() && text.starts_with("CPU time ") && text.ends_with("N/A");
        };
        let value = value.trim();
        match (label.trim(), self.vcpu) {
            ("VCPU", before) => {
                if before.is_some() && std::mem::replace(&mut self.waits, true) {
                    return false;
                }
                self.vcpu = number(value).filter(|vcpu| *vcpu < MAX_VCPUS);
                // One that comes again is another guest's.
                self.vcpu
                    .is_some_and(|vcpu| !self.domain.vcpu_pins.contains_key(&vcpu))
            }
            ("CPU", Some(_)) => number(value).is_some() || value == "N/A",
            ("State" | "CPU time", Some(_)) => true,
            ("CPU Affinity", Some(vcpu)) => {
                let set = marks(value).or_else(|| {
                    let list = value.split(" (out of").next().unwrap_or_default();
                    cpus(list)
                });
                let known = set.map(|set| self.domain.vcpu_pins.insert(vcpu, set));
                self.known |= known.is_some();
                self.waits = false;
                known.is_some()
            }
            _ => false,
        }
    }

    /// Takes a row of a list: ` 0      0-3`, `   0: 0-3`, ` *   0-3`.
    fn row(&mut self, list: ListOf, text: &str) -> bool {
        let Some((who, set)) = text.split_once(|c: char| c.is_whitespace() || c == ':') else {
            return false;
        };
        let Some(set) = cpus(set.trim_start_matches(':').trim()) else {
            return false;
        };
        let domain = &mut self.domain;
        let is_new = match (list, number(who)) {
            (ListOf::Vcpus, Some(vcpu)) if vcpu < MAX_VCPUS => {
                domain.vcpu_pins.insert(vcpu, set).is_none()
            }
            (ListOf::Iothreads, Some(thread)) if thread < MAX_VCPUS => {
                domain.iothread_pins.insert(thread, set).is_none()
            }
            (ListOf::Emulator, None) if who == "*" => domain.emulator_pin.replace(set).is_none(),
            _ => false,
        };
        self.known |= is_new;
        self.waits &= !is_new;
        is_new
    }
}

/// Returns the guest that a command is about; empty where it is not named.
fn command(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("virsh ")?;
    let prompt = before.is_empty() || before.ends_with([' ', '$', '#', '/', '~']);
    let mut words = rest.split_whitespace();
    let is_command = words.any(|word| COMMANDS.contains(&word));
    let name = words.find(|word| !word.starts_with('-'));
    (prompt && is_command).then(|| name.unwrap_or_default())
}

/// Reads the heading of a list.
fn heading(text: &str) -> Option<ListOf> {
    let what = text.strip_suffix("CPU Affinity")?.trim_end();
    match what.strip_suffix(':').unwrap_or(what) {
        "VCPU" => Some(ListOf::Vcpus),
        "emulator" => Some(ListOf::Emulator),
        "IOThread ID" => Some(ListOf::Iothreads),
        _ => None,
    }
}

/// Reads `yy--`: a mark for each CPU of the host.
fn marks(text: &str) -> Option<CpuSet> {
    let known = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'y' | b'-'));
    let marked = (0..).zip(text.bytes()).filter(|(_, byte)| *byte == b'y');
    let set: CpuSet = marked
        .map(|(cpu, _)| cpu)
        .take_while(|cpu| *cpu < cpuset::MAX_CPU)
        .collect();
    (known && !set.is_empty()).then_some(set)
}

/// Reads `0-3,8`.
fn cpus(text: &str) -> Option<CpuSet> {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b',');
    let is_list = text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(plain);
    let set: CpuSet = is_list.then(|| text.parse().ok())??;
    (!set.is_empty()).then_some(set)
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
