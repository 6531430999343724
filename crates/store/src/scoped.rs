//! Feeds by scope: all documents of a container, of a range, of a logical partition, of a slice of the key space.
//!
//! In: a scope, a position, a page limit. Out: documents with the position right after each, and where to go on.
//! Order: by insertion within each range; a keyed scope of more than one page's bytes comes in order of keys, because
//! sorting it for every page would cost more than reading it.

use crate::bodies::DocumentMemory;
use crate::feed::{KeyedPage, PageLimit, RangeScope, by_insertion, by_key};
use crate::{Error, Expiry, VisibleDocuments};
use astrarium_catalog::container::{Container, Range};
use astrarium_env::Memory;
use astrarium_index::LeftOut;
use astrarium_keys::body::Body;
use astrarium_keys::document;
use astrarium_kv::{Engine, KeyRange, ShardId, View};
use astrarium_partition::{EffectiveKey, EffectiveRange, PartitionKey};
use bytes::Bytes;
use std::sync::Arc;

/// Which documents a feed gives.
#[derive(Debug, Clone)]
pub enum FeedScope {
    /// All of them.
    All,
    /// Those of one range.
    Range(u32),
    /// Those of a logical partition: a whole key, in the container's terms.
    Partition(PartitionKey),
    /// Those of a slice of the key space.
    Slice(EffectiveRange),
}

impl FeedScope {
    /// Whether it is a part of the key space, not whole ranges.
    pub fn is_keyed(&self) -> bool {
        matches!(self, FeedScope::Partition(_) | FeedScope::Slice(_))
    }
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
        /// What was seen of ranges that come later.
        floors: Floors,
    },
    /// After a document number of a range, within a scope that is small enough to be sorted.
    Within {
        /// The range's id.
        range_id: u32,
        /// The last number seen.
        number: u64,
        /// What was seen of ranges that come later.
        floors: Floors,
    },
    /// After a document key of a range.
    Key {
        /// The range's id.
        range_id: u32,
        /// The last key seen, without its shard.
        suffix: Bytes,
    },
}

/// The last numbers seen of ranges that are gone: where the ranges begin that came of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Floors(Vec<(u32, u64)>);

impl Floors {
    /// From the ids of ranges that are gone, with the last number seen of each.
    pub fn new(numbers: Vec<(u32, u64)>) -> Floors {
        Floors(numbers)
    }

    /// The ids and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().copied()
    }

    /// The last number seen of a range that nobody has read from yet: what was seen of the youngest range that it came of.
    pub fn of(&self, range: &Range) -> u64 {
        let known = self.0.iter().filter(|(id, _)| range.parents.contains(id));
        known.max_by_key(|(id, _)| *id).map_or(0, |(_, number)| *number)
    }
}

impl FeedPosition {
    /// The start of a range, for a feed that has come from the ranges before it.
    pub fn start_of(range: &Range, floors: &Floors, keyed: bool) -> FeedPosition {
        let (range_id, number, floors) = (range.id, floors.of(range), floors.clone());
        match (keyed, number) {
            (false, _) => FeedPosition::Number { range_id, number, floors },
            (true, 0) => FeedPosition::Key { range_id, suffix: Bytes::new() },
            (true, _) => FeedPosition::Within { range_id, number, floors },
        }
    }

    /// What was seen of ranges that come later.
    pub fn floors(&self) -> Floors {
        match self {
            FeedPosition::Number { floors, .. } | FeedPosition::Within { floors, .. } => floors.clone(),
            FeedPosition::Key { .. } => Floors::default(),
        }
    }

    /// The same place in the ranges that a container has now, if it had others when the position was given, and in the form that a
    /// feed of the scope has.
    pub fn resolved(self, container: &Container, scope: &FeedScope) -> Result<FeedPosition, FeedError> {
        let keyed = scope.is_keyed();
        let is_there = container.ranges.iter().any(|range| range.id == self.range_id());
        let scoped = ranges(container, scope)?;
        let first_of = |id: u32| {
            let mut children = scoped.iter().filter(|range| range.parents.contains(&id));
            children.next().copied().ok_or(FeedError::RangeGone)
        };
        match self {
            FeedPosition::Key { range_id, suffix } if suffix.is_empty() => {
                let range_id = if is_there { range_id } else { first_of(range_id)?.id };
                Ok(FeedPosition::Key { range_id, suffix })
            }
            FeedPosition::Key { suffix, .. } => {
                let begins_before = |range: &Range| {
                    let bound = document::effective_bound(0, &range.keys.min);
                    bound[document::SHARD_PREFIX_LENGTH..] <= suffix[..]
                };
                let index = container.ranges.partition_point(begins_before).saturating_sub(1);
                Ok(FeedPosition::Key { range_id: container.ranges[index].id, suffix })
            }
            FeedPosition::Number { range_id, number, floors }
            | FeedPosition::Within { range_id, number, floors } => {
                let (range_id, number, floors) = if is_there {
                    (range_id, number, floors)
                } else {
                    let range = first_of(range_id)?;
                    let Floors(mut known) = floors;
                    // In one that was merged of several others there are documents of each: all come again.
                    let number = if range.is_merged { 0 } else { number };
                    known.push((range_id, number));
                    (range.id, number, Floors(known))
                };
                Ok(if keyed {
                    FeedPosition::Within { range_id, number, floors }
                } else {
                    FeedPosition::Number { range_id, number, floors }
                })
            }
        }
    }

    /// The range that the position is in.
    pub fn range_id(&self) -> u32 {
        match self {
            FeedPosition::Number { range_id, .. }
            | FeedPosition::Within { range_id, .. }
            | FeedPosition::Key { range_id, .. } => *range_id,
        }
    }
}

/// A page of a feed.
#[derive(Debug)]
pub struct FeedPage {
    /// The documents, each with the position right after it.
    pub documents: Vec<(FeedPosition, Body)>,
    /// Where to go on, if there may be more.
    pub resume: Option<FeedPosition>,
    /// The range that was read.
    pub range_id: u32,
    /// The memory of the documents, given back when this is dropped.
    pub memory: DocumentMemory,
}

/// Why a page cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FeedError {
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The range named is not one of the container's.
    #[error("the key range is gone")]
    RangeGone,
    /// The position belongs to a feed of another scope.
    #[error("the position belongs to another feed")]
    ForeignPosition,
    /// The memory budget of the server is used up. The client's to repeat later.
    #[error("there is no memory left to read documents into")]
    NoMemory,
}

/// Views of several ranges: all at once where they are few, one after the other otherwise.
async fn views(
    engine: &dyn Engine,
    wanted: &[(ShardId, u64)],
) -> Result<Vec<Arc<dyn View>>, astrarium_kv::Error> {
    if let Some(views) = engine.views(wanted) {
        return views.await;
    }
    let mut views = Vec::with_capacity(wanted.len());
    for (shard, epoch) in wanted {
        views.push(engine.view(*shard, *epoch).await?);
    }
    Ok(views)
}

/// Documents of a keyed scope that is sorted for each page.
const SORTED_SCOPE_MAX: PageLimit = PageLimit { count_max: 2_000, bytes_max: 4 << 20 };

/// What a feed reads from.
#[derive(Clone)]
pub struct FeedReader {
    /// One for each range that is read.
    views: Arc<[Arc<dyn View>]>,
    /// The container.
    pub container: Arc<Container>,
    /// What counts as expired.
    pub expiry: Expiry,
    /// Which documents are not shown though they are there.
    left_out: Option<LeftOut>,
    /// The budget that the memory of documents is taken from.
    memory: Memory,
}

impl FeedReader {
    /// Reads from views at hand, each of a range of the container.
    pub fn new(
        views: Vec<Arc<dyn View>>,
        container: Arc<Container>,
        expiry: Expiry,
        memory: &Memory,
    ) -> FeedReader {
        FeedReader { views: views.into(), container, expiry, left_out: None, memory: memory.clone() }
    }

    /// The memory of documents that are going to be read, none of it taken yet.
    pub fn document_memory(&self) -> DocumentMemory {
        DocumentMemory::new(&self.memory)
    }

    /// The same reader, which does not show the documents that are left out of the index on purpose.
    #[must_use]
    pub fn leaving_out(self, left_out: LeftOut) -> FeedReader {
        FeedReader { left_out: Some(left_out), ..self }
    }

    pub(crate) fn shown(&self) -> VisibleDocuments {
        VisibleDocuments { expiry: self.expiry, left_out: self.left_out }
    }

    /// Takes a view of each range of a scope. A range that is not what the container says any more is refused by its fence.
    pub async fn open(
        engine: &dyn Engine,
        container: &Arc<Container>,
        scope: &FeedScope,
        expiry: Expiry,
        memory: &Memory,
    ) -> Result<FeedReader, FeedError> {
        let ranges = ranges(container, scope)?;
        let wanted: Vec<_> = ranges.iter().map(|range| (range.shard, range.epoch)).collect();
        let views = match wanted.as_slice() {
            [(shard, epoch)] => vec![engine.view(*shard, *epoch).await.map_err(Error::from)?],
            wanted => views(engine, wanted).await.map_err(Error::from)?,
        };
        Ok(FeedReader::new(views, Arc::clone(container), expiry, memory))
    }

    /// The view of a range, by its shard.
    pub fn view(&self, shard: ShardId) -> Result<&Arc<dyn View>, FeedError> {
        self.views.iter().find(|view| view.shard() == shard).ok_or(FeedError::RangeGone)
    }

    /// Reads a page in the feed's order.
    pub async fn page(
        &self,
        scope: &FeedScope,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, FeedError> {
        let definition = &self.container.definition.partition_key;
        match scope {
            FeedScope::All => self.by_insertion(&self.container.ranges, position, limit).await,
            FeedScope::Range(id) => {
                let range = self.range(*id)?;
                self.by_insertion(std::slice::from_ref(range), position, limit).await
            }
            FeedScope::Partition(key) => {
                let effective = definition.effective(key);
                let place = EffectiveRange { min: effective.clone(), max: effective.clone() };
                self.by_key(&RangeScope::Partition(key, effective), &place, position, limit).await
            }
            FeedScope::Slice(slice) => {
                self.by_key(&RangeScope::Slice(slice.clone()), slice, position, limit).await
            }
        }
    }

    /// The ranges that a scope touches, in order.
    pub fn ranges(&self, scope: &FeedScope) -> Result<Vec<&Range>, FeedError> {
        ranges(&self.container, scope)
    }

    /// The keys of a range's documents that belong to a scope; `None` if all do.
    pub(crate) fn key_bounds(&self, range: &Range, scope: &FeedScope) -> Option<KeyRange> {
        match scope {
            FeedScope::All | FeedScope::Range(_) => None,
            FeedScope::Partition(key) => {
                let effective = self.container.definition.partition_key.effective(key);
                Some(RangeScope::Partition(key, effective).key_range(range))
            }
            FeedScope::Slice(slice) => Some(RangeScope::Slice(slice.clone()).key_range(range)),
        }
    }

    pub(crate) fn range(&self, id: u32) -> Result<&Range, FeedError> {
        range_by_id(&self.container, id)
    }

    async fn by_insertion(
        &self,
        ranges: &[Range],
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, FeedError> {
        let (range_id, number, floors) = match position {
            None => (ranges[0].id, 0, Floors::default()),
            Some(FeedPosition::Number { range_id, number, floors }) => (range_id, number, floors),
            Some(_) => return Err(FeedError::ForeignPosition),
        };
        let index = ranges.iter().position(|range| range.id == range_id).ok_or(FeedError::RangeGone)?;
        let range = &ranges[index];
        let view = self.view(range.shard)?;
        let mut memory = self.document_memory();
        let page = by_insertion(&**view, range, number, limit, self.shown(), &mut memory).await?;
        let next = ranges.get(index + 1).map(|next| FeedPosition::start_of(next, &floors, false));
        let at = |number: u64| FeedPosition::Number { range_id, number, floors: floors.clone() };
        let documents = page.documents.into_iter().map(|(number, body)| (at(number), body)).collect();
        Ok(FeedPage { documents, resume: page.resume.map(at).or(next), range_id, memory })
    }

    async fn by_key(
        &self,
        scope: &RangeScope<'_>,
        place: &EffectiveRange,
        position: Option<FeedPosition>,
        limit: PageLimit,
    ) -> Result<FeedPage, FeedError> {
        let (index, after) = self.start(&place.min, position.as_ref())?;
        let range = &self.container.ranges[index];
        let view = &**self.view(range.shard)?;
        let mut memory = self.document_memory();
        if let Some(FeedPosition::Within { number, floors, .. }) = &position {
            let all = self.smallest(range, scope, *number, limit, &mut memory).await?;
            return Ok(self.sorted_page(index, place, (all, memory), (*number, floors), limit));
        }
        let after = after.filter(|suffix| !suffix.is_empty());
        if after.is_none() {
            let all = (SORTED_SCOPE_MAX, self.shown());
            let small = by_key(view, range, scope, None, all, &mut memory).await?;
            if small.resume.is_none() {
                let all = small.documents.into_iter().map(|(_, body)| body).collect();
                return Ok(self.sorted_page(index, place, (all, memory), (0, &Floors::default()), limit));
            }
        }
        // The documents that were read to see whether they are few are dropped.
        memory.keep(0);
        let page = by_key(view, range, scope, after.as_deref(), (limit, self.shown()), &mut memory).await?;
        Ok(self.keyed_page(index, place, page, memory))
    }

    /// The range where a keyed scope starts or goes on, and the key after which.
    fn start(
        &self,
        first: &EffectiveKey,
        position: Option<&FeedPosition>,
    ) -> Result<(usize, Option<Bytes>), FeedError> {
        let (id, after) = match position {
            None => (self.container.range_of(first).id, None),
            Some(FeedPosition::Key { range_id, suffix }) => (*range_id, Some(suffix.clone())),
            Some(FeedPosition::Within { range_id, .. }) => (*range_id, None),
            Some(FeedPosition::Number { .. }) => return Err(FeedError::ForeignPosition),
        };
        let index = self.container.ranges.iter().position(|range| range.id == id);
        Ok((index.ok_or(FeedError::RangeGone)?, after))
    }

    /// The position at the start of the range after this one, if the scope reaches into it.
    fn next_range(&self, index: usize, place: &EffectiveRange, floors: &Floors) -> Option<FeedPosition> {
        let next = self.container.ranges.get(index + 1).filter(|next| next.keys.min < place.max)?;
        Some(FeedPosition::start_of(next, floors, true))
    }

    fn keyed_page(
        &self,
        index: usize,
        place: &EffectiveRange,
        page: KeyedPage<Bytes>,
        memory: DocumentMemory,
    ) -> FeedPage {
        let range_id = self.container.ranges[index].id;
        let at = |suffix: Bytes| FeedPosition::Key { range_id, suffix };
        let documents = page.documents.into_iter().map(|(suffix, body)| (at(suffix), body)).collect();
        let next = || self.next_range(index, place, &Floors::default());
        FeedPage { documents, resume: page.resume.map(at).or_else(next), range_id, memory }
    }

    /// The documents of a scope with the smallest numbers after a position: one pass, and no more kept than a page
    /// takes, however large the scope has grown.
    async fn smallest(
        &self,
        range: &Range,
        scope: &RangeScope<'_>,
        after_number: u64,
        limit: PageLimit,
        memory: &mut DocumentMemory,
    ) -> Result<Vec<Body>, FeedError> {
        let view = &**self.view(range.shard)?;
        let mut kept: Vec<Body> = Vec::new();
        let mut after: Option<Bytes> = None;
        loop {
            let all = (SORTED_SCOPE_MAX, self.shown());
            let page = by_key(view, range, scope, after.as_deref(), all, memory).await?;
            let bodies = page.documents.into_iter().map(|(_, body)| body);
            kept.extend(bodies.filter(|body| body.header.number > after_number));
            kept.sort_by_key(|body| body.header.number);
            // One more than fits tells that there is a further page.
            kept.truncate(fitting(&kept, limit) + 1);
            memory.keep(held_bytes(&kept));
            match page.resume {
                Some(resume) => after = Some(resume),
                None => return Ok(kept),
            }
        }
    }

    /// The documents after a number, in order of their numbers, as many as the page takes.
    fn sorted_page(
        &self,
        index: usize,
        place: &EffectiveRange,
        (mut all, mut memory): (Vec<Body>, DocumentMemory),
        (after, floors): (u64, &Floors),
        limit: PageLimit,
    ) -> FeedPage {
        all.retain(|body| body.header.number > after);
        all.sort_by_key(|body| body.header.number);
        let count = fitting(&all, limit);
        let more = all.len() > count;
        all.truncate(count);
        memory.keep(held_bytes(&all));
        let range_id = self.container.ranges[index].id;
        let at = |body: &Body| {
            let number = body.header.number;
            FeedPosition::Within { range_id, number, floors: floors.clone() }
        };
        let last = all.last().filter(|_| more).map(at);
        let documents: Vec<_> = all.into_iter().map(|body| (at(&body), body)).collect();
        let resume = last.or_else(|| self.next_range(index, place, floors));
        FeedPage { documents, resume, range_id, memory }
    }
}

/// The ranges of a container that a scope touches, in order.
fn ranges<'c>(container: &'c Container, scope: &FeedScope) -> Result<Vec<&'c Range>, FeedError> {
    let all = &container.ranges;
    Ok(match scope {
        FeedScope::All => all.iter().collect(),
        FeedScope::Range(id) => vec![range_by_id(container, *id)?],
        FeedScope::Partition(key) => {
            vec![container.range_of(&container.definition.partition_key.effective(key))]
        }
        FeedScope::Slice(slice) => all.iter().filter(|range| range.keys.overlaps(slice)).collect(),
    })
}

fn range_by_id(container: &Container, id: u32) -> Result<&Range, FeedError> {
    container.ranges.iter().find(|range| range.id == id).ok_or(FeedError::RangeGone)
}

/// The memory of some documents.
fn held_bytes(documents: &[Body]) -> usize {
    documents.iter().map(|body| body.as_bytes().len()).sum()
}

/// How many documents of a list fit into a page; one always does.
fn fitting(documents: &[Body], limit: PageLimit) -> usize {
    let mut bytes = 0;
    let fitting = documents.iter().enumerate().take(limit.count_max).take_while(|(index, body)| {
        bytes += body.text().len();
        *index == 0 || bytes <= limit.bytes_max
    });
    fitting.count()
}
