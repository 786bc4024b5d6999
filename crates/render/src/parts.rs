//! The parts of a picture that every output has, an entry each ([`PicturePart`]).

use analysis::Picture;
use serde_json::{Map, Value};

use crate::part::PicturePart;
use crate::schema::{Member, Shape};
use crate::{counters, cpu_usage, distributions, interrupts, irqs, shares};

/// The parts, in their order.
pub const PARTS: [&PicturePart; 7] = [
    &irqs::PART,
    &counters::PART,
    &shares::PART,
    &interrupts::PART,
    &interrupts::QUEUES,
    &cpu_usage::PART,
    &distributions::PART,
];

/// Returns the members of a document that are parts which were recorded.
pub fn members(picture: &Picture) -> Map<String, Value> {
    let parts = PARTS.iter();
    let members = parts.filter_map(|part| Some((part.name.to_owned(), (part.document)(picture)?)));
    members.collect()
}

/// Returns what those members look like.
pub fn shape() -> Shape {
    let members = PARTS
        .iter()
        .map(|part| Member::new(part.name, (part.shape)()).sometimes());
    Shape::Object(members.collect())
}
