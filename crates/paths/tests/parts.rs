//! Parts that chains share: what they are put together to, what is refused, and their limits.

use crate::language::{path, says};
use paths::lang;

/// A path that uses a part, with the part's tables and what stands in the use.
fn with_part(part: &str, used: &str) -> String {
    path("", "", &format!("[[step]]\n{used}\n{part}"))
}

#[test]
fn a_part_is_as_if_its_steps_were_written_out() {
    let part = "[[part]]\nname = \"p\"\nwith = { at = \"\", who = \"t\", ends = [] }\n\
                [[part.step]]\nname = \"{at}c\"\nover = \"{ends}\"\n\
                [[part.step.on]]\npart = \"q\"\nsoon = true\nwith = { by = \"{who}\" }\n\
                [[part]]\nname = \"q\"\n[[part.on]]\nevent = \"e\"\njoin = \"thread = {by}\"\n\
                [[part.on]]\nevent = \"f\"\njoin = \"task = {by}\"\n";
    let used = "part = \"p\"\nwith = { at = \"x: \", ends = [\"g of t\", \"h\"] }\n\
                only-after = \"b\"\noptional = true\nover = \"i\"\n\
                [[step.on]]\nevent = \"g\"\njoin = \"cpu = t\"\n";
    let written = "[[step]]\nname = \"x: c\"\noptional = true\nonly-after = \"b\"\nover = [\"g of t\", \"h\", \"i\"]\n\
                   [[step.on]]\nevent = \"e\"\njoin = \"thread = t\"\nsoon = true\n\
                   [[step.on]]\nevent = \"f\"\njoin = \"task = t\"\nsoon = true\n\
                   [[step.on]]\nevent = \"g\"\njoin = \"cpu = t\"\n";
    let written = lang::parse(&path("", "", written)).expect("a path");
    assert_eq!(lang::parse(&with_part(part, used)), Ok(written));
}

#[test]
fn parts_that_are_none() {
    let part = |rest: &str| format!("[[part]]\nname = \"p\"\n{rest}");
    let one = part("[[part.step]]\nname = \"c\"\nevent = \"e\"\njoin = \"thread = {who}\"\n");
    let two = format!("{one}[[part.step]]\nname = \"d\"\nevent = \"e\"\njoin = \"thread = t\"\n");
    let said = "part = \"p\"\nwith = { who = \"t\" }\n";
    assert!(lang::parse(&with_part(&one, said)).is_ok());
    says(
        &with_part(&one, "part = \"q\""),
        &["part \"q\"", "no such part"],
    );
    says(
        &with_part(&one, "part = \"p\""),
        &["part \"p\"", "{who}", "with"],
    );
    says(
        &with_part(&one, "part = \"p\"\nwith = { who = \"t\", what = \"x\" }"),
        &["part \"p\"", "no word {what}"],
    );
    says(
        &with_part(&one, "part = \"p\"\nwith = { who = [\"t\", \"u\"] }"),
        &["{who} is 2 texts"],
    );
    says(
        &with_part(&one, &format!("{said}name = \"c\"")),
        &["name and event"],
    );
    says(
        &with_part(&one, &format!("{said}event = \"c\"")),
        &["name and event"],
    );
    says(
        &with_part(
            &two,
            &format!("{said}[[step.on]]\nevent = \"e\"\njoin = \"thread = t\"\n"),
        ),
        &["several steps"],
    );
    says(&with_part(&part(""), "part = \"p\""), &["has no steps"]);
    let open = part("[[part.step]]\nname = \"{c\"\nevent = \"e\"\njoin = \"thread = t\"\n");
    says(&with_part(&open, "part = \"p\""), &["{c", "no }"]);
    let on = part("[[part.on]]\nevent = \"e\"\njoin = \"thread = t\"\n");
    says(&with_part(&on, "part = \"p\""), &["has no steps"]);
    says(
        &path("", "[[step.on]]\npart = \"p\"", &one),
        &["has no alternatives"],
    );
    says(
        &path("", "[[step.on]]\npart = \"p\"\nevent = \"e\"", &on),
        &["event does not stand beside part"],
    );
    let foo = part("foo = 1\n");
    says(&with_part(&foo, "part = \"p\""), &["unknown field", "foo"]);
}

/// Parts in parts, and words in words, end: neither of them makes more than a path has.
#[test]
fn parts_have_limits() {
    let circle = "[[part]]\nname = \"p\"\n[[part.step]]\npart = \"p\"\n";
    says(&with_part(circle, "part = \"p\""), &["more than 4 deep"]);
    let step = "[[part.step]]\nname = \"c\"\nevent = \"e\"\njoin = \"thread = t\"\n";
    let mut wide = format!("[[part]]\nname = \"p0\"\n{step}{step}");
    for depth in 1..4 {
        let inner = format!("[[part.step]]\npart = \"p{}\"\n", depth - 1);
        wide += &format!("[[part]]\nname = \"p{depth}\"\n{}", inner.repeat(1000));
    }
    says(&with_part(&wide, "part = \"p3\""), &["more than 40 steps"]);
    let mut grown = format!("[[part]]\nname = \"p0\"\n{step}unless = \"{{w}}\"\n");
    for depth in 1..4 {
        let words = vec!["\"{w}\""; 1000].join(", ");
        grown += &format!(
            "[[part]]\nname = \"p{depth}\"\n[[part.step]]\npart = \"p{}\"\nwith = {{ w = [{words}] }}\n",
            depth - 1
        );
    }
    says(
        &with_part(&grown, "part = \"p3\"\nwith = { w = \"x\" }"),
        &["more than 64 texts"],
    );
    let long = format!(
        "[[part]]\nname = \"p\"\n[[part.step]]\nname = \"{}\"\nevent = \"e\"\njoin = \"thread = t\"\n",
        "{w}".repeat(10_000)
    );
    says(
        &with_part(
            &long,
            &format!("part = \"p\"\nwith = {{ w = \"{}\" }}", "x".repeat(10_000)),
        ),
        &["more than 1024 bytes"],
    );
}
