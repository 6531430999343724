//! The read feed: documents page by page.

use crate::documents::checked_key;
use crate::{Account, Error, read_charge};
use astrarium_catalog::container::Container;
use astrarium_keys::body::Body;
use astrarium_partition::{EffectiveRange, PartitionKey};
use astrarium_store::{FeedError, FeedPosition, FeedReader, FeedScope, PageLimit};
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
}

impl Account {
    /// The scope of a partition key: a logical partition, or all that a prefix of a hierarchical key covers.
    pub fn partition_scope(&self, container: &Container, key: &PartitionKey) -> Result<FeedScope, Error> {
        let definition = &container.definition.partition_key;
        let levels = key.components().len();
        if levels > 0 && levels < definition.paths.len() {
            return Ok(FeedScope::Slice(EffectiveRange::of_prefix(definition.effective(key))));
        }
        Ok(FeedScope::Partition(checked_key(definition, key)?))
    }

    /// What reads a container's documents as they are now.
    pub(crate) fn reader(&self, container: &Arc<Container>) -> FeedReader {
        FeedReader {
            snapshot: self.engine().snapshot(),
            container: Arc::clone(container),
            expiry: self.expiry(container),
        }
    }

    /// Reads a page of documents.
    pub async fn read_feed(
        &self,
        container: &Arc<Container>,
        scope: &FeedScope,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<DocumentPage, Error> {
        let reader = self.reader(container);
        let page = reader.page(scope, position, limit).await?;
        // As on the service a full page does not say whether it is the last: there may be an empty one after it.
        let last = page.documents.last().filter(|_| page.documents.len() >= limit.count_max);
        let resume = page.resume.clone().or_else(|| last.map(|(position, _)| position.clone()));
        let range =
            container.ranges.iter().find(|range| range.id == page.range_id).ok_or(Error::KeyRangeGone)?;
        let lsn = self.range_lsn(range).await?;
        let documents: Vec<Body> = page.documents.into_iter().map(|(_, body)| body).collect();
        let charge = documents.iter().map(|body| read_charge(body.text().len())).sum::<f64>().max(1.0);
        Ok(DocumentPage { documents, resume, range_id: page.range_id, lsn, charge })
    }
}

impl From<FeedError> for Error {
    fn from(error: FeedError) -> Error {
        match error {
            FeedError::Store(error) => error.into(),
            FeedError::RangeGone => Error::KeyRangeGone,
            FeedError::ForeignPosition => {
                Error::invalid("Invalid Continuation Token: it belongs to a request of another scope.")
            }
        }
    }
}
