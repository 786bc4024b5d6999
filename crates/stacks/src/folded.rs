//! Folded stacks: a line for each stack, its frames from the outermost on with semicolons between, and its weight.
//!
//! The form is that of `stackcollapse-perf.pl` (FlameGraph), which every tool for flame graphs reads.

use crate::named::Stacks;

/// Writes all stacks that weigh anything, in the order of their frames' names. `line` gets each line without its line
/// feed.
///
/// A semicolon within a name becomes a colon, and what would break a line a blank, since nothing can be escaped. Stacks
/// that are too long for a line (`most` bytes) lose the frames in their middle, which a frame `[...]` stands for.
pub fn folded(stacks: &Stacks, most: usize, mut line: impl FnMut(&str)) {
    let mut text = String::new();
    let stacks = stacks.by_text();
    stacks.each(|frames, weight| {
        path(&stacks, frames, most, &mut text);
        text.push(' ');
        text.push_str(&weight.amount.to_string());
        line(&text);
    });
}

/// Puts a stack into `text`, in place of what stood there.
pub(crate) fn path(stacks: &Stacks, frames: &[u32], most: usize, text: &mut String) {
    text.clear();
    for (place, frame) in frames.iter().enumerate() {
        if place > 0 {
            text.push(';');
        }
        let name = stacks.name(*frame);
        let name = name.map_or("", |name| &*name.text);
        text.extend(name.chars().map(plain));
    }
    if text.len() > most {
        *text = shortened(text, most);
    }
}

/// What stands for a character of a name.
fn plain(char: char) -> char {
    match char {
        ';' => ':',
        char if char.is_control() => ' ',
        char => char,
    }
}

/// Returns a stack without the frames in its middle.
fn shortened(path: &str, most: usize) -> String {
    let half = most / 2;
    let ends = path.match_indices(';').map(|(at, _)| at);
    let head = ends.clone().take_while(|at| *at <= half).last();
    let tail = ends.clone().find(|at| *at >= path.len() - half);
    let head = head.map_or("", |at| &path[..=at]);
    format!("{head}[...]{}", tail.map_or("", |at| &path[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameName, FrameOwner, StackTree, Weight};

    fn lines(stacks: &Stacks, most: usize) -> Vec<String> {
        let mut lines = Vec::new();
        folded(stacks, most, |line| lines.push(line.to_owned()));
        lines
    }

    fn stacks(tree: &StackTree, names: &[&str]) -> Stacks {
        let name = |frame: u32| FrameName {
            text: names[frame as usize].into(),
            part: FrameOwner::User,
        };
        Stacks::of(tree, name, |_| false)
    }

    #[test]
    fn one_line_a_stack() {
        let mut tree = StackTree::new(100);
        let weight = Weight {
            samples: 1,
            amount: 7,
        };
        tree.add([0, 2], weight);
        tree.add([0, 1], weight);
        tree.add([0], weight);
        tree.add([0, 2], weight);
        let stacks = stacks(&tree, &["qemu", "write;x\n", "read"]);
        assert_eq!(
            lines(&stacks, 1000),
            ["qemu 7", "qemu;read 14", "qemu;write:x  7"]
        );
    }

    #[test]
    fn lines_have_an_end() {
        let mut tree = StackTree::new(1 << 20);
        let weight = Weight {
            samples: 1,
            amount: 1,
        };
        tree.add((0..10_000).map(|n| n % 3), weight);
        let stacks = stacks(&tree, &["one", "two", "three"]);
        let lines = lines(&stacks, 100);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < 120, "{}", lines[0]);
        assert!(lines[0].starts_with("one;two;three;") && lines[0].contains(";[...];"));
    }
}
