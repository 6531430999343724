//! A run: a part of the set in a file of its own, written once.
//!
//! ```text
//! run       "ASTRSET1", (block, CRC-32 u32){count}, footer, trailer
//! footer    index, family sums, filter                          (`index`, `families`, `filter`)
//! trailer   number u64, footer bytes u64, CRC-32 of both and of the footer u32, "1TESRTSA"
//! ```
//! (little-endian.) The list of runs names a file by its number, length and trailer checksum (`manifest`), so another
//! file in its place is noticed.
//! In: blocks. Out: a file on stable storage, or blocks read back.
//! Invariants
//! - A block is given out only when its checksum is right; otherwise the answer is [`Error::Corruption`].
//! - A file is complete and synced before anything names it.

use super::builder::{Sink, Summary};
use super::cache::BlockCache;
use super::families::Families;
use super::filter::Filter;
use super::index::Index;
use super::part::{Part, Reading};
use super::{damaged, failed, unreadable};
use astrarium_kv::Error;
use bytes::Bytes;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: [u8; 8] = *b"ASTRSET1";
const END_MAGIC: [u8; 8] = *b"1TESRTSA";
const CHECKSUM_BYTES: usize = 4;
const TRAILER_BYTES: usize = 8 + 8 + CHECKSUM_BYTES + END_MAGIC.len();
/// Where the first block begins.
pub(super) const FIRST_BLOCK: u64 = MAGIC.len() as u64;
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// What the list of runs says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunRecord {
    pub(super) number: u64,
    pub(super) byte_count: u64,
    pub(super) checksum: u32,
}

/// An open run.
pub(super) struct RunFile {
    file: File,
    path: PathBuf,
    record: RunRecord,
    cache: Arc<BlockCache>,
    is_replaced: AtomicBool,
}

/// The name of a run's file.
pub(super) fn file_name(number: u64) -> String {
    format!("{number}.run")
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::Relaxed) {
            // What stays is removed by the next opening.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl RunFile {
    /// Opens the run that a record names, and checks that it is that one.
    pub(super) fn open(folder: &Path, record: RunRecord, cache: &Arc<BlockCache>) -> Result<Part, Error> {
        let path = folder.join(file_name(record.number));
        let what = |what: &str| damaged(&format!("the index file set/{} {what}", file_name(record.number)));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(what("is missing")),
            Err(error) => return Err(unreadable("opening a run", &error)),
        };
        let length = file.metadata().map_err(|error| failed("opening a run", &error))?.len();
        if length != record.byte_count {
            return Err(what("has another length than was written"));
        }
        let run =
            RunFile { file, path: path.clone(), record, cache: Arc::clone(cache), is_replaced: false.into() };
        let not_ours = || what("is not the file that was written");
        let trailer_at = length.checked_sub(TRAILER_BYTES as u64).ok_or_else(not_ours)?;
        let trailer = run.read(trailer_at..length)?;
        let (number, rest) = trailer.split_first_chunk::<8>().ok_or_else(not_ours)?;
        let (footer_bytes, rest) = rest.split_first_chunk::<8>().ok_or_else(not_ours)?;
        let footer_at = trailer_at.checked_sub(u64::from_le_bytes(*footer_bytes)).ok_or_else(not_ours)?;
        let footer = run.read(footer_at..trailer_at)?;
        let checksum = trailer_checksum(&footer, u64::from_le_bytes(*number));
        let expected = [&record.checksum.to_le_bytes()[..], &END_MAGIC].concat();
        if checksum != record.checksum || *rest != expected || u64::from_le_bytes(*number) != record.number {
            return Err(not_ours());
        }
        let mut at = 0;
        let index = Index::decode(&footer, &mut at, FIRST_BLOCK).ok_or_else(not_ours)?;
        let families = Families::decode(&footer, &mut at).ok_or_else(not_ours)?;
        let filter = Filter::decode(&footer, &mut at).ok_or_else(not_ours)?;
        if at != footer.len() || index.end() != footer_at {
            return Err(not_ours());
        }
        Ok(Part::in_file(run, Summary { index, families, filter }))
    }

    pub(super) fn record(&self) -> RunRecord {
        self.record
    }

    pub(super) fn byte_count(&self) -> u64 {
        self.record.byte_count
    }

    /// The file goes when the last holder does.
    pub(super) fn replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
    }

    /// A block's bytes, checked.
    pub(super) fn block(&self, block: usize, place: Range<u64>, reading: Reading) -> Result<Bytes, Error> {
        if reading == Reading::Cached
            && let Some(bytes) = self.cache.get(self.record.number, block)
        {
            return Ok(bytes);
        }
        let mut bytes = self.read(place)?;
        let checksum = bytes.split_off(bytes.len().saturating_sub(CHECKSUM_BYTES));
        if checksum != crc32fast::hash(&bytes).to_le_bytes() {
            let name = file_name(self.record.number);
            return Err(damaged(&format!("the index file set/{name} has a wrong checksum in block {block}")));
        }
        let bytes = Bytes::from(bytes);
        if reading == Reading::Cached {
            self.cache.insert(self.record.number, block, bytes.clone());
        }
        Ok(bytes)
    }

    fn read(&self, place: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; (place.end - place.start) as usize];
        match read_at(&self.file, &mut bytes, place.start) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(damaged(&format!(
                "the index file set/{} has become shorter",
                file_name(self.record.number)
            ))),
            Err(error) => Err(unreadable("reading a run", &error)),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

/// A run being written. Dropped before [`RunWriter::finish`], it removes its file.
pub(super) struct RunWriter {
    file: Option<BufWriter<File>>,
    path: PathBuf,
    number: u64,
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Sink for RunWriter {
    fn take(&mut self, block: &[u8]) -> Result<u64, Error> {
        self.write(block)?;
        self.write(&crc32fast::hash(block).to_le_bytes())?;
        Ok((block.len() + CHECKSUM_BYTES) as u64)
    }
}

impl RunWriter {
    pub(super) fn create(folder: &Path, number: u64) -> Result<RunWriter, Error> {
        let path = folder.join(file_name(number));
        let file = File::create(&path).map_err(|error| failed("creating a run", &error))?;
        let file = Some(BufWriter::with_capacity(WRITE_BUFFER_BYTES, file));
        let mut writer = RunWriter { file, path, number };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let file = self.file.as_mut().ok_or_else(|| damaged("a finished run is written to"))?;
        file.write_all(bytes).map_err(|error| failed("writing a run", &error))
    }

    /// Writes what is known of the blocks and waits until all is on stable storage. The folder is not synced yet.
    pub(super) fn finish(mut self, summary: Summary, cache: &Arc<BlockCache>) -> Result<Part, Error> {
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
        let failed = |error: std::io::Error| failed("writing a run", &error);
        if let Some(file) = &mut self.file {
            file.flush().map_err(failed)?;
            file.get_ref().sync_all().map_err(failed)?;
        }
        let file = File::open(&self.path).map_err(failed)?;
        self.file = None;
        let byte_count = summary.index.end() + (footer.len() + TRAILER_BYTES) as u64;
        let record = RunRecord { number: self.number, byte_count, checksum };
        let path = self.path.clone();
        let run = RunFile { file, path, record, cache: Arc::clone(cache), is_replaced: false.into() };
        Ok(Part::in_file(run, summary))
    }
}

fn trailer_checksum(footer: &[u8], number: u64) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(footer);
    checksum.update(&number.to_le_bytes());
    checksum.update(&(footer.len() as u64).to_le_bytes());
    checksum.finalize()
}
