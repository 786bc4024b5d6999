//! Reasons that a text names and no table of ours knows: a newer kernel's, another tool's spelling.
//!
//! Such a reason has no number, and an [`ExitReason`](super::ExitReason) is a number. So each name gets one, in the
//! order in which names come up, beside all numbers that hardware has: the second highest bit is reserved in VMX's
//! field of exit reasons (Intel SDM volume 3, 25.9.1), and no code of SVM has it (AMD64 APM volume 2, appendix C).

use std::sync::OnceLock;

/// Where the numbers begin: a bit that no number of a table has.
pub(super) const BASE: u32 = 0x4000_0000;
/// Names that have a number each. No kernel has a hundred reasons that others lack; a damaged text may.
const MOST: u16 = 256;
/// What all names beyond that are called.
const OTHERS: &str = "other unknown reasons";
/// Bytes of a name.
const MAX_NAME: usize = 48;

/// The names of all texts of this process. They live as long as it does, as the names of tables do.
static NAMES: [OnceLock<Box<str>>; MOST as usize] = [const { OnceLock::new() }; MOST as usize];

/// Returns the number of a name, the same one whenever it is asked for.
pub(super) fn code(name: &str) -> u32 {
    let plain = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    let name: String = name.chars().take(MAX_NAME).map(plain).collect();
    for (slot, at) in NAMES.iter().zip(BASE..) {
        if **slot.get_or_init(|| name.as_str().into()) == *name {
            return at;
        }
    }
    BASE + u32::from(MOST)
}

/// Returns the name that has this number, if one has.
#[inline]
pub(super) fn name(code: u32) -> Option<&'static str> {
    match code.checked_sub(BASE)? {
        at if at < u32::from(MOST) => NAMES[at as usize].get().map(AsRef::as_ref),
        at => (at == u32::from(MOST)).then_some(OTHERS),
    }
}

#[cfg(test)]
mod tests {
    use super::{code, name};

    #[test]
    fn a_name_keeps_its_number_and_steers_no_terminal() {
        let one = code("SNP_GUEST_REQUEST");
        assert_eq!(name(one), Some("SNP_GUEST_REQUEST"));
        assert_eq!(code("SNP_GUEST_REQUEST"), one);
        let other = code("apic_access");
        assert_ne!(one, other);
        assert_eq!(name(code("a\x1b[31mb\u{202e}")), Some("a?[31mb?"));
        assert_eq!(name(0x4000_0000 + 999), None);
        assert_eq!(name(12), None);
    }
}
