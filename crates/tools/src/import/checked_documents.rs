//! Rows of a file that was read to its end before anything is written: the first of them, so that they need not be read again.
//!
//! In: rows in their order. Out: the same rows, until they fill the memory that there is for them; the rest has to be read again.
//! Rows stand packed in blocks, since each by itself would need as much memory again as a short document has. The text of a document is
//! a part of its block, which is given back when the last of its documents has been written.

use super::ReadRow;
use crate::check::PreparedDocument;
use astrarium_partition::EffectiveKey;
use astrarium_rows::BadRow;
use bytes::{Buf as _, BufMut as _, Bytes};

/// Bytes of a block, unless a single row has more.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of all rows that are kept.
const KEPT_BYTES_MAX: usize = 128 << 20;

/// The first rows of a file.
#[derive(Debug, Default)]
pub(super) struct CheckedDocuments {
    blocks: Vec<Bytes>,
    last: Vec<u8>,
    bytes: usize,
    /// The number of the last row that is kept.
    pub(super) until: u64,
    /// Whether rows came after it.
    pub(super) is_full: bool,
}

impl CheckedDocuments {
    /// Keeps a row, unless there is no room for it or there was none for an earlier one.
    pub(super) fn push(&mut self, row: &ReadRow) {
        let bytes = packed_bytes(row);
        self.is_full |= self.bytes + bytes > KEPT_BYTES_MAX;
        if self.is_full {
            return;
        }
        if self.last.len() + bytes > self.last.capacity() {
            self.end_block();
            self.last.reserve_exact(bytes.max(BLOCK_BYTES));
        }
        pack(row, &mut self.last);
        (self.bytes, self.until) = (self.bytes + bytes, row.0);
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn end_block(&mut self) {
        if !self.last.is_empty() {
            self.blocks.push(std::mem::take(&mut self.last).into());
        }
    }

    /// The rows, each with the bytes up to its end.
    pub(super) fn into_rows(mut self) -> impl Iterator<Item = (ReadRow, usize)> {
        self.end_block();
        let mut bytes = 0;
        self.blocks.into_iter().flat_map(move |mut block| {
            let rows: Vec<(ReadRow, usize)> = std::iter::from_fn(|| {
                let before = block.len();
                let row = (before > 0).then(|| unpack(&mut block))?;
                bytes += before - block.len();
                Some((row, bytes))
            })
            .collect();
            rows
        })
    }
}

/// Bytes of a row as [`pack`] writes it.
fn packed_bytes((_, row): &ReadRow) -> usize {
    match row {
        Ok(document) => 33 + document.key.len() + document.effective.as_bytes().len() + document.body.len(),
        Err(bad) => 25 + bad.reason.len() + bad.raw.len(),
    }
}

fn pack((number, row): &ReadRow, out: &mut Vec<u8>) {
    out.put_u64(*number);
    out.put_u8(u8::from(row.is_ok()));
    match row {
        Ok(document) => {
            put(document.key.as_bytes(), out);
            put(document.effective.as_bytes(), out);
            put(&document.body, out);
        }
        Err(bad) => {
            put(bad.reason.as_bytes(), out);
            put(&bad.raw, out);
        }
    }
}

/// Takes the first row of a block, which [`pack`] has written.
fn unpack(block: &mut Bytes) -> ReadRow {
    let number = block.get_u64();
    if block.get_u8() == 0 {
        let (reason, raw) = (take_text(block), take(block).to_vec());
        return (number, Err(BadRow { reason, raw }));
    }
    let key = take_text(block);
    let effective = EffectiveKey::from_bytes(take(block).to_vec());
    (number, Ok(PreparedDocument { number, body: take(block), key, effective }))
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.put_u64(bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take(block: &mut Bytes) -> Bytes {
    let length = block.get_u64();
    block.split_to(length as usize)
}

fn take_text(block: &mut Bytes) -> String {
    String::from_utf8_lossy(&take(block)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, length: usize) -> ReadRow {
        if number.is_multiple_of(7) {
            return (number, Err(BadRow::new(format!("bad {number}"), &vec![b'x'; length])));
        }
        let document = PreparedDocument {
            number,
            body: Bytes::from(vec![b'a' + (number % 26) as u8; length]),
            key: format!("[\"{number}\"]"),
            effective: EffectiveKey::from_bytes(number.to_be_bytes().to_vec()),
        };
        (number, Ok(document))
    }

    fn shown((number, row): &ReadRow) -> String {
        match row {
            Ok(made) => format!("{number} {} {:?} {:?}", made.key, made.effective, made.body),
            Err(bad) => format!("{number} {bad:?}"),
        }
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let rows: Vec<ReadRow> =
            (1..=3_000).map(|number| row(number, (number as usize * 31) % 2_000)).collect();
        let mut kept = CheckedDocuments::default();
        for row in &rows {
            kept.push(row);
        }
        assert_eq!((kept.until, kept.is_full), (3_000, false));
        let bytes = kept.bytes();
        let back: Vec<(ReadRow, usize)> = kept.into_rows().collect();
        assert_eq!(back.last().map(|(_, until)| *until), Some(bytes));
        assert!(back.iter().map(|(row, _)| shown(row)).eq(rows.iter().map(shown)));
        assert_eq!(CheckedDocuments::default().into_rows().count(), 0);
    }

    #[test]
    fn what_is_beyond_the_memory_is_left() {
        let mut kept = CheckedDocuments::default();
        for number in 1..=40 {
            kept.push(&row(number, 4 << 20));
        }
        // A short row afterwards would leave a gap.
        kept.push(&row(41, 1));
        assert!(kept.is_full && kept.bytes() <= KEPT_BYTES_MAX, "{} bytes", kept.bytes());
        assert_eq!(kept.until, 31);
        assert_eq!(kept.into_rows().count(), 31);
    }
}
