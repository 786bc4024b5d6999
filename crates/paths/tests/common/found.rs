//! What walks find, in words, to compare them.

use analysis::{
    By, Continuity, Convention, ExitRow, Exits, Info, Irqs, Options, Study, Vcpus, Window,
};

/// A walk of each command that reads exits, vCPUs or interrupts.
pub(crate) fn studies() -> [Study; 5] {
    let exits = |options: Options| Study::default().with(Exits::new(options));
    let by = By {
        vm: false,
        vcpu: true,
        ..By::default()
    };
    [
        exits(Options {
            convention: Convention::Perf,
            ..Options::default()
        }),
        exits(Options {
            by,
            split: true,
            ..Options::default()
        })
        .with(Continuity::new()),
        Study::default()
            .with(Vcpus::new(Window::default()))
            .with(Continuity::new()),
        Study::default().with(Irqs::new()),
        Study::default().with(Info::new()),
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
pub(crate) fn found(study: &Study) -> String {
    let walked = study.walked();
    let exits = study.get::<Exits>();
    // The slot of a thread is nobody's business but the model's.
    let vms = walked.machine.vms();
    let vms = vms.iter().map(|vm| {
        let vcpus: Vec<_> = vm.vcpus.iter().map(|vcpu| (vcpu.id, vcpu.tid)).collect();
        format!("{:?} {:?} {vcpus:?} {:?}", vm.pid, vm.name, vm.guessed)
    });
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        exits.map(|exits| {
            let tables = exits.reports(walked.machine);
            let rows = tables.into_iter().flat_map(|table| table.rows);
            rows.map(|row| row_text(&row)).collect::<Vec<_>>()
        }),
        exits.map(Exits::unpaired),
        study.get::<Continuity>().map(Continuity::report),
        study.get::<Vcpus>().map(|vcpus| vcpus.report(&walked).rows),
        study.get::<Irqs>().map(|irqs| irqs.report(&walked)),
        study.get::<Info>().map(|info| info.report(&walked).events),
        vms.collect::<Vec<_>>(),
    )
}
