//! Request charges: the published prices of point operations by size, and nothing else knows a price.
//!
//! The table is the service's of 2026 (session or weaker consistency, without index terms), linear between its
//! columns. Index terms and queries are priced with the work they count, by the issues that bring them.

/// Kilobytes, price of a read, price of a write.
const TABLE: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.00),
    (2048.0, 291.80, 1250.00),
];

/// What a page costs at least, also an empty one.
const PAGE_CHARGE_MIN: f64 = 1.0;

/// The price of reading a document of this many bytes.
pub fn read_charge(bytes: usize) -> f64 {
    price(bytes, |row| row.1)
}

/// The price of writing a document of this many bytes, before index terms.
pub fn write_charge(bytes: usize) -> f64 {
    price(bytes, |row| row.2)
}

/// What a page of a query did, as far as it is priced.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueryWork {
    /// Index entries read.
    pub(crate) entries: u64,
    /// Documents read.
    pub(crate) documents: u64,
    /// Bytes of those.
    pub(crate) document_bytes: u64,
    /// Bytes of rows given.
    pub(crate) output_bytes: u64,
}

/// The seek of the first page.
const SEEK_CHARGE: f64 = 2.25;

/// The price of a page of a query: a seek for the first page, then what is looked at (index entries, documents, their
/// bytes) and what is given. Where every page looks at everything, only the first pays for that; the others cost the least
/// that a page costs, unless they give much.
pub(crate) fn query_charge(first: bool, incremental: bool, work: QueryWork) -> f64 {
    // Entries that have to be sorted are read again by every page; the first pays for them.
    let work = QueryWork { entries: if first { work.entries } else { 0 }, ..work };
    let is_free = !first && !incremental;
    let work =
        if is_free { QueryWork { output_bytes: work.output_bytes, ..QueryWork::default() } } else { work };
    let exact = if first { SEEK_CHARGE } else { 0.0 } + work_charge(work);
    ((exact * 100.0).round() / 100.0).max(PAGE_CHARGE_MIN)
}

/// The price of a part of a page: of an operator, where a query is explained.
pub(crate) fn work_charge(work: QueryWork) -> f64 {
    let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
    0.000_5 * work.entries as f64
        + 0.02 * work.documents as f64
        + 0.01 * kilobytes(work.document_bytes)
        + 0.05 * kilobytes(work.output_bytes)
}

fn price(bytes: usize, column: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let kilobytes = bytes as f64 / 1024.0;
    let above = TABLE.partition_point(|row| row.0 < kilobytes);
    let exact = match above {
        0 => column(&TABLE[0]),
        12 => column(&TABLE[11]) * kilobytes / TABLE[11].0,
        _ => {
            let (low, high) = (&TABLE[above - 1], &TABLE[above]);
            let part = (kilobytes - low.0) / (high.0 - low.0);
            column(low) + part * (column(high) - column(low))
        }
    };
    (exact * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_the_published_ones_and_linear_between() {
        let check = |bytes: usize, read: f64, write: f64| {
            assert_eq!((read_charge(bytes), write_charge(bytes)), (read, write), "{bytes} bytes");
        };
        check(0, 1.0, 4.95);
        check(1024, 1.0, 4.95);
        check(1536, 1.02, 5.62);
        check(2048, 1.04, 6.29);
        check(512 << 10, 40.95, 184.57);
        check(2 << 20, 291.8, 1250.0);
    }
}
