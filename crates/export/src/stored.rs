//! Rows of single things for a store of many recordings: spans, exits and instances of paths in one walk.

use model::RetiredThreads;
use render::ClockUnit;
use render::store::{DetailRows, StoreTable, StoredCell};

use crate::known::Devices;
use crate::lines::LineMaker;
use crate::rows::with_names;
use crate::walk::{ExportFile, ExportedThing, Scene};

/// Takes cells of rows; returns whether it takes more.
pub type StoredCellTaker<'t> = &'t mut dyn FnMut(StoreTable, StoredCell<'_>) -> bool;

/// Hands out rows of the three tables of single things.
pub struct StoredDetail<'t> {
    rows: DetailRows,
    spans: LineMaker,
    exits: LineMaker,
    devices: std::cell::RefCell<Devices>,
    /// Rows of spans are parts of them, in each of which the guest did one thing.
    guests: bool,
    take: StoredCellTaker<'t>,
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
    pub fn new(clock: ClockUnit, guests: bool, take: StoredCellTaker<'t>) -> StoredDetail<'t> {
        StoredDetail {
            rows: DetailRows::new(clock),
            spans: LineMaker::default(),
            exits: LineMaker::default(),
            devices: std::cell::RefCell::default(),
            guests,
            take,
            ended: false,
            made: Vec::new(),
        }
    }
}

impl ExportFile for StoredDetail<'_> {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if self.ended {
            return;
        }
        let StoredDetail { take, ended, .. } = self;
        let mut put = |table: StoreTable, cell: StoredCell<'_>| {
            *ended = *ended || !take(table, cell);
        };
        if let Some(line) = self.spans.span(found, self.guests, scene) {
            self.rows
                .span(&line, &mut |cell| put(StoreTable::Spans, cell));
        }
        if let Some(line) = self.exits.exit(found, scene) {
            self.rows
                .exit(&line, &mut |cell| put(StoreTable::Exits, cell));
        }
        if let ExportedThing::Instance(one) = found
            && let Some(paths) = scene.paths
        {
            let describe =
                |names: paths::AccessNamer<'_>| paths.describe(one, scene.machine, names);
            let reported = with_names(scene, &self.devices, describe);
            self.rows
                .instance(&reported, &mut |cell| put(StoreTable::Instances, cell));
        }
    }

    fn retire(&mut self, retired: &RetiredThreads) {
        self.spans.retire(retired);
        self.exits.retire(retired);
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }

    fn has_ended(&self) -> bool {
        self.ended
    }
}
