//! The cost model: what the parts of a plan cost, in nanoseconds of one core. All constants of the choice stand here.
//!
//! In: how many documents and entries there are (`Postings`). Out: the time it takes to give so many rows by way of them.
//! The constants are times of the embedded engine with warm caches, documents of 1 KB, rounded; decision 0018 has the
//! measurement. Only their ratios count: a choice changes where one way costs a multiple of another.
//! Invariant: a cost decides how fast an answer comes, never which answer.

/// Reads one document by its number: its key from the directory, then its body. Order of insertion costs the same.
pub const DOCUMENT_BY_NUMBER: u64 = 2_800;
/// Reads one document of a scan in order of keys, many at once.
pub const DOCUMENT_IN_SCAN: u64 = 1_900;
/// Reads one index entry and puts its document's number in order.
pub const ENTRY: u64 = 55;
/// Gallops to the next document in the postings of another term.
pub const GALLOP: u64 = 900;
/// Plans that take less are not compared: looking for a better one would cost as much.
pub const NEGLIGIBLE: u64 = 1_000_000;

/// Looks up how many entries a condition has, or opens its postings.
pub const LOOKUP: u64 = 7_000;
/// Documents of the whole container that are read without asking how many of a partition there are: the answer would cost as much.
pub const FEW_DOCUMENTS: u64 = 4;
/// Entries of a range that are put in order at most: a bound on memory.
pub const SORTED_ENTRIES_MAX: u64 = 4_000_000;
/// Documents of a range whose numbers are listed at most to find those without a path: a bound on memory.
pub const LISTED_MAX: u64 = 2_000_000;

/// Postings that are read together: the documents in all of them are candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Postings {
    /// The share of documents that are candidates.
    share: f64,
    /// Documents of the smallest of them, which leads.
    smallest: f64,
    /// Entries that are read and put in order before the first candidate is known.
    sorted: f64,
    /// Entries of those that follow the smallest by galloping.
    following: f64,
    /// How many follow.
    follower_count: f64,
}

/// What a page asks of a range of documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wish {
    /// Documents of the range.
    pub(crate) documents: f64,
    /// Documents that pass the filter.
    pub(crate) matching: f64,
    /// Rows that the page needs.
    pub(crate) rows: f64,
}

impl Postings {
    /// One list of postings: so many documents of so many, after so many entries were put in order.
    pub(crate) fn one(documents: u64, sorted: u64, all: u64) -> Postings {
        Postings {
            share: share(documents, all),
            smallest: documents as f64,
            sorted: sorted as f64,
            following: 0.0,
            follower_count: 0.0,
        }
    }

    /// The same together with a list that is not smaller. Conditions are taken to be independent.
    pub(crate) fn and(self, documents: u64, sorted: u64, all: u64) -> Postings {
        Postings {
            share: self.share * share(documents, all),
            smallest: self.smallest,
            sorted: self.sorted + sorted as f64,
            following: self.following + documents as f64,
            follower_count: self.follower_count + 1.0,
        }
    }

    /// Documents that are in all of them.
    pub(crate) fn candidates(&self, documents: u64) -> u64 {
        (self.share * documents as f64).round() as u64
    }

    /// What the rows of a page cost by way of these postings.
    pub(crate) fn cost(&self, wish: &Wish) -> f64 {
        // What is known of all conditions together counts more than their independence.
        let candidates = (self.share * wish.documents).max(wish.matching);
        let looked_at = candidates.min(wish.rows * candidates / wish.matching.max(1.0));
        let led = self.smallest.min(looked_at * self.smallest / candidates.max(1.0));
        self.reading(led) + looked_at * DOCUMENT_BY_NUMBER as f64
    }

    /// What it costs to read all of them, without documents.
    pub(crate) fn entries_cost(&self) -> f64 {
        self.reading(self.smallest)
    }

    /// What the entries cost of which so many lead.
    fn reading(&self, led: f64) -> f64 {
        let galloping = (led * self.follower_count * GALLOP as f64).min(self.following * ENTRY as f64);
        (self.sorted + led) * ENTRY as f64 + galloping
    }
}

impl Wish {
    /// What the rows of a page cost when documents are read in order of insertion until there are enough.
    pub(crate) fn in_order_of_insertion(&self, scope: u64) -> f64 {
        let scope = scope as f64;
        scope.min(self.rows * scope / self.matching.max(1.0)) * DOCUMENT_BY_NUMBER as f64
    }
}

/// Whether reading a scope costs no more than finding out how so many conditions are served by indexes.
pub(crate) fn is_small(scope: u64, condition_count: usize) -> bool {
    scan(scope) <= (LOOKUP * (condition_count as u64 + 1)) as f64
}

/// What it costs to look at all documents of a scope, in any order.
pub(crate) fn scan(scope: u64) -> f64 {
    scope as f64 * DOCUMENT_IN_SCAN as f64
}

fn share(documents: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { (documents as f64 / all as f64).min(1.0) }
}
