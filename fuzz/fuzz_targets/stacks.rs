//! Folded text: nothing of it vanishes, and what is written of it is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stacks::{FoldedText, FoldedReader, ReadOptions, Stacks, folded};

/// The first byte says how much is kept, and whether idle CPUs are.
fn read(text: &[u8], how: u8) -> FoldedText {
    let mut reader = FoldedReader::new(ReadOptions {
        counts: None,
        idle: how & 1 == 1,
        most: 1 + 8 * usize::from(how >> 1),
    });
    reader.text(text);
    reader.finish()
}

fn written(stacks: &Stacks) -> String {
    let mut text = String::new();
    folded(stacks, usize::MAX / 4, |line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

fuzz_target!(|data: &[u8]| {
    let Some((how, text)) = data.split_first() else {
        return;
    };
    let _ = stacks::looks_folded(text);
    let read_once = read(text, *how);
    let shown = read_once.shown().amount;
    assert_eq!(shown, read_once.stacks.tree().totals()[0].amount);
    if how & 1 == 1 {
        assert_eq!(shown, read_once.all.amount);
    } else {
        assert!(shown <= read_once.all.amount);
    }
    assert!(read_once.stacks.tree().nodes().len() <= 1 + 8 * usize::from(how >> 1));
    for function in read_once.stacks.functions() {
        assert!(function.own.amount <= function.total.amount);
        assert!(function.total.amount <= shown);
    }
    // Every line that is written is a stack, but for those of a name that is all blanks.
    let text = written(&read_once.stacks);
    let again = read(text.as_bytes(), 255);
    assert_eq!(again.lines + again.odd.count, text.lines().count() as u64);
    assert_eq!(again.messages.count, 0);
    // What there was no room for at all has no stack.
    let without_stack = read_once.stacks.tree().nodes()[0].own.amount;
    if again.odd.count == 0 && shown < u64::MAX {
        assert_eq!(again.all.amount, shown - without_stack);
        assert_eq!(again.shown().amount, shown - without_stack);
    }
});
