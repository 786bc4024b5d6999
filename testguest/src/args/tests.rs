//! What the command line becomes.

use super::*;

fn plan(words: &[&str]) -> Result<Plan> {
    PlanArgs::try_parse_from([&["testguest"], words].concat())?.plan()
}

#[test]
fn each_operation_has_an_option_of_its_name() {
    for operation in Operation::ALL.into_iter().filter(|it| is_operation(*it)) {
        let option = format!("--{}", operation.name());
        let plan = plan(&[&option, "3", "--rounds", "5", "--vcpus", "2"]).expect("a good line");
        for other in Operation::ALL {
            let expected = if other == operation { 30 } else { 0 };
            assert_eq!(plan.in_all(other), expected, "{option}");
        }
    }
}

#[test]
fn a_rate_is_a_period() {
    let period = |rate| plan(&["--rate", rate]).map(|plan| plan.period);
    let quarter = period("4").expect("a good rate");
    assert_eq!(quarter, Some(Duration::from_millis(250)));
    for wrong in ["0", "NaN", "1e-300"] {
        assert!(period(wrong).is_err(), "{wrong}");
    }
    assert!(plan(&["--rate=-1"]).is_err());
}

#[test]
fn what_cannot_be_done_is_refused() {
    for wrong in [
        &["--slow-irqfd", "5"][..],
        &["--vcpus", "0"],
        &["--vcpus", "65"],
        &["--rounds", "0"],
        &["--irqfd-pin", "1", "--vcpus", "25"],
    ] {
        assert!(plan(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn only_an_irqfd_makes_an_irqchip() {
    let plan = plan(&["--hlt", "5", "--mmio-read", "5"]).expect("a good line");
    assert!(!plan.has_irqchip());
}
