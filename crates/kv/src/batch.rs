//! One transaction, ready to commit: what must hold, and what changes.

use crate::{CommitVersion, Drops, KeyPrefix, SetChanges, ShardId, Space, TALLY_COUNT, contract};
use bytes::Bytes;

/// A transaction of one shard, prepared by the request and only checked and applied by the engine.
#[derive(Debug, Clone)]
pub struct WriteBatch {
    /// The shard whose version the batch receives.
    pub shard: ShardId,
    /// The shard's epoch as the preparer saw it. A different one refuses the batch with [`crate::Error::Fenced`].
    pub epoch: u64,
    /// Highest number the batch uses from the shard's number space; the engine remembers the maximum.
    pub high_water: u64,
    /// What the batch adds to the shard's running sums.
    pub tallies: [i64; TALLY_COUNT],
    /// Shards whose epoch rises by one when this batch commits.
    pub fences: Vec<ShardId>,
    /// Shards that begin with this batch. One that was founded or fenced already refuses it with [`crate::Error::ShardExists`].
    pub foundings: Vec<(ShardId, Founding)>,
    /// What must hold on the state just before this batch.
    pub expectations: Vec<(Space, Bytes, Expectation)>,
    /// Applied in order; a later mutation of a key replaces an earlier one.
    pub mutations: Vec<Mutation>,
    /// Keys that come into the engine's set, and keys that go.
    pub set: SetChanges,
    /// What is dropped whole, however much it holds.
    pub drops: Drops,
}

/// What a new shard begins with: for shards that go on where others were, or come from a backup. What was committed to it before is
/// its content, and counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Founding {
    /// The next batch of the shard gets a version after this one, so that versions its content already names stay below.
    pub version: u64,
    /// The highest number that its content uses.
    pub high_water: u64,
    /// What is added to the sums of its content.
    pub tallies: [i64; TALLY_COUNT],
}

/// What a batch relied on. Checked against the state just before it, earlier batches of the same group included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// The key has no value.
    Absent,
    /// The key has some value.
    Present,
    /// The key has a value whose first eight bytes are this version (see [`Stamp`]).
    Version(u64),
}

/// One change of one key.
#[derive(Debug, Clone)]
pub enum Mutation {
    /// Writes a value.
    Put {
        /// Where.
        space: Space,
        /// At most 32 KiB.
        key: Bytes,
        /// At most 16 MiB.
        value: Bytes,
        /// Where the engine fills in the commit version.
        stamp: Stamp,
    },
    /// Removes a key; no error if it is absent.
    Delete {
        /// Where.
        space: Space,
        /// The key.
        key: Bytes,
    },
}

/// Places that hold eight bytes, written big-endian with the batch's commit version when it commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Offset in the key.
    pub key_offset: Option<u32>,
    /// Whether the first eight bytes of the value are the version; only such values can meet
    /// [`Expectation::Version`].
    pub value: bool,
}

impl Mutation {
    /// What the change leaves when it commits as this version: where, the key, and the value unless it is removed. The
    /// batch must have passed [`contract::validate`].
    pub(crate) fn stamped(self, version: CommitVersion) -> (Space, Bytes, Option<Bytes>) {
        match self {
            Mutation::Put { space, key, value, stamp } => {
                let (key, value) = contract::stamp_put(key, value, stamp, version);
                (space, key, Some(value))
            }
            Mutation::Delete { space, key } => (space, key, None),
        }
    }
}

impl Stamp {
    /// Nothing is filled in.
    pub const NONE: Stamp = Stamp { key_offset: None, value: false };
    /// The value begins with its version.
    pub const VALUE: Stamp = Stamp { key_offset: None, value: true };

    /// The version stands in the key at this offset.
    pub const fn key_at(offset: u32) -> Stamp {
        Stamp { key_offset: Some(offset), value: false }
    }
}

impl WriteBatch {
    /// An empty transaction of a shard, as of an epoch.
    pub fn new(shard: ShardId, epoch: u64) -> WriteBatch {
        WriteBatch {
            shard,
            epoch,
            high_water: 0,
            tallies: [0; TALLY_COUNT],
            fences: Vec::new(),
            foundings: Vec::new(),
            expectations: Vec::new(),
            mutations: Vec::new(),
            set: SetChanges::default(),
            drops: Drops::default(),
        }
    }

    /// Adds an expectation.
    pub fn expect(&mut self, space: Space, key: Bytes, expectation: Expectation) {
        self.expectations.push((space, key, expectation));
    }

    /// Adds a write.
    pub fn put(&mut self, space: Space, key: Bytes, value: Bytes, stamp: Stamp) {
        self.mutations.push(Mutation::Put { space, key, value, stamp });
    }

    /// Adds a removal.
    pub fn delete(&mut self, space: Space, key: Bytes) {
        self.mutations.push(Mutation::Delete { space, key });
    }

    /// Raises the epoch of a shard with this commit.
    pub fn fence(&mut self, shard: ShardId) {
        self.fences.push(shard);
    }

    /// Ends a shard with this commit: nothing can be committed to it any more, and nothing is told of it. What it holds goes
    /// with [`WriteBatch::drop_prefix`].
    pub fn drop_shard(&mut self, shard: ShardId) {
        self.drops.shards.push(shard);
    }

    /// Drops all keys with a prefix, of a space or (`None`) of the set.
    pub fn drop_prefix(&mut self, space: Option<Space>, prefix: Bytes) {
        self.drops.prefixes.push(KeyPrefix { space, bytes: prefix });
    }

    /// Begins a shard with this commit, at epoch [`contract::FOUNDED_EPOCH`].
    pub fn found(&mut self, shard: ShardId, founding: Founding) {
        self.foundings.push((shard, founding));
    }

    /// Bytes of keys and values, for limits and grouping.
    pub fn byte_count(&self) -> usize {
        let mutations = self.mutations.iter().map(|mutation| match mutation {
            Mutation::Put { key, value, .. } => key.len() + value.len(),
            Mutation::Delete { key, .. } => key.len(),
        });
        mutations.sum::<usize>() + self.set.byte_count()
    }
}
