//! Patch: up to ten small changes of one document, all of them or none.
//!
//! In: the minimal text of a stored document and [`Operation`]s. Out: the new minimal text, or a [`PatchError`] that
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

pub use operation::{Operation, check_targets, parse_operations};
pub use pointer::{Pointer, PointerError};

use crate::json::{write_number, write_string};
use scan::{Item, Search};

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
    Operation {
        /// Which one, counted from 1.
        index: usize,
        /// What does not fit.
        fault: Fault,
    },
    /// The document is not minimal JSON. Ours: what is stored is damaged.
    #[error("the stored document is not minimal JSON")]
    Document,
}

/// Why an operation does not fit a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
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
        "{operation} Operation can only create a child object of an existing node(array or object) and cannot create \
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
pub fn apply(document: &[u8], operations: &[Operation]) -> Result<Vec<u8>, PatchError> {
    let added: usize = operations.iter().map(Operation::value_length).sum();
    let mut text = Vec::with_capacity(document.len() + added);
    text.extend_from_slice(document);
    for (done, operation) in operations.iter().enumerate() {
        edit(&mut text, operation, &operations[..done]).map_err(|stop| match stop {
            Stop::Fault(fault) => PatchError::Operation { index: done + 1, fault },
            Stop::Damaged => PatchError::Document,
        })?;
    }
    Ok(text)
}

/// Why an edit ends without a change.
enum Stop {
    Fault(Fault),
    Damaged,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

fn edit(text: &mut Vec<u8>, operation: &Operation, earlier: &[Operation]) -> Result<(), Stop> {
    match operation {
        Operation::Add { path, value } => add(text, path, value.as_bytes(), "Add"),
        Operation::Set { path, value } => {
            let place = locate(text, path, "Given")?;
            place.put(text, path, value.as_bytes());
            Ok(())
        }
        Operation::Replace { path, value } => {
            let place = locate(text, path, "Given")?;
            let item = place.existing(path, || replace_fault(path, earlier))?;
            text.splice(item.value, value.bytes());
            Ok(())
        }
        Operation::Remove { path } => take(text, path).map(drop),
        Operation::Increment { path, by } => increment(text, path, by),
        Operation::Move { from, path } => relocate(text, from, path),
    }
}

fn add(text: &mut Vec<u8>, path: &Pointer, value: &[u8], operation: &'static str) -> Result<(), Stop> {
    let place = locate(text, path, operation)?;
    match place.search {
        Search::Found(item) if place.is_array => {
            text.splice(item.start..item.start, value.iter().copied().chain([b',']));
        }
        _ => place.put(text, path, value),
    }
    Ok(())
}

/// Removes a value with the comma that belongs to it, and gives it.
fn take(text: &mut Vec<u8>, path: &Pointer) -> Result<Vec<u8>, Stop> {
    let place = locate(text, path, "Given")?;
    let item = place.existing(path, || Fault::RemoveAbsent { path: path.excerpt() })?;
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

fn increment(text: &mut Vec<u8>, path: &Pointer, by: &str) -> Result<(), Stop> {
    let place = locate(text, path, "Given")?;
    let Search::Found(item) = &place.search else {
        place.put(text, path, by.as_bytes());
        return Ok(());
    };
    let target = std::str::from_utf8(&text[item.value.clone()]).map_err(|_| Stop::Damaged)?;
    if !target.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(Fault::NotANumber { path: path.excerpt() }.into());
    }
    let sum = sum(target, by).ok_or_else(|| Fault::SumOutOfRange { path: path.excerpt() })?;
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

fn relocate(text: &mut Vec<u8>, from: &Pointer, path: &Pointer) -> Result<(), Stop> {
    if path.is_inside(from) {
        return Err(Fault::MoveIntoItself { path: from.excerpt() }.into());
    }
    if path == from {
        let place = locate(text, from, "Given")?;
        place.existing(from, || Fault::RemoveAbsent { path: from.excerpt() })?;
        return Ok(());
    }
    let value = take(text, from)?;
    add(text, path, &value, "Given")
}

fn replace_fault(path: &Pointer, earlier: &[Operation]) -> Fault {
    let removed = earlier.iter().any(|operation| match operation {
        Operation::Remove { path: gone } | Operation::Move { from: gone, .. } => gone == path,
        _ => false,
    });
    let path = path.excerpt();
    if removed { Fault::ReplaceRemoved { path } } else { Fault::ReplaceAbsent { path } }
}

/// Where a path ends: in a container that exists, at an item or where one can be appended.
struct Place {
    is_array: bool,
    search: Search,
}

impl Place {
    /// The item at the end of a path that must lead to one.
    fn existing(self, path: &Pointer, absent: impl FnOnce() -> Fault) -> Result<Item, Stop> {
        match self.search {
            Search::Found(item) => Ok(item),
            Search::Absent { .. } if self.is_array => {
                Err(Fault::IndexOutOfBounds { index: excerpt(path.last()) }.into())
            }
            Search::Absent { .. } => Err(absent().into()),
        }
    }

    /// Writes a value over the item, or as the last one of the container.
    fn put(self, text: &mut Vec<u8>, path: &Pointer, value: &[u8]) {
        let (close, count) = match self.search {
            Search::Found(item) => {
                text.splice(item.value, value.iter().copied());
                return;
            }
            Search::Absent { close, count } => (close, count),
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
fn locate(text: &[u8], path: &Pointer, operation: &'static str) -> Result<Place, Stop> {
    let no_parent = |beyond: &str| Fault::NoParent { operation, beyond: excerpt(beyond) };
    let out_of_bounds = |segment: &str| Fault::IndexOutOfBounds { index: excerpt(segment) };
    let (mut at, mut before) = (0, "");
    for segment in path.parents() {
        let search = match text.get(at) {
            Some(b'{') => scan::member(text, at, segment),
            Some(b'[') => match position(segment) {
                Position::At(index) => scan::element(text, at, Some(index)),
                Position::End | Position::None => return Err(out_of_bounds(segment).into()),
            },
            _ => return Err(no_parent(before).into()),
        };
        at = match (search.ok_or(Stop::Damaged)?, text[at]) {
            (Search::Found(item), _) => item.value.start,
            (Search::Absent { .. }, b'{') => return Err(no_parent(segment).into()),
            (Search::Absent { .. }, _) => return Err(out_of_bounds(segment).into()),
        };
        before = segment;
    }
    let last = path.last();
    match text.get(at) {
        Some(b'{') => {
            let search = scan::member(text, at, last).ok_or(Stop::Damaged)?;
            Ok(Place { is_array: false, search })
        }
        Some(b'[') => {
            let index = match position(last) {
                Position::At(index) => Some(index),
                Position::End => None,
                Position::None => return Err(out_of_bounds(last).into()),
            };
            match scan::element(text, at, index).ok_or(Stop::Damaged)? {
                Search::Absent { count, .. } if index.is_some_and(|index| index > count) => {
                    Err(out_of_bounds(last).into())
                }
                search => Ok(Place { is_array: true, search }),
            }
        }
        _ => Err(no_parent(before).into()),
    }
}

/// What a part of a path means in an array.
enum Position {
    At(usize),
    End,
    None,
}

fn position(segment: &str) -> Position {
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = segment.len() > 1 && segment.starts_with('0');
    match segment {
        "-" => Position::End,
        // A number beyond the type is a position all the same, beyond every array.
        _ if is_number && !has_leading_zero => Position::At(segment.parse().unwrap_or(usize::MAX)),
        _ => Position::None,
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
