//! Reads fjall's journal files without fjall, to learn how far they are whole.
//!
//! fjall 3.1 appends batches to `<number>.jnl`, the highest number being written to; numbers are little-endian:
//! ```text
//! batch   start item{count} end
//! start   01, item count u32, sequence number u64
//! item    02, kind u8 (0 value, 1 removal, 2 weak removal), compression u8, keyspace u64, key length u16,
//!         value length u32, length on disk u32, key, value
//! end     03, checksum u64, "FJL" 03
//! ```
//! A new file is 64 MiB of zeros, so zeros up to the end are the ordinary end of what was written.
//! fjall stops at the first byte it does not understand, cuts the file there and opens; other damage makes it refuse.
//! Both are wrong for us: the first loses acknowledged batches silently, the second lets a batch that was torn by a
//! power cut, and never acknowledged, stop the start. So [`scan`] looks first.
//!
//! Every batch is one commit group: its last item is a [`GroupRecord`] that numbers the groups without gaps, tells which folder
//! it belongs to and which groups before it changed each keyspace, and holds a CRC-32 of the items before it and of itself. A
//! batch is whole when its shape, its record and its end are. Records of format 1 have only the number and the checksum.
//! In: journal files, hostile. Out: where wholeness ends, and what follows. Memory is bounded by a buffer; time by the
//! size of the files, also where damage has to be searched for batches behind it.
//!
//! Not here: what follows from the findings (`recovery`).

use crate::identity::FolderIdentity;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Key of the record that ends every batch.
pub(crate) const GROUP_KEY: [u8; 1] = [b'g'];

/// Keyspaces whose changes a record follows: the spaces, then the set.
pub(crate) const FOLLOWED_COUNT: usize = 4;

const SHORT_RECORD_BYTES: usize = 12;
const RECORD_BYTES: usize = SHORT_RECORD_BYTES + FolderIdentity::BYTES + 8 * FOLLOWED_COUNT + 1;
const START_BYTES: usize = 13;
const ITEM_HEADER_BYTES: usize = 21;
const END_BYTES: usize = 13;
const END_MAGIC: [u8; 4] = *b"FJL\x03";
const BUFFER_BYTES: usize = 256 << 10;

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const KIND_VALUE: u8 = 0;
const KIND_REMOVAL: u8 = 1;

/// The value under [`GROUP_KEY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupRecord {
    pub(crate) group: u64,
    checksum: u32,
    /// Nothing in records of format 1.
    pub(crate) lineage: Option<Lineage>,
}

/// Where a group belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lineage {
    pub(crate) identity: FolderIdentity,
    /// The last group before this one that changed each followed keyspace; 0 for none.
    pub(crate) before: [u64; FOLLOWED_COUNT],
    /// Whether this group does.
    pub(crate) is_changed: [bool; FOLLOWED_COUNT],
}

impl Lineage {
    fn encode(&self) -> [u8; RECORD_BYTES - SHORT_RECORD_BYTES] {
        let mut value = [0; RECORD_BYTES - SHORT_RECORD_BYTES];
        let (identity, rest) = value.split_at_mut(FolderIdentity::BYTES);
        identity.copy_from_slice(&self.identity.0);
        for (place, before) in rest.chunks_exact_mut(8).zip(self.before) {
            place.copy_from_slice(&before.to_be_bytes());
        }
        let bits = self.is_changed.iter().rev().fold(0, |bits, is_changed| bits << 1 | u8::from(*is_changed));
        if let Some(last) = value.last_mut() {
            *last = bits;
        }
        value
    }

    fn decode(value: &[u8]) -> Option<Lineage> {
        let (identity, rest) = value.split_first_chunk()?;
        let (numbers, [bits]) = rest.as_chunks::<8>() else { return None };
        let numbers: &[[u8; 8]; FOLLOWED_COUNT] = numbers.try_into().ok()?;
        Some(Lineage {
            identity: FolderIdentity(*identity),
            before: numbers.map(u64::from_be_bytes),
            is_changed: [0, 1, 2, 3].map(|place| bits >> place & 1 == 1),
        })
    }

    /// The last group up to this one, of this number, that changed each followed keyspace.
    pub(crate) fn last_changes(&self, group: u64) -> [u64; FOLLOWED_COUNT] {
        let mut changes = self.before;
        for (change, is_changed) in changes.iter_mut().zip(self.is_changed) {
            if is_changed {
                *change = group;
            }
        }
        changes
    }
}

impl GroupRecord {
    /// Ends a group whose items have this checksum.
    pub(crate) fn ending(group: u64, lineage: Lineage, items: crc32fast::Hasher) -> GroupRecord {
        let lineage = Some(lineage);
        GroupRecord { group, checksum: checksum_record(items, group, lineage.as_ref()), lineage }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = [&self.group.to_be_bytes()[..], &self.checksum.to_be_bytes()].concat();
        value.extend(self.lineage.iter().flat_map(Lineage::encode));
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Option<GroupRecord> {
        let (group, rest) = value.split_first_chunk::<8>()?;
        let (checksum, rest) = rest.split_first_chunk::<4>()?;
        let lineage = if rest.is_empty() { None } else { Some(Lineage::decode(rest)?) };
        Some(GroupRecord {
            group: u64::from_be_bytes(*group),
            checksum: u32::from_be_bytes(*checksum),
            lineage,
        })
    }

    fn ends(&self, items: crc32fast::Hasher) -> bool {
        checksum_record(items, self.group, self.lineage.as_ref()) == self.checksum
    }
}

/// The checksum of a group's items and of what its record says; in format 1 of the items alone.
fn checksum_record(mut items: crc32fast::Hasher, group: u64, lineage: Option<&Lineage>) -> u32 {
    if let Some(lineage) = lineage {
        items.update(&group.to_be_bytes());
        items.update(&lineage.encode());
    }
    items.finalize()
}

/// Adds an item to a group's checksum: the bytes that fjall will write for it.
pub(crate) fn checksum_item(
    checksum: &mut crc32fast::Hasher,
    keyspace: u64,
    key: &[u8],
    value: Option<&[u8]>,
) {
    let mut header = [0; ITEM_HEADER_BYTES];
    let length = (value.map_or(0, <[u8]>::len) as u32).to_le_bytes();
    header[0] = TAG_ITEM;
    header[1] = if value.is_some() { KIND_VALUE } else { KIND_REMOVAL };
    header[3..11].copy_from_slice(&keyspace.to_le_bytes());
    header[11..13].copy_from_slice(&(key.len() as u16).to_le_bytes());
    header[13..17].copy_from_slice(&length);
    header[17..21].copy_from_slice(&length);
    checksum.update(&header);
    checksum.update(key);
    checksum.update(value.unwrap_or_default());
}

/// What one journal file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalFindings {
    pub(crate) path: PathBuf,
    /// Number of the first whole batch at the beginning.
    pub(crate) first_group: Option<u64>,
    /// Where that batch belongs, unless it is of format 1.
    pub(crate) lineage: Option<Lineage>,
    /// Number of the last whole batch before any damage.
    pub(crate) last_group: Option<u64>,
    /// Where that batch ends.
    pub(crate) whole_bytes: u64,
    /// Something other than zeros follows.
    pub(crate) is_damaged: bool,
    /// Lowest and highest number of whole batches found behind the damage.
    pub(crate) behind: Option<(u64, u64)>,
}

/// Looks through all journals of an engine folder, in the order they were written. Changes nothing.
pub(crate) fn scan(folder: &Path) -> io::Result<Vec<JournalFindings>> {
    journals(folder)?.into_iter().map(scan_file).collect()
}

/// Makes all journals empty. Only when everything in them is in tables, and fjall is closed.
pub(crate) fn empty_all(folder: &Path) -> io::Result<()> {
    for path in journals(folder)? {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(0)?;
        file.sync_all()?;
    }
    Ok(())
}

fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(numbers(folder)?.into_iter().map(|number| folder.join(name_of(number))).collect())
}

/// The name of a journal.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number}.jnl")
}

/// The numbers of all journals of an engine folder.
pub(crate) fn numbers(folder: &Path) -> io::Result<BTreeSet<u64>> {
    let mut numbers = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jnl"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    Ok(numbers)
}

fn scan_file(path: PathBuf) -> io::Result<JournalFindings> {
    let mut reader = JournalReader::open(&path)?;
    let mut found = JournalFindings {
        path,
        first_group: None,
        lineage: None,
        last_group: None,
        whole_bytes: 0,
        is_damaged: false,
        behind: None,
    };
    while let Some(GroupRecord { group, lineage, .. }) = reader.whole_batch()? {
        if found.last_group.is_some_and(|last| group != last + 1) {
            // Whole, but not the one that was written next: something between the two is gone.
            break;
        }
        if found.first_group.is_none() {
            (found.first_group, found.lineage) = (Some(group), lineage);
        }
        found.last_group = Some(group);
        found.whole_bytes = reader.position;
    }
    reader.seek(found.whole_bytes)?;
    found.is_damaged = !reader.only_zeros_follow()?;
    if found.is_damaged {
        let after = found.last_group.unwrap_or(0);
        found.behind = find_behind(&mut reader, found.whole_bytes, after)?;
    }
    Ok(found)
}

/// Where the last whole batch of a journal ends that is not above a group.
pub(crate) fn end_of_group(path: &Path, group: u64) -> io::Result<u64> {
    let mut reader = JournalReader::open(path)?;
    let mut end = 0;
    while reader.whole_batch()?.is_some_and(|record| record.group <= group) {
        end = reader.position;
    }
    Ok(end)
}

/// Searches for whole batches with higher numbers behind a damaged place: each must follow the end mark of another.
fn find_behind(reader: &mut JournalReader, damage: u64, after: u64) -> io::Result<Option<(u64, u64)>> {
    let mut behind: Option<(u64, u64)> = None;
    // The mark just before the damage counts: what begins there may be whole, only not the next in number.
    let mut position = damage.saturating_sub(END_MAGIC.len() as u64);
    // Bytes inside documents can look like the beginnings of batches; this keeps looking at them linear.
    let mut budget = reader.length.saturating_mul(4);
    while let Some(start) = reader.find_end_magic(position)? {
        position = start;
        let group = reader.whole_batch()?.map(|record| record.group);
        budget = budget.saturating_sub(reader.position - start + 1);
        if let Some(group) = group.filter(|group| *group > after) {
            behind = Some(behind.map_or((group, group), |(low, high)| (low.min(group), high.max(group))));
            // The end mark of this batch leads to the next one.
            position = reader.position - END_MAGIC.len() as u64;
        }
        if budget == 0 {
            break;
        }
    }
    Ok(behind)
}

/// A buffered file that knows where it is and how much is left.
struct JournalReader {
    file: BufReader<File>,
    position: u64,
    length: u64,
}

impl JournalReader {
    fn open(path: &Path) -> io::Result<JournalReader> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(JournalReader { file: BufReader::with_capacity(BUFFER_BYTES, file), position: 0, length })
    }

    fn seek(&mut self, position: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(position))?;
        self.position = position;
        Ok(())
    }

    /// The next bytes, if there are as many.
    fn take<const COUNT: usize>(&mut self) -> io::Result<Option<[u8; COUNT]>> {
        let mut bytes = [0; COUNT];
        if self.length - self.position < COUNT as u64 {
            return Ok(None);
        }
        self.file.read_exact(&mut bytes)?;
        self.position += COUNT as u64;
        Ok(Some(bytes))
    }

    /// Feeds the next bytes to the checksum, if there are as many.
    fn checksum(&mut self, checksum: &mut crc32fast::Hasher, count: u64) -> io::Result<bool> {
        if self.length - self.position < count {
            return Ok(false);
        }
        let mut left = count;
        while left > 0 {
            let buffer = self.file.fill_buf()?;
            let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if part == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            checksum.update(&buffer[..part]);
            self.file.consume(part);
            left -= part as u64;
        }
        self.position += count;
        Ok(true)
    }

    /// The record of the batch that begins here, if it is whole; then the position is behind it.
    fn whole_batch(&mut self) -> io::Result<Option<GroupRecord>> {
        let Some(start) = self.take::<START_BYTES>()? else {
            return Ok(None);
        };
        let [TAG_START, count @ ..] = start else {
            return Ok(None);
        };
        let item_count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]);
        let mut checksum = crc32fast::Hasher::new();
        for _ in 1..item_count {
            if !self.item(&mut checksum)? {
                return Ok(None);
            }
        }
        let Some(record) = self.record()? else {
            return Ok(None);
        };
        let Some(end) = self.take::<END_BYTES>()? else {
            return Ok(None);
        };
        let is_ended = end[0] == TAG_END && end.ends_with(&END_MAGIC);
        let is_whole = item_count > 0 && is_ended && record.ends(checksum);
        Ok(is_whole.then_some(record))
    }

    /// Passes over an item, if there is one.
    fn item(&mut self, checksum: &mut crc32fast::Hasher) -> io::Result<bool> {
        let Some(header) = self.take::<ITEM_HEADER_BYTES>()? else {
            return Ok(false);
        };
        let Some(item) = ItemHeader::decode(&header) else {
            return Ok(false);
        };
        checksum.update(&header);
        self.checksum(checksum, u64::from(item.key_bytes) + u64::from(item.value_bytes))
    }

    /// Reads the group record that should stand here.
    fn record(&mut self) -> io::Result<Option<GroupRecord>> {
        let Some(header) = self.take::<ITEM_HEADER_BYTES>()? else {
            return Ok(None);
        };
        let shape =
            |bytes: usize| Some(ItemHeader { key_bytes: GROUP_KEY.len() as u16, value_bytes: bytes as u32 });
        let header = ItemHeader::decode(&header);
        let is_long = header == shape(RECORD_BYTES);
        if !(is_long || header == shape(SHORT_RECORD_BYTES)) || self.take()? != Some(GROUP_KEY) {
            return Ok(None);
        }
        if is_long {
            let value = self.take::<RECORD_BYTES>()?;
            return Ok(value.and_then(|value| GroupRecord::decode(&value)));
        }
        let value = self.take::<SHORT_RECORD_BYTES>()?;
        Ok(value.and_then(|value| GroupRecord::decode(&value)))
    }

    fn only_zeros_follow(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                return Ok(true);
            }
            if buffer.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            let count = buffer.len();
            self.file.consume(count);
            self.position += count as u64;
        }
    }

    /// Goes to the first place from `position` on that follows the mark of a batch's end.
    fn find_end_magic(&mut self, position: u64) -> io::Result<Option<u64>> {
        self.seek(position)?;
        let mut matched = 0;
        loop {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            for (index, byte) in buffer.iter().enumerate() {
                // The mark has no beginning that recurs inside it, so a mismatch restarts at this byte.
                matched = if *byte == END_MAGIC[matched] {
                    matched + 1
                } else {
                    usize::from(*byte == END_MAGIC[0])
                };
                if matched == END_MAGIC.len() {
                    let found = self.position + index as u64 + 1;
                    self.seek(found)?;
                    return Ok(Some(found));
                }
            }
            let count = buffer.len();
            self.file.consume(count);
            self.position += count as u64;
        }
    }
}

#[derive(PartialEq, Eq)]
struct ItemHeader {
    key_bytes: u16,
    value_bytes: u32,
}

impl ItemHeader {
    fn decode(header: &[u8; ITEM_HEADER_BYTES]) -> Option<ItemHeader> {
        let key_bytes = u16::from_le_bytes([header[11], header[12]]);
        let value_bytes = u32::from_le_bytes([header[13], header[14], header[15], header[16]]);
        let is_item = header[0] == TAG_ITEM && header[1] <= KIND_REMOVAL && header[2] == 0;
        (is_item && header[13..17] == header[17..21]).then_some(ItemHeader { key_bytes, value_bytes })
    }
}
