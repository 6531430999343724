//! The values expressions compute with: what JSON can say, and `Undefined` for what is not there.
//!
//! Invariants
//! - An object holds each name once and no undefined member: a property without value does not exist.
//! - Members keep the order in which they came; equality does not depend on it (`order`).
//!
//! Not here: comparison (`order`), reading and printing JSON text (`json`).

use std::sync::Arc;

/// One value of the query language.
///
/// Text is shared (`Arc<str>`): queries copy the same strings into groups, sort keys and results, and a copy is then
/// a counter, while comparison still reads plain bytes.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// The value of what is absent; has no JSON form.
    #[default]
    Undefined,
    /// JSON `null`, a value like any other.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Every number is an IEEE double. NaN and the infinities come up inside expressions only.
    Number(f64),
    /// Text, compared by UTF-16 code units.
    String(Arc<str>),
    /// A sequence of values.
    Array(Vec<Value>),
    /// Named values.
    Object(Object),
}

/// The members of an object, in the order in which they came.
///
/// Lookup reads through the members: documents have tens of them, and a search tree would cost more than it saves.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(Arc<str>, Value)>,
}

/// Members that are compared with each other one by one.
const FEW_MEMBERS: usize = 8;

impl Value {
    /// Whether this is the absent value.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.into())
    }
}

impl Object {
    /// An object without members.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Keeps the last member of each name, where it stands, and drops undefined ones; takes n log n steps for
    /// any input, where repeated `insert` would take n squared.
    pub fn from_members(members: impl IntoIterator<Item = (Arc<str>, Value)>) -> Self {
        let members: Vec<_> = members.into_iter().collect();
        if members.len() <= FEW_MEMBERS {
            return Self::from_few_members(members);
        }
        let mut by_name: Vec<usize> = (0..members.len()).collect();
        by_name.sort_by(|&a, &b| members[a].0.cmp(&members[b].0).then(a.cmp(&b)));
        let mut keep: Vec<bool> = members.iter().map(|(_, value)| !value.is_undefined()).collect();
        for pair in by_name.windows(2) {
            if members[pair[0]].0 == members[pair[1]].0 {
                keep[pair[0]] = false;
            }
        }
        let mut keep = keep.into_iter();
        let mut object = Self { members };
        object.members.retain(|_| keep.next().unwrap_or(false));
        object
    }

    /// The same where comparing each name with each is cheaper than sorting them.
    fn from_few_members(members: Vec<(Arc<str>, Value)>) -> Self {
        let mut keep = [false; FEW_MEMBERS];
        for (index, (name, value)) in members.iter().enumerate() {
            keep[index] =
                !value.is_undefined() && members[index + 1..].iter().all(|(later, _)| later != name);
        }
        let mut keep = keep.into_iter();
        let mut object = Self { members };
        object.members.retain(|_| keep.next().unwrap_or(false));
        object
    }

    /// For callers that know the names to be distinct and the values to be defined.
    pub(crate) fn from_distinct_members(members: Vec<(Arc<str>, Value)>) -> Self {
        Self { members }
    }

    /// The member of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(own, _)| &**own == name).map(|(_, value)| value)
    }

    /// Sets a member in its place, or appends it; an undefined value removes the member.
    pub fn insert(&mut self, name: Arc<str>, value: Value) {
        let place = self.members.iter().position(|(own, _)| *own == name);
        match (place, value) {
            (Some(index), Value::Undefined) => drop(self.members.remove(index)),
            (None, Value::Undefined) => {}
            (Some(index), value) => self.members[index].1 = value,
            (None, value) => self.members.push((name, value)),
        }
    }

    /// The members in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// The members by name, the order that comparison, hashing and index keys see.
    pub fn sorted_members(&self) -> Vec<(&str, &Value)> {
        let mut members: Vec<_> = self.iter().collect();
        members.sort_by(|a, b| crate::compare_text(a.0, b.0));
        members
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(members: &[(&str, Value)], expected: &str) {
        let object =
            Object::from_members(members.iter().map(|(name, value)| ((*name).into(), value.clone())));
        let mut text = Vec::new();
        Value::Object(object).write_json(&mut text);
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn the_last_of_each_name_stays_where_it_stands() {
        check(&[], "{}");
        check(&[("a", 1.0.into()), ("b", true.into()), ("a", 2.0.into())], r#"{"b":true,"a":2}"#);
        check(&[("a", 1.0.into()), ("b", Value::Null), ("a", Value::Undefined)], r#"{"b":null}"#);
        let many: Vec<(String, Value)> =
            (0..30).map(|i| (format!("{}", i % 10), f64::from(i).into())).collect();
        let many: Vec<(&str, Value)> = many.iter().map(|(name, value)| (&**name, value.clone())).collect();
        check(&many[..12], r#"{"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"0":10,"1":11}"#);
        check(&many[4..12], r#"{"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"0":10,"1":11}"#);
    }

    #[test]
    fn insert_replaces_in_place_and_removes_with_undefined() {
        let mut object = Object::new();
        object.insert("a".into(), 1.0.into());
        object.insert("b".into(), 2.0.into());
        object.insert("a".into(), "x".into());
        object.insert("c".into(), Value::Undefined);
        assert_eq!(object.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        object.insert("a".into(), Value::Undefined);
        assert!(object.get("a").is_none() && object.len() == 1);
    }
}
