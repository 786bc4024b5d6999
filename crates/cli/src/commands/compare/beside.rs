//! What stands beside one side of a comparison, or beside both: definitions, facts, symbols, results of benchmarks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use results::Score;
use session::DomainFile;

/// A pasted result is no longer than this.
const MAX_SCORES: u64 = 16 << 20;

/// What stands beside one side, or beside both.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "One side's")]
pub(crate) struct BesideArgs {
    /// What was measured on A: a number of which more is better (NAME=287.6 with a name), a time of which less is
    /// (0.18ms), or a FILE with what sysbench, iperf, iperf3 (also --json), fio or ping printed. May be repeated;
    /// several runs of one benchmark show how much it varies.
    #[arg(long, value_name = "SCORE", conflicts_with = "each")]
    pub a_score: Vec<String>,

    /// The same of B.
    #[arg(long, value_name = "SCORE", conflicts_with = "each")]
    pub b_score: Vec<String>,

    /// The definition of A's guest (libvirt's domain XML, QEMU's command line or a Proxmox VM's .conf), as diagnose
    /// takes it. Where both sides have one, what differs is named.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["domain", "each"])]
    pub a_domain: Option<PathBuf>,

    /// The same of B's guest.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["domain", "each"])]
    pub b_domain: Option<PathBuf>,

    /// Facts of A's host, as --facts takes them for both sides; they count before those of --facts. May be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    pub a_facts: Vec<PathBuf>,

    /// The same of B's host.
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    pub b_facts: Vec<PathBuf>,

    /// A copy of /proc/kallsyms of A's host, in the place of --kallsyms.
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    pub a_kallsyms: Option<PathBuf>,

    /// The same of B's host.
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    pub b_kallsyms: Option<PathBuf>,
}

impl BesideArgs {
    /// Returns the first option that is given, for commands that take none of them.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            (!self.a_score.is_empty(), "--a-score"),
            (!self.b_score.is_empty(), "--b-score"),
            (self.a_domain.is_some(), "--a-domain"),
            (self.b_domain.is_some(), "--b-domain"),
            (!self.a_facts.is_empty(), "--a-facts"),
            (!self.b_facts.is_empty(), "--b-facts"),
            (self.a_kallsyms.is_some(), "--a-kallsyms"),
            (self.b_kallsyms.is_some(), "--b-kallsyms"),
        ];
        let found = options.iter().find(|(given, _)| *given);
        found.map(|(_, option)| *option)
    }

    /// Returns whether recordings of both sides are read with different files beside them.
    pub(crate) fn reads_apart(&self) -> bool {
        !self.a_facts.is_empty()
            || !self.b_facts.is_empty()
            || self.a_kallsyms.is_some()
            || self.b_kallsyms.is_some()
    }

    /// Returns all files of facts and symbols, by side.
    pub(crate) fn files(&self) -> [Vec<&Path>; 2] {
        [
            (&self.a_facts, &self.a_kallsyms),
            (&self.b_facts, &self.b_kallsyms),
        ]
        .map(|(facts, kallsyms)| facts.iter().chain(kallsyms).map(PathBuf::as_path).collect())
    }
}

/// What both sides have beside their recordings.
#[derive(Debug, Default)]
pub(crate) struct BothSides {
    /// Results of benchmarks.
    pub scores: [Vec<Score>; 2],
    /// Definitions of guests.
    pub domains: [Option<DomainFile>; 2],
}

impl BothSides {
    /// Takes the results that stand in a text before its part that a side is, where none was given.
    pub(crate) fn take_from_texts(&mut self, sides: [&[PathBuf]; 2]) {
        if self.scores.iter().any(|scores| !scores.is_empty()) {
            return;
        }
        for (scores, side) in self.scores.iter_mut().zip(sides) {
            if let [one] = side {
                *scores = session::scores_before(one);
            }
        }
    }

    /// Reads what is given. `domain` is that of both sides; `vm` chooses among several in a file.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read, or is of something else.
    pub(crate) fn read(
        args: &BesideArgs,
        domain: Option<&Path>,
        vm: Option<&str>,
    ) -> Result<BothSides> {
        let own = |given: Option<&Path>| -> Result<Option<DomainFile>> {
            let path = given.or(domain);
            Ok(path.map(|path| DomainFile::open(path, vm)).transpose()?)
        };
        Ok(BothSides {
            scores: [
                scores("--a-score", &args.a_score)?,
                scores("--b-score", &args.b_score)?,
            ],
            domains: [
                own(args.a_domain.as_deref())?,
                own(args.b_domain.as_deref())?,
            ],
        })
    }
}

/// Reads scores: numbers, and files of what tools printed.
fn scores(option: &str, given: &[String]) -> Result<Vec<Score>> {
    let mut out = Vec::new();
    for one in given {
        let path = Path::new(one);
        if !path.is_file()
            && let Some(score) = written(one)
        {
            out.push(score);
            continue;
        }
        let bytes = source::read_beside(path, MAX_SCORES).with_context(|| {
            format!(
                "{option} {one}: it is no number, no time as 0.18ms, and no file that can be read"
            )
        })?;
        let mut found = results::scores(&bytes);
        if found.is_empty() {
            bail!(
                "{option} {one}: holds no result that sysbench, iperf, iperf3, fio or ping printed; give the number \
                 itself, as {option} 287.6"
            );
        }
        out.append(&mut found);
    }
    Ok(out)
}

/// Reads a number that somebody wrote down, with a name perhaps.
fn written(text: &str) -> Option<Score> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Some(Score {
            name: name.trim().to_owned(),
            ..Score::of_number(value)?
        }),
        _ => Score::of_number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_number_or_a_file() {
        let read = |text: &str| scores("--a-score", &[text.to_owned()]);
        let named = read("tps=12.5").expect("a number");
        assert_eq!((named[0].name.as_str(), named[0].value), ("tps", 12.5));
        let time = read("0.18ms").expect("a time");
        assert!(!time[0].higher_is_better);
        let error = format!("{:#}", read("nowhere.txt").expect_err("no file"));
        assert!(error.contains("--a-score nowhere.txt"), "{error}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, "    events per second:   280.83\n").expect("written");
        let path = file.path().to_str().expect("a name");
        assert_eq!(read(path).expect("a result")[0].value, 280.83);
        std::fs::write(&file, "nothing of the kind\n").expect("written");
        let error = format!("{:#}", read(path).expect_err("no result"));
        assert!(error.contains("holds no result that sysbench"), "{error}");
    }
}
