//! Which part of the inputs a doubt is about, and which part an answer shows.

use crate::{Concerns, Doubt};

/// The part of the inputs that a doubt is about. What is not said is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoubtScope {
    /// The input, where a command reads several.
    pub input: Option<String>,
    /// The number of the machine whose recording it is about, of several that are walked together: 0 is the host. Who
    /// knows the machines' inputs names them in its place.
    pub machine: u16,
    /// Threads, such as the vCPUs of a VM; none means all.
    pub threads: Vec<i32>,
    /// CPUs; none means all.
    pub cpus: Vec<u32>,
    /// From when to when, on the recording's clock.
    pub span: Option<(u64, u64)>,
}

/// What an answer shows: a doubt about something else does not stand in it.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The kinds of numbers.
    pub concerns: Concerns,
    /// The threads that filters choose (`--vm`, `--vcpu`, `--pid`); `None` where they choose none.
    pub threads: Option<Vec<i32>>,
    /// The CPUs that are chosen (`--cpu`), as ranges from the first to the last; `None` where none are.
    pub cpus: Option<Vec<(u32, u32)>>,
    /// The time that is chosen (`--time`), on the recording's clock.
    pub time: Option<(u64, u64)>,
}

impl Shown {
    /// Returns an answer of these kinds of numbers, about all of the inputs.
    pub fn of(concerns: Concerns) -> Shown {
        Shown {
            concerns,
            ..Shown::default()
        }
    }

    /// Returns whether a doubt touches the answer.
    pub fn is_touched(&self, doubt: &Doubt) -> bool {
        let scope = &doubt.scope;
        let threads = match &self.threads {
            Some(chosen) if !scope.threads.is_empty() => {
                scope.threads.iter().any(|tid| chosen.contains(tid))
            }
            _ => true,
        };
        let cpus = match &self.cpus {
            Some(chosen) if !scope.cpus.is_empty() => {
                let has = |cpu: &u32| {
                    chosen
                        .iter()
                        .any(|(first, last)| (first..=last).contains(&cpu))
                };
                scope.cpus.iter().any(has)
            }
            _ => true,
        };
        let time = match (self.time, scope.span) {
            (Some((from, to)), Some((start, end))) => start <= to && end >= from,
            _ => true,
        };
        doubt.concerns().touches(self.concerns) && threads && cpus && time
    }
}

#[cfg(test)]
mod tests {
    use crate::{Concern, Concerns, Doubt, DoubtKind, Doubts, Shown};

    fn shown() -> Shown {
        Shown::of(Concerns::of(&[Concern::Exits]))
    }

    #[test]
    fn a_doubt_about_another_vm_cpu_or_span_does_not_touch() {
        let guessed = DoubtKind::VmsGuessed {
            vms: "{7}".to_owned(),
        };
        let cut = || Doubt::from(DoubtKind::CutUneven);
        let all = Shown {
            concerns: Concerns::everything(),
            threads: Some(vec![7]),
            cpus: Some(vec![(0, 3)]),
            time: Some((10, 20)),
        };
        assert!(all.is_touched(&Doubt::from(guessed.clone()).of_threads([7])));
        assert!(!all.is_touched(&Doubt::from(guessed).of_threads([8])));
        assert!(all.is_touched(&cut().on_cpu(3)) && !all.is_touched(&cut().on_cpu(4)));
        assert!(all.is_touched(&cut().within(20, 30)) && !all.is_touched(&cut().within(21, 30)));
    }

    #[test]
    fn a_doubt_stands_where_its_concern_is_shown() {
        let mut doubts = Doubts::default();
        doubts.raise(DoubtKind::CutUneven);
        doubts.raise(DoubtKind::CutUneven);
        doubts.raise(DoubtKind::NoWakeups);
        assert_eq!(doubts.len(), 2);
        assert_eq!(doubts.touching(&shown()).ids(), ["cut-uneven"]);
    }
}
