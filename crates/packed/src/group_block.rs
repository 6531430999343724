//! What a commit group does to the set, as one value for its journal: the first form keys have on disk.
//!
//! ```text
//! value   format 03, group of the value before u64, block count, (block bytes, entries, removals){count}, corrections,
//!         block*, CRC-32 u32
//! ```
//! The CRC-32 begins with the folder's owner, so that a value of another folder is not whole. Format 01 has neither the
//! group nor the owner.
//! (numbers as in `varint`, corrections as in `families`.) The value is a segment of the set as it stands: the blocks are
//! read where they lie. Family sums are counted from the entries when the value is read back; the corrections are what
//! has to be added, because a key was named by several batches of the group, or got another value.
//! In: the changes of all batches of a group, in their order. Out: the value, and the segment that shares its bytes.
//! Invariants
//! - A key named by several batches has the last one's word.
//! - It has no filter: groups are small, soon merged, and the committer has better things to do.
//! - The value goes into the group's batch, so the group's checksum in the journal covers it.

use crate::block::BlockCursor;
use crate::bloom::BloomFilter;
use crate::builder::{SegmentBuilder, Summary};
use crate::families::{Families, family_of};
use crate::index::{Content, Index};
pub use crate::order::{KeyAction, KeyChange};
use crate::segment::Segment;
use crate::view::SetView;
use crate::{Error, OwnerId};
use crate::{damaged, order, varint};
use bytes::Bytes;
use std::sync::Arc;

const FORMAT: u8 = 3;
const FORMAT_WITHOUT_VALUES: u8 = 2;
const FORMAT_WITHOUT_ORIGIN: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

/// A group's changes of the set.
pub struct GroupBlock {
    /// To be stored.
    pub value: Bytes,
    pub(crate) segment: Segment,
}

/// Changes of the set, sorted and packed: all of a group's block that does not depend on the group. What takes long is here, so
/// that whoever has many changes can do it before they come to the one thread that commits.
pub struct PackedChanges {
    blocks: Vec<u8>,
    summary: Summary,
    /// What counting the entries again would miss.
    corrections: Families,
}

impl PackedChanges {
    /// Of the changes of some batches; nothing if there are none.
    pub fn of<'a>(
        changes: impl Iterator<Item = KeyChange<'a>> + Clone,
        block_bytes: usize,
    ) -> Result<Option<PackedChanges>, Error> {
        let ordered = order::in_order(changes);
        if ordered.is_empty() {
            return Ok(None);
        }
        let mut families = Families::default();
        let mut builder = SegmentBuilder::new(Vec::new(), 0, block_bytes);
        let mut is_plain = true;
        let mut rest = ordered.iter().map(|ranked| ranked.change).peekable();
        while let Some(next) = rest.next() {
            is_plain &= next.growth() != 0;
            families.add(family_of(next.key())?, next.growth());
            if rest.peek().is_none_or(|later| later.key() != next.key()) {
                builder.push(next.key(), next.is_removed(), next.value())?;
            }
        }
        let (blocks, summary) = builder.finish()?;
        let Summary { index, families: counted, filter } = summary;
        let corrections = if is_plain && index.entry_count() == ordered.len() as u64 {
            Families::default()
        } else {
            families.less(&counted)
        };
        Ok(Some(PackedChanges { blocks, summary: Summary { index, families, filter }, corrections }))
    }

    /// Bytes that they take.
    pub fn byte_count(&self) -> usize {
        self.blocks.len() + self.summary.families.byte_count()
    }

    /// As the block of a group.
    #[must_use]
    pub fn seal(self, origin: Origin) -> GroupBlock {
        let PackedChanges { blocks, summary, corrections } = self;
        let value = encode(origin, &blocks, &summary.index, &corrections);
        let start = value.len() - CHECKSUM_BYTES - blocks.len();
        let image = value.slice(start..start + blocks.len());
        let groups = (origin.group, origin.group);
        GroupBlock { segment: Segment::in_memory(image, summary, groups), value }
    }
}

/// Where a group's changes belong.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Whose set it is.
    pub owner: OwnerId,
    /// The group.
    pub group: u64,
    /// The last group before it that changed the set; 0 for none.
    pub before: u64,
}

impl GroupBlock {
    /// Of the changes of a group's batches; nothing if there are none.
    pub fn of<'a>(
        origin: Origin,
        changes: impl Iterator<Item = KeyChange<'a>> + Clone,
        block_bytes: usize,
    ) -> Result<Option<GroupBlock>, Error> {
        Ok(PackedChanges::of(changes, block_bytes)?.map(|packed| packed.seal(origin)))
    }

    /// The segments of the set with this one over them.
    pub fn onto(self, segments: &SetView) -> SetView {
        segments.with(Arc::new(self.segment))
    }

    /// The segment that a stored value is, and the group of the value before it if it tells.
    pub(crate) fn read(owner: OwnerId, group: u64, value: &Bytes) -> Result<(Segment, Option<u64>), Error> {
        decode(owner, group, value)
            .ok_or_else(|| damaged(&format!("the index entries of commit group {group} are not whole")))?
    }
}

fn encode(origin: Origin, blocks: &[u8], index: &Index, corrections: &Families) -> Bytes {
    let mut value = Vec::with_capacity(blocks.len() + 24 + index.block_count() * 6);
    value.push(FORMAT);
    value.extend_from_slice(&origin.before.to_le_bytes());
    varint::put(&mut value, index.block_count() as u64);
    for block in 0..index.block_count() {
        index.content_of(block).encode(&mut value);
    }
    corrections.encode(&mut value);
    value.extend_from_slice(blocks);
    value.extend_from_slice(&checksum_of(Some(origin.owner), &value).to_le_bytes());
    Bytes::from(value)
}

fn checksum_of(owner: Option<OwnerId>, body: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(owner.as_ref().map_or(&[], |owner| &owner[..]));
    checksum.update(body);
    checksum.finalize()
}

/// Nothing when the value is not whole.
fn decode(owner: OwnerId, group: u64, value: &Bytes) -> Option<Result<(Segment, Option<u64>), Error>> {
    let (body, checksum) = value.split_last_chunk::<CHECKSUM_BYTES>()?;
    let is_old = *body.first()? == FORMAT_WITHOUT_ORIGIN;
    let expected = checksum_of((!is_old).then_some(owner), body);
    if expected.to_le_bytes() != *checksum || !(is_old || matches!(body[0], FORMAT | FORMAT_WITHOUT_VALUES)) {
        return None;
    }
    let mut at = 1;
    let before = if is_old { None } else { Some(u64::from_le_bytes(*body[1..].first_chunk()?)) };
    at += before.map_or(0, |_| 8);
    let mut blocks = Vec::new();
    for _ in 0..varint::get(body, &mut at)? {
        blocks.push(Content::decode(body, &mut at)?);
    }
    let corrections = Families::decode(body, &mut at)?;
    let image = value.slice(at..body.len());
    Some(index_blocks(&image, &blocks).map(|(index, counted)| {
        let families = Families::total([&counted, &corrections].into_iter());
        let summary = Summary { index, families, filter: BloomFilter::default() };
        (Segment::in_memory(image, summary, (group, group)), before)
    }))
}

/// Cursors over all entries to learn what a builder knew.
fn index_blocks(image: &Bytes, blocks: &[Content]) -> Result<(Index, Families), Error> {
    let mut index = Index::starting_at(0);
    let mut families = Families::default();
    let mut cursor = BlockCursor::new();
    let (mut first, mut before) = (Vec::new(), Vec::new());
    for block in blocks {
        let start = index.end() as usize;
        cursor.load(image.clone(), start..start.saturating_add(block.byte_count as usize))?;
        let mut found = Content { byte_count: block.byte_count, entry_count: 0, removed_count: 0 };
        while cursor.advance()? {
            if found.entry_count == 0 {
                first.clear();
                first.extend_from_slice(cursor.key());
            }
            found.entry_count += 1;
            found.removed_count += u64::from(cursor.is_removed());
            families.add(family_of(cursor.key())?, if cursor.is_removed() { -1 } else { 1 });
        }
        if found != *block {
            return Err(damaged("a block of the set has another number of entries than it says"));
        }
        index.push(&before, &first, found);
        before.clear();
        before.extend_from_slice(cursor.key());
    }
    index.finish(&before);
    Ok((index, families))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FAMILY_BYTES;
    use crate::cursor::{EntryCursor, ForwardCursor};
    use crate::segment::Reading;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(family: u8, rest: &[u8]) -> Vec<u8> {
        [&[family; FAMILY_BYTES][..], rest].concat()
    }

    fn entries(segment: &Arc<Segment>) -> Vec<(Vec<u8>, bool)> {
        let segments = std::slice::from_ref(segment);
        let mut cursor = ForwardCursor::seek(segments, &[], Reading::Once).unwrap();
        let mut entries = Vec::new();
        while cursor.is_valid() {
            entries.push((cursor.key().to_vec(), cursor.is_removed()));
            cursor.advance().unwrap();
        }
        entries
    }

    proptest! {
        #[test]
        fn the_last_word_counts_and_all_words_are_summed(
            batches in vec(vec((any::<bool>(), 0..3u8, vec(0..3u8, 0..3)), 0..30), 1..6),
            block_bytes in 1..200usize,
        ) {
            let mut expected = BTreeMap::new();
            let mut sums = BTreeMap::<u8, i64>::new();
            let words: Vec<BTreeMap<Vec<u8>, bool>> = batches.iter().map(|batch| {
                batch.iter().map(|(is_removed, family, rest)| (key(*family, rest), *is_removed)).collect()
            }).collect();
            for (key, is_removed) in words.iter().flatten() {
                expected.insert(key.clone(), *is_removed);
                *sums.entry(key[0]).or_default() += if *is_removed { -1 } else { 1 };
            }
            let changes = (0..).zip(&words).flat_map(|(batch, words)| {
                words.iter().map(move |(key, is_removed)| {
                    let action = if *is_removed { KeyAction::Remove } else { KeyAction::Add };
                    KeyChange::of_key(batch, key, action)
                })
            });
            let origin = Origin { owner: [3; 16], group: 7, before: 5 };
            let block = GroupBlock::of(origin, changes, block_bytes).unwrap();
            let Some(block) = block else {
                prop_assert!(expected.is_empty());
                return Ok(());
            };
            let (again, before) = GroupBlock::read(origin.owner, 7, &block.value).unwrap();
            prop_assert_eq!(before, Some(5));
            prop_assert!(GroupBlock::read([4; 16], 7, &block.value).is_err(), "of another folder");
            let [first, again] = [block.segment, again].map(Arc::new);
            for segment in [&first, &again] {
                prop_assert_eq!(entries(segment), expected.clone().into_iter().collect::<Vec<_>>());
                for family in 0..3 {
                    let sum = sums.get(&family).copied().unwrap_or_default();
                    prop_assert_eq!(segment.families.get(&[family; FAMILY_BYTES]), sum);
                }
            }
            prop_assert_eq!(&first.index, &again.index);
            for place in 0..block.value.len() {
                let mut damaged = block.value.to_vec();
                damaged[place] ^= 0x10;
                prop_assert!(GroupBlock::read(origin.owner, 7, &Bytes::from(damaged)).is_err());
            }
        }
    }
}
