//! Mangled names of Rust and C++, as people write them.

use std::fmt::{self, Write};
use std::panic::catch_unwind;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Bytes of a mangled name that are looked at, and of a name that is made of it. A name can refer to its own parts, and
/// be exponentially longer than it is mangled.
pub(crate) const MAX_MANGLED: usize = 1 << 14;
const MAX_NAME: usize = 1 << 13;
/// How deep a mangled name may be nested. The library's own limit.
const MAX_DEPTH: u32 = 96;

/// Returns the name that a symbol stands for: of C++ without parameters and return types, of Rust without the hash, as
/// perf prints them (`DMGL_NO_OPTS` in `tools/perf/util/demangle-cxx.cpp`, `demangle-rust.c`). What is no mangled name
/// stays as it is.
pub fn demangle(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(&raw[..raw.len().min(MAX_NAME)]);
    if raw.len() > MAX_MANGLED {
        return text.into_owned();
    }
    let is_mangled = |prefix: &str| text.starts_with(prefix);
    if !["_Z", "_R", "__Z", "___Z"].iter().any(|p| is_mangled(p)) {
        return text.into_owned();
    }
    rust(&text)
        .or_else(|| cpp(&text))
        .unwrap_or_else(|| text.into_owned())
}

/// What takes a name up to a limit.
#[derive(Debug, Default)]
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn rust(text: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(text).ok()?;
    let mut out = BoundedText::default();
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn cpp(text: &str) -> Option<String> {
    // perf leaves out what the compiler put behind the name of a part or a copy of a function, as binutils do without
    // parameters.
    let mangled = text.split('.').next().unwrap_or(text);
    // The library has branches that it takes for unreachable. No input is known that reaches one.
    let name = catch_unwind(|| {
        let limit = ParseOptions::default().recursion_limit(MAX_DEPTH);
        let symbol = Symbol::new_with_options(mangled, &limit).ok()?;
        let options = DemangleOptions::new()
            .no_params()
            .no_return_type()
            .recursion_limit(MAX_DEPTH);
        let mut out = BoundedText::default();
        symbol.structured_demangle(&mut out, &options).ok()?;
        Some(out.0)
    });
    name.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        let cases = [
            ("main", "main"),
            ("_ZN3foo3barEi", "foo::bar"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_ZN3foo3barEi.cold", "foo::bar"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"),
            ("_Z", "_Z"),
            ("_start", "_start"),
        ];
        for (mangled, name) in cases {
            assert_eq!(demangle(mangled.as_bytes()), name, "{mangled}");
        }
    }

    #[test]
    fn names_have_an_end() {
        // Each argument is a pair of the one before it: 2^40 words.
        let mut mangled = "_Z1fI1aS_".to_owned();
        for _ in 0..40 {
            mangled.push_str("St4pairIS_S0_E");
        }
        mangled.push_str("Evv");
        assert!(demangle(mangled.as_bytes()).len() <= MAX_NAME);
        assert!(demangle(&vec![b'_'; 1 << 20]).len() <= MAX_NAME);
        let nested = format!("_Z1f{}", "P".repeat(10_000));
        assert!(demangle(nested.as_bytes()).len() <= MAX_MANGLED);
    }
}
