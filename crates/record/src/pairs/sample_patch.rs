//! Records that programs wrote, as perf would have written them.
//!
//! Source: `struct perf_event_header` and `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`; what stands behind
//! the record of the event is `struct trailer` in `bpf/pair.bpf.c`.

use rings::SIZE_PLACE;
use rings::sample_place::{CPU, RAW, RAW_SIZE, TIME};

/// Returns the sample of a record of `size` bytes with a trailer as that of the record alone: earlier, and on the CPU
/// that the trailer names. `None` where it is shorter.
pub(super) fn patched(sample: &[u8], size: u32) -> Option<Vec<u8>> {
    let end = RAW + size as usize;
    let before_ns = word(sample, end)?;
    let cpu = sample.get(end + 8..end + 12)?;
    let time_ns = word(sample, TIME)?;
    let mut out = sample.get(..end)?.to_vec();
    // Raw data ends, with its size in front, at a multiple of 8.
    out.resize(end.next_multiple_of(8), 0);
    let length = u16::try_from(out.len()).ok()?;
    let raw = u32::try_from(out.len() - RAW).ok()?;
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(SIZE_PLACE, &length.to_ne_bytes());
    put(TIME, &time_ns.saturating_sub(before_ns).to_ne_bytes());
    put(CPU, cpu);
    put(RAW_SIZE, &raw.to_ne_bytes());
    Some(out)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_record_is_put_at_its_own_time_and_cpu() {
        let mut sample = [9u32, 0].map(u32::to_ne_bytes).concat();
        for word in [7u64, 5, 1_000_000, 3] {
            sample.extend(word.to_ne_bytes());
        }
        sample.extend(36u32.to_ne_bytes());
        sample.extend([0xaa; 16]);
        sample.extend(400u64.to_ne_bytes());
        sample.extend([1u32, 0].map(u32::to_ne_bytes).concat());
        sample.resize(80, 0);
        let size = u16::try_from(sample.len()).expect("short").to_ne_bytes();
        sample[SIZE_PLACE..8].copy_from_slice(&size);
        let out = patched(&sample, 16).expect("it is whole");
        assert_eq!(word(&out, 8), Some(7));
        assert_eq!(word(&out, TIME), Some(999_600));
        assert_eq!(word(&out, CPU), Some(1));
        assert_eq!((out.len(), out[SIZE_PLACE]), (64, 64));
        assert_eq!(out[RAW_SIZE], 20);
        assert_eq!(out[RAW..RAW + 16], [0xaa; 16]);
        assert_eq!(patched(&sample[..64], 16), None);
    }
}
