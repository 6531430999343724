//! The change feed of a container: what was written, in the order of commits of each range.
//!
//! In: a scope, where to start, a page limit, how long to wait for something new. Out: a [`ChangeFeedPage`] with the position from
//! which the next page goes on. Two modes: documents as they are now, or all versions and deletes from containers that keep them.
//! Invariants
//! - Whoever goes on from the position of each page sees every change of his scope, in order within each range, whatever is
//!   written meanwhile; a position of before a split or a merge goes on in the ranges that came of it.
//! - A page is empty only when there is nothing new, or when looking for it took too long.
//!
//! Not here: entries and their order (`store::changes`), the text of positions (`wire::change_feed`).

use crate::attempts::Failure;
use crate::charge::feed_charge;
use crate::feeds::MadeRoom;
use crate::leases::LeasedWork;
use crate::{AccountCore, DocumentsHandle, Error, Link};
use astrarium_catalog::container::{Container, Range};
use astrarium_catalog::records;
use astrarium_env::{self as env, Instant};
use astrarium_keys::Rid;
use astrarium_keys::body::Body;
use astrarium_keys::history::{ChangeOperation, HistoryEntry};
use astrarium_keys::record::RecordKind;
use astrarium_store::{
    ChangePage, ChangePosition, DocumentMemory, FeedError, FeedReader, FeedScope, PageLimit,
};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long a page may look for changes of its scope among others.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a page may wait for something new, whatever the client says.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Ranges that are watched at once; whoever waits for more of them is answered at once.
const WATCHED_MAX: usize = 100;

/// What a reader of the change feed wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFeedMode {
    /// Each document once, as it is now.
    LatestVersion,
    /// Every change, deletes too.
    AllVersionsAndDeletes,
}

/// Where a reader of the change feed starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeFeedStart {
    /// At the first change that is known.
    Beginning,
    /// After all that was written so far.
    Now,
    /// After what was written up to a time, in seconds since 1970.
    Time(u64),
    /// Where a page ended.
    Position(ChangeFeedPosition),
}

/// Where a page of the change feed ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeFeedPosition {
    /// By range: its id, or `None` for all ranges of the scope alike, and the last change seen.
    pub ranges: Vec<(Option<u32>, ChangePosition)>,
    /// Changes up to this time are left out still: a start in the future.
    pub since: Option<u64>,
}

/// What to read.
#[derive(Debug, Clone)]
pub struct ReadChanges {
    /// Of which documents.
    pub scope: FeedScope,
    /// Only of this range, if one is named. It need not hold anything of the scope.
    pub range_id: Option<u32>,
    /// In which form.
    pub mode: ChangeFeedMode,
    /// From where.
    pub start: ChangeFeedStart,
    /// How much.
    pub limit: PageLimit,
    /// How long to wait if there is nothing.
    pub wait: Duration,
}

impl ReadChanges {
    /// The scope of the ranges that are looked at.
    fn visited(&self) -> FeedScope {
        self.range_id.map_or_else(|| self.scope.clone(), FeedScope::Range)
    }
}

/// A change as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedChange {
    /// The commit.
    pub lsn: u64,
    /// When, in seconds since 1970.
    pub timestamp: u64,
    /// What happened; of the latest version always a replacement.
    pub operation: ChangeOperation,
    /// The document after it.
    pub current: Option<Body>,
    /// The document before it, in all versions.
    pub previous: Option<Body>,
}

/// A page of changes.
#[derive(Debug)]
pub struct ChangeFeedPage {
    /// The container, as the page was read.
    pub container: Arc<Container>,
    /// The changes.
    pub changes: Vec<FeedChange>,
    /// Where to go on.
    pub position: ChangeFeedPosition,
    /// The range that served the last of them.
    pub range_id: u32,
    /// Its LSN.
    pub lsn: u64,
    /// Request units.
    pub charge: f64,
    /// The memory of the changes, given back when the page is dropped.
    pub memory: DocumentMemory,
}

impl DocumentsHandle<'_> {
    /// Reads a page of changes; if there are none and the reader wants to wait, as soon as there are.
    pub async fn read_changes(self, request: &ReadChanges) -> Result<ChangeFeedPage, Error> {
        let DocumentsHandle { core, container } = self;
        let begin = Instant::now();
        let wait = request.wait.min(WAIT_MAX);
        let (mut start, mut room) = (request.start.clone(), MadeRoom::default());
        loop {
            let from = &start;
            let page = core.attempt(container, |trial| async move {
                core.changes_page(&trial.container, request, from).await
            });
            let Some(page) = room.or_again(core, page.await).transpose()? else { continue };
            let rest = wait.saturating_sub(begin.elapsed());
            if !page.changes.is_empty() || rest.is_zero() {
                return Ok(page);
            }
            if !core.wait_for_change(&page, &request.visited(), rest).await {
                return Ok(page);
            }
            start = ChangeFeedStart::Position(page.position);
        }
    }
}

impl AccountCore {
    async fn changes_page(
        &self,
        container: &Arc<Container>,
        request: &ReadChanges,
        start: &ChangeFeedStart,
    ) -> Result<ChangeFeedPage, Failure> {
        let visited = request.visited();
        let reader = self.reader(container, &visited).await?;
        let since = match start {
            ChangeFeedStart::Time(time) => Some(*time),
            ChangeFeedStart::Position(position) => position.since,
            _ => None,
        };
        let mut page = PageUnderWay {
            reader: &reader,
            request,
            since,
            begin: Instant::now(),
            changes: Vec::new(),
            bytes: 0,
            memory: reader.document_memory(),
        };
        let mut positions = Vec::new();
        let mut served = None;
        for range in reader.ranges(&visited)? {
            let after = self.first_position(&reader, range, start).await?;
            let lsn = reader.view(range.shard)?.state().version;
            let found = page.changes.len();
            let position = self.changes_of_range(&mut page, range, after).await?;
            if served.is_none() || page.changes.len() > found {
                served = Some((range.id, lsn));
            }
            positions.push((Some(range.id), position));
        }
        let (range_id, lsn) = served.ok_or(Error::KeyRangeGone)?;
        let sizes = page.changes.iter().map(|change| change.current.as_ref().or(change.previous.as_ref()));
        let charge = feed_charge(sizes.flatten().map(|body| body.text().len()));
        // Whatever is written from now on is younger than a start that has passed.
        let since = since.filter(|since| *since >= self.env().now_seconds());
        let position = ChangeFeedPosition { ranges: positions, since };
        let PageUnderWay { changes, memory, .. } = page;
        let container = Arc::clone(container);
        Ok(ChangeFeedPage { container, changes, position, range_id, lsn, charge, memory })
    }

    /// Where to go on in a range.
    async fn first_position(
        &self,
        reader: &FeedReader,
        range: &Range,
        start: &ChangeFeedStart,
    ) -> Result<ChangePosition, Failure> {
        let version = reader.view(range.shard)?.state().version;
        let position = match start {
            ChangeFeedStart::Beginning => return Ok(ChangePosition::after(0)),
            ChangeFeedStart::Now => return Ok(ChangePosition::after(version)),
            ChangeFeedStart::Time(time) => return Ok(reader.position_at(range, *time).await?),
            ChangeFeedStart::Position(position) => position,
        };
        let seen = position_in(position, range).unwrap_or_default();
        if seen.lsn <= version {
            return Ok(seen);
        }
        // No commit has reached it yet, so it is of other data: of a removed container of the same name, of which this one has
        // nothing, or of a state that storage was brought back from.
        let removed = records::highest_former_lsn(&*self.catalog().await?).await?;
        Ok(ChangePosition::after(if seen.lsn <= removed { 0 } else { version }))
    }

    /// Adds the changes of one range to a page, and tells where it ends there.
    async fn changes_of_range(
        &self,
        page: &mut PageUnderWay<'_>,
        range: &Range,
        mut after: ChangePosition,
    ) -> Result<ChangePosition, Failure> {
        loop {
            let Some(limit) = page.rest() else { return Ok(after) };
            let (scope, memory) = (&page.request.scope, &mut page.memory);
            let more = match page.request.mode {
                ChangeFeedMode::LatestVersion => {
                    let found = page.reader.changes(range, scope, after, page.since, limit, memory).await;
                    page.taken(found)?.map(|found| page.take(&mut after, found, latest))
                }
                ChangeFeedMode::AllVersionsAndDeletes => {
                    let kept_since = self.history_start(&page.reader.container);
                    let found = page.reader.versions(range, scope, after, kept_since, limit, memory).await;
                    match page.taken(found)? {
                        Some(found) => Some(page.take(&mut after, found.ok_or_else(not_kept)?, version)),
                        None => None,
                    }
                }
            };
            let Some(more) = more else { return Ok(after) };
            if !more || !page.changes.is_empty() || page.begin.elapsed() > SEARCH_TIME_MAX {
                return Ok(after);
            }
            env::yield_if_due().await;
        }
    }

    /// Since when the changes of a container are kept.
    pub(crate) fn history_start(&self, container: &Container) -> u64 {
        let minutes = container.history_minutes.unwrap_or(0);
        self.env().now_seconds().saturating_sub(u64::from(minutes) * 60)
    }

    /// Removes some changes that are older than their container keeps them, or that it does not keep any more; false when there are
    /// none.
    pub(crate) async fn trim_histories(&self) -> Result<bool, Error> {
        let view = self.catalog().await?;
        let mut is_trimmed = false;
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let container = match self.container(Link::Rid(database.rid), Link::Rid(resource.rid)).await {
                    Ok(container) => container,
                    // Removed a moment ago.
                    Err(Error::NotFound) => continue,
                    Err(error) => return Err(error),
                };
                env::yield_if_due().await;
                let trimmed = self
                    .attempt(&container, |trial| async move { self.trim_history(&trial.container).await })
                    .await;
                match trimmed {
                    Err(Error::OwnerNotFound) => {}
                    other => is_trimmed |= other?,
                }
            }
        }
        if !is_trimmed {
            self.give_back(LeasedWork::Trim).await?;
        }
        Ok(is_trimmed)
    }

    async fn trim_history(&self, container: &Container) -> Result<bool, Failure> {
        let keeps = container.history_minutes.is_some();
        let kept_since = if keeps { self.history_start(container) } else { u64::MAX };
        let mut is_trimmed = false;
        for range in &container.ranges {
            let Some(batch) = astrarium_store::trim_history(self.engine(), range, kept_since).await? else {
                continue;
            };
            // Nothing that is carried along: the lease is of another shard.
            if self.lease_to_free(LeasedWork::Trim).await?.is_none() {
                return Ok(false);
            }
            self.engine().commit(batch).await?;
            is_trimmed = true;
        }
        Ok(is_trimmed)
    }

    /// Waits until a range of the scope has been written to after the page was read; false when the time is over.
    async fn wait_for_change(&self, page: &ChangeFeedPage, scope: &FeedScope, time: Duration) -> bool {
        let ranges = page.container.ranges.iter();
        let ranges = ranges.filter(|range| crate::documents::touches(&page.container, range, scope));
        let mut watches: Vec<_> = ranges
            .filter_map(|range| {
                let seen = page.position.ranges.iter().find(|(id, _)| *id == Some(range.id))?.1.lsn;
                Some(self.engine().watch(range.shard, range.epoch, seen))
            })
            .take(WATCHED_MAX + 1)
            .collect();
        if watches.len() > WATCHED_MAX {
            return false;
        }
        // A watch that fails wakes too: the next attempt tells why.
        let any = poll_fn(|context| {
            let is_over = watches.iter_mut().any(|watch| pin!(watch).poll(context).is_ready());
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        });
        env::timeout(time, any).await.is_some()
    }
}

/// A page that is being read, over one range after another.
struct PageUnderWay<'a> {
    reader: &'a FeedReader,
    request: &'a ReadChanges,
    since: Option<u64>,
    begin: Instant,
    changes: Vec<FeedChange>,
    bytes: usize,
    memory: DocumentMemory,
}

impl PageUnderWay<'_> {
    /// What still fits; nothing if the page is full.
    fn rest(&self) -> Option<PageLimit> {
        let limit = self.request.limit;
        let count_max = limit.count_max.saturating_sub(self.changes.len());
        let bytes_max = limit.bytes_max.saturating_sub(self.bytes);
        (count_max > 0 && bytes_max > 0).then_some(PageLimit { count_max, bytes_max })
    }

    /// What was found; nothing if the page ends with the ranges before, because there is no memory for more.
    fn taken<T>(&self, found: Result<T, FeedError>) -> Result<Option<T>, FeedError> {
        match found {
            Err(FeedError::NoMemory) if !self.changes.is_empty() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Takes what was found, and tells whether there may be more.
    fn take<T>(
        &mut self,
        position: &mut ChangePosition,
        found: ChangePage<T>,
        show: impl Fn(T) -> FeedChange,
    ) -> bool {
        *position = found.position;
        for change in found.changes.into_iter().map(show) {
            let shown = [&change.current, &change.previous].into_iter().flatten();
            self.bytes += shown.map(|body| body.text().len()).sum::<usize>();
            self.changes.push(change);
        }
        found.more
    }
}

fn latest(body: Body) -> FeedChange {
    let header = body.header;
    FeedChange {
        lsn: header.lsn,
        timestamp: header.timestamp,
        operation: ChangeOperation::Replace,
        current: Some(body),
        previous: None,
    }
}

fn version((lsn, entry): (u64, HistoryEntry)) -> FeedChange {
    let HistoryEntry { operation, timestamp, previous, current, .. } = entry;
    FeedChange { lsn, timestamp, operation, current, previous }
}

fn not_kept() -> Error {
    Error::invalid(
        "You must read the change feed from within the retention period. The continuation is older than the retention of \
         the container's changeFeedPolicy: changes after it are not kept any more. Start the change feed from now.",
    )
}

/// What a position says of a range: its own entry, or of the ranges that it came of the one that has seen least.
fn position_in(position: &ChangeFeedPosition, range: &Range) -> Option<ChangePosition> {
    let of =
        |wanted: Option<u32>| position.ranges.iter().find(|(id, _)| *id == wanted).map(|(_, seen)| *seen);
    let of_parents = || range.parents.iter().filter_map(|parent| of(Some(*parent))).min();
    of(Some(range.id)).or_else(of_parents).or_else(|| of(None))
}
