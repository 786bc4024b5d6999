//! Remarks on guests' definitions, of which nothing is measured.

use domain::{Domain, GuestOs};
use rules::DefinitionRemark;
use serde::Serialize;
use serde_json::Value;

use crate::quality::wrap;
use crate::shape;
use crate::table::{Table, Unit};

/// What is said of a guest's definition, where one was given.
#[derive(Debug, Serialize)]
pub struct Definition<'a> {
    /// Remarks on it, of which nothing is measured: a sentence each.
    domain_remarks: Vec<&'a str>,
    /// The same with all that is said of each.
    remarks: Value,
    /// The diff that findings ask for, and without a recording remarks; empty where none does.
    patch: &'a str,
}

shape!(Definition<'static> { domain_remarks, remarks: columns().shape().list(), patch });

impl<'a> Definition<'a> {
    /// Returns what is said of a definition, and the diff that changes it.
    pub fn of(remarks: &'a [DefinitionRemark], patch: &'a str) -> Definition<'a> {
        Definition {
            domain_remarks: remarks.iter().map(|one| one.what.as_str()).collect(),
            remarks: columns().json(remarks),
            patch,
        }
    }
}

/// Returns remarks as they stand below findings: a sentence each.
pub fn list(remarks: &[DefinitionRemark], width: usize) -> String {
    let (measured, others): (Vec<_>, Vec<_>) =
        remarks.iter().partition(|remark| remark.measured.is_some());
    let mut out = String::new();
    if !measured.is_empty() {
        out.push_str("the definition, with what the recording shows of it:\n");
    }
    for remark in measured {
        let measure = remark.measured.as_ref().map(|one| one.text.as_str());
        let text = format!("{} {}", remark.what, measure.unwrap_or_default());
        wrap(&mut out, "  - ", &text, width);
    }
    if !others.is_empty() {
        out.push_str("the definition, of which nothing is measured:\n");
    }
    for remark in others {
        wrap(&mut out, "  - ", &remark.what, width);
    }
    out
}

/// Returns what definitions say by themselves, where nothing was recorded.
pub fn alone(domains: &[&Domain], remarks: &[DefinitionRemark], width: usize) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &headline(domains, remarks.len()), width);
    for domain in domains {
        if domain.os == GuestOs::Windows {
            let signs = domain.os_signs.join(", ");
            wrap(
                &mut out,
                "",
                &format!("{} is taken for a Windows guest, by {signs}.", name(domain)),
                width,
            );
        }
    }
    for (at, remark) in remarks.iter().enumerate() {
        out.push('\n');
        out.push_str(&one(at + 1, remark, domains.len() > 1, width));
    }
    out.push('\n');
    let text = "No rule could check anything, since nothing was recorded: this is no verdict. 'trapline record', on \
                the host, records what they need.";
    wrap(&mut out, "", text, width);
    out
}

/// Returns the name of a domain as sentences have it.
fn name(domain: &Domain) -> &str {
    match domain.name.as_str() {
        "" => "the guest",
        name => name,
    }
}

/// Says how many remarks there are, and that nothing was measured.
fn headline(domains: &[&Domain], count: usize) -> String {
    let many = match count {
        0 => "no remark".to_owned(),
        count => words::plural(count as u64, "remark"),
    };
    match domains {
        [only] => format!(
            "The definition of {} ({}) gives {many}; nothing was measured.",
            name(only),
            only.form.words()
        ),
        all => {
            let names: Vec<&str> = all.iter().take(8).map(|one| name(one)).collect();
            let more = all.len().saturating_sub(names.len());
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            format!(
                "The definitions of {}{more} give {many}; nothing was measured.",
                names.join(", ")
            )
        }
    }
}

fn one(number: usize, remark: &DefinitionRemark, named: bool, width: usize) -> String {
    let mut out = String::new();
    let of = if named {
        format!(" of {}", remark.domain)
    } else {
        String::new()
    };
    let head = format!("{}{of}, not measured", remark.kind.id);
    wrap(&mut out, &format!("{number}. "), &head, width);
    wrap(&mut out, "   ", &remark.what, width);
    let sure = format!("confidence {:.2}", remark.kind.confidence);
    wrap(&mut out, "   ", &sure, width);
    wrap(&mut out, "   why: ", remark.kind.why, width);
    wrap(&mut out, "   change: ", &remark.change, width);
    wrap(&mut out, "     price: ", remark.kind.price, width);
    let since = remark.since();
    if !since.is_empty() {
        wrap(&mut out, "     from: ", &format!("{since}."), width);
    }
    if !remark.changes.is_empty() {
        wrap(
            &mut out,
            "     patch: ",
            "--patch prints the change.",
            width,
        );
    }
    wrap(&mut out, "   refuted by: ", remark.kind.refuted_by, width);
    wrap(&mut out, "   record: ", &remark.to_record(), width);
    out
}

/// Columns of remarks.
pub(crate) fn columns() -> Table<'static, DefinitionRemark> {
    use Unit::{Flag, Name, Share, Text};
    Table::new()
        .column("domain", Name, |one: &DefinitionRemark| one.domain.clone())
        .column("id", Text, |one| one.kind.id)
        .column("confidence", Share, |one| one.kind.confidence)
        .csv_form(|one| format!("{:.2}", one.kind.confidence))
        .column("what", Name, |one| one.what.clone())
        .column("why", Text, |one| one.kind.why)
        .column("change", Text, |one| one.change.clone())
        .column("price", Text, |one| one.kind.price)
        .column("since", Text, |one| one.since())
        .column("refuted_by", Text, |one| one.kind.refuted_by)
        .column("record", Name, |one| one.to_record())
        .column("patches_domain", Flag, |one| !one.changes.is_empty())
        .column("measured", Name, |one| {
            one.measured.as_ref().map(|one| one.text.clone())
        })
}

/// Returns remarks as comma separated values, a line each.
pub fn csv(remarks: &[DefinitionRemark]) -> String {
    columns().csv(remarks)
}
