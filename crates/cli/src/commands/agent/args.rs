//! `trapline agent`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::options::values::{seconds, some_size};

/// `trapline agent`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentArgs {
    /// Record while this command runs; without one, until Ctrl-C.
    #[arg(value_name = "CMD", last = true, conflicts_with = "listen")]
    pub command: Vec<OsString>,

    /// Write to this file, which must not be there yet. With --listen: to a file in this folder, which must be there,
    /// and be its owner's alone.
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,

    /// What the recording is to answer. May be repeated; the default is cpus and io.
    #[arg(
        long = "for",
        value_enum,
        value_name = "QUESTION",
        value_delimiter = ','
    )]
    pub questions: Vec<ForGuest>,

    /// Stop after so many seconds, whatever a host asks for.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub time: Duration,

    /// Stop before the file is larger than this, whatever a host asks for.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = some_size)]
    pub size: u64,

    /// Wait for a host that records and has the same token: vsock:PORT, or tcp:ADDRESS:PORT. Without this, listen on
    /// nothing.
    #[arg(long, value_name = "ADDRESS", requires = "token_file")]
    pub listen: Option<agent::Listen>,

    /// With --listen: the file with the token, at least 16 characters. Nobody but its owner may read it.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,

    /// With --listen: end after one recording.
    #[arg(long, requires = "listen")]
    pub once: bool,

    /// Serve one host on the socket that is standard input. The agent starts itself so for each recording.
    #[arg(long, requires = "listen", hide = true)]
    pub session: bool,
}

/// What the recording of a guest is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForGuest {
    /// Which thread each CPU ran, who woke it, interrupts, softirqs, when it was idle.
    Cpus,
    /// Packets and block requests on their way out and back, and when programs had what came.
    Io,
    /// When programs asked to send, and when they had what they received. While this is open, each system call of each
    /// thread takes longer.
    Sockets,
}

impl ForGuest {
    /// Returns the question as a bit of the protocol.
    fn bit(self) -> u8 {
        match self {
            ForGuest::Cpus => agent::CPU,
            ForGuest::Io => agent::IO,
            ForGuest::Sockets => agent::SOCKETS,
        }
    }

    /// Returns questions as bits; `default` where none was asked.
    pub(crate) fn bits(asked: &[ForGuest], default: u8) -> u8 {
        match asked {
            [] => default,
            _ => asked.iter().fold(0, |all, one| all | one.bit()),
        }
    }
}

const EXAMPLES: &str =
    "The file is perf's own kind of file, readable at any moment, whatever ends the agent. The clocks of a host and \
its guests differ: give both recordings to one command, and it finds out how.

Examples:
  trapline agent -o guest.perf.data        until Ctrl-C, ten minutes at most
  trapline agent -o guest.perf.data --time 10 --size 64M
  trapline agent -o guest.perf.data -- fio job.fio
  trapline agent -o guest.perf.data --for cpus,io,sockets -- ping 10.0.0.2
  trapline agent --listen vsock:9999 --token-file token -o /var/lib/trapline
                                           wait for 'trapline record --agent' on the host
  trapline info perf.data guest.perf.data  how its clock reads on its host's";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    #[test]
    fn nothing_listens_without_a_token_and_an_address() {
        let parsed = |text: &str| Args::try_parse_from(format!("trapline agent {text}").split(' '));
        for good in [
            "-o f",
            "-o f --time 10 --size 1M -- sleep 1",
            "-o d --listen vsock:9999 --token-file t",
            "-o d --listen tcp:127.0.0.1:9999 --token-file t --once",
        ] {
            assert!(parsed(good).is_ok(), "{good}");
        }
        for bad in [
            "--time 10",
            "-o d --listen vsock:9999",
            "-o d --token-file t",
            "-o d --once",
            "-o d --listen tcp:9999 --token-file t",
            "-o d --listen tcp::9999 --token-file t",
            "-o d --listen vsock:9999 --token-file t -- true",
            "-o f --time 0",
            "-o f --size 0",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
