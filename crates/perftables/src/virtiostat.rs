//! `virtiostat` of bcc (`tools/virtiostat.py`, 0.22 and later): what a guest's virtio devices were given in each queue.

use forms::InputForm;

use crate::lines::CleanLine;
use crate::number::count;
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{PerfTable, TableNote, VirtioQueue, VirtioTraffic};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "virtiostat (bcc)",
    recognised_by: "the heading `Driver Device VQ Name In SGs Out SGs In BW Out BW`",
    yields: "buffers and bytes by device and queue, as the guest sees them",
    fixtures: &[
        "tests/tables/virtiostat.txt",
        "tests/tables/virtiostat-python3.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: None,
};

const HEADING: [&str; 11] = [
    "Driver", "Device", "VQ", "Name", "In", "SGs", "Out", "SGs", "In", "BW", "Out",
];

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let text = &view.first()?.text;
    let words: Vec<&str> = text.split_whitespace().collect();
    let (last, first) = words.split_last()?;
    let is_heading = *last == "BW" && first == HEADING;
    is_heading.then(|| (Box::<OpenQueues>::default() as Box<dyn OpenTable>, 1))
}

/// Reads a row: driver, device and queue, which Python 3 prints as `b'virtio_net'`, and four numbers.
fn row(text: &str, line: u64) -> Option<VirtioQueue> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut numbers = [0; 4];
    for number in numbers.iter_mut().rev() {
        *number = count(words.pop()?)?;
    }
    let [driver, device, queue] = words[..] else {
        return None;
    };
    let bare = |word: &str| {
        let quoted = word
            .strip_prefix("b'")
            .and_then(|word| word.strip_suffix('\''));
        quoted.unwrap_or(word).to_owned()
    };
    let [in_buffers, out_buffers, in_bytes, out_bytes] = numbers;
    Some(VirtioQueue {
        line,
        driver: bare(driver),
        device: bare(device),
        queue: bare(queue),
        in_buffers,
        out_buffers,
        in_bytes,
        out_bytes,
    })
}

/// A table under way.
#[derive(Debug, Default)]
struct OpenQueues {
    rows: Vec<VirtioQueue>,
    beyond: u64,
}

impl OpenTable for OpenQueues {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let row = row(&first.text, first.number)?;
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.beyond += 1;
        }
        Some(1)
    }

    fn patience(&self) -> u32 {
        // Rows that cannot be read stand between others.
        2
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.beyond, notes);
        (!self.rows.is_empty()).then_some(PerfTable::VirtioTraffic(VirtioTraffic {
            line: place.line,
            label: place.label,
            rows: self.rows,
        }))
    }
}
