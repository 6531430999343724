//! A run: a segment of the set in a blob of its own, written once.
//!
//! ```text
//! run       "ASTRSET2", (block, CRC-32 u32){count}, footer, trailer
//! footer    index, family sums, filter                          (`index`, `families`, `filter`)
//! trailer   number u64, footer bytes u64, CRC-32 of both and of the footer u32, "1TESRTSA"
//! ```
//! (little-endian.) Runs of the format before begin with "ASTRSET1" and have no entries with values. The manifest names it by its number, length and trailer checksum (`manifest`), so another
//! blob in its place is noticed.
//! In: blocks. Out: a blob on stable storage, or blocks read back.
//! Invariants
//! - A block is given out only when its checksum is right; otherwise the answer is [`Error::Damaged`].
//! - A blob is complete and synced before anything names it.

use crate::Error;
use crate::bloom::BloomFilter;
use crate::builder::{Sink, Summary};
use crate::cache::BlockCache;
use crate::families::Families;
use crate::index::Index;
use crate::segment::{Reading, Segment};
use crate::{Blob, BlobWriter, Blobs, damaged};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: [u8; 8] = *b"ASTRSET2";
const MAGIC_WITHOUT_VALUES: [u8; 8] = *b"ASTRSET1";
const END_MAGIC: [u8; 8] = *b"1TESRTSA";
const CHECKSUM_BYTES: usize = 4;
const TRAILER_BYTES: usize = 8 + 8 + CHECKSUM_BYTES + END_MAGIC.len();
/// Where the first block begins.
pub(crate) const FIRST_BLOCK: u64 = MAGIC.len() as u64;

/// What the manifest says of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentRecord {
    pub(crate) number: u64,
    pub(crate) byte_count: u64,
    pub(crate) checksum: u32,
    /// Its keys are from the first up to the second, which is not among them: what is lost if the blob is. Manifests of the
    /// format before do not tell.
    pub(crate) keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Keys below this have been merged into other segments; empty if none have.
    pub(crate) from: Vec<u8>,
}

/// Bytes of a key that a record has at most.
const RECORD_KEY_BYTES_MAX: usize = 64;

/// The keys of an index, in few bytes.
fn keys_of(index: &Index) -> (Vec<u8>, Vec<u8>) {
    let first = &index.first()[..index.first().len().min(RECORD_KEY_BYTES_MAX)];
    // What is cut off a last key must not end the range before it.
    let mut end = index.last().to_vec();
    if end.len() < RECORD_KEY_BYTES_MAX {
        end.push(0);
    } else {
        end.truncate(RECORD_KEY_BYTES_MAX);
        while end.last() == Some(&0xFF) {
            end.pop();
        }
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
    }
    (first.to_vec(), end)
}

/// What all runs of a set share.
pub(crate) struct Backing {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) cache: BlockCache,
}

/// An open run.
pub(crate) struct SegmentBlob {
    blob: Box<dyn Blob>,
    record: SegmentRecord,
    backing: Arc<Backing>,
    is_replaced: AtomicBool,
}

/// The name of a run's blob.
pub(crate) fn blob_name(number: u64) -> String {
    format!("{number}.run")
}

impl Drop for SegmentBlob {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::Relaxed) {
            // What stays is removed by the next opening.
            let _ = self.backing.blobs.remove(&blob_name(self.record.number));
        }
    }
}

impl SegmentBlob {
    /// Opens the run that a record names, and checks that it is that one.
    pub(crate) fn open(backing: &Arc<Backing>, record: SegmentRecord) -> Result<Segment, Error> {
        let name = blob_name(record.number);
        let what = |what: &str| damaged(&format!("the index file {name} {what}"));
        let blob = backing.blobs.open(&name)?.ok_or_else(|| what("is missing"))?;
        let length = blob.byte_count();
        if length != record.byte_count {
            return Err(what("has another length than was written"));
        }
        let mut run = SegmentBlob { blob, record, backing: Arc::clone(backing), is_replaced: false.into() };
        let not_ours = || what("is not the file that was written");
        let trailer_at = length.checked_sub(TRAILER_BYTES as u64).ok_or_else(not_ours)?;
        let trailer = run.read(trailer_at..length)?;
        let (number, rest) = trailer.split_first_chunk::<8>().ok_or_else(not_ours)?;
        let (footer_bytes, rest) = rest.split_first_chunk::<8>().ok_or_else(not_ours)?;
        let footer_at = trailer_at.checked_sub(u64::from_le_bytes(*footer_bytes)).ok_or_else(not_ours)?;
        let footer = run.read(footer_at..trailer_at)?;
        let magic = run.read(0..FIRST_BLOCK)?;
        if magic != MAGIC && magic != MAGIC_WITHOUT_VALUES {
            return Err(not_ours());
        }
        let record = &run.record;
        let checksum = trailer_checksum(&footer, u64::from_le_bytes(*number));
        let expected = [&record.checksum.to_le_bytes()[..], &END_MAGIC].concat();
        if checksum != record.checksum || *rest != expected || u64::from_le_bytes(*number) != record.number {
            return Err(not_ours());
        }
        let mut at = 0;
        let index = Index::decode(&footer, &mut at, FIRST_BLOCK).ok_or_else(not_ours)?;
        let families = Families::decode(&footer, &mut at).ok_or_else(not_ours)?;
        let filter = BloomFilter::decode(&footer, &mut at).ok_or_else(not_ours)?;
        if at != footer.len() || index.end() != footer_at {
            return Err(not_ours());
        }
        run.record.keys = Some(keys_of(&index));
        let from = run.record.from.clone();
        Ok(Segment::stored(run, Summary { index, families, filter }).trimmed(&from))
    }

    pub(crate) fn record(&self) -> &SegmentRecord {
        &self.record
    }

    pub(crate) fn byte_count(&self) -> u64 {
        self.record.byte_count
    }

    /// The blob goes when the last holder does.
    pub(crate) fn replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
    }

    /// A block's bytes, checked.
    pub(crate) fn block(&self, block: usize, place: Range<u64>, reading: Reading) -> Result<Bytes, Error> {
        let cache = &self.backing.cache;
        if reading == Reading::Cached
            && let Some(bytes) = cache.get(self.record.number, block)
        {
            return Ok(bytes);
        }
        let mut bytes = self.read(place)?;
        let checksum = bytes.split_off(bytes.len().saturating_sub(CHECKSUM_BYTES));
        if checksum != crc32fast::hash(&bytes).to_le_bytes() {
            let name = blob_name(self.record.number);
            return Err(damaged(&format!("the index file {name} has a wrong checksum in block {block}")));
        }
        let bytes = Bytes::from(bytes);
        if reading == Reading::Cached {
            cache.insert(self.record.number, block, bytes.clone());
        }
        Ok(bytes)
    }

    fn read(&self, place: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; (place.end - place.start) as usize];
        self.blob.read_at(place.start, &mut bytes)?;
        Ok(bytes)
    }
}

/// A run being written. Dropped before [`SegmentWriter::finish`], it removes its blob.
pub(crate) struct SegmentWriter {
    writer: Option<Box<dyn BlobWriter>>,
    backing: Arc<Backing>,
    number: u64,
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            let _ = self.backing.blobs.remove(&blob_name(self.number));
        }
    }
}

impl Sink for SegmentWriter {
    fn take(&mut self, block: &[u8]) -> Result<u64, Error> {
        self.write(block)?;
        self.write(&crc32fast::hash(block).to_le_bytes())?;
        Ok((block.len() + CHECKSUM_BYTES) as u64)
    }
}

impl SegmentWriter {
    pub(crate) fn create(backing: &Arc<Backing>, number: u64) -> Result<SegmentWriter, Error> {
        let writer = Some(backing.blobs.create(&blob_name(number))?);
        let mut writer = SegmentWriter { writer, backing: Arc::clone(backing), number };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let writer = self.writer.as_mut().ok_or_else(|| damaged("a finished run is written to"))?;
        writer.write(bytes)
    }

    /// Writes what is known of the blocks and waits until all is on stable storage.
    pub(crate) fn finish(mut self, summary: Summary) -> Result<Segment, Error> {
        let mut footer = Vec::new();
        summary.index.encode(&mut footer);
        summary.families.encode(&mut footer);
        summary.filter.encode(&mut footer);
        let checksum = trailer_checksum(&footer, self.number);
        self.write(&footer)?;
        self.write(&self.number.to_le_bytes())?;
        self.write(&(footer.len() as u64).to_le_bytes())?;
        self.write(&checksum.to_le_bytes())?;
        self.write(&END_MAGIC)?;
        let byte_count = summary.index.end() + (footer.len() + TRAILER_BYTES) as u64;
        let keys = Some(keys_of(&summary.index));
        let record = SegmentRecord { number: self.number, byte_count, checksum, keys, from: Vec::new() };
        let writer = self.writer.take().ok_or_else(|| damaged("a run is finished twice"))?;
        let blob = writer.finish().inspect_err(|_| {
            let _ = self.backing.blobs.remove(&blob_name(self.number));
        })?;
        let run = SegmentBlob { blob, record, backing: Arc::clone(&self.backing), is_replaced: false.into() };
        Ok(Segment::stored(run, summary))
    }
}

fn trailer_checksum(footer: &[u8], number: u64) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(footer);
    checksum.update(&number.to_le_bytes());
    checksum.update(&(footer.len() as u64).to_le_bytes());
    checksum.finalize()
}
