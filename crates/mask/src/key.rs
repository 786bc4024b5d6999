//! Values that are secret by the name before them: `password=abc`, `X-Auth-Token: abc`.

use crate::Masker;

/// What a name has in it that stands before a secret.
const PARTS: [&str; 10] = [
    "passw",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "authorization",
    "bearer",
    "cookie",
    "userpw",
];

/// What such a name ends with, as a word of its own.
const LAST_WORDS: [&str; 13] = [
    "iv",
    "pin",
    "serial",
    "auth",
    "pw",
    "pwd",
    "pass",
    "psk",
    "jwt",
    "cred",
    "creds",
    "sig",
    "signature",
];

/// Names of QEMU that stand before the name of a secret, or of a set of certificates.
const NAMES_OF_SECRETS: [&str; 7] = [
    "password-secret",
    "proxy-password-secret",
    "key-secret",
    "cookie-secret",
    "passwordid",
    "keyid",
    "tls-creds",
];

/// How a word is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordStyle {
    /// A list with commas, as most options take; a comma in a value is doubled.
    List,
    /// One of `-fw_cfg`, whose strings are whatever the guest is to get.
    FwCfg,
    /// One of `-vnc`, where `password=on` is a switch.
    Vnc,
    /// A word of a kernel's command line: the value goes on to its end.
    Kernel,
}

/// Returns whether what stands behind a name is secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    if NAMES_OF_SECRETS.contains(&last) {
        return false;
    }
    let word = last.rsplit(['-', '_']).next().unwrap_or_default();
    PARTS.iter().any(|part| name.contains(part))
        || LAST_WORDS.contains(&word)
        || word.ends_with("key")
        || word.ends_with("keys")
        || last == "data"
}

/// Returns whether an option, without its dashes, stands before a secret in the next word.
pub(super) fn takes_secret(option: &str) -> bool {
    let switch = ["no-", "disable-", "enable-"]
        .iter()
        .any(|prefix| option.starts_with(prefix));
    // `-serial stdio` is where the guest's console is.
    !switch && option != "serial" && is_secret(option)
}

/// Returns whether a name is that of somebody who may have a password behind it: `user=admin:abc`.
pub(super) fn is_login(name: &str) -> bool {
    let last = name.rsplit(['.', '-', '_']).next().unwrap_or_default();
    matches!(
        last.to_ascii_lowercase().as_str(),
        "user" | "username" | "login"
    )
}

impl Masker {
    /// Masks the values behind names of secrets.
    pub(super) fn keys(&mut self, text: &str, style: WordStyle) -> String {
        let mut out = String::with_capacity(text.len());
        // What is copied already; what has been looked at.
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = text[at..].find(['=', ':']) {
            let sign = at + found;
            let name_end = text[..sign].trim_end_matches(' ');
            let name_end = name_end.trim_end_matches(['"', '\'']).len();
            let name = name_before(&text[at.min(name_end)..name_end]);
            at = sign + 1;
            let is_value = text[sign..].starts_with('=');
            let secret = is_secret(name) || (style == WordStyle::FwCfg && name == "string");
            let login = is_value && is_login(name);
            if name.is_empty() || !(secret || login) {
                continue;
            }
            let before = text[..name_end - name.len()].chars().next_back();
            let start = text.len() - text[at..].trim_start_matches(' ').len();
            let (start, end) = value(text, start, before, style);
            let value = &text[start..end];
            if style == WordStyle::Vnc && matches!(value, "on" | "off") {
                continue;
            }
            out.push_str(&text[copied..start]);
            if secret {
                out.push_str(self.value(value));
            } else {
                out.push_str(&self.login(value));
            }
            copied = end;
            at = end;
        }
        out.push_str(&text[copied..]);
        out
    }

    /// Masks the password behind a name: `admin:abc`, `admin%abc`.
    pub(super) fn login(&mut self, text: &str) -> String {
        match text.split_once([':', '%']) {
            Some((name, password)) => {
                let sign = &text[name.len()..text.len() - password.len()];
                format!("{name}{sign}{}", self.value(password))
            }
            None => text.to_owned(),
        }
    }
}

/// Returns the name that a text ends with.
fn name_before(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let rest = text.trim_end_matches(is_name);
    &text[rest.len()..]
}

/// Returns where a value begins and ends, by what stands before its name.
fn value(text: &str, start: usize, before: Option<char>, style: WordStyle) -> (usize, usize) {
    let rest = &text[start..];
    let stops: &[char] = match before {
        _ if style == WordStyle::Kernel => &[],
        // An option of its own: --token=abc.
        None if text.starts_with('-') => &[],
        Some('&' | '?') => &['&', '#', ','],
        Some(';') => &[';', ','],
        Some(':' | '|') => &[':', '|', ','],
        Some(' ' | '\t' | '\n') => &[' ', '\t', '\n', ','],
        _ => &[','],
    };
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let quoted = quote.map_or(0, |quote| quoted(rest, quote));
    let end = quoted + unquoted(&rest[quoted..], stops);
    // Quotes stay where they are all that stands around the value.
    if quoted >= 2 && end == quoted && rest[..quoted].ends_with(['"', '\'']) {
        (start + 1, start + end - 1)
    } else {
        (start, start + end)
    }
}

/// Returns how long what stands in quotes is, with them.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c: char| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Returns where a value ends. A doubled comma and what stands behind a backslash are the value's own.
fn unquoted(text: &str, stops: &[char]) -> usize {
    let mut from = 0;
    while let Some(found) = text[from..].find(|c| c == '\\' || stops.contains(&c)) {
        let end = from + found;
        let mut chars = text[end..].chars();
        let (sign, next) = (chars.next(), chars.next());
        if sign == Some('\\') || (sign == Some(',') && next == Some(',')) {
            from = end + 1 + next.map_or(0, char::len_utf8);
        } else {
            return end;
        }
    }
    text.len()
}
