//! The recordings that a command line names, as words of their own or behind `-i`.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::newest;

/// The recordings that a command line names, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenRecordings(Vec<PathBuf>);

/// Words of their own, and those behind the option.
const WORDS: &str = "recordings";
const OPTION: &str = "input";

impl GivenRecordings {
    /// Returns them, or where there are none the newest recording of this folder.
    ///
    /// # Errors
    /// None is named, and none is here.
    pub(crate) fn or_newest(&self) -> Result<GivenRecordings> {
        match self.is_empty() {
            true => Ok(GivenRecordings(vec![newest::here()?])),
            false => Ok(self.clone()),
        }
    }
}

impl From<Vec<PathBuf>> for GivenRecordings {
    fn from(paths: Vec<PathBuf>) -> GivenRecordings {
        GivenRecordings(paths)
    }
}

impl Deref for GivenRecordings {
    type Target = Vec<PathBuf>;

    fn deref(&self) -> &Vec<PathBuf> {
        &self.0
    }
}

impl DerefMut for GivenRecordings {
    fn deref_mut(&mut self) -> &mut Vec<PathBuf> {
        &mut self.0
    }
}

impl FromArgMatches for GivenRecordings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenRecordings, clap::Error> {
        let mut all: Vec<(usize, PathBuf)> = Vec::new();
        for id in [WORDS, OPTION] {
            let places = matches.indices_of(id).into_iter().flatten();
            let paths = matches.get_many::<PathBuf>(id).into_iter().flatten();
            all.extend(places.zip(paths.cloned()));
        }
        all.sort_by_key(|(place, _)| *place);
        let paths = all.into_iter().map(|(_, path)| path);
        Ok(GivenRecordings(paths.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = GivenRecordings::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for GivenRecordings {
    fn augment_args(command: Command) -> Command {
        let path = |name: &'static str| {
            let arg = Arg::new(name).value_name("REC");
            arg.value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
        };
        command
            .arg(
                path(WORDS)
                    .num_args(1..)
                    .help("Recordings, or - for standard input"),
            )
            .arg(path(OPTION).short('i').long(OPTION).help(
                "The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this \
                 folder is read: trapline-N, which 'trapline record' makes, perf.data.guest, perf.data or trace.dat",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        GivenRecordings::augment_args(command)
    }
}
