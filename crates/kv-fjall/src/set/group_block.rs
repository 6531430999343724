//! What a commit group does to the set, as one value in fjall's batch: the first form keys have on disk.
//!
//! ```text
//! value   format 02, group of the value before u64, block count, (block bytes, entries, removals){count}, corrections,
//!         block*, CRC-32 u32
//! ```
//! The CRC-32 begins with the folder's identity, so that a value of another folder is not whole. Format 01 has neither the
//! group nor the identity.
//! (numbers as in `varint`, corrections as in `families`.) The value is a part of the set as it stands: the blocks are
//! read where they lie. Family sums are counted from the entries when the value is read back; the corrections are what
//! has to be added, because a key was named by several batches of the group.
//! In: the changes of all batches of a group, in their order. Out: the value, and the part that shares its bytes.
//! Invariants
//! - A key named by several batches has the last one's word.
//! - It has no filter: groups are small, soon merged, and the committer has better things to do.
//! - The value goes into the group's batch, so the group's checksum in the journal covers it.

use super::block::BlockCursor;
use super::builder::{PartBuilder, Summary};
use super::families::{Families, family_of};
use super::filter::Filter;
use super::index::{Content, Index};
use super::part::Part;
use super::parts::Parts;
use super::{damaged, named, varint};
use crate::identity::Identity;
use astrarium_kv::{Error, SetChanges};
use bytes::Bytes;
use std::sync::Arc;

const FORMAT: u8 = 2;
const FORMAT_WITHOUT_ORIGIN: u8 = 1;
const CHECKSUM_BYTES: usize = 4;

/// A group's changes of the set.
pub(crate) struct GroupBlock {
    /// To be stored.
    pub(crate) value: Bytes,
    pub(super) part: Part,
}

/// Where a group's changes belong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) identity: Identity,
    pub(crate) group: u64,
    /// The last group before it that changed the set; 0 for none.
    pub(crate) before: u64,
}

impl GroupBlock {
    /// Of the changes of a group's batches, in the order of the batches; nothing if there are none.
    pub(crate) fn of(
        origin: Origin,
        batches: &[SetChanges],
        block_bytes: usize,
    ) -> Result<Option<GroupBlock>, Error> {
        let named = named::in_order(batches);
        if named.is_empty() {
            return Ok(None);
        }
        let mut families = Families::default();
        let mut builder = PartBuilder::new(Vec::new(), 0, block_bytes);
        let mut rest = named.iter().peekable();
        while let Some(next) = rest.next() {
            families.add(family_of(next.key)?, if next.is_removed { -1 } else { 1 });
            if rest.peek().is_none_or(|later| later.key != next.key) {
                builder.push(next.key, next.is_removed)?;
            }
        }
        let (blocks, summary) = builder.finish()?;
        let Summary { index, families: counted, filter } = summary;
        let corrections = if index.entry_count() == named.len() as u64 {
            Families::default()
        } else {
            families.less(&counted)
        };
        let value = encode(origin, &blocks, &index, &corrections);
        let start = value.len() - CHECKSUM_BYTES - blocks.len();
        let image = value.slice(start..start + blocks.len());
        let summary = Summary { index, families, filter };
        let groups = (origin.group, origin.group);
        Ok(Some(GroupBlock { part: Part::in_memory(image, summary, groups), value }))
    }

    /// The parts of the set with this one over them.
    pub(crate) fn onto(self, parts: &Parts) -> Parts {
        parts.with(Arc::new(self.part))
    }

    /// The part that a stored value is, and the group of the value before it if it tells.
    pub(super) fn read(identity: Identity, group: u64, value: &Bytes) -> Result<(Part, Option<u64>), Error> {
        decode(identity, group, value)
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
    value.extend_from_slice(&checksum_of(Some(origin.identity), &value).to_le_bytes());
    Bytes::from(value)
}

fn checksum_of(identity: Option<Identity>, body: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(identity.as_ref().map_or(&[], |identity| &identity.0));
    checksum.update(body);
    checksum.finalize()
}

/// Nothing when the value is not whole.
fn decode(identity: Identity, group: u64, value: &Bytes) -> Option<Result<(Part, Option<u64>), Error>> {
    let (body, checksum) = value.split_last_chunk::<CHECKSUM_BYTES>()?;
    let is_old = *body.first()? == FORMAT_WITHOUT_ORIGIN;
    let expected = checksum_of((!is_old).then_some(identity), body);
    if expected.to_le_bytes() != *checksum || !(is_old || body[0] == FORMAT) {
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
        let summary = Summary { index, families, filter: Filter::default() };
        (Part::in_memory(image, summary, (group, group)), before)
    }))
}

/// Walks all entries to learn what a builder knew.
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
    use crate::set::cursor::{Upwards, Walk};
    use crate::set::part::Reading;
    use astrarium_kv::{FAMILY_BYTES, KeyList};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(family: u8, rest: &[u8]) -> Vec<u8> {
        [&[family; FAMILY_BYTES][..], rest].concat()
    }

    fn list(keys: &[(u8, Vec<u8>)]) -> KeyList {
        let mut list = KeyList::new();
        for (family, rest) in keys {
            list.push(&key(*family, rest));
        }
        list.sorted()
    }

    fn entries(part: &Part) -> Vec<(Vec<u8>, bool)> {
        let mut walk = Upwards::seek(part, &[], Reading::Once).unwrap();
        let mut entries = Vec::new();
        while walk.is_valid() {
            entries.push((walk.key().to_vec(), walk.is_removed()));
            walk.advance().unwrap();
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
            let changes: Vec<_> = batches.iter().map(|batch| {
                let mut words: BTreeMap<(u8, Vec<u8>), bool> = BTreeMap::new();
                words.extend(batch.iter().map(|(is_removed, family, rest)| ((*family, rest.clone()), *is_removed)));
                for ((family, rest), is_removed) in &words {
                    expected.insert(key(*family, rest), *is_removed);
                    *sums.entry(*family).or_default() += if *is_removed { -1 } else { 1 };
                }
                let of = |wanted: bool| {
                    let words = words.iter().filter(|(_, is_removed)| **is_removed == wanted);
                    list(&words.map(|(key, _)| key.clone()).collect::<Vec<_>>())
                };
                SetChanges { added: of(false), removed: of(true) }
            }).collect();
            let origin = Origin { identity: Identity([3; 16]), group: 7, before: 5 };
            let block = GroupBlock::of(origin, &changes, block_bytes).unwrap();
            let Some(block) = block else {
                prop_assert!(expected.is_empty());
                return Ok(());
            };
            let (again, before) = GroupBlock::read(origin.identity, 7, &block.value).unwrap();
            prop_assert_eq!(before, Some(5));
            prop_assert!(GroupBlock::read(Identity([4; 16]), 7, &block.value).is_err(), "of another folder");
            for part in [&block.part, &again] {
                prop_assert_eq!(entries(part), expected.clone().into_iter().collect::<Vec<_>>());
                for family in 0..3 {
                    let sum = sums.get(&family).copied().unwrap_or_default();
                    prop_assert_eq!(part.families.get(&[family; FAMILY_BYTES]), sum);
                }
            }
            prop_assert_eq!(&block.part.index, &again.index);
            for place in 0..block.value.len() {
                let mut damaged = block.value.to_vec();
                damaged[place] ^= 0x10;
                prop_assert!(GroupBlock::read(origin.identity, 7, &Bytes::from(damaged)).is_err());
            }
        }
    }
}
