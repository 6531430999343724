//! The frame around the rows of a stream: a segment row at the beginning, and before each record its length and checksum.
//!
//! In: a body. Out: the bytes of its records, each checked; and the reverse. A segment may be longer than what is needed
//! here, and another one may follow; both are skipped by the length that they state.
//! Not here: what the records are (`hybrid_row`).

use super::{ByteCursor, FIRST_BYTE, RowError};

const SEGMENT_SCHEMA: i32 = 2_147_473_648;
const RECORD_SCHEMA: i32 = 2_147_473_649;
/// Bytes of a segment that holds only its own length.
const SEGMENT_LENGTH: u8 = 10;

/// The records of a stream; nothing follows an error.
pub fn records(stream: &[u8]) -> impl Iterator<Item = Result<&[u8], RowError>> {
    let mut cursor = ByteCursor::new(stream);
    let mut is_started = false;
    let mut is_over = false;
    std::iter::from_fn(move || {
        while !is_over {
            if is_started && cursor.is_at_end() {
                return None;
            }
            match next(&mut cursor, is_started) {
                Ok(None) => is_started = true,
                Ok(Some(record)) => return Some(Ok(record)),
                Err(error) => {
                    is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    })
}

/// Reads a record, or `None` for a segment, with which a stream must start.
fn next<'a>(cursor: &mut ByteCursor<'a>, is_started: bool) -> Result<Option<&'a [u8]>, RowError> {
    match cursor.header()? {
        SEGMENT_SCHEMA => {
            let has_length = cursor.byte()? & 1 == 1;
            let length = usize::try_from(cursor.int32()?).ok().filter(|_| has_length);
            let rest = length.and_then(|length| length.checked_sub(SEGMENT_LENGTH.into()));
            cursor.take(rest.ok_or_else(|| cursor.error("a segment without its length"))?)?;
            Ok(None)
        }
        RECORD_SCHEMA if is_started => {
            let length = usize::try_from(cursor.int32()?).unwrap_or(usize::MAX);
            let checksum = u32::from_le_bytes(cursor.array()?);
            let record = cursor.take(length)?;
            if crc32fast::hash(record) != checksum {
                return Err(cursor.error("a record with a wrong checksum"));
            }
            Ok(Some(record))
        }
        _ => Err(cursor.error("neither segment nor record")),
    }
}

/// Begins a stream.
pub fn write_segment(stream: &mut Vec<u8>) {
    stream.push(FIRST_BYTE);
    stream.extend_from_slice(&SEGMENT_SCHEMA.to_le_bytes());
    // The presence bit of the length, then the length.
    stream.push(1);
    stream.extend_from_slice(&i32::from(SEGMENT_LENGTH).to_le_bytes());
}

/// Appends a record; it must be shorter than 2 GiB, far more than a response holds.
pub fn write_record(record: &[u8], stream: &mut Vec<u8>) {
    let length = i32::try_from(record.len()).expect("a record of less than 2 GiB");
    stream.push(FIRST_BYTE);
    stream.extend_from_slice(&RECORD_SCHEMA.to_le_bytes());
    stream.extend_from_slice(&length.to_le_bytes());
    stream.extend_from_slice(&crc32fast::hash(record).to_le_bytes());
    stream.extend_from_slice(record);
}
