/*!
What an instruction costs that a guest cannot do alone: the hypervisor has to do it, so every one is an exit. On bare
metal the same rows say what the hardware takes, which is what the guest's rows are to be compared with.

Each is chosen so that it changes nothing: all are reads, of registers whose reads have no effect.
*/

use std::fs::{self, File};
use std::hint::black_box;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use results::BenchRow;

use crate::call::{self, RegisterPage};
use crate::now::now;
use crate::run::BenchRun;
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::on_cpu;
use crate::why::why;

/// Ports by way of the kernel, a byte at a place. A thread could be let at them itself (ioperm(2)), but a program that
/// reads one dies under an emulator that does not do as the processor does, and kernels are built without; the system
/// call is what the row of `/dev/zero` has.
const PORTS: &str = "/dev/port";
/// The mask register of the first interrupt controller (8259A). A read returns the mask. KVM has this device in the
/// kernel.
const PIC_MASK: u64 = 0x21;
/// A register of the first DMA controller's pages that no channel uses. Linux writes it where it has to wait
/// (`native_io_delay`), and no machine minds. KVM has no such device: the exit goes on to the VMM.
const DELAY: u64 = 0x80;
/// The main counter of an HPET (IA-PC HPET specification 1.0a, 2.3.7), and the register of the I/O APIC that names
/// another (82093AA, 3.1.1). Reads have no effect.
const HPET_COUNTER: usize = 0xf0;
const IO_APIC_SELECT: usize = 0;

/// Measures.
pub(crate) fn rows(run: &BenchRun<'_>, virtualized: Option<bool>) -> Vec<BenchRow> {
    let base = BenchRow::new("no exit (clock reads)");
    let mut rows = vec![measured(run, base, || Ok(|| 0))];
    if !cfg!(target_arch = "x86_64") {
        let why = "user space of this architecture has no instruction that always exits: what traps is emulated by the \
            guest's own kernel";
        rows.push(BenchRow::new("an exit").missing(why));
        return rows;
    }
    let cpuid = BenchRow::new("CPUID").note(match virtualized {
        Some(true) => "always an exit under KVM, answered in the host's kernel",
        Some(false) => "bare metal: the instruction itself",
        None => "an exit in a guest, the instruction itself on bare metal",
    });
    rows.push(measured(run, cpuid, || {
        Ok(|| call::cpuid(0).map_or(0, |found| found[0]))
    }));
    let zero = BenchRow::new("no exit (/dev/zero)");
    rows.push(reads(run, zero, "/dev/zero", 0));
    for (what, at, note) in [
        (
            "port 0x21 (PIC)",
            PIC_MASK,
            "the interrupt controller that KVM has in the kernel, unless the VMM has it",
        ),
        ("port 0x80", DELAY, "a port that goes to the VMM in a guest"),
    ] {
        let row = BenchRow::new(what).note(note);
        rows.push(reads(run, row, PORTS, at));
    }
    rows.push(match pm_timer() {
        Ok(at) => {
            let row = BenchRow::new(format!("port {at:#x} (ACPI timer)"));
            let row = row.note(
                "what a guest reads whose clock is acpi_pm, or Windows without a Hyper-V clock",
            );
            reads(run, row, PORTS, u64::from(at))
        }
        Err(why) => BenchRow::new("ACPI timer").missing(why),
    });
    for (what, name, at) in [
        ("HPET counter (MMIO)", "HPET 0", HPET_COUNTER),
        ("I/O APIC (MMIO)", "IOAPIC 0", IO_APIC_SELECT),
    ] {
        let row = BenchRow::new(what);
        rows.push(measured(run, row, || {
            let registers = registers(name)?;
            Ok(move || registers.word(at))
        }));
    }
    rows
}

/// Measures reads of a byte at a place of a file.
fn reads(run: &BenchRun<'_>, row: BenchRow, file: &str, at: u64) -> BenchRow {
    measured(run, row, || {
        let file = File::open(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("this kernel has no {file} (CONFIG_DEVPORT)"),
            _ => format!("{file} cannot be opened: {}", why(&error)),
        })?;
        let read = move || {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)
                .map(|()| u32::from(byte[0]))
        };
        // What is refused is refused the first time.
        read().map_err(|error| format!("it cannot be read: {}", why(&error)))?;
        Ok(move || read().unwrap_or(0))
    })
}

/// Measures one instruction at a time, in a thread on the CPU that measures, which gets itself ready first.
fn measured<R: Fn() -> u32>(
    run: &BenchRun<'_>,
    row: BenchRow,
    ready: impl FnOnce() -> Result<R, String> + Send,
) -> BenchRow {
    let row = row.from(run.places.from);
    run.say(&row);
    let bounds = run.bounds;
    let all = on_cpu(run.places.from, || {
        let read = ready()?;
        Ok(each(bounds, row.clone(), read))
    });
    // Where it was not measured, there is nothing to explain.
    all.unwrap_or_else(|why| BenchRow { note: None, ..row }.missing(why))
}

fn each(bounds: IterationBounds<'_>, row: BenchRow, read: impl Fn() -> u32) -> BenchRow {
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let begin = now();
        black_box(read());
        samples.add(begin, now().saturating_sub(begin));
    }
    samples.row(row)
}

/// Returns the port of the ACPI power management timer, as the kernel says it.
fn pm_timer() -> Result<u16, String> {
    let text = fs::read_to_string("/proc/ioports").unwrap_or_default();
    let at = start_of(&text, "ACPI PM_TMR").ok_or("the kernel knows of no such port")?;
    match u16::try_from(at) {
        Ok(0) => Err("/proc/ioports shows addresses to root alone".to_owned()),
        Ok(at) => Ok(at),
        Err(_) => Err("it is no I/O port".to_owned()),
    }
}

/// Returns the first address of a range of `/proc/ioports` or `/proc/iomem`, whose lines are `fec00000-fec003ff :
/// IOAPIC 0`.
fn start_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(" : "));
    let (range, _) = lines.find(|(_, what)| what.trim() == name)?;
    let (start, _) = range.trim().split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// Maps the registers of a device that is mapped into memory.
fn registers(name: &str) -> Result<RegisterPage, String> {
    let text = fs::read_to_string("/proc/iomem").unwrap_or_default();
    let at = match start_of(&text, name) {
        None => return Err("the kernel knows of no such device".to_owned()),
        Some(0) => return Err("/proc/iomem shows addresses to root alone".to_owned()),
        Some(at) => at,
    };
    // Its own file, where the kernel has one, is allowed more often.
    if name.starts_with("HPET")
        && let Ok(file) = File::open("/dev/hpet")
        && let Ok(registers) = RegisterPage::map(&file, 0)
    {
        return Ok(registers);
    }
    let file = File::open("/dev/mem")
        .map_err(|error| format!("/dev/mem cannot be opened: {}", why(&error)))?;
    RegisterPage::map(&file, at).map_err(|error| {
        format!(
            "/dev/mem does not give it ({}): the kernel keeps what a driver uses (CONFIG_IO_STRICT_DEVMEM)",
            why(&error)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_kernels_lists() {
        let text = "0000-0cf7 : PCI Bus 0000:00\n  0608-060b : ACPI PM_TMR\nfec00000-fec003ff : IOAPIC 0\n";
        assert_eq!(start_of(text, "ACPI PM_TMR"), Some(0x608));
        assert_eq!(start_of(text, "IOAPIC 0"), Some(0xfec0_0000));
        assert_eq!(start_of(text, "IOAPIC"), None);
        assert_eq!(start_of("x : HPET 0", "HPET 0"), None);
    }
}
