//! Whether the recording can be trusted.

use std::fmt::Write;

use render::html::escape;
use render::{cost, info, vcpus};
use words::{duration, share};

use crate::Recording;
use crate::out::{Out, Told};

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut Out) {
    let picture = recording.picture;
    facts(recording, out);
    let quality = &picture.quality;
    let mut said = Vec::new();
    if recording.is_printed() {
        said.push(
            "These are sums that a tool printed: what it lost, and what its clock was, is not in them.".to_owned(),
        );
    } else {
        if recording.is_filtered() {
            said.push(format!(
                "What does not pass {} is left out of all numbers below; what vCPUs did is shown for all of the time that was asked for.",
                recording.invocation.filters()
            ));
        }
        said.push(match quality.lost_events {
            0 => "The recorder says of no event that it was lost.".to_owned(),
            lost => format!(
                "{} lost while recording: what they would have told is missing from all numbers below.",
                words::counted(lost, "event was", "events were")
            ),
        });
        said.push(match quality.truncated {
            true => "The recording is cut off before its end.".to_owned(),
            false => "The recording is complete: it ends where its recorder ended it.".to_owned(),
        });
        said.push(clock(recording));
        said.extend(recorder(recording));
    }
    out.list(said);
    let lacks = lacks(recording);
    if !lacks.is_empty() {
        out.heading("What was not recorded");
        out.list(lacks);
    }
    if !quality.warnings.is_empty() {
        out.heading("Warnings");
        out.list(&quality.warnings);
    }
    if recording.is_printed() {
        out.command(
            "the report as text",
            &recording.invocation.command("report", ""),
        );
        return;
    }
    let command = recording.invocation.command("info", "");
    let told = Told {
        name: "events",
        caption: "events by kind",
        command: &command,
    };
    out.table(recording, told, |frame| info::html(&picture.info, frame));
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
fn facts(recording: &Recording<'_>, out: &mut Out) {
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

fn clock(recording: &Recording<'_>) -> String {
    let name = recording.head.clock.as_deref();
    let which = match name {
        Some(name) => format!("The clock is {name}"),
        None => "The recording does not say which clock it has".to_owned(),
    };
    match recording.head.nanoseconds {
        true => format!("{which}; times are nanoseconds of it."),
        false => {
            format!("{which}; it counts ticks of unknown rate, so that times below are ticks.")
        }
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
            "No thread of the recorder is seen, so what it took of the CPUs is not known."
                .to_owned(),
        );
    } else if picture.sched.is_none() {
        said.push(format!(
            "Of the recorder and its helpers {} seen; how long they ran cannot be known without sched_switch events.",
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

/// Says what events are missing that would tell more.
fn lacks(recording: &Recording<'_>) -> Vec<String> {
    let picture = recording.picture;
    // Without rows there is nothing of which a part could be unknown.
    let with_rows = picture.exits.iter().find(|report| !report.rows.is_empty());
    let seen = with_rows.and_then(|report| report.seen);
    let of_exits = seen.iter().flat_map(analysis::unknowable);
    let of_vcpus = picture
        .vcpus
        .iter()
        .filter(|report| !report.rows.is_empty());
    let of_vcpus = of_vcpus.flat_map(|report| report.unknowable());
    let mut out: Vec<String> = Vec::new();
    for item in of_vcpus.chain(of_exits) {
        let text = vcpus::as_on_page(&item.to_string());
        if !out.contains(&text) {
            out.push(text);
        }
    }
    if let Some(sched) = &picture.sched {
        out.extend(sched.lacks.iter().map(|lack| (*lack).to_owned()));
    }
    if !recording.is_printed() {
        if !picture.info.has_exits {
            out.push(
                match recording.is_filtered() {
                    true => "No kvm_exit event passes the filters: nothing can be said about exits and about what vCPUs did.",
                    false => "No kvm_exit events: nothing can be said about exits and about what vCPUs did.",
                }
                .to_owned(),
            );
        }
        if picture.sched.is_none() {
            out.push(
                match recording.is_filtered() {
                    true => "No sched_switch event passes the filters: nothing can be said about who had the CPUs.",
                    false => "No sched_switch events: nothing can be said about who had the CPUs.",
                }
                .to_owned(),
            );
        }
    }
    out
}
