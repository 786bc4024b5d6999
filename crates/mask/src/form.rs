//! Values that are secret by their form.

use crate::{MASK, Masker};

/// Marks of a QEMU list and of quotes that end an address.
fn end_of_address(text: &str) -> usize {
    let mut from = 0;
    while let Some(found) = text[from..].find([',', ' ', '\t', '\n', '"', '\'', '<', '>']) {
        let end = from + found;
        // A doubled comma is the value's own.
        if text[end..].starts_with(",,") {
            from = end + 2;
        } else {
            return end;
        }
    }
    text.len()
}

impl Masker {
    /// Masks user and password in addresses: `scheme://user:password@host`, also `iscsi://user%password@host`. A
    /// password may have anything in it, so they end at the last `@`.
    pub(super) fn urls(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(found) = rest.find("://") {
            let (before, from) = rest.split_at(found + "://".len());
            out.push_str(before);
            let (address, behind) = from.split_at(end_of_address(from));
            rest = behind;
            match address.rsplit_once('@') {
                Some((who, host)) if !who.contains('/') || who.contains([':', '%']) => {
                    out.push_str(self.value(who));
                    out.push('@');
                    out.push_str(host);
                }
                _ => out.push_str(address),
            }
        }
        out.push_str(rest);
        out
    }

    /// Masks user and password before a host where no scheme stands: `netroot=iscsi:user:password@host`. Two
    /// addresses of UDP in QEMU's old style (`udp::4555@:4556`) look alike.
    pub(super) fn logins(&mut self, text: &str) -> String {
        let is_between = |c: char| matches!(c, ',' | '/' | '=' | '"' | '\'') || c.is_whitespace();
        self.runs(text, is_between, |mask, run| {
            let (who, host) = run.rsplit_once('@')?;
            let (_, password) = who.split_once(':')?;
            if password.is_empty() || who.starts_with("udp:") {
                return None;
            }
            Some(format!("{}@{host}", mask.value(who)))
        })
    }

    /// Masks keys of AWS, and JSON web tokens (RFC 7519): three parts of base64 with points between, of which the
    /// first is an object (`{"` begins `eyJ`).
    pub(super) fn web_tokens(&mut self, text: &str) -> String {
        let is_between = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        self.runs(text, is_between, |mask, run| {
            let is_token = run.starts_with("eyJ") && run.matches('.').count() == 2;
            // Keys of AWS: four letters, and sixteen letters and digits.
            let is_key = run.len() == 20
                && ["AKIA", "ASIA"].iter().any(|begin| run.starts_with(begin))
                && run
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
            (is_token || is_key).then(|| mask.value(run).to_owned())
        })
    }

    /// Masks what a shell is to do within a word: `script=sh -c 'mysql -phidden'`, up to the last quote.
    pub(super) fn shells(&mut self, text: &str) -> String {
        for begin in [" -c '", " -c \""] {
            let Some(at) = text.find(begin).map(|at| at + begin.len()) else {
                continue;
            };
            let (before, inside) = text.split_at(at);
            let quote = if begin.ends_with('"') { '"' } else { '\'' };
            let end = inside.rfind(quote).unwrap_or(inside.len());
            let (inside, behind) = inside.split_at(end);
            return format!("{before}{}{behind}", self.value(inside));
        }
        text.to_owned()
    }

    /// Replaces what stands between separators.
    fn runs(
        &mut self,
        text: &str,
        is_between: impl Fn(char) -> bool,
        replace: impl Fn(&mut Masker, &str) -> Option<String>,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(&is_between).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(end);
            match replace(self, run).filter(|_| run != MASK) {
                Some(masked) => out.push_str(&masked),
                None => out.push_str(run),
            }
            let mut chars = behind.chars();
            out.extend(chars.next());
            rest = chars.as_str();
        }
        out
    }
}
