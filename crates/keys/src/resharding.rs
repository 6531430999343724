//! The state of making new key ranges of a container's, in space `Meta`: `0B | container rid` -> [`ReshardingRecord`].
//!
//! Written by commits of the catalog only. Without one the container's ranges are what is wanted.

use crate::record::KeyRangeRow;
use crate::{Malformed, Rid, tags};
use bytes::{Buf as _, BufMut as _, Bytes};

const FORMAT: u8 = 1;

/// What is wanted of a container's ranges, and how far that is: `version (8, filled in by the engine) | format 1 | goal (1) | its two
/// numbers (4, 4) | stage (1) | number (8) | count of sources (2) | their ids (4 each) | targets` (as [`KeyRangeRow`]s).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReshardingRecord {
    /// The commit of the catalog that wrote it.
    pub version: u64,
    /// What is wanted.
    pub goal: ReshardingGoal,
    /// What is being done for it at present.
    pub work: Option<ReshardingWork>,
}

/// What is wanted of a container's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReshardingGoal {
    /// So many at least.
    Count(u32),
    /// That one is split.
    Split(u32),
    /// That two neighbours are one, the lower one first.
    Merge(u32, u32),
}

/// Ranges that are copied into new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReshardingWork {
    /// A number that no other resharding has.
    pub number: u64,
    /// Whether the sources take no more writes, because the rest is copied.
    pub is_closed: bool,
    /// The ids of the ranges that are copied, in order of their keys.
    pub sources: Vec<u32>,
    /// The ranges that take their place.
    pub targets: Vec<KeyRangeRow>,
}

impl ReshardingRecord {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(128);
        bytes.put_u64(self.version);
        bytes.put_u8(FORMAT);
        let (goal, first, second) = match self.goal {
            ReshardingGoal::Count(count) => (1, count, 0),
            ReshardingGoal::Split(id) => (2, id, 0),
            ReshardingGoal::Merge(low, high) => (3, low, high),
        };
        bytes.put_u8(goal);
        bytes.put_u32(first);
        bytes.put_u32(second);
        bytes.put_u8(match &self.work {
            None => 0,
            Some(work) if !work.is_closed => 1,
            Some(_) => 2,
        });
        if let Some(work) = &self.work {
            bytes.put_u64(work.number);
            bytes.put_u16(work.sources.len() as u16);
            work.sources.iter().for_each(|id| bytes.put_u32(*id));
            bytes.put_slice(&KeyRangeRow::encode_all(&work.targets));
        }
        bytes.into()
    }

    /// Reads what the engine stores.
    pub fn decode(mut bytes: &[u8]) -> Result<ReshardingRecord, Malformed> {
        let malformed = || Malformed::new("resharding of a container");
        let version = bytes.try_get_u64().map_err(|_| malformed())?;
        if bytes.try_get_u8().map_err(|_| malformed())? != FORMAT {
            return Err(malformed());
        }
        let goal = bytes.try_get_u8().map_err(|_| malformed())?;
        let first = bytes.try_get_u32().map_err(|_| malformed())?;
        let second = bytes.try_get_u32().map_err(|_| malformed())?;
        let goal = match goal {
            1 => ReshardingGoal::Count(first),
            2 => ReshardingGoal::Split(first),
            3 => ReshardingGoal::Merge(first, second),
            _ => return Err(malformed()),
        };
        let is_closed = match bytes.try_get_u8().map_err(|_| malformed())? {
            0 if bytes.is_empty() => return Ok(ReshardingRecord { version, goal, work: None }),
            1 => false,
            2 => true,
            _ => return Err(malformed()),
        };
        let number = bytes.try_get_u64().map_err(|_| malformed())?;
        let count = bytes.try_get_u16().map_err(|_| malformed())?;
        let sources =
            (0..count).map(|_| bytes.try_get_u32().map_err(|_| malformed())).collect::<Result<_, _>>()?;
        let targets = KeyRangeRow::decode_all(bytes)?;
        Ok(ReshardingRecord {
            version,
            goal,
            work: Some(ReshardingWork { number, is_closed, sources, targets }),
        })
    }
}

/// The key of a container's record.
pub fn resharding_key(container: Rid) -> Bytes {
    let mut key = vec![tags::meta::RESHARDING];
    key.extend_from_slice(container.as_bytes());
    key.into()
}

/// The container's rid in the key of its record.
pub fn read_resharding_key(key: &[u8]) -> Result<Rid, Malformed> {
    let malformed = || Malformed::new("key of a resharding");
    Rid::from_bytes(key.get(1..).ok_or_else(malformed)?).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_other_bytes_are_refused() {
        let target = |id: u32| KeyRangeRow {
            id,
            shard: 70,
            min: vec![1],
            max: vec![0xFF],
            parents: vec![0, 2],
            is_merged: id > 6,
        };
        for goal in [ReshardingGoal::Count(4), ReshardingGoal::Split(3), ReshardingGoal::Merge(1, 2)] {
            for work in [
                None,
                Some(ReshardingWork {
                    number: 9,
                    is_closed: false,
                    sources: vec![2],
                    targets: vec![target(5), target(6)],
                }),
                Some(ReshardingWork {
                    number: 9,
                    is_closed: true,
                    sources: vec![2, 7],
                    targets: vec![target(8)],
                }),
            ] {
                let record = ReshardingRecord { version: 7, goal, work };
                let bytes = record.encode();
                assert_eq!(ReshardingRecord::decode(&bytes), Ok(record));
                for length in 0..bytes.len() {
                    assert!(ReshardingRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
                }
            }
        }
    }
}
