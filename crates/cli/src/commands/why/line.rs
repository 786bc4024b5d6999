//! The commands that `why` and `watch` stand for, as one types them: what they do is what these do.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use report::quoted;

use crate::commands::diagnose::args::DiagnoseArgs;
use crate::commands::record::args::RecordArgs;
use crate::commands::report::args::ReportArgs;

/// `trapline record ...`.
pub(in crate::commands) struct RecordLine(Vec<OsString>);

/// `trapline report ...`.
pub(in crate::commands) struct ReportLine(Vec<OsString>);

/// `trapline diagnose --domain ...`.
pub(super) struct DiagnoseLine(Vec<OsString>);

/// Reads the words of `record`.
#[derive(Debug, Parser)]
struct RecordParser {
    #[command(flatten)]
    args: RecordArgs,
}

/// Reads the words of `report`.
#[derive(Debug, Parser)]
struct ReportParser {
    #[command(flatten)]
    args: ReportArgs,
}

/// Reads the words of `diagnose`.
#[derive(Debug, Parser)]
struct DiagnoseParser {
    #[command(flatten)]
    args: DiagnoseArgs,
}

impl DiagnoseLine {
    /// Returns the command that says what a definition says by itself.
    pub(super) fn new(file: &Path) -> DiagnoseLine {
        DiagnoseLine(vec!["diagnose".into(), "--domain".into(), file.into()])
    }

    /// Returns it as `diagnose` takes it.
    pub(super) fn args(&self) -> Result<DiagnoseArgs> {
        Ok(DiagnoseParser::try_parse_from(&self.0)?.args)
    }

    /// Returns it as one types it.
    pub(super) fn shown(&self) -> String {
        line(&self.0)
    }
}

impl RecordLine {
    /// Returns the command that records what answers these questions.
    pub(super) fn new(
        questions: &str,
        time: Duration,
        pid: Option<i32>,
        output: Option<&Path>,
    ) -> RecordLine {
        let mut words: Vec<OsString> = ["record", "--for", questions, "--seconds"]
            .map(OsString::from)
            .to_vec();
        words.push(time.as_secs_f64().to_string().into());
        if let Some(pid) = pid {
            words.extend(["--pid".into(), pid.to_string().into()]);
        }
        if let Some(output) = output {
            words.extend(["-o".into(), output.into()]);
        }
        RecordLine(words)
    }

    /// Returns the command that keeps what these words say.
    pub(in crate::commands) fn keeping(more: Vec<OsString>) -> RecordLine {
        let mut words = vec!["record".into()];
        words.extend(more);
        RecordLine(words)
    }

    /// Returns it as `record` takes it.
    pub(in crate::commands) fn args(&self) -> Result<RecordArgs> {
        Ok(RecordParser::try_parse_from(&self.0)?.args)
    }

    /// Returns it as one types it.
    pub(in crate::commands) fn shown(&self) -> String {
        line(&self.0)
    }
}

impl ReportLine {
    /// Returns the command that writes the page of a recording's folder, or of a file.
    pub(in crate::commands) fn new(input: &Path, page: &Path) -> ReportLine {
        ReportLine(vec![
            "report".into(),
            input.into(),
            "-o".into(),
            page.into(),
        ])
    }

    /// Returns its words, without the program's name.
    pub(in crate::commands) fn words(&self) -> &[OsString] {
        &self.0
    }

    /// Returns it as `report` takes it.
    pub(super) fn args(&self) -> Result<ReportArgs> {
        Ok(ReportParser::try_parse_from(&self.0)?.args)
    }

    /// Returns it as one types it.
    pub(super) fn shown(&self) -> String {
        line(&self.0)
    }
}

fn line(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("trapline {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_done() {
        let line = RecordLine::new(
            "exits,sched",
            Duration::from_millis(2500),
            Some(7),
            Some(Path::new("/tmp/it's here")),
        );
        assert_eq!(
            line.shown(),
            "trapline record --for exits,sched --seconds 2.5 --pid 7 -o '/tmp/it'\\''s here'"
        );
        let args = line.args().expect("record takes it");
        assert_eq!((args.pid, args.questions.len()), (Some(7), 2));
        assert_eq!(args.seconds, Some(Duration::from_millis(2500)));
        let line = ReportLine::new(Path::new("d"), Path::new("d/report.html"));
        assert!(line.args().expect("report takes it").output.is_some());
    }
}
