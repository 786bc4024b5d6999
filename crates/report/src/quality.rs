//! Whether the recording can be trusted.

use std::fmt::Write;

use doubts::DoubtSeverity;
use render::html::escape;
use render::{cost, info, quality};
use words::{duration, share};

use crate::Recording;
use crate::out::{PageWriter, TableLabel};

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    facts(recording, out);
    let trust = &picture.quality;
    let mut said = Vec::new();
    if recording.is_printed() {
        said.push(
            "These are sums that a tool printed. They do not show lost events or the clock."
                .to_owned(),
        );
    } else {
        if recording.is_filtered() {
            said.push(format!(
                "Events that do not pass {} are left out of all numbers below; vCPU states are shown for all of the \
                 chosen time.",
                recording.invocation.filters()
            ));
        }
        if trust.lost_events == 0 {
            said.push("The recorder reports no lost events.".to_owned());
        }
        if !trust.truncated {
            said.push("The recording is not cut off.".to_owned());
        }
        said.push(clock(recording));
        said.extend(recorder(recording));
        said.extend(trust.accounted.map(|accounted| {
            format!(
                "{} of {} events that were read are in a row below or counted as left out.",
                accounted.events, accounted.read
            )
        }));
    }
    out.list(said);
    let doubts = trust.all_doubts();
    let of = |wanted: &dyn Fn(DoubtSeverity) -> bool| -> Vec<String> {
        let doubts = doubts.iter().filter(|doubt| wanted(doubt.severity()));
        doubts
            .map(|doubt| quality::on_page(&doubt.text()))
            .collect()
    };
    for (heading, texts) in [
        (
            "Numbers may be wrong",
            of(&|one| one == DoubtSeverity::Serious),
        ),
        ("Warnings", of(&|one| one == DoubtSeverity::Warning)),
        (
            "What was not recorded",
            of(&|one| one == DoubtSeverity::Note),
        ),
    ] {
        if !texts.is_empty() {
            out.heading(heading);
            out.list(texts);
        }
    }
    if recording.is_printed() {
        out.command(
            "the report as text",
            &recording.invocation.command("report", ""),
        );
        return;
    }
    let command = recording.invocation.command("info", "");
    let label = TableLabel {
        name: "events",
        caption: "events by kind",
        command: &command,
    };
    out.table(recording, label, |frame| info::html(&picture.info, frame));
    let never = picture.info.events.iter().filter(|event| event.count == 0);
    let never: Vec<&str> = never.map(|event| event.name.as_str()).collect();
    if !never.is_empty() {
        let _ = writeln!(
            out.html,
            "<details><summary>{} recorded, and never happened</summary><p>{}</p></details>",
            words::counted(
                never.len() as u64,
                "kind of events was",
                "kinds of events were"
            ),
            escape(&never.join(", "))
        );
    }
    out.command("what is in the recording", &command);
}

/// Writes what the recording says of itself.
fn facts(recording: &Recording<'_>, out: &mut PageWriter) {
    let all = match recording.is_printed() {
        true => vec![("format".to_owned(), recording.head.format.clone())],
        false => {
            let mut facts = info::facts(recording.head, &recording.picture.info);
            facts.extend(info::guest_facts(recording.guests));
            facts
        }
    };
    out.markup("<dl class=\"facts\">\n");
    for (name, text) in all {
        let _ = writeln!(
            out.html,
            "<dt>{}</dt><dd>{}</dd>",
            escape(&name),
            escape(&text)
        );
    }
    out.markup("</dl>\n");
}

/// Says which clock it is, where its unit is known.
fn clock(recording: &Recording<'_>) -> String {
    let which = match recording.head.clock.as_deref() {
        Some(name) => format!("The clock is {name}"),
        None => "The recording does not say which clock it has".to_owned(),
    };
    match recording.head.nanoseconds {
        true => format!("{which}; times are nanoseconds of it."),
        false => format!("{which}."),
    }
}

/// Says what recording took.
fn recorder(recording: &Recording<'_>) -> Vec<String> {
    let picture = recording.picture;
    let recorder = &picture.recorder;
    let time = |ns: u64| duration::of(ns, recording.head.nanoseconds);
    let mut said = Vec::new();
    if recorder.threads.is_empty() {
        said.push(
            "The recorder's threads are not in the recording, so its CPU time is unknown."
                .to_owned(),
        );
    } else if picture.sched.is_none() {
        said.push(format!(
            "Of the recorder and its helpers {} seen; their run time is unknown without sched_switch events.",
            words::counted(recorder.threads.len() as u64, "thread is", "threads are")
        ));
    } else {
        let ran = recorder.ran_ns.saturating_add(recorder.helpers_ns);
        let mut text = format!(
            "The recorder's threads and their helpers ran for {}",
            time(ran)
        );
        if let Some(span) = picture.span_ns.filter(|span| *span > 0) {
            let part = share::rough(ran as f64 / span as f64);
            let _ = write!(text, ", {part} of one CPU's time");
        }
        text.push('.');
        said.push(text);
    }
    if let Some(report) = analysis::recording_cost(picture) {
        said.extend(cost::sentences(&report));
    } else if let Some(most) = recorder.event_at_most_ns() {
        said.push(format!(
            "Recording an event took its thread {} at most, by the shortest gaps between events.",
            time(most)
        ));
    }
    said
}
