//! Buffers, notifications, interrupts, frames and requests of a row of virtqueues.

use analysis::{VirtqueueColumn, VirtqueueRow, VirtqueueSource, Virtqueues};
use anyhow::{Result, bail};
use event::NONE;
use session::{CellPart, GuestPairing, OpenRecording};

use crate::commands::explain::cell::{CellName, FoundCell, PartEvents, column};
use crate::commands::explain::single::SingleEvent;
use crate::usage::Usage;

/// Columns that are explained, as the table calls them.
const COLUMNS: [QueueColumn; 8] = [
    QueueColumn::counts("added", VirtqueueColumn::Added),
    QueueColumn::counts("used", VirtqueueColumn::Used),
    QueueColumn::counts("notified", VirtqueueColumn::Notifications),
    QueueColumn::counts("irqs", VirtqueueColumn::Interrupts),
    QueueColumn::counts("sent", VirtqueueColumn::Sent),
    QueueColumn::counts("received", VirtqueueColumn::Received),
    QueueColumn::adds("sent_bytes", VirtqueueColumn::Sent),
    QueueColumn::adds("received_bytes", VirtqueueColumn::Received),
];

/// A column, and whether it has the bytes of what is counted.
#[derive(Debug, Clone, Copy)]
struct QueueColumn {
    name: &'static str,
    counts: VirtqueueColumn,
    has_bytes: bool,
}

impl QueueColumn {
    const fn counts(name: &'static str, counts: VirtqueueColumn) -> QueueColumn {
        QueueColumn {
            name,
            counts,
            has_bytes: false,
        }
    }

    const fn adds(name: &'static str, counts: VirtqueueColumn) -> QueueColumn {
        QueueColumn {
            name,
            counts,
            has_bytes: true,
        }
    }
}

/// Returns what a row has in a column.
fn amount(row: &VirtqueueRow, column: QueueColumn) -> Option<u64> {
    let way = match column.counts {
        VirtqueueColumn::Sent => row.sent,
        VirtqueueColumn::Received => row.received,
        _ => None,
    };
    match column.counts {
        _ if column.has_bytes => way?.bytes,
        VirtqueueColumn::Added => row.added,
        VirtqueueColumn::Used => row.used,
        VirtqueueColumn::Notifications => row.notifications,
        VirtqueueColumn::Interrupts => row.interrupts,
        VirtqueueColumn::Sent | VirtqueueColumn::Received => Some(way?.count),
    }
}

/// Returns what events are called that a column of a row counts; functions without the `kp_` of probes.
fn events_of(source: VirtqueueSource, column: VirtqueueColumn) -> &'static [&'static str] {
    use VirtqueueColumn::{Added, Interrupts, Notifications, Used};
    match (source, column) {
        (VirtqueueSource::Driver, Added) => &["virtqueue_add_"],
        (VirtqueueSource::Driver, Used) => {
            &["virtqueue_get_buf__return", "virtqueue_get_buf_ctx__return"]
        }
        (VirtqueueSource::Driver, Notifications) => &["virtqueue_notify"],
        (VirtqueueSource::Driver, _) => &["irq_handler_entry"],
        (VirtqueueSource::Frames, _) => &["net_dev_xmit", "netif_receive_skb"],
        (VirtqueueSource::Requests, Added) => &["block_rq_issue"],
        (VirtqueueSource::Requests, Used) => &["block_rq_complete"],
        (VirtqueueSource::Requests, _) => &["block_rq_issue", "block_rq_complete"],
        (VirtqueueSource::Notifications, _) => &["kvm_mmio", "kvm_pio", "kvm_fast_mmio"],
        (VirtqueueSource::BackEnd, Used) => &["vhost_add_used_and_signal"],
        (VirtqueueSource::BackEnd, Interrupts) => &["irqfd_wakeup"],
        (VirtqueueSource::BackEnd, _) => &["tun_get_user"],
    }
}

/// Returns what a row is called on the command line: its device, and its queue behind a slash.
fn called(row: &VirtqueueRow) -> String {
    let queue = row.queue.as_deref();
    format!(
        "{}{}",
        row.device,
        queue.map(|queue| format!("/{queue}")).unwrap_or_default()
    )
}

/// Whether somebody means a row: its name, its device, or the first word of that, with or without the queue.
fn is_meant(row: &VirtqueueRow, asked: &str) -> bool {
    let first = row.device.split(' ').next().unwrap_or_default();
    let with_queue = |device: &str| {
        let queue = row.queue.as_deref();
        queue.is_some_and(|queue| asked == format!("{device}/{queue}"))
    };
    asked == row.device || asked == first || with_queue(&row.device) || with_queue(first)
}

/// Finds the events of a row.
pub(super) fn virtqueues(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let paired = GuestPairing::default();
    let found = recording.virtqueues(&paired)?;
    let rows = found.report.rows.iter();
    let meant: Vec<&VirtqueueRow> = rows.filter(|row| is_meant(row, cell.row)).collect();
    if meant.is_empty() {
        bail!(
            "{}: no row of virtqueues is '{}', a device or DEVICE/QUEUE; 'trapline virtqueues' prints all",
            recording.name(),
            cell.row
        );
    }
    let names: Vec<&str> = COLUMNS
        .iter()
        .filter(|column| meant.iter().any(|row| amount(row, **column).is_some()))
        .map(|column| column.name)
        .collect();
    let named = column(cell.column, &names, "virtqueues")?;
    let asked = COLUMNS.iter().find(|column| column.name == named);
    let asked = asked.copied().unwrap_or(COLUMNS[0]);
    let mut with_it: Vec<&VirtqueueRow> = meant
        .into_iter()
        .filter(|row| amount(row, asked).is_some())
        .collect();
    // A device has a row without a queue too, where some of its events name none.
    if with_it.iter().any(|row| called(row) == cell.row) {
        with_it.retain(|row| called(row) == cell.row);
    }
    let [row] = with_it[..] else {
        let all: Vec<String> = with_it.iter().map(|row| called(row)).collect();
        return Err(Usage::error(format!(
            "{} rows have '{named}' of {}: name one as DEVICE/QUEUE, or choose a VM with --vm ({})",
            all.len(),
            cell.row,
            words::list(&all)
        )));
    };
    let mut question = recording.question(&paired);
    let mut queues = Virtqueues::new([]);
    queues.list();
    let shared = question.share(queues);
    let (mut counted, mut bytes) = (0, 0u64);
    let (answers, parts) = question.walk_parts(|_, event, parts| {
        let all = shared.get_mut().take_counted();
        let of_row = all
            .iter()
            .filter(|one| one.column == asked.counts && one.is_of(row));
        let (mut count, mut of_event) = (0, 0);
        for one in of_row.filter(|one| !asked.has_bytes || one.bytes.is_some()) {
            count += one.count;
            of_event += one.bytes.unwrap_or(0);
        }
        bytes = of_event.saturating_add(bytes);
        if let Some(event) = event.filter(|_| count > 0) {
            counted += count;
            parts.push(CellPart {
                start: event.time,
                end: event.time,
                begin_tid: NONE,
                tid: event.tid,
            });
        }
    });
    let rule = rule_of(row, asked, counted, parts.sum.count);
    Ok(FoundCell {
        row: called(row),
        column: named.to_owned(),
        value_ns: None,
        amount: asked.has_bytes.then_some((bytes, "bytes")),
        nouns: ("event", "events"),
        rule,
        elsewhere: None,
        without_events: match asked.has_bytes {
            true => 0,
            false => amount(row, asked).unwrap_or(0).saturating_sub(counted),
        },
        parts,
        events: PartEvents::Single(SingleEvent {
            names: events_of(row.source, asked.counts),
            fields: [None, None],
        }),
        quality: answers.quality,
    })
}

/// Returns how the events make the number: sentences.
fn rule_of(row: &VirtqueueRow, asked: QueueColumn, counted: u64, events: u64) -> Vec<String> {
    let mut rule = vec!["Each of these events is counted in this row.".to_owned()];
    if asked.has_bytes {
        rule = vec![match row.source {
            VirtqueueSource::Requests => {
                "A request has the bytes that its event says, or 512 for each sector.".to_owned()
            }
            _ => "A frame has the bytes that its event says (len).".to_owned(),
        }];
    } else if counted > events {
        rule.push(format!(
            "They are of {counted} buffers: an event gives back as many as it says (n4, from Linux 6.18 on n5)."
        ));
    }
    rule
}
