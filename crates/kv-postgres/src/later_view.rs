//! A view that is taken when something is read of it: for whoever writes and mostly reads nothing, as who creates a document.
//!
//! In: a shard that this server owns, and what it knows of it. Out: a view, of the first moment at which something was read.
//! Invariant: what is known may be old, since a server may wrongly believe to own a shard. It decides nothing: the batch is judged by
//! what the store has, the epoch too; of numbers that are given by it only the order could be another one.

use crate::PostgresCore;
use crate::view::PostgresView;
use astrarium_kv::{
    Direction, EntryBatch, Error, FAMILY_BYTES, Intersection, IntersectionLimit, KeyBatch, KeyRange, Reply,
    ScanBatch, ScanLimit, ShardId, ShardState, Space, View, contract,
};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::OnceCell;

pub(crate) struct LaterView {
    inner: Arc<LaterParts>,
}

struct LaterParts {
    core: Arc<PostgresCore>,
    epoch: u64,
    shard: ShardId,
    /// What was known when it was asked for.
    known: ShardState,
    taken: OnceCell<PostgresView>,
}

impl LaterView {
    /// One of a shard that this server owns and knows; nothing if its counters have to be asked for.
    pub(crate) fn of(core: &Arc<PostgresCore>, shard: ShardId, epoch: u64) -> Option<LaterView> {
        let known = core.known.state(shard)?;
        if !core.members.is_owner_here(shard) || contract::check_epoch(shard, epoch, known).is_err() {
            return None;
        }
        let inner = LaterParts { core: Arc::clone(core), epoch, shard, known, taken: OnceCell::new() };
        Some(LaterView { inner: Arc::new(inner) })
    }

    /// What the view says, which is taken first if it was not.
    fn ask<T: Send + Unpin + 'static>(
        &self,
        ask: impl FnOnce(&PostgresView) -> Reply<Result<T, Error>> + Send + 'static,
    ) -> Reply<Result<T, Error>> {
        let inner = Arc::clone(&self.inner);
        Reply::later(async move {
            let take = || Arc::clone(&inner.core).view(inner.shard, inner.epoch);
            ask(inner.taken.get_or_try_init(take).await?).await
        })
    }
}

impl View for LaterView {
    fn shard(&self) -> ShardId {
        self.inner.shard
    }

    fn state(&self) -> ShardState {
        self.inner.taken.get().map_or(self.inner.known, View::state)
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        let key = Bytes::copy_from_slice(key);
        self.ask(move |view| view.get(space, &key))
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        let keys = keys.to_vec();
        self.ask(move |view| view.get_many(space, &keys, byte_count_max))
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        let range = range.clone();
        self.ask(move |view| view.scan(space, &range, direction, limit))
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        let range = range.clone();
        self.ask(move |view| view.scan_keys(&range, direction, limit))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        let range = range.clone();
        self.ask(move |view| view.scan_entries(&range, direction, limit))
    }

    fn intersect_keys(
        &self,
        prefixes: &[Bytes],
        from: u64,
        limit: IntersectionLimit,
    ) -> Option<Reply<Result<Intersection, Error>>> {
        let prefixes = prefixes.to_vec();
        Some(self.ask(move |view| {
            let answer = view.intersect_keys(&prefixes, from, limit);
            answer.unwrap_or_else(|| Reply::ready(Ok(Intersection::default())))
        }))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        let family = *family;
        self.ask(move |view| view.count_keys(&family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        let range = range.clone();
        self.ask(move |view| view.estimate_keys(&range))
    }
}
