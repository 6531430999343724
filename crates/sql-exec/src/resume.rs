//! Where a query goes on: the content of a continuation token, as bytes.
//!
//! Small and fixed in form: `kind (1) | rows given so far (8) | rows skipped so far (8)`, if the kind has its top bit the
//! number of a kept result (8), then the position. Sort keys
//! that are too long for a token are cut (`long_key`).

use crate::long_key::LongKey;
use astrarium_catalog::container::Container;
use astrarium_store::{FeedError, FeedPosition, FeedScope, Floors};
use astrarium_value::Value;
use astrarium_value::json::seek;
use bytes::Bytes;

/// Longest sort key that a token carries.
pub(crate) const KEY_BYTES_MAX: usize = 500;

/// Set in the kind if a result is kept.
const KEPT: u8 = 0x80;

/// Where a query goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// Rows given by the pages before.
    pub given: u64,
    /// Rows skipped for OFFSET by the pages before.
    pub skipped: u64,
    /// The place.
    pub place: ResumePlace,
    /// The number of the result that is kept for the next pages; 0 if none is.
    pub kept: u64,
}

/// A place in a query's rows.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumePlace {
    /// After a document of the feed; and if the rows of the next one were given in part, where in it.
    Stream(Option<FeedPosition>, Option<PartialDocument>),
    /// After a row that has this number and index, in an order by those.
    Row(u64, u32),
    /// After a row with these sort keys, or of a document with them that is not there.
    Key(Vec<Value>, u64, u32),
    /// After a row whose sort keys are too long to keep.
    LongKey(LongKey),
    /// After so many rows of a ranking.
    Count,
}

/// Where a page ended among the rows of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialDocument {
    /// The document: if it is gone, the rows of the next one are all to be given.
    pub number: u64,
    /// The first row that was not given: the position in each of the query's sources.
    pub row: Vec<u32>,
}

impl Resume {
    /// The same place in the ranges that a container has now.
    pub fn resolved(mut self, container: &Container, scope: &FeedScope) -> Result<Resume, FeedError> {
        if let ResumePlace::Stream(Some(position), partial) = self.place {
            self.place = ResumePlace::Stream(Some(position.resolved(container, scope)?), partial);
        }
        Ok(self)
    }

    /// The bytes of a token.
    pub fn encode(&self) -> Vec<u8> {
        let kind = match &self.place {
            ResumePlace::Stream(None, _) => 0,
            ResumePlace::Stream(Some(FeedPosition::Number { .. }), _) => 1,
            ResumePlace::Stream(Some(FeedPosition::Within { .. }), _) => 2,
            ResumePlace::Stream(Some(FeedPosition::Key { .. }), _) => 3,
            ResumePlace::Row(..) => 4,
            ResumePlace::Key(..) => 5,
            ResumePlace::Count => 6,
            // 7 was the same with less of the keys.
            ResumePlace::LongKey(_) => 8,
        };
        let mut bytes = vec![if self.kept == 0 { kind } else { kind | KEPT }];
        bytes.extend(self.given.to_be_bytes());
        bytes.extend(self.skipped.to_be_bytes());
        if self.kept != 0 {
            bytes.extend(self.kept.to_be_bytes());
        }
        match &self.place {
            ResumePlace::Stream(position, partial) => {
                push_partial(&mut bytes, partial.as_ref());
                match position {
                    None => {}
                    Some(
                        FeedPosition::Number { range_id, number, floors }
                        | FeedPosition::Within { range_id, number, floors },
                    ) => {
                        for (range_id, number) in [(*range_id, *number)].into_iter().chain(floors.iter()) {
                            bytes.extend(range_id.to_be_bytes());
                            bytes.extend(number.to_be_bytes());
                        }
                    }
                    Some(FeedPosition::Key { range_id, suffix }) => {
                        bytes.extend(range_id.to_be_bytes());
                        bytes.extend_from_slice(suffix);
                    }
                }
            }
            ResumePlace::Row(number, index) => push_row(&mut bytes, *number, *index),
            ResumePlace::Key(keys, number, index) => {
                push_row(&mut bytes, *number, *index);
                push_keys(&mut bytes, keys);
            }
            ResumePlace::LongKey(long) => long.push(&mut bytes),
            ResumePlace::Count => {}
        }
        bytes
    }

    /// Reads the bytes of a token.
    pub fn decode(bytes: &[u8]) -> Option<Resume> {
        let (&kind, rest) = bytes.split_first()?;
        let (given, rest) = take_u64(rest)?;
        let (skipped, rest) = take_u64(rest)?;
        let (kept, rest) = if kind & KEPT == 0 { (0, rest) } else { take_u64(rest)? };
        let kind = kind & !KEPT;
        let place = match kind {
            0..=3 => {
                let (partial, rest) = take_partial(rest)?;
                let position = if kind == 0 {
                    rest.is_empty().then_some(())?;
                    None
                } else {
                    Some(stream_position(kind, rest)?)
                };
                ResumePlace::Stream(position, partial)
            }
            4 | 5 => {
                let ((number, index), rest) = take_row(rest)?;
                match (kind, rest) {
                    (4, []) => ResumePlace::Row(number, index),
                    (5, keys) => ResumePlace::Key(read_keys(keys)?, number, index),
                    _ => return None,
                }
            }
            8 => ResumePlace::LongKey(LongKey::read(rest)?),
            6 if rest.is_empty() => ResumePlace::Count,
            _ => return None,
        };
        Some(Resume { given, skipped, place, kept })
    }
}

fn stream_position(kind: u8, rest: &[u8]) -> Option<FeedPosition> {
    let (range_id, rest) = take_u32(rest)?;
    if kind == 3 {
        return Some(FeedPosition::Key { range_id, suffix: Bytes::copy_from_slice(rest) });
    }
    let (number, mut rest) = take_u64(rest)?;
    let mut floors = Vec::new();
    while !rest.is_empty() {
        let (range_id, after) = take_u32(rest)?;
        let (number, after) = take_u64(after)?;
        floors.push((range_id, number));
        rest = after;
    }
    let floors = Floors::new(floors);
    Some(match kind {
        1 => FeedPosition::Number { range_id, number, floors },
        _ => FeedPosition::Within { range_id, number, floors },
    })
}

pub(crate) fn push_row(bytes: &mut Vec<u8>, number: u64, index: u32) {
    bytes.extend(number.to_be_bytes());
    bytes.extend(index.to_be_bytes());
}

/// Sort keys as a JSON array in which an array holds each key, so that an undefined one is `[]`.
pub(crate) fn push_keys(bytes: &mut Vec<u8>, keys: &[Value]) {
    bytes.push(b'[');
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        bytes.push(b'[');
        key.write_json(bytes);
        bytes.push(b']');
    }
    bytes.push(b']');
}

fn read_keys(bytes: &[u8]) -> Option<Vec<Value>> {
    let Value::Array(keys) = seek::value(bytes) else { return None };
    keys.into_iter()
        .map(|key| match key {
            Value::Array(mut held) if held.len() <= 1 => Some(held.pop().unwrap_or_default()),
            _ => None,
        })
        .collect()
}

/// Whether sort keys fit into a token.
pub(crate) fn keys_fit(keys: &[Value]) -> bool {
    let mut bytes = Vec::new();
    push_keys(&mut bytes, keys);
    bytes.len() <= KEY_BYTES_MAX
}

/// How many positions the row has, with none for no document; the positions, the document's number.
fn push_partial(bytes: &mut Vec<u8>, partial: Option<&PartialDocument>) {
    let Some(PartialDocument { number, row }) = partial else { return bytes.push(0) };
    bytes.push(row.len() as u8);
    for index in row {
        bytes.extend(index.to_be_bytes());
    }
    bytes.extend(number.to_be_bytes());
}

fn take_partial(bytes: &[u8]) -> Option<(Option<PartialDocument>, &[u8])> {
    let (&count, mut rest) = bytes.split_first()?;
    if count == 0 {
        return Some((None, rest));
    }
    let mut row = Vec::new();
    for _ in 0..count {
        let (index, after) = take_u32(rest)?;
        row.push(index);
        rest = after;
    }
    let (number, rest) = take_u64(rest)?;
    Some((Some(PartialDocument { number, row }), rest))
}

pub(crate) fn take_row(bytes: &[u8]) -> Option<((u64, u32), &[u8])> {
    let (number, rest) = take_u64(bytes)?;
    let (index, rest) = take_u32(rest)?;
    Some(((number, index), rest))
}

pub(crate) fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

pub(crate) fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}
