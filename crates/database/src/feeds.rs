//! The read feed: documents page by page.

use crate::attempts::Failure;
use crate::charge::feed_charge;
use crate::documents::{checked_key, touches};
use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::Stopped;
use astrarium_keys::body::Body;
use astrarium_partition::{EffectiveRange, PartitionKey};
use astrarium_store::{DocumentMemory, FeedError, FeedPosition, FeedReader, FeedScope, PageLimit};
use std::sync::Arc;

/// A page of documents.
#[derive(Debug)]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<Body>,
    /// Where to go on, if there may be more.
    pub resume: Option<FeedPosition>,
    /// The range that served the last of them.
    pub range_id: u32,
    /// Its LSN.
    pub lsn: u64,
    /// Request units.
    pub charge: f64,
    /// The memory of the documents, given back when the page is dropped.
    pub memory: DocumentMemory,
}

impl DocumentsHandle<'_> {
    /// Reads a page of documents.
    pub async fn read_feed(
        self,
        scope: &FeedScope,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<DocumentPage, Error> {
        let DocumentsHandle { core, container } = self;
        let position = &position;
        let mut room = MadeRoom::default();
        loop {
            let page = core.attempt(container, |trial| async move {
                core.feed_page(&trial.container, scope, position.clone(), limit).await
            });
            if let Some(page) = room.or_again(core, page.await) {
                return page;
            }
        }
    }
}

/// What was done about the lack of memory for an operation.
#[derive(Default)]
pub(crate) struct MadeRoom(bool);

impl MadeRoom {
    /// How an operation ended; nothing if it is to be tried again, once, because results were given up that were kept for later pages.
    pub(crate) fn or_again<T>(
        &mut self,
        core: &AccountCore,
        result: Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        if !matches!(result, Err(Error::Stopped(Stopped::NoMemory))) {
            return Some(result);
        }
        if !std::mem::replace(&mut self.0, true) && core.shared.kept.clear() {
            return None;
        }
        Some(Err(Error::Overloaded(
            "The server has no memory left to read documents into at the moment. Retry it later, or start the server with a \
             larger --memory-budget."
                .to_owned(),
        )))
    }
}

impl AccountCore {
    /// What reads the documents of a scope as they are now: one view for each of its ranges.
    pub(crate) async fn reader(
        &self,
        container: &Arc<Container>,
        scope: &FeedScope,
    ) -> Result<FeedReader, Failure> {
        let expiry = self.expiry(container);
        Ok(FeedReader::open(self.engine(), container, scope, expiry, self.memory()).await?)
    }

    async fn feed_page(
        &self,
        container: &Arc<Container>,
        scope: &FeedScope,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<DocumentPage, Failure> {
        let position = position.map(|position| position.resolved(container, scope)).transpose()?;
        // A page is of one range: the one where it goes on, or the first of the scope.
        let range_id = match &position {
            Some(position) => position.range_id(),
            None => first_range(container, scope).ok_or(Error::KeyRangeGone)?.id,
        };
        let reader = self.reader(container, &FeedScope::Range(range_id)).await?;
        let page = reader.page(scope, position, limit).await?;
        // As on the service a full page does not say whether it is the last: there may be an empty one after it.
        let last = page.documents.last().filter(|_| page.documents.len() >= limit.count_max);
        let resume = page.resume.clone().or_else(|| last.map(|(position, _)| position.clone()));
        let range =
            container.ranges.iter().find(|range| range.id == page.range_id).ok_or(Error::KeyRangeGone)?;
        let lsn = reader.view(range.shard)?.state().version;
        let documents: Vec<Body> = page.documents.into_iter().map(|(_, body)| body).collect();
        let charge = feed_charge(documents.iter().map(|body| body.text().len()));
        Ok(DocumentPage { documents, resume, range_id: page.range_id, lsn, charge, memory: page.memory })
    }
}

/// The first range of a scope.
fn first_range<'c>(container: &'c Container, scope: &FeedScope) -> Option<&'c Range> {
    match scope {
        FeedScope::Slice(slice) => Some(container.range_of(&slice.min)),
        _ => container.ranges.iter().find(|range| touches(container, range, scope)),
    }
}

/// The scope of a partition key: a logical partition, or all that a prefix of a hierarchical key covers.
pub(crate) fn partition_scope(container: &Container, key: &PartitionKey) -> Result<FeedScope, Error> {
    let definition = &container.definition.partition_key;
    let levels = key.components().len();
    if levels > 0 && levels < definition.paths.len() {
        return Ok(FeedScope::Slice(EffectiveRange::of_prefix(definition.effective(key))));
    }
    Ok(FeedScope::Partition(checked_key(definition, key)?))
}

impl From<FeedError> for Error {
    fn from(error: FeedError) -> Error {
        match error {
            FeedError::Store(error) => error.into(),
            FeedError::RangeGone => Error::KeyRangeGone,
            FeedError::ForeignPosition => {
                Error::invalid("Invalid Continuation Token: it belongs to a request of another scope.")
            }
            FeedError::NoMemory => Error::Stopped(Stopped::NoMemory),
        }
    }
}
