//! What the script draws from: names once, boxes as numbers.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use stacks::{Block, BoxContent};

use super::boxes::Boxes;
use super::palette::BoxStyle;
use super::text::shown;

/// The numbers of a picture. Boxes are in the order of the layout, a number or a letter for each in every list.
#[derive(Debug, Serialize)]
struct BoxArrays<'d> {
    /// `ns`, or nothing where amounts are not shown.
    unit: &'static str,
    /// Where boxes begin in the picture without a script, from above.
    top: u32,
    names: Vec<String>,
    level: Vec<u32>,
    /// The place in `names`, or less 0 the number of frames that a box stands for.
    name: Vec<i64>,
    /// Letters, of which `classes`, `words` and `marks` say more.
    kind: String,
    /// 1 where a change may be noise.
    noise: String,
    /// By side: of a difference, before and after.
    samples: Vec<Vec<u64>>,
    amount: Vec<Vec<u64>>,
    classes: BTreeMap<char, &'d str>,
    words: BTreeMap<char, &'d str>,
    marks: BTreeMap<char, &'d str>,
}

/// Returns the numbers as JSON.
pub(super) fn json(boxes: &Boxes<'_>, nanoseconds: bool, top: u32) -> String {
    let blocks = &boxes.layout.blocks;
    let mut names = Vec::new();
    let mut numbers: FxHashMap<u32, i64> = FxHashMap::default();
    let name = blocks.iter().map(|block| match block.content {
        BoxContent::All => 0,
        BoxContent::Smaller(frames) => -i64::try_from(frames).unwrap_or(i64::MAX),
        BoxContent::Frame(frame) => *numbers.entry(frame).or_insert_with(|| {
            let name = boxes.stacks.name(frame);
            names.push(name.map_or(String::new(), |name| shown(&name.text)));
            names.len() as i64 - 1
        }),
    });
    let name: Vec<i64> = name.collect();
    let list = |of: fn(&Block) -> u64| -> Vec<u64> { blocks.iter().map(of).collect() };
    let mut samples = vec![list(|block| block.weight.samples)];
    let mut amount = vec![list(|block| block.weight.amount)];
    let mut noise = String::new();
    if boxes.diff.is_some() {
        samples.insert(0, list(|block| block.before.samples));
        amount.insert(0, list(|block| block.before.amount));
        let is_noise = |block: &Block| match boxes.may_be_noise(block) {
            true => '1',
            false => '0',
        };
        noise = blocks.iter().map(is_noise).collect();
    }
    let by_letter = |of: fn(&BoxStyle) -> &'static str| -> BTreeMap<char, &'static str> {
        let looks = boxes.looks.iter();
        looks.map(|look| (look.key, of(look))).collect()
    };
    let data = BoxArrays {
        unit: if nanoseconds { "ns" } else { "" },
        top,
        names,
        level: blocks.iter().map(|block| block.level).collect(),
        name,
        kind: boxes.looks.iter().map(|look| look.key).collect(),
        noise,
        samples,
        amount,
        classes: by_letter(|look| look.class),
        words: by_letter(|look| look.word),
        marks: by_letter(|look| look.mark),
    };
    serde_json::to_string(&data).unwrap_or_default()
}
