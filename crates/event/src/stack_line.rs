//! Lines of stacks as texts print them.

/// A function of a stack, as a text prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackFrame<'a> {
    /// The address, or where in the file it is, where perf prints that.
    pub address: Option<u64>,
    /// The function, without what the text adds: offset, size, module. `None` where it has no name.
    pub symbol: Option<&'a str>,
    /// What perf prints in brackets behind it: the file, `[kernel.kallsyms]`, `[kvm]`, `[unknown]`.
    pub file: Option<&'a str>,
}

impl<'a> StackFrame<'a> {
    /// Reads a line: `ffffffff821fb643 schedule+0x23 ([kernel.kallsyms])` of perf, ` => schedule+0x23/0x60` of the
    /// kernel, with its option `sym-addr` ` => schedule+0x23/0x60 <ffffffff821fb643>`, `=> schedule (ffffffff821fb643)`
    /// of trace-cmd. Returns `None` for what is none of these.
    pub fn parse(line: &'a str) -> Option<StackFrame<'a>> {
        let text = line.trim();
        let text = text.strip_prefix("=>").unwrap_or(text).trim_start();
        let (text, behind) = name_and_address(text);
        if behind.is_some() {
            return Some(StackFrame {
                address: behind,
                symbol: Some(without_offset(text)).filter(|name| is_name(name)),
                file: None,
            });
        }
        let (first, behind) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A place in a file may be a short number, a function may be called `cafe`; perf's lines end in the file.
        let of_perf = behind.ends_with(')') && !line.contains("=>");
        let address = (first.len() >= 8 || of_perf).then(|| hex(first)).flatten();
        let rest = if address.is_some() { behind } else { text };
        let rest = rest.trim();
        let (name, last) = name_and_file(rest);
        let printed = last.and_then(hex).filter(|_| address.is_none());
        let symbol = without_offset(name.trim());
        // Names of Rust functions begin with anything; only perf prints those.
        let of_code = of_perf && address.is_some() && !symbol.is_empty() && symbol != "[unknown]";
        let symbol = Some(symbol).filter(|name| of_code || is_name(name));
        if address.is_none() && symbol.is_none() {
            return None;
        }
        Some(StackFrame {
            address: address.or(printed),
            symbol,
            file: last.filter(|_| printed.is_none()),
        })
    }
}

/// Takes a name and the address that the kernel prints behind it apart (`seq_print_ip_sym`,
/// `kernel/trace/trace_output.c`).
fn name_and_address(text: &str) -> (&str, Option<u64>) {
    let parts = text
        .strip_suffix('>')
        .and_then(|body| body.rsplit_once(" <"));
    match parts.map(|(name, address)| (name, hex(address))) {
        Some((name, Some(address))) => (name.trim_end(), Some(address)),
        _ => (text, None),
    }
}

/// Takes a name and the file in brackets behind it apart. Names of C++ functions have blanks and brackets, and so may
/// files, such as `/memfd:x (deleted)`.
fn name_and_file(text: &str) -> (&str, Option<&str>) {
    let Some(body) = text.strip_suffix(')') else {
        return (text, None);
    };
    // Names may begin with a bracket too: `(anonymous namespace)::walk`.
    let alone = body
        .strip_prefix('(')
        .filter(|file| file.starts_with(['/', '[']));
    if let Some(file) = alone {
        return ("", Some(file));
    }
    if let Some(file) = body.strip_prefix("[unknown] (") {
        return ("[unknown]", Some(file));
    }
    // The offset ends the name, where it is printed.
    let offset = body.rmatch_indices("+0x").find_map(|(at, _)| {
        let digits = body[at + 3..]
            .bytes()
            .take_while(u8::is_ascii_hexdigit)
            .count();
        let end = at + 3 + digits;
        body[end..].starts_with(" (").then_some(end)
    });
    let whole = body.strip_suffix(" (deleted)").unwrap_or(body);
    match offset.or_else(|| whole.rfind(" (")) {
        Some(at) => (&body[..at], Some(&body[at + 2..])),
        None => (text, None),
    }
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Takes `+0x23`, `+0x23/0x60` and ` [kvm]` off the end of a name.
fn without_offset(name: &str) -> &str {
    let name = match name.rsplit_once(" [") {
        Some((name, module)) if module.ends_with(']') => name.trim_end(),
        _ => name,
    };
    match name.rsplit_once("+0x") {
        Some((name, offset))
            if offset
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || matches!(b, b'/' | b'x')) =>
        {
            name
        }
        _ => name,
    }
}

/// Whether a text can be a function's name. perf prints `[unknown]` where it knows none.
fn is_name(name: &str) -> bool {
    let first = name.chars().next();
    name != "[unknown]"
        && first.is_some_and(|first| !first.is_ascii_digit() && !"=<(-".contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_stacks_name_functions() {
        let kernel = Some("[kernel.kallsyms]");
        for (line, address, symbol, file) in [
            (
                "\tffffffff821fb643 schedule+0x23 ([kernel.kallsyms])",
                Some(0xffff_ffff_821f_b643),
                Some("schedule"),
                kernel,
            ),
            (" => __schedule+0x23/0x60", None, Some("__schedule"), None),
            (
                " => kvm_vcpu_block+0x23/0x60 [kvm]",
                None,
                Some("kvm_vcpu_block"),
                None,
            ),
            (" => worker_thread", None, Some("worker_thread"), None),
            (
                " => kvm_vcpu_block+0x23/0x60 [kvm] <ffffffffc045c31e>",
                Some(0xffff_ffff_c045_c31e),
                Some("kvm_vcpu_block"),
                None,
            ),
            (
                "=> schedule <ffffffff821fb643>",
                Some(0xffff_ffff_821f_b643),
                Some("schedule"),
                None,
            ),
            (
                "=> kthread (ffffffff8138bbe8)",
                Some(0xffff_ffff_8138_bbe8),
                Some("kthread"),
                None,
            ),
            (
                "\t    7f0c2a1b2c3d [unknown] (/usr/bin/opt)",
                Some(0x7f0c_2a1b_2c3d),
                None,
                Some("/usr/bin/opt"),
            ),
            (
                "    55d0c0ffee00 operator new(unsigned long)+0x1c (/opt/my app/lib.so)",
                Some(0x55d0_c0ff_ee00),
                Some("operator new(unsigned long)"),
                Some("/opt/my app/lib.so"),
            ),
            (
                "           fdd6b ioctl+0x3b (/usr/lib/libc.so.6)",
                Some(0xfdd6b),
                Some("ioctl"),
                Some("/usr/lib/libc.so.6"),
            ),
            (
                "    55d0c0ffee00 <Vec<T> as Drop>::drop+0x1c (/opt/lib.so)",
                Some(0x55d0_c0ff_ee00),
                Some("<Vec<T> as Drop>::drop"),
                Some("/opt/lib.so"),
            ),
            (
                "    55d0c0ffee00 [unknown] (/memfd:sealed-91 (deleted))",
                Some(0x55d0_c0ff_ee00),
                None,
                Some("/memfd:sealed-91 (deleted)"),
            ),
            (
                "    55d0c0ffee00 f(int (*)(int))+0x1c (/opt/app (x86)/lib.so (deleted))",
                Some(0x55d0_c0ff_ee00),
                Some("f(int (*)(int))"),
                Some("/opt/app (x86)/lib.so (deleted)"),
            ),
            (
                "    55d0c0ffee00 f(int (*)(int)) (/opt/lib.so (deleted))",
                Some(0x55d0_c0ff_ee00),
                Some("f(int (*)(int))"),
                Some("/opt/lib.so (deleted)"),
            ),
            (
                "    55d0c0ffee00 (anonymous namespace)::walk+0x1c (/opt/lib.so)",
                Some(0x55d0_c0ff_ee00),
                Some("(anonymous namespace)::walk"),
                Some("/opt/lib.so"),
            ),
            (
                "    55d0c0ffee00 (/usr/bin/opt)",
                Some(0x55d0_c0ff_ee00),
                None,
                Some("/usr/bin/opt"),
            ),
        ] {
            let expected = Some(StackFrame {
                address,
                symbol,
                file,
            });
            assert_eq!(StackFrame::parse(line), expected, "{line}");
        }
        for line in ["", "   ", "=>", "12 34", "<stack trace >"] {
            assert_eq!(StackFrame::parse(line), None, "{line}");
        }
    }
}
