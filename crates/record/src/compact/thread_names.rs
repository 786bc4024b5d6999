//! Names and processes of threads, by what perf's own records say of them.

use rings::TIME_FROM_END;
use rings::record_type::{COMM, FORK};
use rustc_hash::FxHashMap;

/// Bytes of a name, with its end (`TASK_COMM_LEN`).
pub(super) const NAME: usize = 16;
/// Threads that are known at most: numbers are used again, and forgotten threads have no name.
const MOST: usize = 1 << 20;

/// A thread's process and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedThread {
    pub pid: u32,
    pub name: [u8; NAME],
}

/// What is known of threads, up to a time, and what changed since then.
#[derive(Debug)]
pub(super) struct ThreadNames {
    /// Finds a thread that began before anything was recorded, and after the list of threads was made.
    find: fn(u32) -> Option<NamedThread>,
    threads: FxHashMap<u32, NamedThread>,
    changes: FxHashMap<u32, Vec<(u64, NamedThread)>>,
}

/// A record of a thread's name or beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NameRecord<'r> {
    bytes: &'r [u8],
    time_ns: u64,
}

impl<'r> NameRecord<'r> {
    /// Returns a record, whole with its header; `None` of one that names no thread.
    pub(super) fn of(bytes: &'r [u8]) -> Option<NameRecord<'r>> {
        let at = bytes.len().checked_sub(TIME_FROM_END)?;
        let time = bytes.get(at..at + 8)?.try_into().ok()?;
        let record = NameRecord {
            bytes,
            time_ns: u64::from_ne_bytes(time),
        };
        matches!(record.word(0), COMM | FORK).then_some(record)
    }

    fn word(&self, at: usize) -> u32 {
        let word = self
            .bytes
            .get(at..at + 4)
            .and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_ne_bytes)
    }

    /// Returns the name of a record of one.
    fn name(&self) -> [u8; NAME] {
        let text = self.bytes.get(16..).unwrap_or_default();
        event_name(text.split(|byte| *byte == 0).next().unwrap_or_default())
    }
}

/// Returns the name that events have of a thread, as long as the kernel keeps it, from the one that `/proc` has.
pub(super) fn event_name(shown: &[u8]) -> [u8; NAME] {
    let kept = words::task_comm(shown);
    let mut name = [0; NAME];
    let length = kept.len().min(NAME - 1);
    name[..length].copy_from_slice(&kept[..length]);
    name
}

impl ThreadNames {
    /// Nothing is known yet.
    pub(super) fn new(find: fn(u32) -> Option<NamedThread>) -> ThreadNames {
        ThreadNames {
            find,
            threads: FxHashMap::default(),
            changes: FxHashMap::default(),
        }
    }

    /// Learns what threads were called when the recording began, from whole records, one behind the other.
    pub(super) fn begin(&mut self, mut records: &[u8]) {
        while let Some(size) = records.get(6..8).and_then(|size| size.try_into().ok()) {
            let size = usize::from(u16::from_ne_bytes(size)).max(8);
            let (record, rest) = records.split_at(size.min(records.len()));
            let record = NameRecord {
                bytes: record,
                time_ns: 0,
            };
            if record.word(0) == COMM {
                let (pid, name) = (record.word(8), record.name());
                self.threads
                    .insert(record.word(12), NamedThread { pid, name });
            }
            records = rest;
        }
    }

    /// Learns what changed.
    pub(super) fn learn(&mut self, mut records: Vec<NameRecord<'_>>) {
        records.sort_by_key(|record| record.time_ns);
        for record in records {
            let (pid, time_ns) = (record.word(8), record.time_ns);
            let (tid, name) = match record.word(0) {
                COMM => (record.word(12), record.name()),
                // Process, parent's process, thread, parent's thread: a thread begins with its parent's name.
                _ => (record.word(16), self.of(record.word(20), time_ns, 0).name),
            };
            let changes = self.changes.entry(tid).or_default();
            changes.push((time_ns, NamedThread { pid, name }));
        }
    }

    /// Forgets what threads were called before a time.
    pub(super) fn settle(&mut self, time_ns: u64) {
        if self.threads.len() > MOST {
            self.threads.clear();
        }
        let threads = &mut self.threads;
        self.changes.retain(|tid, changes| {
            let past = changes.partition_point(|(since_ns, _)| *since_ns <= time_ns);
            if let Some((_, last)) = changes.drain(..past).next_back() {
                threads.insert(*tid, last);
            }
            !changes.is_empty()
        });
    }

    /// Returns what a thread was called at a time; of an idle task its CPU is in its name.
    pub(super) fn of(&mut self, tid: u32, time_ns: u64, cpu: u32) -> NamedThread {
        if tid == 0 {
            return idle(cpu);
        }
        if !self.changes.is_empty()
            && let Some(changes) = self.changes.get(&tid)
            && let Some((_, then)) = changes
                .iter()
                .rev()
                .find(|(since_ns, _)| *since_ns <= time_ns)
        {
            return *then;
        }
        if let Some(known) = self.threads.get(&tid) {
            return *known;
        }
        let unknown = NamedThread {
            pid: tid,
            name: [0; NAME],
        };
        let found = (self.find)(tid).unwrap_or(unknown);
        self.threads.insert(tid, found);
        found
    }
}

/// Returns the idle task of a CPU.
fn idle(cpu: u32) -> NamedThread {
    let mut name = *b"swapper/\0\0\0\0\0\0\0\0";
    let (mut left, mut digits) = (cpu, [0; 5]);
    let mut count = 0;
    for digit in &mut digits {
        *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        count += 1;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    for (place, digit) in name[8..].iter_mut().zip(digits[..count].iter().rev()) {
        *place = *digit;
    }
    NamedThread { pid: 0, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{RunningThread, records};

    fn record(kind: u32, words: [u32; 4], name: &str, time_ns: u64) -> Vec<u8> {
        let mut out = [kind, 0].map(u32::to_ne_bytes).concat();
        match kind {
            COMM => {
                out.extend(words[..2].iter().flat_map(|word| word.to_ne_bytes()));
                out.extend(name.as_bytes());
                out.resize(out.len() + 8 - out.len() % 8, 0);
            }
            _ => out.extend(words.map(u32::to_ne_bytes).concat()),
        }
        out.extend([0, time_ns, 0, 0].map(u64::to_ne_bytes).concat());
        // The thread stands before the time, CPU and id behind it.
        out.truncate(out.len() - 8);
        out.splice(out.len() - 24..out.len() - 24, 0u64.to_ne_bytes());
        let at = out.len() - TIME_FROM_END;
        out[at..at + 8].copy_from_slice(&time_ns.to_ne_bytes());
        out
    }

    #[test]
    fn a_kworker_has_the_name_that_events_have() {
        for (shown, comm) in [
            ("kworker/1:0-events_power_efficient", "kworker/1:0"),
            ("kworker/u9:3+flush-254:0", "kworker/u9:3"),
            ("kworker/0:1H-kblockd", "kworker/0:1H"),
            ("kworker/1:0", "kworker/1:0"),
            ("kworker/R-a:b-c", "kworker/R-a:b-c"),
            ("CPU 0/KVM-1", "CPU 0/KVM-1"),
            ("a-name-that-is-too-long", "a-name-that-is-"),
        ] {
            let name = event_name(shown.as_bytes());
            assert_eq!(&name[..comm.len()], comm.as_bytes());
            assert!(name[comm.len()..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_thread_has_the_name_that_it_had_then() {
        let thread = |tid, name: &str| RunningThread {
            pid: 10,
            tid,
            name: name.as_bytes().to_vec(),
        };
        let mut names = ThreadNames::new(|_| None);
        names.begin(&records(&[thread(10, "bash"), thread(11, "CPU 0/KVM")]));
        let text = |names: &mut ThreadNames, tid, at| {
            let name = names.of(tid, at, 0).name;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
            String::from_utf8_lossy(&name[..end]).into_owned()
        };
        assert_eq!(text(&mut names, 11, 5), "CPU 0/KVM");
        assert_eq!(names.of(11, 5, 0).pid, 10);
        // In another CPU's ring the fork may stand behind the new name.
        let all = [
            record(COMM, [12, 12, 0, 0], "true", 300),
            record(FORK, [12, 10, 12, 10], "", 200),
        ];
        names.learn(all.iter().filter_map(|one| NameRecord::of(one)).collect());
        assert_eq!(
            [250, 300, 301].map(|at| text(&mut names, 12, at)),
            ["bash", "true", "true"]
        );
        assert_eq!(names.of(12, 250, 0).pid, 12);
        names.settle(250);
        assert_eq!(
            [260, 300].map(|at| text(&mut names, 12, at)),
            ["bash", "true"]
        );
        names.settle(400);
        assert_eq!(text(&mut names, 12, 401), "true");
        assert_eq!(text(&mut names, 0, 1), "swapper/0");
        assert_eq!(idle(127).name, *b"swapper/127\0\0\0\0\0");
        assert_eq!(names.of(99, 1, 0).pid, 99);
        let sample = record(9, [1, 2, 3, 4], "", 1);
        assert_eq!(NameRecord::of(&sample), None);
    }
}
