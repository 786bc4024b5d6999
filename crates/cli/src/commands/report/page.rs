//! The HTML file.

use std::path::Path;

use anyhow::Result;

use super::part::Part;
use crate::{new_file, output};

/// Writes the file, and says so.
pub(super) fn write(file: &Path, names: &[String], parts: &[Part]) -> Result<()> {
    let sections: Vec<(String, String)> = parts
        .iter()
        .map(|part| (part.name.clone(), part.text(true)))
        .collect();
    let page = report::page(&format!("trapline report: {}", names.join(", ")), &sections);
    new_file::write(file, |out| out.write_all(page.as_bytes()))?;
    output::print(&format!("wrote {}\n", file.display()))
}
