//! Findings.

use rules::{AccountRow, Diagnosis, Finding, ProgressVerdict, Remedy, TimeAccount, TimeAccounts};
use serde::Serialize;
use serde_json::Value;
use words::{duration, share};

use crate::definition::Definition;
use crate::quality::wrap;
use crate::schema::{HasShape, Shape};
use crate::shape;
use crate::table::{Table, Unit};
use crate::tickets::TicketDocument;
use crate::{ClockUnit, json};

/// How causes that are no findings stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseList {
    /// How many there are.
    Counted,
    /// Each by its name, with what it needs or the least that would have been found.
    Named,
}

/// Returns findings as text, most time first.
pub fn text(diagnosis: &Diagnosis, causes: CauseList, width: usize) -> String {
    let mut out = String::new();
    if let Some(why) = &diagnosis.no_verdict {
        wrap(
            &mut out,
            "",
            &format!("No verdict: {why} Give the text as its tool printed it."),
            width,
        );
        return out;
    }
    if diagnosis.findings.is_empty() {
        wrap(&mut out, "", "No finding.", width);
    }
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&one(at + 1, finding, width));
    }
    out.push_str(&accounts(&diagnosis.accounts, width));
    if causes == CauseList::Counted {
        out.push_str(&counted(diagnosis, width));
        return out;
    }
    out.push_str(&unchecked(diagnosis, width));
    if !diagnosis.clear.is_empty() {
        out.push_str("\nlooked for and not found; at least this would have been:\n");
        for rule in &diagnosis.clear {
            let label = format!("  {}: ", rule.id);
            wrap(&mut out, &label, &rule.least_found(), width);
        }
    }
    if !diagnosis.not_of_machine.is_empty() {
        let ids: Vec<&str> = diagnosis
            .not_of_machine
            .iter()
            .map(|rule| rule.id)
            .collect();
        out.push('\n');
        wrap(
            &mut out,
            "not of this machine's processor: ",
            &ids.join(", "),
            width,
        );
    }
    out
}

/// Returns how many causes are no findings, why, and the one command that records for those that could not be checked.
fn counted(diagnosis: &Diagnosis, width: usize) -> String {
    let mut out = String::new();
    let unchecked = &diagnosis.unchecked;
    if !unchecked.is_empty() {
        let mut text = format!(
            "{} could not be checked",
            words::plural(unchecked.len() as u64, "cause")
        );
        let worth = unchecked.iter().filter(|one| one.is_worth_checking());
        let most = unchecked
            .first()
            .and_then(|one| Some((one.rule.id, one.could_explain?)));
        match (worth.count(), most) {
            (0, _) => text.push_str(", of which none could explain a tenth of the time"),
            (_, Some((id, share))) => {
                text.push_str(&format!(
                    ": {id} could explain most, up to {} of the time",
                    share::tenths(share)
                ));
            }
            (_, None) => {}
        }
        text.push('.');
        if let Some(command) = diagnosis.to_record() {
            text.push_str(&format!(
                " '{command}', on the host, records what they need."
            ));
        }
        out.push('\n');
        wrap(&mut out, "", &text, width);
    }
    let mut rest: Vec<String> = Vec::new();
    for (list, one, several) in [
        (
            &diagnosis.clear,
            "was looked for and not found",
            "were looked for and not found",
        ),
        (
            &diagnosis.not_of_machine,
            "is not of this machine's processor",
            "are not of this machine's processor",
        ),
    ] {
        let what = match list.len() {
            0 => continue,
            1 => one,
            _ => several,
        };
        rest.push(format!(
            "{} {what}",
            words::plural(list.len() as u64, "cause")
        ));
    }
    if !rest.is_empty() {
        out.push('\n');
        wrap(&mut out, "", &format!("{}.", rest.join("; ")), width);
    }
    if !out.is_empty() {
        wrap(
            &mut out,
            "",
            "'--full' names them, with what each needs or would have shown.",
            width,
        );
    }
    out
}

/// Returns what could not be checked: that which could explain a tenth of the time or more, most first.
fn unchecked(diagnosis: &Diagnosis, width: usize) -> String {
    let mut out = String::new();
    let (worth, little): (Vec<_>, Vec<_>) =
        (diagnosis.unchecked.iter()).partition(|one| one.is_worth_checking());
    if !worth.is_empty() {
        out.push_str("\ncould not check:\n");
        for lack in worth {
            let most = lack.could_explain.map_or(String::new(), |share| {
                format!("Up to {} of the time. ", share::tenths(share))
            });
            let label = format!("  {}: ", lack.rule.id);
            wrap(&mut out, &label, &format!("{most}{}", lack.what), width);
        }
        if let Some(command) = diagnosis.to_record() {
            let text = format!("'{command}', on the host, records what these need.");
            wrap(&mut out, "  ", &text, width);
        }
    }
    if !little.is_empty() {
        let ids: Vec<&str> = little.iter().map(|one| one.rule.id).collect();
        out.push('\n');
        let label = "could not check, and less than a tenth of the time each: ";
        wrap(&mut out, label, &ids.join(", "), width);
    }
    out
}

/// Returns a line for each account that has time in it.
fn accounts(accounts: &TimeAccounts, width: usize) -> String {
    let mut out = String::new();
    for sentence in account_sentences(accounts) {
        out.push('\n');
        wrap(&mut out, "", &sentence, width);
    }
    out
}

/// Returns a sentence for each account: how much of what was observed findings explain, is normal, or is neither.
pub fn account_sentences(accounts: &TimeAccounts) -> Vec<String> {
    let of_exits = accounts.vcpus.of_exits;
    let vcpus = match of_exits {
        true => "the time of exits",
        false => "the vCPUs' time",
    };
    let mut sentences = Vec::new();
    for (account, what) in [
        (&accounts.vcpus, vcpus),
        (&accounts.threads, "CPU time of threads that work for VMs"),
    ] {
        let observed = account.observed_ns();
        if observed == 0 {
            continue;
        }
        let mut parts: Vec<String> = Vec::new();
        for (ns, kind) in [
            (account.explained_ns(), "explained by findings"),
            (account.normal_ns(), "normal"),
            (account.unexplained_ns(), "unexplained"),
            (account.unknown_ns(), "not recorded"),
        ] {
            if ns > 0 {
                parts.push(format!("{} {kind}", share::tenths(account.share(ns))));
            }
        }
        let observed = duration::human(observed);
        sentences.push(format!(
            "account of {what}, {observed}: {}.",
            parts.join(", ")
        ));
    }
    sentences
}

/// Returns a line or two for each of the first findings, and how many more there are.
pub fn summary(diagnosis: &Diagnosis, most: usize, width: usize) -> String {
    let mut out = String::from("findings: 'trapline diagnose' says why, and what to change\n");
    for finding in diagnosis.findings.iter().take(most) {
        let label = format!("  {:6}  ", finding.severity().name());
        let text = format!("{}: {}", finding.rule.id, finding.title);
        wrap(&mut out, &label, &text, width);
    }
    let more = diagnosis.findings.len().saturating_sub(most);
    if more > 0 {
        out.push_str(&format!("          and {more} more\n"));
    }
    out
}

/// Returns a finding's first line: how severe, and what it costs.
pub fn head(finding: &Finding) -> String {
    let mut out = format!("{}, {}", finding.rule.id, finding.severity().name());
    if let Some(cost) = finding.cost {
        out.push_str(&format!(", {}", finding.time(cost.ns)));
        if cost.share > 0.0 {
            out.push_str(&format!(
                ": {} % {}",
                share::cell(cost.share),
                cost.base.words()
            ));
        }
    }
    out
}

fn one(number: usize, finding: &Finding, width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, &format!("{number}. "), &head(finding), width);
    wrap(&mut out, "   ", &finding.title, width);
    wrap(
        &mut out,
        "   ",
        &format!("confidence {:.2}", finding.confidence),
        width,
    );
    for name in &finding.inputs {
        wrap(&mut out, "   in ", name, width);
    }
    for evidence in &finding.evidence {
        wrap(&mut out, "   - ", &evidence.text, width);
    }
    wrap(&mut out, "   cause: ", &finding.cause, width);
    for (at, advice) in finding.remedies.iter().enumerate() {
        let label = format!("   remedy {}: ", at + 1);
        wrap(&mut out, &label, advice.remedy.what, width);
        wrap(&mut out, "     price: ", advice.remedy.price, width);
        let since = advice.remedy.since();
        if !since.is_empty() {
            wrap(&mut out, "     from: ", &format!("{since}."), width);
        }
        if !advice.remedy.unless.is_empty() {
            wrap(&mut out, "     caution: ", advice.remedy.unless, width);
        }
        wrap(&mut out, "     check: ", advice.remedy.check, width);
        if let Some(note) = &advice.note {
            wrap(&mut out, "     here: ", note, width);
        }
        if !advice.changes.is_empty() {
            let text = "--patch prints the change of the guest's definition.";
            wrap(&mut out, "     patch: ", text, width);
        }
    }
    out
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct DiagnoseDocument<'a> {
    /// Inputs in which several things stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tickets: Vec<TicketDocument<'a>>,
    findings: Value,
    /// Where all observed time went; null where none was, or where its unit is unknown.
    account: Option<Accounts<'a>>,
    /// Of every vCPU whether it got anywhere.
    progress: Vec<DocumentedProgress<'a>>,
    unknown: Vec<Unknown<'a>>,
    /// Rules that found nothing, by their names.
    not_found: Vec<&'static str>,
    /// The same rules with the least that each would have found.
    checked: Vec<CheckedRule>,
    /// Rules about what this machine's processor does not have, by their names.
    not_of_machine: Vec<&'static str>,
    /// Why there is no verdict at all; null where there is one.
    no_verdict: Option<&'a str>,
    #[serde(flatten)]
    definition: Option<Definition<'a>>,
}

shape!(DiagnoseDocument<'static> {
    tickets?, findings: columns().shape().list(), account, progress, unknown, not_found, checked, not_of_machine,
    no_verdict, ..definition
});

/// A rule that cannot tell.
#[derive(Debug, Serialize)]
struct Unknown<'a> {
    id: &'static str,
    /// What to record.
    needs: &'a str,
    /// The command that records it; null where a recording cannot help.
    record: Option<String>,
    /// The share of the vCPUs' time that it could explain at most; null where no such time is known. What could explain
    /// most stands first.
    could_explain: Option<f64>,
}

shape!(Unknown<'static> { id, needs, record, could_explain });

/// A rule that found nothing.
#[derive(Debug, Serialize)]
struct CheckedRule {
    id: &'static str,
    /// The least that it would have found.
    least: String,
}

shape!(CheckedRule { id, least });

/// Returns the fields of a document.
pub fn document<'a>(
    diagnosis: &'a Diagnosis,
    definition: Option<Definition<'a>>,
    tickets: Vec<TicketDocument<'a>>,
) -> DiagnoseDocument<'a> {
    let unknown = diagnosis.unchecked.iter().map(|lack| Unknown {
        id: lack.rule.id,
        needs: &lack.what,
        record: lack.record(),
        could_explain: lack.could_explain,
    });
    DiagnoseDocument {
        tickets,
        findings: findings(&diagnosis.findings),
        account: Accounts::of(&diagnosis.accounts),
        progress: diagnosis
            .progress
            .iter()
            .map(DocumentedProgress::of)
            .collect(),
        unknown: unknown.collect(),
        not_found: diagnosis.clear.iter().map(|rule| rule.id).collect(),
        checked: (diagnosis.clear.iter())
            .map(|rule| CheckedRule {
                id: rule.id,
                least: rule.least_found(),
            })
            .collect(),
        no_verdict: diagnosis.no_verdict.as_deref(),
        not_of_machine: diagnosis
            .not_of_machine
            .iter()
            .map(|rule| rule.id)
            .collect(),
        definition,
    }
}

/// Both accounts in a document.
#[derive(Debug, Serialize)]
struct Accounts<'a> {
    vcpus: Account<'a>,
    threads: Account<'a>,
}

shape!(Accounts<'static> { vcpus, threads });

impl<'a> Accounts<'a> {
    fn of(accounts: &'a TimeAccounts) -> Option<Accounts<'a>> {
        let observed = accounts.vcpus.observed_ns() > 0 || accounts.threads.observed_ns() > 0;
        observed.then(|| Accounts {
            vcpus: Account::of(&accounts.vcpus),
            threads: Account::of(&accounts.threads),
        })
    }
}

/// An account in a document.
#[derive(Debug, Serialize)]
struct Account<'a> {
    observed_ns: u64,
    explained_ns: u64,
    normal_ns: u64,
    unexplained_ns: u64,
    /// Time of which the recording does not say what it was.
    unknown_ns: u64,
    /// Whether it is the time of exits alone, as a printed table has it.
    of_exits: bool,
    rows: Vec<AccountedTime<'a>>,
}

shape!(Account<'static> {
    observed_ns, explained_ns, normal_ns, unexplained_ns, unknown_ns, of_exits, rows,
});

impl<'a> Account<'a> {
    fn of(account: &'a TimeAccount) -> Account<'a> {
        Account {
            observed_ns: account.observed_ns(),
            explained_ns: account.explained_ns(),
            normal_ns: account.normal_ns(),
            unexplained_ns: account.unexplained_ns(),
            unknown_ns: account.unknown_ns(),
            of_exits: account.of_exits,
            rows: account.rows.iter().map(AccountedTime::of).collect(),
        }
    }
}

/// A row of an account in a document.
#[derive(Debug, Serialize)]
struct AccountedTime<'a> {
    part: &'static str,
    name: &'a str,
    ns: u64,
    explained_ns: u64,
    /// The rules whose findings explain it.
    explained_by: &'a [&'static str],
    /// Whether what is left is normal.
    normal: bool,
    unexplained_ns: u64,
    /// The arguments of `trapline` that show it.
    shown_by: &'a str,
}

shape!(AccountedTime<'static> {
    part, name, ns, explained_ns, explained_by, normal, unexplained_ns, shown_by,
});

impl<'a> AccountedTime<'a> {
    fn of(row: &'a AccountRow) -> AccountedTime<'a> {
        AccountedTime {
            part: row.part.id(),
            name: &row.name,
            ns: row.ns,
            explained_ns: row.explained_ns,
            explained_by: &row.explained_by,
            normal: row.normal,
            unexplained_ns: row.unexplained_ns(),
            shown_by: &row.shown_by,
        }
    }
}

/// Whether a vCPU got anywhere, in a document.
#[derive(Debug, Serialize)]
struct DocumentedProgress<'a> {
    vm_pid: Option<i32>,
    vcpu: u32,
    tid: i32,
    state: &'static str,
    /// Since when, on the recording's clock.
    since_ns: u64,
    text: &'a str,
}

shape!(DocumentedProgress<'static> { vm_pid, vcpu, tid, state, since_ns, text });

impl<'a> DocumentedProgress<'a> {
    fn of(verdict: &'a ProgressVerdict) -> DocumentedProgress<'a> {
        DocumentedProgress {
            vm_pid: verdict.vm_pid,
            vcpu: verdict.vcpu,
            tid: verdict.tid,
            state: verdict.state.name(),
            since_ns: verdict.since,
            text: &verdict.text,
        }
    }
}

/// A remedy in a document.
#[derive(Debug, Serialize)]
struct Advice<'a> {
    #[serde(flatten)]
    remedy: &'a Remedy,
    /// From which releases on it works, by what it changes.
    since: String,
    /// What is particular to the case.
    note: Option<&'a str>,
    /// Whether the guest's definition can be changed for it.
    patches_domain: bool,
}

shape!(Advice<'static> { ..remedy, since, note, patches_domain });

/// Columns of findings.
pub(crate) fn columns() -> Table<'static, Finding> {
    use Unit::{Name, Nanoseconds, Nested, Share, Text};
    Table::new()
        .clock_of(|finding: &Finding| ClockUnit::of(!finding.in_ticks))
        .column("id", Text, |finding: &Finding| finding.rule.id)
        .column("severity", Text, |finding| finding.severity().name())
        .column("confidence", Share, |finding| finding.confidence)
        .csv_form(|finding| format!("{:.2}", finding.confidence))
        .column("title", Name, |finding| finding.title.clone())
        .csv_after("cost_of")
        .column("evidence", Nested, |finding| {
            let evidence = finding.evidence.iter();
            evidence.map(|one| one.text.clone()).collect::<Value>()
        })
        .within(Shape::Text.list())
        .column("cause", Name, |finding| finding.cause.clone())
        .json_only()
        .column("remedy", Nested, |finding| {
            json::list(finding.remedies.iter().map(|one| Advice {
                remedy: &one.remedy,
                since: one.remedy.since(),
                note: one.note.as_deref(),
                patches_domain: !one.changes.is_empty(),
            }))
        })
        .within(Vec::<Advice<'static>>::shape())
        .column("cost_ns", Nanoseconds, |finding| {
            finding.cost.map(|cost| cost.ns)
        })
        .column("cost_share", Share, |finding| {
            finding.cost.map(|cost| cost.share)
        })
        .csv_form(|finding| {
            let share = finding.cost.map(|cost| format!("{:.6}", cost.share));
            share.unwrap_or_default()
        })
        .column("cost_of", Text, |finding| {
            finding.cost.map(|cost| cost.base.name())
        })
        .column("inputs", Nested, |finding| finding.inputs.clone())
        .column("doubts", Nested, |finding| finding.doubts.clone())
        .column("effect_of", Text, |finding| finding.effect_of)
}

/// Returns what findings are in a document.
pub fn findings_shape() -> Shape {
    columns().shape().list()
}

/// Returns findings as the contract has them.
pub fn findings(findings: &[Finding]) -> Value {
    columns().json(findings)
}

/// Returns findings as comma separated values, a line each.
pub fn csv(diagnosis: &Diagnosis) -> String {
    let findings = &diagnosis.findings;
    let clock = ClockUnit::of(!findings.iter().any(|finding| finding.in_ticks));
    columns().counted_in(clock).csv(findings)
}
