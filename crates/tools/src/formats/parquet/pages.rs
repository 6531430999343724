//! The pages of a column chunk, read and unpacked within bounds.
//!
//! In: a file, where a chunk is, how it is packed. Out: pages for the library's decoders. It is ours because the library believes what pages say
//! about themselves: it unpacks gzip without an end, and makes room for as many dictionary values or lengths as a header claims.
//! Invariants
//! - What is held for one batch of rows, of all columns together, is counted before it is allocated and at most `HELD_BYTES_MAX`.
//! - A page never has more values than its row group has rows left.
//!
//! Not here: levels and encodings (the library), which columns there are (`super`).

use super::thrift::{SmallFields, ThriftFault, ThriftReader, ThriftType};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of pages and dictionaries that may be held at once.
pub(super) const HELD_BYTES_MAX: usize = 512 << 20;
/// Longest header of a page; statistics are part of it.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// What a value of a dictionary takes beside its bytes.
const DICTIONARY_VALUE_BYTES: usize = 48;
/// Most lengths that a page of the DELTA encodings may have.
const DELTA_COUNT_MAX: u64 = 16 << 20;

/// What Parquet is read from: it begins at its end.
pub(crate) trait SeekableBytes: Read + Seek + Send {}
impl<T: Read + Seek + Send> SeekableBytes for T {}

/// A file that all columns read from.
#[derive(Clone)]
pub(super) struct PageSource {
    bytes: Arc<Mutex<Box<dyn SeekableBytes>>>,
    /// Bytes read so far, for progress.
    read: Arc<AtomicU64>,
    held: Arc<Mutex<HeldBytes>>,
}

/// What is held, as a whole and by column.
#[derive(Debug, Default)]
struct HeldBytes {
    total: usize,
    /// Dictionary and last page.
    columns: Vec<(usize, usize)>,
}

/// Where the pages of a column are, and what is known of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkPlace {
    pub(super) column: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) rows: u64,
    pub(super) compression: Compression,
    pub(super) is_optional: bool,
}

impl PageSource {
    pub(super) fn new(bytes: Box<dyn SeekableBytes>, read: Arc<AtomicU64>) -> PageSource {
        PageSource { bytes: Arc::new(Mutex::new(bytes)), read, held: Arc::default() }
    }

    pub(super) fn size(&self) -> std::io::Result<u64> {
        self.bytes.lock().seek(SeekFrom::End(0))
    }

    /// Bytes at a place; fewer if the file ends.
    pub(super) fn read_at(&self, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = self.bytes.lock();
        bytes.seek(SeekFrom::Start(offset))?;
        // Grows as bytes come: a length that the file does not have is not allocated.
        let mut buffer = Vec::new();
        bytes.by_ref().take(length as u64).read_to_end(&mut buffer)?;
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(buffer)
    }

    /// A row group begins: nothing is held.
    pub(super) fn begin_group(&self, column_count: usize) {
        *self.held.lock() = HeldBytes { total: 0, columns: vec![(0, 0); column_count] };
    }

    /// The rows of a batch are given: only dictionaries and last pages are held still.
    pub(super) fn begin_batch(&self) {
        let mut held = self.held.lock();
        held.total = held.columns.iter().map(|(dictionary, page)| dictionary + page).sum();
    }

    fn hold(&self, column: usize, bytes: usize, is_dictionary: bool) -> Result<(), ParquetError> {
        let mut held = self.held.lock();
        held.total = held.total.saturating_add(bytes);
        if held.total > HELD_BYTES_MAX {
            let limit = HELD_BYTES_MAX >> 20;
            return Err(fault(format!(
                "more than {limit} MB of pages are needed at once; write it with smaller pages"
            )));
        }
        if let Some((dictionary, page)) = held.columns.get_mut(column) {
            *if is_dictionary { dictionary } else { page } = bytes;
        }
        Ok(())
    }
}

pub(super) fn fault(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// The pages of one chunk.
pub(super) struct BoundedPages {
    source: PageSource,
    place: ChunkPlace,
    has_dictionary: bool,
}

/// What a page says about itself.
struct PageHeader {
    kind: i64,
    packed_bytes: usize,
    plain_bytes: usize,
    checksum: Option<u32>,
    /// The fields of the header of its kind.
    fields: SmallFields,
}

impl BoundedPages {
    pub(super) fn new(source: PageSource, place: ChunkPlace) -> BoundedPages {
        BoundedPages { source, place, has_dictionary: false }
    }

    fn header(&mut self) -> Result<PageHeader, ParquetError> {
        let mut length = 4 << 10;
        loop {
            let limit = length.min(usize::try_from(self.place.bytes).unwrap_or(usize::MAX));
            let bytes = self.source.read_at(self.place.offset, limit)?;
            let mut reader = ThriftReader::new(&bytes);
            match page_header(&mut reader) {
                Ok(header) => {
                    self.advance(reader.position() as u64);
                    return Ok(header);
                }
                Err(ThriftFault::Short) if bytes.len() == length && length < HEADER_BYTES_MAX => length *= 16,
                Err(_) => return Err(fault("the header of a page is broken")),
            }
        }
    }

    fn advance(&mut self, count: u64) {
        self.place.offset = self.place.offset.saturating_add(count);
        self.place.bytes = self.place.bytes.saturating_sub(count);
    }

    fn next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        loop {
            if self.place.bytes == 0 || self.place.rows == 0 {
                return Ok(None);
            }
            let header = self.header()?;
            if header.packed_bytes as u64 > self.place.bytes {
                return Err(fault("a page is longer than its column"));
            }
            let is_dictionary = header.kind == 2;
            if !matches!(header.kind, 0 | 2 | 3) {
                self.advance(header.packed_bytes as u64);
                continue;
            }
            self.source.hold(
                self.place.column,
                header.plain_bytes.max(header.packed_bytes),
                is_dictionary,
            )?;
            let packed = self.source.read_at(self.place.offset, header.packed_bytes)?;
            if packed.len() != header.packed_bytes {
                return Err(fault("the file ends within a page"));
            }
            self.advance(header.packed_bytes as u64);
            if header.checksum.is_some_and(|checksum| checksum != crc32fast::hash(&packed)) {
                return Err(fault("the checksum of a page differs"));
            }
            return match header.kind {
                2 => self.dictionary(&header, packed),
                0 => self.data(&header, packed),
                _ => self.data_of_version_two(&header, packed),
            }
            .map(Some);
        }
    }

    fn dictionary(&mut self, header: &PageHeader, packed: Vec<u8>) -> Result<Page, ParquetError> {
        let buf = self.unpacked(packed, header.plain_bytes)?;
        let num_values = count(header.fields[1])?;
        // A value takes at least a byte, so the claim cannot be larger than the page.
        if num_values as usize > buf.len() || self.has_dictionary {
            return Err(fault("its dictionary is broken"));
        }
        self.has_dictionary = true;
        let bytes = buf.len().saturating_add(num_values as usize * DICTIONARY_VALUE_BYTES);
        self.source.hold(self.place.column, bytes, true)?;
        let (encoding, is_sorted) = (encoding(header.fields[2])?, header.fields[3] == Some(1));
        Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted })
    }

    fn data(&mut self, header: &PageHeader, packed: Vec<u8>) -> Result<Page, ParquetError> {
        let buf = self.unpacked(packed, header.plain_bytes)?;
        let num_values = self.take_rows(header.fields[1])?;
        let (encoding, def_level_encoding, rep_level_encoding) =
            (encoding(header.fields[2])?, encoding(header.fields[3])?, encoding(header.fields[4])?);
        #[expect(deprecated, reason = "old files have it for levels")]
        let levels = match (self.place.is_optional, def_level_encoding) {
            (false, _) => 0,
            (true, Encoding::BIT_PACKED) => (num_values as usize).div_ceil(8),
            (true, _) => {
                let length = buf.first_chunk::<4>().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes));
                (length as usize).saturating_add(4)
            }
        };
        self.check_values(&buf, levels, encoding, num_values)?;
        let statistics = None;
        Ok(Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics })
    }

    fn data_of_version_two(&mut self, header: &PageHeader, packed: Vec<u8>) -> Result<Page, ParquetError> {
        let fields = &header.fields;
        let num_values = self.take_rows(fields[1])?;
        let (num_nulls, num_rows) = (count(fields[2])?, count(fields[3])?);
        let (encoding, def_levels_byte_len, rep_levels_byte_len) =
            (encoding(fields[4])?, count(fields[5])?, count(fields[6])?);
        if num_nulls > num_values {
            return Err(fault("a page has more nulls than values"));
        }
        // Levels are never packed, values are unless it says otherwise.
        let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
        let is_compressed = fields[7] != Some(0);
        if levels > packed.len() || levels > header.plain_bytes {
            return Err(fault("a page is shorter than its levels"));
        }
        let buf = if is_compressed {
            let mut whole = packed.get(..levels).unwrap_or_default().to_vec();
            let values = packed.get(levels..).unwrap_or_default().to_vec();
            whole.extend_from_slice(&self.unpacked(values, header.plain_bytes - levels)?);
            Bytes::from(whole)
        } else {
            Bytes::from(packed)
        };
        self.check_values(&buf, levels, encoding, num_values)?;
        Ok(Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed: false,
            statistics: None,
        })
    }

    fn take_rows(&mut self, claimed: Option<i64>) -> Result<u32, ParquetError> {
        let claimed = count(claimed)?;
        self.place.rows = self
            .place
            .rows
            .checked_sub(u64::from(claimed))
            .ok_or_else(|| fault("a page has more values than there are rows"))?;
        Ok(claimed)
    }

    /// What the library would believe: lengths and prefixes, and that there is a dictionary.
    fn check_values(
        &self,
        page: &[u8],
        levels: usize,
        encoding: Encoding,
        rows: u32,
    ) -> Result<(), ParquetError> {
        let values = page.get(levels..).ok_or_else(|| fault("a page is shorter than its levels"))?;
        match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if !self.has_dictionary => {
                Err(fault("a page needs a dictionary, and there is none"))
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let lengths = delta_lengths(values, u64::from(rows))?;
                self.source.hold(self.place.column, page.len() + lengths.count * 8, false)
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = delta_lengths(values, u64::from(rows))?;
                let rest = values.get(prefixes.end..).unwrap_or_default();
                let suffixes = delta_lengths(rest, u64::from(rows))?;
                let bytes = usize::try_from(prefixes.sum + suffixes.sum).unwrap_or(usize::MAX);
                let bytes = bytes.saturating_add(page.len() + (prefixes.count + suffixes.count) * 8);
                self.source.hold(self.place.column, bytes, false)
            }
            _ => Ok(()),
        }
    }

    /// As many bytes as the page says it has, no more.
    fn unpacked(&self, packed: Vec<u8>, plain_bytes: usize) -> Result<Bytes, ParquetError> {
        let broken = || fault("a page cannot be unpacked");
        if plain_bytes == 0 && self.place.compression != Compression::UNCOMPRESSED {
            return Ok(Bytes::new());
        }
        let plain = match self.place.compression {
            Compression::UNCOMPRESSED => return Ok(Bytes::from(packed)),
            Compression::SNAPPY => {
                let length = snap::raw::decompress_len(&packed).map_err(|_| broken())?;
                if length != plain_bytes {
                    return Err(broken());
                }
                snap::raw::Decoder::new().decompress_vec(&packed).map_err(|_| broken())?
            }
            Compression::GZIP(_) => {
                let mut plain = Vec::new();
                let reader = flate2::read::MultiGzDecoder::new(&packed[..]);
                reader.take(plain_bytes as u64 + 1).read_to_end(&mut plain).map_err(|_| broken())?;
                plain
            }
            Compression::ZSTD(_) => zstd::bulk::decompress(&packed, plain_bytes).map_err(|_| broken())?,
            Compression::LZ4_RAW => {
                lz4_flex::block::decompress(&packed, plain_bytes).map_err(|_| broken())?
            }
            other => {
                return Err(fault(format!(
                    "it is packed with {other}; snappy, gzip, zstd and lz4_raw can be read"
                )));
            }
        };
        if plain.len() == plain_bytes { Ok(Bytes::from(plain)) } else { Err(broken()) }
    }
}

fn page_header(reader: &mut ThriftReader<'_>) -> Result<PageHeader, ThriftFault> {
    let (mut kind, mut plain, mut packed, mut checksum) = (None, None, None, None);
    let mut headers: [Option<SmallFields>; 9] = Default::default();
    let mut last = 0;
    while let Some((number, field)) = reader.field(&mut last)? {
        match (number, field) {
            (1, ThriftType::Integer) => kind = Some(reader.integer()?),
            (2, ThriftType::Integer) => plain = Some(reader.integer()?),
            (3, ThriftType::Integer) => packed = Some(reader.integer()?),
            (4, ThriftType::Integer) => checksum = Some(reader.integer()? as u32),
            (5..=8, ThriftType::Struct) => headers[number as usize] = Some(reader.small_fields()?),
            (_, other) => reader.skip(other)?,
        }
    }
    let bytes = |value: Option<i64>| {
        let value = value.and_then(|value| i32::try_from(value).ok());
        value.and_then(|value| usize::try_from(value).ok()).ok_or(ThriftFault::Bad)
    };
    let kind = kind.ok_or(ThriftFault::Bad)?;
    // The header of a data page is field 5, of an index page 6, of a dictionary 7, of version two 8.
    let own = usize::try_from(kind).ok().and_then(|kind| headers.get(kind + 5).copied().flatten());
    let (packed_bytes, plain_bytes) = (bytes(packed)?, bytes(plain)?);
    Ok(PageHeader { kind, packed_bytes, plain_bytes, checksum, fields: own.unwrap_or_default() })
}

fn count(value: Option<i64>) -> Result<u32, ParquetError> {
    let value = value.and_then(|value| i32::try_from(value).ok()).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| fault("the header of a page is broken"))
}

fn encoding(value: Option<i64>) -> Result<Encoding, ParquetError> {
    Ok(match value {
        Some(0) => Encoding::PLAIN,
        Some(2) => Encoding::PLAIN_DICTIONARY,
        Some(3) => Encoding::RLE,
        #[expect(deprecated, reason = "old files have it for levels")]
        Some(4) => Encoding::BIT_PACKED,
        Some(5) => Encoding::DELTA_BINARY_PACKED,
        Some(6) => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Some(7) => Encoding::DELTA_BYTE_ARRAY,
        Some(8) => Encoding::RLE_DICTIONARY,
        Some(9) => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err(fault("a page has an unknown encoding")),
    })
}

/// Lengths in the DELTA_BINARY_PACKED form: how many, their sum, and where they end.
#[derive(Debug, PartialEq, Eq)]
struct DeltaLengths {
    count: usize,
    sum: u64,
    end: usize,
}

fn delta_lengths(bytes: &[u8], count_max: u64) -> Result<DeltaLengths, ParquetError> {
    let broken = || fault("the lengths of a page are broken");
    let mut reader = ThriftReader::new(bytes);
    let mut next = || reader.varint().map_err(|_| broken());
    let (block, blocks, count) = (next()?, next()?, next()?);
    let mut value = reader.integer().map_err(|_| broken())?;
    let per_block = block.checked_div(blocks).filter(|size| *size > 0 && block % blocks == 0);
    let per_block = per_block.filter(|size| size % 32 == 0).ok_or_else(broken)?;
    if count > count_max.min(DELTA_COUNT_MAX) {
        return Err(broken());
    }
    let (mut left, mut sum) = (count, 0_u64);
    let mut add = |value: i64| {
        let length =
            i32::try_from(value).ok().and_then(|value| u64::try_from(value).ok()).ok_or_else(broken)?;
        sum += length;
        Ok::<(), ParquetError>(())
    };
    if left > 0 {
        add(value)?;
        left -= 1;
    }
    let mut at = reader.position();
    while left > 0 {
        let mut reader = ThriftReader::new(bytes.get(at..).unwrap_or_default());
        let least = reader.integer().map_err(|_| broken())?;
        at += reader.position();
        let end =
            usize::try_from(blocks).ok().and_then(|blocks| at.checked_add(blocks)).ok_or_else(broken)?;
        let widths = bytes.get(at..end).ok_or_else(broken)?;
        at = end;
        for width in widths.iter().map(|width| usize::from(*width)) {
            if left == 0 {
                break;
            }
            // Lengths are numbers of 32 bits.
            let packed =
                (per_block / 8).checked_mul(width as u64).and_then(|size| usize::try_from(size).ok());
            let end =
                packed.and_then(|size| at.checked_add(size)).filter(|_| width <= 32).ok_or_else(broken)?;
            let taken = left.min(per_block);
            let packed = bytes.get(at..end.min(bytes.len())).unwrap_or_default();
            for index in 0..taken as usize {
                let delta = bits(packed, index * width, width).ok_or_else(broken)?;
                value = value.wrapping_add(least).wrapping_add(delta);
                add(value)?;
            }
            left -= taken;
            at = end;
        }
    }
    if at > bytes.len() {
        return Err(broken());
    }
    Ok(DeltaLengths { count: count as usize, sum, end: at })
}

/// A number of some bits at a place, lowest bits first.
fn bits(bytes: &[u8], at: usize, width: usize) -> Option<i64> {
    let mut value = 0_i64;
    let mut taken = 0;
    while taken < width {
        let place = at + taken;
        let byte = i64::from(*bytes.get(place / 8)?);
        let used = (8 - place % 8).min(width - taken);
        value |= ((byte >> (place % 8)) & ((1 << used) - 1)) << taken;
        taken += used;
    }
    Some(value)
}

impl Iterator for BoundedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.next_page()
    }

    // Both are for skipping rows, which is not done here.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        Err(fault("pages are not looked ahead"))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        Err(fault("pages are not skipped"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        // The example of the format: 7, 5, 3, 1, 2, 3, 4, 5 in one block of 128 with four parts.
        let mut bytes = vec![0x80, 0x01, 4, 8, 14];
        // Least delta -2, widths 2 0 0 0, then the deltas above it: 0 0 0 3 3 3 3.
        bytes.extend_from_slice(&[3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
        let all = DeltaLengths { count: 8, sum: 30, end: bytes.len() };
        assert_eq!(delta_lengths(&bytes, 8).unwrap(), all);
        assert!(delta_lengths(&bytes, 7).is_err(), "more than there are rows");
        for cut in 0..bytes.len() {
            assert!(delta_lengths(&bytes[..cut], 8).is_err(), "{cut}");
        }
        assert_eq!(
            delta_lengths(&[0x80, 0x01, 4, 0, 0], 8).unwrap(),
            DeltaLengths { count: 0, sum: 0, end: 5 }
        );
        assert!(delta_lengths(&[0x80, 0x01, 0, 1, 0], 8).is_err(), "no parts");
        assert!(delta_lengths(&[0x80, 0x01, 4, 1, 1], 8).is_err(), "less than nothing");
    }

    /// Pages of a chunk with one column, of three rows.
    fn pages(bytes: &[u8], compression: Compression) -> BoundedPages {
        let source = PageSource::new(Box::new(std::io::Cursor::new(bytes.to_vec())), Arc::default());
        source.begin_group(1);
        let bytes = bytes.len() as u64;
        BoundedPages::new(
            source,
            ChunkPlace { column: 0, offset: 0, bytes, rows: 3, compression, is_optional: false },
        )
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while value >= 128 {
            out.push(value as u8 | 128);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }

    /// A page with its header: kind, sizes as claimed, values as claimed, an encoding, and bytes.
    fn page(kind: u64, plain: u64, values: u64, encoding: u64, packed: &[u8]) -> Vec<u8> {
        let number = |head: u8, value: u64| [vec![head], varint(value * 2)].concat();
        let own = match kind {
            0 => [number(0x15, values), number(0x15, encoding), number(0x15, 3), number(0x15, 3), vec![0]]
                .concat(),
            _ => [number(0x15, values), number(0x15, encoding), vec![0]].concat(),
        };
        // The structure is field 5 or 7, after field 3.
        let head = if kind == 0 { 0x2c } else { 0x4c };
        let sizes = [number(0x15, kind), number(0x15, plain), number(0x15, packed.len() as u64)].concat();
        [sizes, vec![head], own, vec![0], packed.to_vec()].concat()
    }

    #[track_caller]
    fn refused(bytes: &[u8], compression: Compression, fragment: &str) {
        let error = pages(bytes, compression).find_map(Result::err).expect("an error").to_string();
        assert!(error.contains(fragment), "{fragment:?} in {error:?}");
    }

    #[test]
    fn pages_that_claim_too_much() {
        let zstd = Compression::ZSTD(parquet::basic::ZstdLevel::default());
        let gzip = Compression::GZIP(parquet::basic::GzipLevel::default());
        let good = page(0, 12, 3, 0, &[1; 12]);
        assert_eq!(pages(&good, Compression::UNCOMPRESSED).filter_map(Result::ok).count(), 1);
        refused(&page(0, 0x7fff_ffff, 3, 0, &[1; 12]), zstd, "more than 512 MB");
        refused(&page(0, 64 << 20, 3, 0, &[1; 12]), zstd, "cannot be unpacked");
        refused(&page(0, 64 << 20, 3, 0, &[1; 12]), Compression::SNAPPY, "cannot be unpacked");
        refused(&page(0, 64 << 20, 3, 0, &[1; 12]), Compression::LZ4_RAW, "cannot be unpacked");
        refused(&page(0, 12, 3, 0, &[1; 12]), Compression::LZO, "snappy, gzip, zstd and lz4_raw");
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut bomb, &vec![0; 8 << 20]).unwrap();
        refused(&page(0, 12, 3, 0, &bomb.finish().unwrap()), gzip, "cannot be unpacked");
        refused(&page(0, 12, 4, 0, &[1; 12]), Compression::UNCOMPRESSED, "more values than there are rows");
        refused(&page(2, 12, 0x7fff_ffff, 0, &[1; 12]), Compression::UNCOMPRESSED, "dictionary is broken");
        refused(&page(0, 12, 3, 8, &[1; 12]), Compression::UNCOMPRESSED, "there is none");
        refused(&page(0, 12, 3, 77, &[1; 12]), Compression::UNCOMPRESSED, "unknown encoding");
        refused(&good[..good.len() - 1], Compression::UNCOMPRESSED, "longer than its column");
        // 2^40 lengths in five bytes.
        let lengths = [vec![0x80, 0x01, 4], varint(1 << 40), vec![0]].concat();
        refused(&page(0, 12, 3, 6, &lengths), Compression::UNCOMPRESSED, "lengths of a page");
        refused(&page(0, 12, 3, 7, &lengths), Compression::UNCOMPRESSED, "lengths of a page");
        for cut in 1..good.len() - 12 {
            refused(&good[..cut], Compression::UNCOMPRESSED, "header of a page");
        }
    }
}
