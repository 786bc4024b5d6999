/*!
Command lines without what is or may be secret.

[`args`] is for the command line of a VMM, [`cmdline`] for the kernel's. Values are replaced by [`MASK`], so that
what was set still shows. Whether a value is secret is decided by the name it is given (`password=`, `key=`,
`--token`), by the option it stands behind (`-fw_cfg …,string=`), or by its form (`http://user:password@host`). In
doubt it is masked: nobody needs a fact as much as a password needs to stay where it is.

Names of secrets are no secrets: `password-secret=sec0` of QEMU names an object whose data is masked
(`-object secret,id=sec0,data=…`; `qapi/crypto.json`, `qapi/block-core.json`, `qemu-options.hx`).

Masked is:

- the value after a name with `passw`, `passphrase`, `passcode`, `secret`, `token`, `credential`, `authorization`,
  `bearer` or `cookie` in it, or whose last word is `key`, `auth`, `pw`, `pwd`, `pass`, `psk`, `pin`, `jwt`, `cred`,
  `sig`, `iv`, `serial` or `data`: `password=x`, `--token x`, `rd.luks.key=x`, `:key=x:`, `?sig=x`, `X-Auth-Token: x`,
  `-object secret,data=x`, and the same as JSON; but not the files that secrets are in (`-object
  secret,file=/run/sec0`);
- user and password in addresses: `https://user:password@host`, `iscsi://user%password@host`, `user:password@host`,
  and the password of `user=name:password`;
- every string of `-fw_cfg`, and systemd's credentials in `-smbios`;
- the guest's kernel command line (`-append`, `--cmdline`, `--params`) as the host's, word by word;
- what a shell is to do (`sh -c '...'`), in a word of its own or within one;
- AWS's keys by their form (`AKIA...`);
- tables of the device mapper with a disk's key (`dm-mod.create=`), private keys and JSON web tokens wherever they
  stand, and JSON that cannot be read, as a whole.
*/
#![forbid(unsafe_code)]

mod form;
mod json;
mod key;
mod machine;
mod name;

use key::WordStyle;
pub use machine::machine_id;
pub use name::NameMask;

/// What stands in place of a value.
pub const MASK: &str = "***";

/// Options whose value is a kernel's command line: QEMU's `-append`, Cloud Hypervisor's `--cmdline`, kvmtool's and
/// crosvm's `--params` and `-p`.
const KERNEL: [&str; 5] = ["append", "cmdline", "params", "p", "kernel-cmdline"];

/// Masks a VMM's command line. Returns it, and how many values were masked.
pub fn args(args: &[String]) -> (Vec<String>, u64) {
    let mut mask = Masker::default();
    let mut out = Vec::with_capacity(args.len());
    let mut option: Option<&str> = None;
    for (at, arg) in args.iter().enumerate() {
        // The program itself.
        if at == 0 {
            out.push(arg.clone());
            continue;
        }
        let behind = option.take();
        let secret = behind.is_some_and(key::takes_secret) && !is_long_option(arg);
        let masked = match behind {
            Some(_) if secret => mask.value(arg).to_owned(),
            Some(name) if KERNEL.contains(&name) => mask.kernel(arg),
            Some(name) if key::is_login(name) => mask.login(arg),
            // What a shell is to do.
            Some("c" | "lc" | "ec") => mask.value(arg).to_owned(),
            _ => mask.arg(arg, behind.unwrap_or_default()),
        };
        out.push(masked);
        if !secret && arg.starts_with('-') && !arg.contains('=') {
            option = Some(arg.trim_start_matches('-'));
        }
    }
    (out, mask.count)
}

/// Masks a kernel's command line. Returns it, and how many values were masked.
pub fn cmdline(text: &str) -> (String, u64) {
    let mut mask = Masker::default();
    let text = mask.kernel(text);
    (text, mask.count)
}

/// Returns whether a word is an option rather than the value of the one before it.
fn is_long_option(arg: &str) -> bool {
    let Some(name) = arg.strip_prefix("--") else {
        return false;
    };
    let name = name.split('=').next().unwrap_or_default();
    let word = |b: u8| b.is_ascii_lowercase() || b == b'-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(word)
}

/// Returns what stands between the quotes of a word that is quoted as a whole: `"name=a b"`.
fn inside_quotes(word: &str) -> Option<&str> {
    word.strip_prefix('"')?.strip_suffix('"')
}

/// Counts what it masks.
#[derive(Debug, Default)]
struct Masker {
    count: u64,
}

impl Masker {
    /// Returns what stands in place of a value. There is nothing secret in an empty one.
    fn value<'t>(&mut self, value: &'t str) -> &'t str {
        if value.is_empty() || value == MASK {
            return value;
        }
        self.count += 1;
        MASK
    }

    /// Masks one word of a VMM's command line, which stands behind an option.
    fn arg(&mut self, arg: &str, option: &str) -> String {
        if let Some((name, value)) = arg.split_once('=')
            && name.starts_with('-')
            && KERNEL.contains(&name.trim_start_matches('-'))
        {
            return format!("{name}={}", self.kernel(value));
        }
        let style = match option {
            "fw_cfg" => WordStyle::FwCfg,
            "vnc" => WordStyle::Vnc,
            _ => WordStyle::List,
        };
        self.text(arg, style)
    }

    /// Masks a word.
    fn text(&mut self, text: &str, style: WordStyle) -> String {
        if text.contains("-----BEGIN") {
            return self.value(text).to_owned();
        }
        if let Some(masked) = self.json(text) {
            return masked;
        }
        let text = self.urls(text);
        let text = self.logins(&text);
        let text = self.web_tokens(&text);
        let text = self.shells(&text);
        self.keys(&text, style)
    }

    /// Masks a kernel's command line word by word; quotes hold blanks together (`next_arg` of `lib/cmdline.c`).
    fn kernel(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut secret_next = false;
        while !rest.is_empty() {
            let blanks = rest.len() - rest.trim_start().len();
            let (before, from) = rest.split_at(blanks);
            out.push_str(before);
            let mut quoted = false;
            let end = from.find(|c: char| {
                quoted ^= c == '"';
                c.is_whitespace() && !quoted
            });
            let (word, behind) = from.split_at(end.unwrap_or(from.len()));
            rest = behind;
            if secret_next && !is_long_option(word) {
                out.push_str(self.value(word));
                secret_next = false;
                continue;
            }
            // A table of the device mapper may have the key of an encrypted disk in it.
            let table = word.starts_with("dm=") || word.starts_with("dm-mod.create=");
            match word.split_once('=') {
                Some((name, value)) if table && value.contains(" crypt ") => {
                    out.push_str(name);
                    out.push('=');
                    out.push_str(self.value(value));
                }
                _ => match inside_quotes(word) {
                    Some(inside) => {
                        let inside = self.text(inside, WordStyle::Kernel);
                        out.push_str(&format!("\"{inside}\""));
                    }
                    None => out.push_str(&self.text(word, WordStyle::Kernel)),
                },
            }
            secret_next = word.starts_with("--")
                && !word.contains('=')
                && key::takes_secret(word.trim_start_matches('-'));
        }
        out
    }
}

#[cfg(test)]
mod tests;
