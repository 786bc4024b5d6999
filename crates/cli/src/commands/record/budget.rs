//! What recording would take of a CPU's time, by a moment of it, and what is left out where that is too much.

use std::time::Duration;

use anyhow::Result;
use record::cost::EventCosts;
use record::{OpenedEvents, Question, RecordSummary};
use words::{duration, share};

/// How long is tried.
const TIME: Duration = Duration::from_millis(100);
/// Events that are named, those that cost most first.
const NAMED: usize = 3;

/// A moment of recording whose records are thrown away.
pub(super) struct RecordingTrial {
    cost: EventCosts,
    summary: RecordSummary,
    seconds: f64,
}

impl RecordingTrial {
    /// Records for a moment.
    pub(super) fn run(opened: OpenedEvents, cost: EventCosts) -> Result<RecordingTrial> {
        let (summary, time) = opened.try_for(TIME)?;
        Ok(RecordingTrial {
            cost,
            summary,
            seconds: time.as_secs_f64(),
        })
    }

    /// Returns the CPU where recording takes most, and the part of its time that it takes.
    fn most(&self) -> (u32, f64) {
        let by_cpu = self.cost.by_cpu(&self.summary).into_iter();
        let most = by_cpu.max_by_key(|(_, (_, ns))| *ns);
        let (cpu, ns) = most.map_or((0, 0), |(cpu, (_, ns))| (cpu, ns));
        (cpu, ns as f64 / 1e9 / self.seconds.max(1e-3))
    }

    /// Returns that part.
    pub(super) fn share(&self) -> f64 {
        self.most().1
    }

    /// Names the events that cost that CPU most.
    fn dearest(&self) -> String {
        let (cpu, _) = self.most();
        let events = self.summary.events.iter().filter(|one| !one.sampled);
        let mut costs: Vec<(u64, String)> = events
            .filter_map(|one| {
                let here = one.by_cpu.iter().find(|(of, _)| *of == cpu)?;
                let each = self.cost.of(one);
                let rate = words::large(here.1 as f64 / self.seconds.max(1e-3));
                let text = format!("{} {rate}/s at {}", one.name, duration::human(each));
                Some((here.1.saturating_mul(each), text))
            })
            .filter(|(cost, _)| *cost > 0)
            .collect();
        costs.sort_by(|a, b| b.cmp(a));
        let names: Vec<String> = costs
            .into_iter()
            .take(NAMED)
            .map(|(_, text)| text)
            .collect();
        names.join(", ")
    }

    /// Says what is left out.
    pub(super) fn left_out(&self, question: Question, budget: f64) -> String {
        let (cpu, taken) = self.most();
        format!(
            "{}: recording would take {} of CPU {cpu}'s time, and --budget is {} ({})",
            name(question),
            share::rough(taken),
            share::short(budget),
            self.dearest()
        )
    }

    /// Says that nothing is recorded, and what to do.
    pub(super) fn refusal(&self, budget: f64) -> String {
        let (cpu, taken) = self.most();
        format!(
            "recording would take {} of CPU {cpu}'s time, more than --budget {}: {}; have the kernel filter these \
             events (-e 'EVENT/FILTER/'), record one VM (--vm) or other CPUs (-C), or give a larger --budget",
            share::rough(taken),
            share::short(budget),
            self.dearest()
        )
    }
}

/// Takes one of several questions away, the one that can be missed first. Returns it; `None` where one alone is left.
pub(super) fn leave_out(asked: &mut Vec<Question>) -> Option<Question> {
    const ORDER: [Question; 5] = [
        Question::GuestVirtqueues,
        Question::Virtqueues,
        Question::Stacks,
        Question::Paths,
        Question::Sched,
    ];
    if asked.len() < 2 {
        return None;
    }
    let first = ORDER.into_iter().find(|one| asked.contains(one))?;
    asked.retain(|one| *one != first);
    Some(first)
}

fn name(question: Question) -> &'static str {
    match question {
        Question::Stacks => "stacks",
        Question::Paths => "paths",
        Question::Sched => "sched",
        Question::Virtqueues => "virtqueues",
        Question::GuestVirtqueues => "virtqueues in this guest",
        _ => "exits",
    }
}

#[cfg(test)]
mod tests {
    use record::RecordedCount;

    use super::*;

    #[test]
    fn what_can_be_missed_first_is_left_out_first() {
        let mut asked = Question::ALL.to_vec();
        let mut left_out = Vec::new();
        while let Some(one) = leave_out(&mut asked) {
            left_out.push(one);
        }
        assert_eq!(
            left_out,
            [Question::Stacks, Question::Paths, Question::Sched]
        );
        assert_eq!(asked, [Question::Exits]);
        let mut alone = vec![Question::Sched];
        assert_eq!(leave_out(&mut alone), None);
        assert_eq!(alone, [Question::Sched]);
    }

    #[test]
    fn the_dearest_events_of_the_busiest_cpu_are_named() {
        let event = |name: &str, on: [u64; 2], chain| RecordedCount {
            name: name.to_owned(),
            chain,
            count: on.iter().sum(),
            by_cpu: vec![(0, on[0]), (1, on[1])],
            ..RecordedCount::default()
        };
        let trial = RecordingTrial {
            cost: EventCosts {
                event_ns: 1_000,
                chain_ns: Some(3_000),
                ..EventCosts::default()
            },
            summary: RecordSummary {
                events: vec![
                    event("kvm:kvm_exit", [100, 5_000], false),
                    event("sched:sched_switch", [20, 2_000], true),
                    event("kvm:kvm_msr", [0, 0], false),
                ],
                ..RecordSummary::default()
            },
            seconds: 0.1,
        };
        // 5 ms and 6 ms of 100.
        assert!((trial.share() - 0.11).abs() < 1e-9, "{}", trial.share());
        let text = trial.refusal(0.05);
        assert!(text.contains("11 % of CPU 1's time"), "{text}");
        let switch = text.find("sched:sched_switch").expect("it is named");
        assert!(switch < text.find("kvm:kvm_exit").expect("it is named"));
        assert!(!text.contains("kvm_msr"), "{text}");
    }
}
