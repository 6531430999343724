//! Runs the suite: the list of checks, and the small vocabulary they are written in.
//!
//! In: a way to open an engine. Out: nothing, or a panic that names what does not hold.
//! Every check gets an engine of its own from `open`, so that their order does not matter.
//! Not here: what is specific to one engine (folders, damage, disk space); that is tested in its crate.

use super::placement::PLACE_BYTES;
use super::{META_OF_SHARD, commits, drops, ground, places, reads, sets, shards};
use crate::{
    CommitVersion, Direction, Engine, Error, Expectation, KeyRange, ScanBatch, ScanLimit, ShardId,
    ShardState, Space, Stamp, View, WriteBatch,
};
use bytes::Bytes;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Panics unless the engines that `open` makes, each empty, keep the contract.
pub fn check(open: &dyn Fn() -> Arc<dyn Engine>) {
    let checks: &[fn(&dyn Engine)] = &[
        reads::views_do_not_change,
        reads::views_tell_what_they_show,
        reads::reads_find_what_was_written,
        reads::many_reads_end_at_their_limit,
        reads::one_key_is_read_at_once,
        reads::scans_respect_ranges_and_limits,
        reads::spaces_are_apart,
        commits::expectations_decide,
        commits::expectations_see_earlier_batches,
        commits::mutations_apply_in_order,
        commits::stamps_are_filled_in,
        commits::limits_are_enforced,
        commits::keys_of_other_shards_are_refused,
        reads::keys_of_other_shards_are_not_shown,
        commits::one_of_many_writers_wins,
        commits::writers_of_many_shards_do_not_mix,
        sets::keys_come_and_go,
        sets::the_last_batch_has_the_last_word,
        sets::walks_respect_ranges_and_limits,
        sets::entries_carry_values,
        sets::many_keys_are_kept_in_order,
        sets::lists_are_intersected,
        sets::short_keys_are_refused,
        shards::versions_have_no_gaps,
        shards::fences_refuse_old_epochs,
        shards::fences_apply_to_batches_already_waiting,
        shards::fences_refuse_readers,
        shards::counters_count,
        shards::the_highest_shard_is_known,
        drops::a_dropped_shard_is_gone,
        drops::dropped_keys_are_gone,
        drops::older_views_keep_dropped_keys,
        drops::dropped_prefixes_take_no_keys,
        ground::shards_are_founded_once,
        ground::watches_end_when_a_shard_moves,
        ground::leases_are_held_by_one,
        ground::blocks_of_numbers_are_apart,
        places::every_shard_has_a_place,
        places::shards_live_where_they_were_put,
        places::places_that_are_drained_get_nothing_new,
    ];
    for check in checks {
        let engine = open();
        check(&*engine);
        engine.close().expect("an engine closes after a check");
    }
    shards::a_closed_engine_refuses(&*open());
    ground::a_closed_engine_ends_watches(&*open());
}

/// How the life of an engine ends between two openings in [`check_reopen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// [`Engine::close`].
    Close,
    /// Dropped without a word, as if the process had been killed after the last answer.
    Drop,
}

/// The shard that [`check_reopen`] writes to.
pub(super) const REOPENED: ShardId = ShardId(7);

/// Panics unless everything acknowledged is still there when `open` opens the same storage again and again.
pub fn check_reopen(open: &dyn Fn() -> Arc<dyn Engine>, ending: Ending) {
    let shard = REOPENED;
    let own = |text: &str| shard_key(shard, text.as_bytes());
    let number_key = |number: u64| shard_key(shard, &number.to_be_bytes());
    for round in 1..=4u64 {
        let engine = open();
        ground::holds_founding_and_lease(&*engine, round);
        assert_eq!(
            state(&*engine, shard),
            ShardState {
                version: round - 1,
                epoch: round - 1,
                high_water: (round - 1) * 10,
                tallies: [-(round.cast_signed() - 1), (round.cast_signed() - 1) * 7],
                is_dropped: false,
            }
        );
        let entries = scan_all(&*view_of(&*engine, shard), Space::Log);
        assert_eq!(entries.len() as u64, round - 1, "every acknowledged log entry is there after {ending:?}");
        for (index, (key, value)) in entries.iter().enumerate() {
            assert_eq!(key[..], (index as u64 + 1).to_be_bytes());
            assert_eq!(value[..], [index as u8 + 1]);
        }
        sets::holds_rounds(&*view_of(&*engine, shard), round - 1);
        let mut batch = WriteBatch::new(shard, round - 1);
        sets::change_in_round(&mut batch, round);
        batch.high_water = round * 10;
        batch.tallies = [-1, 7];
        if round > 1 {
            batch.expect(Space::Body, own("document"), Expectation::Version(round - 1));
            batch.delete(Space::Meta, number_key(round - 1));
        }
        batch.put(Space::Body, own("document"), Bytes::from(vec![0; 100]), Stamp::VALUE);
        let stamped = Stamp::key_at(PLACE_BYTES as u32);
        batch.put(Space::Log, number_key(0), Bytes::from(vec![round as u8]), stamped);
        batch.put(Space::Meta, number_key(round), Bytes::new(), Stamp::NONE);
        batch.fence(shard);
        assert_eq!(commit(&*engine, batch).expect("commit after reopening"), CommitVersion(round));
        let marks = scan_all(&*view_of(&*engine, shard), Space::Meta);
        assert_eq!(marks, [(Bytes::copy_from_slice(&round.to_be_bytes()), Bytes::new())]);
        sets::holds_rounds(&*view_of(&*engine, shard), round);
        if ending == Ending::Close {
            engine.close().expect("close");
        }
    }
}

/// Waits for a reply, or another future, on this thread. For tests and tools; a server awaits it.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(super) const NO_LIMIT: ScanLimit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };

/// A key of a shard that every space takes: for tests of engines.
pub fn shard_key(shard: ShardId, rest: &[u8]) -> Bytes {
    [&[META_OF_SHARD], &shard.0.to_be_bytes()[..], rest].concat().into()
}

/// A key of a shard in the set: for tests of engines.
pub fn set_key(shard: ShardId, rest: &[u8]) -> Vec<u8> {
    [&shard.0.to_be_bytes()[..], rest].concat()
}

/// A key of shard 1.
pub(super) fn key(text: &str) -> Bytes {
    shard_key(ShardId(1), text.as_bytes())
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn commit(engine: &dyn Engine, batch: WriteBatch) -> Result<CommitVersion, Error> {
    block_on(engine.commit(batch))
}

/// Commits one write of shard 1 that needs nothing, and gives its version.
pub(super) fn put(engine: &dyn Engine, space: Space, name: &str, value: &str) -> u64 {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.put(space, key(name), bytes(value), Stamp::NONE);
    commit(engine, batch).expect("a plain write commits").0
}

/// A view of shard 1 at its present epoch.
pub(super) fn view(engine: &dyn Engine) -> Arc<dyn View> {
    view_of(engine, ShardId(1))
}

/// A view of a shard at its present epoch.
pub(super) fn view_of(engine: &dyn Engine, shard: ShardId) -> Arc<dyn View> {
    block_on(engine.view(shard, state(engine, shard).epoch)).expect("a view under the present epoch is given")
}

pub(super) fn get(view: &dyn View, space: Space, key: &str) -> Option<Bytes> {
    block_on(view.get(space, &shard_key(view.shard(), key.as_bytes()))).expect("a point read answers")
}

pub(super) fn state(engine: &dyn Engine, shard: ShardId) -> ShardState {
    block_on(engine.shard(shard)).expect("a shard's state answers")
}

/// Entries of a range of the view's shard; keys are given without what all of them begin with.
pub(super) fn scan(
    view: &dyn View,
    space: Space,
    range: (&str, &str),
    direction: Direction,
    limit: ScanLimit,
) -> ScanBatch {
    let bound = |text: &str| shard_key(view.shard(), text.as_bytes());
    let range = KeyRange { start: bound(range.0), end: bound(range.1) };
    let found = block_on(view.scan(space, &range, direction, limit)).expect("a scan answers");
    let entry = |(key, value): (Bytes, Bytes)| (key.slice(PLACE_BYTES..), value);
    ScanBatch { entries: found.entries.into_iter().map(entry).collect(), more: found.more }
}

/// Every entry of a space that is the view's shard's, keys as in [`scan`].
pub(super) fn scan_all(view: &dyn View, space: Space) -> Vec<(Bytes, Bytes)> {
    let range = KeyRange::prefix(&shard_key(view.shard(), &[]));
    let batch = block_on(view.scan(space, &range, Direction::Forward, NO_LIMIT)).expect("a scan answers");
    assert!(!batch.more, "a scan without a limit gives everything");
    batch.entries.into_iter().map(|(key, value)| (key.slice(PLACE_BYTES..), value)).collect()
}

/// Panics unless the batch is refused for the expectation at this index.
pub(super) fn refused_for(engine: &dyn Engine, batch: WriteBatch, index: usize) {
    let answer = commit(engine, batch);
    assert!(
        matches!(answer, Err(Error::Conflict { expectation }) if expectation == index),
        "{index}: {answer:?}"
    );
}
