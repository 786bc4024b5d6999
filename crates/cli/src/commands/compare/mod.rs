//! `trapline compare`: what changed between two recordings, or two groups of them.

pub(crate) mod args;
mod beside;
mod each;
pub(crate) mod results;
pub(crate) mod sides;

use std::path::{Path, PathBuf};

use anyhow::Result;
use beside::BothSides;
use compare::{CompareOptions, SideName};
use render::ClockUnit;
use render::compare as render_compare;
use session::{HostInput, PictureOptions, Session, SessionOptions};
use sides::{ComparedSides, Ready, compared_beside};

use crate::answer::Answer;
use crate::commands::compare::args::CompareArgs;
use crate::opening::{self, AccompanyingFiles};
use crate::options::Common;
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
                recordings: recordings.into(),
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
    if args.each {
        let session = opening::session(&args.common, &files(args, None), &inputs(args, None))?;
        let ready = ready(args, &session);
        let (first, _) = sides(args, &session)?;
        return each::run(args, &ready, &first);
    }
    let apart;
    let args = match args.beside.reads_apart() {
        true => {
            apart = two_sides(args)?;
            &apart
        }
        false => args,
    };
    let beside = beside_both(args)?;
    let work = args.work.as_deref();
    let session;
    let other;
    let compared = match args.beside.reads_apart() {
        false => {
            session = opening::session(&args.common, &files(args, None), &inputs(args, None))?;
            let (first, second) = sides(args, &session)?;
            let ready = ready(args, &session);
            compared_beside(&ready, None, &beside, [&first, &second], work)?
        }
        true => {
            let open = |side| {
                let common = common_of(args, side);
                opening::session(&common, &files(args, Some(side)), &inputs(args, Some(side)))
            };
            session = open(SideName::A)?;
            other = open(SideName::B)?;
            let count = args.recordings.len() + args.with.len();
            let mut first = session.hosts_among(&args.recordings, count)?;
            let mut second = other.hosts_among(&args.with, count)?;
            add_guests(args, [&session, &other], [&mut first, &mut second])?;
            let ready = ready(args, &session);
            compared_beside(&ready, Some(&other), &beside, [&first, &second], work)?
        }
    };
    let ComparedSides {
        comparison,
        a,
        b,
        names: [names_a, names_b],
    } = compared;
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

/// Returns what stands beside both sides: what was given, and the results that stand in a text before its parts.
fn beside_both(args: &CompareArgs) -> Result<BothSides> {
    let mut beside = BothSides::read(
        &args.beside,
        args.domain.as_deref(),
        args.common.filter.vm.as_deref(),
    )?;
    beside.take_from_texts(match (args.recordings.as_slice(), args.with.as_slice()) {
        ([a, b], []) => [std::slice::from_ref(a), std::slice::from_ref(b)],
        (a, b) => [a, b],
    });
    Ok(beside)
}

/// Returns what recordings are read and compared with.
fn ready<'a>(args: &CompareArgs, session: &'a Session) -> Ready<'a> {
    Ready {
        session,
        pictures: PictureOptions::to_compare(),
        options: CompareOptions {
            confidence: args.confidence,
            ..CompareOptions::default()
        },
    }
}

/// Returns the same with each side's recordings in its own list, which they need to be read with files of their side.
fn two_sides(args: &CompareArgs) -> Result<CompareArgs> {
    let mut out = args.clone();
    if out.with.is_empty() {
        if out.recordings.len() != 2 {
            return Err(Usage::error(format!(
                "{} recordings, and {} belongs to one side: say which are B's, as in 'trapline compare A1 A2 --with \
                 B1 B2'",
                out.recordings.len(),
                args.beside.given().unwrap_or_default()
            )));
        }
        out.with = out.recordings.split_off(1);
    }
    Ok(out)
}

/// Returns the options of one side, with its facts before those of both.
fn common_of(args: &CompareArgs, side: SideName) -> Common {
    let own = match side {
        SideName::A => &args.beside.a_facts,
        SideName::B => &args.beside.b_facts,
    };
    Common {
        facts: own.iter().chain(&args.common.facts).cloned().collect(),
        ..args.common.clone()
    }
}

/// Returns the files beside the recordings, of one side or of both.
fn files(args: &CompareArgs, side: Option<SideName>) -> AccompanyingFiles<'_> {
    let own = match side {
        Some(SideName::A) => args.beside.a_kallsyms.as_deref(),
        Some(SideName::B) => args.beside.b_kallsyms.as_deref(),
        None => None,
    };
    let (of_a, of_b) = (args.recordings.len(), args.with.len());
    let (of_side, of_other) = match side {
        None => (of_a + of_b, 0),
        Some(SideName::A) => (of_a, of_b),
        Some(SideName::B) => (of_b, of_a),
    };
    AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        kallsyms: own.or(args.kallsyms.as_deref()),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        recordings: Some(of_side),
        beside_recordings: of_other,
        ..AccompanyingFiles::default()
    }
}

/// Returns all files that are read, those of a side first, so that standard input is not named twice.
fn inputs(args: &CompareArgs, side: Option<SideName>) -> Vec<&Path> {
    let [of_a, of_b] = args.beside.files();
    let (first, second, others) = match side {
        Some(SideName::B) => (&args.with, &*args.recordings, of_a),
        Some(SideName::A) => (&*args.recordings, &args.with, of_b),
        None => (&*args.recordings, &args.with, Vec::new()),
    };
    let recordings = first.iter().chain(second);
    let guests = args.guest.iter().chain(&args.with_guest);
    let domains = [&args.domain, &args.beside.a_domain, &args.beside.b_domain];
    let inputs = recordings.chain(guests.map(|one| &one.path));
    let inputs = inputs.chain(domains.into_iter().flatten());
    inputs.map(PathBuf::as_path).chain(others).collect()
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
    let apart = session.input(one)?.parts_apart();
    match apart.len() {
        0 | 1 => Ok(None),
        2 => Ok(Some(apart)),
        _ if args.each => Ok(Some(apart)),
        many => {
            let file = one.display().to_string();
            let lines = apart.iter().map(|one| one.display().to_string());
            let lines: Vec<String> = lines
                .map(|name| name.replace(&format!("{file}:"), ""))
                .collect();
            Err(Usage::error(format!(
                "{file} holds {many} tables or traces of one kind, in lines {}: name two of them as FILE:LINE, or \
                 --each for each of them with the first",
                words::list(&lines)
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
    add_guests(args, [session, session], [&mut first, &mut second])?;
    Ok((first, second))
}

/// Adds the recordings of guests that options name.
fn add_guests<'s>(
    args: &CompareArgs,
    sessions: [&'s Session; 2],
    [first, second]: [&mut Hosts<'s>; 2],
) -> Result<()> {
    let [of_first, of_second] = sessions;
    for (session, hosts, guests, option, side) in [
        (of_first, first, &args.guest, "--guest", "A"),
        (of_second, second, &args.with_guest, "--with-guest", "B"),
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
    Ok(())
}

/// Returns what to say where there are more recordings than two, and nobody knows which are to be compared.
fn too_many(count: usize) -> String {
    format!(
        "{count} recordings: say which are to be compared with which, as in 'trapline compare A1 A2 --with B1 B2', or \
         --each for each of them with the first"
    )
}
