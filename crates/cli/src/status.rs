//! Exit statuses, alike in all commands: what each means, and which errors are which.

use std::process::ExitCode;

use crate::usage::Usage;

/// A status, for the program's help, its man pages and docs/commands.md.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExitStatus {
    /// The number.
    pub code: u8,
    /// When the program ends with it.
    pub meaning: &'static str,
}

/// What was asked for was printed or written.
const ANSWERED: u8 = 0;
/// An input could not be read, or does not have what was asked for.
const FAILED: u8 = 1;
/// The command line is wrong.
const WRONG_USAGE: u8 = 2;
/// A doubt touches what was printed, and `--strict` was asked for.
const DOUBTED: u8 = 3;

/// All of them.
pub(crate) const STATUSES: [ExitStatus; 4] = [
    ExitStatus {
        code: ANSWERED,
        meaning: "It was answered, with or without findings.",
    },
    ExitStatus {
        code: FAILED,
        meaning: "An input cannot be read, does not have what the command and its options need, or has nothing that \
                  the filters choose; or recording or measuring failed. One line on standard error says which, and \
                  what to do.",
    },
    ExitStatus {
        code: WRONG_USAGE,
        meaning: "The command line is wrong, whatever the inputs hold: there is no such option, command, rule or \
                  built-in path, a word is missing, or options exclude each other.",
    },
    ExitStatus {
        code: DOUBTED,
        meaning: "With --strict: it was answered, and a doubt touches what was printed.",
    },
];

/// Returns the status of a command that was answered.
pub(crate) fn answered(doubted: bool) -> ExitCode {
    ExitCode::from(if doubted { DOUBTED } else { ANSWERED })
}

/// Returns the status of a wrong command line, which the parser refused.
pub(crate) fn refused() -> ExitCode {
    ExitCode::from(WRONG_USAGE)
}

/// Returns the status where output could not be written.
pub(crate) fn failed() -> ExitCode {
    ExitCode::from(FAILED)
}

/// Returns the status of an error.
pub(crate) fn of(error: &anyhow::Error) -> ExitCode {
    let of_session = error.downcast_ref::<session::Error>();
    let usage = error.is::<Usage>() || of_session.is_some_and(session::Error::is_wrong_usage);
    ExitCode::from(if usage { WRONG_USAGE } else { FAILED })
}

/// Returns the paragraph about them that stands below the program's help.
pub(crate) fn paragraph() -> String {
    let lines = STATUSES.map(|one| format!("  {}  {}", one.code, one.meaning));
    format!("Exit status:\n{}", lines.join("\n"))
}
