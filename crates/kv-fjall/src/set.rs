//! The set of the contract on the `packed` crate: what this engine gives it, and its answers in the words of the contract.
//!
//! `packed` keeps keys in blobs, which are files here (`set_files`), and takes the blocks of the newest commit groups from a
//! journal, which is a keyspace of fjall here: a group's block is in its batch, so it is as durable as the rest of the group.
//! In: reads of the contract, views to publish. Out: batches of keys; errors of the contract.
//!
//! Not here: how keys are packed (`packed`), when groups are written (`committer`).

use crate::Core;
use crate::store::Store;
use astrarium_kv as kv;
use astrarium_packed::{
    Control, DamageSignal, Error, FAMILY_BYTES, Journal, KeyAction, KeyChange, LostRange, Publisher, SetView,
    VALUE_BYTES_MAX, Visit,
};
use bytes::Bytes;
use std::ops::ControlFlow;
use std::sync::Arc;

const _: () = assert!(FAMILY_BYTES == kv::FAMILY_BYTES, "both crates mean the same families");
const _: () = assert!(VALUE_BYTES_MAX == kv::SHORT_VALUE_BYTES_MAX, "and the same short values");

/// An error of the packed set in the words of the contract.
pub(crate) fn told(error: Error) -> kv::Error {
    match error {
        Error::Damaged { what } => kv::Error::Corruption { what },
        Error::BadBlock(_) => kv::Error::Corruption { what: error.to_string() },
        Error::Lost { what } => kv::Error::SetLost { what },
        Error::Unavailable { reason } => kv::Error::Unavailable { reason },
    }
}

/// An error of the contract in the words of the packed set.
fn untold(error: kv::Error) -> Error {
    match error {
        kv::Error::Corruption { what } => Error::Damaged { what },
        other => Error::Unavailable { reason: other.to_string() },
    }
}

/// Lost ranges in the words of the contract, also one that was met and is not dealt with yet.
pub(crate) fn losses(view: &SetView, pending: Option<&LostRange>) -> Vec<kv::SetLoss> {
    let loss = |lost: &LostRange| kv::SetLoss {
        range: kv::KeyRange { start: lost.start.clone(), end: lost.end.clone() },
        what: lost.what.clone(),
    };
    view.lost().iter().chain(pending).map(loss).collect()
}

/// What batches change of the set, in their order.
pub(crate) fn changes(batches: &[kv::SetChanges]) -> impl Iterator<Item = KeyChange<'_>> + Clone {
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
pub(crate) fn scan(
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
pub(crate) fn scan_entries(
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
pub(crate) fn intersect(
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

impl Journal for Store {
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        self.set_blocks(group).map_err(untold)
    }

    fn release(&self, up_to: u64) -> Result<(), Error> {
        self.drop_set_blocks(up_to).map_err(|error| untold(crate::error::reading(&error)))
    }
}

impl Publisher for Core {
    fn view(&self) -> Arc<SetView> {
        self.set_view()
    }

    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView)) {
        let _publishing = self.publishing.lock();
        let current = self.current.load();
        let mut view = SetView::clone(&current.set());
        change(current.group(), &mut view);
        self.current.store(Arc::new(current.with_set(view)));
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Error> {
        let current = self.current.load();
        let store = current.store().map_err(untold)?;
        Ok(Arc::<Store>::clone(store))
    }

    fn control(&self) -> &Control {
        &self.set
    }

    fn dropped(&self) -> Vec<Bytes> {
        let current = self.current.load();
        let dropped = current.store().map(|store| store.drops.load());
        dropped.map(|listed| listed.covered.in_space(None).cloned().collect()).unwrap_or_default()
    }

    fn damage(&self) -> Option<Arc<DamageSignal>> {
        self.current.load().store().ok().map(|store| Arc::clone(&store.set_damage))
    }

    fn has_room(&self, byte_count: u64) -> bool {
        self.free_space.has_room(byte_count)
    }

    fn fail(&self, reason: String) {
        self.health.fail(reason, true);
    }
}
