//! Labels of `lscpu` in other languages, as those that it has without a translation.
//!
//! After util-linux's `po/de.po`, `po/fr.po` and `po/zh_CN.po` of 2.34 and 2.38. What stands behind a label is the
//! kernel's and is the same in all of them.

use std::borrow::Cow;

/// What stands behind a label: also the full-width colon, and the presentation form that some Chinese labels have.
pub(crate) const COLONS: [char; 3] = [':', '\u{ff1a}', '\u{fe30}'];

/// Labels, each with the English one.
const LABELS: [(&str, &str); 67] = [
    ("Architektur", "Architecture"),
    ("CPU Operationsmodus", "CPU op-mode(s)"),
    ("Byte-Reihenfolge", "Byte Order"),
    ("Adressgrößen", "Address sizes"),
    ("Liste der Online-CPU(s)", "On-line CPU(s) list"),
    ("Liste der Offline-CPU(s)", "Off-line CPU(s) list"),
    ("Thread(s) pro Kern", "Thread(s) per core"),
    ("Kern(e) pro Sockel", "Core(s) per socket"),
    ("Kern(e) pro Socket", "Core(s) per socket"),
    ("Kern(e) pro Cluster", "Core(s) per cluster"),
    ("Sockel", "Socket(s)"),
    ("Cluster", "Cluster(s)"),
    ("NUMA-Knoten", "NUMA node(s)"),
    ("Anbieterkennung", "Vendor ID"),
    ("BIOS-Anbieterkennung", "BIOS Vendor ID"),
    ("Prozessorfamilie", "CPU family"),
    ("Modell", "Model"),
    ("Modellname", "Model name"),
    ("BIOS-Modellname", "BIOS Model name"),
    ("Übertaktung", "Frequency boost"),
    ("Skalierung der CPU(s)", "CPU(s) scaling MHz"),
    ("Maximale Taktfrequenz der CPU", "CPU max MHz"),
    ("Minimale Taktfrequenz der CPU", "CPU min MHz"),
    ("Virtualisierung", "Virtualization"),
    ("Hypervisor-Anbieter", "Hypervisor vendor"),
    ("Virtualisierungstyp", "Virtualization type"),
    ("Virtualisierungsfunktionen", "Virtualization features"),
    ("Caches (Gesamtsumme)", "Caches (sum of all)"),
    ("Schwachstellen", "Vulnerabilities"),
    ("Markierungen", "Flags"),
    ("Mode(s) opératoire(s) des processeurs", "CPU op-mode(s)"),
    ("Boutisme", "Byte Order"),
    ("Tailles des adresses", "Address sizes"),
    ("Processeur(s)", "CPU(s)"),
    ("Liste de processeur(s) en ligne", "On-line CPU(s) list"),
    ("Liste de processeur(s) hors ligne", "Off-line CPU(s) list"),
    ("Thread(s) par cœur", "Thread(s) per core"),
    ("Cœur(s) par socket", "Core(s) per socket"),
    ("Cœur(s) par cluster", "Core(s) per cluster"),
    ("Nœud(s) NUMA", "NUMA node(s)"),
    ("Identifiant constructeur", "Vendor ID"),
    ("Famille de processeur", "CPU family"),
    ("Modèle", "Model"),
    ("Nom de modèle", "Model name"),
    ("Révision", "Stepping"),
    ("Accroissement de fréquence", "Frequency boost"),
    ("multiplication des MHz du/des CPU(s)", "CPU(s) scaling MHz"),
    ("Vitesse maximale du processeur en MHz", "CPU max MHz"),
    ("Vitesse minimale du processeur en MHz", "CPU min MHz"),
    ("Vitesse du processeur en MHz", "CPU MHz"),
    ("Virtualisation", "Virtualization"),
    ("Constructeur d'hyperviseur", "Hypervisor vendor"),
    ("Type de virtualisation", "Virtualization type"),
    (
        "Fonctionnalités de virtualisation",
        "Virtualization features",
    ),
    ("Caches (somme de toutes)", "Caches (sum of all)"),
    ("Vulnérabilités", "Vulnerabilities"),
    ("Drapeaux", "Flags"),
    ("架构", "Architecture"),
    ("CPU 运行模式", "CPU op-mode(s)"),
    ("在线 CPU 列表", "On-line CPU(s) list"),
    ("离线 CPU 列表", "Off-line CPU(s) list"),
    ("每个核的线程数", "Thread(s) per core"),
    ("每个座的核数", "Core(s) per socket"),
    ("NUMA 节点", "NUMA node(s)"),
    ("型号名称", "Model name"),
    ("超管理器厂商", "Hypervisor vendor"),
    ("标记", "Flags"),
];

/// Chinese labels of which nothing is made: the byte order, CPUs, sockets, vendor, family, model, stepping,
/// frequencies, virtualization.
const CHINESE_OTHERS: [&str; 11] = [
    "字节序",
    "CPU",
    "座",
    "厂商 ID",
    "CPU 系列",
    "型号",
    "步进",
    "CPU 最大 MHz",
    "CPU 最小 MHz",
    "虚拟化",
    "虚拟化类型",
];

/// Returns the English label for a label; the label itself if it is English, or nothing of lscpu's.
pub(crate) fn english(label: &str) -> Cow<'_, str> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.to_owned())
    };
    let node = [
        ("NUMA-Knoten", " CPU(s)"),
        ("Nœud NUMA ", " de processeur(s)"),
        ("NUMA 节点", " CPU"),
    ];
    let node = node.iter().find_map(|(before, behind)| {
        number(label.strip_prefix(before)?.strip_suffix(behind)?.trim())
    });
    if let Some(node) = node {
        return Cow::Owned(format!("NUMA node{node} CPU(s)"));
    }
    let vulnerability = ["Schwachstelle ", "Vulnérabilité "];
    if let Some(name) = vulnerability
        .iter()
        .find_map(|word| label.strip_prefix(word))
    {
        return Cow::Owned(format!("Vulnerability {name}"));
    }
    let cache = (label.strip_suffix(" Cache"))
        .or(label.strip_suffix(" 缓存"))
        .or(label.strip_prefix("Cache "));
    if let Some(level) = cache.filter(|level| level.starts_with('L') && level.len() < 4) {
        return Cow::Owned(format!("{level} cache"));
    }
    if CHINESE_OTHERS.contains(&label) {
        return Cow::Borrowed("CPU(s)");
    }
    let known = LABELS.iter().find(|(translated, _)| *translated == label);
    Cow::Borrowed(known.map_or(label, |(_, english)| english))
}
