//! The options of both versions: small pieces of data with a number that says what they are.
//!
//! Sources: `Documentation/trace-cmd/trace-cmd.dat.v7.5.txt`, `lib/trace-cmd/trace-input.c` (`handle_options`),
//! `lib/trace-cmd/trace-output.c` of trace-cmd.

use crate::info::{
    Buffer, CpuPages, CpuStats, ShiftSample, TextBuffer, TimeShift, TraceGuest, TraceMetadata,
    TraceModule, Tsc2Nsec, text_of,
};
use tracefmt::{Cursor, Diagnostic, Endian};

/// Numbers of options and sections, as `enum` in `include/trace-cmd/trace-cmd.h` has them.
pub(crate) mod id {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const DATE: u16 = 1;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const HOOK: u16 = 6;
    pub(crate) const OFFSET: u16 = 7;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const PROCMAPS: u16 = 10;
    pub(crate) const TRACEID: u16 = 11;
    pub(crate) const TIME_SHIFT: u16 = 12;
    pub(crate) const GUEST: u16 = 13;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const STRINGS: u16 = 15;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
    pub(crate) const BUFFER_TEXT: u16 = 22;
    pub(crate) const BTF_FILE: u16 = 23;
    pub(crate) const LAST_BOOT_INFO: u16 = 24;
    pub(crate) const MODULES_FILE: u16 = 25;
    /// The largest section number known.
    pub(crate) const LAST: u16 = MODULES_FILE;
}

/// A buffer as an option announces it: its data is found later.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnnouncedBuffer {
    /// Where its section (v7) or its own options and CPU table (v6) begin.
    pub offset: u64,
    pub buffer: Buffer,
    /// Where in the file the option's data begins, if it is not compressed.
    pub option: Option<u64>,
    /// Whether it is text.
    pub text: bool,
    /// Bytes of the text, compressed if it is.
    pub text_size: u64,
}

/// Everything the options say.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraceOptions {
    pub info: TraceMetadata,
    pub buffers: Vec<AnnouncedBuffer>,
    /// Offset of a section by its number, for those that options point to.
    pub sections: Vec<(u16, u64)>,
    /// `OPTION TRACECLOCK` was there: in v6 the clock's text follows the CPU table.
    pub clock_follows: bool,
    /// The options as they stand in the file, but for the end of a list, if they are to be kept.
    pub kept: Option<Vec<(u16, Vec<u8>)>>,
    /// The buffer that `CPUSTAT` options are about now.
    stats_buffer: String,
    pub diagnostics: Vec<Diagnostic>,
}

/// More faults of options than this are not reported.
const MAX_DIAGNOSTICS: usize = 256;

/// What stands at the end of a list of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListEnd {
    /// The option `DONE`; in v7 it says where the next list is, 0 for nowhere.
    Done(u64),
    /// The list ends without it.
    Cut,
}

impl TraceOptions {
    /// Reads a list of options up to its `DONE`. `base` is where the cursor's data begins in the file, or
    /// `None` when it was decompressed.
    pub(crate) fn read_list(
        &mut self,
        cursor: &mut Cursor<'_>,
        v7: bool,
        base: Option<u64>,
    ) -> ListEnd {
        loop {
            let here = base.map(|b| b + cursor.position() as u64);
            let Some(option) = cursor.u16() else {
                return ListEnd::Cut;
            };
            if option == id::DONE && !v7 {
                return ListEnd::Done(0);
            }
            let Some(size) = cursor.u32() else {
                return ListEnd::Cut;
            };
            let Some(data) = cursor.take(u64::from(size)) else {
                return ListEnd::Cut;
            };
            if option == id::DONE {
                return ListEnd::Done(cursor.endian.u64(data, 0).unwrap_or(0));
            }
            let known = self.buffers.len();
            let complete = self.take(option, data, cursor.endian, v7);
            if let Some(announced) = self.buffers.get_mut(known) {
                announced.option = base.map(|b| b + (cursor.position() - data.len()) as u64);
            }
            if let Some(kept) = &mut self.kept {
                kept.push((option, data.to_vec()));
            }
            if complete.is_none() {
                self.note(
                    here,
                    format!("option {option} of {size} bytes is shorter than it should be"),
                );
            }
        }
    }

    /// Notes something amiss, unless very much was amiss already.
    fn note(&mut self, offset: Option<u64>, message: String) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(Diagnostic { offset, message });
        }
    }

    /// Takes one option; `None` when its data ends early. What was read until then is kept.
    fn take(&mut self, option: u16, data: &[u8], endian: Endian, v7: bool) -> Option<()> {
        let info = &mut self.info;
        match option {
            id::DATE => {
                let micros = number(&text_of(data));
                info.date_offset_ns = info.date_offset_ns.wrapping_add(micros.wrapping_mul(1000));
            }
            id::OFFSET => info.offset_ns = info.offset_ns.wrapping_add(number(&text_of(data))),
            id::CPUSTAT => self.cpu_stats(&text_of(data)),
            id::BUFFER | id::BUFFER_TEXT => {
                let mut announced = AnnouncedBuffer {
                    text: option == id::BUFFER_TEXT,
                    ..AnnouncedBuffer::default()
                };
                let complete = announced.read(&mut Cursor::new(data, endian), v7);
                if announced.offset != 0 {
                    self.buffers.push(announced);
                }
                complete?;
            }
            id::TRACECLOCK => {
                self.clock_follows = true;
                info.set_clocks(data);
            }
            id::UNAME => info.uname = Some(text_of(data)),
            id::HOOK => info.hooks.push(text_of(data)),
            id::CPUCOUNT => info.cpus = endian.u32(data, 0)?,
            id::VERSION => info.recorder = Some(text_of(data)),
            id::PROCMAPS => info.procmaps = Some(text_of(data)),
            id::TRACEID => info.trace_id = Some(endian.u64(data, 0)?),
            id::TIME_SHIFT => {
                let shift = info.time_shift.insert(TimeShift::default());
                read_time_shift(shift, &mut Cursor::new(data, endian))?;
            }
            id::GUEST => {
                let mut guest = TraceGuest::default();
                let complete = read_guest(&mut guest, &mut Cursor::new(data, endian));
                info.guests.push(guest);
                complete?;
            }
            id::TSC2NSEC => {
                let mult = endian.u32(data, 0)?;
                let shift = endian.u32(data, 4)?;
                info.tsc2nsec = Some(Tsc2Nsec {
                    mult,
                    shift,
                    offset: endian.u64(data, 8)?,
                });
            }
            id::LAST_BOOT_INFO => info.last_boot = Some(text_of(data)),
            id::HEADER_INFO..=id::CMDLINES | id::BTF_FILE | id::MODULES_FILE => {
                let offset = endian.u64(data, 0)?;
                match self.sections.iter_mut().find(|s| s.0 == option) {
                    Some(known) => known.1 = offset,
                    None => self.sections.push((option, offset)),
                }
            }
            _ => self.note(
                None,
                format!("option {option} is not known: it was skipped"),
            ),
        }
        Some(())
    }

    /// Takes one `CPUSTAT`: the stats of a CPU, or a heading that names the instance of those that follow.
    fn cpu_stats(&mut self, text: &str) {
        let mut stats = CpuStats {
            text: text.to_owned(),
            ..CpuStats::default()
        };
        let mut is_cpu = false;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            let number = value.parse::<u64>().unwrap_or(0);
            match key.trim() {
                "Buffer" => self.stats_buffer = value.to_owned(),
                "CPU" => {
                    stats.cpu = number.try_into().unwrap_or(u32::MAX);
                    is_cpu = true;
                }
                "entries" => stats.entries = number,
                "overrun" => stats.overrun = number,
                "commit overrun" => stats.commit_overrun = number,
                "dropped events" => stats.dropped = number,
                "read events" => stats.read = number,
                _ => {}
            }
        }
        if is_cpu {
            stats.buffer.clone_from(&self.stats_buffer);
            self.info.cpu_stats.push(stats);
        }
    }

    /// Takes the text of `/proc/modules`.
    pub(crate) fn set_modules(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.info.modules = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let name = words.next()?.to_owned();
                let size = words.next()?.parse().ok()?;
                let address = words.nth(3).map_or(0, address);
                Some(TraceModule {
                    name,
                    size,
                    address,
                })
            })
            .collect();
    }
}

impl AnnouncedBuffer {
    fn read(&mut self, cursor: &mut Cursor<'_>, v7: bool) -> Option<()> {
        self.offset = cursor.u64()?;
        let rest = cursor.rest();
        // A name without a NUL byte takes all that is left.
        let name = cursor.cstr().unwrap_or(rest);
        self.buffer.name = text_of(name);
        if !v7 {
            return Some(());
        }
        self.buffer.clock = Some(text_of(cursor.cstr()?)).filter(|c| !c.is_empty());
        if self.text {
            return Some(());
        }
        self.buffer.page_size = cursor.u32()?;
        let cpus = cursor.u32()?;
        for _ in 0..cpus {
            let cpu = cursor.u32()?;
            let offset = cursor.u64()?;
            let size = cursor.u64()?;
            self.buffer.cpus.push(CpuPages { cpu, offset, size });
        }
        self.buffer.cpus.sort_by_key(|c| c.cpu);
        Some(())
    }

    /// Returns the buffer as one of text.
    pub(crate) fn into_text(self) -> TextBuffer {
        TextBuffer {
            name: self.buffer.name,
            clock: self.buffer.clock,
            offset: self.offset,
            size: self.text_size,
            compressed: self.buffer.compressed,
        }
    }
}

fn read_time_shift(shift: &mut TimeShift, cursor: &mut Cursor<'_>) -> Option<()> {
    shift.peer_trace_id = cursor.u64()?;
    shift.flags = cursor.u32()?;
    let cpus = cursor.u32()?;
    for _ in 0..cpus {
        let count = cursor.u32()? as usize;
        // Three lists of 64-bit numbers follow, so a count is believed only as far as they can be there.
        if count > cursor.rest().len() / 24 {
            return None;
        }
        let mut samples = vec![ShiftSample::default(); count];
        for sample in &mut samples {
            sample.time = cursor.u64()?.cast_signed();
        }
        for sample in &mut samples {
            sample.offset = cursor.u64()?.cast_signed();
        }
        for sample in &mut samples {
            sample.scaling = cursor.u64()?.cast_signed();
        }
        shift.cpus.push(samples);
    }
    if cursor.rest().is_empty() {
        // Recorders before trace-cmd 3.0 stored no fractions.
        return Some(());
    }
    for samples in &mut shift.cpus {
        for sample in samples {
            sample.fraction = cursor.u64()?.cast_signed();
        }
    }
    Some(())
}

fn read_guest(guest: &mut TraceGuest, cursor: &mut Cursor<'_>) -> Option<()> {
    guest.name = text_of(cursor.cstr()?);
    guest.trace_id = cursor.u64()?;
    let vcpus = cursor.u32()?;
    for _ in 0..vcpus {
        let cpu = cursor.u32()?;
        guest.vcpus.push((cpu, cursor.u32()?.cast_signed()));
    }
    Some(())
}

/// Reads a number as `strtoll` with base 0 does: the largest or smallest where it has more than 64 bits.
fn number(text: &str) -> i64 {
    match signed(text) {
        (false, value) => i64::try_from(value).unwrap_or(i64::MAX),
        (true, value) => 0i64.saturating_sub_unsigned(value),
    }
}

/// Reads a number as `strtoull` with base 0 does: addresses use all 64 bits.
fn address(text: &str) -> u64 {
    match signed(text) {
        (false, value) => value,
        (true, value) => value.wrapping_neg(),
    }
}

/// Reads a number as C does with base 0: sign, `0x` for hexadecimal, `0` for octal, up to the first character
/// that does not belong to it. Returns whether it is negative, and how large it is.
fn signed(text: &str) -> (bool, u64) {
    let text = text.trim_start();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, text) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None if text.starts_with('0') => (8, text),
        None => (10, text),
    };
    let mut value = 0u64;
    for digit in text.chars().map_while(|c| c.to_digit(base)) {
        value = value
            .saturating_mul(u64::from(base))
            .saturating_add(u64::from(digit));
    }
    (negative, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtoll_does() {
        assert_eq!(number("0x10"), 16);
        assert_eq!(number("-0x3e8 "), -1000);
        assert_eq!(number("017"), 15);
        assert_eq!(number("+12\n"), 12);
        assert_eq!(number("no"), 0);
        assert_eq!(number("0xffffffffc0000000"), i64::MAX);
        assert_eq!(number("-18446744073709551615"), i64::MIN);
        assert_eq!(number("99999999999999999999"), i64::MAX);
        assert_eq!(address("0xffffffffc0000000"), 0xffff_ffff_c000_0000);
        assert_eq!(address("-1"), u64::MAX);
    }

    #[test]
    fn a_time_shift_without_fractions_is_complete() {
        let mut data = Vec::new();
        data.extend(7u64.to_le_bytes());
        data.extend(1u32.to_le_bytes());
        data.extend(1u32.to_le_bytes());
        data.extend(1u32.to_le_bytes());
        for n in [5u64, (-6i64).cast_unsigned(), 1] {
            data.extend(n.to_le_bytes());
        }
        let mut shift = TimeShift::default();
        read_time_shift(&mut shift, &mut Cursor::new(&data, Endian::Little)).unwrap();
        assert_eq!((shift.peer_trace_id, shift.flags), (7, 1));
        assert_eq!(
            shift.cpus,
            [vec![ShiftSample {
                time: 5,
                offset: -6,
                scaling: 1,
                fraction: 0
            }]]
        );
        data.extend(3u64.to_le_bytes());
        let mut shift = TimeShift::default();
        read_time_shift(&mut shift, &mut Cursor::new(&data, Endian::Little)).unwrap();
        assert_eq!(shift.cpus[0][0].fraction, 3);
        // A count that cannot be true is no reason to allocate.
        data[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read_time_shift(&mut shift, &mut Cursor::new(&data, Endian::Little)).is_none());
    }
}
