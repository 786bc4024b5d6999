//! The language of path files and of `--from` and `--to`: what it refuses, in which words, and what its conditions
//! match.

use crate::common::Text;
use paths::lang::{self, PairJoin};
use paths::{CompletedInstance, Paths};

/// A path of two steps, with more lines for the first and for the second, and more tables behind.
pub(crate) fn path(first: &str, second: &str, behind: &str) -> String {
    format!(
        "name = \"x\"\n[[step]]\nname = \"a\"\nevent = \"ev_a\"\nbind = \"t = thread\"\n{first}\n\
         [[step]]\nname = \"b\"\nevent = \"ev_b\"\njoin = \"thread = t\"\n{second}\n{behind}\n"
    )
}

/// Why a text is refused.
fn refused(text: &str) -> String {
    match lang::parse(text) {
        Ok(path) => panic!("{text}\nis understood as {path:?}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
pub(crate) fn says(text: &str, words: &[&str]) {
    let error = refused(text);
    for word in words {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
    assert!(error.len() < 500, "{} bytes: {error:.600}", error.len());
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn the_example_is_understood() {
    let path = lang::parse(&path("", "", "")).expect("a path");
    assert_eq!(path.chains.len(), 1);
    assert_eq!(path.chains[0].steps.len(), 2);
}

#[test]
fn unknown_keys_and_types_are_reported_with_their_line() {
    says(
        &path("evnt = 1", "", ""),
        &["unknown field", "evnt", "line 6"],
    );
    says(&path("", "", "colour = 1"), &["unknown field", "colour"]);
    says(
        &path("", "[[step.on]]\nevent = \"x\"\nfoo = 1", ""),
        &["unknown field", "foo"],
    );
    says("name = 5", &["name", "string", "line 1"]);
    says("[[step]]\nname = \"a\"", &["missing field", "name"]);
    says(
        &path("optional = 7", "", ""),
        &["optional = 7", "line 6", "unrecorded"],
    );
    says(
        &path("counts = \"yes\"", "", ""),
        &["line 6", "counts = ", "boolean"],
    );
    says(
        &path("", "where = 5", ""),
        &["line 11", "where = 5", "a text or a list of texts"],
    );
}

#[test]
fn what_is_no_toml_is_refused_briefly() {
    says("", &["name"]);
    says("What is this?", &["line 1"]);
    says("name = \"\\u001b[2J\"\n\u{1b}[31m = 3", &["line 2"]);
    says("\0\0\0", &["line 1"]);
    says(&"x".repeat(1 << 20), &["line 1"]);
    says(&format!("name = \"{}", "y".repeat(1 << 20)), &["line 1"]);
    says(&format!("{} = 1", "z".repeat(100_000)), &["unknown field"]);
    says("x = [1]", &["unknown field"]);
    says(&format!("name = {}", "[".repeat(200_000)), &["line 1"]);
    says(&format!("name = {}", "{a=".repeat(200_000)), &["line 1"]);
    says(&format!("{} = 1", vec!["a"; 100_000].join(".")), &[]);
    says(&format!("[{}]", vec!["a"; 100_000].join(".")), &[]);
}

#[test]
fn names_are_unique() {
    says("name = \" \"\n", &["chain"]);
    let unnamed = path("", "", "").replace("\"x\"", "\"  \"");
    says(&unnamed, &["name is empty"]);
    let same = path("", "", "").replace("name = \"b\"", "name = \"a\"");
    says(&same, &["two steps", "\"a\""]);
    let empty = path("", "", "").replace("name = \"b\"", "name = \" \"");
    says(&empty, &["name", "empty"]);
    let by = path("", "", "").replace("name = \"x\"", "name = \"x\"\nby = \"colour\"");
    says(
        &by,
        &[
            "colour",
            "waker, back-end, access, chain, numa-distance or raiser",
        ],
    );
}

#[test]
fn steps_need_events_and_joins() {
    let no_join = path("", "", "").replace("join = \"thread = t\"", "");
    says(&no_join, &["step \"b\"", "no join", "thread = ROLE"]);
    let differs = path("", "", "").replace("thread = t", "thread != t");
    assert!(lang::parse(&differs).is_ok());
    says(
        &path("", "", "").replace("event = \"ev_b\"", ""),
        &["step \"b\"", "event = ..."],
    );
    says(
        &path("", "", "").replace("\"ev_b\"", "\"\""),
        &["step \"b\"", "names no event"],
    );
    says(
        &path("", "", "").replace("\"ev_b\"", "\"fn:\""),
        &["step \"b\"", "fn:NAME"],
    );
    says(
        &path("", "", "").replace("\"ev_b\"", "\"kvm:\""),
        &["step \"b\"", "names no event"],
    );
    says(
        &path("", "", "").replace("\"ev_b\"", "[]"),
        &["step \"b\"", "event"],
    );
    says(
        &path("", "[[step.on]]\nevent = []\njoin = \"thread = t\"", ""),
        &["step \"b\"", "names no event"],
    );
}

#[test]
fn roles_are_known() {
    says(
        &path("", "", "").replace("thread = t", "thread = who"),
        &["step \"b\"", "\"who\"", "not bound", "bound are: t"],
    );
    says(
        &path("unique = \"who\"", "", ""),
        &["step \"a\"", "\"who\""],
    );
    says(
        &path("recall = \"who\"", "", ""),
        &["step \"a\"", "ROLE by ROLE"],
    );
    says(
        &path("recall = \"who by whom\"", "", ""),
        &["step \"a\"", "whom"],
    );
    says(
        &path("", "", "").replace("\"thread = t\"", "\"thread\""),
        &["ATTRIBUTE = ROLE"],
    );
    says(
        &path("", "", "").replace("\"t = thread\"", "\"t\""),
        &["step \"a\"", "ROLE = ATTRIBUTE"],
    );
    says(
        &path("", "", "").replace("\"t = thread\"", "\" = thread\""),
        &["step \"a\"", "role"],
    );
    says(
        &path("", "", "").replace("\"t = thread\"", "\"t = two words\""),
        &["step \"a\"", "two words", "no name of a field"],
    );
    let many: Vec<String> = (0..17).map(|n| format!("\"r{n} = thread\"")).collect();
    says(
        &path("", "", "").replace("\"t = thread\"", &format!("[{}]", many.join(", "))),
        &["step \"a\"", "r16", "at most 16 roles"],
    );
}

#[test]
fn steps_refer_to_steps() {
    says(
        &path("", "not-after = \"c\"", ""),
        &["step \"b\"", "\"c\"", "no step before it"],
    );
    says(
        &path("", "only-after = \"b\"", ""),
        &["step \"b\"", "\"b\"", "no step before it"],
    );
    says(
        &path(
            "",
            "[[step.on]]\nevent = \"e\"\njoin = \"thread = t\"\ninstead-of = \"c\"",
            "",
        ),
        &["step \"b\"", "instead-of", "\"c\"", "no such step"],
    );
    says(
        &path("", "optional-with = \"c\"", ""),
        &["step \"b\"", "optional-with", "\"c\"", "no such step"],
    );
    says(
        &path("", "yields = \"c\"", ""),
        &["step \"b\"", "yields", "\"c\"", "no such step"],
    );
    // The steps "a" and "b", and the exit that stands before "b".
    says(
        &path("", "from-exit = \"exit\"", ""),
        &["step \"b\"", "from-exit", "first step"],
    );
    says(
        &path("", "several = true\nunique = \"t\"", ""),
        &["step \"b\"", "unique and several"],
    );
    says(
        &path("optional = \"maybe\"", "", ""),
        &["step \"a\"", "maybe", "unrecorded"],
    );
    says(
        &path("optional = true", "optional = true", ""),
        &["every step is optional"],
    );
}

#[test]
fn a_step_is_on_the_host_or_in_a_guest() {
    for on in ["", "machine = \"host\"", "machine = \"guest\""] {
        let path = lang::parse(&path("", on, "")).expect("a path");
        assert_eq!(path.chains[0].steps[1].is_in_guest(), on.contains("guest"));
        // What a recorder opens on the host for it.
        let events: Vec<_> = path.events().map(|(_, name)| name).collect();
        assert_eq!(events.contains(&"ev_b"), !on.contains("guest"));
    }
    let other = "machine = \"guest\"\n[[step.on]]\nmachine = \"host\"\nevent = \"e\"\njoin = \"thread = t\"";
    let path_of_both = lang::parse(&path("", other, "")).expect("a path");
    let alts = &path_of_both.chains[0].steps[1].alts;
    assert_eq!(alts.len(), 2);
    assert!(alts[0].in_guest && !alts[1].in_guest);
    says(
        &path("", "machine = \"moon\"", ""),
        &["step \"b\"", "machine = \"moon\"", "\"host\" or \"guest\""],
    );
}

#[test]
fn there_is_a_limit_to_everything() {
    let step =
        |n: usize| format!("[[step]]\nname = \"s{n}\"\nevent = \"e\"\njoin = \"thread = t\"\n");
    let steps = |count: usize| (0..count).map(step).collect::<String>();
    assert!(lang::parse(&path("", "", &steps(38))).is_ok());
    says(&path("", "", &steps(39)), &["41 steps", "2 to 40"]);
    says(
        "name = \"x\"\n[[step]]\nname = \"a\"\nevent = \"e\"\n",
        &["1 steps", "2 to 40"],
    );
    let on = "[[step.on]]\nevent = \"e\"\njoin = \"thread = t\"\n";
    assert!(lang::parse(&path("", &on.repeat(15), "")).is_ok());
    says(
        &path("", &on.repeat(16), ""),
        &["step \"b\"", "17 alternatives", "16"],
    );
    let chain = "[[chain]]\n[[chain.step]]\nname = \"a\"\nevent = \"e\"\nbind = \"t = thread\"\n\
                 [[chain.step]]\nname = \"b\"\nevent = \"e\"\njoin = \"thread = t\"\n";
    assert!(lang::parse(&format!("name = \"x\"\n{}", chain.repeat(8))).is_ok());
    says(
        &format!("name = \"x\"\n{}", chain.repeat(9)),
        &["9 chains", "1 to 8"],
    );
    says("name = \"x\"\n", &["0 chains"]);
    says(&path("", "", chain), &["of its own and in chains"]);
    let named = chain
        .replace("[[chain]]", "[[chain]]\nname = \"one\"")
        .replace("\"thread = t\"", "\"x\"");
    says(
        &format!("name = \"x\"\n{named}"),
        &["chain \"one\"", "step \"b\""],
    );
}

#[test]
fn conditions_that_are_none() {
    let cond = |text: &str| path("", &format!("where = '''{text}'''"), "");
    says(
        &cond("load"),
        &["step \"b\"", "load", "no condition", "FIELD OP VALUE"],
    );
    says(&cond(""), &["step \"b\"", "no condition"]);
    says(&cond("== 1"), &["step \"b\"", "no name of a field"]);
    says(&cond("load =="), &["step \"b\"", "nothing stands behind"]);
    says(&cond("load < fast"), &["step \"b\"", "fast", "no number"]);
    says(&cond("name == \"open"), &["step \"b\"", "no closing"]);
    says(
        &cond("name == \"a\" b"),
        &["step \"b\"", "something behind"],
    );
    says(
        &cond("load is vcpu"),
        &["step \"b\"", "thread, task, prev and target"],
    );
    says(
        &cond("thread is blue"),
        &["step \"b\"", "vcpu, kworker, vhost"],
    );
    says(&cond("thread is"), &["step \"b\"", "vcpu, kworker, vhost"]);
    says(
        &cond("thread is not"),
        &["step \"b\"", "vcpu, kworker, vhost"],
    );
    says(&cond("level rises fast"), &["step \"b\"", "no condition"]);
    says(&cond("two words == 1"), &["step \"b\"", "two words"]);
    says(&cond("n === 1"), &["step \"b\"", "="]);
    says(&cond("n <> 1"), &["step \"b\"", "> 1", "in quotes"]);
    says(
        &cond("raised == whatever"),
        &["step \"b\"", "ipi, msi, pin, local"],
    );
}

/// Which of the numbered events a condition chooses.
fn chosen(cond: &str, events: &[&str]) -> Vec<usize> {
    let pair = lang::pair(
        "start",
        &format!("ev[{cond}]"),
        &PairJoin::parse("n").expect("a join"),
    );
    let pair = pair.unwrap_or_else(|error| panic!("{error}"));
    let mut text = Text::default();
    for (at, event) in events.iter().enumerate() {
        let us = 10 * at as u64;
        text.event(("task", 5), 1, us, &format!("start n={at}"));
        text.event(("task", 5), 1, us + 1, &format!("ev n={at} {event}"));
    }
    let walked = text.walk(vec![pair]);
    let at = |one: &CompletedInstance| (one.reached[0].time - 10_000_000_000) / 10_000;
    walked
        .instances
        .iter()
        .map(|one| at(one) as usize)
        .collect()
}

#[test]
fn conditions_choose_events() {
    let numbers = [
        "v=0",
        "v=1",
        "v=2",
        "v=-1",
        "v=0x10",
        "w=1",
        "v=one",
        "v=18446744073709551615",
    ];
    for (cond, wanted) in [
        ("v == 1", &[1][..]),
        ("v = 1", &[1]),
        ("v==0x1", &[1]),
        ("v == 16", &[4]),
        ("v != 1", &[0, 2, 3, 4, 6, 7]),
        ("v < 2", &[0, 1]),
        ("v <= 2", &[0, 1, 2]),
        ("v > 1", &[2, 3, 4, 7]),
        ("v >= 16", &[3, 4, 7]),
        ("v == -1", &[3, 7]),
        ("v < 0", &[3, 7]),
        ("v >= 0", &[0, 1, 2, 4]),
        ("v > -2", &[0, 1, 2, 3, 4, 7]),
        ("v == one", &[6]),
        ("v == 'one'", &[6]),
        ("v == \"one\"", &[6]),
        ("v ~ o*", &[6]),
        ("v ~ \"?\"", &[0, 1, 2]),
        // A number is 64 bits without a sign: as a text, -1 is the largest.
        ("v ~ 1*", &[1, 3, 4, 7]),
        ("v >= 1, v <= 2", &[1, 2]),
        ("v >= 1 && v <= 2", &[1, 2]),
        ("nothing == 1", &[]),
        ("thread == 5, v == 2", &[2]),
        ("thread != 5", &[]),
        ("cpu == 1, v == 2", &[2]),
        ("thread is vcpu", &[]),
        ("thread is not vcpu, v == 0", &[0]),
    ] {
        assert_eq!(chosen(cond, &numbers), wanted, "{cond}");
    }
    let names = [
        "comm=a,b pid=1",
        "comm=a b pid=1",
        "comm=\"x\" pid=1",
        "comm=CPU 0/KVM pid=1",
    ];
    for (cond, wanted) in [
        ("comm == 'a,b'", &[0][..]),
        ("comm == \"a,b\", pid == 1", &[0]),
        ("comm == 'a b'", &[1]),
        ("comm ~ \"a*\"", &[0, 1]),
        ("comm ~ 'CPU */KVM'", &[3]),
        ("comm != 'a b', comm != 'a,b'", &[2, 3]),
        ("comm == '\"x\"'", &[2]),
    ] {
        assert_eq!(chosen(cond, &names), wanted, "{cond}");
    }
}

#[test]
fn a_level_rises_once() {
    let pair = lang::pair(
        "start",
        "ev[level rises]",
        &PairJoin::parse("n").expect("a join"),
    )
    .expect("a pair");
    let mut text = Text::default();
    let levels = [(1, 0), (1, 1), (1, 1), (1, 0), (1, 1), (2, 1), (1, 1)];
    for (at, (irq, level)) in levels.iter().enumerate() {
        let us = 10 * at as u64;
        text.event(("task", 5), 1, us, &format!("start n={at}"));
        text.event(
            ("task", 5),
            1,
            us + 1,
            &format!("ev n={at} irq={irq} level={level}"),
        );
    }
    let walked = text.walk(vec![pair]);
    let times: Vec<u64> = walked
        .instances
        .iter()
        .map(|one| one.reached[0].time % 1_000_000 / 10_000)
        .collect();
    assert_eq!(times, [1, 4, 5]);
}

#[test]
fn selectors_that_are_none() {
    let says = |from: &str, to: &str, words: &[&str]| {
        let error = match lang::pair(from, to, &PairJoin::Nearest) {
            Ok(path) => panic!("{from} {to} is understood as {path:?}"),
            Err(error) => error.to_string(),
        };
        for word in words {
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    };
    says("", "b", &["--from", "names no event"]);
    says("a", "", &["--to", "names no event"]);
    says("a[", "b", &["--from a[", "EVENT[COND, COND]"]);
    says("a[x==1", "b", &["--from a[x==1", "no ']'"]);
    says("a[x==1]y", "b", &["--from", "no ']'"]);
    says("a[x]", "b", &["--from a[x]", "no condition"]);
    says("a", "b[x==]", &["--to b[x==]", "nothing stands behind"]);
    says("a", "b[x=='1]", &["--to", "no closing"]);
    says("fn:", "b", &["--from fn:", "fn:NAME"]);
    for (join, good) in [
        ("thread", true),
        ("vcpu", true),
        ("cpu", true),
        ("any", true),
        ("skb", true),
        (" len ", true),
        ("", false),
        ("two words", false),
        ("a,b", false),
        ("\u{1b}[2J", false),
    ] {
        let parsed = PairJoin::parse(join);
        assert_eq!(parsed.is_ok(), good, "{join:?}");
        if let Err(error) = parsed {
            assert!(error.to_string().contains("no name of a field"), "{error}");
        }
    }
}

/// Names with wildcards, of a subsystem, and of functions by whatever a probe or tracer calls them.
#[test]
fn events_are_found_by_name() {
    let count = |pattern: &str, events: &[&str]| {
        let pair = lang::pair("start", pattern, &PairJoin::Nearest).expect("a pair");
        let mut text = Text::default();
        for (at, event) in events.iter().enumerate() {
            text.event(("task", 5), 1, 10 * at as u64, "start");
            text.event(("task", 5), 1, 10 * at as u64 + 1, event);
        }
        let mut paths = Paths::new(vec![pair]);
        paths.list();
        text.walk_with(paths).instances.len()
    };
    let events = ["kvm_pio x", "kvm_mmio y", "kvm_mmio_2 z", "other"];
    assert_eq!(count("kvm_*", &events), 3);
    assert_eq!(count("kvm_?io", &events), 1);
    assert_eq!(
        count("kvm:kvm_pio", &events),
        1,
        "ftrace's text has no subsystems"
    );
    assert_eq!(count("kvm_mmio", &events), 1);
    let calls = [
        "function eventfd_signal <-- vhost_signal",
        "function eventfd_signal_mask <-- x",
        "eventfd_signal (ffffffff81) ctx=1",
        "eventfd_signal_2 (ffffffff81) ctx=1",
        "kprobe_eventfd_signal (ffffffff81)",
        "eventfd_signal__return (ffffffff81 <- ffffffff82)",
        "eventfd_signals (ffffffff81)",
    ];
    assert_eq!(count("fn:eventfd_signal", &calls), 4);
    let ends = [
        "function netdev_send <-- x",
        "netdev_send (ffffffff81)",
        "netdev_send__return (ffffffff81 <- ffffffff82)",
        "netdev_send__return_1 (ffffffff81 <- ffffffff82)",
        "r_netdev_send_0 (ffffffff81 <- ffffffff82)",
        "uretprobe_netdev_send (ffffffff81 <- ffffffff82)",
        "netdev_send_wait__return (ffffffff81 <- ffffffff82)",
        "ur_netdev_sends (ffffffff81 <- ffffffff82)",
    ];
    assert_eq!(count("fn:netdev_send%return", &ends), 4);
    assert_eq!(count("fn:netdev_send", &ends), 2);
}

#[test]
fn probes_at_a_functions_end_are_known_by_their_format() {
    // perf before Linux 4.16 gave them the function's name alone.
    let matches = |pattern: &str, at_return| {
        let pattern = lang::EventPattern::parse(pattern).expect("a pattern");
        pattern.matches("probe_ovs", "netdev_send", at_return)
    };
    assert!(matches("fn:netdev_send", None) && matches("fn:netdev_send", Some(false)));
    assert!(!matches("fn:netdev_send", Some(true)));
    assert!(matches("fn:netdev_send%return", Some(true)));
    assert!(!matches("fn:netdev_send%return", None));
    assert!(lang::EventPattern::parse("fn:%return").is_err());
}
