//! `/proc/interrupts` that somebody pasted: once, sums since boot; twice, what came between.

use perftables::{InterruptCounts, InterruptRow};

/// Interrupts of a device at least, before it is worth saying where they go.
const LEAST: u64 = 100;

/// One reading, or two of the same CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedInterrupts {
    first: InterruptCounts,
    later: Option<InterruptCounts>,
}

/// An interrupt with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedInterrupt {
    /// Its number, or the architecture's name of it.
    pub irq: String,
    /// Who handles it, or what it is.
    pub name: String,
    /// How many all CPUs got.
    pub count: u64,
    /// How many each CPU got, in the order of [`PrintedInterrupts::cpus`].
    pub counts: Vec<u64>,
    /// The CPU that got most, and how many.
    pub most: Option<(u32, u64)>,
}

/// A device all of whose interrupts go to one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneCpuDevice {
    /// The device, as far as its handlers' names say: `eth0` of `eth0-TxRx-0`.
    pub device: String,
    /// How many interrupts it has that came.
    pub irqs: usize,
    /// How many came.
    pub count: u64,
    /// The CPU.
    pub cpu: u32,
}

impl PrintedInterrupts {
    /// Returns those of one reading.
    pub(crate) fn new(first: InterruptCounts) -> PrintedInterrupts {
        PrintedInterrupts { first, later: None }
    }

    /// Returns whether a reading is a later one of the same machine: of the same CPUs, and nothing was counted back.
    pub(crate) fn goes_on_in(&self, later: &InterruptCounts) -> bool {
        let rises = |row: &InterruptRow| {
            let Some(before) = find(&self.first, row) else {
                return true;
            };
            before
                .counts
                .iter()
                .zip(&row.counts)
                .all(|(before, now)| before <= now)
        };
        let known = later
            .rows
            .iter()
            .any(|row| find(&self.first, row).is_some());
        self.later.is_none()
            && self.first.cpus == later.cpus
            && known
            && later.rows.iter().all(rises)
    }

    pub(crate) fn add(&mut self, later: InterruptCounts) {
        self.later = Some(later);
    }

    /// Returns the CPUs that counts are of.
    pub fn cpus(&self) -> &[u32] {
        &self.first.cpus
    }

    /// Returns whether counts are those between two readings, and no sums since boot.
    pub fn is_difference(&self) -> bool {
        self.later.is_some()
    }

    /// Returns interrupts that came, most first.
    pub fn lines(&self) -> Vec<CountedInterrupt> {
        let rows = self.later.as_ref().unwrap_or(&self.first).rows.iter();
        let lines = rows.map(|row| {
            let before = self.later.as_ref().and_then(|_| find(&self.first, row));
            let counts = row.counts.iter().enumerate();
            let counts: Vec<u64> = counts
                .map(|(at, now)| {
                    let before = before.and_then(|before| before.counts.get(at));
                    now.saturating_sub(before.copied().unwrap_or(0))
                })
                .collect();
            let each = self.first.cpus.iter().copied().zip(counts.iter().copied());
            CountedInterrupt {
                irq: row.irq.clone(),
                name: row.name.clone(),
                count: counts.iter().copied().fold(0, u64::saturating_add),
                most: each
                    .rev()
                    .max_by_key(|(_, count)| *count)
                    .filter(|(_, count)| *count > 0),
                counts,
            }
        });
        let mut lines: Vec<CountedInterrupt> = lines.filter(|line| line.count > 0).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.count));
        lines
    }

    /// Returns devices all of whose interrupts went to one CPU, of several, most interrupts first.
    pub fn on_one_cpu(&self) -> Vec<OneCpuDevice> {
        if self.first.cpus.len() < 2 {
            return Vec::new();
        }
        let mut devices: Vec<(OneCpuDevice, bool)> = Vec::new();
        for line in self.lines() {
            let numbered = line.irq.bytes().all(|byte| byte.is_ascii_digit());
            let Some((cpu, most)) = line.most.filter(|_| numbered && !line.name.is_empty()) else {
                continue;
            };
            let name = device(&line.name);
            let one = most == line.count;
            match devices.iter_mut().find(|(known, _)| known.device == name) {
                Some((known, alone)) => {
                    known.irqs += 1;
                    known.count = known.count.saturating_add(line.count);
                    *alone &= one && known.cpu == cpu;
                }
                None => devices.push((
                    OneCpuDevice {
                        device: name.to_owned(),
                        irqs: 1,
                        count: line.count,
                        cpu,
                    },
                    one,
                )),
            }
        }
        let alone = devices
            .into_iter()
            .filter(|(device, alone)| *alone && device.count >= LEAST);
        let mut devices: Vec<OneCpuDevice> = alone.map(|(device, _)| device).collect();
        devices.sort_by_key(|device| std::cmp::Reverse(device.count));
        devices
    }
}

fn find<'t>(table: &'t InterruptCounts, row: &InterruptRow) -> Option<&'t InterruptRow> {
    table
        .rows
        .iter()
        .find(|one| one.irq == row.irq && one.name == row.name)
}

/// Returns the device that handlers' names are of: `eth0` of `eth0-TxRx-3`, `virtio0` of `virtio0-input.0`,
/// `0000:01:00.0` of `vfio-msix[0](0000:01:00.0)`, `nvme0` of `nvme0q1`.
fn device(name: &str) -> &str {
    if let Some((_, device)) = name.split_once('(').filter(|_| name.starts_with("vfio-")) {
        return device.trim_end_matches(')');
    }
    if let Some(rest) = name.strip_prefix("nvme") {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let end = name.len() - rest.len() + digits;
        return name.get(..end).unwrap_or(name);
    }
    name.split(['-', '@', ',']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use perftables::{PerfTable, read};

    use super::*;

    fn interrupts(text: &str) -> PrintedInterrupts {
        let mut found: Option<PrintedInterrupts> = None;
        for table in read(text.as_bytes()).0 {
            let PerfTable::InterruptCounts(table) = table else {
                panic!("{table:?}");
            };
            match &mut found {
                Some(first) => {
                    assert!(first.goes_on_in(&table));
                    first.add(table);
                }
                None => found = Some(PrintedInterrupts::new(table)),
            }
        }
        found.unwrap()
    }

    /// The first case: all interrupts of eth1 are handled by CPU 0.
    #[test]
    fn all_of_a_device_on_one_cpu() {
        let text = include_str!("../../perftables/tests/tables/proc-interrupts-3.10.txt");
        let found = interrupts(text).on_one_cpu();
        let wanted = ["eth1 918273 CPU 0", "timer 129 CPU 0"];
        let said: Vec<String> = found
            .iter()
            .map(|one| format!("{} {} CPU {}", one.device, one.count, one.cpu))
            .collect();
        assert_eq!(said, wanted);
    }

    #[test]
    fn of_two_readings_the_difference() {
        let before = "    CPU0 CPU1\n 57: 900 0  PCI-MSI-edge  eth1-0\n\
                      58: 5 5  PCI-MSI-edge  eth1-1\nLOC: 10 20  Local timer\n";
        let after = "    CPU0 CPU1\n 57: 1900 0  PCI-MSI-edge  eth1-0\n\
                     58: 5 7  PCI-MSI-edge  eth1-1\nLOC: 10 20  Local timer\n";
        let both = interrupts(&format!("before:\n{before}\nten seconds later:\n{after}"));
        let lines = both.lines();
        let counts: Vec<(&str, u64, &[u64])> = lines
            .iter()
            .map(|line| (line.irq.as_str(), line.count, &line.counts[..]))
            .collect();
        assert_eq!(
            counts,
            [("57", 1000, &[1000, 0][..]), ("58", 2, &[0, 2][..])]
        );
        assert!(both.is_difference());
        // One of its queues is on the other CPU.
        assert_eq!(both.on_one_cpu(), []);
        // The other way round it is another machine, or another boot.
        let PerfTable::InterruptCounts(earlier) = read(before.as_bytes()).0.remove(0) else {
            panic!();
        };
        assert!(!interrupts(after).goes_on_in(&earlier));
    }

    #[test]
    fn devices_are_those_of_their_handlers() {
        for (name, of) in [
            ("eth0-TxRx-3", "eth0"),
            ("virtio0-input.0", "virtio0"),
            ("vfio-msix[0](0000:01:00.0)", "0000:01:00.0"),
            ("nvme0q12", "nvme0"),
            ("mlx5_comp3@pci:0000:81:00.0", "mlx5_comp3"),
            ("aerdrv, PCIe PME", "aerdrv"),
        ] {
            assert_eq!(device(name), of);
        }
    }
}
