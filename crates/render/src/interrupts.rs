//! `/proc/interrupts` that somebody pasted, and queues of bcc's `virtiostat`.

use std::fmt::Write;

use analysis::{CountedInterrupt, Picture, PrintedInterrupts, VirtioQueue};
use serde::Serialize;
use serde_json::Value;

use crate::html::Frame;
use crate::part::PicturePart;
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, clean};

/// Devices whose interrupts all go to one CPU that are named.
const DEVICES: usize = 8;

/// Columns of interrupts.
pub(crate) fn columns() -> Table<'static, CountedInterrupt> {
    use Unit::{Count, Name, Nested, Number, Share, Text};
    Table::new()
        .column("irq", Text, |line: &CountedInterrupt| line.irq.clone())
        .heading("IRQ", 6)
        .page("IRQ")
        .column("count", Count, |line| line.count)
        .heading("count", 14)
        .page("count")
        .column("most_cpu", Number, |line| line.most.map(|(cpu, _)| cpu))
        .heading("most on", 9)
        .page("most on CPU")
        .column("most_share", Share, |line| {
            let (_, most) = line.most?;
            Some(most as f64 / line.count.max(1) as f64)
        })
        .heading("share", 8)
        .page("its share")
        .column("counts", Nested, |line| Value::from(line.counts.clone()))
        .within(Vec::<u64>::shape())
        .column("name", Name, |line| line.name.clone())
        .left("handler", 0)
        .gap("  ")
        .page("handler")
}

/// Returns the table for a terminal, with what stands out in it.
pub fn table(interrupts: &PrintedInterrupts, layout: Layout) -> String {
    let lines = interrupts.lines();
    let mut out = String::from(match interrupts.is_difference() {
        true => "interrupts: between two readings of /proc/interrupts\n",
        false => "interrupts: since boot, by /proc/interrupts; it has no times\n",
    });
    let columns = columns();
    out.push_str(&columns.view(Views::TERMINAL).text(&lines, layout));
    let devices = interrupts.on_one_cpu();
    for one in devices.iter().take(DEVICES) {
        let _ = writeln!(
            out,
            "all {} interrupts of {} came to CPU {}",
            one.count,
            clean(&one.device),
            one.cpu
        );
    }
    if let Some(more) = devices.len().checked_sub(DEVICES).filter(|more| *more > 0) {
        let _ = writeln!(out, "and those of {more} other devices to one CPU each");
    }
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
struct InterruptsDocument<'a> {
    /// Whether counts are those between two readings, and no sums since boot.
    difference: bool,
    /// The CPUs that `counts` of rows are of.
    cpus: &'a [u32],
    rows: Value,
    /// Devices all of whose interrupts came to one CPU.
    on_one_cpu: Vec<OneCpu>,
}

/// A device in it.
#[derive(Debug, Serialize)]
struct OneCpu {
    device: String,
    irqs: usize,
    count: u64,
    cpu: u32,
}

shape!(InterruptsDocument<'static> { difference, cpus, rows: columns().shape().list(), on_one_cpu });
shape!(OneCpu {
    device,
    irqs,
    count,
    cpu
});

fn document(interrupts: &PrintedInterrupts) -> InterruptsDocument<'_> {
    let devices = interrupts.on_one_cpu().into_iter();
    InterruptsDocument {
        difference: interrupts.is_difference(),
        cpus: interrupts.cpus(),
        rows: columns().json(interrupts.lines()),
        on_one_cpu: devices
            .map(|one| OneCpu {
                device: one.device,
                irqs: one.irqs,
                count: one.count,
                cpu: one.cpu,
            })
            .collect(),
    }
}

/// Interrupts as a part of a report.
pub(crate) const PART: PicturePart = PicturePart {
    name: "interrupts",
    heading: "Interrupts of the machine",
    caption: "interrupts by CPU, as /proc/interrupts counts them",
    nothing: "",
    document: |picture| serde_json::to_value(document(picture.interrupts.as_ref()?)).ok(),
    shape: InterruptsDocument::shape,
    html: |picture, frame| {
        let lines = picture.interrupts.as_ref().map(PrintedInterrupts::lines);
        columns().html(lines.unwrap_or_default(), frame)
    },
    text: |picture, layout| {
        let interrupts = picture.interrupts.as_ref();
        interrupts.map_or_else(String::new, |one| table(one, layout))
    },
};

/// Columns of queues.
pub(crate) fn queues() -> Table<'static, VirtioQueue> {
    use Unit::{Count, Name, Text};
    Table::new()
        .column("device", Name, |queue: &VirtioQueue| queue.device.clone())
        .left("device", 10)
        .page("device")
        .column("driver", Text, |queue| queue.driver.clone())
        .left("driver", 14)
        .gap("  ")
        .page("driver")
        .column("queue", Name, |queue| queue.queue.clone())
        .left("queue", 14)
        .gap("  ")
        .page("queue")
        .column("in_buffers", Count, |queue| queue.in_buffers)
        .heading("in", 10)
        .page("in buffers")
        .column("in_bytes", Count, |queue| queue.in_bytes)
        .heading("bytes", 14)
        .page("in bytes")
        .column("out_buffers", Count, |queue| queue.out_buffers)
        .heading("out", 10)
        .page("out buffers")
        .column("out_bytes", Count, |queue| queue.out_bytes)
        .heading("bytes", 14)
        .page("out bytes")
}

/// Returns the table of queues for a terminal.
pub fn queue_table(rows: &[VirtioQueue], layout: Layout) -> String {
    let table = queues().view(Views::TERMINAL).text(rows, layout);
    format!(
        "virtio: buffers and bytes that the guest's drivers put into their queues (virtiostat)\n{table}"
    )
}

/// Queues as a part of a report.
pub(crate) const QUEUES: PicturePart = PicturePart {
    name: "virtio",
    heading: "Queues of virtio devices",
    caption: "what drivers put into their queues, as virtiostat counts it",
    nothing: "",
    document: |picture| (!picture.virtio.is_empty()).then(|| queues().json(&picture.virtio)),
    shape: || queues().shape().list(),
    html: queues_html,
    text: |picture, layout| match picture.virtio.is_empty() {
        true => String::new(),
        false => queue_table(&picture.virtio, layout),
    },
};

fn queues_html(picture: &Picture, frame: &Frame<'_>) -> String {
    queues().html(&picture.virtio, frame)
}
