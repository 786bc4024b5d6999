//! What pictures are made of, and how large they can become. `cli/tests/flame_picture.rs` looks at them in a browser.

use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use stacks::{Diff, FrameName, FrameOwner, StackTree, Stacks, Weight};

use super::*;

/// The same numbers in every run (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Returns stacks at random, all of them different ones, of functions with names of some length.
fn stacks(count: u64, seed: u64, name: impl Fn(u32) -> String) -> Stacks {
    let mut random = Random(seed);
    let mut tree = StackTree::new(1 << 26);
    for number in 0..count {
        // A function calls few others, mostly the same; the last two frames make the stack one of its own.
        let depth = 6 + random.below(20);
        let mut frames: Vec<u32> = vec![random.below(64).min(random.below(64)) as u32];
        for level in 1..depth {
            let choice = random.below(8).min(random.below(8)).min(random.below(8));
            frames.push((64 + level * 8 + choice) as u32);
        }
        frames.extend([
            20_000 + (number / 1000) as u32,
            30_000 + (number % 1000) as u32,
        ]);
        let samples = 1 + random.below(20);
        let amount = samples * 10_101_010;
        tree.add(frames, Weight { samples, amount });
    }
    let parts = [
        FrameOwner::Guest,
        FrameOwner::Kernel,
        FrameOwner::Kvm,
        FrameOwner::User,
        FrameOwner::Vmm,
    ];
    let name = |frame: u32| FrameName {
        text: name(frame).into(),
        part: match frame {
            0..64 => FrameOwner::Group,
            _ => parts[frame as usize % parts.len()],
        },
    };
    Stacks::of(&tree, name, |_| false)
}

fn picture(graph: Graph<'_>) -> FlamePicture<'_> {
    FlamePicture {
        title: "random",
        notes: &[],
        graph,
        nanoseconds: true,
    }
}

const MOST: usize = 5 << 20;

#[test]
fn names_that_grow_do_not_make_a_file_large() {
    // Each becomes several times as long when it is escaped.
    let name = |frame: u32| format!("{frame}{}", "\u{202e}<&\"".repeat(100));
    let a = stacks(20_000, 1, name);
    let b = stacks(20_000, 2, name);
    let diff = Diff::of(&a, &b, FrameName::clone);
    for graph in [Graph::Stacks(&a), Graph::Diff(&diff)] {
        let drawn = picture(graph).draw();
        assert!(drawn.svg().len() <= MOST && drawn.page().len() <= MOST);
        assert!(drawn.left_out[0].starts_with("Merged or left out"));
    }
}

#[test]
#[ignore = "it takes a while; --release --ignored --nocapture prints how long"]
#[expect(clippy::print_stderr, reason = "its figures are what it is run for")]
fn a_million_different_stacks() {
    let name = |frame: u32| format!("some_function_of_the_kernel_{frame}");
    let start = Instant::now();
    let a = stacks(1_000_000, 1, name);
    let nodes = a.tree().nodes().len();
    eprintln!("{nodes} nodes, made in {:?}", start.elapsed());
    let b = stacks(1_000_000, 2, name);
    let start = Instant::now();
    let drawn = picture(Graph::Stacks(&a)).draw();
    eprintln!("drawn in {:?}", start.elapsed());
    eprintln!("{} bytes, {}", drawn.svg().len(), drawn.left_out.join(" "));
    assert!(drawn.svg().len() <= MOST && drawn.page().len() <= MOST);
    let start = Instant::now();
    let diff = Diff::of(&a, &b, FrameName::clone);
    let drawn = picture(Graph::Diff(&diff)).draw();
    eprintln!("the difference in {:?}", start.elapsed());
    eprintln!("{} bytes, {}", drawn.svg().len(), drawn.left_out.join(" "));
    assert!(drawn.svg().len() <= MOST);
    if let Some(file) = std::env::var_os("TRAPLINE_PICTURE") {
        std::fs::write(file, picture(Graph::Stacks(&a)).draw().svg()).expect("it can be written");
    }
}

#[test]
fn the_page_names_its_own_script_and_style() {
    let stacks = stacks(10, 1, |frame| format!("f{frame}"));
    let page = picture(Graph::Stacks(&stacks)).draw().page();
    let between = |begin: &str, end: &str| {
        let text = &page[page.find(begin).expect(begin) + begin.len()..];
        &text[..text.find(end).expect(end)]
    };
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    for text in [
        between("<script>", "</script>"),
        between("<style>", "</style>"),
    ] {
        let hash = BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
    }
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"));
    // No attribute of style or of an event, which the policy would forbid.
    let element = picture(Graph::Stacks(&stacks)).draw().element();
    assert!(!element.contains(" style=") && !element.contains(" on"));
}

#[test]
fn the_script_ends_neither_markup() {
    assert!(!SCRIPT.contains("]]>") && !SCRIPT.to_lowercase().contains("</script"));
    assert!(!SCRIPT.contains("<!--") && !style().contains("</"));
}

#[test]
fn sizes_are_those_of_the_script() {
    for (name, value) in [
        ("ROW", f64::from(ROW)),
        ("PAD", f64::from(PAD)),
        ("CELL", text::CELL),
    ] {
        assert!(
            SCRIPT.contains(&format!("const {name} = {value};")),
            "{name}"
        );
    }
}

#[test]
fn what_is_empty_is_drawn() {
    let none = Stacks::new(10);
    let drawn = picture(Graph::Stacks(&none)).draw();
    assert!(drawn.svg().contains("\"level\":[0]") && drawn.left_out.is_empty());
    let diff = Diff::of(&none, &none, FrameName::clone);
    assert!(picture(Graph::Diff(&diff)).draw().left_out.is_empty());
}
