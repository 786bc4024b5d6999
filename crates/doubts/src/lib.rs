/*!
What a reader of a number has to know before it is believed.

A [`Doubt`] is a [`DoubtKind`] (one of the list in `list.rs`, which has its id, severity, what it concerns and its one
wording) and a [`DoubtScope`]: the recording, threads, CPUs or span of time that it is about. Readers, the machine and
analyses raise doubts; the walk collects them ([`Doubts`]); every command prints those that touch what it shows
([`Doubts::touching`]), in every format.

```
use doubts::{Concern, Concerns, Doubt, DoubtKind, Doubts, AnswerScope};

let mut doubts = Doubts::default();
doubts.raise(DoubtKind::ClockTicks);
doubts.raise(Doubt::from(DoubtKind::CpuNotRecorded { cpu: 3 }).on_cpu(3));
let exits = AnswerScope::of(Concerns::of(&[Concern::Exits]));
assert_eq!(doubts.touching(&exits).ids(), ["clock-ticks"]);
```

This crate does no I/O and knows no container, analysis or command.
*/
#![forbid(unsafe_code)]

mod concern;
mod doubt;
mod list;
mod raised;
mod scope;

#[doc = include_str!("../DOUBTS.md")]
pub mod reference {}

pub use concern::{Concern, Concerns, DoubtSeverity};
pub use doubt::Doubt;
pub use list::{DOUBT_LIST, DoubtDescription, DoubtKind};
pub use raised::{AnswerScope, Doubts};
pub use scope::DoubtScope;
