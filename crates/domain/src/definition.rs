//! Definitions of guests in any form: which one a text has, its content decides.

use crate::data::GuestDefinition;
use crate::error::DomainError;
use crate::{proxmox, qemu, read};

/// Reads the definitions of guests in a file: one in libvirt's XML, one in a Proxmox VM's `.conf`, or one for each
/// QEMU in what `ps` printed, a script or `/proc/PID/cmdline`. What is neither of the last two is read as XML.
///
/// # Errors
///
/// Those of [`crate::decode`] and [`crate::parse`].
pub fn definitions(bytes: &[u8]) -> Result<Vec<GuestDefinition>, DomainError> {
    let is_xml = bytes.trim_ascii_start().starts_with(b"<");
    if !is_xml {
        let found = qemu::definitions(bytes);
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(found) = std::str::from_utf8(bytes)
            .ok()
            .and_then(proxmox::definition)
        {
            return Ok(vec![found]);
        }
    }
    let text = read::decode(bytes)?;
    let (domain, notes) = read::parse(text)?;
    Ok(vec![GuestDefinition {
        domain,
        text: text.to_owned(),
        notes,
    }])
}
