//! Every event that the reader hands out is counted somewhere, and an analysis that drops a single one is noticed.

use std::path::Path;

use analysis::{
    Analysis, Context, EventAccount, EventDetail, ExitTable, Exits, FilterScope, GuestEvent, Irqs,
    Needs, SchedLatencies, Turn, Vcpus, Virtqueues, WalkState, Window,
};
use doubts::{Concerns, Doubts};
use event::{Data, Event, EventType, Kind, Quality, Side};
use model::{Span, TaskChanges};
use paths::{InstanceFilter, Paths, all_builtin};
use session::{Filters, GuestPairing, Session, SessionOptions};

/// An analysis that drops one event on its way to another: of a kind the one with a number. [`Kind::Other`] stands for
/// all that the other one wants.
#[derive(Debug)]
struct Swallowing<A> {
    inner: A,
    kind: Kind,
    number: Option<u64>,
    seen: u64,
}

impl<A> Swallowing<A> {
    fn new(inner: A, kind: Kind, number: Option<u64>) -> Swallowing<A> {
        Swallowing {
            inner,
            kind,
            number,
            seen: 0,
        }
    }

    /// Counts one more of the kind, and returns whether it is the one that is dropped.
    fn drops(&mut self) -> bool {
        self.seen += 1;
        self.number == Some(self.seen)
    }
}

impl<A: Analysis> Analysis for Swallowing<A> {
    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn turn(&self) -> Turn {
        self.inner.turn()
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        self.inner.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        // What tasks do is taken from their spans.
        let is_of = [event.ty.kind, Kind::Other].contains(&self.kind);
        if is_of && self.kind != Kind::SchedSwitch && self.drops() {
            return;
        }
        self.inner.event(event, data, context);
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, context: &mut Context<'_>) {
        self.inner.guest_event(guest, context);
    }

    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        self.inner.spans(spans, context);
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        let switch = self.kind == Kind::SchedSwitch && changes.switch.is_some();
        if switch && context.chosen.inside && self.drops() {
            return;
        }
        self.inner.task_spans(changes, context);
    }

    fn side(&mut self, side: &Side<'_>) {
        self.inner.side(side);
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.inner.finish(context);
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        self.inner.filter_scope()
    }

    fn concerns(&self) -> Concerns {
        self.inner.concerns()
    }

    fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        self.inner.doubts(walked, doubts);
    }

    fn counted(&self, walked: &WalkState<'_>) -> Vec<EventAccount> {
        self.inner.counted(walked)
    }
}

/// Walks a recording of the corpus for one analysis that may drop an event, and returns what is known of the answer.
fn quality<A: Analysis>(filters: Filters, analysis: A, kind: Kind, number: Option<u64>) -> Quality {
    let options = SessionOptions {
        filters,
        ..SessionOptions::default()
    };
    let session = Session::open(options).expect("a session");
    let file = "../../corpus/vmx/tiny-irqchip/trace.dat";
    let input = session.input(Path::new(file)).expect("the corpus has it");
    let (recording, paired) = (
        input.recording().expect("a recording"),
        GuestPairing::default(),
    );
    let mut question = recording.question(&paired);
    question.add(Swallowing::new(analysis, kind, number));
    question.walk().quality
}

/// Checks that all is counted, and that one event that is dropped is missed, whichever it is.
fn check<A: Analysis>(name: &str, filters: &Filters, kind: Kind, make: impl Fn() -> A) {
    let whole = quality(filters.clone(), make(), kind, None);
    let all = whole.accounted.expect("it accounts for its events");
    assert!(all.read > 10 && all.events == all.read, "{name}: {all:?}");
    assert!(!whole.doubts.has("not-accounted"), "{name}");
    for number in [1, all.read / 2, all.read] {
        let torn = quality(filters.clone(), make(), kind, Some(number));
        let accounted = torn.accounted.expect("it accounts for its events");
        assert_eq!(
            (accounted.events, accounted.read),
            (all.read - 1, all.read),
            "{name}, without {number}"
        );
        assert!(accounted.share() < 1.0, "{name}");
        let said: Vec<String> = torn
            .doubts
            .texts()
            .into_iter()
            .filter(|text| text.starts_with("1 of "))
            .collect();
        assert!(
            torn.doubts.has("not-accounted") && said.len() == 1,
            "{name}: {said:?}"
        );
    }
}

/// One table of exits: the events of each table are accounted for by themselves.
fn exits(table: ExitTable) -> Exits {
    Exits::new(analysis::ExitOptions {
        tables: vec![table],
        ..analysis::ExitOptions::default()
    })
}

#[test]
fn one_event_that_an_analysis_drops_is_missed() {
    let all = Filters::default();
    check("exits", &all, Kind::KvmExit, || exits(ExitTable::Vmexit));
    check("ioport", &all, Kind::KvmPio, || exits(ExitTable::Ioport));
    check("msr", &all, Kind::KvmMsr, || exits(ExitTable::Msr));
    check("vcpus", &all, Kind::KvmExit, || {
        Vcpus::new(Window::default())
    });
    check("sched", &all, Kind::SchedSwitch, SchedLatencies::new);
    check("irqs", &all, Kind::Other, Irqs::new);
    check("virtqueues", &all, Kind::Other, || Virtqueues::new([]));
    check("paths", &all, Kind::Other, || Paths::new(all_builtin()));
}

/// Instances are accounted for by themselves: what began is complete, dropped, not chosen, or was none.
#[test]
fn each_instance_of_a_path_ends_somehow() {
    for (filters, any_left_out) in [
        (Filters::default(), false),
        (
            Filters {
                cpus: Some("0".parse().expect("a list of CPUs")),
                ..Filters::default()
            },
            true,
        ),
    ] {
        let options = SessionOptions {
            filters,
            ..SessionOptions::default()
        };
        let session = Session::open(options).expect("a session");
        for file in [
            "../../corpus/vmx/tiny-irqchip/trace.dat",
            "../../corpus/x86/console-sick/perf.data.zst",
        ] {
            let input = session.input(Path::new(file)).expect("the corpus has it");
            let recording = input.recording().expect("a recording");
            let paired = GuestPairing::default();
            let mut question = recording.question(&paired);
            let mut paths = Paths::new(all_builtin());
            if any_left_out {
                paths.only(InstanceFilter {
                    cpus: Some("0".parse().expect("a list of CPUs")),
                    ..InstanceFilter::default()
                });
            }
            let paths = question.add(paths);
            let answered = question.walk();
            assert!(!answered.quality.doubts.has("not-accounted"), "{file}");
            let account = answered.take(paths).instance_account();
            assert!(account.begun > 0, "{file}");
            assert_eq!(account.begun, account.ended(), "{file}: {account:?}");
            assert!(!any_left_out || account.left_out > 0, "{file}: {account:?}");
        }
    }
}

#[test]
fn behind_filters_as_well() {
    let cpu = Filters {
        cpus: Some("0".parse().expect("a list of CPUs")),
        ..Filters::default()
    };
    check("exits", &cpu, Kind::KvmExit, || exits(ExitTable::Vmexit));
    check("ioport", &cpu, Kind::KvmPio, || exits(ExitTable::Ioport));
    check("sched", &cpu, Kind::SchedSwitch, SchedLatencies::new);
    check("virtqueues", &cpu, Kind::Other, || Virtqueues::new([]));
    check("paths", &cpu, Kind::Other, || Paths::new(all_builtin()));
}
