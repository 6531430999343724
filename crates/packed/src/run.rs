//! A run: segments of one age, in the order of their keys and without overlap, as if they were one.
//!
//! A large run is cut into segments of bounded size, so that a merge rewrites a few of them at a time, and so that damage of one
//! concerns the keys of one.
//! In: segments. Out: those that a range concerns; sizes.
//! Invariant: every key of a segment is above every key of the segments before it.

use crate::segment::Segment;
use crate::stored::SegmentRecord;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(crate) struct SortedRun {
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl SortedRun {
    pub(crate) fn of(segments: Vec<Arc<Segment>>) -> SortedRun {
        let is_before = |left: &Arc<Segment>, right: &Arc<Segment>| left.index.last() < right.start();
        debug_assert!(segments.is_sorted_by(is_before), "segments of a run do not overlap");
        SortedRun { segments }
    }

    pub(crate) fn byte_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.byte_count()).sum()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.index.entry_count()).sum()
    }

    pub(crate) fn removed_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.index.removed_count()).sum()
    }

    /// What the manifest says of it.
    pub(crate) fn records(&self) -> Vec<SegmentRecord> {
        self.segments.iter().filter_map(|segment| segment.record()).collect()
    }

    /// The segments that may have keys of a range.
    pub(crate) fn within(&self, start: &[u8], end: &[u8]) -> &[Arc<Segment>] {
        let first = self.segments.partition_point(|segment| segment.index.last() < start);
        let rest = &self.segments[first..];
        &rest[..rest.partition_point(|segment| segment.start() < end)]
    }

    /// The segments that lie below a key, and the others.
    pub(crate) fn split_at(&self, key: &[u8]) -> (SortedRun, SortedRun) {
        let below = self.segments.partition_point(|segment| segment.index.last() < key);
        let (below, rest) = self.segments.split_at(below);
        (SortedRun::of(below.to_vec()), SortedRun::of(rest.to_vec()))
    }

    /// The segments of which nothing is left below a key, and the run without them and without the keys below; of nothing, all.
    pub(crate) fn split_off(&self, cut: Option<&[u8]>) -> (Vec<Arc<Segment>>, SortedRun) {
        let Some(cut) = cut else { return (self.segments.clone(), SortedRun::default()) };
        let consumed = self.segments.partition_point(|segment| segment.index.last() < cut);
        let rest = self.segments[consumed..].iter().map(|segment| {
            if segment.start() < cut { Arc::new(segment.trimmed(cut)) } else { Arc::clone(segment) }
        });
        (self.segments[..consumed].to_vec(), SortedRun::of(rest.collect()))
    }

    /// The first key beyond about so many bytes; nothing if there are no more.
    pub(crate) fn key_after(&self, byte_count: u64) -> Option<&[u8]> {
        let mut found = 0;
        for segment in &self.segments {
            let index = &segment.index;
            for block in index.find(segment.from())..index.block_count() {
                if found >= byte_count {
                    return Some(index.fence(block));
                }
                let place = index.bytes_of(block);
                found += place.end - place.start;
            }
        }
        None
    }

    /// Without some segments, and with others in their place.
    pub(crate) fn replace(&self, old: &[Arc<Segment>], new: &[Arc<Segment>]) -> SortedRun {
        let is_old = |segment: &Arc<Segment>| old.iter().any(|old| Arc::ptr_eq(old, segment));
        let kept = self.segments.iter().filter(|segment| !is_old(segment));
        let mut segments: Vec<_> = kept.chain(new).cloned().collect();
        segments.sort_by(|left, right| left.start().cmp(right.start()));
        SortedRun::of(segments)
    }
}
