//! The format of what is printed: `--format`, and its short forms.

use clap::builder::EnumValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}

/// The option, and those that are short for it.
const FORMAT: &str = "format";
const JSON: &str = "json";
const CSV: &str = "csv";

impl FromArgMatches for Format {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Format, clap::Error> {
        if matches.get_flag(JSON) {
            return Ok(Format::Json);
        }
        if matches.get_flag(CSV) {
            return Ok(Format::Csv);
        }
        let named = matches.get_one::<Format>(FORMAT).copied();
        Ok(named.unwrap_or(Format::Table))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Format::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Format {
    fn augment_args(command: Command) -> Command {
        let short = |name: &'static str, help: &'static str| {
            let flag = Arg::new(name).long(name).help(help);
            flag.action(ArgAction::SetTrue)
        };
        command
            .arg(
                Arg::new(FORMAT)
                    .long(FORMAT)
                    .value_name("FORMAT")
                    .help("Print a table for people, JSON, or comma-separated values")
                    .value_parser(EnumValueParser::<Format>::new())
                    .default_value("table"),
            )
            .arg(short(JSON, "Short for --format json").conflicts_with_all([FORMAT, CSV]))
            .arg(short(CSV, "Short for --format csv").conflicts_with(FORMAT))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Format::augment_args(command)
    }
}
