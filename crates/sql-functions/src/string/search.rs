//! Looking for one text in another.
//!
//! Every search is linear in both texts.

use std::borrow::Cow;

use astrarium_value::Value;

use super::{fold, ignores_case};
use crate::arguments::{count, integer, text};
use crate::limits::{TEXT_BYTES_PER_STEP, may_go_on};
use crate::operators::{all_true, any_true, truth_value};
use crate::utf16;

/// Tests the first two arguments, made alike in case when the third is true.
pub(super) fn test(arguments: &[Value], test: fn(&str, &str) -> bool) -> Option<Value> {
    let (text, other) = (text(arguments, 0)?, text(arguments, 1)?);
    let result = if ignores_case(arguments)? { test(&fold(text), &fold(other)) } else { test(text, other) };
    Some(Value::Bool(result))
}

pub(super) fn contains(text: &str, other: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), other.as_bytes()).is_some()
}

pub(super) fn starts_with(text: &str, other: &str) -> bool {
    text.starts_with(other)
}

pub(super) fn ends_with(text: &str, other: &str) -> bool {
    text.ends_with(other)
}

pub(super) fn equals(text: &str, other: &str) -> bool {
    text == other
}

/// The three-valued OR or AND of the single tests: an argument that is no text makes its own test undefined only.
pub(super) fn contains_many(arguments: &[Value], ignore_case: bool, any: bool) -> Value {
    let Some(whole) = text(arguments, 0) else { return Value::Undefined };
    let whole = if ignore_case { Cow::Owned(fold(whole)) } else { Cow::Borrowed(whole) };
    let tests = (1..arguments.len()).map(|place| {
        let part = text(arguments, place)?;
        if !may_go_on(whole.len() / TEXT_BYTES_PER_STEP) {
            return None;
        }
        Some(if ignore_case { contains(&whole, &fold(part)) } else { contains(&whole, part) })
    });
    truth_value(if any { any_true(tests) } else { all_true(tests) })
}

/// A start below zero counts as zero, one beyond the end finds nothing.
pub(super) fn index_of(arguments: &[Value]) -> Option<Value> {
    let (text, part) = (text(arguments, 0)?, text(arguments, 1)?);
    let start = if arguments.len() > 2 { integer(arguments, 2)?.max(0) as usize } else { 0 };
    if start > 0 && start > utf16::length(text) {
        return Some(Value::Number(-1.0));
    }
    let start = utf16::byte_offset(text, start);
    let found = memchr::memmem::find(&text.as_bytes()[start..], part.as_bytes());
    Some(found.map_or(Value::Number(-1.0), |found| count(utf16::position(text, start + found))))
}

/// `start` is the last unit that may belong to the match.
pub(super) fn last_index_of(arguments: &[Value]) -> Option<Value> {
    let (text, part) = (text(arguments, 0)?, text(arguments, 1)?);
    let end = if arguments.len() > 2 {
        let start = integer(arguments, 2)?;
        utf16::byte_offset(text, usize::try_from(start.saturating_add(1)).unwrap_or(0))
    } else {
        text.len()
    };
    let found = memchr::memmem::rfind(&text.as_bytes()[..end], part.as_bytes());
    Some(found.map_or(Value::Number(-1.0), |found| count(utf16::position(text, found))))
}
