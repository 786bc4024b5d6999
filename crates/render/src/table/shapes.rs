//! What a row of a table is in documents: its columns, by name, unit and what their values may be.

use super::{Table, Unit};
use crate::schema::{Member, Shape};

impl Unit {
    /// Returns what the description of columns and schemas call it.
    pub(super) fn described(self) -> &'static str {
        match self {
            Unit::Text => "text",
            Unit::Name => "name",
            Unit::Number => "number",
            Unit::Count => "count",
            Unit::Nanoseconds => "ns",
            Unit::Share => "0 to 1",
            Unit::Value => "value",
            Unit::Address => "address",
            Unit::Vector => "number",
            Unit::Flag => "true or false",
            Unit::Nested => "list",
        }
    }
}

impl<R> Table<'_, R> {
    /// Returns what a row is as an object of a document.
    pub(crate) fn shape(&self) -> Shape {
        let mut members = Vec::new();
        for column in &self.columns {
            if let Some(place) = &column.json {
                let member = Member {
                    name: place.clone(),
                    shape: column.shape.clone(),
                    always: column.known.is_none(),
                    unit: Some(column.unit.described()),
                };
                put_member(&mut members, place, member);
            }
        }
        Shape::Object(members)
    }
}

/// Puts a member at its place among those of an object.
fn put_member(members: &mut Vec<Member>, place: &str, member: Member) {
    let Some((outer, inner)) = place.split_once('.') else {
        let name = place.to_owned().into();
        members.push(Member { name, ..member });
        return;
    };
    let place = members.iter().position(|one| one.name == outer);
    let place = place.unwrap_or_else(|| {
        let none = Member::new(outer.to_owned(), Shape::Object(Vec::new()));
        members.push(none.sometimes());
        members.len() - 1
    });
    if let Some(Member {
        shape: Shape::Object(within),
        always,
        ..
    }) = members.get_mut(place)
    {
        *always |= member.always;
        put_member(within, inner, member);
    }
}
