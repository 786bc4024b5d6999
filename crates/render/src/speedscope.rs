//! Stacks as a file of speedscope's.

use serde::Serialize;
use stacks::{Stacks, Weight};

/// A profile as speedscope reads it, its "sampled" kind (`file-format-spec.ts` of speedscope 1.20).
#[derive(Debug, Serialize)]
struct Speedscope<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: SharedFrames<'r>,
    profiles: [SampledProfile<'r>; 1],
    name: &'r str,
    exporter: &'static str,
}

#[derive(Debug, Serialize)]
struct SharedFrames<'r> {
    frames: Vec<Frame<'r>>,
}

#[derive(Debug, Serialize)]
struct Frame<'r> {
    name: &'r str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Returns stacks as a file of speedscope's: what they are of, whether their amounts are nanoseconds, and the input's
/// name.
pub(crate) fn sampled(
    stacks: &Stacks,
    whole: Weight,
    event: &str,
    nanoseconds: bool,
    name: &str,
) -> serde_json::Result<String> {
    let mut samples = Vec::new();
    let mut weights = Vec::new();
    stacks.each(|stack, weight| {
        samples.push(stack.to_vec());
        weights.push(weight.amount);
    });
    let names = stacks.names().iter();
    serde_json::to_string(&Speedscope {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: SharedFrames {
            frames: names.map(|name| Frame { name: &name.text }).collect(),
        },
        profiles: [SampledProfile {
            kind: "sampled",
            name: event,
            unit: if nanoseconds { "nanoseconds" } else { "none" },
            start_value: 0,
            end_value: whole.amount,
            samples,
            weights,
        }],
        name,
        exporter: "trapline",
    })
}
