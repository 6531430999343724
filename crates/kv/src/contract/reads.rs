//! What the contract promises to readers: views, point reads, scans.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::suite::{NO_LIMIT, bytes, commit, get, put, scan, scan_all, view, view_of};
use super::{KEY_BYTES_MAX, block_on};
use crate::{Direction, Engine, ScanLimit, ShardId, Space, Stamp, View, WriteBatch};
use bytes::Bytes;

pub(super) fn views_do_not_change(engine: &dyn Engine) {
    let empty = view(engine);
    put(engine, Space::Body, "a", "1");
    put(engine, Space::Body, "b", "1");
    let full = view(engine);
    put(engine, Space::Body, "a", "2");
    put(engine, Space::Body, "c", "2");
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.delete(Space::Body, bytes("b"));
    batch.delete(Space::Body, bytes("never written"));
    commit(engine, batch).expect("a removal commits");
    let last = view(engine);

    let see = |view: &dyn View, expected: &[(&str, &str)]| {
        let expected: Vec<_> = expected.iter().map(|(key, value)| (bytes(key), bytes(value))).collect();
        assert_eq!(scan_all(view, Space::Body), expected);
        for key in ["a", "b", "c"] {
            let value = expected.iter().find(|(present, _)| present == key).map(|(_, value)| value.clone());
            assert_eq!(get(view, Space::Body, key), value, "point reads and scans agree on {key}");
        }
    };
    for _ in 0..2 {
        see(&*empty, &[]);
        see(&*full, &[("a", "1"), ("b", "1")]);
        see(&*last, &[("a", "2"), ("c", "2")]);
        put(engine, Space::Log, "a", "elsewhere");
    }
}

/// The version of a view is that of the last batch it shows, also while others write.
pub(super) fn views_tell_what_they_show(engine: &dyn Engine) {
    const WRITES: u64 = 200;
    let shard = ShardId(3);
    let write = |number: u64| {
        let mut batch = WriteBatch::new(shard, 0);
        batch.high_water = number * 2;
        batch.tallies = [1, -1];
        batch.put(Space::Body, bytes("last"), Bytes::copy_from_slice(&[0; 8]), Stamp::VALUE);
        batch
    };
    let check = || {
        let view = view_of(engine, shard);
        assert_eq!(view.shard(), shard);
        let shown = get(&*view, Space::Body, "last").and_then(|value| value.first_chunk().copied());
        let (shown, state) = (shown.map_or(0, u64::from_be_bytes), view.state());
        assert_eq!(state.version, shown, "the version of the last batch that the view shows");
        assert_eq!(
            (state.high_water, state.tallies),
            (shown * 2, [shown.cast_signed(), -shown.cast_signed()])
        );
        shown
    };
    assert_eq!(check(), 0, "a shard that nobody wrote to is shown empty");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..=WRITES {
                assert_eq!(commit(engine, write(number)).expect("nothing is in the way").0, number);
                assert_eq!(check(), number, "a view taken after the answer shows the batch");
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let seen = check();
            assert!(seen >= last, "later views show no less");
            last = seen;
        }
    });
    assert_eq!(check(), WRITES);
}

pub(super) fn reads_find_what_was_written(engine: &dyn Engine) {
    put(engine, Space::Meta, "empty", "");
    put(engine, Space::Meta, "key", "value");
    let long = "k".repeat(KEY_BYTES_MAX);
    put(engine, Space::Meta, &long, "long");
    let view = view(engine);
    assert_eq!(get(&*view, Space::Meta, "empty"), Some(Bytes::new()), "an empty value is a value");
    assert_eq!(get(&*view, Space::Meta, "ke"), None, "a prefix of a key is another key");
    assert_eq!(get(&*view, Space::Meta, ""), None, "no key is empty");
    assert_eq!(get(&*view, Space::Meta, &"k".repeat(100_000)), None, "no key is that long");
    let keys = ["key", "absent", "empty", "key"].map(bytes);
    let values = block_on(view.get_many(Space::Meta, &keys)).expect("many point reads answer");
    assert_eq!(values, [Some(bytes("value")), None, Some(Bytes::new()), Some(bytes("value"))]);
    assert_eq!(
        block_on(view.get_many(Space::Meta, &[])).expect("no keys are fine"),
        Vec::<Option<Bytes>>::new()
    );
}

pub(super) fn scans_respect_ranges_and_limits(engine: &dyn Engine) {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for key in ["a", "b", "ba", "c", "d"] {
        batch.put(Space::Log, bytes(key), bytes("0123456789").slice(..10 - key.len()), Stamp::NONE);
    }
    commit(engine, batch).expect("writes commit");
    let view = view(engine);
    let count = |entry_count_max| ScanLimit { entry_count_max, ..NO_LIMIT };
    let size = |byte_count_max| ScanLimit { byte_count_max, ..NO_LIMIT };
    // Range, limit, the keys of a forward scan and its `more`, the keys of a backward scan and its `more`.
    let cases = [
        (("", "z"), NO_LIMIT, "a b ba c d", false, "d c ba b a", false),
        (("b", "d"), NO_LIMIT, "b ba c", false, "c ba b", false),
        (("b", "ba"), NO_LIMIT, "b", false, "b", false),
        (("bb", "c"), NO_LIMIT, "", false, "", false),
        (("d", "b"), NO_LIMIT, "", false, "", false),
        (("b", "b"), NO_LIMIT, "", false, "", false),
        (("b", ""), NO_LIMIT, "", false, "", false),
        (("x", "z"), count(1), "", false, "", false),
        (("", "z"), count(2), "a b", true, "d c", true),
        (("b", "d"), count(3), "b ba c", false, "c ba b", false),
        (("b", "d"), count(2), "b ba", true, "c ba", true),
        (("", "z"), count(0), "a", true, "d", true),
        (("", "z"), size(0), "a", true, "d", true),
        (("", "z"), size(10), "a", true, "d", true),
        (("", "z"), size(11), "a b", true, "d c", true),
        (("", "z"), size(41), "a b ba c d", false, "d c ba b a", false),
        (("", "z"), size(40), "a b ba c", true, "d c ba b", true),
        (("d", "e"), size(1), "d", false, "d", false),
    ];
    for (range, limit, forward, forward_more, backward, backward_more) in cases {
        for (direction, keys, more) in
            [(Direction::Forward, forward, forward_more), (Direction::Backward, backward, backward_more)]
        {
            let found = scan(&*view, Space::Log, range, direction, limit);
            let found_keys: Vec<_> =
                found.entries.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect();
            assert_eq!(found_keys.join(" "), keys, "{direction:?} {range:?} {limit:?}");
            assert_eq!(found.more, more, "more of {direction:?} {range:?} {limit:?}");
            assert!(
                found.entries.iter().all(|(key, value)| key.len() + value.len() == 10),
                "values belong to keys"
            );
        }
    }
}

pub(super) fn spaces_are_apart(engine: &dyn Engine) {
    for (index, space) in Space::ALL.into_iter().enumerate() {
        put(engine, space, "key", &index.to_string());
    }
    let view = view(engine);
    for (index, space) in Space::ALL.into_iter().enumerate() {
        assert_eq!(scan_all(&*view, space), [(bytes("key"), bytes(&index.to_string()))], "{space:?}");
    }
}
