//! The set of the contract on the `packed` crate: questions of views and changes of batches in its words, its answers and errors in
//! those of the contract. Every engine that keeps its set packed uses it.
//!
//! Not here: where blobs and blocks live, which is each engine's own; how keys are packed (`packed`).

use astrarium_kv as kv;
use astrarium_packed::{
    Error, FAMILY_BYTES, KeyAction, KeyChange, LostRange, SetView, VALUE_BYTES_MAX, Visit,
};
use bytes::Bytes;
use std::ops::ControlFlow;

const _: () = assert!(FAMILY_BYTES == kv::FAMILY_BYTES, "both crates mean the same families");
const _: () = assert!(VALUE_BYTES_MAX == kv::SHORT_VALUE_BYTES_MAX, "and the same short values");

/// An error of the packed set in the words of the contract.
pub fn told(error: Error) -> kv::Error {
    match error {
        Error::Damaged { what } => kv::Error::Corruption { what },
        Error::BadBlock(_) => kv::Error::Corruption { what: error.to_string() },
        Error::Lost { what } => kv::Error::SetLost { what },
        Error::Unavailable { reason } => kv::Error::Unavailable { reason },
    }
}

/// An error of the contract in the words of the packed set.
pub fn untold(error: kv::Error) -> Error {
    match error {
        kv::Error::Corruption { what } => Error::Damaged { what },
        other => Error::Unavailable { reason: other.to_string() },
    }
}

/// Lost ranges in the words of the contract, also one that was met and is not dealt with yet.
pub fn losses(view: &SetView, pending: Option<&LostRange>) -> Vec<kv::SetLoss> {
    let loss = |lost: &LostRange| kv::SetLoss {
        range: kv::KeyRange { start: lost.start.clone(), end: lost.end.clone() },
        what: lost.what.clone(),
    };
    view.lost().iter().chain(pending).map(loss).collect()
}

/// What batches change of the set, in their order.
pub fn changes(batches: &[kv::SetChanges]) -> impl Iterator<Item = KeyChange<'_>> + Clone {
    (0..).zip(batches).flat_map(|(batch, changes)| {
        let plain = move |action| move |key| KeyChange::of_key(batch, key, action);
        let removed = changes.removed.iter().map(plain(KeyAction::Remove));
        let added = changes.added.iter().map(plain(KeyAction::Add));
        let valued = changes.valued.iter().flat_map(move |valued| {
            let added = entries(batch, &valued.added, KeyAction::Add);
            added.chain(entries(batch, &valued.replaced, KeyAction::Replace))
        });
        removed.chain(added).chain(valued)
    })
}

fn entries(
    batch: u32,
    list: &kv::EntryList,
    action: KeyAction,
) -> impl Iterator<Item = KeyChange<'_>> + Clone {
    (0..list.len()).map(move |position| {
        let (entry, value_bytes) = list.get_joined(position);
        KeyChange::of_entry(batch, entry, value_bytes, action)
    })
}

/// Keys of pieces of a range, up to a limit.
pub fn scan(
    view: &SetView,
    pieces: &[kv::KeyRange],
    direction: kv::Direction,
    limit: kv::ScanLimit,
) -> Result<kv::KeyBatch, Error> {
    let mut batch = kv::KeyBatch::default();
    let visit = |key: &[u8], _: &[u8]| {
        let count = batch.keys.len();
        let is_full = count >= limit.entry_count_max || batch.keys.byte_count() >= limit.byte_count_max;
        if count > 0 && is_full {
            batch.more = true;
            return ControlFlow::Break(());
        }
        batch.keys.push(key);
        ControlFlow::Continue(())
    };
    visit_pieces(view, pieces, direction, visit)?;
    Ok(batch)
}

/// The same with values.
pub fn scan_entries(
    view: &SetView,
    pieces: &[kv::KeyRange],
    direction: kv::Direction,
    limit: kv::ScanLimit,
) -> Result<kv::EntryBatch, Error> {
    let mut batch = kv::EntryBatch::default();
    let visit = |key: &[u8], value: &[u8]| {
        let count = batch.entries.len();
        let is_full = count >= limit.entry_count_max || batch.entries.byte_count() >= limit.byte_count_max;
        if count > 0 && is_full {
            batch.more = true;
            return ControlFlow::Break(());
        }
        batch.entries.push(key, value);
        ControlFlow::Continue(())
    };
    visit_pieces(view, pieces, direction, visit)?;
    Ok(batch)
}

/// What is in all of several lists of postings.
pub fn intersect(
    view: &SetView,
    prefixes: &[Bytes],
    from: u64,
    kv::IntersectionLimit { count_max, seeks_max }: kv::IntersectionLimit,
) -> Result<kv::Intersection, Error> {
    let prefixes: Vec<&[u8]> = prefixes.iter().map(|prefix| &prefix[..]).collect();
    let mut numbers = Vec::new();
    let visit = |number| {
        numbers.push(number);
        if numbers.len() < count_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let (seeks, next) = view.intersect(&prefixes, from, seeks_max, visit)?;
    Ok(kv::Intersection { numbers, seeks, next })
}

fn visit_pieces(
    view: &SetView,
    pieces: &[kv::KeyRange],
    direction: kv::Direction,
    mut visit: impl Visit,
) -> Result<(), Error> {
    let [first, rest @ ..] = pieces else { return Ok(()) };
    if rest.is_empty() {
        return visit_range(view, first, direction, visit);
    }
    for piece in pieces {
        let mut flow = ControlFlow::Continue(());
        visit_range(view, piece, direction, |key: &[u8], value: &[u8]| {
            flow = visit(key, value);
            flow
        })?;
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn visit_range(
    view: &SetView,
    range: &kv::KeyRange,
    direction: kv::Direction,
    visit: impl Visit,
) -> Result<(), Error> {
    match direction {
        kv::Direction::Forward => view.scan_forward(&range.start, &range.end, visit),
        kv::Direction::Backward => view.scan_backward(&range.start, &range.end, visit),
    }
}
