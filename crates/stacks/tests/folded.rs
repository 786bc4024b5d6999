//! Folded text: what is written is read as the same, and anything else is counted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stacks::{
    CountMeaning, FoldedReader, FoldedText, FrameName, FrameOwner, ReadOptions, StackTree, Stacks,
    Weight, WeightUnit, folded, looks_folded,
};

const ANY: ReadOptions = ReadOptions {
    counts: None,
    idle: true,
    most: 1 << 20,
};

fn read(text: &[u8], options: ReadOptions) -> FoldedText {
    let mut reader = FoldedReader::new(options);
    reader.text(text);
    reader.finish()
}

fn lines(stacks: &Stacks) -> Vec<String> {
    let mut lines = Vec::new();
    folded(stacks, usize::MAX / 4, |line| lines.push(line.to_owned()));
    lines
}

fn read_lines(text: &str) -> Vec<String> {
    lines(&read(text.as_bytes(), ANY).stacks)
}

#[test]
fn lines_of_one_stack_are_added_up() {
    let text = "a;b 3\n\na 1\r\na;b 4\na;b;c 18446744073709551615\nc;b 2";
    assert_eq!(
        read_lines(text),
        ["a 1", "a;b 7", "a;b;c 18446744073709551615", "c;b 2"]
    );
    assert_eq!(read(text.as_bytes(), ANY).lines, 5);
}

#[test]
fn what_is_no_stack_is_counted_and_reported() {
    let text = "# a comment\na;b 3\nno count\na;b x\na;c -1\na 1\n\x01\n";
    let folded = read(text.as_bytes(), ANY);
    assert_eq!((folded.lines, folded.odd.count), (2, 5));
    let reported: Vec<(u64, &str)> = (folded.odd.first.iter())
        .map(|line| (line.number, line.text.as_str()))
        .collect();
    assert_eq!(
        reported,
        [(1, "# a comment"), (3, "no count"), (4, "a;b x")]
    );
}

#[test]
fn counts_are_what_somebody_says_and_nothing_else() {
    let plain = read(b"a;b 3\n", ANY);
    assert_eq!((plain.unit, plain.all.amount), (WeightUnit::Count, 3));
    let banner =
        "Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.\n";
    let text = format!("{banner}\na;b 3\na;b 1.5\n");
    let times = read(text.as_bytes(), ANY);
    assert_eq!(
        (times.unit, times.all.amount),
        (WeightUnit::Nanoseconds, 4500)
    );
    assert_eq!((times.rounded, times.all.samples), (0, 2));
    assert_eq!((times.messages.count, times.odd.count), (1, 0));
    let nanoseconds = ReadOptions {
        counts: Some(CountMeaning::Nanoseconds),
        ..ANY
    };
    let times = read(text.as_bytes(), nanoseconds);
    assert_eq!((times.unit, times.all.amount), (WeightUnit::Nanoseconds, 5));
    assert_eq!(times.rounded, 1);
    let samples = read(b"Sampling at 49 Hertz of all threads\na 2\n", ANY);
    assert_eq!(
        (samples.unit, samples.all.samples),
        (WeightUnit::Samples, 2)
    );
    // Too late: lines before it would have had another unit.
    let late = read(format!("a 2\n{banner}").as_bytes(), ANY);
    assert_eq!((late.unit, late.all.amount), (WeightUnit::Count, 2));
}

#[test]
fn the_difference_of_two_files_is_neither() {
    assert!(read(b"a;b 3 4\na;c 0 5\n", ANY).two_counts);
    // A thread may have a number in its name.
    let threads = read(b"Thread 1 4\nThread 1;a 5\n", ANY);
    assert!(!threads.two_counts);
    assert_eq!(threads.bottoms[0].name, "Thread 1");
}

#[test]
fn threads_and_whose_code_it_is() {
    let text = b"qemu;main;ioctl_[k] 3\nqemu;main 1\nswapper;do_idle_[k] 50\nCPU 0/KVM;[guest] 7\ndd-1/2;x 1\n";
    let folded = read(text, ReadOptions { idle: false, ..ANY });
    assert_eq!((folded.all.amount, folded.idle.amount), (62, 50));
    let rows: Vec<_> = (folded.bottoms.iter())
        .map(|row| {
            let parts = [row.guest, row.kernel, row.user].map(|weight| weight.amount);
            (row.name.as_str(), row.tid, row.all.amount, parts)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("CPU 0/KVM", None, 7, [7, 0, 0]),
            ("qemu", None, 4, [0, 3, 1]),
            ("dd", Some(2), 1, [0, 0, 1]),
        ]
    );
    let functions = folded.stacks.functions();
    let ioctl = functions.iter().find(|f| &*f.name.text == "ioctl").unwrap();
    assert_eq!((ioctl.name.part, ioctl.own.amount), (FrameOwner::Kernel, 3));
    // Without marks nobody knows.
    let plain = read(b"qemu;main;ioctl 3\n", ANY);
    assert_eq!(plain.bottoms[0].user, Weight::default());
    let parts: Vec<FrameOwner> = plain.stacks.names().iter().map(|name| name.part).collect();
    assert_eq!(
        parts,
        [FrameOwner::Group, FrameOwner::Unknown, FrameOwner::Unknown]
    );
}

#[test]
fn a_wakers_stack_is_not_the_threads_own() {
    let text = b"dd;read_[k];--;wake_[k];cpu_startup_entry_[k];swapper/0 9\n";
    let folded = read(text, ReadOptions { idle: false, ..ANY });
    assert_eq!(folded.idle, Weight::default());
    let row = &folded.bottoms[0];
    assert_eq!((row.name.as_str(), row.kernel.amount), ("dd", 9));
}

#[test]
fn deep_wide_and_long_input_is_bounded() {
    let mut deep = "f;g".repeat(100_000).into_bytes();
    deep.extend_from_slice(b" 1\n");
    let read_deep = read(&deep, ANY);
    assert_eq!(read_deep.all.amount, 1);
    assert_eq!(read_deep.stacks.tree().totals()[0].amount, 1);
    let wide: String = (0..1000).map(|n| format!("a;f{n} 1\n")).collect();
    let read_wide = read(wide.as_bytes(), ReadOptions { most: 100, ..ANY });
    assert!(read_wide.stacks.tree().nodes().len() <= 100);
    assert_eq!(read_wide.stacks.tree().totals()[0].amount, 1000);
    assert_eq!(read_wide.shortened.amount, 902);
    assert!(read_wide.stacks.names().len() <= 100);
    let long = format!("{};b 2\n", "x".repeat(1 << 20));
    let read_long = read(long.as_bytes(), ANY);
    assert_eq!(read_long.cut, 1);
    assert!(read_long.bottoms[0].name.len() < 10_000);
}

#[test]
fn folded_text_is_known_by_its_beginning() {
    for text in [
        "a;b 1\n",
        "a 3\na;b 1",
        "Tracing off-CPU time (us)... Hit Ctrl-C to end.\n\na;b 5\n",
        "a;b 1\na;c 2\na;incompl",
        "a;b 1.5\nc;d 2.0\n",
    ] {
        assert!(looks_folded(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "a 1\nb 2\n",
        "Dear all,\nit took 3; I waited 5\n",
        "name;value\na;b\n",
        "1 1 sh sh -c sleep 1; sleep 5\n",
        "int a;\nint b;\nx;y 3\n",
    ] {
        assert!(!looks_folded(text.as_bytes()), "{text}");
    }
}

/// A name that stands for itself in folded text.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_:+.<>()/-]([ a-zA-Z0-9_:+.<>()é/-]{0,6}[a-zA-Zé_)])?"
        .prop_filter("no border", |name| !matches!(name.as_str(), "-" | "--"))
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        stacks in prop::collection::vec((prop::collection::vec(name(), 1..8), 1u64..1_000_000), 1..20),
    ) {
        let mut names: Vec<&String> = stacks.iter().flat_map(|(frames, _)| frames).collect();
        names.sort();
        names.dedup();
        let mut tree = StackTree::new(1 << 20);
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for (frames, amount) in &stacks {
            let numbers = frames.iter().map(|name| names.binary_search(&name).unwrap() as u32);
            tree.add(numbers, Weight { samples: *amount, amount: *amount });
            *expected.entry(frames.join(";")).or_default() += amount;
        }
        let name = |frame: u32| FrameName { text: names[frame as usize].clone().into(), part: FrameOwner::User };
        let written = lines(&Stacks::of(&tree, name, |_| false));
        let folded = read(written.join("\n").as_bytes(), ANY);
        prop_assert_eq!(folded.lines as usize, expected.len());
        prop_assert_eq!(folded.odd.count, 0);
        let mut again: Vec<String> = expected.iter().map(|(stack, amount)| format!("{stack} {amount}")).collect();
        let mut found = lines(&folded.stacks);
        again.sort();
        found.sort();
        prop_assert_eq!(found, again);
    }

    #[test]
    fn anything_can_be_read(text in prop::collection::vec(
        prop_oneof![
            3 => any::<u8>().prop_map(|byte| vec![byte]),
            3 => Just(b" 1\n".to_vec()),
            3 => Just(b";".to_vec()),
            1 => Just(b"_[k]".to_vec()),
            1 => Just(b";--;".to_vec()),
            1 => Just(b";-;".to_vec()),
            1 => Just(b"swapper".to_vec()),
            1 => Just(b"0.5\n".to_vec()),
        ], 0..200), most in 1usize..50, idle in any::<bool>()) {
        let text = text.concat();
        let folded = read(&text, ReadOptions { counts: None, idle, most });
        let shown = folded.stacks.tree().totals()[0];
        let idle_too = if idle { 0 } else { folded.idle.amount };
        prop_assert_eq!(shown.amount + idle_too, folded.all.amount);
        let rows: u64 = folded.bottoms.iter().map(|row| row.all.amount).sum();
        prop_assert_eq!(rows, shown.amount);
        prop_assert!(folded.stacks.tree().nodes().len() <= most.max(1));
        let _ = looks_folded(&text);
    }
}
