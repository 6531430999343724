//! Parts of a text, by position, by separator or by the characters at its ends.

use std::sync::Arc;

use astrarium_value::Value;

use crate::arguments::{at, count, integer, string, text};
use crate::utf16;

pub(super) fn length(arguments: &[Value]) -> Option<Value> {
    Some(count(utf16::length(text(arguments, 0)?)))
}

pub(super) fn left(arguments: &[Value]) -> Option<Value> {
    let (text, units) = (text(arguments, 0)?, integer(arguments, 1)?);
    Some(string(utf16::slice(text, 0, to_position(units))))
}

pub(super) fn right(arguments: &[Value]) -> Option<Value> {
    let (text, units) = (text(arguments, 0)?, integer(arguments, 1)?);
    let length = utf16::length(text);
    Some(string(utf16::slice(text, length.saturating_sub(to_position(units)), length)))
}

/// A start outside the text or no length gives the empty text.
pub(super) fn substring(arguments: &[Value]) -> Option<Value> {
    let (text, start, units) = (text(arguments, 0)?, integer(arguments, 1)?, integer(arguments, 2)?);
    if start < 0 {
        return Some(string(""));
    }
    let start = to_position(start);
    Some(string(utf16::slice(text, start, start.saturating_add(to_position(units)))))
}

fn to_position(units: i64) -> usize {
    usize::try_from(units).unwrap_or(0)
}

/// The part of a text beside a mark, which `find` picks; empty when the mark does not occur.
pub(super) fn around(
    arguments: &[Value],
    find: for<'a> fn(&'a str, &str) -> Option<&'a str>,
) -> Option<Value> {
    let (text, mark) = (text(arguments, 0)?, text(arguments, 1)?);
    Some(string(find(text, mark).unwrap_or_default()))
}

/// The second argument is a set of characters, white space when left out.
pub(super) fn trim(arguments: &[Value], start: bool, end: bool) -> Option<Value> {
    let whole = text(arguments, 0)?;
    let result = if arguments.len() > 1 {
        // Sorted, so that a long set costs little per character.
        let mut set: Vec<char> = text(arguments, 1)?.chars().collect();
        set.sort_unstable();
        trim_matching(whole, start, end, |character| set.binary_search(&character).is_ok())
    } else {
        trim_matching(whole, start, end, char::is_whitespace)
    };
    Some(if result.len() == whole.len() { at(arguments, 0).clone() } else { string(result) })
}

fn trim_matching(mut text: &str, start: bool, end: bool, in_set: impl Fn(char) -> bool) -> &str {
    if start {
        text = text.trim_start_matches(&in_set);
    }
    if end {
        text = text.trim_end_matches(&in_set);
    }
    text
}

/// An empty separator leaves the text whole. Empty parts share one text: a text of separators only has very many.
pub(super) fn split(arguments: &[Value]) -> Option<Value> {
    let (text, separator) = (text(arguments, 0)?, text(arguments, 1)?);
    if separator.is_empty() {
        return Some(Value::Array(vec![string(text)]));
    }
    let empty: Arc<str> = Arc::from("");
    let part = |part: &str| if part.is_empty() { Value::String(Arc::clone(&empty)) } else { string(part) };
    Some(Value::Array(text.split(separator).map(part).collect()))
}
