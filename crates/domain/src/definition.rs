//! Definitions of guests in any form: which one a text has, its content decides.

use crate::data::GuestDefinition;
use crate::error::DomainError;
use crate::{proxmox, qemu, read, virsh};

/// Reads the definitions of guests in a file: one in libvirt's XML, one in a Proxmox VM's `.conf`, what `virsh`
/// lists of where its threads may run, or one for each QEMU in what `ps` printed, a script or `/proc/PID/cmdline`.
/// What is none of the others is read as XML; of XML that ends before the domain does, the elements that are whole
/// ([`crate::Domain::is_part`]).
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
        let either = |text| virsh::definition(text).or_else(|| proxmox::definition(text));
        if let Some(found) = std::str::from_utf8(bytes).ok().and_then(either) {
            return Ok(vec![found]);
        }
    }
    let text = read::decode(bytes)?;
    let (domain, notes) = match read::parse(text) {
        Ok(whole) => whole,
        Err(error) => read::parse_cut(text).ok_or(error)?,
    };
    Ok(vec![GuestDefinition {
        domain,
        text: text.to_owned(),
        notes,
    }])
}
