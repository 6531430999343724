//! What the contract promises about shards and the life of an engine: versions, epochs, counters, closing.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::block_on;
use super::suite::{bytes, commit, get, key, put, shard_key, state, view_of};
use crate::{Engine, Error, Expectation, Founding, ShardId, ShardState, Space, Stamp, WriteBatch};

pub(super) fn versions_have_no_gaps(engine: &dyn Engine) {
    assert_eq!(state(engine, ShardId(1)), ShardState::default(), "an unknown shard is at its beginning");
    let mut replies = Vec::new();
    for number in 0..60u64 {
        let mut batch = WriteBatch::new(ShardId(number % 3), 0);
        // Not rising, so that only a maximum passes.
        batch.high_water = (number * 37) % 60;
        replies.push((number, engine.commit(batch)));
    }
    for (number, reply) in replies {
        let version = block_on(reply).expect("a batch without mutations commits");
        assert_eq!(version.0, number / 3 + 1, "versions count up in the order of submission");
    }
    for shard in 0..3u64 {
        let high_water =
            (0..60u64).filter(|number| number % 3 == shard).map(|number| (number * 37) % 60).max();
        let expected = ShardState {
            version: 20,
            epoch: 0,
            high_water: high_water.unwrap_or_default(),
            ..ShardState::default()
        };
        assert_eq!(state(engine, ShardId(shard)), expected);
    }
}

/// Panics unless the batch is refused because its shard is at this epoch.
fn fenced(engine: &dyn Engine, batch: WriteBatch, epoch: u64) {
    let expected = batch.shard;
    let answer = commit(engine, batch);
    let refused =
        matches!(answer, Err(Error::Fenced { shard, current }) if shard == expected && current == epoch);
    assert!(refused, "{answer:?}");
}

pub(super) fn fences_refuse_old_epochs(engine: &dyn Engine) {
    let (catalog, shard) = (ShardId(0), ShardId(9));
    fenced(engine, WriteBatch::new(shard, 1), 0);
    let mut fence = WriteBatch::new(catalog, 0);
    fence.fence(shard);
    fence.fence(shard);
    commit(engine, fence).expect("a fence commits");
    assert_eq!(
        state(engine, shard),
        ShardState { version: 0, epoch: 1, ..ShardState::default() },
        "named twice, raised once"
    );
    assert_eq!(state(engine, catalog), ShardState { version: 1, epoch: 0, ..ShardState::default() });

    // The epoch is looked at before the expectations.
    let mut old = WriteBatch::new(shard, 0);
    old.expect(Space::Body, shard_key(shard, b"absent"), Expectation::Present);
    old.put(Space::Body, shard_key(shard, b"key"), bytes("value"), Stamp::NONE);
    fenced(engine, old, 1);
    assert_eq!(get(&*view_of(engine, shard), Space::Body, "key"), None, "a fenced batch changes nothing");
    let mut own = WriteBatch::new(shard, 1);
    own.fence(shard);
    assert_eq!(commit(engine, own).expect("a shard may fence itself").0, 1, "a fenced batch uses no version");
    assert_eq!(state(engine, shard), ShardState { version: 1, epoch: 2, ..ShardState::default() });

    // A refused batch raises nothing.
    let mut refused = WriteBatch::new(catalog, 0);
    refused.expect(Space::Body, shard_key(catalog, b"absent"), Expectation::Present);
    refused.fence(shard);
    commit(engine, refused).expect_err("the expectation does not hold");
    assert_eq!(state(engine, shard).epoch, 2);
}

pub(super) fn fences_apply_to_batches_already_waiting(engine: &dyn Engine) {
    let shard = ShardId(5);
    let mut fence = WriteBatch::new(ShardId(0), 0);
    fence.fence(shard);
    commit(engine, WriteBatch::new(shard, 0)).expect("before the fence");
    // Shards commit on their own: what waits beside the fence comes before it or after it.
    let replies = [fence, WriteBatch::new(shard, 0)].map(|batch| engine.commit(batch));
    let [fence, beside] = replies.map(block_on);
    assert_eq!(fence.expect("the fence").0, 1);
    let is_before = match beside {
        Ok(version) => version.0 == 2,
        Err(Error::Fenced { current: 1, .. }) => false,
        other => panic!("{other:?}"),
    };
    let late = commit(engine, WriteBatch::new(shard, 0));
    assert!(matches!(late, Err(Error::Fenced { current: 1, .. })), "{late:?}");
    let renewed = commit(engine, WriteBatch::new(shard, 1));
    assert_eq!(renewed.expect("with the new epoch").0, if is_before { 3 } else { 2 });
}

pub(super) fn fences_refuse_readers(engine: &dyn Engine) {
    let (catalog, shard) = (ShardId(0), ShardId(9));
    let refused = |epoch: u64, current: u64| {
        let answer = block_on(engine.view(shard, epoch)).map(|view| view.state());
        let refused =
            matches!(answer, Err(Error::Fenced { shard: of, current: at }) if of == shard && at == current);
        assert!(refused, "{answer:?}");
    };
    refused(1, 0);
    let before = view_of(engine, shard);
    for epoch in 1..4u64 {
        let mut fence = WriteBatch::new(catalog, 0);
        fence.fence(shard);
        commit(engine, fence).expect("a fence commits");
        refused(epoch - 1, epoch);
        refused(epoch + 1, epoch);
        let view = block_on(engine.view(shard, epoch)).expect("a reader who knows the epoch gets a view");
        assert_eq!(view.state(), ShardState { epoch, ..ShardState::default() });
    }
    let mut batch = WriteBatch::new(shard, 3);
    batch.put(Space::Body, shard_key(shard, b"key"), bytes("value"), Stamp::NONE);
    commit(engine, batch).expect("nothing is in the way");
    assert_eq!(get(&*before, Space::Body, "key"), None, "a view that was given stays what it was");
    assert_eq!(before.state(), ShardState::default());
    view_of(engine, catalog);
}

pub(super) fn counters_count(engine: &dyn Engine) {
    put(engine, Space::Body, "a", "1");
    put(engine, Space::Body, "a", "2");
    let mut conflicting = WriteBatch::new(ShardId(1), 0);
    conflicting.expect(Space::Body, key("a"), Expectation::Absent);
    commit(engine, conflicting).expect_err("the key is there");
    commit(engine, WriteBatch::new(ShardId(1), 8)).expect_err("the epoch is another");
    let stats = engine.stats();
    assert_eq!((stats.commits, stats.conflicts, stats.queued), (2, 1, 0));
    assert!((1..=2).contains(&stats.groups), "{stats:?}");
    assert_eq!(engine.write_refusal(), None);
}

pub(super) fn a_closed_engine_refuses(engine: &dyn Engine) {
    put(engine, Space::Body, "a", "1");
    engine.close().expect("closing works");
    engine.close().expect("closing again does nothing");
    let answer = commit(engine, WriteBatch::new(ShardId(1), 0));
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    let answer = block_on(engine.view(ShardId(1), 0)).map(|view| view.state());
    assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
    assert!(engine.write_refusal().is_some());
}

/// By counters or by keys, dropped or not.
pub(super) fn the_highest_shard_is_known(engine: &dyn Engine) {
    let highest = || block_on(engine.highest_shard()).expect("the highest shard is told").0;
    assert_eq!(highest(), 0);
    let commit_to = |shard: u64, space: Option<Space>| {
        let shard = ShardId(shard);
        let mut batch = WriteBatch::new(shard, 0);
        if let Some(space) = space {
            batch.put(space, shard_key(shard, b"key"), bytes("value"), Stamp::NONE);
        }
        commit(engine, batch).expect("nothing is in the way");
    };
    commit_to(5, None);
    assert_eq!(highest(), 5);
    for (shard, space) in (0x1FF..).zip(Space::ALL) {
        commit_to(shard, Some(space));
        commit_to(7, Some(space));
        assert_eq!(highest(), shard);
    }
    let mut drop = WriteBatch::new(ShardId(0), 0);
    drop.drop_shard(ShardId(0x201));
    drop.found(ShardId(0x300), Founding::default());
    commit(engine, drop).expect("nothing is in the way");
    assert_eq!(highest(), 0x300);
    let mut drop = WriteBatch::new(ShardId(0), 0);
    drop.drop_shard(ShardId(0x300));
    commit(engine, drop).expect("nothing is in the way");
    assert_eq!(highest(), 0x300, "its number is used");
}
