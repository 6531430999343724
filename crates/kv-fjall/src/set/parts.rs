//! The set as one view sees it: parts in memory over parts in files, the newest first. It never changes.
//!
//! In: a range and a limit. Out: keys in order, removals applied; counts; estimates.
//! The committer makes a new list for each group, a merge for each merge; lists share their parts.
//! Invariant: a key is in the set when the newest part that names it does not name it as removed.

use super::cursor::{Downwards, Upwards, Walk};
use super::filter::beginning_of;
use super::merge::Merge;
use super::part::{Part, Reading};
use astrarium_kv::{Direction, Error, FAMILY_BYTES, KeyBatch, KeyRange, ScanLimit};
use std::sync::Arc;

/// Ranges with no more entries than this are walked to be estimated.
const WALKED_MAX: u64 = 48;

/// All parts of a set.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    /// Why keys are missing, if they are and somebody may still rely on them: nothing is told of the set then.
    pub(crate) loss: Option<Arc<str>>,
    /// Changes that are in no run yet, the newest first.
    pub(super) memory: Vec<Arc<Part>>,
    /// Runs, the newest first; all older than what is in memory.
    pub(super) runs: Vec<Arc<Part>>,
}

/// What a set is made of at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetStats {
    /// Parts in memory, each of which a reader looks at.
    pub memory_parts: u64,
    /// Bytes of these.
    pub memory_bytes: u64,
    /// Runs on disk, each of which a reader looks at.
    pub runs: u64,
    /// Bytes of these.
    pub run_bytes: u64,
    /// Keys and removals in all of them.
    pub entries: u64,
}

impl Parts {
    pub(crate) fn stats(&self) -> SetStats {
        SetStats {
            memory_parts: self.memory.len() as u64,
            memory_bytes: self.memory_bytes(),
            runs: self.runs.len() as u64,
            run_bytes: self.disk_bytes(),
            entries: self.iter().map(|part| part.index.entry_count()).sum(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Part> {
        self.memory.iter().chain(&self.runs).map(Arc::as_ref)
    }

    /// The parts that may have keys of the range.
    fn within<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = &'a Part> {
        let beginning = beginning_of(range);
        let may_have = move |part: &&Part| part.filter.may_have(beginning);
        self.iter().filter(may_have).filter(|part| !part.index.misses(&range.start, &range.end))
    }

    /// With the changes of one more group.
    pub(super) fn with(&self, part: Arc<Part>) -> Parts {
        let memory = [part].into_iter().chain(self.memory.iter().cloned()).collect();
        Parts { loss: self.loss.clone(), memory, runs: self.runs.clone() }
    }

    /// With the parts from `first` on, `count` of them, replaced by one or none.
    pub(super) fn replace(list: &mut Vec<Arc<Part>>, old: &[Arc<Part>], new: Option<Arc<Part>>) {
        let Some(first) = old.first() else { return };
        let place = list.iter().position(|part| Arc::ptr_eq(part, first));
        let place = place.expect("only the merger takes parts out of the list");
        list.splice(place..place + old.len(), new);
    }

    /// Bytes of the parts in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory.iter().map(|part| part.byte_count()).sum()
    }

    /// Bytes of the runs.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(|part| part.byte_count()).sum()
    }

    pub(crate) fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<KeyBatch, Error> {
        self.check_loss()?;
        if range.start >= range.end {
            return Ok(KeyBatch::default());
        }
        let parts = self.within(range);
        match direction {
            Direction::Forward => {
                let walks = parts.map(|part| Upwards::seek(part, &range.start, Reading::Cached));
                gather(Merge::new(walks.collect::<Result<_, _>>()?), limit, |key| key < &range.end[..])
            }
            Direction::Backward => {
                let walks = parts.map(|part| Downwards::seek(part, &range.end));
                gather(Merge::new(walks.collect::<Result<_, _>>()?), limit, |key| key >= &range.start[..])
            }
        }
    }

    /// How many keys a family has.
    pub(crate) fn count(&self, family: &[u8; FAMILY_BYTES]) -> Result<u64, Error> {
        self.check_loss()?;
        let sum: i64 = self.iter().map(|part| part.families.get(family)).sum();
        Ok(u64::try_from(sum).unwrap_or(0))
    }

    fn check_loss(&self) -> Result<(), Error> {
        match &self.loss {
            Some(what) => Err(Error::SetLost { what: what.to_string() }),
            None => Ok(()),
        }
    }

    /// About how many keys are in the range; exact where it is few.
    pub(crate) fn estimate(&self, range: &KeyRange) -> Result<u64, Error> {
        self.check_loss()?;
        if range.start >= range.end {
            return Ok(0);
        }
        let (mut entries, mut keys) = (0, 0.0);
        for part in self.within(range) {
            let (start, end) = (part.rank(&range.start)?, part.rank(&range.end)?);
            let (found, removed) = (end.0.saturating_sub(start.0), end.1.saturating_sub(start.1));
            entries += found;
            keys += found as f64 - removed as f64 * (1.0 + part.hiding_share);
        }
        if entries <= WALKED_MAX {
            let limit = ScanLimit { entry_count_max: usize::MAX, byte_count_max: usize::MAX };
            return Ok(self.scan(range, Direction::Forward, limit)?.keys.len() as u64);
        }
        Ok((keys as u64).max(1))
    }

    /// Reads every block of every run, and checks that keys rise and are as many as was written down.
    pub(crate) fn check(&self) -> Result<(u64, u64), Error> {
        let (mut entry_count, mut byte_count) = (0, 0);
        for part in &self.runs {
            let mut walk = Upwards::seek(part, &[], Reading::Once)?;
            let (mut last, mut found) = (Vec::new(), 0);
            while walk.is_valid() {
                if *walk.key() <= last[..] {
                    return Err(super::damaged("the keys of a run are not in order"));
                }
                last.clear();
                last.extend_from_slice(walk.key());
                found += 1;
                byte_count += last.len() as u64;
                walk.advance()?;
            }
            if found != part.index.entry_count() {
                return Err(super::damaged("a run has another number of keys than was written"));
            }
            entry_count += found;
        }
        Ok((entry_count, byte_count))
    }
}

fn gather<W: Walk>(
    mut merge: Merge<W>,
    limit: ScanLimit,
    is_within: impl Fn(&[u8]) -> bool,
) -> Result<KeyBatch, Error> {
    let mut batch = KeyBatch::default();
    while let Some(entry) = merge.current()
        && is_within(entry.key())
    {
        if !entry.is_removed() {
            let count = batch.keys.len();
            let is_full = count >= limit.entry_count_max || batch.keys.byte_count() >= limit.byte_count_max;
            if count > 0 && is_full {
                batch.more = true;
                break;
            }
            batch.keys.push(entry.key());
        }
        merge.advance()?;
    }
    Ok(batch)
}
