//! What the contract promises about drops: shards that end, and keys that go by their prefix.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::block_on;
use super::suite::{NO_LIMIT, bytes, commit, get, key, put, scan, set_key, shard_key, state, view, view_of};
use crate::{
    Direction, Engine, Error, Expectation, FAMILY_BYTES, KeyList, KeyRange, ScanLimit, ShardId, Space, Stamp,
    View, WriteBatch,
};

pub(super) fn a_dropped_shard_is_gone(engine: &dyn Engine) {
    let (catalog, shard) = (ShardId(0), ShardId(7));
    commit(engine, WriteBatch::new(shard, 0)).expect("a shard takes batches");
    let mut drop = WriteBatch::new(catalog, 0);
    drop.drop_shard(shard);
    drop.put(Space::Meta, shard_key(catalog, b"gone"), bytes("7"), Stamp::NONE);
    // Shards commit on their own: what waits beside the drop comes before it or is refused.
    let replies = [drop, WriteBatch::new(shard, 0)].map(|batch| engine.commit(batch));
    let [dropped, beside] = replies.map(block_on);
    dropped.expect("a drop commits with other changes");
    assert!(matches!(beside, Ok(_) | Err(Error::Dropped { shard: ShardId(7) })), "{beside:?}");
    for epoch in [0, 1] {
        let answer = commit(engine, WriteBatch::new(shard, epoch));
        assert!(matches!(answer, Err(Error::Dropped { shard: ShardId(7) })), "{answer:?}");
    }
    is_dropped(engine, shard);
    assert_eq!(get(&*view_of(engine, catalog), Space::Meta, "gone"), Some(bytes("7")));
    assert_eq!(state(engine, catalog).version, 1);

    let mut own = WriteBatch::new(catalog, 0);
    own.drop_shard(catalog);
    assert!(matches!(commit(engine, own), Err(Error::Contract { .. })), "no shard drops itself");
    let mut refused = WriteBatch::new(catalog, 0);
    refused.expect(Space::Meta, shard_key(catalog, b"absent"), Expectation::Present);
    refused.drop_shard(ShardId(8));
    commit(engine, refused).expect_err("the expectation does not hold");
    assert_eq!(state(engine, ShardId(8)).version, 0, "a refused batch drops nothing");
}

/// Panics unless nothing is told of a shard and it takes no batch.
pub(super) fn is_dropped(engine: &dyn Engine, shard: ShardId) {
    let answer = block_on(engine.shard(shard));
    assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
    for epoch in 0..3 {
        let answer = block_on(engine.view(shard, epoch)).map(drop);
        assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
        let answer = commit(engine, WriteBatch::new(shard, epoch));
        assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
    }
}

fn family(letter: u8) -> [u8; FAMILY_BYTES] {
    let mut family = [b'f'; FAMILY_BYTES];
    family[..8].copy_from_slice(&set_key(ShardId(1), &[]));
    family[8] = letter;
    family
}

fn entry(letter: u8, number: u8) -> Vec<u8> {
    [&family(letter)[..], &[number]].concat()
}

/// Fills the families `a`, `b` and `c` of the set, and keys of the body that begin with these letters.
pub(super) fn fill(engine: &dyn Engine) {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    let mut added = KeyList::new();
    for letter in *b"abc" {
        for number in 0..3 {
            added.push(&entry(letter, number));
            let name = format!("{}{number}", char::from(letter));
            batch.put(Space::Body, key(&name), bytes("value"), Stamp::NONE);
        }
    }
    batch.set.added = added;
    commit(engine, batch).expect("keys are added");
}

/// Drops what begins with `b`.
pub(super) fn drop_b(engine: &dyn Engine) {
    let mut batch = WriteBatch::new(ShardId(0), 0);
    batch.drop_prefix(Some(Space::Body), key("b"));
    batch.drop_prefix(None, set_key(ShardId(1), b"b").into());
    commit(engine, batch).expect("prefixes are dropped");
}

/// Panics unless the view holds exactly the keys with these letters, whichever way it is asked.
pub(super) fn holds(shown: &dyn View, letters: &str) {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut keys = String::new();
        let mut seen: Vec<u8> = Vec::new();
        for (key, _) in scan(shown, Space::Body, ("a", "d"), direction, NO_LIMIT).entries {
            keys.push(char::from(key[0]));
        }
        let all = KeyRange::prefix(&set_key(ShardId(1), &[]));
        let found = block_on(shown.scan_keys(&all, direction, NO_LIMIT)).expect("a scan answers");
        seen.extend(found.keys.iter().map(|key| key[8]));
        let mut expected: Vec<char> =
            letters.chars().flat_map(|letter| std::iter::repeat_n(letter, 3)).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(keys.chars().collect::<Vec<_>>(), expected);
        assert_eq!(seen.into_iter().map(char::from).collect::<Vec<_>>(), expected);
    }
    let five = ScanLimit { entry_count_max: 5, byte_count_max: usize::MAX };
    let some = scan(shown, Space::Body, ("a", "d"), Direction::Forward, five);
    assert_eq!((some.entries.len(), some.more), (5, true), "a limit counts what is shown");
    for letter in *b"abc" {
        let is_there = letters.as_bytes().contains(&letter);
        let text = char::from(letter).to_string();
        assert_eq!(get(shown, Space::Body, &format!("{text}1")).is_some(), is_there, "{text}");
        let count = block_on(shown.count_keys(&family(letter))).expect("a count answers");
        assert_eq!(count, if is_there { 3 } else { 0 }, "{text}");
        let range = KeyRange::prefix(&family(letter));
        let estimate = block_on(shown.estimate_keys(&range)).expect("an estimate answers");
        assert_eq!(estimate > 0, is_there, "{text}");
    }
    let keys = ["a0", "b0", "c0"].map(key);
    let values = block_on(shown.get_many(Space::Body, &keys, usize::MAX)).expect("reads answer");
    assert_eq!(values[1].is_some(), letters.contains('b'));
    assert!(values[0].is_some() && values[2].is_some());
}

pub(super) fn dropped_keys_are_gone(engine: &dyn Engine) {
    fill(engine);
    holds(&*view(engine), "abc");
    drop_b(engine);
    holds(&*view(engine), "ac");
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.expect(Space::Body, key("b1"), Expectation::Absent);
    batch.expect(Space::Body, key("a1"), Expectation::Present);
    commit(engine, batch).expect("a dropped key is absent");
    for number in 0..20 {
        put(engine, Space::Log, &number.to_string(), "later");
    }
    holds(&*view(engine), "ac");
}

pub(super) fn older_views_keep_dropped_keys(engine: &dyn Engine) {
    fill(engine);
    let before = view(engine);
    drop_b(engine);
    for number in 0..20 {
        put(engine, Space::Log, &number.to_string(), "later");
    }
    holds(&*before, "abc");
    holds(&*view(engine), "ac");
}

pub(super) fn dropped_prefixes_take_no_keys(engine: &dyn Engine) {
    let mut both = WriteBatch::new(ShardId(1), 0);
    both.drop_prefix(Some(Space::Body), key("b"));
    both.put(Space::Body, key("b1"), bytes("value"), Stamp::NONE);
    assert!(matches!(commit(engine, both), Err(Error::Contract { .. })));
    fill(engine);
    let held = view(engine);
    drop_b(engine);
    if block_on(engine.unreclaimed()).expect("what is not given back").is_empty() {
        return;
    }
    let mut space = WriteBatch::new(ShardId(1), 0);
    space.put(Space::Body, key("b1"), bytes("value"), Stamp::NONE);
    let mut set = WriteBatch::new(ShardId(1), 0);
    set.set.added.push(&entry(b'b', 9));
    for batch in [space, set] {
        let answer = commit(engine, batch);
        assert!(matches!(answer, Err(Error::Contract { .. })), "{answer:?}");
    }
    drop(held);
}
