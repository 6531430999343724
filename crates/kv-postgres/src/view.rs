//! One shard as of a moment: a REPEATABLE READ transaction that lives for one page.
//!
//! In: a shard, an epoch, reads of the contract. Out: a refusal of an outdated epoch, or answers.
//! Beginning the transaction and reading the shard's row is one round trip, so the row is of the same moment as everything that is
//! read afterwards. The index is asked of a replica (`sets`) that is as of that row.
//! Invariant: the last view of a transaction that is dropped ends it at once; one that is kept for a minute is ended by the store.

use crate::PostgresCore;
use crate::blobs::would_block;
use crate::committer::CHUNK_BYTES;
use crate::connection::StoreConnection;
use crate::error::Trouble;
use crate::pool::Pooled;
use crate::store::{PostgresStore, ShardRow, shard_columns, sql_id, sql_space};
use astrarium_kv::{
    Direction, EntryBatch, Error, FAMILY_BYTES, Intersection, IntersectionLimit, KeyBatch, KeyRange, PlaceId,
    PrefixSet, Reply, ScanBatch, ScanLimit, ShardId, ShardState, Space, View, contract,
};
use astrarium_kv_packed as set;
use astrarium_packed::SetView;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// Rows and bytes that one request of a scan gives at most.
const SCAN_ROWS_MAX: usize = 4096;
const SCAN_BYTES_MAX: usize = 8 << 20;

/// Connections that one reader of many ranges has at most.
const CONNECTIONS_MAX: usize = 4;

pub(crate) struct PostgresView {
    open: Arc<OpenView>,
}

/// What the answers of a view share.
struct OpenView {
    core: Arc<PostgresCore>,
    store: Arc<PostgresStore>,
    shard: ShardId,
    row: ShardRow,
    dropped: Arc<PrefixSet>,
    /// With the transaction, which ends with the last of the views in it.
    connection: Arc<Pooled>,
    set: Mutex<Option<Arc<SetView>>>,
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const READ_SHARDS: &str =
    concat!("SELECT s.id, ", shard_columns!(), " FROM shard s WHERE s.id = ANY($1::bigint[])");
const READ_KEY: &str = "SELECT v, chunks FROM kv WHERE shard = $1 AND space = $2 AND k = $3";
/// The limit keeps the planner from joining, which it does by reading the whole shard while it knows nothing of its size.
const READ_KEYS: &str = "SELECT e.i, kv.v, kv.chunks, kv.k FROM unnest($3::bytea[]) WITH ORDINALITY AS e(k, i) \
    CROSS JOIN LATERAL (SELECT v, chunks, k FROM kv WHERE kv.shard = $1 AND kv.space = $2 AND kv.k = e.k LIMIT 1) AS kv";
/// The same for as long as those before hold less than some bytes.
const READ_FIRST_KEYS: &str = "SELECT i, v, chunks, k FROM (SELECT e.i, kv.v, kv.chunks, kv.k, \
    coalesce(sum(octet_length(kv.v) + kv.chunks * 524288) OVER (ORDER BY e.i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) \
    AS before FROM unnest($3::bytea[]) WITH ORDINALITY AS e(k, i) CROSS JOIN LATERAL (SELECT v, chunks, k FROM kv \
    WHERE kv.shard = $1 AND kv.space = $2 AND kv.k = e.k LIMIT 1) AS kv) AS counted WHERE before < $4::bigint ORDER BY i";
const READ_CHUNKS: &str = "SELECT v FROM chunk WHERE shard = $1 AND space = $2 AND k = $3 ORDER BY n";
const SHARD_AND_KEY: &str = concat!(
    "SELECT ",
    shard_columns!(),
    ", kv.v, kv.chunks FROM shard s LEFT JOIN kv ON kv.shard = s.id AND kv.space = $2 AND kv.k = $3 WHERE s.id = $1"
);

/// Rows of a range, each with whether the range has one more after it, as long as those before hold less than some bytes.
macro_rules! scan_rows {
    ($order:literal) => {
        concat!(
            "SELECT k, v, chunks, has_next FROM (SELECT k, v, chunks, lead(1) OVER w IS NOT NULL AS has_next, \
             coalesce(sum(octet_length(k) + octet_length(v) + chunks * 524288) OVER \
             (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before \
             FROM (SELECT k, v, chunks FROM kv WHERE shard = $1 AND space = $2 AND k >= $3 AND k < $4 ORDER BY k ",
            $order,
            " LIMIT $5) AS page WINDOW w AS (ORDER BY k ",
            $order,
            ")) AS counted WHERE before < $6::bigint"
        )
    };
}
const SCAN_FORWARD: &str = scan_rows!("ASC");
const SCAN_BACKWARD: &str = scan_rows!("DESC");

impl PostgresCore {
    /// A view of a shard, for a reader who goes by this epoch.
    pub(crate) async fn view(
        self: Arc<PostgresCore>,
        shard: ShardId,
        epoch: u64,
    ) -> Result<PostgresView, Error> {
        let store = self.store_to_read(shard).await?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let connection = store.readers_of(shard).get().await?;
            let rows = match begin(&connection, &[shard]).await {
                Ok(rows) => rows,
                // A connection that nobody used for a while may be one to a store that was started again.
                Err(_) if attempts <= 2 => continue,
                Err(trouble) => return Err(trouble.into()),
            };
            let row = rows.get(&shard).cloned().unwrap_or_default();
            if row.pending.is_some() {
                drop(connection);
                self.wait_for_pending(&store, shard, &row).await?;
                continue;
            }
            return self.open_view(&store, &Arc::new(connection), (shard, epoch), row).await;
        }
    }

    /// Views of several shards. Nobody waits for a connection while he has one of the same store: further ones are taken if they are
    /// free, and else transactions have several views.
    pub(crate) async fn views(
        self: Arc<PostgresCore>,
        wanted: Vec<(ShardId, u64)>,
    ) -> Result<Vec<Arc<dyn View>>, Error> {
        let mut by_store = BTreeMap::<PlaceId, (Arc<PostgresStore>, Vec<(ShardId, u64)>)>::new();
        for (shard, epoch) in &wanted {
            let store = self.store_to_read(*shard).await?;
            by_store.entry(store.id).or_insert_with(|| (store, Vec::new())).1.push((*shard, *epoch));
        }
        let mut views = BTreeMap::<ShardId, Arc<dyn View>>::new();
        // Stores have an order, so that nobody waits in one for somebody who waits in another.
        for (store, own) in by_store.values() {
            let mut connections = vec![store.readers.get().await?];
            let spare = std::iter::from_fn(|| store.readers.idle());
            connections.extend(spare.take(own.len().min(CONNECTIONS_MAX) - 1));
            let share = own.len().div_ceil(connections.len());
            for (own, connection) in own.chunks(share).zip(connections) {
                for view in self.views_over(store, connection, own).await? {
                    views.insert(view.open.shard, Arc::new(view));
                }
            }
        }
        let missing = || Error::Contract { what: "a view was asked for twice".to_owned() };
        wanted.iter().map(|(shard, _)| views.remove(shard).ok_or_else(missing)).collect()
    }

    /// Views over one connection, or another one that takes its place.
    async fn views_over(
        self: &Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        mut connection: Pooled,
        wanted: &[(ShardId, u64)],
    ) -> Result<Vec<PostgresView>, Error> {
        let shards: Vec<ShardId> = wanted.iter().map(|(shard, _)| *shard).collect();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let rows = match begin(&connection, &shards).await {
                Ok(rows) => rows,
                Err(trouble) if attempts > 2 => return Err(trouble.into()),
                Err(_) => {
                    drop(connection);
                    connection = store.readers.get().await?;
                    continue;
                }
            };
            if let Some((shard, row)) = rows.iter().find(|(_, row)| row.pending.is_some()) {
                connection.end_transaction();
                self.wait_for_pending(store, *shard, row).await?;
                continue;
            }
            let connection = Arc::new(connection);
            let mut views = Vec::with_capacity(wanted.len());
            for named in wanted {
                let row = rows.get(&named.0).cloned().unwrap_or_default();
                views.push(self.clone().open_view(store, &connection, *named, row).await?);
            }
            return Ok(views);
        }
    }

    async fn open_view(
        self: Arc<PostgresCore>,
        store: &Arc<PostgresStore>,
        connection: &Arc<Pooled>,
        (shard, epoch): (ShardId, u64),
        row: ShardRow,
    ) -> Result<PostgresView, Error> {
        self.known.note(shard, &row);
        contract::check_epoch(shard, epoch, row.state)?;
        let dropped = self.drops_of(connection, shard, row.drops).await?;
        let set = Mutex::new(self.sets.at(shard, &row));
        let (store, connection) = (Arc::clone(store), Arc::clone(connection));
        let open = OpenView { core: self, store, shard, row, dropped, connection, set };
        Ok(PostgresView { open: Arc::new(open) })
    }

    /// One key of a shard as it is now, in one round trip.
    pub(crate) async fn read(
        self: Arc<PostgresCore>,
        shard: ShardId,
        epoch: u64,
        space: Space,
        key: Bytes,
    ) -> Result<(ShardState, Option<Bytes>), Error> {
        contract::check_key(shard, Some(space), &key)?;
        let store = self.store_to_read(shard).await?;
        let mut attempts = 0;
        let found = loop {
            attempts += 1;
            let connection = store.readers_of(shard).get().await?;
            let parameters = (sql_id(shard), sql_space(Some(space)), &key[..]);
            match connection.query(SHARD_AND_KEY, &[&parameters.0, &parameters.1, &parameters.2]).await {
                Ok(rows) => break rows,
                Err(_) if attempts <= 2 => {}
                Err(trouble) => return Err(trouble.into()),
            }
        };
        let row = found.first().map(|row| ShardRow::of(row, 0)).unwrap_or_default();
        let value = found.first().and_then(|row| row.get::<_, Option<Vec<u8>>>(crate::store::SHARD_COLUMNS));
        let chunks = found.first().and_then(|row| row.get::<_, Option<i32>>(crate::store::SHARD_COLUMNS + 1));
        if row.pending.is_some() || row.drops > 0 || chunks.unwrap_or(0) > 0 {
            // What needs more than a row needs a view.
            let view = self.view(shard, epoch).await?;
            let value = view.get(space, &key).await?;
            return Ok((view.state(), value));
        }
        self.known.note(shard, &row);
        contract::check_epoch(shard, epoch, row.state)?;
        Ok((row.state, value.map(Bytes::from)))
    }
}

/// How many of some keys a bounded read has answered: all, or as far as the last row that it gave once it gave enough.
fn answered(rows: &[Row], byte_count_max: usize, key_count: usize) -> usize {
    let bytes = |row: &Row| {
        let chunks = usize::try_from(row.get::<_, i32>(2)).unwrap_or_default();
        row.get::<_, &[u8]>(1).len() + chunks * CHUNK_BYTES
    };
    let last = rows.last().filter(|_| rows.iter().map(bytes).sum::<usize>() >= byte_count_max);
    last.map_or(key_count, |row| usize::try_from(row.get::<_, i64>(0)).unwrap_or(key_count).min(key_count))
}

/// Begins a transaction and reads the rows of shards in it.
async fn begin(
    connection: &StoreConnection,
    shards: &[ShardId],
) -> Result<BTreeMap<ShardId, ShardRow>, Trouble> {
    let _asking = connection.asking();
    let ids: Vec<i64> = shards.iter().copied().map(sql_id).collect();
    let statement = connection.prepared(READ_SHARDS).await?;
    let (begun, rows) =
        tokio::join!(connection.script(BEGIN), async { connection.rows(&statement, &[&ids]).await });
    begun?;
    let row = |row: &Row| (ShardId(row.get::<_, i64>(0).cast_unsigned()), ShardRow::of(row, 1));
    Ok(rows?.iter().map(row).collect())
}

impl OpenView {
    fn is_dropped(&self, space: Space, key: &[u8]) -> bool {
        self.dropped.covers(Some(space), key)
    }

    async fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if self.is_dropped(space, key) {
            return Ok(None);
        }
        let (shard, number) = (sql_id(self.shard), sql_space(Some(space)));
        let rows = self.connection.query(READ_KEY, &[&shard, &number, &key]).await?;
        match rows.first() {
            Some(row) => Ok(Some(self.value(space, key, row, 0).await?)),
            None => Ok(None),
        }
    }

    /// The value of a row's columns, with the chunks it has beyond them.
    async fn value(&self, space: Space, key: &[u8], row: &Row, first: usize) -> Result<Bytes, Error> {
        let mut value: Vec<u8> = row.get(first);
        let chunks: i32 = row.get(first + 1);
        if chunks > 0 {
            let (shard, number) = (sql_id(self.shard), sql_space(Some(space)));
            let rows = self.connection.query(READ_CHUNKS, &[&shard, &number, &key]).await?;
            if rows.len() != chunks as usize {
                return Err(Error::Corruption { what: "a part of a long value is missing".to_owned() });
            }
            for row in &rows {
                value.extend_from_slice(row.get(0));
            }
        }
        Ok(Bytes::from(value))
    }

    async fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Result<Vec<Option<Bytes>>, Error> {
        let (shard, number) = (sql_id(self.shard), sql_space(Some(space)));
        let asked: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let (rows, count) = if keys.len() == 1 || byte_count_max == usize::MAX {
            (self.connection.query(READ_KEYS, &[&shard, &number, &asked]).await?, keys.len())
        } else {
            // With a limit of nothing there would be no row, and keys after the first would seem absent.
            let bytes_max = i64::try_from(byte_count_max.max(1)).unwrap_or(i64::MAX);
            let rows = self.connection.query(READ_FIRST_KEYS, &[&shard, &number, &asked, &bytes_max]).await?;
            let count = answered(&rows, byte_count_max.max(1), keys.len());
            (rows, count)
        };
        let keys = &keys[..count];
        let mut values = vec![None; count];
        for row in &rows {
            let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
            if let Some(value) = values.get_mut(place) {
                *value = Some(self.value(space, row.get(3), row, 1).await?);
            }
        }
        for (value, key) in values.iter_mut().zip(keys) {
            if self.is_dropped(space, key) {
                *value = None;
            }
        }
        contract::truncate_values(&mut values, byte_count_max);
        Ok(values)
    }

    async fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<ScanBatch, Error> {
        let mut entries = Vec::new();
        let mut byte_count = 0;
        for mut rest in self.dropped.cut_out(Some(space), range, direction) {
            loop {
                let is_full = !entries.is_empty()
                    && (entries.len() >= limit.entry_count_max || byte_count >= limit.byte_count_max);
                if is_full {
                    let (next, _) = self.scan_once(space, &rest, direction, 1, 1).await?;
                    if next.is_empty() {
                        break;
                    }
                    return Ok(ScanBatch { entries, more: true });
                }
                let entries_left = limit.entry_count_max.saturating_sub(entries.len()).max(1);
                let bytes_left = limit.byte_count_max.saturating_sub(byte_count).max(1);
                let (found, has_more) =
                    self.scan_once(space, &rest, direction, entries_left, bytes_left).await?;
                byte_count += found.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
                entries.extend(found);
                let Some((last, _)) = entries.last().filter(|_| has_more) else { break };
                match direction {
                    Direction::Forward => rest.start = astrarium_kv::just_after(last),
                    Direction::Backward => rest.end = last.clone(),
                }
                if entries.len() >= limit.entry_count_max || byte_count >= limit.byte_count_max {
                    return Ok(ScanBatch { entries, more: true });
                }
            }
        }
        Ok(ScanBatch { entries, more: false })
    }

    /// Entries of a range by one request, and whether the range has more.
    async fn scan_once(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(Vec<(Bytes, Bytes)>, bool), Error> {
        if range.start >= range.end {
            return Ok((Vec::new(), false));
        }
        let statement = match direction {
            Direction::Forward => SCAN_FORWARD,
            Direction::Backward => SCAN_BACKWARD,
        };
        let count_max = count_max.min(SCAN_ROWS_MAX);
        let (shard, number) = (sql_id(self.shard), sql_space(Some(space)));
        let (start, end) = (&range.start[..], &range.end[..]);
        let (count, bytes) = (count_max as u64 + 1, bytes_max.min(SCAN_BYTES_MAX) as u64);
        let (count, bytes) = (count.cast_signed(), bytes.cast_signed());
        let rows = self.connection.query(statement, &[&shard, &number, &start, &end, &count, &bytes]).await?;
        let has_more = rows.len() > count_max || rows.last().is_some_and(|row| row.get(3));
        let mut entries = Vec::with_capacity(rows.len().min(count_max));
        for row in rows.iter().take(count_max) {
            let key: Vec<u8> = row.get(0);
            let value = self.value(space, &key, row, 1).await?;
            entries.push((Bytes::from(key), value));
        }
        Ok((entries, has_more))
    }

    /// The index as of this view.
    async fn set(&self) -> Result<Arc<SetView>, Error> {
        if let Some(set) = self.known_set() {
            return Ok(set);
        }
        let connection: &StoreConnection = &self.connection;
        let set = self.core.fetch_set(&self.store, connection, self.shard, &self.row).await?;
        *self.set.lock() = Some(Arc::clone(&set));
        Ok(set)
    }

    fn known_set(&self) -> Option<Arc<SetView>> {
        self.set.lock().clone()
    }

    /// An answer of the index in the words of the contract.
    fn told<T>(&self, answer: Result<T, astrarium_packed::Error>) -> Result<T, Error> {
        answer.map_err(|error| match set::told(error) {
            Error::Corruption { what } => self.core.note_damage(self.shard, what),
            other => other,
        })
    }
}

impl PostgresView {
    /// What the index says: at once if all that is needed is in memory, on a thread that may wait if not.
    fn of_set<T: Send + 'static>(
        &self,
        ask: impl Fn(&SetView) -> Result<T, astrarium_packed::Error> + Send + Sync + 'static,
    ) -> Reply<Result<T, Error>> {
        if let Some(set) = self.open.known_set() {
            match ask(&set) {
                Err(error) if would_block(&error) => {}
                answer => return Reply::ready(self.open.told(answer)),
            }
        }
        let open = Arc::clone(&self.open);
        Reply::later(async move {
            let set = open.set().await?;
            let answer = match ask(&set) {
                Err(error) if would_block(&error) => {
                    let work = move || {
                        astrarium_env::allow_blocking();
                        ask(&set)
                    };
                    open.core.runtime.spawn_blocking(work).await.map_err(|_| crate::error::closed())?
                }
                answer => answer,
            };
            open.told(answer)
        })
    }
}

impl View for PostgresView {
    fn shard(&self) -> ShardId {
        self.open.shard
    }

    fn state(&self) -> ShardState {
        self.open.row.state
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        if let Err(error) = contract::check_key(self.open.shard, Some(space), key) {
            return Reply::ready(Err(error));
        }
        let (open, key) = (Arc::clone(&self.open), Bytes::copy_from_slice(key));
        Reply::later(async move { open.get(space, &key).await })
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        if let Err(error) = contract::check_keys(self.open.shard, Some(space), keys) {
            return Reply::ready(Err(error));
        }
        if keys.is_empty() {
            return Reply::ready(Ok(Vec::new()));
        }
        let (open, keys) = (Arc::clone(&self.open), keys.to_vec());
        Reply::later(async move { open.get_many(space, &keys, byte_count_max).await })
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        if let Err(error) = contract::check_range(self.open.shard, Some(space), range) {
            return Reply::ready(Err(error));
        }
        let (open, range) = (Arc::clone(&self.open), range.clone());
        Reply::later(async move { open.scan(space, &range, direction, limit).await })
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        if let Err(error) = contract::check_range(self.open.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let pieces = self.open.dropped.cut_out(None, range, direction);
        self.of_set(move |view| set::scan(view, &pieces, direction, limit))
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        if let Err(error) = contract::check_range(self.open.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let pieces = self.open.dropped.cut_out(None, range, direction);
        self.of_set(move |view| set::scan_entries(view, &pieces, direction, limit))
    }

    fn intersect_keys(
        &self,
        prefixes: &[Bytes],
        from: u64,
        limit: IntersectionLimit,
    ) -> Option<Reply<Result<Intersection, Error>>> {
        if let Err(error) = contract::check_keys(self.open.shard, None, prefixes) {
            return Some(Reply::ready(Err(error)));
        }
        if prefixes.iter().any(|prefix| self.open.dropped.covers(None, prefix)) {
            return Some(Reply::ready(Ok(Intersection::default())));
        }
        let prefixes = prefixes.to_vec();
        Some(self.of_set(move |view| set::intersect(view, &prefixes, from, limit)))
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        if let Err(error) = contract::check_key(self.open.shard, None, family) {
            return Reply::ready(Err(error));
        }
        if self.open.dropped.covers(None, family) {
            return Reply::ready(Ok(0));
        }
        let family = *family;
        self.of_set(move |view| view.count(&family))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        if let Err(error) = contract::check_range(self.open.shard, None, range) {
            return Reply::ready(Err(error));
        }
        let pieces = self.open.dropped.cut_out(None, range, Direction::Forward);
        self.of_set(move |view| pieces.iter().map(|piece| view.estimate(&piece.start, &piece.end)).sum())
    }
}
