//! Colours of boxes, and the marks that say the same without colour.
//!
//! Those of parts are Okabe and Ito's ("Color Universal Design", 2008) or lighter, each of a lightness of its own, so
//! that they can be distinguished in grey too. Those of changes go from blue by grey to orange.

use stacks::FrameOwner;

/// How boxes of a kind look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoxStyle {
    /// The letter that stands for it in the data.
    pub key: char,
    /// Its class.
    pub class: &'static str,
    /// The colour of boxes, `#rrggbb`.
    pub fill: &'static str,
    /// The colour of text on it.
    pub text: &'static str,
    /// What the legend says.
    pub legend: &'static str,
    /// What is said of one box; nothing of changes, which are said in numbers.
    pub word: &'static str,
    /// What it bears in the legend, and where it begins.
    pub mark: &'static str,
}

const fn look(
    key: char,
    class: &'static str,
    fill: &'static str,
    legend: &'static str,
    word: &'static str,
    mark: &'static str,
) -> BoxStyle {
    BoxStyle {
        key,
        class,
        fill,
        text: "#000000",
        legend,
        word,
        mark,
    }
}

/// Boxes that are no code.
const GROUP: BoxStyle = look('t', "group", "#e8e8e8", "thread, CPU or VM", "", "T");
const GUEST: BoxStyle = look('g', "guest", "#f0e442", "guest", "guest", "G");
const KERNEL: BoxStyle = look('k', "kernel", "#e69f00", "host kernel", "host kernel", "K");
const KVM: BoxStyle = look('v', "kvm", "#d55e00", "KVM", "KVM", "V");
const VMM: BoxStyle = look('m', "vmm", "#a3d4f3", "VMM", "VMM", "M");
const USER: BoxStyle = BoxStyle {
    text: "#ffffff",
    ..look('u', "user", "#0072b2", "user space", "user space", "U")
};
/// Code whose owner is not known: other tools do not write it into folded text.
const UNKNOWN: BoxStyle = look('x', "unknown", "#cc79a7", "code", "", "C");
/// Boxes that stand for several.
pub(super) const SMALLER: BoxStyle = look('s', "smaller", "#c8c8c8", "smaller frames", "", "…");

/// All parts, in the order of the legend.
pub(super) const PARTS: [BoxStyle; 8] = [GROUP, GUEST, VMM, USER, KERNEL, KVM, UNKNOWN, SMALLER];

/// Returns how the boxes of a part look.
pub(super) fn of(part: FrameOwner) -> BoxStyle {
    match part {
        FrameOwner::Group => GROUP,
        FrameOwner::Kernel => KERNEL,
        FrameOwner::Kvm => KVM,
        FrameOwner::User => USER,
        FrameOwner::Vmm => VMM,
        FrameOwner::Guest => GUEST,
        FrameOwner::Unknown => UNKNOWN,
    }
}

/// Changes of a share from A to B, the greatest decrease first. What a box weighs after is compared with what it weighs
/// before.
pub(super) const CHANGES: [BoxStyle; 7] = [
    look('a', "less3", "#3c8dc4", "to a third or less", "", "−"),
    look('b', "less2", "#86bce0", "to two thirds or less", "", "−"),
    look('c', "less1", "#c6dff1", "less", "", "−"),
    look(
        'd',
        "same",
        "#ececec",
        "as before, or may be noise",
        "",
        "±",
    ),
    look('e', "more1", "#fddcb5", "more", "", "+"),
    look('f', "more2", "#fbb25e", "1.5 times or more", "", "+"),
    look('g', "more3", "#ee7f0e", "3 times or more", "", "+"),
];

/// Changes of less than this part are no change.
const SAME: f64 = 0.1;

/// Returns how a box looks whose share was one and became another.
pub(super) fn of_change([before, after]: [f64; 2], is_noise: bool) -> BoxStyle {
    let larger = before.max(after);
    let change = match larger > 0.0 {
        true => (after - before) / larger,
        false => 0.0,
    };
    let step = match change.abs() {
        _ if is_noise => 0,
        size if size < SAME => 0,
        // The smaller one is over two thirds, or over one third, of the larger one.
        size if size < 1.0 / 3.0 => 1,
        size if size < 2.0 / 3.0 => 2,
        _ => 3,
    };
    match change < 0.0 {
        true => CHANGES[3 - step],
        false => CHANGES[3 + step],
    }
}

/// Returns the rules of style for all kinds.
pub(super) fn style() -> String {
    let looks = PARTS.iter().chain(&CHANGES);
    let rules = looks.map(|look| {
        let BoxStyle {
            class, fill, text, ..
        } = look;
        let mut rule = format!("svg.flame .{class} rect {{ fill: {fill}; }}\n");
        if *text != "#000000" {
            rule.push_str(&format!(
                "svg.flame .box.{class} text, svg.flame .legend .{class} text.mark {{ fill: {text}; }}\n"
            ));
        }
        rule
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour, as WCAG 2.2 defines it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            match value <= 0.04045 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_can_be_read_on_every_colour() {
        for look in PARTS.iter().chain(&CHANGES) {
            let contrast = contrast(look.fill, look.text);
            assert!(contrast >= 4.5, "{}: {contrast:.2}", look.class);
        }
        // What is found by a search, and what would be too bright in the dark.
        let style = include_str!("flame.css");
        for fill in ["#e58fd0", "#b4b4b4", "#8c8c8c"] {
            assert!(style.contains(fill) && contrast(fill, "#000000") >= 4.5);
        }
    }

    #[test]
    fn parts_differ_without_colour() {
        for (at, one) in PARTS.iter().enumerate() {
            for other in &PARTS[at + 1..] {
                let differ = luminance(one.fill) - luminance(other.fill);
                assert!(differ.abs() > 0.03, "{} and {}", one.class, other.class);
                assert_ne!(one.mark, other.mark);
            }
        }
    }

    /// What somebody without a kind of cones sees (Viénot, Brettel and Mollon 1999, by their matrices for linear RGB).
    fn seen(colour: &str, without_red: bool) -> [f64; 3] {
        let linear = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            value.powf(2.2)
        };
        let [r, g, b] = [linear(1), linear(3), linear(5)];
        let red = match without_red {
            true => 0.11238 * r + 0.88762 * g,
            false => 0.29275 * r + 0.70725 * g,
        };
        let blue = match without_red {
            true => 0.00401 * r - 0.00401 * g + b,
            false => -0.02234 * r + 0.02234 * g + b,
        };
        [red, red, blue]
    }

    #[test]
    fn more_and_less_differ_without_red_or_green() {
        for without_red in [true, false] {
            for step in 1..=3 {
                let less = seen(CHANGES[3 - step].fill, without_red);
                let more = seen(CHANGES[3 + step].fill, without_red);
                let apart: f64 = less.iter().zip(more).map(|(a, b)| (a - b).powi(2)).sum();
                assert!(apart.sqrt() > 0.2, "step {step}: {}", apart.sqrt());
            }
        }
    }

    #[test]
    fn steps_are_what_the_legend_says() {
        for (pair, class) in [
            ([0.3, 0.1], "less3"),
            ([0.3, 0.0], "less3"),
            ([0.3, 0.19], "less2"),
            ([0.3, 0.25], "less1"),
            ([0.30, 0.29], "same"),
            ([0.0, 0.0], "same"),
            ([0.29, 0.30], "same"),
            ([0.25, 0.3], "more1"),
            ([0.1, 0.16], "more2"),
            ([0.1, 0.31], "more3"),
            ([0.0, 0.1], "more3"),
        ] {
            assert_eq!(of_change(pair, false).class, class, "{pair:?}");
            assert_eq!(of_change(pair, true).class, "same");
        }
    }
}
