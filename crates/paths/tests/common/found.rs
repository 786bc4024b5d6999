//! What walks find, in words, to compare them.

use std::ops::ControlFlow;

use analysis::{
    Continuity, Convention, ExitOptions, ExitRow, Exits, Irqs, RecordingContents, RowSplit,
    SharedAnalysis, Study, Vcpus, Window,
};
use event::{Event, EventOrder, EventType, Side, Sink};

/// A study, and the analyses that it has.
#[derive(Default)]
pub(crate) struct AskedStudy {
    study: Study,
    exits: Option<SharedAnalysis<Exits>>,
    continuity: Option<SharedAnalysis<Continuity>>,
    vcpus: Option<SharedAnalysis<Vcpus>>,
    irqs: Option<SharedAnalysis<Irqs>>,
    info: Option<SharedAnalysis<RecordingContents>>,
}

impl AskedStudy {
    fn of(ask: impl FnOnce(&mut AskedStudy)) -> AskedStudy {
        let mut asked = AskedStudy::default();
        ask(&mut asked);
        asked
    }

    /// Ends its walk.
    pub(crate) fn finish(&mut self) {
        self.study.finish();
    }
}

impl Sink for AskedStudy {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn order(&self, ty: &EventType<'_>) -> EventOrder {
        self.study.order(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.study.event(event)
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }
}

/// A walk of each command that reads exits, vCPUs or interrupts.
pub(crate) fn studies() -> [AskedStudy; 5] {
    let perf = ExitOptions {
        convention: Convention::Perf,
        ..ExitOptions::default()
    };
    let by_vcpu = ExitOptions {
        by: RowSplit {
            vm: false,
            vcpu: true,
            ..RowSplit::default()
        },
        split: true,
        ..ExitOptions::default()
    };
    [
        AskedStudy::of(|asked| asked.exits = Some(asked.study.share(Exits::new(perf)))),
        AskedStudy::of(|asked| {
            asked.exits = Some(asked.study.share(Exits::new(by_vcpu)));
            asked.continuity = Some(asked.study.share(Continuity::new()));
        }),
        AskedStudy::of(|asked| {
            asked.vcpus = Some(asked.study.share(Vcpus::new(Window::default())));
            asked.continuity = Some(asked.study.share(Continuity::new()));
        }),
        AskedStudy::of(|asked| asked.irqs = Some(asked.study.share(Irqs::new()))),
        AskedStudy::of(|asked| asked.info = Some(asked.study.share(RecordingContents::new()))),
    ]
}

/// What a row says; its durations are kept in the order in which they came, which says nothing.
fn row_text(row: &ExitRow) -> String {
    let stats = &row.stats;
    format!(
        "{} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {:?}",
        row.key,
        row.vcpu,
        stats.count(),
        stats.total(),
        (stats.min(), stats.max(), stats.relative_error()),
        [0.5, 0.9, 0.99].map(|percent| stats.percentile(percent)),
        row.times,
        row.user_count,
        row.whole,
        row.vm_pid,
    )
}

/// All that a study found, in words.
pub(crate) fn found(asked: &AskedStudy) -> String {
    let walked = asked.study.walked();
    let exits = asked.exits.as_ref().map(SharedAnalysis::get);
    // The slot of a thread is nobody's business but the model's.
    let vms = walked.machine.vms();
    let vms = vms.iter().map(|vm| {
        let vcpus: Vec<_> = vm.vcpus.iter().map(|vcpu| (vcpu.id, vcpu.tid)).collect();
        format!("{:?} {:?} {vcpus:?} {:?}", vm.pid, vm.name, vm.guessed)
    });
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        exits.as_ref().map(|exits| {
            let tables = exits.reports(walked.machine);
            let rows = tables.into_iter().flat_map(|table| table.rows);
            rows.map(|row| row_text(&row)).collect::<Vec<_>>()
        }),
        exits.as_ref().map(|exits| exits.unpaired()),
        asked.continuity.as_ref().map(|one| one.get().report()),
        asked
            .vcpus
            .as_ref()
            .map(|one| one.get().clone().report(&walked).rows),
        asked.irqs.as_ref().map(|one| one.get().report(&walked)),
        asked
            .info
            .as_ref()
            .map(|one| one.get().report(&walked).events),
        vms.collect::<Vec<_>>(),
    )
}
