//! What is said of a definition: remarks, of which nothing is measured.

use domain::{DefinitionForm, Domain, DomainChange};

use crate::{RecordNeeds, parameters};

/// How sure a remark can be at most: what is defined may cost nothing, as long as nothing was recorded.
pub(super) const MOST: f64 = 0.5;
/// It costs time where the guest uses it much.
pub(super) const BY_LOAD: f64 = 0.3;
/// It costs time in some situations only.
pub(super) const SELDOM: f64 = 0.15;

/// A sort of remarks.
#[derive(Debug)]
pub struct RemarkKind {
    /// Its name in documents and scripts.
    pub id: &'static str,
    /// Why that may cost time; full sentences.
    pub why: &'static str,
    /// What the change costs.
    pub price: &'static str,
    /// What a recording shows where the remark is wrong.
    pub refuted_by: &'static str,
    /// How sure it is, unmeasured, 0 to 1: a half at most.
    pub confidence: f64,
    /// What `trapline record` is to be asked for, so that a recording proves or refutes it.
    pub record: &'static [RecordNeeds],
    /// Where the knowledge is from.
    pub sources: &'static [&'static str],
}

/// A remark on a definition: what it says that may cost time. Nothing of it is measured.
#[derive(Debug, Clone)]
pub struct DefinitionRemark {
    /// What sort of remark it is.
    pub kind: &'static RemarkKind,
    /// The domain's name.
    pub domain: String,
    /// What the definition says; a full sentence.
    pub what: String,
    /// What to change, in the words of the definition's form; a full sentence.
    pub change: String,
    /// The same as changes of libvirt's XML, as far as the guest starts with them as it is.
    pub changes: Vec<DomainChange>,
    /// What a recording beside it says of it; `None` without one, and where that could not be checked.
    pub measured: Option<RemarkMeasure>,
}

/// What a recording says of a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemarkMeasure {
    /// Whether a rule found what it costs; else all of them looked and did not.
    pub found: bool,
    /// The rule that found it, or those that did not.
    pub rules: Vec<&'static str>,
    /// The same as a full sentence.
    pub text: String,
}

impl RemarkKind {
    /// Returns a remark of this kind.
    pub(super) fn remark(
        &'static self,
        domain: &Domain,
        what: impl Into<String>,
        change: impl Into<String>,
    ) -> DefinitionRemark {
        DefinitionRemark {
            kind: self,
            domain: domain.name.clone(),
            what: what.into(),
            change: change.into(),
            changes: Vec::new(),
            measured: None,
        }
    }
}

impl DefinitionRemark {
    /// Adds the changes of libvirt's XML; other forms have none.
    pub(super) fn changing(
        mut self,
        domain: &Domain,
        changes: Vec<DomainChange>,
    ) -> DefinitionRemark {
        if domain.form == DefinitionForm::Libvirt {
            self.changes = changes;
        }
        self
    }

    /// Returns the command that records what proves or refutes it, on the host.
    pub fn to_record(&self) -> String {
        let command = RecordNeeds::command(self.kind.record.iter().copied());
        let command = command.unwrap_or_else(|| "trapline record".to_owned());
        match self.domain.is_empty() {
            true => format!("{command} --seconds 30"),
            false => format!("{command} --vm {} --seconds 30", quoted(&self.domain)),
        }
    }

    /// Returns from which releases on what the change names exists; empty where it is not new.
    pub fn since(&self) -> String {
        let named = parameters::named_in(&self.change).filter(|one| !one.since.is_empty());
        let since = named.map(|one| format!("{} {}", one.name, one.since));
        since.collect::<Vec<_>>().join(", ")
    }
}

/// Returns a name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@%+".contains(c);
    if name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// Returns the words for a definition's form.
pub(super) fn in_form<'t>(
    domain: &Domain,
    libvirt: &'t str,
    qemu: &'t str,
    proxmox: &'t str,
) -> &'t str {
    match domain.form {
        DefinitionForm::Libvirt | DefinitionForm::CutLibvirt | DefinitionForm::Virsh => libvirt,
        DefinitionForm::Qemu => qemu,
        DefinitionForm::Proxmox => proxmox,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_stand_in_a_command_as_a_shell_takes_them() {
        assert_eq!(quoted("win-10.a"), "win-10.a");
        assert_eq!(quoted("it's a; guest"), "'it'\\''s a; guest'");
    }
}
