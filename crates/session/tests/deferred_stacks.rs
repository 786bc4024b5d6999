//! Stacks whose part in user space comes in a record of its own, as `perf record --call-graph fp,defer` makes them.

use std::fs;

use analysis::{ProfileOf, ProfileOptions};
use fixtures::FixtureQuestion;

/// Of a sample: address, thread, time, CPU, call chain (`PERF_SAMPLE_*` of `include/uapi/linux/perf_event.h`).
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 5;
const SAMPLE: u32 = 9;
const CALLCHAIN_DEFERRED: u32 = 22;
const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;
/// `PERF_CONTEXT_KERNEL`, `PERF_CONTEXT_USER` and `PERF_CONTEXT_USER_DEFERRED`.
const KERNEL: u64 = 0u64.wrapping_sub(128);
const USER: u64 = 0u64.wrapping_sub(512);
const USER_DEFERRED: u64 = 0u64.wrapping_sub(640);

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).expect("a short record");
    let mut record = kind.to_le_bytes().to_vec();
    record.extend(misc.to_le_bytes());
    record.extend(size.to_le_bytes());
    record.extend(body);
    record
}

fn thread(tid: u32) -> u64 {
    u64::from(tid) << 32 | 40
}

/// A sample of a thread of process 40, on CPU 0.
fn sample(tid: u32, time: u64, chain: &[u64]) -> Vec<u8> {
    let mut body = vec![0xffff_ffff_8100_0010, thread(tid), time, 0];
    body.push(chain.len() as u64);
    body.extend(chain);
    record(SAMPLE, MISC_KERNEL, &words(&body))
}

/// The callers of a thread's samples that have a number, with the trailer of a record that is no sample.
fn callers(tid: u32, time: u64, cookie: u64, addresses: &[u64]) -> Vec<u8> {
    let mut body = vec![cookie, addresses.len() as u64 + 1, USER];
    body.extend(addresses);
    body.extend([thread(tid), time, 0]);
    record(CALLCHAIN_DEFERRED, MISC_USER, &words(&body))
}

/// A perf.data of one event, `cpu-clock`, with these records.
fn recording(records: &[Vec<u8>]) -> Vec<u8> {
    const HEADER: u64 = 104;
    const ATTR: u64 = 128;
    let data: Vec<u8> = records.concat();
    let mut attr = 1u32.to_le_bytes().to_vec();
    attr.extend((ATTR as u32).to_le_bytes());
    attr.extend(words(&[0, 1_000_000, SAMPLE_TYPE, 0, 1 << 18]));
    attr.resize(ATTR as usize, 0);
    let mut file = b"PERFILE2".to_vec();
    let (attrs, entry) = (HEADER, ATTR + 16);
    file.extend(words(&[HEADER, entry, attrs, entry, attrs + entry]));
    file.extend(words(&[data.len() as u64, 0, 0, 0, 0, 0, 0]));
    file.extend(attr);
    file.extend(words(&[0, 0]));
    file.extend(data);
    file
}

#[test]
fn callers_in_user_space_join_the_samples_that_have_their_number() {
    let records = [
        // Two samples of one system call, and one of another thread with the same number.
        sample(
            41,
            1000,
            &[
                KERNEL,
                0xffff_ffff_8100_0010,
                0xffff_ffff_8100_0020,
                USER_DEFERRED,
                7,
            ],
        ),
        sample(41, 2000, &[KERNEL, 0xffff_ffff_8100_0030, USER_DEFERRED, 7]),
        sample(42, 2500, &[KERNEL, 0xffff_ffff_8100_0010, USER_DEFERRED, 7]),
        callers(41, 3000, 7, &[0x40_0100, 0x40_0200]),
        // Its own callers are those of the next number.
        sample(41, 4000, &[KERNEL, 0xffff_ffff_8100_0010, USER_DEFERRED, 8]),
        callers(41, 5000, 8, &[0x40_0300]),
        // It never comes back.
        sample(41, 6000, &[KERNEL, 0xffff_ffff_8100_0040, USER_DEFERRED, 9]),
        // One that has them.
        sample(42, 7000, &[KERNEL, 0xffff_ffff_8100_0050, USER, 0x40_0400]),
    ];
    let path = tempfile::NamedTempFile::new().expect("a file");
    fs::write(path.path(), recording(&records)).expect("a written file");
    let options = ProfileOptions {
        of: ProfileOf::OnCpu,
        ..ProfileOptions::default()
    };
    let question = FixtureQuestion::new();
    let (report, quality) = question.stacks(path.path(), options).expect("it reads");
    assert_eq!(
        (report.samples.samples, report.damaged, report.deferred),
        (6, 0, 2)
    );
    let folded = fixtures::answers::folded_stacks(&report);
    let depths: Vec<(usize, u64)> = folded
        .iter()
        .map(|(stack, weight)| (stack.split(';').count(), *weight))
        .collect();
    assert_eq!(
        depths.iter().map(|(_, weight)| weight).sum::<u64>(),
        6_000_000,
        "{folded:?}"
    );
    // A thread, its kernel's functions, and its callers.
    let mut sizes: Vec<usize> = depths.iter().map(|(depth, _)| *depth).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 2, 3, 3, 4, 5], "{folded:?}");
    assert!(
        quality.all_doubts().ids().contains(&"stacks-deferred"),
        "{quality:?}"
    );
}
