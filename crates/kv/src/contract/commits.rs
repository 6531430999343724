//! What the contract promises to one commit and to many at once: expectations, order, stamps, limits.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::placement::PLACE_BYTES;
use super::suite::{
    bytes, commit, get, key, put, refused_for, scan_all, set_key, shard_key, state, view, view_of,
};
use super::{KEY_BYTES_MAX, VALUE_BYTES_MAX, block_on};
use crate::{Engine, Error, Expectation, ShardId, ShardState, Space, Stamp, WriteBatch};
use bytes::Bytes;

const SHARD: ShardId = ShardId(1);

type Expectations<'a> = &'a [(&'a str, Expectation)];

fn batch_expecting(expectations: Expectations<'_>) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    for (name, expectation) in expectations {
        batch.expect(Space::Body, key(name), *expectation);
    }
    batch.put(Space::Body, key("written"), bytes("by the batch"), Stamp::NONE);
    batch
}

pub(super) fn expectations_decide(engine: &dyn Engine) {
    use Expectation::{Absent, Present, Version};
    let mut first = WriteBatch::new(SHARD, 0);
    first.put(Space::Body, key("stamped"), Bytes::from(vec![0; 8]), Stamp::VALUE);
    first.put(Space::Body, key("short"), bytes("1234567"), Stamp::NONE);
    first.put(Space::Meta, key("elsewhere"), bytes("1"), Stamp::NONE);
    assert_eq!(commit(engine, first).expect("the first batch commits").0, 1);

    let cases: &[(Expectations<'_>, Option<usize>)] = &[
        (&[("stamped", Absent)], Some(0)),
        (&[("stamped", Version(2))], Some(0)),
        (&[("short", Version(1))], Some(0)),
        (&[("nothing", Present)], Some(0)),
        (&[("nothing", Version(0))], Some(0)),
        (&[("elsewhere", Present)], Some(0)),
        (&[("nothing", Absent), ("short", Present), ("stamped", Version(3)), ("stamped", Absent)], Some(2)),
        (&[("nothing", Absent), ("short", Present), ("stamped", Present), ("stamped", Version(1))], None),
        (&[("written", Present)], None),
    ];
    let mut version = 1;
    for (expectations, failing) in cases {
        let before = scan_all(&*view(engine), Space::Body);
        let batch = batch_expecting(expectations);
        if let Some(index) = failing {
            refused_for(engine, batch, *index);
            assert_eq!(scan_all(&*view(engine), Space::Body), before, "a refused batch changes nothing");
        } else {
            version += 1;
            let answer = commit(engine, batch).expect("expectations that hold do not stop a batch");
            assert_eq!(answer.0, version, "a refused batch uses no version");
        }
        assert_eq!(state(engine, SHARD).version, version);
    }
    let mut removed = WriteBatch::new(SHARD, 0);
    removed.delete(Space::Body, key("stamped"));
    commit(engine, removed).expect("a removal commits");
    refused_for(engine, batch_expecting(&[("stamped", Version(1))]), 0);
    commit(engine, batch_expecting(&[("stamped", Absent)])).expect("a removed key is absent");
}

/// Many batches handed over before any is awaited, so that an engine that groups them has to look inside the group.
pub(super) fn expectations_see_earlier_batches(engine: &dyn Engine) {
    let mut replies = Vec::new();
    for number in 0..50u64 {
        // Numbers 0, 1, 2 of each key: created, then refused, then replaced by its version.
        let shard = ShardId(number % 5);
        let mut batch = WriteBatch::new(shard, 0);
        let expectation =
            if number < 10 { Expectation::Absent } else { Expectation::Version(number / 5 - 1) };
        batch.expect(Space::Body, shard_key(shard, b"key"), expectation);
        batch.put(Space::Body, shard_key(shard, b"key"), Bytes::from(vec![0; 9]), Stamp::VALUE);
        replies.push((number, engine.commit(batch)));
    }
    for (number, reply) in replies {
        let answer = block_on(reply);
        if (5..10).contains(&number) {
            assert!(matches!(answer, Err(Error::Conflict { expectation: 0 })), "{number}: {answer:?}");
        } else {
            let version = if number < 5 { 1 } else { number / 5 };
            assert_eq!(answer.expect("each batch sees the one before").0, version, "{number}");
        }
    }
}

pub(super) fn mutations_apply_in_order(engine: &dyn Engine) {
    put(engine, Space::Body, "old", "0");
    let mut batch = WriteBatch::new(SHARD, 0);
    let sequence: &[(&str, Option<&str>)] = &[
        ("twice", Some("1")),
        ("twice", Some("2")),
        ("gone", Some("1")),
        ("gone", None),
        ("back", None),
        ("back", Some("1")),
        ("old", None),
        ("old", Some("1")),
        ("old", None),
    ];
    for (name, value) in sequence {
        match value {
            Some(value) => batch.put(Space::Body, key(name), bytes(value), Stamp::NONE),
            None => batch.delete(Space::Body, key(name)),
        }
    }
    commit(engine, batch).expect("a batch may touch a key many times");
    let expected = [("back", "1"), ("twice", "2")].map(|(key, value)| (bytes(key), bytes(value)));
    assert_eq!(scan_all(&*view(engine), Space::Body), expected);
}

pub(super) fn stamps_are_filled_in(engine: &dyn Engine) {
    put(engine, Space::Meta, "x", "uses version 1");
    let shared = key("log:________:tail");
    let kept = shared.clone();
    let at = |offset: usize| Stamp::key_at((PLACE_BYTES + offset) as u32);
    let mut batch = WriteBatch::new(SHARD, 0);
    batch.put(Space::Log, shared.clone(), shared, Stamp { value: true, ..at(4) });
    batch.put(Space::Log, key("________"), bytes("whole key"), at(0));
    let constant = Bytes::from_static(b"\x06\0\0\0\0\0\0\0\x01static: ________");
    batch.put(Space::Log, constant, bytes("end"), at(8));
    commit(engine, batch).expect("a stamped batch commits");
    let two = "\0\0\0\0\0\0\0\u{2}";
    let expected = [
        (two.to_owned(), "whole key".to_owned()),
        (format!("log:{two}:tail"), format!("{two}\u{1}log:________:tail")),
        (format!("static: {two}"), "end".to_owned()),
    ];
    let expected = expected.map(|(key, value)| (bytes(&key), bytes(&value)));
    assert_eq!(scan_all(&*view(engine), Space::Log), expected);
    assert_eq!(kept, key("log:________:tail"), "bytes that others hold are not written to");
}

pub(super) fn limits_are_enforced(engine: &dyn Engine) {
    // A key of so many bytes.
    let sized = |length: usize| key(&"k".repeat(length.saturating_sub(PLACE_BYTES))).slice(..length);
    let put_of = |key: usize, value: usize, stamp| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.put(Space::Body, sized(key), Bytes::from(vec![1; value]), stamp);
        batch
    };
    let expect_of = |key: usize| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.expect(Space::Body, sized(key), Expectation::Absent);
        batch
    };
    let delete_of = |key: usize| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.delete(Space::Body, sized(key));
        batch
    };
    let broken = [
        put_of(0, 0, Stamp::NONE),
        put_of(KEY_BYTES_MAX + 1, 0, Stamp::NONE),
        put_of(9, VALUE_BYTES_MAX + 1, Stamp::NONE),
        put_of(9, 7, Stamp::VALUE),
        put_of(16, 0, Stamp::key_at(0)),
        put_of(24, 0, Stamp::key_at(8)),
        put_of(16, 0, Stamp::key_at(9)),
        put_of(16, 0, Stamp::key_at(u32::MAX)),
        expect_of(0),
        expect_of(KEY_BYTES_MAX + 1),
        delete_of(0),
        delete_of(KEY_BYTES_MAX + 1),
    ];
    for (index, mut batch) in broken.into_iter().enumerate() {
        batch.put(Space::Body, key("beside"), bytes("beside"), Stamp::NONE);
        let answer = commit(engine, batch);
        assert!(matches!(answer, Err(Error::Contract { .. })), "{index}: {answer:?}");
    }
    assert_eq!(state(engine, SHARD), ShardState::default(), "a broken batch uses no version");
    assert_eq!(get(&*view(engine), Space::Body, "beside"), None, "a broken batch changes nothing");
    let fine = [
        put_of(KEY_BYTES_MAX, 8, Stamp { key_offset: Some(KEY_BYTES_MAX as u32 - 8), value: true }),
        put_of(9, VALUE_BYTES_MAX, Stamp::NONE),
        delete_of(KEY_BYTES_MAX),
    ];
    for batch in fine {
        commit(engine, batch).expect("the limits themselves are allowed");
    }
}

/// Threads replace one document again and again, each expecting the version it read: every version has one winner.
pub(super) fn one_of_many_writers_wins(engine: &dyn Engine) {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 25;
    let write = |writer: usize| {
        let mut won = Vec::new();
        while won.len() < ROUNDS {
            let current = get(&*view(engine), Space::Body, "document");
            let version = current.and_then(|value| value.first_chunk().copied()).map(u64::from_be_bytes);
            let mut batch = WriteBatch::new(SHARD, 0);
            let expectation = version.map_or(Expectation::Absent, Expectation::Version);
            batch.expect(Space::Body, key("document"), expectation);
            let value = [&[0; 8], &[writer as u8][..]].concat();
            batch.put(Space::Body, key("document"), Bytes::from(value), Stamp::VALUE);
            match commit(engine, batch) {
                Ok(given) => {
                    assert_eq!(
                        given.0,
                        version.unwrap_or(0) + 1,
                        "nothing came between the read and the commit"
                    );
                    won.push(given.0);
                }
                Err(Error::Conflict { expectation: 0 } | Error::Busy) => {}
                Err(error) => panic!("writer {writer}: {error}"),
            }
        }
        won
    };
    let mut versions: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a writer ends")).collect()
    });
    versions.sort_unstable();
    assert_eq!(
        versions,
        (1..=(WRITERS * ROUNDS) as u64).collect::<Vec<_>>(),
        "exactly one winner for each version"
    );
}

pub(super) fn writers_of_many_shards_do_not_mix(engine: &dyn Engine) {
    const SHARDS: u64 = 4;
    const BATCHES: u64 = 30;
    std::thread::scope(|scope| {
        for shard in 1..=SHARDS {
            scope.spawn(move || {
                for number in 1..=BATCHES {
                    let mut batch = WriteBatch::new(ShardId(shard), 0);
                    let stamped = Stamp::key_at(PLACE_BYTES as u32);
                    batch.put(Space::Log, shard_key(ShardId(shard), &[0; 8]), Bytes::new(), stamped);
                    assert_eq!(commit(engine, batch).expect("nothing is in the way").0, number);
                    let seen = state(engine, ShardId(shard));
                    assert_eq!(seen.version, number, "the answer and the shard's state agree");
                }
            });
        }
    });
    for shard in 1..=SHARDS {
        let entries = scan_all(&*view_of(engine, ShardId(shard)), Space::Log);
        let keys: Vec<_> = entries.into_iter().map(|(key, _)| key.to_vec()).collect();
        let expected: Vec<_> = (1..=BATCHES).map(|number| number.to_be_bytes().to_vec()).collect();
        assert_eq!(keys, expected);
    }
}

/// Whatever a batch does with a key of another shard, it is refused whole.
pub(super) fn keys_of_other_shards_are_refused(engine: &dyn Engine) {
    let foreign = shard_key(ShardId(2), b"key");
    let definition = bytes("definition");
    let mut broken = vec![WriteBatch::new(SHARD, 0); 8];
    for (batch, space) in broken.iter_mut().zip(Space::ALL) {
        batch.put(space, foreign.clone(), bytes("value"), Stamp::NONE);
    }
    broken[3].delete(Space::Body, foreign.clone());
    broken[4].expect(Space::Log, foreign, Expectation::Absent);
    broken[5].set.added.push(&set_key(ShardId(2), b"an entry"));
    broken[6].set.removed.push(&set_key(ShardId(0), b"an entry"));
    broken[7].put(Space::Meta, definition.clone(), bytes("value"), Stamp::NONE);
    broken.push(WriteBatch::new(SHARD, 0));
    broken[8].drop_prefix(Some(Space::Body), Bytes::from_static(&[1]));
    broken.push(WriteBatch::new(SHARD, 0));
    broken[9].drop_prefix(None, Bytes::from_static(&[0; 7]));
    for (index, mut batch) in broken.into_iter().enumerate() {
        batch.put(Space::Body, key("beside"), bytes("beside"), Stamp::NONE);
        let answer = commit(engine, batch);
        assert!(matches!(answer, Err(Error::Contract { .. })), "{index}: {answer:?}");
    }
    assert_eq!(state(engine, SHARD), ShardState::default(), "a broken batch uses no version");
    let mut catalog = WriteBatch::new(ShardId(0), 0);
    catalog.put(Space::Meta, definition, bytes("value"), Stamp::NONE);
    commit(engine, catalog).expect("definitions are the catalog's");
}
