//! Samples that need less than time order: what comes of them is what comes in order, but for the order that nobody
//! needs.

use std::collections::BTreeSet;

use perfdata::{PerfRecording, SampleWish, Totals};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::walk::{recordings, storage};
use crate::writer::*;

fn walk_bytes(bytes: &[u8], wants: &[SampleWish]) -> (Vec<Out>, Totals) {
    let data = PerfRecording::parse(bytes).expect("a header that can be read");
    walk_wanting(&data, wants)
}

/// What is wanted of a sample, and of which thread and on which CPU it is; side records are in order.
fn want_of(out: &Out, wants: &[SampleWish]) -> (SampleWish, i32, i32) {
    match out {
        Out::Sample { attr, tid, cpu, .. } => (wants[*attr as usize], *tid, *cpu),
        Out::Side { .. } => (SampleWish::InOrder, -1, -1),
    }
}

/// Compares a walk with one in which all of the same records come in time order.
fn compare(bytes: &[u8], wants: &[SampleWish]) -> Result<(), String> {
    let in_order: Vec<SampleWish> = wants
        .iter()
        .map(|want| match want {
            SampleWish::No => SampleWish::No,
            _ => SampleWish::InOrder,
        })
        .collect();
    let (expected, all) = walk_bytes(bytes, &in_order);
    let (found, totals) = walk_bytes(bytes, wants);
    if totals != all {
        return Err(format!("{totals:?} instead of {all:?}"));
    }
    let part = |list: &[Out], of: &dyn Fn(i32, i32) -> bool| -> Vec<Out> {
        let list = list.iter();
        list.filter(|out| {
            let (want, tid, cpu) = want_of(out, wants);
            match want {
                SampleWish::InOrder => true,
                SampleWish::OfThread => of(tid, cpu),
                SampleWish::No | SampleWish::Tallied | SampleWish::AnyOrder => false,
            }
        })
        .cloned()
        .collect()
    };
    let same = |what: &str, of: &dyn Fn(i32, i32) -> bool| {
        let (found, expected) = (part(&found, of), part(&expected, of));
        match found == expected {
            true => Ok(()),
            false => Err(format!("{what}: {found:#?} instead of {expected:#?}")),
        }
    };
    // Each thread's events, and each CPU's, stand where they should among its own and among those in order. The idle
    // tasks of all CPUs have one id.
    let places: BTreeSet<(i32, i32)> = expected
        .iter()
        .map(|out| want_of(out, wants))
        .map(|(_, tid, cpu)| (tid, cpu))
        .collect();
    for (tid, cpu) in places {
        if tid != 0 {
            same("a thread", &|other, _| other == tid)?;
        }
        if cpu >= 0 {
            same("a CPU", &|_, other| other == cpu)?;
        }
    }
    // Threads are met in time order.
    let met = |list: &[Out]| {
        let mut met = Vec::new();
        for out in list {
            let (want, tid, _) = want_of(out, wants);
            let counts = matches!(want, SampleWish::InOrder | SampleWish::OfThread);
            if counts && matches!(out, Out::Sample { .. }) && tid != 0 && !met.contains(&tid) {
                met.push(tid);
            }
        }
        met
    };
    if met(&found) != met(&expected) {
        return Err(format!(
            "threads {:?} instead of {:?}",
            met(&found),
            met(&expected)
        ));
    }
    let sorted = |list: &[Out]| {
        let mut list: Vec<String> = list.iter().map(|out| format!("{out:?}")).collect();
        list.sort();
        list
    };
    match sorted(&found) == sorted(&expected) {
        true => Ok(()),
        false => Err("other samples".to_owned()),
    }
}

/// Makes the threads few, so that they are known from the second round on and change their CPU within rounds.
fn few_threads(recording: &mut Recording, threads: u32) {
    for item in &mut recording.items {
        if let Item::Kernel(record) = item {
            record.tid %= threads;
        }
    }
}

fn wants() -> impl Strategy<Value = Vec<SampleWish>> {
    let want = prop_oneof![
        1 => Just(SampleWish::No),
        2 => Just(SampleWish::InOrder),
        4 => Just(SampleWish::OfThread),
        2 => Just(SampleWish::AnyOrder),
    ];
    vec(want, 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_thread_is_in_order(
        recording in recordings(storage()),
        wants in wants(),
        threads in 1..5u32,
    ) {
        let mut recording = recording;
        few_threads(&mut recording, threads);
        prop_assert_eq!(compare(&recording.write().bytes, &wants), Ok(()));
    }

    #[test]
    fn late_records_come_where_they_come_in_order(
        recording in recordings(Just(Storage::Plain)),
        wants in wants(),
        times in vec(prop_oneof![0..80u64, 1..3u64], 1..40),
    ) {
        let mut recording = recording;
        few_threads(&mut recording, 3);
        let mut next = times.iter().cycle();
        for item in &mut recording.items {
            if let (Item::Kernel(record), Some(&time)) = (item, next.next()) {
                record.time = time;
            }
        }
        prop_assert_eq!(compare(&recording.write().bytes, &wants), Ok(()));
    }
}

/// A sample of one of two attributes, with little in it.
fn sample(attr: usize, time: u64, cpu: u32, tid: u32) -> Item {
    Item::Kernel(Record {
        attr,
        time,
        cpu,
        pid: tid,
        tid,
        misc: 0,
        body: Body::empty_sample(),
    })
}

/// A thread is interrupted by another one at the time of its next sample, so that in one run one stretch of it begins
/// where another ends, and it is on another CPU before that run goes on.
#[test]
fn stretches_that_meet_at_one_time_both_count() {
    let attr = Attr {
        sample_type: TID | TIME | ID | CPU,
        read_format: 0,
        sample_id_all: true,
        ids: vec![1],
    };
    let mut items = vec![sample(0, 1, 0, 7), sample(0, 2, 0, 8), Item::Round];
    let of = |cpu: u32, samples: &[(u64, u32)]| {
        let samples = samples.iter();
        let samples = samples.map(|(time, tid)| sample(0, *time, cpu, *tid));
        samples.collect::<Vec<Item>>()
    };
    items.extend(of(0, &[(11, 7), (12, 7), (12, 8), (12, 7), (43, 7)]));
    items.extend(of(1, &[(11, 7), (30, 7)]));
    items.push(Item::Round);
    let recording = Recording {
        big: false,
        pipe: false,
        storage: Storage::Plain,
        attrs: vec![attr],
        items,
    };
    assert_eq!(
        compare(&recording.write().bytes, &[SampleWish::OfThread]),
        Ok(())
    );
}

#[test]
fn a_round_too_long_for_the_index_is_walked_again() {
    let attr = |ids: Vec<u64>| Attr {
        sample_type: TID | TIME | ID | CPU,
        read_format: 0,
        sample_id_all: true,
        ids,
    };
    // Both threads are known after the first round. The last one is longer than the index can be.
    let mut items = vec![sample(0, 1, 0, 7), sample(0, 2, 0, 8), Item::Round];
    items.extend([sample(0, 9, 0, 7), sample(1, 5, 1, 9), Item::Round]);
    let (few, many) = (1000u64, 1_050_000);
    for cpu in 0..2u32 {
        for number in 0..many {
            // Now and then one of a thread, which changes its CPU; sometimes of one that is met here.
            let (attr, tid) = match number % few {
                0 => (0, 7 + cpu),
                1 => (0, 8 - cpu),
                2 => (0, 11),
                _ => (1, 9),
            };
            items.push(sample(attr, 10 + 2 * number + u64::from(cpu), cpu, tid));
        }
    }
    items.push(Item::Round);
    items.extend([sample(0, 5_000_000, 0, 11), sample(1, 5_000_001, 0, 9)]);
    let recording = Recording {
        big: false,
        pipe: false,
        storage: Storage::Plain,
        attrs: vec![attr(vec![1]), attr(vec![2])],
        items,
    };
    let bytes = recording.write().bytes;
    let wants = [SampleWish::OfThread, SampleWish::InOrder];
    let (found, totals) = walk_bytes(&bytes, &wants);
    let (expected, all) = walk_bytes(&bytes, &[SampleWish::InOrder; 2]);
    assert_eq!(totals, all);
    assert_eq!(found.len(), expected.len());
    for tid in [7, 8, 11] {
        let of = |list: &[Out]| -> Vec<u64> {
            let list = list.iter();
            list.filter(|out| {
                let (want, other, _) = want_of(out, &wants);
                want == SampleWish::InOrder || other == tid
            })
            .map(Out::time)
            .collect()
        };
        assert!(of(&found) == of(&expected), "thread {tid}");
    }
}
