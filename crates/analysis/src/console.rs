//! What guests printed on their serial lines, from the values that KVM's events record.
//!
//! A byte that a guest sends is a write of its UART's data register, and an exit: `kvm_pio` (`arch/x86/kvm/trace.h`)
//! has the value of an `OUT`, `kvm_mmio` (`include/trace/events/kvm.h`) that of a store. Of a string instruction
//! (`rep outsb`) `kvm_pio` has the first value only; the others are counted.
//!
//! Registers: National Semiconductor PC16550D, table of registers (kernel `include/uapi/linux/serial_reg.h`); Arm
//! PL011, DDI 0183 (kernel `include/linux/amba/serial.h`). Places: the PC's ports; QEMU's `virt` (`hw/arm/virt.c`,
//! `VIRT_UART`). Debug ports, which take bytes and nothing else: 0xe9 (Bochs, QEMU's `isa-debugcon`), 0x402 (SeaBIOS,
//! OVMF).

use std::fmt;
use std::ops::ControlFlow;

use event::{Data, Event, EventType, Kind, MmioAccess, Sink};
use rustc_hash::FxHashMap;

/// A line that goes on for longer is broken.
const MAX_LINE: usize = 4096;
/// Lines under way, of all VMs together: one for each of their UARTs.
const MAX_OPEN: usize = 1 << 14;

/// The PC's serial lines, each with eight ports.
const COM: [(u16, &str); 4] = [
    (0x3f8, "COM1"),
    (0x2f8, "COM2"),
    (0x3e8, "COM3"),
    (0x2e8, "COM4"),
];
/// Ports that take bytes and nothing else.
const DEBUG: [(u16, &str); 2] = [(0xe9, "debug port"), (0x402, "firmware debug port")];
/// The UART of QEMU's `virt`, and its data register.
const PL011: u64 = 0x0900_0000;

/// Offsets of a 16550's registers, and the bits that change what a write to its data register means.
const LCR: u16 = 3;
const LCR_DIVISOR_LATCH: u8 = 0x80;
const MCR: u16 = 4;
const MCR_LOOP: u8 = 0x10;

/// Which serial line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uart {
    /// What it is called: `COM1`, `PL011`.
    pub name: &'static str,
    /// Port or guest physical address of its data register.
    pub address: u64,
}

/// A line that a guest printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    /// Time of its first byte.
    pub start: u64,
    /// Time of its last byte.
    pub end: u64,
    /// The VM, in the numbers that [`Console::new`] was given; `None` where the thread is no vCPU of a known VM.
    pub vm: Option<usize>,
    /// Thread of the vCPU that wrote the first byte.
    pub tid: i32,
    /// The serial line.
    pub uart: Uart,
    /// The bytes that were recorded, without the line feed and the carriage return before it.
    pub bytes: Vec<u8>,
    /// How many more were written, of which the recording does not have the values, and where in `bytes` they belong.
    pub unknown: Vec<(usize, u64)>,
    /// Whether a line feed ended it; if not, the recording ended, or the line was too long.
    pub whole: bool,
}

impl ConsoleLine {
    /// Returns how many of its bytes the recording does not have.
    pub fn unknown_bytes(&self) -> u64 {
        let counts = self.unknown.iter().map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConsoleSums {
    /// Bytes that were recorded.
    pub bytes: u64,
    /// Bytes that were written, and whose values the recording does not have.
    pub unknown: u64,
    /// Lines, those without an end too.
    pub lines: u64,
}

/// A 16550's state, as far as writes show it.
#[derive(Debug, Clone, Copy, Default)]
struct Registers {
    lcr: u8,
    mcr: u8,
}

/// Whose line it is: its VM's, or, of unknown VMs, its thread's.
type Owner = (Option<usize>, i32, u64);

/// Puts the bytes of each serial line together and hands out lines as they end.
pub struct Console<'s> {
    /// VM of each vCPU's thread.
    vms: FxHashMap<i32, usize>,
    take: &'s mut dyn FnMut(ConsoleLine) -> ControlFlow<()>,
    open: FxHashMap<Owner, ConsoleLine>,
    registers: FxHashMap<Owner, Registers>,
    sums: ConsoleSums,
    /// Whether the guest's machine may have a PL011.
    pl011: bool,
    ended: bool,
}

impl fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Console");
        out.field("open", &self.open).field("sums", &self.sums);
        out.finish_non_exhaustive()
    }
}

impl<'s> Console<'s> {
    /// Returns a decoder that has seen nothing. `vms` has a number for each thread of a vCPU, the same for those of one
    /// VM. `pl011` says whether the machine may have a PL011, which no PC has. Lines go to `take`, in the order in
    /// which they end; it returns `Break` when it wants no more.
    pub fn new(
        vms: impl IntoIterator<Item = (i32, usize)>,
        pl011: bool,
        take: &'s mut dyn FnMut(ConsoleLine) -> ControlFlow<()>,
    ) -> Console<'s> {
        Console {
            vms: vms.into_iter().collect(),
            take,
            open: FxHashMap::default(),
            registers: FxHashMap::default(),
            sums: ConsoleSums::default(),
            pl011,
            ended: false,
        }
    }

    /// Hands out the lines that were not ended, the first ones first, and returns what was counted.
    pub fn finish(mut self) -> ConsoleSums {
        let mut rest: Vec<ConsoleLine> = self.open.drain().map(|(_, line)| line).collect();
        rest.sort_by_key(|line| (line.start, line.vm, line.uart, line.tid));
        for line in rest {
            self.hand_out(line);
        }
        self.sums
    }

    fn hand_out(&mut self, line: ConsoleLine) {
        self.sums.lines += 1;
        if !self.ended {
            self.ended = (self.take)(line).is_break();
        }
    }

    fn owner(&self, tid: i32, address: u64) -> Owner {
        match self.vms.get(&tid) {
            Some(&vm) => (Some(vm), 0, address),
            None => (None, tid, address),
        }
    }

    fn port(&mut self, event: &Event<'_>, port: u16, size: u32, count: u32, value: Option<u32>) {
        let known = |table: &[(u16, &'static str)], last: u16| {
            let at = table
                .iter()
                .find(|(base, _)| (*base..=base + last).contains(&port));
            at.copied()
        };
        if let Some((base, name)) = known(&DEBUG, 0) {
            let address = u64::from(base);
            let bytes = u64::from(size.max(1)) * u64::from(count.max(1));
            return self.write(event, Uart { name, address }, value, bytes);
        }
        let Some((base, name)) = known(&COM, 7) else {
            return;
        };
        let uart = Uart {
            name,
            address: u64::from(base),
        };
        let owner = self.owner(event.tid, uart.address);
        // A wide access writes this register and those behind it.
        let registers = self.registers.get(&owner).copied().unwrap_or_default();
        let mut after = registers;
        for (register, shift) in (port - base..8).zip(0..size.clamp(1, 4)) {
            let byte = value.map(|value| (value >> (8 * shift)) as u8);
            match (register, byte) {
                (LCR, Some(byte)) => after.lcr = byte,
                (MCR, Some(byte)) => after.mcr = byte,
                _ => {}
            }
        }
        if (after.lcr, after.mcr) != (registers.lcr, registers.mcr)
            && (self.registers.len() < MAX_OPEN || self.registers.contains_key(&owner))
        {
            self.registers.insert(owner, after);
        }
        let divisor = registers.lcr & LCR_DIVISOR_LATCH != 0;
        let looped = registers.mcr & MCR_LOOP != 0;
        if port == base && !divisor && !looped {
            self.write(event, uart, value, u64::from(count.max(1)));
        }
    }

    /// A guest wrote so many bytes to a data register, of which the first may be known.
    fn write(&mut self, event: &Event<'_>, uart: Uart, first: Option<u32>, count: u64) {
        let owner = self.owner(event.tid, uart.address);
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&owner) {
            self.sums.unknown = self.sums.unknown.saturating_add(count);
            return;
        }
        let known = u64::from(first.is_some());
        self.sums.bytes += known;
        self.sums.unknown = self.sums.unknown.saturating_add(count - known);
        let line = self.open.entry(owner).or_insert_with(|| ConsoleLine {
            start: event.time,
            end: event.time,
            vm: owner.0,
            tid: event.tid,
            uart,
            bytes: Vec::new(),
            unknown: Vec::new(),
            whole: false,
        });
        line.end = event.time;
        let byte = first.map(|value| value as u8);
        // Of several bytes the others may go on on the next line: nobody knows.
        if byte == Some(b'\n') {
            line.whole = true;
            let gap = line.unknown.last().map(|(at, _)| *at);
            if line.bytes.last() == Some(&b'\r') && gap != Some(line.bytes.len()) {
                line.bytes.pop();
            }
        } else if let Some(byte) = byte {
            line.bytes.push(byte);
        }
        let after = (count > known).then(|| count - known);
        if let (false, Some(more)) = (line.whole, after) {
            gap(line, more);
        }
        if line.whole || line.bytes.len() >= MAX_LINE || line.unknown.len() >= MAX_LINE {
            if let Some(line) = self.open.remove(&owner) {
                self.hand_out(line);
            }
        } else {
            return;
        }
        if let (Some(b'\n'), Some(more)) = (byte, after) {
            let mut next = ConsoleLine {
                start: event.time,
                end: event.time,
                vm: owner.0,
                tid: event.tid,
                uart,
                bytes: Vec::new(),
                unknown: Vec::new(),
                whole: false,
            };
            gap(&mut next, more);
            self.open.insert(owner, next);
        }
    }
}

/// Notes bytes without values at the end of a line.
fn gap(line: &mut ConsoleLine, count: u64) {
    let at = line.bytes.len();
    match line.unknown.last_mut() {
        Some((last, sum)) if *last == at => *sum = sum.saturating_add(count),
        _ => line.unknown.push((at, count)),
    }
}

impl Sink for Console<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        matches!(ty.kind, Kind::KvmPio | Kind::KvmMmio)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event.data() {
            Data::KvmPio(pio) if pio.write => {
                self.port(event, pio.port, pio.size, pio.count, pio.value);
            }
            Data::KvmMmio(mmio)
                if self.pl011 && mmio.access == MmioAccess::Write && mmio.gpa == PL011 =>
            {
                let uart = Uart {
                    name: "PL011",
                    address: PL011,
                };
                self.write(event, uart, Some(mmio.value as u32), 1);
            }
            _ => {}
        }
        if self.ended {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use event::{Body, Decoder, KvmMmio, KvmPio};
    use proptest::prelude::*;

    use super::*;

    fn decoded(data: &[(i32, Data)]) -> (Vec<ConsoleLine>, ConsoleSums) {
        let mut lines = Vec::new();
        let mut take = |line| {
            lines.push(line);
            ControlFlow::Continue(())
        };
        let mut console = Console::new([(1, 0), (2, 0), (3, 1)], true, &mut take);
        for ((tid, data), time) in data.iter().zip(1..) {
            let ty = EventType {
                index: 0,
                machine: 0,
                system: "kvm",
                name: "kvm_pio",
                label: "kvm:kvm_pio",
                kind: Kind::KvmPio,
                format: None,
                decoder: Decoder::default(),
                recorded: true,
            };
            let event = Event {
                time,
                cpu: 0,
                tid: *tid,
                pid: -1,
                ty: &ty,
                body: Body::Text {
                    text: "",
                    data: *data,
                },
                sample: None,
                buffer: 0,
                comm: None,
            };
            assert!(console.event(&event).is_continue());
        }
        let sums = console.finish();
        (lines, sums)
    }

    fn any_access() -> impl Strategy<Value = Data> {
        let ports = prop_oneof![
            8 => Just(0x3f8u16),
            1 => Just(0x3fb),
            1 => Just(0x3fc),
            1 => Just(0xe9),
            1 => any::<u16>(),
        ];
        let bytes = prop_oneof![4 => 0u32..256, 1 => Just(10), 1 => any::<u32>()];
        (
            ports,
            0u32..9,
            0u32..5,
            prop::option::weighted(0.9, bytes),
            any::<u8>(),
        )
            .prop_map(|(port, size, count, value, kind)| match kind {
                0..=15 => Data::KvmMmio(KvmMmio {
                    access: MmioAccess::from_number(u64::from(kind % 4)),
                    gpa: PL011,
                    len: size,
                    value: u64::from(value.unwrap_or(0)),
                }),
                _ => Data::KvmPio(KvmPio {
                    write: kind < 240,
                    port,
                    size,
                    count,
                    value,
                }),
            })
    }

    proptest! {
        /// Every byte is in one line, or counted as not recorded.
        #[test]
        fn no_byte_is_lost(data in prop::collection::vec((0..5i32, any_access()), 0..400)) {
            let (lines, sums) = decoded(&data);
            prop_assert_eq!(sums.lines, lines.len() as u64);
            let unknown: u64 = lines.iter().map(ConsoleLine::unknown_bytes).sum();
            prop_assert_eq!(unknown, sums.unknown);
            let bytes: u64 = lines.iter().map(|line| line.bytes.len() as u64).sum();
            let ends = lines.iter().filter(|line| line.whole).count() as u64;
            // A line's end is a line feed, with or without a carriage return before it.
            prop_assert!(bytes + ends <= sums.bytes && sums.bytes <= bytes + 2 * ends);
            for line in &lines {
                prop_assert!(line.start <= line.end && !line.bytes.contains(&b'\n'));
                prop_assert!(line.unknown.iter().all(|(at, _)| *at <= line.bytes.len()));
            }
        }
    }
}
