//! What a query asks of an index, in words of its own: places in documents, and what must hold there.
//!
//! Whoever plans a query translates its filter into a [`Need`]; the kinds of index say which parts of it they can serve.
//! Invariant: a need is never stronger than the filter it was made from. Every document that passes the filter meets the
//! need, so an index that finds all documents that meet it finds all that pass.

use astrarium_value::Value;
use std::ops::Bound;
use std::sync::Arc;

/// One step down into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// Into the property of that name.
    Name(Arc<str>),
    /// Into some element of an array.
    Elements,
}

/// A place in documents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(pub Vec<PathStep>);

impl Path {
    /// Whether the place can occur more than once in a document.
    pub fn is_repeated(&self) -> bool {
        self.0.contains(&PathStep::Elements)
    }
}

/// The types that values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// Text.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Type {
    /// All of them, in the order of values.
    pub const ALL: [Type; 6] =
        [Type::Null, Type::Bool, Type::Number, Type::String, Type::Array, Type::Object];

    /// The type of a value; undefined has none.
    pub fn of(value: &Value) -> Option<Type> {
        Some(match value {
            Value::Undefined => return None,
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
        })
    }
}

/// What must hold for the value at a place.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// It equals one of these; none of them is undefined.
    OneOf(Vec<Value>),
    /// It is defined and differs from this value, in type or otherwise.
    Not(Value),
    /// It has the type of the bounds and lies between them. At least one bound has a value, and both have one type.
    Between(Bound<Value>, Bound<Value>),
    /// It is text that begins with this.
    Prefix(Arc<str>),
    /// It has one of these types; with all of them, it is defined.
    Types(Vec<Type>),
}

/// A predicate at a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Where.
    pub path: Path,
    /// What.
    pub predicate: Predicate,
}

/// What every document that passes a filter meets.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Nothing is known.
    Anything,
    /// No document passes.
    Nothing,
    /// A condition. `exact` says that meeting it is also enough to pass this part of the filter.
    One {
        /// The condition.
        condition: Condition,
        /// Whether a document that meets it passes.
        exact: bool,
    },
    /// All of these.
    All(Vec<Need>),
    /// At least one of these.
    Any(Vec<Need>),
}

impl Need {
    /// All of several needs; what says nothing is left out.
    pub fn all(needs: impl IntoIterator<Item = Need>) -> Need {
        let mut kept = Vec::new();
        for need in needs {
            match need {
                Need::Anything => {}
                Need::Nothing => return Need::Nothing,
                Need::All(inner) => kept.extend(inner),
                need => kept.push(need),
            }
        }
        match kept.len() {
            0 => Need::Anything,
            1 => kept.remove(0),
            _ => Need::All(kept),
        }
    }

    /// At least one of several needs; if one says nothing, so does the whole.
    pub fn any(needs: impl IntoIterator<Item = Need>) -> Need {
        let mut kept = Vec::new();
        for need in needs {
            match need {
                Need::Nothing => {}
                Need::Anything => return Need::Anything,
                Need::Any(inner) => kept.extend(inner),
                need => kept.push(need),
            }
        }
        match kept.len() {
            0 => Need::Nothing,
            1 => kept.remove(0),
            _ => Need::Any(kept),
        }
    }
}

/// A place that rows are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPath {
    /// The place; it never leads into arrays.
    pub path: Path,
    /// Whether the greatest comes first.
    pub descending: bool,
}
