//! Lists the files of `builtin/`, so that a new path is a new file and no line elsewhere.
//!
//! What lies in the folder itself is followed and printed by default, in the order of the numbers that the files' names
//! begin with; what lies in `with-probes/` too, but it is printed only where it was found; what lies in `with-guests/`
//! where guests' recordings are given, or when it is asked for; what lies in `on-request/` when it is asked for. What
//! lies in `parts/` are steps that several of these share.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=builtin");
    // Relative: a build folder that is copied elsewhere names the files there.
    let folder = PathBuf::from("builtin");
    let mut out = String::new();
    list(&mut out, "pub(super) ", "BUILTIN", &folder)?;
    list(
        &mut out,
        "pub(super) ",
        "WITH_GUESTS",
        &folder.join("with-guests"),
    )?;
    list(
        &mut out,
        "pub(super) ",
        "WITH_PROBES",
        &folder.join("with-probes"),
    )?;
    list(
        &mut out,
        "pub(super) ",
        "ON_REQUEST",
        &folder.join("on-request"),
    )?;
    let to = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(to.join("builtin.rs"), out)?;
    let mut parts = String::new();
    list(&mut parts, "", "PARTS", &folder.join("parts"))?;
    fs::write(to.join("parts.rs"), parts)
}

/// Writes a list of name and text of each file of a folder.
fn list(out: &mut String, visibility: &str, name: &str, folder: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    files.sort();
    let _ = writeln!(out, "{visibility}const {name}: &[(&str, &str)] = &[");
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let called = stem.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        let _ = writeln!(
            out,
            "    ({called:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))),",
            format!("/{}", file.display())
        );
    }
    let _ = writeln!(out, "];");
    Ok(())
}
