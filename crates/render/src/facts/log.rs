//! Kernel logs.

use facts::KernelLog;

use super::page::{LABEL, Page};

/// What a kernel's log says: how often by kind, and the newest line of each.
pub(super) fn kernel_log(page: &mut Page, name: &str, log: &KernelLog) {
    let read = words::plural(log.lines, "line");
    if log.counts.is_empty() {
        page.line(name, &format!("{read}, none about what makes VMs slow"));
        return;
    }
    page.line(name, &format!("{read}, of which are remarkable:"));
    for (kind, count) in &log.counts {
        let text = format!("{count} times {}", kind.words());
        page.line("", &text);
        if let Some(line) = log.of(*kind).last() {
            let at = line.printk_ns.or(line.monotonic_ns).map(|ns| {
                let (s, us) = (ns / 1_000_000_000, ns / 1000 % 1_000_000);
                format!("[{s:5}.{us:06}] ")
            });
            let at = at.or_else(|| Some(format!("{} ", line.when.as_deref()?)));
            page.row(&format!(
                "{:LABEL$}  {}{}",
                "",
                at.unwrap_or_default(),
                line.text
            ));
        }
    }
}
