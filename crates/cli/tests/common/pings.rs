//! Recordings of pings between two VMs, with the truth of each ping beside them (corpus/README.md).

use std::collections::BTreeSet;

use super::instances::Instance;
use super::lines::{Line, TEXT_NS, lines, near};
use super::{Case, all_cases, read_text};

/// A ping of `pings-*.tsv`.
#[derive(Debug)]
pub(crate) struct Ping {
    /// What the guest printed, in milliseconds.
    pub ms: f64,
    /// When the request went to the bridge.
    pub request: u64,
    /// When B's interrupt was accepted and how long it waited; none if it coalesced.
    pub interrupt: Option<(u64, u64)>,
    pub state: String,
    pub vector: u64,
    pub reply: u64,
    pub prints: bool,
}

/// A recording of pings between two VMs with the truth beside it.
pub(crate) struct Console {
    pub case: Case,
    pub sick: bool,
    pub pings: Vec<Ping>,
    pub events: Vec<Line>,
    /// The thread of VM B's vCPU that takes the network interrupts.
    pub target: i32,
    pub vector: u64,
}

/// The events that the truth is looked up in.
pub(crate) const CONSOLE_EVENTS: [&str; 10] = [
    "kvm_entry",
    "kvm_exit",
    "kvm_userspace_exit",
    "kvm_fpu",
    "kvm_pio",
    "kvm_inj_virq",
    "kvm_mmio",
    "kvm_vcpu_wakeup",
    "kvm_apic_accept_irq",
    "sched_switch",
];

pub(crate) fn consoles() -> Vec<Console> {
    let cases = all_cases().into_iter();
    let mut found: Vec<Console> = Vec::new();
    for case in cases.filter(|case| case.name.starts_with("x86/console-")) {
        let table = match case.kind.as_str() {
            "trace.dat" => "pings-trace-cmd.tsv",
            _ => "pings-perf.tsv",
        };
        let pings = pings(&read_text(&case.path.with_file_name(table)));
        assert!(pings.len() >= 100, "{}: {} pings", case.name, pings.len());
        let events = lines(&case.path, |name| CONSOLE_EVENTS.contains(&name));
        // Who takes the interrupts at the times that the table gives is nobody's guess.
        let mut targets = BTreeSet::new();
        let mut vectors = BTreeSet::new();
        for ping in &pings {
            let Some((accepted, wait)) = ping.interrupt else {
                continue;
            };
            let vector = format!("IRQ {:#x}", ping.vector);
            let injected = events.iter().filter(|line| {
                line.name == "kvm_inj_virq"
                    && near(line.time, accepted + wait)
                    && line.rest.starts_with(&vector)
            });
            targets.extend(injected.map(|line| line.tid));
            vectors.insert(ping.vector);
        }
        assert_eq!((targets.len(), vectors.len()), (1, 1), "{}", case.name);
        found.push(Console {
            sick: case.name.starts_with("x86/console-sick"),
            pings,
            events,
            target: *targets.first().expect("one"),
            vector: *vectors.first().expect("one"),
            case,
        });
    }
    assert!(found.iter().any(|console| console.sick), "none is sick");
    assert!(found.iter().any(|console| !console.sick), "none is healthy");
    found
}

pub(crate) fn pings(table: &str) -> Vec<Ping> {
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text}"));
    let ns = |value: f64, unit: f64| (value * unit).round() as u64;
    let rows = table.lines().skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let request = ns(number(cells[2]) * 1e6, 1.0) * 1000;
        let ms = |cell: &str| ns(number(cell), 1e6);
        let interrupt = cells[4] != "none(coalesced)";
        Ping {
            ms: number(cells[1]),
            request,
            interrupt: interrupt.then(|| (request + ms(cells[3]), ms(cells[7]))),
            state: cells[4].to_owned(),
            vector: if interrupt {
                number(cells[6]) as u64
            } else {
                0
            },
            reply: request + ms(cells[8]),
            prints: cells[10] == "PRINT",
        }
    })
    .collect()
}

impl Console {
    /// Returns whether an instance is about the network interrupts that the pings wait for.
    pub(crate) fn is_nic(&self, one: &Instance) -> bool {
        one.vcpu == self.target && one.has(&format!("vector {}", self.vector))
    }

    /// Returns when the same vector was accepted that was not raised by the threads that raise it for VM B.
    pub(crate) fn accepted_by_others(&self) -> Vec<u64> {
        let vector = format!(" vec {} ", self.vector);
        let all = self
            .events
            .iter()
            .filter(|line| line.name == "kvm_apic_accept_irq" && line.rest.contains(&vector));
        let times: Vec<u64> = self
            .pings
            .iter()
            .filter_map(|p| Some(p.interrupt?.0))
            .collect();
        let raisers: BTreeSet<i32> = all
            .clone()
            .filter(|line| times.iter().any(|at| near(*at, line.time)))
            .map(|line| line.tid)
            .collect();
        let others = all.filter(|line| !raisers.contains(&line.tid));
        others.map(|line| line.time).collect()
    }

    /// Returns the features that may tell of the vCPU at the moment of a ping's interrupt: what it was doing by the
    /// table, which looks at its last entry, exit and `kvm_userspace_exit` only.
    pub(crate) fn was(&self, ping: &Ping, accepted: u64) -> Vec<&'static str> {
        let before = |line: &&Line| line.tid == self.target && line.time <= accepted;
        match ping.state.as_str() {
            "halted" => vec!["halted"],
            "guest" => vec!["in its guest"],
            // The VMM is done when KVM has loaded the guest's FPU again; the table does not look at that.
            state if state.starts_with("user:") => {
                let last = self.events.iter().filter(before).rfind(|line| {
                    line.name == "kvm_userspace_exit"
                        || line.name == "kvm_fpu" && line.rest.starts_with("load")
                });
                match last.map(|line| line.name.as_str()) {
                    Some("kvm_fpu") => vec!["in KVM"],
                    _ => vec!["in user space"],
                }
            }
            state if state.starts_with("exit:") => vec!["in KVM"],
            // It had neither an entry nor an exit yet. That it slept the scheduler may have told, not in what.
            "?" if !self.events.iter().any(|line| {
                before(&line) && ["kvm_entry", "kvm_exit"].contains(&line.name.as_str())
            }) =>
            {
                vec!["asleep", "unknown"]
            }
            other => panic!("{}: a state {other}", self.case.name),
        }
    }

    /// Returns whether a vCPU had a CPU and something to do on it when an interrupt was accepted, by the last switch to or
    /// from it, and unless its last exit was for a halt that nothing ended yet.
    pub(crate) fn is_running(&self, one: &Instance) -> bool {
        let vector = one.feature("vector ").unwrap_or_default();
        let vector = format!(" vec {vector} ");
        let accepted = one.at("accepted").unwrap_or(0);
        let begin = self
            .events
            .partition_point(|line| line.time + TEXT_NS < accepted);
        let at = self.events[begin..].iter().position(|line| {
            line.name == "kvm_apic_accept_irq"
                && near(line.time, accepted)
                && line.rest.contains(&vector)
        });
        let mut before = self.events[..at.map_or(0, |at| begin + at)].iter().rev();
        let switch = before.clone().find(|line| {
            line.name == "sched_switch" && (line.tid == one.vcpu || line.task() == Some(one.vcpu))
        });
        let last = before.find(|line| {
            line.tid == one.vcpu
                && ["kvm_entry", "kvm_exit", "kvm_vcpu_wakeup"].contains(&line.name.as_str())
        });
        let halted = last
            .is_some_and(|line| line.name == "kvm_exit" && line.value("reason ") == Some("hlt"));
        switch.is_some_and(|line| line.task() == Some(one.vcpu)) && !halted
    }

    /// Counts how often a vCPU wrote to the serial port in a time.
    pub(crate) fn writes(&self, vcpu: i32, from: u64, to: u64) -> u64 {
        let begin = self
            .events
            .partition_point(|line| line.time + TEXT_NS < from);
        let within = self.events[begin..].iter();
        let writes = within
            .take_while(|line| line.time <= to + TEXT_NS)
            .filter(|line| line.tid == vcpu && line.written() == Some(0x3f8));
        writes.count() as u64
    }

    pub(crate) fn writes_during(&self, one: &Instance) -> u64 {
        let from = one.at("accepted").unwrap_or(one.start);
        self.writes(one.vcpu, from, one.start + one.total)
    }
}

/// How a feature counts writes to the serial port; 1, 2, 4 and so on, up to 256.
pub(crate) const WRITES: &str =
    "vCPU exits to the VMM on port 0x3f8 write (serial COM1 THR): at least ";

pub(crate) fn writes_told(one: &Instance) -> u64 {
    one.feature(WRITES)
        .map_or(0, |n| n.parse().expect("a number"))
}

pub(crate) const WAS: [&str; 9] = [
    "unknown",
    "in its guest",
    "in KVM",
    "in user space",
    "polling in a halt",
    "in a halt and not seen to sleep",
    "runnable without a CPU",
    "halted",
    "asleep",
];
