//! Lines that a table is called by, and lines that name nothing: commands, marks of blocks of code, what programs
//! complain of.

/// Characters of a label. More is prose.
const MAX_LABEL: usize = 120;

/// Returns the label that a line is, without the marks of a heading, tabs as blanks; none if it names nothing. Commands
/// are not asked about here.
pub(crate) fn label_of(text: &str) -> Option<String> {
    let label = label(text);
    // The titles of perf stat -o and of the full-screen view of perf kvm stat.
    let title = label.starts_with("started on ") || label.starts_with("KVM event statistics");
    let names = !is_complaint(text) && !is_fence(text) && !title && !label.is_empty();
    (names && label.chars().count() <= MAX_LABEL).then(|| label.replace('\t', " "))
}

/// Returns a line without the marks of a heading.
fn label(text: &str) -> &str {
    // The codes of perf kvm stat live that clear the screen, without their escape characters.
    let text = text.strip_prefix("[H[2J").unwrap_or(text);
    let jira = text
        .strip_prefix('h')
        .and_then(|rest| rest.split_once(". "));
    let text = match jira {
        Some((level, rest)) if level.len() == 1 && level.bytes().all(|b| b.is_ascii_digit()) => {
            rest
        }
        _ => text,
    };
    text.trim_matches(|c: char| c.is_whitespace() || "#*=_~`:-|".contains(c))
}

/// Returns whether a line opens or closes a block of code in a forum or ticket.
pub fn is_fence(text: &str) -> bool {
    let marks = [
        "```",
        "~~~",
        "{code",
        "{noformat",
        "[code",
        "[/code",
        "<pre",
        "</pre",
        "<code",
        "</code",
    ];
    marks.iter().any(|mark| text.starts_with(mark))
}

/// Returns whether a line is what a program said on its standard error, which `2>&1` puts above its table: perf's own
/// words begin so (tools/perf/util/debug.c, `pr_err` and `pr_warning`, and `usage.c`), and the shell names the program
/// or itself.
fn is_complaint(text: &str) -> bool {
    const STARTS: [&str; 12] = [
        "Error:",
        "ERROR:",
        "Warning:",
        "WARNING:",
        "Fatal:",
        "incompatible file format",
        "Failed to ",
        "failed to ",
        "Couldn't ",
        "Cannot ",
        "Processed ",
        "bash: ",
    ];
    // libtraceevent names the event whose print format it cannot read: `[kvm:kvm_inj_exception] bad op token }`.
    let event = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let event = event.is_some_and(|(event, _)| event.contains(':') && !event.contains(' '));
    event
        || STARTS.iter().any(|start| text.starts_with(start))
        || text.starts_with("libtraceevent: ")
        || text.starts_with("perf: ")
        || text.starts_with("sh: ")
        || text.starts_with("sudo: ")
        || text.starts_with("[ perf record:")
}

/// Returns whether a line is a command with or without a prompt.
pub(crate) fn is_command(text: &str) -> bool {
    let prompted = [
        "$ ",
        "# perf ",
        "# sudo ",
        "# trapline ",
        "perf ",
        "sudo ",
        "trapline ",
        "% ",
    ];
    let prompts = [
        "]# ",
        "]$ ",
        "~# ",
        "~$ ",
        "$ perf ",
        "$ sudo ",
        "# perf ",
        "# trapline ",
    ];
    // `$sudo perf ...` of a page has lost its blank.
    let bare = text.trim_start_matches(['$', '#', '%', ' ']);
    let bare = bare.len() < text.len() && ["perf ", "sudo "].iter().any(|c| bare.starts_with(c));
    bare || prompted.iter().any(|start| text.starts_with(start))
        || prompts.iter().any(|prompt| text.contains(prompt))
}
