//! What is wrong, and what to do.

use std::collections::HashSet;
use std::fmt::Write;

use render::diagnose;
use render::html::escape;
use rules::{Evidence, Finding};
use words::duration;

use crate::Recording;
use crate::out::PageWriter;
use crate::recording::ROWS;

/// Links that one piece of evidence has at most to times, and to rows.
const LINKS: usize = 6;
/// Remedies that are seen at once: the first ones are tried first.
const REMEDIES: usize = 3;

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let diagnosis = recording.diagnosis;
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        let id = out.id(&format!("finding-{}", at + 1));
        let _ = writeln!(out.html, "<article class=\"finding\" id=\"{id}\">");
        let headline = finding.headline.as_ref().unwrap_or(&finding.title);
        out.heading(&format!("{}. {headline}", at + 1));
        self::finding(finding, recording, at > 0, out);
        out.markup("</article>\n");
    }
    out.markup("<div class=\"beside\">\n");
    if !diagnosis.unchecked.is_empty() {
        let all = diagnosis.unchecked.len() + diagnosis.clear.len() + diagnosis.findings.len();
        let _ = writeln!(
            out.html,
            "<details class=\"unchecked\"><summary>{} of {} could not be checked: what to record for them</summary>",
            diagnosis.unchecked.len(),
            words::counted(all, "cause", "causes")
        );
        let unchecked = diagnosis.unchecked.iter();
        out.list(unchecked.map(|one| format!("{}: {}", one.rule.id, one.what)));
        if let Some(command) = diagnosis.to_record() {
            // It is for the host, and none of those that print this page's numbers.
            let _ = writeln!(
                out.html,
                "<p>On the host, this records what these need: <code>{}</code></p>",
                escape(&command)
            );
        }
        out.markup("</details>\n");
    }
    if !diagnosis.clear.is_empty() {
        let clear = diagnosis.clear.iter();
        let _ = writeln!(
            out.html,
            "<details class=\"clear\"><summary>{} looked for and not found</summary>\n<div class=\"columns\">",
            words::counted(diagnosis.clear.len(), "cause was", "causes were")
        );
        out.list(clear.map(|rule| format!("{}: {}", rule.id, rule.title)));
        out.markup("</div>\n</details>\n");
    }
    out.markup("</div>\n");
    let command = recording.invocation.command("diagnose", "");
    out.command("findings", &command);
}

/// Writes a finding. Where it is folded, what it is and costs is seen, and the rest is asked for.
fn finding(finding: &Finding, recording: &Recording<'_>, is_folded: bool, out: &mut PageWriter) {
    let severity = finding.severity().name();
    let head = diagnose::head(finding);
    let prefix = format!("{}, {severity}", finding.rule.id);
    let cost = head.strip_prefix(&prefix).unwrap_or_default();
    let cost = match cost.trim_start_matches(", ") {
        "" => "what it costs is not known".to_owned(),
        cost => format!("costs {cost}"),
    };
    let _ = writeln!(
        out.html,
        "<p class=\"facts\"><strong class=\"severity {severity}\">{severity}</strong>, <code>{}</code>, confidence \
         {:.2}, {}</p>",
        escape(finding.rule.id),
        finding.confidence,
        escape(&cost)
    );
    if is_folded {
        out.markup("<details class=\"body\"><summary>Evidence, cause and remedies</summary>\n");
    }
    // What was seen stands beside what to do about it, where there is room.
    out.markup(
        "<div class=\"sides\"><div class=\"seen\">\n<p class=\"label\">Evidence</p>\n<ul class=\"evidence\">\n",
    );
    // A place is linked to where it is named first.
    let mut known = HashSet::new();
    for evidence in &finding.evidence {
        let mut links = links(evidence, recording, out);
        links.retain(|link| known.insert(link.clone()));
        let _ = write!(out.html, "<li>{}", escape(&evidence.text));
        if !links.is_empty() {
            let _ = write!(
                out.html,
                " <span class=\"links\">{}</span>",
                links.join(", ")
            );
        }
        out.markup("</li>\n");
    }
    out.markup("</ul>\n");
    let _ = writeln!(
        out.html,
        "<p class=\"cause\"><span class=\"label\">Cause</span> {}</p></div>\n<div class=\"remedies\">",
        escape(&finding.cause)
    );
    for (at, advice) in finding.remedies.iter().enumerate() {
        let remedy = advice.remedy;
        if at == REMEDIES {
            let more = words::counted(finding.remedies.len() - at, "more remedy", "more remedies");
            let _ = writeln!(
                out.html,
                "<details class=\"more\"><summary>{more}</summary>"
            );
        }
        let open = if at == 0 { " open=\"\"" } else { "" };
        let _ = writeln!(
            out.html,
            "<div class=\"remedy\"><p><span class=\"label\">Remedy {}</span> {}</p>\n<details{open}>\
             <summary>price, caution, how to check</summary>\n<dl>",
            at + 1,
            escape(remedy.what)
        );
        let patch = "'trapline diagnose --domain FILE --patch' prints the change of the guest's definition.";
        let since = remedy.since();
        let patch = (!advice.changes.is_empty()).then_some(patch);
        for (name, text) in [
            ("Price", Some(remedy.price)),
            ("From", (!since.is_empty()).then_some(since.as_str())),
            ("Caution", Some(remedy.unless)),
            ("Check", Some(remedy.check)),
            ("Here", advice.note.as_deref()),
            ("Patch", patch),
        ] {
            if let Some(text) = text {
                let _ = writeln!(out.html, "<dt>{name}</dt><dd>{}</dd>", escape(text));
            }
        }
        out.markup("</dl></details></div>\n");
    }
    if finding.remedies.len() > REMEDIES {
        out.markup("</details>\n");
    }
    out.markup("</div></div>\n");
    if is_folded {
        out.markup("</details>\n");
    }
}

/// Returns links to the places in the timeline, and to the rows of tables, that a piece of evidence is about.
fn links(evidence: &Evidence, recording: &Recording<'_>, out: &PageWriter) -> Vec<String> {
    let mut links = Vec::new();
    if recording.timeline.is_some() {
        links.extend(times(evidence, recording, out));
    }
    for row in &evidence.rows {
        let rows = recording.picture.exits.iter();
        let rows = rows.filter(|report| report.table.name() == row.table);
        let at = rows.flat_map(|report| report.rows.iter().position(|one| one.key == row.key));
        let id = out.id(&format!("exits-{}", row.table));
        links.extend(at.filter(|at| *at < ROWS).take(LINKS).map(|at| {
            format!(
                "<a href=\"#row-{id}-{at}\">{} {}</a>",
                row.table,
                escape(&row.key)
            )
        }));
    }
    links
}

/// Returns a name as it may stand in a link: but for letters, digits and `-`, `.`, `_`, its bytes by their numbers.
fn in_address(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    name.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

fn times(evidence: &Evidence, recording: &Recording<'_>, out: &PageWriter) -> Vec<String> {
    let nanoseconds = recording.head.nanoseconds;
    let time = |at: u64| match nanoseconds {
        true => duration::seconds(at),
        false => at.to_string(),
    };
    let lanes: Vec<String> = evidence
        .threads
        .iter()
        .map(|tid| format!("tid-{tid}"))
        .collect();
    let windows = evidence.windows.iter();
    let windows = windows.map(|window| (window.start_ns, window.end_ns, None));
    let instances = evidence.instances.iter().map(|one| {
        let end = one.begin_ns.saturating_add(one.total_ns);
        let took = duration::of(one.total_ns, nanoseconds);
        (one.begin_ns, end, Some((one.path.as_str(), took)))
    });
    let mut all: Vec<_> = windows.chain(instances).collect();
    // What is about threads and about no time is about all of it.
    let span = recording.picture.info.start.zip(recording.picture.info.end);
    let mut whole = false;
    if all.is_empty()
        && !lanes.is_empty()
        && let Some((start, end)) = span
    {
        all.push((start, end, None));
        whole = true;
    }
    let more = all.len().saturating_sub(LINKS);
    let links = all.into_iter().take(LINKS).map(|(from, to, instance)| {
        let (from, to) = (time(from), time(to));
        let mut target = format!("t={from},{to}");
        if !lanes.is_empty() {
            let _ = write!(target, "&amp;lane={}", lanes.join(","));
        }
        if let Some((path, _)) = &instance {
            let _ = write!(target, "&amp;path={}", in_address(path));
        }
        if out.recording > 0 {
            let _ = write!(target, "&amp;rec={}", out.recording);
        }
        let what = instance.map(|(path, took)| format!("{path} of {took} at "));
        let what = what.unwrap_or_default();
        match whole {
            true => format!("<a href=\"#{target}\">show on timeline</a>"),
            false => format!("<a href=\"#{target}\">{}{from} to {to}</a>", escape(&what)),
        }
    });
    let mut links: Vec<String> = links.collect();
    if more > 0 {
        links.push(format!("and {more} more times"));
    }
    links
}
