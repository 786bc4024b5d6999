//! Boxes as they stand in a picture: how each looks, what is said of it, and the rectangles that show without a script.

use std::fmt::Write;

use stacks::{Block, BoxContent, Diff, FlameLayout, FrameOwner, LayoutBounds, Stacks, Weight};
use words::{duration, plural, share};

use super::palette::{self, BoxStyle};
use super::text::{CELL, fit, shown};
use super::{FlamePicture, Graph};
use crate::html::markup as escape;

/// Height of a box with the gap above it, as in flame.js.
pub(super) const ROW: u32 = 18;
/// Left and right of the boxes, as in flame.js.
pub(super) const PAD: u32 = 10;
/// How wide a picture is that no script has made as wide as its window.
pub(super) const WIDTH: u32 = 1200;
/// What all rectangles take that show without a script.
const MAX_STATIC_BYTES: usize = 768 << 10;
/// Narrower boxes bear no text, as in flame.js.
const LEAST_LABEL: f64 = 26.0;

/// All boxes of a picture.
pub(super) struct Boxes<'p> {
    pub stacks: &'p Stacks,
    pub diff: Option<&'p Diff>,
    pub layout: FlameLayout,
    pub looks: Vec<BoxStyle>,
    nanoseconds: bool,
}

impl<'p> Boxes<'p> {
    pub(super) fn of(picture: &FlamePicture<'p>, bounds: LayoutBounds) -> Boxes<'p> {
        let bytes = |stacks: &Stacks, frame: u32| {
            let name = stacks.name(frame);
            name.map_or(0, |name| escape(&shown(&name.text)).len() + 4)
        };
        let (stacks, diff, layout) = match picture.graph {
            Graph::Stacks(stacks) => {
                let layout = FlameLayout::of(stacks, bounds, |frame| bytes(stacks, frame));
                (stacks, None, layout)
            }
            Graph::Diff(diff) => {
                let stacks = diff.stacks();
                let layout = FlameLayout::of_diff(diff, bounds, |frame| bytes(stacks, frame));
                (stacks, Some(diff), layout)
            }
        };
        let mut boxes = Boxes {
            stacks,
            diff,
            layout,
            looks: Vec::new(),
            nanoseconds: picture.nanoseconds,
        };
        boxes.looks = (boxes.layout.blocks.iter())
            .map(|block| boxes.look(block))
            .collect();
        boxes
    }

    fn look(&self, block: &Block) -> BoxStyle {
        if let Some(diff) = self.diff {
            let pair = [block.before, block.weight];
            return palette::of_change(diff.shares(pair), diff.is_noise(pair));
        }
        match block.content {
            BoxContent::All => palette::of(FrameOwner::Group),
            BoxContent::Smaller(_) => palette::SMALLER,
            BoxContent::Frame(frame) => {
                let name = self.stacks.name(frame);
                palette::of(name.map_or(FrameOwner::Group, |name| name.part))
            }
        }
    }

    fn name(&self, block: &Block) -> String {
        match block.content {
            BoxContent::All => "all".to_owned(),
            BoxContent::Smaller(1) => "1 smaller frame".to_owned(),
            BoxContent::Smaller(frames) => format!("{frames} smaller frames"),
            BoxContent::Frame(frame) => {
                let name = self.stacks.name(frame);
                name.map_or(String::new(), |name| shown(&name.text))
            }
        }
    }

    /// Whether a change is there to speak of, and may be noise.
    pub(super) fn may_be_noise(&self, block: &Block) -> bool {
        let pair = [block.before, block.weight];
        let is_noise = |diff: &Diff| diff.is_noise(pair) && diff.change(pair) != 0.0;
        self.diff.is_some_and(is_noise)
    }

    /// Says what a box is, as `describe` in flame.js.
    fn description(&self, block: &Block, look: &BoxStyle) -> String {
        let mut text = self.name(block);
        if !look.word.is_empty() {
            let _ = write!(text, " ({})", look.word);
        }
        let samples = |weight: Weight| match weight.samples {
            1 => "1 sample".to_owned(),
            samples => format!("{samples} samples"),
        };
        let whole = self.layout.whole();
        let Some(diff) = self.diff else {
            text.push_str(": ");
            if self.nanoseconds {
                let _ = write!(text, "{}, ", duration::human(block.weight.amount));
            }
            let share = share::of(block.weight.amount, whole.amount);
            let _ = write!(text, "{share}, {}", samples(block.weight));
            return text;
        };
        let [all_before, all_after] = diff.wholes();
        let pair = [block.before, block.weight];
        let _ = write!(
            text,
            ": A {} ({}), B {} ({}), {} points",
            share::of(block.before.amount, all_before.amount),
            samples(block.before),
            share::of(block.weight.amount, all_after.amount),
            samples(block.weight),
            points(diff.change(pair)),
        );
        if self.may_be_noise(block) {
            text.push_str(", which may be noise");
        }
        text
    }

    /// What a box bears, as `label` in flame.js.
    fn label(&self, at: usize, width: f64) -> String {
        if width < LEAST_LABEL {
            return String::new();
        }
        let (block, look) = (&self.layout.blocks[at], &self.looks[at]);
        let mut text = String::new();
        let begins = at > 0 && self.looks[block.parent as usize].key != look.key;
        if self.diff.is_none() && begins && width > 60.0 {
            text = format!("{} ", look.mark);
        }
        text.push_str(&self.name(block));
        let mut end = String::new();
        if let Some(diff) = self.diff.filter(|_| width > 120.0) {
            let change = diff.change([block.before, block.weight]);
            let _ = write!(end, " {}", points(change));
        }
        let room = width - 6.0 - end.chars().count() as f64 * CELL;
        fit(&text, room) + &end
    }

    /// Returns the rectangles that show without a script, all that are a pixel wide, as far as there is room, and how
    /// many levels they have.
    pub(super) fn rectangles(&self) -> (String, u32) {
        let blocks = &self.layout.blocks;
        let inner = f64::from(WIDTH - 2 * PAD);
        let whole = self.layout.whole().amount.max(1) as f64;
        let mut widest: Vec<usize> = (0..blocks.len())
            .filter(|at| blocks[*at].weight.amount as f64 / whole * inner >= 1.0)
            .collect();
        widest.sort_by_key(|at| (std::cmp::Reverse(blocks[*at].weight.amount), *at));
        let level = |at: &usize| blocks[*at].level + 1;
        let levels = widest.iter().map(level).max().unwrap_or(1);
        let mut left = MAX_STATIC_BYTES;
        let mut drawn: Vec<(usize, String)> = Vec::new();
        for at in widest {
            let text = self.rectangle(at, inner / whole, levels);
            let Some(rest) = left.checked_sub(text.len()) else {
                break;
            };
            left = rest;
            drawn.push((at, text));
        }
        drawn.sort_unstable_by_key(|(at, _)| *at);
        (drawn.into_iter().map(|(_, text)| text).collect(), levels)
    }

    fn rectangle(&self, at: usize, scale: f64, levels: u32) -> String {
        let (block, look) = (&self.layout.blocks[at], &self.looks[at]);
        let x = block.start as f64 * scale;
        let width = block.weight.amount as f64 * scale;
        let y = (levels - 1 - block.level) * ROW;
        let gap = if width > 2.0 { 0.5 } else { 0.0 };
        let mut out = format!(
            "<g class=\"box {}\"><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" \
             rx=\"1\"/>",
            look.class,
            escape(&self.description(block, look)),
            width - gap,
            ROW - 1,
        );
        let label = self.label(at, width);
        if !label.is_empty() {
            let (x, y) = (x + 3.0, f64::from(y) + 12.5);
            let _ = write!(
                out,
                "<text x=\"{x:.2}\" y=\"{y}\">{}</text>",
                escape(&label)
            );
        }
        out.push_str("</g>\n");
        out
    }

    /// Says what has no box of its own.
    pub(super) fn left_out(&self) -> Vec<String> {
        let whole = self.layout.whole().amount.max(1) as f64;
        let mut notes = Vec::new();
        let smaller = self.layout.smaller;
        if smaller.frames > 0 {
            notes.push(format!(
                "Merged or left out since they are small: {}, {} of the whole.",
                plural(smaller.frames, "frame"),
                share::rough(smaller.weight.amount as f64 / whole)
            ));
        }
        let deeper = self.layout.deeper;
        if deeper.frames > 0 {
            notes.push(format!(
                "Left out since they are deeper than {} levels: {}, {} of the whole.",
                self.layout.levels - 1,
                plural(deeper.frames, "frame"),
                share::rough(deeper.weight.amount as f64 / whole)
            ));
        }
        notes
    }
}

/// Returns a change of a share in points of per cent with its sign, as `changeOf` in flame.js.
fn points(change: f64) -> String {
    let size = format!("{:.2}", change.abs() * 100.0);
    let sign = match size.as_str() {
        "0.00" => "±",
        _ if change < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{size}")
}
