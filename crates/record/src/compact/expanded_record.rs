//! Records as perf would have written them, put together of what programs wrote.
//!
//! Source: `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`, as [`rings::RingAttr::each`] has it.

use rings::{SIZE_PLACE, record_type, sample_place};
use tracefmt::{EventFormat, FieldKind};

use super::kinds::FieldSource;
use super::slot_reader::CompactSample;
use super::thread_names::{NAME, ThreadNames};

/// `PERF_RECORD_MISC_KERNEL`.
const KERNEL: u16 = 1;
/// Bytes of what all events' records begin with (`struct trace_entry`).
const COMMON: usize = 8;

/// Where a field stands in an event's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldPlace {
    offset: usize,
    size: usize,
    source: FieldSource,
    /// Whether it says where its text stands.
    locates: bool,
}

/// How the records of an event are put together.
#[derive(Debug)]
pub(super) struct ExpandedRecord {
    /// A sample in which all is 0 that differs from event to event.
    sample: Vec<u8>,
    fields: Vec<FieldPlace>,
}

impl ExpandedRecord {
    /// Returns that of an event: of the fields of its format those of a list.
    pub(super) fn of(
        format: &EventFormat,
        id: u64,
        known: &[(&'static str, FieldSource)],
    ) -> ExpandedRecord {
        let place = |(name, source): &(&'static str, FieldSource)| {
            let field = format.own_fields().iter().find(|one| one.name == *name)?;
            Some(FieldPlace {
                offset: sample_place::RAW + field.offset as usize,
                size: field.size as usize,
                source: *source,
                locates: matches!(field.kind, FieldKind::DataLoc { .. }),
            })
        };
        let fields: Vec<FieldPlace> = known.iter().filter_map(place).collect();
        let ends = fields.iter().map(|field| field.offset + field.size);
        let mut sample = vec![0; ends.max().unwrap_or(0).max(sample_place::RAW + COMMON)];
        put(&mut sample, 0, &record_type::SAMPLE.to_le_bytes());
        put(&mut sample, 4, &KERNEL.to_le_bytes());
        put(&mut sample, sample_place::ID, &id.to_le_bytes());
        let number = u16::try_from(format.id).unwrap_or(u16::MAX);
        put(&mut sample, sample_place::RAW, &number.to_le_bytes());
        finish(&mut sample, 0);
        ExpandedRecord { sample, fields }
    }

    /// Appends the sample of an event that happened on a CPU.
    pub(super) fn append(
        &self,
        out: &mut Vec<u8>,
        entry: &CompactSample,
        cpu: u32,
        names: &mut ThreadNames,
    ) {
        let begin = out.len();
        out.extend_from_slice(&self.sample);
        let made_by = names.of(entry.tid, entry.time_ns, cpu);
        let sample = &mut out[begin..];
        put_number(sample, sample_place::THREAD, 4, u64::from(made_by.pid));
        put_number(sample, sample_place::THREAD + 4, 4, u64::from(entry.tid));
        put_number(sample, sample_place::TIME, 8, entry.time_ns);
        put_number(sample, sample_place::CPU, 4, u64::from(cpu));
        put_number(sample, sample_place::RAW + 4, 4, u64::from(entry.tid));
        for field in &self.fields {
            let name = match field.source {
                FieldSource::CurrentName => made_by.name,
                FieldSource::WordName => names.of(entry.word, entry.time_ns, cpu).name,
                source => {
                    let bytes = number(entry, source).to_le_bytes();
                    put(&mut out[begin..], field.offset, &bytes[..field.size.min(8)]);
                    continue;
                }
            };
            if !field.locates {
                match field.size {
                    NAME => put_array(&mut out[begin..], field.offset, name),
                    size => put(&mut out[begin..], field.offset, &name[..size.min(NAME)]),
                }
                continue;
            }
            // A text behind the fields, with its end: length above, place below.
            let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME - 1) + 1;
            let located = (length as u64) << 16 | (out.len() - begin - sample_place::RAW) as u64;
            put(&mut out[begin..], field.offset, &located.to_le_bytes()[..4]);
            out.extend_from_slice(&name[..length]);
            finish(out, begin);
        }
    }
}

/// Puts the low bytes of a number: of those sizes that fields have, without a call for each.
#[inline]
fn put_number(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    let all = value.to_le_bytes();
    match size {
        8 => put_array(bytes, at, all),
        4 => put_array(bytes, at, [all[0], all[1], all[2], all[3]]),
        2 => put_array(bytes, at, [all[0], all[1]]),
        1 => put_array(bytes, at, [all[0]]),
        other => put(bytes, at, &all[..other.min(8)]),
    }
}

#[inline]
fn put_array<const N: usize>(bytes: &mut [u8], at: usize, new: [u8; N]) {
    let place = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<N>);
    if let Some(place) = place {
        *place = new;
    }
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}

/// Says how long the sample is that begins at a place: its raw data ends, with its size in front, at a multiple of 8.
fn finish(out: &mut Vec<u8>, begin: usize) {
    let length = (out.len() - begin).next_multiple_of(8);
    out.resize(begin + length, 0);
    let sample = &mut out[begin..];
    put(
        sample,
        SIZE_PLACE,
        &u16::try_from(length).unwrap_or(0).to_le_bytes(),
    );
    let raw = u32::try_from(length - sample_place::RAW).unwrap_or(0);
    put(sample, sample_place::RAW_SIZE, &raw.to_le_bytes());
}

/// Returns the number of a field.
fn number(entry: &CompactSample, source: FieldSource) -> u64 {
    let byte = |at: usize| u64::from(entry.bytes.get(at).copied().unwrap_or(0));
    let more = |at: usize| entry.more.get(at).copied().unwrap_or(0);
    match source {
        FieldSource::Current => u64::from(entry.tid),
        FieldSource::Word => u64::from(entry.word),
        FieldSource::Byte(at) => byte(at),
        FieldSource::Priority(at) => match byte(at) {
            255 => u64::MAX,
            priority => priority,
        },
        FieldSource::TwoBytes(at) => byte(at) | byte(at + 1) << 8,
        FieldSource::TaskState => match byte(0) {
            0 => 0,
            bit => 1 << (bit - 1).min(63),
        },
        FieldSource::More(at) => more(at),
        FieldSource::UpperHalf(at) => more(at) >> 32,
        FieldSource::Always(value) => value,
        FieldSource::CurrentName | FieldSource::WordName => 0,
    }
}

#[cfg(test)]
mod tests {
    use tracefmt::Abi;

    use super::*;
    use crate::compact::kinds;
    use crate::tasks::{RunningThread, records};

    fn sample(fields: &str, kind: &str, entry: &CompactSample) -> Vec<u8> {
        let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        let text = format!("name: {kind}\nID: 300\nformat:\n{common}{fields}\nprint fmt: \"x\"\n");
        let format = EventFormat::parse("s", text.as_bytes(), Abi::default()).expect("a format");
        let known = kinds::ALL
            .iter()
            .find(|one| one.name == kind)
            .expect("it is known");
        let mut names = ThreadNames::new(|_| None);
        names.begin(&records(&[RunningThread {
            pid: 40,
            tid: 42,
            name: b"worker".to_vec(),
        }]));
        let mut out = vec![0xee; 8];
        ExpandedRecord::of(&format, 7, known.fields).append(&mut out, entry, 3, &mut names);
        out.split_off(8)
    }

    fn word(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    #[test]
    fn fields_stand_where_the_format_has_them() {
        let fields = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                      \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";
        let entry = CompactSample {
            time_ns: 1234,
            tid: 0,
            word: 42,
            kind: 3,
            bytes: [255, 4, 1],
            ..CompactSample::default()
        };
        let out = sample(fields, "sched_waking", &entry);
        assert_eq!((out.len() % 8, usize::from(out[6])), (0, out.len()));
        assert_eq!([8, 24, 32].map(|at| word(&out, at)), [7, 1234, 3]);
        let raw = &out[sample_place::RAW..];
        assert_eq!(u16::from_le_bytes([raw[0], raw[1]]), 300);
        assert_eq!(&raw[8..15], b"worker\0");
        assert_eq!(word(raw, 24), 42 | 0xffff_ffff << 32);
        assert_eq!(
            u32::from_le_bytes([raw[32], raw[33], raw[34], raw[35]]),
            260
        );
    }

    #[test]
    fn texts_stand_behind_the_fields() {
        let fields = "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
                      \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\
                      \tfield:int orig_cpu;\toffset:16;\tsize:4;\tsigned:1;\n";
        let mut entry = CompactSample {
            tid: 42,
            word: 42,
            kind: 5,
            ..CompactSample::default()
        };
        entry.more[0] = 5;
        let out = sample(fields, "sched_migrate_task", &entry);
        assert_eq!(word(&out, 16), 40 | 42 << 32);
        let raw = &out[sample_place::RAW..];
        let located = u32::from_le_bytes([raw[8], raw[9], raw[10], raw[11]]);
        let (at, length) = ((located & 0xffff) as usize, (located >> 16) as usize);
        assert_eq!(&raw[at..at + length], b"worker\0");
        assert_eq!(raw[16], 5);
    }
}
