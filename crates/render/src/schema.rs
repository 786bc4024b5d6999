/*!
What documents look like, as JSON Schema (draft 2020-12).

A table's shape is that of its columns: name, unit, and what the value's type may be. Members of a document beside
tables are listed once with `shape!`, which takes their types from the struct's own. `docs/schema` has a file for each
command, and a test writes it.
*/

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::ClockUnit;
use crate::clock_unit::ClockedDocument;

/// What a value of a document may be.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Anything.
    Any,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Flag,
    /// That, or null.
    Nullable(Box<Shape>),
    /// A list of that.
    List(Box<Shape>),
    /// An object with any names and these values.
    Map(Box<Shape>),
    /// An object with these members and no others.
    Object(Vec<Member>),
    /// One of these.
    OneOf(Vec<Shape>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it may be.
    pub shape: Shape,
    /// Whether every such object has it.
    pub always: bool,
    /// What a column of it counts, as `docs/columns.md` says it.
    pub unit: Option<&'static str>,
}

/// A type whose values are written as JSON of one shape.
pub trait HasShape {
    /// Returns the shape.
    fn shape() -> Shape;
}

macro_rules! plain {
    ($($shape:ident: $($ty:ty),*;)*) => {
        $($(impl HasShape for $ty { fn shape() -> Shape { Shape::$shape } })*)*
    };
}

plain! {
    Integer: u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, i128;
    Number: f32, f64;
    Flag: bool;
    Text: str, String, Cow<'_, str>, Arc<str>, paths::ThresholdOrigin, results::Bench;
    Any: Value;
}

impl<T: HasShape + ?Sized> HasShape for &T {
    fn shape() -> Shape {
        T::shape()
    }
}

impl<T: HasShape> HasShape for Option<T> {
    fn shape() -> Shape {
        T::shape().or_null()
    }
}

impl<T: HasShape> HasShape for [T] {
    fn shape() -> Shape {
        T::shape().list()
    }
}

impl<T: HasShape> HasShape for Vec<T> {
    fn shape() -> Shape {
        T::shape().list()
    }
}

impl<T: HasShape, const N: usize> HasShape for [T; N] {
    fn shape() -> Shape {
        T::shape().list()
    }
}

impl<T: HasShape> HasShape for BTreeMap<String, T> {
    fn shape() -> Shape {
        Shape::Map(Box::new(T::shape()))
    }
}

impl HasShape for Map<String, Value> {
    fn shape() -> Shape {
        Shape::Map(Box::new(Shape::Any))
    }
}

impl<T: HasShape> HasShape for ClockedDocument<T> {
    fn shape() -> Shape {
        T::shape()
    }
}

/// Returns the members of an object that has none yet.
pub fn no_members() -> Vec<Member> {
    Vec::new()
}

/// Returns the shape of a member, by how it is reached.
pub fn of<T, M: HasShape>(_: fn(&T) -> &M) -> Shape {
    M::shape()
}

/// Lists the members of a struct as they are in JSON: `name`, or `name?` where it may be left out, `..name` where its
/// own members stand in its place, `name: shape` where the type does not say the shape, and `"json" = name` where JSON
/// has another name.
#[macro_export]
macro_rules! shape {
    ($ty:ty { $($members:tt)* }) => {
        impl $crate::schema::HasShape for $ty {
            fn shape() -> $crate::schema::Shape {
                let mut members = $crate::schema::no_members();
                $crate::shape!(@ $ty, members, $($members)*);
                $crate::schema::Shape::Object(members)
            }
        }
    };
    (@ $ty:ty, $all:ident, ) => {};
    (@ $ty:ty, $all:ident, .. $name:ident: $shape:expr $(, $($rest:tt)*)?) => {
        $all.extend($shape.members());
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, .. $name:ident $(, $($rest:tt)*)?) => {
        $all.extend($crate::schema::of(|value: &$ty| &value.$name).members());
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, $name:ident? : $shape:expr $(, $($rest:tt)*)?) => {
        $all.push($crate::schema::Member::new(stringify!($name), $shape).sometimes());
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, $name:ident? $(, $($rest:tt)*)?) => {
        let shape = $crate::schema::of(|value: &$ty| &value.$name).not_null();
        $all.push($crate::schema::Member::new(stringify!($name), shape).sometimes());
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, $name:ident: $shape:expr $(, $($rest:tt)*)?) => {
        $all.push($crate::schema::Member::new(stringify!($name), $shape));
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, $json:literal = $name:ident $(, $($rest:tt)*)?) => {
        $all.push($crate::schema::Member::new($json, $crate::schema::of(|value: &$ty| &value.$name)));
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
    (@ $ty:ty, $all:ident, $name:ident $(, $($rest:tt)*)?) => {
        let shape = $crate::schema::of(|value: &$ty| &value.$name);
        $all.push($crate::schema::Member::new(stringify!($name), shape));
        $($crate::shape!(@ $ty, $all, $($rest)*);)?
    };
}

impl Member {
    /// Returns a member that every object has.
    pub fn new(name: impl Into<Cow<'static, str>>, shape: Shape) -> Member {
        Member {
            name: name.into(),
            shape,
            always: true,
            unit: None,
        }
    }

    /// Says that some objects do not have it.
    #[must_use]
    pub fn sometimes(self) -> Member {
        Member {
            always: false,
            ..self
        }
    }
}

impl Shape {
    /// Returns a list of it.
    #[must_use]
    pub fn list(self) -> Shape {
        Shape::List(Box::new(self))
    }

    /// Returns it, or null.
    #[must_use]
    pub fn or_null(self) -> Shape {
        match self {
            Shape::Any | Shape::Nullable(_) => self,
            other => Shape::Nullable(Box::new(other)),
        }
    }

    /// Returns it without null.
    #[must_use]
    pub fn not_null(self) -> Shape {
        match self {
            Shape::Nullable(shape) => *shape,
            other => other,
        }
    }

    /// Returns the members of an object, for another that has them as its own: where it may be missing, so may they.
    pub fn members(self) -> Vec<Member> {
        match self {
            Shape::Object(members) => members,
            Shape::Nullable(shape) => shape.members().into_iter().map(Member::sometimes).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns an object with members put behind those that it has.
    #[must_use]
    pub fn with(self, more: impl IntoIterator<Item = Member>) -> Shape {
        let mut members = self.members();
        members.extend(more);
        Shape::Object(members)
    }

    /// Returns its schema. Where times are of a recording's clock, they may be null and stand beside that as ticks.
    pub fn schema(&self, clocked: bool) -> Value {
        match self {
            Shape::Any => json!({}),
            Shape::Integer => json!({"type": "integer"}),
            Shape::Number => json!({"type": "number"}),
            Shape::Text => json!({"type": "string"}),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Nullable(shape) => null_or(shape.schema(clocked)),
            Shape::List(shape) => json!({"type": "array", "items": shape.schema(clocked)}),
            Shape::Map(shape) => {
                json!({"type": "object", "additionalProperties": shape.schema(clocked)})
            }
            Shape::OneOf(shapes) => {
                let schemas = shapes.iter().map(|shape| shape.schema(clocked));
                json!({"anyOf": schemas.collect::<Vec<Value>>()})
            }
            Shape::Object(members) => object(members, clocked),
        }
    }
}

/// Returns a schema that allows null too.
fn null_or(schema: Value) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some(one) => {
            let both = json!([one, "null"]);
            let mut schema = schema;
            schema["type"] = both;
            schema
        }
        None => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

fn object(members: &[Member], clocked: bool) -> Value {
    let mut properties = Map::new();
    for member in members {
        let mut schema = member.shape.schema(clocked);
        let ticks = ClockUnit::Ticks
            .ticks_name(&member.name)
            .filter(|_| clocked);
        if let Some(ticks) = &ticks {
            let nullable = member.shape.clone().or_null().schema(clocked);
            schema = nullable.clone();
            properties.insert(ticks.clone(), nullable);
        }
        if let (Some(unit), Some(schema)) = (member.unit, schema.as_object_mut()) {
            schema.insert("x-unit".to_owned(), unit.into());
        }
        properties.insert(member.name.to_string(), schema);
    }
    let required = members.iter().filter(|member| member.always);
    let required: Vec<&str> = required.map(|member| &*member.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
