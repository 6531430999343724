//! Where a query's documents come from: a container's range of keys, or values at hand.

use crate::access::{Found, PageAccess};
use crate::error::ExecuteError;
use crate::frame::Datum;
use astrarium_catalog::container::Range;
use astrarium_env::Instant;
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_kv::Direction;
use astrarium_sql_plan::physical::IndexPlan;
use astrarium_store::{
    DocumentMemory, FeedPosition, FeedReader, FeedScope, Floors, KeySlice, PageLimit, UnreadDocuments,
};
use astrarium_value::Value;
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
            if reader.numbers(range, number, Direction::Forward, 1).await?.first() != Some(&number) {
                continue;
            }
            let mut unread = reader.find_documents(range, scope, &[number]).await?;
            let mut memory = reader.document_memory();
            if let Some(body) = reader.read_documents(range, &mut unread, &mut memory).await?.pop() {
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
    /// Documents of the next step: as many as a page needs rows, then more, for a filter may leave few.
    step: usize,
    /// Where the next step starts; the beginning if there is none.
    position: Option<FeedPosition>,
    at_end: bool,
    /// What finds documents in the range of the page, unless all are read.
    found: Option<Found>,
    /// Documents that were found and are to be read next, and where to go on after them.
    unread: UnreadDocuments,
    after_unread: Option<FeedPosition>,
    /// The memory of the documents of the last step.
    memory: Option<DocumentMemory>,
    /// What was done since that was taken over.
    pub(crate) work: AccessWork,
}

/// What the ways to documents did.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessWork {
    /// Documents that were read.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries of indexes that were read.
    pub entries: u64,
    /// How long documents were looked for in indexes, on all threads together.
    pub lookup: Duration,
    /// How long they were read.
    pub load: Duration,
    /// What of it is priced.
    pub priced: PricedWork,
    /// What of that is of documents that gave no row.
    pub fruitless: PricedWork,
}

/// What was done that clients pay for, whatever way it was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PricedWork {
    /// Key ranges that were begun.
    pub ranges: u64,
    /// Values and ranges of values that were looked up in each of them.
    pub seeks: u64,
    /// Entries of paths all of whose entries were read.
    pub scanned_entries: u64,
    /// Documents that meet what indexes tell of the filter.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl PricedWork {
    /// One document.
    pub(crate) fn document(bytes: u64) -> PricedWork {
        PricedWork { documents: 1, bytes, ..PricedWork::default() }
    }

    /// Adds what another part did.
    pub fn add(&mut self, other: PricedWork) {
        self.ranges += other.ranges;
        self.seeks = self.seeks.max(other.seeks);
        self.scanned_entries += other.scanned_entries;
        self.documents += other.documents;
        self.bytes += other.bytes;
    }
}

impl AccessWork {
    /// Adds what another part did.
    pub fn add(&mut self, other: AccessWork) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.entries += other.entries;
        self.lookup += other.lookup;
        self.load += other.load;
        self.priced.add(other.priced);
        self.fruitless.add(other.fruitless);
    }

    /// Adds what a document costs, and whether it gave no row.
    pub(crate) fn price(&mut self, (document, is_fruitless): (PricedWork, bool)) {
        self.priced.add(document);
        if is_fruitless {
            self.fruitless.add(document);
        }
    }
}

impl<'a> Reader<'a> {
    /// Starts after a position, for a page that needs so many rows.
    pub(crate) fn new(
        input: &'a Input,
        found: Option<Found>,
        position: Option<FeedPosition>,
        rows: u64,
    ) -> Reader<'a> {
        let step = usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, STEP.count_max);
        let entries = found.as_ref().map_or(0, |found| found.candidates.entries);
        let work = AccessWork { entries, ..AccessWork::default() };
        let (unread, after_unread, memory) = (UnreadDocuments::default(), None, None);
        Reader { input, step, position, at_end: false, found, unread, after_unread, memory, work }
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

    /// The next documents; none at the end. Those of the step before are not needed any more.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<ReadDocument>>, ExecuteError> {
        if self.at_end {
            return Ok(None);
        }
        let position = self.position.take();
        self.at_end = true;
        if let Some(memory) = &mut self.memory {
            memory.keep(0);
        }
        match self.input {
            Input::Nothing => Ok(Some(vec![ReadDocument { datum: Datum::Empty, after: None }])),
            Input::Values(values) => Ok(Some(values_after(values, position.as_ref()))),
            Input::Container(reader, scope, _) => {
                if self.found.is_some() {
                    return self.by_index(reader, scope, position.as_ref()).await.map(Some);
                }
                let limit = PageLimit { count_max: self.step, ..STEP };
                self.step = (self.step * 4).min(STEP.count_max);
                let began = Instant::now();
                let page = reader.page(scope, position, limit).await?;
                self.work.load += began.elapsed();
                self.at_end = page.resume.is_none();
                self.position = page.resume;
                self.memory = Some(page.memory);
                Ok(Some(incoming(reader, page.documents)))
            }
        }
    }

    /// The next documents that an index finds.
    async fn by_index(
        &mut self,
        reader: &FeedReader,
        scope: &FeedScope,
        position: Option<&FeedPosition>,
    ) -> Result<Vec<ReadDocument>, ExecuteError> {
        let (ranges, keyed) = (reader.ranges(scope)?, scope.is_keyed());
        let id = position.map_or(ranges[0].id, FeedPosition::range_id);
        let place = ranges.iter().position(|range| range.id == id);
        let (Some(found), Some(index)) = (&mut self.found, place) else {
            return Err(ExecuteError::ForeignPosition);
        };
        let range = ranges[index];
        let floors = position.map(FeedPosition::floors).unwrap_or_default();
        let at = |number: u64| {
            let floors = floors.clone();
            if keyed {
                FeedPosition::Within { range_id: id, number, floors }
            } else {
                FeedPosition::Number { range_id: id, number, floors }
            }
        };
        if self.unread.is_empty() {
            let began = Instant::now();
            let first = number_before(scope, position).unwrap_or_default().saturating_add(1);
            let read_before = found.candidates.entries;
            let wanted = self.step;
            self.step = (self.step * 4).min(STEP.count_max);
            let numbers = found.candidates.numbers(&found.finder, first, wanted).await?;
            self.work.entries += found.candidates.entries - read_before;
            self.work.lookup += began.elapsed();
            self.after_unread = match numbers.last() {
                Some(last) if numbers.len() >= wanted => Some(at(*last)),
                _ => ranges.get(index + 1).map(|next| FeedPosition::start_of(next, &floors, keyed)),
            };
            self.unread = reader.find_documents(range, scope, &numbers).await?;
        }
        let began = Instant::now();
        let memory = self.memory.get_or_insert_with(|| reader.document_memory());
        let bodies = reader.read_documents(range, &mut self.unread, memory).await?;
        self.work.load += began.elapsed();
        self.position = match self.unread.last_read() {
            Some(last) if !self.unread.is_empty() => Some(at(last)),
            _ => self.after_unread.take(),
        };
        self.at_end = self.position.is_none();
        let documents = bodies.into_iter().map(|body| (at(body.header.number), body)).collect();
        Ok(incoming(reader, documents))
    }
}

/// The number of the document before a position in order of insertion; none in the middle of a walk in order of keys.
pub(crate) fn number_before(scope: &FeedScope, position: Option<&FeedPosition>) -> Option<u64> {
    let keyed = scope.is_keyed();
    match position {
        None => Some(0),
        Some(FeedPosition::Number { number, .. }) if !keyed => Some(*number),
        Some(FeedPosition::Within { number, .. }) if keyed => Some(*number),
        Some(FeedPosition::Key { suffix, .. }) if suffix.is_empty() => Some(0),
        Some(_) => None,
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
            after: Some(FeedPosition::Number { range_id: 0, number, floors: Floors::default() }),
        })
        .collect()
}

/// Reads documents in whatever order is cheapest, step by step.
pub(crate) struct Cursor {
    reader: FeedReader,
    scope: FeedScope,
    pieces: VecDeque<Piece>,
    /// The memory of the documents that were read last.
    memory: DocumentMemory,
}

/// Documents that wait to be read.
enum Piece {
    /// All of a slice.
    Slice(KeySlice),
    /// Those of a range that were found, and then others by number.
    Numbers(Range, UnreadDocuments, std::vec::IntoIter<u64>),
}

/// Numbers of documents read at once.
const NUMBERS_STEP: usize = 256;

impl Cursor {
    /// All documents of a scope.
    pub(crate) fn of_all(reader: &FeedReader, scope: &FeedScope) -> Result<Cursor, ExecuteError> {
        let ranges = reader.ranges(scope)?.into_iter();
        let pieces = ranges.map(|range| Piece::Slice(reader.slice(scope, range))).collect();
        Ok(Cursor::of_pieces(reader, scope, pieces))
    }

    fn of_pieces(reader: &FeedReader, scope: &FeedScope, pieces: VecDeque<Piece>) -> Cursor {
        Cursor { reader: reader.clone(), scope: scope.clone(), pieces, memory: reader.document_memory() }
    }

    /// The documents of a scope by the ways that were chosen, and what was done for that.
    pub(crate) async fn open(
        reader: &FeedReader,
        scope: &FeedScope,
        access: &mut PageAccess<'_, '_>,
    ) -> Result<(Cursor, AccessWork), ExecuteError> {
        if access.physical.accesses.is_empty() {
            return Ok((Cursor::of_all(reader, scope)?, AccessWork::default()));
        }
        let began = Instant::now();
        let mut pieces = VecDeque::new();
        let mut work = AccessWork::default();
        for (index, planned) in access.ways() {
            pieces.push_back(match index.found(planned).await? {
                Some(mut found) => {
                    let numbers = found.candidates.numbers(&found.finder, 0, usize::MAX).await?;
                    work.entries += found.candidates.entries;
                    Piece::Numbers(index.range.clone(), UnreadDocuments::default(), numbers.into_iter())
                }
                None => Piece::Slice(reader.slice(scope, index.range)),
            });
        }
        work.lookup = began.elapsed();
        Ok((Cursor::of_pieces(reader, scope, pieces), work))
    }

    /// The container of the documents.
    pub(crate) fn container(&self) -> Rid {
        self.reader.container.rid()
    }

    /// The next documents; `None` at the end. Those before are not needed any more.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Body>>, ExecuteError> {
        self.memory.keep(0);
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                Piece::Slice(slice) => {
                    if let Some(bodies) = self.reader.next_of(slice, &mut self.memory).await? {
                        return Ok(Some(bodies));
                    }
                }
                Piece::Numbers(range, unread, numbers) => {
                    if unread.is_empty() && !numbers.as_slice().is_empty() {
                        let step: Vec<u64> = numbers.take(NUMBERS_STEP).collect();
                        *unread = self.reader.find_documents(range, &self.scope, &step).await?;
                    }
                    if !unread.is_empty() {
                        return Ok(Some(self.reader.read_documents(range, unread, &mut self.memory).await?));
                    }
                    if !numbers.as_slice().is_empty() {
                        continue;
                    }
                }
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
                Piece::Numbers(range, unread, numbers) => {
                    let numbers: Vec<u64> = unread.into_numbers().chain(numbers).collect();
                    let chunks = numbers.chunks(numbers.len().div_ceil(per_piece).max(NUMBERS_STEP));
                    let part = |chunk: &[u64]| {
                        let numbers = Vec::from(chunk).into_iter();
                        Piece::Numbers(range.clone(), UnreadDocuments::default(), numbers)
                    };
                    parts.extend(chunks.map(part));
                }
            }
        }
        let cursor = |piece| Cursor::of_pieces(&self.reader, &self.scope, VecDeque::from([piece]));
        Ok(parts.into_iter().map(cursor).collect())
    }
}
