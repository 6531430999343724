//! Request charges: what operations cost. Nothing else knows a price.
//!
//! In: what an operation did, counted where it was done: sizes of documents, index terms, documents that a query passed over.
//! Out: request units. The prices are a [`PriceProfile`]; decision 0025 tells where they come from, `docs/request-units.md` what
//! follows from them.
//! Invariant: a charge follows from the data and the request alone, never from the engine, the machine, a cache or the plan
//! that was chosen.

/// Prices, in request units.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceProfile {
    /// What the prices are called; other prices have another name.
    pub version: &'static str,
    /// Kilobytes, price of a read, price of a write; linear between them.
    pub sizes: [(f64, f64, f64); 12],
    /// An index term that comes or goes; so is a unique key. The service's charges are multiples of it: 26 for the first kilobyte.
    pub index_term: f64,
    /// An operation of a patch, beside the replacement.
    pub patch_operation: f64,
    /// A run of a script, beside what it does.
    pub script: f64,
    /// A page of a feed, at least.
    pub feed_page: f64,
    /// An operation that fails, at least.
    pub failure: f64,
    /// How much more a read costs at strong consistency and bounded staleness.
    pub strict_read_factor: f64,
    /// The parts of a query.
    pub query: QueryPrices,
}

/// Prices of what a query does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryPrices {
    /// Beginning in a key range.
    pub range: f64,
    /// A value or a range of values that is looked up in an index.
    pub seek: f64,
    /// An entry of a path all of whose entries are read.
    pub scanned_entry: f64,
    /// A document that meets what the indexes tell of the filter; every document where they tell nothing.
    pub document: f64,
    /// A kilobyte of such documents.
    pub document_kilobyte: f64,
    /// A kilobyte of rows.
    pub output_kilobyte: f64,
    /// A page, at least.
    pub page_min: f64,
}

/// The service's published prices of 2026 (session consistency or weaker); those of queries are calibrated with its worked
/// examples.
const PROFILE: PriceProfile = PriceProfile {
    version: "2026-04",
    sizes: [
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
    ],
    index_term: 4.0 / 21.0,
    patch_operation: 0.4,
    script: 1.0,
    feed_page: 1.0,
    failure: 1.0,
    strict_read_factor: 2.0,
    query: QueryPrices {
        range: 2.15,
        seek: 0.4,
        scanned_entry: 0.01,
        document: 0.105,
        document_kilobyte: 0.03,
        output_kilobyte: 0.03,
        page_min: 1.0,
    },
};

impl PriceProfile {
    /// The prices in force.
    pub const CURRENT: &'static PriceProfile = &PROFILE;

    /// The price of reading a document of this many bytes.
    pub fn read(&self, bytes: usize) -> f64 {
        self.by_size(bytes, |row| row.1)
    }

    /// The price of writing a document of this many bytes, before index terms.
    pub fn write(&self, bytes: usize) -> f64 {
        self.by_size(bytes, |row| row.2)
    }

    fn by_size(&self, bytes: usize, column: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
        let kilobytes = kilobytes(bytes as u64);
        let sizes = &self.sizes;
        let above = sizes.partition_point(|row| row.0 < kilobytes);
        let exact = match above {
            0 => column(&sizes[0]),
            12 => column(&sizes[11]) * kilobytes / sizes[11].0,
            _ => {
                let (low, high) = (&sizes[above - 1], &sizes[above]);
                let part = (kilobytes - low.0) / (high.0 - low.0);
                column(low) + part * (column(high) - column(low))
            }
        };
        hundredths(exact)
    }
}

/// What an operation that fails costs at least.
pub const FAILURE_CHARGE: f64 = PROFILE.failure;

/// By how much a read costs more at strong consistency and bounded staleness, where two replicas are asked.
pub fn read_factor(is_strict: bool) -> f64 {
    if is_strict { PROFILE.strict_read_factor } else { 1.0 }
}

/// The price of reading a document of this many bytes.
pub(crate) fn read_charge(bytes: usize) -> f64 {
    PROFILE.read(bytes)
}

/// The price of writing a document of this many bytes, before index terms.
pub(crate) fn write_charge(bytes: usize) -> f64 {
    PROFILE.write(bytes)
}

/// The price of index terms that come and go.
pub(crate) fn terms_charge(terms: u64) -> f64 {
    hundredths(PROFILE.index_term * terms as f64)
}

/// The price of a page of a feed that gives documents of these sizes: what a query pays for the same documents and rows, and the least
/// that a page costs.
pub(crate) fn feed_charge(sizes: impl Iterator<Item = usize>) -> f64 {
    let prices = &PROFILE.query;
    let (mut documents, mut bytes) = (0_u64, 0_u64);
    for size in sizes {
        documents += 1;
        bytes += size as u64;
    }
    let kilobyte = prices.document_kilobyte + prices.output_kilobyte;
    hundredths(prices.document * documents as f64 + kilobyte * kilobytes(bytes)).max(PROFILE.feed_page)
}

/// The price of the operations of a patch, beside that of the replacement.
pub(crate) fn patch_charge(operations: usize) -> f64 {
    PROFILE.patch_operation * operations as f64
}

/// The price of running a script, beside that of what it does.
pub(crate) fn script_charge() -> f64 {
    PROFILE.script
}

/// What a page of a query did, as far as it is priced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QueryWork {
    /// Key ranges that it begins in.
    pub(crate) ranges: u64,
    /// Values and ranges of values looked up in indexes, in each of those.
    pub(crate) seeks: u64,
    /// Entries of paths all of whose entries are read.
    pub(crate) scanned_entries: u64,
    /// Documents that meet what indexes tell of the filter.
    pub(crate) documents: u64,
    /// Bytes of those.
    pub(crate) document_bytes: u64,
    /// Bytes of rows given.
    pub(crate) output_bytes: u64,
}

/// The price of a page of a query. The first pays for what is done once; otherwise pages pay for what is theirs, so that their
/// sum is the price of the whole, except that every page has a least price, as on the service.
pub(crate) fn query_charge(work: QueryWork) -> f64 {
    let prices = &PROFILE.query;
    let beginning = work.ranges as f64 * (prices.range + prices.seek * work.seeks as f64)
        + prices.scanned_entry * work.scanned_entries as f64;
    let going_on = prices.document * work.documents as f64
        + prices.document_kilobyte * kilobytes(work.document_bytes)
        + prices.output_kilobyte * kilobytes(work.output_bytes);
    hundredths(beginning + going_on).max(prices.page_min)
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn hundredths(charge: f64) -> f64 {
    (charge * 100.0).round() / 100.0
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

    /// The published examples, which round the price of a kilobyte to 5.0 and that of a term to 0.2.
    #[test]
    fn writes_cost_what_the_examples_say() {
        let check = |charge: f64, published: f64| {
            assert!((charge / published - 1.0).abs() < 0.03, "{charge} and not about {published}");
        };
        let kilobyte = write_charge(1024);
        check(kilobyte + terms_charge(10), 7.0);
        check(2.0 * kilobyte + terms_charge(2 + 2), 10.8);
        check(2.0 * kilobyte + terms_charge(2 + 2) + patch_charge(2), 11.6);
    }

    /// A hundred tiny documents are more than a unit and well under 25, in the tests of the Java SDK.
    #[test]
    fn a_page_of_a_feed_costs_about_what_a_query_does() {
        let page = feed_charge(std::iter::repeat_n(60, 100));
        let work =
            QueryWork { documents: 100, document_bytes: 6_000, output_bytes: 6_000, ..QueryWork::default() };
        assert!((page - query_charge(work)).abs() < 0.011 && (2.0..20.0).contains(&page), "{page}");
        assert!((feed_charge(std::iter::empty()) - 1.0).abs() < 1e-9);
        assert!((feed_charge([100].into_iter()) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn queries_cost_what_the_examples_say() {
        let check = |work: QueryWork, low: f64, high: f64| {
            let charge = query_charge(work);
            assert!((low..=high).contains(&charge), "{charge} and not from {low} to {high}");
        };
        let one = |bytes: u64| QueryWork {
            ranges: 1,
            seeks: 1,
            documents: 1,
            document_bytes: bytes,
            output_bytes: bytes + 49,
            ..QueryWork::default()
        };
        check(one(1024), 2.5, 2.9);
        check(one(9_963), 0.85 * 3.19, 1.15 * 3.19);
        check(QueryWork::default(), 1.0, 1.0);
        // A later page of few rows.
        check(QueryWork { documents: 2, document_bytes: 600, ..QueryWork::default() }, 1.0, 1.0);
    }
}
