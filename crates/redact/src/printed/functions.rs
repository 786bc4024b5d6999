//! Names of the kernel's functions.

use super::numbers::put_number;
use crate::redactor::RedactedNames;
use crate::symbols::is_public_module;

/// Appends what the function tracers say: names of the kernel's functions stay, but for those of modules that not every
/// kernel has.
pub(super) fn put(text: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let len = rest.iter().take_while(|byte| is_of_identifier(**byte));
        let len = len.count();
        let is_name = rest[0].is_ascii_alphabetic() || rest[0] == b'_';
        if len == 0 || !is_name {
            // A number, or what stands between names.
            let other = rest.iter().take_while(|byte| {
                !byte.is_ascii_alphanumeric() && **byte != b'_' && **byte != b'/'
            });
            let other = other.count();
            if other > 0 {
                out.extend(&rest[..other]);
                at += other;
                continue;
            }
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b' ' | b'\t' | b')' | b'>' | b'['));
            let end = end.unwrap_or(rest.len()).max(1);
            let number = put_number(&rest[..end], names, out);
            if number.is_none() {
                out.extend(names.word(&rest[..end]));
            }
            at += end;
            continue;
        }
        let name = &rest[..len];
        // An address has letters too: `=> <ffffffff81000010>`.
        if put_number(name, names, out).is_some() {
            at += len;
            continue;
        }
        let behind = rest.get(len..).unwrap_or_default();
        // The offset stands between the name and its module: `f+0x12/0x30 [kvm]`.
        let offset = behind
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'+' | b'x' | b'/'));
        let offset = match behind.first() {
            Some(b'+') => offset.count(),
            _ => 0,
        };
        let module = module_behind(&behind[offset..]);
        let is_public = module.is_none_or(is_public_module);
        match is_public {
            true => out.extend(name),
            false => put_symbol(name, names, out),
        }
        out.extend(&behind[..offset]);
        at += len + offset;
        if let Some(module) = module.filter(|_| !is_public) {
            out.extend(b" [");
            put_symbol(module.as_bytes(), names, out);
            out.push(b']');
            at += module.len() + 3;
        }
    }
}

/// Returns the module that stands in brackets behind a function's name.
fn module_behind(text: &[u8]) -> Option<&str> {
    let inside = text.strip_prefix(b" [")?;
    let end = inside.iter().position(|byte| *byte == b']')?;
    let module = str::from_utf8(inside.get(..end)?).ok()?;
    // A number in brackets is no module: a priority, a CPU.
    let is_name =
        module.bytes().all(is_of_identifier) && module.starts_with(|c: char| !c.is_ascii_digit());
    (is_name && !module.is_empty()).then_some(module)
}

/// Appends what stands in place of the name of a function or module.
pub(super) fn put_symbol(name: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let name = String::from_utf8_lossy(name);
    out.extend(names.function(&name).into_bytes());
}

pub(super) fn is_of_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_stay_and_addresses_are_moved() {
        for (text, expected) in [
            (
                " vcpu_enter_guest+0x1/0x2 [kvm]",
                " vcpu_enter_guest+0x1/0x2 [kvm]",
            ),
            (" acme_poll+0x1/0x2 [acme]", " symbol_1+0x1/0x2 [symbol_2]"),
            (" <ffffffff81234567>", " <ffffffff81134567>"),
            ("schedule <-do_idle", "schedule <-do_idle"),
        ] {
            let mut out = Vec::new();
            put(text.as_bytes(), &mut RedactedNames::of_text(0), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
        }
    }
}
