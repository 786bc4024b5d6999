//! Symbols of the recording's kernel, from a file beside it.

use std::path::Path;

use tracefmt::Kallsyms;

use crate::{Error, InputKind, InputPurpose, sniff};

/// Files of symbols are not read beyond this many bytes: a kernel with many modules has some 20 MB.
const MAX_KALLSYMS: u64 = 128 << 20;

/// Reads symbols, as /proc/kallsyms has them. `option` names the file in messages.
pub(crate) fn open(option: &str, path: Option<&Path>) -> Result<Option<Kallsyms>, Error> {
    let Some(path) = path else {
        return Ok(None);
    };
    let wanted = InputPurpose::Symbols;
    let name = format!("{option} {}", path.display());
    let text = source::read_beside(path, MAX_KALLSYMS);
    let text = text.map_err(|error| Error::Unreadable {
        name: name.clone(),
        error,
        wanted,
    })?;
    // Columns of numbers in other texts look like addresses.
    let kind = sniff(&text);
    if kind.is_taken() && kind != InputKind::Symbols {
        return Err(Error::WrongKind { name, kind, wanted });
    }
    let symbols = Kallsyms::parse(&text);
    if symbols.has_addresses() {
        return Ok(Some(symbols));
    }
    Err(Error::Nothing {
        name,
        reason: "holds no symbols with addresses".to_owned(),
        wanted,
    })
}
