//! `--each`: every instance, as it completes.

use std::io::{self, Write};
use std::ops::ControlFlow;

use analysis::Study;
use anyhow::Result;
use event::{Event, EventType, Side, Sink};
use model::Access;
use paths::{Instance, Paths};
use render::paths::{self as render_paths, Instances};
use render::{json, neutral, quality};
use session::{DeviceNames, Opened};

use crate::args::{Format, PathsArgs};
use crate::commands::VERSION;
use crate::output;

/// Rows are written out when this many bytes have gathered.
const BUFFER: usize = 64 << 10;

/// Prints every instance.
pub(super) fn run(
    args: &PathsArgs,
    recording: &Opened<'_>,
    devices: &DeviceNames,
    study: &dyn Fn() -> Study,
) -> Result<()> {
    let format = args.common.format;
    let mut start = String::new();
    let mut isa = None;
    match format {
        Format::Table => {}
        Format::Csv => start.push_str(&Instances::default().csv_head()),
        Format::Json => {
            // Quality stands first in every document and is known last: the recording is walked twice.
            let mut first = study();
            let quality = recording.walk(&mut first).quality;
            isa = first.get::<Paths>().and_then(Paths::isa);
            let name = recording.name().to_owned();
            let document = json::text(json::envelope(VERSION, "paths", &[name], &quality));
            let open = document.trim_end().trim_end_matches('}').trim_end();
            start.push_str(open);
            start.push_str(",\n  \"instances\": [");
        }
    }
    let mut study = study();
    if let Some(paths) = study.get_mut::<Paths>() {
        paths.list();
    }
    let mut unused = event::Quality::default();
    let mut each = Each {
        study,
        devices,
        names: None,
        isa,
        format,
        nanoseconds: recording.nanoseconds(),
        out: io::stdout().lock(),
        pending: start,
        count: 0,
        failed: None,
        rows: Instances::default(),
    };
    let outcome = recording.walk(&mut each);
    each.study.finish();
    each.take();
    if format == Format::Json {
        each.pending.push_str("\n  ]\n}\n");
    }
    if let Some(error) = each.failed.take() {
        return Err(error.into());
    }
    each.out.write_all(each.pending.as_bytes())?;
    each.out.flush()?;
    drop(each);
    let _ = devices.names(isa, &mut unused);
    let quality = outcome.quality;
    if format == Format::Table && (quality.lost_events > 0 || quality.truncated) {
        io::stderr()
            .write_all(quality::lines(recording.name(), &quality, output::width()).as_bytes())?;
    }
    Ok(())
}

/// Prints instances during the walk.
struct Each<'d> {
    study: Study,
    devices: &'d DeviceNames,
    names: Option<devices::Names>,
    isa: Option<event::Isa>,
    format: Format,
    nanoseconds: bool,
    out: io::StdoutLock<'static>,
    pending: String,
    count: u64,
    failed: Option<io::Error>,
    rows: Instances,
}

impl Each<'_> {
    /// Appends the instances that have completed.
    fn take(&mut self) {
        let Some(paths) = self.study.get_mut::<Paths>() else {
            return;
        };
        let listed = paths.take_listed();
        if listed.is_empty() {
            return;
        }
        let isa = paths.isa();
        if self.names.is_none() || self.isa != isa {
            self.isa = isa;
            self.names = Some(self.devices.names(isa, &mut event::Quality::default()));
        }
        for one in &listed {
            self.row(one);
        }
    }

    fn row(&mut self, one: &Instance) {
        let (Some(paths), Some(names)) = (self.study.get::<Paths>(), &self.names) else {
            return;
        };
        let machine = self.study.walked().machine;
        let name_access = |access: &Access| analysis::name_access(access, names);
        let told = paths.tell(one, machine, &name_access);
        let text = match self.format {
            Format::Table => render_paths::each_line(&told, self.nanoseconds),
            Format::Csv => self.rows.csv(&told),
            Format::Json => {
                let comma = if self.count == 0 { "" } else { "," };
                format!("{comma}\n    {}", self.rows.json(&told))
            }
        };
        let text = match self.format {
            Format::Json => neutral::json(&text),
            Format::Table | Format::Csv => neutral::text(&text),
        };
        self.pending.push_str(&text);
        self.count += 1;
    }
}

impl Sink for Each<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let flow = self.study.event(event);
        self.take();
        if self.pending.len() >= BUFFER {
            if let Err(error) = self.out.write_all(self.pending.as_bytes()) {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
            self.pending.clear();
        }
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }
}
