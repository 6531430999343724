//! Positions after rows whose sort keys are too long for a token.
//!
//! In: the last row given and the next one. Out: a [`ResumePlace`] that stays good whatever becomes of both.
//! How: mostly a short text lies between the two keys (as the separators of a B-tree are short), and everything on its far
//! side is still to be given. Where keys agree for longer than a token, the place names both rows and how their keys begin:
//! it goes on after the one, or at the other.
//! Invariant: a row that stays is never left out. Only if both rows are gone, rows whose keys agree in their beginning with
//! the last one's may come once more.

use crate::operators::group::RowPlace;
use crate::resume::{ResumePlace, keys_fit};
use astrarium_value::{Object, Value};

/// Sort keys and place of a row. Fewer keys than the order has stand for all rows that begin with them.
pub(crate) type LastRow = (Vec<Value>, RowPlace);

/// Bytes of a key that are kept where all of it is too much.
const KEPT_BYTES_MAX: usize = 400;

/// After a row whose sort keys are too long.
#[derive(Debug, Clone, PartialEq)]
pub struct LongKey {
    /// The last row given, by document and index.
    pub last: (u64, u32),
    /// The first row that was not given.
    pub next: (u64, u32),
    /// The first keys of the last row, the last of these cut.
    pub beginning: Vec<Value>,
}

/// In which direction rows are ordered: by their keys, and those of equal keys by their documents.
pub(crate) struct Directions<'a> {
    pub(crate) descending: &'a [bool],
    pub(crate) reverse_ties: bool,
}

impl Directions<'_> {
    /// The place before all rows with equal keys.
    pub(crate) fn before_ties(&self) -> RowPlace {
        (if self.reverse_ties { u64::MAX } else { 0 }, 0)
    }

    /// The place after all rows with equal keys.
    pub(crate) fn after_ties(&self) -> RowPlace {
        (if self.reverse_ties { 0 } else { u64::MAX }, u32::MAX)
    }

    /// The place right before a row.
    pub(crate) fn before(&self, (number, index): RowPlace) -> RowPlace {
        match index.checked_sub(1) {
            Some(index) => (number, index),
            None if self.reverse_ties => (number.saturating_add(1), u32::MAX),
            None => (number.saturating_sub(1), u32::MAX),
        }
    }

    fn descends(&self, key: usize) -> bool {
        self.descending.get(key).copied().unwrap_or(false)
    }

    /// The place between two rows that follow each other.
    pub(crate) fn between(&self, last: LastRow, next: &LastRow) -> ResumePlace {
        let (keys, (number, index)) = last;
        if keys_fit(&keys) {
            return ResumePlace::Key(keys, number, index);
        }
        if let Some((keys, (number, index))) = self.separator(&keys, &next.0) {
            return ResumePlace::Key(keys, number, index);
        }
        ResumePlace::LongKey(LongKey { last: (number, index), next: next.1, beginning: beginning(&keys) })
    }

    /// Short keys between two that differ in their last one, if there are some.
    fn separator(&self, last: &[Value], next: &[Value]) -> Option<LastRow> {
        let ((last_key, equal), (next_key, others)) = (last.split_last()?, next.split_last()?);
        let (Value::String(from), Value::String(to)) = (last_key, next_key) else { return None };
        if equal != others || from == to {
            return None;
        }
        // The text that lies further up in the order of values has one more character than both agree in.
        let descends = self.descends(equal.len());
        let (upper, place) = if descends { (from, self.after_ties()) } else { (to, self.before_ties()) };
        let agreeing = from.chars().zip(to.chars()).take_while(|(left, right)| left == right).count();
        let between: String = upper.chars().take(agreeing + 1).collect();
        let mut keys = equal.to_vec();
        keys.push(Value::from(between.as_str()));
        keys_fit(&keys).then_some((keys, place))
    }
}

impl LongKey {
    /// Where to go on, given the keys of both rows as far as these are still there.
    pub(crate) fn after(
        &self,
        last: Option<Vec<Value>>,
        next: Option<Vec<Value>>,
        directions: &Directions<'_>,
    ) -> LastRow {
        // A row that was changed meanwhile may be anywhere.
        if let Some(keys) = last.filter(|keys| beginning(keys) == self.beginning) {
            return (keys, self.last);
        }
        // The keys of the next row are at least as far in the order.
        if let Some(keys) = next.filter(|keys| self.is_not_before(keys, directions)) {
            return (keys, directions.before(self.next));
        }
        let mut keys = self.beginning.clone();
        if let Some(cut) = keys.pop() {
            match cut {
                // Above all texts that begin so, or above all arrays.
                Value::String(text) if directions.descends(keys.len()) => {
                    keys.push(Value::from(format!("{text}\u{FFFF}").as_str()));
                }
                Value::Array(_) if directions.descends(keys.len()) => keys.push(empty_object()),
                Value::Object(_) if directions.descends(keys.len()) => {}
                least => keys.push(least),
            }
        }
        (keys, directions.before_ties())
    }

    fn is_not_before(&self, keys: &[Value], directions: &Directions<'_>) -> bool {
        let (own, other) = (&self.beginning, beginning(keys));
        let differing = own.iter().zip(&other).enumerate().find(|(_, (left, right))| left != right);
        differing.is_none_or(|(key, (left, right))| (right > left) != directions.descends(key))
    }
}

/// The first keys, as many as fit into a token, and then one that is cut: of a text its beginning, of an array or an object
/// an empty one.
fn beginning(keys: &[Value]) -> Vec<Value> {
    let mut kept = Vec::new();
    for key in keys {
        kept.push(key.clone());
        if keys_fit(&kept) {
            continue;
        }
        kept.pop();
        let mut bytes_max = KEPT_BYTES_MAX;
        loop {
            kept.push(cut(key, bytes_max));
            if keys_fit(&kept) {
                return kept;
            }
            kept.pop();
            if bytes_max == 0 {
                return kept;
            }
            bytes_max /= 2;
        }
    }
    kept
}

fn cut(key: &Value, bytes_max: usize) -> Value {
    match key {
        Value::String(text) => {
            let longest = bytes_max.min(text.len());
            let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            Value::from(&text[..end])
        }
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => empty_object(),
        key => key.clone(),
    }
}

fn empty_object() -> Value {
    Value::Object(Object::from_members([]))
}
