//! `trapline fleet`: which of many hosts to look at.
//!
//! SQL makes small tables of a store (`data.rs`), statistics find what stands out in them (`findings.rs`,
//! `metrics.rs`), and the answer is one screen of forty lines, or a document (`screen.rs`).

mod data;
mod day_values;
mod metrics;
mod names;
mod page;
mod problems;
#[cfg(test)]
mod real_fleets;
mod screen;
mod screen_sql;
mod to_open;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anyhow::{Result, bail};
use datafusion::prelude::SessionContext;
use serde::Serialize;

use crate::output::StoreLosses;
use crate::request::{AnswerFormat, FleetQuestion, Request};
use crate::view::StoreView;
pub(crate) use data::FleetData;
pub(crate) use screen_sql::tables;

/// What a fleet's recordings say together.
#[derive(Debug, Serialize)]
pub(crate) struct FleetAnswer {
    /// What the answer rests on.
    coverage: Coverage,
    /// Causes that were found on the day.
    problems: Vec<problems::Problem>,
    /// Metrics of single hosts that changed, beyond what their peers did.
    news: Vec<metrics::ChangedHost>,
    /// Metrics of groups that changed.
    shifts: Vec<metrics::ShiftedGroup>,
    /// Hosts that are unlike their peers on all days.
    outliers: Vec<metrics::LastingOutlier>,
    /// What hosts with a problem have in common, and others do not.
    shared: Vec<problems::SharedFact>,
    /// The recordings to open first.
    to_open: Vec<to_open::RecordingToOpen>,
    /// What could not be said, a sentence each.
    limits: Vec<String>,
}

/// What an answer rests on.
#[derive(Debug, Serialize)]
struct Coverage {
    /// The day in question.
    day: String,
    /// The days before it that it is held against, earliest first.
    before: Vec<String>,
    hosts: usize,
    recordings: usize,
    /// Hosts that recorded before and not on the day.
    missing: Vec<String>,
    /// Recordings of the day that lost events or were cut off: listed, not tested.
    lossy: Vec<String>,
    /// By what hosts are peers.
    peers: Vec<String>,
    /// Groups of peers, and how many of them are large enough to be tested.
    groups: usize,
    tested_groups: usize,
}

/// Answers what a fleet's state is.
///
/// # Errors
///
/// The store has no recording of the day, or cannot be read.
pub(crate) async fn answer(
    request: &Request,
    question: &FleetQuestion,
    context: &SessionContext,
    view: &StoreView,
    losses: StoreLosses,
) -> Result<()> {
    let data = FleetData::read(context, question).await?;
    // Of a day without recordings nothing is known, which a screen without problems would not say.
    if !data.runs.iter().any(|run| run.day == data.day) {
        bail!(
            "{}: no recording of {}; it has {}",
            request.store.display(),
            data.day,
            match data.all_days.as_slice() {
                [] => "none at all".to_owned(),
                days => format!("those of {}", days.join(", ")),
            }
        );
    }
    let groups = data.groups(&question.peers);
    let mut limits = Vec::new();
    let tested = groups
        .values()
        .filter(|hosts| hosts.len() >= crate::statistics::LEAST_PEERS)
        .count();
    if tested < groups.len() {
        limits.push(format!(
            "{} of {} groups of peers have fewer than {} hosts: nothing of them is \
             tested.",
            groups.len() - tested,
            groups.len(),
            crate::statistics::LEAST_PEERS
        ));
    }
    if data.before.is_empty() {
        limits.push("The store has one day alone: there is nothing to hold it against.".to_owned());
    }
    limits.extend(future(&question.future, &data.day));
    limits.extend(data.names.sentences.iter().cloned());
    let coverage = coverage(&data, question, groups.len(), tested);
    let problems = problems::of(&data);
    let (outliers, apart) = metrics::outliers(&data, &groups);
    limits.extend(apart);
    let news = metrics::news(&data, &groups);
    let answer = FleetAnswer {
        shifts: metrics::shifts(&data, &groups),
        outliers,
        shared: problems::shared(&data, &problems),
        to_open: to_open::of(&data, &news),
        news,
        coverage,
        problems,
        limits,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    match request.format {
        AnswerFormat::Json => screen::document(&mut out, request, view, losses, &answer)?,
        AnswerFormat::Csv => screen::csv(&mut out, &answer)?,
        AnswerFormat::Html => page::write(&mut out, &answer, view)?,
        AnswerFormat::Table => screen::text(&mut out, &answer, view)?,
    }
    out.flush()?;
    for one in &view.unread {
        writeln!(
            io::stderr(),
            "left out: {}: {}",
            one.file.display(),
            one.why
        )?;
    }
    Ok(())
}

/// Says which days no clock can have seen yet. They are asked only where somebody names them.
fn future(days: &[String], day: &str) -> Option<String> {
    let first = days.first()?;
    let all = match days.len() {
        1 => first.clone(),
        number => format!("{number} days, the first {first}"),
    };
    Some(match days.iter().any(|one| one == day) {
        true => format!("A clock was in the future there: {all}."),
        false => format!("Left out, as a clock was in the future there: {all}."),
    })
}

fn coverage(data: &FleetData, question: &FleetQuestion, groups: usize, tested: usize) -> Coverage {
    let of_day: BTreeSet<&str> = data.of_day().map(|run| run.host.as_str()).collect();
    let before = data.runs.iter().filter(|run| run.day != data.day);
    let before: BTreeSet<&str> = before.map(|run| run.host.as_str()).collect();
    let lossy = data.of_day().filter(|run| run.is_lossy());
    Coverage {
        day: data.day.clone(),
        before: data.before.clone(),
        hosts: of_day.len(),
        recordings: data.of_day().count(),
        missing: before
            .difference(&of_day)
            .map(|host| (*host).to_owned())
            .collect(),
        lossy: lossy.map(|run| run.host.clone()).collect(),
        peers: question.peers.clone(),
        groups,
        tested_groups: tested,
    }
}

/// Hosts by the group of peers that they are of.
pub(crate) type PeerGroups = BTreeMap<String, Vec<String>>;
