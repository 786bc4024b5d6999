//! Time by state as stacked bars.

use std::fmt::Write;

use model::{State, Times};
use render::html::escape;
use words::share;

use crate::out::cut;

/// How a state looks. Letters and patterns stand beside colours, for those who do not see these, and for print.
struct BarStyle {
    state: State,
    class: &'static str,
    letter: char,
    label: &'static str,
    /// The same where there is little room.
    short: &'static str,
    pattern: Option<&'static str>,
}

const fn look(
    state: State,
    class: &'static str,
    letter: char,
    (label, short): (&'static str, &'static str),
    pattern: Option<&'static str>,
) -> BarStyle {
    BarStyle {
        state,
        class,
        letter,
        label,
        short,
        pattern,
    }
}

/// All states, in the order in which they stand in a bar.
const LOOKS: [BarStyle; State::COUNT] = [
    look(
        State::Guest,
        "s-guest",
        'G',
        ("in the guest", "guest"),
        None,
    ),
    look(State::Kernel, "s-kernel", 'K', ("in KVM", "KVM"), None),
    look(
        State::KernelBlocked,
        "s-kernel-blocked",
        'k',
        ("asleep in KVM", "asleep in KVM"),
        Some("rising"),
    ),
    look(State::User, "s-user", 'U', ("in the VMM", "VMM"), None),
    look(
        State::UserBlocked,
        "s-user-blocked",
        'u',
        ("asleep in the VMM", "asleep in VMM"),
        Some("rising"),
    ),
    look(
        State::Poll,
        "s-poll",
        'P',
        ("polling", "polling"),
        Some("upright"),
    ),
    look(State::Halted, "s-halted", 'H', ("halted", "halted"), None),
    look(
        State::Runnable,
        "s-runnable",
        'R',
        ("runnable: waits for a CPU", "runnable"),
        Some("dots"),
    ),
    look(
        State::Unknown,
        "s-unknown",
        '?',
        ("unknown", "unknown"),
        Some("crossed"),
    ),
];

/// Width of the picture, and where bars begin and how wide they are.
const WIDTH: u32 = 1100;
const LEFT: u32 = 240;
const BAR: u32 = WIDTH - LEFT - 10;
/// Height of a bar with the numbers below it.
const ROW: u32 = 42;
/// So many letters of a name fit beside a bar.
const NAME: usize = 31;
/// A part narrower than this has no room for its letter.
const LETTER: f64 = 12.0;

/// The patterns that states have, once in a page: pictures refer to them.
pub(crate) const PATTERNS: &str = "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\" \
    focusable=\"false\"><defs>\n\
<pattern id=\"pattern-rising\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"line\" d=\"M-1 \
    7L7 -1M2 10L10 2\"/></pattern>\n\
<pattern id=\"pattern-upright\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\"><path class=\"line\" \
    d=\"M2.5 0V5\"/></pattern>\n\
<pattern id=\"pattern-dots\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle class=\"dot\" cx=\"3\" \
    cy=\"3\" r=\"1.3\"/></pattern>\n\
<pattern id=\"pattern-crossed\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><path class=\"line\" d=\"M0 \
    0L7 7M7 0L0 7\"/></pattern>\n\
</defs></svg>\n";

/// A bar: what it is called, its times, and whether it is the sum of others.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) times: Times,
    pub(crate) sum: bool,
}

/// Returns the numbers of a bar as markup, states without time left out.
fn numbers(times: &Times) -> String {
    let total = times.total().max(1) as f64;
    let parts = LOOKS.iter().filter(|look| times.get(look.state) > 0);
    let parts: Vec<String> = parts
        .map(|look| {
            let part = share::rough(times.get(look.state) as f64 / total);
            let part = part.replace("less than", "&lt;");
            format!("{} {part}", look.short)
        })
        .collect();
    parts.join(", ")
}

/// Returns bars as a figure.
pub(crate) fn figure(caption: &str, bars: &[Bar]) -> String {
    let height = ROW * bars.len() as u32 + 6;
    let mut out = format!(
        "<figure class=\"bars\"><figcaption>{}</figcaption>\n",
        escape(caption)
    );
    out.push_str(&legend(bars));
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"diagram\"><svg \
         xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">",
        escape(caption)
    );
    for (at, bar) in bars.iter().enumerate() {
        one(&mut out, bar, at as u32 * ROW);
    }
    out.push_str("</svg></div></figure>\n");
    out
}

/// Returns what the states that there are look like.
fn legend(bars: &[Bar]) -> String {
    let mut out = "<ul class=\"legend\">\n".to_owned();
    let has = |look: &&BarStyle| bars.iter().any(|bar| bar.times.get(look.state) > 0);
    for look in LOOKS.iter().filter(has) {
        let _ = writeln!(
            out,
            "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"22\" height=\"16\" aria-hidden=\"true\">{}</svg> \
             {}</li>",
            part(look, 0.0, 22.0, 0, 16),
            look.label
        );
    }
    out + "</ul>\n"
}

/// Returns a part of a bar.
fn part(look: &BarStyle, x: f64, width: f64, y: u32, height: u32) -> String {
    let place = format!("x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\"");
    let mut out = format!("<rect class=\"{}\" {place}/>", look.class);
    if let Some(pattern) = look.pattern {
        let _ = write!(out, "<rect fill=\"url(#pattern-{pattern})\" {place}/>");
    }
    if width >= LETTER {
        let _ = write!(
            out,
            "<text class=\"letter {}\" x=\"{:.2}\" y=\"{}\">{}</text>",
            look.class,
            x + width / 2.0,
            y + height / 2 + 4,
            look.letter
        );
    }
    out
}

/// Returns a name as the lines that it takes beside a bar: its end says which vCPU of a VM it is.
fn name_lines(name: &str) -> Vec<String> {
    if name.chars().count() <= NAME {
        return vec![name.to_owned()];
    }
    if let Some((vm, vcpu)) = name.rsplit_once(", ") {
        return vec![cut(&format!("{vm},"), NAME), cut(vcpu, NAME)];
    }
    let first: String = name.chars().take(NAME).collect();
    let rest: String = name.chars().skip(NAME).collect();
    vec![first, cut(&rest, NAME)]
}

fn one(out: &mut String, bar: &Bar, y: u32) {
    let class = if bar.sum { "bar sum" } else { "bar" };
    let name = escape(&render::neutral::name(&bar.name));
    let numbers = numbers(&bar.times);
    let _ = write!(out, "<g class=\"{class}\"><title>{name}: {numbers}</title>");
    for (line, at) in name_lines(&bar.name).iter().zip(0u32..) {
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 8,
            y + 16 + 15 * at,
            escape(line)
        );
    }
    let total = bar.times.total().max(1) as f64;
    let mut x = f64::from(LEFT);
    for look in &LOOKS {
        let width = bar.times.get(look.state) as f64 / total * f64::from(BAR);
        // Narrower than this nothing is seen of it.
        if width >= 0.02 {
            out.push_str(&part(look, x, width, y + 2, 18));
        }
        x += width;
    }
    let _ = writeln!(
        out,
        "<text class=\"numbers\" x=\"{LEFT}\" y=\"{}\">{numbers}</text></g>",
        y + 33
    );
}

#[cfg(test)]
mod tests {
    use super::name_lines;

    #[test]
    fn names_keep_what_sets_them_apart() {
        assert_eq!(name_lines("vCPU 0"), ["vCPU 0"]);
        assert_eq!(
            name_lines("qemu-system-x86 (process 1691), vCPU 1"),
            ["qemu-system-x86 (process 1691),", "vCPU 1"]
        );
        let long = "x".repeat(40);
        assert_eq!(name_lines(&long), ["x".repeat(31), "x".repeat(9)]);
    }
}
