//! fjall, opened the way we use it: one keyspace for each space, one for what groups change of the set until it is merged
//! into runs, one for our own state, tuned by their shape.
//!
//! In: the engine's folder. Out: a [`Store`] to read from and to write groups to.
//! Invariants
//! - Every batch in fjall's journal is one commit group and ends with the group's record: its number, and a checksum of
//!   everything before it in the batch (see `journal`, which reads it back).
//! - The journal is not compressed: what the checksum covers is what lies on disk, byte for byte, and the committer
//!   spends no time on it.
//! - Memtables are small, so that what a kill leaves to replay is small too.
//!
//! Not here: what a group holds (`group`), the runs of the set (`set`), repairing a journal (`recovery`).

use crate::drops::{DropList, FilterFactory};
use crate::error::reading;
use crate::files::KEYSPACES_FOLDER;
use crate::identity::FolderIdentity;
use crate::journal::{self, FOLLOWED_COUNT, GROUP_KEY, GroupRecord, Lineage};
use crate::readers::Readers;
use crate::scrub::Scrub;
use crate::values::ValueCache;
use crate::{Options, open};
use astrarium_kv::{Error, KeyPrefix, ShardId, ShardState, Space, TALLY_COUNT, contract};
use astrarium_packed::DamageSignal;
use fjall::config::{BlockSizePolicy, CompressionPolicy, HashRatioPolicy, RestartIntervalPolicy};
use fjall::{
    AbstractTree, CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch,
    PersistMode, Readable, Slice,
};
use lsm_tree::compaction::filter::Factory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Journals that may stay because some keyspace has not been flushed; fjall's smallest.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// fjall's threads for writing and merging tables. The first one only writes, and hands merges on: while all others are
/// busy it does so without end, at the cost of a core. So there is one more than keyspaces with much to merge.
const WORKER_COUNT: usize = 4;

/// Full memtables that may wait to be written, for each keyspace. fjall stops at 4, and one group can add two.
const SEALED_MEMTABLES_MAX: usize = 1;

/// Runs of tables that may wait to be merged. fjall slows down at 20 and stops at 30.
const WAITING_RUNS_MAX: usize = 24;

/// Below every group's number among the blocks of the set.
const ANCHOR_KEY: [u8; 1] = [0];

/// The key in each space under which stand the folder's identity and the last group that changed the space. It is ours: keys of
/// the contract that begin so are refused, and scans end before it.
pub(crate) const RESERVED_KEY: [u8; 16] = astrarium_kv::contract::RESERVED_PREFIX;

/// Names of the keyspaces of spaces, in the order of [`Space::ALL`].
pub(crate) const SPACE_NAMES: [&str; Space::ALL.len()] = ["meta", "body", "log"];
pub(crate) const SET_NAME: &str = "set";
pub(crate) const STATE_NAME: &str = "state";

/// The place of the set among followed keyspaces.
const SET_PLACE: usize = FOLLOWED_COUNT - 1;

/// Time between two looks whether fjall has caught up.
const ROOM_INTERVAL: Duration = Duration::from_millis(1);

/// How long closing waits for memtables to reach the disk. What is not flushed then is replayed on opening.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Store {
    folder: PathBuf,
    pub(crate) database: Database,
    spaces: [Keyspace; Space::ALL.len()],
    /// What commit groups change of the set, until it is merged into runs: one value for each group.
    set: Keyspace,
    /// Whether the next group has to write into `set`, whatever it is; see [`Store::drop_set_blocks`].
    is_anchor_due: AtomicBool,
    /// Shard states and the group record; not reachable through the contract.
    state: Keyspace,
    /// Who reads what may be on the disk.
    pub(crate) readers: Readers,
    /// Single values that views have read.
    pub(crate) values: ValueCache,
    /// What was dropped and is not given back.
    pub(crate) drops: Arc<DropList>,
    /// Where readers tell that the set's blobs are damaged.
    pub(crate) set_damage: Arc<DamageSignal>,
    /// Where damage of tables is looked for and told.
    pub(crate) scrub: Scrub,
}

/// A table of a space or of our own state.
pub(crate) struct TableFile {
    /// The folder of its keyspace.
    pub(crate) keyspace: PathBuf,
    pub(crate) number: u64,
    /// Nothing for our own state.
    pub(crate) space: Option<Space>,
    pub(crate) first: bytes::Bytes,
    pub(crate) last: bytes::Bytes,
}

impl Store {
    pub(crate) fn open(folder: &Path, options: &Options) -> fjall::Result<Store> {
        let drops = Arc::new(DropList::default());
        let database = Database::builder(folder)
            .with_compaction_filter_factories(filters(&drops))
            .cache_size(
                options.cache_bytes - open::set_cache_bytes(options) - open::value_cache_bytes(options),
            )
            .max_cached_files(Some(options.open_tables_max.max(1)))
            .journal_compression(CompressionType::None)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(WORKER_COUNT)
            .open()?;
        let [meta, body, log] = SPACE_NAMES;
        let meta = database.keyspace(meta, || small_values(2 << 20))?;
        let body = database.keyspace(body, bodies)?;
        let log = database.keyspace(log, || small_values(8 << 20))?;
        let set = database.keyspace(SET_NAME, packed_values)?;
        let state = database.keyspace(STATE_NAME, || small_values(2 << 20))?;
        drops.add(read_drops(&state)?);
        Ok(Store {
            folder: folder.to_path_buf(),
            database,
            spaces: [meta, body, log],
            set,
            is_anchor_due: false.into(),
            state,
            readers: Readers::new(options.before_read.clone()),
            values: ValueCache::new(open::value_cache_bytes(options)),
            drops,
            set_damage: Arc::default(),
            scrub: Scrub::default(),
        })
    }

    pub(crate) fn keyspace(&self, space: Space) -> &Keyspace {
        &self.spaces[space as usize]
    }

    /// The record of the last group, if there was one.
    pub(crate) fn last_record(&self) -> Result<Option<GroupRecord>, Error> {
        let Some(value) = self.state.get(GROUP_KEY).map_err(|error| reading(&error))? else {
            return Ok(None);
        };
        GroupRecord::decode(&value).map(Some).ok_or_else(|| unreadable("the group record"))
    }

    /// What a space says of itself: the folder it belongs to, and the last group that changed it.
    pub(crate) fn space_record(&self, space: Space) -> Result<Option<SpaceRecord>, Error> {
        let value = self.keyspace(space).get(RESERVED_KEY).map_err(|error| reading(&error))?;
        let record = value.map(|value| SpaceRecord::decode(&value));
        record.map(|record| record.ok_or_else(|| unreadable("the record of a space"))).transpose()
    }

    /// Numbers and names of the keyspaces.
    pub(crate) fn keyspace_names(&self) -> impl Iterator<Item = (u64, String)> {
        self.keyspaces().map(|keyspace| (keyspace.id(), keyspace.name().to_string()))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// All tables of the spaces and of our own state, as they are now.
    pub(crate) fn table_files(&self) -> Vec<TableFile> {
        let spaces = Space::ALL.into_iter().map(Some).zip(&self.spaces);
        let keyspaces = spaces.chain([(None, &self.state)]);
        let files = keyspaces.flat_map(|(space, keyspace)| {
            let folder = self.folder.join(KEYSPACES_FOLDER).join(keyspace.id().to_string());
            let file = |table: &lsm_tree::Table| {
                let keys = &table.metadata.key_range;
                TableFile {
                    keyspace: folder.clone(),
                    number: table.id(),
                    space,
                    first: bytes::Bytes::copy_from_slice(keys.min()),
                    last: bytes::Bytes::copy_from_slice(keys.max()),
                }
            };
            keyspace.tree.current_version().iter_tables().map(file).collect::<Vec<_>>()
        });
        files.collect()
    }

    /// A shard's state as a snapshot sees it.
    pub(crate) fn shard(&self, snapshot: &fjall::Snapshot, shard: ShardId) -> Result<ShardState, Error> {
        let value = snapshot.get(&self.state, shard_key(shard)).map_err(|error| reading(&error))?;
        let Some(value) = value else {
            return Ok(ShardState::default());
        };
        decode_shard(&value).ok_or_else(|| unreadable("the state of a shard"))
    }

    /// The highest shard that there are counters or keys of.
    pub(crate) fn highest_shard(&self) -> Result<ShardId, Error> {
        let last = |keyspace: &Keyspace, start: &[u8], end: &[u8]| {
            let last = keyspace.range(start..end).next_back().map(Guard::key).transpose();
            Ok(last.map_err(|error| reading(&error))?.map(bytes::Bytes::from))
        };
        let [first, beyond] = [ShardId(0), ShardId(u64::MAX)].map(shard_key);
        let counted = last(&self.state, &first, &beyond)?;
        let counted = counted.and_then(|key| contract::shard_of(Some(Space::Body), &key));
        let spaces = Space::ALL
            .into_iter()
            .map(|space| contract::highest_shard(space, |end| last(self.keyspace(space), &[], end)));
        let mut highest = counted.unwrap_or(contract::META_SHARD);
        for shard in spaces {
            highest = highest.max(shard?);
        }
        Ok(highest)
    }

    /// What groups after this one changed of the set, the oldest first.
    pub(crate) fn set_blocks(&self, after: u64) -> Result<Vec<(u64, bytes::Bytes)>, Error> {
        let mut blocks = Vec::new();
        for entry in self.set.range((after + 1).to_be_bytes()..) {
            let (key, value) = entry.into_inner().map_err(|error| reading(&error))?;
            let group = key[..].try_into().map_err(|_| unreadable("a group's block of the set"))?;
            blocks.push((u64::from_be_bytes(group), value.into()));
        }
        Ok(blocks)
    }

    /// Lets go of what groups up to this one changed of the set, as far as whole tables hold nothing else. What is left
    /// is passed over by [`Store::set_blocks`].
    ///
    /// fjall keeps a journal until the tables of every keyspace in it are newer than it. Where the newest table goes, that
    /// will never be so again unless something is written after it: hence the anchor.
    pub(crate) fn drop_set_blocks(&self, up_to: u64) -> fjall::Result<()> {
        if self.set.table_count() == 0 {
            return Ok(());
        }
        self.set.tree.drop_range(..=up_to.to_be_bytes())?;
        self.is_anchor_due.store(true, Ordering::Release);
        Ok(())
    }

    /// Waits while fjall is behind with writing memtables to tables, or with merging tables.
    ///
    /// fjall waits by itself, at limits a little higher, but forever when its background threads have failed in the
    /// meantime; here that ends the wait with an error. Waiting earlier also keeps fewer memtables in memory.
    pub(crate) fn wait_for_room(&self) -> fjall::Result<()> {
        while self.keyspaces().any(is_behind) {
            // Does nothing but tell whether a background thread has failed.
            self.database.persist(PersistMode::Buffer)?;
            std::thread::sleep(ROOM_INTERVAL);
        }
        Ok(())
    }

    /// Whether full memtables wait to be written out.
    pub(crate) fn is_flushing(&self) -> bool {
        self.keyspaces().any(|keyspace| keyspace.sealed_memtable_count() > 0)
    }

    /// Begins a group of about this many changes.
    pub(crate) fn begin(&self, change_count: usize) -> GroupWriter<'_> {
        let batch = OwnedWriteBatch::with_capacity(self.database.clone(), change_count + 8);
        GroupWriter { store: self, batch, checksum: crc32fast::Hasher::new(), is_changed: Default::default() }
    }

    /// Writes all memtables to tables, so that the journal is not needed. Tells whether that is so.
    pub(crate) fn flush(&self) -> fjall::Result<bool> {
        let deadline = Instant::now() + FLUSH_TIME_MAX;
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable()?;
        }
        while !self.is_flushed() && Instant::now() < deadline {
            self.database.persist(PersistMode::Buffer)?;
            std::thread::sleep(ROOM_INTERVAL);
        }
        Ok(self.is_flushed())
    }

    /// Has fjall write out our own state, and look for files that nobody needs any more.
    pub(crate) fn rotate_state(&self) -> fjall::Result<()> {
        self.state.rotate_memtable().map(drop)
    }

    fn is_flushed(&self) -> bool {
        self.keyspaces().all(|keyspace| {
            keyspace.sealed_memtable_count() == 0 && keyspace.tree.active_memtable().is_empty()
        })
    }

    fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.spaces.iter().chain([&self.set, &self.state])
    }

    /// Ends fjall's threads and, when everything is in tables, empties the journals: the next start has nothing to
    /// replay. They are emptied and not removed, because fjall learns its last sequence number only if one is there.
    pub(crate) fn close(self) -> std::io::Result<()> {
        let is_flushed = self.is_flushed();
        let Store { folder, database, spaces, set, state, .. } = self;
        drop((spaces, set, state));
        drop(database);
        if is_flushed { journal::empty_all(&folder) } else { Ok(()) }
    }

    /// Reads every entry of every keyspace, and so checks every block that is not in the cache yet.
    pub(crate) fn read_everything(&self) -> fjall::Result<(u64, u64)> {
        let snapshot = self.database.snapshot();
        let (mut entry_count, mut byte_count) = (0, 0);
        for keyspace in self.keyspaces() {
            for entry in snapshot.iter(keyspace) {
                let (key, value) = entry.into_inner()?;
                if *key == RESERVED_KEY {
                    continue;
                }
                entry_count += 1;
                byte_count += (key.len() + value.len()) as u64;
            }
        }
        Ok((entry_count, byte_count))
    }
}

/// A commit group on its way into one atomic, synced batch of fjall.
pub(crate) struct GroupWriter<'store> {
    store: &'store Store,
    batch: OwnedWriteBatch,
    checksum: crc32fast::Hasher,
    /// Which of the followed keyspaces the group changes.
    is_changed: [bool; FOLLOWED_COUNT],
}

/// What a space says of itself under [`RESERVED_KEY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceRecord {
    pub(crate) identity: FolderIdentity,
    /// The last group that changed the space.
    pub(crate) group: u64,
}

impl SpaceRecord {
    fn encode(self) -> [u8; FolderIdentity::BYTES + 8] {
        let mut value = [0; FolderIdentity::BYTES + 8];
        value[..FolderIdentity::BYTES].copy_from_slice(&self.identity.0);
        value[FolderIdentity::BYTES..].copy_from_slice(&self.group.to_be_bytes());
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Option<SpaceRecord> {
        let (identity, group) = value.split_first_chunk()?;
        Some(SpaceRecord {
            identity: FolderIdentity(*identity),
            group: u64::from_be_bytes(group.try_into().ok()?),
        })
    }
}

impl GroupWriter<'_> {
    /// Adds a change: a value, or nothing to remove the key. A key may be named once only, since all changes of a
    /// batch have the same sequence number in fjall.
    pub(crate) fn change(&mut self, space: Space, key: bytes::Bytes, value: Option<bytes::Bytes>) {
        let keyspace = self.store.keyspace(space);
        self.is_changed[space as usize] = true;
        journal::checksum_item(&mut self.checksum, keyspace.id(), &key, value.as_deref());
        match value {
            Some(value) => self.batch.insert(keyspace, Slice::from(key), Slice::from(value)),
            None => self.batch.remove(keyspace, Slice::from(key)),
        }
    }

    /// Adds what the group changes of the set.
    pub(crate) fn set_block(&mut self, group: u64, value: bytes::Bytes) {
        let key = group.to_be_bytes();
        self.is_changed[SET_PLACE] = true;
        journal::checksum_item(&mut self.checksum, self.store.set.id(), &key, Some(&value));
        self.batch.insert(&self.store.set, key, Slice::from(value));
    }

    /// Has every space say that the group changed it, also those that it does not.
    pub(crate) fn follow_spaces(&mut self) {
        self.is_changed[..Space::ALL.len()].fill(true);
    }

    /// Notes prefixes that the group drops. All spaces take part in the group, so that what was in them before is older than
    /// something they will have in a table; see `reclaim`.
    pub(crate) fn drop_prefixes(&mut self, prefixes: &[KeyPrefix]) {
        self.follow_spaces();
        for prefix in prefixes {
            let key = drop_key(prefix);
            journal::checksum_item(&mut self.checksum, self.store.state.id(), &key, Some(&[]));
            self.batch.insert(&self.store.state, key, []);
        }
    }

    /// Forgets prefixes that are given back.
    pub(crate) fn forget_prefixes(&mut self, prefixes: &[KeyPrefix]) {
        for prefix in prefixes {
            let key = drop_key(prefix);
            journal::checksum_item(&mut self.checksum, self.store.state.id(), &key, None);
            self.batch.remove(&self.store.state, key);
        }
    }

    pub(crate) fn shard(&mut self, shard: ShardId, state: ShardState) {
        let (key, value) = (shard_key(shard), encode_shard(state));
        journal::checksum_item(&mut self.checksum, self.store.state.id(), &key, Some(&value));
        self.batch.insert(&self.store.state, key, value);
    }

    /// Writes the group and waits until it is on stable storage; only then readers see it. Takes note in `history` of what the
    /// group changes.
    pub(crate) fn commit(mut self, group: u64, history: &mut History) -> fjall::Result<()> {
        if self.store.is_anchor_due.swap(false, Ordering::AcqRel) {
            journal::checksum_item(&mut self.checksum, self.store.set.id(), &ANCHOR_KEY, Some(&[]));
            self.batch.insert(&self.store.set, ANCHOR_KEY, []);
        }
        let record = SpaceRecord { identity: history.identity, group }.encode();
        for space in Space::ALL {
            if self.is_changed[space as usize] {
                let keyspace = self.store.keyspace(space);
                journal::checksum_item(&mut self.checksum, keyspace.id(), &RESERVED_KEY, Some(&record));
                self.batch.insert(keyspace, RESERVED_KEY, record);
            }
        }
        let History { identity, last_changes } = *history;
        let lineage = Lineage { identity, before: last_changes, is_changed: self.is_changed };
        let record = GroupRecord::ending(group, lineage, self.checksum);
        self.batch.insert(&self.store.state, GROUP_KEY, record.encode());
        self.batch.durability(Some(PersistMode::SyncData)).commit()?;
        history.last_changes = lineage.last_changes(group);
        Ok(())
    }
}

/// What the next group has to know of those before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub(crate) identity: FolderIdentity,
    /// The last group that changed each followed keyspace.
    pub(crate) last_changes: [u64; FOLLOWED_COUNT],
}

impl History {
    /// The last group that changed the set.
    pub(crate) fn last_set_change(&self) -> u64 {
        self.last_changes[SET_PLACE]
    }
}

fn is_behind(keyspace: &Keyspace) -> bool {
    keyspace.sealed_memtable_count() > SEALED_MEMTABLES_MAX || keyspace.tree.l0_run_count() > WAITING_RUNS_MAX
}

/// Documents: compressed, in blocks of several of them, with a hash index for exact keys. Keys are stored whole: beside a
/// document they are short, and a scan then does not put each of them together again.
fn bodies() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(16 << 20)
        .data_block_size_policy(BlockSizePolicy::all(16 << 10))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(1))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(0.75))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
}

/// Short entries read by key or by range: the usual small blocks, compressed once they have settled.
fn small_values(memtable_bytes: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes)
}

/// Blocks of a commit group: packed already, written once and soon removed.
fn packed_values() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(8 << 20)
        .data_block_size_policy(BlockSizePolicy::all(16 << 10))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
}

fn unreadable(what: &str) -> Error {
    Error::Corruption { what: format!("{what} has an unknown form") }
}

/// Tells fjall which filter the compactions of a keyspace have, by its name.
type FilterAssigner = Arc<dyn Fn(&str) -> Option<Arc<dyn Factory>> + Send + Sync>;

fn filters(drops: &Arc<DropList>) -> FilterAssigner {
    let drops = Arc::clone(drops);
    Arc::new(move |name| {
        let space = Space::ALL.into_iter().find(|space| SPACE_NAMES[*space as usize] == name)?;
        Some(Arc::new(FilterFactory { space, drops: Arc::clone(&drops) }))
    })
}

/// The first byte of keys that name a dropped prefix; then the space, or [`SET_DROP`], then the prefix.
const DROP_TAG: u8 = b'd';
const SET_DROP: u8 = 0xFF;

fn drop_key(prefix: &KeyPrefix) -> Vec<u8> {
    let place = prefix.space.map_or(SET_DROP, |space| space as u8);
    [&[DROP_TAG, place], &prefix.bytes[..]].concat()
}

fn read_drops(state: &Keyspace) -> fjall::Result<Vec<KeyPrefix>> {
    let read = |entry: fjall::Guard| {
        let key = entry.key()?;
        let space = Space::ALL.get(usize::from(key[1])).copied();
        Ok(KeyPrefix { space, bytes: bytes::Bytes::copy_from_slice(&key[2..]) })
    };
    // A prefix has at least one byte.
    state.range([DROP_TAG, 0]..[DROP_TAG + 1, 0]).map(read).collect()
}

/// One byte that is not [`GROUP_KEY`], then the shard's number.
fn shard_key(shard: ShardId) -> [u8; 9] {
    let mut key = [b's'; 9];
    key[1..].copy_from_slice(&shard.0.to_be_bytes());
    key
}

/// Version, epoch, highest number, then the sums.
const SHARD_BYTES: usize = 8 * (3 + TALLY_COUNT);
/// Follows for a shard that was dropped.
const DROPPED: u8 = 1;

fn encode_shard(state: ShardState) -> Vec<u8> {
    let mut value = vec![0; SHARD_BYTES];
    let numbers = [state.version, state.epoch, state.high_water].into_iter();
    let numbers = numbers.chain(state.tallies.map(i64::cast_unsigned));
    for (place, number) in value.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    if state.is_dropped {
        value.push(DROPPED);
    }
    value
}

fn decode_shard(value: &[u8]) -> Option<ShardState> {
    let (numbers, rest) = value.as_chunks::<8>();
    let is_dropped = match rest {
        [] => false,
        [DROPPED] => true,
        _ => return None,
    };
    let [version, epoch, high_water, tallies @ ..] = numbers else {
        return None;
    };
    let [version, epoch, high_water] = [version, epoch, high_water].map(|number| u64::from_be_bytes(*number));
    let tallies: &[[u8; 8]; TALLY_COUNT] = tallies.try_into().ok()?;
    let tallies = tallies.map(i64::from_be_bytes);
    Some(ShardState { version, epoch, high_water, tallies, is_dropped })
}
