//! Positions after rows whose sort keys are too long for a token.
//!
//! In: the last row given, those beside it ([`Neighbours`]). Out: a [`ResumePlace`] that stays good whatever becomes of them.
//! The hazard: a token cannot hold the keys, and the rows that have them may be removed before it comes back. What is done:
//! 1. Mostly a short text lies between the two keys (as the separators of a B-tree are short): it is the position.
//! 2. Where the keys agree for longer than a token, the position names both rows. As long as one of them is there with the keys
//!    that it had, its keys are read again.
//! 3. For when both are gone it holds what tells rows before the last one from rows after it: of a long text how it begins,
//!    stretches of it further on ([`TextWindow`]), and the hashes of the text and of what comes before each stretch. Rows of
//!    equal keys, known by the hash, are in the order of their documents. Rows of which it does not tell are given: none is
//!    left out. So what counts are the rows before the last one, and a stretch is where the nearest of them differs from it.
//!
//! Invariants
//! - A row that stays is never left out.
//! - A row comes once more only if both rows of the position are gone, and its text agrees with the last one's as far as the
//!   beginning goes and differs from it in a part that the position does not hold.

use crate::hashed_key::Hash;
use crate::operators::group::RowPlace;
use crate::operators::sort::RowOrder;
use crate::resume::{ResumePlace, keys_fit, push_keys, push_row, take_row, take_u32, take_u64};
use astrarium_partition::hash_128;
use astrarium_value::json::seek;
use astrarium_value::{Value, compare_text};
use std::cmp::Ordering;
use std::sync::Arc;

/// Sort keys and place of a row. Fewer keys than the order has stand for all rows that begin with them.
pub(crate) type LastRow = (Vec<Value>, RowPlace);

/// Texts of fewer bytes always fit, also where JSON has six for one.
const LONG_BYTES_MIN: usize = 60;
/// Bytes of all kept keys.
const KEPT_BYTES_MAX: usize = 480;
/// Of which a text takes so many besides its characters.
const CUT_TEXT_BYTES: usize = 22;
/// And each stretch of it.
const WINDOW_BYTES: usize = 25;
/// Sort keys that are kept at most, and stretches of a text.
const KEPT_KEYS_MAX: usize = 8;
const WINDOWS_MAX: usize = 2;

/// After a row whose sort keys are too long.
#[derive(Debug, Clone, PartialEq)]
pub struct LongKey {
    /// The last row given, by document and index.
    pub last: (u64, u32),
    /// The first row that was not given.
    pub next: (u64, u32),
    /// The hash of its sort keys.
    pub next_hash: (u64, u64),
    /// The sort keys of the last row.
    pub keys: Vec<KeptKey>,
}

/// A sort key of a position.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptKey {
    /// As it is.
    Whole(Value),
    /// A text that is too long.
    Cut(CutText),
}

/// What a position holds of a long text.
#[derive(Debug, Clone, PartialEq)]
pub struct CutText {
    /// How it begins.
    pub beginning: String,
    /// The hash of all of it.
    pub hash: (u64, u64),
    /// Parts of it, one after another.
    pub windows: Vec<TextWindow>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextWindow {
    /// Bytes before it.
    pub start: u32,
    /// The hash of what is before it.
    pub hash: (u64, u64),
    /// The part.
    pub text: String,
    /// Whether the text ends with it.
    pub is_end: bool,
}

/// The rows beside the last one of a page.
pub(crate) struct Neighbours<'a> {
    /// The keys of the row before it that has other ones, if the page has one.
    pub(crate) before: Option<&'a [Value]>,
    /// The first row that was not given.
    pub(crate) next: &'a LastRow,
    /// The position that the page began at.
    pub(crate) prior: Option<&'a LongKey>,
}

/// The place that the rows of a page come after.
#[derive(Debug, Clone)]
pub(crate) struct AfterRow {
    /// A row, or a place that is not behind it in the order.
    pub(crate) row: LastRow,
    /// The row itself, where its keys are not known.
    pub(crate) long: Option<Arc<LongKey>>,
}

impl From<LastRow> for AfterRow {
    fn from(row: LastRow) -> AfterRow {
        AfterRow { row, long: None }
    }
}

/// In which direction rows are ordered: by their keys, and those of equal keys by their documents.
pub(crate) struct Directions<'a> {
    pub(crate) descending: &'a [bool],
    pub(crate) reverse_ties: bool,
}

impl Directions<'_> {
    /// The place before all rows with equal keys.
    pub(crate) fn before_ties(&self) -> RowPlace {
        (if self.reverse_ties { u64::MAX } else { 0 }, 0)
    }

    /// The place after all rows with equal keys.
    pub(crate) fn after_ties(&self) -> RowPlace {
        (if self.reverse_ties { 0 } else { u64::MAX }, u32::MAX)
    }

    /// The place right before a row.
    pub(crate) fn before(&self, (number, index): RowPlace) -> RowPlace {
        match index.checked_sub(1) {
            Some(index) => (number, index),
            None if self.reverse_ties => (number.saturating_add(1), u32::MAX),
            None => (number.saturating_sub(1), u32::MAX),
        }
    }

    fn descends(&self, key: usize) -> bool {
        self.descending.get(key).copied().unwrap_or(false)
    }

    /// The place between a row and the next one.
    pub(crate) fn between(&self, last: LastRow, beside: &Neighbours<'_>) -> ResumePlace {
        let ((keys, (number, index)), next) = (last, beside.next);
        if keys_fit(&keys) {
            return ResumePlace::Key(keys, number, index);
        }
        if let Some((keys, (number, index))) = self.separator(&keys, &next.0) {
            return ResumePlace::Key(keys, number, index);
        }
        ResumePlace::LongKey(LongKey {
            last: (number, index),
            next: next.1,
            next_hash: hash_of_keys(&next.0),
            keys: kept(&keys, beside),
        })
    }

    /// Short keys between two that differ in their last one, if there are some.
    fn separator(&self, last: &[Value], next: &[Value]) -> Option<LastRow> {
        let ((last_key, equal), (next_key, others)) = (last.split_last()?, next.split_last()?);
        let (Value::String(from), Value::String(to)) = (last_key, next_key) else { return None };
        if equal != others || from == to {
            return None;
        }
        // The text that lies further up in the order of values has one more character than both agree in.
        let descends = self.descends(equal.len());
        let (upper, place) = if descends { (from, self.after_ties()) } else { (to, self.before_ties()) };
        let agreeing = from.chars().zip(to.chars()).take_while(|(left, right)| left == right).count();
        let between: String = upper.chars().take(agreeing + 1).collect();
        let mut keys = equal.to_vec();
        keys.push(Value::from(between.as_str()));
        keys_fit(&keys).then_some((keys, place))
    }
}

impl LongKey {
    /// Where to go on, given the keys of both rows as far as these are still there.
    pub(crate) fn after(
        self,
        last: Option<Vec<Value>>,
        next: Option<Vec<Value>>,
        directions: &Directions<'_>,
    ) -> AfterRow {
        // A row that was changed meanwhile may be anywhere.
        if let Some(keys) = last.filter(|keys| self.compare(keys, directions) == Some(Ordering::Equal)) {
            return AfterRow::from((keys, self.last));
        }
        if let Some(keys) = next.filter(|keys| hash_of_keys(keys) == self.next_hash) {
            return AfterRow::from((keys, directions.before(self.next)));
        }
        AfterRow { row: self.bound(directions), long: Some(Arc::new(self)) }
    }

    /// A place that is surely not behind the last row, and as near to it as the beginning of its first long key tells.
    fn bound(&self, directions: &Directions<'_>) -> LastRow {
        let mut keys = Vec::new();
        for key in &self.keys {
            let text = match key {
                KeptKey::Whole(value) => {
                    keys.push(value.clone());
                    continue;
                }
                KeptKey::Cut(cut) => &cut.beginning,
            };
            if !directions.descends(keys.len()) {
                keys.push(Value::from(text.as_str()));
            } else if let Some(beyond) = beyond_all_with(text) {
                keys.push(Value::from(beyond.as_str()));
                return (keys, directions.after_ties());
            }
            break;
        }
        (keys, directions.before_ties())
    }

    /// Whether a row comes after the last one, as far as is known; rows of which it is not known do.
    pub(crate) fn precedes(&self, (keys, place): (&[Value], RowPlace), order: &RowOrder) -> bool {
        match self.compare(keys, &order.directions()) {
            None => true,
            Some(Ordering::Equal) => order.compare((&[], place), (&[], self.last)).is_gt(),
            Some(ordering) => ordering.is_gt(),
        }
    }

    /// How the keys of a row are ordered to those of the last row; none if that is not known.
    fn compare(&self, keys: &[Value], directions: &Directions<'_>) -> Option<Ordering> {
        for (place, (key, kept)) in keys.iter().zip(&self.keys).enumerate() {
            let ordering = match kept {
                KeptKey::Whole(value) => key.cmp(value),
                KeptKey::Cut(cut) => cut.compare(key)?,
            };
            if ordering.is_ne() {
                return Some(if directions.descends(place) { ordering.reverse() } else { ordering });
            }
        }
        (keys.len() == self.keys.len()).then_some(Ordering::Equal)
    }

    /// Adds the bytes of a token.
    pub(crate) fn push(&self, bytes: &mut Vec<u8>) {
        push_row(bytes, self.last.0, self.last.1);
        push_row(bytes, self.next.0, self.next.1);
        push_hash(bytes, self.next_hash);
        for key in &self.keys {
            match key {
                KeptKey::Whole(value) => {
                    let mut json = Vec::new();
                    value.write_json(&mut json);
                    bytes.push(WHOLE);
                    push_bytes(bytes, &json);
                }
                KeptKey::Cut(CutText { beginning, hash, windows }) => {
                    bytes.push(CUT);
                    push_hash(bytes, *hash);
                    push_bytes(bytes, beginning.as_bytes());
                    bytes.push(windows.len() as u8);
                    for window in windows {
                        bytes.push(u8::from(window.is_end));
                        bytes.extend(window.start.to_be_bytes());
                        push_hash(bytes, window.hash);
                        push_bytes(bytes, window.text.as_bytes());
                    }
                }
            }
        }
    }

    /// Reads the bytes of a token.
    pub(crate) fn read(bytes: &[u8]) -> Option<LongKey> {
        let (last, rest) = take_row(bytes)?;
        let (next, rest) = take_row(rest)?;
        let (next_hash, mut rest) = take_hash(rest)?;
        let mut keys = Vec::new();
        while let Some((&kind, after)) = rest.split_first() {
            let key = match kind {
                WHOLE => {
                    let (json, after) = take_bytes(after)?;
                    rest = after;
                    KeptKey::Whole(seek::value(json))
                }
                CUT => {
                    let (cut, after) = take_cut_text(after)?;
                    rest = after;
                    KeptKey::Cut(cut)
                }
                _ => return None,
            };
            keys.push(key);
        }
        Some(LongKey { last, next, next_hash, keys })
    }
}

/// The kinds of kept keys in a token.
const WHOLE: u8 = 0;
const CUT: u8 = 1;

impl CutText {
    /// So many bytes of a text: its beginning, and stretches around the first of some places.
    fn new(text: &str, bytes_max: usize, places: impl Iterator<Item = usize>) -> CutText {
        let beginning = &text[..boundary(text, bytes_max / 2)];
        let length = ((bytes_max - beginning.len()) / WINDOWS_MAX).saturating_sub(WINDOW_BYTES);
        let mut starts: Vec<usize> = Vec::with_capacity(WINDOWS_MAX);
        for place in places {
            // Some of what comes before the place: other rows may differ a little earlier.
            let start = boundary(text, place.saturating_sub(length / 2));
            let is_known =
                place < beginning.len() || starts.iter().any(|known| known.abs_diff(start) < length / 2);
            if !is_known && starts.len() < WINDOWS_MAX && length > 0 {
                starts.push(start);
            }
        }
        starts.sort_unstable();
        let window = |start: usize| {
            let end = boundary(text, start + length);
            TextWindow {
                start: u32::try_from(start).unwrap_or(u32::MAX),
                hash: hash_of_text(&text[..start]),
                text: text[start..end].to_owned(),
                is_end: end == text.len(),
            }
        };
        let windows = starts.into_iter().map(window).collect();
        CutText { beginning: beginning.to_owned(), hash: hash_of_text(text), windows }
    }

    /// How a sort key is ordered to the text; none if that is not known.
    fn compare(&self, key: &Value) -> Option<Ordering> {
        let Value::String(text) = key else { return Some(key.cmp(&Value::from(self.beginning.as_str()))) };
        if !text.starts_with(&self.beginning) {
            return Some(compare_text(text, &self.beginning));
        }
        if text.len() == self.beginning.len() {
            return Some(Ordering::Less);
        }
        if hash_of_text(text) == self.hash {
            return Some(Ordering::Equal);
        }
        for window in &self.windows {
            let (before, rest) = text.split_at_checked(window.start as usize)?;
            if hash_of_text(before) != window.hash {
                return None;
            }
            match rest.strip_prefix(&*window.text) {
                None => return Some(compare_text(rest, &window.text)),
                // It ends where the other one goes on, or the other way round.
                Some("") => return Some(Ordering::Less),
                Some(_) if window.is_end => return Some(Ordering::Greater),
                Some(_) => {}
            }
        }
        None
    }
}

/// Whether keys may be too long for a token.
pub(crate) fn is_long(keys: &[Value]) -> bool {
    let text_bytes = |key: &Value| if let Value::String(text) = key { text.len() } else { 0 };
    keys.iter().map(text_bytes).sum::<usize>() > LONG_BYTES_MIN
}

/// The keys of a row as a position holds them: those that are short, and as much of each long text as there is room for.
fn kept(keys: &[Value], beside: &Neighbours<'_>) -> Vec<KeptKey> {
    let keys = &keys[..keys.len().min(KEPT_KEYS_MAX)];
    let json_bytes = |key: &Value| {
        let mut json = Vec::new();
        key.write_json(&mut json);
        json.len() + 3
    };
    // No key that is not a text is long. Of texts the shortest are kept whole, as long as the others have their share.
    let mut sizes: Vec<(usize, usize)> =
        keys.iter().map(json_bytes).enumerate().map(|(place, size)| (size, place)).collect();
    sizes.sort_unstable();
    let (mut room, mut cut) = (KEPT_BYTES_MAX, sizes.len());
    let mut is_whole = vec![false; keys.len()];
    for (size, place) in sizes {
        if size > room / cut {
            break;
        }
        is_whole[place] = true;
        (room, cut) = (room - size, cut - 1);
    }
    let share = (room / cut.max(1)).saturating_sub(CUT_TEXT_BYTES);
    // Where the text at a place differs from that of a row with the same keys before it.
    let differing = |others: &[Value], place: usize, text: &str| {
        let first = keys.iter().zip(others).position(|(key, other)| key != other);
        match others.get(place).filter(|_| first == Some(place)) {
            Some(Value::String(other)) => Some(agreeing_bytes(text, other)),
            _ => None,
        }
    };
    let kept = |(place, key): (usize, &Value)| match key {
        Value::String(text) if !is_whole[place] => {
            let before = beside.before.and_then(|before| differing(before, place, text));
            let next = differing(&beside.next.0, place, text);
            let prior = beside.prior.and_then(|prior| prior.keys.get(place));
            let prior = if let Some(KeptKey::Cut(cut)) = prior { &cut.windows[..] } else { &[] };
            let prior = prior.iter().map(|window| window.start as usize + window.text.len() / 2);
            let places = before.into_iter().chain(prior).chain(next).chain([text.len()]);
            KeptKey::Cut(CutText::new(text, share, places.filter(|place| *place <= text.len())))
        }
        key => KeptKey::Whole(key.clone()),
    };
    keys.iter().enumerate().map(kept).collect()
}

/// How many bytes two texts agree in, up to the end of a character.
fn agreeing_bytes(left: &str, right: &str) -> usize {
    let agreeing = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    boundary(left, agreeing)
}

/// The last place up to one where a character of a text ends.
fn boundary(text: &str, place: usize) -> usize {
    (0..=place.min(text.len())).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
}

/// The least text that is above all that begin with a text; none if there is none.
fn beyond_all_with(text: &str) -> Option<String> {
    let last = text.char_indices().rev().find(|(_, last)| *last != '\u{FFFF}');
    let (place, last) = last?;
    // In the order of code units, which has characters beyond U+FFFF as pairs between U+D7FF and U+E000.
    let next = match last {
        '\u{D7FF}' => '\u{10000}',
        '\u{10FFFF}' => '\u{E000}',
        last => char::from_u32(u32::from(last) + 1)?,
    };
    let mut beyond = text[..place].to_owned();
    beyond.push(next);
    Some(beyond)
}

fn hash_of_text(text: &str) -> Hash {
    hash_128(text.as_bytes(), (0, 0))
}

fn hash_of_keys(keys: &[Value]) -> Hash {
    let mut json = Vec::new();
    push_keys(&mut json, keys);
    hash_128(&json, (0, 0))
}

fn push_hash(bytes: &mut Vec<u8>, (low, high): Hash) {
    bytes.extend(low.to_be_bytes());
    bytes.extend(high.to_be_bytes());
}

/// Bytes, after how many they are.
fn push_bytes(bytes: &mut Vec<u8>, own: &[u8]) {
    bytes.extend((own.len() as u32).to_be_bytes());
    bytes.extend_from_slice(own);
}

fn take_hash(bytes: &[u8]) -> Option<(Hash, &[u8])> {
    let (low, rest) = take_u64(bytes)?;
    let (high, rest) = take_u64(rest)?;
    Some(((low, high), rest))
}

fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    rest.split_at_checked(length as usize)
}

fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (text, rest) = take_bytes(bytes)?;
    Some((str::from_utf8(text).ok()?.to_owned(), rest))
}

fn take_cut_text(bytes: &[u8]) -> Option<(CutText, &[u8])> {
    let (hash, rest) = take_hash(bytes)?;
    let (beginning, rest) = take_text(rest)?;
    let (&count, mut rest) = rest.split_first()?;
    let mut windows = Vec::new();
    for _ in 0..count {
        let (&is_end, after) = rest.split_first()?;
        let (start, after) = take_u32(after)?;
        let (before, after) = take_hash(after)?;
        let (text, after) = take_text(after)?;
        rest = after;
        windows.push(TextWindow { start, hash: before, text, is_end: is_end != 0 });
    }
    Some((CutText { beginning, hash, windows }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of about so many bytes that names a place among others.
    fn text(before: usize, name: &str, after: usize) -> String {
        format!("{}{name}{}", "x".repeat(before), "y".repeat(after))
    }

    fn keys(texts: &[&str]) -> Vec<Value> {
        texts.iter().map(|text| Value::from(*text)).collect()
    }

    fn long_key(last: &[Value], before: Option<&[Value]>, next: &[Value]) -> LongKey {
        let next = (next.to_vec(), (9, 0));
        let beside = Neighbours { before, next: &next, prior: None };
        let directions = Directions { descending: &[], reverse_ties: false };
        match directions.between((last.to_vec(), (5, 0)), &beside) {
            ResumePlace::LongKey(long) => long,
            place => panic!("{place:?}"),
        }
    }

    /// What the position after a text tells of other texts is how they are ordered.
    #[test]
    fn what_is_known_of_a_text_is_so() {
        let others: Vec<String> = ["0", "10", "3", "5", "50", "7", "\u{FFFF}", "\u{10000}", "é"]
            .iter()
            .flat_map(|name| [0, 100, 228, 300, 899, 900, 2_000].map(|before| text(before, name, 1_000)))
            .chain((880..920).map(|length| "x".repeat(length)))
            .chain([text(900, "5", 999), text(900, "5", 1_001), String::new()])
            .collect();
        for last in &others {
            for before in others.iter().filter(|before| compare_text(before, last).is_lt()) {
                let (last, before) = (keys(&[last]), keys(&[before]));
                if keys_fit(&last) {
                    continue;
                }
                let long = long_key(&last, Some(&before), &last);
                let directions = Directions { descending: &[], reverse_ties: false };
                for other in &others {
                    let other = keys(&[other]);
                    let known = long.compare(&other, &directions);
                    assert!(
                        known.is_none_or(|known| known == other.cmp(&last)),
                        "{last:?} {other:?} {known:?}"
                    );
                }
                assert_eq!(long.compare(&last, &directions), Some(Ordering::Equal));
                assert_eq!(long.compare(&before, &directions), Some(Ordering::Less), "{last:?} {before:?}");
            }
        }
    }

    /// Where rows before the last one differ from it near the place where the nearest of them does, all is known.
    #[test]
    fn rows_that_differ_in_one_part_are_told_apart() {
        let name = |number: usize| text(5_000, &format!("{number:06}"), 5_000);
        let (last, before) = (keys(&[&name(500_000)]), keys(&[&name(499_999)]));
        let long = long_key(&last, Some(&before), &last);
        for number in [0, 1, 99_999, 400_000, 499_998, 500_001, 999_999] {
            let other = keys(&[&name(number)]);
            for descends in [false, true] {
                let directions = Directions { descending: &[descends], reverse_ties: false };
                let expected = if descends { last.cmp(&other) } else { other.cmp(&last) };
                assert_eq!(long.compare(&other, &directions), Some(expected), "{number}");
            }
        }
    }

    /// The place to read from is never behind a row that is to be given.
    #[test]
    fn the_bound_is_before_what_is_to_be_given() {
        for name in ["a", "\u{FFFF}", "\u{D7FF}", "\u{10FFFF}", "\u{E000}"] {
            let last = name.repeat(700);
            let long = long_key(&keys(&[&last]), None, &keys(&[&last]));
            let more = format!("{}{}", name.repeat(300), "\u{FFFF}".repeat(300));
            for other in [last.clone(), more, name.repeat(200), name.repeat(900)] {
                let row = (keys(&[&other]), (7, 0));
                for descends in [false, true] {
                    let order = RowOrder::of(&[descends]);
                    let (bound, place) = long.bound(&order.directions());
                    let is_given = !long.precedes((&row.0, row.1), &order);
                    let is_read = order.compare((&row.0, row.1), (&bound, place)).is_gt();
                    assert!(is_read || is_given, "{name} {descends}");
                }
            }
        }
    }

    #[test]
    fn positions_are_read_as_they_were_written() {
        let long = "\u{1}".repeat(3_000);
        let texts = ["short", &long, "other", &long[..700], &long[..800], "x"];
        for count in 2..=texts.len() {
            let mut keys = keys(&texts[..count]);
            keys.push(Value::Undefined);
            keys.push(Value::Number(-0.5));
            let position = long_key(&keys, None, &keys);
            let mut bytes = Vec::new();
            position.push(&mut bytes);
            assert!(bytes.len() <= 560, "{} bytes", bytes.len());
            assert_eq!(LongKey::read(&bytes), Some(position));
            assert!(
                (0..bytes.len())
                    .all(|length| LongKey::read(&bytes[..length])
                        .is_none_or(|cut| cut.keys.len() < keys.len()))
            );
        }
    }
}
