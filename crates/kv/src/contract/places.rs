//! What the contract promises about places. Engines with one keep the same promises as those with several.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::suite::{bytes, commit, get, shard_key, state, view_of};
use super::{META_SHARD, block_on};
use crate::{Engine, Error, Founding, Place, PlaceId, ShardId, Space, Stamp, WriteBatch};

fn places(engine: &dyn Engine) -> Vec<Place> {
    block_on(engine.places()).expect("the places are told")
}

fn place_of(engine: &dyn Engine, shard: ShardId) -> PlaceId {
    block_on(engine.place_of(shard)).expect("a shard's place is told")
}

fn write(engine: &dyn Engine, shard: ShardId, epoch: u64) {
    let mut batch = WriteBatch::new(shard, epoch);
    batch.put(Space::Body, shard_key(shard, b"key"), bytes("value"), Stamp::NONE);
    commit(engine, batch).expect("nothing is in the way");
}

pub(super) fn every_shard_has_a_place(engine: &dyn Engine) {
    let all = places(engine);
    assert_eq!(all.first().map(|place| place.id), Some(PlaceId::FIRST), "there is a first place");
    for (index, place) in all.iter().enumerate() {
        let is_known = |other: &Place| other.id == place.id || other.name == place.name;
        assert!(!all[..index].iter().any(is_known), "{place:?} is there twice");
        assert!(!place.is_draining, "{place:?}");
    }
    let is_there = |place: PlaceId| all.iter().any(|known| known.id == place);
    assert_eq!(place_of(engine, META_SHARD), PlaceId::FIRST, "the catalog is in the first place");
    for shard in (20..26).map(ShardId) {
        assert!(is_there(place_of(engine, shard)), "where it would be");
        write(engine, shard, 0);
        let place = place_of(engine, shard);
        assert!(is_there(place));
        write(engine, shard, 0);
        assert_eq!(place_of(engine, shard), place, "where it is, it stays");
    }
    assert_eq!(place_of(engine, META_SHARD), PlaceId::FIRST);
}

pub(super) fn shards_live_where_they_were_put(engine: &dyn Engine) {
    let all = places(engine);
    for (index, place) in all.iter().enumerate() {
        let (shard, first) = (ShardId(30 + index as u64), ShardId(60 + index as u64));
        let elsewhere = all.iter().find(|other| other.id != place.id);
        if let Some(other) = elsewhere {
            block_on(engine.place(shard, other.id)).expect("nothing is there yet");
        }
        block_on(engine.place(shard, place.id)).expect("the last word counts");
        assert_eq!(place_of(engine, shard), place.id);
        assert_eq!(state(engine, shard).version, 0, "being told of is not being there");
        write(engine, shard, 0);
        assert_eq!(place_of(engine, shard), place.id);
        block_on(engine.place(shard, place.id)).expect("it is there");
        if let Some(other) = elsewhere {
            let refused = block_on(engine.place(shard, other.id));
            assert!(matches!(refused, Err(Error::ShardExists { shard: of }) if of == shard), "{refused:?}");
        }
        // The catalog's commits reach over all places: content first, then founded, and fenced, and dropped.
        let mut batch = WriteBatch::new(META_SHARD, 0);
        batch.found(shard, Founding { version: 40, ..Founding::default() });
        block_on(engine.place(first, place.id)).expect("nothing is there yet");
        batch.found(first, Founding::default());
        commit(engine, batch).expect("shards of any place are founded");
        assert_eq!((state(engine, shard).version, state(engine, first).epoch), (40, 1));
        assert_eq!(place_of(engine, first), place.id, "founded where it was put");
        assert_eq!(get(&*view_of(engine, shard), Space::Body, "key"), Some(bytes("value")));
        let mut batch = WriteBatch::new(META_SHARD, 0);
        batch.fence(shard);
        batch.drop_shard(first);
        commit(engine, batch).expect("shards of any place are fenced and dropped");
        assert_eq!(state(engine, shard).epoch, 2);
        let dropped = block_on(engine.shard(first));
        assert!(matches!(dropped, Err(Error::Dropped { .. })), "{dropped:?}");
        let old = commit(engine, WriteBatch::new(shard, 1));
        assert!(matches!(old, Err(Error::Fenced { current: 2, .. })), "{old:?}");
    }
    let absent = PlaceId(all.iter().map(|place| place.id.0).max().unwrap_or_default() + 1);
    let refused = block_on(engine.place(ShardId(90), absent));
    assert!(matches!(refused, Err(Error::Contract { .. })), "{refused:?}");
    let refused = block_on(engine.set_draining(absent, true));
    assert!(matches!(refused, Err(Error::Contract { .. })), "{refused:?}");
}

pub(super) fn places_that_are_drained_get_nothing_new(engine: &dyn Engine) {
    let all = places(engine);
    let Some((last, others)) = all.split_last().filter(|(_, others)| !others.is_empty()) else {
        let refused = block_on(engine.set_draining(PlaceId::FIRST, true));
        assert!(matches!(refused, Err(Error::Contract { .. })), "the only one: {refused:?}");
        return;
    };
    let count = |place: PlaceId| places(engine).iter().find(|known| known.id == place).map(|p| p.shard_count);
    block_on(engine.place(ShardId(30), last.id)).expect("nothing is there yet");
    write(engine, ShardId(30), 0);
    assert_eq!(count(last.id), Some(last.shard_count + 1), "shards are counted");
    for place in others {
        block_on(engine.set_draining(place.id, true)).expect("there is another one");
    }
    let refused = block_on(engine.set_draining(last.id, true));
    assert!(matches!(refused, Err(Error::Contract { .. })), "the last one: {refused:?}");
    for shard in (40..46).map(ShardId) {
        assert_eq!(place_of(engine, shard), last.id, "the only one that is open");
        write(engine, shard, 0);
        assert_eq!(place_of(engine, shard), last.id);
    }
    write(engine, META_SHARD, 0);
    assert_eq!(place_of(engine, META_SHARD), PlaceId::FIRST, "the catalog stays");
    block_on(engine.set_draining(others[0].id, false)).expect("it is opened again");
    block_on(engine.set_draining(last.id, true)).expect("there is another one");
    write(engine, ShardId(50), 0);
    assert_eq!(place_of(engine, ShardId(50)), others[0].id);
    let told = places(engine);
    let draining: Vec<bool> = told.iter().map(|place| place.is_draining).collect();
    let expected: Vec<bool> = told.iter().map(|place| place.id != others[0].id).collect();
    assert_eq!(draining, expected);
    // What lives there is read and written as before.
    write(engine, ShardId(30), 0);
    let mut batch = WriteBatch::new(META_SHARD, 0);
    batch.drop_shard(ShardId(30));
    commit(engine, batch).expect("a shard is dropped");
    assert_eq!(count(last.id), Some(last.shard_count + 6), "and counted no more");
}
