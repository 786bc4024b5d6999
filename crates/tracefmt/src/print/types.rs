//! Types of numbers: what casts do, and how wide and signed an operand is.

use crate::{Abi, FieldKind, FormatField};

/// Width and sign of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ty {
    /// 8, 16, 32 or 64.
    pub(super) bits: u8,
    pub(super) signed: bool,
}

impl Ty {
    pub(super) const INT: Ty = Ty {
        bits: 32,
        signed: true,
    };
    pub(super) const U64: Ty = Ty {
        bits: 64,
        signed: false,
    };

    /// Returns the type C promotes it to in an expression.
    pub(super) fn promoted(self) -> Ty {
        if self.bits < 32 { Ty::INT } else { self }
    }

    /// Returns the type two operands are converted to (the usual arithmetic conversions).
    pub(super) fn common(self, other: Ty) -> Ty {
        let (a, b) = (self.promoted(), other.promoted());
        match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal => Ty {
                bits: a.bits,
                signed: a.signed && b.signed,
            },
        }
    }

    /// Cuts a number to the type and extends it to 64 bits again.
    #[inline]
    pub(super) fn wrap(self, value: u64) -> u64 {
        wrap(self.bits, self.signed, value)
    }
}

/// Cuts a number to `bits` and extends it to 64 bits again.
#[inline]
pub(super) fn wrap(bits: u8, signed: bool, value: u64) -> u64 {
    let shift = 64 - u32::from(bits.clamp(1, 64));
    if signed {
        ((value << shift).cast_signed() >> shift).cast_unsigned()
    } else {
        (value << shift) >> shift
    }
}

/// Returns the type of a scalar field's value.
pub(super) fn field_type(field: &FormatField) -> Ty {
    let bits = match field.size {
        1 => 8,
        2 => 16,
        4 => 32,
        _ => 64,
    };
    Ty {
        bits,
        signed: field.signed && !field.ctype.contains('*'),
    }
}

/// Returns the type a C cast names; `None` for pointers, structures and names that are not known.
pub(super) fn cast_type(name: &str, abi: Abi) -> Option<Ty> {
    if name.contains('*') {
        return None;
    }
    let words: Vec<&str> = name.split_ascii_whitespace().collect();
    let bits = u8::try_from(type_size(&words, abi)? * 8).ok()?;
    let unsigned = words.iter().any(|w| {
        matches!(
            *w,
            "unsigned" | "bool" | "_Bool" | "size_t" | "dev_t" | "gfp_t" | "uintptr_t"
        ) || w.trim_start_matches('_').starts_with('u')
            || w.trim_start_matches('_').starts_with("be")
            || w.trim_start_matches('_').starts_with("le")
            || matches!(
                *w,
                "sector_t" | "gfn_t" | "gpa_t" | "gva_t" | "hpa_t" | "hva_t" | "phys_addr_t"
            )
    });
    // `char` is unsigned in kernels since 6.2, and printed tables of its bytes read better so.
    let unsigned = unsigned || (words.contains(&"char") && !words.contains(&"signed"));
    Some(Ty {
        bits,
        signed: !unsigned,
    })
}

/// Does what libtraceevent 1.7.1 does for a cast: it knows a few names, cuts to their width and never
/// extends a sign; all other types leave the number alone.
pub(super) fn tool_cast(value: u64, ctype: &str) -> u64 {
    let name = ctype.strip_prefix("unsigned ").unwrap_or(ctype);
    match name {
        "u8" | "s8" | "char" => value & 0xff,
        "u16" | "s16" | "short" => value & 0xffff,
        "u32" | "s32" | "int" => value & 0xffff_ffff,
        _ => value,
    }
}

/// Returns the size of an array field's elements as libtraceevent works it out; 0 when it does not know.
pub(super) fn tool_element_size(field: &FormatField, abi: Abi) -> u32 {
    let known = |name: &str| match name {
        "u8" | "s8" | "char" => 1,
        "u16" | "s16" => 2,
        "u32" | "s32" => 4,
        "u64" | "s64" => 8,
        _ => 0,
    };
    match field.kind {
        FieldKind::Scalar => field.size,
        FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. } => {
            let base = field.ctype.split('[').next().unwrap_or("");
            known(base.split_ascii_whitespace().last().unwrap_or(""))
        }
        FieldKind::Array { .. } => {
            let count = field
                .ctype
                .rsplit_once('[')
                .map_or("", |(_, c)| c.trim_end_matches(']'));
            let last = count
                .split(|c: char| !c.is_ascii_alphanumeric())
                .rfind(|w| !w.is_empty());
            let count = last.map_or(0, super::ast::number_prefix);
            match u32::try_from(count) {
                Ok(count) if count > 0 => field.size / count,
                _ if is_text(field) => 1,
                _ if field.ctype.contains("long") => u32::from(abi.long_size),
                _ => 0,
            }
        }
    }
}

/// Returns whether libtraceevent takes a field for text: an array whose type names 8-bit elements.
pub(super) fn is_text(field: &FormatField) -> bool {
    is_array(field) && ["char", "u8", "s8"].iter().any(|n| field.ctype.contains(n))
}

/// Returns whether a field is an array, in place or behind a locator.
pub(super) fn is_array(field: &FormatField) -> bool {
    match field.kind {
        FieldKind::Array { .. } => true,
        FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. } => {
            field.ctype.contains('[') || field.size == 2
        }
        FieldKind::Scalar => false,
    }
}

/// Returns the size in bytes of a C type given by its words, where it is known.
pub(super) fn type_size(words: &[&str], abi: Abi) -> Option<u32> {
    let long = u32::from(abi.long_size);
    let words: Vec<&str> = words
        .iter()
        .filter(|w| {
            !matches!(
                **w,
                "unsigned" | "signed" | "const" | "volatile" | "enum" | "struct"
            )
        })
        .copied()
        .collect();
    Some(match words.as_slice() {
        [] | ["int"] => 4,
        ["char" | "bool" | "_Bool" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t"] => 1,
        ["short"] | ["short", "int"] => 2,
        ["u16" | "s16" | "__u16" | "__s16" | "__be16" | "__le16" | "uint16_t" | "int16_t"] => 2,
        ["u32" | "s32" | "__u32" | "__s32" | "__be32" | "__le32" | "uint32_t" | "int32_t"] => 4,
        ["pid_t" | "dev_t" | "gfp_t" | "uid_t" | "gid_t"] => 4,
        ["u64" | "s64" | "__u64" | "__s64" | "__be64" | "__le64" | "uint64_t" | "int64_t"] => 8,
        ["long", "long"]
        | ["long", "long", "int"]
        | ["ktime_t" | "sector_t" | "loff_t" | "gfn_t"] => 8,
        ["gpa_t" | "hpa_t" | "hva_t" | "phys_addr_t"] => 8,
        ["long"] | ["long", "int"] | ["size_t" | "ssize_t" | "uintptr_t" | "gva_t"] => long,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_and_extended() {
        assert_eq!(wrap(8, true, 0x1ff), u64::MAX);
        assert_eq!(wrap(8, false, 0x1ff), 0xff);
        assert_eq!(wrap(32, true, 0x8000_0000), 0xffff_ffff_8000_0000);
        assert_eq!(wrap(64, true, u64::MAX), u64::MAX);
    }

    #[test]
    fn operands_are_converted_as_in_c() {
        let u32_ = Ty {
            bits: 32,
            signed: false,
        };
        let s64 = Ty {
            bits: 64,
            signed: true,
        };
        assert_eq!(
            Ty {
                bits: 8,
                signed: false
            }
            .common(Ty {
                bits: 16,
                signed: false
            }),
            Ty::INT
        );
        assert_eq!(Ty::INT.common(u32_), u32_);
        assert_eq!(u32_.common(s64), s64);
        assert_eq!(Ty::U64.common(s64), Ty::U64);
    }

    #[test]
    fn type_names_have_width_and_sign() {
        let abi = Abi::default();
        let ty = |name| cast_type(name, abi).map(|t| (t.bits, t.signed));
        assert_eq!(ty("unsigned long long"), Some((64, false)));
        assert_eq!(ty("long"), Some((64, true)));
        assert_eq!(ty("u8"), Some((8, false)));
        assert_eq!(ty("__s16"), Some((16, true)));
        assert_eq!(ty("int"), Some((32, true)));
        assert_eq!(ty("unsigned"), Some((32, false)));
        assert_eq!(ty("void *"), None);
        assert_eq!(ty("struct x"), None);
    }
}
