//! The summary of a recording as Markdown, for a ticket.

use std::fmt::Write;

use analysis::{ExitTable, Picture};
use paths::PathReport;
use render::markdown::{code, text};
use render::{Layout, diagnose, exits, info, ledger, paths as render_paths, vcpus};
use rules::{Diagnosis, Finding};
use words::{duration, plural};

/// Rows of the tables: what a ticket has room for.
const EXITS: usize = 10;
const ACCESSES: usize = 5;
const VCPUS: usize = 64;
const TASKS: usize = 10;
const PATHS: usize = 8;
/// Paths whose stages are shown.
const STAGED: usize = 2;
/// Findings, and warnings, at most.
const FINDINGS: usize = 20;
const WARNINGS: usize = 30;

/// What a summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct MarkdownSummary<'s> {
    /// The recording's name.
    pub name: &'s str,
    /// What it says of itself.
    pub head: &'s info::Head,
    /// How the recordings of its guests join it.
    pub guests: &'s [info::GuestRow],
    /// What was found in it.
    pub picture: &'s Picture,
    /// Its findings.
    pub diagnosis: &'s Diagnosis,
    /// The command that makes the summary, as a shell takes it.
    pub command: &'s str,
    /// The commands that print the same tables.
    pub commands: &'s [String],
    /// The version of the program.
    pub version: &'s str,
}

impl MarkdownSummary<'_> {
    /// Returns the summary. Whatever a recording calls things, nothing of it becomes markup, a link, a mention or HTML.
    pub fn markdown(&self) -> String {
        let mut out = format!("## trapline: {}\n\n", code(self.name));
        out.push_str(&self.headline());
        self.about(&mut out);
        self.findings(&mut out);
        self.vcpus(&mut out);
        self.exits(&mut out);
        self.paths(&mut out);
        self.quality(&mut out);
        self.made(&mut out);
        out
    }

    fn layout(&self, limit: usize) -> Layout {
        Layout {
            width: 80,
            limit,
            nanoseconds: self.head.nanoseconds,
        }
    }

    fn headline(&self) -> String {
        let findings = &self.diagnosis.findings;
        match findings.first() {
            Some(first) => format!("**{}**\n\n", text(&first.title)),
            None if !self.picture.info.has_exits => {
                "**No exits were recorded, so nothing can be said about VMs.**\n\n".to_owned()
            }
            None => match &self.diagnosis.no_verdict {
                Some(why) => format!("**No verdict:** {}\n\n", text(why)),
                None => "**No finding.**\n\n".to_owned(),
            },
        }
    }

    fn about(&self, out: &mut String) {
        let head = self.head;
        let mut line = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(out, "- {what}: {value}");
            }
        };
        line("recording", Some(code(&head.format)));
        let machine: Vec<String> = [&head.arch, &head.kernel]
            .into_iter()
            .flatten()
            .map(|value| code(value))
            .chain(head.cpus.map(|cpus| plural(u64::from(cpus), "CPU")))
            .collect();
        line("machine", (!machine.is_empty()).then(|| machine.join(", ")));
        let span = self.picture.span_ns.map(duration::human);
        let events: u64 = self
            .picture
            .info
            .events
            .iter()
            .map(|kind| kind.count)
            .fold(0, u64::saturating_add);
        let events = plural(events, "event");
        line(
            "length",
            Some(span.map_or(events.clone(), |span| format!("{span}, {events}"))),
        );
        let names = model::vm_names(&self.picture.info.vms);
        let vms: Vec<String> = (self.picture.info.vms.iter().zip(&names))
            .take(VCPUS)
            .map(|(vm, name)| {
                let vcpus = plural(vm.vcpus.len() as u64, "vCPU");
                format!("{} ({vcpus})", code(name))
            })
            .collect();
        line("VMs", (!vms.is_empty()).then(|| vms.join(", ")));
        for guest in self.guests {
            let of = match (&guest.vm_name, guest.vm_pid) {
                (Some(name), _) => format!(", of VM {}", code(name)),
                (None, Some(pid)) => format!(", of the VM of process {pid}"),
                (None, None) => String::new(),
            };
            line("guest's recording", Some(code(&guest.input) + &of));
        }
        out.push('\n');
    }

    fn findings(&self, out: &mut String) {
        out.push_str("### Findings\n\n");
        let findings = &self.diagnosis.findings;
        if findings.is_empty() {
            out.push_str("None.\n\n");
        }
        for (number, finding) in findings.iter().enumerate().take(FINDINGS) {
            one_finding(out, number + 1, finding);
        }
        if findings.len() > FINDINGS {
            let _ = writeln!(out, "... and {} more\n", findings.len() - FINDINGS);
        }
        let missing: Vec<String> = (self.diagnosis.unchecked.iter())
            .map(|lack| code(lack.rule.id))
            .collect();
        if !missing.is_empty() {
            let _ = writeln!(out, "Could not be checked: {}.\n", missing.join(", "));
        }
    }

    fn vcpus(&self, out: &mut String) {
        let Some(report) = self.picture.vcpus.as_ref() else {
            return;
        };
        if report.rows.is_empty() {
            return;
        }
        out.push_str(
            "### Where the vCPUs' time went\n\nPer cent of the time that each was observed.\n\n",
        );
        out.push_str(&vcpus::markdown(report, self.layout(VCPUS)));
        out.push('\n');
        if let Some(tasks) = vcpus::guest_markdown(report, self.layout(TASKS)) {
            out.push_str(
                "### What the guests did\n\nTime of their vCPUs meanwhile, the most first.\n\n",
            );
            out.push_str(&tasks);
            out.push('\n');
        }
    }

    fn exits(&self, out: &mut String) {
        for report in &self.picture.exits {
            if report.rows.is_empty() {
                continue;
            }
            let first = report.table == ExitTable::Vmexit;
            let layout = self.layout(if first { EXITS } else { ACCESSES });
            if first {
                out.push_str("### The heaviest exits\n\n");
            }
            let _ = writeln!(
                out,
                "{}\n",
                text(&exits::title(self.picture.isa, report, layout))
            );
            let mut report = report.clone();
            report
                .rows
                .sort_by_key(|row| std::cmp::Reverse(row.stats.total()));
            out.push_str(&exits::markdown(&report, layout));
            out.push('\n');
            if let Some(note) = exits::note(&report) {
                let _ = writeln!(out, "{note}\n");
            }
        }
    }

    fn paths(&self, out: &mut String) {
        self.slowest("The slowest paths", &self.picture.paths, out);
        self.slowest("Paths through the guests", &self.picture.guest_paths, out);
    }

    fn slowest(&self, title: &str, paths: &[PathReport], out: &mut String) {
        let paths = paths.iter();
        let mut paths: Vec<&PathReport> = paths.filter(|path| path.count > 0).collect();
        if paths.is_empty() {
            return;
        }
        paths.sort_by_key(|path| std::cmp::Reverse(path.total.max()));
        let _ = writeln!(out, "### {title}\n");
        out.push_str(&render_paths::markdown(&paths, self.layout(PATHS)));
        out.push('\n');
        for path in paths.into_iter().take(STAGED) {
            let _ = writeln!(out, "Stages of {}:\n", code(&path.name));
            out.push_str(&render_paths::stages_markdown(path, self.layout(PATHS * 4)));
            out.push('\n');
            if let Some(line) = ledger::line(&path.ledger, self.layout(PATHS)) {
                let _ = writeln!(out, "{}\n", text(&line));
                if let Some(line) = ledger::recording(path, self.layout(PATHS)) {
                    let _ = writeln!(out, "{}\n", text(&line));
                }
            }
            if let Some(line) = ledger::cleared(path, self.layout(PATHS)) {
                let _ = writeln!(out, "{}\n", text(&line));
            }
            let because = path.slow.iter().flat_map(|slow| &slow.because);
            let mut any = false;
            for one in because {
                any = true;
                let _ = writeln!(out, "- {}", text(&one.text));
            }
            if any {
                out.push('\n');
            }
        }
    }

    fn quality(&self, out: &mut String) {
        let quality = &self.picture.quality;
        out.push_str("### Can the recording be trusted\n\n");
        let lost = match quality.lost_events {
            0 => "no events lost".to_owned(),
            lost => format!("{} lost", plural(lost, "event")),
        };
        let _ = writeln!(out, "- {lost}, {}", quality.extent());
        let doubts = quality.all_doubts();
        for doubt in doubts.iter().take(WARNINGS) {
            let _ = writeln!(out, "- {}", text(&doubt.text()));
        }
        if doubts.len() > WARNINGS {
            let more = doubts.len() - WARNINGS;
            let _ = writeln!(out, "- ... and {more} more");
        }
        out.push('\n');
    }

    fn made(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "### How this was made\n\n{} (trapline {})\n",
            code(self.command),
            self.version
        );
        let commands: Vec<String> = self.commands.iter().map(|one| code(one)).collect();
        let _ = writeln!(out, "The same tables: {}.", commands.join(", "));
    }
}

fn one_finding(out: &mut String, number: usize, finding: &Finding) {
    let head = diagnose::head(finding);
    let rest = head.strip_prefix(finding.rule.id).unwrap_or(&head);
    let rest = text(rest.trim_start_matches([',', ' ']));
    let _ = writeln!(
        out,
        "**{number}. {}**: {rest}, confidence {:.2}\n",
        code(finding.rule.id),
        finding.confidence
    );
    let _ = writeln!(out, "{}\n", text(&finding.title));
    for evidence in &finding.evidence {
        let _ = writeln!(out, "- {}", text(&evidence.text));
    }
    let _ = writeln!(out, "- cause: {}", text(&finding.cause));
    for advice in &finding.remedies {
        let _ = writeln!(out, "- remedy: {}", text(advice.remedy.what));
        let since = advice.remedy.since();
        if !since.is_empty() {
            let _ = writeln!(out, "  - from: {}", text(&since));
        }
        for (what, sentence) in [
            ("price", advice.remedy.price),
            ("caution", advice.remedy.unless),
            ("check", advice.remedy.check),
        ] {
            let _ = writeln!(out, "  - {what}: {}", text(sentence));
        }
        if let Some(note) = &advice.note {
            let _ = writeln!(out, "  - here: {}", text(note));
        }
    }
    out.push('\n');
}
