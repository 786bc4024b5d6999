//! No stage is longer than what bounds it: an instance of a built-in path ends where its vCPU goes on, over every
//! recording of the corpus. Random streams are asked the same in `crates/paths/tests/anything`.

#[path = "../common/stages.rs"]
mod stages;

use std::ops::ControlFlow;

use analysis::{SharedAnalysis, Study};
use event::{Event, EventType, Side, Sink};
use fixtures::{Failures, cases, note};
use paths::{CompletedInstance, Paths};
use source::{ReaderOptions, RecordingBytes};
use stages::{Log, wrong};

struct Watching {
    study: Study,
    paths: SharedAnalysis<Paths>,
    log: Log,
    instances: Vec<CompletedInstance>,
}

impl Sink for Watching {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.log.take(event, &event.data());
        let flow = self.study.event(event);
        self.instances.extend(self.paths.get_mut().take_listed());
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.log.side(side);
        self.study.side(side);
    }
}

#[test]
fn instances_end_where_their_vcpu_goes_on() {
    let mut failures = Failures::default();
    let mut checked = 0;
    for case in cases() {
        // Millions of events of the same kinds as others.
        if case.name.starts_with("large/") {
            continue;
        }
        let Ok(recording) = RecordingBytes::open(&case.path) else {
            continue;
        };
        let Ok(reader) = recording.reader(ReaderOptions::default()) else {
            continue;
        };
        let mut all = paths::all_builtin();
        let on_request = paths::ON_REQUEST.iter();
        all.extend(on_request.filter_map(|(name, _)| paths::builtin(name)));
        let mut paths = Paths::new(all);
        paths.list();
        let mut study = Study::default();
        let mut sink = Watching {
            paths: study.share(paths),
            study,
            log: Log::default(),
            instances: Vec::new(),
        };
        let _ = reader.walk(&mut sink);
        sink.study.finish();
        sink.instances.extend(sink.paths.get_mut().take_listed());
        let paths = &*sink.paths.get();
        let machine = sink.study.walked().machine;
        let mut wrongs = 0;
        for one in &sink.instances {
            let found = wrong(&sink.log, one, paths, machine, true);
            checked += 1;
            failures.check(found.is_empty(), || format!("{}: {found:?}", case.name));
            wrongs += usize::from(!found.is_empty());
        }
        note(&format!(
            "{}: {} instances, {wrongs} wrong",
            case.name,
            sink.instances.len()
        ));
    }
    assert!(checked > 5_000, "{checked} instances");
    failures.finish(5_000);
}
