//! Functions and files: lines of call chains, and those of the function tracers.

use super::functions::{self, is_of_identifier, put_symbol};
use super::numbers::put_number;
use super::words;
use crate::redactor::{RedactedNames, is_public_mapping};
use crate::symbols::is_public_module;

/// Appends a line of a call chain: of perf script `address symbol+offset (file)`, of ftrace `=> symbol (address)`.
pub(super) fn put(line: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let text = line.trim_ascii_start();
    out.extend(&line[..line.len() - text.len()]);
    if let Some(rest) = text.strip_prefix(b"=>") {
        out.extend(b"=>");
        return put_calls(rest, names, out);
    }
    if text.starts_with(b"<") {
        return words::put(text, names, out);
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = digits.count();
    let behind = text.get(digits).is_none_or(u8::is_ascii_whitespace);
    let (address, rest) = match digits > 0 && behind {
        true => text.split_at(digits),
        false => text.split_at(0),
    };
    let is_kernels = put_number(address, names, out).is_some_and(|moved| moved);
    let symbol = rest.trim_ascii_start();
    out.extend(&rest[..rest.len() - symbol.len()]);
    let file = symbol
        .windows(2)
        .rposition(|two| two == b" (")
        .filter(|_| symbol.trim_ascii_end().ends_with(b")"));
    let Some(file) = file else {
        let (name, offset) = without_offset(symbol);
        match name {
            b"" => {}
            b"[unknown]" => out.extend(name),
            _ if is_kernels && is_identifier(name) => out.extend(name),
            _ => put_symbol(name, names, out),
        }
        out.extend(offset);
        return;
    };
    let (symbol, file) = symbol.split_at(file);
    let file = file[2..].trim_ascii_end();
    let file = file.strip_suffix(b")").unwrap_or(file);
    let (name, offset) = without_offset(symbol);
    let module = file
        .strip_prefix(b"[")
        .and_then(|name| name.strip_suffix(b"]"));
    let is_public = module.is_some_and(|module| {
        let module = String::from_utf8_lossy(module);
        is_public_mapping(file) || is_public_module(&module)
    });
    match name {
        b"[unknown]" => out.extend(name),
        _ if is_public && is_identifier(name) => out.extend(name),
        _ => put_symbol(name, names, out),
    }
    out.extend(offset);
    out.extend(b" (");
    match (file, module) {
        (b"[unknown]" | b"inlined" | b"deleted", _) => out.extend(file),
        (_, Some(_)) if is_public => out.extend(file),
        (_, Some(module)) => {
            out.push(b'[');
            put_symbol(module, names, out);
            out.push(b']');
        }
        _ => out.extend(names.file(file)),
    }
    out.push(b')');
}

/// Appends what the function tracers say: `callee <-caller`, `0.541 us | f(arg=1);`, `/* event: text */`. What stands
/// in a call's parentheses and in comments are words as elsewhere.
pub(super) fn put_calls(text: &[u8], names: &mut RedactedNames, out: &mut Vec<u8>) {
    let find = |what: &[u8]| text.windows(what.len()).position(|one| one == what);
    // A comment behind a bracket is the name of the function that returns.
    if let Some(comment) = find(b"/*")
        && !text[..comment].contains(&b'}')
    {
        functions::put(&text[..comment], names, out);
        return words::put(&text[comment..], names, out);
    }
    let open = find(b"(").map(|at| at + 1);
    let close = text.iter().rposition(|byte| *byte == b')');
    match open.zip(close) {
        Some((open, close)) if open < close => {
            functions::put(&text[..open], names, out);
            words::put(&text[open..close], names, out);
            functions::put(&text[close..], names, out);
        }
        _ => functions::put(text, names, out),
    }
}

/// Splits `name+0x12` before the sign.
fn without_offset(symbol: &[u8]) -> (&[u8], &[u8]) {
    let at = symbol.windows(3).rposition(|three| three == b"+0x");
    let at = at.filter(|at| {
        let rest = &symbol[at + 3..];
        rest.iter()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'/' | b'x'))
    });
    symbol.split_at(at.unwrap_or(symbol.len()))
}

fn is_identifier(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_of_identifier(*byte))
}
