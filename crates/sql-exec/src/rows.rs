//! Where a query's documents come from: a container's range of keys, or values at hand.

use crate::frame::Datum;
use crate::page::ExecuteError;
use astrarium_store::{FeedPosition, FeedReader, FeedScope, PageLimit};
use astrarium_value::Value;

/// What a query reads.
pub enum Input<'a> {
    /// Documents of a container.
    Container(FeedReader<'a>, FeedScope),
    /// Values at hand, such as the resources of a catalog feed.
    Values(Vec<Value>),
    /// One empty row: a query without FROM.
    Nothing,
}

/// Documents read at once.
const STEP: PageLimit = PageLimit { count_max: 256, bytes_max: 4 << 20 };

/// A document on its way into a query.
pub(crate) struct Incoming {
    pub(crate) datum: Datum,
    /// Its place in order of insertion.
    pub(crate) number: u64,
    /// Where to go on after it.
    pub(crate) after: Option<FeedPosition>,
}

/// Reads documents step by step.
pub(crate) struct Reader<'a> {
    input: &'a Input<'a>,
    ordered: bool,
    /// Where the next step starts; the beginning if there is none.
    position: Option<FeedPosition>,
    at_end: bool,
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}

impl<'a> Reader<'a> {
    /// Starts after a position. `ordered` asks for the order of insertion, otherwise the cheapest order will do.
    pub(crate) fn new(input: &'a Input<'a>, ordered: bool, position: Option<FeedPosition>) -> Reader<'a> {
        Reader { input, ordered, position, at_end: false, documents: 0, bytes: 0 }
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
            Input::Nothing => Ok(Some(vec![Incoming { datum: Datum::Empty, number: 0, after: None }])),
            Input::Values(values) => Ok(Some(values_after(values, position.as_ref()))),
            Input::Container(reader, scope) => {
                let page = if self.ordered {
                    reader.page(scope, position, STEP).await?
                } else {
                    reader.page_any_order(scope, position, STEP).await?
                };
                self.at_end = page.resume.is_none();
                self.position = page.resume;
                self.documents += page.documents.len() as u64;
                let container = reader.container.rid();
                let documents = page.documents.into_iter().map(|(after, body)| {
                    self.bytes += body.text().len() as u64;
                    let number = body.header.number;
                    Incoming { datum: Datum::Document(container, body), number, after: Some(after) }
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
            number,
            after: Some(FeedPosition::Number { range_id: 0, number }),
        })
        .collect()
}
