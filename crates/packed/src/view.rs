//! The set as one view sees it: segments in memory over runs in blobs, the newest first. It never changes.
//!
//! In: a range and a limit. Out: keys in order, removals applied; counts; estimates.
//! The committer makes a new list for each group, a merge for each merge; lists share their segments.
//! Invariant: a key is in the set when the newest segment that names it does not name it as removed.

use crate::bloom::common_prefix;
use crate::cursor::{BackwardCursor, EntryCursor, ForwardCursor};
use crate::families::Families;
use crate::lost::LostRange;
use crate::merge::MergeCursor;
use crate::run::SortedRun;
use crate::segment::{Reading, Segment};
use crate::{Error, FAMILY_BYTES};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Ranges with no more entries than this are counted to be estimated.
const COUNTED_MAX: u64 = 48;

/// Keys of a family that are walked at most where its sum is not to be relied on: some 20 ms.
const WALKED_MAX: u64 = 1 << 18;

/// All segments of a set.
#[derive(Clone, Default)]
pub struct SetView {
    /// Keys that are missing and on which somebody may still rely: nothing is told of them.
    pub(crate) lost: Arc<[LostRange]>,
    /// Whether sums of families are not to be relied on, since some were lost with what held them.
    pub(crate) needs_count: bool,
    /// What no segment says of the growth of families, because what was merged left no key.
    pub(crate) sums: Arc<Families>,
    /// Changes that are in no run yet, the newest first.
    pub(crate) memory: Vec<Arc<Segment>>,
    /// Runs, the newest first; all older than what is in memory.
    pub(crate) runs: Vec<Arc<SortedRun>>,
}

/// What a set is made of at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetStats {
    /// Segments in memory, each of which a reader looks at.
    pub memory_segments: u64,
    /// Bytes of these.
    pub memory_bytes: u64,
    /// Runs on disk, each of which a reader looks at.
    pub runs: u64,
    /// Bytes of these.
    pub run_bytes: u64,
    /// Keys and removals in all of them.
    pub entries: u64,
}

impl SetView {
    /// What it is made of.
    pub fn stats(&self) -> SetStats {
        SetStats {
            memory_segments: self.memory.len() as u64,
            memory_bytes: self.memory_bytes(),
            runs: self.runs.len() as u64,
            run_bytes: self.disk_bytes(),
            entries: self.iter().map(|segment| segment.index.entry_count()).sum(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Segment> {
        let stored = self.runs.iter().flat_map(|run| &run.segments);
        self.memory.iter().chain(stored).map(Arc::as_ref)
    }

    /// Of each age, the segments that may have keys of the range, the newest first.
    pub(crate) fn within<'a, 'r>(
        &'a self,
        start: &'r [u8],
        end: &'r [u8],
    ) -> impl Iterator<Item = &'a [Arc<Segment>]> + use<'a, 'r> {
        let prefix = common_prefix(start, end);
        let memory = self.memory.iter().filter(move |segment| !segment.misses(start, end));
        let runs = self.runs.iter().map(move |run| run.within(start, end));
        let may_have =
            move |segments: &&[Arc<Segment>]| segments.iter().any(|segment| segment.filter.may_have(prefix));
        memory.map(std::slice::from_ref).chain(runs).filter(may_have)
    }

    /// Keys that are missing and on which somebody may still rely.
    pub fn lost(&self) -> &[LostRange] {
        &self.lost
    }

    /// With the changes of one more group.
    pub(crate) fn with(&self, segment: Arc<Segment>) -> SetView {
        let memory = [segment].into_iter().chain(self.memory.iter().cloned()).collect();
        SetView {
            lost: Arc::clone(&self.lost),
            needs_count: self.needs_count,
            sums: Arc::clone(&self.sums),
            memory,
            runs: self.runs.clone(),
        }
    }

    /// With the segments from `first` on, `count` of them, replaced by one or none.
    pub(crate) fn replace(list: &mut Vec<Arc<Segment>>, old: &[Arc<Segment>], new: Option<Arc<Segment>>) {
        let Some(first) = old.first() else { return };
        let place = list.iter().position(|segment| Arc::ptr_eq(segment, first));
        let place = place.expect("only the merger takes segments out of the list");
        list.splice(place..place + old.len(), new);
    }

    /// Bytes of the segments in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.iter().map(|segment| segment.byte_count()).sum()
    }

    /// Bytes of the runs.
    pub fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.byte_count()).sum()
    }

    /// Gives the keys from `start` up to `end` in order, with their values, until `visit` breaks.
    pub fn scan_forward(&self, start: &[u8], end: &[u8], visit: impl Visit) -> Result<(), Error> {
        if start >= end {
            return Ok(());
        }
        self.check_lost(start, end)?;
        let cursors =
            self.within(start, end).map(|segments| ForwardCursor::seek(segments, start, Reading::Cached));
        gather(MergeCursor::new(cursors.collect::<Result<_, _>>()?), |key| key < end, visit)
    }

    /// The same from the end.
    pub fn scan_backward(&self, start: &[u8], end: &[u8], visit: impl Visit) -> Result<(), Error> {
        if start >= end {
            return Ok(());
        }
        self.check_lost(start, end)?;
        let cursors = self.within(start, end).map(|segments| BackwardCursor::seek(segments, end));
        gather(MergeCursor::new(cursors.collect::<Result<_, _>>()?), |key| key >= start, visit)
    }

    /// How many keys a family has. After damage its keys are walked until the sums have been made right; that of a very large
    /// one is refused meanwhile.
    pub fn count(&self, family: &[u8; FAMILY_BYTES]) -> Result<u64, Error> {
        if self.is_counted() && self.lost.is_empty() {
            return Ok(u64::try_from(self.sum(family)).unwrap_or(0));
        }
        let end = [&family[..], &[0xFF; FAMILY_BYTES]].concat();
        self.check_lost(family, &end)?;
        if self.is_counted() {
            return Ok(u64::try_from(self.sum(family)).unwrap_or(0));
        }
        let mut count = 0;
        self.scan_forward(family, &end, |_, _| {
            count += 1;
            if count > WALKED_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if count > WALKED_MAX {
            return Err(Error::Lost { what: "index entries have to be counted after damage".to_owned() });
        }
        Ok(count)
    }

    /// Whether families are counted without reading anything.
    pub fn is_counted(&self) -> bool {
        !self.needs_count
    }

    /// By how much a family has grown, as far as it was told.
    pub(crate) fn sum(&self, family: &[u8; FAMILY_BYTES]) -> i64 {
        let told: i64 = self.iter().map(|segment| segment.families.get(family)).sum();
        told + self.sums.get(family)
    }

    /// All families that were told of, in order.
    pub(crate) fn families(&self) -> Vec<[u8; FAMILY_BYTES]> {
        let all = self.iter().map(|segment| &segment.families).chain([&*self.sums]);
        let mut families: Vec<_> =
            all.flat_map(|families| families.iter().map(|(family, _)| *family)).collect();
        families.sort_unstable();
        families.dedup();
        families
    }

    #[inline]
    pub(crate) fn check_lost(&self, start: &[u8], end: &[u8]) -> Result<(), Error> {
        match self.lost.iter().find(|lost| lost.overlaps(start, end)) {
            Some(lost) => Err(Error::Lost {
                what: format!(
                    "{}; it is being built anew, and queries read documents until that is done",
                    lost.what
                ),
            }),
            None => Ok(()),
        }
    }

    /// About how many keys are in the range; exact where it is few.
    pub fn estimate(&self, start: &[u8], end: &[u8]) -> Result<u64, Error> {
        if start >= end {
            return Ok(0);
        }
        self.check_lost(start, end)?;
        let (mut entries, mut keys) = (0, 0.0);
        for segment in self.within(start, end).flatten() {
            let (first, last) = (segment.rank(start)?, segment.rank(end)?);
            let (found, removed) = (last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
            entries += found;
            keys += found as f64 - removed as f64 * (1.0 + segment.hiding_share);
        }
        if entries <= COUNTED_MAX {
            let mut count = 0;
            self.scan_forward(start, end, |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
            return Ok(count);
        }
        Ok((keys as u64).max(1))
    }

    /// How many keys and removals with a prefix its segments hold.
    pub fn stored_entries(&self, prefix: &[u8]) -> Result<u64, Error> {
        self.iter().map(|segment| segment.stored_entries(prefix)).sum()
    }

    /// Reads every block of every run, and checks that keys rise and are as many as was written down.
    pub fn check(&self) -> Result<(u64, u64), Error> {
        let (mut entry_count, mut byte_count) = (0, 0);
        for segment in self.runs.iter().flat_map(|run| &run.segments) {
            let whole = [Arc::new(segment.trimmed(&[]))];
            let mut cursor = ForwardCursor::seek(&whole, &[], Reading::Once)?;
            let (mut last, mut found) = (Vec::new(), 0);
            while cursor.is_valid() {
                if *cursor.key() <= last[..] {
                    return Err(crate::damaged("the keys of a run are not in order"));
                }
                last.clear();
                last.extend_from_slice(cursor.key());
                found += 1;
                byte_count += last.len() as u64;
                cursor.advance()?;
            }
            if found != segment.index.entry_count() {
                return Err(crate::damaged("a run has another number of keys than was written"));
            }
            entry_count += found;
        }
        Ok((entry_count, byte_count))
    }
}

/// Takes keys and their values until it has enough.
pub trait Visit: FnMut(&[u8], &[u8]) -> ControlFlow<()> {}

impl<F: FnMut(&[u8], &[u8]) -> ControlFlow<()>> Visit for F {}

fn gather<C: EntryCursor>(
    mut merge: MergeCursor<C>,
    is_within: impl Fn(&[u8]) -> bool,
    mut visit: impl Visit,
) -> Result<(), Error> {
    while let Some(entry) = merge.current()
        && is_within(entry.key())
    {
        if !entry.is_removed() && visit(entry.key(), entry.value()).is_break() {
            break;
        }
        merge.advance()?;
    }
    Ok(())
}
