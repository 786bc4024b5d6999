//! Changes of a definition as a diff.

use anyhow::{Context, Result};
use domain::{DefinitionForm, DomainChange};
use doubts::DoubtKind;
use event::Quality;
use session::DomainFile;

/// Notes what was not understood of a definition.
pub(super) fn note(definition: &DomainFile, quality: &mut Quality) {
    for note in &definition.notes {
        let note = note.clone();
        quality.raise(DoubtKind::DefinitionNote { note });
    }
}

/// Returns the diff that makes changes; empty where there are none, and for what is no libvirt XML.
pub(super) fn changed(
    definition: &DomainFile,
    changes: &[DomainChange],
    quality: &mut Quality,
) -> Result<String> {
    if changes.is_empty() || definition.domain.form != DefinitionForm::Libvirt {
        return Ok(String::new());
    }
    let (after, notes) = domain::apply(&definition.text, changes)
        .with_context(|| format!("{}: cannot be changed", definition.name))?;
    for note in notes {
        let note = format!("{}: {note}", definition.name);
        quality.raise(DoubtKind::DefinitionNote { note });
    }
    Ok(domain::diff(&definition.name, &definition.text, &after))
}
