//! Patch: up to ten small changes of one document, all of them or none.
//!
//! In: the minimal text of a stored document and [`PatchOperation`]s. Out: the new minimal text, or a [`PatchError`] that
//! names the operation at fault.
//! Invariants
//! - What no operation names keeps its place and its spelling, byte for byte.
//! - Each operation costs one walk to its target and one shift of what follows; nothing recurses. The text grows by no
//!   more than the values that the operations carry.
//!
//! Rules that differ between operations: `add` inserts into arrays where `set` overwrites; `replace` and `remove` need
//! their target; the others create it, but never its parent. `move` is a removal and then an addition.
//! Not here: the body of a request (`wire::patch`), the condition (a query), and the checks of every document such as its
//! depth and size (`store`), which the outcome of a patch passes like any other.

mod operation;
mod pointer;
mod scan;

pub use operation::{PatchOperation, check_targets, parse_operations};
pub use pointer::{Pointer, PointerError};

use crate::json::{write_number, write_string};
use scan::{Item, MemberSearch};

/// Most operations of one patch.
pub const OPERATIONS_MAX: usize = 10;

/// Why a patch cannot be done. The client's fault, except for [`PatchError::Document`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The specification is not of the form that it should have.
    #[error("Invalid patch request: check syntax of patch specification. {0}")]
    Syntax(String),
    /// More than [`OPERATIONS_MAX`] operations.
    #[error("The number of patch operations cannot exceed {OPERATIONS_MAX}.")]
    TooMany,
    /// A property that belongs to the database, or the id.
    #[error("Invalid patch request: Cannot patch system property {0}.")]
    SystemProperty(String),
    /// A property that decides where the document is.
    #[error("Invalid patch request: Cannot patch partition key path {0}.")]
    PartitionKey(String),
    /// One operation does not fit the document.
    #[error("For Operation({index}): {fault}")]
    PatchOperation {
        /// Which one, counted from 1.
        index: usize,
        /// What does not fit.
        fault: PatchFault,
    },
    /// The document is not minimal JSON. Ours: what is stored is damaged.
    #[error("the stored document is not minimal JSON")]
    Document,
}

/// Why an operation does not fit a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchFault {
    /// An array has no such position, or it is not a position at all.
    #[error("Index({index}) to operate on is out of array bounds.")]
    IndexOutOfBounds {
        /// The position as it stands in the path.
        index: String,
    },
    /// `replace` where nothing is.
    #[error("Node({path}) to be replaced is absent.")]
    ReplaceAbsent {
        /// The path of the operation.
        path: String,
    },
    /// `replace` where nothing is because of an earlier operation of the same patch.
    #[error("Node({path}) to be replaced has been removed earlier in the transaction.")]
    ReplaceRemoved {
        /// The path of the operation.
        path: String,
    },
    /// `remove` or the source of `move` where nothing is.
    #[error(
        "Node({path}) to be removed is absent. Note: it may also have been removed earlier in the transaction."
    )]
    RemoveAbsent {
        /// The path of the operation, or the source of a move.
        path: String,
    },
    /// `incr` of something else.
    #[error("Node({path}) is not a number.")]
    NotANumber {
        /// The path of the operation.
        path: String,
    },
    /// `incr` beyond what a number can be.
    #[error("Node({path}) incremented is out of the range of double precision.")]
    SumOutOfRange {
        /// The path of the operation.
        path: String,
    },
    /// The parent of the target does not exist, or has no children.
    #[error(
        "{operation} PatchOperation can only create a child object of an existing node(array or object) and cannot create \
         path recursively, no path found beyond: '{beyond}'."
    )]
    NoParent {
        /// `Add` for that operation, `Given` for the others.
        operation: &'static str,
        /// The first part of the path that leads nowhere.
        beyond: String,
    },
    /// The target of a move is inside of what is moved.
    #[error("Node({path}) cannot be moved to a path inside of itself.")]
    MoveIntoItself {
        /// The source of the move.
        path: String,
    },
}

/// Does all operations, one after the other, on a copy of the document.
pub fn apply(document: &[u8], operations: &[PatchOperation]) -> Result<Vec<u8>, PatchError> {
    let added: usize = operations.iter().map(PatchOperation::value_length).sum();
    let mut text = Vec::with_capacity(document.len() + added);
    text.extend_from_slice(document);
    for (done, operation) in operations.iter().enumerate() {
        edit(&mut text, operation, &operations[..done]).map_err(|stop| match stop {
            EditEnd::PatchFault(fault) => PatchError::PatchOperation { index: done + 1, fault },
            EditEnd::Damaged => PatchError::Document,
        })?;
    }
    Ok(text)
}

/// Why an edit ends without a change.
enum EditEnd {
    PatchFault(PatchFault),
    Damaged,
}

impl From<PatchFault> for EditEnd {
    fn from(fault: PatchFault) -> EditEnd {
        EditEnd::PatchFault(fault)
    }
}

fn edit(text: &mut Vec<u8>, operation: &PatchOperation, earlier: &[PatchOperation]) -> Result<(), EditEnd> {
    match operation {
        PatchOperation::Add { path, value } => add(text, path, value.as_bytes(), "Add"),
        PatchOperation::Set { path, value } => {
            let place = locate(text, path, "Given")?;
            place.put(text, path, value.as_bytes());
            Ok(())
        }
        PatchOperation::Replace { path, value } => {
            let place = locate(text, path, "Given")?;
            let item = place.existing(path, || replace_fault(path, earlier))?;
            text.splice(item.value, value.bytes());
            Ok(())
        }
        PatchOperation::Remove { path } => take(text, path).map(drop),
        PatchOperation::Increment { path, by } => increment(text, path, by),
        PatchOperation::Move { from, path } => relocate(text, from, path),
    }
}

fn add(text: &mut Vec<u8>, path: &Pointer, value: &[u8], operation: &'static str) -> Result<(), EditEnd> {
    let place = locate(text, path, operation)?;
    match place.search {
        MemberSearch::Found(item) if place.is_array => {
            text.splice(item.start..item.start, value.iter().copied().chain([b',']));
        }
        _ => place.put(text, path, value),
    }
    Ok(())
}

/// Removes a value with the comma that belongs to it, and gives it.
fn take(text: &mut Vec<u8>, path: &Pointer) -> Result<Vec<u8>, EditEnd> {
    let place = locate(text, path, "Given")?;
    let item = place.existing(path, || PatchFault::RemoveAbsent { path: path.excerpt() })?;
    let value = text[item.value.clone()].to_vec();
    let (mut start, mut end) = (item.start, item.value.end);
    if text.get(end) == Some(&b',') {
        end += 1;
    } else if text.get(start - 1) == Some(&b',') {
        start -= 1;
    }
    text.drain(start..end);
    Ok(value)
}

fn increment(text: &mut Vec<u8>, path: &Pointer, by: &str) -> Result<(), EditEnd> {
    let place = locate(text, path, "Given")?;
    let MemberSearch::Found(item) = &place.search else {
        place.put(text, path, by.as_bytes());
        return Ok(());
    };
    let target = std::str::from_utf8(&text[item.value.clone()]).map_err(|_| EditEnd::Damaged)?;
    if !target.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(PatchFault::NotANumber { path: path.excerpt() }.into());
    }
    let sum = sum(target, by).ok_or_else(|| PatchFault::SumOutOfRange { path: path.excerpt() })?;
    text.splice(item.value.clone(), sum);
    Ok(())
}

/// Adds two numbers as they are spelled: whole numbers exactly while they fit 64 bits, everything else as doubles.
fn sum(target: &str, by: &str) -> Option<Vec<u8>> {
    let whole = |text: &str| text.parse::<i64>().ok();
    if let Some(sum) = whole(target).zip(whole(by)).and_then(|(a, b)| a.checked_add(b)) {
        return Some(sum.to_string().into_bytes());
    }
    let double = target.parse::<f64>().ok()? + by.parse::<f64>().ok()?;
    let mut printed = Vec::new();
    write_number(double, &mut printed);
    double.is_finite().then_some(printed)
}

fn relocate(text: &mut Vec<u8>, from: &Pointer, path: &Pointer) -> Result<(), EditEnd> {
    if path.is_inside(from) {
        return Err(PatchFault::MoveIntoItself { path: from.excerpt() }.into());
    }
    if path == from {
        let place = locate(text, from, "Given")?;
        place.existing(from, || PatchFault::RemoveAbsent { path: from.excerpt() })?;
        return Ok(());
    }
    let value = take(text, from)?;
    add(text, path, &value, "Given")
}

fn replace_fault(path: &Pointer, earlier: &[PatchOperation]) -> PatchFault {
    let removed = earlier.iter().any(|operation| match operation {
        PatchOperation::Remove { path: gone } | PatchOperation::Move { from: gone, .. } => gone == path,
        _ => false,
    });
    let path = path.excerpt();
    if removed { PatchFault::ReplaceRemoved { path } } else { PatchFault::ReplaceAbsent { path } }
}

/// Where a path ends: in a container that exists, at an item or where one can be appended.
struct PatchTarget {
    is_array: bool,
    search: MemberSearch,
}

impl PatchTarget {
    /// The item at the end of a path that must lead to one.
    fn existing(self, path: &Pointer, absent: impl FnOnce() -> PatchFault) -> Result<Item, EditEnd> {
        match self.search {
            MemberSearch::Found(item) => Ok(item),
            MemberSearch::Absent { .. } if self.is_array => {
                Err(PatchFault::IndexOutOfBounds { index: excerpt(path.last()) }.into())
            }
            MemberSearch::Absent { .. } => Err(absent().into()),
        }
    }

    /// Writes a value over the item, or as the last one of the container.
    fn put(self, text: &mut Vec<u8>, path: &Pointer, value: &[u8]) {
        let (close, count) = match self.search {
            MemberSearch::Found(item) => {
                text.splice(item.value, value.iter().copied());
                return;
            }
            MemberSearch::Absent { close, count } => (close, count),
        };
        let mut item = Vec::with_capacity(value.len() + path.last().len() + 4);
        if count > 0 {
            item.push(b',');
        }
        if !self.is_array {
            write_string(path.last(), &mut item);
            item.push(b':');
        }
        item.extend_from_slice(value);
        text.splice(close..close, item);
    }
}

/// Walks along a path. In arrays the one position that does not exist but may follow is the end.
fn locate(text: &[u8], path: &Pointer, operation: &'static str) -> Result<PatchTarget, EditEnd> {
    let no_parent = |beyond: &str| PatchFault::NoParent { operation, beyond: excerpt(beyond) };
    let out_of_bounds = |segment: &str| PatchFault::IndexOutOfBounds { index: excerpt(segment) };
    let (mut at, mut before) = (0, "");
    for segment in path.parents() {
        let search = match text.get(at) {
            Some(b'{') => scan::member(text, at, segment),
            Some(b'[') => match position(segment) {
                ArrayPlace::At(index) => scan::element(text, at, Some(index)),
                ArrayPlace::End | ArrayPlace::None => return Err(out_of_bounds(segment).into()),
            },
            _ => return Err(no_parent(before).into()),
        };
        at = match (search.ok_or(EditEnd::Damaged)?, text[at]) {
            (MemberSearch::Found(item), _) => item.value.start,
            (MemberSearch::Absent { .. }, b'{') => return Err(no_parent(segment).into()),
            (MemberSearch::Absent { .. }, _) => return Err(out_of_bounds(segment).into()),
        };
        before = segment;
    }
    let last = path.last();
    match text.get(at) {
        Some(b'{') => {
            let search = scan::member(text, at, last).ok_or(EditEnd::Damaged)?;
            Ok(PatchTarget { is_array: false, search })
        }
        Some(b'[') => {
            let index = match position(last) {
                ArrayPlace::At(index) => Some(index),
                ArrayPlace::End => None,
                ArrayPlace::None => return Err(out_of_bounds(last).into()),
            };
            match scan::element(text, at, index).ok_or(EditEnd::Damaged)? {
                MemberSearch::Absent { count, .. } if index.is_some_and(|index| index > count) => {
                    Err(out_of_bounds(last).into())
                }
                search => Ok(PatchTarget { is_array: true, search }),
            }
        }
        _ => Err(no_parent(before).into()),
    }
}

/// What a part of a path means in an array.
enum ArrayPlace {
    At(usize),
    End,
    None,
}

fn position(segment: &str) -> ArrayPlace {
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = segment.len() > 1 && segment.starts_with('0');
    match segment {
        "-" => ArrayPlace::End,
        // A number beyond the type is a position all the same, beyond every array.
        _ if is_number && !has_leading_zero => ArrayPlace::At(segment.parse().unwrap_or(usize::MAX)),
        _ => ArrayPlace::None,
    }
}

/// A piece of client text that is short enough to repeat in a message.
fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
