//! Rows of single things for a store of many recordings: spans, exits and instances of paths in one walk.

use model::RetiredThreads;
use paths::{InstanceReport, RecentWords};
use render::ClockUnit;
use render::exit_list::ExitLine;
use render::spans::SpanLine;
use render::store::{DetailRows, StoreTable, StoredRows};

use crate::known::Devices;
use crate::lines::LineMaker;
use crate::rows::with_names;
use crate::walk::{ExportFile, ExportedThing, Scene};

/// Takes rows of a table; returns whether it takes more.
pub type StoredRowsTaker<'t> = &'t mut dyn FnMut(StoreTable, &dyn StoredRows) -> bool;

/// Rows that wait at most until they are handed out together.
const BATCH: usize = 256;

/// Hands out rows of the three tables of single things.
pub struct StoredDetail<'t> {
    rows: DetailRows,
    spans: Vec<SpanLine>,
    exits: Vec<ExitLine>,
    instances: Vec<InstanceReport>,
    span_lines: LineMaker,
    exit_lines: LineMaker,
    words: RecentWords,
    devices: std::cell::RefCell<Devices>,
    /// Rows of spans are parts of them, in each of which the guest did one thing.
    guests: bool,
    take: StoredRowsTaker<'t>,
    ended: bool,
    /// It makes no bytes of its own.
    made: Vec<u8>,
}

impl std::fmt::Debug for StoredDetail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredDetail").finish_non_exhaustive()
    }
}

impl<'t> StoredDetail<'t> {
    /// Returns what hands out rows whose times count this. With `guests`, they say what guests did.
    pub fn new(clock: ClockUnit, guests: bool, take: StoredRowsTaker<'t>) -> StoredDetail<'t> {
        StoredDetail {
            rows: DetailRows::new(clock),
            spans: Vec::with_capacity(BATCH),
            exits: Vec::with_capacity(BATCH),
            instances: Vec::with_capacity(BATCH),
            span_lines: LineMaker::default(),
            exit_lines: LineMaker::default(),
            words: RecentWords::default(),
            devices: std::cell::RefCell::default(),
            guests,
            take,
            ended: false,
            made: Vec::new(),
        }
    }

    /// Hands out the rows of each table of which at least so many wait.
    fn hand_out(&mut self, least: usize) {
        let StoredDetail { take, ended, .. } = self;
        let mut put = |table: StoreTable, rows: &dyn StoredRows| {
            *ended = *ended || !take(table, rows);
        };
        if self.spans.len() >= least {
            put(StoreTable::Spans, &self.rows.spans(&self.spans));
            self.spans.clear();
        }
        if self.exits.len() >= least {
            put(StoreTable::Exits, &self.rows.exits(&self.exits));
            self.exits.clear();
        }
        if self.instances.len() >= least {
            put(StoreTable::Instances, &self.rows.instances(&self.instances));
            self.instances.clear();
        }
    }
}

impl ExportFile for StoredDetail<'_> {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if self.ended {
            return;
        }
        self.spans
            .extend(self.span_lines.span(found, self.guests, scene));
        self.exits.extend(self.exit_lines.exit(found, scene));
        if let ExportedThing::Instance(one) = found
            && let Some(paths) = scene.paths
        {
            let describe = |names: paths::AccessNamer<'_>| {
                paths.describe_among(one, scene.machine, names, &mut self.words)
            };
            self.instances
                .push(with_names(scene, &self.devices, describe));
        }
        self.hand_out(BATCH);
    }

    fn retire(&mut self, retired: &RetiredThreads) {
        self.span_lines.retire(retired);
        self.exit_lines.retire(retired);
    }

    fn finish(&mut self) -> Vec<String> {
        self.hand_out(1);
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }

    fn has_ended(&self) -> bool {
        self.ended
    }
}
