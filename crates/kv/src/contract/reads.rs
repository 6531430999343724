//! What the contract promises to readers: views, point reads, scans.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::placement::PLACE_BYTES;
use super::suite::{
    NO_LIMIT, bytes, commit, get, key, put, scan, scan_all, set_key, shard_key, view, view_of,
};
use super::{KEY_BYTES_MAX, block_on};
use crate::{
    Direction, Engine, Error, FAMILY_BYTES, IntersectionLimit, KeyRange, Overlay, ScanLimit, ShardId,
    ShardState, Space, Stamp, View, WriteBatch,
};
use bytes::Bytes;

pub(super) fn views_do_not_change(engine: &dyn Engine) {
    let empty = view(engine);
    put(engine, Space::Body, "a", "1");
    put(engine, Space::Body, "b", "1");
    let full = view(engine);
    put(engine, Space::Body, "a", "2");
    put(engine, Space::Body, "c", "2");
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.delete(Space::Body, key("b"));
    batch.delete(Space::Body, key("never written"));
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
        batch.put(Space::Body, shard_key(shard, b"last"), Bytes::copy_from_slice(&[0; 8]), Stamp::VALUE);
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

/// A point read is what a view that is taken then tells of one key, refusals included.
pub(super) fn one_key_is_read_at_once(engine: &dyn Engine) {
    let (shard, name) = (ShardId(1), key("a"));
    let read = |epoch: u64, key: &Bytes| block_on(engine.read(shard, epoch, Space::Body, key.clone()));
    let state = |version: u64, epoch: u64| ShardState { version, epoch, ..ShardState::default() };
    assert_eq!(read(0, &name).expect("nothing is there"), (state(0, 0), None));
    put(engine, Space::Body, "a", "1");
    put(engine, Space::Log, "a", "elsewhere");
    assert_eq!(read(0, &name).expect("it is there"), (state(2, 0), Some(bytes("1"))));
    put(engine, Space::Body, "a", "2");
    assert_eq!(read(0, &name).expect("it has changed"), (state(3, 0), Some(bytes("2"))));
    let answer = read(0, &shard_key(ShardId(2), b"a"));
    assert!(matches!(answer, Err(Error::Contract { .. })), "{answer:?}");
    let mut fence = WriteBatch::new(ShardId(0), 0);
    fence.fence(shard);
    commit(engine, fence).expect("a fence commits");
    let answer = read(0, &name);
    assert!(matches!(answer, Err(Error::Fenced { current: 1, .. })), "{answer:?}");
    assert_eq!(read(1, &name).expect("the epoch is the present one"), (state(3, 1), Some(bytes("2"))));
    let mut dropping = WriteBatch::new(ShardId(0), 0);
    dropping.drop_shard(shard);
    commit(engine, dropping).expect("a drop commits");
    let answer = read(2, &name);
    assert!(matches!(answer, Err(Error::Dropped { .. })), "{answer:?}");
}

pub(super) fn reads_find_what_was_written(engine: &dyn Engine) {
    put(engine, Space::Meta, "empty", "");
    put(engine, Space::Meta, "key", "value");
    let long = "k".repeat(KEY_BYTES_MAX - PLACE_BYTES);
    put(engine, Space::Meta, &long, "long");
    let view = view(engine);
    assert_eq!(get(&*view, Space::Meta, "empty"), Some(Bytes::new()), "an empty value is a value");
    assert_eq!(get(&*view, Space::Meta, "ke"), None, "a prefix of a key is another key");
    assert_eq!(get(&*view, Space::Meta, &long), Some(bytes("long")));
    assert_eq!(get(&*view, Space::Meta, &"k".repeat(100_000)), None, "no key is that long");
    let keys = ["key", "absent", "empty", "key"].map(key);
    let values = block_on(view.get_many(Space::Meta, &keys, usize::MAX)).expect("many point reads answer");
    assert_eq!(values, [Some(bytes("value")), None, Some(Bytes::new()), Some(bytes("value"))]);
    assert_eq!(
        block_on(view.get_many(Space::Meta, &[], 0)).expect("no keys are fine"),
        Vec::<Option<Bytes>>::new()
    );
}

/// A reader says how much it can hold: what comes is a beginning of what was asked for, and never nothing.
pub(super) fn many_reads_end_at_their_limit(engine: &dyn Engine) {
    let values = [("a", 10), ("b", 0), ("c", 600_000), ("d", 5), ("e", 700_000)];
    for (name, length) in values {
        put(engine, Space::Meta, name, &"x".repeat(length));
    }
    let view = view(engine);
    let names = ["absent", "a", "b", "c", "absent", "d", "e", "a", "absent"];
    let lengths =
        names.map(|name| values.iter().find(|(other, _)| *other == name).map(|(_, length)| *length));
    let keys = names.map(key);
    let limits = [
        (0, 1),
        (1, 2),
        (10, 2),
        (11, 4),
        (600_010, 4),
        (600_011, 6),
        (600_015, 6),
        (600_016, 7),
        (1_300_015, 7),
        (1_300_016, 8),
        (1_300_026, 9),
        (usize::MAX, 9),
    ];
    for (byte_count_max, count) in limits {
        let found = block_on(view.get_many(Space::Meta, &keys, byte_count_max)).expect("reads answer");
        let found: Vec<_> = found.iter().map(|value| value.as_ref().map(Bytes::len)).collect();
        // An engine that keeps long values in parts may take one for longer than it is.
        assert!(
            (count.min(4)..=count).contains(&found.len()),
            "{byte_count_max}: {} of {count}",
            found.len()
        );
        assert_eq!(found, lengths[..found.len()], "{byte_count_max}");
    }
}

pub(super) fn scans_respect_ranges_and_limits(engine: &dyn Engine) {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for name in ["a", "b", "ba", "c", "d"] {
        let value = bytes("0123456789").slice(..10 - name.len());
        batch.put(Space::Log, key(name), value, Stamp::NONE);
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
        (("", "z"), size(19), "a", true, "d", true),
        (("", "z"), size(20), "a b", true, "d c", true),
        (("", "z"), size(77), "a b ba c d", false, "d c ba b a", false),
        (("", "z"), size(76), "a b ba c", true, "d c ba b", true),
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

/// A view answers for its own shard only, whatever it is asked, and so does what is laid over it.
pub(super) fn keys_of_other_shards_are_not_shown(engine: &dyn Engine) {
    let foreign = ShardId(2);
    let (own, other) = (shard_key(ShardId(1), b"key"), shard_key(foreign, b"key"));
    put(engine, Space::Body, "key", "own");
    let mut batch = WriteBatch::new(foreign, 0);
    batch.put(Space::Body, other.clone(), bytes("foreign"), Stamp::NONE);
    batch.set.added.push(&set_key(foreign, &[7; 8]));
    commit(engine, batch).expect("each shard takes its own");
    let base = view(engine);
    // A batch that would be refused: not even then is anything shown.
    let mut broken = WriteBatch::new(ShardId(1), 0);
    broken.put(Space::Body, other.clone(), bytes("staged"), Stamp::NONE);
    let overlay = Overlay::new(base.clone(), &broken, 2);
    let family: [u8; FAMILY_BYTES] =
        set_key(foreign, &[7; 8]).try_into().expect("a family has so many bytes");
    let entries = KeyRange::prefix(&family);
    let limit = IntersectionLimit { count_max: 1, seeks_max: 1 };
    for view in [&*base, &overlay as &dyn View] {
        let refused = [
            block_on(view.get(Space::Body, &other)).map(drop),
            block_on(view.get(Space::Meta, b"definition")).map(drop),
            block_on(view.get(Space::Body, &[1])).map(drop),
            block_on(view.get_many(Space::Body, &[own.clone(), other.clone()], usize::MAX)).map(drop),
            block_on(view.get_many(Space::Body, std::slice::from_ref(&other), usize::MAX)).map(drop),
            block_on(view.scan_keys(&entries, Direction::Forward, NO_LIMIT)).map(drop),
            block_on(view.scan_entries(&entries, Direction::Backward, NO_LIMIT)).map(drop),
            block_on(view.count_keys(&family)).map(drop),
            block_on(view.estimate_keys(&entries)).map(drop),
        ];
        let ranges = [
            KeyRange::prefix(&other),
            KeyRange { start: own.clone(), end: other.clone() },
            KeyRange { start: Bytes::new(), end: own.clone() },
            KeyRange { start: own.clone(), end: Bytes::from_static(&[0xFF]) },
        ];
        let scan = |range| block_on(view.scan(Space::Body, range, Direction::Forward, NO_LIMIT)).map(drop);
        let scans = ranges.iter().map(scan);
        let intersection = view.intersect_keys(std::slice::from_ref(&entries.start), 0, limit);
        let intersection = intersection.map(|reply| block_on(reply).map(drop));
        for (index, answer) in refused.into_iter().chain(scans).chain(intersection).enumerate() {
            assert!(matches!(answer, Err(Error::Contract { .. })), "{index}: {answer:?}");
        }
        assert_eq!(block_on(view.get(Space::Body, &own)).expect("its own key"), Some(bytes("own")));
    }
    let catalog = view_of(engine, ShardId(0));
    assert_eq!(block_on(catalog.get(Space::Meta, b"definition")).expect("definitions are its own"), None);
}
