//! Where a query's documents come from: a container's range of keys, or values at hand.

use crate::access::{Found, RangeSearch};
use crate::budget::Gauge;
use crate::error::ExecuteError;
use crate::frame::Datum;
use astrarium_catalog::container::Range;
use astrarium_env::Instant;
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_kv::Direction;
use astrarium_sql_plan::physical::{IndexPlan, IndexUse};
use astrarium_store::{FeedPosition, FeedReader, FeedScope, KeySlice, PageLimit};
use astrarium_value::Value;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What a query reads.
pub enum Input {
    /// Documents of a container, and what its indexes could do.
    Container(FeedReader, FeedScope, Option<Arc<IndexPlan>>),
    /// Values at hand, such as the resources of a catalog feed.
    Values(Arc<[Value]>),
    /// One empty row: a query without FROM.
    Nothing,
}

impl Input {
    /// The document with a number, if it is still there.
    pub(crate) async fn document(&self, number: u64) -> Result<Option<Datum>, ExecuteError> {
        let (reader, scope) = match self {
            Input::Container(reader, scope, _) => (reader, scope),
            Input::Values(values) => {
                let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                return Ok(place.and_then(|place| values.get(place)).cloned().map(Datum::Value));
            }
            Input::Nothing => return Ok(None),
        };
        for range in reader.ranges(scope)? {
            if reader.numbers(range, number, Direction::Forward, 1).await?.first() == Some(&number)
                && let Some(body) = reader.by_numbers(range, scope, &[number]).await?.pop()
            {
                return Ok(Some(Datum::Document(reader.container.rid(), body)));
            }
        }
        Ok(None)
    }
}

/// Documents read at once in order of insertion.
const STEP: PageLimit = PageLimit { count_max: 256, bytes_max: 4 << 20 };

/// A document on its way into a query.
pub(crate) struct ReadDocument {
    pub(crate) datum: Datum,
    /// Where to go on after it.
    pub(crate) after: Option<FeedPosition>,
}

impl ReadDocument {
    /// What the document is known by: its number in the container, or its place among the values.
    pub(crate) fn number(&self) -> u64 {
        match (&self.datum, &self.after) {
            (Datum::Document(_, body), _) => body.header.number,
            (_, Some(FeedPosition::Number { number, .. })) => *number,
            _ => 0,
        }
    }
}

/// Reads documents in order of insertion, step by step.
pub(crate) struct Reader<'a> {
    input: &'a Input,
    gauge: &'a Gauge,
    /// Rows that a page has at most.
    row_count: usize,
    /// Documents of the next step: as many as a page has rows, then more, for a filter may leave few.
    step: usize,
    index_use: IndexUse,
    /// Where the next step starts; the beginning if there is none.
    position: Option<FeedPosition>,
    at_end: bool,
    /// What an index finds in the range with this id.
    found: Option<(u32, Option<Found>)>,
    /// Entries of indexes that were read.
    pub(crate) entries: u64,
    /// How long that took.
    pub(crate) lookup: Duration,
    /// How long documents were read.
    pub(crate) load: Duration,
}

/// What was read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
    /// Entries of indexes.
    pub(crate) entries: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.entries += other.entries;
    }
}

impl<'a> Reader<'a> {
    /// Starts after a position.
    pub(crate) fn new(input: &'a Input, gauge: &'a Gauge, position: Option<FeedPosition>) -> Reader<'a> {
        let (row_count, index_use) = (gauge.limits.row_count_max, gauge.limits.index_use);
        let step = row_count.clamp(1, STEP.count_max);
        Reader {
            input,
            gauge,
            row_count,
            step,
            index_use,
            position,
            at_end: false,
            found: None,
            entries: 0,
            lookup: Duration::ZERO,
            load: Duration::ZERO,
        }
    }

    /// The range that is read first, if there are several.
    pub(crate) fn first_range_id(&self) -> Result<Option<u32>, ExecuteError> {
        let Input::Container(reader, scope, _) = self.input else { return Ok(None) };
        let first = || Ok(reader.ranges(scope)?.first().map(|range| range.id));
        self.position.as_ref().map_or_else(first, |position| Ok(Some(position.range_id())))
    }

    /// Where the next step starts, if there is one.
    pub(crate) fn position(&self) -> Option<&FeedPosition> {
        self.position.as_ref()
    }

    /// The next documents; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<ReadDocument>>, ExecuteError> {
        if self.at_end {
            return Ok(None);
        }
        let position = self.position.take();
        self.at_end = true;
        match self.input {
            Input::Nothing => Ok(Some(vec![ReadDocument { datum: Datum::Empty, after: None }])),
            Input::Values(values) => Ok(Some(values_after(values, position.as_ref()))),
            Input::Container(reader, scope, index) => {
                if let Some(plan) = index
                    && let Some(documents) = self.by_index(plan, reader, scope, position.as_ref()).await?
                {
                    return Ok(Some(documents));
                }
                let limit = PageLimit { count_max: self.step, ..STEP };
                self.step = (self.step * 4).min(STEP.count_max);
                let began = Instant::now();
                let page = reader.page(scope, position, limit).await?;
                self.load += began.elapsed();
                self.at_end = page.resume.is_none();
                self.position = page.resume;
                Ok(Some(incoming(reader, page.documents)))
            }
        }
    }

    /// The next documents that an index finds; none if it is not used here.
    async fn by_index(
        &mut self,
        plan: &IndexPlan,
        reader: &FeedReader,
        scope: &FeedScope,
        position: Option<&FeedPosition>,
    ) -> Result<Option<Vec<ReadDocument>>, ExecuteError> {
        let ranges = reader.ranges(scope)?;
        let keyed = matches!(scope, FeedScope::Partition(_) | FeedScope::Slice(_));
        let after = match position {
            None => 0,
            Some(FeedPosition::Number { number, .. }) if !keyed => *number,
            Some(FeedPosition::Within { number, .. }) if keyed => *number,
            Some(FeedPosition::Key { suffix, .. }) if suffix.is_empty() => 0,
            // In the middle of a walk in order of keys.
            Some(_) => return Ok(None),
        };
        let id = position.map_or(ranges[0].id, FeedPosition::range_id);
        let Some(index) = ranges.iter().position(|range| range.id == id) else { return Ok(None) };
        let range = ranges[index];
        let began = Instant::now();
        if self.found.as_ref().is_none_or(|(known, _)| *known != id) {
            let search = RangeSearch { plan, reader, scope, index_use: self.index_use, gauge: self.gauge };
            let found = search.in_order(range, self.row_count).await?;
            self.entries += found.as_ref().map_or(0, |found| found.candidates.entries);
            self.found = Some((id, found));
        }
        let Some((_, Some(found))) = &mut self.found else { return Ok(None) };
        let first = after.saturating_add(1);
        let read_before = found.candidates.entries;
        let wanted = self.row_count.clamp(1, STEP.count_max);
        let numbers = found.candidates.numbers(&found.finder, first, wanted).await?;
        self.entries += found.candidates.entries - read_before;
        self.lookup += began.elapsed();
        let at = |number: u64| {
            if keyed {
                FeedPosition::Within { range_id: id, number }
            } else {
                FeedPosition::Number { range_id: id, number }
            }
        };
        self.position = match numbers.last() {
            Some(last) if numbers.len() >= wanted => Some(at(*last)),
            _ => ranges.get(index + 1).map(|next| {
                if keyed {
                    FeedPosition::Key { range_id: next.id, suffix: Bytes::new() }
                } else {
                    FeedPosition::Number { range_id: next.id, number: 0 }
                }
            }),
        };
        self.at_end = self.position.is_none();
        let began = Instant::now();
        let bodies = reader.by_numbers(range, scope, &numbers).await?;
        self.load += began.elapsed();
        let documents = bodies.into_iter().map(|body| (at(body.header.number), body)).collect();
        Ok(Some(incoming(reader, documents)))
    }
}

fn incoming(reader: &FeedReader, documents: Vec<(FeedPosition, Body)>) -> Vec<ReadDocument> {
    let container = reader.container.rid();
    let incoming =
        |(after, body)| ReadDocument { datum: Datum::Document(container, body), after: Some(after) };
    documents.into_iter().map(incoming).collect()
}

/// Values are numbered from 1 in their order.
fn values_after(values: &[Value], position: Option<&FeedPosition>) -> Vec<ReadDocument> {
    let after = match position {
        Some(FeedPosition::Number { number, .. }) => *number,
        _ => 0,
    };
    let numbered = values.iter().zip(1_u64..).filter(|(_, number)| *number > after);
    numbered
        .map(|(value, number)| ReadDocument {
            datum: Datum::Value(value.clone()),
            after: Some(FeedPosition::Number { range_id: 0, number }),
        })
        .collect()
}

/// Reads documents in whatever order is cheapest, step by step.
pub(crate) struct Cursor {
    reader: FeedReader,
    scope: FeedScope,
    pieces: VecDeque<Piece>,
}

/// Documents that wait to be read.
enum Piece {
    /// All of a slice.
    Slice(KeySlice),
    /// Those of a range, by number.
    Numbers(Range, Vec<u64>),
}

/// Numbers of documents read at once.
const NUMBERS_STEP: usize = 256;

impl Cursor {
    /// All documents of a scope, or those of them that an index finds; and how many entries were read for that.
    pub(crate) async fn open(
        reader: &FeedReader,
        scope: &FeedScope,
        index: Option<&IndexPlan>,
        index_use: IndexUse,
        gauge: &Gauge,
    ) -> Result<(Cursor, u64), ExecuteError> {
        let mut pieces = VecDeque::new();
        let mut entries = 0;
        for range in reader.ranges(scope)? {
            let found = match index {
                Some(plan) => RangeSearch { plan, reader, scope, index_use, gauge }.all(range).await?,
                None => None,
            };
            pieces.push_back(match found {
                Some(mut found) => {
                    let numbers = found.candidates.numbers(&found.finder, 0, usize::MAX).await?;
                    entries += found.candidates.entries;
                    Piece::Numbers(range.clone(), numbers)
                }
                None => Piece::Slice(reader.slice(scope, range)),
            });
        }
        Ok((Cursor { reader: reader.clone(), scope: scope.clone(), pieces }, entries))
    }

    /// The container of the documents.
    pub(crate) fn container(&self) -> Rid {
        self.reader.container.rid()
    }

    /// The next documents; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Body>>, ExecuteError> {
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                Piece::Slice(slice) => {
                    if let Some(bodies) = self.reader.next_of(slice).await? {
                        return Ok(Some(bodies));
                    }
                }
                Piece::Numbers(range, numbers) if !numbers.is_empty() => {
                    let rest = numbers.split_off(numbers.len().min(NUMBERS_STEP));
                    let step = std::mem::replace(numbers, rest);
                    return Ok(Some(self.reader.by_numbers(range, &self.scope, &step).await?));
                }
                Piece::Numbers(..) => {}
            }
            self.pieces.pop_front();
        }
        Ok(None)
    }

    /// What was not read yet, in parts that can be read at the same time: about so many, each piece at least one.
    pub(crate) async fn divide(self, count: usize) -> Result<Vec<Cursor>, ExecuteError> {
        let per_piece = count.div_ceil(self.pieces.len().max(1));
        let mut parts = Vec::new();
        for piece in self.pieces {
            match piece {
                Piece::Slice(slice) => {
                    parts.extend(self.reader.divide(slice, per_piece).await?.into_iter().map(Piece::Slice));
                }
                Piece::Numbers(range, numbers) => {
                    let chunks = numbers.chunks(numbers.len().div_ceil(per_piece).max(NUMBERS_STEP));
                    parts.extend(chunks.map(|chunk| Piece::Numbers(range.clone(), chunk.to_vec())));
                }
            }
        }
        let cursor = |piece: Piece| Cursor {
            reader: self.reader.clone(),
            scope: self.scope.clone(),
            pieces: VecDeque::from([piece]),
        };
        Ok(parts.into_iter().map(cursor).collect())
    }
}
