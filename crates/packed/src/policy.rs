//! Decides what to merge next. Pure: sizes in, a choice out.
//!
//! Segments are sorted by size into classes, each a factor (the *fan*) above the next smaller; when as many neighbours as
//! the fan are of one class or smaller, they are merged. So a key is merged once for each class, and a reader has less than
//! the fan of segments to look at in each.
//! In: the segments of a set. Out: [`MergeWork`], the most urgent first: segments in memory are many and cheap to merge, and the
//! committer waits when memory is full; runs can wait.
//! Invariant: what is chosen are neighbours in the list, so that newer stays newer.

use crate::SetOptions;
use crate::run::SortedRun;
use crate::segment::Segment;
use crate::view::SetView;
use std::ops::Range;
use std::sync::Arc;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MergeWork {
    /// Merges these segments in memory into one.
    MergeMemory(Range<usize>),
    /// Writes all segments in memory into a run.
    WriteRun,
    /// Merges these runs into one.
    MergeRuns(Range<usize>),
}

/// A step of merging runs, the newest first, into the place of the oldest.
pub(crate) struct MergeStep {
    /// What is merged of each run.
    pub(crate) inputs: Vec<SortedRun>,
    /// Whether the runs are small enough to be merged at once.
    pub(crate) is_whole: bool,
    /// Keys below this are merged now; nothing for all of the inputs.
    pub(crate) cut: Option<Vec<u8>>,
    /// What the oldest run has below all keys of the others, and keeps as it is.
    pub(crate) untouched: SortedRun,
}

/// The next step of merging runs. All at once if that is little; otherwise so far that no run gives much more than the bytes of a
/// segment, from the lowest key on that a newer run has: what is below has been merged before.
pub(crate) fn next_step(runs: &[Arc<SortedRun>], segment_bytes: u64) -> MergeStep {
    let mut inputs: Vec<SortedRun> = runs.iter().map(|run| SortedRun::clone(run)).collect();
    if runs.iter().map(|run| run.byte_count()).sum::<u64>() <= segment_bytes.saturating_mul(2) {
        return MergeStep { inputs, is_whole: true, cut: None, untouched: SortedRun::default() };
    }
    let mut untouched = SortedRun::default();
    if let Some((oldest, newer)) = inputs.split_last_mut() {
        let starts = newer.iter().filter_map(|run| run.segments.first()).map(|segment| segment.start());
        (untouched, *oldest) = oldest.split_at(starts.min().unwrap_or_default());
    }
    let cut = inputs.iter().filter_map(|run| run.key_after(segment_bytes.max(1))).min();
    let cut = cut.map(<[u8]>::to_vec);
    MergeStep { inputs, is_whole: false, cut, untouched }
}

/// What is not being worked on already, so that more urgent work can be done in the midst of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Anything.
    All,
    /// Runs are being merged.
    NotRuns,
    /// The oldest segments in memory are being written into a run: so many of them.
    OnlyMemoryBefore {
        /// How many segments are being written.
        written: usize,
    },
}

/// Segments in memory below this size are of one class.
const MEMORY_CLASS_BYTES: u64 = 4 << 10;

/// Runs with removals for this share of the entries below them are merged with all of those.
const REMOVED_SHARE: u64 = 3;

/// The most urgent work, if there is any.
pub(crate) fn choose(segments: &SetView, options: &SetOptions, scope: Scope) -> Option<MergeWork> {
    let written = if let Scope::OnlyMemoryBefore { written } = scope { written } else { 0 };
    if scope <= Scope::NotRuns && segments.memory_bytes() >= options.memory_bytes {
        return Some(MergeWork::WriteRun);
    }
    let free = &segments.memory[..segments.memory.len().saturating_sub(written)];
    if let Some(range) = neighbours(&sizes(free), MEMORY_CLASS_BYTES, options.memory_fan) {
        return Some(MergeWork::MergeMemory(range));
    }
    if scope != Scope::All {
        return None;
    }
    let sizes = run_sizes(&segments.runs);
    let tiered = neighbours(&sizes, options.memory_bytes / 2, options.run_fan);
    tiered.or_else(|| too_many_removals(&segments.runs)).map(MergeWork::MergeRuns)
}

/// What to merge when there is nothing else to do, so that readers have fewer segments to look at: the newest segments of one
/// kind, as far as their bytes are within a credit. The credit is some times what has come since the last time, so that a
/// slow trickle of changes does not rewrite everything again and again.
pub(crate) fn choose_idle(segments: &SetView, memory_credit: u64, run_credit: u64) -> Option<MergeWork> {
    let memory = affordable(&sizes(&segments.memory), memory_credit).map(MergeWork::MergeMemory);
    memory.or_else(|| affordable(&run_sizes(&segments.runs), run_credit).map(MergeWork::MergeRuns))
}

fn affordable(sizes: &[u64], credit: u64) -> Option<Range<usize>> {
    let mut total = 0;
    let is_within = |size: &&u64| {
        total += **size;
        total <= credit
    };
    let count = sizes.iter().take_while(is_within).count();
    (count > 1).then_some(0..count)
}

fn sizes(segments: &[Arc<Segment>]) -> Vec<u64> {
    segments.iter().map(|segment| segment.byte_count()).collect()
}

fn run_sizes(runs: &[Arc<SortedRun>]) -> Vec<u64> {
    runs.iter().map(|run| run.byte_count()).collect()
}

/// The first neighbours that are as many as the fan, and none of them of a higher class than the first.
fn neighbours(sizes: &[u64], smallest: u64, fan: usize) -> Option<Range<usize>> {
    let class = |size: u64| {
        let ratio = size / smallest.max(1);
        if ratio == 0 { 0 } else { 1 + ratio.ilog(fan.max(2) as u64) }
    };
    let mut start = 0;
    while start < sizes.len() {
        let limit = class(sizes[start]);
        let length = sizes[start..].iter().take_while(|size| class(**size) <= limit).count();
        if length >= fan.max(2) {
            return Some(start..start + length);
        }
        start += length;
    }
    None
}

/// All runs, when those above the oldest remove a good part of what it holds: the room is worth having back, and
/// readers should not have to pass over what is gone.
fn too_many_removals(runs: &[Arc<SortedRun>]) -> Option<Range<usize>> {
    let (oldest, newer) = runs.split_last()?;
    let removed: u64 = newer.iter().map(|run| run.removed_count()).sum();
    (removed > 0 && removed * REMOVED_SHARE >= oldest.entry_count()).then_some(0..runs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sizes: &[u64], expected: Option<(usize, usize)>) {
        let expected = expected.map(|(start, end)| start..end);
        assert_eq!(neighbours(sizes, 100, 4), expected, "{sizes:?}");
    }

    #[test]
    fn neighbours_of_a_class_are_merged() {
        check(&[], None);
        check(&[1, 2, 3], None);
        check(&[1, 2, 3, 99], Some((0, 4)));
        check(&[1, 2, 3, 100, 1], None);
        check(&[1, 2, 3, 99, 98, 100], Some((0, 5)));
        check(&[100, 200, 1, 399, 400], Some((0, 4)));
        check(&[1, 100, 200, 300, 399, 5000], Some((1, 5)));
        check(&[1, 1, 1, 500, 5, 400, 1, 5000], Some((3, 7)));
    }

    #[test]
    fn idle_merges_are_within_the_credit() {
        assert_eq!(affordable(&[1, 2, 3], 5), Some(0..2));
        assert_eq!(affordable(&[1, 2, 3], 6), Some(0..3));
        assert_eq!(affordable(&[1, 2, 3], 2), None);
        assert_eq!(affordable(&[1], 9), None);
    }

    /// However segments come, there are never many left.
    #[test]
    fn few_segments_are_left() {
        let mut sizes: Vec<u64> = Vec::new();
        let mut random = 1u64;
        let mut most = 0;
        for _ in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sizes.insert(0, 1 + (random >> 40) % 1000);
            while let Some(range) = neighbours(&sizes, 100, 4) {
                let merged = sizes[range.clone()].iter().sum();
                sizes.splice(range, [merged]);
            }
            most = most.max(sizes.len());
        }
        assert!(most <= 3 * 12, "{most}");
    }
}
