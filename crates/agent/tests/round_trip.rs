//! What happens when both sides are as they should be, or fail in good faith.

use std::thread::sleep;
use std::time::Duration;

use agent::{
    AgentError, CPU, ClockSample, ClockSamples, Connection, ConnectionOutcome, EndReason, IO,
    Limits, Link, Start,
};

use crate::support::{Agent, Fake, TOKEN, impatient, limits, token};

pub(crate) const START: Start = Start {
    questions: CPU | IO,
    time: Duration::from_secs(20),
    size: 300_000,
    host: 42,
};

#[test]
fn a_recording_is_made_and_fetched() {
    let (agent, host) = Agent::start(Fake::default(), limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    let started = host.start(&START).expect("it records");
    assert_eq!((started.own, started.name.as_str()), (77, "guest-a"));
    assert_eq!((started.time, started.size), (START.time, START.size));
    let mut time = 5_000_000;
    let mut samples = Vec::new();
    for _ in 0..10 {
        let now = || {
            time += 70;
            Some(time)
        };
        samples.extend(host.clock(now).expect("an answer"));
    }
    assert_eq!(samples.len(), 10);
    let first = samples[0];
    assert_eq!(
        (first.host_ns, first.guest_ns, first.round_ns),
        (5_000_105, 1000, 70)
    );
    let clocks = ClockSamples {
        begin: ClockSample::best(&samples),
        end: None,
    };
    let stopped = host.stop(&clocks).expect("it ends");
    assert!(stopped.ended != EndReason::Failed, "{stopped:?}");
    assert_eq!((stopped.events, stopped.lost), (5, Some(1)));
    let mut file = Vec::new();
    host.fetch(&stopped, &mut file).expect("it is sent");
    host.done().expect("it is heard");
    drop(host);
    let (machine, ended) = agent.end();
    assert!(
        matches!(ended, Ok(ConnectionOutcome::Fetched(_))),
        "{ended:?}"
    );
    assert_eq!(machine.asked, Some(START));
    assert_eq!(file, machine.bytes);
    assert_eq!(file.len() as u64, stopped.length);
    assert_eq!(
        (machine.started, machine.stopped, machine.fetched),
        (1, 1, 1)
    );
    assert_eq!(machine.clocks, [clocks]);
}

#[test]
fn an_agents_bounds_hold_whatever_a_host_asks_for() {
    let allowed = Limits {
        time: Duration::from_millis(30),
        size: 200_000,
        ..limits()
    };
    for (size, time, ended) in [
        (u64::MAX, Duration::from_millis(u64::MAX / 2), None),
        (u64::MAX, Duration::ZERO, Some(EndReason::Time)),
        (10_000, Duration::from_secs(10), None),
    ] {
        let (agent, host) = Agent::start(Fake::default(), allowed);
        let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
        let started = host
            .start(&Start {
                size,
                time,
                ..START
            })
            .expect("it records");
        assert_eq!(started.time, time.min(allowed.time));
        assert_eq!(started.size, size.min(allowed.size));
        // Longer than it may record. A host that still asks for the time is there.
        for _ in 0..6 {
            sleep(Duration::from_millis(20));
            host.clock(|| Some(1)).expect("an answer");
        }
        let stopped = host.stop(&ClockSamples::default()).expect("it ends");
        assert!(
            matches!(stopped.ended, EndReason::Time | EndReason::Size),
            "{stopped:?}"
        );
        assert!(
            ended.is_none_or(|ended| ended == stopped.ended),
            "{stopped:?}"
        );
        assert!(stopped.length <= started.size, "{stopped:?}");
        let mut file = Vec::new();
        host.fetch(&stopped, &mut file).expect("it is sent");
        host.done().expect("it is heard");
        let (machine, _) = agent.end();
        assert_eq!(machine.bytes, file);
    }
}

#[test]
fn what_an_agent_cannot_do_is_said() {
    let refusing = Fake {
        refuses: Some("no room in /var".to_owned()),
        ..Fake::default()
    };
    let (agent, host) = Agent::start(refusing, limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    let error = host.start(&START).expect_err("it refuses");
    assert!(
        matches!(&error, AgentError::Refused(why) if why == "no room in /var"),
        "{error}"
    );
    let (machine, _) = agent.end();
    assert_eq!(
        (machine.stopped, machine.clocks.len()),
        (0, 0),
        "nothing was begun"
    );

    let failing = Fake {
        fails_at: Some(30_000),
        ..Fake::default()
    };
    let (agent, host) = Agent::start(failing, limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    sleep(Duration::from_millis(50));
    let stopped = host.stop(&ClockSamples::default()).expect("it has ended");
    assert_eq!(
        (stopped.ended, stopped.why.as_str()),
        (EndReason::Failed, "no room is left")
    );
    let mut file = Vec::new();
    host.fetch(&stopped, &mut file).expect("what there is");
    let (machine, _) = agent.end();
    assert_eq!((file.len(), machine.stopped), (30_000, 1));
}

#[test]
fn a_file_that_is_cut_while_it_is_sent_is_not_taken_for_whole() {
    let cut = Fake {
        cut_at: Some(5000),
        ..Fake::default()
    };
    let (agent, host) = Agent::start(cut, limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    sleep(Duration::from_millis(20));
    let stopped = host.stop(&ClockSamples::default()).expect("it ends");
    let error = host
        .fetch(&stopped, &mut Vec::new())
        .expect_err("it is cut");
    assert!(
        error.to_string().contains("cut while it was sent"),
        "{error}"
    );
    let (machine, ended) = agent.end();
    assert!(ended.is_err());
    assert_eq!(machine.fetched, 0);
}

#[test]
fn a_host_that_is_gone_ends_the_recording() {
    let (agent, host) = Agent::start(Fake::default(), limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    drop(host);
    let (machine, ended) = agent.end();
    let (error, recorded) = ended.expect_err("nobody is there");
    assert!(matches!(error, AgentError::Closed), "{error}");
    assert!(recorded.is_some(), "its file is whole");
    assert_eq!(
        (machine.stopped, machine.clocks.len(), machine.fetched),
        (1, 1, 0)
    );

    // One that says nothing any more is taken to be gone.
    let (agent, host) = Agent::start(Fake::default(), impatient());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    let (machine, ended) = agent.end();
    let (error, _) = ended.expect_err("it says nothing");
    assert!(matches!(error, AgentError::TimedOut), "{error}");
    assert_eq!((machine.stopped, machine.clocks.len()), (1, 1));
    drop(host);
}

#[test]
fn an_agent_that_is_asked_to_end_says_so_and_keeps_its_file() {
    let (agent, host) = Agent::start(Fake::default(), limits());
    let mut host = Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token");
    host.start(&START).expect("it records");
    agent.tell_to_stop();
    let (machine, ended) = agent.end();
    assert!(ended.is_err());
    assert_eq!(
        (machine.stopped, machine.clocks.len(), machine.fetched),
        (1, 1, 0)
    );
    let error = host
        .stop(&ClockSamples::default())
        .expect_err("it has ended");
    assert!(
        error.to_string().contains("asked to end") || matches!(error, AgentError::Closed),
        "{error}"
    );
}

#[test]
fn a_host_that_only_tries_its_token_has_nothing_recorded() {
    let (agent, host) = Agent::start(Fake::default(), limits());
    drop(Connection::over(Link::Tcp(host), &token(TOKEN)).expect("the same token"));
    let (machine, ended) = agent.end();
    assert!(matches!(ended, Ok(ConnectionOutcome::Nothing)), "{ended:?}");
    assert_eq!(machine.started, 0);
}
