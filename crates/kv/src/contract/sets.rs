//! What the contract promises about the set: keys that come and go, walks both ways, counts, estimates.
//!
//! In: an empty engine. Out: a panic when a promise is broken. Part of [`super::check`].

use super::block_on;
use super::suite::{self, NO_LIMIT, REOPENED, bytes, commit, put, scan_all, view};
use crate::{
    Direction, Engine, Error, FAMILY_BYTES, IntersectionLimit, KeyList, KeyRange, ScanLimit, ShardId, Space,
    Stamp, View, WriteBatch,
};
use bytes::Bytes;
use std::collections::BTreeSet;

const SHARD: ShardId = ShardId(1);

/// What the letter names in a shard.
fn family(shard: ShardId, letter: u8) -> [u8; FAMILY_BYTES] {
    let mut family = [letter; FAMILY_BYTES];
    family[..super::SHARD_BYTES].copy_from_slice(&shard.0.to_be_bytes());
    family
}

/// A key of the family that the letter names.
fn key(letter: u8, rest: &str) -> Vec<u8> {
    [&family(SHARD, letter)[..], rest.as_bytes()].concat()
}

fn list<'a>(shard: ShardId, keys: impl IntoIterator<Item = &'a str>) -> KeyList {
    let mut list = KeyList::new();
    keys.into_iter().for_each(|rest| list.push(&[&family(shard, b'f')[..], rest.as_bytes()].concat()));
    list
}

/// A batch that adds and removes keys of the family `f`, each a word.
fn changes(added: &str, removed: &str) -> WriteBatch {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.set.added = list(SHARD, added.split_whitespace());
    batch.set.removed = list(SHARD, removed.split_whitespace());
    batch
}

fn change(engine: &dyn Engine, added: &str, removed: &str) {
    commit(engine, changes(added, removed)).expect("changes of the set commit");
}

/// Keys of the family `f` between two words.
fn range(start: &str, end: &str) -> KeyRange {
    KeyRange { start: key(b'f', start).into(), end: key(b'f', end).into() }
}

fn words(keys: &KeyList) -> String {
    let words: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(&key[FAMILY_BYTES..])).collect();
    words.join(" ")
}

fn walk(view: &dyn View, range: &KeyRange, direction: Direction, limit: ScanLimit) -> (String, bool) {
    let found = block_on(view.scan_keys(range, direction, limit)).expect("a walk answers");
    (words(&found.keys), found.more)
}

fn count(view: &dyn View, letter: u8) -> u64 {
    block_on(view.count_keys(&family(view.shard(), letter))).expect("a count answers")
}

/// Panics unless the family `f` holds exactly these words, whichever way it is asked.
pub(super) fn holds_words(view: &dyn View, expected: &str) {
    let all = KeyRange::prefix(&family(view.shard(), b'f'));
    let number = expected.split_whitespace().count() as u64;
    assert_eq!(walk(view, &all, Direction::Forward, NO_LIMIT), (expected.to_owned(), false));
    let mut reversed: Vec<_> = expected.split_whitespace().collect();
    reversed.reverse();
    assert_eq!(walk(view, &all, Direction::Backward, NO_LIMIT), (reversed.join(" "), false));
    assert_eq!(count(view, b'f'), number, "{expected}");
    let estimate = block_on(view.estimate_keys(&all)).expect("an estimate answers");
    assert_eq!(estimate == 0, number == 0, "an estimate of nothing is sure");
}

pub(super) fn keys_come_and_go(engine: &dyn Engine) {
    let views = [view(engine)].into_iter().chain(
        [("b a d", ""), ("c", "a"), ("a", "b c"), ("", "a d"), ("d", "")].map(|(added, removed)| {
            change(engine, added, removed);
            view(engine)
        }),
    );
    let views: Vec<_> = views.collect();
    for _ in 0..2 {
        for (view, expected) in views.iter().zip(["", "a b d", "b c d", "a d", "", "d"]) {
            holds_words(&**view, expected);
        }
        put(engine, Space::Meta, "fffffffffffffffff", "elsewhere");
    }
    let mut refused = changes("x", "d");
    refused.expect(Space::Meta, suite::key("absent"), crate::Expectation::Present);
    commit(engine, refused).expect_err("the expectation does not hold");
    holds_words(&*view(engine), "d");
    assert_eq!(scan_all(&*view(engine), Space::Body), [], "the set is no space");
}

/// Many batches handed over before any is awaited, so that an engine that groups them finds keys named again and again.
pub(super) fn the_last_batch_has_the_last_word(engine: &dyn Engine) {
    let batches =
        [("a b c", ""), ("d", "a"), ("a", "b"), ("b", "a d"), ("", "c"), ("c e", ""), ("", "e"), ("e", "b")];
    for _ in 0..3 {
        let replies: Vec<_> =
            batches.iter().map(|(added, removed)| engine.commit(changes(added, removed))).collect();
        for reply in replies {
            block_on(reply).expect("changes of the set commit");
        }
        holds_words(&*view(engine), "c e");
        change(engine, "", "c e");
        holds_words(&*view(engine), "");
    }
}

/// What is in all of several lists of numbers, with gaps of all sizes, written bit by bit and removed again in part.
pub(super) fn lists_are_intersected(engine: &dyn Engine) {
    let lists = ["every", "some", "few", "none"];
    // Whether a list has a number: nearly all, in stretches, hardly any.
    let has = |list: &str, number: u64| match list {
        "every" => number % 17 != 3,
        "some" => number / 700 % 3 == 1 || number.is_multiple_of(5),
        "few" => number.is_multiple_of(311),
        _ => false,
    };
    let posting = |list: &str, number: u64| [&key(b'f', list)[..], &number.to_be_bytes()].concat();
    let is_removed = |number: u64| number % 10 == 4;
    for round in 0..4_u64 {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        for list in lists {
            for number in (0..20_000).filter(|number| number % 4 == round && has(list, *number)) {
                batch.set.added.push(&posting(list, number));
            }
        }
        batch.set.added = std::mem::take(&mut batch.set.added).sorted();
        commit(engine, batch).expect("changes of the set commit");
    }
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for number in (0..20_000).filter(|number| is_removed(*number) && has("every", *number)) {
        batch.set.removed.push(&posting("every", number));
    }
    commit(engine, batch).expect("changes of the set commit");
    let snapshot = view(engine);
    for named in
        [&["every", "some"][..], &["few", "every"], &["some", "few", "every"], &["some", "none"], &["few"]]
    {
        let prefixes: Vec<Bytes> = named.iter().map(|list| key(b'f', list).into()).collect();
        let is_in = |list: &&str, number: u64| has(list, number) && !(*list == "every" && is_removed(number));
        let expected: Vec<u64> =
            (0..20_000).filter(|number| named.iter().all(|list| is_in(list, *number))).collect();
        for (from, count_max, seeks_max) in
            [(0, usize::MAX, u64::MAX), (4_711, 100, u64::MAX), (0, 1_000, 50)]
        {
            let expected = &expected[expected.partition_point(|number| *number < from)..];
            let (mut numbers, mut next) = (Vec::new(), Some(from));
            while let Some(from) = next {
                let limit = IntersectionLimit { count_max, seeks_max };
                // Who has no better way is asked by scans.
                let Some(found) = snapshot.intersect_keys(&prefixes, from, limit) else { return };
                let found = block_on(found).expect("an intersection answers");
                assert!(found.numbers.len() <= count_max && found.seeks <= seeks_max);
                numbers.extend(found.numbers);
                next = found.next;
            }
            assert_eq!(numbers, expected, "{named:?} from {from}");
        }
    }
}

pub(super) fn walks_respect_ranges_and_limits(engine: &dyn Engine) {
    change(engine, "a b bad ba", "");
    change(engine, "b.gone c", "bad");
    change(engine, "d", "b.gone");
    let mut others = WriteBatch::new(ShardId(1), 0);
    for family in [b'e', b'g'] {
        others.set.added.push(&key(family, "a"));
    }
    commit(engine, others).expect("changes of the set commit");
    let view = view(engine);
    let count = |entry_count_max| ScanLimit { entry_count_max, ..NO_LIMIT };
    let size = |byte_count_max| ScanLimit { byte_count_max, ..NO_LIMIT };
    // Range, limit, the keys of a forward walk and its `more`, the keys of a backward walk and its `more`.
    let cases = [
        (("", "z"), NO_LIMIT, "a b ba c d", false, "d c ba b a", false),
        (("b", "d"), NO_LIMIT, "b ba c", false, "c ba b", false),
        (("b", "ba"), NO_LIMIT, "b", false, "b", false),
        (("bb", "c"), NO_LIMIT, "", false, "", false),
        (("b.", "ba"), NO_LIMIT, "", false, "", false),
        (("d", "b"), NO_LIMIT, "", false, "", false),
        (("b", "b"), NO_LIMIT, "", false, "", false),
        (("x", "z"), count(1), "", false, "", false),
        (("", "z"), count(2), "a b", true, "d c", true),
        (("b", "d"), count(3), "b ba c", false, "c ba b", false),
        (("b", "d"), count(2), "b ba", true, "c ba", true),
        (("ba", "c"), count(1), "ba", false, "ba", false),
        (("", "z"), count(0), "a", true, "d", true),
        (("", "z"), size(0), "a", true, "d", true),
        (("", "z"), size(17), "a", true, "d", true),
        (("", "z"), size(18), "a b", true, "d c", true),
        (("", "z"), size(86), "a b ba c d", false, "d c ba b a", false),
        (("", "z"), size(69), "a b ba c", true, "d c ba b", true),
        (("d", "e"), size(1), "d", false, "d", false),
    ];
    for ((start, end), limit, forward, forward_more, backward, backward_more) in cases {
        let range = range(start, end);
        let found = walk(&*view, &range, Direction::Forward, limit);
        assert_eq!(found, (forward.to_owned(), forward_more), "forward {start}..{end} {limit:?}");
        let found = walk(&*view, &range, Direction::Backward, limit);
        assert_eq!(found, (backward.to_owned(), backward_more), "backward {start}..{end} {limit:?}");
        let estimate = block_on(view.estimate_keys(&range)).expect("an estimate answers");
        assert!(estimate > 0 || forward.is_empty(), "{start}..{end}");
    }
    let everything = KeyRange::prefix(&suite::set_key(SHARD, &[]));
    let found = block_on(view.scan_keys(&everything, Direction::Backward, NO_LIMIT)).expect("a walk answers");
    assert_eq!(found.keys.len(), 7);
    assert_eq!(found.keys.get(0), key(b'g', "a"), "a range may reach over families");
}

/// A batch of entries with values, as `word=value`: those that come, and those that get another value.
fn valued(added: &str, replaced: &str) -> WriteBatch {
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for entry in added.split_whitespace() {
        let (word, value) = entry.split_once('=').expect("an entry has a value");
        batch.set.add_entry(&key(b'f', word), value.as_bytes());
    }
    for entry in replaced.split_whitespace() {
        let (word, value) = entry.split_once('=').expect("an entry has a value");
        batch.set.replace_entry(&key(b'f', word), value.as_bytes());
    }
    batch
}

fn holds_entries(view: &dyn View, expected: &str) {
    let all = KeyRange::prefix(&family(view.shard(), b'f'));
    let scan = |range: &KeyRange, direction, limit| {
        let found = block_on(view.scan_entries(range, direction, limit)).expect("a scan answers");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entry = |(key, value): (&[u8], &[u8])| text(&key[FAMILY_BYTES..]) + "=" + &text(value);
        (found.entries.iter().map(entry).collect::<Vec<_>>(), found.more)
    };
    let mut entries: Vec<_> = expected.split_whitespace().map(str::to_owned).collect();
    assert_eq!(scan(&all, Direction::Forward, NO_LIMIT), (entries.clone(), false));
    let first = scan(&all, Direction::Forward, ScanLimit { entry_count_max: 1, ..NO_LIMIT });
    assert_eq!(first, (entries[..1].to_vec(), entries.len() > 1));
    // Values count for the limit of bytes.
    let bytes = FAMILY_BYTES + entries[0].len() - 1;
    let limited = |byte_count_max| scan(&all, Direction::Forward, ScanLimit { byte_count_max, ..NO_LIMIT });
    assert_eq!(limited(bytes).0.len(), 1);
    assert_eq!(limited(bytes + 1).0.len(), 2);
    entries.reverse();
    assert_eq!(scan(&all, Direction::Backward, NO_LIMIT), (entries, false));
    let words: Vec<_> = expected.split_whitespace().filter_map(|entry| entry.split('=').next()).collect();
    holds_words(view, &words.join(" "));
}

/// Entries come with values, get others, go; beside keys without values, which have empty ones.
pub(super) fn entries_carry_values(engine: &dyn Engine) {
    change(engine, "a c", "");
    commit(engine, valued("b=two d=four", "")).expect("changes of the set commit");
    let before = view(engine);
    holds_entries(&*before, "a= b=two c= d=four");
    commit(engine, valued("e=five", "b=zwei d=")).expect("changes of the set commit");
    holds_entries(&*view(engine), "a= b=zwei c= d= e=five");
    holds_entries(&*before, "a= b=two c= d=four");
    let replies: Vec<_> =
        [valued("", "b=deux"), changes("", "a e"), valued("a=one", "b=dos"), changes("", "c")]
            .into_iter()
            .map(|batch| engine.commit(batch))
            .collect();
    for reply in replies {
        block_on(reply).expect("changes of the set commit");
    }
    holds_entries(&*view(engine), "a=one b=dos d=");
    let mut batch = WriteBatch::new(ShardId(1), 0);
    batch.set.add_entry(&key(b'g', "long"), &[7; crate::SHORT_VALUE_BYTES_MAX]);
    commit(engine, batch.clone()).expect("the limit itself is allowed");
    batch.set.add_entry(&key(b'g', "longer"), &[7; crate::SHORT_VALUE_BYTES_MAX + 1]);
    let answer = commit(engine, batch);
    assert!(matches!(answer, Err(Error::Contract { .. })), "{answer:?}");
    assert_eq!(count(&*view(engine), b'g'), 1);
}

/// Many keys of several lengths in many commits: walks in pages, counts and estimates agree with a plain set.
pub(super) fn many_keys_are_kept_in_order(engine: &dyn Engine) {
    let mut expected = BTreeSet::new();
    for round in 0..12u64 {
        let mut batch = WriteBatch::new(ShardId(1), 0);
        for number in (round * 100)..(round * 100 + 100) {
            let value = format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (40 + number % 20));
            for (family, rest) in [(b'p', &value[..]), (b'q', &value[..1])] {
                let key = [&key(family, rest)[..], &number.to_be_bytes()].concat();
                batch.set.added.push(&key);
                expected.insert(key);
            }
        }
        let gone: Vec<_> =
            expected.iter().filter(|key| key[key.len() - 1] % 7 == (round % 7) as u8).cloned().collect();
        let added: BTreeSet<_> = batch.set.added.iter().map(<[u8]>::to_vec).collect();
        for key in gone.iter().filter(|key| !added.contains(*key)) {
            batch.set.removed.push(key);
            expected.remove(key);
        }
        commit(engine, batch).expect("changes of the set commit");
    }
    let view = view(engine);
    let expected: Vec<_> = expected.into_iter().collect();
    let mut pages = Vec::new();
    let mut rest = KeyRange::prefix(&suite::set_key(SHARD, &[]));
    loop {
        let limit = ScanLimit { entry_count_max: 37, ..NO_LIMIT };
        let page = block_on(view.scan_keys(&rest, Direction::Forward, limit)).expect("a walk answers");
        pages.extend(page.keys.iter().map(<[u8]>::to_vec));
        if !page.more {
            break;
        }
        rest.start = [pages.last().expect("a page that has more has a key"), &[0][..]].concat().into();
    }
    assert_eq!(pages, expected);
    for letter in [b'p', b'q', b'r'] {
        let number = expected.iter().filter(|key| key[FAMILY_BYTES - 1] == letter).count() as u64;
        assert_eq!(count(&*view, letter), number);
        let estimate = block_on(view.estimate_keys(&KeyRange::prefix(&family(SHARD, letter))));
        let estimate = estimate.expect("an estimate answers");
        assert!((number / 3..=number * 3).contains(&estimate), "{estimate} for {number}");
    }
}

pub(super) fn short_keys_are_refused(engine: &dyn Engine) {
    let sized = |length: usize| suite::set_key(SHARD, &vec![1; length])[..length].to_vec();
    for length in [0, FAMILY_BYTES - 1, super::KEY_BYTES_MAX + 1] {
        for is_added in [true, false] {
            let mut batch = WriteBatch::new(ShardId(1), 0);
            batch.put(Space::Body, suite::key("beside"), bytes("beside"), Stamp::NONE);
            let list = if is_added { &mut batch.set.added } else { &mut batch.set.removed };
            list.push(&sized(length));
            let answer = commit(engine, batch);
            assert!(matches!(answer, Err(Error::Contract { .. })), "{length}: {answer:?}");
        }
    }
    assert_eq!(scan_all(&*view(engine), Space::Body), [], "a broken batch changes nothing");
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for length in [FAMILY_BYTES, super::KEY_BYTES_MAX] {
        batch.set.added.push(&sized(length));
    }
    commit(engine, batch).expect("the limits themselves are allowed");
    assert_eq!(count(&*view(engine), 1), 2);
}

/// What round after round of [`super::check_reopen`] adds and removes: the words of the round before go, but for one.
pub(super) fn change_in_round(batch: &mut WriteBatch, round: u64) {
    let word = |round: u64| format!("round{round}");
    batch.set.added = list(REOPENED, [&word(round)[..], &format!("stays{round}")]);
    if round > 1 {
        batch.set.removed = list(REOPENED, [&word(round - 1)[..]]);
    }
}

/// What is there after so many rounds.
pub(super) fn holds_rounds(view: &dyn View, rounds: u64) {
    let last = (rounds > 0).then(|| format!("round{rounds}"));
    let words: Vec<_> = last.into_iter().chain((1..=rounds).map(|round| format!("stays{round}"))).collect();
    holds_words(view, &words.join(" "));
}
