//! Register tables and how they are read.

use std::borrow::Cow;

/// A register: offset in its device, bytes, name.
pub(crate) struct Reg(pub u32, pub u32, pub &'static str);

/// The register at `offset`, with what part of it: the upper half of a register of eight bytes is `(high)`,
/// which is how a guest that reads 32 bits at a time sees it. An offset in no register is the number alone.
pub(crate) fn at(table: &[Reg], offset: u64) -> Cow<'static, str> {
    let Some(Reg(start, len, name)) = table.iter().find(|Reg(start, len, _)| {
        offset
            .checked_sub(u64::from(*start))
            .is_some_and(|into| into < u64::from(*len))
    }) else {
        return plain(offset);
    };
    if *len == 8 && offset >= u64::from(*start) + 4 {
        Cow::Owned(format!("{name} (high)"))
    } else {
        Cow::Borrowed(name)
    }
}

/// An offset for which there is no name.
pub(crate) fn plain(offset: u64) -> Cow<'static, str> {
    Cow::Owned(format!("+{offset:#x}"))
}
