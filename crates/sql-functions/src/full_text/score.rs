//! BM25: how well a text fits a term, by how often it has the term, how long it is, and how rare the term is.
//!
//! The two constants are the usual ones; the service documents none, and the recorded rankings do not tell (unsure).

/// How soon further occurrences of a term stop counting.
const SATURATION: f64 = 1.2;
/// How much a longer text counts for less, from 0 (not at all) to 1.
const LENGTH_WEIGHT: f64 = 0.75;

/// What is known about all texts together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorpusStatistics {
    /// How many documents there are.
    pub document_count: f64,
    /// How many words all texts have together.
    pub word_count: f64,
}

/// The part of the score that one term gives.
///
/// `hit_count` is the number of documents that have the term, `found` how often this one does, `length` its words.
pub fn bm25(statistics: &CorpusStatistics, hit_count: f64, found: usize, length: usize) -> f64 {
    if found == 0 {
        return 0.0;
    }
    let documents = statistics.document_count.max(1.0);
    let hits = hit_count.clamp(0.0, documents);
    let rarity = (1.0 + (documents - hits + 0.5) / (hits + 0.5)).ln();
    let average_length = (statistics.word_count / documents).max(1.0);
    let relative_length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length as f64 / average_length;
    let found = found as f64;
    rarity * found * (SATURATION + 1.0) / (found + SATURATION * relative_length)
}
