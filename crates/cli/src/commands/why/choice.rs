//! Which events answer why a VM is slow, by what one second of counting showed, and what recording them costs.

use model::State;
use words::share;

use super::survey::HostSurvey;
use crate::commands::record::args::RecordPurpose;

/// Of the time in which vCPUs were neither in their guest nor halted, and of all: from here on it matters which code
/// had it.
const OUTSIDE: f64 = 0.1;
/// The same of a CPU's time that the VMs' other threads had.
const BACK_ENDS: f64 = 0.25;
/// An event with a call chain costs so much as several without.
const CHAIN: f64 = 3.0;

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EventChoice {
    /// What it is to answer.
    pub questions: Vec<RecordPurpose>,
    /// Why so much and no more: sentences.
    pub reasons: Vec<String>,
    /// How many events a second are expected; `None` where nothing was counted.
    pub events_per_s: Option<f64>,
    /// How much of a CPU's time recording them is expected to take: of the CPU of the vCPU that exits most often, or
    /// of all CPUs on average, whichever is more. `None` where that is not known.
    pub cpu_share: Option<f64>,
}

/// What a second of recording is expected to have.
struct ExpectedLoad {
    /// Events of exits, of the scheduler, and of paths beside both.
    exits: f64,
    sched: f64,
    paths: f64,
    /// Events of the vCPU that exits most often.
    of_one: f64,
}

impl ExpectedLoad {
    fn of(survey: &HostSurvey) -> ExpectedLoad {
        let per_s = |count: u64| count as f64 / survey.seconds.max(1e-3);
        let switches = per_s(survey.switches.unwrap_or(0));
        // An exit and its entry, and an event for each access, exit to the VMM and wake-up.
        let exits = 2.0 * per_s(survey.exits)
            + per_s(survey.accesses)
            + per_s(survey.user_exits)
            + 2.0 * per_s(survey.wakeups);
        let each = exits / per_s(survey.exits).max(1.0);
        ExpectedLoad {
            exits,
            // Whoever is switched to was woken: sched_waking, sched_wakeup, sched_switch.
            sched: 3.0 * switches,
            // A CPU that goes idle and comes back, and what an interrupt goes through.
            paths: 2.0 * switches + 4.0 * per_s(survey.wakeups),
            of_one: per_s(survey.most_exits) * each.clamp(2.0, 8.0),
        }
    }
}

/// Chooses. `event_ns` is what an event costs here, where that was measured; recording may take `budget` of a CPU's
/// time.
pub(super) fn choose(
    survey: Option<&HostSurvey>,
    event_ns: Option<u64>,
    budget: f64,
) -> EventChoice {
    use RecordPurpose::{Exits, Paths, Sched, Stacks};

    let Some(survey) = survey else {
        return EventChoice {
            questions: vec![Exits, Sched, Paths],
            reasons: vec!["nothing was counted: what usually answers it is recorded".to_owned()],
            events_per_s: None,
            cpu_share: None,
        };
    };
    let load = ExpectedLoad::of(survey);
    let event_s = event_ns.map(|ns| ns as f64 / 1e9);
    let cpus = f64::from(survey.cpus.max(1));
    let share_of = |all: f64, of_one: f64| {
        let of_one = of_one.max(all / cpus);
        event_s.map(|seconds| of_one * seconds)
    };
    let fits = |share: Option<f64>| share.is_none_or(|share| share <= budget);
    let mut reasons = Vec::new();
    let all = load.exits + load.sched + load.paths;
    let most = share_of(all, load.of_one + load.paths / cpus);
    let without_paths = load.exits + load.sched;
    let (mut questions, events, cpu_share) = if fits(most) {
        (vec![Exits, Sched, Paths], all, most)
    } else if fits(share_of(without_paths, load.of_one)) {
        let share = share_of(without_paths, load.of_one);
        reasons.push(format!(
            "no paths: with them recording would take {} of a CPU",
            share::rough(most.unwrap_or(0.0))
        ));
        (vec![Exits, Sched], without_paths, share)
    } else {
        let share = share_of(load.exits, load.of_one);
        reasons.push(format!(
            "exits alone: with the scheduler's events and paths recording would take {} of a CPU",
            share::rough(most.unwrap_or(0.0))
        ));
        if !fits(share) {
            reasons.push(format!(
                "even so it takes {} of a CPU, more than the budget of {}: exits take longer while they are recorded, \
                 and the report says by how much",
                share::rough(share.unwrap_or(0.0)),
                share::short(budget)
            ));
        }
        (vec![Exits], load.exits, share)
    };
    let chains = event_s.map(|seconds| load.sched * CHAIN * seconds / cpus);
    let room = cpu_share.unwrap_or(0.0) + chains.unwrap_or(0.0) <= budget;
    if let Some(reason) = code_matters(survey) {
        match room {
            true => {
                questions.push(Stacks);
                reasons.push(format!("call chains too: {reason}"));
            }
            false => reasons.push(format!(
                "no call chains, though {reason}: they would take more than the budget"
            )),
        }
    }
    EventChoice {
        questions,
        reasons,
        events_per_s: Some(events),
        cpu_share,
    }
}

/// Returns why it matters which code ran, if it does.
fn code_matters(survey: &HostSurvey) -> Option<String> {
    let times = &survey.times;
    let waited = [State::Halted, State::Unknown].map(|state| times.get(state));
    let busy = times.total().saturating_sub(waited.iter().sum());
    let vmm = times.get(State::User);
    if survey.exits == 0 && busy > 0 {
        return Some("KVM makes no exit events here though vCPUs ran".to_owned());
    }
    let part = |ns: u64, of: u64| ns as f64 / of.max(1) as f64;
    if part(vmm, busy) >= OUTSIDE && part(vmm, times.total()) >= OUTSIDE / 4.0 {
        return Some(format!(
            "vCPUs are in their VMM for {} of the time in which they do not wait",
            share::rough(part(vmm, busy))
        ));
    }
    let back_ends = survey.back_end_ns as f64 / 1e9 / survey.seconds.max(1e-3);
    (back_ends >= BACK_ENDS).then(|| {
        format!(
            "the VMs' other threads have {} of a CPU",
            share::rough(back_ends)
        )
    })
}

#[cfg(test)]
mod tests {
    use model::Times;

    use super::*;

    fn survey(exits: u64, switches: u64, guest: u64, user: u64) -> HostSurvey {
        let mut times = Times::ZERO;
        times.add(State::Guest, guest);
        times.add(State::User, user);
        HostSurvey {
            seconds: 1.0,
            cpus: 4,
            vcpus: 2,
            exits,
            most_exits: exits / 2,
            switches: Some(switches),
            times,
            ..HostSurvey::default()
        }
    }

    fn chosen(survey: &HostSurvey) -> Vec<RecordPurpose> {
        choose(Some(survey), Some(1000), 0.05).questions
    }

    #[test]
    fn a_host_with_few_events_is_recorded_as_a_whole() {
        use RecordPurpose::{Exits, Paths, Sched};
        let quiet = survey(5_000, 4_000, 900_000_000, 1_000_000);
        assert_eq!(chosen(&quiet), [Exits, Sched, Paths]);
        assert_eq!(choose(None, None, 0.05).questions, [Exits, Sched, Paths]);
    }

    #[test]
    fn a_budget_leaves_out_what_costs_most() {
        use RecordPurpose::{Exits, Sched};
        // 3 + 2 events for each of 60000 switches on 4 CPUs: 75 ms of a second with paths, 45 without.
        let busy = survey(1_000, 60_000, 900_000_000, 0);
        assert_eq!(chosen(&busy), [Exits, Sched]);
        let storm = survey(500_000, 200_000, 500_000_000, 0);
        let choice = choose(Some(&storm), Some(1000), 0.05);
        assert_eq!(choice.questions, [Exits]);
        let all = choice.reasons.join(" ");
        assert!(all.contains("more than the budget"), "{all}");
        assert!(choice.cpu_share.is_some_and(|share| share > 0.4));
        // Who does not know what an event costs leaves nothing out.
        assert_eq!(choose(Some(&storm), None, 0.05).questions.len(), 3);
    }

    #[test]
    fn code_is_sampled_where_vmms_have_the_time() {
        let vmm = survey(5_000, 4_000, 500_000_000, 200_000_000);
        assert!(chosen(&vmm).contains(&RecordPurpose::Stacks));
        let mut sends = survey(5_000, 4_000, 900_000_000, 0);
        sends.back_end_ns = 420_014_217;
        let choice = choose(Some(&sends), Some(1000), 0.05);
        let reasons = choice.reasons.join(" ");
        assert!(
            reasons.contains("other threads have 42 % of a CPU"),
            "{reasons}"
        );
        let none = survey(0, 1_000, 0, 0);
        assert!(!chosen(&none).contains(&RecordPurpose::Stacks));
        let mut emulated = survey(0, 1_000, 0, 0);
        emulated.times.add(State::Kernel, 800_000_000);
        assert!(chosen(&emulated).contains(&RecordPurpose::Stacks));
    }
}
