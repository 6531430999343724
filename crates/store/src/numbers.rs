//! Numbers of documents in either direction, for reading in an order that no index has.

use crate::Error;
use crate::scoped::{FeedError, FeedReader};
use astrarium_catalog::container::Range;
use astrarium_keys::number;
use astrarium_kv::{Direction, KeyRange, ScanLimit, Space};

impl FeedReader {
    /// Numbers of a range's documents from one on, upwards or downwards, up to so many; those of expired ones too.
    /// Fewer only at the end.
    pub async fn numbers(
        &self,
        range: &Range,
        first: u64,
        direction: Direction,
        count_max: usize,
    ) -> Result<Vec<u64>, FeedError> {
        let shard = range.shard.0;
        let mut keys = KeyRange::prefix(&number::number_prefix(shard));
        match direction {
            Direction::Forward => keys.start = number::number_key(shard, first),
            Direction::Backward => {
                if let Some(beyond) = first.checked_add(1) {
                    keys.end = number::number_key(shard, beyond);
                }
            }
        }
        let limit = ScanLimit { entry_count_max: count_max, byte_count_max: usize::MAX };
        let batch =
            self.view(range.shard)?.scan(Space::Log, &keys, direction, limit).await.map_err(Error::from)?;
        let numbers = batch.entries.iter().map(|(key, _)| number::read_number(key));
        Ok(numbers.collect::<Result<Vec<u64>, _>>().map_err(Error::from)?)
    }
}
