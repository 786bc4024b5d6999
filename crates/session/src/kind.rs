//! What an input is, and what to say where something else was wanted.

use perftables::PerfTable;
use source::FileContent;
use tracefmt::Kallsyms;

/// Texts are not looked at beyond this many bytes.
const MAX_TEXT: usize = 16 << 20;
/// Path files are not read beyond this many bytes.
pub(crate) const MAX_PATH_FILE: u64 = 1 << 20;
/// Folded stacks are known by so many bytes.
const FOLDED_HEAD: usize = 64 << 10;

/// What an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputKind {
    /// A recording: its container, or whose text it is.
    Recording(String),
    /// Tables that these tools printed.
    Tables(Vec<&'static str>),
    /// Folded stacks: a line each, frames with semicolons between, and a count.
    Folded,
    /// The definition of a guest (libvirt's domain XML or a Proxmox VM's `.conf`), and its name.
    Definition(String),
    /// A file of latency paths.
    PathFile,
    /// The symbols of a kernel.
    Symbols,
    /// Facts of a host, and of what.
    Facts(String),
    /// What `trapline bench` found.
    BenchResult,
    /// What benchmarks of others printed: the first result.
    Scores(String),
    /// A text in which nothing of the above was found.
    Text,
    /// Nothing at all.
    Empty,
    /// Something else, with an article before it.
    Other(String),
}

/// What an input is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputPurpose {
    /// A recording.
    Recording,
    /// A recording with samples, or folded stacks.
    Stacks,
    /// A recording, or a table of exits.
    Exits,
    /// A recording, or a table of scheduling latencies.
    Latencies,
    /// A recording, or a folder, that lends its event formats.
    Formats,
    /// Facts of the host.
    Facts,
    /// The text of `info mtree`.
    DeviceMap,
    /// A copy of `/proc/kallsyms`.
    Symbols,
    /// The modules of a kernel.
    Modules,
    /// The definition of a guest.
    Definition,
    /// A file of latency paths.
    PathFile,
}

impl InputPurpose {
    /// Returns what was expected, as messages have it.
    pub fn expected(self) -> &'static str {
        match self {
            InputPurpose::Recording => {
                "perf.data, trace.dat, or the text of perf script, trace-cmd report or the kernel's trace file"
            }
            InputPurpose::Stacks => {
                "a recording with samples ('trapline record --for stacks'), or folded stacks (a line for each: \
                 frame;frame;frame COUNT)"
            }
            InputPurpose::Exits => "a recording, or a table that perf kvm stat report printed",
            InputPurpose::Latencies => "a recording, or a table that perf sched latency printed",
            InputPurpose::Formats => {
                "another recording of the same kernel, or a copy of its /sys/kernel/tracing/events"
            }
            InputPurpose::Facts => {
                "'ps -eLo pid,tid,comm,args', QEMU's 'info cpus', 'info mtree' or query-cpus-fast, 'virsh domstats', \
                 'trapline facts --format json' or a kernel log"
            }
            InputPurpose::DeviceMap => "the text that QEMU's monitor prints for 'info mtree'",
            InputPurpose::Symbols => "a copy of /proc/kallsyms that root made (others see zeros)",
            InputPurpose::Modules => "a copy of /proc/modules that root made (others see zeros)",
            InputPurpose::Definition => {
                "a domain's XML, as virsh dumpxml prints it, QEMU's command line (ps -eww -o args) or a Proxmox VM's \
                 .conf"
            }
            InputPurpose::PathFile => "a file in the language of docs/path-language.md",
        }
    }

    /// Returns what an input of another kind does not have.
    fn absence(self) -> &'static str {
        match self {
            InputPurpose::Recording => "which holds no events",
            InputPurpose::Stacks => "which holds no stacks",
            InputPurpose::Exits => "which holds no exits",
            InputPurpose::Latencies => "which holds no scheduling latencies",
            InputPurpose::Formats => "which has no event formats",
            InputPurpose::Facts => "which says nothing about threads, VMs, devices or its host",
            InputPurpose::DeviceMap => "which has no map of devices",
            InputPurpose::Symbols => "which has no symbols",
            InputPurpose::Modules => "which has no modules",
            InputPurpose::Definition => "which defines no domain",
            InputPurpose::PathFile => "which has no paths",
        }
    }
}

impl InputKind {
    /// Returns what it is, with an article, as messages have it.
    pub fn what(&self) -> String {
        match self {
            InputKind::Recording(format) => format!("a recording ({format})"),
            InputKind::Tables(printers) => {
                format!("a table that {} printed", printers.join(" and "))
            }
            InputKind::Folded => "a text of folded stacks".to_owned(),
            InputKind::Definition(name) => {
                format!("the definition of the domain '{name}'")
            }
            InputKind::PathFile => "a file of latency paths".to_owned(),
            InputKind::Symbols => "a kernel's symbols (/proc/kallsyms)".to_owned(),
            InputKind::Facts(what) => format!("a text with facts of a host ({what})"),
            InputKind::BenchResult => "a result of 'trapline bench'".to_owned(),
            InputKind::Scores(first) => format!("what a benchmark printed ({first})"),
            InputKind::Text => "a text in which nothing is known".to_owned(),
            InputKind::Empty => "empty".to_owned(),
            InputKind::Other(what) => what.clone(),
        }
    }

    /// Returns whether some command or option takes it.
    pub fn is_taken(&self) -> bool {
        !matches!(
            self,
            InputKind::Text | InputKind::Empty | InputKind::Other(_)
        )
    }

    /// Says which command takes it; `None` if none does.
    pub fn taker(&self) -> Option<String> {
        Some(match self {
            InputKind::Recording(_) => {
                "give it in the place of REC, as 'trapline report FILE'".to_owned()
            }
            InputKind::Tables(printers) => {
                let commands = table_commands(printers);
                format!("give it to {commands} as it is")
            }
            InputKind::Folded => "give it to 'trapline flame' as it is".to_owned(),
            InputKind::Definition(_) => {
                "give it as 'trapline diagnose --domain FILE', with a recording or without".to_owned()
            }
            InputKind::PathFile => beside("paths --path"),
            InputKind::Symbols => beside("diagnose --kallsyms"),
            InputKind::Facts(_) => beside("COMMAND --facts"),
            InputKind::BenchResult => {
                "give it to 'trapline compare' with others of the same benchmark, as 'trapline compare FILE FILE'"
                    .to_owned()
            }
            InputKind::Scores(_) => {
                "give it beside what was recorded meanwhile, as 'trapline compare A B --a-score FILE --b-score FILE'"
                    .to_owned()
            }
            InputKind::Text | InputKind::Empty | InputKind::Other(_) => return None,
        })
    }

    /// Says what it is, what it does not have, which command takes it, and what was wanted in its place.
    pub(crate) fn in_place_of(&self, wanted: InputPurpose) -> String {
        let (what, expected) = (self.what(), wanted.expected());
        match self.taker() {
            Some(taker) => format!(
                "is {what}, {}; {taker}; expected {expected}",
                wanted.absence()
            ),
            None => format!("is {what}, {}; expected {expected}", wanted.absence()),
        }
    }
}

fn beside(option: &str) -> String {
    format!("give it beside a recording, as 'trapline {option} FILE REC'")
}

/// Returns the commands that read tables of these tools.
fn table_commands(printers: &[&str]) -> String {
    let has = |name: &str| printers.contains(&name);
    let exits = has("perf kvm stat report") || has("kvm_service_time.stp");
    let sched = printers.iter().any(|name| name.starts_with("perf sched"));
    let mut commands = vec!["'trapline report'"];
    if exits {
        commands.push("'exits'");
    }
    if sched {
        commands.push("'sched'");
    }
    if exits || sched {
        commands.push("'diagnose'");
    }
    format!("{} or 'compare'", commands.join(", "))
}

/// Says what an input is: of the kinds that trapline knows, the first that its content is.
///
/// ```
/// use session::{InputKind, sniff};
/// assert_eq!(sniff(b"<domain><name>web</name></domain>"), InputKind::Definition("web".to_owned()));
/// assert_eq!(sniff(b"* CPU #0: thread_id=1700\n"), InputKind::Facts("1 VM".to_owned()));
/// ```
pub fn sniff(bytes: &[u8]) -> InputKind {
    let bytes = bytes.get(..MAX_TEXT).unwrap_or(bytes);
    if bytes.is_empty() {
        return InputKind::Empty;
    }
    let content = source::sniff(bytes);
    if let FileContent::Recording(format) = content {
        return InputKind::Recording(format);
    }
    if results::looks_like(bytes) {
        return InputKind::BenchResult;
    }
    if let Some(printers) = printers(bytes) {
        return InputKind::Tables(printers);
    }
    if is_folded(bytes) {
        return InputKind::Folded;
    }
    let head = bytes.get(..4096).unwrap_or(bytes);
    if let FileContent::Other(what) = &content
        && head.contains(&0)
    {
        return InputKind::Other(what.clone());
    }
    // Command lines in the text of ps are facts first.
    if let Ok(found) = domain::definitions(bytes)
        && let [one] = found.as_slice()
        && one.domain.form != domain::DefinitionForm::Qemu
    {
        return InputKind::Definition(one.domain.name.clone());
    }
    if is_path_file(bytes) {
        return InputKind::PathFile;
    }
    if is_kallsyms(bytes) {
        return InputKind::Symbols;
    }
    let (facts, _) = facts::read(bytes);
    match content {
        _ if !facts.is_empty() => InputKind::Facts(facts.summary()),
        FileContent::Other(what) => InputKind::Other(what),
        _ => match results::scores(bytes).first() {
            Some(first) => InputKind::Scores(format!(
                "{} {}",
                first.title(),
                first.unit.amount(first.value)
            )),
            None => InputKind::Text,
        },
    }
}

/// Whether bytes are folded stacks. Recordings go first: their texts have lines of any kind.
pub(crate) fn is_folded(bytes: &[u8]) -> bool {
    let head = bytes.get(..FOLDED_HEAD).unwrap_or(bytes);
    stacks::looks_folded(head) && !matches!(source::sniff(bytes), FileContent::Recording(_))
}

/// Returns which tools' tables a text holds.
fn printers(bytes: &[u8]) -> Option<Vec<&'static str>> {
    if !perftables::looks_like(bytes) {
        return None;
    }
    let (tables, _) = perftables::read(bytes);
    let mut names: Vec<&str> = tables.iter().map(PerfTable::printer).collect();
    names.dedup();
    Some(names)
}

/// Returns whether a text is a list of symbols, each line as `ffffffff81000000 T _stext`.
fn is_kallsyms(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').take(16);
    let is_symbol = |line: &[u8]| {
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        let address = words.next().unwrap_or_default();
        let kind = words.next().unwrap_or_default();
        matches!(address.len(), 8 | 16)
            && address.iter().all(u8::is_ascii_hexdigit)
            && matches!(kind, [letter] if letter.is_ascii_alphabetic())
    };
    lines.next().is_some_and(is_symbol)
        && lines.filter(|line| !line.is_empty()).all(is_symbol)
        && !Kallsyms::parse(bytes).is_empty()
}
/// Returns whether a text is a file of paths. What is longer than these may be is not looked at: a parser of TOML takes
/// several bytes for each.
fn is_path_file(bytes: &[u8]) -> bool {
    bytes.len() as u64 <= MAX_PATH_FILE
        && std::str::from_utf8(bytes).is_ok_and(|text| paths::lang::parse(text).is_ok())
}
