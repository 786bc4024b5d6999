//! The tables of exit reasons beside the kernel's own headers: that none has an entry less, and that names are the
//! kernel's.
//!
//! `TRAPLINE_HEADERS` is a folder that has `svm.h`, `vmx.h` and `sie.h` somewhere below it, as Debian's
//! `linux-libc-dev` has them; `.ci/run` unpacks the newest one there (`.ci/newest-packages`). A kernel's source has
//! `esr.h`, `csr.h` and `loongarch.h` as well. Without the folder nothing is compared.

use std::fs;
use std::path::{Path, PathBuf};

use event::{ExitReason, Isa};

/// Returns the files of a name below a folder, of one architecture.
fn headers(folder: &Path, of: &str, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.ends_with(name) && path.to_string_lossy().contains(of) {
                found.push(path);
            }
        }
    }
    found
}

/// A constant: what it is called, and its number.
#[derive(Debug)]
struct Constant {
    name: String,
    number: u64,
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches("UL(").trim_end_matches(')');
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits == "-1" => Some(u64::MAX),
        None => digits.parse().ok(),
    }
}

/// Returns the constants of a header whose names begin so.
fn constants(text: &str, prefix: &str) -> Vec<Constant> {
    let lines = text.lines().map(str::trim_start);
    let defined = lines.filter_map(|line| line.strip_prefix("#define")?.trim_start().into());
    let of_prefix = defined.filter_map(|line: &str| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        Some(Constant {
            name: name.strip_prefix(prefix)?.to_owned(),
            number: number(value)?,
        })
    });
    of_prefix.collect()
}

/// Returns what the header's table calls a constant: `{ SVM_EXIT_HLT, "hlt" }`.
fn called<'t>(text: &'t str, constant: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines.find_map(|line| {
        let (before, rest) = line.split_once('{')?;
        let (name, rest) = rest.split_once(',')?;
        let is_it = before.trim().is_empty() && name.trim() == constant;
        is_it.then(|| rest.split('"').nth(1))?
    })
}

/// A header, and which of its constants are reasons.
struct ReasonHeader {
    isa: Isa,
    /// What its path has in it, and its name.
    file: (&'static str, &'static str),
    prefixes: &'static [&'static str],
    /// Constants that are limits, or values of something else.
    no_reasons: &'static [&'static str],
}

const HEADERS: [ReasonHeader; 5] = [
    ReasonHeader {
        isa: Isa::Vmx,
        file: ("x86", "asm/vmx.h"),
        prefixes: &["EXIT_REASON_"],
        no_reasons: &[],
    },
    ReasonHeader {
        isa: Isa::Svm,
        file: ("x86", "asm/svm.h"),
        prefixes: &["SVM_EXIT_", "SVM_VMGEXIT_"],
        no_reasons: &[
            "EXCP_BASE",
            "LAST_EXCP",
            "SW",
            "SET_AP_JUMP_TABLE",
            "GET_AP_JUMP_TABLE",
            "AP_CREATE_ON_INIT",
            "AP_CREATE",
            "AP_DESTROY",
            "SAVIC_REGISTER_GPA",
            "SAVIC_UNREGISTER_GPA",
            "SAVIC_SELF_GPA",
        ],
    },
    ReasonHeader {
        isa: Isa::Arm64,
        file: ("arm64", "asm/esr.h"),
        prefixes: &["ESR_ELx_EC_"],
        no_reasons: &["MAX", "SHIFT", "WIDTH", "MASK"],
    },
    ReasonHeader {
        isa: Isa::Riscv,
        file: ("riscv", "asm/csr.h"),
        prefixes: &["EXC_"],
        no_reasons: &[],
    },
    ReasonHeader {
        isa: Isa::Loongarch,
        file: ("loongarch", "asm/loongarch.h"),
        prefixes: &["EXCCODE_"],
        no_reasons: &["INT_START", "INT_NUM", "INT_END"],
    },
];

#[test]
fn the_kernel_has_no_reason_that_the_tables_do_not_have() {
    let Some(folder) = std::env::var_os("TRAPLINE_HEADERS") else {
        return;
    };
    let (mut checked, mut missing) = (0, Vec::new());
    for header in &HEADERS {
        let (of, name) = header.file;
        let Some(path) = headers(Path::new(&folder), of, name).pop() else {
            continue;
        };
        let text = fs::read_to_string(&path).expect("a header is text");
        for prefix in header.prefixes {
            for one in constants(&text, prefix) {
                if header.no_reasons.contains(&one.name.as_str()) {
                    continue;
                }
                let reason = match header.isa {
                    Isa::Arm64 => ExitReason::arm64(2, u32::try_from(one.number).expect("a class")),
                    isa => ExitReason::of_number(isa, one.number),
                };
                let kernel = called(&text, &format!("{prefix}{}", one.name));
                let ours = reason.name();
                checked += 1;
                if ours.is_none() || kernel.is_some_and(|kernel| ours != Some(kernel)) {
                    missing.push(format!(
                        "{}: {prefix}{} = {:#x}: the kernel says {kernel:?}, the table {ours:?}",
                        path.display(),
                        one.name,
                        one.number
                    ));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(checked > 150, "only {checked} constants were found");
}
