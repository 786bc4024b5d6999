//! A machine's CPUs, as `lscpu` prints them.
//!
//! Labels are those of util-linux's `sys-utils/lscpu.c`, of 2.23 to 2.40, in the languages of `lscpu_words.rs`.
//! From 2.37 on a terminal gets them in sections, with blanks before them; a pipe gets a label a line. What is of a
//! virtual machine says so (`Hypervisor vendor`), and is no fact of the host that it runs on.

use cpuset::CpuSet;
use forms::InputForm;

use crate::keep::name;
use crate::lscpu_words::{COLONS, english};
use crate::numa::MAX_NODES;
use crate::{Host, HostNode};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "lscpu",
    recognised_by: "its labels in English, German, French or Chinese, as `On-line CPU(s) list:`, `Thread(s) pro \
        Kern:`, `NUMA 节点0 CPU：`",
    yields: "the host's architecture and CPU, which CPUs are online, NUMA nodes, mitigations; nothing of a virtual \
        machine's",
    fixtures: &[
        "tests/texts/lscpu-2.40-terminal.txt",
        "tests/texts/lscpu-2.34.txt",
        "tests/texts/lscpu-arm64-2.39.txt",
        "tests/texts/lscpu-german-2.34.txt",
        "tests/texts/lscpu-german-2.38-terminal.txt",
        "tests/texts/lscpu-french-2.38.txt",
        "tests/texts/lscpu-french-2.34.txt",
        "tests/texts/lscpu-chinese-2.38.txt",
        "tests/texts/lscpu-chinese-2.34.txt",
    ],
};

/// Labels that nothing else prints.
const OWN: [&str; 8] = [
    "CPU op-mode(s)",
    "On-line CPU(s) list",
    "Off-line CPU(s) list",
    "Thread(s) per core",
    "Core(s) per socket",
    "Core(s) per cluster",
    "NUMA node(s)",
    "Address sizes",
];
/// Labels that stand among these, of which nothing is made or which others have too.
const OTHERS: [&str; 33] = [
    "Architecture",
    "Byte Order",
    "CPU(s)",
    "Socket(s)",
    "Cluster(s)",
    "Book(s) per drawer",
    "Vendor ID",
    "BIOS Vendor ID",
    "Machine type",
    "Model",
    "Model name",
    "BIOS Model name",
    "BIOS CPU family",
    "CPU family",
    "Stepping",
    "Frequency boost",
    "CPU(s) scaling MHz",
    "CPU MHz",
    "CPU dynamic MHz",
    "CPU max MHz",
    "CPU min MHz",
    "BogoMIPS",
    "Virtualization",
    "Hypervisor",
    "Hypervisor vendor",
    "Virtualization type",
    "Dispatching mode",
    "Virtualization features",
    "Caches (sum of all)",
    "NUMA",
    "Vulnerabilities",
    "Flags",
    "CPU static MHz",
];
/// Most names of vulnerabilities; Linux has some twenty.
const MAX_VULNERABILITIES: usize = 256;

/// A text of `lscpu`, line by line.
#[derive(Debug, Default)]
pub(crate) struct LscpuText {
    host: Host,
    hypervisor: Option<String>,
    /// Whether a label that nothing else prints was there.
    sure: bool,
    /// The last label; a value that is too long for a terminal goes on below it.
    label: String,
}

impl LscpuText {
    /// Takes a line; returns whether it is one of this text. Only what nothing else prints may be its first.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let first = self.label.is_empty();
        let Some((label, value)) = line.split_once(COLONS) else {
            // Flags go on below.
            return self.label == "Flags" && is_flags(line);
        };
        let (label, value) = (english(label.trim()), value.trim());
        let label = label.as_ref();
        if !self.label(label, value, first) {
            return false;
        }
        label.clone_into(&mut self.label);
        true
    }

    fn label(&mut self, label: &str, value: &str, first: bool) -> bool {
        if let Some(vulnerability) = label.strip_prefix("Vulnerability ") {
            self.sure = true;
            self.mitigation(vulnerability, value);
        } else if let Some(node) = node_of(label) {
            self.sure = true;
            self.node(node, value);
        } else if OWN.contains(&label) {
            self.sure = true;
            if label == "On-line CPU(s) list" {
                self.host.online = cpus(value);
            }
            let threads: Option<u32> = value.parse().ok();
            if label == "Thread(s) per core" && threads > Some(1) {
                self.host.smt = Some("on".to_owned());
            }
        } else if first {
            let of_cpu = label == "Architecture" && is_arch(value);
            if of_cpu {
                self.host.arch = Some(value.to_owned());
            }
            return of_cpu;
        } else if OTHERS.contains(&label) {
            self.other(label, value);
        } else if is_cache(label) {
            return true;
        } else {
            // Below the heading of their section vulnerabilities have no word before them.
            return is_mitigation(value) && self.mitigation(label, value);
        }
        true
    }

    fn other(&mut self, label: &str, value: &str) {
        match label {
            "Architecture" if is_arch(value) => self.host.arch = Some(value.to_owned()),
            "Model name" if value != "-" && self.host.cpu_model.is_none() => {
                self.host.cpu_model = name(value);
            }
            "Hypervisor vendor" => self.hypervisor = name(value),
            _ => {}
        }
    }

    fn node(&mut self, node: u32, list: &str) {
        let cpus = cpus(list).unwrap_or_default();
        let known = self.host.nodes.iter().any(|one| one.node == node);
        if !known && self.host.nodes.len() < MAX_NODES {
            self.host.nodes.push(HostNode {
                node,
                cpus,
                ..HostNode::default()
            });
        }
    }

    /// Takes what is done about a vulnerability, under its name in `/sys/devices/system/cpu/vulnerabilities`.
    fn mitigation(&mut self, vulnerability: &str, value: &str) -> bool {
        let key = vulnerability.trim().to_ascii_lowercase().replace(' ', "_");
        let word = !key.is_empty()
            && key.len() <= 40
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if let Some(value) = name(value)
            && word
            && self.host.mitigations.len() < MAX_VULNERABILITIES
        {
            self.host.mitigations.insert(key, value);
        }
        word
    }

    /// Returns the host, and a note where it is none.
    pub(crate) fn finish(mut self) -> (Option<Host>, Option<String>) {
        if !self.sure {
            return (None, None);
        }
        if let Some(vendor) = self.hypervisor {
            let note = format!(
                "lscpu of a virtual machine (hypervisor vendor {vendor}) says nothing of its host, and is left out"
            );
            return (None, Some(note));
        }
        self.host.nodes.sort_by_key(|node| node.node);
        let host = Some(self.host).filter(|host| *host != Host::default());
        (host, None)
    }
}

/// Returns whether a line is what lscpu begins with in a language that is not read: a word, a colon, and the
/// architecture.
pub(crate) fn is_translated(line: &str) -> bool {
    let Some((label, value)) = line.trim().split_once(COLONS) else {
        return false;
    };
    let label = label.trim();
    let of_cpu = matches!(value.trim(), "x86_64" | "aarch64");
    let words = [
        "archit",
        "arquit",
        "архит",
        "архіт",
        "架构",
        "架構",
        "アーキテクチャ",
        "아키텍처",
        "mimari",
    ];
    let lower = label.to_lowercase();
    of_cpu && english(label) != "Architecture" && words.iter().any(|word| lower.starts_with(word))
}

/// Reads a list of CPUs. Strides are refused: a few letters of them can stand for thousands of ranges.
fn cpus(list: &str) -> Option<CpuSet> {
    let list = Some(list).filter(|list| !list.contains(':'));
    list?.parse().ok()
}

/// `NUMA node0 CPU(s)`
fn node_of(label: &str) -> Option<u32> {
    let number = label.strip_prefix("NUMA node")?.strip_suffix(" CPU(s)")?;
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    number.parse().ok().filter(|_| digits)
}

fn is_arch(value: &str) -> bool {
    [
        "x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64",
    ]
    .contains(&value)
}

/// `L1d cache`, or in its section `L1d`.
fn is_cache(label: &str) -> bool {
    let label = label.strip_suffix(" cache").unwrap_or(label);
    matches!(
        label,
        "L1d" | "L1i" | "L2" | "L3" | "L4" | "L2d" | "L2i" | "L3d"
    )
}

fn is_mitigation(value: &str) -> bool {
    let begins = [
        "Not affected",
        "Mitigation",
        "Vulnerable",
        "KVM: ",
        "Processor vulnerable",
        "Unknown",
    ];
    begins.iter().any(|begin| value.starts_with(begin))
}

/// Names of features alone.
fn is_flags(line: &str) -> bool {
    let flag = |word: &str| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        word.len() <= 32 && word.bytes().all(fits)
    };
    line.starts_with(' ') && line.split_ascii_whitespace().all(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Option<Host>, Option<String>) {
        let mut reader = LscpuText::default();
        for line in text.lines() {
            assert!(reader.line(line), "{line}");
        }
        reader.finish()
    }

    #[test]
    fn vulnerabilities_have_the_names_of_their_files() {
        let (host, _) = of(
            "Vulnerability Itlb multihit:     KVM: Vulnerable\nVulnerability L1tf:  Mitigation; PTE Inversion",
        );
        let host = host.expect("a host");
        assert_eq!(host.mitigations["itlb_multihit"], "KVM: Vulnerable");
        assert_eq!(host.mitigations["l1tf"], "Mitigation; PTE Inversion");
    }

    #[test]
    fn a_virtual_machine_is_no_host() {
        let (host, note) =
            of("Architecture: x86_64\nOn-line CPU(s) list: 0,1\nHypervisor vendor:  KVM");
        assert_eq!(host, None);
        assert!(note.is_some_and(|note| note.contains("hypervisor vendor KVM")));
    }

    #[test]
    fn labels_of_others_are_none() {
        for line in [
            "Model name: a",
            "CPU(s): 4",
            "Architecture: all",
            "Flags: a",
            "Model: 7",
            "Note: Not affected",
        ] {
            assert!(!LscpuText::default().line(line), "{line}");
        }
        // What rpm says of a package.
        assert_eq!(of("Architecture: x86_64"), (None, None));
        for (line, translated) in [
            ("Arquitectura:                        x86_64", true),
            ("Architektur:                         x86_64", false),
            ("Architecture :                       x86_64", false),
            ("架构：                               x86_64", false),
            ("Архитектура:  aarch64", true),
            ("Architecture:                        x86_64", false),
            ("Kernel: x86_64", false),
        ] {
            assert_eq!(is_translated(line), translated, "{line}");
        }
    }
}
