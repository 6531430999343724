//! Values of the naive evaluator: JSON and undefined, with equality and order written out.

use crate::json::{Json, escape};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// A value.
#[derive(Debug, Clone)]
pub enum Data {
    /// Absent.
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// An array.
    Array(Vec<Data>),
    /// An object; the order of members has no meaning.
    Object(BTreeMap<String, Data>),
}

impl Data {
    /// Reads JSON.
    pub fn of(json: &Json) -> Data {
        match json {
            Json::Word(word) => match word.as_str() {
                "null" => Data::Null,
                "true" => Data::Bool(true),
                "false" => Data::Bool(false),
                number => Data::Number(number.parse().expect("a word of JSON is a number")),
            },
            Json::Text(text) => Data::Text(text.clone()),
            Json::Array { items, .. } => Data::Array(items.iter().map(Data::of).collect()),
            Json::Object { members, .. } => {
                Data::Object(members.iter().map(|(name, value)| (name.clone(), Data::of(value))).collect())
            }
            Json::Hole(_) => Data::Undefined,
        }
    }

    /// An object of what is defined.
    pub fn object(members: impl IntoIterator<Item = (String, Data)>) -> Data {
        let defined = members.into_iter().filter(|(_, value)| !matches!(value, Data::Undefined));
        Data::Object(defined.collect())
    }

    /// A property.
    #[must_use]
    pub fn member(&self, name: &str) -> Data {
        match self {
            Data::Object(members) => members.get(name).cloned().unwrap_or(Data::Undefined),
            _ => Data::Undefined,
        }
    }

    /// A property or element.
    #[must_use]
    pub fn index(&self, index: &Data) -> Data {
        match (self, index) {
            (_, Data::Text(name)) => self.member(name),
            (Data::Array(items), Data::Number(position)) if position.fract() == 0.0 && *position >= 0.0 => {
                items.get(*position as usize).cloned().unwrap_or(Data::Undefined)
            }
            _ => Data::Undefined,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Data::Undefined => 0,
            Data::Null => 1,
            Data::Bool(false) => 2,
            Data::Bool(true) => 3,
            Data::Number(_) => 4,
            Data::Text(_) => 5,
            Data::Array(_) => 6,
            Data::Object(_) => 7,
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Undefined => out.write_str("undefined"),
            Data::Null => out.write_str("null"),
            Data::Bool(value) => write!(out, "{value}"),
            Data::Number(number) => write!(out, "{number}"),
            Data::Text(text) => write!(out, "\"{}\"", escape(text)),
            Data::Array(items) => {
                let items: Vec<String> = items.iter().map(Data::to_string).collect();
                write!(out, "[{}]", items.join(","))
            }
            Data::Object(members) => {
                let member = |(name, value): (&String, &Data)| format!("\"{}\":{value}", escape(name));
                let members: Vec<String> = members.iter().map(member).collect();
                write!(out, "{{{}}}", members.join(","))
            }
        }
    }
}

/// Deep equality of two defined values; different types are different.
pub fn equal(left: &Data, right: &Data) -> bool {
    match (left, right) {
        (Data::Array(left), Data::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Data::Object(left), Data::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => typed_order(left, right) == Some(Ordering::Equal),
    }
}

/// The order of texts: by UTF-16 units.
fn text_order(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

/// The order of two primitives of one type; none for anything else.
pub fn typed_order(left: &Data, right: &Data) -> Option<Ordering> {
    match (left, right) {
        (Data::Null, Data::Null) => Some(Ordering::Equal),
        (Data::Bool(left), Data::Bool(right)) => Some(left.cmp(right)),
        (Data::Number(left), Data::Number(right)) => left.partial_cmp(right),
        (Data::Text(left), Data::Text(right)) => Some(text_order(left, right)),
        _ => None,
    }
}

/// The order of ORDER BY, MIN and MAX. Arrays and objects have none of their own.
pub fn total_order(left: &Data, right: &Data) -> Ordering {
    left.rank().cmp(&right.rank()).then(typed_order(left, right).unwrap_or(Ordering::Equal))
}
