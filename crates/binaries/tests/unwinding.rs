//! Stacks of a program without frame pointers, beside those that perf makes of the same recording.

use std::fs;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

use binaries::{Binaries, CodeMapping, SearchOptions, Unwinding, UserRegisters};
use perfdata::{PerfRecording, PerfSample, PerfVisitor, SideRecord};

use crate::common::{compile, have, output};

const C: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <time.h>
static volatile unsigned long sink;
static int compare(const void *a, const void *b) {
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
    for (int i = 0; i < 20; i++) sink += x ^ y;
    return x < y ? -1 : x > y;
}
__attribute__((noinline)) static unsigned long deep(int n, unsigned long *all) {
    unsigned long local[16];
    memcpy(local, all, sizeof local);
    if (n == 0) { qsort(all, 256, sizeof *all, compare); return local[3]; }
    unsigned long sum = deep(n - 1, all);
    return sum + local[n % 16];
}
__attribute__((noinline)) static unsigned long variable(int n, unsigned long *all) {
    /* Its frame has no fixed size, so it is found by the frame pointer that it needs. */
    unsigned char buffer[n * 8 + 1];
    memset(buffer, n, sizeof buffer);
    return deep(n, all) + buffer[n];
}
int main(void) {
    unsigned long all[256], sum = 0;
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;)
        for (int n = 0; n < 12; n++) {
            for (int i = 0; i < 256; i++) all[i] = rand();
            sum += variable(n, all);
        }
    return sum == 42;
}
"#;

/// A mapping, with its path as it is in the recording.
type Mapped = (u64, u64, u64, Vec<u8>, Option<Vec<u8>>);

/// Makes stacks of all samples.
struct Stacks {
    binaries: Binaries,
    mapped: Vec<Mapped>,
    unwinding: Option<Unwinding>,
    build_ids: Vec<(Vec<u8>, Vec<u8>)>,
    /// By sample, places in files, innermost first.
    found: Vec<Vec<u64>>,
}

impl PerfVisitor for Stacks {
    type Tally = ();

    fn sample(&mut self, sample: &PerfSample<'_>) -> ControlFlow<()> {
        let Some(user) = sample.user_stack() else {
            return ControlFlow::Continue(());
        };
        assert!(!user.is_32);
        let values = user.registers.chunks_exact(8);
        let values: Vec<u64> = values
            .map(|v| u64::from_le_bytes(v.try_into().unwrap()))
            .collect();
        let registers = match cfg!(target_arch = "aarch64") {
            true => UserRegisters::aarch64(user.mask, &values),
            false => UserRegisters::x86_64(user.mask, &values),
        };
        let mappings: Vec<CodeMapping<'_>> = self
            .mapped
            .iter()
            .map(|(start, end, pgoff, path, build_id)| CodeMapping {
                start: *start,
                end: *end,
                pgoff: *pgoff,
                path,
                build_id: build_id.as_deref(),
            })
            .collect();
        let binaries = &mut self.binaries;
        let unwinding = self
            .unwinding
            .get_or_insert_with(|| binaries.unwinding(cfg!(target_arch = "aarch64"), &mappings));
        let stack = unwinding.stack(&registers.unwrap(), user.stack, 127);
        let places = stack.iter().map(|address| {
            let mut mappings = mappings.iter();
            let mapping = mappings.find(|m| m.start <= *address && *address < m.end);
            mapping.map_or(*address, |m| address - m.start + m.pgoff)
        });
        self.found.push(places.collect());
        ControlFlow::Continue(())
    }

    fn side(&mut self, _: u64, _: i32, misc: u16, record: &SideRecord<'_>) {
        let SideRecord::Mmap {
            start,
            len,
            pgoff,
            path,
            build_id,
            exec: true,
            ..
        } = *record
        else {
            return;
        };
        // Of the program after its exec, and not of the kernel.
        if misc & 7 == 2 {
            let known = self.build_ids.iter().find(|(known, _)| known == path);
            let build_id = build_id
                .map(<[u8]>::to_vec)
                .or(known.map(|(_, id)| id.clone()));
            self.mapped
                .retain(|(s, e, ..)| *e <= start || *s >= start + len);
            self.mapped
                .push((start, start + len, pgoff, path.to_vec(), build_id));
            self.unwinding = None;
        }
    }

    fn release(&mut self, _: std::ops::Range<usize>) {}
}

#[test]
fn stacks_are_those_that_perf_makes() {
    if !have(&["gcc", "perf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "-O2",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-Wl,--build-id",
    ];
    let program = compile(folder.path(), "gcc", ("deep.c", C), &args);
    let recording = folder.path().join("perf.data").display().to_string();
    let cache = folder.path().join("cache");
    let cached = cache.display().to_string();
    let record = [
        "record",
        "-e",
        "cpu-clock:u",
        "-F",
        "999",
        "--call-graph",
        "dwarf,8192",
        "-o",
    ];
    let done = Command::new("perf")
        .args(["--buildid-dir", &cached])
        .args(record)
        .arg(&recording)
        .arg(&program)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if !done.unwrap().success() {
        // Machines may forbid to record.
        return;
    }
    let args = [
        "--buildid-dir",
        &cached,
        "script",
        "--no-inline",
        "-F",
        "comm,ip",
        "-i",
        &recording,
    ];
    let text = output("perf", &args, "");
    let theirs = text.split("\n\n").map(|sample| {
        // The name of the thread stands first.
        let lines = sample.trim_start_matches('\n').lines().skip(1);
        let hex = lines.map(|line| {
            let word = line.split_ascii_whitespace().next().unwrap_or_default();
            u64::from_str_radix(word, 16).unwrap()
        });
        hex.collect::<Vec<u64>>()
    });
    let theirs: Vec<Vec<u64>> = theirs.filter(|stack| !stack.is_empty()).collect();
    let bytes = fs::read(&recording).unwrap();
    let data = PerfRecording::parse(&bytes).unwrap();
    let ids = data.info().build_ids.iter();
    let mut stacks = Stacks {
        binaries: Binaries::new(SearchOptions {
            own_paths: true,
            buildid_dirs: vec![cache],
            ..SearchOptions::default()
        }),
        mapped: Vec::new(),
        unwinding: None,
        build_ids: ids
            .map(|id| (id.path.clone().into_bytes(), id.id.clone()))
            .collect(),
        found: Vec::new(),
    };
    data.walk(&[], &mut stacks);
    let ours = stacks.found;
    assert!(ours.len() > 100, "{} samples", ours.len());
    assert_eq!(ours.len(), theirs.len());
    let deepest = ours.iter().map(Vec::len).max().unwrap();
    assert!(deepest > 15, "{deepest} frames");
    let same = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| ours == theirs)
        .count();
    // All are, mostly; the loader and the vdso have code that unwinders do not agree about.
    assert!(
        same * 100 >= ours.len() * 99,
        "{same} of {} stacks",
        ours.len()
    );
}
