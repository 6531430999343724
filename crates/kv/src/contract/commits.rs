//! What the contract promises to one commit and to many at once: expectations, order, stamps, limits.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::suite::{bytes, commit, get, put, refused_for, scan_all, state, view};
use super::{KEY_BYTES_MAX, VALUE_BYTES_MAX, block_on};
use crate::{Engine, Error, Expectation, ShardId, ShardState, Space, Stamp, WriteBatch};
use bytes::Bytes;

const SHARD: ShardId = ShardId(1);

type Expectations<'a> = &'a [(&'a str, Expectation)];

fn batch_expecting(expectations: Expectations<'_>) -> WriteBatch {
    let mut batch = WriteBatch::new(SHARD, 0);
    for (key, expectation) in expectations {
        batch.expect(Space::Body, bytes(key), *expectation);
    }
    batch.put(Space::Body, bytes("written"), bytes("by the batch"), Stamp::NONE);
    batch
}

pub(super) fn expectations_decide(engine: &dyn Engine) {
    use Expectation::{Absent, Present, Version};
    let mut first = WriteBatch::new(SHARD, 0);
    first.put(Space::Body, bytes("stamped"), Bytes::from(vec![0; 8]), Stamp::VALUE);
    first.put(Space::Body, bytes("short"), bytes("1234567"), Stamp::NONE);
    first.put(Space::Meta, bytes("elsewhere"), bytes("1"), Stamp::NONE);
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
    removed.delete(Space::Body, bytes("stamped"));
    commit(engine, removed).expect("a removal commits");
    refused_for(engine, batch_expecting(&[("stamped", Version(1))]), 0);
    commit(engine, batch_expecting(&[("stamped", Absent)])).expect("a removed key is absent");
}

/// Many batches handed over before any is awaited, so that an engine that groups them has to look inside the group.
pub(super) fn expectations_see_earlier_batches(engine: &dyn Engine) {
    let mut replies = Vec::new();
    for number in 0..50u64 {
        // Numbers 0, 1, 2 of each key: created, then refused, then replaced by its version.
        let mut batch = WriteBatch::new(ShardId(number % 5), 0);
        let expectation =
            if number < 10 { Expectation::Absent } else { Expectation::Version(number / 5 - 1) };
        batch.expect(Space::Body, bytes(&format!("key {}", number % 5)), expectation);
        batch.put(Space::Body, bytes(&format!("key {}", number % 5)), Bytes::from(vec![0; 9]), Stamp::VALUE);
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
    for (key, value) in sequence {
        match value {
            Some(value) => batch.put(Space::Body, bytes(key), bytes(value), Stamp::NONE),
            None => batch.delete(Space::Body, bytes(key)),
        }
    }
    commit(engine, batch).expect("a batch may touch a key many times");
    let expected = [("back", "1"), ("twice", "2")].map(|(key, value)| (bytes(key), bytes(value)));
    assert_eq!(scan_all(&*view(engine), Space::Body), expected);
}

pub(super) fn stamps_are_filled_in(engine: &dyn Engine) {
    put(engine, Space::Meta, "x", "uses version 1");
    let shared = Bytes::from(b"log:________:tail".to_vec());
    let kept = shared.clone();
    let mut batch = WriteBatch::new(SHARD, 0);
    batch.put(Space::Log, shared.clone(), shared, Stamp { key_offset: Some(4), value: true });
    batch.put(Space::Log, Bytes::from(vec![0; 8]), bytes("whole key"), Stamp::key_at(0));
    batch.put(Space::Log, Bytes::from_static(b"static: ________"), bytes("end"), Stamp::key_at(8));
    commit(engine, batch).expect("a stamped batch commits");
    let two = "\0\0\0\0\0\0\0\u{2}";
    let expected = [
        (two.to_owned(), "whole key".to_owned()),
        (format!("log:{two}:tail"), format!("{two}____:tail")),
        (format!("static: {two}"), "end".to_owned()),
    ];
    let expected = expected.map(|(key, value)| (bytes(&key), bytes(&value)));
    assert_eq!(scan_all(&*view(engine), Space::Log), expected);
    assert_eq!(kept[..], *b"log:________:tail", "bytes that others hold are not written to");
}

pub(super) fn limits_are_enforced(engine: &dyn Engine) {
    let put_of = |key: usize, value: usize, stamp| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.put(Space::Body, Bytes::from(vec![1; key]), Bytes::from(vec![1; value]), stamp);
        batch
    };
    let expect_of = |key: usize| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.expect(Space::Body, Bytes::from(vec![1; key]), Expectation::Absent);
        batch
    };
    let delete_of = |key: usize| {
        let mut batch = WriteBatch::new(SHARD, 0);
        batch.delete(Space::Body, Bytes::from(vec![1; key]));
        batch
    };
    let broken = [
        put_of(0, 0, Stamp::NONE),
        put_of(KEY_BYTES_MAX + 1, 0, Stamp::NONE),
        put_of(1, VALUE_BYTES_MAX + 1, Stamp::NONE),
        put_of(1, 7, Stamp::VALUE),
        put_of(7, 0, Stamp::key_at(0)),
        put_of(16, 0, Stamp::key_at(9)),
        put_of(16, 0, Stamp::key_at(u32::MAX)),
        expect_of(0),
        expect_of(KEY_BYTES_MAX + 1),
        delete_of(0),
        delete_of(KEY_BYTES_MAX + 1),
    ];
    for (index, mut batch) in broken.into_iter().enumerate() {
        batch.put(Space::Body, bytes("beside"), bytes("beside"), Stamp::NONE);
        let answer = commit(engine, batch);
        assert!(matches!(answer, Err(Error::Contract { .. })), "{index}: {answer:?}");
    }
    assert_eq!(state(engine, SHARD), ShardState::default(), "a broken batch uses no version");
    assert_eq!(get(&*view(engine), Space::Body, "beside"), None, "a broken batch changes nothing");
    let fine = [
        put_of(KEY_BYTES_MAX, 8, Stamp { key_offset: Some(KEY_BYTES_MAX as u32 - 8), value: true }),
        put_of(1, VALUE_BYTES_MAX, Stamp::NONE),
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
            batch.expect(Space::Body, bytes("document"), expectation);
            let value = [&[0; 8], &[writer as u8][..]].concat();
            batch.put(Space::Body, bytes("document"), Bytes::from(value), Stamp::VALUE);
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
                    let key = [&[shard as u8], &[0; 8][..]].concat();
                    batch.put(Space::Log, Bytes::from(key), Bytes::new(), Stamp::key_at(1));
                    assert_eq!(commit(engine, batch).expect("nothing is in the way").0, number);
                    let seen = state(engine, ShardId(shard));
                    assert_eq!(seen.version, number, "the answer and the shard's state agree");
                }
            });
        }
    });
    let keys: Vec<_> =
        scan_all(&*view(engine), Space::Log).into_iter().map(|(key, _)| key.to_vec()).collect();
    let expected: Vec<_> = (1..=SHARDS)
        .flat_map(|shard| {
            (1..=BATCHES).map(move |number| [&[shard as u8], &number.to_be_bytes()[..]].concat())
        })
        .collect();
    assert_eq!(keys, expected);
}
