//! `trapline compare`: what changed between two recordings, or two groups of them.

pub(crate) mod args;
mod each;
pub(crate) mod results;
pub(crate) mod sides;

use std::path::{Path, PathBuf};

use anyhow::Result;
use compare::CompareOptions;
use render::ClockUnit;
use render::compare as render_compare;
use session::{HostInput, PictureOptions, Session, SessionOptions};
use sides::{ComparedSides, Ready, compared};

use crate::answer::Answer;
use crate::commands::compare::args::CompareArgs;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

/// Hosts, with the recordings of their guests.
type Hosts<'s> = Vec<HostInput<'s>>;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> Result<()> {
    if results::run(args)? {
        return Ok(());
    }
    let apart;
    let args = match tables_of_one(args)? {
        Some(recordings) => {
            apart = CompareArgs {
                recordings,
                ..args.clone()
            };
            &apart
        }
        None => args,
    };
    // Before anything is read: whether there is something to compare.
    if args.with.is_empty() && args.recordings.len() < 2 {
        return Err(Usage::error(match args.each {
            true => "one recording: those to compare it with are missing",
            false => "one recording: the one to compare it with is missing",
        }));
    }
    let recordings = args.recordings.iter().chain(&args.with);
    let guests = args.guest.iter().chain(&args.with_guest);
    let inputs = recordings.chain(guests.map(|one| &one.path));
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        recordings: Some(args.recordings.len() + args.with.len()),
        ..AccompanyingFiles::default()
    };
    let session = opening::session(&args.common, &beside, &inputs)?;
    let options = CompareOptions {
        confidence: args.confidence,
        ..CompareOptions::default()
    };
    let ready = Ready {
        session: &session,
        pictures: PictureOptions::to_compare(),
        options,
    };
    let (first, second) = sides(args, &session)?;
    if args.each {
        return each::run(args, &ready, &first);
    }
    let work = args.work.as_deref();
    let ComparedSides {
        comparison,
        a,
        b,
        names: [names_a, names_b],
    } = compared(&ready, &first, &second, work)?;
    let quality = output::merged(a.iter().chain(&b));
    let inputs = [names_a.as_slice(), names_b.as_slice()].concat();
    let all = a.iter().chain(&b);
    let answer = Answer {
        format: args.common.format,
        command: "compare",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::of_all(all.map(|one| !one.about.in_ticks)),
    };
    answer.print(
        || {
            let layout = output::layout(args.limit.unwrap_or(usize::MAX), true);
            let mut text = render_compare::text(&comparison, &names_a, &names_b, args.all, layout);
            text.push_str(&output::qualities(a.iter().chain(&b)));
            text
        },
        || render_compare::document(&comparison, &names_a, &names_b),
        |clock| render_compare::csv(&comparison, args.all, clock),
    )
}

/// Returns the two sides that are in one text: its two tables of one kind, in their order.
fn tables_of_one(args: &CompareArgs) -> Result<Option<Vec<PathBuf>>> {
    let [one] = args.recordings.as_slice() else {
        return Ok(None);
    };
    if !args.with.is_empty() || !one.is_file() {
        return Ok(None);
    }
    let session = Session::open(SessionOptions::default())?;
    let apart = session.input(one)?.tables_apart();
    match apart.len() {
        0 | 1 => Ok(None),
        2 => Ok(Some(apart)),
        _ if args.each => Ok(Some(apart)),
        many => {
            let names: Vec<String> = apart.iter().map(|one| one.display().to_string()).collect();
            Err(Usage::error(format!(
                "{} holds {many} tables of one kind: name two of them, {}, or --each for each of them with the first",
                one.display(),
                names.join(", ")
            )))
        }
    }
}

/// Returns what is on each side, with the guests of its hosts; with `--each` all of it is on the first.
fn sides<'s>(args: &CompareArgs, session: &'s Session) -> Result<(Hosts<'s>, Hosts<'s>)> {
    let inputs = args.recordings.len() + args.with.len();
    let mut first = session.hosts_among(&args.recordings, inputs)?;
    let mut second = session.hosts_among(&args.with, inputs)?;
    if args.with.is_empty() {
        match first.as_slice() {
            [_, _, ..] if args.each => {}
            [_, _] => second = first.split_off(1),
            [one] => {
                return Err(Usage::error(format!(
                    "{} and recordings of its guests: the host's recording to compare it with is missing",
                    one.input().name()
                )));
            }
            many => return Err(Usage::error(too_many(many.len()))),
        }
    }
    for (hosts, guests, option, side) in [
        (&mut first, &args.guest, "--guest", "A"),
        (&mut second, &args.with_guest, "--with-guest", "B"),
    ] {
        if !guests.is_empty() && hosts.len() > 1 {
            let names: Vec<&str> = hosts.iter().map(|host| host.input().name()).collect();
            return Err(Usage::error(format!(
                "{option} names recordings of one host's guests, and {side} has {} recordings of hosts ({}): give one \
                 host, or leave {option} out where recordings name each other",
                names.len(),
                names.join(", ")
            )));
        }
        session.add_guests(hosts, guests)?;
    }
    Ok((first, second))
}

/// Returns what to say where there are more recordings than two, and nobody knows which are to be compared.
fn too_many(count: usize) -> String {
    format!(
        "{count} recordings: say which are to be compared with which, as in 'trapline compare A1 A2 --with B1 B2', or \
         --each for each of them with the first"
    )
}
