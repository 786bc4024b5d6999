//! How many interrupts CPUs had that were sent to have a function called there: what the kernel counts itself.

use std::fs;

/// Returns how many function call interrupts these CPUs have had since the machine started; `None` where the kernel
/// does not say.
pub(crate) fn function_calls(cpus: &[u32]) -> Option<u64> {
    counted(&fs::read_to_string("/proc/interrupts").ok()?, cpus)
}

/// Reads `/proc/interrupts`: `CAL:` on x86-64, `IPI1:` or so on arm64 (`arch_show_interrupts` of `arch/*/kernel`).
fn counted(text: &str, cpus: &[u32]) -> Option<u64> {
    let mut lines = text.lines();
    let columns: Vec<Option<u32>> = lines
        .next()?
        .split_ascii_whitespace()
        .map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let line = lines.find(|line| line.trim_end().ends_with("Function call interrupts"))?;
    let numbers = line.split_ascii_whitespace().skip(1);
    let counts = columns.iter().zip(numbers);
    let wanted = counts.filter(|(cpu, _)| cpu.is_some_and(|cpu| cpus.contains(&cpu)));
    let mut sum = 0u64;
    for (_, count) in wanted {
        sum = sum.saturating_add(count.parse().ok()?);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2       \n  0:         37          0   IO-APIC   2-edge      timer\n\
                        NMI:          0          0   Non-maskable interrupts\n\
                        CAL:       1200        355   Function call interrupts\n";

    #[test]
    fn counts_are_those_of_the_cpus() {
        assert_eq!(counted(TEXT, &[0]), Some(1200));
        assert_eq!(counted(TEXT, &[2]), Some(355));
        assert_eq!(counted(TEXT, &[0, 1, 2]), Some(1555));
        assert_eq!(counted("CPU0\n 1: 2 x\n", &[0]), None);
        assert_eq!(counted("", &[0]), None);
    }

    #[test]
    fn this_kernel_says() {
        assert!(function_calls(&[0]).is_some());
    }
}
