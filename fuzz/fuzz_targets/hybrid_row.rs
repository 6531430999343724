//! Binary rows of batches: any bytes are read or refused, as a stream and as rows in a right frame; what is read can be
//! written, and then reads the same.

use astrarium_wire::batch;
use astrarium_wire::hybrid_row::record_io::{write_record, write_segment};
use astrarium_wire::hybrid_row::{
    FIRST_BYTE, read_operations, read_results, write_operations, write_results,
};

/// The beginnings of rows of the two schemas.
const OPERATION: [u8; 5] = [FIRST_BYTE, 0x70, 0x54, 0xE1, 0x7F];
const RESULT: [u8; 5] = [FIRST_BYTE, 0x71, 0x54, 0xE1, 0x7F];

pub(crate) fn run(bytes: &[u8]) {
    check(bytes);
    // Checksums and the first bytes of rows are not worth guessing: the bytes are the rest of two rows.
    let (one, other) = bytes.split_at(bytes.len() / 2);
    for header in [OPERATION, RESULT] {
        let mut stream = Vec::new();
        write_segment(&mut stream);
        for rest in [one, other, bytes] {
            write_record(&[&header, rest].concat(), &mut stream);
        }
        check(&stream);
    }
}

fn check(stream: &[u8]) {
    if let Ok(batch) = batch::parse(stream) {
        assert!((1..=batch::OPERATIONS_MAX).contains(&batch.operations.len()));
    }
    if let Ok(rows) = read_operations(stream).collect::<Result<Vec<_>, _>>() {
        let written = write_operations(&rows);
        assert_eq!(read_operations(&written).collect::<Result<Vec<_>, _>>(), Ok(rows));
    }
    if let Ok(rows) = read_results(stream).collect::<Result<Vec<_>, _>>() {
        // Compared as bytes, since a charge may be no number.
        let written = write_results(&rows);
        let again: Vec<_> = read_results(&written).map(|row| row.expect("a row that was written")).collect();
        assert_eq!(write_results(&again), written);
    }
}
