//! The read feed: all documents of a container, of a logical partition, or of a slice of the key space, page by page.

use crate::documents::checked_key;
use crate::{Account, Error, read_charge};
use astrarium_catalog::container::{Container, Range};
use astrarium_keys::body::Body;
use astrarium_partition::{EffectiveRange, PartitionKey};
use astrarium_store::feed::{self, PageLimit, Scope};
use bytes::Bytes;

/// Which documents a feed gives.
#[derive(Debug, Clone)]
pub enum FeedScope<'a> {
    /// All of them, in order of insertion within each range.
    All,
    /// Those of one range, in order of insertion.
    Range(u32),
    /// Those of a logical partition, or of a prefix of a hierarchical key.
    Partition(&'a PartitionKey),
    /// Those of a slice of the key space.
    Slice(EffectiveRange),
}

/// Where the next page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedPosition {
    /// After a document number of a range.
    Number {
        /// The range's id.
        range_id: u32,
        /// The last number seen.
        number: u64,
    },
    /// After a document key of a range.
    Key {
        /// The range's id.
        range_id: u32,
        /// The last key seen, without its shard.
        suffix: Bytes,
    },
}

/// A page of a feed.
#[derive(Debug)]
pub struct FeedPage {
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
    /// Reads a page of documents.
    pub async fn read_feed(
        &self,
        container: &Container,
        scope: &FeedScope<'_>,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, Error> {
        let definition = &container.definition.partition_key;
        match scope {
            FeedScope::All => self.page_by_insertion(container, &container.ranges, position, limit).await,
            FeedScope::Range(id) => {
                let range =
                    container.ranges.iter().find(|range| range.id == *id).ok_or(Error::KeyRangeGone)?;
                self.page_by_insertion(container, std::slice::from_ref(range), position, limit).await
            }
            FeedScope::Partition(key)
                if key.components().len() < definition.paths.len() && !key.components().is_empty() =>
            {
                let slice = EffectiveRange::of_prefix(definition.effective(key));
                self.page_by_key(container, &Scope::Slice(slice.clone()), &slice, position, limit).await
            }
            FeedScope::Partition(key) => {
                let key = checked_key(definition, key)?;
                let effective = definition.effective(&key);
                let place = EffectiveRange { min: effective.clone(), max: effective.clone() };
                self.page_by_key(container, &Scope::Partition(&key, effective), &place, position, limit).await
            }
            FeedScope::Slice(slice) => {
                self.page_by_key(container, &Scope::Slice(slice.clone()), slice, position, limit).await
            }
        }
    }

    async fn page_by_insertion(
        &self,
        container: &Container,
        ranges: &[Range],
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, Error> {
        let (range_id, number) = match position {
            None => (ranges[0].id, 0),
            Some(FeedPosition::Number { range_id, number }) => (range_id, number),
            Some(FeedPosition::Key { .. }) => return Err(foreign_position()),
        };
        let index = ranges.iter().position(|range| range.id == range_id).ok_or(Error::KeyRangeGone)?;
        let range = &ranges[index];
        let snapshot = self.engine().snapshot();
        let page = feed::by_insertion(&*snapshot, range, number, limit, self.expiry(container)).await?;
        let here = page.resume.map(|number| FeedPosition::Number { range_id, number });
        let next = ranges.get(index + 1).map(|next| FeedPosition::Number { range_id: next.id, number: 0 });
        self.page(range, page.documents, here.or(next)).await
    }

    async fn page_by_key(
        &self,
        container: &Container,
        scope: &Scope<'_>,
        place: &EffectiveRange,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, Error> {
        let (start_id, after) = match position {
            None => (container.range_of(&place.min).id, None),
            Some(FeedPosition::Key { range_id, suffix }) => (range_id, Some(suffix)),
            Some(FeedPosition::Number { .. }) => return Err(foreign_position()),
        };
        let index =
            container.ranges.iter().position(|range| range.id == start_id).ok_or(Error::KeyRangeGone)?;
        let range = &container.ranges[index];
        let snapshot = self.engine().snapshot();
        let after = after.filter(|suffix| !suffix.is_empty());
        let page =
            feed::by_key(&*snapshot, range, scope, after.as_deref(), limit, self.expiry(container)).await?;
        let here = page.resume.map(|suffix| FeedPosition::Key { range_id: range.id, suffix });
        let next = container.ranges.get(index + 1).filter(|next| next.keys.min < place.max);
        let next = next.map(|next| FeedPosition::Key { range_id: next.id, suffix: Bytes::new() });
        self.page(range, page.documents, here.or(next)).await
    }

    async fn page(
        &self,
        range: &Range,
        documents: Vec<Body>,
        resume: Option<FeedPosition>,
    ) -> Result<FeedPage, Error> {
        let lsn = self.range_lsn(range).await?;
        let charge = documents.iter().map(|body| read_charge(body.text().len())).sum::<f64>().max(1.0);
        Ok(FeedPage { documents, resume, range_id: range.id, lsn, charge })
    }
}

fn foreign_position() -> Error {
    Error::invalid("Invalid Continuation Token: it belongs to a request of another scope.")
}
