//! The ordered, transactional key-value contract that everything above is written against.
//!
//! Nine ideas carry it:
//! - A [`View`] gives consistent reads of one shard, in batches, and tells the version that it shows.
//! - A [`WriteBatch`] is a whole transaction: mutations plus the expectations they rely on. [`Engine::commit`] applies
//!   it all or nothing and answers only when it is on stable storage.
//! - Every batch, view and key belongs to one *shard* (a physical partition, or the catalog); keys tell theirs by their bytes
//!   ([`contract::shard_of`]), and what belongs to another one is refused. The engine gives each committed batch
//!   the shard's next version, and writes it into the keys and values that left a place for it ([`Stamp`]), so that
//!   logs are in commit order without a counter that writers fight over.
//! - A shard has an *epoch*. Batches and readers name the epoch they know; a [`WriteBatch::fence`] raises it and so
//!   refuses everyone who still goes by an older catalog.
//! - A shard can be *founded* with versions, numbers and sums that go on from others ([`Founding`]), *watched*, and hold
//!   [`Lease`]s that fence background work; its numbers are drawn in blocks, so that several processes can write.
//! - Beside the spaces there is one *set* of keys with no value or a short one ([`SetChanges`]): many and small, scanned in order,
//!   which an engine can keep far denser than entries of a space.
//! - A shard, or all keys with a prefix, can be dropped in one small commit ([`Drops`]); their space comes back by itself.
//! - A shard lives in one [`Place`] for all of its life; an engine may have several, and then commits of the catalog reach over them.
//! - An [`Overlay`] is a view with a batch applied that is not committed yet: what a transaction sees of its own
//!   writes, over any engine.
//!
//! Reads answer through [`Reply`], which is ready at once for an embedded engine and a real future for a remote one.
//! Not here: what keys mean (`keys`), retrying conflicts (`database`), any engine but the in-memory specification.

mod batch;
pub mod contract;
mod drops;
mod error;
mod lease;
pub mod memory;
mod overlay;
mod places;
mod reply;
mod set;
mod view;
mod watch;

pub use batch::{Expectation, Founding, Mutation, Stamp, WriteBatch};
pub use drops::{Drops, KeyPrefix, PrefixSet};
pub use error::{Error, Kind};
pub use lease::{Lease, LeaseRequest};
pub use overlay::Overlay;
pub use places::{Place, PlaceId, no_other_place, no_such_place};
pub use reply::Reply;
pub use set::{
    EntryBatch, EntryList, FAMILY_BYTES, KeyBatch, KeyList, SHORT_VALUE_BYTES_MAX, SetChanges, ValuedChanges,
};
pub use view::{
    Direction, Intersection, IntersectionLimit, KeyRange, ScanBatch, ScanLimit, View, just_after,
};
pub use watch::Watchers;

use bytes::Bytes;
use std::sync::Arc;

/// A physical partition: the unit of commit order. Numbers are given by the layer above and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub u64);

/// The place of a committed batch in its shard's history: 1 for the first, then without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitVersion(pub u64);

/// A family of keys with a common shape, so that an engine can tune each. Keys are ordered within their space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Few small definitions, read often.
    Meta,
    /// Many values of up to 2 MiB, found by exact key or short range.
    Body,
    /// Many small entries whose keys mostly grow.
    Log,
}

impl Space {
    /// Every space, in declaration order.
    pub const ALL: [Space; 3] = [Space::Meta, Space::Body, Space::Log];
}

/// What an engine remembers of a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShardState {
    /// Version of the last batch that was committed and acknowledged; 0 before the first.
    pub version: u64,
    /// Batches must name this epoch; 0 until the first fence.
    pub epoch: u64,
    /// The highest [`WriteBatch::high_water`] of any committed batch.
    pub high_water: u64,
    /// Sums of the [`WriteBatch::tallies`] of all committed batches.
    pub tallies: [i64; TALLY_COUNT],
    /// Whether the shard has been dropped.
    pub is_dropped: bool,
}

/// How many running sums an engine keeps for each shard. What they count is the business of the layer above.
pub const TALLY_COUNT: usize = 2;

/// Counters for metrics and logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches committed since the engine was opened.
    pub commits: u64,
    /// Batches refused because an expectation failed.
    pub conflicts: u64,
    /// Groups written, each with one sync.
    pub groups: u64,
    /// Batches waiting for the committer now.
    pub queued: u64,
    /// Bytes on disk, journals included; 0 for an engine in memory.
    pub disk_bytes: u64,
}

/// What [`Engine::read`] gives: the counters of the view that it took, and the value if the key is there.
pub type PointRead = (ShardState, Option<Bytes>);

/// Stored files that are not what was written, and the keys they cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, and what is wrong with it.
    pub file: String,
    /// The space whose keys it holds; nothing for the engine's own.
    pub space: Option<Space>,
    /// The lowest key that may be missing or unreadable.
    pub first: Bytes,
    /// The highest one.
    pub last: Bytes,
}

/// Keys of the set that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLoss {
    /// The keys that may be missing, or be there although they were removed.
    pub range: KeyRange,
    /// What was found.
    pub what: String,
}

impl SetLoss {
    /// Whether keys with this prefix may be lost.
    pub fn concerns(&self, prefix: &[u8]) -> bool {
        let prefix = KeyRange::prefix(prefix);
        self.range.start < prefix.end && prefix.start < self.range.end
    }
}

/// Views of several shards, in the order in which they were asked for.
pub type Views = Vec<Arc<dyn View>>;

/// A storage engine. Cheap to share; every method may be called from any thread.
pub trait Engine: Send + Sync + 'static {
    /// A consistent view of everything that one shard holds at present, for a reader who goes by this epoch; another one is
    /// refused with [`Error::Fenced`], as a batch would be.
    fn view(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>>;

    /// A view for whoever is about to write and is likely to read nothing of it, since his batch says what it expects: an engine on
    /// another machine need not be asked. Its counters may be those of a while ago until something is read.
    fn view_to_write(&self, shard: ShardId, epoch: u64) -> Reply<Result<Arc<dyn View>, Error>> {
        self.view(shard, epoch)
    }

    /// A view of each of some shards, for readers of several who would otherwise have one and wait for another: an engine that has a
    /// bounded number of views must not have them wait for each other. Each is of a moment of its own. Nothing if views need not be
    /// taken together.
    fn views(&self, wanted: &[(ShardId, u64)]) -> Option<Reply<Result<Views, Error>>> {
        let _ = wanted;
        None
    }

    /// The value of one key in a view that is taken now, and the counters of that view: for those who want nothing else of it, so
    /// that an engine on another machine is asked once.
    fn read(&self, shard: ShardId, epoch: u64, space: Space, key: Bytes) -> Reply<Result<PointRead, Error>> {
        match self.view(shard, epoch) {
            Reply::Ready(view) => match view.expect("a reply is asked once") {
                Ok(view) => {
                    let state = view.state();
                    view.get(space, &key).map(move |value| Ok((state, value?)))
                }
                Err(error) => Reply::ready(Err(error)),
            },
            Reply::Later(view) => Reply::later(async move {
                let view = view.await?;
                Ok((view.state(), view.get(space, &key).await?))
            }),
        }
    }

    /// Applies the batch if its epoch and all its expectations hold, all or nothing, durably.
    ///
    /// Batches of one shard become visible in version order; a view taken after the reply shows the batch.
    fn commit(&self, batch: WriteBatch) -> Reply<Result<CommitVersion, Error>>;

    /// The shard's counters, never newer than what a view taken afterwards shows. For those who want no view: one tells its own.
    /// [`Error::Dropped`] if there is no such shard any more.
    fn shard(&self, shard: ShardId) -> Reply<Result<ShardState, Error>>;

    /// The highest shard that there are counters or keys of, dropped ones included: for a restore that must not give its number
    /// once more, and may have lost whatever else told of it.
    fn highest_shard(&self) -> Reply<Result<ShardId, Error>>;

    /// Prefixes that were dropped and whose space is not given back yet: no key may begin so.
    fn unreclaimed(&self) -> Reply<Result<Vec<KeyPrefix>, Error>> {
        Reply::ready(Ok(Vec::new()))
    }

    /// Ends when the shard is past a version, and gives the one it is at then. Ends with [`Error::Fenced`] when the shard is at
    /// another epoch, now or later, and with an error when the engine is closed. Dropping the reply ends the watch.
    fn watch(&self, shard: ShardId, epoch: u64, version: u64) -> Reply<Result<CommitVersion, Error>>;

    /// Draws a block of numbers from the shard's number space, and gives the first: nobody is given one of them again, in any
    /// process, as long as they are used. All are above `above` and above the shard's high water.
    ///
    /// Whoever uses a number names it as [`WriteBatch::high_water`] in the batch that does. So an engine that only one process
    /// has open may keep in memory what it gave out: numbers of blocks that nobody used may be given again after a restart.
    fn draw(&self, shard: ShardId, above: u64, count: u64) -> Reply<Result<u64, Error>>;

    /// The places there are, the first one first. An embedded engine has one.
    fn places(&self) -> Reply<Result<Vec<Place>, Error>> {
        Reply::ready(Ok(vec![Place::only()]))
    }

    /// Where a shard lives, or would live if something were committed to it now.
    fn place_of(&self, _shard: ShardId) -> Reply<Result<PlaceId, Error>> {
        Reply::ready(Ok(PlaceId::FIRST))
    }

    /// Says where a shard will live, before anything is committed to it; the last word counts. Refused with
    /// [`Error::ShardExists`] once it lives elsewhere, with [`Error::Contract`] if there is no such place.
    fn place(&self, _shard: ShardId, place: PlaceId) -> Reply<Result<(), Error>> {
        Reply::ready(if place == PlaceId::FIRST { Ok(()) } else { Err(no_such_place(place)) })
    }

    /// Says whether a place shall get new shards that nobody put elsewhere. Refused with [`Error::Contract`] if there is no such
    /// place, or no other one that would get them. Shards that live there stay; the layer above moves what they hold.
    fn set_draining(&self, place: PlaceId, _is_draining: bool) -> Reply<Result<(), Error>> {
        Reply::ready(Err(if place == PlaceId::FIRST { no_other_place(place) } else { no_such_place(place) }))
    }

    /// Whether no other process can have the storage open now: what earlier ones held is free then.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Why writes are refused at present, if they are (disk full, I/O error).
    fn write_refusal(&self) -> Option<String>;

    /// Keys of the set that are missing or not to be relied on, because what held them is damaged. Until
    /// [`Engine::accept_set_losses`] everything that is asked of these ranges fails with [`Error::SetLost`], so that nobody takes
    /// what is left for the whole; other ranges answer, and keys can be added everywhere.
    fn set_losses(&self) -> Vec<SetLoss> {
        Vec::new()
    }

    /// Tells that nobody relies any more on keys of these ranges that were added before the loss. Afterwards they answer again,
    /// with the keys that are left and those that were added since. Ranges that were lost meanwhile stay lost.
    fn accept_set_losses(&self, _losses: &[SetLoss]) -> Result<(), Error> {
        Ok(())
    }

    /// Takes writes again, if they are refused for a reason that has passed; tells whether that is so. It may take seconds, in
    /// which reads fail too.
    fn heal(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Damage of stored files that was found since opening.
    fn damages(&self) -> Vec<Damage> {
        Vec::new()
    }

    /// Reads one more of the stored files whole, looking for damage; false when all of them were read once more.
    fn check_next_file(&self) -> bool {
        false
    }

    /// Counters since opening.
    fn stats(&self) -> Stats;

    /// Finishes queued commits, flushes and releases the storage. Later commits are refused.
    fn close(&self) -> Result<(), Error>;
}
