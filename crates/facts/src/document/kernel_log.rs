//! What a document says of a kernel's log.

use serde_json::Value;

use super::members::Members;
use crate::kernel_log::MAX_LINES;
use crate::reader::FactsReader;
use crate::{KernelLog, KernelLogLine, LogKind};

/// Reads a member that is a log.
pub(super) fn read(of: &Members<'_>, name: &str, reader: &mut FactsReader) -> Option<KernelLog> {
    let log = of.object(name, reader)?;
    let mut all = KernelLog {
        lines: log.number("lines", reader).unwrap_or(0),
        ..KernelLog::default()
    };
    // Kinds that are not known are a later version's.
    if let Some(counts) = log.object("counts", reader) {
        for (name, count) in counts.iter() {
            let Some(kind) = LogKind::of_name(name) else {
                continue;
            };
            match count.as_u64() {
                Some(count) => drop(all.counts.insert(kind, count)),
                None => counts.wrong(name, "a whole number", reader),
            }
        }
    }
    for line in log.objects("kept", MAX_LINES, reader) {
        let kind = line.read("kind", "a text", reader, Value::as_str);
        let Some(kind) = kind.and_then(LogKind::of_name) else {
            continue;
        };
        all.kept.push(KernelLogLine {
            kind,
            printk_ns: line.number("printk_ns", reader),
            monotonic_ns: line.number("monotonic_ns", reader),
            when: line.text("when", reader),
            cpus: line.cpus("cpus", reader).unwrap_or_default(),
            tid: line.thread_id("tid", reader),
            comm: line.text("comm", reader),
            seconds: line.number("seconds", reader),
            text: line.text("text", reader).unwrap_or_default(),
        });
    }
    Some(all)
}
