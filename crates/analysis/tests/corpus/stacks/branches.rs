//! Calls as the CPU's last branch records had them, in a recording made by hand, beside perf where it is installed.

use std::fs;
use std::process::{Command, Stdio};

use analysis::ProfileOptions;

use super::folded;

/// A sample made by hand: where, the address, the call chain, and branches from and to.
type Sampled<'s> = (u16, u64, &'s [u64], &'s [[u64; 2]]);

/// A recording made by hand with calls as the CPU's last branch records had them (`--call-graph lbr`), which this
/// machine may not have.
fn with_branches() -> Vec<u8> {
    const HEADER: usize = 104;
    const ATTR: usize = 136;
    // PERF_SAMPLE_IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN, BRANCH_STACK.
    let kinds: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 5 | 1 << 11;
    let (kernel, user) = (-128i64 as u64, -512i64 as u64);
    let put = |out: &mut Vec<u8>, numbers: &[u64]| {
        numbers
            .iter()
            .for_each(|number| out.extend(number.to_le_bytes()));
    };
    let record = |kind: u32, misc: u16, body: &[u8]| {
        let mut out = kind.to_le_bytes().to_vec();
        out.extend(misc.to_le_bytes());
        out.extend((8 + body.len() as u16).to_le_bytes());
        out.extend(body);
        out
    };
    let ids = 77u64 | 77 << 32;
    let mut data = Vec::new();
    for (kind, text) in [(3, &b"lbr\0\0\0\0\0"[..]), (1, &b"/nowhere/prog\0\0\0"[..])] {
        let mut body = Vec::new();
        put(&mut body, &[ids]);
        if kind == 1 {
            put(&mut body, &[0x40_0000, 0x10_0000, 0]);
        }
        body.extend(text);
        // TID, TIME, CPU, IDENTIFIER.
        put(&mut body, &[ids, 1, 0, 1]);
        data.extend(record(kind, 2, &body));
    }
    let samples: [Sampled<'_>; 3] = [
        // In user space; in the kernel below it; without branches.
        (
            2,
            0x40_1010,
            &[user, 0x40_1010, 0x40_9999],
            &[[0x40_2020, 0x40_1000], [0x40_3030, 0x40_2000]],
        ),
        (
            1,
            0xffff_ffff_8100_0010,
            &[kernel, 0xffff_ffff_8100_0010, user, 0x40_1010],
            &[[0x40_2020, 0x40_1000]],
        ),
        (2, 0x40_1010, &[user, 0x40_1010, 0x40_4040], &[]),
    ];
    for (at, (misc, ip, chain, branches)) in samples.iter().enumerate() {
        let mut body = Vec::new();
        put(
            &mut body,
            &[1, *ip, ids, 1_000_000 * (at as u64 + 1), 0, 10],
        );
        put(&mut body, &[chain.len() as u64]);
        put(&mut body, chain);
        put(&mut body, &[branches.len() as u64]);
        for [from, to] in *branches {
            put(&mut body, &[*from, *to, 0]);
        }
        data.extend(record(9, *misc, &body));
    }
    let mut out = b"PERFILE2".to_vec();
    let (attrs, begin) = (HEADER as u64, (HEADER + ATTR + 16 + 8) as u64);
    put(
        &mut out,
        &[HEADER as u64, (ATTR + 16) as u64, attrs, (ATTR + 16) as u64],
    );
    put(&mut out, &[begin, data.len() as u64, 0, 0, 0, 0, 0, 0]);
    assert_eq!(out.len(), HEADER);
    // PERF_TYPE_SOFTWARE, cpu-clock; sample_id_all; calls of user space.
    let mut attr = Vec::new();
    put(
        &mut attr,
        &[1 | (ATTR as u64) << 32, 0, 10, kinds, 0, 1 << 18, 0, 0, 0],
    );
    put(&mut attr, &[1 | 1 << 11]);
    attr.resize(ATTR, 0);
    out.extend(attr);
    put(&mut out, &[begin - 8, 8, 1]);
    out.extend(data);
    out
}

#[test]
fn calls_that_the_cpu_recorded_are_those_that_perf_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lbr.perf.data");
    fs::write(&path, with_branches()).unwrap();
    let expected = [
        ("lbr;prog+0x2020;prog+0x1000;[unknown]", 10),
        ("lbr;prog+0x3030;prog+0x2020;prog+0x1000", 10),
        ("lbr;prog+0x4040;prog+0x1010", 10),
    ];
    let expected = expected.map(|(stack, weight)| (stack.to_owned(), weight));
    assert_eq!(folded(&path, ProfileOptions::default()), expected.into());
    // The same addresses, innermost first, as perf has them.
    let mut perf = Command::new("perf");
    perf.args(["script", "-F", "comm,period,ip", "-i"])
        .arg(&path);
    let output = perf.stderr(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let samples = text
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty());
    let theirs: Vec<Vec<&str>> = samples
        .map(|sample| sample.lines().skip(1).map(str::trim).collect())
        .collect();
    let expected = [
        &["401000", "402020", "403030"][..],
        &["ffffffff81000010", "401000", "402020"],
        &["401010", "404040"],
    ];
    assert_eq!(theirs, expected);
}
