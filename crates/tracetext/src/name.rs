//! Names of events, as texts print them.

/// Returns the length of the system in `system:name`, not taking perf's modifiers for a name.
pub(crate) fn system_len(name: &[u8]) -> Option<usize> {
    let colon = memchr::memchr(b':', name)?;
    let (system, rest) = (&name[..colon], &name[colon + 1..]);
    let rest = &rest[..memchr::memchr(b':', rest).unwrap_or(rest.len())];
    let system_ok = system
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let name_ok = rest
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'@'))
        && rest
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    (!system.is_empty() && system_ok && name_ok && !are_modifiers(rest)).then_some(colon)
}

/// Returns whether these are modifiers behind the name of an event (`cycles:pppH`, man page perf-list).
pub(crate) fn are_modifiers(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len() <= 10 && bytes.iter().all(|b| b"ukhIGHpPSDWebRX".contains(b))
}
