//! Postings that several lists have in common: keys that begin with a prefix of their own and end with the same number.
//!
//! In: prefixes, and a number to begin with. Out: the numbers that follow all of the prefixes, in order.
//! How: one cursor for each prefix stays open over all segments. Each in turn seeks the number that the one before it stands at,
//! near its own place first: past steps, then among the restarts of its block, then among the blocks. Where lists are
//! of different lengths, the longer one is read only where the shorter one has numbers.

use crate::Error;
use crate::cursor::{EntryCursor, ForwardCursor};
use crate::merge::MergeCursor;
use crate::segment::Reading;
use crate::view::SetView;
use std::ops::ControlFlow;

/// Bytes at the end of a key that are the number.
const NUMBER_BYTES: usize = 8;

impl SetView {
    /// Gives the numbers from `from` on that all lists have, until `visit` breaks, or lists were asked for a number `seeks_max`
    /// times. Tells how often that was, and where to go on if it was not the end.
    pub fn intersect(
        &self,
        prefixes: &[&[u8]],
        from: u64,
        seeks_max: u64,
        mut visit: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(u64, Option<u64>), Error> {
        for prefix in prefixes.iter().filter(|_| !self.lost.is_empty()) {
            self.check_lost(prefix, &[prefix, &[0xFF; NUMBER_BYTES + 1][..]].concat())?;
        }
        let lists: Result<Vec<_>, Error> =
            prefixes.iter().map(|prefix| PostingCursor::seek(self, prefix, from)).collect();
        let mut lists = lists?;
        let (mut target, mut agreeing, mut index, mut seeks) = (from, 0, 0, 0);
        while let Some(list) = lists.get_mut(index) {
            let Some(number) = list.number_from(target)? else { return Ok((seeks, None)) };
            seeks += 1;
            agreeing = if number == target { agreeing + 1 } else { 1 };
            target = number;
            if agreeing == prefixes.len() {
                let is_enough = visit(target).is_break();
                let Some(next) = target.checked_add(1) else { return Ok((seeks, None)) };
                (target, agreeing) = (next, 0);
                if is_enough {
                    return Ok((seeks, Some(target)));
                }
            }
            if seeks >= seeks_max {
                return Ok((seeks, Some(target)));
            }
            index = (index + 1) % lists.len();
        }
        Ok((seeks, None))
    }
}

/// The numbers of one list.
struct PostingCursor<'a> {
    merge: MergeCursor<ForwardCursor<'a>>,
    /// The prefix, and the number that was sought.
    target: Vec<u8>,
}

impl<'a> PostingCursor<'a> {
    fn seek(view: &'a SetView, prefix: &[u8], from: u64) -> Result<PostingCursor<'a>, Error> {
        let start = [prefix, &from.to_be_bytes()].concat();
        let end = [prefix, &[0xFF; NUMBER_BYTES + 1]].concat();
        let segments = view.within(&start, &end);
        let cursors: Result<Vec<_>, Error> =
            segments.map(|segments| ForwardCursor::seek(segments, &start, Reading::Cached)).collect();
        Ok(PostingCursor { merge: MergeCursor::new(cursors?), target: start })
    }

    /// The first number that is not below this one; asked with numbers that never fall.
    fn number_from(&mut self, from: u64) -> Result<Option<u64>, Error> {
        let prefix_length = self.target.len() - NUMBER_BYTES;
        self.target[prefix_length..].copy_from_slice(&from.to_be_bytes());
        self.merge.seek(&self.target)?;
        while let Some(entry) = self.merge.current() {
            let Some((prefix, number)) = entry.key().split_last_chunk::<NUMBER_BYTES>() else { break };
            if *prefix == self.target[..prefix_length] {
                if !entry.is_removed() {
                    return Ok(Some(u64::from_be_bytes(*number)));
                }
            } else if !entry.key().starts_with(&self.target[..prefix_length]) {
                break;
            }
            self.merge.advance()?;
        }
        Ok(None)
    }
}
