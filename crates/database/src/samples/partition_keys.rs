//! The partition keys that most documents have, as far as a sample tells.

use super::RANGES_MAX;
use crate::{DocumentsHandle, Error};
use astrarium_env::yield_if_due;
use astrarium_partition::{EffectiveKey, PartitionKey};
use astrarium_value::json::Text;
use std::collections::BTreeMap;

/// Documents of a sample for partition keys, and their bytes.
const DOCUMENTS_MAX: usize = 8_000;
const BYTES_MAX: usize = 16 << 20;
/// Keys that are told.
const KEYS_MAX: usize = 20;

/// What a sample tells of the partition keys of a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledKeys {
    /// How many documents were looked at.
    pub sampled: u64,
    /// How many there are in the ranges that were looked at.
    pub documents: u64,
    /// Whether ranges were left out, because there are too many.
    pub is_partial: bool,
    /// The keys with most documents, as estimated, those with most of them first.
    pub keys: Vec<SampledKey>,
}

/// A partition key of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledKey {
    /// Its value.
    pub key: PartitionKey,
    /// The id of the range that it belongs to.
    pub range_id: u32,
    /// Documents of the sample that have it.
    pub sampled: u64,
    /// About how many documents have it: its share of the range's sample, of the range's documents.
    pub documents: u64,
    /// About how many bytes they are.
    pub bytes: u64,
}

impl DocumentsHandle<'_> {
    /// The partition keys with most documents, as far as a bounded sample of each range tells.
    pub async fn sampled_keys(self) -> Result<SampledKeys, Error> {
        let (ranges, definition) = (&self.container.ranges, &self.container.definition.partition_key);
        let mut found = SampledKeys { is_partial: ranges.len() > RANGES_MAX, ..SampledKeys::default() };
        for sample in self.range_samples(DOCUMENTS_MAX, BYTES_MAX).await? {
            let mut keys = Vec::with_capacity(sample.documents.len());
            for body in &sample.documents {
                yield_if_due().await;
                if let Ok(text) = Text::parse(body.text()) {
                    let key = definition.extract(text.root());
                    keys.push((definition.effective(&key), key, body.text().len() as u64));
                }
            }
            let sampled = keys.len() as u64;
            found.sampled += sampled;
            found.documents += sample.usage.documents;
            let whole = |part: u64| {
                (part as f64 * sample.usage.documents as f64 / sampled.max(1) as f64).round() as u64
            };
            found.keys.extend(counted(keys).into_iter().map(|(key, count, bytes)| SampledKey {
                key,
                range_id: sample.range_id,
                sampled: count,
                documents: whole(count),
                bytes: whole(bytes),
            }));
        }
        found
            .keys
            .sort_by(|left, right| right.documents.cmp(&left.documents).then(right.bytes.cmp(&left.bytes)));
        found.keys.truncate(KEYS_MAX);
        Ok(found)
    }
}

/// The keys of a range's sample, each with the number of its documents and their bytes.
fn counted(keys: Vec<(EffectiveKey, PartitionKey, u64)>) -> Vec<(PartitionKey, u64, u64)> {
    let mut counts = BTreeMap::new();
    for (effective, key, bytes) in keys {
        let count = counts.entry(effective).or_insert((key, 0, 0));
        count.1 += 1;
        count.2 += bytes;
    }
    counts.into_values().collect()
}
