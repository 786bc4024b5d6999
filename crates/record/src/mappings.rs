//! Where the kernel, its modules and the code of processes lie, as perf writes it at the beginning of its files: by
//! this perf finds their symbols.

use std::fs;
use std::io::Read;

use crate::{side, tasks};

/// `PERF_RECORD_MMAP`, `PERF_RECORD_MMAP2`.
const MMAP: u32 = 1;
const MMAP2: u32 = 10;
/// `PERF_RECORD_MISC_KERNEL`, `PERF_RECORD_MISC_USER`.
const KERNEL: u16 = 1;
const USER: u16 = 2;
/// `PROT_READ | PROT_EXEC`, `MAP_PRIVATE`.
const PROTECTION: u32 = 1 | 4;
const PRIVATE: u32 = 2;
/// The kernel belongs to no process.
const NO_PROCESS: u32 = u32::MAX;

/// Returns a record for the kernel, and one for each module; none where addresses are hidden from whoever reads them.
///
/// `symbols` is the text of /proc/kallsyms, `modules` that of /proc/modules. `code_bytes` is how long the kernel's code
/// is, for where the symbols do not reach to its end ([`first_symbols`], [`code_bytes`]).
///
/// The names are those that perf uses (`perf_event__synthesize_kernel_mmap` and `perf_event__synthesize_modules` in
/// `tools/perf/util/synthetic-events.c`): the kernel begins at `_text`, or at `_stext` where that is not in the list
/// (arm64), which its name says, and ends at `_edata` or `_etext`. Without this record `perf report` says that
/// addresses were hidden.
pub fn kernel(symbols: &[u8], modules: &str, code_bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut text, mut start, mut end) = (0, 0, 0);
    for line in symbols.split(|byte| *byte == b'\n') {
        // A module's symbol has its name behind it.
        let line = std::str::from_utf8(line).unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let address = || u64::from_str_radix(address, 16).unwrap_or(0);
        match name {
            "_text" => text = address(),
            "_stext" => start = address(),
            "_etext" | "_edata" => end = end.max(address()),
            _ => {}
        }
    }
    let (begin, name) = match text {
        0 => (start, "[kernel.kallsyms]_stext"),
        _ => (text, "[kernel.kallsyms]_text"),
    };
    let end = match end {
        0 => begin.saturating_add(code_bytes),
        end => end,
    };
    if begin > 0 && end > begin {
        record(&mut out, begin, end - begin, begin, name);
    }
    for line in modules.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(size), Some(address)) = (words.next(), words.next(), words.nth(3))
        else {
            continue;
        };
        let address = address.trim_start_matches("0x");
        let address = u64::from_str_radix(address, 16).unwrap_or(0);
        if let Ok(size) = size.parse()
            && address > 0
        {
            record(&mut out, address, size, 0, &format!("[{name}]"));
        }
    }
    out
}

/// Bytes of the kernel's list of symbols that are read at most, and at once, to find its first one.
const MOST: usize = 1 << 20;
const PIECE: usize = 16 << 10;

/// Returns the text of /proc/kallsyms up to the symbol that the kernel begins with: all of it takes longer to read than
/// all else that a recording begins with.
pub fn first_symbols() -> Vec<u8> {
    let mut text = Vec::new();
    let Ok(mut file) = fs::File::open("/proc/kallsyms") else {
        return text;
    };
    let has = |text: &[u8], name: &[u8]| text.windows(name.len()).any(|piece| piece == name);
    while text.len() < MOST {
        let begin = text.len();
        text.resize(begin + PIECE, 0);
        let read = file.read(&mut text[begin..]).unwrap_or(0);
        text.truncate(begin + read);
        let tail = &text[begin.saturating_sub(PIECE)..];
        if read == 0 || has(tail, b" _text\n") || has(tail, b" _stext\n") {
            break;
        }
    }
    text
}

/// Returns how long the kernel's code is by the text of /proc/iomem; 0 where that does not say, as to those who may not
/// see addresses.
pub fn code_bytes(iomem: &str) -> u64 {
    let code = iomem.lines().find_map(|line| {
        let (range, name) = line.split_once(" : ")?;
        let (begin, end) = range.trim().split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        (name == "Kernel code").then_some(hex(end)?.checked_sub(hex(begin)?)?)
    });
    // A range has its last byte in it.
    code.filter(|last| *last > 0).map_or(0, |last| last + 1)
}

fn record(out: &mut Vec<u8>, begin: u64, length: u64, offset: u64, name: &str) {
    let ids = [NO_PROCESS, 0].map(u32::to_ne_bytes).concat();
    let place = [begin, length, offset].map(u64::to_ne_bytes).concat();
    side::push(out, MMAP, KERNEL, &[&ids, &place], name.as_bytes());
}

/// Returns a record for each mapping of code that a process has now: call chains of user space are addresses in them.
pub fn processes() -> Vec<u8> {
    let mut out = Vec::new();
    for pid in tasks::numbers("/proc") {
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/maps")) {
            process(&mut out, pid, &text);
        }
    }
    out
}

/// What a process may execute, by the lines of its maps: range, protection, offset, device, inode, name.
fn process(out: &mut Vec<u8>, pid: u32, text: &str) {
    for line in text.lines() {
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (range, protection, offset, device, inode) = (word(), word(), word(), word(), word());
        let name = word().trim_start();
        if !protection.contains('x') || name.is_empty() {
            continue;
        }
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        let (begin, end) = range.split_once('-').unwrap_or_default();
        let (major, minor) = device.split_once(':').unwrap_or_default();
        let device = |text: &str| u32::try_from(hex(text)).unwrap_or(0);
        let (begin, end) = (hex(begin), hex(end));
        let ids = [pid, pid].map(u32::to_ne_bytes).concat();
        let place = [begin, end.saturating_sub(begin), hex(offset)];
        let place = place.map(u64::to_ne_bytes).concat();
        let device = [device(major), device(minor)]
            .map(u32::to_ne_bytes)
            .concat();
        let inode = [inode.parse().unwrap_or(0), 0u64]
            .map(u64::to_ne_bytes)
            .concat();
        let how = [PROTECTION, PRIVATE].map(u32::to_ne_bytes).concat();
        let body: [&[u8]; 5] = [&ids, &place, &device, &inode, &how];
        side::push(out, MMAP2, USER, &body, name.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &[u8] =
        b"ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffff82800000 D _edata\n\
        ffffffffc0000000 t _etext\t[tun]\n";
    const MODULES: &str =
        "tun 61440 2 vhost_net, Live 0xffffffffc0000000\nkvm 1 0 - Live 0x0000000000000000\n";

    #[test]
    fn the_kernel_may_begin_at_another_symbol() {
        // So it is on arm64, Linux 6.1.
        let list = b"ffffc6ab5fa10000 T _stext\nffffc6ab60700000 D _etext\n";
        let all = kernel(list, "", 0);
        assert_eq!(all[16..24], 0xffff_c6ab_5fa1_0000_u64.to_ne_bytes());
        assert_eq!(all[24..32], 0xcf_0000_u64.to_ne_bytes());
        assert!(all[40..].starts_with(b"[kernel.kallsyms]_stext\0"));
    }

    #[test]
    fn the_kernel_and_its_modules_have_a_record_each() {
        let all = kernel(SYMBOLS, MODULES, 0);
        let word = |at: usize| {
            let bytes = all[at..at + 8].try_into().expect("a word");
            u64::from_ne_bytes(bytes)
        };
        let size = usize::from(u16::from_ne_bytes([all[6], all[7]]));
        assert_eq!(word(16), 0xffff_ffff_8100_0000);
        assert_eq!(word(24), 0x180_0000);
        assert_eq!(word(32), word(16));
        assert!(all[40..].starts_with(b"[kernel.kallsyms]_text\0"));
        // The module whose address is hidden is left out.
        assert_eq!(
            (word(size + 16), word(size + 24)),
            (0xffff_ffff_c000_0000, 61440)
        );
        let second = usize::from(u16::from_ne_bytes([all[size + 6], all[size + 7]]));
        assert_eq!(all.len(), size + second);
        assert!(all.len().is_multiple_of(8));
        assert!(
            kernel(
                b"0000000000000000 T _text\n0000000000000000 T _etext\n",
                "",
                0
            )
            .is_empty()
        );
    }

    #[test]
    fn without_all_symbols_the_kernel_is_as_long_as_its_code() {
        let iomem = "00001000-0009ffff : System RAM\n  01000000-01ffffff : Kernel code\n  02000000-027fffff : Kernel \
            data\n";
        assert_eq!(code_bytes(iomem), 0x100_0000);
        assert_eq!(code_bytes("00000000-00000000 : Kernel code\n"), 0);
        assert_eq!(code_bytes("01000000-zz : Kernel code\n"), 0);
        let first = b"ffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        let all = kernel(first, "", 0x100_0000);
        let length = all[24..32].try_into().expect("a word");
        assert_eq!(u64::from_ne_bytes(length), 0x100_0000);
        assert!(
            kernel(first, "", 0).is_empty(),
            "nobody knows where it ends"
        );
    }
}
