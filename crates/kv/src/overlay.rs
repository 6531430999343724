//! What a transaction sees of its own writes before it commits.
//!
//! In: a base view, a staged [`WriteBatch`] and the version it would get. Out: a [`View`] that answers as one
//! taken right after the commit would, so that queries and index searches run over it unchanged.
//! The staged writes are stamped and sorted once; a read of a range in which none of them lies goes straight to the base.
//! A scan asks the base in rounds and merges each round's entries with the staged ones.
//! Invariants
//! - A round that the base cut short is merged only up to its last key: what is staged beyond waits for the base's next
//!   entries.
//! - Rounds go on until the limit is reached or the range ends, and each asks for more than the one before, so that
//!   many removals in a row cost few rounds.
//! - `more` is as exact as the base's: before it is said because of the base alone, no staged removal is left that could
//!   hide what the base still has.
//!
//! Not here: expectations, epochs, tallies and high water of the batch (`commit` deals with them), staging.

use crate::{
    CommitVersion, Direction, EntryBatch, Error, FAMILY_BYTES, KeyBatch, KeyRange, Reply, ScanBatch,
    ScanLimit, ShardId, ShardState, Space, View, WriteBatch, contract,
};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::sync::Arc;

/// How far the limit of a round may grow beyond the caller's, so that a round stays small in memory.
const ROUND_MAX: ScanLimit = ScanLimit { entry_count_max: 1024, byte_count_max: 1024 * 1024 };

/// A base view with a staged batch applied on top. Later changes of the batch are not seen: make a new one, which
/// costs a sort of the batch and a copy of what is stamped.
pub struct Overlay {
    base: Arc<dyn View>,
    spaces: [Arc<Changes>; Space::ALL.len()],
    set: Arc<Changes>,
    /// Those of the set that are there in the base: they do not count as new.
    replaced: Changes,
}

/// The last word of the batch on each key it names: a value, or nothing where the key is removed.
type Changes = BTreeMap<Bytes, Option<Bytes>>;

impl Overlay {
    /// Shows `base` as it would be with `batch` committed as `version` of its shard. The stamps of the batch must lie
    /// within their keys and values, as [`crate::contract::validate`] demands.
    pub fn new(base: Arc<dyn View>, batch: &WriteBatch, version: u64) -> Overlay {
        let mut spaces: [Changes; Space::ALL.len()] = Default::default();
        for mutation in &batch.mutations {
            let (space, key, value) = mutation.clone().stamped(CommitVersion(version));
            spaces[space as usize].insert(key, value);
        }
        let added = batch.set.added.iter().map(|key| (Bytes::copy_from_slice(key), Some(Bytes::new())));
        let removed = batch.set.removed.iter().map(|key| (Bytes::copy_from_slice(key), None));
        let copied = |(key, value)| (Bytes::copy_from_slice(key), Some(Bytes::copy_from_slice(value)));
        let set = added.chain(removed).chain(batch.set.valued_entries().map(copied)).collect();
        let replaced =
            batch.set.valued.iter().flat_map(|valued| valued.replaced.iter().map(copied)).collect();
        Overlay { base, spaces: spaces.map(Arc::new), set: Arc::new(set), replaced }
    }

    fn changes(&self, space: Space) -> &Arc<Changes> {
        &self.spaces[space as usize]
    }
}

impl View for Overlay {
    fn shard(&self) -> ShardId {
        self.base.shard()
    }

    /// That of the base: what is not committed has no version.
    fn state(&self) -> ShardState {
        self.base.state()
    }

    fn get(&self, space: Space, key: &[u8]) -> Reply<Result<Option<Bytes>, Error>> {
        if let Err(error) = contract::check_key(self.shard(), Some(space), key) {
            return Reply::ready(Err(error));
        }
        match self.changes(space).get(key) {
            Some(staged) => Reply::ready(Ok(staged.clone())),
            None => self.base.get(space, key),
        }
    }

    fn get_many(
        &self,
        space: Space,
        keys: &[Bytes],
        byte_count_max: usize,
    ) -> Reply<Result<Vec<Option<Bytes>>, Error>> {
        let changes = self.changes(space);
        if changes.is_empty() {
            return self.base.get_many(space, keys, byte_count_max);
        }
        if let Err(error) = contract::check_keys(self.shard(), Some(space), keys) {
            return Reply::ready(Err(error));
        }
        let mut values = Vec::with_capacity(keys.len());
        let (mut asked, mut places) = (Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            let staged = changes.get(key);
            if staged.is_none() {
                asked.push(key.clone());
                places.push(place);
            }
            values.push(staged.cloned().flatten());
        }
        if asked.is_empty() {
            contract::truncate_values(&mut values, byte_count_max);
            return Reply::ready(Ok(values));
        }
        self.base.get_many(space, &asked, byte_count_max).map(move |found| {
            let found = found?;
            // What the base left out, and all after it, is left out here too.
            values.truncate(places.get(found.len()).copied().unwrap_or(values.len()));
            for (place, value) in places.into_iter().zip(found) {
                values[place] = value;
            }
            contract::truncate_values(&mut values, byte_count_max);
            Ok(values)
        })
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<ScanBatch, Error>> {
        let ask = move |base: &dyn View, rest: &KeyRange, limit| base.scan(space, rest, direction, limit);
        merge(&self.base, self.changes(space), range, direction, limit, ask)
    }

    fn scan_keys(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<KeyBatch, Error>> {
        let ask = move |base: &dyn View, rest: &KeyRange, limit| base.scan_keys(rest, direction, limit);
        merge(&self.base, &self.set, range, direction, limit, ask)
    }

    fn scan_entries(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Reply<Result<EntryBatch, Error>> {
        let ask = move |base: &dyn View, rest: &KeyRange, limit| base.scan_entries(rest, direction, limit);
        merge(&self.base, &self.set, range, direction, limit, ask)
    }

    fn count_keys(&self, family: &[u8; FAMILY_BYTES]) -> Reply<Result<u64, Error>> {
        let of_family = |changes: &Changes| {
            let changes = changes.range::<[u8], _>((Bound::Included(&family[..]), Bound::Unbounded));
            count(changes.take_while(|(key, _)| key.starts_with(family)))
        };
        let (added, removed) = of_family(&self.set);
        let added = added - of_family(&self.replaced).0;
        let base = self.base.count_keys(family);
        base.map(move |base| Ok(base?.saturating_add(added).saturating_sub(removed)))
    }

    fn estimate_keys(&self, range: &KeyRange) -> Reply<Result<u64, Error>> {
        let (added, removed) = count(within(&self.set, range));
        let added = added - count(within(&self.replaced, range)).0;
        self.base.estimate_keys(range).map(move |base| {
            Ok(match base? {
                // The base is sure to have none, so there is nothing to remove.
                0 => added,
                // The base may have more than it says, so that removals prove nothing.
                base => base.saturating_add(added).saturating_sub(removed).max(1),
            })
        })
    }
}

/// The staged changes of a range, in key order.
fn within<'c>(changes: &'c Changes, range: &KeyRange) -> btree_map::Range<'c, Bytes, Option<Bytes>> {
    let end = (&range.end).max(&range.start);
    changes.range::<[u8], _>((Bound::Included(&range.start[..]), Bound::Excluded(&end[..])))
}

/// How many keys are added, and how many removed.
fn count<'c>(changes: impl Iterator<Item = (&'c Bytes, &'c Option<Bytes>)>) -> (u64, u64) {
    changes.fold((0, 0), |(added, removed), (_, staged)| match staged {
        Some(_) => (added + 1, removed),
        None => (added, removed + 1),
    })
}

/// A batch of a scan, of a space or of the set.
trait OverlayBatch: Default + Send + Unpin + 'static {
    fn entry_count(&self) -> usize;

    /// The key at a position, which must be one of the piece's.
    fn key(&self, position: usize) -> &[u8];

    fn more(&self) -> bool;

    fn set_more(&mut self, more: bool);

    /// Appends an entry of another piece and gives its bytes.
    fn push_from(&mut self, other: &Self, position: usize) -> usize;

    /// Appends a staged entry and gives its bytes.
    fn push_staged(&mut self, key: &Bytes, value: &Bytes) -> usize;
}

impl OverlayBatch for ScanBatch {
    fn entry_count(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, position: usize) -> &[u8] {
        &self.entries[position].0
    }

    fn more(&self) -> bool {
        self.more
    }

    fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    fn push_from(&mut self, other: &ScanBatch, position: usize) -> usize {
        let (key, value) = &other.entries[position];
        self.push_staged(key, value)
    }

    fn push_staged(&mut self, key: &Bytes, value: &Bytes) -> usize {
        self.entries.push((key.clone(), value.clone()));
        key.len() + value.len()
    }
}

impl OverlayBatch for KeyBatch {
    fn entry_count(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, position: usize) -> &[u8] {
        self.keys.get(position)
    }

    fn more(&self) -> bool {
        self.more
    }

    fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    fn push_from(&mut self, other: &KeyBatch, position: usize) -> usize {
        let key = other.keys.get(position);
        self.keys.push(key);
        key.len()
    }

    fn push_staged(&mut self, key: &Bytes, _: &Bytes) -> usize {
        self.keys.push(key);
        key.len()
    }
}

impl OverlayBatch for EntryBatch {
    fn entry_count(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, position: usize) -> &[u8] {
        self.entries.get(position).0
    }

    fn more(&self) -> bool {
        self.more
    }

    fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    fn push_from(&mut self, other: &EntryBatch, position: usize) -> usize {
        let (key, value) = other.entries.get(position);
        self.entries.push(key, value);
        key.len() + value.len()
    }

    fn push_staged(&mut self, key: &Bytes, value: &Bytes) -> usize {
        self.entries.push(key, value);
        key.len() + value.len()
    }
}

/// Scans base and changes as one, asking the base by `ask`.
fn merge<P: OverlayBatch, A>(
    base: &Arc<dyn View>,
    changes: &Arc<Changes>,
    range: &KeyRange,
    direction: Direction,
    limit: ScanLimit,
    ask: A,
) -> Reply<Result<P, Error>>
where
    A: Fn(&dyn View, &KeyRange, ScanLimit) -> Reply<Result<P, Error>> + Send + 'static,
{
    if within(changes, range).next().is_none() {
        return ask(&**base, range, limit);
    }
    let merge = Merge {
        base: Arc::clone(base),
        changes: Arc::clone(changes),
        direction,
        limit,
        ask,
        rest: range.clone(),
        round_limit: limit,
        gathered: P::default(),
        byte_count: 0,
    };
    merge.run()
}

/// A scan under way. It owns what it needs, because a base that answers later outlives the call.
struct Merge<P, A> {
    base: Arc<dyn View>,
    changes: Arc<Changes>,
    direction: Direction,
    limit: ScanLimit,
    ask: A,
    /// What is not merged yet of the range.
    rest: KeyRange,
    /// For the next round.
    round_limit: ScanLimit,
    gathered: P,
    /// Bytes of `gathered`.
    byte_count: usize,
}

impl<P: OverlayBatch, A> Merge<P, A>
where
    A: Fn(&dyn View, &KeyRange, ScanLimit) -> Reply<Result<P, Error>> + Send + 'static,
{
    /// Answers at once as long as the base does.
    fn run(mut self) -> Reply<Result<P, Error>> {
        loop {
            let answer = match self.ask_base() {
                Reply::Ready(answer) => answer.expect("a new reply holds its answer"),
                later @ Reply::Later(_) => return Reply::later(self.run_later(later)),
            };
            match answer.map(|piece| self.absorb(&piece)) {
                Ok(None) => {}
                Ok(Some(done)) => return Reply::ready(Ok(done)),
                Err(error) => return Reply::ready(Err(error)),
            }
        }
    }

    async fn run_later(mut self, mut reply: Reply<Result<P, Error>>) -> Result<P, Error> {
        loop {
            let piece = reply.await?;
            if let Some(done) = self.absorb(&piece) {
                return Ok(done);
            }
            reply = self.ask_base();
        }
    }

    fn ask_base(&self) -> Reply<Result<P, Error>> {
        (self.ask)(&*self.base, &self.rest, self.round_limit)
    }

    /// Merges what the base gave for the rest of the range. Gives the answer, or nothing if another round is needed.
    fn absorb(&mut self, piece: &P) -> Option<P> {
        // A piece that is cut has a last key; one without any would only repeat itself, so it counts as the end.
        let last = piece.entry_count().checked_sub(1).filter(|_| piece.more()).map(|last| piece.key(last));
        let (covered, rest) = match last {
            Some(last) => split_after(&self.rest, last, self.direction),
            None => (self.rest.clone(), KeyRange { start: Bytes::new(), end: Bytes::new() }),
        };
        if self.take_covered(piece, &covered) {
            return Some(self.finish(true));
        }
        if last.is_none() {
            return Some(self.finish(false));
        }
        self.rest = rest;
        if self.is_full() && !self.only_removals_remain() {
            return Some(self.finish(true));
        }
        self.round_limit = grown(self.round_limit, self.limit);
        None
    }

    /// Takes the entries of a piece and the staged ones of the range it covers, in order. Whether there was one more
    /// than the limit allows.
    fn take_covered(&mut self, piece: &P, covered: &KeyRange) -> bool {
        let (direction, changes) = (self.direction, Arc::clone(&self.changes));
        let mut range = within(&changes, covered);
        let staged = std::iter::from_fn(move || match direction {
            Direction::Forward => range.next(),
            Direction::Backward => range.next_back(),
        });
        let mut staged = staged.peekable();
        let mut position = 0;
        loop {
            let base_key = (position < piece.entry_count()).then(|| piece.key(position));
            let order = match (base_key, staged.peek()) {
                (None, None) => return false,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(base_key), Some((key, _))) => match direction {
                    Direction::Forward => base_key.cmp(&key[..]),
                    Direction::Backward => key[..].cmp(base_key),
                },
            };
            // The base's entry comes first, or a staged one that replaces it where the keys are equal.
            let change = if order.is_lt() { None } else { staged.next() };
            if !matches!(change, Some((_, None))) {
                if self.is_full() {
                    return true;
                }
                self.byte_count += match change {
                    Some((key, Some(value))) => self.gathered.push_staged(key, value),
                    _ => self.gathered.push_from(piece, position),
                };
            }
            position += usize::from(order.is_le());
        }
    }

    fn is_full(&self) -> bool {
        self.limit.is_reached(self.gathered.entry_count(), self.byte_count)
    }

    /// Whether the changes of the rest can only hide entries of the base there, perhaps all of them.
    fn only_removals_remain(&self) -> bool {
        let mut staged = within(&self.changes, &self.rest).map(|(_, staged)| staged).peekable();
        staged.peek().is_some() && staged.all(Option::is_none)
    }

    fn finish(&mut self, more: bool) -> P {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.set_more(more);
        gathered
    }
}

/// The part of a range up to a key and including it, in scan order, and the part beyond.
fn split_after(range: &KeyRange, key: &[u8], direction: Direction) -> (KeyRange, KeyRange) {
    let middle = match direction {
        Direction::Forward => Bytes::from([key, &[0]].concat()),
        Direction::Backward => Bytes::copy_from_slice(key),
    };
    let low = KeyRange { start: range.start.clone(), end: middle.clone() };
    let high = KeyRange { start: middle, end: range.end.clone() };
    match direction {
        Direction::Forward => (low, high),
        Direction::Backward => (high, low),
    }
}

/// Twice the limit of a round, up to [`ROUND_MAX`] or what the caller allows if that is more.
fn grown(round: ScanLimit, asked: ScanLimit) -> ScanLimit {
    let double = |size: usize, size_max: usize| size.max(1).saturating_mul(2).min(size_max);
    let entry_count_max = asked.entry_count_max.max(ROUND_MAX.entry_count_max);
    let byte_count_max = asked.byte_count_max.max(ROUND_MAX.byte_count_max);
    ScanLimit {
        entry_count_max: double(round.entry_count_max, entry_count_max),
        byte_count_max: double(round.byte_count_max, byte_count_max),
    }
}
