//! Where a query's documents come from: a container's range of keys, or values at hand.

use crate::frame::Datum;
use crate::page::ExecuteError;
use astrarium_keys::Rid;
use astrarium_store::{Documents, FeedPosition, FeedReader, FeedScope, KeySlice, PageLimit};
use astrarium_value::Value;
use std::collections::VecDeque;

/// What a query reads.
pub enum Input {
    /// Documents of a container.
    Container(FeedReader, FeedScope),
    /// Values at hand, such as the resources of a catalog feed.
    Values(Vec<Value>),
    /// One empty row: a query without FROM.
    Nothing,
}

/// Documents read at once in order of insertion.
const STEP: PageLimit = PageLimit { count_max: 256, bytes_max: 4 << 20 };

/// A document on its way into a query.
pub(crate) struct Incoming {
    pub(crate) datum: Datum,
    /// Where to go on after it.
    pub(crate) after: Option<FeedPosition>,
}

/// Reads documents in order of insertion, step by step.
pub(crate) struct Reader<'a> {
    input: &'a Input,
    /// Where the next step starts; the beginning if there is none.
    position: Option<FeedPosition>,
    at_end: bool,
    pub(crate) counts: Counts,
}

/// What was read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.documents += other.documents;
        self.bytes += other.bytes;
    }
}

impl<'a> Reader<'a> {
    /// Starts after a position.
    pub(crate) fn new(input: &'a Input, position: Option<FeedPosition>) -> Reader<'a> {
        Reader { input, position, at_end: false, counts: Counts::default() }
    }

    /// Whether everything was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// The next documents; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Incoming>>, ExecuteError> {
        if self.at_end {
            return Ok(None);
        }
        let position = self.position.take();
        self.at_end = true;
        match self.input {
            Input::Nothing => Ok(Some(vec![Incoming { datum: Datum::Empty, after: None }])),
            Input::Values(values) => Ok(Some(values_after(values, position.as_ref()))),
            Input::Container(reader, scope) => {
                let page = reader.page(scope, position, STEP).await?;
                self.at_end = page.resume.is_none();
                self.position = page.resume;
                self.counts.documents += page.documents.len() as u64;
                let container = reader.container.rid();
                let documents = page.documents.into_iter().map(|(after, body)| {
                    self.counts.bytes += body.text().len() as u64;
                    Incoming { datum: Datum::Document(container, body), after: Some(after) }
                });
                Ok(Some(documents.collect()))
            }
        }
    }
}

/// Values are numbered from 1 in their order.
fn values_after(values: &[Value], position: Option<&FeedPosition>) -> Vec<Incoming> {
    let after = match position {
        Some(FeedPosition::Number { number, .. }) => *number,
        _ => 0,
    };
    let numbered = values.iter().zip(1_u64..).filter(|(_, number)| *number > after);
    numbered
        .map(|(value, number)| Incoming {
            datum: Datum::Value(value.clone()),
            after: Some(FeedPosition::Number { range_id: 0, number }),
        })
        .collect()
}

/// Reads documents in whatever order is cheapest, step by step.
pub(crate) struct Cursor {
    reader: FeedReader,
    slices: VecDeque<KeySlice>,
}

impl Cursor {
    pub(crate) fn new(reader: FeedReader, slices: impl IntoIterator<Item = KeySlice>) -> Cursor {
        Cursor { reader, slices: slices.into_iter().collect() }
    }

    /// The next documents; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch>, ExecuteError> {
        while let Some(slice) = self.slices.front_mut() {
            if let Some(documents) = self.reader.next_of(slice).await? {
                return Ok(Some(Batch { container: self.reader.container.rid(), documents }));
            }
            self.slices.pop_front();
        }
        Ok(None)
    }

    /// What was not read yet, in parts that can be read at the same time: about so many, each slice at least one.
    pub(crate) async fn divide(self, count: usize) -> Result<Vec<Cursor>, ExecuteError> {
        let per_slice = count.div_ceil(self.slices.len().max(1));
        let mut parts = Vec::new();
        for slice in self.slices {
            let divided = self.reader.divide(slice, per_slice).await?;
            parts.extend(divided.into_iter().map(|part| Cursor::new(self.reader.clone(), [part])));
        }
        Ok(parts)
    }
}

/// Stored documents on their way into a query, with their numbers.
pub(crate) struct Batch {
    container: Rid,
    documents: Documents,
}

impl Batch {
    /// The documents, each with its place in order of insertion.
    pub(crate) fn documents(self) -> impl Iterator<Item = Result<(Datum, u64), ExecuteError>> {
        let container = self.container;
        self.documents.visible().map(move |body| {
            let body = body.map_err(|error| ExecuteError::Feed(error.into()))?;
            let number = body.header.number;
            Ok((Datum::Document(container, body), number))
        })
    }
}
