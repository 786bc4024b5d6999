//! What the programs have to know of the records of an event.

use tracefmt::{Abi, EventFormat, FieldKind, FormatField};

use crate::plan::ProbeKind;
use crate::tracefs::Tracepoint;

/// Bytes of the longest record that is kept (`RECORD` in `bpf/pair.bpf.c`).
const LONGEST: u32 = 240;
/// Bytes of records of probes without arguments: the common fields, and one address or two
/// (`kprobe_trace_entry_head`, `kretprobe_trace_entry_head` in `kernel/trace/trace.h`).
const PROBE: u32 = 16;
const RETURN: u32 = 24;

/// Where the instruction pointer stands in `struct pt_regs` (`arch/x86/include/asm/ptrace.h`,
/// `arch/arm64/include/asm/ptrace.h`).
const IP_AT: u32 = if cfg!(target_arch = "aarch64") {
    256
} else {
    128
};

/// What a record is made of (the numbers of `bpf/pair.bpf.c`).
mod from {
    pub(super) const TRACEPOINT: u32 = 0;
    pub(super) const PROBE: u32 = 1;
    pub(super) const KERNEL_PROBE: u32 = 2;
    pub(super) const RETURN: u32 = 3;
}

/// The shape of an event's records, as `struct shape` of the programs has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RecordShape {
    /// Bytes; 0 where perf writes them.
    size: u32,
    id: u32,
    from: u32,
}

impl RecordShape {
    /// Returns that of an event.
    ///
    /// # Errors
    ///
    /// Its records cannot be kept: a sentence says why.
    pub(super) fn of(
        tracepoint: &Tracepoint,
        probe: Option<ProbeKind>,
    ) -> Result<RecordShape, String> {
        let format = EventFormat::parse(&tracepoint.system, &tracepoint.format, Abi::default());
        let format = format.ok_or("its format cannot be read")?;
        let ends = format.fields.iter().map(|field| field.offset + field.size);
        let fixed = ends.max().unwrap_or(0);
        let (size, from) = match probe {
            None => {
                // Texts stand behind the fields, and are shorter than what is kept.
                let text = format.fields.iter().any(is_text_behind);
                let size = if text { LONGEST } else { fixed };
                (size, from::TRACEPOINT)
            }
            Some(ProbeKind::User) => (fixed, from::PROBE),
            Some(ProbeKind::Kernel) => (fixed, from::KERNEL_PROBE),
            Some(ProbeKind::KernelReturn | ProbeKind::UserReturn) => (fixed, from::RETURN),
        };
        match from {
            from::TRACEPOINT if size > LONGEST => {
                return Err(format!("its records have more than {LONGEST} bytes"));
            }
            from::PROBE | from::KERNEL_PROBE if size != PROBE => {
                return Err("a probe of a pair has no arguments".to_owned());
            }
            from::RETURN if size != RETURN => {
                return Err("a probe of a pair has no arguments".to_owned());
            }
            _ => {}
        }
        Ok(RecordShape {
            size,
            id: tracepoint.id,
            from,
        })
    }

    /// Returns the bytes of what programs write of it: a multiple of 8, 0 where perf writes them.
    pub(super) fn written(self) -> u32 {
        self.size.next_multiple_of(8)
    }

    /// Returns it as words of the programs' constants.
    pub(super) fn words(self) -> [u64; 2] {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [two(self.size, self.id), two(self.from, IP_AT)]
    }
}

/// Returns whether a field's contents stand behind the fields.
fn is_text_behind(field: &FormatField) -> bool {
    matches!(
        field.kind,
        FieldKind::DataLoc { .. } | FieldKind::RelLoc { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracepoint(fields: &str) -> Tracepoint {
        let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        let text = format!("name: one\nID: 77\nformat:\n{common}{fields}\nprint fmt: \"x\"\n");
        Tracepoint {
            system: "s".to_owned(),
            name: "one".to_owned(),
            id: 77,
            format: text.into_bytes(),
        }
    }

    const IP: &str = "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n";

    #[test]
    fn records_have_a_size_that_the_programs_know() {
        let plain = tracepoint("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n");
        let shape = RecordShape::of(&plain, None).expect("it can be kept");
        assert_eq!((shape.size, shape.written(), shape.id), (12, 16, 77));
        assert_eq!(shape.words()[0], 12 | 77 << 32);
        let text = tracepoint("\tfield:__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:1;\n");
        let shape = RecordShape::of(&text, None).expect("it can be kept");
        assert_eq!(shape.size, LONGEST);
        let probe = RecordShape::of(&tracepoint(IP), Some(ProbeKind::User));
        assert_eq!(probe.expect("it can be kept").size, PROBE);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let long = tracepoint("\tfield:char a[300];\toffset:8;\tsize:300;\tsigned:1;\n");
        assert!(RecordShape::of(&long, None).is_err());
        let argument = format!("{IP}\tfield:u64 arg;\toffset:16;\tsize:8;\tsigned:0;\n");
        let probe = tracepoint(&argument);
        assert!(RecordShape::of(&probe, Some(ProbeKind::Kernel)).is_err());
    }
}
